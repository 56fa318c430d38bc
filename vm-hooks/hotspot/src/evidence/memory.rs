//! What evidence needs of methods, read out of a JVM's memory and kept.

use std::cell::RefCell;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use vmscope_records::Avma;
use vmscope_target::{AdapterError, Memory};

use super::MethodSource;
use super::facts::{MethodFacts, Reference};
use super::pool::PoolLayout;
use super::profile::ProfileLayout;
use crate::layout::{Scalar, VmStructs};

/// Facts of more methods than this are not kept at a time.
const MAX_KEPT: usize = 1 << 16;

/// A call is not said to reach more methods than this.
const MAX_TARGETS: usize = 3;

const WHAT: &str = "method";

/// Methods in a JVM's memory. What was read once is kept: [`MemoryMethods::forget`].
pub struct MemoryMethods<'m> {
    memory: &'m dyn Memory,
    layout: MethodsLayout,
    kept: RefCell<FxHashMap<Avma, Option<Arc<MethodFacts>>>>,
}

impl std::fmt::Debug for MemoryMethods<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryMethods")
            .field("kept", &self.kept.borrow().len())
            .finish_non_exhaustive()
    }
}

/// Where things lie in methods and what they refer to.
#[derive(Clone, Debug)]
pub struct MethodsLayout {
    const_method: Scalar,
    const_method_bytes: u64,
    constants: Scalar,
    code_size: Scalar,
    pool: PoolLayout,
    profile: Option<ProfileLayout>,
    intrinsic: Option<Scalar>,
    narrow_base: Option<Avma>,
    narrow_shift: Option<Avma>,
}

impl MethodsLayout {
    /// Looks everything up.
    ///
    /// # Errors
    ///
    /// [`AdapterError::MissingField`]: there is less evidence then.
    pub fn of(structs: &VmStructs) -> Result<Self, AdapterError> {
        let narrow = |old: &str, new: &str| {
            let of = |name| structs.optional_static("CompressedKlassPointers", name);
            of(old).or_else(|| of(new))
        };
        Ok(MethodsLayout {
            const_method: structs.scalar("Method", "_constMethod")?,
            const_method_bytes: structs.size_of("ConstMethod")?,
            constants: structs.scalar("ConstMethod", "_constants")?,
            code_size: structs.scalar("ConstMethod", "_code_size")?,
            pool: PoolLayout::of(structs)?,
            profile: ProfileLayout::of(structs),
            intrinsic: structs.optional_scalar("Method", "_intrinsic_id"),
            narrow_base: narrow("_narrow_klass._base", "_base"),
            narrow_shift: narrow("_narrow_klass._shift", "_shift"),
        })
    }
}

impl<'m> MemoryMethods<'m> {
    /// Methods in `memory`; pages that are kept suit it best.
    #[must_use]
    pub fn new(memory: &'m dyn Memory, layout: MethodsLayout) -> Self {
        MemoryMethods {
            memory,
            layout,
            kept: RefCell::default(),
        }
    }

    /// Forgets what was read: classes are loaded and unloaded.
    pub fn forget(&self) {
        self.kept.borrow_mut().clear();
    }

    fn read(&self, method: Avma) -> Result<MethodFacts, AdapterError> {
        let layout = &self.layout;
        let memory = self.memory;
        let const_method = layout.const_method.read_address(memory, method, WHAT)?;
        let size = layout.code_size.read(memory, const_method, WHAT)?;
        let pool = layout.constants.read_address(memory, const_method, WHAT)?;
        let at = Avma(const_method.0.wrapping_add(layout.const_method_bytes));
        let bytecodes = memory
            .read_vec(at, size.cast_unsigned(), usize::from(u16::MAX))
            .map_err(AdapterError::reading(WHAT))?;
        let receivers = layout
            .profile
            .as_ref()
            .and_then(|profile| profile.receivers(memory, method).ok())
            .unwrap_or_default();
        Ok(MethodFacts::of(&bytecodes, 4, |bci, code, operand| {
            self.refer(pool, &receivers, (bci, code, operand))
                .unwrap_or_default()
        }))
    }

    /// Whether compilers have code of their own for a static method with that signature,
    /// and it works on arrays.
    fn is_intrinsic(&self, method: Avma, signature: Avma) -> Result<bool, AdapterError> {
        let Some(field) = self.layout.intrinsic else {
            return Ok(false);
        };
        if field.read(self.memory, method, WHAT)? == 0 {
            return Ok(false);
        }
        let signature = self.layout.pool.symbol(self.memory, signature)?;
        // An array as such, or as an object and a place in it.
        Ok(signature.contains('[') || signature.starts_with("(Ljava/lang/Object;"))
    }

    fn refer(
        &self,
        pool: Avma,
        receivers: &[(u16, Vec<Avma>)],
        (bci, code, operand): (u16, u8, u16),
    ) -> Result<Reference, AdapterError> {
        let (layout, memory) = (&self.layout.pool, self.memory);
        match code {
            0xb2..=0xb5 => layout.field(memory, pool, operand),
            0xb6..=0xb9 => {
                let (class, name, signature) = layout.callee(memory, pool, operand)?;
                let mut methods = Vec::new();
                let known = receivers.iter().filter(|(at, _)| *at == bci);
                let known = known.flat_map(|(_, classes)| classes.iter().copied());
                for class in known.chain([class]).take(MAX_TARGETS) {
                    let found = layout.find(memory, class, name, signature)?;
                    if found.0 != 0 && !methods.contains(&found) {
                        methods.push(found);
                    }
                }
                match methods.as_slice() {
                    [method] if code == 0xb8 && self.is_intrinsic(*method, signature)? => {
                        Ok(Reference::Intrinsic(*method))
                    }
                    _ => Ok(Reference::Methods(methods)),
                }
            }
            0xbb | 0xbd | 0xc0 | 0xc1 | 0xc5 => {
                let class = layout.class_at(memory, pool, operand.into())?;
                Ok(if class.0 == 0 {
                    Reference::Unknown
                } else {
                    Reference::Class(class)
                })
            }
            0x12..=0x14 => layout.number(memory, pool, operand.into()),
            _ => Ok(Reference::Unknown),
        }
    }
}

impl MethodSource for MemoryMethods<'_> {
    fn facts(&self, method: Avma) -> Option<Arc<MethodFacts>> {
        if let Some(kept) = self.kept.borrow().get(&method) {
            return kept.clone();
        }
        let facts = self.read(method).ok().map(Arc::new);
        let mut kept = self.kept.borrow_mut();
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(method, facts.clone());
        facts
    }

    fn narrow_class(&self) -> Option<(u64, u32)> {
        let base = self.memory.read_u64(self.layout.narrow_base?).ok()?;
        let shift = self.memory.read_u32(self.layout.narrow_shift?).ok()?;
        Some((base, shift))
    }
}
