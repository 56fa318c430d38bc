//! A fictitious native program, and poor or damaged recordings.

use super::super::{Draw, Recording, function};
use super::java::java;
use super::stage::{FUNCTION, KERNEL, Stage, session_of};
use super::{file, ms, skewed};
use vmscope_records::{
    Exactness, FileOffset, NativeFrame, NativeFunction, NativeLines, Record, Session, ThreadRole,
};

const LENGTH_MS: u64 = 5_000;
const PROGRAM: u64 = 0x5555_0000_0000;
const LIBC: u64 = 0x7f00_0000_0000;
const LIBM: u64 = 0x7f10_0000_0000;
/// Size of a function's piece with one line, in bytes.
const PIECE: u64 = 0x10;

/// Name, file, first line, number of lines, relative samples, caller's number (its own number: a
/// thread starts here), inlined function at the last line.
type Function = (
    &'static str,
    &'static str,
    u32,
    u64,
    u64,
    u64,
    &'static [(&'static str, u32)],
);
const FUNCTIONS: [Function; 9] = [
    ("main", "/src/sim/main.cpp", 12, 6, 5, 0, &[]),
    (
        "sim::Worker::run()",
        "/src/sim/worker.cpp",
        30,
        8,
        20,
        1,
        &[],
    ),
    (
        "sim::Grid::step()",
        "/src/sim/grid.cpp",
        50,
        12,
        160,
        1,
        &[("sim::Cell::mix()", 21)],
    ),
    (
        "sim::Grid::relax()",
        "/src/sim/grid.cpp",
        80,
        10,
        420,
        2,
        &[("sim::mix()", 14), ("sim::blend()", 27)],
    ),
    (
        "sim::Grid::exchange()",
        "/src/sim/grid.cpp",
        110,
        7,
        60,
        2,
        &[],
    ),
    (
        "sim::Particle::advance()",
        "/src/sim/particle.cpp",
        15,
        11,
        210,
        1,
        &[],
    ),
    (
        "sim::Particle::collide()",
        "/src/sim/particle.cpp",
        44,
        9,
        130,
        5,
        &[],
    ),
    ("sim::Queue::pop()", "/src/sim/queue.hpp", 22, 5, 30, 1, &[]),
    ("sim::write_frame()", "/src/sim/main.cpp", 70, 6, 25, 0, &[]),
];

fn with_lines(number: u64, one: &Function) -> NativeFunction {
    let &(name, path, first, lines, _, _, inlined) = one;
    let frame = |function: &str, path: &str, line| NativeFrame {
        function: function.into(),
        file: path.into(),
        line,
    };
    let start = number * FUNCTION;
    let piece = |line: u64| {
        let own = frame(name, path, first + line as u32);
        let is_last = line + 1 == lines;
        let inlined = inlined.iter().rev().filter(|_| is_last);
        let mut frames: Vec<NativeFrame> = inlined
            .map(|&(name, line)| frame(name, "/src/sim/mix.hpp", line))
            .collect();
        frames.push(own);
        NativeLines {
            start: FileOffset(start + line * PIECE),
            end: FileOffset(start + (line + 1) * PIECE),
            frames,
            exactness: Exactness::Exact,
        }
    };
    NativeFunction {
        lines: (0..lines).map(piece).collect(),
        ..function(start, FUNCTION, name)
    }
}

/// Address of a call in a function.
fn call(caller: u64, callee: u64) -> u64 {
    let lines = FUNCTIONS[caller as usize].3;
    PROGRAM + caller * FUNCTION + callee % lines * PIECE + 8
}

/// Callers of a program function, innermost first.
fn callers(mut callee: u64) -> Vec<u64> {
    let mut callers = Vec::new();
    loop {
        let caller = FUNCTIONS[callee as usize].5;
        if caller == callee {
            // main, or a thread's start function.
            callers.push(LIBC + callee * FUNCTION + 0x40);
            return callers;
        }
        callers.push(call(caller, callee));
        callee = caller;
    }
}

pub fn native() -> Vec<u8> {
    let other = ThreadRole::Other;
    let threads = [
        ("sim", other),
        ("grid", other),
        ("grid", other),
        ("particles", other),
    ];
    let mut stage = Stage::new(
        session_of("native", "", &["/src/sim/sim", "--steps=900"]),
        &threads,
    );
    let functions = (0..).zip(&FUNCTIONS);
    let functions = functions
        .map(|(number, one)| with_lines(number, one))
        .collect();
    stage.module_with(1, "/src/sim/sim", PROGRAM, functions);
    let libc = [
        "__libc_start_main",
        "start_thread",
        "memmove",
        "malloc",
        "write",
    ];
    stage.module(2, "/opt/acme-os/lib/libc.so.6", LIBC, &libc);
    stage.module(3, "/opt/acme-os/lib/libm.so.6", LIBM, &["exp", "sqrt"]);
    stage.kernel(&["clear_page_erms", "vfs_write"]);
    stage.play(LENGTH_MS, &[0.12, 0.35, 0.35, 0.3], |_, thread, draw| {
        let of_thread: &[u64] = match thread {
            0 => &[0, 8],
            3 => &[1, 5, 6, 7],
            _ => &[1, 2, 3, 4, 7],
        };
        let function = weighted(draw, of_thread);
        let inside = |base: u64, number: u64| base + number * FUNCTION + 0x30;
        let mut above = vec![call(function, 3)];
        above.extend(callers(function));
        match draw.below(100) {
            0..8 => (inside(LIBM, draw.below(2)), above),
            8..14 => (inside(LIBC, 2 + draw.below(2)), above),
            // Below a kernel sample, the first address is the user pc.
            14..17 => (inside(KERNEL, draw.below(2)), above),
            _ => {
                let lines = FUNCTIONS[function as usize].3;
                let line = lines - 1 - skewed(draw, lines);
                let pc = PROGRAM + function * FUNCTION + line * PIECE + 4;
                (pc, callers(function))
            }
        }
    });
    stage.end(LENGTH_MS)
}

fn weighted(draw: &mut Draw, of: &[u64]) -> u64 {
    let weight = |number: u64| FUNCTIONS[number as usize].4;
    let mut drawn = draw.below(of.iter().map(|&number| weight(number)).sum());
    for &number in of {
        if drawn < weight(number) {
            return number;
        }
        drawn -= weight(number);
    }
    of[0]
}

pub fn nothing() -> Vec<u8> {
    let mut recording = Recording::empty();
    let session = Session {
        pid: vmscope_records::Pid(77),
        ..session_of("HotSpot", "21", &["/opt/acme-jdk/bin/java", "Idle"])
    };
    recording.put(Record::Session(Box::new(session)));
    recording.end(ms(3_000));
    file(recording)
}

pub fn damaged() -> Vec<u8> {
    let mut file = java();
    // Chunks start with this magic, like the file itself.
    let magic = file.windows(4).enumerate().skip(8);
    let chunks: Vec<usize> = magic
        .filter(|(_, four)| four == b"VMSC")
        .map(|(at, _)| at)
        .collect();
    let middle = |chunk: usize| usize::midpoint(chunks[chunk], chunks[chunk + 1]);
    // The first chunk records the thread starting at 6 s.
    let (flipped, cut) = (middle(chunks.len() / 3 - 1), middle(chunks.len() * 2 / 3));
    file[flipped] ^= 1;
    file.truncate(cut);
    file
}
