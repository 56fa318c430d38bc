//! Functions that frames of samples show. Frames of Ignition and Sparkplug hold their `JSFunction` (V8's `frame-constants.h`,
//! 10.2 to 14.6), which refers to its `SharedFunctionInfo` and thus to its bytecodes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use vmscope_process::AdapterError;
use vmscope_records::TimeNs;

use crate::object::{Heap, Tagged};

/// Distance of a frame's function below its frame pointer.
pub(crate) const FUNCTION: u64 = 16;

/// Possible offsets of the `SharedFunctionInfo` in a `JSFunction`: V8 10 and 11; 12 to 14.
const INFO: [u64; 2] = [24, 32];

/// Maximum number of functions that wait for an adapter.
const MAX_WAITING: usize = 1 << 12;

/// Maximum number of functions with known bytecodes, before all are forgotten.
const MAX_FUNCTIONS: usize = 1 << 18;

/// Functions in frames, unchecked, each with its newest sample's time: from the unwinder to the adapter's thread. Clones
/// share them.
#[derive(Clone, Debug, Default)]
pub struct FrameFunctions(Arc<Mutex<FxHashMap<Tagged, TimeNs>>>);

impl FrameFunctions {
    /// Adds the function of a sample's frame. Beyond the maximum, new functions are dropped: frames show them again.
    pub fn put(&self, function: Tagged, time: TimeNs) {
        let mut waiting = self.lock();
        if waiting.len() < MAX_WAITING || waiting.contains_key(&function) {
            waiting.insert(function, time);
        }
    }

    /// Takes all functions.
    #[must_use]
    pub fn take(&self) -> FxHashMap<Tagged, TimeNs> {
        std::mem::take(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<Tagged, TimeNs>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Maps by which objects are known, one of each isolate.
#[derive(Debug)]
pub struct Maps {
    /// Those of bytecodes.
    pub bytecodes: Vec<Tagged>,
    /// Those of functions (`SharedFunctionInfo`).
    pub functions: Vec<Tagged>,
}

/// Functions (`SharedFunctionInfo`) by the address of their bytecodes, from frames since the last collection.
#[derive(Debug)]
pub struct SightedFunctions {
    waiting: FrameFunctions,
    by_bytecodes: FxHashMap<Tagged, Tagged>,
}

impl SightedFunctions {
    /// Takes the functions in `waiting`.
    #[must_use]
    pub fn of(waiting: FrameFunctions) -> Self {
        SightedFunctions {
            waiting,
            by_bytecodes: FxHashMap::default(),
        }
    }

    /// Tells that a collection may have freed or moved functions and bytecodes.
    pub fn died(&mut self) {
        self.by_bytecodes.clear();
    }

    /// The function that has these bytecodes now; `None` if no frame has shown it since `died_until`, the last collection.
    ///
    /// # Errors
    /// Failed reads of all memory.
    pub fn current(
        &mut self,
        heap: &Heap<'_>,
        bytecodes: Tagged,
        maps: &Maps,
        died_until: Option<TimeNs>,
    ) -> Result<Option<Tagged>, AdapterError> {
        if !self.by_bytecodes.contains_key(&bytecodes) {
            self.read_waiting(heap, maps, died_until)?;
        }
        let Some(function) = self.by_bytecodes.get(&bytecodes) else {
            return Ok(None);
        };
        let is_current = heap.has_bytecodes(*function, bytecodes, &maps.bytecodes)?;
        Ok(is_current.then_some(*function))
    }

    /// Reads the bytecodes of functions that frames have shown since the last time.
    fn read_waiting(
        &mut self,
        heap: &Heap<'_>,
        maps: &Maps,
        died_until: Option<TimeNs>,
    ) -> Result<(), AdapterError> {
        if self.by_bytecodes.len() >= MAX_FUNCTIONS {
            self.by_bytecodes.clear();
        }
        let waiting = self.waiting.take().into_iter();
        let alive = waiting.filter(|(_, time)| Some(*time) > died_until);
        let functions: Vec<Tagged> = alive.map(|(function, _)| function).collect();
        for offset in INFO {
            let infos = heap.fields(&functions, offset)?;
            let mut infos: Vec<Tagged> = infos.into_iter().flatten().collect();
            infos.sort_unstable();
            infos.dedup();
            let found = heap.fields(&infos, 0)?;
            let mut maps_found = found.into_iter();
            infos.retain(|_| {
                let map = maps_found.next().flatten();
                map.is_some_and(|map| maps.functions.contains(&map))
            });
            let found = heap.bytecodes_of(&infos, &maps.bytecodes)?;
            let pairs = found.into_iter().zip(infos);
            let pairs = pairs.filter_map(|(bytecodes, info)| Some((bytecodes?, info)));
            self.by_bytecodes.extend(pairs);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use vmscope_process::testing::FakeMemory;
    use vmscope_records::Avma;

    use super::*;
    use crate::debug::Debug;
    use crate::versions::Layout;

    const BYTECODES_MAP: u64 = 0x1001;
    const FUNCTION_MAP: u64 = 0x1101;
    /// Bytecodes of the functions at 0x3001 and 0x4001.
    const BYTECODES: [Tagged; 2] = [Tagged(0x2001), Tagged(0x2101)];

    fn maps() -> Maps {
        Maps {
            bytecodes: vec![Tagged(BYTECODES_MAP)],
            functions: vec![Tagged(FUNCTION_MAP)],
        }
    }

    /// A `JSFunction` with its function at each possible offset, and an object that is none.
    fn memory() -> FakeMemory {
        let mut memory = FakeMemory::new();
        let objects: [(u64, &[u64]); 7] = [
            (0x2000, &[BYTECODES_MAP]),
            (0x2100, &[BYTECODES_MAP]),
            (0x3000, &[FUNCTION_MAP, BYTECODES[0].0]),
            (0x4000, &[FUNCTION_MAP, BYTECODES[1].0]),
            (0x5000, &[0x1201, 0, 0, 0x3001, 0]),
            (0x5100, &[0x1201, 0, 0, 0, 0x4001]),
            (0x5200, &[0x1201, 0, 0, 0x2001, 0x5001]),
        ];
        for (at, words) in objects {
            let bytes = words.iter().flat_map(|word| word.to_le_bytes());
            memory.put(Avma(at), bytes.chain([0; 0x40]).collect());
        }
        memory
    }

    fn current(
        sighted: &mut SightedFunctions,
        memory: &FakeMemory,
        died_until: u64,
    ) -> [Option<u64>; 2] {
        let layout = Layout::new((12, 4), &Debug::default()).unwrap();
        let (memory, layout) = (memory, &layout);
        let heap = Heap { memory, layout };
        let died_until = Some(TimeNs(died_until));
        BYTECODES.map(|bytecodes| {
            let found = sighted.current(&heap, bytecodes, &maps(), died_until);
            found.unwrap().map(|function| function.0)
        })
    }

    #[test]
    fn bytecodes_are_those_of_a_function_in_a_frame() {
        let (memory, frames) = (memory(), FrameFunctions::default());
        let mut sighted = SightedFunctions::of(frames.clone());
        assert_eq!(current(&mut sighted, &memory, 0), [None; 2]);
        for object in [0x5001, 0x5101, 0x5201, 0x6001] {
            frames.put(Tagged(object), TimeNs(7));
        }
        let both = [Some(0x3001), Some(0x4001)];
        assert_eq!(current(&mut sighted, &memory, 6), both);
        assert_eq!(current(&mut sighted, &memory, 6), both, "remembered");
    }

    #[test]
    fn a_collection_makes_earlier_frames_worthless() {
        let (mut memory, frames) = (memory(), FrameFunctions::default());
        let mut sighted = SightedFunctions::of(frames.clone());
        frames.put(Tagged(0x5001), TimeNs(7));
        assert_eq!(current(&mut sighted, &memory, 7), [None; 2], "too old");
        frames.put(Tagged(0x5001), TimeNs(8));
        frames.put(Tagged(0x5101), TimeNs(8));
        assert_eq!(
            current(&mut sighted, &memory, 7),
            [Some(0x3001), Some(0x4001)]
        );
        // Its function has other bytecodes now.
        let other = [FUNCTION_MAP, 0].map(u64::to_le_bytes).concat();
        memory.put(Avma(0x3000), other);
        assert_eq!(current(&mut sighted, &memory, 7), [None, Some(0x4001)]);
        sighted.died();
        assert_eq!(current(&mut sighted, &memory, 9), [None; 2]);
    }

    #[test]
    fn waiting_functions_do_not_grow_without_end() {
        let frames = FrameFunctions::default();
        for object in 0..2 * MAX_WAITING as u64 {
            frames.put(Tagged(object), TimeNs(1));
        }
        frames.put(Tagged(0), TimeNs(2));
        let waiting = frames.take();
        assert_eq!(
            (waiting.len(), waiting[&Tagged(0)]),
            (MAX_WAITING, TimeNs(2))
        );
        assert!(frames.take().is_empty());
    }
}
