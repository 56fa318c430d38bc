//! Runs Smalltalk files in an in-process VM and captures their output.
#![allow(dead_code, reason = "each test uses a part")]

use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use vmscope_reference_vm::image::LoadError;
use vmscope_reference_vm::memory::{Parameters, Stress};
use vmscope_reference_vm::{JitOptions, Options, Outcome, Vm};

/// Output buffer shared with the test.
#[derive(Clone, Default)]
pub struct Text(Rc<RefCell<Vec<u8>>>);

impl Text {
    pub fn get(&self) -> String {
        String::from_utf8_lossy(&self.0.borrow()).into_owned()
    }

    /// Takes the text; the buffer is empty afterwards.
    pub fn take(&self) -> String {
        String::from_utf8_lossy(&self.0.take()).into_owned()
    }
}

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A VM with captured output.
pub struct Running {
    pub vm: Vm,
    pub output: Text,
    pub errors: Text,
}

/// Starts a VM.
pub fn vm(memory: Parameters, arguments: &[&str]) -> Running {
    vm_with(memory, JitOptions::default(), arguments)
}

/// Starts a VM with optional JIT.
pub fn vm_with(memory: Parameters, jit: JitOptions, arguments: &[&str]) -> Running {
    let (output, errors) = (Text::default(), Text::default());
    let options = Options {
        memory,
        arguments: arguments
            .iter()
            .map(|&argument| argument.to_owned())
            .collect(),
        output: Box::new(output.clone()),
        errors: Box::new(errors.clone()),
        jit,
        ..Options::default()
    };
    let vm = Vm::new(options).expect("the class library loads");
    Running { vm, output, errors }
}

impl Running {
    /// Loads a text as a file.
    pub fn load(&mut self, text: &str) -> Result<Outcome, LoadError> {
        self.vm.load("test.st", text)
    }

    /// Runs a text that must succeed; returns its output.
    pub fn output_of(&mut self, text: &str) -> String {
        let outcome = self.load(text);
        let (output, errors) = (self.output.get(), self.errors.get());
        assert!(
            matches!(outcome, Ok(Outcome::Value(_))),
            "{outcome:?}\n{output}\n{errors}"
        );
        output
    }
}

/// Path and text of the crate's Smalltalk source file `path`.
pub fn source(path: &str) -> (PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("smalltalk")
        .join(path);
    let text = std::fs::read_to_string(&path).expect("the file is there");
    (path, text)
}

/// File names in a folder of Smalltalk sources.
pub fn files(folder: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("smalltalk")
        .join(folder);
    let entries = std::fs::read_dir(path).expect("the folder is there");
    let names = entries.map(|entry| {
        entry
            .expect("an entry")
            .file_name()
            .into_string()
            .expect("UTF-8")
    });
    let mut names: Vec<String> = names.map(|name| format!("{folder}/{name}")).collect();
    names.sort();
    names
}

/// Memory modes by name. Stress modes verify the heap after each collection.
pub fn modes() -> Vec<(&'static str, Parameters)> {
    let stress = |eden_bytes, collect_every, full_every, tenure_all| Parameters {
        eden_bytes,
        growth_headroom: 256 << 10,
        shrink_threshold: 512 << 10,
        tenuring_threshold: if tenure_all { 0 } else { 90 },
        stress: Stress {
            collect_every,
            full_every,
            verify: true,
        },
        ..Parameters::default()
    };
    vec![
        ("ordinary", Parameters::default()),
        (
            "a collection at every 4001st allocation",
            stress(1 << 20, 4001, 0, false),
        ),
        ("a tiny eden", stress(64 << 10, 0, 0, false)),
        ("every survivor tenured", stress(256 << 10, 0, 0, true)),
        (
            "every third collection is full",
            stress(256 << 10, 0, 3, false),
        ),
        ("all at once", stress(64 << 10, 301, 5, true)),
    ]
}

/// No machine code.
pub fn interpreted() -> JitOptions {
    JitOptions {
        on: false,
        ..JitOptions::default()
    }
}

/// Compiles every method before its first run.
pub fn compiled_at_once() -> JitOptions {
    JitOptions {
        compile_at: 1,
        loops: 3,
        ..JitOptions::default()
    }
}

/// Compiles every method before its first run; the tiny code zone is always full.
pub fn compiled_in_a_tiny_zone() -> JitOptions {
    JitOptions {
        zone_bytes: 24 << 10,
        ..compiled_at_once()
    }
}

/// JIT modes by name: interpreter only, default JIT, constant compilation in a tiny zone.
fn jit_modes() -> Vec<(&'static str, JitOptions)> {
    let mut modes = vec![("interpreted", interpreted())];
    if cfg!(target_arch = "x86_64") {
        modes.push(("jitted", JitOptions::default()));
        modes.push(("jitted in a tiny zone", compiled_in_a_tiny_zone()));
    }
    modes
}

/// All combinations of memory and JIT modes, by name.
pub fn all_modes() -> Vec<(String, Parameters, JitOptions)> {
    let mut all = Vec::new();
    for (memory_name, memory) in modes() {
        for (jit_name, jit) in jit_modes() {
            // Slow in a tiny zone: run only without stress and with full stress.
            let is_tiny = jit.zone_bytes < JitOptions::default().zone_bytes;
            if is_tiny && !matches!(memory_name, "ordinary" | "all at once") {
                continue;
            }
            all.push((format!("{memory_name}, {jit_name}"), memory.clone(), jit));
        }
    }
    all
}
