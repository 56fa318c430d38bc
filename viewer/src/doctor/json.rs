//! The same as JSON: schema `vmscope-doctor`, version 1 (docs/doctor.md).

use serde_json::{Value, json};

use super::facts::{Capability, Facts, Limit, PerfProbe, ProcessFacts, Trouble, VmFacts, Vms};
use super::modules::{FileState, ModuleRow};
use super::text::module_mark;
use super::verdict::Verdict;
use super::verdict::row::{Group, Row};
use vmscope_symbolizer::native::DwarfPlace;

/// Raised when a field changes its meaning or disappears, not for new fields.
const VERSION: u32 = 1;

/// JSON document.
pub fn document(facts: &Facts, verdict: &Verdict) -> Value {
    let row = |row: &Row| {
        json!({
            "id": row.id,
            "group": match row.group {
                Group::Machine => "machine",
                Group::Process => "process",
            },
            "mark": row.finding.mark.name(),
            "what": row.what,
            "found": row.finding.found,
            "meaning": row.finding.meaning,
            "do": row.finding.todo,
        })
    };
    json!({
        "schema": "vmscope-doctor",
        "version": VERSION,
        "works": verdict.works,
        "summary": verdict.summary,
        "rows": verdict.rows.iter().map(row).collect::<Vec<_>>(),
        "machine": machine(facts),
        "process": facts.process.as_ref().map(|one| process(one, facts)),
    })
}

fn machine(facts: &Facts) -> Value {
    let machine = &facts.machine;
    let held = Capability::ALL.into_iter();
    let held = held.filter(|one| machine.capabilities.has(*one));
    json!({
        "kernel": machine.kernel_release,
        "cpus": machine.cpus,
        "perf_event_paranoid": machine.paranoid.value(),
        "perf_event_mlock_kb": machine.mlock_kb.value(),
        "kptr_restrict": machine.kptr_restrict.value(),
        "ptrace_scope": machine.ptrace_scope.value(),
        "kernel_addresses": machine.kernel_addresses,
        "uid": machine.uid,
        "user": machine.user,
        "capabilities": held.map(Capability::name).collect::<Vec<_>>(),
        "initial_user_namespace": machine.initial_user_namespace,
        "rtprio": limit(machine.rtprio),
        "nice": limit(machine.nice),
        "descriptors": limit(machine.descriptors),
        "seccomp_filter": machine.seccomp_filter,
        "container": machine.container.as_ref().map(|(kind, _)| kind),
        "perf_event_open": facts.perf.map(perf),
    })
}

fn perf(probe: PerfProbe) -> Value {
    let word = |result: Result<(), nix::errno::Errno>| match result {
        Ok(()) => "ok".to_owned(),
        Err(errno) => format!("{errno:?}"),
    };
    json!({ "user": word(probe.user), "kernel": word(probe.kernel) })
}

/// `null` stands for unlimited.
fn limit(limit: Limit) -> Value {
    let finite = |value| (value != u64::MAX).then_some(value);
    json!({ "soft": finite(limit.soft), "hard": finite(limit.hard) })
}

fn process(process: &ProcessFacts, facts: &Facts) -> Value {
    json!({
        "pid": process.pid,
        "name": process.name,
        "uid": process.uid,
        "user": process.user,
        "nspid": process.nspid,
        "threads": process.threads,
        "tracer_pid": process.tracer.as_ref().map(|(pid, _)| pid),
        "perf_event_open": facts.process_perf.map(perf),
        "vms": vms(&process.vms),
        "vms_timed_out": matches!(process.vms, Vms::TooLong(_)),
        "modules": process.modules.iter().map(module).collect::<Vec<_>>(),
        "modules_left_out": process.modules_left_out,
    })
}

/// `null` without an answer.
fn vms(vms: &Vms) -> Value {
    match vms {
        Vms::Asked(vms) => vms.iter().map(vm).collect(),
        Vms::NotAsked | Vms::TooLong(_) => Value::Null,
    }
}

fn vm(vm: &VmFacts) -> Value {
    let facts = vm.facts.iter();
    let facts = facts.map(|(name, value)| json!({ "name": name, "value": value }));
    let found = vm.reading.map(|reading| {
        json!({
            "code": reading.code,
            "methods": reading.methods,
            "collections": reading.collections,
            "figures": reading.counters,
            "threads": reading.threads,
            "compiling": reading.compiling,
            "lost": reading.lost,
        })
    });
    let trouble = |trouble: &Trouble| {
        let remedy = Some(&trouble.remedy).filter(|remedy| !remedy.is_empty());
        json!({ "text": trouble.text, "do": remedy })
    };
    json!({
        "family": vm.family,
        "kind": vm.kind,
        "version": vm.version,
        "facts": facts.collect::<Vec<_>>(),
        "found": found,
        "limits": vm.limits.iter().map(trouble).collect::<Vec<_>>(),
        "trouble": vm.trouble.as_ref().map(trouble),
    })
}

fn module(module: &ModuleRow) -> Value {
    let survey = &module.survey;
    let (dwarf, debug_file) = match &survey.dwarf {
        DwarfPlace::Embedded => ("embedded", None),
        DwarfPlace::Separate(path) => ("separate", Some(path)),
        DwarfPlace::None => ("none", None),
    };
    json!({
        "path": module.path.to_string_lossy(),
        "mark": module_mark(module).name(),
        "state": match module.state {
            FileState::Same => "same",
            FileState::Replaced => "replaced",
            FileState::Deleted => "deleted",
            FileState::Unreadable(_) => "unreadable",
            FileState::NotElf => "not-elf",
        },
        "opened": module.opened,
        "build_id": survey.build_id.as_ref().map(ToString::to_string),
        "symtab": survey.symtab,
        "dynsym": survey.dynsym,
        "mini_debuginfo": survey.mini_debuginfo,
        "dwarf": dwarf,
        "debug_file": debug_file,
    })
}

#[cfg(test)]
mod tests {
    use super::super::facts::VmReading;
    use super::super::verdict::{decide, tests as made_up};
    use super::*;
    use vmscope_symbolizer::native::Survey;

    /// A VM with something of everything.
    fn made_up_vm() -> VmFacts {
        let trouble = |text: &str| Trouble {
            text: text.to_owned(),
            remedy: "do something".to_owned(),
        };
        VmFacts {
            family: "hotspot".to_owned(),
            kind: "HotSpot".to_owned(),
            version: "25".to_owned(),
            facts: vec![("collector".to_owned(), "G1".to_owned())],
            reading: Some(VmReading::default()),
            limits: vec![trouble("a limit")],
            trouble: Some(trouble("no memory")),
        }
    }

    fn keys(value: &Value, into: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    into.push(key.clone());
                    keys(value, into);
                }
            }
            Value::Array(values) => values.iter().for_each(|value| keys(value, into)),
            _ => {}
        }
    }

    #[test]
    fn every_field_is_documented() {
        let mut facts = made_up::user();
        let mut process = made_up::process();
        process.modules = vec![ModuleRow {
            path: "/bin/true".into(),
            state: FileState::Same,
            opened: true,
            survey: Survey {
                dwarf: DwarfPlace::Separate("/usr/lib/debug/true".to_owned()),
                ..Survey::default()
            },
        }];
        process.vms = Vms::Asked(vec![made_up_vm()]);
        facts.process = Some(process);
        let document = document(&facts, &decide(&facts));
        assert_eq!(document["version"], VERSION);
        assert_eq!(document["works"], true);
        assert_eq!(document["process"]["modules"][0]["dwarf"], "separate");
        let described = include_str!("../../../docs/doctor.md");
        let mut found = Vec::new();
        keys(&document, &mut found);
        for key in found {
            assert!(
                described.contains(&format!("`{key}`")),
                "docs/doctor.md lacks `{key}`"
            );
        }
        for row in document["rows"].as_array().expect("rows") {
            let id = row["id"].as_str().expect("an id");
            assert!(
                described.contains(&format!("`{id}`")),
                "docs/doctor.md lacks row `{id}`"
            );
        }
    }

    #[test]
    fn without_an_answer_vms_are_null() {
        assert_eq!(vms(&Vms::NotAsked), Value::Null);
        assert_eq!(vms(&Vms::Asked(Vec::new())), json!([]));
    }
}
