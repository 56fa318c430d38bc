//! Opens the file of a mapping by several routes and verifies its identity.
//!
//! Device and inode identify files, but overlayfs and btrfs report other numbers in `stat(2)` than
//! in mappings. There, the build-id in the file must match process memory.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use nix::errno::Errno;
use vmscope_records::{Avma, BuildId, ModuleState, Pid};

use crate::attach::living;
use crate::{
    ElfFile, LiveMemory, MapEntry, Memory, ModuleFile, ProcessView, ReadAt, Root, SymbolError,
    build_id_in_memory, open_magic_link, own_root, read_maps,
};

/// A real vdso has two to four pages.
const MAX_VDSO_BYTES: u64 = 1 << 20;

/// Result of opening a module.
pub(crate) struct Opening {
    pub state: ModuleState,
    pub file: Option<Arc<ModuleFile>>,
    pub build_id: Option<BuildId>,
    /// Whether opening succeeded, or failed only for lack of descriptors.
    pub opened: bool,
}

impl Opening {
    pub fn of_vdso(image: &Arc<[u8]>) -> Self {
        let file = (!image.is_empty()).then(|| Arc::new(ModuleFile::from_image(Arc::clone(image))));
        Self {
            state: ModuleState::Vdso,
            build_id: file.clone().and_then(|file| build_id(&file)),
            file,
            opened: false,
        }
    }

    /// Opens the file (or image) of mapping `entry` of a core file.
    pub fn of_core(view: &ProcessView, entry: &MapEntry) -> Self {
        let opened = view.open_mapped(entry);
        let (file, state) = match opened {
            Ok(file) => (Some(file), ModuleState::Opened),
            Err(SymbolError::NotOpened { state, .. }) => (None, state),
            Err(error) => (None, ModuleState::Unreadable(error.to_string())),
        };
        let in_memory = || {
            let at = header_of(entry, &view.mappings())?;
            build_id_in_memory(view.memory(), at).ok()?
        };
        Self {
            state,
            build_id: file.as_ref().and_then(build_id).or_else(in_memory),
            opened: file.is_some(),
            file,
        }
    }

    /// Opens the file of mapping `entry` in process `pid`; `maps` are the process's mappings, if
    /// known.
    pub fn of_file(pid: Pid, entry: &MapEntry, maps: Option<&[MapEntry]>) -> Self {
        let mut other_file = false;
        let mut failure: Option<io::Error> = None;
        let mut memory_build_id = None;
        let mut in_memory = || {
            memory_build_id
                .get_or_insert_with(|| mapped_build_id(pid, entry, maps))
                .clone()
        };
        let (start, end) = (entry.start.get(), entry.end.get());
        let id = living(pid);
        let ways = [
            // The file itself, even if deleted; needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE.
            Way::Link(format!("/proc/{id}/map_files/{start:x}-{end:x}")),
            Way::Path,
            // The program itself, even if deleted.
            Way::Link(format!("/proc/{id}/exe")),
            // An exited process has no root. Our own may be the same; the file's identity proves
            // it.
            Way::OwnRoot,
        ];
        for way in ways {
            let (file, is_path) = match way {
                Way::Link(link) => (open_magic_link(Path::new(&link)), false),
                Way::Path => {
                    let path = entry.path().unwrap_or_default();
                    let root = Root::of_process(pid);
                    (root.and_then(|root| open_named(&root, path, entry)), true)
                }
                Way::OwnRoot => {
                    let path = entry.path().unwrap_or_default();
                    (
                        own_root().and_then(|root| open_named(&root, path, entry)),
                        false,
                    )
                }
            };
            let file = match file {
                Ok(file) => Arc::new(file),
                Err(error) => {
                    if is_path {
                        failure = Some(error);
                    }
                    continue;
                }
            };
            let own = build_id(&file);
            let same = file
                .identity()
                .is_ok_and(|identity| identity == (entry.device, entry.inode));
            if same || (own.is_some() && own == in_memory()) {
                return Self {
                    state: ModuleState::Opened,
                    build_id: own,
                    file: Some(file),
                    opened: true,
                };
            }
            other_file |= is_path;
        }
        let too_many = |error: &io::Error| {
            let errno = error.raw_os_error();
            errno == Some(Errno::EMFILE as i32) || errno == Some(Errno::ENFILE as i32)
        };
        let is_missing = |error: &io::Error| {
            error.kind() == io::ErrorKind::NotFound
                || error.raw_os_error() == Some(Errno::ENOTDIR as i32)
        };
        let opened = failure.as_ref().is_some_and(too_many);
        let state = match failure {
            _ if other_file => ModuleState::Replaced,
            Some(error) if is_missing(&error) => ModuleState::Deleted,
            Some(error) if error.kind() == io::ErrorKind::InvalidInput => {
                ModuleState::Unreadable("not a regular file".to_owned())
            }
            Some(error) => ModuleState::Unreadable(error.to_string()),
            None => ModuleState::Deleted,
        };
        Self {
            state,
            build_id: in_memory(),
            file: None,
            opened,
        }
    }
}

enum Way {
    Link(String),
    Path,
    OwnRoot,
}

/// Whether a mapping's file is the program of the process.
pub(crate) fn is_program(pid: Pid, entry: &MapEntry) -> bool {
    let program = std::fs::read_link(format!("/proc/{}/exe", living(pid)));
    program.is_ok_and(|program| {
        let program = program.as_os_str().as_bytes();
        let name = program.strip_suffix(b" (deleted)").unwrap_or(program);
        entry.path().is_some_and(|path| path == name)
    })
}

/// Opens `path`, also if its real name ends in the kernel's mark for deleted files.
fn open_named(root: &Root, path: &[u8], entry: &MapEntry) -> io::Result<ModuleFile> {
    let plain = root.open(path);
    if plain.is_err() && entry.is_marked_deleted() {
        return root.open(&entry.name).or(plain);
    }
    plain
}

pub(crate) fn build_id(file: &Arc<ModuleFile>) -> Option<BuildId> {
    let file: Arc<dyn ReadAt> = file.clone();
    ElfFile::open(file).and_then(|elf| elf.build_id()).ok()?
}

/// Build-id of the file of `entry` in process memory. The ELF header is in the nearest preceding
/// mapping of the file's start.
pub(crate) fn mapped_build_id(
    pid: Pid,
    entry: &MapEntry,
    maps: Option<&[MapEntry]>,
) -> Option<BuildId> {
    let read;
    let maps = match maps {
        Some(maps) => maps,
        None => {
            read = read_maps(pid).ok()?.entries;
            &read
        }
    };
    header_of(entry, maps)
        .and_then(|at| build_id_in_memory(&LiveMemory::new(pid), at).ok())
        .flatten()
}

/// Address of the first page of the file of `entry`, among ascending `maps`.
pub(crate) fn header_of(entry: &MapEntry, maps: &[MapEntry]) -> Option<Avma> {
    let same = |other: &&MapEntry| {
        other.start <= entry.start
            && other.offset.get() == 0
            && (other.device, other.inode) == (entry.device, entry.inode)
            && other.path() == entry.path()
    };
    maps.iter().rfind(same).map(|first| first.start)
}

/// Vdso of a process. If its memory is unreadable, our own vdso from the same kernel, if equally
/// long. Empty if both fail.
pub(crate) fn read_vdso(pid: Pid, entry: &MapEntry) -> Arc<[u8]> {
    let image = |pid: Pid, entry: &MapEntry| read_image(&LiveMemory::new(pid), entry);
    let own = || {
        let me = Pid(std::process::id());
        let maps = read_maps(me).ok()?;
        let own = maps.entries.iter().find(|own| own.is_vdso())?;
        let length = |entry: &MapEntry| entry.end.offset_from(entry.start);
        (length(own) == length(entry)).then(|| image(me, own))?
    };
    image(pid, entry).or_else(own).unwrap_or_default().into()
}

/// A vdso in memory; `None` if unreadable.
pub(crate) fn read_image(memory: &dyn Memory, entry: &MapEntry) -> Option<Vec<u8>> {
    let length = entry.end.offset_from(entry.start)?;
    let cap = usize::try_from(MAX_VDSO_BYTES).ok()?;
    memory.read_vec(entry.start, length, cap).ok()
}
