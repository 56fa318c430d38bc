//! `vmscope constituents`: the current code zone, plain or detailed, as in VMProfiler's primitive.

#[cfg(test)]
pub(crate) mod of_cog;
mod pairs;
mod shown;
#[cfg(test)]
pub(crate) mod tests;

use crate::present::document::{Document, Part, Table, Value};
use crate::present::encode::{table_lines, text_of};
use crate::present::numbers::session_time;
use crate::print::Printer;
use crate::record::Interrupted;
use crate::record::families::FamilyOptions;
use crate::signals::Signals;
use crate::symbols_file::SymbolsOptions;
use crate::target::TargetOptions;
use anyhow::Result;
use clap::Args;
use shown::{Map, One, Shown};
use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};
use vmscope_process::ProcessView;
use vmscope_records::{BytecodePc, Exactness, Position};
use vmscope_sampler::read_code;
use vmscope_symbolizer::Stop;

#[derive(Args, Clone, Debug)]
pub struct ConstituentsArgs {
    #[command(flatten)]
    target: TargetOptions,
    #[command(flatten)]
    families: FamilyOptions,
    #[command(flatten)]
    names: SymbolsOptions,
    /// Also list which bytecodes the machine code of each constituent belongs to, its method, and the
    /// cases of inline caches. Reads much: for all compiled code, what a recording reads for
    /// sampled code only
    #[arg(long)]
    detailed: bool,
    /// Print JSON (a documented schema: docs/constituents-json.md) instead of text
    #[arg(long)]
    json: bool,
    /// Print pairs of item and address as VMProfiler gets them from a Cog VM (primitive 253), one per line
    #[arg(long, conflicts_with = "json")]
    pairs: bool,
    /// With --pairs: also what the primitive omits (freed code, blocks inside methods, young referrers)
    #[arg(long, requires = "pairs")]
    all: bool,
}

/// Writes a VM's code to `out`.
///
/// # Errors
/// No such process, no permission, no core file, no VM, wrong symbols, an interrupt.
pub fn run(args: &ConstituentsArgs, out: &mut Printer<'_>) -> Result<()> {
    let signals = Signals::catch()?;
    let core = args.target.core.as_ref();
    let view = match core {
        Some(core) => args.target.open_core(core)?.0,
        None => ProcessView::open(args.target.pid()?)?,
    };
    let view = args.names.add_to(view)?;
    let asked = || signals.end_asked();
    let code = read_code(&view, args.families.attaching(None), args.detailed, &asked);
    if signals.end_asked() {
        return Err(Interrupted.into());
    }
    let code = code?;
    let time = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    let shown = Shown {
        pid: view.pid().0,
        core: core.map(|core| core.to_string_lossy().into_owned()),
        wall_clock_unix_ns: time
            .filter(|_| core.is_none())
            .and_then(|time| u64::try_from(time.as_nanos()).ok()),
        ..Shown::of(&code, args.detailed)
    };
    match (args.json, args.pairs) {
        (true, _) => out.json_line(&shown),
        (_, true) => Ok(out.text(&pairs::pairs(&shown, args.all))?),
        _ => Ok(out.text(&text(&shown))?),
    }
}

fn text(shown: &Shown<'_>) -> String {
    let vm = format!("{} {}", shown.vm.kind, shown.vm.version);
    let when = match (&shown.core, shown.wall_clock_unix_ns) {
        (Some(core), _) => format!("core file {core}"),
        (None, time) => session_time(time.unwrap_or_default()),
    };
    let title = format!("{}, pid {}, {when}", vm.trim_end(), shown.pid);
    let limits: Vec<String> = (shown.limits.iter())
        .map(|limit| format!("- {limit}"))
        .collect();
    let mut zone = Table::new("", &["start", "end", ">bytes", "kind", "tier", "name"]);
    zone.rows.extend(shown.constituents.iter().map(|one| {
        vec![
            Value::Text(one.start.clone()),
            Value::Text(one.end.clone()),
            Value::Bytes(one.bytes),
            Value::Text(one.kind.to_owned()),
            Value::Text(one.tier.to_owned()),
            Value::Text(one.name.to_owned()),
        ]
    }));
    let mut totals = Table::new("", &["kind", "tier", ">constituents", ">bytes"]);
    totals.rows.extend(shown.totals.iter().map(|total| {
        vec![
            Value::Text(total.kind.to_owned()),
            Value::Text(total.tier.to_owned()),
            Value::Count(total.constituents),
            Value::Bytes(total.bytes),
        ]
    }));
    // Nothing stops this formatting.
    let never = Stop::new();
    let lines = table_lines(&zone, &never).unwrap_or_default();
    let mut lines = lines.into_iter();
    let mut with_details: Vec<String> = lines.next().into_iter().collect();
    for (line, one) in lines.zip(&shown.constituents) {
        with_details.push(line);
        put_details(one, &mut with_details);
    }
    let document = Document {
        title,
        parts: [
            (!limits.is_empty()).then_some(Part::Text(limits)),
            Some(Part::Text(with_details)),
            Some(Part::Table(totals)),
        ]
        .into_iter()
        .flatten()
        .collect(),
    };
    text_of(&document, &never).unwrap_or_default()
}

/// Adds lines for the method, inline cache cases and pc map pieces.
fn put_details(one: &One<'_>, lines: &mut Vec<String>) {
    let method = one.method.iter().filter(|method| *method != one.name);
    lines.extend(method.map(|method| format!("    method {method}")));
    for case in &one.cases {
        lines.push(format!("    case {} -> {}", case.class, case.target));
    }
    match &one.map {
        None => {}
        Some(Map::Boundary {
            at,
            exactness,
            entries,
        }) => {
            let mark = mark(exactness.0);
            lines.extend(entries.iter().map(|(offset, BytecodePc(bytecode))| {
                format!("    {offset:#x} -> {mark}{bytecode} ({at})")
            }));
        }
        Some(Map::Covers { ranges, chains }) => {
            for range in ranges {
                let mut line = format!("    {:#x}-{:#x}  ", range.start, range.end);
                line.push_str(mark(range.exactness.0));
                let chain = chains.get(range.chain as usize);
                for (at, frame) in chain.into_iter().flatten().enumerate() {
                    let caller = if at == 0 { "" } else { " < " };
                    // Writing to a string can't fail.
                    let _ = write!(line, "{caller}{}", frame.method);
                    let _ = match frame.position.0 {
                        Position::Unknown => Ok(()),
                        Position::Bytecode(bytecode) => write!(line, " @ {bytecode}"),
                        Position::Line(source) => write!(line, " @ line {source}"),
                    };
                }
                lines.push(line);
            }
        }
    }
}

/// Exactness mark, as in `annotate`.
fn mark(exactness: Exactness) -> &'static str {
    match exactness {
        Exactness::Exact => "",
        Exactness::Approximate => "~",
        Exactness::MethodOnly => "?",
    }
}
