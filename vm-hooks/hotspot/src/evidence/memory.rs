//! Method facts for evidence, read from a JVM's memory and cached.

use std::cell::RefCell;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use vmscope_process::{AdapterError, Memory};
use vmscope_records::Avma;

use super::MethodSource;
use super::facts::{MethodFacts, Referent};
use super::profile::ProfileLayout;
use crate::bytecode::{Constant, ConstantPoolView, Instruction, Operands, PoolLayout, op};
use crate::layout::{Scalar, VmStructs};

/// Maximum number of methods with cached facts.
const MAX_KEPT: usize = 1 << 13;

/// Maximum number of methods per call.
const MAX_TARGETS: usize = 3;

/// Maximum bytes of a signature.
const MAX_SIGNATURE: usize = 256;

const WHAT: &str = "method";

/// Facts about methods, by `Method*`. They are void after an unloading of classes.
pub type Facts = FxHashMap<Avma, Option<Arc<MethodFacts>>>;

/// Methods in a JVM's memory, with a cache.
pub struct MemoryMethods<'m> {
    memory: &'m dyn Memory,
    layout: FactsLayout,
    kept: RefCell<Facts>,
}

impl std::fmt::Debug for MemoryMethods<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryMethods")
            .field("kept", &self.kept.borrow().len())
            .finish_non_exhaustive()
    }
}

/// Field offsets for facts of methods.
#[derive(Clone, Debug)]
pub struct FactsLayout {
    pools: PoolLayout,
    profile: Option<ProfileLayout>,
    intrinsic: Option<Scalar>,
    narrow_base: Option<Avma>,
    narrow_shift: Option<Avma>,
}

impl FactsLayout {
    /// Finds all fields. Missing fields yield no evidence.
    #[must_use]
    pub fn of(structs: &VmStructs, pools: PoolLayout) -> Self {
        let narrow = |old: &str, new: &str| {
            let of = |name| structs.optional_static("CompressedKlassPointers", name);
            of(old).or_else(|| of(new))
        };
        FactsLayout {
            pools,
            profile: ProfileLayout::of(structs),
            intrinsic: structs.optional_scalar("Method", "_intrinsic_id"),
            narrow_base: narrow("_narrow_klass._base", "_base"),
            narrow_shift: narrow("_narrow_klass._shift", "_shift"),
        }
    }
}

impl<'m> MemoryMethods<'m> {
    /// Methods in `memory`, preferably with a page cache; some `facts` are known.
    #[must_use]
    pub fn new(memory: &'m dyn Memory, layout: FactsLayout, facts: Facts) -> Self {
        MemoryMethods {
            memory,
            layout,
            kept: RefCell::new(facts),
        }
    }

    /// All known facts. A method that could not be read may be readable next time.
    #[must_use]
    pub fn into_facts(self) -> Facts {
        let mut facts = self.kept.into_inner();
        facts.retain(|_, facts| facts.is_some());
        facts
    }

    fn read(&self, method: Avma) -> Result<MethodFacts, AdapterError> {
        let memory = self.memory;
        let methods = self.layout.pools.methods();
        let (at, size) = methods.bytecode_range(memory, method)?;
        let bytecodes = memory
            .read_vec(at, size, usize::from(u16::MAX))
            .map_err(AdapterError::reading(WHAT))?;
        let constants = methods.constants(memory, method)?;
        let pool = ConstantPoolView::read(&self.layout.pools, memory, constants)?;
        let receivers = self
            .layout
            .profile
            .as_ref()
            .and_then(|profile| profile.receivers(memory, method).ok())
            .unwrap_or_default();
        Ok(MethodFacts::of(&bytecodes, 4, |instruction| {
            self.refer(&pool, &receivers, instruction)
                .unwrap_or_default()
        }))
    }

    /// Whether compilers have intrinsic code, working on arrays, for a static method of this
    /// signature.
    fn is_intrinsic(&self, method: Avma, signature: Avma) -> Result<bool, AdapterError> {
        let Some(field) = self.layout.intrinsic else {
            return Ok(false);
        };
        if field.read(self.memory, method, WHAT)? == 0 {
            return Ok(false);
        }
        let methods = self.layout.pools.methods();
        let (signature, _) = methods.symbol_bytes(self.memory, signature, MAX_SIGNATURE)?;
        // An array, or an object with an offset.
        Ok(signature.contains(&b'[') || signature.starts_with(b"(Ljava/lang/Object;"))
    }

    /// `None` for data missing from the pool.
    fn refer(
        &self,
        pool: &ConstantPoolView<'_>,
        receivers: &[(u16, Vec<Avma>)],
        instruction: &Instruction,
    ) -> Option<Referent> {
        match (instruction.opcode, &instruction.operands) {
            (op::GETSTATIC..=op::PUTFIELD, _) => {
                pool.field_offset(instruction).map(Referent::Field)
            }
            (op::INVOKEVIRTUAL..=op::INVOKEINTERFACE, _) => {
                self.called(pool, receivers, instruction)
            }
            (op::LDC..=op::LDC2_W, Operands::Constant(slot)) => {
                Some(Referent::Constant(match pool.number(*slot)? {
                    Constant::Integer(number) => number.into(),
                    Constant::Long(number) => number,
                    Constant::Float(number) => number.to_bits().into(),
                    Constant::Double(number) => number.to_bits().cast_signed(),
                    _ => return None,
                }))
            }
            (_, Operands::Constant(slot) | Operands::Dimensions(slot, _)) => {
                pool.resolved_class(*slot).map(Referent::Class)
            }
            _ => None,
        }
    }

    /// Targets of a call; targets of profiled receivers come first.
    fn called(
        &self,
        pool: &ConstantPoolView<'_>,
        receivers: &[(u16, Vec<Avma>)],
        instruction: &Instruction,
    ) -> Option<Referent> {
        let callee = pool.callee(instruction)?;
        let layout = self.layout.pools.methods();
        let known = receivers
            .iter()
            .filter(|(at, _)| u32::from(*at) == instruction.bci.0);
        let known = known.flat_map(|(_, classes)| classes.iter().copied());
        let mut methods = Vec::new();
        for class in known.chain(callee.class).take(MAX_TARGETS) {
            let named = (callee.name, callee.signature);
            let found = layout.method_named(self.memory, class, named).ok()?;
            if let Some(method) = found.filter(|method| !methods.contains(method)) {
                methods.push(method);
            }
        }
        Some(match methods.as_slice() {
            [method]
                if instruction.opcode == op::INVOKESTATIC
                    && self.is_intrinsic(*method, callee.signature).ok()? =>
            {
                Referent::Intrinsic(*method)
            }
            _ => Referent::Methods(methods),
        })
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
