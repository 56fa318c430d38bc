//! The first half of a pair: the constituent's kind and names.

use vmscope_records::{Avma, ConstituentKind, PicCase};

use crate::adapter::FREED;
use crate::describe::NamedCase;
use crate::trampolines::Trampoline;

/// Prefix of blocks inside methods, which primitive 253 omits and `vmscope constituents --pairs --all` adds.
const INSIDE: &str = "inside ";

/// Separates class and selector.
const SEPARATOR: &str = ">>";

/// What a pair is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// Run-time code, or a border of the zone.
    Named(String),
    /// A method or block.
    Method(String),
    /// A block inside the method before it.
    Inside(String),
    /// A PIC without cases: closed or open.
    Pic(String),
    /// A closed PIC.
    Closed(String, Vec<NamedCase>),
    /// A freed entry, with its selector.
    Freed(String),
}

/// Parses an item. `None` for an unknown form.
pub(super) fn parse(text: &str) -> Option<Item> {
    if let Some(name) = text.strip_prefix('~') {
        return Some(Item::Named(name.strip_suffix('~')?.to_owned()));
    }
    if let Some(list) = text.strip_prefix("(#") {
        let mut words = list.strip_suffix(')')?.split_ascii_whitespace();
        let selector = words.next()?.to_owned();
        return Some(Item::Closed(selector, cases(words)?));
    }
    if let Some(selector) = text.strip_prefix('#') {
        return Some(Item::Pic(selector.to_owned()));
    }
    if text == FREED {
        return Some(Item::Freed(String::new()));
    }
    if let Some(selector) = text.strip_prefix(FREED)
        && let Some(selector) = selector.strip_prefix(" #")
    {
        return Some(Item::Freed(selector.to_owned()));
    }
    if let Some(name) = text.strip_prefix(INSIDE) {
        return name
            .contains(SEPARATOR)
            .then(|| Item::Inside(name.to_owned()));
    }
    // vmscope writes an empty name for a method with damaged objects.
    (text.is_empty() || text.contains(SEPARATOR)).then(|| Item::Method(text.to_owned()))
}

/// Pairs of a class and a target. A word `class` belongs to the class before it, in targets with the
/// selector behind.
fn cases<'t>(words: impl Iterator<Item = &'t str>) -> Option<Vec<NamedCase>> {
    let mut words = words.peekable();
    let mut cases = Vec::new();
    while let Some(class) = words.next() {
        let meta = words.next_if(|word| *word == "class");
        let class = match (class, meta) {
            ("nil", _) => String::new(),
            (class, Some(_)) => format!("{class} class"),
            (class, None) => class.to_owned(),
        };
        let first = words.next()?;
        let of_metaclass = words.next_if(|word| word.starts_with("class>>"));
        let target = match of_metaclass {
            Some(rest) => format!("{first} {rest}"),
            None => first.to_owned(),
        };
        cases.push(NamedCase { class, target });
    }
    Some(cases)
}

/// Kind and name of run-time code.
pub(super) fn run_time(name: String, start: Avma) -> (ConstituentKind, String) {
    let trampoline = Trampoline {
        name,
        start,
        end: start,
    };
    let kind = match trampoline.is_enilopmart() {
        true => ConstituentKind::Enilopmart,
        false => ConstituentKind::Trampoline,
    };
    (kind, trampoline.name)
}

/// Class and selector of a method's or block's name. A block's class begins with `[] in `.
pub(super) fn class_and_selector(name: &str) -> Option<(String, String)> {
    let (class, selector) = name.split_once(SEPARATOR)?;
    Some((class.to_owned(), selector.to_owned()))
}

/// The case in a record.
pub(super) fn record(case: &NamedCase) -> PicCase {
    PicCase {
        class: case.class.clone(),
        method: None,
        target: case.target.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(class: &str, target: &str) -> NamedCase {
        NamedCase {
            class: class.to_owned(),
            target: target.to_owned(),
        }
    }

    #[test]
    fn each_form_of_an_item_is_known() {
        let text = |text: &str| text.to_owned();
        let closed = "(#name nil Class>>name Bench class Class>>name A Foo class>>at: B #doesNotUnderstand: )";
        let forms = [
            ("~ceGetFP~", Item::Named(text("ceGetFP"))),
            ("Bench>>fib:", Item::Method(text("Bench>>fib:"))),
            ("[] in A class>>>>", Item::Method(text("[] in A class>>>>"))),
            ("inside [] in A>>b", Item::Inside(text("[] in A>>b"))),
            ("", Item::Method(text(""))),
            ("##", Item::Pic(text("#"))),
            ("#|", Item::Pic(text("|"))),
            ("freed", Item::Freed(text(""))),
            ("freed #>>", Item::Freed(text(">>"))),
            ("(#, )", Item::Closed(text(","), vec![])),
            (
                closed,
                Item::Closed(
                    text("name"),
                    vec![
                        case("", "Class>>name"),
                        case("Bench class", "Class>>name"),
                        case("A", "Foo class>>at:"),
                        case("B", "#doesNotUnderstand:"),
                    ],
                ),
            ),
        ];
        for (form, item) in forms {
            assert_eq!(parse(form), Some(item), "{form}");
        }
        for wrong in [
            "~a", "~", "(#", "(#a B)", "(", "name", "inside x", "freed x",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert_eq!(class_and_selector("A>>>>"), Some((text("A"), text(">>"))));
    }
}
