//! Prints what a JVM says about its own structures: `structs PID [PREFIX]`.
#![allow(clippy::print_stdout, reason = "it is what it is for")]
use vmscope_hotspot::{layout::VmStructs, pages::Pages};
use vmscope_process::ProcessView;
use vmscope_records::Pid;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pid = std::env::args()
        .nth(1)
        .ok_or("usage: structs PID")?
        .parse()?;
    let process = ProcessView::open(Pid(pid))?;
    let libjvm = process
        .module(|name| name == "libjvm.so")
        .ok_or("no libjvm.so")?;
    let pages = Pages::new(process.memory());
    let structs = VmStructs::read(&process, &libjvm, &pages)?;
    println!("{:?}", structs.counts());
    for name in std::env::args().skip(2) {
        println!("{name} {:?}", structs.type_named(&name));
        let mut fields: Vec<_> = structs.fields_of(&name).collect();
        fields.sort_by_key(|(_, f)| (f.is_static, f.offset));
        for (field, what) in fields {
            println!("  {field} {what:?}");
        }
        for (c, v) in structs.constants_beginning(&name) {
            println!("  const {c} = {v}");
        }
    }
    Ok(())
}
