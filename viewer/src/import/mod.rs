//! `vmscope import`: recordings from files of other profilers.

mod program;
#[cfg(test)]
mod tests;
mod vmprofiler;

use crate::examples;
use anyhow::Result;
use clap::{Args, Subcommand};
use vmprofiler::VmprofilerArgs;

#[derive(Args, Clone, Debug)]
pub struct ImportArgs {
    #[command(subcommand)]
    from: Source,
}

#[derive(Clone, Debug, Subcommand)]
enum Source {
    /// Samples and code zone that a Cog VM's image saved (primitives 252 and 253)
    ///
    /// For VMs that vmscope can't attach to. vm-hooks/cog/smalltalk/SaveForVmscope.st saves both files from
    /// inside the image.
    #[command(after_help = examples::IMPORT)]
    Vmprofiler(VmprofilerArgs),
}

/// Makes a recording of another profiler's files.
///
/// # Errors
/// Unreadable or wrong files, a failed write.
pub fn run(args: &ImportArgs) -> Result<()> {
    match &args.from {
        Source::Vmprofiler(args) => vmprofiler::run(args),
    }
}
