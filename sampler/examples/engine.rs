//! Runs the kernel engine on a command (`-- CMD …`) or a pid and prints what it
//! delivered against what the threads' CPU time promised.
#![expect(
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a program that prints figures"
)]

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use vmscope_sampler::{
    CallGraph, Engine as _, EngineEvent, EngineState, HeldCommand, KernelEngine, KernelOptions,
    SamplingRate, UserCallers, raise_this_thread,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let first = args
        .next()
        .ok_or("usage: engine PID [SECONDS] | engine -- CMD …")?;
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let rate = number("RATE_HZ").map(|hz| SamplingRate::from_hz(hz as f64));
    let options = KernelOptions {
        rate: rate.transpose()?.unwrap_or_default(),
        registers: number("REGISTERS").unwrap_or(0),
        stack_bytes: number("STACK_BYTES")
            .and_then(|n| n.try_into().ok())
            .unwrap_or(0),
        call_graph: number("CHAIN").map(|depth| CallGraph {
            depth: depth.try_into().unwrap_or(u16::MAX),
            from: UserCallers::FramePointers,
        }),
        max_descriptors: std::env::var("MAX_FDS").ok().and_then(|n| n.parse().ok()),
        ..KernelOptions::default()
    };
    let opening = Instant::now();
    let (mut engine, mut running, seconds) = if first == "--" {
        let mut command = Command::new(args.next().ok_or("a command is missing")?);
        command.args(args);
        let held = HeldCommand::start(command)?;
        let engine = KernelEngine::follow(&held, &options)?;
        (engine, Some(held.release()?), f64::MAX)
    } else {
        let pid = vmscope_records::Pid(first.parse()?);
        let seconds = args.next().map_or(Ok(f64::MAX), |text| text.parse())?;
        (KernelEngine::attach(&[pid], &options)?, None, seconds)
    };
    println!(
        "opened in {:?}: {:?}",
        opening.elapsed(),
        engine.description()
    );
    if std::env::var_os("NO_RT").is_none() {
        println!("{:?}", raise_this_thread());
    }
    let start = Instant::now();
    let mut events = Vec::new();
    let mut rounds = 0;
    let wait = std::env::var("ROUND_MS").map_or(Ok(100), |text| text.parse())?;
    let wait = Duration::from_millis(wait);
    while start.elapsed().as_secs_f64() < seconds {
        rounds += 1;
        let round = Instant::now();
        let before = events.len();
        let state = engine.drain(wait, &mut events)?;
        if round.elapsed() > Duration::from_millis(2000) {
            println!(
                "round {rounds} took {:?} for {} events",
                round.elapsed(),
                events.len() - before
            );
        }
        if state == EngineState::TargetsGone {
            break;
        }
    }
    let finishing = Instant::now();
    engine.finish(&mut events)?;
    println!("finished in {:?}", finishing.elapsed());
    let in_order = |event: &&EngineEvent| !matches!(event, EngineEvent::ThreadCpu { .. });
    let sorted = events
        .iter()
        .filter(in_order)
        .is_sorted_by_key(|e| e.time());
    if let Some(running) = &mut running {
        running.wait()?;
    }
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut cpu, mut promised, mut samples, mut process_cpu) = (0, 0.0, 0, 0);
    for event in &events {
        let kind = match event {
            EngineEvent::Sample(_) => "samples",
            EngineEvent::ThreadStarted { .. } => "threads started",
            EngineEvent::ThreadEnded(end) => {
                cpu += end.cpu.0;
                samples += end.samples;
                promised += end.cpu.0 as f64 / end.mean_period.0 as f64;
                if end.cpu.0 > 100_000_000 {
                    println!(
                        "thread {} cpu {:.3} ms measured {} user {:?} alive {} samples {} of {:.1} period {} lost {:.2}",
                        end.tid,
                        end.cpu.0 as f64 / 1e6,
                        end.cpu_measured,
                        end.cpu_user,
                        end.alive,
                        end.samples,
                        end.cpu.0 as f64 / end.mean_period.0 as f64,
                        end.mean_period,
                        end.cpu.0 as f64 / end.mean_period.0 as f64 - end.samples as f64,
                    );
                }
                if end.cpu_measured {
                    "threads measured"
                } else {
                    "threads reckoned"
                }
            }
            EngineEvent::ThreadCpu { .. } => "thread accounts",
            EngineEvent::ProcessEnded {
                cpu, pid, cpu_user, ..
            } => {
                let cpu_ns = cpu.map_or(0, |cpu| cpu.0);
                process_cpu += cpu_ns;
                println!(
                    "process {pid} cpu {:.3} ms user {cpu_user:?}",
                    cpu_ns as f64 / 1e6
                );
                "process accounts"
            }
            EngineEvent::Mapped(_) => "mappings",
            EngineEvent::Lost { .. } => {
                println!("{event:?}");
                "losses"
            }
            EngineEvent::Limit(_) => {
                println!("{event:?}");
                "limits"
            }
            EngineEvent::Exec { .. } => "execs",
            EngineEvent::ProcessForked { .. } => "forks",
            _ => "others",
        };
        *kinds.entry(kind).or_default() += 1;
    }
    println!(
        "{kinds:?}, in order: {sorted}, duplicates {}, late {}",
        engine.duplicates(),
        engine.late()
    );
    println!(
        "cpu of threads {:.3} ms, of processes {:.3} ms; delivered {samples} of {promised:.1}: {:.4} %",
        cpu as f64 / 1e6,
        process_cpu as f64 / 1e6,
        100.0 * samples as f64 / promised,
    );
    let used = std::fs::read_to_string("/proc/self/schedstat")?;
    println!(
        "{rounds} rounds in {:?}, own cpu ns {used}",
        start.elapsed()
    );
    Ok(())
}
