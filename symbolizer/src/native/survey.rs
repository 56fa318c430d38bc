//! Sources of symbols for a module, without reading symbols.

use goblin::elf::section_header::SHT_NOBITS;
use vmscope_records::{BuildId, Module};

use super::bytes::Binaries;
use super::debug_file;
use super::dwarf::Sections;
use super::elf::Elf;
use super::notes;

/// Location of a module's DWARF (lines, inlined functions).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DwarfPlace {
    /// In the module itself.
    Embedded,
    /// In a debug file with this path.
    Separate(String),
    /// Not found.
    #[default]
    None,
}

/// Symbol sources of a module and its debug file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// The module's build-id.
    pub build_id: Option<BuildId>,
    /// Whether module or debug file has a `.symtab`: all functions.
    pub symtab: bool,
    /// Whether the module has a `.dynsym`: exported functions.
    pub dynsym: bool,
    /// Whether the module has a `.gnu_debugdata`: a small compressed `.symtab`.
    pub mini_debuginfo: bool,
    /// Location of its DWARF.
    pub dwarf: DwarfPlace,
}

/// Surveys `module` and its debug file. Reads only headers, section tables and notes.
///
/// # Errors
/// The reason: no file, or no ELF file.
pub fn survey(module: &Module, binaries: &dyn Binaries) -> Result<Survey, String> {
    let file = binaries.module(module)?;
    let elf = Elf::open(&*file).map_err(|error| error.to_string())?;
    let mut survey = Survey {
        build_id: notes::build_id(&elf),
        symtab: has(&elf, ".symtab"),
        dynsym: has(&elf, ".dynsym"),
        mini_debuginfo: has(&elf, ".gnu_debugdata"),
        dwarf: DwarfPlace::None,
    };
    if Sections::are_in(&elf) {
        survey.dwarf = DwarfPlace::Embedded;
    } else if let Some(found) = debug_file::separate(&module.path, &elf, binaries, &mut Vec::new())
        && let Ok(debug) = Elf::open(&*found.bytes)
    {
        survey.symtab |= has(&debug, ".symtab");
        if Sections::are_in(&debug) {
            survey.dwarf = DwarfPlace::Separate(found.path);
        }
    }
    Ok(survey)
}

fn has(elf: &Elf<'_>, name: &str) -> bool {
    let section = elf.section(name).and_then(|index| elf.sections.get(index));
    section.is_some_and(|section| section.kind != SHT_NOBITS)
}
