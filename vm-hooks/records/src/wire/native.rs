//! Messages of native symbols.

use super::{Wire, WireError, messages as m};
use crate::{FileOffset, ModuleKey, NativeFunction, NativeLines, SymbolOwner, Symbols};

impl Wire<m::Symbols> for Symbols {
    fn to_wire(&self) -> m::Symbols {
        m::Symbols {
            module: match self.owner {
                SymbolOwner::Module(key) => Some(key.0),
                SymbolOwner::Kernel => None,
            },
            functions: self.functions.to_wire(),
            note: self.note.clone(),
        }
    }

    fn from_wire(r: m::Symbols) -> Result<Self, WireError> {
        Ok(Symbols {
            owner: r.module.map_or(SymbolOwner::Kernel, |key| {
                SymbolOwner::Module(ModuleKey(key))
            }),
            functions: Wire::from_wire(r.functions)?,
            note: r.note,
        })
    }
}

impl Wire<m::NativeFunction> for NativeFunction {
    fn to_wire(&self) -> m::NativeFunction {
        m::NativeFunction {
            start: self.start.0,
            size: self.size,
            // Most C names are not mangled: store those once.
            linkage_name: (self.linkage_name != self.name).then(|| self.linkage_name.clone()),
            name: self.name.clone(),
            source: self.source.to_wire(),
            sized: self.sized,
            lines: self.lines.to_wire(),
        }
    }

    fn from_wire(r: m::NativeFunction) -> Result<Self, WireError> {
        Ok(NativeFunction {
            start: Wire::from_wire(r.start)?,
            size: r.size,
            linkage_name: r.linkage_name.unwrap_or_else(|| r.name.clone()),
            name: r.name,
            source: Wire::from_wire(r.source)?,
            sized: r.sized,
            lines: Wire::from_wire(r.lines)?,
        })
    }
}

impl Wire<m::NativeLines> for NativeLines {
    fn to_wire(&self) -> m::NativeLines {
        m::NativeLines {
            start: self.start.0,
            size: self.end.0.saturating_sub(self.start.0),
            frames: self.frames.to_wire(),
            exactness: self.exactness.to_wire(),
        }
    }

    fn from_wire(r: m::NativeLines) -> Result<Self, WireError> {
        let end = r.start.checked_add(r.size);
        Ok(NativeLines {
            start: FileOffset(r.start),
            end: FileOffset(end.ok_or(WireError::Range("size"))?),
            frames: Wire::from_wire(r.frames)?,
            exactness: Wire::from_wire(r.exactness)?,
        })
    }
}
