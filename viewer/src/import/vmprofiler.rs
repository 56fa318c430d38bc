//! Recordings from what a Cog VM's image saved: samples by primitive 252, the code zone by primitive 253.

use super::program::{self, Place};
use crate::binaries::DiskBinaries;
use crate::embed::embed;
use crate::inputs::read;
use crate::memory::MemoryOption;
use crate::present::numbers::some;
use crate::print::say;
use crate::record::{DEFAULT_OUTPUT, EarlierRecording};
use crate::symbols_file::SymbolsOptions;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use vmscope_cog::saved::{SavedSample, SavedSamples, SavedZone, WordSize, region_rules};
use vmscope_process::KeySource;
use vmscope_records::recording::{RecordingFile, Writer, create_private};
use vmscope_records::{
    Arch, Avma, CpuMode, DurationNs, EndReason, FileOffset, Limit, LimitKind, Mapping, ModuleKey,
    Pid, Process, ProcessKey, Record, RecordingEnd, Sample, SampleClock, Session, Thread,
    ThreadKey, ThreadRole, Tid, TimeNs, VmIdentity,
};

/// Maximum sizes of the files: 32 million samples, or a detailed zone of 16 MiB several times.
const MAX_SAMPLES: u64 = 256 << 20;
const MAX_CONSTITUENTS: u64 = 64 << 20;

/// Maximum number of threads of a text file.
const MAX_THREADS: usize = 1 << 16;

const PROCESS: ProcessKey = ProcessKey(1);
const PROGRAM: ModuleKey = ModuleKey(1);

/// First address of the kernel on 64-bit machines.
const KERNEL: u64 = 1 << 63;

#[derive(Args, Clone, Debug)]
pub struct VmprofilerArgs {
    /// Sampled pcs: little-endian words, as primitive 252 copies them; or text with a line `PC`, `SECONDS PC`
    /// or `TID SECONDS PC` for each
    #[arg(long, value_name = "FILE")]
    samples: PathBuf,
    /// The code zone: primitive 253's answer as text, plain or detailed, or the output of
    /// `vmscope constituents --pairs`
    #[arg(long, value_name = "FILE")]
    constituents: PathBuf,
    #[command(flatten)]
    names: SymbolsOptions,
    /// Samples per second; the VM's own sampler has 1501
    #[arg(long, value_name = "HZ", default_value_t = 1501,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    hz: u32,
    /// Size of a sample's word in bits (default: by the zone's addresses)
    #[arg(long, value_name = "BITS", value_parser = word_size)]
    word_size: Option<WordSize>,
    /// The recording's file
    #[arg(long, short, value_name = "FILE", default_value = DEFAULT_OUTPUT)]
    output: PathBuf,
    #[command(flatten)]
    memory: MemoryOption,
}

fn word_size(text: &str) -> Result<WordSize, String> {
    match text {
        "32" => Ok(WordSize::Bits32),
        "64" => Ok(WordSize::Bits64),
        _ => Err("expected 32 or 64".to_owned()),
    }
}

/// Makes a recording.
///
/// # Errors
/// Unreadable or wrong files, no samples, a failed write.
pub(super) fn run(args: &VmprofilerArgs) -> Result<()> {
    let shown = |path: &Path| path.display().to_string();
    let zone = read(&args.constituents, MAX_CONSTITUENTS)?;
    let zone = SavedZone::parse(&zone).with_context(|| shown(&args.constituents))?;
    let bytes = read(&args.samples, MAX_SAMPLES)?;
    let samples =
        SavedSamples::new(&bytes, &zone, args.word_size).with_context(|| shown(&args.samples))?;
    let survey = Survey::of(&samples, args).with_context(|| shown(&args.samples))?;
    let mut records = survey.records(args);
    records.extend(zone_records(&zone, survey.begin));
    if let Some(path) = &args.names.symbols {
        let place = Place {
            process: PROCESS,
            time: survey.begin,
            module: PROGRAM,
        };
        let program = program::records(path, args.names.load_address, place, &survey.pcs)?;
        let rules = program.iter().find_map(|record| match record {
            Record::Module(one) => Some(region_rules(PROCESS, survey.begin, &one.path)),
            _ => None,
        });
        records.extend(rules.map(Record::RegionRules));
        records.extend(program);
    }
    // A wrong input leaves an earlier recording alone.
    let earlier = EarlierRecording::of(&args.output, false);
    write(args, records, &samples, &survey)?;
    earlier.tell_name();
    embed(&args.output, &DiskBinaries, args.memory)?;
    let output = args.output.display();
    say(&format!(
        "{} and {} in {output}: `vmscope report {output}` shows them",
        some(survey.count, "sample", "samples"),
        some(zone.pieces.len() as u64, "constituent", "constituents"),
    ));
    Ok(())
}

/// What the samples tell together.
struct Survey {
    count: u64,
    has_times: bool,
    period: DurationNs,
    begin: TimeNs,
    end: TimeNs,
    has_kernel: bool,
    threads: BTreeMap<Option<Tid>, ThreadKey>,
    /// Sampled addresses, ascending; empty without symbols to look up.
    pcs: Vec<Avma>,
}

impl Survey {
    fn of(samples: &SavedSamples<'_>, args: &VmprofilerArgs) -> Result<Self> {
        let period = DurationNs(1_000_000_000 / u64::from(args.hz));
        let mut survey = Survey {
            count: 0,
            has_times: samples.has_times()?,
            period,
            begin: TimeNs(0),
            end: TimeNs(0),
            has_kernel: false,
            threads: BTreeMap::new(),
            pcs: Vec::new(),
        };
        for sample in samples.iter() {
            let sample = sample?;
            survey.end = survey.time(survey.count, &sample);
            if survey.count == 0 {
                survey.begin = survey.end.minus(period);
            }
            survey.count += 1;
            survey.has_kernel |= mode(&sample) == CpuMode::Kernel;
            if args.names.symbols.is_some() {
                survey.pcs.push(sample.pc);
            }
            let next = ThreadKey(u32::try_from(survey.threads.len()).unwrap_or(u32::MAX) + 1);
            survey.threads.entry(sample.thread).or_insert(next);
            if survey.threads.len() > MAX_THREADS {
                bail!("more than {MAX_THREADS} threads");
            }
        }
        if survey.count == 0 {
            bail!("no samples");
        }
        survey.pcs.sort_unstable();
        survey.pcs.dedup();
        Ok(survey)
    }

    /// Time of sample `number`: its own, or the nominal one.
    fn time(&self, number: u64, sample: &SavedSample) -> TimeNs {
        let nominal = number.saturating_add(1).saturating_mul(self.period.0);
        sample.time.unwrap_or(TimeNs(nominal))
    }

    /// The session, its limits, the process and its threads.
    fn records(&self, args: &VmprofilerArgs) -> Vec<Record> {
        let first = self.threads.iter().find(|(_, key)| key.0 == 1);
        // Linux: the main thread's id is the process's.
        let pid = Pid(first.and_then(|(tid, _)| *tid).map_or(0, |tid| tid.0));
        let saved = std::fs::metadata(&args.samples).and_then(|file| file.modified());
        let saved = saved.ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let saved = saved.map_or(0, |at| u64::try_from(at.as_nanos()).unwrap_or(0));
        let source = args.samples.file_name().unwrap_or_default();
        let session = Session {
            time: self.begin,
            wall_clock_unix_ns: saved.saturating_sub(self.end.since(self.begin).0),
            producer: concat!("vmscope ", env!("CARGO_PKG_VERSION")).to_owned(),
            vm: VmIdentity {
                kind: "Cog".to_owned(),
                version: String::new(),
            },
            command: ["imported", "from", &source.to_string_lossy()]
                .map(str::to_owned)
                .into(),
            pid,
            launched: true,
            host: String::new(),
            kernel: String::new(),
            arch: Arch::of_this_machine(),
            cpus: 0,
            engine: "import".to_owned(),
            engine_reason: String::new(),
            clock: match self.has_times {
                true => SampleClock::Cpu,
                false => SampleClock::Wall,
            },
            period: self.period,
            kernel_included: self.has_kernel,
            scheduling: String::new(),
        };
        let mut records = vec![Record::Session(Box::new(session))];
        if !self.has_times {
            let text = format!(
                "the samples have no times: they stand 1/{} s apart in the order of the buffer",
                args.hz
            );
            records.push(limit(self.begin, LimitKind::Other, &text));
        }
        records.push(Record::Process(Process {
            key: PROCESS,
            time: self.begin,
            pid,
            parent: None,
            name: String::new(),
        }));
        records.extend(self.threads.iter().map(|(tid, key)| {
            Record::Thread(Thread {
                key: *key,
                process: PROCESS,
                tid: tid.unwrap_or(Tid(0)),
                time: self.begin,
                name: tid.map_or("VM", |_| "").to_owned(),
                role: ThreadRole::Other,
                cpu_before: DurationNs(0),
            })
        }));
        records
    }
}

fn mode(sample: &SavedSample) -> CpuMode {
    match sample.pc.0 >= KERNEL {
        true => CpuMode::Kernel,
        false => CpuMode::User,
    }
}

fn limit(time: TimeNs, kind: LimitKind, text: &str) -> Record {
    Record::Limit(Limit {
        time,
        kind,
        text: text.to_owned(),
        remedy: String::new(),
    })
}

/// The zone's memory, constituents and limits.
fn zone_records(zone: &SavedZone, time: TimeNs) -> Vec<Record> {
    let mut records = vec![Record::Mapping(Mapping {
        process: PROCESS,
        time,
        start: zone.start,
        end: zone.end,
        offset: FileOffset(0),
        module: None,
        name: String::new(),
        executable: true,
    })];
    records.extend(zone.records(PROCESS, time, &KeySource::new()));
    let limits = zone.limits().into_iter();
    records.extend(limits.map(|text| limit(time, LimitKind::AdapterIncomplete, text)));
    records
}

fn write(
    args: &VmprofilerArgs,
    records: Vec<Record>,
    samples: &SavedSamples<'_>,
    survey: &Survey,
) -> Result<()> {
    let cannot = || format!("cannot write {}", args.output.display());
    let file = create_private(&args.output).with_context(cannot)?;
    let mut writer = Writer::begin(RecordingFile::new(file)).with_context(cannot)?;
    for record in records {
        writer.put(record).with_context(cannot)?;
    }
    for (number, sample) in (0..).zip(samples.iter()) {
        let sample = sample?;
        let record = Record::Sample(Sample {
            time: survey.time(number, &sample),
            thread: survey
                .threads
                .get(&sample.thread)
                .copied()
                .unwrap_or(ThreadKey(1)),
            pc: sample.pc,
            mode: mode(&sample),
            detail: None,
        });
        writer.put(record).with_context(cannot)?;
    }
    let end = RecordingEnd {
        time: survey.end,
        reason: EndReason::Other,
        detail: String::new(),
        samples: survey.count,
        recorder_cpu_ns: 0,
    };
    let (store, _) = writer.end(end).with_context(cannot)?;
    store.finish().with_context(cannot)?;
    Ok(())
}
