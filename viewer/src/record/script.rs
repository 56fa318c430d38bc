//! The program that the kernel executes for a script: its first line names the interpreter.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::command::find_program;

/// The kernel reads so many bytes of a first line (`BINPRM_BUF_SIZE`).
const MAX_LINE: u64 = 256;

/// Scripts that interpret scripts; the kernel follows no more.
const MAX_SCRIPTS: usize = 5;

/// The last interpreter of the script `program`; `program` itself if it is no script. `env` stands for
/// the program that it starts.
pub(super) fn executed(program: PathBuf) -> PathBuf {
    let mut program = program;
    for _ in 0..MAX_SCRIPTS {
        let Some(next) = first_line(&program).and_then(|line| interpreter(&line)) else {
            break;
        };
        match find_program(&next) {
            Ok(found) => program = found,
            Err(_) => break,
        }
    }
    program
}

fn first_line(program: &Path) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let file = File::open(program).ok()?;
    file.take(MAX_LINE).read_to_end(&mut line).ok()?;
    Some(line)
}

/// Path or name of the interpreter that a file's first bytes name.
fn interpreter(file: &[u8]) -> Option<OsString> {
    let line = file.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    let mut words = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let first = words.next()?;
    let is_env = first.rsplit(|byte| *byte == b'/').next() == Some(b"env");
    // `env -S NAME=VALUE node --flag`
    let is_program = |word: &&[u8]| !word.starts_with(b"-") && !word.contains(&b'=');
    let program = if is_env {
        words.find(is_program)?
    } else {
        first
    };
    Some(OsStr::from_bytes(program).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn interpreters_are_those_of_the_first_line() {
        let of = |text: &str| interpreter(text.as_bytes());
        assert_eq!(
            of("#! /usr/bin/node --flag\nx"),
            Some("/usr/bin/node".into())
        );
        assert_eq!(of("#!/usr/bin/env node"), Some("node".into()));
        let long = "#!/usr/bin/env -S A=1 node --flag\n";
        assert_eq!(of(long), Some("node".into()));
        for none in ["", "#!", "#!\nnode", "#!/usr/bin/env\n", "\u{7f}ELF"] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn scripts_are_followed_to_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let script = |name: &str, text: String| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let first = script("first", "#!/usr/bin/env sh\n".to_owned());
        let second = script("second", format!("#!{}\n", first.display()));
        let found = executed(second);
        assert!(found.ends_with("sh"), "{}", found.display());
        let own = folder.path().join("own").display().to_string();
        let circle = script("own", format!("#!{own}\n"));
        assert_eq!(executed(circle.clone()), circle);
        let missing = script("missing", "#!/nonexistent\n".to_owned());
        assert_eq!(executed(missing.clone()), missing);
    }
}
