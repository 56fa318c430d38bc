//! Programs with V8: Node.js and others, by their names and symbols.

use vmscope_process::{LoadedModule, ProcessView};
use vmscope_records::Avma;

/// Least bytes of code of a module with V8 (Node.js: 26 MB). Symbols of smaller modules are not read.
const LEAST_CODE: u64 = 8 << 20;

/// Longest version of Node.js.
const MAX_VERSION_BYTES: u64 = 32;

/// `v8::V8::GetVersion()`, exported by each program that loads add-ons.
pub const V8_VERSION: &str = "_ZN2v82V810GetVersionEv";

/// `node::per_process::metadata`, a structure that begins with the version.
pub const NODE_METADATA: &str = "_ZN4node11per_process8metadataE";

pub(crate) const NODE: &str = "Node.js";

/// Chromium, other browsers from its source, and libraries that embed it.
pub const CHROMIUM: &str = "Chromium";

/// A program with V8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// Its name: `Node.js`.
    pub name: &'static str,
    /// Its version; empty if unknown.
    pub version: String,
    /// File names of its modules with V8, the one with V8's code first.
    pub modules: Vec<String>,
    /// Module with V8's code.
    pub module: LoadedModule,
}

impl Product {
    /// The product in a process; `None` without V8.
    #[must_use]
    pub fn of(process: &ProcessView) -> Option<Self> {
        let program = process.program().as_bytes();
        let modules = process.modules().into_iter();
        let named = modules.filter(LoadedModule::has_code);
        let mut named: Vec<_> = named.map(|module| (module.file_name(), module)).collect();
        named.sort_by_key(|(_, module)| module.path != program);
        by_name(process, &named).or_else(|| by_symbol(process, named.first()?))
    }

    /// Node.js's version now; empty while the program starts, and of other products.
    #[must_use]
    pub fn version_now(&self, process: &ProcessView) -> String {
        let is_node = self.name == NODE;
        let version = is_node.then(|| node_version(process, &self.module));
        version.flatten().unwrap_or_default()
    }
}

/// The product in a process, by the file names of `modules`.
#[must_use]
pub fn by_name(process: &ProcessView, modules: &[(String, LoadedModule)]) -> Option<Product> {
    let named = modules.iter().filter_map(|(name, module)| {
        let product = name_of(name)?;
        Some((product, name, module))
    });
    let named: Vec<_> = named.collect();
    let is_large = |module: &LoadedModule| module.code_bytes() >= LEAST_CODE;
    let (name, _, module) = named.iter().find(|(_, _, module)| is_large(module))?;
    let product = Product {
        name,
        version: String::new(),
        // A small `node` beside `libnode.so` has Node.js's own code too.
        modules: named.iter().map(|(_, name, _)| (*name).clone()).collect(),
        module: (*module).clone(),
    };
    let version = product.version_now(process);
    Some(Product { version, ..product })
}

fn name_of(module: &str) -> Option<&'static str> {
    let is_library = |library: &str| {
        let rest = module.strip_prefix(library);
        rest.is_some_and(|rest| rest.contains(".so"))
    };
    Some(match module {
        "node" | "nodejs" => NODE,
        "deno" => "Deno",
        "electron" => "Electron",
        "chromium" | "chrome" | "headless_shell" | "chrome-headless-shell" => CHROMIUM,
        "workerd" => "workerd",
        "d8" => "V8",
        _ if is_library("libnode") => NODE,
        _ if is_library("libv8") => "V8",
        _ if is_library("libcef") => CHROMIUM,
        _ if is_library("libQt5WebEngineCore") || is_library("libQt6WebEngineCore") => CHROMIUM,
        _ => return None,
    })
}

/// The product in a process whose program has another name and embeds V8.
#[must_use]
pub fn by_symbol(
    process: &ProcessView,
    (name, module): &(String, LoadedModule),
) -> Option<Product> {
    if module.code_bytes() < LEAST_CODE {
        return None;
    }
    let found = process.exported(module, &[V8_VERSION, NODE_METADATA]);
    (*found.first()?)?;
    let metadata = found.get(1).copied().flatten();
    let version = metadata.and_then(|at| version_at(process, at));
    Some(Product {
        name: if metadata.is_some() { NODE } else { "V8" },
        version: version.unwrap_or_default(),
        modules: vec![name.clone()],
        module: module.clone(),
    })
}

fn node_version(process: &ProcessView, module: &LoadedModule) -> Option<String> {
    let found = process.exported(module, &[NODE_METADATA]);
    version_at(process, (*found.first()?)?)
}

/// Node.js's version, from the C++ string (libstdc++: address, length) that its `metadata` begins with.
fn version_at(process: &ProcessView, metadata: Avma) -> Option<String> {
    let memory = process.memory();
    let text = memory.read_u64(metadata).ok()?;
    let length = memory.read_u64(metadata.checked_add(8)?).ok()?;
    if length == 0 || length > MAX_VERSION_BYTES {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    memory.read_into(Avma(text), &mut bytes).ok()?;
    let version = String::from_utf8(bytes).ok()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-+".contains(&byte);
    let begins = version
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_digit());
    (begins && version.bytes().all(plain)).then_some(version)
}
