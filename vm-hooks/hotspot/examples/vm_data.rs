//! Prints what a JVM tells beside its code: `vm_data PID [SECONDS]`.
#![allow(clippy::print_stdout, reason = "it is what it is for")]
use std::sync::Arc;
use std::time::{Duration, Instant};

use vmscope_hotspot::layout::{Encodings, VmStructs};
use vmscope_hotspot::method::MethodLayout;
use vmscope_hotspot::pages::Pages;
use vmscope_hotspot::vm_data::{Known, VmData};
use vmscope_process::{KeySource, Poll, ProcessView};
use vmscope_records::{Pid, ProcessKey, Record, TimeNs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let pid = arguments.next().ok_or("usage: vm_data PID [SECONDS]")?;
    let seconds = arguments.next().map_or(Ok(2), |text| text.parse())?;
    let process = ProcessView::open(Pid(pid.parse()?))?;
    let libjvm = process.module(|name| name == "libjvm.so");
    let libjvm = libjvm.ok_or("no libjvm.so")?;
    let pages = Pages::new(process.memory());
    let structs = VmStructs::read(&process, &libjvm, &pages)?;
    let methods = MethodLayout::of(&structs, Encodings::of(17))?;
    let mut vm = VmData::new(
        &process,
        Known {
            structs: Some(&structs),
            libjvm: Some(&libjvm),
            methods: Some(&methods),
        },
    );
    println!(
        "{:?} flags, clock {:?}",
        vm.flags().map(|f| f.len()),
        vm.clock()
    );
    let clock = Instant::now();
    let keys = KeySource::new();
    let now: Arc<dyn Fn() -> TimeNs + Send + Sync> = Arc::new(monotonic);
    let mut spent = Vec::new();
    while clock.elapsed() < Duration::from_secs(seconds) {
        let mut poll = Poll::new(keys.clone(), ProcessKey(1), Arc::clone(&now));
        let began = Instant::now();
        let result = vm.poll(&process, &mut poll);
        spent.push(began.elapsed());
        show(poll);
        if let Err(error) = result {
            println!("{error}");
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    spent.sort_unstable();
    println!(
        "{} looks, median {:?}, 95 % {:?}, longest {:?}; clock {:?}",
        spent.len(),
        spent.get(spent.len() / 2),
        spent.get(spent.len() * 95 / 100),
        spent.last(),
        vm.clock()
    );
    Ok(())
}

fn show(poll: Poll) {
    for record in poll.finish() {
        match record {
            Record::Counter(c) => println!("{}: {} = {} {}", c.section, c.name, c.value, c.unit),
            Record::Collection(c) => println!(
                "{} {} #{} {:?} {:?}..{:?} {:?} {:?}",
                c.collector, c.kind, c.number, c.cause, c.begin, c.end, c.scope, c.spaces
            ),
            other => println!("{other:?}"),
        }
    }
}

/// `CLOCK_MONOTONIC`.
fn monotonic() -> TimeNs {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC);
    let now = now.map(Duration::from).unwrap_or_default();
    TimeNs(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}
