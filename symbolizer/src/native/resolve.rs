//! Symbols of the hits in a module.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use vmscope_records::{FileOffset, Module, ModuleState, SymbolOwner, SymbolSource, Symbols};

use super::assemble::{self, Known};
use super::bytes::{Binaries, MemoryFile};
use super::demangle::demangle;
use super::dwarf::{self, Place, Sections};
use super::elf::{Elf, ElfError, Section};
use super::table::{Answer, Lookup, NameAt};
use super::{debug_file, decompress, limits, notes, plt};

/// Options of [`resolve_module`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ResolveOptions {
    /// Whether to find source lines and inlined functions. Without this, debug information stays
    /// unread.
    pub lines: bool,
    /// Maximum number of threads.
    pub threads: usize,
    /// Maximum bytes of debug sections loaded per module; larger modules get no lines. Mapped files
    /// only cost touched pages.
    pub debug_bytes_max: u64,
}

impl Default for ResolveOptions {
    /// With lines, on all processors, at most 3 GiB of debug sections.
    fn default() -> Self {
        ResolveOptions {
            lines: true,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            debug_bytes_max: 3 << 30,
        }
    }
}

/// Symbols of the hits in all `modules`, in the modules' order; resolves several modules at a time
/// ([`resolve_module`]).
#[must_use]
pub fn resolve_all(
    modules: &[(&Module, &[FileOffset])],
    binaries: &dyn Binaries,
    options: &ResolveOptions,
) -> Vec<Symbols> {
    let workers = options.threads.min(modules.len());
    if workers <= 1 {
        return modules
            .iter()
            .map(|(module, hits)| resolve_module(module, hits, binaries, options))
            .collect();
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(vec![None; modules.len()]);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some((module, hits)) = modules.get(index) else {
                        break;
                    };
                    let symbols = resolve_module(module, hits, binaries, options);
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    done[index] = Some(symbols);
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    modules
        .iter()
        .zip(done)
        .map(|((module, _), symbols)| symbols.unwrap_or_else(|| no_symbols(module, String::new())))
        .collect()
}

/// The symbols of `module` at `hits` (ascending, without duplicates): functions and, by option,
/// lines and inlined frames. Each gap between symbols with hits becomes an entry without a name;
/// its linkage name is the section's name. A function around another function with hits comes in
/// pieces.
///
/// Never fails: [`Symbols::note`] lists omissions.
#[must_use]
pub fn resolve_module(
    module: &Module,
    hits: &[FileOffset],
    binaries: &dyn Binaries,
    options: &ResolveOptions,
) -> Symbols {
    let file = match binaries.module(module) {
        Ok(file) => file,
        Err(why) => return no_symbols(module, why),
    };
    let elf = match Elf::open(&*file) {
        Ok(elf) => elf,
        Err(error) => return no_symbols(module, describe(&error)),
    };
    if let Err(why) = is_the_one_that_ran(module, &elf, file.len()) {
        return no_symbols(module, why);
    }
    let mut note = Vec::new();
    if let Some(damage) = &elf.damage {
        note.push(format!("no sections: {}", describe(damage)));
    }
    let functions = resolve_elf(&module.path, &elf, hits, binaries, options, &mut note);
    Symbols {
        owner: SymbolOwner::Module(module.key),
        functions,
        note: note.join("; "),
    }
}

fn no_symbols(module: &Module, note: String) -> Symbols {
    Symbols {
        owner: SymbolOwner::Module(module.key),
        functions: Vec::new(),
        note,
    }
}

fn describe(error: &ElfError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// Wrong names are worse than none: another build has other functions at these addresses.
fn is_the_one_that_ran(module: &Module, elf: &Elf<'_>, file_len: u64) -> Result<(), String> {
    const OTHER: &str = "the file on disk differs from the one that ran";
    match (&module.build_id, notes::build_id(elf)) {
        (Some(expected), Some(actual)) if *expected == actual => Ok(()),
        (Some(expected), Some(actual)) => {
            Err(format!("{OTHER}: build-id {actual}, expected {expected}"))
        }
        (Some(expected), None) => {
            let damage = elf.damage.as_ref();
            let damage = damage.map_or(String::new(), |why| format!("; {}", describe(why)));
            Err(format!("{OTHER}: no build-id, expected {expected}{damage}"))
        }
        (None, _) if module.size != 0 && module.size != file_len => Err(format!(
            "{OTHER}: {file_len} bytes, expected {}",
            module.size
        )),
        (None, _) => match module.state {
            ModuleState::Deleted => Err(format!("{OTHER} (deleted)")),
            ModuleState::Replaced => Err(format!("{OTHER} (replaced)")),
            _ => Ok(()),
        },
    }
}

/// A symbol table section, and the source of its names.
struct Table<'e, 'f> {
    elf: &'e Elf<'f>,
    section: usize,
    source: SymbolSource,
}

impl<'e, 'f> Table<'e, 'f> {
    fn of(elf: &'e Elf<'f>, name: &str, source: SymbolSource) -> Option<Self> {
        use goblin::elf::section_header::SHT_NOBITS;
        let section = elf.section(name)?;
        let has_contents = elf.sections[section].kind != SHT_NOBITS;
        has_contents.then_some(Table {
            elf,
            section,
            source,
        })
    }
}

fn resolve_elf(
    path: &str,
    elf: &Elf<'_>,
    hits: &[FileOffset],
    binaries: &dyn Binaries,
    options: &ResolveOptions,
    note: &mut Vec<String>,
) -> Vec<vmscope_records::NativeFunction> {
    let mut svmas: Vec<u64> = hits
        .iter()
        .filter_map(|hit| elf.address_of(hit.0))
        .map(|(_, address)| address)
        .collect();
    svmas.sort_unstable();
    svmas.dedup();
    if svmas.is_empty() {
        if !hits.is_empty() {
            note.push("no sample lies in a code segment".to_owned());
        }
        return Vec::new();
    }

    let own = Table::of(elf, ".symtab", SymbolSource::SymbolTable);
    let debug_file = if own.is_none() || (options.lines && !Sections::are_in(elf)) {
        debug_file::separate(path, elf, binaries, note)
    } else {
        None
    };
    let debug_elf = debug_file
        .as_ref()
        .and_then(|file| Elf::open(&*file.bytes).ok());
    let theirs = debug_elf
        .as_ref()
        .filter(|_| own.is_none())
        .and_then(|elf| Table::of(elf, ".symtab", SymbolSource::SymbolTable));
    let mini_file = if own.is_none() && theirs.is_none() {
        mini_debug_info(elf, note)
    } else {
        None
    };
    let mini_elf = mini_file.as_ref().and_then(|file| Elf::open(file).ok());
    let mini = mini_elf
        .as_ref()
        .and_then(|elf| Table::of(elf, ".symtab", SymbolSource::MiniDebugInfo));
    match (&own, &theirs, &mini) {
        (None, None, None) if elf.section(".dynsym").is_some() => {
            note.push("stripped: .dynsym only".to_owned());
        }
        (None, None, None) => note.push("no symbol table".to_owned()),
        (None, None, Some(_)) => note.push("names from .gnu_debugdata".to_owned()),
        _ => {}
    }
    let tables: Vec<Table<'_, '_>> = [
        own,
        theirs,
        mini,
        Table::of(elf, ".dynsym", SymbolSource::DynamicSymbols),
    ]
    .into_iter()
    .flatten()
    .collect();
    let answers = search(&tables, &svmas, note);

    let places = if options.lines {
        let with_dwarf = if Sections::are_in(elf) {
            Some((elf, path))
        } else {
            let path = debug_file.as_ref().map_or("", |file| &*file.path);
            debug_elf
                .as_ref()
                .filter(|elf| Sections::are_in(elf))
                .map(|elf| (elf, path))
        };
        match with_dwarf {
            Some((with_dwarf, path)) => {
                find_places(elf, with_dwarf, path, &svmas, binaries, options, note)
            }
            None => {
                note.push("no line information".to_owned());
                Vec::new()
            }
        }
    } else {
        Vec::new()
    };

    let mut known = name_hits(elf, &tables, &svmas, answers);
    for (known, place) in known.iter_mut().zip(places) {
        known.add_place(place);
    }
    assemble::functions(elf, hits, &svmas, &known)
}

fn mini_debug_info(elf: &Elf<'_>, note: &mut Vec<String>) -> Option<MemoryFile> {
    let index = elf.section(".gnu_debugdata")?;
    let bytes = elf
        .section_bytes(index, limits::MINI_DEBUG_BYTES as u64)
        .and_then(|bytes| Ok(decompress::xz(&bytes)?));
    match bytes {
        Ok(bytes) => Some(MemoryFile(bytes)),
        Err(error) => {
            note.push(format!(".gnu_debugdata: {}", describe(&error)));
            None
        }
    }
}

/// Searches all symbol tables.
fn search(tables: &[Table<'_, '_>], svmas: &[u64], note: &mut Vec<String>) -> Vec<Answer> {
    let mut lookup = Lookup::new(svmas);
    for (number, table) in (0_u8..).zip(tables) {
        if let Err(error) = lookup.scan(table.elf, table.section, number) {
            let name = &table.elf.sections[table.section].name;
            note.push(format!("{name}: {}", describe(&error)));
        }
    }
    if lookup.truncated {
        note.push("too many overlapping symbols; some were omitted".to_owned());
    }
    lookup.answers()
}

/// Reads DWARF.
fn find_places(
    elf: &Elf<'_>,
    with_dwarf: &Elf<'_>,
    path: &str,
    svmas: &[u64],
    binaries: &dyn Binaries,
    options: &ResolveOptions,
    note: &mut Vec<String>,
) -> Vec<Option<Place>> {
    let sup_file = debug_file::alternate(path, with_dwarf, binaries, note);
    let sup = sup_file
        .as_ref()
        .and_then(|file| Elf::open(&*file.bytes).ok());
    let sections = match Sections::load(with_dwarf, sup.as_ref(), options.debug_bytes_max) {
        Ok(sections) => sections,
        Err(error) => {
            note.push(format!("no line information: {}", describe(&error)));
            return Vec::new();
        }
    };
    let is_code = |address| elf.is_code_address(address);
    let (places, shortfall) = dwarf::places(&sections, svmas, &is_code, options.threads);
    if shortfall.split_units > 0 {
        note.push(format!(
            "inlined functions of {} units are missing: vmscope does not read .dwo files",
            shortfall.split_units
        ));
    }
    if shortfall.damaged_units > 0 {
        let count = shortfall.damaged_units;
        note.push(format!("{count} damaged units of debug information"));
    }
    if shortfall.out_of_steps {
        note.push("debug information too large; some lines were omitted".to_owned());
    }
    places
}

/// Names all hits; those without a symbol after PLT stub or section.
fn name_hits(
    elf: &Elf<'_>,
    tables: &[Table<'_, '_>],
    svmas: &[u64],
    answers: Vec<Answer>,
) -> Vec<Known> {
    let stubs = plt::stubs(elf, svmas);
    let mut sections: Vec<&Section> = elf.sections.iter().filter(|s| s.is_code()).collect();
    sections.sort_by_key(|section| section.address);
    let mut names_bytes = 0_usize;
    let mut known: Vec<Known> = Vec::with_capacity(svmas.len());
    for (svma, answer) in svmas.iter().zip(answers) {
        let section = sections
            .partition_point(|section| section.address <= *svma)
            .checked_sub(1)
            .map(|index| sections[index])
            .filter(|section| *svma < section.end());
        let (low, high) = section.map_or((0, u64::MAX), |s| (s.address, s.end()));
        let next_stub = stubs.partition_point(|stub| stub.start <= *svma);
        let stub = next_stub
            .checked_sub(1)
            .and_then(|index| stubs.get(index))
            .filter(|stub| *svma < stub.end);
        let (start, end) = match &answer {
            Answer::Symbol {
                start, end, sized, ..
            } if *sized || (low <= *start && stub.is_none()) => (*start, *end),
            // A symbol without a size ends with its section.
            Answer::Symbol { end, .. } => (low, *end),
            Answer::Gap { start, end } => (*start, *end),
        };
        // Neighbouring hits are often in one function.
        if let Some(before) = known.last()
            && before.answer == answer
            && before.section_start == low
            && stub.is_none()
        {
            known.push(before.clone());
            continue;
        }
        let name = match &answer {
            Answer::Symbol {
                start,
                sized,
                names,
                ..
            } if *sized || (low <= *start && stub.is_none()) => best_name(tables, names),
            _ => None,
        };
        let (mut linkage_name, source, sized) = match (name, stub, section) {
            (Some((name, source)), ..) => {
                let sized = matches!(answer, Answer::Symbol { sized: true, .. });
                (name, source, sized)
            }
            (None, Some(stub), _) => (stub.name.clone(), SymbolSource::Plt, true),
            (None, None, section) => {
                let name = section.map_or_else(String::new, |section| section.name.clone());
                (name, SymbolSource::None, false)
            }
        };
        // Symbols of a hostile file may all have the same long name.
        names_bytes = names_bytes.saturating_add(linkage_name.len());
        while names_bytes > limits::ALL_NAMES_BYTES && linkage_name.len() > limits::CUT_NAME_BYTES {
            linkage_name.pop();
        }
        let (start, end) = match (source, stub) {
            (SymbolSource::Plt, Some(stub)) => (stub.start, stub.end),
            (_, _) if sized => (start, end),
            _ => (start.max(low), end.min(high)),
        };
        let name = match source {
            SymbolSource::None => String::new(),
            SymbolSource::Plt => linkage_name
                .strip_suffix("@plt")
                .map_or_else(String::new, |callee| format!("{}@plt", demangle(callee))),
            _ => demangle(&linkage_name),
        };
        known.push(Known {
            answer,
            section_start: low,
            start,
            end,
            linkage_name,
            name,
            source,
            sized,
            place: None,
        });
    }
    known
}

/// The best of a symbol's names: fewest leading underscores (`malloc` before `__libc_malloc`), then
/// alphabetical order, for equal results with all tables.
fn best_name(tables: &[Table<'_, '_>], names: &[NameAt]) -> Option<(String, SymbolSource)> {
    names
        .iter()
        .filter_map(|name| {
            let table = tables.get(usize::from(name.table))?;
            let strings = table.elf.sections.get(table.section)?.link;
            let text = plt::symbol_name(table.elf, strings, u64::from(name.offset))?;
            (!text.is_empty()).then_some((text, table.source))
        })
        .min_by_key(|(text, _)| {
            let plain = text.trim_start_matches('_');
            // All mangled names begin with an underscore.
            let underscores = match text.starts_with("_Z") || text.starts_with("_R") {
                true => 0,
                false => text.len() - plain.len(),
            };
            (underscores, text.clone())
        })
}
