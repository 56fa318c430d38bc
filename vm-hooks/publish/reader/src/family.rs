//! The family: finds a VM's shared memory among its descriptors.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use vmscope_process::{Adapter, AdapterError, AdapterFamily, ProcessView};
use vmscope_publish::reader::{AttachError, Attached};

use crate::adapter::PublishAdapter;

/// The kernel's name for the mapped memory.
const MAPPED_NAME: &[u8] = b"/memfd:vmscope-publish";

/// Maximum number of descriptors that are looked at.
const MAX_DESCRIPTORS: usize = 1 << 16;

/// VMs that link `vmscope-publish`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Family;

impl AdapterFamily for Family {
    fn name(&self) -> &'static str {
        "publish"
    }

    fn recognise(&self, process: &ProcessView) -> Result<Option<Box<dyn Adapter>>, AdapterError> {
        match open(process)? {
            Some(attached) => Ok(Some(Box::new(PublishAdapter::new(attached)))),
            None => Ok(None),
        }
    }
}

/// Attaches to the memory in which the process describes itself; `None` if it has none. Needs no
/// right to read the process's memory, only to open its descriptors: the same user.
///
/// # Errors
/// [`AdapterError::NotReady`] while the VM makes the memory; [`AdapterError::File`] if the memory can't be
/// opened, is not well-formed, or as many profilers listen as can.
pub fn open(process: &ProcessView) -> Result<Option<Attached>, AdapterError> {
    let mappings = process.mappings();
    let mut inodes = mappings
        .iter()
        .filter(|mapping| mapping.name.starts_with(MAPPED_NAME))
        .map(|mapping| mapping.inode);
    let Some(first) = inodes.next() else {
        return Ok(None);
    };
    let inodes: Vec<u64> = std::iter::once(first).chain(inodes).collect();
    let pid = u64::from(process.inner_pid().get());
    let mut trouble = None;
    for path in descriptors(process) {
        let file = match opened(&path, &inodes) {
            Ok(Some(file)) => file,
            Ok(None) => continue,
            Err(source) => {
                trouble = Some((path, source));
                continue;
            }
        };
        match Attached::new(file, Some(pid)) {
            Ok(attached) => return Ok(Some(attached)),
            // Of the parent, before a fork.
            Err(AttachError::Inherited { .. }) => {}
            Err(AttachError::Magic(0)) => {
                return Err(AdapterError::NotReady {
                    what: "shared memory",
                });
            }
            Err(error) => trouble = Some((path, std::io::Error::other(error))),
        }
    }
    match trouble {
        Some((path, source)) => Err(AdapterError::File {
            path: path.display().to_string(),
            source,
        }),
        None => Ok(None),
    }
}

/// Descriptors with the memory's name; none where the folder can't be read.
fn descriptors(process: &ProcessView) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(format!("/proc/{}/fd", process.pid())) else {
        return Vec::new();
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_named = |path: &PathBuf| {
        use std::os::unix::ffi::OsStrExt;
        let link = fs::read_link(path);
        link.is_ok_and(|to| to.as_os_str().as_bytes().starts_with(MAPPED_NAME))
    };
    paths.take(MAX_DESCRIPTORS).filter(is_named).collect()
}

/// Opens a descriptor, if it is mapped memory of the process's user.
fn opened(path: &PathBuf, inodes: &[u64]) -> std::io::Result<Option<File>> {
    // The link may lead elsewhere by now: what is opened is checked, and opening it changes nothing.
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let facts = file.metadata()?;
    Ok((facts.is_file() && inodes.contains(&facts.ino())).then_some(file))
}
