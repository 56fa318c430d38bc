//! Terminal setup, and restoration on every exit.

#![expect(
    clippy::disallowed_methods,
    reason = "a screen, whose cells are escaped when drawn"
)]

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use ratatui::crossterm::execute;
use ratatui::crossterm::style::Print;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::io::{IsTerminal, Stdout, Write, stdout};
use std::sync::Once;

/// Maximum number of bytes for the clipboard: terminals reject more.
const MAX_COPY_BYTES: usize = 100_000;

/// Terminal in full-screen mode; dropping restores it.
pub struct Screen {
    pub terminal: Terminal<CrosstermBackend<Stdout>>,
}

/// Rejects non-terminals with an alternative.
///
/// # Errors
/// Standard input or output is not a terminal.
pub fn check(command: &str, instead: &str) -> Result<()> {
    let term = std::env::var("TERM").unwrap_or_default();
    if !std::io::stdin().is_terminal() || !stdout().is_terminal() || term == "dumb" {
        bail!("`vmscope {command}` needs a terminal; {instead}");
    }
    Ok(())
}

impl Screen {
    /// Enters full-screen mode.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn take() -> Result<Self> {
        give_back_on_panic();
        enter().context("cannot set up the terminal")?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout()));
        match terminal {
            Ok(terminal) => Ok(Screen { terminal }),
            Err(error) => {
                leave();
                Err(error).context("cannot draw on the terminal")
            }
        }
    }

    /// Restores the terminal, stops vmscope like Ctrl-Z, and enters full-screen mode again when the
    /// shell continues it.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn suspend(&mut self) -> Result<()> {
        leave();
        nix::sys::signal::raise(nix::sys::signal::Signal::SIGTSTP)?;
        enter().context("cannot set up the terminal again")?;
        self.terminal.clear()?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Fixed cell order: terminals that reorder lines with right-to-left letters would move text beside
/// a name. ECMA-48 explicit mode (BDSM) and a left-to-right character path, as the draft "BiDi in
/// terminal emulators" asks of full-screen programs; other terminals ignore both.
const CELLS_AS_GIVEN: Print<&str> = Print("\x1b[8l\x1b[1 k");

/// Default cell order, since programs can't query the previous one: implicit mode, path unset.
const CELLS_AS_USUAL: Print<&str> = Print("\x1b[0 k\x1b[8h");

fn enter() -> std::io::Result<()> {
    enable_raw_mode()?;
    write_entering(&mut stdout())
}

fn write_entering(out: &mut impl Write) -> std::io::Result<()> {
    execute!(
        out,
        EnterAlternateScreen,
        CELLS_AS_GIVEN,
        // Lines keep the mode of their creation.
        Clear(ClearType::All),
        EnableMouseCapture,
        EnableBracketedPaste
    )
}

/// Restores the terminal as far as possible; nobody reads errors of a closed terminal.
pub fn leave() {
    let _ = write_leaving(&mut stdout());
    let _ = disable_raw_mode();
}

fn write_leaving(out: &mut impl Write) -> std::io::Result<()> {
    execute!(
        out,
        DisableBracketedPaste,
        DisableMouseCapture,
        CELLS_AS_USUAL,
        LeaveAlternateScreen,
        ratatui::crossterm::cursor::Show
    )
}

/// Panics of the drawing thread print on the restored terminal. Other threads' panics reach the
/// code that waits for them; the screen stays.
fn give_back_on_panic() {
    static ONCE: Once = Once::new();
    let drawing = std::thread::current().id();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if std::thread::current().id() == drawing {
                leave();
                before(info);
            }
        }));
    });
}

/// Copies a text to the clipboard through the terminal (OSC 52, works over ssh); returns the result
/// as a sentence.
pub fn copy(text: &str) -> String {
    let mut end = text.len().min(MAX_COPY_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let piece = text.get(..end).unwrap_or_default();
    let encoded = base64::engine::general_purpose::STANDARD.encode(piece);
    let mut out = stdout();
    let sent = write!(out, "\x1b]52;c;{encoded}\x07").and_then(|()| out.flush());
    match sent {
        Err(error) => format!("not copied: {error}"),
        Ok(()) if end < text.len() => format!(
            "only the first {} lines copied (a terminal's maximum); `e` exports all",
            piece.lines().count()
        ),
        Ok(()) => format!(
            "{} lines copied, if the terminal allows it (OSC 52); `e` writes a file",
            piece.lines().count()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_switched_on_the_way_in_is_switched_back_on_the_way_out() {
        let text = |write: fn(&mut Vec<u8>) -> std::io::Result<()>| {
            let mut bytes = Vec::new();
            write(&mut bytes).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        let (entering, leaving) = (text(write_entering), text(write_leaving));
        let at = |text: &str, sequence: &str| {
            let found = text.find(sequence);
            found.unwrap_or_else(|| panic!("{sequence:?} in {text:?}"))
        };
        // Lines are created after the mode change, on the alternate screen.
        let explicit = at(&entering, "\x1b[8l\x1b[1 k");
        assert!(at(&entering, "\x1b[?1049h") < explicit);
        assert!(explicit < at(&entering, "\x1b[2J"));
        assert!(at(&leaving, "\x1b[0 k\x1b[8h") < at(&leaving, "\x1b[?1049l"));
        // Private modes match, too.
        let modes = |text: &str, end: char| {
            let parts = text.split("\x1b[?").skip(1);
            let mut modes: Vec<String> = parts
                .filter_map(|part| part.split_once(end))
                .map(|(mode, _)| mode.to_owned())
                .filter(|mode| mode.chars().all(|c| c.is_ascii_digit()) && mode != "25")
                .collect();
            modes.sort();
            modes
        };
        assert_eq!(modes(&entering, 'h'), modes(&leaving, 'l'));
    }
}
