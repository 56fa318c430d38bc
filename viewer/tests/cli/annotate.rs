//! `vmscope annotate` of real programs, as users call it.

use crate::common::programs;
use crate::common::vmscope::{Folder, can_sample, command, record, run};
use serde_json::Value;

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// A function of known chains without own samples.
#[test]
fn a_function_that_only_calls_is_found_by_its_callees() {
    let folder = Folder::new();
    let Some(program) = programs::build(programs::RECURSION) else {
        return;
    };
    if !can_sample() {
        return;
    }
    let program = program.to_str().expect("UTF-8");
    record(&folder, &["--quiet", "--call-graph=fp"], &[program]).code(0);
    let annotate = |arguments: &[&str]| {
        let mut command = command(["annotate", "out.vmscope"]);
        command.args(arguments).current_dir(folder.path());
        run(command)
    };
    let called = annotate(&["chain_b", "--json"]).code(0).json();
    let stacks = &called["stacks"];
    let inclusive = number(&stacks["inclusive"]);
    // Its own instructions are few beside those of `chain_c`, half of the CPU time.
    assert!(inclusive > 100, "{called}");
    assert!(
        number(&called["all"]["samples"]) * 20 < inclusive,
        "{called}"
    );
    assert_eq!(stacks["callers"][0]["method"], "chain_a");
    assert_eq!(stacks["callees"][0]["method"], "chain_c");
    let rows = called["rows"].as_array().expect("rows");
    let most = rows.iter().max_by_key(|row| number(&row["called"]));
    let most = most.expect("a row");
    assert!(number(&most["called"]) * 10 > inclusive * 9, "{called}");
    annotate(&["chain_b"])
        .code(0)
        .prints("inclusive: on the stack of ")
        .prints("callers: chain_a ")
        .prints("x = chain_c(x + 1);");
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
        .prints("samples often hit the instruction after the slow one")
        .prints("cells_[i] = detail::weigh(cells_[i - 1], cells_[i], cells_[i + 1]);")
        .prints("> sim::detail::blend(double, double, double)")
        .prints("x = x * 0.5 + b * 0.25;");
    annotate(&["relax", "--no-source"])
        .code(0)
        .prints("±: sampling error, 95 %");

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

    // The last half second has some of its samples. The program may begin late: its file comes from the disk.
    let mut report = command(["report", "out.vmscope", "--json"]);
    report.current_dir(folder.path());
    let report = run(report).code(0).json();
    let seconds = report["session"]["seconds"].as_f64().expect("seconds");
    let from = (seconds - 0.5).to_string();
    let late = annotate(&["relax", "--json", "--from", &from])
        .code(0)
        .json();
    assert!(number(&late["all"]["samples"]) < all);

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
