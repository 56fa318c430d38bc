//! Figures of the fictitious JVM besides code and collections.

use super::super::{PROCESS, Recording};
use super::collections::{self, Happened};
use super::zone::{Nmethod, Zone};
use super::{BEGIN, MS, SECONDS, ms};
use vmscope_records::{
    Collection, Compilation, Counter, CounterMeaning, Fact, Limit, LimitKind, LossReason, Lost,
    Record, Stream, ThreadKey, TimeNs,
};

pub const C1: ThreadKey = ThreadKey(5);
pub const C2: ThreadKey = ThreadKey(6);

/// A true compilation, observed or not. Times in ns.
#[derive(Clone, Debug)]
pub struct Compiled {
    pub thread: ThreadKey,
    pub begin: u64,
    pub end: u64,
    name: String,
    tier: &'static str,
}

/// Duration of a compilation, in ns.
fn length(one: &Nmethod) -> u64 {
    let pieces = one.pieces.len() as u64;
    pieces * if one.tier == "C2" { 4_200_000 } else { 700_000 }
}

/// All compilations, on one thread per compiler. A compilation ends with the new code and starts
/// after the previous one.
pub fn compilations(zone: &Zone) -> Vec<Compiled> {
    let mut free_from = [BEGIN; 2];
    let mut all = Vec::new();
    for one in &zone.nmethods {
        let is_c2 = one.tier == "C2";
        let free = &mut free_from[usize::from(is_c2)];
        let begin = (one.since - length(one)).max(*free);
        *free = one.since;
        all.push(Compiled {
            thread: if is_c2 { C2 } else { C1 },
            begin,
            end: one.since,
            name: zone.methods[one.method].full_name(),
            tier: one.tier,
        });
    }
    all
}

/// Polls are 10 ms apart; a shorter compilation needs a poll within it.
fn seen(one: &Compiled, id: u64) -> Option<Record> {
    const LOOK: u64 = 10 * MS;
    let first = one.begin.next_multiple_of(LOOK);
    let last = (one.end - 1) / LOOK * LOOK;
    (first <= last).then(|| {
        Record::Compilation(Box::new(Compilation {
            process: PROCESS,
            thread: one.thread,
            id,
            name: one.name.clone(),
            tier: one.tier.into(),
            osr_bci: None,
            absent_at: Some(TimeNs(first - LOOK)),
            first_seen: TimeNs(first),
            last_seen: TimeNs(last),
            gone_at: Some(TimeNs(last + LOOK)),
        }))
    })
}

/// A counter: section, name, unit, meaning, value.
type Figure = (&'static str, String, &'static str, CounterMeaning, u64);

fn figures(zone: &Zone, stops: &[Happened], compiled: &[Compiled], time: u64) -> Vec<Figure> {
    use CounterMeaning::{Gauge, Total};
    let lives = |one: &&Nmethod| one.since <= time && one.gone.is_none_or(|gone| time < gone.1);
    let living = || zone.nmethods.iter().filter(lives);
    let code: u64 = living().map(Nmethod::bytes).sum();
    let done = || compiled.iter().filter(|one| one.end <= time);
    let took: u64 = done().map(|one| one.end - one.begin).sum();
    let figure = |section, name: &str, unit, meaning, value| {
        (section, name.to_owned(), unit, meaning, value)
    };
    let mut all = vec![
        figure(
            "Heap",
            "used",
            "bytes",
            Gauge,
            collections::used_at(stops, time),
        ),
        figure("Heap", "committed", "bytes", Gauge, collections::HEAP),
        figure("Code cache", "used", "bytes", Gauge, 0xc580 + code),
        figure("Code cache", "committed", "bytes", Gauge, 0xc_0000),
        figure(
            "Code cache",
            "compiled methods",
            "",
            Gauge,
            living().count() as u64,
        ),
        // 1,200 JDK methods were compiled before the recording.
        figure(
            "Compilations",
            "compilations",
            "",
            Total,
            1_200 + done().count() as u64,
        ),
        figure("Compilations", "time", "ns", Total, 2_000_000_000 + took),
    ];
    for kind in ["young", "mixed", "full", "concurrent"] {
        let of_kind = || {
            stops
                .iter()
                .filter(|one| one.kind == kind && one.end <= time)
        };
        let took: u64 = of_kind().map(|one| one.end - one.begin).sum();
        // Two young collections fell between polls.
        let unseen = if kind == "young" && time > ms(10_500) {
            2
        } else {
            0
        };
        let label = Collection::label("G1", kind);
        let time_label = format!("{label}{}", vmscope_records::COLLECTION_TIME_SUFFIX);
        all.push(figure(
            "Collections",
            &label,
            "",
            Total,
            of_kind().count() as u64 + unseen,
        ));
        all.push(figure(
            "Collections",
            &time_label,
            "ns",
            Total,
            took + unseen * 6 * MS,
        ));
    }
    all
}

/// Lost samples, and their time span (ms).
pub const LOST: u64 = 23;
pub const LOST_MS: (u64, u64) = (13_400, 13_900);

#[allow(clippy::cast_precision_loss, reason = "figures below 2^52")]
pub fn record(recording: &mut Recording, zone: &Zone, stops: &[Happened]) {
    let compiled = compilations(zone);
    for (one, id) in compiled.iter().zip(1_201..) {
        if let Some(record) = seen(one, id) {
            recording.put(record);
        }
    }
    for (one, number) in stops.iter().zip(1..) {
        recording.put(one.record(number));
    }
    for time in (0..=SECONDS).map(|second| ms(second * 1_000)) {
        for (section, name, unit, meaning, value) in figures(zone, stops, &compiled, time) {
            recording.put(Record::Counter(Counter {
                process: PROCESS,
                time: TimeNs(time),
                section: section.into(),
                name,
                unit: unit.into(),
                meaning,
                value: value as f64,
            }));
        }
    }
    for (name, value) in [
        ("JVM", "HotSpot 21.0.9+10-acme"),
        ("collector", "G1"),
        ("heap", "at most 536,870,912 bytes"),
        (
            "environment",
            "JAVA_TOOL_OPTIONS='-XX:+PreserveFramePointer'",
        ),
    ] {
        recording.put(Record::Fact(Fact {
            process: PROCESS,
            time: TimeNs(BEGIN),
            name: name.into(),
            value: value.into(),
        }));
    }
    for (time, kind, text, remedy) in [
        (
            0,
            LimitKind::NoRealTime,
            "the drain thread has no real-time priority: samples may be lost under load",
            "run with CAP_SYS_NICE or an rtprio limit of 1 (ulimit -r)",
        ),
        (
            1,
            LimitKind::NoSymbols,
            "/opt/acme-os/lib/libc.so.6: stripped, only what it exports has names",
            "install the debug symbols of libc",
        ),
        (
            10_500,
            LimitKind::AdapterIncomplete,
            "2 young collections fell between two looks: they are counted, not shown singly",
            "",
        ),
    ] {
        recording.put(Record::Limit(Limit {
            time: TimeNs(ms(time)),
            kind,
            text: text.into(),
            remedy: remedy.into(),
        }));
    }
    recording.put(Record::Lost(Lost {
        stream: Stream::Samples,
        reason: LossReason::RingOverrun,
        count: LOST,
        from: TimeNs(ms(LOST_MS.0)),
        to: TimeNs(ms(LOST_MS.1)),
        thread: None,
    }));
}
