//! `vmscope annotate` of real programs, as users call it.

#![allow(clippy::panic, reason = "tests fail by it")]

mod common;

use common::programs;
use common::vmscope::{Folder, can_sample, command, record, run};
use serde_json::Value;

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// A native program with debug information: its source lines, with what was inlined.
#[test]
fn a_native_function_has_its_source_in_the_listing() {
    let folder = Folder::new();
    let Some(program) = programs::build(programs::INLINED) else {
        return;
    };
    if !can_sample() {
        return;
    }
    let program = program.to_str().expect("UTF-8");
    record(&folder, &["--quiet"], &[program, "--seconds", "1"]).code(0);
    let annotate = |arguments: &[&str]| {
        let mut command = command(["annotate", "out.vmscope"]);
        command.args(arguments).current_dir(folder.path());
        run(command)
    };
    let relax = annotate(&["relax", "--width=160"]).code(0);
    relax
        .prints("samples are charged to the instruction after a slow one")
        .prints("cells_[i] = detail::weigh(cells_[i - 1], cells_[i], cells_[i + 1]);")
        .prints("> sim::detail::blend(double, double, double)")
        .prints("x = x * 0.5 + b * 0.25;");
    annotate(&["relax", "--no-source"])
        .code(0)
        .prints("±: 95 %");

    // Inlined methods have most samples; and the inlined function asked for by itself has the same
    // samples.
    let relax = annotate(&["relax", "--json"]).code(0).json();
    let (all, own) = (
        number(&relax["all"]["samples"]),
        number(&relax["own"]["samples"]),
    );
    assert!(all > 50 && own < all / 2, "{own} of {all}");
    let mix = annotate(&["sim::detail::mix(double, double)", "--json"])
        .code(0)
        .json();
    assert!(number(&mix["own"]["samples"]) > all / 2, "{mix}");
    let into = &mix["inlined_into"][0]["method"];
    assert_eq!(into, "sim::detail::blend(double, double, double)");

    // Narrowed, there is less of it.
    let early = annotate(&["relax", "--json", "--to", "0.3"]).code(0).json();
    assert!(number(&early["all"]["samples"]) < all);

    // Defaults: the hottest method, `recording.vmscope`.
    annotate(&[]).code(0).prints("of all");
    annotate(&["sim::"]).code(2).says("be more specific");
    annotate(&["nobody at all"]).code(2).says("the hottest are");
    let mut elsewhere = command(["annotate", "relax"]);
    run({
        elsewhere.current_dir(folder.path());
        elsewhere
    })
    .code(2)
    .says("recording.vmscope");
    let mut by_option = command(["annotate", "relax", "-i", "out.vmscope"]);
    by_option.current_dir(folder.path());
    run(by_option).code(0).prints("relax()");
}
