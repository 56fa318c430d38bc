//! Whether a command may run a VM that reads the environment: itself, or as a program it starts.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use vmscope_process::{ElfFile, ModuleFile};

/// Libraries of plain native programs: the system's C and C++ runtimes, besides the
/// dynamic linker. Names up to the version.
const RUNTIMES: [&str; 8] = [
    "libc",
    "libdl",
    "libgcc_s",
    "libm",
    "libpthread",
    "librt",
    "libstdc++",
    "libutil",
];

/// Functions of the C library that start a program, and those that load a library.
const STARTERS: [&str; 19] = [
    "clone",
    "dlmopen",
    "dlopen",
    "execl",
    "execle",
    "execlp",
    "execv",
    "execve",
    "execveat",
    "execvp",
    "execvpe",
    "fexecve",
    "fork",
    "popen",
    "posix_spawn",
    "posix_spawnp",
    "system",
    "vfork",
    "wordexp",
];

/// Whether `program` may run a VM or start a program that does. Only a program that imports no
/// function to start programs or load libraries, and needs no library besides the C and C++
/// runtimes, does not. Scripts, static programs and unreadable files may.
pub(super) fn may_run_vms(program: &Path) -> bool {
    let names = || {
        let file = ModuleFile::from_file(File::open(program).ok()?).ok()?;
        let elf = ElfFile::open(Arc::new(file)).ok()?;
        elf.dynamic_names().ok()?
    };
    names().is_none_or(|names| {
        let mut names = names.iter().map(|name| String::from_utf8_lossy(name));
        names.any(|name| is_other_library(&name) || STARTERS.contains(&&*name))
    })
}

/// Whether a name is that of a shared library besides the runtimes.
fn is_other_library(name: &str) -> bool {
    let Some((stem, version)) = name.split_once(".so") else {
        return false;
    };
    let is_library = version.is_empty() || version.starts_with('.');
    let is_runtime = RUNTIMES.contains(&stem) || stem.starts_with("ld-linux");
    is_library && !is_runtime
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn runtimes_are_no_other_libraries() {
        for runtime in [
            "libc.so.6",
            "libstdc++.so.6",
            "ld-linux-x86-64.so.2",
            "libm.so",
        ] {
            assert!(!is_other_library(runtime), "{runtime}");
        }
        for other in [
            "libjli.so",
            "libnode.so.108",
            "libcrypto.so.3",
            "libmono-2.0.so",
        ] {
            assert!(is_other_library(other), "{other}");
        }
        for function in ["memcpy", "my.social"] {
            assert!(!is_other_library(function), "{function}");
        }
    }

    #[test]
    fn programs_that_start_none_are_told_from_those_that_may() {
        let folder = tempfile::tempdir().unwrap();
        let build = |name: &str, body: &str, options: &[&str]| {
            let source = folder.path().join(format!("{name}.c"));
            let program = folder.path().join(name);
            let text = format!("#include <stdlib.h>\nint main(void) {{ {body} }}\n");
            std::fs::write(&source, text).unwrap();
            let mut cc = Command::new("cc");
            cc.args(options).arg("-o").arg(&program).arg(&source);
            assert!(cc.status().unwrap().success(), "{cc:?}");
            program
        };
        let plain = build("plain", "return abs(-1);", &["-lm"]);
        assert!(!may_run_vms(&plain));
        let starts = build("starts", "return system(\"node x.js\");", &[]);
        assert!(may_run_vms(&starts));
        let is_static = build("static", "return abs(-1);", &["-static"]);
        assert!(may_run_vms(&is_static), "nothing is known of it");
        let script = folder.path().join("plain.c");
        assert!(may_run_vms(&script));
        assert!(may_run_vms(Path::new("/nonexistent")));
    }
}
