//! Processed profile for the Firefox Profiler (profiler.firefox.com): every sample with its time,
//! by thread.

mod build;
mod tables;

use super::Export;
use super::who::{self, Who};
use crate::present::json;
use crate::present::text::harmless;
use crate::queries::truth::truth_of;
use anyhow::Result;
use build::Tables;
use std::io::Write;
use tables::{
    CpuDeltas, Document, Extensions, ExtraEntry, ExtraSection, Markers, Meta, SampleUnits, Samples,
    Stacks, Thread, TimeDeltas, VERSION, milliseconds,
};
use vmscope_records::{ProcessKey, SampleClock, TimeNs};
use vmscope_symbolizer::stacks::{StackSample, each_stack};
use vmscope_symbolizer::{IndexVec, StackId, ThreadId};

pub(super) fn write(export: &Export<'_>, out: &mut dyn Write) -> Result<()> {
    let mut rows = export.profile.trace.threads.with_each(Rows::default());
    let begin = begin(export);
    let tree = each_stack(export.profile, export.filter, |sample| {
        rows[sample.thread].put(sample, begin);
    });
    for rows in &mut rows {
        rows.sort();
    }
    let mut tables = Tables::new(export);
    let stack_of_node = tables.put_stacks(&tree);
    let document = Document {
        meta: meta(export, &mut tables),
        libs: std::mem::take(&mut tables.libs),
        shared: &tables.shared,
        threads: threads(export, &rows, &stack_of_node),
        pages: [],
        counters: [],
        profiler_overhead: [],
    };
    Ok(json::write(out, &document)?)
}

/// Samples of a thread: ns since the recording's begin, tree nodes.
#[derive(Clone, Debug, Default)]
struct Rows {
    times: Vec<u64>,
    nodes: Vec<StackId>,
}

impl Rows {
    fn put(&mut self, sample: StackSample, begin: TimeNs) {
        self.times.push(sample.time.since(begin).0);
        self.nodes.push(sample.node);
    }

    /// The front end expects ascending times; damaged recordings may lack that order.
    fn sort(&mut self) {
        if self.times.is_sorted() {
            return;
        }
        let mut rows: Vec<(u64, StackId)> = (self.times.iter().copied())
            .zip(self.nodes.iter().copied())
            .collect();
        rows.sort_by_key(|(time, _)| *time);
        (self.times, self.nodes) = rows.into_iter().unzip();
    }
}

fn begin(export: &Export<'_>) -> TimeNs {
    export.session().map_or(TimeNs(0), |session| session.time)
}

fn threads<'a>(
    export: &Export<'_>,
    rows: &'a IndexVec<ThreadId, Rows>,
    stack_of_node: &'a IndexVec<StackId, Option<u32>>,
) -> Vec<Thread<'a>> {
    let trace = &export.profile.trace;
    let begin = begin(export);
    let at = |time: TimeNs| milliseconds(time.since(begin).0);
    let process_start = |key: ProcessKey| {
        let process = trace.processes.get(&key);
        process.map_or(0.0, |process| at(process.time))
    };
    let process_end = |key: ProcessKey| {
        let mut ends = trace.process_ends.iter();
        let end = ends.find(|end| end.key == key && !end.alive);
        end.map(|end| at(end.time))
    };
    let session = trace.session.as_ref();
    let clock = session.map(|session| session.clock);
    let period = match (session, clock) {
        (Some(session), Some(SampleClock::Cpu)) => Some(session.period.0),
        _ => None,
    };
    let mut all: Vec<(Who, ThreadId)> = who::threads(trace)
        .into_iter()
        .zip(trace.threads.ids())
        .collect();
    // Processes in turn, each with its first thread first.
    all.sort_by_key(|(who, index)| (who.process, !who.is_main(), *index));
    let all = all.into_iter();
    let with_samples = all.filter(|(_, id)| !rows[*id].times.is_empty());
    let of_one = |(who, id): (Who, ThreadId)| {
        let (thread, rows) = (&trace.threads[id], &rows[id]);
        let end = thread.end.as_ref().filter(|end| !end.alive);
        Thread {
            process_type: "default",
            process_startup_time: process_start(who.process),
            process_shutdown_time: process_end(who.process),
            register_time: at(thread.thread.time),
            unregister_time: end.map(|end| at(end.time)),
            paused_ranges: [],
            is_main_thread: who.is_main(),
            name: who.name,
            process_name: who.process_name,
            pid: who.pid.to_string(),
            tid: who.tid.0,
            show_markers_in_timeline: false,
            samples: Samples {
                length: rows.times.len(),
                weight_type: "samples",
                weight: None,
                stack: Stacks {
                    nodes: &rows.nodes,
                    stack_of_node,
                },
                time_deltas: TimeDeltas(&rows.times),
                thread_cpu_delta: CpuDeltas {
                    times: &rows.times,
                    period,
                },
            },
            markers: Markers::default(),
        }
    };
    with_samples.map(of_one).collect()
}

fn meta(export: &Export<'_>, tables: &mut Tables<'_>) -> Meta {
    let session = export.session();
    let command = harmless(&export.command());
    let program = command.split(' ').next().unwrap_or("");
    let program = program.rsplit('/').next().unwrap_or("");
    let product = export
        .vm()
        .map_or_else(|| program.to_owned(), |vm| harmless(&vm));
    Meta {
        interval: session.map_or(1.0, |session| milliseconds(session.period.0)),
        start_time: session.map_or(0.0, |session| milliseconds(session.wall_clock_unix_ns)),
        process_type: 0,
        product,
        oscpu: session.map_or_else(String::new, |session| harmless(&session.kernel)),
        logical_cpus: session.map_or(0, |session| session.cpus),
        stackwalk: u32::from(!export.profile.trace.samples.chains.is_empty()),
        debug: false,
        version: 24,
        preprocessed_profile_version: VERSION,
        // Keeps the front end from looking for symbols.
        symbolicated: true,
        uses_only_one_stack_type: !tables.has_methods,
        source_code_is_not_on_searchfox: true,
        imported_from: session.map_or_else(String::new, |session| harmless(&session.producer)),
        arguments: command,
        sample_units: SampleUnits {
            time: "ms",
            event_delay: "ms",
            thread_cpu_delta: "ns",
        },
        categories: std::mem::take(&mut tables.categories),
        extensions: Extensions::default(),
        marker_schema: [],
        paused_ranges: [],
        extra: limits(export),
    }
}

/// Limits of accuracy.
fn limits(export: &Export<'_>) -> Vec<ExtraSection> {
    let lines = truth_of(export.profile, export.summary).into_iter();
    let entries: Vec<ExtraEntry> = lines
        .map(|line| ExtraEntry {
            label: "limit".to_owned(),
            format: "string",
            value: harmless(&line.in_full()),
        })
        .collect();
    if entries.is_empty() {
        return Vec::new();
    }
    vec![ExtraSection {
        label: "Accuracy",
        entries,
    }]
}
