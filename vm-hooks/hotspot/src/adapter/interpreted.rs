//! The methods that the interpreter executes: what samples' registers point to, found
//! again among all methods of the VM.
//!
//! Samples are told some tenths of a second late. So what is told of a method is when
//! its class was there, by what was seen of all classes, not when it was asked for; and
//! classes that are gone are remembered for a while.

use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;
use vmscope_process::{AdapterError, Poll, cpu_time};
use vmscope_records::{
    Avma, CodeChange, Constituent, ConstituentGone, ConstituentKey, ConstituentKind, GoneReason,
    MethodKey, PcMap, Stream, TimeNs,
};

use super::gone::{Deaths, Gone, Spans};
use super::index::{BytecodeIndex, Entry, Times};
use super::methods::Methods;
use crate::jvm::Jvm;
use crate::method::ClassesLayout;
use crate::pages::Pages;

/// After a walk over all classes that took t of CPU time, there is none for this many t …
const PAUSE_FACTOR: u32 = 60;

/// … where a session bounds what is used, for this many …
const BOUNDED_PAUSE_FACTOR: u32 = 120;

/// … but where classes were unloaded, for this many.
const SHORT_PAUSE_FACTOR: u32 = 5;

/// Where the VM does not count its classes, they are walked over this often.
const BLIND: Duration = Duration::from_millis(250);

/// Values that belong to no known method are kept until the classes are gone through
/// again, so many at most: most are no methods at all.
const MAX_PENDING: usize = 1 << 16;

/// Of classes that come while it is recorded so many methods are read at once: when a
/// sample asks for them, they may be gone.
const EAGER: usize = 256;

/// How long methods are remembered that are gone, in nanoseconds: samples come late.
const REMEMBERED: u64 = 2_000_000_000;

/// And how many.
const MAX_REMEMBERED: usize = 1 << 14;

/// What a method's object is told to span: only its begin counts.
const OBJECT_BYTES: u64 = 8;

/// How many classes the VM has loaded and unloaded so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClassCounts {
    pub loaded: i64,
    pub unloaded: i64,
}

/// What the interpreter executes.
#[derive(Debug)]
pub(super) struct Interpreted {
    layout: Option<ClassesLayout>,
    index: BytecodeIndex,
    /// Methods that were read and not told while they were there.
    gone: Vec<Gone>,
    pending: FxHashSet<Avma>,
    /// What the VM had counted before the last walk began.
    counts: Option<ClassCounts>,
    /// Up to when it is certain that there were the classes that the last walk found,
    /// and no others; `None` before the first.
    certain: Option<TimeNs>,
    /// Classes were just being unloaded in the last walk: it may have found dead ones.
    again: bool,
    deaths: Deaths,
    /// When the last walk ended, and the CPU time that it took.
    walked: Instant,
    took: Duration,
    /// Whether it failed.
    has_failed: bool,
}

impl Interpreted {
    pub fn new(jvm: &Jvm, poll: &mut Poll) -> Self {
        let layout = ClassesLayout::of(&jvm.structs);
        if let Err(error) = &layout {
            let text = format!("which methods are interpreted can't be told: {error}");
            poll.limit(text, "");
        }
        Interpreted {
            layout: layout.ok(),
            index: BytecodeIndex::default(),
            gone: Vec::new(),
            pending: FxHashSet::default(),
            counts: None,
            certain: None,
            again: false,
            deaths: Deaths::default(),
            walked: Instant::now(),
            took: Duration::ZERO,
            has_failed: false,
        }
    }

    /// Tells the methods that `values` point into. `counts` are what the VM has counted
    /// since the poll began.
    pub fn poll(
        &mut self,
        values: impl Iterator<Item = Avma>,
        counts: Option<ClassCounts>,
        (jvm, pages): (&Jvm, &Pages<'_>),
        methods: &mut Methods,
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        let Some(layout) = self.layout else {
            return Ok(());
        };
        let mut values: Vec<Avma> = values.collect();
        let room = MAX_PENDING.saturating_sub(self.pending.len());
        if values.len() > room {
            values.truncate(room);
            poll.limit(
                format!(
                    "samples in interpreted Java code showed more than {MAX_PENDING} values \
                     while classes came and went: the methods of some have no names"
                ),
                "",
            );
        }
        self.pending.extend(&values);
        let mut has_walked = false;
        let is_quiet = counts.is_some() && counts == self.counts && !self.again;
        if is_quiet && self.certain.is_some() {
            self.certain = Some(poll.began());
        } else if Instant::now() >= self.not_before(counts, poll.is_bounded()) {
            let before = cpu_time();
            let walked = self.walk(&layout, counts, (jvm, pages), methods, poll);
            self.took = cpu_time().saturating_sub(before);
            self.walked = Instant::now();
            self.has_failed = walked.is_err();
            walked?;
            has_walked = true;
        }
        // Where the VM counts nothing, what was just walked over is as it was.
        let is_current = counts == self.counts && (counts.is_some() || has_walked);
        // What waits leads nowhere but to what a walk finds.
        if has_walked || is_current {
            values = self.pending.iter().copied().collect();
        }
        values.sort_unstable();
        let were_there = self.tell_dead(&values, methods, poll);
        for value in values {
            let is_known = self.tell(value, is_current, pages, methods, poll);
            if is_known || is_current || were_there.hold(value) {
                self.pending.remove(&value);
            }
        }
        let long_ago = poll.began().0.saturating_sub(REMEMBERED);
        self.gone.retain(|gone| gone.gone_at.0 > long_ago);
        Ok(())
    }

    /// Whether classes were unloaded since the last walk: what is known of their methods
    /// is still known.
    pub fn knows_dead(&self, counts: Option<ClassCounts>) -> bool {
        let before = self.counts.zip(counts);
        before.is_some_and(|(before, now)| before.unloaded != now.unloaded)
    }

    fn walk(
        &mut self,
        layout: &ClassesLayout,
        counts: Option<ClassCounts>,
        (jvm, pages): (&Jvm, &Pages<'_>),
        methods: &mut Methods,
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        let began_at = poll.began();
        let unloaded = |counts: Option<ClassCounts>| counts.map(|counts| counts.unloaded);
        let have_gone = unloaded(counts) != unloaded(self.counts);
        let may_have_gone = self.certain.is_some() && (counts.is_none() || have_gone || self.again);
        let layouts = (layout, &jvm.methods);
        let walked = self.index.walk(layouts, pages, may_have_gone)?;
        methods.renew();
        let now = poll.now();
        let died = unloaded(counts).zip(unloaded(self.counts));
        let died = died.map_or(0, |(now, before)| now.saturating_sub(before));
        let are_unseen = self.deaths.are_unseen(died, walked.dead.len());
        // Where a class came and went unseen, what fell on a method's memory before this walk,
        // and after the last, may have been of that class.
        let certain = self.certain.unwrap_or(TimeNs(0));
        let times = Times {
            absent_at: if are_unseen { began_at } else { certain },
            since: now,
        };
        for place in &walked.new {
            self.index.seen(*place, times);
        }
        let last_seen = self.certain.unwrap_or(began_at);
        let gone_at = if are_unseen { last_seen } else { now };
        let mut forgotten = 0_u64;
        for class in walked.dead {
            for entry in class.entries {
                methods.forget(entry.method);
                let gone = Gone {
                    times: class.times,
                    last_seen,
                    gone_at,
                    entry,
                };
                if let Some(told) = gone.entry.told {
                    tell_gone(told, &gone, poll);
                } else if gone.entry.pinned.is_some() {
                    if self.gone.len() < MAX_REMEMBERED {
                        self.gone.push(gone);
                    } else {
                        forgotten += 1;
                    }
                }
            }
        }
        if forgotten > 0 {
            poll.lost(Stream::Adapter, forgotten, began_at);
            poll.limit(
                format!(
                    "more than {MAX_REMEMBERED} interpreted methods were unloaded at a time: \
                     some have no names"
                ),
                "",
            );
        }
        if self.certain.is_some() {
            for place in walked.new.into_iter().take(EAGER) {
                if let Some((entry, _)) = self.index.get_mut(place)
                    && methods.meet(pages, entry.method, poll)
                {
                    entry.pinned = methods.pin(entry.method);
                }
            }
        }
        self.again = have_gone && self.certain.is_some();
        self.certain = Some(began_at);
        self.counts = counts;
        Ok(())
    }

    /// Whether the classes are to be walked over again soon.
    pub fn is_waiting(&self) -> bool {
        self.again || !self.pending.is_empty()
    }

    /// When the classes may be walked over again, in a session that bounds what adapters use
    /// or does not.
    pub fn not_before(&self, counts: Option<ClassCounts>, is_bounded: bool) -> Instant {
        let unloaded = |counts: Option<ClassCounts>| counts.map(|counts| counts.unloaded);
        let have_gone = self.again || unloaded(counts) != unloaded(self.counts);
        // What failed will most often fail again.
        let is_urgent = have_gone && !self.has_failed && !is_bounded;
        let factor = match (is_urgent, is_bounded) {
            (true, _) => SHORT_PAUSE_FACTOR,
            (false, true) => BOUNDED_PAUSE_FACTOR,
            (false, false) => PAUSE_FACTOR,
        };
        let least = if counts.is_none() {
            BLIND
        } else {
            Duration::ZERO
        };
        self.walked + self.took.saturating_mul(factor).max(least)
    }

    /// Tells the methods that are gone and had any of `values` (ascending). Returns where
    /// they were.
    fn tell_dead(&mut self, values: &[Avma], methods: &Methods, poll: &mut Poll) -> Spans {
        let hit = |gone: &&mut Gone| gone.is_hit(values);
        for gone in self.gone.iter_mut().filter(hit) {
            if gone.entry.told.is_none() {
                tell_entry(&mut gone.entry, gone.times, None, methods, poll);
                if let Some(told) = gone.entry.told {
                    tell_gone(told, gone, poll);
                }
            }
        }
        Spans::of(self.gone.iter().filter(|gone| gone.is_hit(values)))
    }

    /// Tells the method that has `value`; whether there is one.
    fn tell(
        &mut self,
        value: Avma,
        is_current: bool,
        pages: &Pages<'_>,
        methods: &mut Methods,
        poll: &mut Poll,
    ) -> bool {
        let place = self.index.find(value);
        let Some((entry, times)) = place.and_then(|place| self.index.get_mut(place)) else {
            return false;
        };
        if entry.told.is_none() {
            if !is_current && entry.pinned.is_none() {
                // Another may have its place by now.
                return false;
            }
            if entry.pinned.is_none() && methods.meet(pages, entry.method, poll) {
                entry.pinned = methods.pin(entry.method);
            }
            let is_there = |pinned| methods.is_current(pages, pinned);
            if entry.pinned.as_ref().is_some_and(is_there) {
                tell_entry(entry, times, Some(pages), methods, poll);
            }
        }
        true
    }
}

/// Tells of a method that is there, or was.
fn tell_entry(
    entry: &mut Entry,
    times: Times,
    pages: Option<&Pages<'_>>,
    methods: &Methods,
    poll: &mut Poll,
) {
    let Some((method, known)) = &entry.pinned else {
        return;
    };
    let memory = pages.map(|pages| pages as &dyn vmscope_process::Memory);
    let key = methods.tell_pinned(memory, known, poll);
    let name = known.info.full_name();
    let length = known.info.bytecodes.len() as u64;
    let mut constituent = |kind, start: Avma, bytes: u64| {
        let new = data(poll, kind, (start, bytes), &name, key, times);
        let key = new.key;
        poll.code(CodeChange::Seen(new));
        key
    };
    entry.told = Some([
        constituent(ConstituentKind::Bytecodes, known.info.bytecodes_at, length),
        constituent(ConstituentKind::MethodObject, *method, OBJECT_BYTES),
    ]);
}

fn tell_gone(told: [ConstituentKey; 2], gone: &Gone, poll: &mut Poll) {
    for key in told {
        poll.code(CodeChange::Gone(ConstituentGone {
            key,
            last_seen: gone.last_seen,
            time: gone.gone_at,
            reason: GoneReason::Unloaded,
        }));
    }
}

/// A constituent that is data of the VM.
fn data(
    poll: &Poll,
    kind: ConstituentKind,
    (start, bytes): (Avma, u64),
    name: &str,
    method: MethodKey,
    times: Times,
) -> Constituent {
    Constituent {
        key: poll.keys().constituent(),
        process: poll.process(),
        since: times.since,
        absent_at: Some(times.absent_at),
        start,
        end: Avma(start.0.saturating_add(bytes)),
        kind,
        tier: String::new(),
        name: name.to_owned(),
        method: Some(method),
        cases: Vec::new(),
        map: PcMap::None,
    }
}
