//! Methods, and names of code.

use rustc_hash::FxHashMap;
use vmscope_records::{Constituent, ConstituentKind, MethodKey};

use super::Identity;
use super::patterns::Patterns;
use crate::code::Kind;

/// A function. Workers run equal functions of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct MethodId {
    pub name: String,
    pub file: String,
    /// Number of a script without a name.
    pub script: i32,
    pub position: Option<u32>,
}

/// Names of known code.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub methods: FxHashMap<MethodKey, String>,
    pub patterns: Patterns,
}

impl Names {
    /// Completes a constituent, but for its map.
    pub fn describe(&self, identity: &Identity, constituent: &mut Constituent) {
        constituent.kind = kind_of(identity.kind);
        constituent.tier = identity.kind.tier().to_owned();
        constituent.method = identity.method;
        let name = match identity.kind {
            Kind::RegExp => self.patterns.name(identity),
            _ => (identity.method).and_then(|method| Some(self.methods.get(&method)?.as_str())),
        };
        constituent.name = name.unwrap_or(shown_kind(identity.kind)).to_owned();
    }
}

pub(super) fn kind_of(kind: Kind) -> ConstituentKind {
    match kind {
        Kind::Baseline | Kind::Maglev | Kind::Turbofan => ConstituentKind::Method,
        Kind::Interpreted => ConstituentKind::Interpreter,
        Kind::RegExp => ConstituentKind::RegExp,
        Kind::Builtin | Kind::Wasm => ConstituentKind::Stub,
    }
}

/// Name of code without a function.
pub(super) fn shown_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Baseline | Kind::Maglev | Kind::Turbofan => "",
        Kind::Interpreted => "interpreter entry",
        Kind::RegExp => "(regular expression)",
        Kind::Builtin => "(builtin's entry)",
        Kind::Wasm => "(WebAssembly)",
    }
}

pub(super) fn shown_name(id: &MethodId) -> String {
    match (&*id.name, id.position) {
        ("", Some(0)) if !id.file.is_empty() => "(top level)".to_owned(),
        ("", _) => "(anonymous)".to_owned(),
        (name, _) => name.to_owned(),
    }
}
