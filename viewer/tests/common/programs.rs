//! Compiles the programs of `tests/programs` when a test first asks for one, into cargo's
//! temporary folder, under a name made of a hash of the source and the command: tests
//! that run at the same time, and later runs, share them.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of `tests/programs`; its source documents known facts.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The file name of its source.
    pub source: &'static str,
    /// Required for building the program.
    pub compiler: &'static str,
    /// Passed before the source.
    pub flags: &'static [&'static str],
    /// Passed after the source: libraries.
    pub libraries: &'static [&'static str],
}

/// Ranges whose shares are known, and differ by loop counts alone.
pub const KNOWN_SHARES: Program = Program {
    source: "known_shares.c",
    compiler: "cc",
    flags: &["-O2", "-g", "-pthread"],
    libraries: &[],
};

/// The same ranges as callers of one function.
pub const KNOWN_CALLERS: Program = Program {
    flags: &["-O2", "-g", "-pthread", "-DCALLED=SEPARATE"],
    ..KNOWN_SHARES
};

/// The same, with the function inlined.
pub const KNOWN_INLINED_CALLERS: Program = Program {
    flags: &["-O2", "-g", "-pthread", "-DCALLED=INLINED"],
    ..KNOWN_SHARES
};

/// Threads that live for 5 ms.
pub const SHORT_THREADS: Program = Program {
    source: "short_threads.c",
    ..KNOWN_SHARES
};

/// Runs a command under a seccomp filter.
pub const WITHOUT_PERF: Program = Program {
    source: "without_perf.c",
    ..KNOWN_SHARES
};

/// Threads without end.
pub const THREAD_STORM: Program = Program {
    source: "thread_storm.c",
    ..KNOWN_SHARES
};

/// Processes that fork and exec.
pub const FORK_EXEC: Program = Program {
    source: "fork_exec.c",
    ..KNOWN_SHARES
};

/// C++ with inlining, a PLT, copies and system calls.
pub const INLINED: Program = Program {
    source: "inlined.cpp",
    compiler: "c++",
    libraries: &["-lm"],
    ..KNOWN_SHARES
};

/// Known call chains, with frame pointers.
pub const RECURSION: Program = Program {
    source: "recursion.c",
    flags: &[
        "-O1",
        "-g",
        "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls",
    ],
    ..KNOWN_SHARES
};

/// A signal's handler that interrupts a known chain.
pub const IN_SIGNAL: Program = Program {
    source: "in_signal.c",
    flags: &["-O1", "-g", "-fomit-frame-pointer"],
    ..KNOWN_SHARES
};

/// A loop in assembly without an unwind table.
pub const ASSEMBLY: Program = Program {
    source: "assembly.c",
    ..IN_SIGNAL
};

/// A small JIT whose addresses are reused all the time.
pub const JIT_CHURN: Program = Program {
    source: "jit_churn.c",
    ..KNOWN_SHARES
};

/// Changes of executable mappings without end.
pub const MAP_STORM: Program = Program {
    source: "map_storm.c",
    ..KNOWN_SHARES
};

/// A process whose main thread has ended.
pub const LEFT_BY_MAIN: Program = Program {
    source: "left_by_main.c",
    ..KNOWN_SHARES
};

/// Pieces of code that a perf map names.
pub const PERF_MAP: Program = Program {
    source: "perf_map.c",
    ..KNOWN_SHARES
};

/// A process with the memory of a Cog VM.
pub const COG_REPLICA: Program = Program {
    source: "cog_replica.c",
    flags: &["-O2", "-g", "-pthread", "-no-pie", "-fno-pie"],
    ..KNOWN_SHARES
};

/// The memory layout of a Cog VM, with known chains of callers.
pub const COG_LAYOUT: Program = Program {
    source: "cog_layout.c",
    ..KNOWN_SHARES
};

/// All of them.
pub const ALL: [Program; 10] = [
    KNOWN_SHARES,
    SHORT_THREADS,
    THREAD_STORM,
    FORK_EXEC,
    INLINED,
    RECURSION,
    JIT_CHURN,
    MAP_STORM,
    LEFT_BY_MAIN,
    PERF_MAP,
];

/// A program of `tests/programs` that needs no compiler.
pub fn script(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name);
    assert!(path.exists(), "{}", path.display());
    path
}

/// The path of the compiled program; `None`, said on stderr, where the machine lacks the
/// compiler. A test that gets `None` returns: it has proved nothing.
///
/// # Panics
/// If an existing compiler fails: the program is broken.
pub fn build(program: Program) -> Option<PathBuf> {
    build_with(program, &[])
}

/// Builds with additional flags, such as `-fno-pie` or `-Wl,--build-id=none`.
pub fn build_with(program: Program, more_flags: &[&str]) -> Option<PathBuf> {
    build_linked(program, more_flags, None)
}

/// Builds `-DPUBLISHED`, as a VM that links `vmscope-publish`.
pub fn build_published(program: Program) -> Option<PathBuf> {
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../vm-hooks/publish/include");
    let deps = std::env::current_exe().expect("this test");
    let library = deps.with_file_name("libvmscope_publish.a");
    assert!(library.exists(), "{} is built", library.display());
    build_linked(program, &["-DPUBLISHED", "-I", include], Some(&library))
}

fn build_linked(program: Program, more_flags: &[&str], library: Option<&Path>) -> Option<PathBuf> {
    let Program {
        source,
        compiler,
        flags,
        libraries,
    } = program;
    let version = Command::new(compiler).arg("--version").output();
    let Some(version) = version.ok().filter(|output| output.status.success()) else {
        // Not eprintln!, which the test harness keeps to itself where a test passes.
        let message = format!("SKIPPED: {source} can't be built: there is no `{compiler}` here\n");
        std::io::stderr()
            .write_all(message.as_bytes())
            .expect("stderr");
        return None;
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(source);
    let text = std::fs::read(&path).expect("the program's source");
    let mut hasher = DefaultHasher::new();
    (
        &text,
        compiler,
        flags,
        libraries,
        more_flags,
        &version.stdout,
        library.map(|path| {
            path.metadata()
                .and_then(|facts| facts.modified())
                .expect("a file")
        }),
    )
        .hash(&mut hasher);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("programs")
        .join(format!("{:016x}", hasher.finish()));
    // Keeps the file name: it is what reports show.
    let name = path.file_stem().expect("a file name");
    let built = folder.join(name);
    if built.exists() {
        return Some(built);
    }
    std::fs::create_dir_all(&folder).expect("a folder under cargo's own");
    // Renamed when it is whole: another test may look for it right now.
    let draft = tempfile::Builder::new()
        .tempdir_in(&folder)
        .expect("a folder");
    let output = Command::new(compiler)
        .args(flags)
        .args(more_flags)
        .arg("-o")
        .arg(draft.path().join(name))
        .arg(&path)
        .args(library)
        .args(libraries)
        .args(library.map(|_| ["-ldl", "-lm"]).iter().flatten())
        .output()
        .expect("the compiler ran a moment ago");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{compiler} {source}: {}\n{errors}",
        output.status
    );
    std::fs::rename(draft.path().join(name), &built).expect("a file of ours, renamed");
    Some(built)
}
