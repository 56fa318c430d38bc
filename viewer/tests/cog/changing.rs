//! A VM that frees, makes and moves code while it runs (docs/truth.md §7).

use crate::asked::{Place, ask, await_right, place};
use vmscope_process::monotonic_time;
use vmscope_symbolizer::Trace;

use crate::common::say;
use crate::common::vmscope::{attached, await_samples, await_trace, profile, report, trace_of};
use crate::replica::{Image, set, tell};

/// Code by the VM's life: before a collection, after it, after a code compaction.
const PLACES: [Place; 7] = [
    place("fib", "Bench>>fib:", Some((35, 41))),
    place("sieve", "Bench>>sieve:", Some((56, 64))),
    place("pic", "cPIC area - 6", None),
    place("new-pic", "cPIC new - 6", None),
    place("moved-fib", "Bench>>fib:", Some((35, 41))),
    place("moved-plus", "SmallInteger>>+", Some((60, 61))),
    place("moved-pic", "cPIC new - 6", None),
];

const ROUNDS: u64 = 150_000;

/// Number of samples to wait for.
const ENOUGH: usize = 500;

/// Offsets of fields in an entry: type with flags, method, selector.
const TYPE: u64 = 9;
const METHOD: u64 = 16;
const SELECTOR: u64 = 32;

/// Offset of the header in a compiled method. A jitted method has the address of its code there.
const HEADER: u64 = 8;

fn set_number(at: u64, number: u64) -> String {
    set(at, &number.to_le_bytes())
}

/// A full collection that frees the inline cache at `pic`, in the VM's order.
fn collection(image: &Image, pic: u64, size: u64) -> String {
    let put = |name: &str, number| set_number(image.symbol(name), number);
    let freed = image.bytes(pic + TYPE, 1)[0] & !7 | 1;
    [
        put("gcMode", 1),
        set(pic + TYPE, &[freed]),
        put(
            "methodBytesFreedSinceLastCompaction",
            image.value("methodBytesFreedSinceLastCompaction") + size,
        ),
        put("statFullGCs", image.value("statFullGCs") + 1),
        put("gcMode", 0),
    ]
    .concat()
}

/// A code compaction that drops some entries, and moves all code behind them down.
struct Compaction<'d> {
    /// Addresses and sizes, ascending.
    dropped: &'d [(u64, u64)],
    free: u64,
}

impl Compaction<'_> {
    /// How far code at this address moves.
    fn distance(&self, at: u64) -> u64 {
        let below = self.dropped.iter().filter(|(start, _)| *start < at);
        below.map(|(_, size)| size).sum()
    }

    /// Commands of the VM's compaction `number`, from 1.
    fn commands(&self, image: &Image, number: u64) -> String {
        let put = |name: &str, number| set_number(image.symbol(name), number);
        let mut all = put("compactionInProgress", 1);
        all += &self.moves(image);
        all += &put("compactionInProgress", 0);
        let compactions = image.value("statCodeCompactionCount");
        all + &put("statCodeCompactionCount", compactions + number)
    }

    fn moves(&self, image: &Image) -> String {
        let put = |name: &str, number| set_number(image.symbol(name), number);
        let mut all = String::new();
        for (at, (start, size)) in self.dropped.iter().enumerate() {
            let (from, next) = (start + size, self.dropped.get(at + 1));
            let end = next.map_or(self.free, |(next, _)| *next);
            let to = from - self.distance(from);
            all += &format!("move {from:x} {to:x} {:x}\n", end - from);
        }
        let is_dropped = |at| {
            let mut dropped = self.dropped.iter();
            dropped.any(|(start, size)| (*start..start + size).contains(&at))
        };
        for (at, kind, _) in image.entries() {
            let header = image.number(at + METHOD) + HEADER;
            if kind == "Method" && !is_dropped(at) && image.number(header) == at {
                all += &set_number(header, at - self.distance(at));
            }
        }
        all += &put("mzFreeStart", self.free - self.distance(self.free));
        all + &put("methodBytesFreedSinceLastCompaction", 0)
    }
}

#[test]
fn samples_have_the_names_of_their_times() {
    let Some(mut image) = Image::of("idle") else {
        return;
    };
    let [fib, sieve, plus] =
        ["Bench>>fib:", "Bench>>sieve:", "SmallInteger>>+"].map(|name| image.entry("Method", name));
    let pic = image.entry("ClosedPIC", "#area");
    let other_pic = image.entry("ClosedPIC", "#new");
    let first = image.entries().next().expect("entries").0;
    let size = |at| {
        u64::from(u16::from_le_bytes(
            *image.bytes(at + 12, 2).first_chunk().expect("two"),
        ))
    };
    let free = image.value("mzFreeStart");
    let dropped = [(first, size(first)), (pic, size(pic))];
    let size = size(pic);
    let compaction = Compaction {
        dropped: &dropped,
        free: free + size,
    };
    // After the move, one loop runs at addresses of another one.
    let in_fib = image.framed(fib, false, 224);
    let in_plus = image.framed(plus, false, 165);
    let moved = in_plus.at - compaction.distance(plus);
    assert!((in_fib.at..in_fib.at + 20).contains(&moved), "{moved:x}");
    let in_sieve = image.framed(sieve, false, 400);
    let in_pic = image.frameless(pic + 100);
    let Some(mut target) = image.start() else {
        return;
    };
    let (file, log) = (
        image.folder().file("out.vmscope"),
        image.folder().file("log"),
    );
    let first_spots = [("fib", in_fib), ("sieve", in_sieve), ("pic", in_pic)];
    let commands = first_spots.map(|(name, spot)| spot.run(name, ROUNDS));
    tell(&mut target, &commands.concat());
    let working = attached(target.pid(), &file, 100);
    await_right(&file, &log, &PLACES, "pic", ENOUGH);

    // A collection frees the cache, and the VM makes another one.
    let stop = in_pic.run("pic", 0);
    tell(&mut target, &(stop + &collection(&image, pic, size)));
    let mut new = image.bytes(pic, size as usize).to_vec();
    let selector = image.bytes(other_pic + SELECTOR, 8);
    new[SELECTOR as usize..][..8].copy_from_slice(selector);
    let in_new = in_pic.up(free - pic);
    let commands = [
        set(free, &new),
        set_number(image.symbol("mzFreeStart"), free + size),
        set_number(image.symbol("methodCount"), image.value("methodCount") + 1),
        in_new.run("new-pic", ROUNDS),
    ];
    tell(&mut target, &commands.concat());
    await_right(&file, &log, &PLACES, "new-pic", ENOUGH);

    let stops = [("fib", in_fib), ("sieve", in_sieve), ("new-pic", in_new)];
    let mut commands = stops.map(|(name, spot)| spot.run(name, 0)).concat();
    commands += &compaction.commands(&image, 1);
    for (name, spot) in [
        ("moved-fib", in_fib),
        ("moved-plus", in_plus),
        ("moved-pic", in_new),
    ] {
        let moved = spot.down(compaction.distance(spot.at));
        commands += &moved.run(name, ROUNDS);
    }
    tell(&mut target, &commands);
    for spot in ["moved-plus", "moved-fib", "moved-pic"] {
        await_right(&file, &log, &PLACES, spot, ENOUGH);
    }
    target.wait();
    working.end().code(0);
    let asked = ask(&profile(&file).0, &log, &PLACES);
    asked.check("a Cog VM that moves code");
    let steady = asked.right_of(1);
    assert!(steady >= 2 * ENOUGH, "{steady} samples of unchanged code");
}

/// Code that stays in its place over code compactions is never in doubt. The last compaction moves a method
/// to the place of a method with equal code.
#[test]
fn code_that_stays_is_never_in_doubt() {
    const PLACES: [Place; 3] = [
        place("fib", "Bench>>fib:", Some((35, 41))),
        place("square", "Square>>area", Some((24, 26))),
        place("blob", "Blob>>area", Some((24, 26))),
    ];
    const COMPACTIONS: u64 = 6;
    let Some(mut image) = Image::of("idle") else {
        return;
    };
    let [fib, square, blob] = PLACES.map(|place| image.entry("Method", place.entry));
    let in_fib = image.framed(fib, false, 224);
    let in_square = image.framed(square, false, 123);
    let in_blob = image.framed(blob, false, 123);
    let Some(mut target) = image.start() else {
        return;
    };
    let (file, log) = (
        image.folder().file("out.vmscope"),
        image.folder().file("log"),
    );
    let spots = [("fib", in_fib), ("square", in_square)];
    let run = spots.map(|(name, spot)| spot.run(name, ROUNDS));
    tell(&mut target, &run.concat());
    let working = attached(target.pid(), &file, 100);
    let mut enough = ENOUGH;
    await_right(&file, &log, &PLACES, "fib", enough);
    let free = image.value("mzFreeStart");
    for number in 1..COMPACTIONS {
        let dropped = &[];
        let compaction = Compaction { dropped, free };
        tell(&mut target, &compaction.commands(&image, number));
        enough += ENOUGH;
        await_right(&file, &log, &PLACES, "fib", enough);
    }
    let dropped = &[(square, blob - square)];
    let compaction = Compaction { dropped, free };
    let stop = in_square.run("square", 0);
    let moved = in_blob.down(blob - square);
    assert_eq!((moved.entry, moved.at), (in_square.entry, in_square.at));
    let commands = stop + &compaction.commands(&image, COMPACTIONS) + &moved.run("blob", ROUNDS);
    tell(&mut target, &commands);
    await_right(&file, &log, &PLACES, "blob", ENOUGH);
    target.wait();
    working.end().code(0);
    let asked = ask(&profile(&file).0, &log, &PLACES);
    asked.check("a Cog VM whose code stays over code compactions");
    let doubtful = [0, 1, 2].map(|place| asked.doubtful_of(place));
    say(&format!("in doubt, of fib, square and blob: {doubtful:?}"));
    assert_eq!(doubtful[0], 0);
}

/// A code compaction that lasts has a record, with the VM's duration. Another one is counted.
#[test]
fn a_compaction_that_lasts_has_begin_and_end() {
    const MICROS: u64 = 60_000;
    let Some(mut image) = Image::of("idle") else {
        return;
    };
    let fib = image.entry("Method", "Bench>>fib:");
    let in_fib = image.framed(fib, false, 224);
    let Some(mut target) = image.start() else {
        return;
    };
    let file = image.folder().file("out.vmscope");
    tell(&mut target, &in_fib.run("fib", ROUNDS));
    let working = attached(target.pid(), &file, 100);
    let put = |name: &str, number| set_number(image.symbol(name), number);
    let before = monotonic_time().expect("a clock");
    tell(&mut target, &put("compactionInProgress", 1));
    // The process works on; looks see the flag meanwhile.
    let await_more = || {
        let seen = trace_of(&file).expect("a recording").samples.times.len();
        await_samples(&file, seen + ENOUGH);
    };
    await_more();
    let over = [
        put("compactionInProgress", 0),
        put("statCodeCompactionUsecs", MICROS),
        put("statCodeCompactionCount", 1),
    ];
    tell(&mut target, &over.concat());
    let compactions = |trace: Trace| {
        let mut all = trace.collections;
        all.retain(|one| one.collector == "code zone");
        (!all.is_empty()).then_some(all)
    };
    let told = await_trace(&file, "the compaction has a record", compactions);
    let after = monotonic_time().expect("a clock");
    let [one] = &told[..] else {
        panic!("{told:?}");
    };
    let (begin, end) = (one.begin.expect("a begin"), one.end.expect("an end"));
    assert!(before <= begin && end <= after, "{before} {one:?} {after}");
    assert_eq!(end.since(begin).0, MICROS * 1000);
    assert_eq!((one.number, one.missed), (1, 0));
    tell(&mut target, &put("statCodeCompactionCount", 2));
    await_more();
    // The last look reads the counters from the process, so vmscope ends before the process.
    working.signal(nix::sys::signal::Signal::SIGINT);
    working.end().code(0);
    target.wait();
    report(&file, &[])
        .code(0)
        .prints("**Compiled Code Compactions** compactions 2");
    assert_eq!(trace_of(&file).expect("a recording").collections.len(), 1);
}
