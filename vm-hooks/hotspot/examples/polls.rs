//! Cost of polls without samples: `polls PID [SECONDS]`. Prints the time of the first poll, CPU
//! times of the others, and their share of a processor.
#![allow(clippy::print_stdout, reason = "it is what it is for")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use vmscope_hotspot::Family;
use vmscope_process::{AdapterFamily as _, KeySource, Poll, ProcessView};
use vmscope_records::{Pid, ProcessKey, Record, TimeNs};

fn now() -> TimeNs {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
    TimeNs(u64::try_from(time.as_nanos()).unwrap_or(0))
}

fn cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let pid = arguments.next().ok_or("usage: looks PID [SECONDS]")?;
    let seconds: u64 = arguments.next().map_or(Ok(10), |word| word.parse())?;
    let began = Instant::now();
    let process = ProcessView::open(Pid(pid.parse()?))?;
    let opened = began.elapsed();
    let adapter = Family.recognise(&process)?;
    let mut adapter = adapter.ok_or("no HotSpot JVM")?;
    let recognised = began.elapsed();
    let keys = KeySource::new();
    let new_poll = || Poll::new(keys.clone(), ProcessKey(0), Arc::new(now));
    let mut times = Vec::new();
    let mut records = 0;
    let (from, used) = (Instant::now(), cpu());
    let mut first = (Duration::ZERO, 0);
    let mut after_first = (from, used);
    while from.elapsed() < Duration::from_secs(seconds) {
        let (before, before_cpu) = (Instant::now(), cpu());
        process.refresh()?;
        let mut poll = new_poll();
        adapter.poll(&process, &mut poll)?;
        let found = poll.finish();
        if times.is_empty() && first.1 == 0 {
            let code = |record: &&Record| matches!(record, Record::Constituent(_));
            first = (before.elapsed(), found.iter().filter(code).count());
            after_first = (Instant::now(), cpu());
        } else {
            records += found.len();
            times.push(cpu().saturating_sub(before_cpu));
        }
        std::thread::sleep(adapter.next_poll());
    }
    println!("process opened {opened:?}, recognised {recognised:?}");
    println!("first look {:?}: {} constituents", first.0, first.1);
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 100).copied();
    println!(
        "{} looks, {records} records; processor time of one: median {:?}, 90 % {:?}, 99 % {:?}",
        times.len(),
        at(50).unwrap_or_default(),
        at(90).unwrap_or_default(),
        at(99).unwrap_or_default()
    );
    let share = (cpu() - after_first.1).as_secs_f64() / after_first.0.elapsed().as_secs_f64();
    println!("{:.2} % of a processor", 100.0 * share);
    Ok(())
}
