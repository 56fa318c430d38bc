//! Names in the room there is: what tells least goes first, and what is left stays legible.
//!
//! A Java method is `package.Class.method(parameters)`. Where that is too long it loses its
//! file and line (the class says where it is), then its package (`j.u.HashMap.get(Object)`),
//! then its parameters. Other functions lose their parameters alone. JSON has the full names.

use crate::present::text::{fit, harmless};
use unicode_width::UnicodeWidthStr;

/// Stands for parameters that are left out.
const PARAMETERS: &str = "(...)";

/// Shorter than this, a name tells less than a piece of all there is to say.
const SHORTEST: usize = 16;

/// How much of a name is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Full,
    /// Packages by their initials.
    Initials,
    /// The same without parameters.
    WithoutParameters,
    /// Class and method, and that there are parameters.
    Bare,
    /// Class and method.
    Named,
    /// The method.
    Method,
}

const LENGTHS: [Length; 4] = [
    Length::Full,
    Length::Initials,
    Length::WithoutParameters,
    Length::Bare,
];

/// The name of an entry in at most `columns`: `name place tail`. The tail (its tier …) is
/// kept whole where it leaves room for a name.
pub fn label(name: &str, place: Option<&str>, tail: &str, columns: usize) -> String {
    let place = place.map_or_else(String::new, |place| format!(" {place}"));
    let full = format!("{name}{place}{tail}");
    let fits = |text: &String| harmless(text).width() <= columns;
    if fits(&full) {
        return full;
    }
    if let Some(shorter) = legible(name, tail, columns) {
        return shorter;
    }
    let room = columns.saturating_sub(harmless(tail).width());
    if room < SHORTEST {
        return full;
    }
    let name = of_length(name, Length::Bare);
    format!("{}{tail}", fit(&name, room).trim_end())
}

/// A name and what is behind it in at most `columns`, where nothing has to be cut off.
pub fn legible(name: &str, tail: &str, columns: usize) -> Option<String> {
    let texts = LENGTHS.map(|length| format!("{}{tail}", of_length(name, length)));
    let fits = |text: &String| harmless(text).width() <= columns;
    texts.into_iter().find(fits)
}

/// A place (in full, and as short as it can be said) and what it was inlined through,
/// innermost first (each a name and where in it), in at most `columns`: all of it with the
/// longest names that fit, else as many of the innermost as do, and the outermost, which is
/// the method that was compiled.
pub fn chain(place: (&str, &str), outer: &[(&str, String)], columns: usize) -> String {
    let of = |place: &str, length: Length, shown: usize| {
        let frame = |(name, at): &(&str, String)| format!(" < {}{at}", of_length(name, length));
        let left_out = outer.len().saturating_sub(shown);
        let last = usize::from(left_out > 0 && shown > 1);
        let mut text = place.to_owned();
        text.extend(outer.iter().take(shown - last).map(frame));
        if left_out > 0 {
            text.push_str(&format!(" < {left_out} more"));
        }
        text.extend(outer.iter().rev().take(last).map(frame));
        text
    };
    let fits = |text: &String| harmless(text).width() <= columns;
    let all = outer.len();
    let whole = [
        Length::Full,
        Length::Initials,
        Length::Named,
        Length::Method,
    ];
    let whole = whole.map(|length| of(place.0, length, all));
    let short = std::iter::once(of(place.1, Length::Method, all));
    let some = (1..all).rev().flat_map(|shown| {
        let named = of(place.0, Length::Named, shown);
        // Methods without their classes, rather than fewer of them.
        let bare = of(place.0, Length::Method, shown);
        [named, bare, of(place.1, Length::Method, shown)]
    });
    let found = whole.into_iter().chain(short).chain(some).find(fits);
    found.unwrap_or_else(|| of(place.1, Length::Method, all.min(1)))
}

fn of_length(name: &str, length: Length) -> String {
    if length == Length::Full {
        return name.to_owned();
    }
    let Some(java) = JavaName::parse(name) else {
        let mark = match length {
            Length::Initials => return name.to_owned(),
            Length::Named | Length::Method => "",
            _ => PARAMETERS,
        };
        return without_parameters(name, mark).unwrap_or_else(|| name.to_owned());
    };
    let package = match length {
        Length::Initials | Length::WithoutParameters => initials(java.package),
        _ => String::new(),
    };
    let class_method = match length {
        Length::Method => java.class_method.rsplit('.').next(),
        _ => None,
    };
    let class_method = class_method.unwrap_or(java.class_method);
    let parameters = match length {
        Length::Initials => java.parameters,
        Length::Named | Length::Method => "",
        // Those without any are as short.
        _ if java.parameters == "()" => "()",
        _ => PARAMETERS,
    };
    format!("{package}{class_method}{parameters}{}", java.rest)
}

/// `java.util.` as `j.u.`.
fn initials(package: &str) -> String {
    let parts = package.split_terminator('.');
    let letters = parts.filter_map(|part| part.chars().next());
    letters.flat_map(|letter| [letter, '.']).collect()
}

/// A C++ or Rust function with `mark` instead of its last parentheses.
fn without_parameters(name: &str, mark: &str) -> Option<String> {
    let (head, rest) = name.rsplit_once(')')?;
    let mut depth = 0usize;
    for (at, letter) in head.char_indices().rev() {
        match letter {
            ')' => depth += 1,
            '(' if depth > 0 => depth -= 1,
            '(' if at > 0 && !head[at + 1..].is_empty() => {
                return Some(format!("{}{mark}{rest}", &head[..at]));
            }
            '(' => return None,
            _ => {}
        }
    }
    None
}

/// The parts of a Java method's name.
struct JavaName<'a> {
    /// With its last full stop; may be empty.
    package: &'a str,
    /// `Class.method`.
    class_method: &'a str,
    /// With their parentheses.
    parameters: &'a str,
    /// What an adapter says behind it.
    rest: &'a str,
}

impl<'a> JavaName<'a> {
    /// The parts, where a name looks like that.
    fn parse(name: &'a str) -> Option<Self> {
        let open = name.find('(')?;
        let (head, tail) = name.split_at(open);
        let close = tail.find(')')?;
        let (parameters, rest) = tail.split_at(close + 1);
        if head.contains([' ', ':', '~', '*', '&']) {
            return None;
        }
        let (class, _method) = head.rsplit_once('.')?;
        // A class's own packages, not those in what a hidden class is called after.
        let package = class.rfind('.').map_or(0, |at| at + 1);
        let (package, class_method) = head.split_at(package);
        Some(JavaName {
            package,
            class_method,
            parameters,
            rest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "java.lang.Integer.getChars(int, int, byte[])";

    #[test]
    fn what_tells_least_goes_first() {
        for wanted in [
            "java.lang.Integer.getChars(int, int, byte[]) Integer.java:503 (C2)",
            "java.lang.Integer.getChars(int, int, byte[]) (C2)",
            "j.l.Integer.getChars(int, int, byte[]) (C2)",
            "j.l.Integer.getChars(...) (C2)",
            "Integer.getChars(...) (C2)",
            "Integer.ge...(...) (C2)",
        ] {
            let text = |columns| label(NAME, Some("Integer.java:503"), " (C2)", columns);
            assert_eq!(text(wanted.len()), wanted);
            assert_ne!(text(wanted.len() - 1), wanted);
        }
        let osr = "a.b.Churn.run() (OSR at 46)";
        assert_eq!(
            label(osr, Some("Churn.java:11"), " (C2)", 33),
            "a.b.Churn.run() (OSR at 46) (C2)"
        );
        assert_eq!(
            label(osr, None, " (C2)", 29),
            "Churn.run() (OSR at 46) (C2)"
        );
    }

    #[test]
    fn native_functions_keep_their_part() {
        let name = "void G1ScanCardClosure::do_oop_work<oopDesc*>(oopDesc**, long)";
        assert_eq!(
            label(name, None, " (remembered sets)", 70),
            "void G1ScanCardClosure::do_oop_work<oopDesc*>(...) (remembered sets)"
        );
        let cut = label(name, None, " (remembered sets)", 50);
        assert!(cut.ends_with(" (remembered sets)"), "{cut}");
        assert_eq!(cut.width(), 50);
        for name in ["operator()()", "(unknown)", "f()", "x)", ")(", "((("] {
            assert_eq!(without_parameters(name, PARAMETERS), None, "{name}");
        }
    }

    #[test]
    fn as_many_callers_as_fit_are_shown() {
        let outer = [
            (
                "java.lang.AbstractStringBuilder.append(int)",
                "@31".to_owned(),
            ),
            ("java.lang.StringBuilder.append(int)", "@2".to_owned()),
            ("Churn.render(int)", "@20".to_owned()),
        ];
        let text = |columns| chain(("~69 (line 516)", "~69"), &outer, columns);
        for wanted in [
            "~69 (line 516) < j.l.AbstractStringBuilder.append(int)@31 \
             < j.l.StringBuilder.append(int)@2 < Churn.render(int)@20",
            "~69 (line 516) < AbstractStringBuilder.append@31 < StringBuilder.append@2 \
             < Churn.render@20",
            "~69 (line 516) < append@31 < append@2 < render@20",
            "~69 < append@31 < append@2 < render@20",
            "~69 < append@31 < 1 more < render@20",
            "~69 (line 516) < append@31 < 2 more",
            "~69 < append@31 < 2 more",
        ] {
            assert_eq!(text(wanted.len()), wanted);
            assert!(wanted.len() == 24 || text(wanted.len() - 1) != wanted);
        }
        assert_eq!(chain(("~69", "~69"), &[], 2), "~69");
        assert_eq!(text(5), "~69 < append@31 < 2 more");
    }

    #[test]
    fn any_text_is_a_name() {
        for name in [
            "",
            ".",
            "(",
            "a.(",
            "漢.字(é)",
            "a.b)c(",
            "..()",
            "x.y(\u{1b})",
        ] {
            for columns in [0, 3, 10] {
                let _ = label(name, Some(name), name, columns);
                let _ = chain((name, name), &[(name, String::new())], columns);
            }
        }
    }
}
