//! Measures the pc maps of compiled code against full debug tables.
//!
//! `evidence PID IPS [ablate] [each] [cost] [digest] [wrong] [shares] [entries] [NAME=VALUE …]`
//!
//! PID is a JVM that runs with `-XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints`
//! (stop it, so that its code stays), IPS a file with sampled pcs, hexadecimal, one in a
//! line: `perf record -e cpu-clock -F 1999 -p PID -- sleep 6; kill -STOP PID;
//! perf script -F ip`. The programs are `tests/programs/Ev*.java`.
//!
//! The reference is the full table under the next-record rule. Maps are made from the table of a
//! JVM without the flag. `raw`: all samples. `sound`: without samples whose reference is a stale
//! scope (C2 gives late nodes the scope parsed last) or contradicts the instruction. `ablate`: adds
//! the kinds of evidence one by one. `each`: a map for each sampled pc. `cost`: times over all nmethods. `digest`: hashes of all maps,
//! for comparison of builds. `wrong`: places with most disagreement. `entries`: lines for `real.py`. `shares`: shares of the
//! innermost methods, also for a JVM without the flag.
#![allow(clippy::print_stdout, reason = "it is what it is for")]

mod names;
mod reference;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, Instant};

use vmscope_hotspot::bytecode::PoolLayout;
use vmscope_hotspot::code::{CodeCache, Found, Frame, Nmethod};
use vmscope_hotspot::evidence::{
    self, Facts, FactsLayout, MemoryMethods, Weights, full, has_full_tables, pieces_weighted,
    stale_scope,
};
use vmscope_hotspot::jvm::Jvm;
use vmscope_hotspot::pages::Pages;
use vmscope_process::ProcessView;
use vmscope_records::{Exactness, Pid};

use names::{Names, Score};

type Error = Box<dyn std::error::Error>;

/// An nmethod with samples; `reduced` has the table of a JVM without the flag.
struct Hit {
    full: Nmethod,
    reduced: Nmethod,
    /// Offset of the pc, samples, reference chain, whether the reference is sound.
    samples: Vec<(u32, u64, Vec<Frame>, bool)>,
}

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: evidence PID IPS [ablate] [each] [cost] [digest] [wrong] [shares] [entries] [NAME=VALUE …]";
    let pid = args.next().ok_or(usage)?.parse()?;
    let ips = std::fs::read_to_string(args.next().ok_or(usage)?)?;
    let options: Vec<String> = args.collect();
    let has = |name: &str| options.iter().any(|option| option == name);

    let process = ProcessView::open(Pid(pid))?;
    let pages = Pages::new(process.memory());
    let jvm = Jvm::open(&process, &pages)?;
    let layout = &jvm.code;
    let mut cache = CodeCache::new(layout.clone());
    let mut names = Names {
        layout: jvm.methods.clone(),
        memory: &pages,
        kept: HashMap::new(),
    };
    let methods = MemoryMethods::new(
        &pages,
        FactsLayout::of(
            &jvm.structs,
            PoolLayout::of(&jvm.structs, jvm.methods.clone())?,
            true,
        ),
        Facts::default(),
    );
    let mut nmethods = Vec::new();
    cache.read(&pages, |found| {
        if let Found::Nmethod { blob, bytes, .. } = found {
            nmethods.extend(layout.read_nmethod(blob, bytes, &pages).ok());
        }
    })?;
    nmethods.sort_by_key(|nmethod| nmethod.blob.code_begin);
    let weights = weights(&options)?;
    if has("cost") {
        cost(&nmethods, &methods, &weights);
        return Ok(());
    }
    if has("digest") {
        digest(&nmethods, &methods, &weights);
        return Ok(());
    }
    let hits = hits(&nmethods, &ips, &mut names);
    if has("entries") {
        entries(&hits, &methods, &weights, &mut names);
        return Ok(());
    }
    if has("shares") {
        shares(&hits, &methods, &weights, &mut names);
        return Ok(());
    }
    report(&nmethods, &hits, &mut names);
    let mut steps = vec![("all evidence", weights)];
    if has("ablate") {
        steps = ablation(&weights);
    }
    for (name, weights) in steps {
        evidence_scores(
            name,
            &hits,
            &methods,
            &weights,
            &mut names,
            (has("wrong"), has("each")),
        );
    }
    Ok(())
}

/// Sound samples by compiler, what names the method, inferred and right innermost method, for
/// `real.py`.
fn entries(hits: &[Hit], methods: &MemoryMethods<'_>, weights: &Weights, names: &mut Names<'_>) {
    let mut counts: HashMap<_, u64> = HashMap::new();
    for hit in hits {
        let map = pieces_weighted(&hit.reduced, methods, &[], weights);
        let compiler = if hit.full.is_by_c2() { "C2" } else { "C1" };
        for (pc, count, truth, _) in hit.samples.iter().filter(|(.., is_sound)| *is_sound) {
            if let (Some((piece, [found, ..])), [right, ..]) = (map.at(*pc), truth.as_slice()) {
                let key = (compiler, piece.named_by, found.method, right.method);
                *counts.entry(key).or_default() += count;
            }
        }
    }
    for ((compiler, named_by, found, right), count) in counts {
        let [found, right] = [found, right].map(|method| {
            let name = names.show(&[Frame { method, bci: 0 }]);
            format!("{:x} {name}", method.0)
        });
        println!("{compiler}\t{named_by:?}\t{found}\t{right}\t{count}");
    }
}

/// The innermost methods by their samples, and by those of the plain next-record rule.
fn shares(hits: &[Hit], methods: &MemoryMethods<'_>, weights: &Weights, names: &mut Names<'_>) {
    let mut counts: HashMap<String, (u64, u64)> = HashMap::new();
    let mut all = 0;
    for hit in hits {
        let map = pieces_weighted(&hit.reduced, methods, &[], weights);
        for (pc, count, ..) in &hit.samples {
            let found = map.at(*pc).and_then(|(_, chain)| chain.first());
            let name = names.show(found.map_or(&[], std::slice::from_ref));
            let name = name.split('@').next().unwrap_or_default().to_owned();
            counts.entry(name).or_default().0 += count;
            let next = reference::next(&hit.reduced, *pc);
            let name = names.show(next.get(..1).unwrap_or_default());
            let name = name.split('@').next().unwrap_or_default().to_owned();
            counts.entry(name).or_default().1 += count;
            all += count;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, (evidence, _))| std::cmp::Reverse(*evidence));
    let percent = |count: u64| 100.0 * count as f64 / f64::max(all as f64, 1.0);
    for (name, (evidence, next)) in counts.into_iter().take(12) {
        let [evidence, next] = [evidence, next].map(percent);
        println!("{evidence:5.1} % (next record: {next:5.1} %)  {name}");
    }
}

fn weights(options: &[String]) -> Result<Weights, Error> {
    let mut weights = Weights::default();
    for (name, value) in options.iter().filter_map(|option| option.split_once('=')) {
        let value: f32 = value.parse()?;
        if !weights.set(name, value) {
            return Err(format!("no weight is called {name}").into());
        }
    }
    Ok(weights)
}

/// Weights that add one kind of evidence at a time.
fn ablation(all: &Weights) -> Vec<(&'static str, Weights)> {
    let mut weights = *all;
    weights.kinds = [0.0; 14];
    weights.limits.depth = 0;
    for name in ["implicit", "receiver", "trap", "ool"] {
        weights.set(name, 0.0);
    }
    let mut steps = vec![("records", weights)];
    (weights.implicit, weights.receiver) = (all.implicit, all.receiver);
    steps.push(("+ implicit exceptions", weights));
    (weights.trap, weights.out_of_line) = (all.trap, all.out_of_line);
    steps.push(("+ branches out of line", weights));
    let mut add = |name, kinds: &[usize], weights: &mut Weights| {
        for &kind in kinds {
            if let (Some(to), Some(from)) = (weights.kinds.get_mut(kind), all.kinds.get(kind)) {
                *to = *from;
            }
        }
        steps.push((name, *weights));
    };
    add("+ fields, elements, lengths", &[0, 1, 2], &mut weights);
    add("+ classes, allocation, locks", &[3, 4, 9, 10], &mut weights);
    add("+ constants", &[5, 6], &mut weights);
    add("+ arithmetic, branches", &[7, 8, 11], &mut weights);
    add("+ returns", &[13], &mut weights);
    add("+ intrinsics", &[12], &mut weights);
    steps.push(("+ guessed methods", *all));
    steps
}

fn cost(nmethods: &[Nmethod], methods: &MemoryMethods<'_>, weights: &Weights) {
    let reduced: Vec<_> = nmethods.iter().map(reference::reduced).collect();
    for round in ["first", "again"] {
        let mut times: Vec<Duration> = Vec::new();
        for nmethod in &reduced {
            let began = Instant::now();
            let _ = pieces_weighted(nmethod, methods, &[], weights);
            times.push(began.elapsed());
        }
        times.sort_unstable();
        let at = |percent: usize| times.get(times.len() * percent / 100);
        println!(
            "{round}: {} nmethods {:?}, median {:?}, 90 % {:?}, 99 % {:?}, longest {:?}",
            times.len(),
            times.iter().sum::<Duration>(),
            at(50),
            at(90),
            at(99),
            times.last()
        );
    }
}

/// Prints a hash per nmethod and a total: two builds compared on a stopped process.
fn digest(nmethods: &[Nmethod], methods: &MemoryMethods<'_>, weights: &Weights) {
    let mut all = DefaultHasher::new();
    for nmethod in nmethods {
        let map = pieces_weighted(&reference::reduced(nmethod), methods, &[], weights);
        let mut one = DefaultHasher::new();
        format!("{map:?}").hash(&mut one);
        println!("{:x} {:x}", nmethod.blob.code_begin.0, one.finish());
        one.finish().hash(&mut all);
    }
    println!("{} nmethods, {:x}", nmethods.len(), all.finish());
}

/// The samples by nmethod, with what the reference says.
fn hits(nmethods: &[Nmethod], ips: &str, names: &mut Names<'_>) -> Vec<Hit> {
    let mut counts: HashMap<usize, HashMap<u32, u64>> = HashMap::new();
    for ip in ips
        .lines()
        .filter_map(|ip| u64::from_str_radix(ip.trim(), 16).ok())
    {
        let behind = nmethods.partition_point(|nmethod| nmethod.blob.code_begin.0 <= ip);
        let index = behind.checked_sub(1);
        let Some((index, nmethod)) = index.and_then(|at| Some((at, nmethods.get(at)?))) else {
            continue;
        };
        if ip < nmethod.blob.code_end.0 && !nmethod.pcs.is_empty() {
            let offset = u32::try_from(ip - nmethod.blob.code_begin.0).unwrap_or(u32::MAX);
            *counts.entry(index).or_default().entry(offset).or_default() += 1;
        }
    }
    let mut hits = Vec::new();
    for (index, offsets) in counts {
        let Some(full) = nmethods.get(index) else {
            continue;
        };
        let (stale, clean) = (stale_scope(full), reference::cleaned(full));
        let ending = reference::ending(full);
        let mut samples = Vec::new();
        for (pc, count) in offsets {
            let truth = reference::next(full, pc);
            let is_stale = stale.is_some() && stale.as_ref() == Some(&truth);
            // Records on both sides agree on the method.
            let (next, before) = (reference::next(&clean, pc), reference::previous(&clean, pc));
            let method = |chain: &[Frame]| chain.first().map(|frame| frame.method);
            let is_void = is_stale && method(&next) != method(&before);
            let truth = if is_stale && !is_void { next } else { truth };
            let code = names.bytecode(truth.first());
            let is_sound = !is_void && !reference::is_disproved(ending.get(&pc), code);
            if !truth.is_empty() {
                samples.push((pc, count, truth, is_sound));
            }
        }
        hits.push(Hit {
            full: full.clone(),
            reduced: reference::reduced(full),
            samples,
        });
    }
    hits
}

/// What the simple rules give, and how sound the reference is.
fn report(nmethods: &[Nmethod], hits: &[Hit], names: &mut Names<'_>) {
    let records =
        |of: fn(&Hit) -> &Nmethod| hits.iter().map(|hit| of(hit).pcs.len()).sum::<usize>();
    let all_of = |of: fn(&Nmethod) -> usize| nmethods.iter().map(of).sum::<usize>();
    println!(
        "all code: records {} -> {}",
        all_of(|nmethod| nmethod.pcs.len()),
        all_of(|nmethod| reference::reduced(nmethod).pcs.len())
    );
    println!(
        "{} nmethods hit of {}, records {} -> {}, full tables: {} ({} nmethods for themselves)",
        hits.len(),
        nmethods.len(),
        records(|hit| &hit.full),
        records(|hit| &hit.reduced),
        has_full_tables(nmethods),
        nmethods
            .iter()
            .filter(|nmethod| has_full_tables([*nmethod]))
            .count()
    );
    let mut rules = [Score::default(); 4];
    let [next, implicit, outermost, full_map] = &mut rules;
    let (mut all, mut sound) = (0, 0);
    for hit in hits {
        let map = full(&hit.full);
        for (pc, count, _, is_sound) in &hit.samples {
            let raw = reference::next(&hit.full, *pc);
            let outer = [Frame {
                method: hit.full.method,
                bci: i32::MAX,
            }];
            all += count;
            sound += count * u64::from(*is_sound);
            names.judge(next, *count, &reference::next(&hit.reduced, *pc), &raw);
            names.judge(
                implicit,
                *count,
                &reference::with_implicit(&hit.reduced, *pc),
                &raw,
            );
            names.judge(outermost, *count, &outer, &raw);
            let answer = map.at(*pc).map_or(&[][..], |(_, chain)| chain);
            names.judge(full_map, *count, answer, &raw);
        }
    }
    println!(
        "reference sound for {:.1} % of {all} samples",
        100.0 * sound as f64 / all as f64
    );
    let labels = ["next record", "implicit anchors", "outermost method"];
    let labels = labels
        .into_iter()
        .chain(["full table, raw", "full table, sound"]);
    for (label, score) in labels.zip(&rules) {
        score.show(label);
    }
}

fn evidence_scores(
    name: &str,
    hits: &[Hit],
    methods: &MemoryMethods<'_>,
    weights: &Weights,
    names: &mut Names<'_>,
    (shows_wrong, is_for_each): (bool, bool),
) {
    let [mut raw, mut sound, mut exact, mut raw_exact] = [Score::default(); 4];
    let mut unrelated = 0;
    let mut spent = Duration::ZERO;
    let mut wrong = Vec::new();
    for hit in hits {
        let mut map: evidence::Map = match is_for_each {
            true => evidence::Map::default(),
            false => pieces_weighted(&hit.reduced, methods, &[], weights),
        };
        for (pc, count, truth, is_sound) in &hit.samples {
            if is_for_each {
                let began = Instant::now();
                map = pieces_weighted(&hit.reduced, methods, &[*pc], weights);
                spent += began.elapsed();
            }
            let found = map.at(*pc);
            let answer = found.map_or(&[][..], |(_, chain)| chain);
            let is_exact = found.is_some_and(|(piece, _)| piece.exactness == Exactness::Exact);
            let plain = reference::next(&hit.full, *pc);
            names.judge(&mut raw, *count, answer, &plain);
            if is_exact {
                names.judge(&mut raw_exact, *count, answer, &plain);
            }
            if !is_sound {
                continue;
            }
            if is_exact {
                names.judge(&mut exact, *count, answer, truth);
            }
            if !names.judge(&mut sound, *count, answer, truth) {
                wrong.push((
                    *count,
                    hit.full.blob.code_begin.0,
                    *pc,
                    answer.to_vec(),
                    truth,
                ));
                let related = |inner: &[Frame], outer: &[Frame]| {
                    outer
                        .first()
                        .is_some_and(|of| inner.iter().any(|f| f.method == of.method))
                };
                let is_related = related(answer, truth) || related(truth, answer);
                unrelated += count * u64::from(!is_related);
            }
        }
    }
    if is_for_each {
        println!("maps took {spent:?}");
    }
    raw.show(&format!("{name}, raw"));
    sound.show(&format!("{name}, sound"));
    raw_exact.show(&format!("{name}, raw, the exact"));
    exact.show(&format!("{name}, sound, the exact"));
    let percent = 100.0 * unrelated as f64 / sound.all.max(1) as f64;
    println!("    neither caller nor callee of the right one: {percent:.1} %");
    wrong.sort_by_key(|(count, ..)| std::cmp::Reverse(*count));
    for (count, code, pc, answer, truth) in wrong.iter().filter(|_| shows_wrong).take(40) {
        println!(
            "{count:5} {code:x}+{pc:x}\n      reference {}",
            names.show(truth)
        );
        println!("      evidence  {}", names.show(answer));
    }
}
