//! The process's VMs: readability and remedies.
//!
//! ```text
//! VM
//! ok      HotSpot 25.0.3 (read by hotspot)
//!         collector: G1
//!         found: 6,012 pieces of code, 5,870 methods, 41 figures
//! limited bytecodes of optimised code are approximate
//!         do: vmscope record --precise -- CMD
//! no      cannot read the code cache: …
//!         do: …
//! ```

use super::super::facts::{PerfProbe, ProcessFacts, Trouble, VmFacts, VmReading, Vms};
use super::super::verdict::row::Mark;
use super::{MARGIN, marked, push_wrapped, remedy};
use crate::present::numbers::some;

/// Nothing for VMs not asked.
pub(super) fn section(out: &mut String, process: &ProcessFacts, perf: Option<PerfProbe>) {
    if process.vms != Vms::NotAsked {
        out.push_str("\nVM\n");
    }
    match &process.vms {
        Vms::NotAsked => {}
        Vms::TooLong(time) => {
            let text = format!("the VM could not be read within {} s", time.as_secs());
            marked(out, Mark::No, &text);
        }
        Vms::Asked(vms) if vms.is_empty() => {
            let text = "no known VM: native code has names; JIT code, if any, has none";
            marked(out, Mark::Ok, text);
        }
        Vms::Asked(vms) => {
            for vm in vms {
                one(out, vm);
            }
            let is_in_trouble = vms.iter().any(|vm| vm.trouble.is_some());
            if is_in_trouble && perf.is_some_and(|probe| probe.user.is_ok()) {
                let text = "Sampling works nevertheless: native code has names, but the VM data \
                            above are missing.";
                push_wrapped(out, text, MARGIN, MARGIN);
            }
        }
    }
}

fn one(out: &mut String, vm: &VmFacts) {
    let mark = match (&vm.trouble, vm.limits.is_empty()) {
        (Some(_), _) => Mark::No,
        (None, false) => Mark::Limited,
        (None, true) => Mark::Ok,
    };
    let name = format!("{} {}", vm.kind, vm.version);
    let by = format!("read by the {} adapter", vm.family);
    let title = match name.trim() {
        "" => format!("known to the {} adapter", vm.family),
        name => format!("{name} ({by})"),
    };
    marked(out, mark, &title);
    for (name, value) in &vm.facts {
        push_wrapped(out, &format!("{name}: {value}"), MARGIN, "          ");
    }
    if let Some(found) = vm.reading.and_then(found) {
        push_wrapped(out, &format!("found: {found}"), MARGIN, "          ");
    }
    for limit in &vm.limits {
        trouble(out, Mark::Limited, limit);
    }
    if let Some(error) = &vm.trouble {
        trouble(out, Mark::No, error);
    }
}

fn trouble(out: &mut String, mark: Mark, trouble: &Trouble) {
    marked(out, mark, &trouble.text);
    remedy(out, &trouble.remedy);
}

/// Counts of a poll, in words; `None` for none.
fn found(reading: VmReading) -> Option<String> {
    let all = [
        (reading.code, "piece of code", "pieces of code"),
        (reading.methods, "method", "methods"),
        (reading.counters, "figure", "figures"),
        (reading.collections, "collection", "collections"),
        (reading.threads, "VM thread", "VM threads"),
        (
            reading.compiling,
            "method under compilation",
            "methods under compilation",
        ),
        (reading.lost, "unreadable item", "unreadable items"),
    ];
    let all: Vec<String> = (all.into_iter())
        .filter(|(number, ..)| *number > 0)
        .map(|(number, one, many)| some(number, one, many))
        .collect();
    (!all.is_empty()).then(|| all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::super::verdict::{decide, tests as made_up};
    use super::super::render;
    use super::*;
    use std::time::Duration;
    use textwrap::core::display_width;

    fn rendered(vms: Vms) -> String {
        let mut facts = made_up::user();
        facts.process_perf = facts.perf;
        let mut process = made_up::process();
        process.vms = vms;
        facts.process = Some(process);
        let text = render(&facts, &decide(&facts));
        for line in text.lines() {
            assert!(display_width(line) <= 80, "{line}");
        }
        assert!(!text.contains('\u{1b}'));
        text
    }

    fn trouble(text: &str, remedy: &str) -> Trouble {
        Trouble {
            text: text.to_owned(),
            remedy: remedy.to_owned(),
        }
    }

    #[test]
    fn where_memory_is_forbidden_and_perf_works_both_are_said() {
        let text = rendered(Vms::Asked(vec![VmFacts {
            family: "hotspot".to_owned(),
            kind: "HotSpot".to_owned(),
            version: "25\u{1b}[2J".to_owned(),
            trouble: Some(trouble(
                "cannot read the VM's code cache: no permission to read the memory of process 4711",
                "set kernel.yama.ptrace_scope to 0",
            )),
            ..VmFacts::default()
        }]));
        assert!(text.contains("forbidden by yama"), "{text}");
        assert!(
            text.contains("\nno      HotSpot 25\\u{1b}[2J (read by the hotspot"),
            "{text}"
        );
        assert!(
            text.contains("        do: set kernel.yama.ptrace_scope to 0\n"),
            "{text}"
        );
        assert!(text.contains("Sampling works nevertheless"), "{text}");
        assert!(text.contains("can be sampled, user space only"), "{text}");
    }

    #[test]
    fn a_vm_that_can_be_read_is_told_with_what_would_improve_it() {
        let text = rendered(Vms::Asked(vec![VmFacts {
            family: "hotspot".to_owned(),
            kind: "HotSpot".to_owned(),
            version: "25".to_owned(),
            facts: vec![("collector".to_owned(), "G1".to_owned())],
            reading: Some(VmReading {
                code: 6012,
                methods: 1,
                ..VmReading::default()
            }),
            limits: vec![trouble("positions are approximate", "record --precise")],
            trouble: None,
        }]));
        let wanted = "limited HotSpot 25 (read by the hotspot adapter)\n        collector: G1\n        \
                      found: 6,012 pieces of code, 1 method\nlimited positions are approximate\n        \
                      do: record --precise\n";
        assert!(text.contains(wanted), "{text}");
        assert!(!text.contains("nevertheless"), "{text}");
    }

    #[test]
    fn another_implementation_no_vm_and_a_slow_one_are_told() {
        let text = rendered(Vms::Asked(vec![VmFacts {
            family: "hotspot".to_owned(),
            trouble: Some(trouble("cannot read Eclipse OpenJ9 0.48", "")),
            ..VmFacts::default()
        }]));
        let wanted =
            "no      known to the hotspot adapter\nno      cannot read Eclipse OpenJ9 0.48";
        assert!(text.contains(wanted), "{text}");
        assert!(rendered(Vms::Asked(Vec::new())).contains("no known VM"));
        let slow = rendered(Vms::TooLong(Duration::from_secs(10)));
        assert!(slow.contains("could not be read within 10 s"), "{slow}");
        assert!(!rendered(Vms::NotAsked).contains("\nVM\n"));
    }
}
