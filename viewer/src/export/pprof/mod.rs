//! A `profile.proto` for pprof: a sample per stack and thread, a location per site, with inlined
//! functions.

mod proto;

use super::frames::{FrameText, frames_of};
use super::{Export, who};
use crate::present::names::region_key;
use crate::present::text::harmless;
use crate::queries::truth::truth_of;
use anyhow::Result;
use proto::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType, tags};
use rustc_hash::FxHashMap;
use std::io::Write;
use vmscope_records::{DurationNs, ModuleKey, SampleClock};
use vmscope_symbolizer::Stop;
use vmscope_symbolizer::stacks::{StackCount, count_stacks};
use vmscope_symbolizer::trace::Place;
use vmscope_symbolizer::{IndexVec, SiteId, ThreadId};
use who::Who;

pub(super) fn write(export: &Export<'_>, out: &mut dyn Write) -> Result<()> {
    Encoder::new(export, out).write()
}

/// Mapping of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Home {
    Module(ModuleKey),
    Kernel,
    Generated,
}

/// Writes message by message: memory grows with the program, not with the profile.
struct Encoder<'a> {
    export: &'a Export<'a>,
    out: &'a mut dyn Write,
    /// Bytes of one message; reused.
    bytes: Vec<u8>,
    strings: FxHashMap<String, i64>,
    functions: FxHashMap<(i64, i64), u64>,
    mappings: FxHashMap<Home, u64>,
    /// Location of each site; 0: none yet.
    locations: IndexVec<SiteId, Option<u64>>,
    location_count: u64,
    /// File of each site's first place.
    homes: IndexVec<SiteId, Option<Home>>,
    /// Labels common to a thread's samples.
    thread_labels: FxHashMap<ThreadId, Vec<Label>>,
}

impl<'a> Encoder<'a> {
    fn new(export: &'a Export<'a>, out: &'a mut dyn Write) -> Self {
        Encoder {
            export,
            out,
            bytes: Vec::new(),
            strings: FxHashMap::default(),
            functions: FxHashMap::default(),
            mappings: FxHashMap::default(),
            locations: export.profile.sites.with_each(None),
            location_count: 0,
            homes: export.first_places(home),
            thread_labels: FxHashMap::default(),
        }
    }

    fn write(mut self) -> Result<()> {
        // The first string is empty.
        self.string("")?;
        self.main_mapping()?;
        self.head()?;
        let (profile, filter) = (self.export.profile, self.export.filter);
        let (tree, counts) = count_stacks(profile, filter, &Stop::new()).unwrap_or_default();
        let threads = who::threads(&self.export.profile.trace);
        let session = self.export.session();
        let period = session.map_or(0, |session| signed(session.period.0));
        for StackCount {
            thread,
            node,
            samples,
        } in counts
        {
            let mut locations = Vec::new();
            let mut leaf = None;
            for site in tree.path(node) {
                leaf = leaf.or(Some(site));
                locations.push(self.location(site)?);
            }
            let mut labels = self.labels_of_thread(thread, &threads[thread])?;
            self.labels_of_leaf(leaf, &mut labels)?;
            let samples = signed(samples);
            let sample = Sample {
                location_id: locations,
                value: vec![samples, samples.saturating_mul(period)],
                label: labels,
            };
            self.put(tags::SAMPLE, &sample)?;
        }
        Ok(())
    }

    /// The single fields.
    fn head(&mut self) -> Result<()> {
        let export = self.export;
        let session = export.session();
        let clock = match session.map(|session| session.clock) {
            Some(SampleClock::Wall) => "wall",
            _ => "cpu",
        };
        let time = ValueType {
            kind: self.string(clock)?,
            unit: self.string("nanoseconds")?,
        };
        let samples = ValueType {
            kind: self.string("samples")?,
            unit: self.string("count")?,
        };
        let (from, to) = export.summary.window;
        let begin = session.map_or(0, |session| {
            let since = from.since(session.time);
            session.wall_clock_unix_ns.saturating_add(since.0)
        });
        let period = session.map_or(DurationNs(0), |session| session.period);
        let mut comment = Vec::new();
        for line in comments(export) {
            comment.push(self.string(&harmless(&line))?);
        }
        let profile = Profile {
            default_sample_type: time.kind,
            sample_type: vec![samples, time.clone()],
            time_nanos: signed(begin),
            duration_nanos: signed(to.since(from).0),
            period_type: Some(time),
            period: signed(period.0),
            comment,
        };
        self.bytes.clear();
        prost::Message::encode(&profile, &mut self.bytes)?;
        self.out.write_all(&self.bytes)?;
        Ok(())
    }

    fn put<M: prost::Message>(&mut self, tag: u32, message: &M) -> Result<()> {
        self.bytes.clear();
        prost::encoding::message::encode(tag, message, &mut self.bytes);
        self.out.write_all(&self.bytes)?;
        Ok(())
    }

    fn string(&mut self, text: &str) -> Result<i64> {
        if let Some(&index) = self.strings.get(text) {
            return Ok(index);
        }
        let index = i64::try_from(self.strings.len())?;
        let text = text.to_owned();
        self.bytes.clear();
        prost::encoding::string::encode(tags::STRING, &text, &mut self.bytes);
        self.out.write_all(&self.bytes)?;
        self.strings.insert(text, index);
        Ok(index)
    }

    /// Location of a site, written on first use.
    fn location(&mut self, site: SiteId) -> Result<u64> {
        if let Some(known) = self.locations[site] {
            return Ok(known);
        }
        let export = self.export;
        let mut lines = Vec::new();
        for frame in frames_of(export.profile, site, export.inlined) {
            let (name, file) = (
                self.string(&frame.name(export.profile))?,
                self.string(&frame.file())?,
            );
            lines.push(Line {
                function_id: self.function(name, file)?,
                line: i64::from(frame.line()),
            });
        }
        // pprof's order: innermost first.
        lines.reverse();
        let mapping_id = match self.homes[site] {
            Some(home) => self.mapping(home)?,
            None => 0,
        };
        self.location_count += 1;
        let id = self.location_count;
        let location = Location {
            id,
            mapping_id,
            line: lines,
        };
        self.put(tags::LOCATION, &location)?;
        self.locations[site] = Some(id);
        Ok(id)
    }

    fn function(&mut self, name: i64, filename: i64) -> Result<u64> {
        if let Some(&id) = self.functions.get(&(name, filename)) {
            return Ok(id);
        }
        let id = self.functions.len() as u64 + 1;
        self.functions.insert((name, filename), id);
        let function = Function {
            id,
            name,
            system_name: name,
            filename,
        };
        self.put(tags::FUNCTION, &function)?;
        Ok(id)
    }

    /// First, because readers take the first mapping for the program.
    fn main_mapping(&mut self) -> Result<()> {
        let modules = &self.export.profile.trace.modules;
        let main = modules.values().filter(|module| module.main);
        if let Some(main) = main.map(|module| module.key).min() {
            self.mapping(Home::Module(main))?;
        }
        Ok(())
    }

    fn mapping(&mut self, home: Home) -> Result<u64> {
        if let Some(&id) = self.mappings.get(&home) {
            return Ok(id);
        }
        let id = self.mappings.len() as u64 + 1;
        self.mappings.insert(home, id);
        let (name, build_id) = match home {
            Home::Module(key) => {
                let module = self.export.profile.trace.modules.get(&key);
                let path = module.map_or("", |module| module.path.as_str());
                let build_id = module.and_then(|module| module.build_id.as_ref());
                (harmless(path), build_id.map(ToString::to_string))
            }
            // Names as in perf and its converters.
            Home::Kernel => ("[kernel.kallsyms]".to_owned(), None),
            Home::Generated => ("[generated code]".to_owned(), None),
        };
        let mapping = Mapping {
            id,
            filename: self.string(&name)?,
            build_id: self.string(&build_id.unwrap_or_default())?,
            // Keeps readers from looking for symbols.
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
            has_inline_frames: true,
        };
        self.put(tags::MAPPING, &mapping)?;
        Ok(id)
    }

    fn labels_of_thread(&mut self, thread: ThreadId, who: &Who) -> Result<Vec<Label>> {
        if let Some(labels) = self.thread_labels.get(&thread) {
            return Ok(labels.clone());
        }
        let labels = vec![
            self.text_label("thread", &who.name)?,
            self.number_label("tid", who.tid.0)?,
            self.text_label("process", &who.process_name)?,
            self.number_label("pid", who.pid.0)?,
        ];
        self.thread_labels.insert(thread, labels.clone());
        Ok(labels)
    }

    fn labels_of_leaf(&mut self, leaf: Option<SiteId>, labels: &mut Vec<Label>) -> Result<()> {
        let profile = self.export.profile;
        let Some(leaf) = leaf else {
            return Ok(());
        };
        let entry = &profile.entries[profile.sites[leaf].entry];
        labels.push(self.text_label("region", region_key(entry.region, profile.is_native()))?);
        if !entry.tier.is_empty() {
            labels.push(self.text_label("tier", &harmless(&entry.tier))?);
        }
        Ok(())
    }

    fn text_label(&mut self, key: &str, text: &str) -> Result<Label> {
        Ok(Label {
            key: self.string(key)?,
            string: self.string(text)?,
            number: 0,
        })
    }

    fn number_label(&mut self, key: &str, number: u32) -> Result<Label> {
        Ok(Label {
            key: self.string(key)?,
            string: 0,
            number: i64::from(number),
        })
    }
}

/// File of a place.
fn home(place: &Place) -> Option<Home> {
    match *place {
        Place::Native(module, ..) => Some(Home::Module(module)),
        Place::Kernel(_) => Some(Home::Kernel),
        Place::Code(..)
        | Place::Interpreted { .. }
        | Place::Entering { .. }
        | Place::Called { .. }
        | Place::Generated
        | Place::Doubtful => Some(Home::Generated),
        Place::Unmapped | Place::Idle => None,
    }
}

/// Output of `pprof -comments`: producer, command, VM, limits of accuracy.
fn comments(export: &Export<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(session) = export.session() {
        lines.push(session.producer.clone());
        lines.push(export.command());
        let vm = format!("{} {}", session.vm.kind, session.vm.version);
        lines.push(vm.trim_end().to_owned());
    }
    let limits = truth_of(export.profile, export.summary);
    lines.extend(
        limits
            .iter()
            .map(|line| format!("limit: {}", line.in_full())),
    );
    lines
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
