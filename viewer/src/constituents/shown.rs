//! The code zone, in the form of the JSON schema (docs/constituents-json.md).

use crate::present::names::{code_kind_name, exactness_name};
use rustc_hash::FxHashSet;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use vmscope_records::{
    BoundaryRule, BytecodePc, Chain, ChainFrame, Constituent, ConstituentKind, Exactness,
    MethodKey, PcMap, PicCase, Position,
};
use vmscope_sampler::{CodeNow, CodeTable};
use vmscope_symbolizer::{full_name, separator_between};

/// Version of the JSON schema.
const SCHEMA: &str = "vmscope-constituents/1.0";

/// Name of methods without a record.
const UNKNOWN: &str = "(unknown method)";

#[derive(Debug, Serialize)]
pub struct Shown<'c> {
    pub schema: &'static str,
    pub pid: u32,
    /// Path of the core file.
    pub core: Option<String>,
    pub vm: Vm<'c>,
    /// `None` for a core file.
    pub wall_clock_unix_ns: Option<u64>,
    pub detailed: bool,
    pub limits: Vec<String>,
    /// By address.
    pub constituents: Vec<One<'c>>,
    pub totals: Vec<Total<'c>>,
}

#[derive(Debug, Serialize)]
pub struct Vm<'c> {
    pub kind: &'c str,
    pub version: &'c str,
}

#[derive(Debug, Serialize)]
pub struct One<'c> {
    pub start: String,
    pub end: String,
    pub bytes: u64,
    pub kind: &'c str,
    pub tier: &'c str,
    pub name: &'c str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<Case<'c>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map: Option<Map<'c>>,
    /// A block inside a method, whose bytecodes are the method's.
    #[serde(skip)]
    pub is_inside: bool,
}

#[derive(Debug, Serialize)]
pub struct Case<'c> {
    pub class: &'c str,
    pub target: String,
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Map<'c> {
    Boundary {
        /// Whether offsets mark the start or the end of a bytecode's code.
        at: &'static str,
        exactness: Exact,
        #[serde(serialize_with = "pairs")]
        entries: &'c [(u32, BytecodePc)],
    },
    Covers {
        ranges: Vec<Piece>,
        chains: Vec<Vec<Frame>>,
    },
}

#[derive(Debug, Serialize)]
pub struct Piece {
    pub start: u32,
    pub end: u32,
    /// Index in the map's chains.
    pub chain: u32,
    pub exactness: Exact,
}

#[derive(Debug, Serialize)]
pub struct Frame {
    pub method: String,
    #[serde(flatten)]
    pub position: At,
}

/// Serialised by name.
#[derive(Debug)]
pub struct Exact(pub Exactness);

/// Serialised as `bytecode` or `line`.
#[derive(Debug)]
pub struct At(pub Position);

/// Counts of a kind and tier.
#[derive(Debug, Serialize)]
pub struct Total<'c> {
    pub kind: &'c str,
    pub tier: &'c str,
    pub constituents: u64,
    pub bytes: u64,
}

impl Serialize for Exact {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(exactness_name(self.0))
    }
}

impl Serialize for At {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        match self.0 {
            Position::Unknown => {}
            Position::Bytecode(bytecode) => map.serialize_entry("bytecode", &bytecode.0)?,
            Position::Line(line) => map.serialize_entry("line", &line)?,
        }
        map.end()
    }
}

fn pairs<S: Serializer>(entries: &[(u32, BytecodePc)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(
        entries
            .iter()
            .map(|(offset, bytecode)| (offset, bytecode.0)),
    )
}

impl<'c> Shown<'c> {
    /// A VM's code, without its process.
    pub fn of(code: &'c CodeNow, is_detailed: bool) -> Self {
        let all = code.table.by_address();
        let names = Names::of(&code.table, &all);
        let is_method = |one: &&&Constituent| one.kind == ConstituentKind::Method;
        let homes = all.iter().filter(is_method).filter_map(|one| one.method);
        let homes: FxHashSet<MethodKey> = homes.collect();
        let is_inside = |one: &Constituent| {
            one.kind == ConstituentKind::Block && one.method.is_some_and(|key| homes.contains(&key))
        };
        let mut totals: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
        for one in &all {
            let (count, bytes) = totals
                .entry((code_kind_name(&one.kind), &one.tier))
                .or_default();
            *count += 1;
            *bytes = bytes.saturating_add(bytes_of(one));
        }
        let total = |((kind, tier), (constituents, bytes))| Total {
            kind,
            tier,
            constituents,
            bytes,
        };
        Shown {
            schema: SCHEMA,
            pid: 0,
            core: None,
            vm: Vm {
                kind: &code.vm.kind,
                version: &code.vm.version,
            },
            wall_clock_unix_ns: None,
            detailed: is_detailed,
            limits: code.table.limits(),
            constituents: all
                .iter()
                .map(|one| One {
                    is_inside: is_inside(one),
                    ..One::of(one, is_detailed.then_some(&names))
                })
                .collect(),
            totals: totals.into_iter().map(total).collect(),
        }
    }
}

impl<'c> One<'c> {
    /// A constituent, with details if `names` is given.
    fn of(one: &'c Constituent, names: Option<&Names<'_>>) -> Self {
        let case = |names: &Names<'_>, case: &'c PicCase| Case {
            class: &case.class,
            target: match (case.target.as_str(), case.method) {
                ("", Some(key)) => names.of_method(key),
                (target, _) => target.to_owned(),
            },
        };
        let cases = names.map(|names| one.cases.iter().map(move |one| case(names, one)));
        One {
            start: one.start.to_string(),
            end: one.end.to_string(),
            bytes: bytes_of(one),
            kind: code_kind_name(&one.kind),
            tier: &one.tier,
            name: &one.name,
            method: names.and_then(|names| Some(names.of_method(one.method?))),
            cases: cases.into_iter().flatten().collect(),
            map: names.and_then(|names| Map::of(&one.map, names)),
            is_inside: false,
        }
    }
}

impl<'c> Map<'c> {
    fn of(map: &'c PcMap, names: &Names<'_>) -> Option<Self> {
        let frame = |frame: &ChainFrame| Frame {
            method: names.of_method(frame.method),
            position: At(frame.position),
        };
        let chain = |chain: &Chain| chain.iter().map(frame).collect();
        Some(match map {
            PcMap::None => return None,
            PcMap::Boundary {
                rule,
                exactness,
                entries,
            } => Map::Boundary {
                at: match rule {
                    BoundaryRule::AfterInstruction => "end",
                    BoundaryRule::AtStart => "start",
                },
                exactness: Exact(*exactness),
                entries,
            },
            PcMap::Covers { covers, chains } => Map::Covers {
                ranges: (covers.iter())
                    .map(|cover| Piece {
                        start: cover.start,
                        end: cover.end,
                        chain: cover.chain,
                        exactness: Exact(cover.exactness),
                    })
                    .collect(),
                chains: chains.iter().map(chain).collect(),
            },
        })
    }
}

fn bytes_of(one: &Constituent) -> u64 {
    one.end.0.saturating_sub(one.start.0)
}

/// Names of methods, in the VM's own style.
struct Names<'c> {
    table: &'c CodeTable,
    separator: &'c str,
}

impl<'c> Names<'c> {
    fn of(table: &'c CodeTable, all: &[&'c Constituent]) -> Self {
        let separator = |one: &&'c Constituent| separator_between(one, table.method(one.method?)?);
        Names {
            table,
            separator: all.iter().find_map(separator).unwrap_or("."),
        }
    }

    fn of_method(&self, key: MethodKey) -> String {
        let method = self.table.method(key);
        method.map_or_else(
            || UNKNOWN.to_owned(),
            |method| full_name(method, self.separator),
        )
    }
}
