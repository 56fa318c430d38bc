//! Converts values of the shared memory into values of records.

use vmscope_publish::event as e;
use vmscope_records as r;
use vmscope_records::{Avma, BytecodePc};

/// Declares a function between two enumerations with the same variants.
macro_rules! same {
    ($($name:ident: $type:ident { $($variant:ident)+ } else $other:ident;)+) => {$(
        pub(crate) fn $name(from: e::$type) -> r::$type {
            match from {
                $(e::$type::$variant => r::$type::$variant,)+
                #[allow(unreachable_patterns, reason = "the other side may grow")]
                _ => r::$type::$other,
            }
        }
    )+};
}

same! {
    gone_reason: GoneReason { Freed Recycled Flushed Unloaded } else Unknown;
    role: ThreadRole { Mutator Collector Compiler Heartbeat Vm } else Other;
    meaning: CounterMeaning { Gauge Total } else Gauge;
    scope: CollectionScope { Cycle Whole CyclePause } else Cycle;
    region: Region { Generated Interpreter Gc Compiler Vm Library } else Unknown;
    exactness: Exactness { Exact Approximate } else MethodOnly;
    boundary_rule: BoundaryRule { AfterInstruction AtStart } else AtStart;
}

/// Kind of a constituent; `word` is the VM's name for kinds unknown to vmscope.
pub(crate) fn kind(from: e::ConstituentKind, word: &e::Text<'_>) -> r::ConstituentKind {
    use e::ConstituentKind as From;
    use r::ConstituentKind as To;
    match from {
        From::Method => To::Method,
        From::Block => To::Block,
        From::ClosedPic => To::ClosedPic,
        From::OpenPic => To::OpenPic,
        From::Trampoline => To::Trampoline,
        From::Enilopmart => To::Enilopmart,
        From::Stub => To::Stub,
        From::Interpreter => To::Interpreter,
        From::Adapter => To::Adapter,
        From::RegExp => To::RegExp,
        From::Bytecodes => To::Bytecodes,
        From::MethodObject => To::MethodObject,
        From::Free => To::Free,
        _ => To::Other(word.to_string()),
    }
}

/// Interpreter ranges and sources.
pub(crate) fn interpreter(
    from: &e::Interpreter<'_>,
) -> (Vec<(Avma, Avma)>, Vec<r::InterpreterSource>) {
    let ranges = from.ranges.iter().filter(|range| range.start < range.end);
    let ranges = ranges.map(|range| (Avma(range.start), Avma(range.end)));
    let sources = from.sources.iter().filter_map(|source| {
        let place = match source.place {
            e::SamplePlace::Register => r::SamplePlace::Register(source.register),
            e::SamplePlace::Stack => r::SamplePlace::Stack {
                base: source.register,
                offset: source.offset,
            },
            _ => return None,
        };
        let holds = match source.holds {
            e::InterpreterValue::Bytecode => r::InterpreterValue::Bytecode,
            e::InterpreterValue::Method => r::InterpreterValue::Method,
            e::InterpreterValue::Caller => r::InterpreterValue::Caller,
            _ => return None,
        };
        Some(r::InterpreterSource { place, holds })
    });
    (ranges.collect(), sources.collect())
}

/// Rules for native functions.
pub(crate) fn rules(from: &e::Regions<'_>) -> Vec<r::RegionRule> {
    let rules = from.rules.iter().map(|rule| r::RegionRule {
        module: rule.module.to_string(),
        role: rule.role.map(role),
        identifiers: rule.identifiers.to_string(),
        prefix: rule.prefix.to_string(),
        contains: rule.contains.to_string(),
        suffix: rule.suffix.to_string(),
        region: region(rule.region),
        part: rule.part.to_string(),
        strip: rule.strip,
    });
    rules.collect()
}

/// Converts a pc map of code with `size` bytes. `method` finds keys. `None` for an invalid map:
/// unordered entries, entries beyond the code, missing frames or methods, too many frames.
pub(crate) fn map(
    from: &e::PcMap<'_>,
    size: u64,
    method: impl Fn(u64) -> Option<r::MethodKey>,
) -> Option<r::PcMap> {
    match from {
        e::PcMap::Boundary {
            rule,
            exactness: how,
            entries,
        } => {
            let offsets = entries.iter().map(|entry| u64::from(entry.offset));
            let are_sound = offsets.clone().is_sorted() && offsets.clone().all(|at| at <= size);
            are_sound.then(|| r::PcMap::Boundary {
                rule: boundary_rule(*rule),
                exactness: exactness(*how),
                entries: entries
                    .iter()
                    .map(|entry| (entry.offset, BytecodePc(entry.bytecode)))
                    .collect(),
            })
        }
        e::PcMap::Covers { covers, frames } => covers_map(covers, frames, size, method),
        _ => Some(r::PcMap::None),
    }
}

fn covers_map(
    covers: &[e::Cover],
    frames: &[e::ChainFrame],
    size: u64,
    method: impl Fn(u64) -> Option<r::MethodKey>,
) -> Option<r::PcMap> {
    let mut chains: Vec<r::Chain> = Vec::new();
    let mut numbers: rustc_hash::FxHashMap<(u32, u32), u32> = rustc_hash::FxHashMap::default();
    let mut pieces = Vec::with_capacity(covers.len());
    let (mut end, mut held) = (0, 0_usize);
    for cover in covers {
        if cover.start < end || cover.end <= cover.start || u64::from(cover.end) > size {
            return None;
        }
        end = cover.end;
        let chain = match numbers.get(&(cover.first, cover.count)) {
            Some(known) => *known,
            None => {
                let first = usize::try_from(cover.first).ok()?;
                let count = usize::try_from(cover.count).ok()?;
                let frames = frames.get(first..first.checked_add(count)?)?;
                // Overlapping chains could multiply the frames.
                held = held.checked_add(count).filter(|held| *held <= MAX_FRAMES)?;
                let chain: Option<r::Chain> =
                    frames.iter().map(|one| frame(one, &method)).collect();
                chains.push(chain.filter(|chain| !chain.is_empty())?);
                let number = u32::try_from(chains.len() - 1).ok()?;
                numbers.insert((cover.first, cover.count), number);
                number
            }
        };
        pieces.push(r::Cover {
            start: cover.start,
            end: cover.end,
            chain,
            exactness: match cover.exactness {
                2 => r::Exactness::Exact,
                1 => r::Exactness::Approximate,
                _ => r::Exactness::MethodOnly,
            },
            method_error: 0,
        });
    }
    Some(r::PcMap::Covers {
        covers: pieces,
        chains,
    })
}

/// Maximum number of frames in a map's chains.
const MAX_FRAMES: usize = 1 << 20;

fn frame(
    from: &e::ChainFrame,
    method: impl Fn(u64) -> Option<r::MethodKey>,
) -> Option<r::ChainFrame> {
    Some(r::ChainFrame {
        method: method(from.method)?,
        position: match from.position {
            1 => r::Position::Bytecode(BytecodePc(from.value)),
            2 => r::Position::Line(from.value),
            _ => r::Position::Unknown,
        },
    })
}
