//! Asks the VM families about a process, as `attach` would: recognition, and one poll of each
//! adapter, in bounded time.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use vmscope_process::{
    Adapter, AdapterError, AdapterFamily, KeySource, Poll, ProcessView, recognise,
};
use vmscope_records::{Pid, ProcessKey, Record, TimeNs};

use super::facts::{Trouble, VmFacts, VmReading, Vms};

/// Maximum time of all adapters.
const PATIENCE: Duration = Duration::from_secs(10);

/// Maximum number of facts and limits per adapter.
const MAX_TOLD: usize = 64;

/// Maximum length of a text, in characters.
const MAX_TEXT: usize = 2000;

/// VMs of `pid` by family. Abandons a slow poll.
pub fn poll(pid: Pid, families: impl FnOnce() -> Vec<Box<dyn AdapterFamily>>) -> Vms {
    let view = match ProcessView::open(pid) {
        Ok(view) => view,
        // The rows give the reason.
        Err(_) => return Vms::NotAsked,
    };
    let families = families();
    let (done, result) = sync_channel(1);
    let spawned = std::thread::Builder::new()
        .name("vm-poll".to_owned())
        // The receiver may have stopped waiting.
        .spawn(move || drop(done.send(ask(&view, &families))));
    if spawned.is_err() {
        return Vms::NotAsked;
    }
    match result.recv_timeout(PATIENCE) {
        Ok(vms) => Vms::Asked(vms),
        Err(RecvTimeoutError::Timeout) => Vms::TooLong(PATIENCE),
        Err(RecvTimeoutError::Disconnected) => Vms::NotAsked,
    }
}

fn ask(view: &ProcessView, families: &[Box<dyn AdapterFamily>]) -> Vec<VmFacts> {
    let recognised = recognise(families, view);
    let mut vms = Vec::new();
    for (family, mut adapter) in recognised.adapters {
        vms.push(read(family, &mut *adapter, view));
        if adapter.tells_all_code() {
            break;
        }
    }
    vms.extend(recognised.failures.iter().map(|(family, error)| VmFacts {
        family: (*family).to_owned(),
        trouble: Some(trouble(error)),
        ..VmFacts::default()
    }));
    for family in families {
        family.recording_over();
    }
    vms
}

/// One poll of an adapter.
fn read(family: &str, adapter: &mut dyn Adapter, view: &ProcessView) -> VmFacts {
    let mut poll = Poll::new(KeySource::new(), ProcessKey(0), Arc::new(now));
    let result = adapter.poll(view, &mut poll);
    let identity = adapter.identity();
    let mut facts = VmFacts {
        family: family.to_owned(),
        kind: cut(&identity.kind),
        version: cut(&identity.version),
        trouble: result.err().as_ref().map(trouble),
        ..VmFacts::default()
    };
    let records = poll.finish();
    let mut read = VmReading::default();
    // Adapters report limits at a recording's end.
    let mut last = Poll::new(KeySource::new(), ProcessKey(0), Arc::new(now));
    if facts.trouble.is_none() {
        facts.trouble = adapter.finish(view, &mut last).err().as_ref().map(trouble);
    }
    let limits = last
        .finish()
        .into_iter()
        .filter(|r| matches!(r, Record::Limit(_)));
    let records = records.into_iter().chain(limits);
    for record in records {
        match record {
            Record::Constituent(_) => read.code += 1,
            Record::Method(_) => read.methods += 1,
            Record::ThreadUpdate(_) => read.threads += 1,
            Record::Compilation(_) => read.compiling += 1,
            Record::Collection(_) => read.collections += 1,
            Record::Counter(_) => read.counters += 1,
            Record::Lost(lost) => read.lost = read.lost.saturating_add(lost.count),
            Record::Fact(fact) => {
                // The newest fact of each name.
                let (name, value) = (cut(&fact.name), cut(&fact.value));
                match facts.facts.iter().position(|(known, _)| *known == name) {
                    Some(at) => facts.facts[at].1 = value,
                    None if facts.facts.len() < MAX_TOLD => facts.facts.push((name, value)),
                    None => {}
                }
            }
            Record::Limit(limit) => {
                let limit = Trouble {
                    text: cut(&limit.text),
                    remedy: cut(&limit.remedy),
                };
                if facts.limits.len() < MAX_TOLD && !facts.limits.contains(&limit) {
                    facts.limits.push(limit);
                }
            }
            _ => {}
        }
    }
    facts.reading = Some(read);
    facts
}

fn trouble(error: &AdapterError) -> Trouble {
    Trouble {
        text: cut(&error.in_full()),
        remedy: error.remedy().to_owned(),
    }
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

fn now() -> TimeNs {
    vmscope_sampler::session::now()
}

#[cfg(test)]
#[allow(clippy::panic, reason = "tests fail by it")]
mod tests {
    use super::*;
    use vmscope_process::MemoryError;
    use vmscope_records::VmIdentity;

    /// A family with a made-up answer.
    struct Made(fn() -> Answer);

    type Answer = Result<Option<Box<dyn Adapter>>, AdapterError>;

    impl AdapterFamily for Made {
        fn name(&self) -> &'static str {
            "made"
        }

        fn recognise(&self, _: &ProcessView) -> Result<Option<Box<dyn Adapter>>, AdapterError> {
            (self.0)()
        }
    }

    /// An adapter whose memory becomes unreadable after its first facts.
    struct Denied;

    impl Adapter for Denied {
        fn identity(&self) -> VmIdentity {
            VmIdentity {
                kind: "Made".to_owned(),
                version: "7".to_owned(),
            }
        }

        fn poll(&mut self, view: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
            poll.fact("heap", "large".to_owned());
            poll.fact("collector", "Serial".to_owned());
            poll.fact("heap", "small".to_owned());
            poll.limit(
                "places of JIT code are approximate".to_owned(),
                "say --precise",
            );
            let pid = view.pid();
            Err(AdapterError::reading("code cache")(MemoryError::Denied {
                pid,
            }))
        }

        fn next_poll(&self) -> Duration {
            Duration::from_secs(1)
        }
    }

    fn asked(family: Made) -> Vec<VmFacts> {
        let me = Pid(std::process::id());
        match poll(me, || vec![Box::new(family)]) {
            Vms::Asked(vms) => vms,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_an_adapter_says_and_why_it_can_not_go_on_is_told() {
        let vms = asked(Made(|| Ok(Some(Box::new(Denied)))));
        let [vm] = &vms[..] else { panic!("{vms:?}") };
        assert_eq!((&*vm.kind, &*vm.version), ("Made", "7"));
        let told: Vec<_> = vm.facts.iter().map(|(n, v)| (&**n, &**v)).collect();
        assert_eq!(told, [("heap", "small"), ("collector", "Serial")]);
        assert_eq!(vm.limits[0].remedy, "say --precise");
        let trouble = vm.trouble.as_ref().expect("trouble");
        assert!(trouble.text.contains("no permission"), "{trouble:?}");
        assert!(trouble.remedy.contains("ptrace_scope"), "{trouble:?}");
    }

    #[test]
    fn a_vm_that_is_known_and_can_not_be_read_is_told() {
        let vms = asked(Made(|| {
            Err(AdapterError::OtherVm {
                vm: "Eclipse OpenJ9 0.48".to_owned(),
                why: "its structures are not HotSpot's",
                remedy: "run it on HotSpot",
            })
        }));
        let trouble = vms[0].trouble.as_ref().expect("trouble");
        assert!(trouble.text.starts_with("cannot read Eclipse OpenJ9 0.48"));
        assert_eq!(trouble.remedy, "run it on HotSpot");
    }

    #[test]
    fn a_process_of_nobody_is_of_no_vm() {
        assert!(asked(Made(|| Ok(None))).is_empty());
        let nobody = poll(Pid(0x7fff_fff0), || panic!("nobody is to be asked"));
        assert!(matches!(nobody, Vms::NotAsked));
    }
}
