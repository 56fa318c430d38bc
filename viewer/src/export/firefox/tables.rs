//! The Firefox Profiler's processed profile, version 60, by its front end's types and upgraders
//! (github.com/firefox-devtools/profiler, `src/types/profile.ts`,
//! `src/profile-logic/processed-profile-versioning.ts`). Tables are columns, as in the file; unused
//! ones are empty.

use serde::{Serialize, Serializer};
use vmscope_symbolizer::{IndexVec, StackId};

/// Version of the format: the first with tables shared by threads. Front ends upgrade older
/// profiles.
pub(super) const VERSION: u32 = 60;

#[derive(Debug, Serialize)]
pub(super) struct Document<'a> {
    pub meta: Meta,
    pub libs: Vec<Lib>,
    pub shared: &'a Shared,
    pub threads: Vec<Thread<'a>>,
    pub pages: [(); 0],
    pub counters: [(); 0],
    #[serde(rename = "profilerOverhead")]
    pub profiler_overhead: [(); 0],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta {
    /// Milliseconds between two samples of a thread.
    pub interval: f64,
    /// Milliseconds since the Unix epoch; base of all times.
    pub start_time: f64,
    pub process_type: u32,
    pub product: String,
    pub oscpu: String,
    #[serde(rename = "logicalCPUs")]
    pub logical_cpus: u32,
    pub stackwalk: u32,
    pub debug: bool,
    /// Version of Firefox's own format: unused.
    pub version: u32,
    pub preprocessed_profile_version: u32,
    pub symbolicated: bool,
    pub uses_only_one_stack_type: bool,
    pub source_code_is_not_on_searchfox: bool,
    pub imported_from: String,
    pub arguments: String,
    pub sample_units: SampleUnits,
    pub categories: Vec<Category>,
    pub extensions: Extensions,
    pub marker_schema: [(); 0],
    pub paused_ranges: [(); 0],
    pub extra: Vec<ExtraSection>,
}

/// Units of the sample columns.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SampleUnits {
    pub time: &'static str,
    pub event_delay: &'static str,
    #[serde(rename = "threadCPUDelta")]
    pub thread_cpu_delta: &'static str,
}

/// Color and heading of frames.
#[derive(Debug, Serialize)]
pub(super) struct Category {
    pub name: String,
    pub color: &'static str,
    /// The first is always `Other`.
    pub subcategories: Vec<String>,
}

/// Browser extensions: none.
#[derive(Debug, Default, Serialize)]
pub(super) struct Extensions {
    pub length: u32,
    #[serde(rename = "baseURL")]
    pub base_url: [(); 0],
    pub id: [(); 0],
    pub name: [(); 0],
}

/// Lines in the profile's information.
#[derive(Debug, Serialize)]
pub(super) struct ExtraSection {
    pub label: &'static str,
    pub entries: Vec<ExtraEntry>,
}

#[derive(Debug, Serialize)]
pub(super) struct ExtraEntry {
    pub label: String,
    pub format: &'static str,
    pub value: String,
}

/// File with mapped code.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Lib {
    pub arch: &'static str,
    pub name: String,
    pub path: String,
    pub debug_name: String,
    pub debug_path: String,
    pub breakpad_id: String,
    pub code_id: Option<String>,
}

/// Tables shared by all threads.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shared {
    pub string_array: Vec<String>,
    pub sources: Sources,
    pub stack_table: StackTable,
    pub frame_table: FrameTable,
    pub func_table: FuncTable,
    pub resource_table: ResourceTable,
    pub native_symbols: NativeSymbols,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Sources {
    pub length: usize,
    pub id: Vec<()>,
    /// Strings.
    pub filename: Vec<u32>,
}

/// Stacks: a frame called from another stack.
#[derive(Debug, Default, Serialize)]
pub(super) struct StackTable {
    pub length: usize,
    pub frame: Vec<u32>,
    pub prefix: Vec<Option<u32>>,
}

/// Places in functions.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FrameTable {
    pub length: usize,
    /// −1: a frame covers all addresses of a line.
    pub address: Vec<i64>,
    pub inline_depth: Vec<u32>,
    pub category: Vec<u32>,
    pub subcategory: Vec<u32>,
    pub func: Vec<u32>,
    pub native_symbol: Vec<Option<u32>>,
    #[serde(rename = "innerWindowID")]
    pub inner_window_id: Vec<u32>,
    pub line: Vec<Option<u32>>,
    pub column: Vec<()>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FuncTable {
    pub length: usize,
    /// Strings.
    pub name: Vec<u32>,
    #[serde(rename = "isJS")]
    pub is_js: Vec<bool>,
    #[serde(rename = "relevantForJS")]
    pub relevant_for_js: Vec<bool>,
    /// −1: none.
    pub resource: Vec<i64>,
    /// Sources.
    pub source: Vec<Option<u32>>,
    pub line_number: Vec<()>,
    pub column_number: Vec<()>,
}

/// Origins of functions.
#[derive(Debug, Default, Serialize)]
pub(super) struct ResourceTable {
    pub length: usize,
    pub lib: Vec<u32>,
    /// Strings.
    pub name: Vec<u32>,
    pub host: Vec<()>,
    /// 1: library.
    #[serde(rename = "type")]
    pub kind: Vec<u32>,
}

/// Functions by symbol: the outer ones of inlined functions.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NativeSymbols {
    pub length: usize,
    pub lib_index: Vec<u32>,
    /// Offsets in the file.
    pub address: Vec<u64>,
    /// Strings.
    pub name: Vec<u32>,
    pub function_size: Vec<Option<u64>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Thread<'a> {
    pub process_type: &'static str,
    pub process_startup_time: f64,
    pub process_shutdown_time: Option<f64>,
    pub register_time: f64,
    pub unregister_time: Option<f64>,
    pub paused_ranges: [(); 0],
    pub name: String,
    pub is_main_thread: bool,
    pub process_name: String,
    pub pid: String,
    pub tid: u32,
    pub show_markers_in_timeline: bool,
    pub samples: Samples<'a>,
    pub markers: Markers,
}

/// Markers: none.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Markers {
    pub length: u32,
    pub category: [(); 0],
    pub data: [(); 0],
    pub name: [(); 0],
    pub start_time: [(); 0],
    pub end_time: [(); 0],
    pub phase: [(); 0],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Samples<'a> {
    pub length: usize,
    pub weight_type: &'static str,
    pub weight: Option<()>,
    /// Stacks.
    pub stack: Stacks<'a>,
    /// Milliseconds since the previous sample.
    pub time_deltas: TimeDeltas<'a>,
    /// CPU time since the previous sample, in ns.
    #[serde(rename = "threadCPUDelta")]
    pub thread_cpu_delta: CpuDeltas<'a>,
}

/// Nodes of the symbolizer's tree, serialized as stack indices.
#[derive(Debug)]
pub(super) struct Stacks<'a> {
    pub nodes: &'a [StackId],
    pub stack_of_node: &'a IndexVec<StackId, Option<u32>>,
}

/// Ascending times in ns, serialized as differences.
#[derive(Debug)]
pub(super) struct TimeDeltas<'a>(pub &'a [u64]);

/// CPU time per sample.
#[derive(Debug)]
pub(super) struct CpuDeltas<'a> {
    pub times: &'a [u64],
    /// Of one sample; `None` without a CPU clock.
    pub period: Option<u64>,
}

impl Serialize for Stacks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stacks = self.nodes.iter().map(|&node| self.stack_of_node[node]);
        serializer.collect_seq(stacks)
    }
}

impl Serialize for TimeDeltas<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(deltas(self.0).map(milliseconds))
    }
}

impl Serialize for CpuDeltas<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A thread's CPU time never exceeds elapsed time.
        let used = |passed: u64| self.period.map(|period| period.min(passed));
        serializer.collect_seq(deltas(self.times).map(used))
    }
}

/// Difference to the previous time; the first one's to 0.
fn deltas(times: &[u64]) -> impl Iterator<Item = u64> {
    let before = std::iter::once(&0).chain(times);
    times
        .iter()
        .zip(before)
        .map(|(time, before)| time.saturating_sub(*before))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds of a recording are below 2^52"
)]
pub(super) fn milliseconds(ns: u64) -> f64 {
    ns as f64 / 1e6
}
