//! Names of groups of objects.

use vmscope_records::MethodKey;
use vmscope_symbolizer::ids::ClassId;
use vmscope_symbolizer::lifetimes::Lifetimes;
use vmscope_symbolizer::lifetimes::groups::{Allocator, GroupKey};
use vmscope_symbolizer::{Trace, full_name, separator_of};

/// Names classes, methods and sites.
pub struct Names<'a> {
    trace: &'a Trace,
    lifetimes: &'a Lifetimes,
    separator: &'a str,
}

impl<'a> Names<'a> {
    pub fn new(trace: &'a Trace, lifetimes: &'a Lifetimes) -> Self {
        Names {
            trace,
            lifetimes,
            separator: separator_of(trace),
        }
    }

    /// The method's name with its class.
    pub fn method(&self, method: MethodKey) -> String {
        let known = self.trace.methods.get(&method);
        known.map_or_else(
            || "(unknown method)".to_owned(),
            |method| full_name(method, self.separator),
        )
    }

    /// Method and bytecode pc of the allocation: `Foo>>bar@36`, as the embedded VM's option
    /// `--pretenure` takes it.
    pub fn site(&self, site: Option<Allocator>) -> String {
        site.map_or_else(
            || "(unknown site)".to_owned(),
            |(method, pc)| format!("{}@{}", self.method(method), pc.get()),
        )
    }

    /// The class of a holder.
    pub fn holder(&self, class: Option<ClassId>) -> String {
        class.map_or_else(
            || "(a root, or unknown)".to_owned(),
            |id| self.lifetimes.classes[id].name.clone(),
        )
    }

    /// The name of a series in a chart; `None`: all other groups.
    pub fn series(&self, key: Option<GroupKey>) -> String {
        key.map_or_else(|| "others".to_owned(), |key| self.group(key))
    }

    pub fn group(&self, key: GroupKey) -> String {
        let class = |id| self.lifetimes.classes[id].name.clone();
        match key {
            GroupKey::All => "all objects".to_owned(),
            GroupKey::Class(id) => class(id),
            GroupKey::Site(site) => self.site(site),
            GroupKey::Method(Some(method)) => self.method(method),
            GroupKey::Method(None) => "(unknown method)".to_owned(),
            GroupKey::ClassAndSite(id, site) => format!("{} ({})", self.site(site), class(id)),
        }
    }
}
