//! Targets of field, call and call-site instructions, resolved through the VM's rewritten
//! operands (`cpCache.hpp`, `resolved{Field,Method,Indy}Entry.hpp`).

use vmscope_records::Avma;

use super::decode::{Instruction, Operands};
use super::opcode::op;
use super::pool::{ConstantPoolView, Entries};
use crate::layout::Scalar;
use crate::layout::encodings::{pool_tag, resolved_entry};

const WHAT: &str = "constant pool cache";

/// Kind of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceKind {
    /// A field.
    Field,
    /// A method of a class.
    Method,
    /// A method of an interface.
    InterfaceMethod,
    /// A call site, linked on first execution.
    CallSite,
}

/// Target of an instruction: names from the class file, and the VM's resolution, if the
/// instruction has executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Kind of the target.
    pub kind: ReferenceKind,
    /// Class named by the instruction, in the VM's form; the class may inherit the member.
    /// Empty for a call site.
    pub class: String,
    /// Name of the target.
    pub name: String,
    /// The descriptor.
    pub signature: String,
    /// Slot in the constant pool.
    pub slot: u16,
    /// Offset in the object in bytes (in the class's mirror for a static field).
    pub field_offset: Option<u32>,
    /// The called `Method*`, if equal for all receivers. A call site has its adapter here.
    pub method: Option<Avma>,
}

/// Target of a call by addresses alone: the cheap form of [`Reference`], for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Callee {
    /// `Klass*` of the named class; `None` before resolution.
    pub class: Option<Avma>,
    /// `Symbol*` of the name.
    pub name: Avma,
    /// `Symbol*` of the descriptor.
    pub signature: Avma,
}

/// A cache entry: its slot and resolved data.
#[derive(Default)]
struct Entry {
    slot: u16,
    field_offset: Option<u32>,
    method: Option<Avma>,
}

impl ConstantPoolView<'_> {
    /// Target of `instruction` in a method of this pool's class; `None` for other instructions,
    /// and for data missing from the pool.
    #[must_use]
    pub fn reference(&self, instruction: &Instruction) -> Option<Reference> {
        self.named(self.entry_of(instruction)?)
    }

    /// [`Reference::field_offset`] of an instruction, without name reads.
    #[must_use]
    pub fn field_offset(&self, instruction: &Instruction) -> Option<u32> {
        self.entry_of(instruction)?.field_offset
    }

    /// Target of a call instruction; `None` for other instructions, call sites, and data
    /// missing from the pool.
    #[must_use]
    pub fn callee(&self, instruction: &Instruction) -> Option<Callee> {
        let slot = self.entry_of(instruction)?.slot;
        let is_call = [pool_tag::METHODREF, pool_tag::INTERFACE_METHODREF];
        is_call.contains(&self.tag(slot)?).then_some(())?;
        let (class, both) = self.pair(slot)?;
        (self.tag(both)? == pool_tag::NAME_AND_TYPE).then_some(())?;
        let (name, signature) = self.pair(both)?;
        Some(Callee {
            class: self.resolved_class(class),
            name: self.symbol_address(name)?,
            signature: self.symbol_address(signature)?,
        })
    }

    fn entry_of(&self, instruction: &Instruction) -> Option<Entry> {
        let opcode = instruction.opcode;
        Some(match &instruction.operands {
            Operands::Member(bytes) if !self.is_rewritten() => Entry {
                slot: u16::from_be_bytes(*bytes),
                ..Entry::default()
            },
            Operands::CallSite([high, low, ..]) if !self.is_rewritten() => Entry {
                slot: u16::from_be_bytes([*high, *low]),
                ..Entry::default()
            },
            Operands::Member(bytes) => {
                let number = u16::from_le_bytes(*bytes).into();
                match opcode {
                    op::GETSTATIC..=op::PUTFIELD => {
                        self.entry(self.layout.fields?, number, opcode)?
                    }
                    _ => self.entry(self.layout.calls?, number, opcode)?,
                }
            }
            Operands::CallSite(bytes) => {
                let number = i32::from_le_bytes(*bytes);
                // The VM stores the number inverted, to distinguish it from a pool slot.
                let number = if number < 0 { !number } else { number };
                let number = u64::try_from(number).ok()?;
                self.entry(self.layout.sites?, number, opcode)?
            }
            _ => return None,
        })
    }

    fn named(&self, entry: Entry) -> Option<Reference> {
        let tag = self.tag(entry.slot)?;
        let kind = match tag {
            pool_tag::FIELDREF => ReferenceKind::Field,
            pool_tag::METHODREF => ReferenceKind::Method,
            pool_tag::INTERFACE_METHODREF => ReferenceKind::InterfaceMethod,
            pool_tag::INVOKE_DYNAMIC => ReferenceKind::CallSite,
            _ => return None,
        };
        let (class, name, signature) = if kind == ReferenceKind::CallSite {
            let (name, signature) = self.name_and_type(self.pair(entry.slot)?.1)?;
            (String::new(), name, signature)
        } else {
            self.member(entry.slot)?
        };
        Some(Reference {
            kind,
            class,
            name,
            signature,
            slot: entry.slot,
            field_offset: entry.field_offset,
            method: entry.method,
        })
    }

    fn entry(&self, entries: Entries, number: u64, opcode: u8) -> Option<Entry> {
        let cache = self.cache?;
        match entries {
            Entries::Cache {
                length,
                data,
                bytes,
                indices,
                ..
            } => {
                let at = self.entry_at(cache, length, data, bytes, number)?;
                let read = |field: Scalar| field.read(self.memory, at, WHAT).ok();
                let indices = read(indices)?.cast_unsigned();
                let [a, b, first, second, ..] = indices.to_le_bytes();
                let (field_offset, method) =
                    of_cache(&entries, opcode, [first, second], read).unwrap_or_default();
                Some(Entry {
                    slot: u16::from_le_bytes([a, b]),
                    field_offset,
                    method,
                })
            }
            Entries::Array {
                array,
                length,
                data,
                bytes,
                pool_index,
            } => {
                let array = array.read_address(self.memory, cache, WHAT).ok()?;
                let at = self.entry_at(array, length, data, bytes, number)?;
                let read = |field: Scalar| field.read(self.memory, at, WHAT).ok();
                let slot = u16::try_from(read(pool_index)?).ok()?;
                let mut entry = Entry {
                    slot,
                    ..Entry::default()
                };
                match opcode {
                    op::GETSTATIC..=op::PUTFIELD => {
                        let field = resolved_entry::field(bytes, pool_index.offset);
                        if let Some((offset, holder)) = field {
                            let is_resolved = read(holder)? != 0;
                            let offset = u32::try_from(read(offset)?).ok();
                            entry.field_offset = offset.filter(|_| is_resolved);
                        }
                    }
                    _ => {
                        let method = read(resolved_entry::METHOD)?.cast_unsigned();
                        entry.method = (method != 0).then_some(Avma(method));
                    }
                }
                Some(entry)
            }
        }
    }

    /// Address of entry `number`.
    fn entry_at(
        &self,
        array: Avma,
        length: Scalar,
        data: u64,
        bytes: u64,
        number: u64,
    ) -> Option<Avma> {
        let length = length.read(self.memory, array, WHAT).ok()?;
        (number < u64::try_from(length).ok()?).then_some(())?;
        let within = number.checked_mul(bytes)?.checked_add(data)?;
        array.0.checked_add(within).map(Avma)
    }
}

/// Resolved data of a cache entry: a field's offset, or the method. `resolved_for`:
/// instructions with a finished resolution.
fn of_cache(
    entries: &Entries,
    opcode: u8,
    resolved_for: [u8; 2],
    read: impl Fn(Scalar) -> Option<i64>,
) -> Option<(Option<u32>, Option<Avma>)> {
    let Entries::Cache {
        f1,
        f2,
        flags,
        shifts,
        ..
    } = *entries
    else {
        return None;
    };
    let [first, second] = resolved_for;
    let (field_shift, final_shift) = shifts?;
    let flags = read(flags?)?;
    let has = |shift: u32| flags.wrapping_shr(shift) & 1 != 0;
    let method = |field: Scalar| {
        let address = read(field)?.cast_unsigned();
        Some((None, (address != 0).then_some(Avma(address))))
    };
    match opcode {
        op::GETSTATIC..=op::PUTFIELD => {
            // The VM sets the flags last. (It stores the instruction later: for a static field,
            // after the class's initialisation.)
            let offset = u32::try_from(read(f2?)?).ok();
            Some((offset.filter(|_| has(field_shift)), None))
        }
        op::INVOKESPECIAL | op::INVOKESTATIC if first == opcode => method(f1?),
        op::INVOKEDYNAMIC if first == opcode => method(f1?),
        op::INVOKEVIRTUAL if second == opcode && has(final_shift) => method(f2?),
        op::INVOKEINTERFACE if first == opcode => method(f2?),
        _ => None,
    }
}
