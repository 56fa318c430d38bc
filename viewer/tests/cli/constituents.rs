//! `vmscope constituents` of processes and files without a code zone.

use crate::common::vmscope::vmscope;
use std::process::Command;

#[test]
fn what_has_no_code_zone_is_an_error() {
    let mut native = Command::new("sleep").arg("60").spawn().expect("sleep");
    let pid = native.id().to_string();
    for options in [&[][..], &["--detailed"], &["--json"]] {
        let ran = vmscope([&["constituents", &pid], options].concat());
        ran.code(1)
            .says(&format!("no known VM runs in process {pid} (sleep)"))
            .says("vmscope attach");
    }
    native.kill().expect("our child");
    native.wait().expect("our child");
    vmscope(["constituents", &pid]).code(1).says("no process");
    vmscope(["constituents", "2147483647"])
        .code(1)
        .says("no process 2147483647");
    vmscope(["constituents", "no such program"])
        .code(1)
        .says("no process");
    vmscope(["constituents"]).code(2).says("PID|NAME");
    let program = std::env::current_exe().expect("this program");
    let program = program.to_str().expect("UTF-8");
    vmscope(["constituents", "--core", program])
        .code(2)
        .says("not a core file");
}
