//! Method facts for evidence, read from a JVM's memory and cached.

use std::cell::RefCell;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use vmscope_process::{AdapterError, Memory};
use vmscope_records::Avma;

use super::facts::{MethodFacts, NamedTargets, Referent, Targets};
use super::profile::{ExecutedCall, ProfileLayout};
use super::{Bcis, MethodSource};
use crate::bytecode::{
    Constant, ConstantPoolView, Instruction, Operands, PoolLayout, instructions, is_jump, op,
    reached,
};
use crate::layout::{Scalar, VmStructs};

/// Maximum bytes of cached facts: the need of a large program's compiled and inlined methods.
const MAX_BYTES: usize = 24 << 20;

/// Maximum number of methods per call.
const MAX_TARGETS: usize = 3;

/// Maximum bytes of a signature.
const MAX_SIGNATURE: usize = 256;

const WHAT: &str = "method";

/// Facts about methods. They are void after an unloading of classes.
#[derive(Debug, Default)]
pub struct Facts {
    /// By `Method*`; `None` for an unreadable method.
    methods: FxHashMap<Avma, Option<Arc<MethodFacts>>>,
    /// Unreadable methods among them.
    unreadable: Vec<Avma>,
    /// Methods by class and by the addresses of name and signature.
    named: FxHashMap<(Avma, Avma, Avma), Option<Avma>>,
    /// Memory use.
    bytes: usize,
}

impl Facts {
    /// Makes room for an entry.
    fn grow(&mut self, bytes: usize) {
        if self.bytes.saturating_add(bytes) > MAX_BYTES {
            *self = Facts::default();
        }
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Methods in a JVM's memory, with a cache.
pub struct MemoryMethods<'m> {
    memory: &'m dyn Memory,
    layout: FactsLayout,
    kept: RefCell<Facts>,
    /// [`MethodSource::unreached`] by method and entry: later polls read it anew.
    unreached: RefCell<FxHashMap<(Avma, u32), Bcis>>,
}

impl std::fmt::Debug for MemoryMethods<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryMethods")
            .field("kept", &self.kept.borrow().methods.len())
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
    /// Whether a call without a count is not inlined ([`crate::code::Nmethod::counts_calls`]).
    trusts_counts: bool,
}

impl FactsLayout {
    /// Finds all fields. Missing fields yield no evidence. `trusts_counts`: whether a call without a count is not
    /// inlined ([`crate::code::Nmethod::counts_calls`]).
    #[must_use]
    pub fn of(structs: &VmStructs, pools: PoolLayout, trusts_counts: bool) -> Self {
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
            trusts_counts,
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
            unreached: RefCell::default(),
        }
    }

    /// All known facts. A method that could not be read may be readable next time.
    #[must_use]
    pub fn into_facts(self) -> Facts {
        let mut facts = self.kept.into_inner();
        for method in facts.unreadable.drain(..) {
            facts.methods.remove(&method);
        }
        facts
    }

    fn read(&self, method: Avma) -> Result<MethodFacts, AdapterError> {
        let bytecodes = self.bytecodes(method)?;
        let constants = self.layout.pools.methods().constants(self.memory, method)?;
        let pool = ConstantPoolView::read(&self.layout.pools, self.memory, constants)?;
        let executed = self.executed(method).unwrap_or_default();
        Ok(MethodFacts::of(&bytecodes, 4, |instruction| {
            self.refer(&pool, &executed, instruction)
                .unwrap_or_default()
        }))
    }

    /// Calls with a count in the method's profile; `None` without a readable profile.
    fn executed(&self, method: Avma) -> Option<Vec<ExecutedCall>> {
        let profile = self.layout.profile.as_ref()?;
        profile.calls(self.memory, method).ok()?
    }

    fn read_unreached(&self, method: Avma, entry: u32) -> Option<Bcis> {
        let bytecodes = self.bytecodes(method).ok()?;
        let all: Vec<Instruction> = instructions(&bytecodes).map_while(Result::ok).collect();
        let executed = self.executed(method).filter(|_| self.layout.trusts_counts);
        // C2 trusts no count of 0 in the first block.
        let first_jump = all.iter().position(|it| is_jump(it.opcode));
        let never = |index: usize, call: &Instruction| {
            let is_executed =
                (executed.as_ref()).is_none_or(|all| executed_at(all, call).is_some());
            !is_executed && first_jump.is_some_and(|jump| jump < index)
        };
        let calls = all.iter().enumerate().zip(reached(&all, entry));
        let calls = calls
            .filter(|((_, it), _)| (op::INVOKEVIRTUAL..=op::INVOKEDYNAMIC).contains(&it.opcode));
        let unreached =
            calls.filter(|((index, call), is_reached)| !is_reached || never(*index, call));
        let bcis = unreached.filter_map(|((_, call), _)| u16::try_from(call.bci.0).ok());
        Some(bcis.collect())
    }

    fn bytecodes(&self, method: Avma) -> Result<Vec<u8>, AdapterError> {
        let methods = self.layout.pools.methods();
        let (at, size) = methods.bytecode_range(self.memory, method)?;
        let bytecodes = self.memory.read_vec(at, size, usize::from(u16::MAX));
        bytecodes.map_err(AdapterError::reading(WHAT))
    }

    /// Whether compilers have intrinsic code, working on arrays, for a static method.
    fn is_intrinsic(&self, method: Avma) -> Result<bool, AdapterError> {
        let Some(field) = self.layout.intrinsic else {
            return Ok(false);
        };
        Ok(field.read(self.memory, method, WHAT)? != 0)
    }

    /// Whether a method of this signature may work on arrays: a parameter is an array, or an object
    /// with an offset.
    fn may_take_array(&self, signature: Avma) -> Result<bool, AdapterError> {
        let methods = self.layout.pools.methods();
        let (signature, _) = methods.symbol_bytes(self.memory, signature, MAX_SIGNATURE)?;
        Ok(signature.contains(&b'[') || signature.starts_with(b"(Ljava/lang/Object;"))
    }

    /// `None` for data missing from the pool.
    fn refer(
        &self,
        pool: &ConstantPoolView<'_>,
        executed: &[ExecutedCall],
        instruction: &Instruction,
    ) -> Option<Referent> {
        match (instruction.opcode, &instruction.operands) {
            (op::GETSTATIC..=op::PUTFIELD, _) => {
                pool.field_offset(instruction).map(Referent::Field)
            }
            (op::INVOKEVIRTUAL..=op::INVOKEINTERFACE, _) => {
                self.called(pool, executed, instruction)
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

    /// A call; classes of profiled receivers come first.
    fn called(
        &self,
        pool: &ConstantPoolView<'_>,
        executed: &[ExecutedCall],
        instruction: &Instruction,
    ) -> Option<Referent> {
        let callee = pool.callee(instruction)?;
        let known = executed_at(executed, instruction).into_iter();
        let known = known.flat_map(|call| call.receivers.iter().copied());
        let targets = Targets::Named(Box::new(NamedTargets {
            name: callee.name,
            signature: callee.signature,
            classes: known.chain(callee.class).take(MAX_TARGETS).collect(),
        }));
        if instruction.opcode == op::INVOKESTATIC
            && self.may_take_array(callee.signature).ok()?
            && let [method] = *self.targets(&targets)
            && self.is_intrinsic(method).ok()?
        {
            return Some(Referent::Intrinsic(method));
        }
        Some(Referent::Call(targets))
    }

    /// The method with the targets' name in a class; `None` also for an unreadable class.
    fn named(&self, class: Avma, targets: &NamedTargets) -> Option<Avma> {
        let key = (class, targets.name, targets.signature);
        if let Some(known) = self.kept.borrow().named.get(&key) {
            return *known;
        }
        let layout = self.layout.pools.methods();
        let found = layout.method_named(self.memory, class, (key.1, key.2));
        let found = found.ok()?;
        let mut kept = self.kept.borrow_mut();
        kept.grow(size_of_val(&key) + size_of_val(&found));
        kept.named.insert(key, found);
        found
    }
}

/// Profile entry of a call instruction; `None` if the profile counts no execution.
fn executed_at<'e>(
    executed: &'e [ExecutedCall],
    instruction: &Instruction,
) -> Option<&'e ExecutedCall> {
    let found = executed.binary_search_by_key(&instruction.bci.0, |call| call.bci.into());
    executed.get(found.ok()?)
}

impl MethodSource for MemoryMethods<'_> {
    fn facts(&self, method: Avma) -> Option<Arc<MethodFacts>> {
        if let Some(known) = self.kept.borrow().methods.get(&method) {
            return known.clone();
        }
        let facts = self.read(method).ok().map(Arc::new);
        let mut kept = self.kept.borrow_mut();
        kept.grow(facts.as_ref().map_or(0, |facts| facts.bytes()));
        if facts.is_none() {
            kept.unreadable.push(method);
        }
        kept.methods.insert(method, facts.clone());
        facts
    }

    fn targets(&self, targets: &Targets) -> Vec<Avma> {
        let targets = match targets {
            Targets::Known(methods) => return methods.clone(),
            Targets::Named(targets) => targets,
        };
        let mut methods = Vec::new();
        for class in &targets.classes {
            let found = self.named(*class, targets);
            methods.extend(found.filter(|method| !methods.contains(method)));
        }
        methods
    }

    fn unreached(&self, method: Avma, entry: u32) -> Bcis {
        let mut known = self.unreached.borrow_mut();
        let unreached = known.entry((method, entry));
        let unreached =
            unreached.or_insert_with(|| self.read_unreached(method, entry).unwrap_or_default());
        Arc::clone(unreached)
    }

    fn narrow_class(&self) -> Option<(u64, u32)> {
        let base = self.memory.read_u64(self.layout.narrow_base?).ok()?;
        let shift = self.memory.read_u32(self.layout.narrow_shift?).ok()?;
        Some((base, shift))
    }
}
