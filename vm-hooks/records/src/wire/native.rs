//! Native symbols and what they tell to messages and back.

use super::codes::Code;
use super::process::plain;
use super::{WireError, messages as m};
use crate::{
    Exactness, FileOffset, ModuleKey, NativeFrame, NativeFunction, NativeLines, ProcessKey, Region,
    RegionRule, RegionRules, SymbolOwner, SymbolSource, Symbols, TimeNs,
};

plain!(NativeFrame { function = function: same, file = file: same, line = line: same });
plain!(RegionRule {
    module = module: same, prefix = prefix: same, contains = contains: same,
    suffix = suffix: same, region = region: (code Region), part = part: same, strip = strip: same,
});

impl From<&RegionRules> for m::RegionRules {
    fn from(r: &RegionRules) -> Self {
        m::RegionRules {
            process: r.process.0,
            time: r.time.0,
            vm: r.vm.clone(),
            rules: r.rules.iter().map(Into::into).collect(),
        }
    }
}

impl TryFrom<m::RegionRules> for RegionRules {
    type Error = WireError;

    fn try_from(r: m::RegionRules) -> Result<Self, WireError> {
        let rules = r.rules.into_iter().map(TryInto::try_into);
        Ok(RegionRules {
            process: ProcessKey(r.process),
            time: TimeNs(r.time),
            vm: r.vm,
            rules: rules.collect::<Result<_, _>>()?,
        })
    }
}

impl From<&Symbols> for m::Symbols {
    fn from(r: &Symbols) -> Self {
        m::Symbols {
            module: match r.owner {
                SymbolOwner::Module(key) => Some(key.0),
                SymbolOwner::Kernel => None,
            },
            functions: r.functions.iter().map(Into::into).collect(),
            note: r.note.clone(),
        }
    }
}

impl TryFrom<m::Symbols> for Symbols {
    type Error = WireError;

    fn try_from(r: m::Symbols) -> Result<Self, WireError> {
        Ok(Symbols {
            owner: r.module.map_or(SymbolOwner::Kernel, |key| {
                SymbolOwner::Module(ModuleKey(key))
            }),
            functions: r
                .functions
                .into_iter()
                .map(TryInto::try_into)
                .collect::<Result<_, _>>()?,
            note: r.note,
        })
    }
}

impl From<&NativeFunction> for m::NativeFunction {
    fn from(r: &NativeFunction) -> Self {
        m::NativeFunction {
            start: r.start.0,
            size: r.size,
            // Most names of C are not mangled: said once is enough.
            linkage_name: (r.linkage_name != r.name).then(|| r.linkage_name.clone()),
            name: r.name.clone(),
            source: r.source.code(),
            sized: r.sized,
            lines: r
                .lines
                .iter()
                .map(|piece| m::NativeLines {
                    start: piece.start.0,
                    size: piece.end.0.saturating_sub(piece.start.0),
                    frames: piece.frames.iter().map(Into::into).collect(),
                    exactness: piece.exactness.code(),
                })
                .collect(),
        }
    }
}

impl TryFrom<m::NativeFunction> for NativeFunction {
    type Error = WireError;

    fn try_from(r: m::NativeFunction) -> Result<Self, WireError> {
        let lines = r
            .lines
            .into_iter()
            .map(|piece| {
                let end = piece
                    .start
                    .checked_add(piece.size)
                    .ok_or(WireError::Range("size"))?;
                Ok(NativeLines {
                    start: FileOffset(piece.start),
                    end: FileOffset(end),
                    frames: piece
                        .frames
                        .into_iter()
                        .map(TryInto::try_into)
                        .collect::<Result<_, _>>()?,
                    exactness: Exactness::from_code(piece.exactness),
                })
            })
            .collect::<Result<_, WireError>>()?;
        Ok(NativeFunction {
            start: FileOffset(r.start),
            size: r.size,
            linkage_name: r.linkage_name.unwrap_or_else(|| r.name.clone()),
            name: r.name,
            source: SymbolSource::from_code(r.source),
            sized: r.sized,
            lines,
        })
    }
}
