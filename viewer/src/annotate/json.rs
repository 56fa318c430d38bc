//! An annotated method as JSON; the schema is described in docs/annotate-json.md.

use anyhow::Result;
use serde::Serialize;
use std::io::Write;
use vmscope_symbolizer::Profile;
use vmscope_symbolizer::annotate::{Annotation, Inlined, Row, Spot, Tally};

/// The schema's version: a later minor one adds fields, a major one changes some.
const SCHEMA: &str = "vmscope-annotate/1.0";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    vm: VmPart<'a>,
    method: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    /// All samples, of whatever.
    total: u64,
    all: TallyPart<'a>,
    own: TallyPart<'a>,
    /// 95 % half-width of the share of `all` in `total`, 0 to 1 (TRUTH.md §4).
    share_error: Option<f64>,
    tiers: Vec<TierPart<'a>>,
    inlined_into: Vec<IntoPart<'a>>,
    rows: Vec<RowPart<'a>>,
    listing: Vec<ListedPart<'a>>,
    listings: usize,
    too_deep: u64,
}

#[derive(Serialize)]
struct VmPart<'a> {
    kind: &'a str,
    version: &'a str,
}

#[derive(Serialize)]
struct TallyPart<'a> {
    samples: u64,
    exact: u64,
    approximate: u64,
    method_only: u64,
    tiers: &'a [u64],
}

#[derive(Serialize)]
struct TierPart<'a> {
    region: &'static str,
    tier: &'a str,
    samples: u64,
}

#[derive(Serialize)]
struct IntoPart<'a> {
    method: &'a str,
    samples: u64,
}

#[derive(Serialize)]
struct RowPart<'a> {
    place: &'static str,
    bytecode: Option<u32>,
    from: Option<u32>,
    to: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    boundaries: Option<&'static str>,
    file: Option<&'a str>,
    line: Option<u32>,
    own: TallyPart<'a>,
    share_error: Option<f64>,
    inlined: Vec<InlinedPart<'a>>,
}

#[derive(Serialize)]
struct InlinedPart<'a> {
    method: &'a str,
    all: TallyPart<'a>,
    share_error: Option<f64>,
    rows: Vec<RowPart<'a>>,
}

#[derive(Serialize)]
struct ListedPart<'a> {
    bytecode: u32,
    text: &'a str,
    line: Option<u32>,
}

/// Writes the whole document.
///
/// # Errors
/// When `out` takes nothing.
pub(super) fn write(profile: &Profile, annotation: &Annotation, out: &mut dyn Write) -> Result<()> {
    let session = profile.trace.session.as_ref();
    let document = Document {
        schema: SCHEMA,
        vm: VmPart {
            kind: session.map_or("", |session| &session.vm.kind),
            version: session.map_or("", |session| &session.vm.version),
        },
        method: &annotation.name,
        file: (!annotation.file.is_empty()).then_some(&annotation.file),
        line: annotation.line,
        total: annotation.total,
        all: tally(&annotation.all),
        own: tally(&annotation.own),
        share_error: annotation.error,
        tiers: (annotation.tiers.iter())
            .map(|tier| TierPart {
                region: tier.region.name(),
                tier: &tier.name,
                samples: tier.samples,
            })
            .collect(),
        inlined_into: (annotation.into.iter())
            .map(|(method, samples)| IntoPart {
                method,
                samples: *samples,
            })
            .collect(),
        rows: annotation.rows.iter().map(row).collect(),
        listing: (annotation.listing.iter())
            .map(|listed| ListedPart {
                bytecode: listed.pc.get(),
                text: &listed.text,
                line: listed.line,
            })
            .collect(),
        listings: annotation.listings,
        too_deep: annotation.too_deep,
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)?;
    Ok(())
}

fn tally(tally: &Tally) -> TallyPart<'_> {
    TallyPart {
        samples: tally.samples(),
        exact: tally.exact,
        approximate: tally.approximate,
        method_only: tally.method_only,
        tiers: &tally.tiers,
    }
}

/// Goes as deep as the annotation, which bounds it.
fn row(row: &Row) -> RowPart<'_> {
    let mut part = RowPart {
        place: "unknown",
        bytecode: None,
        from: None,
        to: None,
        boundaries: None,
        file: None,
        line: row.line,
        own: tally(&row.own),
        share_error: row.error,
        inlined: row.inlined.iter().map(inlined).collect(),
    };
    match &row.spot {
        Spot::Unknown => {}
        Spot::Entry => part.place = "entry",
        Spot::Bytecode(pc) => {
            part.place = "bytecode";
            part.bytecode = Some(pc.get());
        }
        Spot::Range { from, to, after } => {
            part.place = "range";
            part.from = from.map(|pc| pc.get());
            part.to = to.map(|pc| pc.get());
            part.boundaries = Some(if *after { "after" } else { "before" });
        }
        Spot::Line { file, line } => {
            part.place = "line";
            part.file = (!file.is_empty()).then_some(file);
            part.line = Some(*line);
        }
    }
    part
}

fn inlined(inlined: &Inlined) -> InlinedPart<'_> {
    InlinedPart {
        method: &inlined.name,
        all: tally(&inlined.all),
        share_error: inlined.error,
        rows: inlined.rows.iter().map(row).collect(),
    }
}
