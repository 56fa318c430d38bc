//! A recording of `programs.Shares` beside what the program says of itself.

use std::process::Command;

use serde_json::Value;
use vmscope_symbolizer::profile::{Frame, Site};

use crate::common::ALL;
use crate::common::targets::Target;
use crate::common::vmscope::can_sample;
use crate::hotspot::java::line_of_range;
use crate::hotspot::jdks::{Jdk, jdk};
use crate::hotspot::jvm::java;
use crate::measured::{Share, T, batch_means, list, number};
use crate::node::Recorded;

/// What a range is in `programs.Shares`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    Methods,
    Ranges,
    Inlined,
}

impl Layout {
    fn word(self) -> &'static str {
        match self {
            Layout::Methods => "methods",
            Layout::Ranges => "ranges",
            Layout::Inlined => "inlined",
        }
    }
}

/// Which compilers a JVM uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    Tiered,
    C1,
    C2,
    Interpreter,
}

impl Tier {
    /// Tiers that tests of callers record. C1 and C2 describe frames in the same form, so C1 is recorded on
    /// one release only, unless [`ALL`] is set.
    pub fn of_callers(release: u32) -> &'static [Tier] {
        if release == 25 || std::env::var_os(ALL).is_some() {
            &[Tier::Tiered, Tier::Interpreter, Tier::C1]
        } else {
            &[Tier::Tiered, Tier::Interpreter]
        }
    }

    pub fn flags(self) -> &'static [&'static str] {
        match self {
            Tier::Tiered => &[],
            Tier::C1 => &["-XX:TieredStopAtLevel=1"],
            Tier::C2 => &["-XX:-TieredCompilation"],
            Tier::Interpreter => &["-Xint"],
        }
    }
}

/// A way to run it.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub release: u32,
    pub tier: Tier,
    /// With `DebugNonSafepoints`.
    pub precise: bool,
    pub operation: &'static str,
    pub layout: Layout,
}

impl Way {
    /// The JVM's flags.
    pub fn flags(&self) -> Vec<&'static str> {
        let precise: &[&str] = if self.precise {
            &["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"]
        } else {
            &[]
        };
        [self.tier.flags(), precise].concat()
    }

    /// Loop counts: a cycle takes 1.2 to 1.5 ms. Cycles of one sampling period (0.71 ms) with so little jitter
    /// would be sampled in step: shares would have twice the error of independent samples.
    pub fn loops(&self) -> [u32; 3] {
        match (self.tier, self.operation) {
            (Tier::Interpreter, _) | (_, "divide") => [240, 720, 1440],
            _ => [480, 1440, 2880],
        }
    }

    fn arguments(&self, loops: [u32; 3]) -> Vec<String> {
        let [a, b, c] = loops;
        // Calls are slow: until C2 has compiled all, the loops make fewer rounds.
        let warm = match self.operation {
            "virtual" | "interface" => "1200",
            _ => "400",
        };
        // A cycle of calls by itable takes 2 ms where the CPU predicts their targets, else 9 ms. Others take
        // 1 to 7 ms. The time bounds the sampling error on a fast machine. Stubs take between 12 and 40 % of
        // the samples of calls, depending on the CPU; batch means need 1,280 of them.
        let (cycles, milliseconds) = match self.operation {
            "interface" | "virtual" => ("1", "10000"),
            _ => ("1400", "1800"),
        };
        let words = [
            "--layout",
            self.layout.word(),
            "--operation",
            self.operation,
            "--cycles",
            cycles,
            "--milliseconds",
            milliseconds,
            "--warm",
            warm,
            "--loops",
        ];
        let words = words.into_iter().map(str::to_owned);
        words.chain([format!("{a},{b},{c}")]).collect()
    }

    /// JVM and its arguments; `None`, said, where it can't be had or sampled.
    pub fn command(&self, loops: [u32; 3], more: &[&str]) -> Option<Command> {
        let found: Jdk = jdk(self.release)?;
        let arguments = self.arguments(loops);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let arguments = [&arguments, more].concat();
        let command = java(&found, &self.flags(), "Shares", &arguments)?;
        can_sample().then_some(command)
    }

    /// Recorded with `vmscope record`.
    pub fn recorded(&self, loops: [u32; 3]) -> Option<Known> {
        let recorded = recorded(&self.command(loops, &[])?);
        let program = recorded.said[0].clone();
        let known = Known::of(self.layout, recorded, program);
        // Stubs take most samples of virtual and interface calls.
        if !matches!(self.operation, "virtual" | "interface") {
            known.enough();
        }
        Some(known)
    }
}

/// Endless program with methods; `None`, said, where it can't be had or sampled.
pub fn steady() -> Option<Target> {
    let way = Way {
        release: 17,
        tier: Tier::Tiered,
        precise: false,
        operation: "field",
        layout: Layout::Methods,
    };
    let program = way.command(way.loops(), &["--forever"])?;
    Some(Target::ready(program))
}

/// What is known of a range.
#[derive(Clone, Debug)]
pub struct Range {
    /// `programs.Shares.divideA`
    pub method: String,
    /// Where it is in the source.
    pub line: u32,
    /// Its part of the program's own time.
    pub truth: f64,
}

/// Reported place of a range's sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Put {
    In(usize),
    /// In a method that holds ranges, nobody says where.
    Unknown,
}

/// Recording, ranges, reported places of samples.
pub struct Known {
    pub recorded: Recorded,
    pub ranges: Vec<Range>,
    /// Range of each sample, in time order; the number of ranges if unknown.
    hits: Vec<usize>,
}

fn is_of(frame: &Frame, method: &str) -> bool {
    // The parameters follow the name; the entry's kind surrounds it.
    frame.name.contains(&format!("{method}("))
}

impl Known {
    /// Sorts a recording's samples.
    pub fn of(layout: Layout, recorded: Recorded, program: Value) -> Self {
        let of_program = list(&program["ranges"]);
        let all: f64 = of_program.iter().map(|one| number(&one["seconds"])).sum();
        let ranges: Vec<Range> = of_program
            .iter()
            .map(|one| Range {
                method: one["method"].as_str().expect("a name").to_owned(),
                line: line_of_range("Shares", one["range"].as_str().expect("a name")),
                truth: number(&one["seconds"]) / all,
            })
            .collect();
        let profile = &recorded.profile;
        let put = |site: &Site| {
            let mut chain = std::iter::once(&site.frame).chain(&site.via);
            if chain.any(|frame| frame.name.contains("programs.Clock")) {
                return None;
            }
            let fits = |range: &Range| {
                let line = layout != Layout::Ranges || site.frame.line == Some(range.line);
                is_of(&site.frame, &range.method) && line
            };
            if let Some(index) = ranges.iter().position(fits) {
                return Some(Put::In(index));
            }
            // Including outer methods and other lines.
            let holds = match layout {
                Layout::Methods => false,
                Layout::Ranges => is_of(&site.frame, &ranges[0].method),
                Layout::Inlined => {
                    let outer = ranges[0].method.trim_end_matches("InA").to_owned();
                    is_of(&site.frame, &format!("{outer}Inlined"))
                }
            };
            holds.then_some(Put::Unknown)
        };
        let sites = profile.sites.map(|_, site| put(site));
        let time = |name: &str| program[name].as_u64().expect("ns");
        let (from, to) = (time("measured_from_ns"), time("measured_to_ns"));
        let samples = &profile.trace.samples;
        let rows = samples.times.iter().zip(&samples.places);
        let measured = rows.filter(|(time, _)| (from..=to).contains(&time.0));
        let hits = measured.filter_map(|(_, &place)| {
            let site = profile.site_of_place[place];
            Some(match sites[site]? {
                Put::In(index) => index,
                Put::Unknown => ranges.len(),
            })
        });
        let hits: Vec<usize> = hits.collect();
        Known {
            hits,
            ranges,
            recorded,
        }
    }

    /// Fails unless the ranges have enough samples for a comparison.
    pub fn enough(&self) {
        let enough = self.hits.len() > 1500;
        self.check(enough, &format!("{} samples in ranges", self.hits.len()));
    }

    /// A range's part of all samples in ranges, also of those that nobody knows.
    pub fn share(&self, range: usize) -> Share {
        batch_means(&self.hits, |hit| hit == range)
    }

    /// Share of samples without a range.
    pub fn unknown(&self) -> Share {
        self.share(self.ranges.len())
    }

    pub fn samples(&self) -> usize {
        self.hits.len()
    }

    /// Undelivered share of promised samples.
    pub fn missing(&self) -> f64 {
        let samples = &self.recorded.document["samples"];
        let (delivered, promised) = (number(&samples["total"]), number(&samples["promised"]));
        ((promised - delivered) / promised).max(0.0)
    }

    /// No range gets foreign samples (docs/truth.md §5): its share may fall short by the unknown part, and
    /// never exceeds the truth. Returns the greatest error in points, as if the unknown part were spread
    /// alike, and the ranges with errors.
    pub fn honesty(&self, what: &str) -> (f64, Vec<String>) {
        let mut wrong = Vec::new();
        let missing = self.missing();
        let unknown = self.unknown();
        let mut worst = 0_f64;
        for (index, range) in self.ranges.iter().enumerate() {
            let share = self.share(index);
            let bound = T * share.error + missing;
            let told = format!(
                "{what}: {} line {}: reported {:.4}, true {:.4}, unknown {:.4}, bound {bound:.4}",
                range.method, range.line, share.share, range.truth, unknown.share
            );
            let short = bound + T * unknown.error + unknown.share;
            if share.share > range.truth + bound || share.share < range.truth - short {
                wrong.push(told.clone());
            }
            // Else it would prove nothing.
            self.check(T * share.error < 0.1, &told);
            if unknown.share < 0.9 {
                let spread = share.share / (1.0 - unknown.share);
                worst = worst.max((spread - range.truth).abs());
            }
        }
        (100.0 * worst, wrong)
    }

    #[track_caller]
    pub fn check(&self, holds: bool, what: &str) {
        self.recorded.check(holds, what);
    }
}

/// Recording of a JVM whose options are those of the command alone.
pub fn recorded(java: &Command) -> Recorded {
    let arguments: Vec<_> = java.get_args().map(ToOwned::to_owned).collect();
    let program = std::path::Path::new(java.get_program());
    Recorded::with(&[], program, arguments, |vmscope| {
        vmscope.env_remove("JAVA_TOOL_OPTIONS");
        vmscope.env_remove("JDK_JAVA_OPTIONS");
    })
}
