//! Legible names in limited space.
//!
//! What tells least goes first; the function's own name stays whole until all else is gone.
//! A Java method `package.Class.method(parameters)` loses its file and line (the class locates it),
//! then its package (`j.u.HashMap.get(Object)`), its parameters, its class. A C++ or Rust function
//! loses its parameters, the type of its result, ` const` and ` [clone .cold]`, template arguments,
//! then namespaces and classes from the left. A class goes in steps: outer classes, its middle. Rows of one table that would become equal keep what
//! tells them apart ([`labels`]). JSON has full names.

mod parts;
#[cfg(test)]
mod tests;

use crate::present::text::{bounded, cut, fit, harmless};
use parts::Parts;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use unicode_width::UnicodeWidthStr;

/// Mark of omitted text.
const DOTS: &str = "...";

/// Minimum width of a useful piece of a tail.
const SHORTEST_TAIL: usize = 8;

/// Minimum width of a useful piece of a class.
const SHORTEST_CLASS: usize = 8;

/// Maximum number of equal rows for which all combinations of parts are tried.
const MAX_COMPARED: usize = 64;

/// What a label is made of.
#[derive(Clone, Debug, Default)]
pub struct Name<'a> {
    pub name: &'a str,
    /// File and line; goes first.
    pub place: Option<String>,
    /// Tier …: stays whole if it leaves room for the own name.
    pub tail: String,
}

impl Name<'_> {
    /// The whole name.
    pub fn full(&self) -> String {
        let place = self.place.as_ref();
        let place = place.map_or_else(String::new, |place| format!(" {place}"));
        format!("{}{place}{}", self.name, self.tail)
    }

    /// In at most `columns`.
    pub fn label(&self, columns: usize) -> String {
        Safe::of(self).named().label(columns)
    }
}

/// The texts of a name, safe for terminals.
struct Safe([String; 3]);

impl Safe {
    fn of(name: &Name<'_>) -> Self {
        let place = name.place.as_ref();
        let place = place.map_or_else(String::new, |place| format!(" {place}"));
        Safe([&bounded(name.name), &*place, &*name.tail].map(harmless))
    }

    fn named(&self) -> Named<'_> {
        let Safe([name, place, tail]) = self;
        Named {
            parts: Parts::of(name),
            place,
            tail,
        }
    }
}

/// Shown extent of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Much {
    Not,
    /// `(...)`
    Dots,
    Whole,
}

impl Much {
    /// `part`, in brackets of one character each.
    fn of(self, part: &str) -> String {
        let dotted = || {
            let mut letters = part.trim_start_matches("::").chars();
            let (open, close) = (letters.next()?, letters.next_back()?);
            Some(format!("{open}{DOTS}{close}"))
        };
        match self {
            Much::Not => String::new(),
            Much::Whole => part.to_owned(),
            Much::Dots => match dotted() {
                Some(dotted) if dotted.len() < part.len() => dotted,
                _ => part.to_owned(),
            },
        }
    }
}

/// Displayed parts of a name.
#[derive(Clone, Copy, Debug)]
struct Shape {
    result: bool,
    /// Number of scopes, from the innermost.
    scopes: usize,
    /// Packages by their initials.
    initials: bool,
    /// Template arguments of scopes.
    inner: bool,
    generics: Much,
    parameters: Much,
    suffix: bool,
}

const WHOLE: Shape = Shape {
    result: true,
    scopes: usize::MAX,
    initials: false,
    inner: true,
    generics: Much::Whole,
    parameters: Much::Whole,
    suffix: true,
};

const OWN: Shape = Shape {
    result: false,
    scopes: 0,
    initials: false,
    inner: false,
    generics: Much::Not,
    parameters: Much::Not,
    suffix: false,
};

impl Parts<'_> {
    /// Shapes, from the whole name to the own name.
    fn shapes(&self) -> Vec<Shape> {
        let mut shapes = vec![WHOLE];
        let mut shape = WHOLE;
        let mut then = |change: &dyn Fn(&mut Shape)| {
            change(&mut shape);
            shapes.push(shape);
        };
        if self.is_java {
            then(&|shape| shape.initials = true);
            then(&|shape| shape.parameters = Much::Dots);
            then(&|shape| shape.scopes = 1);
            then(&|shape| shape.inner = false);
            then(&|shape| shape.parameters = Much::Not);
        } else {
            then(&|shape| shape.parameters = Much::Dots);
            then(&|shape| shape.result = false);
            then(&|shape| shape.suffix = false);
            then(&|shape| shape.inner = false);
            then(&|shape| shape.generics = Much::Dots);
            then(&|shape| shape.parameters = Much::Not);
            then(&|shape| shape.generics = Much::Not);
            for scopes in (self.scopes_needed()..self.scopes.len()).rev() {
                then(&|shape| shape.scopes = scopes);
            }
        }
        then(&|shape| *shape = OWN);
        shapes
    }

    fn text(&self, shape: Shape) -> String {
        let mut text = String::new();
        if shape.result {
            text.push_str(self.result);
        }
        let hidden = self.scopes.len().saturating_sub(shape.scopes);
        let last = self.scopes.len().saturating_sub(1);
        for (at, scope) in self.scopes.iter().enumerate().skip(hidden) {
            match scope.chars().next() {
                Some(initial) if shape.initials && at < last => text.push(initial),
                _ if shape.inner => text.push_str(scope),
                _ => text.push_str(&without_arguments(scope)),
            }
            text.push_str(self.separator);
        }
        text.push_str(self.own);
        text.push_str(&shape.generics.of(self.generics));
        text.push_str(&shape.parameters.of(self.parameters));
        if shape.suffix {
            text.push_str(self.suffix);
        }
        text
    }
}

/// A scope without type arguments; `<Vec<T> as core::ops::Index<I>>` without namespaces.
fn without_arguments(scope: &str) -> String {
    if !scope.starts_with('<') {
        let open = scope
            .find(['<', '['])
            .filter(|_| scope.ends_with(['>', ']']));
        let (name, arguments) = scope.split_at(open.unwrap_or(scope.len()));
        return format!("{name}{}", Much::Dots.of(arguments));
    }
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let mut text = String::new();
    let mut rest = scope;
    while let Some((before, behind)) = rest.split_once("::") {
        text.push_str(before.trim_end_matches(is_letter));
        rest = behind;
    }
    text + rest
}

fn fits(text: &str, columns: usize) -> bool {
    text.width() <= columns
}

/// A name with its parts for labels.
struct Named<'a> {
    parts: Parts<'a>,
    place: &'a str,
    tail: &'a str,
}

impl Named<'_> {
    fn full(&self) -> String {
        let name = self.parts.text(WHOLE);
        format!("{name}{}{}", self.place, self.tail)
    }

    /// In at most `columns`.
    fn label(&self, columns: usize) -> String {
        let full = self.full();
        if fits(&full, columns) {
            return full;
        }
        let shapes = self.parts.shapes();
        let texts = || shapes.iter().map(|shape| self.parts.text(*shape));
        let own = self.parts.own;
        let mut with_tail = texts().map(|text| text + self.tail);
        if let Some(text) = with_tail.find(|text| fits(text, columns)) {
            return match text.len() == own.len() + self.tail.len() {
                true => self.behind_class(text, columns),
                false => text,
            };
        }
        let left = columns.saturating_sub(own.width());
        if left >= SHORTEST_TAIL && !self.tail.is_empty() {
            return format!("{own}{}", cut(self.tail, left));
        }
        let text = texts().find(|text| fits(text, columns));
        text.unwrap_or_else(|| fit(own, columns).trim_end().to_owned())
    }

    /// `text`, which begins with the own name, behind a piece of its class if that fits `columns`.
    fn behind_class(&self, text: String, columns: usize) -> String {
        let separator = self.parts.separator;
        let room = columns.saturating_sub(separator.width() + text.width());
        let Some(class) = self.parts.scopes.last().filter(|_| room > 0) else {
            return text;
        };
        let is_letter = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        // `Worker` of `Executor$Worker` (.NET: `Executor+Worker`); numbers and lambdas say nothing alone.
        let (_, inner) = class.rsplit_once(['$', '+']).unwrap_or(("", class));
        let is_name = inner.starts_with(char::is_alphabetic) && !inner.starts_with("Lambda");
        let class = if is_name { inner } else { class };
        // .NET's number and list of type arguments.
        let class = class.split(['`', '[']).next().unwrap_or(class);
        let is_useful = room >= class.width().min(SHORTEST_CLASS) && class.chars().all(is_letter);
        match is_useful {
            true => format!("{}{separator}{text}", fit(class, room).trim_end()),
            false => text,
        }
    }

    /// The own name, then the word of the full name with character `from`, and the tail, in at most `columns`.
    fn word(&self, from: usize, columns: usize) -> Option<String> {
        let full = self.full();
        let (before, behind) = full.split_at(character(&full, from));
        let is_letter = |c: char| c.is_alphanumeric() || c == '_';
        let begin = before.trim_end_matches(is_letter).len();
        let end = full.len() - behind.trim_start_matches(is_letter).len();
        let text = format!("{} {DOTS}{}", self.parts.own, &full[begin..end]);
        let mut texts = [format!("{text}{}", self.tail), text].into_iter();
        texts.find(|text| fits(text, columns))
    }

    /// The own name, then the full name from character `from`, in at most `columns`.
    fn excerpt(&self, from: usize, columns: usize) -> Option<String> {
        let own = self.parts.own;
        let full = self.full();
        let at = character(&full, from);
        let left = columns.checked_sub(own.width() + DOTS.len() + 1)?;
        let mut room = left;
        let piece = full[at..].chars().take_while(|c| {
            let width = c.to_string().width();
            let has_room = width <= room;
            room = room.saturating_sub(width);
            has_room
        });
        Some(format!("{own} {DOTS}{}", piece.collect::<String>()))
    }
}

/// Position of a character; the text's length if it has fewer.
fn character(text: &str, number: usize) -> usize {
    let mut places = text.char_indices();
    places.nth(number).map_or(text.len(), |(at, _)| at)
}

/// A function's name in at most `columns`: `name tail`.
pub fn label(name: &str, tail: &str, columns: usize) -> String {
    let (place, tail) = (None, tail.to_owned());
    Name { name, place, tail }.label(columns)
}

/// Name and tail in at most `columns`, if the class is shown, too.
pub fn legible(name: &str, tail: &str, columns: usize) -> Option<String> {
    let (name, tail) = (harmless(&bounded(name)), harmless(tail));
    let parts = Parts::of(&name);
    let needed = parts.scopes.len().min(1);
    let shapes = parts.shapes().into_iter();
    let shapes = shapes.filter(|shape| shape.scopes >= needed);
    let mut texts = shapes.map(|shape| parts.text(shape) + &tail);
    texts.find(|text| fits(text, columns))
}

/// Name without arguments in at most `columns`: as many scopes as fit before the own name, which
/// stays whole.
pub fn bare(name: &str, columns: usize) -> String {
    let name = harmless(&bounded(name));
    if fits(&name, columns) {
        return name;
    }
    let parts = Parts::of(&name);
    let scopes = (0..=parts.scopes.len()).rev();
    let mut texts = scopes.map(|scopes| parts.text(Shape { scopes, ..OWN }));
    let found = texts.find(|text| fits(text, columns));
    found.unwrap_or_else(|| parts.own.to_owned())
}

/// The innermost scope of a name, empty without scopes, and its own name.
pub fn class_and_own(name: &str) -> (String, String) {
    let parts = Parts::of(name);
    let class = parts.scopes.last().map(|class| without_arguments(class));
    (class.unwrap_or_default(), parts.own.to_owned())
}

/// Labels of a table's rows, each within its number of columns. Different names get different labels
/// if the columns suffice.
pub fn labels(rows: &[(Name<'_>, usize)]) -> Vec<String> {
    let labels = rows.iter().map(|(name, columns)| name.label(*columns));
    let mut labels: Vec<String> = labels.collect();
    let mut rows_of: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (row, label) in labels.iter().enumerate() {
        rows_of.entry(label).or_default().push(row);
    }
    let equal = rows_of.into_values().filter(|equal| equal.len() > 1);
    let equal: Vec<Vec<usize>> = equal.collect();
    for equal in equal {
        let of_group: Vec<&(Name<'_>, usize)> = equal.iter().map(|row| &rows[*row]).collect();
        let is_other = |(row, label): (usize, &String)| {
            (equal.binary_search(&row).is_err()).then(|| label.clone())
        };
        let others = labels.iter().enumerate().filter_map(is_other).collect();
        for (row, label) in equal.iter().zip(tell_apart(&of_group, &others)) {
            labels[*row] = label;
        }
    }
    labels
}

/// Labels for rows whose labels would be equal. `others`: the labels of other rows.
fn tell_apart(rows: &[&(Name<'_>, usize)], others: &FxHashSet<String>) -> Vec<String> {
    let safe: Vec<Safe> = rows.iter().map(|(name, _)| Safe::of(name)).collect();
    let named = safe.iter().map(Safe::named);
    let named: Vec<Named<'_>> = named.collect();
    let fulls: Vec<String> = named.iter().map(Named::full).collect();
    let number = |texts: &[String]| texts.iter().collect::<FxHashSet<_>>().len();
    let different = number(&fulls);
    let mut labels: Vec<String> = (named.iter().zip(rows))
        .map(|(one, (_, columns))| one.label(*columns))
        .collect();
    let mut best = number(&labels);
    if different > best && rows.len() <= MAX_COMPARED {
        let of_shape = |shape: Shape, tailed: bool| -> Option<Vec<String>> {
            let texts = named.iter().zip(rows).map(|(one, (_, columns))| {
                let tail = if tailed { one.tail } else { "" };
                let text = one.parts.text(shape) + tail;
                fits(&text, *columns).then_some(text)
            });
            let texts: Vec<String> = texts.collect::<Option<_>>()?;
            if shape.scopes > 0 || shape.result {
                return Some(texts);
            }
            // Behind the class, if all rows have room.
            let classed = (named.iter().zip(rows).zip(&texts))
                .map(|((one, (_, columns)), text)| one.behind_class(text.clone(), *columns));
            let classed: Vec<String> = classed.collect();
            let all = classed
                .iter()
                .zip(&texts)
                .all(|(classed, text)| classed != text);
            Some(if all { classed } else { texts })
        };
        for shape in combinations() {
            let found = of_shape(shape, true).or_else(|| of_shape(shape, false));
            let found = found.filter(|texts| !texts.iter().any(|text| others.contains(text)));
            if let Some(texts) = found.filter(|texts| number(texts) > best) {
                best = number(&texts);
                labels = texts;
            }
            if best == different {
                return labels;
            }
        }
    }
    if different == best {
        return labels;
    }
    still_equal(&named, &fulls, rows, (&mut labels, others));
    labels
}

/// Shapes beside the own name, those with few parts first.
fn combinations() -> Vec<Shape> {
    let mut masks: Vec<u32> = (0..32).collect();
    masks.sort_by_key(|mask| mask.count_ones());
    let much = |is_shown: bool| if is_shown { Much::Whole } else { Much::Not };
    let mut shapes = Vec::new();
    for mask in masks {
        let has = |bit: u32| mask >> bit & 1 == 1;
        for scopes in [0, 1, 2, 3, usize::MAX] {
            shapes.push(Shape {
                result: has(4),
                scopes,
                initials: false,
                inner: has(2),
                generics: much(has(1)),
                parameters: much(has(0)),
                suffix: has(3),
            });
        }
    }
    shapes
}

/// Gives labels that no combination of parts told apart an excerpt of their names, else a number.
fn still_equal(
    named: &[Named<'_>],
    fulls: &[String],
    rows: &[&(Name<'_>, usize)],
    (labels, others): (&mut [String], &FxHashSet<String>),
) {
    let mut rows_of: FxHashMap<String, Vec<usize>> = FxHashMap::default();
    for (row, label) in labels.iter().enumerate() {
        rows_of.entry(label.clone()).or_default().push(row);
    }
    let mut groups: Vec<Vec<usize>> = rows_of.into_values().collect();
    groups.sort_unstable();
    for equal in groups {
        let mut names: Vec<&str> = equal.iter().map(|row| &*fulls[*row]).collect();
        names.sort_unstable();
        names.dedup();
        let (Some(first), Some(last)) = (names.first(), names.last()) else {
            continue;
        };
        if names.len() < 2 {
            continue;
        }
        // The names are sorted: what first and last share, all share.
        let same = first.chars().zip(last.chars()).take_while(|(a, b)| a == b);
        let same = same.count();
        let excerpts = [Named::word, Named::excerpt].map(|excerpt| {
            let excerpts = equal.iter().map(|&row| {
                let text = excerpt(&named[row], same, rows[row].1)?;
                Some((row, text))
            });
            excerpts.collect::<Option<Vec<(usize, String)>>>()
        });
        let taken = |text: &String| labels.contains(text) || others.contains(text);
        let tells = |all: &Vec<(usize, String)>| {
            let texts: FxHashSet<&String> = all.iter().map(|(_, text)| text).collect();
            texts.len() == names.len() && !texts.into_iter().any(taken)
        };
        if let Some(excerpts) = excerpts.into_iter().flatten().find(tells) {
            for (row, text) in excerpts {
                labels[row] = text;
            }
            continue;
        }
        for row in equal {
            let number = names.binary_search(&&*fulls[row]).unwrap_or(0) + 1;
            let number = format!(" #{number}");
            let own = named[row].parts.own;
            let Some(left) = rows[row].1.checked_sub(number.len()) else {
                continue;
            };
            let is_whole = fits(own, left);
            // A name that is cut anyway is cut a little more.
            if is_whole || (!fits(own, rows[row].1) && left > SHORTEST_TAIL) {
                labels[row] = format!("{}{number}", fit(own, left.min(own.width())).trim_end());
            }
        }
    }
}

/// A place (full and shortest form) and its inlining chain, innermost first (name, place), in at
/// most `columns`: the whole chain with the longest names that fit; else as many innermost frames
/// as fit, and the outermost, the compiled method.
pub fn chain(place: (&str, &str), outer: &[(&str, String)], columns: usize) -> String {
    let outer = outer.iter().map(|(name, at)| (Parts::of(name), at));
    let outer: Vec<(Parts<'_>, &String)> = outer.collect();
    let initials = Shape {
        initials: true,
        ..WHOLE
    };
    let class = Shape { scopes: 1, ..OWN };
    let of = |place: &str, shape: Shape, shown: usize| {
        let frame = |(parts, at): &(Parts<'_>, &String)| {
            let initials = shape.initials && parts.is_java;
            let scopes = match shape.scopes {
                usize::MAX => usize::MAX,
                scopes => scopes.max(parts.scopes_needed()),
            };
            let shape = Shape {
                initials,
                scopes,
                ..shape
            };
            format!(" < {}{at}", parts.text(shape))
        };
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
    let whole = [WHOLE, initials, class, OWN].map(|shape| of(place.0, shape, all));
    let short = std::iter::once(of(place.1, OWN, all));
    let some = (1..all).rev().flat_map(|shown| {
        let named = of(place.0, class, shown);
        // Bare method names are better than fewer frames.
        let bare = of(place.0, OWN, shown);
        [named, bare, of(place.1, OWN, shown)]
    });
    let found = whole.into_iter().chain(short).chain(some).find(fits);
    found.unwrap_or_else(|| of(place.1, OWN, all.min(1)))
}
