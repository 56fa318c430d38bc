//! `vmscope generate`: man pages and shell completions, from the definition of the command line.

use anyhow::{Result, bail};
use clap::{Args, Command, Subcommand};
use clap_complete::Shell;
use std::io::Write;

#[derive(Args, Clone, Debug)]
pub struct GenerateArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Clone, Debug, Subcommand)]
enum What {
    /// Completions of a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// The man page of vmscope, or of one of its commands
    Man {
        /// The command; default: vmscope itself
        command: Option<String>,
    },
}

/// Writes a page or a script of `vmscope`.
///
/// # Errors
/// An unknown command, a failed write.
pub fn run(args: &GenerateArgs, mut vmscope: Command, out: &mut dyn Write) -> Result<()> {
    match &args.what {
        What::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut vmscope, "vmscope", &mut script);
            out.write_all(&script)?;
        }
        What::Man { command: None } => clap_mangen::Man::new(vmscope).render(out)?,
        What::Man {
            command: Some(name),
        } => {
            vmscope.build();
            let Some(command) = vmscope.find_subcommand(name) else {
                bail!("vmscope has no command `{name}`");
            };
            clap_mangen::Man::new(command.clone()).render(out)?;
        }
    }
    Ok(())
}
