//! The target of a single reading: a running process, or a core file.

use crate::record::Named;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use vmscope_process::{CoreFile, CoreInfo, ProcessView, Root};
use vmscope_records::{Arch, Pid};

#[derive(Args, Clone, Debug)]
pub struct TargetOptions {
    /// PID of the process, or its name if only one of your processes has the name
    #[arg(
        value_name = "PID|NAME",
        required_unless_present = "core",
        conflicts_with = "core"
    )]
    process: Option<Named>,
    /// Read this core file instead
    #[arg(long, value_name = "FILE")]
    pub core: Option<PathBuf>,
    /// Directory with the files that the core file's process had mapped, such as a container's root
    #[arg(long, value_name = "FOLDER", default_value = "/", requires = "core")]
    root: PathBuf,
}

impl TargetOptions {
    /// The running process.
    ///
    /// # Errors
    /// The name matches no process, or several processes.
    pub fn pid(&self) -> Result<Pid> {
        match &self.process {
            Some(process) => Ok(Named::pids(std::slice::from_ref(process))?[0]),
            None => bail!("expected a process or a core file"),
        }
    }

    /// The process in the core file at `path`.
    ///
    /// # Errors
    /// An unreadable file, another processor architecture.
    pub fn open_core(&self, path: &Path) -> Result<(ProcessView, CoreInfo)> {
        let file =
            CoreFile::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        let info = file.info().clone();
        if info.arch != Arch::of_this_machine() {
            bail!(
                "{} is of another processor architecture (ELF machine {})",
                path.display(),
                info.arch.elf_machine(),
            );
        }
        let root = Root::at(&self.root);
        let root = root.with_context(|| format!("cannot open {}", self.root.display()))?;
        Ok((ProcessView::from_core(file, Some(root)), info))
    }
}
