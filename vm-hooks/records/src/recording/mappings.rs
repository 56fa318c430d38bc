//! Mappings of one address space during a time window.

use crate::{FileOffset, Mapping, ModuleKey, ProcessKey, TimeNs};

/// Mappings with the times of their replacement.
#[derive(Debug, Default)]
pub(super) struct Mappings(Vec<MappingLife>);

#[derive(Debug)]
struct MappingLife {
    mapping: Mapping,
    gone: Option<TimeNs>,
}

impl Mappings {
    /// Adds a mapping; replaces overlapping ones.
    pub fn map(&mut self, mapping: Mapping) {
        self.unmap(mapping.start.0, mapping.end.0, mapping.time);
        self.0.push(MappingLife {
            mapping,
            gone: None,
        });
    }

    /// Removes `[start, end)` at `time`. The rest of a partly covered mapping becomes its own
    /// mapping: otherwise a mapping never covered whole would stay forever.
    pub fn unmap(&mut self, start: u64, end: u64, time: TimeNs) {
        let mut rests = Vec::new();
        for life in &mut self.0 {
            let (from, to) = (life.mapping.start.0, life.mapping.end.0);
            let older = life.gone.is_none() && life.mapping.time <= time;
            if !older || end <= from || to <= start {
                continue;
            }
            life.gone = Some(time);
            if from < start {
                rests.push(life.mapping.piece(from, start));
            }
            if end < to {
                rests.push(life.mapping.piece(end, to));
            }
        }
        self.0.extend(rests.into_iter().map(|mapping| MappingLife {
            mapping,
            gone: None,
        }));
    }

    /// Initial mappings of a forked process.
    pub fn forked(&self, child: ProcessKey, time: TimeNs) -> Mappings {
        let living = self.0.iter().filter(|life| life.gone.is_none());
        let copies = living.map(|life| MappingLife {
            mapping: Mapping {
                process: child,
                time,
                ..life.mapping.clone()
            },
            gone: None,
        });
        Mappings(copies.collect())
    }

    /// Drops mappings replaced before `horizon`.
    pub fn forget_before(&mut self, horizon: TimeNs) {
        self.0
            .retain(|life| life.gone.is_none_or(|gone| gone >= horizon));
    }

    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.0.iter().map(|life| &life.mapping)
    }

    /// Referenced modules.
    pub fn modules(&self) -> impl Iterator<Item = ModuleKey> + '_ {
        self.iter().filter_map(|mapping| mapping.module)
    }
}

impl Mapping {
    /// Part `[start, end)` of this mapping, with its old time: a later mapping would end VM code in
    /// it.
    fn piece(&self, start: u64, end: u64) -> Mapping {
        let before = start.wrapping_sub(self.start.0);
        Mapping {
            start: crate::Avma(start),
            end: crate::Avma(end),
            offset: FileOffset(self.offset.0.wrapping_add(before)),
            ..self.clone()
        }
    }
}
