//! The same as JSON: the parts `vm` and `compilers` of the report's schema
//! (docs/report-json.md).

use super::{Collected, Collector, Figure, VmOf, Vms, Words};
use serde::Serialize;
use vmscope_records::{CounterMeaning, Pid};
use vmscope_symbolizer::compilers::{CompiledMethod, CompiledOnce, Compilers};
use vmscope_symbolizer::{Filter, Profile, Stop, Summary};

/// What the VM of one process tells.
#[derive(Serialize)]
pub struct VmPart {
    pid: Option<u32>,
    main: bool,
    collections: Option<CollectionsPart>,
    sections: Vec<SectionPart>,
    values_left_out: u64,
}

#[derive(Serialize)]
struct CollectionsPart {
    collectors: Vec<CollectorPart>,
    left_out: u64,
    spaces: Vec<SpacePart>,
    figures: Vec<FigurePart>,
}

#[derive(Serialize)]
struct CollectorPart {
    name: String,
    count: Option<f64>,
    time_ns: Option<f64>,
    seen: u64,
    observed: u64,
    pauses: usize,
    median_pause_ns: Option<u64>,
    longest_pause_ns: Option<u64>,
    causes: Vec<WordPart>,
    other_causes: u64,
    kinds: Vec<WordPart>,
    other_kinds: u64,
}

#[derive(Serialize)]
struct WordPart {
    name: String,
    count: u64,
}

#[derive(Serialize)]
struct SpacePart {
    name: String,
    before: Option<u64>,
    after: Option<u64>,
    capacity: Option<u64>,
}

#[derive(Serialize)]
struct SectionPart {
    name: String,
    figures: Vec<FigurePart>,
}

#[derive(Serialize)]
struct FigurePart {
    name: String,
    unit: String,
    meaning: &'static str,
    first: f64,
    last: f64,
    min: f64,
    max: f64,
    change: f64,
    per_second: f64,
}

/// What the compilers worked for.
#[derive(Serialize)]
pub struct CompilersPart {
    samples: u64,
    threads: u64,
    told: u64,
    between: u64,
    unseen: u64,
    doubtful: u64,
    compilations: u64,
    methods: Vec<MethodPart>,
    methods_left_out: u64,
    samples_left_out: u64,
}

#[derive(Serialize)]
struct MethodPart {
    name: String,
    tier: String,
    samples: u64,
    compilations: u64,
    listed: Vec<OncePart>,
}

#[derive(Serialize)]
struct OncePart {
    id: u64,
    osr_bytecode: Option<u32>,
    tid: Option<u32>,
    first_seen_seconds: f64,
    last_seen_seconds: f64,
    samples: u64,
}

/// What all VMs tell, the main process's first.
pub fn vm_parts(profile: &Profile, summary: &Summary) -> Vec<VmPart> {
    let vms = Vms::of(profile, summary);
    vms.of.iter().map(vm_part).collect()
}

fn vm_part(vm: &VmOf) -> VmPart {
    let sections = vm.sections.iter().map(|section| SectionPart {
        name: section.name.to_owned(),
        figures: figure_parts(&section.figures),
    });
    VmPart {
        pid: vm.pid.map(Pid::get),
        main: vm.is_main,
        collections: vm.collected.as_ref().map(collections_part),
        sections: sections.collect(),
        values_left_out: vm.values_left_out,
    }
}

fn collections_part(collected: &Collected) -> CollectionsPart {
    let spaces = collected.spaces.iter().map(|space| SpacePart {
        name: space.name.clone(),
        before: space.before,
        after: space.after,
        capacity: space.capacity,
    });
    CollectionsPart {
        collectors: collected.collectors.iter().map(collector_part).collect(),
        left_out: collected.left_out,
        spaces: spaces.collect(),
        figures: figure_parts(&collected.others),
    }
}

fn collector_part(row: &Collector) -> CollectorPart {
    CollectorPart {
        name: row.label.clone(),
        count: row.count.map(|figure| figure.change()),
        time_ns: row.time.map(|figure| figure.change()),
        seen: row.seen,
        observed: row.observed,
        pauses: row.pauses.len(),
        median_pause_ns: row.median(),
        longest_pause_ns: row.pauses.last().copied(),
        causes: word_parts(&row.causes),
        other_causes: row.causes.others,
        kinds: word_parts(&row.kinds),
        other_kinds: row.kinds.others,
    }
}

fn word_parts(words: &Words) -> Vec<WordPart> {
    let parts = words.listed.iter().map(|&(name, count)| WordPart {
        name: name.to_owned(),
        count,
    });
    parts.collect()
}

fn figure_parts(figures: &[Figure]) -> Vec<FigurePart> {
    let parts = figures.iter().map(|figure| FigurePart {
        name: figure.name.to_owned(),
        unit: figure.unit.to_owned(),
        meaning: match figure.meaning {
            CounterMeaning::Gauge => "gauge",
            CounterMeaning::Total => "total",
        },
        first: figure.first,
        last: figure.last,
        min: figure.min,
        max: figure.max,
        change: figure.change(),
        per_second: figure.per_second(),
    });
    parts.collect()
}

/// What the compilers worked for; `None` where no VM tells.
pub fn compilers_part(profile: &Profile, filter: &Filter) -> Option<CompilersPart> {
    let compilers = Compilers::of(profile, filter, &Stop::new())?;
    let methods = compilers
        .methods
        .iter()
        .map(|one| method_part(profile, one));
    Some(CompilersPart {
        samples: compilers.samples,
        threads: compilers.threads,
        told: compilers.told,
        between: compilers.between,
        unseen: compilers.unseen,
        doubtful: compilers.doubtful,
        compilations: compilers.compilations,
        methods: methods.collect(),
        methods_left_out: compilers.left_out.0,
        samples_left_out: compilers.left_out.1,
    })
}

fn method_part(profile: &Profile, method: &CompiledMethod) -> MethodPart {
    let trace = &profile.trace;
    let begin = trace.session.as_ref().map(|session| session.time);
    let begin = begin.unwrap_or_default();
    let once = |one: &CompiledOnce| {
        let thread = trace.threads.get(one.thread as usize);
        OncePart {
            id: one.id,
            osr_bytecode: one.osr_bci,
            tid: thread.map(|thread| thread.thread.tid.get()),
            first_seen_seconds: one.first_seen.since(begin).as_secs_f64(),
            last_seen_seconds: one.last_seen.since(begin).as_secs_f64(),
            samples: one.samples,
        }
    };
    MethodPart {
        name: method.name.clone(),
        tier: method.tier.clone(),
        samples: method.samples,
        compilations: method.compilations,
        listed: method.listed.iter().map(once).collect(),
    }
}
