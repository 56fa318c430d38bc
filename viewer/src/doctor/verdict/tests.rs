use nix::errno::Errno;

use super::row::Mark;
use super::*;
use crate::doctor::facts::{
    Capabilities, Existence, Limit, MachineFacts, PerfProbe, ProcessFacts, Reading, Setting, Vms,
};

/// An ordinary user on an ordinary machine.
pub(crate) fn user() -> Facts {
    let none = Limit { soft: 0, hard: 0 };
    Facts {
        machine: MachineFacts {
            kernel_release: "6.1.0-13-amd64".to_owned(),
            cpus: 8,
            paranoid: Setting::Value(2),
            mlock_kb: Setting::Value(516),
            kptr_restrict: Setting::Value(1),
            kernel_addresses: false,
            ptrace_scope: Setting::Value(1),
            uid: 1000,
            user: Some("alice".to_owned()),
            capabilities: Capabilities(0),
            bounding: Capabilities(u64::MAX),
            initial_user_namespace: true,
            rtprio: none,
            nice: none,
            descriptors: Limit {
                soft: 1024,
                hard: 524_288,
            },
            seccomp_filter: false,
            container: None,
        },
        perf: Some(PerfProbe {
            user: Ok(()),
            kernel: Err(Errno::EACCES),
        }),
        process_perf: None,
        process: None,
    }
}

/// The same user's process.
pub(crate) fn process() -> ProcessFacts {
    ProcessFacts {
        pid: 4711,
        existence: Existence::Process,
        name: "node".to_owned(),
        uid: Some(1000),
        user: Some("alice".to_owned()),
        nspid: vec![4711],
        threads: 11,
        tracer: None,
        maps: Reading::Done,
        memory: Reading::Failed(Errno::EPERM),
        vms: Vms::NotAsked,
        modules: Vec::new(),
        modules_left_out: 0,
    }
}

fn root() -> Facts {
    let mut facts = user();
    facts.machine.uid = 0;
    facts.machine.capabilities = Capabilities(u64::MAX);
    facts.machine.kernel_addresses = true;
    facts.perf = Some(PerfProbe {
        user: Ok(()),
        kernel: Ok(()),
    });
    facts
}

fn find<'a>(verdict: &'a Verdict, id: &str) -> &'a Finding {
    let row = verdict.rows.iter().find(|row| row.id == id);
    &row.expect(id).finding
}

#[test]
fn an_ordinary_user_can_record_user_space() {
    let verdict = decide(&user());
    assert!(verdict.works);
    assert!(
        verdict.summary.contains("user space only"),
        "{}",
        verdict.summary
    );
    assert_eq!(find(&verdict, "user_samples").mark, Mark::Ok);
    let paranoid = find(&verdict, "perf_event_paranoid");
    assert_eq!(paranoid.mark, Mark::Limited);
    assert_eq!(
        paranoid.todo.as_deref(),
        Some("sudo sysctl kernel.perf_event_paranoid=1")
    );
}

#[test]
fn root_has_nothing_to_do() {
    let verdict = decide(&root());
    assert!(verdict.works);
    for row in &verdict.rows {
        let finding = &row.finding;
        assert_eq!((finding.mark, &finding.todo), (Mark::Ok, &None), "{row:?}");
    }
}

#[test]
fn a_paranoid_distribution_allows_nothing() {
    let mut facts = user();
    facts.machine.paranoid = Setting::Value(4);
    facts.perf = Some(PerfProbe {
        user: Err(Errno::EACCES),
        kernel: Err(Errno::EACCES),
    });
    let verdict = decide(&facts);
    assert!(!verdict.works);
    assert_eq!(find(&verdict, "perf_event_paranoid").mark, Mark::No);
    // The setting's row says what to do; the probe's would only repeat it.
    assert_eq!(find(&verdict, "user_samples").todo, None);
}

#[test]
fn eperm_that_the_settings_do_not_explain_is_the_containers() {
    let mut facts = user();
    facts.machine.container = Some(("docker".to_owned(), "/.dockerenv".to_owned()));
    facts.machine.seccomp_filter = true;
    facts.machine.bounding = Capabilities(0xa804_25fb);
    facts.perf = Some(PerfProbe {
        user: Err(Errno::EPERM),
        kernel: Err(Errno::EPERM),
    });
    let verdict = decide(&facts);
    assert!(!verdict.works);
    let row = find(&verdict, "user_samples");
    assert!(row.meaning.contains("seccomp"), "{row:?}");
    assert_eq!(
        row.todo.as_deref(),
        Some("docker run --cap-add PERFMON ...")
    );
    // Containers cannot set sysctls.
    let todo = find(&verdict, "perf_event_paranoid")
        .todo
        .clone()
        .expect("something to do");
    assert!(todo.starts_with("on the container's host"), "{todo}");
}

#[test]
fn without_a_probe_the_settings_decide() {
    let mut facts = user();
    facts.perf = None;
    for (paranoid, works) in [(-1, true), (1, true), (2, true), (3, false)] {
        facts.machine.paranoid = Setting::Value(paranoid);
        assert_eq!(decide(&facts).works, works, "{paranoid}");
    }
    facts.machine.paranoid = Setting::Absent;
    assert!(!decide(&facts).works);
}

#[test]
fn capabilities_of_a_user_namespace_do_not_count() {
    let mut facts = root();
    facts.perf = None;
    facts.machine.paranoid = Setting::Value(3);
    assert!(decide(&facts).works);
    facts.machine.initial_user_namespace = false;
    assert!(!decide(&facts).works);
}

#[test]
fn an_old_kernel_is_too_old() {
    let mut facts = root();
    for (release, works) in [
        ("3.10.0-1160.el7", false),
        ("4.1", true),
        ("6.18.44-x", true),
    ] {
        facts.machine.kernel_release = release.to_owned();
        assert_eq!(decide(&facts).works, works, "{release}");
    }
}

#[test]
fn yama_hides_memory_and_does_not_hinder_sampling() {
    let mut facts = user();
    facts.process = Some(process());
    let verdict = decide(&facts);
    assert!(verdict.works);
    let memory = find(&verdict, "memory");
    assert_eq!(memory.mark, Mark::No);
    assert_eq!(
        memory.todo.as_deref(),
        Some("sudo sysctl kernel.yama.ptrace_scope=0")
    );
    // Level 3 can't be lowered: nothing is advised.
    facts.machine.ptrace_scope = Setting::Value(3);
    assert_eq!(find(&decide(&facts), "memory").todo, None);
}

#[test]
fn what_is_not_an_own_process_can_not_be_attached_to() {
    for existence in [
        Existence::Missing,
        Existence::Hidden,
        Existence::Zombie,
        Existence::KernelThread,
        Existence::ThreadOf(4700),
    ] {
        let mut facts = root();
        facts.process = Some(ProcessFacts {
            existence: existence.clone(),
            ..process()
        });
        let verdict = decide(&facts);
        assert!(!verdict.works, "{existence:?}");
        assert_eq!(find(&verdict, "existence").mark, Mark::No, "{existence:?}");
        assert!(
            !verdict.rows.iter().any(|row| row.id == "maps"),
            "{existence:?}"
        );
    }
}

#[test]
fn a_stopped_process_can_be_attached_to() {
    let mut facts = root();
    facts.process = Some(ProcessFacts {
        existence: Existence::Stopped,
        ..process()
    });
    let verdict = decide(&facts);
    assert!(verdict.works);
    let row = find(&verdict, "existence");
    assert_eq!(row.mark, Mark::Limited);
    assert_eq!(row.todo.as_deref(), Some("kill -CONT 4711"));
}

#[test]
fn a_strangers_process_needs_root() {
    let mut facts = user();
    let maps = Reading::Failed(Errno::EACCES);
    let memory = Reading::NotTried;
    facts.process = Some(ProcessFacts {
        uid: Some(1),
        user: None,
        maps,
        memory,
        ..process()
    });
    let verdict = decide(&facts);
    assert!(!verdict.works);
    assert_eq!(find(&verdict, "owner").found, "uid 1");
    assert_eq!(
        find(&verdict, "maps").todo.as_deref(),
        Some("sudo vmscope attach 4711")
    );
}

#[test]
fn what_trying_gave_counts_more_than_what_it_should_give() {
    let mut facts = root();
    facts.process = Some(process());
    facts.process_perf = Some(PerfProbe {
        user: Err(Errno::EACCES),
        kernel: Err(Errno::EACCES),
    });
    let verdict = decide(&facts);
    assert!(!verdict.works);
    assert_eq!(find(&verdict, "events").mark, Mark::No);
    // The machine's own row stays ok.
    assert_eq!(find(&verdict, "user_samples").mark, Mark::Ok);
}

#[test]
fn many_threads_need_many_descriptors() {
    let mut facts = user();
    // vmscope raises the soft limit.
    facts.machine.descriptors = Limit {
        soft: 100,
        hard: 1024,
    };
    for (threads, mark, works) in [
        (119, Mark::Ok, true),
        (120, Mark::Limited, true),
        (961, Mark::No, false),
    ] {
        facts.process = Some(ProcessFacts {
            threads,
            ..process()
        });
        let verdict = decide(&facts);
        let row = find(&verdict, "threads");
        assert_eq!((row.mark, verdict.works), (mark, works), "{threads}");
        assert_eq!(row.todo.is_some(), mark != Mark::Ok);
    }
}

#[test]
fn a_debugger_leaves_the_kernel_engine() {
    let mut facts = root();
    facts.process = Some(ProcessFacts {
        tracer: Some((42, "gdb".to_owned())),
        ..process()
    });
    let verdict = decide(&facts);
    assert!(verdict.works);
    assert_eq!(find(&verdict, "tracer").mark, Mark::Limited);
}
