//! The mappings of one address space, as far as a window of time needs them.

use crate::{FileOffset, Mapping, ModuleKey, ProcessKey, TimeNs};

/// Mappings, each with the time at which something else took its place.
#[derive(Debug, Default)]
pub(super) struct Mappings(Vec<MappingLife>);

#[derive(Debug)]
struct MappingLife {
    mapping: Mapping,
    gone: Option<TimeNs>,
}

impl Mappings {
    /// Adds a mapping, which replaces what it overlaps.
    pub fn map(&mut self, mapping: Mapping) {
        self.unmap(mapping.start.0, mapping.end.0, mapping.time);
        self.0.push(MappingLife {
            mapping,
            gone: None,
        });
    }

    /// Takes `[start, end)` away at `time`. Of a mapping that reaches beyond it the
    /// rest goes on as a mapping of its own: else one that is never covered whole
    /// would be kept for ever.
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

    /// What a process that is forked now starts with.
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

    /// Forgets what was gone before `horizon`.
    pub fn forget_before(&mut self, horizon: TimeNs) {
        self.0
            .retain(|life| life.gone.is_none_or(|gone| gone >= horizon));
    }

    /// What is kept.
    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.0.iter().map(|life| &life.mapping)
    }

    /// The modules that are referred to.
    pub fn modules(&self) -> impl Iterator<Item = ModuleKey> + '_ {
        self.iter().filter_map(|mapping| mapping.module)
    }
}

impl Mapping {
    /// The part `[start, end)` of this mapping. It is as old as the whole: what is mapped
    /// anew would end the code that a VM has in it.
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
