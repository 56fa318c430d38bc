//! The same as JSON: schema `vmscope-doctor`, version 1, described in `docs/doctor.md`.
//!
//! The structs here are the format: what [`super::facts`] is called may change, these
//! names may not without a new version.

mod vm;

use serde::Serialize;

use super::facts::{Capability, Facts, Limit, MachineFacts, PerfProbe, ProcessFacts, Setting, Vms};
use super::modules::{Dwarf, FileState, ModuleRow};
use super::text::{mark_word, module_mark};
use super::verdict::Verdict;
use super::verdict::row::Group;
use vm::VmJson;

/// Raised when a field changes its meaning or goes; new fields come without.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    version: u32,
    works: bool,
    summary: &'a str,
    rows: Vec<RowJson<'a>>,
    machine: MachineJson<'a>,
    process: Option<ProcessJson<'a>>,
}

#[derive(Serialize)]
struct RowJson<'a> {
    id: &'a str,
    group: &'static str,
    mark: &'static str,
    what: &'a str,
    found: &'a str,
    meaning: &'a str,
    #[serde(rename = "do")]
    todo: Option<&'a str>,
}

#[derive(Serialize)]
struct MachineJson<'a> {
    kernel: &'a str,
    cpus: u32,
    perf_event_paranoid: Option<i64>,
    perf_event_mlock_kb: Option<i64>,
    kptr_restrict: Option<i64>,
    ptrace_scope: Option<i64>,
    kernel_addresses: bool,
    uid: u32,
    user: Option<&'a str>,
    capabilities: Vec<&'static str>,
    initial_user_namespace: bool,
    rtprio: LimitJson,
    nice: LimitJson,
    descriptors: LimitJson,
    seccomp_filter: bool,
    container: Option<&'a str>,
    perf_event_open: Option<PerfJson>,
}

/// `null` stands for unlimited.
#[derive(Serialize)]
struct LimitJson {
    soft: Option<u64>,
    hard: Option<u64>,
}

#[derive(Serialize)]
struct PerfJson {
    user: String,
    kernel: String,
}

#[derive(Serialize)]
struct ProcessJson<'a> {
    pid: i32,
    name: &'a str,
    uid: Option<u32>,
    user: Option<&'a str>,
    nspid: &'a [i32],
    threads: u64,
    tracer_pid: Option<i32>,
    perf_event_open: Option<PerfJson>,
    vms: Option<Vec<VmJson<'a>>>,
    vms_timed_out: bool,
    modules: Vec<ModuleJson<'a>>,
    modules_left_out: usize,
}

#[derive(Serialize)]
struct ModuleJson<'a> {
    path: String,
    mark: &'static str,
    state: &'static str,
    opened: bool,
    build_id: Option<&'a str>,
    symtab: bool,
    dynsym: bool,
    mini_debuginfo: bool,
    dwarf: &'static str,
    debug_file: Option<String>,
}

/// Renders everything as one document, with a newline at the end.
///
/// # Errors
/// None that is known: there is nothing in it that JSON can't hold.
pub fn render(facts: &Facts, verdict: &Verdict) -> serde_json::Result<String> {
    let rows = verdict.rows.iter().map(|row| RowJson {
        id: row.id,
        group: match row.group {
            Group::Machine => "machine",
            Group::Process => "process",
        },
        mark: mark_word(row.mark),
        what: &row.what,
        found: &row.found,
        meaning: &row.meaning,
        todo: row.todo.as_deref(),
    });
    let document = Document {
        schema: "vmscope-doctor",
        version: VERSION,
        works: verdict.works,
        summary: &verdict.summary,
        rows: rows.collect(),
        machine: machine(&facts.machine, facts),
        process: facts
            .process
            .as_ref()
            .map(|looked_at| process(looked_at, facts)),
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

fn machine<'a>(machine: &'a MachineFacts, facts: &Facts) -> MachineJson<'a> {
    let held = Capability::ALL
        .into_iter()
        .filter(|c| machine.capabilities.has(*c));
    MachineJson {
        kernel: &machine.kernel_release,
        cpus: machine.cpus,
        perf_event_paranoid: Setting::value(&machine.paranoid),
        perf_event_mlock_kb: machine.mlock_kb.value(),
        kptr_restrict: machine.kptr_restrict.value(),
        ptrace_scope: machine.ptrace_scope.value(),
        kernel_addresses: machine.kernel_addresses,
        uid: machine.uid,
        user: machine.user.as_deref(),
        capabilities: held.map(Capability::name).collect(),
        initial_user_namespace: machine.initial_user_namespace,
        rtprio: limit(machine.rtprio),
        nice: limit(machine.nice),
        descriptors: limit(machine.descriptors),
        seccomp_filter: machine.seccomp_filter,
        container: machine.container.as_ref().map(|(kind, _)| kind.as_str()),
        perf_event_open: facts.perf.map(perf),
    }
}

fn perf(probe: PerfProbe) -> PerfJson {
    let word = |result: Result<(), nix::errno::Errno>| match result {
        Ok(()) => "ok".to_owned(),
        Err(errno) => format!("{errno:?}"),
    };
    PerfJson {
        user: word(probe.user),
        kernel: word(probe.kernel),
    }
}

fn limit(limit: Limit) -> LimitJson {
    let finite = |value| (value != u64::MAX).then_some(value);
    LimitJson {
        soft: finite(limit.soft),
        hard: finite(limit.hard),
    }
}

fn process<'a>(process: &'a ProcessFacts, facts: &Facts) -> ProcessJson<'a> {
    ProcessJson {
        pid: process.pid,
        name: &process.name,
        uid: process.uid,
        user: process.user.as_deref(),
        nspid: &process.nspid,
        threads: process.threads,
        perf_event_open: facts.process_perf.map(perf),
        tracer_pid: process.tracer.as_ref().map(|(pid, _)| *pid),
        vms: vm::vms(&process.vms),
        vms_timed_out: matches!(process.vms, Vms::TooLong(_)),
        modules: process.modules.iter().map(module).collect(),
        modules_left_out: process.modules_left_out,
    }
}

fn module(module: &ModuleRow) -> ModuleJson<'_> {
    let (dwarf, debug_file) = match &module.dwarf {
        Dwarf::Embedded => ("embedded", None),
        Dwarf::Separate(path) => ("separate", Some(path.to_string_lossy().into_owned())),
        Dwarf::None => ("none", None),
    };
    ModuleJson {
        path: module.path.to_string_lossy().into_owned(),
        mark: mark_word(module_mark(module)),
        state: match module.state {
            FileState::Same => "same",
            FileState::Replaced => "replaced",
            FileState::Deleted => "deleted",
            FileState::Unreadable(_) => "unreadable",
            FileState::NotElf => "not-elf",
        },
        opened: module.opened,
        build_id: module.build_id.as_deref(),
        symtab: module.symbols.symtab,
        dynsym: module.symbols.dynsym,
        mini_debuginfo: module.symbols.mini_debuginfo,
        dwarf,
        debug_file,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::verdict::{decide, tests as made_up};
    use super::*;

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
            build_id: None,
            symbols: super::super::modules::Symbols::default(),
            dwarf: Dwarf::Separate("/usr/lib/debug/true".into()),
            state: FileState::Same,
            opened: true,
        }];
        process.vms = Vms::Asked(vec![vm::tests::made_up()]);
        facts.process = Some(process);
        let text = render(&facts, &decide(&facts)).expect("JSON");
        let document: Value = serde_json::from_str(&text).expect("JSON");
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
}
