//! What the modules of a process bring along to name their code: build-id, symbol
//! tables, line information, and whether the file on disk is still the one that runs.
//! The session opens them so, and the symbolizer will find just that.

use std::path::PathBuf;

use vmscope_process::{MapsError, Modules};
use vmscope_records::{Module, ModuleState, Pid, TimeNs};
use vmscope_symbolizer::native::{self, DwarfPlace, Survey};

use crate::binaries::SessionBinaries;

/// Modules looked at; some programs map thousands of files.
const MODULES_MAX: usize = 256;

/// Which symbol tables a module has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    /// `.symtab`: every function.
    pub symtab: bool,
    /// `.dynsym`: exported functions alone.
    pub dynsym: bool,
    /// `.gnu_debugdata`: a small compressed `.symtab`.
    pub mini_debuginfo: bool,
}

/// Where a module's DWARF is: lines and inlined functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dwarf {
    /// In the module itself.
    Embedded,
    /// In a debug file of its own.
    Separate(PathBuf),
    /// Nowhere that was looked at.
    None,
}

/// Whether the file can be read, and is the one that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileState {
    /// It can, and it is.
    Same,
    /// Another file has its name now.
    Replaced,
    /// No file has its name any more.
    Deleted,
    /// It can't be opened; why.
    Unreadable(String),
    /// It is mapped for execution, and not an ELF file.
    NotElf,
}

/// A file that a process executes code from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleRow {
    /// Its path in the process's own file system.
    pub path: PathBuf,
    /// Its build-id in hexadecimal; `None` where it has none.
    pub build_id: Option<String>,
    /// Its symbol tables, those of its debug file included.
    pub symbols: Symbols,
    /// Its line information.
    pub dwarf: Dwarf,
    /// Whether the file is the one that runs.
    pub state: FileState,
    /// Whether the one that runs could be read, under whatever name.
    pub opened: bool,
}

/// The modules of process `pid`: files that are mapped executable, each once; and how
/// many more there are than are looked at (256).
///
/// # Errors
/// [`MapsError`] when its mappings can't be read.
pub fn of_process(pid: Pid) -> Result<(Vec<ModuleRow>, usize), MapsError> {
    let mut modules = Modules::new();
    modules.scan(pid, TimeNs(0))?;
    let binaries = SessionBinaries(&modules);
    let files = || {
        modules
            .iter()
            .filter(|(module, _)| module.state != ModuleState::Vdso)
    };
    let mut rows: Vec<ModuleRow> = files()
        .take(MODULES_MAX)
        .map(|(module, file)| row(module, file.is_some(), native::survey(module, &binaries)))
        .collect();
    rows.sort_by(|a, b| a.path.cmp(&b.path));
    Ok((rows, files().count().saturating_sub(MODULES_MAX)))
}

fn row(module: &Module, opened: bool, survey: Result<Survey, String>) -> ModuleRow {
    let state = match (&module.state, &survey) {
        (ModuleState::Opened, Err(_)) if opened => FileState::NotElf,
        (ModuleState::Opened | ModuleState::Vdso, _) => FileState::Same,
        (ModuleState::Deleted, _) => FileState::Deleted,
        (ModuleState::Replaced, _) => FileState::Replaced,
        (ModuleState::Unreadable(why), _) => FileState::Unreadable(why.clone()),
        (_, _) => FileState::Unreadable("not known".to_owned()),
    };
    let survey = survey.unwrap_or_default();
    let build_id = module.build_id.as_ref().or(survey.build_id.as_ref());
    ModuleRow {
        path: PathBuf::from(&module.path),
        build_id: build_id.map(ToString::to_string),
        symbols: Symbols {
            symtab: survey.symtab,
            dynsym: survey.dynsym,
            mini_debuginfo: survey.mini_debuginfo,
        },
        dwarf: match survey.dwarf {
            DwarfPlace::Embedded => Dwarf::Embedded,
            DwarfPlace::Separate(path) => Dwarf::Separate(PathBuf::from(path)),
            DwarfPlace::None => Dwarf::None,
        },
        state,
        opened,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_has_symbols_and_lines() {
        let (rows, left_out) = of_process(Pid(std::process::id())).expect("our maps");
        let exe = std::env::current_exe().expect("a path");
        let me = rows
            .iter()
            .find(|row| row.path == exe)
            .expect("the test itself");
        assert_eq!(left_out, 0);
        assert_eq!(me.state, FileState::Same);
        assert_eq!(me.dwarf, Dwarf::Embedded);
        assert!(me.symbols.symtab && me.opened);
    }

    #[test]
    fn what_became_of_the_file_is_told() {
        let module = |state| Module {
            key: vmscope_records::ModuleKey(0),
            time: TimeNs(0),
            path: "/a".to_owned(),
            build_id: None,
            device: 0,
            inode: 1,
            size: 0,
            main: false,
            state,
        };
        let poll = |state, opened| row(&module(state), opened, Err("no".to_owned())).state;
        assert_eq!(poll(ModuleState::Opened, true), FileState::NotElf);
        assert_eq!(poll(ModuleState::Deleted, false), FileState::Deleted);
        assert_eq!(poll(ModuleState::Replaced, false), FileState::Replaced);
        let why = || "not a regular file".to_owned();
        assert_eq!(
            poll(ModuleState::Unreadable(why()), false),
            FileState::Unreadable(why())
        );
    }
}
