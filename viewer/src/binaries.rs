//! Where the symbolizer's bytes come from: files of this machine, or those that a
//! session opened while its target ran.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use vmscope_process::{ModuleFile, Modules, ReadAt, own_root};
use vmscope_records::{Module, ModuleKey, ModuleState, Pid, TimeNs};
use vmscope_symbolizer::native::{Binaries, DebugFile, DebugFileRequest, FileBytes, ReadError};

/// Where distributions put separate debug files.
const DEBUG_ROOT: &str = "/usr/lib/debug";

/// The most that is read of `/proc/kallsyms`: some 15 MB for a distribution's kernel.
const MAX_KALLSYMS_BYTES: u64 = 256 << 20;

/// A module's file as the symbolizer wants it.
struct Bytes(Arc<ModuleFile>);

impl FileBytes for Bytes {
    fn len(&self) -> u64 {
        ReadAt::len(&*self.0)
    }

    fn read_at(&self, offset: u64, len: usize) -> Result<Cow<'_, [u8]>, ReadError> {
        let file_len = FileBytes::len(self);
        let fits = u64::try_from(len)
            .ok()
            .and_then(|len| offset.checked_add(len));
        if fits.is_none_or(|end| end > file_len) {
            return Err(ReadError::OutOfBounds {
                offset,
                len,
                file_len,
            });
        }
        let mut bytes = vec![0; len];
        match self.0.read_some(offset, &mut bytes) {
            Ok(read) if read == len => Ok(Cow::Owned(bytes)),
            Ok(_) => Err(ReadError::OutOfBounds {
                offset,
                len,
                file_len,
            }),
            Err(source) => Err(ReadError::Io {
                offset,
                len,
                source,
            }),
        }
    }
}

/// The files of this machine, for a recording that lacks symbols.
#[derive(Debug, Default)]
pub struct DiskBinaries;

impl Binaries for DiskBinaries {
    fn module(&self, module: &Module) -> Result<Arc<dyn FileBytes>, String> {
        if module.state == ModuleState::Vdso {
            return own_vdso().ok_or_else(|| "this process has no vdso".to_owned());
        }
        open(Path::new(&module.path)).map_err(|error| error.to_string())
    }

    fn debug_file(&self, request: &DebugFileRequest<'_>) -> Vec<DebugFile> {
        debug_files(request)
    }

    fn kernel_symbols(&self) -> Option<Vec<u8>> {
        // Of a kernel that is not the recording's they would be wrong: whoever
        // recorded put them into the recording.
        None
    }
}

/// The files that a session opened when they were mapped, which are those that ran,
/// whatever became of their names.
#[derive(Debug)]
pub struct SessionBinaries<'a>(pub &'a Modules);

/// The same while the session goes on.
#[derive(Debug, Default)]
pub struct LiveBinaries {
    /// Those files that it has handed on so far.
    pub files: FxHashMap<ModuleKey, Arc<ModuleFile>>,
    /// What the kernel said of its symbols, and when: to write it takes the kernel several
    /// times as long as to go through it.
    kernel: Mutex<Option<(Instant, Option<Vec<u8>>)>>,
}

/// For so long it counts: modules of the kernel come and go.
const KALLSYMS_LAST: Duration = Duration::from_secs(120);

impl Binaries for SessionBinaries<'_> {
    fn module(&self, module: &Module) -> Result<Arc<dyn FileBytes>, String> {
        opened(module, self.0.file(module.key))
    }

    fn debug_file(&self, request: &DebugFileRequest<'_>) -> Vec<DebugFile> {
        debug_files(request)
    }

    fn kernel_symbols(&self) -> Option<Vec<u8>> {
        kallsyms()
    }
}

impl Binaries for LiveBinaries {
    fn module(&self, module: &Module) -> Result<Arc<dyn FileBytes>, String> {
        opened(module, self.files.get(&module.key).cloned())
    }

    fn debug_file(&self, request: &DebugFileRequest<'_>) -> Vec<DebugFile> {
        debug_files(request)
    }

    fn kernel_symbols(&self) -> Option<Vec<u8>> {
        let mut kernel = self.kernel.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kernel.take().filter(|(at, _)| at.elapsed() < KALLSYMS_LAST);
        let (at, text) = known.unwrap_or_else(|| (Instant::now(), kallsyms()));
        *kernel = Some((at, text.clone()));
        text
    }
}

/// A module's file as a session opened it, or why there is none.
fn opened(module: &Module, file: Option<Arc<ModuleFile>>) -> Result<Arc<dyn FileBytes>, String> {
    match (file, &module.state) {
        (Some(file), _) => Ok(Arc::new(Bytes(file))),
        (None, ModuleState::Unreadable(why)) => Err(why.clone()),
        (None, ModuleState::Deleted) => Err("it was deleted".to_owned()),
        (None, _) => DiskBinaries.module(module),
    }
}

fn kallsyms() -> Option<Vec<u8>> {
    let file = std::fs::File::open("/proc/kallsyms").ok()?;
    let mut text = Vec::new();
    file.take(MAX_KALLSYMS_BYTES).read_to_end(&mut text).ok()?;
    Some(text)
}

/// Opens a regular file and nothing else: a path out of a recording may lead anywhere.
fn open(path: &Path) -> std::io::Result<Arc<dyn FileBytes>> {
    use std::os::unix::ffi::OsStrExt;
    let file = own_root()?.open(path.as_os_str().as_bytes())?;
    Ok(Arc::new(Bytes(Arc::new(file))))
}

/// Our own vdso: the recording's, if its build-id is the same.
fn own_vdso() -> Option<Arc<dyn FileBytes>> {
    let mut modules = Modules::new();
    let own = Pid(std::process::id());
    modules.scan(own, TimeNs(0)).ok()?;
    let vdso = modules
        .iter()
        .find(|(module, _)| module.state == ModuleState::Vdso);
    let file = vdso?.1?.clone();
    Some(Arc::new(Bytes(file)))
}

/// Where GDB's documentation says that separate debug files are.
fn debug_files(request: &DebugFileRequest<'_>) -> Vec<DebugFile> {
    let mut candidates: Vec<String> = Vec::new();
    if let Some(id) = request.build_id {
        let hex = id.to_string();
        if let Some((first, rest)) = hex.split_at_checked(2) {
            candidates.push(format!("{DEBUG_ROOT}/.build-id/{first}/{rest}.debug"));
        }
    }
    if let Some(name) = request.name {
        let folder = Path::new(request.path)
            .parent()
            .map_or("", |f| f.to_str().unwrap_or(""));
        if name.starts_with('/') {
            // dwz writes whole paths.
            candidates.push(name.to_owned());
        } else if !name.contains("..") {
            candidates.push(format!("{folder}/{name}"));
            candidates.push(format!("{folder}/.debug/{name}"));
            candidates.push(format!("{DEBUG_ROOT}{folder}/{name}"));
        }
    }
    let opened = candidates.into_iter().filter_map(|path| {
        let bytes = open(Path::new(&path)).ok()?;
        Some(DebugFile { path, bytes })
    });
    opened.collect()
}
