//! Kinds of code on the zone's map: names, and a letter for each.

use super::zone_cells::Total;
use crate::present::names::kind_name;
use vmscope_records::ConstituentKind;
use vmscope_symbolizer::profile::EntryKind;

/// A kind of constituent, with its compiler.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CodeKind {
    /// What it is.
    pub kind: ConstituentKind,
    /// Who made it.
    pub tier: String,
}

/// The name of a kind of code.
pub fn name_of(kind: &CodeKind) -> String {
    use ConstituentKind as Kind;
    let name = match &kind.kind {
        Kind::Method => "methods",
        Kind::Block => "blocks",
        Kind::ClosedPic => "closed PICs",
        Kind::OpenPic => "open PICs",
        Kind::Trampoline => "trampolines",
        Kind::Enilopmart => "enilopmarts",
        Kind::Stub => "stubs",
        Kind::Interpreter => "interpreter",
        Kind::Adapter => "adapters",
        Kind::RegExp => "regular expressions",
        Kind::Other(name) => name.as_str(),
        _ => "other",
    };
    if kind.tier.is_empty() {
        name.to_owned()
    } else {
        format!("{name} {}", kind.tier)
    }
}

/// Name of one piece of code.
pub fn singular(kind: &ConstituentKind) -> String {
    kind_name(&EntryKind::Code(kind.clone())).to_owned()
}

/// Assigns a unique letter to each kind: of its tier (`1` for C1, `2` for C2), else its kind.
pub fn letters(totals: &mut [Total]) {
    let mut order: Vec<usize> = (0..totals.len()).collect();
    order.sort_by_key(|&at| totals.get(at).map(|total| name_of(&total.kind)));
    let mut used: Vec<char> = Vec::new();
    for at in order {
        let Some(total) = totals.get_mut(at) else {
            continue;
        };
        let tier = total.kind.tier.as_str();
        let digits = tier.chars().filter(char::is_ascii_digit);
        let upper = |c: char| c.to_ascii_uppercase();
        let of_kind = name_of(&CodeKind {
            tier: String::new(),
            ..total.kind.clone()
        });
        let wanted: Vec<char> = digits
            .chain(tier.chars().filter(char::is_ascii_alphabetic).map(upper))
            .chain(of_kind.chars().filter(char::is_ascii_alphabetic).map(upper))
            .chain('A'..='Z')
            .chain('a'..='z')
            .collect();
        let found = wanted.into_iter().find(|letter| !used.contains(letter));
        total.letter = found.unwrap_or('*');
        used.push(total.letter);
    }
}
