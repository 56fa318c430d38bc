//! The VMs of the process: what can be read of them, and what would improve the result.
//!
//! ```text
//! Its VM
//! ok      HotSpot 25.0.3 (read by hotspot)
//!         collector: G1
//!         found: 6,012 pieces of code, 5,870 methods, 41 figures
//! limited optimised code does not say between which bytecodes it is
//!         do: vmscope record --precise -- CMD
//! no      the VM's code cache can't be read: …
//!         do: …
//! ```

use super::super::facts::{PerfProbe, ProcessFacts, Trouble, VmFacts, VmReading, Vms};
use super::super::verdict::row::Mark;
use super::{heading, mark_word, push_wrapped};
use crate::present::numbers::some;

const MARGIN: &str = "        ";

/// The section; nothing where nobody was asked.
pub(super) fn section(out: &mut String, process: &ProcessFacts, perf: Option<PerfProbe>) {
    match &process.vms {
        Vms::NotAsked => {}
        Vms::TooLong(time) => {
            begin(out);
            let seconds = time.as_secs();
            let text = format!("the VM could not be read within {seconds} s");
            marked(out, Mark::No, &text);
        }
        Vms::Asked(vms) if vms.is_empty() => {
            begin(out);
            let text = "none that vmscope knows: native code has names; code that is generated, if \
                        there is any, has none";
            marked(out, Mark::Ok, text);
        }
        Vms::Asked(vms) => {
            begin(out);
            for vm in vms {
                one(out, vm);
            }
            let is_in_trouble = vms.iter().any(|vm| vm.trouble.is_some());
            if is_in_trouble && perf.is_some_and(|probe| probe.user.is_ok()) {
                let text = "It can be sampled all the same: native code has its names then, and \
                            what the VM could not be asked is missing.";
                push_wrapped(out, text, MARGIN, MARGIN);
            }
        }
    }
}

fn begin(out: &mut String) {
    out.push('\n');
    heading(out, "Its VM: can it be read?");
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
    if !trouble.remedy.is_empty() {
        push_wrapped(out, &trouble.remedy, "        do: ", "            ");
    }
}

fn marked(out: &mut String, mark: Mark, text: &str) {
    push_wrapped(out, text, &format!("{:<8}", mark_word(mark)), MARGIN);
}

/// What a poll found, in words; `None` where that was nothing.
fn found(reading: VmReading) -> Option<String> {
    let all = [
        (reading.code, "piece of code", "pieces of code"),
        (reading.methods, "method", "methods"),
        (reading.counters, "figure", "figures"),
        (reading.collections, "collection", "collections"),
        (reading.threads, "thread of its own", "threads of its own"),
        (
            reading.compiling,
            "method being compiled",
            "methods being compiled",
        ),
        (
            reading.lost,
            "thing that could not be read",
            "things that could not be read",
        ),
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
                "the VM's code cache can't be read: reading the memory of process 4711 is not \
                 permitted",
                "set kernel.yama.ptrace_scope to 0",
            )),
            ..VmFacts::default()
        }]));
        assert!(text.contains("forbidden by yama"), "{text}");
        assert!(
            text.contains("\nno      HotSpot 25?[2J (read by the hotspot"),
            "{text}"
        );
        assert!(
            text.contains("        do: set kernel.yama.ptrace_scope to 0\n"),
            "{text}"
        );
        assert!(text.contains("It can be sampled all the same"), "{text}");
        assert!(text.contains("it can be sampled in user space"), "{text}");
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
        assert!(!text.contains("all the same"), "{text}");
    }

    #[test]
    fn another_implementation_no_vm_and_a_slow_one_are_told() {
        let text = rendered(Vms::Asked(vec![VmFacts {
            family: "hotspot".to_owned(),
            trouble: Some(trouble(
                "this is Eclipse OpenJ9 0.48, which can't be read",
                "",
            )),
            ..VmFacts::default()
        }]));
        let wanted = "no      known to the hotspot adapter\nno      this is Eclipse OpenJ9 0.48";
        assert!(text.contains(wanted), "{text}");
        assert!(rendered(Vms::Asked(Vec::new())).contains("none that vmscope knows"));
        let slow = rendered(Vms::TooLong(Duration::from_secs(10)));
        assert!(slow.contains("could not be read within 10 s"), "{slow}");
        assert!(!rendered(Vms::NotAsked).contains("Its VM"));
    }
}
