//! A Cog VM in a process: its variables and constants.

use vmscope_process::{
    AdapterError, LoadedModule, MapEntry, Memory, ProcessView, read_consistently,
};
use vmscope_records::{Arch, Avma};

use crate::Variables;
use crate::bytecodes::Sets;
use crate::cog_method::CogMethod;
use crate::map::Origin;
use crate::trampolines::{self, Trampoline};
use crate::variables::{CHANGES, CHANGES_OF_CODE, COMPACTIONS, IN_PROGRESS};
use crate::zone::{Bounds, Evidence, Methods};

/// A module with more code is no Cog VM: those have less than 3 MB.
const MOST_CODE: u64 = 16 << 20;

/// Longest version.
const MAX_VERSION: usize = 256;

/// Offsets of entries in x86-64 code, for VMs that don't tell them.
const CHECKED_ENTRY: u64 = 48;
const UNCHECKED_ENTRY: u64 = 71;
const BLOCK_ENTRY: u64 = 48;

/// Attempts to read a changing zone.
const ATTEMPTS: u32 = 20;

/// Attempts to read an entry that the VM is perhaps just making.
const DAMAGED_ATTEMPTS: u32 = 3;

/// A Cog VM.
#[derive(Clone, Debug)]
pub struct Vm {
    /// What it calls itself; empty if unreadable.
    pub version: String,
    /// Its executable or library.
    pub module: LoadedModule,
    /// Addresses of its variables.
    pub variables: Variables,
    /// Its bytecodes.
    pub bytecodes: Sets,
    /// What shows its layout.
    pub evidence: Evidence,
    entries: Entries,
    /// What can't be read, in sentences.
    pub limits: Vec<String>,
}

/// Offsets of entries in code.
#[derive(Clone, Copy, Debug)]
struct Entries {
    checked: u32,
    unchecked: u32,
    of_blocks: u32,
}

/// The code zone at one time.
#[derive(Clone, Debug)]
pub struct Zone {
    /// Its limits.
    pub bounds: Bounds,
    /// Trampolines, ascending; empty if unreadable.
    pub trampolines: Vec<Trampoline>,
    /// Its methods.
    pub methods: Methods,
    /// Number of code compactions before it; 0 if unknown.
    pub compactions: u64,
}

/// Numbers that change with the zone; unknown ones are absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp(Vec<u64>);

impl Vm {
    /// The VM in `process`; `None` if it has none. Looks at symbols only if the process has executable
    /// memory without a file.
    ///
    /// # Errors
    /// A missing variable; failed reads.
    pub fn open(process: &ProcessView) -> Result<Option<Self>, AdapterError> {
        let Some((module, variables)) = find(process)? else {
            return Ok(None);
        };
        Self::with(process.memory(), module, variables).map(Some)
    }

    fn with(
        memory: &dyn Memory,
        module: LoadedModule,
        variables: Variables,
    ) -> Result<Self, AdapterError> {
        // The VM calculates its constants when it makes the code zone.
        Bounds::read(&variables, memory)?;
        let bytecodes = Sets::of(&variables, memory)?;
        let mut limits = Vec::new();
        let is_known = memory.pointer_bytes() == 8 && Arch::of_this_machine() == Arch::X86_64;
        let mut offset = |name, known: u64| {
            let told = variables.number(memory, name)?;
            if told.is_none() {
                limits.push(format!(
                    "this VM does not tell its constant {name}: vmscope uses {known}"
                ));
            }
            let offset = u32::try_from(told.unwrap_or(known)).ok();
            let offset = offset.filter(|offset| *offset < 1 << 12 && (is_known || told.is_some()));
            offset.ok_or_else(|| AdapterError::MissingSymbol {
                name: name.to_owned(),
            })
        };
        let entries = Entries {
            checked: offset("cmEntryOffset", CHECKED_ENTRY)?,
            unchecked: offset("cmNoCheckEntryOffset", UNCHECKED_ENTRY)?,
            of_blocks: offset("cbNoSwitchEntryOffset", BLOCK_ENTRY)?,
        };
        let evidence = Evidence {
            closed_pic: variables.number(memory, "closedPICSize")?,
            open_pic: variables.number(memory, "openPICSize")?,
            bytecode_sets: bytecodes.told,
        };
        limits.extend(missing(&variables, &bytecodes));
        Ok(Vm {
            version: version(&variables, memory)?,
            module,
            variables,
            bytecodes,
            evidence,
            entries,
            limits,
        })
    }

    /// Where the map of `method` begins to count.
    #[must_use]
    pub fn origin(&self, method: &CogMethod) -> Origin {
        Origin {
            unchecked_entry: match method.is_full_block {
                true => self.entries.of_blocks,
                false => self.entries.unchecked,
            },
            granularity: match Arch::of_this_machine() {
                Arch::Aarch64 => 4,
                _ => 1,
            },
        }
    }

    /// Offsets of a method's two entries: before and after the class check.
    #[must_use]
    pub fn entry_offsets(&self) -> (u32, u32) {
        (self.entries.checked, self.entries.unchecked)
    }

    /// The numbers that change with the zone.
    ///
    /// # Errors
    /// [`AdapterError::Busy`] during a collection or code compaction; failed reads.
    pub fn stamp(&self, memory: &dyn Memory) -> Result<Stamp, AdapterError> {
        let (busy, changes) = (self.known(&IN_PROGRESS), self.known(&CHANGES));
        self.numbers(&busy, &changes, memory)
    }

    /// The numbers that change with the code, but not with scavenges; `None` if the VM does not tell all.
    /// Costs one read.
    ///
    /// # Errors
    /// [`AdapterError::Busy`] during a code compaction; failed reads.
    pub fn stamp_of_code(&self, memory: &dyn Memory) -> Result<Option<Stamp>, AdapterError> {
        let busy = self.known(&["compactionInProgress"]);
        let changes = self.known(&CHANGES_OF_CODE);
        if busy.is_empty() || changes.len() < CHANGES_OF_CODE.len() {
            return Ok(None);
        }
        self.numbers(&busy, &changes, memory).map(Some)
    }

    fn known(&self, names: &[&str]) -> Vec<Avma> {
        let names = names.iter();
        names.filter_map(|name| self.variables.at(name)).collect()
    }

    /// Reads words. Those in `busy` are 0, or the VM is busy.
    fn numbers(
        &self,
        busy: &[Avma],
        changes: &[Avma],
        memory: &dyn Memory,
    ) -> Result<Stamp, AdapterError> {
        let word = memory.pointer_bytes();
        let mut bytes = Vec::new();
        let read = memory.read_each(&[busy, changes].concat(), word, &mut bytes);
        read.map_err(AdapterError::reading("counters"))?;
        let words = bytes.chunks_exact(word.max(1));
        let numbers: Vec<u64> = words.map(crate::cog_method::number).collect();
        if numbers.iter().take(busy.len()).any(|number| *number != 0) {
            return Err(AdapterError::Busy { what: "code zone" });
        }
        Ok(Stamp(numbers))
    }

    /// Reads the zone, then calls `then`. Repeats both until the VM's counters show no change during
    /// the call.
    ///
    /// # Errors
    /// [`AdapterError::Torn`] if the zone changed during every attempt; errors of reads and of `then`.
    pub fn with_zone<T>(
        &self,
        memory: &dyn Memory,
        mut then: impl FnMut(&Zone, &Stamp) -> Result<T, AdapterError>,
    ) -> Result<(Zone, T), AdapterError> {
        let mut damaged = 0;
        read_consistently(
            "code zone",
            ATTEMPTS,
            || self.stamp(memory),
            |stamp| {
                let zone = self.read(memory)?;
                if zone.methods.damage.is_some() {
                    damaged += 1;
                    if damaged < DAMAGED_ATTEMPTS {
                        return Err(AdapterError::Busy { what: "code zone" });
                    }
                }
                let done = then(&zone, stamp)?;
                Ok((zone, done))
            },
        )
    }

    fn read(&self, memory: &dyn Memory) -> Result<Zone, AdapterError> {
        let bounds = Bounds::read(&self.variables, memory)?;
        let trampolines = match trampolines::read(&self.variables, &bounds, memory) {
            Err(error) if error.is_final() && !is_missing(&error) => return Err(error),
            trampolines => trampolines.unwrap_or_default(),
        };
        let compactions = self.variables.number(memory, COMPACTIONS)?;
        Ok(Zone {
            methods: Methods::read(&bounds, &self.evidence, memory)?,
            bounds,
            trampolines,
            compactions: compactions.unwrap_or(0),
        })
    }
}

/// The VM's own name and version (`Open Smalltalk Cog[Spur] VM [CoInterpreter VMMaker.oscog-eem.2530]`).
fn version(variables: &Variables, memory: &dyn Memory) -> Result<String, AdapterError> {
    let Some(at) = variables.number(memory, "interpreterVersion")? else {
        return Ok(String::new());
    };
    match memory.read_c_string(Avma(at), MAX_VERSION) {
        Err(error) if error.is_final() => Err(AdapterError::reading("version")(error)),
        version => Ok(String::from_utf8_lossy(&version.unwrap_or_default()).into_owned()),
    }
}

fn is_missing(error: &AdapterError) -> bool {
    matches!(error, AdapterError::MissingSymbol { .. })
}

/// What a stripped VM does not tell.
fn missing(variables: &Variables, bytecodes: &Sets) -> Vec<String> {
    let lacks = |names: &[&str]| names.iter().any(|name| variables.at(name).is_none());
    let mut limits = Vec::new();
    if variables.is_stripped() {
        let text = "this VM is stripped: its exported functions tell the code zone";
        limits.push(text.to_owned());
    }
    if lacks(&["trampolineTableIndex", "trampolineAddresses"]) {
        limits.push("this VM does not tell its trampolines".to_owned());
    }
    if lacks(&["hiddenRootsObj", "specialObjectsOop"]) {
        limits.push("this VM does not tell its objects: methods have no names and maps".to_owned());
    }
    if lacks(&IN_PROGRESS) || lacks(&[COMPACTIONS, "statFullGCs", "statScavenges"]) {
        let text = "this VM does not tell its collections: names may be wrong if one moved objects \
                    while vmscope read them";
        limits.push(text.to_owned());
    }
    if bytecodes.told.is_none() {
        let text = "this VM does not tell its bytecodes: vmscope uses those of known VMs";
        limits.push(text.to_owned());
    }
    limits
}

/// The module with a Cog VM, and its variables.
fn find(process: &ProcessView) -> Result<Option<(LoadedModule, Variables)>, AdapterError> {
    let mappings = process.mappings();
    if !mappings.iter().any(MapEntry::is_for_generated_code) {
        return Ok(None);
    }
    let program = process.program().as_bytes();
    let mut modules = process.modules();
    modules.sort_by_key(|module| module.path != program);
    for module in modules {
        if module.code_bytes() > MOST_CODE {
            continue;
        }
        match Variables::of(process, &module) {
            Ok(None) | Err(AdapterError::Symbols(_)) => {}
            Ok(Some(variables)) => return Ok(Some((module, variables))),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
