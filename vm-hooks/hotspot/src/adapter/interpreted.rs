//! The methods that the interpreter executes: what samples' registers point to, found
//! again among all methods of the VM.

use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_records::{
    Avma, CodeChange, Constituent, ConstituentGone, ConstituentKey, ConstituentKind, GoneReason,
    MethodKey, PcMap, TimeNs,
};
use vmscope_target::{AdapterError, Look};

use super::index::BytecodeIndex;
use super::methods::{Methods, full_name};
use crate::jvm::Jvm;
use crate::method::ClassesLayout;
use crate::pages::Pages;

/// All classes are gone through at most so often …
const SHORTEST: Duration = Duration::from_millis(250);

/// … and after one that took t, not for this many t.
const PAUSE_FACTOR: u32 = 40;

/// Values that belong to no known method are kept until the classes are gone through
/// again, so many at most: most are no methods at all.
const MAX_PENDING: usize = 1 << 16;

/// What a method's object is told to span: only its begin counts.
const OBJECT_BYTES: u64 = 8;

/// What the interpreter executes.
#[derive(Debug)]
pub(super) struct Interpreted {
    layout: Option<ClassesLayout>,
    index: BytecodeIndex,
    pending: FxHashSet<Avma>,
    told: FxHashMap<Avma, Told>,
    not_before: Option<Instant>,
    /// When the last walk began.
    walked: Option<TimeNs>,
}

/// A method that was told, by its `Method*`.
#[derive(Debug)]
struct Told {
    bytecodes: ConstituentKey,
    object: ConstituentKey,
    seen: TimeNs,
}

impl Interpreted {
    pub fn new(jvm: &Jvm, look: &mut Look) -> Self {
        let layout = ClassesLayout::of(&jvm.structs);
        if let Err(error) = &layout {
            let text = format!("which methods are interpreted can't be told: {error}");
            look.limit(text, "");
        }
        Interpreted {
            layout: layout.ok(),
            index: BytecodeIndex::default(),
            pending: FxHashSet::default(),
            told: FxHashMap::default(),
            not_before: None,
            walked: None,
        }
    }

    /// Tells the methods that `values` point into.
    pub fn look(
        &mut self,
        values: impl Iterator<Item = Avma>,
        jvm: &Jvm,
        pages: &Pages<'_>,
        methods: &mut Methods,
        look: &mut Look,
    ) -> Result<(), AdapterError> {
        let Some(layout) = self.layout else {
            return Ok(());
        };
        let mut asked = FxHashSet::default();
        let mut unknown = FxHashSet::default();
        for value in values {
            match self.index.find(value) {
                Some(method) if asked.contains(&method) => {}
                Some(method) => {
                    asked.insert(method);
                    if !self.check(method, pages, methods, look) {
                        unknown.insert(value);
                    }
                }
                None => {
                    unknown.insert(value);
                }
            }
        }
        let room = MAX_PENDING.saturating_sub(self.pending.len());
        self.pending.extend(unknown.into_iter().take(room));
        let now = Instant::now();
        if self.pending.is_empty() || self.not_before.is_some_and(|until| now < until) {
            return Ok(());
        }
        self.index = BytecodeIndex::read(&layout, &jvm.methods, pages)?;
        let walked = self.walked.replace(look.began());
        let took = now.elapsed();
        self.not_before = Some(Instant::now() + SHORTEST.max(took.saturating_mul(PAUSE_FACTOR)));
        for value in std::mem::take(&mut self.pending) {
            if let Some(method) = self.index.find(value)
                && !self.told.contains_key(&method)
            {
                self.tell(method, walked, pages, methods, look);
            }
        }
        Ok(())
    }

    /// Whether the method is told, and still the one that is there; if another has
    /// taken its place, it is told to be gone.
    fn check(
        &mut self,
        method: Avma,
        pages: &Pages<'_>,
        methods: &mut Methods,
        look: &mut Look,
    ) -> bool {
        let is_current = methods.is_current(pages, method);
        match self.told.get_mut(&method) {
            Some(told) if is_current => {
                told.seen = look.began();
                true
            }
            Some(_) => {
                if let Some(told) = self.told.remove(&method) {
                    for key in [told.bytecodes, told.object] {
                        look.code(CodeChange::Gone(ConstituentGone {
                            key,
                            last_seen: told.seen,
                            time: look.now(),
                            reason: GoneReason::Unloaded,
                        }));
                    }
                }
                false
            }
            None => {
                self.tell(method, None, pages, methods, look);
                self.told.contains_key(&method)
            }
        }
    }

    fn tell(
        &mut self,
        method: Avma,
        absent_at: Option<TimeNs>,
        pages: &Pages<'_>,
        methods: &mut Methods,
        look: &mut Look,
    ) {
        if !methods.meet(pages, method, look) {
            return;
        }
        let (Some(info), Some(key)) = (
            methods.info(method),
            methods.tell_whole(Some(pages), method, look),
        ) else {
            return;
        };
        let name = full_name(&info);
        let mut constituent = |kind, start: Avma, bytes: u64| {
            let new = data(look, kind, (start, bytes), &name, key, absent_at);
            let key = new.key;
            look.code(CodeChange::Seen(new));
            key
        };
        let length = info.bytecodes.len() as u64;
        let told = Told {
            bytecodes: constituent(ConstituentKind::Bytecodes, info.bytecodes_at, length),
            object: constituent(ConstituentKind::MethodObject, method, OBJECT_BYTES),
            seen: look.began(),
        };
        self.told.insert(method, told);
    }
}

/// A constituent that is data of the VM.
fn data(
    look: &Look,
    kind: ConstituentKind,
    (start, bytes): (Avma, u64),
    name: &str,
    method: MethodKey,
    absent_at: Option<TimeNs>,
) -> Constituent {
    Constituent {
        key: look.keys().constituent(),
        process: look.process(),
        since: look.now(),
        // Nobody has looked before: it may have been there all the time.
        absent_at: Some(absent_at.unwrap_or(TimeNs(0))),
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
