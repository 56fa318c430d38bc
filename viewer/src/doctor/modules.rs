//! Symbol sources of a process's modules, opened as in a session: build-id, symbol tables, line
//! information, state of the file on disk.

use std::path::PathBuf;

use vmscope_process::{MapsError, Modules};
use vmscope_records::{Module, ModuleState, Pid, TimeNs, is_shared_memory};
use vmscope_symbolizer::native::{self, Survey};

use crate::binaries::SessionBinaries;

/// Maximum number of examined modules; some programs map thousands of files.
const MODULES_MAX: usize = 256;

/// State of the file at a module's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileState {
    /// Readable, and the file that runs.
    Same,
    /// Another file has its name now.
    Replaced,
    Deleted,
    /// The reason.
    Unreadable(String),
    /// Mapped for execution, but no ELF file.
    NotElf,
}

/// A file with executed code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleRow {
    /// Path in the process's own file system.
    pub path: PathBuf,
    pub state: FileState,
    /// Whether the running file was readable, under any name.
    pub opened: bool,
    /// Empty for unreadable files.
    pub survey: Survey,
}

impl ModuleRow {
    /// Whether the file is an ELF file, as far as vmscope can read it.
    pub fn may_be_elf(&self) -> bool {
        self.state != FileState::NotElf
    }
}

/// Files that process `pid` maps executable, each once, at most 256; and the number of further
/// ones.
///
/// # Errors
/// [`MapsError`] for unreadable mappings.
pub fn of_process(pid: Pid) -> Result<(Vec<ModuleRow>, usize), MapsError> {
    let mut modules = Modules::new();
    modules.scan(pid, TimeNs(0))?;
    let binaries = SessionBinaries(&modules);
    let is_file = |module: &Module| {
        module.state != ModuleState::Vdso && !is_shared_memory(module.path.as_bytes())
    };
    let files = || modules.iter().filter(|(module, _)| is_file(module));
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
        (_, _) => FileState::Unreadable("unknown reason".to_owned()),
    };
    let mut survey = survey.unwrap_or_default();
    if let Some(build_id) = &module.build_id {
        survey.build_id = Some(build_id.clone());
    }
    ModuleRow {
        path: PathBuf::from(&module.path),
        state,
        opened,
        survey,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::Object as _;

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
        // CI builds without debug information.
        let bytes = std::fs::read(&exe).expect("our file");
        let file = object::File::parse(&*bytes).expect("ELF");
        let place = match file.section_by_name(".debug_info") {
            Some(_) => native::DwarfPlace::Embedded,
            None => native::DwarfPlace::None,
        };
        assert_eq!(me.survey.dwarf, place);
        assert!(me.survey.symtab && me.opened);
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
