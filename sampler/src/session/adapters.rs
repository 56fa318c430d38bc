//! The adapters' thread: asks what is new in the VM's code zone, at the pace that
//! the adapters want.

use super::{Message, Progress, now};
use crossbeam_channel::Sender;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use vmscope_records::{
    CodeChange, Constituent, ConstituentKind, Limit, LimitKind, PcMap, Pid, ProcessKey, Record,
};
use vmscope_target::{
    Adapter, AdapterError, AdapterFamily, KeySource, Look, ProcessView, recognise,
};

/// How soon a process is looked at again that may become a VM (its library is not
/// mapped yet) …
const ASK_AGAIN: Duration = Duration::from_millis(200);

/// … and for how long that is tried.
const ASK_FOR: Duration = Duration::from_secs(20);

/// How soon this thread notices that the recording is over.
const NAP: Duration = Duration::from_millis(50);

/// Constituents whose pc maps are still to be read; beyond that they are read by
/// nobody and resolve to their method only.
const MAX_MAPS_WAITING: usize = 1 << 20;

/// How long pc maps are read before the next look has its turn.
const MAPS_FOR: Duration = Duration::from_millis(50);

/// An adapter at work.
pub(super) struct AtWork {
    family: &'static str,
    adapter: Box<dyn Adapter>,
    due: Instant,
    waiting: VecDeque<Constituent>,
    /// What was said already.
    told: HashSet<String>,
}

/// The thread.
pub(super) struct Looks {
    pub pid: Pid,
    pub key: ProcessKey,
    /// Adapters recognised before sampling began, with what they look at.
    pub view: Option<ProcessView>,
    pub adapters: Vec<AtWork>,
    /// Who else to ask, as long as nobody has recognised the process.
    pub families: Vec<Box<dyn AdapterFamily>>,
    pub keys: KeySource,
    pub out: Sender<Message>,
    pub progress: Arc<Progress>,
}

impl AtWork {
    pub fn new(family: &'static str, adapter: Box<dyn Adapter>) -> Self {
        AtWork {
            family,
            adapter,
            due: Instant::now(),
            waiting: VecDeque::new(),
            told: HashSet::new(),
        }
    }
}

impl Looks {
    /// Runs until the recording is over or there is nobody to ask, and says so.
    pub fn run(mut self) {
        let _over = Over(self.out.clone());
        let began = Instant::now();
        self.greet();
        loop {
            if self.progress.stop_reason().is_some() || self.progress.is_done() {
                break;
            }
            if self.adapters.is_empty() {
                if self.families.is_empty() || began.elapsed() > ASK_FOR {
                    return;
                }
                self.ask_families();
            }
            let Some(view) = &self.view else {
                std::thread::sleep(ASK_AGAIN);
                continue;
            };
            let looker = Looker {
                view,
                key: self.key,
                keys: &self.keys,
                out: &self.out,
            };
            self.adapters.retain_mut(|at_work| looker.turn(at_work));
            let next = self.adapters.iter().map(|at_work| at_work.due).min();
            let pause = next.map_or(ASK_AGAIN, |due| {
                due.saturating_duration_since(Instant::now())
            });
            std::thread::sleep(pause.min(NAP));
        }
        if let Some(view) = &self.view {
            let looker = Looker {
                view,
                key: self.key,
                keys: &self.keys,
                out: &self.out,
            };
            for at_work in &mut self.adapters {
                looker.look(at_work, true);
            }
        }
    }

    fn ask_families(&mut self) {
        let Ok(view) = ProcessView::open(self.pid) else {
            return;
        };
        let view = view.with_key(self.key);
        let recognised = recognise(&self.families, &view);
        let found = recognised.adapters.into_iter();
        self.adapters = found
            .map(|(family, adapter)| AtWork::new(family, adapter))
            .collect();
        self.view = Some(view);
        self.greet();
    }

    /// Says which VM it is.
    fn greet(&self) {
        if let Some(first) = self.adapters.first() {
            // A writer that is gone ends the session by itself.
            let _ = self.out.send(Message::Vm(first.adapter.identity()));
        }
    }
}

/// Tells the writer that no more looks come, however the thread ends.
struct Over(Sender<Message>);

impl Drop for Over {
    fn drop(&mut self) {
        // A writer that is gone does not wait for it.
        let _ = self.0.send(Message::LooksOver);
    }
}

struct Looker<'a> {
    view: &'a ProcessView,
    key: ProcessKey,
    keys: &'a KeySource,
    out: &'a Sender<Message>,
}

impl Looker<'_> {
    /// One adapter's turn; whether it wants another one.
    fn turn(&self, at_work: &mut AtWork) -> bool {
        if at_work.due > Instant::now() {
            return true;
        }
        let goes_on = self.look(at_work, false);
        if goes_on {
            self.read_maps(at_work);
        }
        at_work.due = Instant::now() + at_work.adapter.next_look();
        goes_on
    }

    fn look(&self, at_work: &mut AtWork, last: bool) -> bool {
        let mut look = Look::new(self.keys.clone(), self.key, Arc::new(now));
        let result = if last {
            at_work.adapter.finish(self.view, &mut look)
        } else {
            // The mappings may have changed; an adapter that can go on without them does.
            let _ = self.view.refresh();
            at_work.adapter.look(self.view, &mut look)
        };
        self.send(look, &mut at_work.waiting);
        match result {
            Ok(()) => true,
            Err(error) => {
                self.tell(at_work, &error);
                !error.is_final()
            }
        }
    }

    /// Reads pc maps that the look left for later.
    fn read_maps(&self, at_work: &mut AtWork) {
        let until = Instant::now() + MAPS_FOR;
        let mut look = Look::new(self.keys.clone(), self.key, Arc::new(now));
        while let Some(mut constituent) = at_work.waiting.pop_front() {
            match at_work
                .adapter
                .pc_map(self.view, constituent.key, &mut look)
            {
                Ok(PcMap::None) | Err(AdapterError::Absent { .. }) => {}
                Ok(map) => {
                    constituent.map = map;
                    look.code(CodeChange::Seen(constituent));
                }
                Err(error) => {
                    self.tell(at_work, &error);
                    if error.is_final() {
                        at_work.waiting.clear();
                    }
                }
            }
            if Instant::now() > until {
                break;
            }
        }
        self.send(look, &mut VecDeque::new());
    }

    fn send(&self, look: Look, waiting: &mut VecDeque<Constituent>) {
        let (records, threads) = look.finish();
        for record in &records {
            if let Record::Constituent(constituent) = record {
                let has_inside = matches!(
                    constituent.kind,
                    ConstituentKind::Method | ConstituentKind::Block
                );
                let wants_map = has_inside && constituent.map == PcMap::None;
                if wants_map && waiting.len() < MAX_MAPS_WAITING {
                    waiting.push_back((**constituent).clone());
                }
            }
        }
        if !records.is_empty() || !threads.is_empty() {
            // A writer that is gone ends the session by itself.
            let _ = self.out.send(Message::Looked(records, threads));
        }
    }

    /// Says once what an adapter can't do.
    fn tell(&self, at_work: &mut AtWork, error: &AdapterError) {
        let text = format!("{} adapter: {error}", at_work.family);
        if at_work.told.insert(text.clone()) {
            let limit = Limit {
                time: now(),
                kind: LimitKind::AdapterIncomplete,
                text,
                remedy: error.remedy().to_owned(),
            };
            let _ = self
                .out
                .send(Message::Looked(vec![Record::Limit(limit)], Vec::new()));
        }
    }
}
