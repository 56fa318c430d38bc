//! VMs with unchanged code.

use std::path::Path;

use nix::sys::signal::Signal;

use crate::asked::{Place, ask, place};
use crate::common::targets::Target;
use crate::common::vmscope::{attached, profile, report, vmscope};
use crate::measured::number;
use crate::replica::{Image, Spot, tell, text};

/// Rounds of a loop per cycle for one per cent of the time.
const ROUNDS: u64 = 5000;

/// Code of known shares, in per cent.
const PLACES: [(Place, u64); 8] = [
    (place("fib", "Bench>>fib:", Some((35, 41))), 20),
    (place("fib-later", "Bench>>fib:", Some((42, 46))), 10),
    (place("sieve", "Bench>>sieve:", Some((34, 44))), 20),
    (place("sieve-later", "Bench>>sieve:", Some((56, 64))), 10),
    (
        place("block", "[] in Bench>>counterClosure:", Some((48, 54))),
        10,
    ),
    (place("pic", "cPIC area - 6", None), 15),
    (place("trampoline", "ceSmallMethodContext", None), 5),
    (place("native", "doScavenge", None), 10),
];

fn spots(image: &mut Image) -> [Spot; 8] {
    let fib = image.entry("Method", "Bench>>fib:");
    let sieve = image.entry("Method", "Bench>>sieve:");
    let home = image.entry("Method", "Bench>>counterClosure:");
    let pic = image.entry("ClosedPIC", "#area");
    let trampoline = image.trampoline("ceSmallMethodContext");
    let native = image.symbol("doScavenge");
    [
        image.framed(fib, false, 200),
        image.framed(fib, false, 270),
        image.framed(sieve, false, 200),
        image.framed(sieve, false, 400),
        image.framed(home + 488, true, 100),
        image.frameless(pic + 100),
        image.frameless(trampoline + 32),
        image.frameless(native + 512),
    ]
}

/// A replica that runs its code.
fn running() -> Option<(Image, Target)> {
    let mut image = Image::of("idle")?;
    let spots = spots(&mut image);
    let mut target = image.start()?;
    let commands = PLACES.iter().zip(spots);
    let commands: String = commands
        .map(|((place, share), spot)| spot.run(place.spot, share * ROUNDS))
        .collect();
    tell(&mut target, &commands);
    Some((image, target))
}

fn places() -> Vec<Place> {
    PLACES.iter().map(|(place, _)| place.clone()).collect()
}

/// A signal kills the process; the recording is whole.
#[test]
fn shares_of_methods_blocks_caches_trampolines_and_the_vm() {
    let Some((image, mut target)) = running() else {
        return;
    };
    let file = image.folder().file("out.vmscope");
    let working = attached(target.pid(), &file, 6000);
    target.signal(Signal::SIGKILL);
    target.wait();
    working.end().code(0);
    let (profile, _) = profile(&file);
    let places = places();
    let asked = ask(&profile, &image.folder().file("log"), &places);
    asked.check("a running Cog VM");
    let document = report(&file, &["--json"]).code(0).json();
    let samples = &document["samples"];
    let (delivered, promised) = (number(&samples["total"]), number(&samples["promised"]));
    let missing = ((promised - delivered) / promised).max(0.0);
    let times = &profile.trace.samples.times;
    let ends = (
        times.first().expect("samples"),
        times.last().expect("samples"),
    );
    asked.shares("a running Cog VM", &places, (ends.0.0, ends.1.0), missing);
    report(&file, &[]).code(0).prints("Cog");
    for (method, name, lines) in [("Bench>>fib:", "fib", 20), ("Bench>>sieve:", "sieve", 65)] {
        has_bytecodes(&file, method, name, lines);
    }
}

/// The live process's listing is that of the snapshot's memory (`cog_vm`).
fn has_bytecodes(file: &Path, method: &str, name: &str, lines: usize) {
    let golden = format!("tests/golden/annotate-cog-{name}-100.txt");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join(golden);
    let golden = std::fs::read_to_string(golden).expect("a golden file");
    let file = file.to_str().expect("UTF-8");
    let document = vmscope(["annotate", file, method, "--json"]).code(0).json();
    let listing = document["listing"].as_array().expect("a list");
    assert_eq!(listing.len(), lines, "{method}");
    for line in listing {
        let line = format!(
            "{}  {}",
            line["bytecode"],
            line["text"].as_str().expect("text")
        );
        assert!(golden.contains(&line), "{line}");
    }
}

/// `constituents --pairs` against the answer of the VM's own primitive 253. The VM made more code after
/// its answer, so free space begins later.
#[test]
fn pairs_of_a_process_are_those_of_the_vm_itself() {
    let Some(target) = Image::of("idle").and_then(|image| Some((image.start()?, image))) else {
        return;
    };
    let (target, _image) = target;
    let pid = target.pid().to_string();
    for (name, options) in [("plain", &[][..]), ("detailed", &["--detailed"])] {
        let ran = vmscope([&["constituents", "--pairs", &pid], options].concat()).code(0);
        let answer = text(&format!("idle.constituents-{name}.txt"));
        let (told, _) = answer.split_once("~CCFree~").expect("free space");
        // Cases are in instructions, which the snapshot lacks.
        let without_cases = |line: &str| match line.strip_prefix('(') {
            Some(cases) => {
                let selector = cases.split(' ').next().unwrap_or_default();
                format!(
                    "{selector} |{}\n",
                    line.rsplit_once(" |").expect("a pair").1
                )
            }
            None => format!("{line}\n"),
        };
        let told: String = told.lines().map(without_cases).collect();
        let (ours, _) = ran.stdout.split_at(told.len());
        assert_eq!(ours, told);
    }
}

/// A collector that runs most of the time changes no code, so all code has names.
#[test]
fn a_vm_that_collects_most_of_the_time() {
    let Some(mut image) = Image::of("busy") else {
        return;
    };
    let fib = image.entry("Method", "Bench>>fib:");
    let in_fib = image.framed(fib, false, 200);
    let in_collector = image.frameless(image.symbol("doScavenge") + 512);
    let Some(mut target) = image.start() else {
        return;
    };
    let [mode, counter] = ["gcMode", "statScavenges"].map(|name| image.symbol(name));
    let commands = [
        in_fib.run("fib", 400_000),
        in_collector.run("collector", 800_000),
        format!("collect collector {mode:x} {counter:x}\n"),
    ];
    tell(&mut target, &commands.concat());
    let file = image.folder().file("out.vmscope");
    let working = attached(target.pid(), &file, 6000);
    target.wait();
    working.end().code(0);
    let places = [
        place("fib", "Bench>>fib:", Some((35, 41))),
        place("collector", "doScavenge", None),
    ];
    let asked = ask(&profile(&file).0, &image.folder().file("log"), &places);
    asked.check("a Cog VM that collects");
    let named = asked.right_of(0);
    let document = report(&file, &["--json"]).code(0).json();
    let limits = document["session"]["limits"].to_string();
    assert!(
        named > 0 && asked.unnamed < named,
        "{} {limits}",
        asked.unnamed
    );
    assert!(!limits.contains("cog adapter"), "{limits}");
}
