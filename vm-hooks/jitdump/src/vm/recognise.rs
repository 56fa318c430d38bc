//! Which VM a process runs, told by the names of its modules, and what little its
//! memory adds.

use vmscope_process::region_table::{RegionEntry, rules};
use vmscope_process::{LoadedModule, ProcessView};
use vmscope_records::{Avma, RegionRule, VmIdentity};
use vmscope_v8::product::{self, Product};
use vmscope_v8::regions;

use super::{Vm, VmKind, beam, cpython, dotnet, julia, luajit, mono, php, ruby};

/// `execute_ex`, exported for extensions.
const EXECUTE_EX: &str = "execute_ex";
/// .NET's runtime.
const CORECLR: &str = "libcoreclr.so";
/// Maximum number of modules with the same rules.
const MAX_RULED_MODULES: usize = 256;
/// Since CPython 3.11, a word with the version in its upper bytes.
const PY_VERSION: &str = "Py_Version";

/// The VM of `process`, by its program and modules. A VM precedes an extension of
/// it. The symbols of large programs are searched if names tell nothing.
#[must_use]
pub fn recognise(process: &ProcessView) -> Option<Vm> {
    let modules = Modules::of(process);
    let by_name = [
        v8_by_name, dotnet, beam, mono, julia, php, cpython, by_library, ruby, luajit,
    ];
    by_name
        .iter()
        .find_map(|recognise| recognise(process, &modules))
        .or_else(|| v8_by_symbol(process, &modules))
}

/// The modules that code is mapped from, the program first.
struct Modules {
    all: Vec<(String, LoadedModule)>,
}

impl Modules {
    fn of(process: &ProcessView) -> Self {
        let program = process.program().as_bytes();
        let mut all: Vec<_> = process
            .modules()
            .into_iter()
            .filter(LoadedModule::has_code)
            .map(|module| (module.file_name(), module))
            .collect();
        // A stable sort: without a known program, the first module in memory stays first.
        all.sort_by_key(|(_, module)| module.path != program);
        Self { all }
    }

    fn program(&self) -> Option<&(String, LoadedModule)> {
        self.all.first()
    }

    /// The modules whose names `is_it` knows.
    fn find(&self, is_it: impl Fn(&str) -> bool) -> Vec<&(String, LoadedModule)> {
        self.all.iter().filter(|(name, _)| is_it(name)).collect()
    }

    /// The rules of `entries` for those modules.
    fn rules(&self, entries: &[RegionEntry], is_it: impl Fn(&str) -> bool) -> Vec<RegionRule> {
        let found = self.find(is_it).into_iter().take(MAX_RULED_MODULES);
        let names: Vec<String> = found.map(|(name, _)| name.clone()).collect();
        rules(entries, &names)
    }
}

/// Entries for the modules whose names the function knows.
type Table = (&'static [RegionEntry], fn(&str) -> bool);

/// Rules of the modules that are mapped now. VMs map some modules (compiler, precompiled code) after vmscope has
/// recognised them. Empty for V8, whose recognition tells its modules, and for VMs without rules.
#[must_use]
pub(crate) fn region_rules(kind: VmKind, process: &ProcessView) -> Vec<RegionRule> {
    let tables: &[Table] = match kind {
        VmKind::DotNet => &[
            (dotnet::COMPILER, |name| name == "libclrjit.so"),
            (dotnet::COLLECTOR, |name| {
                name.starts_with("libclrgc") && name.contains(".so")
            }),
            (dotnet::RUNTIME, |name| name == CORECLR),
        ],
        VmKind::Beam => &[(beam::REGIONS, is_beam)],
        VmKind::Mono => &[(mono::REGIONS, is_mono), (mono::AHEAD, is_ahead)],
        VmKind::Julia => &[
            (julia::COMPILER, |name| {
                is_library(name, "libjulia-codegen") || is_library(name, "libLLVM")
            }),
            (julia::RUNTIME, is_julia),
        ],
        VmKind::Php => &[
            (php::REGIONS, is_php),
            (php::OPCACHE, |name| name == "opcache.so"),
        ],
        VmKind::CPython => &[(cpython::REGIONS, is_cpython)],
        VmKind::LuaJit => &[(luajit::REGIONS, is_luajit)],
        VmKind::Other => &[(ruby::REGIONS, |name| is_library(name, "libruby"))],
        VmKind::V8 | VmKind::Wasmtime => &[],
    };
    if tables.is_empty() {
        return Vec::new();
    }
    let modules = Modules::of(process);
    let by_name = tables.iter();
    let by_name = by_name.flat_map(|(entries, is_it)| modules.rules(entries, is_it));
    match kind {
        VmKind::DotNet => dotnet::rules_of_threads(CORECLR)
            .into_iter()
            .chain(by_name)
            .collect(),
        _ => by_name.collect(),
    }
}

fn vm(kind: VmKind, name: &str, version: String) -> Vm {
    let identity = VmIdentity {
        kind: name.to_owned(),
        version,
    };
    Vm {
        kind,
        identity,
        rules: Vec::new(),
    }
}

/// Whether `name` is `program`, perhaps with a version (`php8.2`, `python3`,
/// `mono-sgen` not).
fn is_program(name: &str, program: &str) -> bool {
    let rest = name.strip_prefix(program);
    rest.is_some_and(|rest| {
        rest.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    })
}

/// Whether `name` is the library `lib`, in whatever version.
fn is_library(name: &str, lib: &str) -> bool {
    let rest = name.strip_prefix(lib);
    rest.is_some_and(|rest| rest.contains(".so"))
}

fn v8_by_name(process: &ProcessView, modules: &Modules) -> Option<Vm> {
    product::by_name(process, &modules.all).map(v8)
}

/// Programs with embedded V8 and another name.
fn v8_by_symbol(process: &ProcessView, modules: &Modules) -> Option<Vm> {
    product::by_symbol(process, modules.program()?).map(v8)
}

fn v8(product: Product) -> Vm {
    Vm {
        rules: regions::rules(&product.modules),
        ..vm(VmKind::V8, product.name, product.version)
    }
}

fn dotnet(_: &ProcessView, modules: &Modules) -> Option<Vm> {
    let found = modules.find(|name| name == CORECLR);
    let (_, runtime) = found.first()?;
    // …/shared/Microsoft.NETCore.App/8.0.4/libcoreclr.so
    let version =
        folder(runtime).filter(|folder| folder.starts_with(|first: char| first.is_ascii_digit()));
    Some(vm(VmKind::DotNet, ".NET", version.unwrap_or_default()))
}

fn beam(_: &ProcessView, modules: &Modules) -> Option<Vm> {
    let found = modules.find(is_beam);
    let (_, emulator) = found.first()?;
    // …/erts-13.1.5/bin/beam.smp
    let path = String::from_utf8_lossy(&emulator.path).into_owned();
    let version = path.split('/').find_map(|part| part.strip_prefix("erts-"));
    let version = version.map(|version| format!("ERTS {version}"));
    Some(vm(VmKind::Beam, "Erlang", version.unwrap_or_default()))
}

fn is_beam(name: &str) -> bool {
    matches!(name, "beam.smp" | "beam.jit.smp" | "beam.emu.smp")
}

fn mono(_: &ProcessView, modules: &Modules) -> Option<Vm> {
    modules.find(is_mono).first()?;
    Some(vm(VmKind::Mono, "Mono", String::new()))
}

fn is_mono(name: &str) -> bool {
    matches!(name, "mono" | "mono-sgen" | "mono-boehm")
        || is_library(name, "libmonosgen-2.0")
        || is_library(name, "libmonoboehm-2.0")
}

/// Code that Mono compiled ahead of time.
fn is_ahead(name: &str) -> bool {
    name.ends_with(".dll.so") || name.ends_with(".exe.so")
}

fn julia(_: &ProcessView, modules: &Modules) -> Option<Vm> {
    let found = modules.find(is_julia);
    let (name, _) = found.first()?;
    // libjulia-internal.so.1.10.5
    let version = name
        .split_once(".so.")
        .map(|(_, version)| version.to_owned());
    Some(vm(VmKind::Julia, "Julia", version.unwrap_or_default()))
}

fn is_julia(name: &str) -> bool {
    is_library(name, "libjulia-internal")
}

fn is_php(name: &str) -> bool {
    ["php", "php-fpm", "php-cgi", "phpdbg"]
        .iter()
        .any(|program| is_program(name, program))
        || (is_library(name, "libphp") && !name.starts_with("libphp-"))
}

/// Address of `execute_ex`, the loop of PHP's interpreter.
pub(crate) fn execute_ex(process: &ProcessView) -> Option<Avma> {
    let modules = Modules::of(process);
    let php = modules.find(is_php).into_iter();
    let mut found =
        php.filter_map(|(_, module)| *process.exported(module, &[EXECUTE_EX]).first()?);
    found.next()
}

fn php(_: &ProcessView, modules: &Modules) -> Option<Vm> {
    let found = modules.find(is_php);
    let (name, _) = found.first()?;
    Some(vm(VmKind::Php, "PHP", digits(name)))
}

fn cpython(process: &ProcessView, modules: &Modules) -> Option<Vm> {
    let found = modules.find(is_cpython);
    let (name, _) = found.first()?;
    // A library's version precedes the program's version.
    let version = found
        .iter()
        .rev()
        .find_map(|(_, module)| python_version(process, module));
    Some(vm(
        VmKind::CPython,
        "CPython",
        version.unwrap_or_else(|| digits(name)),
    ))
}

fn is_cpython(name: &str) -> bool {
    is_program(name, "python") || is_library(name, "libpython")
}

/// From `Py_Version`: 0x030c01f0 is 3.12.1.
fn python_version(process: &ProcessView, module: &LoadedModule) -> Option<String> {
    let found = process.exported(module, &[PY_VERSION]);
    let at = (*found.first()?)?;
    let word = process.memory().read_u32(at).ok()?;
    let [major, minor, micro, _] = word.to_be_bytes();
    (major == 3).then(|| format!("{major}.{minor}.{micro}"))
}

/// Wasmtime as a shared library. Programs with a static wasmtime are recognised by the names of its code.
fn by_library(_: &ProcessView, modules: &Modules) -> Option<Vm> {
    let is_it = |name: &str| name == "wasmtime" || is_library(name, "libwasmtime");
    modules.find(is_it).first()?;
    Some(vm(VmKind::Wasmtime, "Wasmtime", String::new()))
}

fn ruby(_: &ProcessView, modules: &Modules) -> Option<Vm> {
    let is_it = |name: &str| is_program(name, "ruby") || is_library(name, "libruby");
    let found = modules.find(is_it);
    let (name, _) = found.first()?;
    Some(vm(VmKind::Other, "Ruby", digits(name)))
}

fn luajit(_: &ProcessView, modules: &Modules) -> Option<Vm> {
    modules.find(is_luajit).first()?;
    Some(vm(VmKind::LuaJit, "LuaJIT", String::new()))
}

fn is_luajit(name: &str) -> bool {
    name.starts_with("luajit") || is_library(name, "libluajit")
}

/// The version in a module's name (`php8.2`, `libpython3.12.so.1.0`); empty where
/// there is none.
fn digits(name: &str) -> String {
    let name = name.split(".so").next().unwrap_or(name);
    let begin = name.find(|first: char| first.is_ascii_digit());
    let version = begin.map_or("", |at| &name[at..]);
    version.to_owned()
}

/// Name of a module's folder.
fn folder(module: &LoadedModule) -> Option<String> {
    let path = String::from_utf8_lossy(&module.path).into_owned();
    path.rsplit('/').nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests;
