//! Reads V8's tables of instructions from its process.

use rustc_hash::FxHashMap;
use vmscope_process::{AdapterError, MapEntry, Memory, ProcessView, Symbol};
use vmscope_records::Avma;

use super::instruction_set::{InstructionSet, SCALES, Tables};
use crate::isolate::{self, Isolate};
use crate::vm::{BUILTINS, V8};

/// Begin of the symbols of most tables.
pub(crate) const TABLES: &str = "_ZN2v88internal11interpreter9Bytecodes";
pub(super) const SIZES: &str = "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE";
pub(super) const OPERAND_SIZES: &str = "_ZN2v88internal11interpreter9Bytecodes17kOperandKindSizesE";
pub(super) const COUNTS: &str = "_ZN2v88internal11interpreter9Bytecodes13kOperandCountE";
pub(super) const OPERANDS: &str = "_ZN2v88internal11interpreter9Bytecodes13kOperandTypesE";
pub(crate) const RUNTIME: &str = "_ZN2v88internalL19kIntrinsicFunctionsE";

/// Address of the interpreter's handlers, among the external references.
pub(crate) const HANDLERS: &str = "Interpreter::dispatch_table_address";

/// End of a handler's symbol: `Builtins_LdaSmiHandler`.
const HANDLER: &str = "Handler";

/// Maximum bytes of a table.
const MAX_TABLE: usize = 1 << 16;

/// Maximum number of operands of an instruction.
const MAX_OPERANDS: usize = 8;

/// Number of opcodes at most.
pub(crate) const OPCODES: usize = 256;

/// Bytes of a runtime function's description. The description begins with the function's number.
pub(super) const FUNCTION: usize = 32;
/// Offset of the name's address.
pub(super) const FUNCTION_NAME: usize = 8;

/// Bytes of a runtime function's name that are read.
const NAME: usize = 64;

impl InstructionSet {
    /// The instructions of the V8 in `process`; `isolate` is any of its isolates. Without symbols of
    /// builtins, names are unknown; without tables of operands, operands.
    ///
    /// # Errors
    /// No table of sizes; a table of another form; failed reads.
    pub fn read(
        process: &ProcessView,
        vm: &V8,
        (isolate, tables): (Isolate, &isolate::Tables),
    ) -> Result<Self, AdapterError> {
        let memory = process.memory();
        let table = |name: &str| -> Result<Vec<u8>, AdapterError> {
            let Some(symbol) = vm.symbols.iter().find(|symbol| symbol.name == name) else {
                return Ok(Vec::new());
            };
            let bytes = memory.read_vec(symbol.address, symbol.size, MAX_TABLE);
            bytes.map_err(AdapterError::reading("table of bytecodes"))
        };
        let sizes = table(SIZES)?;
        if sizes.is_empty() {
            return Err(AdapterError::MissingSymbol {
                name: SIZES.to_owned(),
            });
        }
        let handlers = tables.reference(isolate, HANDLERS, memory)?;
        let names = match handlers {
            Some(handlers) => handler_names(process, vm, handlers)?,
            None => Vec::new(),
        };
        let length = sizes.len() as u64;
        let tables = Tables {
            sizes,
            operand_sizes: table(OPERAND_SIZES)?,
            operands: operands(memory, &table(COUNTS)?, &table(OPERANDS)?)?,
            names,
            runtime: runtime_names(memory, &table(RUNTIME)?)?,
        };
        InstructionSet::new(tables).map_err(|_| AdapterError::Implausible {
            what: "table of bytecodes",
            value: length,
            at: Avma::default(),
        })
    }
}

/// Addresses of the interpreter's handlers, by scale and opcode, from their table.
///
/// # Errors
/// Failed reads; [`AdapterError::NotReady`] before V8 has filled the table.
pub(crate) fn handlers(table: Avma, memory: &dyn Memory) -> Result<Vec<u64>, AdapterError> {
    let count = SCALES * OPCODES;
    let handlers = memory.read_u64s(table, count as u64, count);
    let handlers = handlers.map_err(AdapterError::reading("interpreter's handlers"))?;
    match handlers.first() {
        None | Some(0) => Err(AdapterError::NotReady {
            what: "interpreter",
        }),
        Some(_) => Ok(handlers),
    }
}

/// Operand types of each instruction, by their counts (32 bits) and addresses.
fn operands(
    memory: &dyn Memory,
    counts: &[u8],
    addresses: &[u8],
) -> Result<Vec<Vec<u8>>, AdapterError> {
    let (counts, _) = counts.as_chunks::<4>();
    let counts = counts.iter().map(|count| u32::from_le_bytes(*count));
    let all = read_at(memory, addresses.as_chunks().0, MAX_OPERANDS)?;
    let each = counts.zip(all).map(|(count, types)| {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        types.get(..count).unwrap_or_default().to_vec()
    });
    Ok(each.collect())
}

/// Names of runtime functions, if the table has the known form.
fn runtime_names(memory: &dyn Memory, table: &[u8]) -> Result<Vec<String>, AdapterError> {
    let (functions, _) = table.as_chunks::<FUNCTION>();
    let addresses = (0_u32..).zip(functions).map_while(|(number, function)| {
        let own = u32::from_le_bytes(*function.first_chunk()?);
        let name = function.get(FUNCTION_NAME..)?.first_chunk::<8>()?;
        (own == number).then_some(*name)
    });
    let addresses: Vec<[u8; 8]> = addresses.collect();
    let all = read_at(memory, &addresses, NAME)?;
    let names = all.into_iter().map(|bytes| {
        let end = bytes.iter().position(|byte| *byte == 0);
        let name = bytes.get(..end.unwrap_or(NAME)).unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    });
    Ok(names.collect())
}

/// `length` bytes at each address; zeros at unreadable ones.
fn read_at(
    memory: &dyn Memory,
    addresses: &[[u8; 8]],
    length: usize,
) -> Result<Vec<Vec<u8>>, AdapterError> {
    let addresses = addresses.iter().map(|at| Avma(u64::from_le_bytes(*at)));
    let addresses: Vec<Avma> = addresses.collect();
    let mut bytes = Vec::new();
    let read = memory.read_each(&addresses, length, &mut bytes);
    read.map_err(AdapterError::reading("table of bytecodes"))?;
    Ok(bytes.chunks_exact(length).map(<[u8]>::to_vec).collect())
}

/// Names of instructions by opcode, from their handlers' symbols. `handlers`: address of the table of
/// handlers. V8 has a second mapping of its builtins, so file offsets identify handlers.
fn handler_names(
    process: &ProcessView,
    vm: &V8,
    handlers: Avma,
) -> Result<Vec<String>, AdapterError> {
    let mappings = process.mappings();
    let names: FxHashMap<u64, &str> = vm
        .builtins()
        .filter_map(|Symbol { name, address, .. }| {
            let name = name.strip_prefix(BUILTINS)?.strip_suffix(HANDLER)?;
            Some((place_in_file(&mappings, *address)?, name))
        })
        .collect();
    let addresses = self::handlers(handlers, process.memory())?;
    let addresses = addresses.into_iter().take(OPCODES);
    let name = |at: u64| {
        let place = place_in_file(&mappings, Avma(at))?;
        names.get(&place).copied()
    };
    let names = addresses.map(|at| name(at).unwrap_or_default());
    Ok(names.map(str::to_owned).collect())
}

/// File offset of an address in a mapped file. All builtins are in one file.
fn place_in_file(mappings: &[MapEntry], at: Avma) -> Option<u64> {
    let entry = MapEntry::find(mappings, at).filter(|entry| entry.path().is_some())?;
    let offset = at.0.checked_sub(entry.start.0)?;
    entry.offset.0.checked_add(offset)
}
