//! Compiles the programs of `tests/programs` once: one set of class files for all releases.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::jdks::{Jdk, compiler, repository};

/// Where the programs' sources are.
pub fn sources() -> PathBuf {
    repository().join("vm-hooks/hotspot/tests/programs")
}

/// Source text for compilation: repeats the statement behind the comment `N times:` on its line, so
/// that one line is a long range.
pub fn expanded(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("/* ") {
        let (before, comment) = rest.split_at(at);
        out.push_str(before);
        let times = comment.find(" times: */").and_then(|end| {
            let count: usize = comment[3..end].parse().ok()?;
            Some((count, &comment[end + " times: */".len()..]))
        });
        let Some((count, after)) = times else {
            out.push_str("/* ");
            rest = &comment[3..];
            continue;
        };
        let end = after.find(';').expect("a statement") + 1;
        out.push_str(&after[..end].repeat(count));
        rest = &after[end..];
    }
    out + rest
}

/// The 1-based line that the programs mark as a range of that name.
pub fn line_of_range(class: &str, range: &str) -> u32 {
    let text = std::fs::read_to_string(sources().join(format!("{class}.java"))).expect("a source");
    let mark = format!("// range: {range}");
    let at = text
        .lines()
        .position(|line| line.trim_end().ends_with(&mark));
    let at = at.unwrap_or_else(|| panic!("{class} has no `{mark}`"));
    u32::try_from(at + 1).expect("a line")
}

/// The folder of class files (package `programs`); `None`, said, where there is no compiler.
///
/// # Panics
/// Where javac fails: a program is broken.
pub fn classes() -> Option<PathBuf> {
    let jdk = compiler()?;
    let mut files: Vec<PathBuf> = std::fs::read_dir(sources())
        .expect("our folder")
        .map(|entry| entry.expect("its entry").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "java")
        })
        .collect();
    files.sort();
    let texts: Vec<(String, String)> = files
        .iter()
        .map(|path| {
            let name = path.file_name().expect("a file").to_string_lossy();
            let text = std::fs::read_to_string(path).expect("a source");
            (name.into_owned(), expanded(&text))
        })
        .collect();
    Some(made_once("java", &(&texts, &jdk.home), |draft| {
        let sources = draft.join("src");
        std::fs::create_dir(&sources).expect("a folder of ours");
        let mut javac = Command::new(jdk.home.join("bin/javac"));
        // The oldest supported release; -g: tables of lines and variables, as in most programs.
        javac.args(["--release", "11", "-g", "-encoding", "UTF-8", "-d"]);
        javac.arg(draft);
        for (name, text) in &texts {
            let path = sources.join(name);
            std::fs::write(&path, text).expect("a file of ours");
            javac.arg(path);
        }
        ran(&mut javac);
    }))
}

/// The folder of `tests/listings/Listed.java`'s class files; `None`, said, where there is no
/// compiler.
///
/// # Panics
/// Where javac fails: the program is broken.
pub fn listed() -> Option<PathBuf> {
    let jdk = compiler()?;
    let source = repository().join("vm-hooks/hotspot/tests/listings/Listed.java");
    let text = std::fs::read(&source).expect("a source");
    Some(made_once("listed", &(&text, &jdk.home), |draft| {
        let mut javac = Command::new(jdk.home.join("bin/javac"));
        javac.args(["-g", "-nowarn", "--release", "11", "-encoding", "UTF-8"]);
        ran(javac.arg("-d").arg(draft).arg(&source));
    }))
}

/// The agent of `tests/agent`, compiled.
///
/// # Panics
/// Where the C compiler fails.
pub fn agent() -> Option<PathBuf> {
    let Jdk { home, .. } = compiler()?;
    let source = repository().join("vm-hooks/hotspot/tests/agent/oracle.c");
    let text = std::fs::read(&source).expect("the agent's source");
    let folder = made_once("agent", &(&text, &home), |draft| {
        let mut cc = Command::new("cc");
        cc.args([
            "-O1", "-g", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror",
        ]);
        cc.arg("-I").arg(home.join("include"));
        cc.arg("-I").arg(home.join("include/linux"));
        cc.arg("-o").arg(draft.join("liboracle.so")).arg(&source);
        ran(&mut cc);
    });
    Some(folder.join("liboracle.so"))
}

/// A folder beneath cargo's own that `make` fills, once for each `of`.
fn made_once(name: &str, of: &impl Hash, make: impl FnOnce(&Path)) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let place = all.join(format!("{:016x}", hasher.finish()));
    if place.exists() {
        return place;
    }
    std::fs::create_dir_all(&all).expect("a folder under cargo's own");
    // Renamed when it is whole: another test may look for it right now.
    let draft = tempfile::Builder::new().tempdir_in(&all).expect("a folder");
    make(draft.path());
    let draft = draft.keep();
    if std::fs::rename(&draft, &place).is_err() {
        // Another was faster.
        std::fs::remove_dir_all(&draft).expect("a folder of ours");
    }
    place
}

fn ran(command: &mut Command) {
    let output = command.output().expect("it starts");
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}
