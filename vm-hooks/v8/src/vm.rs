//! V8 in a process: its version, layout and tables, all by the symbols of its module.

use rustc_hash::FxHashMap;
use vmscope_process::pages::Pages;
use vmscope_process::{AdapterError, MapEntry, Memory, ProcessView, Symbol, monotonic_time};
use vmscope_records::Avma;

use crate::builtins;
use crate::bytecodes::{self, HANDLERS};
use crate::contents::Contents;
use crate::debug::{self, Debug};
use crate::fit::Fit;
use crate::isolate::{self, Isolate, Tables};
use crate::object::{Heap, Tagged};
use crate::product::{NODE, Product};
use crate::registry::{self, Streams};
use crate::spaces;
use crate::variables::{PLATFORM, REFERENCES, ROOTS, Table, Variables};
use crate::versions::{Layout, Registry};
use crate::wasm::{self, Wasm};

/// Names of V8's variables.
pub(crate) const VERSION: [&str; 4] = [
    "_ZN2v88internal7Version6major_E",
    "_ZN2v88internal7Version6minor_E",
    "_ZN2v88internal7Version6build_E",
    "_ZN2v88internal7Version6patch_E",
];
const TRUSTED: &str = "_ZN2v88internal15ThreadIsolation13trusted_data_E";

/// Begin of the names of builtins.
pub const BUILTINS: &str = "Builtins_";

/// Maximum number of symbols of constants, builtins and classes.
const MAX_SYMBOLS: usize = 1 << 16;

/// Maximum number of names in a table.
const MAX_NAMES: u64 = 1 << 13;

/// Longest name.
const MAX_NAME: usize = 256;

/// A V8.
#[derive(Clone, Debug)]
pub struct V8 {
    /// Version in V8's notation: `12.4.254.21`.
    pub version: String,
    /// Program with V8.
    pub product: Product,
    /// Where V8 keeps its data.
    pub layout: Layout,
    /// What confirmed the layout of an unknown version; `None` for known versions.
    pub fit: Option<Fit>,
    /// The binary's constants.
    pub debug: Debug,
    /// WebAssembly; `None` if its variables are unknown.
    pub wasm: Option<Wasm>,
    platform: Option<Avma>,
    trusted: Option<Avma>,
    references: Names,
    roots: Names,
    /// Symbols of constants, builtins, classes and tables of instructions.
    pub(crate) symbols: Vec<Symbol>,
    /// Whether the program lacks symbols of builtins; `symbols` has them from V8's data.
    pub(crate) lacks_builtins: bool,
}

/// Names of a table's entries, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// Names without parentheses.
    names: Vec<Box<str>>,
    indices: FxHashMap<String, usize>,
}

impl Names {
    fn read(memory: &dyn Memory, table: Option<Table>) -> Result<Self, AdapterError> {
        let Some(table) = table else {
            return Ok(Names::default());
        };
        let pages = Pages::new(memory);
        let failed = AdapterError::reading("table of names");
        let pointers = pages.read_u64s(table.address, table.count, MAX_NAMES as usize);
        let names = pointers.map_err(&failed)?.into_iter().map(|at| {
            let name = match pages.read_c_string(Avma(at), MAX_NAME) {
                Err(error) if error.is_final() => return Err(failed(error)),
                name => name.unwrap_or_default(),
            };
            Ok(String::from_utf8_lossy(&name).into_owned())
        });
        let names: Vec<String> = names.collect::<Result<_, _>>()?;
        if table.count > 0 && names.iter().all(String::is_empty) {
            // The loader has not relocated the table.
            return Err(AdapterError::NotReady {
                what: "table of names",
            });
        }
        // V8 14 and later write `name()` in the table of references.
        let plain = names.iter().map(|name| name.trim_end_matches("()").into());
        let plain = plain.collect();
        let mut indices = FxHashMap::default();
        for (index, name) in names.into_iter().enumerate() {
            indices.entry(name).or_insert(index);
        }
        Ok(Names {
            names: plain,
            indices,
        })
    }

    /// Number of names.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// Index of the entry with this name.
    pub fn index(&self, name: &str) -> Option<usize> {
        self.indices.get(name).copied()
    }

    /// Index of the entry whose name ends with `name`.
    pub fn ending(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|other| other.ends_with(name))
    }
}

/// Error for a program without the symbol of V8's version. Unstripped builds of Node.js have the symbol; Deno has
/// no such builds.
fn missing(product: &'static str, symbol: &str) -> AdapterError {
    match product {
        NODE => AdapterError::MissingSymbol {
            name: symbol.to_owned(),
        },
        _ => AdapterError::OtherVm {
            vm: product.to_owned(),
            why: "the program does not tell the places of V8's data",
            remedy: "",
        },
    }
}

/// Maximum age of a process with a starting V8, in nanoseconds.
const YOUNG: u64 = 10_000_000_000;

/// Makes the refusal of a young process temporary: checks need more objects.
fn while_young(process: &ProcessView, error: AdapterError) -> AdapterError {
    let age = process.started().zip(monotonic_time());
    let is_young = age.is_some_and(|(started, now)| now.since(started).0 < YOUNG);
    match error {
        AdapterError::OtherVm { .. } if is_young => AdapterError::NotReady {
            what: "data, by which vmscope checks the layout of an unknown V8,",
        },
        error => error,
    }
}

impl V8 {
    /// The V8 in `process`; `None` if it has none.
    ///
    /// # Errors
    /// [`AdapterError::OtherVm`] for an unknown version whose layout no check confirms;
    /// [`AdapterError::NotReady`] while V8 starts; unreadable symbols; failed reads.
    pub fn open(process: &ProcessView) -> Result<Option<Self>, AdapterError> {
        let Some(product) = Product::of(process) else {
            return Ok(None);
        };
        let module = product.module.clone();
        let memory = process.memory();
        let others = [
            PLATFORM,
            TRUSTED,
            REFERENCES,
            ROOTS,
            wasm::STATE,
            wasm::GETTER,
            debug::PREFIX,
            BUILTINS,
            spaces::PREFIX,
            bytecodes::TABLES,
            bytecodes::RUNTIME,
        ];
        // One pass over the program's symbols takes a tenth of the time to the first name.
        let begins = [&VERSION[..], &others].concat();
        let all = process.symbols_beginning(&module, &begins, MAX_SYMBOLS)?;
        let symbol = |name: &str| all.iter().find(|symbol| symbol.name == name);
        let address = |name: &str| symbol(name).map(|symbol| symbol.address);
        let mut numbers = [0; 4];
        for (number, name) in numbers.iter_mut().zip(VERSION) {
            let at = address(name).ok_or_else(|| missing(product.name, name))?;
            let read = memory.read_u32(at);
            *number = read.map_err(AdapterError::reading("version"))?;
        }
        let version = numbers.map(|number| number.to_string()).join(".");
        let debug = Debug::read(&all, memory)?;
        let is_compressed = debug.get("TaggedSize").is_some_and(|bytes| bytes != 8);
        if is_compressed {
            return Err(AdapterError::OtherVm {
                vm: format!("V8 {version}"),
                why: "its pointers are compressed",
                remedy: "",
            });
        }
        let [major, minor, ..] = numbers;
        let known = Layout::new((major, minor), &debug);
        if known.is_none() && product.name != NODE {
            return Err(AdapterError::OtherVm {
                vm: format!("V8 {version}"),
                why: "vmscope knows its data in Node.js only",
                remedy: "",
            });
        }
        let candidates = Layout::nearest((major, minor), &debug);
        let layout = known.unwrap_or(candidates[0]);
        let mut variables = Variables::by_symbols(&all);
        let has_builtins = all.iter().any(|symbol| symbol.name.starts_with(BUILTINS));
        let contents = match product.name == NODE && !has_builtins {
            true => {
                if let Some(platform) = variables.platform {
                    // The builtins' addresses stand in isolates.
                    isolate::list(platform, memory)?;
                }
                Some(Contents::read(process, &module)?)
            }
            false => None,
        };
        if variables.platform.is_none()
            && let Some(contents) = &contents
        {
            variables = Variables::by_contents(process, &module, contents)?;
        }
        let mut vm = V8 {
            references: Names::read(memory, variables.references)?,
            roots: Names::read(memory, variables.roots)?,
            wasm: known.and_then(|known| {
                let places = (address(wasm::STATE), address(wasm::GETTER));
                Wasm::find(memory, places, known.wasm)
            }),
            fit: None,
            platform: variables.platform,
            trusted: address(TRUSTED),
            symbols: all,
            lacks_builtins: false,
            version,
            product,
            layout,
            debug,
        };
        if let Some(contents) = contents {
            vm.name_by_contents(&contents, memory)?;
        }
        if known.is_none() {
            let fit = vm.fit_layout(process, &candidates);
            vm.fit = Some(fit.map_err(|error| while_young(process, error))?);
        }
        Ok(Some(vm))
    }

    /// Finds builtins and tables of instructions that have no symbols.
    fn name_by_contents(
        &mut self,
        contents: &Contents,
        memory: &dyn Memory,
    ) -> Result<(), AdapterError> {
        let isolates = self.isolates(memory)?;
        let isolate = *isolates
            .first()
            .ok_or(AdapterError::NotReady { what: "isolate" })?;
        let tables = self.tables(isolate, memory)?;
        if let Some(handlers) = tables.reference(isolate, HANDLERS, memory)? {
            let handlers = bytecodes::handlers(handlers, memory)?;
            let builtins = builtins::symbols(contents, isolate, &handlers, memory)?;
            self.lacks_builtins = true;
            self.symbols.extend(builtins);
        }
        // Some releases have symbols of some tables.
        let mut found = bytecodes::search::symbols(contents);
        found.retain(|table| self.symbols.iter().all(|known| known.name != table.name));
        self.symbols.extend(found);
        Ok(())
    }

    /// Symbols of V8's builtins, with [`BUILTINS`] before their names; none if they are unknown.
    pub fn builtins(&self) -> impl Iterator<Item = &Symbol> {
        let symbols = self.symbols.iter();
        symbols.filter(|symbol| symbol.name.starts_with(BUILTINS))
    }

    /// V8's heap, read through `memory`.
    #[must_use]
    pub fn heap<'m>(&'m self, memory: &'m dyn Memory) -> Heap<'m> {
        Heap {
            memory,
            layout: &self.layout,
        }
    }

    /// Numbers that change with new isolates.
    ///
    /// # Errors
    /// A missing symbol; failed reads.
    pub fn isolates_stamp(&self, memory: &dyn Memory) -> Result<[u64; 2], AdapterError> {
        isolate::count(self.platform()?, memory)
    }

    fn platform(&self) -> Result<Avma, AdapterError> {
        self.platform.ok_or_else(|| AdapterError::MissingSymbol {
            name: PLATFORM.to_owned(),
        })
    }

    /// All isolates, of the main thread and of workers.
    ///
    /// # Errors
    /// [`AdapterError::NotReady`] before the first; a missing symbol; failed reads.
    pub fn isolates(&self, memory: &dyn Memory) -> Result<Vec<Isolate>, AdapterError> {
        isolate::list(self.platform()?, memory)
    }

    /// Tables of an isolate. All isolates have them at equal offsets.
    ///
    /// # Errors
    /// [`AdapterError::NotReady`] while V8 starts; failed reads.
    pub fn tables(&self, isolate: Isolate, memory: &dyn Memory) -> Result<Tables, AdapterError> {
        let named = (&self.references, &self.roots);
        Tables::find(isolate, named, memory)
    }

    /// All instruction streams of all isolates.
    ///
    /// # Errors
    /// A missing symbol; failed reads.
    pub fn streams(
        &self,
        process: &ProcessView,
        heap: &Heap<'_>,
        (tables, isolate): (&Tables, Isolate),
    ) -> Result<Streams, AdapterError> {
        match self.layout.registry {
            Registry::Trees { allocations } => {
                registry::by_trees(process.memory(), self.trusted()?, allocations)
            }
            Registry::Pages { .. } => {
                let maps = self.maps_in_pages(tables, isolate, heap.memory)?;
                registry::by_pages(heap, &process.mappings(), maps)
            }
        }
    }

    /// Instruction streams that may hold `addresses` (ascending): for each, the last before it.
    ///
    /// # Errors
    /// As [`V8::streams`].
    pub fn streams_at(
        &self,
        process: &ProcessView,
        heap: &Heap<'_>,
        (tables, isolate): (&Tables, Isolate),
        addresses: &[Avma],
    ) -> Result<Vec<Avma>, AdapterError> {
        if let Registry::Trees { allocations } = self.layout.registry {
            let trusted = self.trusted()?;
            return registry::by_trees_at(process.memory(), trusted, allocations, addresses);
        }
        let mut mappings = process.mappings().to_vec();
        let first_of = |entry: &MapEntry| addresses.partition_point(|at| *at < entry.start);
        mappings.retain(|entry| {
            let first = addresses.get(first_of(entry));
            first.is_some_and(|at| entry.contains(*at))
        });
        let maps = self.maps_in_pages(tables, isolate, heap.memory)?;
        let streams = registry::by_pages(heap, &mappings, maps)?.addresses;
        let last_before = |at: &Avma| {
            let after = streams.partition_point(|stream| stream <= at);
            streams.get(after.checked_sub(1)?).copied()
        };
        let mut found: Vec<Avma> = addresses.iter().filter_map(last_before).collect();
        found.dedup();
        Ok(found)
    }

    fn trusted(&self) -> Result<Avma, AdapterError> {
        self.trusted.ok_or_else(|| AdapterError::MissingSymbol {
            name: TRUSTED.to_owned(),
        })
    }

    /// Maps of instruction streams and of free space.
    fn maps_in_pages(
        &self,
        tables: &Tables,
        isolate: Isolate,
        memory: &dyn Memory,
    ) -> Result<(Tagged, Tagged), AdapterError> {
        let root = |name| tables.root(isolate, name, memory);
        let stream = match self.layout.stream.code {
            Some(_) => "instruction_stream_map",
            None => "code_map",
        };
        Ok((root(stream)?, root("free_space_map")?))
    }
}
