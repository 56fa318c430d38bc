//! All statistics at one time.

use rustc_hash::FxHashMap;
use vmscope_process::{AdapterError, Memory, Poll, read_consistently};
use vmscope_records::Avma;

use crate::Variables;
use crate::cog_method::number;

/// Attempts to read the numbers of collections without a change.
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

/// Further variables of figures and parameters.
const OTHERS: [&str; 39] = [
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
    "statCodeCompactionCount",
    "statCodeCompactionUsecs",
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

/// Names of all variables.
pub(crate) const NAMES: [&[&str]; 3] = [&OF_COLLECTIONS, &OTHERS, &AVERAGED];

/// All statistics at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Look(FxHashMap<&'static str, u64>);

impl Look {
    /// Reads all statistics.
    ///
    /// # Errors
    /// Failed reads; [`AdapterError::Torn`] if collections change them during each attempt.
    pub fn read(variables: &Variables, memory: &dyn Memory) -> Result<Self, AdapterError> {
        let names = || NAMES.into_iter().flatten().copied();
        let of_collections = || Self::of(variables, memory, OF_COLLECTIONS.into_iter());
        read_consistently("statistics", ATTEMPTS, of_collections, |_| {
            Self::of(variables, memory, names())
        })
    }

    fn of(
        variables: &Variables,
        memory: &dyn Memory,
        names: impl Iterator<Item = &'static str>,
    ) -> Result<Self, AdapterError> {
        let word = memory.pointer_bytes();
        let known = |name: &'static str| Some((name, variables.at(name)?));
        let known: Vec<(&str, Avma)> = names.filter_map(known).collect();
        let addresses: Vec<Avma> = known.iter().map(|(_, at)| *at).collect();
        let mut bytes = Vec::new();
        let read = memory.read_each(&addresses, word, &mut bytes);
        let read = read.map_err(AdapterError::reading("statistics"))?;
        let words = bytes.chunks_exact(word.max(1));
        let values = known.iter().zip(words).zip(read);
        let values = values.filter(|(_, is_read)| *is_read);
        let value = |((name, _), bytes): (&(&'static str, Avma), &[u8])| {
            // Smaller variables have neighbours in the rest of the word.
            let size = match usize::try_from(variables.size(name)) {
                Ok(0) | Err(_) => word,
                Ok(size) => size.min(word),
            };
            (*name, number(bytes.get(..size).unwrap_or(bytes)))
        };
        Ok(Look(values.map(|(one, _)| value(one)).collect()))
    }

    /// A look with these values.
    #[cfg(test)]
    pub fn with(values: &[(&'static str, u64)]) -> Self {
        Look(values.iter().copied().collect())
    }

    /// The value of a variable; `None` if the VM does not tell it.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
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
