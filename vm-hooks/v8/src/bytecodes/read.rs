//! Reads V8's tables of instructions from its process.

use rustc_hash::FxHashMap;
use vmscope_process::{AdapterError, MapEntry, Memory, ProcessView, Symbol};
use vmscope_records::Avma;

use super::instruction_set::{InstructionSet, Tables};
use crate::isolate::{self, Isolate};
use crate::vm::{BUILTINS, V8};

const SIZES: &str = "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE";
const OPERAND_SIZES: &str = "_ZN2v88internal11interpreter9Bytecodes17kOperandKindSizesE";
const COUNTS: &str = "_ZN2v88internal11interpreter9Bytecodes13kOperandCountE";
const OPERANDS: &str = "_ZN2v88internal11interpreter9Bytecodes13kOperandTypesE";
const RUNTIME: &str = "_ZN2v88internalL19kIntrinsicFunctionsE";

/// Address of the interpreter's handlers, among the external references.
const HANDLERS: &str = "Interpreter::dispatch_table_address";

/// End of a handler's symbol: `Builtins_LdaSmiHandler`.
const HANDLER: &str = "Handler";

/// Maximum bytes of a table.
const MAX_TABLE: usize = 1 << 16;

/// Maximum number of operands of an instruction.
const MAX_OPERANDS: usize = 8;

/// Number of opcodes.
const OPCODES: u64 = 256;

/// Bytes of a runtime function's description. The description begins with the function's number.
const FUNCTION: usize = 32;
/// Offset of the name's address.
const FUNCTION_NAME: usize = 8;

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
        let names = [SIZES, OPERAND_SIZES, COUNTS, OPERANDS, RUNTIME];
        let symbols = process.symbols(&vm.product.module, &names)?;
        let memory = process.memory();
        let table = |index: usize| -> Result<Vec<u8>, AdapterError> {
            let Some(symbol) = symbols.get(index).and_then(Option::as_ref) else {
                return Ok(Vec::new());
            };
            let bytes = memory.read_vec(symbol.address, symbol.size, MAX_TABLE);
            bytes.map_err(AdapterError::reading("table of bytecodes"))
        };
        let sizes = table(0)?;
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
            operand_sizes: table(1)?,
            operands: operands(memory, &table(2)?, &table(3)?)?,
            names,
            runtime: runtime_names(memory, &table(4)?)?,
        };
        InstructionSet::new(tables).map_err(|_| AdapterError::Implausible {
            what: "table of bytecodes",
            value: length,
            at: Avma::default(),
        })
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
    let count = OPCODES as usize;
    let addresses = process.memory().read_u64s(handlers, OPCODES, count);
    let addresses = addresses.map_err(AdapterError::reading("interpreter's handlers"))?;
    let name = |at: u64| {
        let place = place_in_file(&mappings, Avma(at))?;
        names.get(&place).copied()
    };
    let names = addresses.into_iter().map(|at| name(at).unwrap_or_default());
    Ok(names.map(str::to_owned).collect())
}

/// File offset of an address in a mapped file. All builtins are in one file.
fn place_in_file(mappings: &[MapEntry], at: Avma) -> Option<u64> {
    let entry = MapEntry::find(mappings, at).filter(|entry| entry.path().is_some())?;
    let offset = at.0.checked_sub(entry.start.0)?;
    entry.offset.0.checked_add(offset)
}
