//! What there is to name a module's code with, without naming anything.

use goblin::elf::section_header::SHT_NOBITS;
use vmscope_records::{BuildId, Module};

use super::bytes::Binaries;
use super::debug_file;
use super::dwarf::Sections;
use super::elf::Elf;
use super::notes;

/// Where a module's DWARF (lines, inlined functions) is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DwarfPlace {
    /// In the module itself.
    Embedded,
    /// In a debug file of its own: its path.
    Separate(String),
    /// Nowhere that was looked at.
    #[default]
    None,
}

/// What a module and its debug file bring along.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Its build-id.
    pub build_id: Option<BuildId>,
    /// Whether there is a `.symtab`, its debug file's included: every function.
    pub symtab: bool,
    /// Whether there is a `.dynsym`: exported functions.
    pub dynsym: bool,
    /// Whether there is a `.gnu_debugdata`: a small compressed `.symtab`.
    pub mini_debuginfo: bool,
    /// Where its DWARF is.
    pub dwarf: DwarfPlace,
}

/// Looks at `module`'s file and asks `binaries` for its debug file. Reads headers,
/// section tables and notes only.
///
/// # Errors
/// Why there is nothing to look at: the file can't be had, or is no ELF file.
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

/// Whether a section is there with its contents.
fn has(elf: &Elf<'_>, name: &str) -> bool {
    let section = elf.section(name).and_then(|index| elf.sections.get(index));
    section.is_some_and(|section| section.kind != SHT_NOBITS)
}
