//! An annotated method as JSON (docs/annotate-json.md).

use crate::present::names::region_key;
use serde_json::{Value, json};
use vmscope_records::BytecodePc;
use vmscope_symbolizer::Profile;
use vmscope_symbolizer::annotate::{
    Annotation, Call, Calls, Inlined, Listed, Row, Spot, Tally, Tier,
};

/// Version of the schema: minor versions add fields, major versions change some.
const SCHEMA: &str = "vmscope-annotate/2.1";

pub(super) fn json(profile: &Profile, annotation: &Annotation, calls: Option<&Calls>) -> Value {
    let session = profile.trace.session.as_ref();
    let is_native = profile.is_native();
    let tier = |tier: &Tier| {
        let region = region_key(tier.region, is_native);
        json!({ "region": region, "tier": tier.name, "samples": tier.samples })
    };
    let into = annotation.into.iter();
    let into = into.map(|(method, samples)| json!({ "method": &**method, "samples": samples }));
    let listed =
        |one: &Listed| json!({ "bytecode": one.pc.get(), "text": one.text, "line": one.line });
    json!({
        "schema": SCHEMA,
        "vm": {
            "kind": session.map_or("", |session| &session.vm.kind),
            "version": session.map_or("", |session| &session.vm.version),
        },
        "method": annotation.name,
        "file": Some(&annotation.file).filter(|file| !file.is_empty()),
        "line": annotation.line,
        "total": annotation.total,
        "all": tally(&annotation.all),
        "own": tally(&annotation.own),
        "share_error": annotation.error,
        "inferred_samples": annotation.inferred.samples,
        "own_inferred_samples": annotation.own_inferred.samples,
        "own_inference_error": annotation.own_inferred.error(annotation.total),
        "tiers": annotation.tiers.iter().map(tier).collect::<Vec<_>>(),
        "inlined_into": into.collect::<Vec<_>>(),
        "stacks": calls.map(|calls| stacks(calls, is_native)),
        "rows": annotation.rows.iter().map(row).collect::<Vec<_>>(),
        "listing": annotation.listing.iter().map(listed).collect::<Vec<_>>(),
        "listings": annotation.listings,
        "too_deep": annotation.too_deep,
    })
}

fn stacks(calls: &Calls, is_native: bool) -> Value {
    let all = |calls: &[Call]| {
        let call = |call: &Call| {
            json!({
                "method": &*call.name,
                "region": region_key(call.region, is_native),
                "samples": call.samples,
                "inlined": call.inlined,
            })
        };
        calls.iter().map(call).collect::<Vec<_>>()
    };
    json!({
        "total": calls.total,
        "inclusive": calls.samples,
        "outermost": calls.outermost,
        "callers": all(&calls.callers),
        "callees": all(&calls.callees),
    })
}

fn tally(tally: &Tally) -> Value {
    json!({
        "samples": tally.samples(),
        "exact": tally.exact,
        "approximate": tally.approximate,
        "method_only": tally.method_only,
        "tiers": tally.tiers,
    })
}

/// Recursion is bounded by the annotation's depth.
fn row(row: &Row) -> Value {
    let pc = |pc: &Option<BytecodePc>| pc.map(BytecodePc::get);
    let place = match &row.spot {
        Spot::Unknown => "unknown",
        Spot::Entry => "entry",
        Spot::Bytecode(_) => "bytecode",
        Spot::Range { .. } => "range",
        Spot::Line { .. } => "line",
    };
    let (bytecode, from, to, boundaries) = match &row.spot {
        Spot::Bytecode(at) => (Some(at.get()), None, None, None),
        Spot::Range { from, to, after } => {
            let boundaries = if *after { "after" } else { "before" };
            (None, pc(from), pc(to), Some(boundaries))
        }
        _ => (None, None, None, None),
    };
    let mut json = json!({ "place": place, "bytecode": bytecode, "from": from, "to": to });
    if let Some(boundaries) = boundaries {
        json["boundaries"] = boundaries.into();
    }
    let (file, line) = match &row.spot {
        Spot::Line { file, line } => (Some(&**file).filter(|file| !file.is_empty()), Some(*line)),
        _ => (None, row.line),
    };
    json["file"] = file.into();
    json["line"] = line.into();
    json["own"] = tally(&row.own);
    json["called"] = row.called.into();
    json["share_error"] = row.error.into();
    json["inlined"] = row.inlined.iter().map(inlined).collect();
    json
}

fn inlined(inlined: &Inlined) -> Value {
    json!({
        "method": &*inlined.name,
        "all": tally(&inlined.all),
        "share_error": inlined.error,
        "rows": inlined.rows.iter().map(row).collect::<Vec<_>>(),
    })
}
