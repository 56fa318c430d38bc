//! The family: finds a VM's shared memory among its descriptors.

use vmscope_process::{
    Adapter, AdapterError, AdapterFamily, EnvironmentChange, Launch, ProcessView, SampleNeeds,
};
use vmscope_publish::LifetimeRate;
use vmscope_publish::layout::EXPECT;
use vmscope_publish::reader::{AttachError, Attached, Identity, find};

use crate::adapter::PublishAdapter;
use crate::needs::sample_needs;

/// The kernel's name for the mapped memory.
const MAPPED_NAME: &[u8] = b"/memfd:vmscope-publish";

/// VMs that link `vmscope-publish`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Family {
    /// The objects whose lifetimes the VMs are to publish; `None` for none.
    pub lifetimes: Option<LifetimeRate>,
}

impl AdapterFamily for Family {
    fn name(&self) -> &'static str {
        "publish"
    }

    fn launch_environment(&self, _: &Launch) -> Vec<EnvironmentChange> {
        vec![EnvironmentChange::SetDefault {
            name: EXPECT.to_owned(),
            value: "1".to_owned(),
        }]
    }

    fn launch_needs(&self, _: &Launch) -> SampleNeeds {
        sample_needs()
    }

    fn recognise(&self, process: &ProcessView) -> Result<Option<Box<dyn Adapter>>, AdapterError> {
        match open(process)? {
            Some(attached) => Ok(Some(Box::new(PublishAdapter::new(
                attached,
                self.lifetimes,
            )))),
            None => Ok(None),
        }
    }
}

/// Attaches to the process's published memory; `None` if the process has none. Needs no permission
/// to read the process's own memory, only to open its descriptors: the same user suffices.
///
/// # Errors
/// [`AdapterError::NotReady`] while the VM makes the memory; [`AdapterError::File`] if the memory
/// can't be opened or is malformed, or the maximum number of profilers already listens.
pub fn open(process: &ProcessView) -> Result<Option<Attached>, AdapterError> {
    if !publishes(process) {
        return Ok(None);
    }
    let failed = |source| AdapterError::File {
        path: "the VM's shared memory".to_owned(),
        source,
    };
    let pid = u64::from(process.inner_pid().get());
    let mut trouble = None;
    for file in find(process.pid().get()).map_err(failed)? {
        match Attached::new(file, Some(pid)) {
            Ok(attached) if is_of(process, attached.identity()) => return Ok(Some(attached)),
            // Memory of the parent, inherited by a fork.
            Ok(_) | Err(AttachError::Inherited { .. }) => {}
            Err(AttachError::Magic(0)) => {
                return Err(AdapterError::NotReady {
                    what: "shared memory",
                });
            }
            Err(error) => trouble = Some(failed(std::io::Error::other(error))),
        }
    }
    trouble.map_or(Ok(None), Err)
}

/// Whether the process has mapped memory in which a VM describes itself.
#[must_use]
pub fn publishes(process: &ProcessView) -> bool {
    let mappings = process.mappings();
    let mut mappings = mappings.iter();
    mappings.any(|mapping| mapping.name.starts_with(MAPPED_NAME))
}

/// Whether this process made the memory: process ids are reused.
fn is_of(process: &ProcessView, identity: &Identity) -> bool {
    let start = process.start_ticks();
    identity.start_ticks == 0 || start.is_none_or(|start| start == identity.start_ticks)
}
