//! Names of functions in stacks.

use crate::present::names::region_letter;
use crate::present::shorten::Name;
use crate::present::text::harmless;
use serde_json::{Value, json};
use vmscope_symbolizer::calls::Function;
use vmscope_symbolizer::profile::Begin;

/// Name of nameless functions.
pub const NAMELESS: &str = "(no name)";

/// Caller of a stack's outermost function: nobody, or unknown where the stack was cut off.
pub const NOBODY: &str = "(no known caller)";

const THREAD: char = 'T';

/// Region letter; lower case for an inlined function.
pub fn letter(function: &Function, is_native: bool) -> char {
    let letter = function
        .region
        .map_or(THREAD, |region| region_letter(region, is_native));
    if function.inlined {
        letter.to_ascii_lowercase()
    } else {
        letter
    }
}

/// A function's name with its begin and tier, safe for terminals.
pub fn name_of(name: &str, begin: Option<&Begin>, tier: &str) -> String {
    harmless(&parts_of(name, begin, tier, true).full())
}

/// Name with begin and tier.
pub fn full(function: &Function) -> String {
    name_of(&function.name, function.begin.as_ref(), &function.tier)
}

/// Name with begin and tier, for a table. `whole_path`: see [`Begin::text`].
pub fn parts(function: &Function, whole_path: bool) -> Name<'_> {
    let begin = function.begin.as_ref();
    parts_of(&function.name, begin, &function.tier, whole_path)
}

fn parts_of<'a>(name: &'a str, begin: Option<&Begin>, tier: &str, whole_path: bool) -> Name<'a> {
    let mut tail = String::new();
    if let Some(begin) = begin {
        tail.push_str(&format!(" {}", begin.text(whole_path)));
    }
    if !tier.is_empty() {
        tail.push_str(&format!(" ({tier})"));
    }
    Name {
        name: match name.trim() {
            "" => NAMELESS,
            _ => name,
        },
        place: None,
        tail,
    }
}

/// Adds a source position to JSON: `file` and `line`, each if known.
pub fn put_place(value: &mut Value, file: &str, line: Option<u32>) {
    if !file.is_empty() {
        value["file"] = file.into();
    }
    if let Some(line) = line {
        value["line"] = line.into();
    }
}

/// A function as JSON: `name`, and where they apply `region`, `tier`, `inlined`.
pub fn json(name: &str, tier: &str, region: Option<&'static str>, inlined: bool) -> Value {
    let mut value = json!({ "name": name });
    if let Some(region) = region {
        value["region"] = region.into();
    }
    if !tier.is_empty() {
        value["tier"] = tier.into();
    }
    if inlined {
        value["inlined"] = true.into();
    }
    value
}
