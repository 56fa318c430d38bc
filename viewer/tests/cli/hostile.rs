//! A process that puts terminal commands into all that it can name: none of them reaches a
//! terminal, whatever vmscope prints of it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use crate::common::targets::Target;
use crate::common::tmux::Tmux;
use crate::common::vmscope::{Folder, Run, can_sample, command, run, vmscope};
use crate::common::{await_that, is_root, pprof, programs, skipped};
use nix::sys::signal::Signal;
use serde_json::Value;

/// A window title, colour, CSI as C1 (one byte, and UTF-8), a right-to-left override, a line of
/// our own. The kernel keeps the first 15 bytes of a thread's name.
const HOSTILE: &[u8] = b"\x1b]0;T\x07\x9bm\xc2\x9b\n\xe2\x80\xaevmscope: \x1b[31mred";

/// Nobody's uid on every Linux.
const NOBODY: u32 = 65534;

fn hostile() -> &'static OsStr {
    OsStr::from_bytes(HOSTILE)
}

fn is_odd(c: char) -> bool {
    (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c)
}

#[track_caller]
fn is_harmless(text: &str, what: &str) {
    let odd: String = text.chars().filter(|c| is_odd(*c)).collect();
    assert!(odd.is_empty(), "{what}: {odd:?} in {text:?}");
}

/// Neither stream commands the terminal, and no name begins a line of ours.
#[track_caller]
fn harmless(run: Run) -> Run {
    is_harmless(&run.stdout, &run.command);
    is_harmless(&run.stderr, &run.command);
    let forged = |line: &str| line.starts_with("vmscope: \\u{1b}");
    let is_forged = run.stderr.lines().any(forged);
    run.check(!is_forged, "a name forged a message")
}

/// The program, under a hostile path.
struct Hostile {
    folder: Folder,
    program: PathBuf,
}

impl Hostile {
    /// `None`, with a message, if the program can't be built or sampled.
    fn new() -> Option<Self> {
        let built = programs::build(programs::PERF_MAP)?;
        let folder = Folder::new();
        let mode = std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777));
        mode.expect("our folder");
        let program = folder.path().join(hostile());
        std::fs::copy(built, &program).expect("a copy");
        Some(Hostile { folder, program })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--name").arg(hostile()).args(["--lines", "3"]);
        command.arg("--run").arg("3");
        command.arg("--file").arg(self.mapped());
        command.env("NODE_OPTIONS", hostile());
        command
    }

    fn mapped(&self) -> PathBuf {
        let mut name = OsString::from("mapped");
        name.push(hostile());
        self.folder.path().join(name)
    }

    fn output(&self) -> PathBuf {
        self.folder.file("out.vmscope")
    }

    /// `vmscope COMMAND --output OUT MORE…`.
    fn recorded(&self, words: &[&str], more: &[&OsStr]) -> Run {
        let mut command = command(words);
        command.arg("--output").arg(self.output()).args(more);
        command.env("NODE_OPTIONS", hostile());
        harmless(run(command).code(0))
    }

    /// All printable views of the recording.
    fn print_all(&self) {
        let output = self.output();
        let print = |words: &[&str], more: &[&OsStr]| {
            let mut command = command(words);
            harmless(run({
                command.args(more).arg(&output);
                command
            }))
        };
        for words in [
            &["report", "--color=never"][..],
            &["report", "--full"],
            &["annotate"],
        ] {
            print(words, &[]).code(0).prints("\\u{1b}");
        }
        // Colours are ours; nothing else is.
        let mut coloured = command(["report", "--color=always"]);
        coloured.arg(&output);
        let coloured = run(coloured).code(0);
        let plain = anstream::adapter::strip_str(&coloured.stdout).to_string();
        is_harmless(&plain, "a coloured report");
        for words in [&["report", "--json"][..], &["annotate", "--json"]] {
            let names = print(words, &[]).code(0).json();
            assert!(
                strings(&names).any(|text| text.contains('\u{1b}')),
                "{names}"
            );
        }
        let mut annotate = command(["annotate"]);
        annotate.arg(&output).arg("no such method");
        harmless(run(annotate).code(2)).says("\\u{1b}");
        for format in ["collapsed", "flamegraph", "firefox", "speedscope"] {
            print(&["export", "--to", format, "--output", "-"], &[]).code(0);
        }
        let file = self.folder.file("out.pb");
        print(
            &["export", "--to", "pprof", "--output"],
            &[file.as_os_str()],
        )
        .code(0);
        let bytes = std::fs::read(&file).expect("the export");
        for text in pprof::Profile::of(&bytes).string_table {
            is_harmless(&text, "pprof");
        }
    }
}

/// All strings of a JSON value.
fn strings(value: &Value) -> Box<dyn Iterator<Item = &str> + '_> {
    match value {
        Value::String(text) => Box::new(std::iter::once(text.as_str())),
        Value::Array(all) => Box::new(all.iter().flat_map(strings)),
        Value::Object(all) => Box::new(all.values().flat_map(strings)),
        _ => Box::new(std::iter::empty()),
    }
}

#[test]
fn nothing_that_a_process_names_commands_the_terminal() {
    let Some(hostile) = Hostile::new().filter(|_| can_sample()) else {
        return;
    };
    let target = Target::ready(hostile.command());
    let pid = target.pid().to_string();
    let attach = ["attach", "--duration", "1", "--color=never", &pid];
    hostile.recorded(&attach, &[]).prints("\\u{1b}");
    hostile.print_all();
    for options in [&["doctor", &pid][..], &["doctor", "--json", &pid]] {
        harmless(vmscope(options).code(0));
    }
    // A stopped process has no samples: other sections are printed.
    target.stop();
    hostile.recorded(&attach, &[]);
    target.signal(Signal::SIGCONT);
    // Its mapped file is its own: the first process executes the other.
    let namesake = Hostile::new().expect("built before");
    let again = Target::ready(namesake.command());
    let comm = std::fs::read(format!("/proc/{pid}/comm")).expect("it runs");
    let comm = comm.strip_suffix(b"\n").expect("a line");
    for name in [comm, HOSTILE] {
        // As vmscope reads it.
        let name = String::from_utf8_lossy(name);
        harmless(vmscope(["attach", &name]))
            .says("2 processes are named `\\u{1b}")
            .says(&pid);
    }
    drop(again);
}

#[test]
fn nothing_that_a_recorded_command_names_commands_the_terminal() {
    let Some(hostile) = Hostile::new().filter(|_| can_sample()) else {
        return;
    };
    let mapped = hostile.mapped();
    let words = [
        OsStr::new("--"),
        hostile.program.as_os_str(),
        OsStr::new("--name"),
        self::hostile(),
        OsStr::new("--file"),
        mapped.as_os_str(),
    ];
    let options = ["record", "--duration", "1", "--color=never"];
    hostile.recorded(&options, &words).prints("\\u{1b}");
    hostile.print_all();
    let missing = hostile.folder.path().join(self::hostile()).join("gone");
    let mut command = command(["record", "--"]);
    command.arg(missing);
    harmless(run(command)).says("\\u{1b}");
}

#[test]
fn no_refusal_commands_the_terminal() {
    let Some(hostile) = Hostile::new() else {
        return;
    };
    let refused = |run: Run| harmless(run.code(1)).says("(\\u{1b}]0;T\\u{7}");
    let target = Target::ready(hostile.command());
    let pid = target.pid();
    let tids = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it lives");
    let tids = tids.filter_map(|tid| tid.ok()?.file_name().into_string().ok());
    let tid = tids.max().expect("a thread");
    refused(vmscope(["attach", &tid])).says("is a thread of");
    if is_root() {
        let binary = hostile.folder.file("vmscope");
        std::fs::copy(env!("CARGO_BIN_EXE_vmscope"), &binary).expect("a copy");
        let attach = |pid: u32| {
            let mut command = Command::new(&binary);
            command.args(["attach", &pid.to_string()]);
            command.current_dir(hostile.folder.path());
            run({
                command.uid(NOBODY).gid(NOBODY);
                command
            })
        };
        refused(attach(pid)).says("belongs to user 0");
        let mut command = Command::new(&hostile.program);
        command
            .arg("--name")
            .arg(self::hostile())
            .arg("--protected");
        command.uid(NOBODY).gid(NOBODY);
        let protected = Target::ready(command);
        refused(attach(protected.pid())).says("is yours, but protected");
    } else {
        skipped("only root can be somebody else");
    }
    target.signal(Signal::SIGKILL);
    await_that("it is a zombie", || {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).expect("it is not reaped");
        String::from_utf8_lossy(&stat)
            .contains(") Z ")
            .then_some(())
    });
    refused(vmscope(["attach", &pid.to_string()])).says("zombie");
    harmless(vmscope(["doctor", &pid.to_string()]));
}

#[test]
fn no_name_on_the_screen_commands_the_terminal() {
    let Some(hostile) = Hostile::new().filter(|_| can_sample()) else {
        return;
    };
    let target = Target::ready(hostile.command());
    let raw = hostile.folder.file("raw");
    let line = format!(
        "cd {}; script -qfc '{} top {}' {}; sleep 1000",
        hostile.folder.path().display(),
        env!("CARGO_BIN_EXE_vmscope"),
        target.pid(),
        raw.display(),
    );
    let Some(tmux) = Tmux::run((100, 30), &line) else {
        return;
    };
    let written = |text: &str| {
        await_that(&format!("the screen shows `{text}`"), || {
            let bytes = std::fs::read(&raw).unwrap_or_default();
            let bytes = String::from_utf8_lossy(&bytes).into_owned();
            bytes.contains(text).then_some(bytes)
        })
    };
    written("Overview");
    written("samples");
    for view in 1..=9 {
        tmux.press(&[&view.to_string()]);
        written(&format!("[{view} "));
    }
    tmux.press(&["q"]);
    written("q again quits");
    tmux.press(&["q"]);
    let bytes = written("\x1b[?1049l");
    assert!(bytes.contains("\\u{1b}]0"), "the names are shown, escaped");
    // The screen's own sequences begin with `ESC [` or `ESC ( B`.
    for odd in ["\x1b]", "\x07", "\u{9b}", "\u{202e}"] {
        assert!(!bytes.contains(odd), "{odd:?} reached the terminal");
    }
}
