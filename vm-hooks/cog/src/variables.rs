//! Addresses of the VM's variables. Symbols tell the addresses; in stripped VMs, exported accessors.

use rustc_hash::FxHashMap;
use vmscope_process::{AdapterError, LoadedModule, Memory, ProcessView, Symbol};
use vmscope_records::Avma;

use crate::accessors::{ACCESSORS, Accessor};
use crate::{interpreted, unwind, vm_data};

/// Variables of the code zone, all necessary: start, first method, end of methods, start of the array
/// of young referrers, end.
pub const ZONE: [&str; 5] = [
    "codeBase",
    "methodZoneBase",
    "mzFreeStart",
    "youngReferrers",
    "limitAddress",
];

/// Roots of names, necessary for names only.
const OBJECTS: [&str; 2] = ["hiddenRootsObj", "specialObjectsOop"];

/// The table of trampolines.
pub const TRAMPOLINES: [&str; 2] = ["trampolineTableIndex", "trampolineAddresses"];

/// Number of code compactions.
pub const COMPACTIONS: &str = "statCodeCompactionCount";

/// Numbers that change when the VM changes its code zone or moves objects.
pub const CHANGES: [&str; 8] = [
    "mzFreeStart",
    "methodCount",
    "openPICList",
    "methodBytesFreedSinceLastCompaction",
    COMPACTIONS,
    "statFullGCs",
    "statScavenges",
    "youngReferrers",
];

/// Numbers of which one at least changes when the VM makes, frees or moves code. A full collection frees all
/// inline caches. An inline cache gets another case without a change of these.
pub const CHANGES_OF_CODE: [&str; 6] = [
    "statFullGCs",
    "mzFreeStart",
    "methodCount",
    "openPICList",
    "methodBytesFreedSinceLastCompaction",
    COMPACTIONS,
];

/// Numbers that are 0 unless a collection or a code compaction is in progress.
pub const IN_PROGRESS: [&str; 2] = ["gcMode", "compactionInProgress"];

/// Constants of the VM that it calculates at its start.
const CONSTANTS: [&str; 10] = [
    "cmEntryOffset",
    "cmNoCheckEntryOffset",
    "cbNoSwitchEntryOffset",
    "classNameIndex",
    "metaclassNumSlots",
    "thisClassIndex",
    "generatorTable",
    "closedPICSize",
    "openPICSize",
    "interpreterVersion",
];

/// Every Cog VM has one of these symbols.
const SIGNS: [&str; 2] = ["mzFreeStart", "maxCogMethodAddress"];

/// Names of all variables, each once.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let code = [
        &ZONE[..],
        &OBJECTS,
        &TRAMPOLINES,
        &CHANGES,
        &IN_PROGRESS,
        &CONSTANTS,
    ];
    let others = vm_data::NAMES.into_iter().chain(unwind::NAMES);
    let mut names: Vec<&'static str> = Vec::new();
    let others = others.chain([&interpreted::NAMES[..]]);
    for name in code.into_iter().chain(others).flatten() {
        if !names.contains(name) {
            names.push(name);
        }
    }
    names.into_iter()
}

/// Addresses of the VM's variables.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    found: FxHashMap<&'static str, Symbol>,
    /// Some come from accessors: the VM is stripped.
    from_accessors: bool,
}

impl Variables {
    /// The variables of the VM in `module`; `None` if it has no Cog VM.
    ///
    /// # Errors
    /// Unreadable symbols, unreadable code of accessors.
    pub fn of(process: &ProcessView, module: &LoadedModule) -> Result<Option<Self>, AdapterError> {
        // Few names: most modules end here.
        let signs = process.symbols(module, &SIGNS)?;
        if signs.iter().all(Option::is_none) {
            return Ok(None);
        }
        let mut names: Vec<&'static str> = names().collect();
        let of_variables = names.len();
        names.extend(ACCESSORS.iter().map(|accessor| accessor.function));
        let symbols = process.symbols(module, &names)?;
        let (variables, functions) = symbols.split_at_checked(of_variables).unwrap_or_default();
        let mut all = Variables::default();
        for (name, symbol) in names.iter().zip(variables) {
            if let Some(symbol) = symbol {
                all.found.insert(name, symbol.clone());
            }
        }
        let is_cog = |name: &&'static str| {
            let has_accessor = |(accessor, function): (&Accessor, &Option<Symbol>)| {
                function.is_some() && accessor.variables.contains(name)
            };
            let accessors = ACCESSORS.iter().zip(functions);
            all.found.contains_key(*name) || { accessors }.any(has_accessor)
        };
        if !ZONE.iter().all(is_cog) {
            return Ok(None);
        }
        for (accessor, function) in ACCESSORS.iter().zip(functions) {
            if let Some(function) = function {
                all.take_accessor(accessor, function, process.memory())?;
            }
        }
        Ok(Some(all))
    }

    /// Adds the variables of an accessor that have no symbols.
    fn take_accessor(
        &mut self,
        accessor: &Accessor,
        function: &Symbol,
        memory: &dyn Memory,
    ) -> Result<(), AdapterError> {
        if accessor
            .variables
            .iter()
            .all(|name| self.at(name).is_some())
        {
            return Ok(());
        }
        for (name, address) in accessor.decode(function, memory)? {
            self.from_accessors |= !self.found.contains_key(name);
            self.found.entry(name).or_insert_with(|| Symbol {
                name: name.to_owned(),
                address,
                size: 0,
                kind: vmscope_process::SymbolKind::Object,
            });
        }
        Ok(())
    }

    /// Address of variable `name`, if known.
    #[must_use]
    pub fn at(&self, name: &str) -> Option<Avma> {
        self.found.get(name).map(|symbol| symbol.address)
    }

    /// Size of variable `name` in bytes; 0 if unknown.
    #[must_use]
    pub fn size(&self, name: &str) -> u64 {
        self.found.get(name).map_or(0, |symbol| symbol.size)
    }

    /// Address of variable `name`.
    ///
    /// # Errors
    /// [`AdapterError::MissingSymbol`].
    pub fn needed(&self, name: &str) -> Result<Avma, AdapterError> {
        self.at(name).ok_or_else(|| AdapterError::MissingSymbol {
            name: name.to_owned(),
        })
    }

    /// The number in variable `name`, one machine word; `None` if the variable is unknown.
    ///
    /// # Errors
    /// Failed reads.
    pub fn number(&self, memory: &dyn Memory, name: &str) -> Result<Option<u64>, AdapterError> {
        let Some(at) = self.at(name) else {
            return Ok(None);
        };
        let number = memory.read_pointer(at);
        Ok(Some(number.map_err(AdapterError::reading("variables"))?.0))
    }

    /// Whether the VM is stripped, so that its exported functions told where some variables are.
    #[must_use]
    pub fn is_stripped(&self) -> bool {
        self.from_accessors
    }
}
