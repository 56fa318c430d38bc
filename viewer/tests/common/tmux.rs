//! A terminal that a test looks at: tmux, whose keys are sent and whose screen is read.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{await_that, skipped};

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Terminal running one program. Drop closes terminal and program.
#[derive(Debug)]
pub struct Tmux {
    /// Name of a separate tmux server: the user's is left alone.
    socket: String,
}

impl Tmux {
    /// Runs a shell line in a terminal of that size; `None`, told loudly, without tmux.
    pub fn run(size: (u16, u16), line: &str) -> Option<Self> {
        let is_there = Command::new("tmux").arg("-V").output();
        if !is_there.is_ok_and(|output| output.status.success()) {
            skipped("tmux is not installed");
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let socket = format!("vmscope-test-{}-{number}", std::process::id());
        let terminal = Tmux { socket };
        let (columns, rows) = (size.0.to_string(), size.1.to_string());
        let started = terminal.tmux([
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
            line,
        ]);
        assert!(started.status.success(), "{started:?}");
        terminal.tmux(["set-option", "-g", "remain-on-exit", "on"]);
        Some(terminal)
    }

    fn tmux<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Output {
        let mut command = Command::new("tmux");
        // Results must not depend on the machine's terminal.
        command.env("LC_ALL", "C.UTF-8").env_remove("TMUX");
        command.args(["-L", &self.socket]).args(arguments);
        command.output().expect("tmux")
    }

    /// Presses keys, as tmux names them: `Enter`, `C-d`, `j`.
    pub fn press(&self, keys: &[&str]) {
        let sent = self.tmux(["send-keys"].iter().chain(keys));
        assert!(sent.status.success(), "{keys:?}: {sent:?}");
    }

    /// Types text as it is.
    pub fn type_text(&self, text: &str) {
        let sent = self.tmux(["send-keys", "-l", text]);
        assert!(sent.status.success(), "{text}: {sent:?}");
    }

    /// Drags the mouse with its left button from one cell to another, both counted from 0,
    /// as terminals tell it (SGR 1006).
    pub fn drag(&self, from: (u16, u16), to: (u16, u16)) {
        let told = |button: u16, (column, row): (u16, u16), end: char| {
            format!("\x1b[<{button};{};{}{end}", column + 1, row + 1)
        };
        // Each alone: in a complete sequence, nobody takes its escape for the key.
        self.type_text(&told(0, from, 'M'));
        self.type_text(&told(32, to, 'M'));
        self.type_text(&told(0, to, 'm'));
    }

    /// The shell's process.
    pub fn pid(&self) -> u32 {
        let shown = self.tmux(["display-message", "-p", "#{pane_pid}"]);
        let pid = String::from_utf8_lossy(&shown.stdout);
        pid.trim().parse().expect("a pid")
    }

    /// Another size of the terminal.
    pub fn resize(&self, size: (u16, u16)) {
        let (columns, rows) = (size.0.to_string(), size.1.to_string());
        self.tmux(["resize-window", "-x", &columns, "-y", &rows]);
    }

    /// The screen as it is.
    pub fn screen(&self) -> String {
        let captured = self.tmux(["capture-pane", "-p"]);
        String::from_utf8_lossy(&captured.stdout).into_owned()
    }

    /// Waits until the screen is as `fits` wants it.
    pub fn await_screen(&self, what: &str, fits: impl Fn(&str) -> bool) -> String {
        let mut last = String::new();
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            await_that(what, || {
                last = self.screen();
                fits(&last).then(|| last.clone())
            })
        }));
        match found {
            Ok(screen) => screen,
            Err(_) => panic!("waited in vain until {what}; the screen:\n{last}"),
        }
    }

    /// Waits until `text` is on the screen.
    pub fn shows(&self, text: &str) -> String {
        self.await_screen(&format!("the screen shows `{text}`"), |screen| {
            screen.contains(text)
        })
    }

    /// Waits until `text` disappears.
    pub fn shows_no(&self, text: &str) -> String {
        self.await_screen(&format!("the screen shows no `{text}`"), |screen| {
            !screen.contains(text)
        })
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.tmux(["kill-server"]);
    }
}

/// A line of shell that runs vmscope and then says how it ended, and what the terminal's
/// modes are.
pub fn line(arguments: &[&str], file: &Path) -> String {
    let vmscope = env!("CARGO_BIN_EXE_vmscope");
    format!(
        "cd {}; {vmscope} {}; echo ended $?; stty -a | tr ';' '\\n' | grep -o -- '-\\?icanon'; sleep 1000",
        file.parent().unwrap_or(Path::new("/")).display(),
        arguments.join(" ")
    )
}
