//! `vmscope dump`: the stacks of all threads now.
//!
//! A recording in a temporary file holds one sample for each thread. First the VM's adapters read the
//! code, then [`SnapshotEngine`] or [`CoreEngine`] copies the threads.

use crate::binaries::SessionBinaries;
use crate::memory::MemoryOption;
use crate::present::entries::place_of;
use crate::present::functions::{self, name_of};
use crate::present::names::region_key;
use crate::present::numbers::{session_time, some};
use crate::present::text::harmless;
use crate::print::{Printer, say};
use crate::record::Interrupted;
use crate::record::families::FamilyOptions;
use crate::report::{open_recording, resolve_missing};
use crate::signals::Signals;
use crate::target::TargetOptions;
use anyhow::{Context, Result};
use clap::Args;
use nix::sys::signal::Signal;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vmscope_process::{ProcessView, examine};
use vmscope_records::recording::Item;
use vmscope_records::{
    ChainEnd, Content, EndReason, Exactness, LimitKind, Pid, Sample, ThreadKey, Tid,
};
use vmscope_sampler::session::{Readers, Session, SessionOptions};
use vmscope_sampler::{CoreEngine, Engine, Shutter, SnapshotEngine, ThreadState, thread_states};
use vmscope_symbolizer::profile::last_component;
use vmscope_symbolizer::stacks::{StackFrame, each_stack, frames_of};
use vmscope_symbolizer::trace::TraceThread;
use vmscope_symbolizer::{Filter, Profile, SiteId, ThreadId, Trace, profile_of};

/// Version of the JSON schema (docs/dump-json.md).
const SCHEMA: &str = "vmscope-dump/1.1";

/// Longest wait for the adapters' first reading of the VM's code.
const READ_WITHIN: Duration = Duration::from_secs(10);

const TICK: Duration = Duration::from_millis(5);

#[derive(Args, Clone, Debug)]
pub struct DumpArgs {
    #[command(flatten)]
    target: TargetOptions,
    #[command(flatten)]
    families: FamilyOptions,
    /// Print JSON (a documented schema: docs/dump-json.md) instead of text
    #[arg(long)]
    json: bool,
    /// Maximum number of callers of a thread
    #[arg(long, value_name = "FRAMES", default_value_t = 1024)]
    max_depth: u16,
}

/// A thread with its stack, innermost frame first.
struct Stack<'p> {
    id: ThreadId,
    /// The kernel's letter; `None` for a thread that started later.
    state: Option<char>,
    frames: Vec<StackFrame<'p>>,
    /// Whether the innermost frame's place is approximate.
    is_approximate: bool,
    /// `None` without a stack.
    end: Option<ChainEnd>,
}

/// What is dumped.
struct Target {
    pid: Pid,
    command: Vec<String>,
    view: ProcessView,
    engine: Box<dyn Engine>,
    shutter: Shutter,
    /// The core file, with another view for the files of the modules.
    core: Option<(CoreHead, ProcessView)>,
}

/// A core file.
struct CoreHead {
    path: PathBuf,
    /// Signal that caused the core file, if any.
    signal: Option<String>,
    /// The thread with that signal.
    crashed: Option<Tid>,
}

impl Target {
    /// A running process.
    fn process(pid: Pid) -> Result<Self> {
        let facts = examine(pid)?;
        let (engine, shutter) = SnapshotEngine::new(pid);
        Ok(Target {
            pid,
            command: facts.command,
            view: ProcessView::open(pid)?,
            engine: Box::new(engine),
            shutter,
            core: None,
        })
    }

    fn core(path: &Path, options: &TargetOptions) -> Result<Self> {
        let (view, info) = options.open_core(path)?;
        let head = CoreHead {
            path: path.to_owned(),
            signal: signal_name(info.signal),
            crashed: info.threads.first().map(|thread| thread.tid),
        };
        let (engine, shutter) = CoreEngine::new(&view, info.threads);
        Ok(Target {
            pid: view.pid(),
            command: view.command().to_vec(),
            engine: Box::new(engine),
            shutter,
            core: Some((head, options.open_core(path)?.0)),
            view,
        })
    }
}

/// `SIGSEGV` for 11; `None` for 0.
fn signal_name(signal: i32) -> Option<String> {
    let known = Signal::try_from(signal).map(|signal| signal.as_str().to_owned());
    (signal != 0).then(|| known.unwrap_or_else(|_| format!("signal {signal}")))
}

impl CoreHead {
    fn text(&self) -> String {
        let mut text = format!("core file {}", harmless(&self.path.to_string_lossy()));
        if let (Some(signal), Some(crashed)) = (&self.signal, self.crashed) {
            text.push_str(&format!(", {signal} in thread {crashed}"));
        }
        text
    }
}

/// The stacks of a process's threads.
struct Dump {
    profile: Profile,
    pid: Pid,
    states: Vec<ThreadState>,
    ends: FxHashMap<ThreadKey, ChainEnd>,
    core: Option<CoreHead>,
}

/// Writes the stacks of a process's threads to `out`.
///
/// # Errors
/// No such process, no permission, no core file, an interrupt.
pub fn run(args: &DumpArgs, out: &mut Printer<'_>) -> Result<()> {
    let signals = Signals::catch()?;
    let target = match &args.target.core {
        Some(core) => Target::core(core, &args.target)?,
        None => Target::process(args.target.pid()?)?,
    };
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let file = folder.path().join("dump.vmscope");
    let dump = snapshot(target, args, &file, &signals)?;
    let stacks = stacks(&dump);
    match args.json {
        true => out.json(&json(&dump, &stacks)),
        false => Ok(out.text(&text(&dump, &stacks))?),
    }
}

/// Records one sample of each thread in `file`; the threads' states are those just before.
fn snapshot(target: Target, args: &DumpArgs, file: &Path, signals: &Signals) -> Result<Dump> {
    let pid = target.pid;
    let readers = Readers::of(vec![target.view], args.families.attaching(None));
    let (core, view) = target.core.unzip();
    let is_live = core.is_none();
    let options = SessionOptions {
        pids: vec![pid],
        command: target.command,
        output: Some(file.to_owned()),
        unwind_depth: Some(args.max_depth),
        core: view,
        ..SessionOptions::default()
    };
    let session = Session::start(target.engine, readers, options)?;
    let began = Instant::now();
    let wait = || std::thread::sleep(TICK);
    while !session.progress().knows_code() && !signals.end_asked() {
        if began.elapsed() > READ_WITHIN {
            say("the VM's code was not read in time: frames may lack names");
            break;
        }
        wait();
    }
    let states = match is_live {
        true => thread_states(pid),
        false => Vec::new(),
    };
    target.shutter.release();
    while !session.progress().is_done() && !signals.end_asked() {
        wait();
    }
    session.stop(EndReason::Interrupted);
    let outcome = session.finish()?;
    if signals.end_asked() {
        return Err(Interrupted.into());
    }
    if let Some(failure) = outcome.failure {
        return Err(failure.into());
    }
    let max_memory = MemoryOption::default().max();
    let trace = Trace::read(&mut open_recording(file)?)?;
    let symbols = resolve_missing(&trace, &SessionBinaries(&outcome.modules), max_memory);
    Ok(Dump {
        profile: profile_of(trace, symbols, true),
        pid,
        states,
        ends: chain_ends(file)?,
        core,
    })
}

/// Why each thread's stack ends.
fn chain_ends(file: &Path) -> Result<FxHashMap<ThreadKey, ChainEnd>> {
    let mut ends = FxHashMap::default();
    let mut reader = open_recording(file)?;
    while let Some(chunk) = reader.next_chunk(Content::SAMPLES)? {
        let samples = chunk.items().flat_map(|item| match item {
            Item::Samples(samples) => samples,
            _ => Vec::new(),
        });
        let chain = |sample: Sample| Some((sample.thread, sample.detail?.chain?.end));
        ends.extend(samples.filter_map(chain));
    }
    Ok(ends)
}

fn stacks(dump: &Dump) -> Vec<Stack<'_>> {
    let profile = &dump.profile;
    let threads = &profile.trace.threads;
    let mut nodes = threads.with_each(None);
    let tree = each_stack(profile, &Filter::default(), |sample| {
        nodes[sample.thread] = Some(sample.node);
    });
    let stack = |(id, one): (ThreadId, &TraceThread)| {
        let state = dump.states.iter().find(|state| state.tid == one.thread.tid);
        let sites: Vec<SiteId> = nodes[id].map_or_else(Vec::new, |node| tree.path(node).collect());
        let frames = sites.iter().flat_map(|&site| {
            let mut frames: Vec<StackFrame<'_>> = frames_of(profile, site, true).collect();
            frames.reverse();
            frames
        });
        let innermost = sites.first().map(|&site| profile.sites[site].exactness);
        Stack {
            id,
            is_approximate: innermost == Some(Exactness::Approximate),
            state: state.map(|state| state.letter),
            frames: frames.collect(),
            end: dump.ends.get(&one.thread.key).copied(),
        }
    };
    threads.enumerated().map(stack).collect()
}

/// Limits of the stacks. Those of callers concern frame pointers, a missing priority sampling.
fn limits(profile: &Profile) -> impl Iterator<Item = &str> {
    let limits = profile.trace.limits.iter();
    let of_sampling = [LimitKind::Callers, LimitKind::NoRealTime];
    let of_stacks = limits.filter(move |limit| !of_sampling.contains(&limit.kind));
    of_stacks.map(|limit| &*limit.text)
}

/// The kernel's letter as a word (`proc_pid_stat(5)`).
fn state_word(letter: Option<char>) -> &'static str {
    match letter {
        Some('R') => "running",
        Some('S' | 'I') => "sleeping",
        Some('D') => "uninterruptible",
        Some('T' | 't') => "stopped",
        Some('Z' | 'X') => "ended",
        _ => "unknown",
    }
}

/// Why the outer callers are missing; `None` for a whole stack.
fn cut_off(end: Option<ChainEnd>) -> Option<&'static str> {
    Some(match end {
        Some(ChainEnd::Whole) => return None,
        Some(ChainEnd::Depth) => "more callers: --max-depth",
        Some(ChainEnd::Stack) => "more callers beyond the copied stack",
        Some(ChainEnd::Behind) => "callers unknown: too many stacks at once",
        Some(_) => "callers unknown: the frame has no unwind rule",
        None => "no stack: the thread did not stop, or ended",
    })
}

/// CPU time of a thread, where known.
fn cpu_seconds(dump: &Dump, stack: &Stack<'_>) -> Option<f64> {
    let cpu = dump.profile.trace.threads[stack.id].thread.cpu_before;
    (dump.core.is_none() || cpu.0 > 0).then(|| cpu.as_secs_f64())
}

fn text(dump: &Dump, stacks: &[Stack<'_>]) -> String {
    let (profile, pid) = (&dump.profile, dump.pid);
    let mut out = String::new();
    if let Some(session) = &profile.trace.session {
        let vm = format!("{} {}", session.vm.kind, session.vm.version);
        let when = match &dump.core {
            Some(core) => core.text(),
            None => session_time(session.wall_clock_unix_ns),
        };
        out.push_str(&format!(
            "{}\n{}, pid {pid}, {when}: {}\n",
            harmless(&session.command.join(" ")),
            harmless(vm.trim_end()),
            some(stacks.len() as u64, "thread", "threads"),
        ));
    }
    for limit in limits(profile) {
        out.push_str(&format!("- {}\n", harmless(limit)));
    }
    for stack in stacks {
        let thread = &profile.trace.threads[stack.id].thread;
        let state = dump
            .core
            .is_none()
            .then(|| state_word(stack.state).to_owned());
        let cpu = cpu_seconds(dump, stack).map(|cpu| format!("{cpu:.2} s of CPU time"));
        let facts: Vec<String> = [state, cpu].into_iter().flatten().collect();
        out.push_str(&format!(
            "\n\"{}\" tid {}{}{}\n",
            harmless(&thread.name),
            thread.tid,
            if facts.is_empty() { "" } else { ": " },
            facts.join(", "),
        ));
        for (at, frame) in stack.frames.iter().enumerate() {
            let inlined = if frame.is_inlined() { " (inlined)" } else { "" };
            let name = name_of(&frame.place.name, None, &frame.entry.tier);
            let mark = if at == 0 && stack.is_approximate {
                "~"
            } else {
                ""
            };
            out.push_str(&format!("    {mark}{name}{inlined}{}\n", place(frame)));
        }
        if let Some(why) = cut_off(stack.end) {
            out.push_str(&format!("    ({why})\n"));
        }
    }
    out
}

/// File and line, bytecode.
fn place(frame: &StackFrame<'_>) -> String {
    let file = last_component(&frame.place.file);
    let place = place_of(frame.place).or_else(|| (!file.is_empty()).then(|| file.to_owned()));
    let mut text = place.map_or_else(String::new, |place| format!("  {}", harmless(&place)));
    if let Some(bytecode) = frame.place.bytecode {
        text.push_str(&format!(" @{bytecode}"));
    }
    text
}

fn json(dump: &Dump, stacks: &[Stack<'_>]) -> Value {
    let profile = &dump.profile;
    let trace = &profile.trace;
    let session = trace.session.as_ref();
    let is_native = profile.is_native();
    let frame = |frame: &StackFrame<'_>| {
        let place = frame.place;
        let region = region_key(frame.entry.region, is_native);
        let tier = &frame.entry.tier;
        let mut value = functions::json(&place.name, tier, Some(region), frame.is_inlined());
        functions::put_place(&mut value, &place.file, place.line);
        if let Some(bytecode) = place.bytecode {
            value["bytecode"] = bytecode.0.into();
        }
        value
    };
    let thread = |stack: &Stack<'_>| {
        let thread = &trace.threads[stack.id].thread;
        json!({
            "tid": thread.tid.0,
            "name": thread.name,
            "state": state_word(stack.state),
            "cpu_seconds": cpu_seconds(dump, stack),
            "approximate": stack.is_approximate,
            "frames": stack.frames.iter().map(frame).collect::<Vec<Value>>(),
            "cut_off": cut_off(stack.end),
        })
    };
    json!({
        "schema": SCHEMA,
        "pid": dump.pid.0,
        "core": dump.core.as_ref().map(|core| json!({
            "file": core.path.to_string_lossy(),
            "signal": core.signal,
            "crashed_tid": core.crashed.map(|tid| tid.0),
        })),
        "command": session.map(|session| &session.command),
        "vm": session.map(|session| json!({
            "kind": session.vm.kind,
            "version": session.vm.version,
        })),
        "wall_clock_unix_ns": session
            .filter(|_| dump.core.is_none())
            .map(|session| session.wall_clock_unix_ns),
        "limits": limits(profile).collect::<Vec<_>>(),
        "threads": stacks.iter().map(thread).collect::<Vec<Value>>(),
    })
}
