//! Sources of the symbolizer's bytes: files of this machine, or files that a session opened while
//! its target ran.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use vmscope_process::{ModuleFile, Modules, ReadAt, own_root};
use vmscope_records::{Module, ModuleKey, ModuleState, Pid, TimeNs};
use vmscope_symbolizer::native::{Binaries, DebugFile, DebugFileRequest, FileBytes, ReadError};

/// Folder of separate debug files in distributions.
const DEBUG_ROOT: &str = "/usr/lib/debug";

/// Maximum size of `/proc/kallsyms`; a distribution's kernel has some 15 MB.
const MAX_KALLSYMS_BYTES: u64 = 256 << 20;

/// A module's file for the symbolizer.
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

/// Files of this machine, for a recording without symbols.
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
        // Kernel symbols of this machine would be wrong for other kernels; the recorder has
        // embedded its own.
        None
    }
}

/// Files that a session opened at their mapping: the files that ran, whatever happened to their
/// names.
#[derive(Debug)]
pub struct SessionBinaries<'a>(pub &'a Modules);

/// The same during the session.
#[derive(Debug, Default)]
pub struct LiveBinaries {
    /// Files that the session has handed over so far.
    pub files: FxHashMap<ModuleKey, Arc<ModuleFile>>,
    /// The kernel's symbols, with their time: the kernel needs several times as long to write them
    /// as a scan does.
    kernel: Mutex<Option<(Instant, Option<Vec<u8>>)>>,
}

/// Validity of kernel symbols: kernel modules come and go.
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

/// A module's file as a session opened it, or why none exists.
fn opened(module: &Module, file: Option<Arc<ModuleFile>>) -> Result<Arc<dyn FileBytes>, String> {
    match (file, &module.state) {
        (Some(file), _) => Ok(Arc::new(Bytes(file))),
        (None, ModuleState::Unreadable(why)) => Err(why.clone()),
        (None, ModuleState::Deleted) => Err("the file was deleted".to_owned()),
        (None, _) => DiskBinaries.module(module),
    }
}

fn kallsyms() -> Option<Vec<u8>> {
    let file = std::fs::File::open("/proc/kallsyms").ok()?;
    let mut text = Vec::new();
    file.take(MAX_KALLSYMS_BYTES).read_to_end(&mut text).ok()?;
    Some(text)
}

/// Opens regular files only: a path from a recording may lead anywhere.
fn open(path: &Path) -> std::io::Result<Arc<dyn FileBytes>> {
    use std::os::unix::ffi::OsStrExt;
    let file = own_root()?.open(path.as_os_str().as_bytes())?;
    Ok(Arc::new(Bytes(Arc::new(file))))
}

/// vmscope's own vdso, if its build-id matches.
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

/// Paths of separate debug files, by GDB's documentation.
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
