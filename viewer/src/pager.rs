//! Long output on a terminal goes through a pager, as git's does.

use crate::print::is_stdout_terminal;
use std::fs::File;
use std::io::{Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

#[derive(clap::Args, Clone, Copy, Debug)]
pub struct PagerOptions {
    /// Print on the terminal at once, not through $PAGER (default: less)
    #[arg(long)]
    no_pager: bool,
}

/// Shows `text`. On a terminal the pager replaces this process, so that the terminal's signals reach
/// the pager alone; without a pager, and elsewhere, writes `text` to `out`.
///
/// # Errors
/// A failed write.
pub fn show(text: &[u8], options: PagerOptions, out: &mut dyn Write) -> std::io::Result<()> {
    if !options.no_pager && is_stdout_terminal() {
        out.flush()?;
        let command = ["VMSCOPE_PAGER", "PAGER"]
            .into_iter()
            .find_map(|name| std::env::var(name).ok())
            .unwrap_or_else(|| "less".to_owned());
        // Nothing, or `cat`: no pager, as in git.
        if !matches!(command.as_str(), "" | "cat")
            && let Ok(input) = file_of(text)
        {
            let mut pager = Command::new("sh");
            pager.args(["-c", &command]).stdin(input);
            if std::env::var_os("LESS").is_none() {
                // Quit on one screen, keep colours, leave the screen's contents.
                pager.env("LESS", "FRX");
            }
            if exists(&command) {
                // Returns on failure only.
                let _ = pager.exec();
            }
        }
    }
    out.write_all(text)
}

/// Whether the shell finds the command's program.
fn exists(command: &str) -> bool {
    let program = command.split_whitespace().next().unwrap_or_default();
    let found = Command::new("sh")
        .args(["-c", "command -v \"$1\" >/dev/null", "sh", program])
        .status();
    found.is_ok_and(|status| status.success())
}

/// An unnamed file with the text, at its begin.
fn file_of(text: &[u8]) -> std::io::Result<File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(text)?;
    file.rewind()?;
    Ok(file)
}
