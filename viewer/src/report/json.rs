//! The report as JSON; the schema is described in docs/report-json.md.

mod matrix;
mod samples;

use crate::present::names::{kind_name, role_name};
use crate::queries::marks::{MarkPart, marks_of};
use crate::queries::parts::parts_of;
use crate::queries::truth::truth_of;
use crate::queries::vm::{CompilersPart, VmPart, compilers_part, vm_parts};
use anyhow::{Context, Result};
use matrix::{MatrixPart, matrix_part};
use samples::{SamplesPart, samples_part};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use vmscope_records::{BytecodePc, Exactness, SampleClock};
use vmscope_symbolizer::profile::Frame;
use vmscope_symbolizer::{Filter, Profile, Region, Summary};

/// The schema's version: a later minor one adds fields, a major one changes some.
const SCHEMA: &str = "vmscope-report/1.5";

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    session: SessionPart<'a>,
    samples: SamplesPart,
    regions: Vec<RegionPart>,
    parts: Vec<PartPart<'a>>,
    threads: Vec<ThreadPart<'a>>,
    entries: Vec<EntryPart<'a>>,
    /// What VMs tell of themselves, the main process's first.
    vm: Vec<VmPart>,
    /// What compilers worked for, where a VM tells.
    compilers: Option<CompilersPart>,
    /// Samples by method, thread and category.
    matrix: MatrixPart,
    /// What the user named; absent where that is nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    marks: Vec<MarkPart<'a>>,
}

#[derive(Serialize)]
struct SessionPart<'a> {
    vm: IdentityPart<'a>,
    command: &'a [String],
    pid: u32,
    seconds: f64,
    clock: &'static str,
    /// Samples a second that were requested of a thread that never waits.
    rate_hz: f64,
    /// Samples a second that arrived.
    achieved_hz: f64,
    period_ns: u64,
    engine: &'a str,
    scheduling: &'a str,
    kernel_included: bool,
    host: &'a str,
    kernel: &'a str,
    wall_clock_unix_ns: u64,
    /// What VMs and vmscope tell for the report's head, by name.
    facts: BTreeMap<&'a str, &'a str>,
    /// Whether the recording has its end.
    complete: bool,
    limits: Vec<LimitPart>,
    /// What the report was narrowed to; absent where it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<FilterPart>,
}

#[derive(Serialize)]
struct FilterPart {
    threads: Option<usize>,
    from_seconds: f64,
    to_seconds: f64,
}

#[derive(Serialize)]
struct IdentityPart<'a> {
    kind: &'a str,
    version: &'a str,
}

#[derive(Serialize)]
struct LimitPart {
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<u64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    remedy: String,
}

#[derive(Serialize)]
struct RegionPart {
    region: &'static str,
    samples: u64,
}

#[derive(Serialize)]
struct PartPart<'a> {
    region: &'static str,
    part: &'a str,
    samples: u64,
}

#[derive(Serialize)]
struct ThreadPart<'a> {
    tid: u32,
    pid: Option<u32>,
    name: &'a str,
    role: &'static str,
    samples: u64,
    cpu_ns: Option<u64>,
}

#[derive(Serialize)]
struct EntryPart<'a> {
    name: &'a str,
    region: &'static str,
    kind: &'a str,
    tier: &'a str,
    module: &'a str,
    /// Where the method begins.
    file: Option<&'a str>,
    line: Option<u32>,
    samples: u64,
    /// 95 % half-width of the share of all samples, 0 to 1 (TRUTH.md §4).
    share_error: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cases: Vec<CasePart<'a>>,
    ranges: Vec<RangePart<'a>>,
}

#[derive(Serialize)]
struct CasePart<'a> {
    class: &'a str,
    target: &'a str,
}

#[derive(Serialize)]
struct RangePart<'a> {
    from: Option<u32>,
    to: Option<u32>,
    method: &'a str,
    via: Vec<FramePart<'a>>,
    file: Option<&'a str>,
    line: Option<u32>,
    exactness: &'static str,
    samples: u64,
}

#[derive(Serialize)]
struct FramePart<'a> {
    method: &'a str,
    bytecode: Option<u32>,
    line: Option<u32>,
}

/// Writes the whole report.
pub(super) fn write(
    profile: &Profile,
    summary: &Summary,
    filter: &Filter,
    out: &mut dyn Write,
) -> Result<()> {
    let report = Report {
        schema: SCHEMA,
        session: session_part(profile, summary, filter)?,
        samples: samples_part(profile, summary),
        regions: Region::ALL
            .iter()
            .zip(summary.regions)
            .map(|(region, samples)| RegionPart {
                region: region.name(),
                samples,
            })
            .collect(),
        parts: parts_of(profile, summary)
            .into_iter()
            .map(|part| PartPart {
                region: part.region.name(),
                part: part.name,
                samples: part.samples,
            })
            .collect(),
        threads: thread_parts(profile, summary),
        entries: entry_parts(profile, summary),
        vm: vm_parts(profile, summary),
        compilers: compilers_part(profile, filter),
        matrix: matrix_part(profile, filter).context("the matrix was not counted")?,
        marks: marks_of(profile, summary),
    };
    serde_json::to_writer_pretty(&mut *out, &report)?;
    writeln!(out)?;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn session_part<'a>(
    profile: &'a Profile,
    summary: &Summary,
    filter: &Filter,
) -> Result<SessionPart<'a>> {
    let session = profile.trace.session.as_ref();
    let session = session.ok_or_else(|| anyhow::anyhow!("the recording holds no session"))?;
    let (from, to) = summary.window;
    let seconds = to.since(from).as_secs_f64();
    let narrowed = filter.threads.is_some() || filter.from.is_some() || filter.to.is_some();
    Ok(SessionPart {
        vm: IdentityPart {
            kind: &session.vm.kind,
            version: &session.vm.version,
        },
        command: &session.command,
        pid: session.pid.0,
        seconds,
        clock: match session.clock {
            SampleClock::Wall => "wall",
            _ => "cpu",
        },
        rate_hz: 1e9 / session.period.0 as f64,
        achieved_hz: if seconds > 0.0 {
            summary.total as f64 / seconds
        } else {
            0.0
        },
        period_ns: session.period.0,
        engine: &session.engine,
        scheduling: &session.scheduling,
        kernel_included: session.kernel_included,
        host: &session.host,
        kernel: &session.kernel,
        wall_clock_unix_ns: session.wall_clock_unix_ns,
        complete: profile.trace.end.is_some(),
        facts: (profile.trace.facts.iter())
            .map(|fact| (fact.name.as_str(), fact.value.as_str()))
            .collect(),
        limits: truth_of(profile, summary)
            .into_iter()
            .map(|line| LimitPart {
                text: line.text,
                samples: line.samples,
                remedy: line.remedy,
            })
            .collect(),
        filter: narrowed.then(|| FilterPart {
            threads: filter.threads.as_ref().map(|threads| threads.len()),
            from_seconds: from.since(session.time).as_secs_f64(),
            to_seconds: to.since(session.time).as_secs_f64(),
        }),
    })
}

fn thread_parts<'a>(profile: &'a Profile, summary: &Summary) -> Vec<ThreadPart<'a>> {
    let trace = &profile.trace;
    summary
        .threads
        .iter()
        .filter_map(|row| {
            let thread = &trace.threads.get(row.thread as usize)?.thread;
            Some(ThreadPart {
                tid: thread.tid.0,
                pid: trace
                    .processes
                    .get(&thread.process)
                    .map(|process| process.pid.0),
                name: &thread.name,
                role: role_name(thread.role),
                samples: row.samples,
                cpu_ns: row.cpu.map(|cpu| cpu.0),
            })
        })
        .collect()
}

fn entry_parts<'a>(profile: &'a Profile, summary: &Summary) -> Vec<EntryPart<'a>> {
    let mut ranges: Vec<Vec<RangePart>> = profile.entries.iter().map(|_| Vec::new()).collect();
    for (site, &samples) in profile.sites.iter().zip(&summary.sites) {
        if samples == 0 {
            continue;
        }
        if let Some(list) = ranges.get_mut(site.entry as usize) {
            list.push(RangePart {
                from: number(site.from),
                to: number(site.to),
                method: &site.frame.name,
                via: site.via.iter().map(frame_part).collect(),
                file: (!site.frame.file.is_empty()).then_some(&site.frame.file),
                line: site.frame.line,
                exactness: match site.exactness {
                    Exactness::Exact => "exact",
                    Exactness::Approximate => "approximate",
                    Exactness::MethodOnly => "method only",
                },
                samples,
            });
        }
    }
    let counted = profile
        .entries
        .iter()
        .zip(&summary.entries)
        .zip(ranges)
        .enumerate();
    let mut entries: Vec<EntryPart> = counted
        .filter(|(_, ((_, samples), _))| **samples > 0)
        .map(|(index, ((entry, &samples), mut ranges))| {
            ranges.sort_by_key(|range| std::cmp::Reverse(range.samples));
            EntryPart {
                name: &entry.name,
                region: entry.region.name(),
                kind: kind_name(&entry.kind),
                tier: &entry.tier,
                module: &entry.module,
                file: (!entry.file.is_empty()).then_some(&entry.file),
                line: entry.line,
                samples,
                share_error: summary.errors.get(index).copied(),
                cases: (entry.cases.iter())
                    .map(|case| CasePart {
                        class: &case.class,
                        target: &case.target,
                    })
                    .collect(),
                ranges,
            }
        })
        .collect();
    entries.sort_by(|a, b| {
        let by_name = || (a.name, a.tier, a.file, a.line).cmp(&(b.name, b.tier, b.file, b.line));
        b.samples.cmp(&a.samples).then_with(by_name)
    });
    entries
}

fn number(pc: Option<BytecodePc>) -> Option<u32> {
    pc.map(BytecodePc::get)
}

fn frame_part(frame: &Frame) -> FramePart<'_> {
    FramePart {
        method: &frame.name,
        bytecode: number(frame.bytecode),
        line: frame.line,
    }
}
