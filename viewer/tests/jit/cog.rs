//! A process with a Cog VM's memory layout: callers on two stack pages and from C code, statistics.

use crate::common::programs::{COG_LAYOUT, build};
use crate::common::vmscope::{Folder, command, run};

/// Callers of the three leaves, outermost first.
const CALLERS: [&str; 3] = ["Bench>>main", "Bench>>outer", "Bench>>loop"];

/// Samples by what their chain shows.
#[derive(Debug, Default)]
struct Counts {
    whole: u64,
    /// The inner part alone.
    cut: u64,
    wrong: Vec<String>,
}

impl Counts {
    fn put(&mut self, stack: &str, samples: u64) {
        let method = |frame: &str| {
            let name = frame.strip_prefix("Bench>>")?;
            Some(format!("Bench>>{}", name.split(['_', ' ']).next()?))
        };
        let methods: Vec<String> = stack.split(';').filter_map(method).collect();
        let is_c = stack.contains("primitiveSpin");
        let (leaf, callers) = match methods.split_last() {
            Some((last, _)) if CALLERS.contains(&&**last) && !is_c => ("", &methods[..]),
            Some((last, callers)) => (&**last, callers),
            None if is_c => ("Bench>>primitive", &[][..]),
            // The VM was not recognised yet.
            None => return,
        };
        let is_leaf = match leaf {
            "Bench>>primitive" => true,
            "" | "Bench>>frameless" | "Bench>>framed" => !is_c,
            _ => false,
        };
        if !is_leaf
            || !CALLERS
                .iter()
                .rev()
                .zip(callers.iter().rev())
                .all(|(a, b)| a == b)
        {
            self.wrong.push(stack.to_owned());
        } else if callers.len() == CALLERS.len() {
            self.whole += samples;
        } else {
            self.cut += samples;
        }
    }
}

#[test]
fn callers_lead_over_pages_and_from_c_code() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let Some(program) = build(COG_LAYOUT) else {
        return;
    };
    let folder = Folder::new();
    let file = folder.file("out.vmscope");
    let mut recording = command(["record", "--quiet", "--output"]);
    recording.arg(&file).arg("--").arg(&program).arg("150000");
    recording.current_dir(folder.path());
    run(recording).code(0);
    let mut export = command(["export", "--to", "collapsed", "--output", "-"]);
    export.arg(&file);
    let exported = run(export).code(0);
    let mut counts = Counts::default();
    for line in exported.stdout.lines() {
        let (stack, samples) = line.rsplit_once(' ').expect("a count");
        counts.put(stack, samples.parse().expect("a count"));
    }
    assert!(counts.wrong.is_empty(), "{:?}", counts.wrong);
    // Samples before the first poll end at the VM's code.
    assert!(
        counts.whole > 9 * counts.cut && counts.whole > 500,
        "{counts:?}"
    );
    let mut report = command(["report", "--full"]);
    report.arg(&file);
    let report = run(report).code(0).stdout;
    for part in [
        "**GCs**",
        "**Events**",
        "scavenger, scavenge:",
        "primitiveSpin (primitives)",
    ] {
        assert!(report.contains(part), "no {part} in\n{report}");
    }
}
