//! Names of functions in stacks.

use crate::present::names::region_letter;
use crate::present::shorten::Name;
use crate::present::text::harmless;
use serde_json::{Value, json};
use vmscope_symbolizer::calls::Function;

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

/// A function's name with its tier, safe for terminals.
pub fn name_of(name: &str, tier: &str) -> String {
    let name = match harmless(name) {
        name if name.trim().is_empty() => NAMELESS.to_owned(),
        name => name,
    };
    match tier {
        "" => name,
        tier => format!("{name} ({})", harmless(tier)),
    }
}

/// Name with its tier.
pub fn full(function: &Function) -> String {
    name_of(&function.name, &function.tier)
}

/// Name with its tier, for a table.
pub fn parts(function: &Function) -> Name<'_> {
    let name = match function.name.trim() {
        "" => NAMELESS,
        _ => &function.name,
    };
    let tail = match &*function.tier {
        "" => String::new(),
        tier => format!(" ({tier})"),
    };
    let place = None;
    Name { name, place, tail }
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
