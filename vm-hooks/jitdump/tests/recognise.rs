//! VMs of this machine, running, are recognised from outside.

#![allow(clippy::unwrap_used, reason = "a test that fails is to panic")]

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};

use vmscope_jitdump::vm::{Vm, VmKind, recognise};
use vmscope_process::{LoadedModule, ProcessView};
use vmscope_records::{FunctionName, Pid, Region, ThreadRole};

/// A VM that has said something, and waits to be told to end.
struct Running(Child);

impl Running {
    /// `None`, and a loud message, on a machine without this VM.
    fn start(program: &str, arguments: &[&str]) -> Option<Self> {
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        match child {
            Ok(mut child) => {
                let mut ready = [0];
                child.stdout.as_mut()?.read_exact(&mut ready).ok()?;
                Some(Self(child))
            }
            Err(error) => {
                // Not by eprintln!, which the harness keeps where a test passes.
                let mut stderr = std::io::stderr();
                writeln!(stderr, "SKIPPED: no {program} here ({error})").unwrap();
                None
            }
        }
    }

    fn view(&self) -> ProcessView {
        ProcessView::open(Pid(self.0.id())).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(input) = &mut self.0.stdin {
            let _ = input.write_all(b"\n");
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn node_with_its_version_and_the_places_of_its_builtins() {
    let script = "process.stdin.on('data',()=>process.exit()); console.log('x')";
    let Some(node) = Running::start("node", &["-e", script]) else {
        return;
    };
    let view = node.view();
    let vm = recognise(&view).unwrap();
    assert_eq!(vm.kind, VmKind::V8);
    assert_eq!(vm.identity.kind, "Node.js");
    assert_eq!(
        vm.identity.version,
        output("node", &["-p", "process.versions.node"])
    );
    let owns = |module: &LoadedModule| {
        let name = module.file_name();
        vm.rules.iter().any(|rule| rule.module == name)
    };
    let modules: Vec<_> = view.modules().into_iter().filter(owns).collect();
    assert!(
        !modules.is_empty(),
        "the rules are for modules that are there"
    );
    for module in modules {
        let Ok(builtins) = view.symbols_beginning(&module, &["Builtins_"], 10_000) else {
            continue;
        };
        for builtin in builtins {
            check_builtin(&vm, &module.file_name(), &builtin.name);
        }
    }
}

/// A builtin is generated code, or interpreter code if it handles a bytecode.
fn check_builtin(vm: &Vm, module: &str, name: &str) {
    let own = vm.rules.iter().filter(|rule| rule.module == module);
    let mut fits = own.filter_map(|rule| {
        Some((
            rule,
            rule.apply(FunctionName::new(name), ThreadRole::Other)?,
        ))
    });
    let (rule, shown) = fits.next().unwrap();
    let of_bytecode = name.ends_with("Handler") && !name.contains("AtomicsMutex");
    let expected = if of_bytecode || name.starts_with("Builtins_Interpreter") {
        Region::Interpreter
    } else {
        Region::Generated
    };
    assert_eq!(rule.region, expected, "{name}");
    assert!(
        name.contains(shown) && !shown.starts_with("Builtins_"),
        "{name}"
    );
}

#[test]
fn python_with_its_version() {
    let script = "import sys; print('x', flush=True); sys.stdin.readline()";
    let Some(python) = Running::start("python3", &["-c", script]) else {
        return;
    };
    let vm = recognise(&python.view()).unwrap();
    assert_eq!(vm.kind, VmKind::CPython);
    let version = "import platform; print(platform.python_version())";
    let version = output("python3", &["-c", version]);
    assert!(!vm.identity.version.is_empty());
    assert!(version.starts_with(&vm.identity.version), "{version}");
}

#[test]
fn php_and_what_is_no_vm() {
    let Some(cat) = Running::start("sh", &["-c", "echo x; read y"]) else {
        return;
    };
    assert!(recognise(&cat.view()).is_none());
    let script = "echo 'x'; fgets(STDIN);";
    let Some(php) = Running::start("php", &["-r", script]) else {
        return;
    };
    assert_eq!(recognise(&php.view()).unwrap().kind, VmKind::Php);
}
