//! Statistics at one time.

use std::cell::RefCell;

use vmscope_process::{AdapterError, Memory, Poll, read_consistently};
use vmscope_records::Avma;

use crate::Variables;
use crate::cog_method::number;

/// Attempts to read the numbers of events without a change.
const ATTEMPTS: u32 = 8;

/// What a collection changes. Two equal readings around a look show that none happened meanwhile.
const OF_COLLECTIONS: [&str; 9] = [
    "gcMode",
    "gcPhaseInProgress",
    "gcStartUsecs",
    "statGCEndUsecs",
    "statScavenges",
    "statScavengeGCUsecs",
    "statSGCDeltaUsecs",
    "statFullGCs",
    "statFullGCUsecs",
];

/// What a code compaction changes, likewise.
const OF_COMPACTIONS: [&str; 3] = [
    "compactionInProgress",
    "statCodeCompactionCount",
    "statCodeCompactionUsecs",
];

/// Number of variables that events change.
const OF_EVENTS: usize = OF_COLLECTIONS.len() + OF_COMPACTIONS.len();

/// Further variables of figures and parameters.
const OTHERS: [&str; 37] = [
    "beatMilliseconds",
    "bytesPerPage",
    "cogCodeSize",
    "desiredCogCodeSize",
    "desiredEdenBytes",
    "desiredNumStackPages",
    "edenBytes",
    "extraVMMemory",
    "growHeadroom",
    "heapGrowthToSizeGCRatio",
    "maxOldSpaceSize",
    "methodCount",
    "numSegments",
    "numStackPages",
    "rememberedSetLimit",
    "rememberedSetSize",
    "shrinkThreshold",
    "statAllocatedBytes",
    "statCheckForEvents",
    "statCompactionUsecs",
    "statForceInterruptCheck",
    "statGrowMemory",
    "statIOProcessEvents",
    "statIdleUsecs",
    "statMarkCount",
    "statMarkUsecs",
    "statMaxAllocSegmentTime",
    "statMaxPageCountWhenMapping",
    "statProcessSwitch",
    "statRootTableOverflows",
    "statShrinkMemory",
    "statStackOverflow",
    "statStackPageDivorce",
    "statSurvivorCount",
    "statSweepUsecs",
    "statTenures",
    "totalHeapSizeIncludingBridges",
];

/// Further variables of two parameters.
const AVERAGED: [&str; 4] = [
    "statNumMaps",
    "statPageCountWhenMappingSum",
    "totalFreeOldSpace",
    "utcStartMicroseconds",
];

/// Names of all variables. Those of events come first.
pub(crate) const NAMES: [&[&str]; 4] = [&OF_COLLECTIONS, &OF_COMPACTIONS, &OTHERS, &AVERAGED];

/// Reader of statistics. All looks use its memory.
#[derive(Debug, Default)]
pub(super) struct Reader {
    places: Places,
    bytes: Vec<u8>,
    look: Look,
}

/// Places of the statistics that the VM tells, in the order of [`NAMES`].
#[derive(Debug, Default)]
struct Places {
    /// Names, and sizes in bytes.
    names: Vec<(&'static str, usize)>,
    addresses: Vec<Avma>,
    /// Number of those that events change.
    of_events: usize,
}

impl Reader {
    /// Reader of a VM's statistics, with machine words of `word` bytes.
    pub fn new(variables: &Variables, word: usize) -> Self {
        let mut places = Places::default();
        for (number, name) in NAMES.into_iter().flatten().enumerate() {
            let Some(at) = variables.at(name) else {
                continue;
            };
            // Smaller variables have neighbours in the rest of the word.
            let size = match usize::try_from(variables.size(name)) {
                Ok(0) | Err(_) => word,
                Ok(size) => size.min(word),
            };
            places.names.push((name, size));
            places.addresses.push(at);
            places.of_events += usize::from(number < OF_EVENTS);
        }
        Reader {
            places,
            ..Self::default()
        }
    }

    /// Reads numbers that events change; with `is_whole`, all statistics.
    ///
    /// # Errors
    /// Failed reads; [`AdapterError::Torn`] if events change them during each attempt.
    pub fn read(&mut self, memory: &dyn Memory, is_whole: bool) -> Result<&Look, AdapterError> {
        let Reader {
            places,
            bytes,
            look,
        } = self;
        let bytes = RefCell::new(bytes);
        let of_events = || {
            let mut stamp = [None; OF_EVENTS];
            let mut bytes = bytes.borrow_mut();
            let numbers = places.numbers(places.of_events, memory, &mut bytes)?;
            for (slot, one) in stamp.iter_mut().zip(numbers) {
                *slot = Some(one);
            }
            Ok(stamp)
        };
        read_consistently("statistics", ATTEMPTS, of_events, |stamp| {
            look.0.clear();
            if is_whole {
                let mut bytes = bytes.borrow_mut();
                let all = places.numbers(places.names.len(), memory, &mut bytes)?;
                look.0.extend(all);
            } else {
                look.0.extend(stamp.iter().flatten());
            }
            Ok(())
        })?;
        Ok(look)
    }
}

impl Places {
    /// The first `count` statistics without unreadable ones.
    fn numbers<'n>(
        &'n self,
        count: usize,
        memory: &dyn Memory,
        bytes: &'n mut Vec<u8>,
    ) -> Result<impl Iterator<Item = (&'static str, u64)> + use<'n>, AdapterError> {
        let word = memory.pointer_bytes();
        let addresses = self.addresses.get(..count).unwrap_or_default();
        let read = memory.read_each(addresses, word, bytes);
        let read = read.map_err(AdapterError::reading("statistics"))?;
        let words = bytes.chunks_exact(word.max(1));
        let words = self.names.iter().zip(words).zip(read);
        Ok(words
            .filter(|(_, is_read)| *is_read)
            .map(|(((name, size), bytes), _)| (*name, number(bytes.get(..*size).unwrap_or(bytes)))))
    }
}

/// Statistics at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Look(Vec<(&'static str, u64)>);

impl Look {
    /// A look with these values. Later values of a name replace earlier ones.
    #[cfg(test)]
    pub fn with(values: &[(&'static str, u64)]) -> Self {
        Look(values.iter().rev().copied().collect())
    }

    /// The value of a variable; `None` if the VM does not tell it.
    pub fn get(&self, name: &str) -> Option<u64> {
        let mut all = self.0.iter();
        all.find_map(|(known, value)| (*known == name).then_some(*value))
    }

    /// Reports which collections can't be told.
    pub fn tell_missing(&self, poll: &mut Poll) {
        let lacks = |names: &[&str]| names.iter().any(|name| self.get(name).is_none());
        if lacks(&["statScavenges", "statFullGCs"]) {
            poll.limit("this VM does not tell its collections".to_owned(), "");
        } else if lacks(&OF_COLLECTIONS) {
            let text = "this VM counts its collections, but does not tell their times";
            poll.limit(text.to_owned(), "");
        }
        if lacks(&["statCodeCompactionCount"]) {
            poll.limit("this VM does not count its code compactions".to_owned(), "");
        }
    }
}
