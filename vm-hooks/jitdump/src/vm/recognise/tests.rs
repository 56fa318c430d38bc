use std::sync::Arc;

use vmscope_process::testing::FakeMemory;
use vmscope_process::{MapEntry, ProcessView, Symbol, SymbolKind};
use vmscope_records::{Avma, FileOffset, Pid, Region};

use super::super::VmKind;
use super::{PY_VERSION, recognise, region_rules};
use vmscope_v8::product::{NODE_METADATA, V8_VERSION};

/// Code of the file `path`, `megabytes` of it, at that many gigabytes.
fn code(path: &str, at: u64, megabytes: u64) -> MapEntry {
    MapEntry {
        start: Avma(at << 30),
        end: Avma((at << 30) + (megabytes << 20)),
        offset: FileOffset(0),
        device: 1,
        inode: at,
        name: path.as_bytes().to_vec(),
        readable: true,
        writable: false,
        executable: true,
    }
}

fn symbol(name: &str, address: u64) -> Symbol {
    Symbol {
        name: name.to_owned(),
        address: Avma(address),
        size: 0,
        kind: SymbolKind::Object,
    }
}

fn view(memory: FakeMemory, maps: Vec<MapEntry>) -> ProcessView {
    ProcessView::fake(Pid(7), Arc::new(memory), maps)
}

fn seen(paths: &[&str]) -> Option<(VmKind, String, String)> {
    let maps = paths.iter().zip(1..);
    let maps = maps.map(|(path, at)| code(path, at, 16)).collect();
    let vm = recognise(&view(FakeMemory::new(), maps))?;
    Some((vm.kind, vm.identity.kind, vm.identity.version))
}

#[test]
fn vms_are_told_by_their_modules() {
    let table = [
        ("/usr/bin/node", VmKind::V8, "Node.js", ""),
        ("/x/deno", VmKind::V8, "Deno", ""),
        ("/x/workerd", VmKind::V8, "workerd", ""),
        ("/usr/lib/chromium/chromium", VmKind::V8, "Chromium", ""),
        (
            "/q/libQt6WebEngineCore.so.6.8.2",
            VmKind::V8,
            "Chromium",
            "",
        ),
        (
            "/usr/lib/erlang/erts-13.1.5/bin/beam.smp",
            VmKind::Beam,
            "Erlang",
            "ERTS 13.1.5",
        ),
        ("/usr/bin/php8.2", VmKind::Php, "PHP", "8.2"),
        ("/usr/bin/python3.12", VmKind::CPython, "CPython", "3.12"),
        ("/usr/bin/mono-sgen", VmKind::Mono, "Mono", ""),
        ("/usr/bin/ruby3.1", VmKind::Other, "Ruby", "3.1"),
        ("/usr/bin/luajit-2.1.0-beta3", VmKind::LuaJit, "LuaJIT", ""),
        ("/usr/bin/wasmtime", VmKind::Wasmtime, "Wasmtime", ""),
    ];
    for (path, kind, name, version) in table {
        let expected = Some((kind, name.to_owned(), version.to_owned()));
        assert_eq!(seen(&[path]), expected, "{path}");
    }
    let dotnet = seen(&[
        "/a/app",
        "/usr/share/dotnet/shared/Microsoft.NETCore.App/8.0.4/libcoreclr.so",
    ]);
    assert_eq!(
        dotnet,
        Some((VmKind::DotNet, ".NET".to_owned(), "8.0.4".to_owned()))
    );
    let julia = seen(&["/j/bin/julia", "/j/lib/libjulia-internal.so.1.10.5"]);
    assert_eq!(
        julia,
        Some((VmKind::Julia, "Julia".to_owned(), "1.10.5".to_owned()))
    );
    for other in ["/usr/bin/bash", "/usr/bin/pythonic", "/usr/bin/phpize"] {
        assert_eq!(seen(&[other]), None, "{other}");
    }
}

#[test]
fn a_small_program_called_node_is_none() {
    let maps = vec![code("/opt/bitcoin/node", 1, 2)];
    assert!(recognise(&view(FakeMemory::new(), maps)).is_none());
}

#[test]
fn node_tells_its_version() {
    let version = |length: u64, text: &[u8]| {
        let mut memory = FakeMemory::new();
        let mut string = 0x2000_u64.to_le_bytes().to_vec();
        string.extend(length.to_le_bytes());
        memory.put(Avma(0x1000), string);
        memory.put(Avma(0x2000), text.to_vec());
        let view = view(memory, vec![code("/usr/bin/node", 1, 26)]);
        let view = view.with_symbols("/usr/bin/node", vec![symbol(NODE_METADATA, 0x1000)]);
        recognise(&view).unwrap().identity.version
    };
    assert_eq!(version(7, b"20.20.2\0"), "20.20.2");
    assert_eq!(version(7, b"20.\n0.2\0"), "");
    assert_eq!(version(u64::MAX, b"20.20.2\0"), "");
    assert_eq!(version(32, b"20.20.2\0"), "", "not all of it is there");
}

#[test]
fn v8_under_another_name_is_told_by_its_symbols() {
    let app = |symbols: &[&str]| {
        let view = view(FakeMemory::new(), vec![code("/opt/app", 1, 26)]);
        let symbols = symbols.iter().map(|name| symbol(name, 0x1000)).collect();
        recognise(&view.with_symbols("/opt/app", symbols)).map(|vm| (vm.kind, vm.identity.kind))
    };
    assert_eq!(app(&[V8_VERSION]), Some((VmKind::V8, "V8".to_owned())));
    assert_eq!(
        app(&[V8_VERSION, NODE_METADATA]),
        Some((VmKind::V8, "Node.js".to_owned()))
    );
    assert_eq!(app(&["main"]), None);
}

#[test]
fn python_tells_its_version_and_its_rules_are_for_the_library() {
    let mut memory = FakeMemory::new();
    memory.put(Avma(0x1000), 0x030c_01f0_u64.to_le_bytes().to_vec());
    let library = "/usr/lib/libpython3.12.so.1.0";
    let maps = vec![code("/usr/bin/python3.12", 1, 1), code(library, 2, 4)];
    let view = view(memory, maps).with_symbols(library, vec![symbol(PY_VERSION, 0x1000)]);
    let vm = recognise(&view).unwrap();
    assert_eq!(vm.identity.version, "3.12.1");
    let rules = region_rules(vm.kind, &view);
    assert!(
        rules
            .iter()
            .any(|rule| rule.module == "libpython3.12.so.1.0")
    );
    assert!(vm.hint().contains("-X perf"));
}

#[test]
fn rubys_library_is_the_vm() {
    let maps = |library| vec![code("/usr/bin/ruby3.1", 1, 1), code(library, 2, 4)];
    let rules = |library| {
        let view = view(FakeMemory::new(), maps(library));
        region_rules(recognise(&view).unwrap().kind, &view)
    };
    let found = rules("/usr/lib/libruby-3.1.so.3.1");
    let regions = found.iter().map(|rule| rule.region);
    assert_eq!(
        regions.collect::<Vec<_>>(),
        [Region::Gc, Region::Interpreter, Region::Vm]
    );
    assert!(found.iter().all(|rule| rule.module == "libruby-3.1.so.3.1"));
    assert!(rules("/usr/lib/libc.so.6").is_empty());
}
