//! Measures the pc maps of compiled code against full debug tables.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a tool for developers"
)]
use std::collections::HashMap;
use std::time::Instant;
use vmscope_hotspot::code::{CodeCache, CodeLayout, Found, Frame, Nmethod};
use vmscope_hotspot::evidence::{self, MemoryMethods, MethodsLayout, Weights};
use vmscope_hotspot::layout::{Encodings, VmStructs};
use vmscope_hotspot::method::{MethodInfo, MethodLayout};
use vmscope_hotspot::pages::Pages;
use vmscope_records::{Avma, Exactness, Pid};
use vmscope_target::ProcessView;

type Error = Box<dyn std::error::Error>;

#[derive(Default, Clone, Copy)]
struct Score {
    all: u64,
    method: u64,
    chain: u64,
    line: u64,
    bci: u64,
}

impl Score {
    fn add(&mut self, n: u64, m: bool, c: bool, l: bool, b: bool) {
        self.all += n;
        self.method += n * u64::from(m);
        self.chain += n * u64::from(c);
        self.line += n * u64::from(l);
        self.bci += n * u64::from(b);
    }
    fn show(&self, name: &str) {
        let p = |x: u64| 100.0 * x as f64 / self.all.max(1) as f64;
        println!(
            "  {name:28} {:6} method {:5.1} chain {:5.1} line {:5.1} bci {:5.1}",
            self.all,
            p(self.method),
            p(self.chain),
            p(self.line),
            p(self.bci)
        );
    }
}

fn reduced(nmethod: &Nmethod) -> Nmethod {
    let mut copy = nmethod.clone();
    copy.pcs = nmethod
        .pcs
        .iter()
        .filter(|pc| nmethod.scope(pc.scope).is_ok_and(|s| s.values != [0; 3]))
        .copied()
        .collect();
    copy
}

fn next_record(nmethod: &Nmethod, pc: u32) -> Vec<Frame> {
    let at = nmethod
        .pcs
        .partition_point(|p| (p.pc as i64) < i64::from(pc));
    nmethod
        .pcs
        .get(at)
        .map(|p| nmethod.chain(p.scope).unwrap_or_default())
        .unwrap_or_default()
}

fn with_implicit(nmethod: &Nmethod, pc: u32) -> Vec<Frame> {
    let at = nmethod
        .pcs
        .partition_point(|p| (p.pc as i64) < i64::from(pc));
    let low = at
        .checked_sub(1)
        .map_or(-1, |b| i64::from(nmethod.pcs[b].pc));
    let high = nmethod.pcs.get(at).map_or(i64::MAX, |p| i64::from(p.pc));
    let mut anchors: Vec<_> = nmethod
        .implicit
        .iter()
        .filter(|(e, _)| i64::from(*e) > low && i64::from(*e) <= high)
        .copied()
        .collect();
    anchors.sort_unstable();
    let before = anchors.iter().rev().find(|(e, _)| *e <= pc);
    let after = anchors.iter().find(|(e, _)| *e > pc);
    if let Some((_, cont)) = before.or(after) {
        let i = nmethod
            .pcs
            .partition_point(|p| (p.pc as i64) <= i64::from(*cont));
        if let Some(p) = nmethod.pcs.get(i) {
            return nmethod.chain(p.scope).unwrap_or_default();
        }
    }
    next_record(nmethod, pc)
}

/// The scope that C2 gave to all that it made after it had parsed everything: nodes of
/// optimisations get the notes of the bytecode that was parsed last, which are wrong.
fn stale(nmethod: &Nmethod) -> Option<Vec<Frame>> {
    if nmethod.level != 4 {
        return None;
    }
    let mut by: HashMap<Vec<Frame>, usize> = HashMap::new();
    for p in &nmethod.pcs {
        if nmethod.scope(p.scope).is_ok_and(|s| s.values == [0; 3]) {
            *by.entry(nmethod.chain(p.scope).unwrap_or_default())
                .or_default() += 1;
        }
    }
    let all: usize = by.values().sum();
    let (chain, most) = by.into_iter().max_by_key(|x| x.1)?;
    (most >= 10 && most * 5 >= all).then_some(chain)
}

/// The instructions that end at each offset.
fn ending(nmethod: &Nmethod) -> HashMap<u32, iced_x86::Instruction> {
    let mut decoder =
        iced_x86::Decoder::with_ip(64, &nmethod.code, 0, iced_x86::DecoderOptions::NONE);
    let mut all = HashMap::new();
    while decoder.can_decode() {
        let insn = decoder.decode();
        all.insert(decoder.position() as u32, insn);
    }
    all
}

/// Whether the reference can't be: it says of a `mov` from or to an object that it stands
/// for a bytecode which reaches no memory, or of an instruction in the
/// implicit-exception table that it is in another method than the VM would throw from.
fn disproved(
    nmethod: &Nmethod,
    insn: Option<&iced_x86::Instruction>,
    bytecode: Option<u8>,
    truth: &[Frame],
) -> bool {
    use iced_x86::{Mnemonic as M, OpKind, Register as R};
    let Some(insn) = insn else { return false };
    let moves = matches!(
        insn.mnemonic(),
        M::Mov | M::Movzx | M::Movsx | M::Movsxd | M::Movsd | M::Movss | M::Vmovsd | M::Vmovss
    );
    let heap = (0..2).any(|k| insn.op_kind(k) == OpKind::Memory)
        && !matches!(insn.memory_base(), R::RSP | R::RIP | R::R15 | R::None)
        && insn.op1_register() != R::R12L;
    let silent = bytecode.is_some_and(|b| matches!(b, 0..=0x11 | 0x15..=0x2d | 0x36..=0x4e | 0x57..=0xa9 | 0xac..=0xb1 | 0xc6..=0xc8 | 220 | 224 | 225));
    if moves && heap && silent {
        return true;
    }
    let at = insn.ip() as u32;
    let implicit = nmethod.implicit.iter().find(|(e, _)| *e == at);
    let thrown = implicit
        .and_then(|(_, cont)| nmethod.pcs.iter().find(|p| p.pc > *cont as i32))
        .and_then(|p| nmethod.chain(p.scope).ok());
    thrown.is_some_and(|c| {
        !truth
            .iter()
            .any(|f| Some(f.method) == c.first().map(|f| f.method))
    })
}

/// The full table without those.
fn cleaned(nmethod: &Nmethod) -> Nmethod {
    let mut copy = nmethod.clone();
    if let Some(stale) = stale(nmethod) {
        copy.pcs = nmethod
            .pcs
            .iter()
            .filter(|p| {
                nmethod.scope(p.scope).is_ok_and(|s| s.values != [0; 3])
                    || nmethod.chain(p.scope).ok().as_ref() != Some(&stale)
            })
            .copied()
            .collect();
    }
    copy
}

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let pid = args
        .next()
        .ok_or("usage: evidence PID IPS [OPTIONS]")?
        .parse()?;
    let ips = std::fs::read_to_string(args.next().ok_or("ips?")?)?;
    let options: Vec<String> = args.collect();
    let process = ProcessView::open(Pid(pid))?;
    let libjvm = process
        .module(|name| name == "libjvm.so")
        .ok_or("no libjvm.so")?;
    let pages = Pages::new(process.memory());
    let structs = VmStructs::read(&process, &libjvm, &pages)?;
    let major = structs
        .optional_static("Abstract_VM_Version", "_vm_major_version")
        .and_then(|at| vmscope_target::Memory::read_u32(&pages, at).ok())
        .unwrap_or(11);
    let encodings = Encodings::of(&structs, major);
    let mut cache = CodeCache::new(CodeLayout::of(&structs, encodings)?);
    let layout = cache.layout().clone();
    let names = MethodLayout::of(&structs, encodings)?;
    let methods = MemoryMethods::new(&pages, MethodsLayout::of(&structs)?);
    let mut nmethods = Vec::new();
    cache.read(process.memory(), &pages, |found| {
        if let Found::Nmethod { blob, bytes, .. } = found {
            nmethods.extend(layout.read_nmethod(blob, bytes, &pages).ok());
        }
    })?;
    nmethods.sort_by_key(|n| n.blob.code_begin);
    let mut hits: HashMap<usize, HashMap<u32, u64>> = HashMap::new();
    for ip in ips.lines() {
        let Ok(ip) = u64::from_str_radix(ip.trim(), 16) else {
            continue;
        };
        let i = nmethods.partition_point(|n| n.blob.code_begin.0 <= ip);
        let Some(i) = i.checked_sub(1) else { continue };
        let n: &Nmethod = &nmethods[i];
        if ip < n.blob.code_end.0 && !n.pcs.is_empty() {
            let off = (ip - n.blob.code_begin.0) as u32;
            *hits.entry(i).or_default().entry(off).or_default() += 1;
        }
    }
    let mut weights = Weights::default();
    for option in &options {
        if let Some((name, value)) = option.split_once('=') {
            let value: f32 = match value.parse() {
                Ok(v) => v,
                Err(_) => continue,
            };
            match name {
                "record" => weights.record = value,
                "implicit" => weights.implicit = value,
                "trap" => weights.trap = value,
                "ool" => weights.out_of_line = value,
                "skip" => weights.skip = value,
                k if k.starts_with('k') => {
                    if let Ok(k) = k[1..].parse::<usize>() {
                        weights.kinds[k] = value
                    }
                }
                "receiver" => weights.receiver = value,
                "rarity" => weights.rarity = value,
                "signs" => weights.signs = value,
                "forward" => weights.forward = value,
                "within" => weights.within = value,
                "enter" => weights.enter = value,
                "leave" => weights.leave = value,
                "jump" => weights.jump = value,
                "apart" => weights.apart = value,
                "guess" => weights.guess = value,
                "depth" => weights.limits.depth = value as usize,
                "size" => weights.limits.size = value as u32,
                "targets" => weights.limits.targets = value as usize,
                "steps" => weights.limits.steps = value as usize,
                _ => {}
            }
        }
    }
    let mut infos: HashMap<Avma, Option<MethodInfo>> = HashMap::new();
    let mut line_of = |f: Option<&Frame>| -> Option<(Avma, u32)> {
        let f = f?;
        let info = infos
            .entry(f.method)
            .or_insert_with(|| names.read(&pages, f.method).ok())
            .as_ref()?;
        let i = info
            .lines
            .partition_point(|l| i64::from(l.from.0) <= i64::from(f.bci.max(0)));
        Some((
            f.method,
            i.checked_sub(1)
                .and_then(|i| info.lines.get(i))
                .map_or(0, |l| l.line),
        ))
    };
    let mut scores: Vec<(&str, Score)> = vec![
        ("next", Score::default()),
        ("implicit", Score::default()),
        ("outermost", Score::default()),
        ("evidence", Score::default()),
        ("evidence exact", Score::default()),
        ("evidence on full", Score::default()),
        ("clean: next", Score::default()),
        ("clean: implicit", Score::default()),
        ("clean: outermost", Score::default()),
        ("clean: evidence", Score::default()),
        ("clean: exact", Score::default()),
        ("clean: all ref=next=prev", Score::default()),
    ];
    let (mut stale_hits, mut stale_void, mut wrong_refs) = (0, 0, 0);
    let mut infos2: HashMap<Avma, Option<MethodInfo>> = HashMap::new();
    let (mut in_tree, mut total, mut full_records, mut kept_records) = (0, 0, 0, 0);
    let mut kinds: HashMap<&str, u64> = HashMap::new();
    let mut took = std::time::Duration::ZERO;
    let mut code_bytes = 0;
    let mut wrong: HashMap<(usize, u32), u64> = HashMap::new();
    for (&i, offsets) in &hits {
        let full = &nmethods[i];
        let low = reduced(full);
        let clean = cleaned(full);
        let ends = ending(full);
        let stale = stale(full);
        full_records += full.pcs.len();
        kept_records += low.pcs.len();
        let _ = evidence::pieces(&low, &methods, &weights);
        let began = Instant::now();
        let map = evidence::pieces(&low, &methods, &weights);
        took += began.elapsed();
        code_bytes += low.code.len();
        let known: std::collections::HashSet<Vec<(Avma, i32)>> = low
            .pcs
            .iter()
            .flat_map(|p| {
                let c = low.chain(p.scope).unwrap_or_default();
                (0..c.len()).map(|k| path_of(&c[k..])).collect::<Vec<_>>()
            })
            .collect();
        for (&off, &n) in offsets {
            let truth = next_record(full, off);
            if truth.is_empty() {
                continue;
            }
            let is_stale = stale.as_ref() == Some(&truth);
            let next = next_record(&clean, off);
            let prev = clean
                .pcs
                .iter()
                .rev()
                .find(|p| (p.pc as u32) < off)
                .map(|p| full.chain(p.scope).unwrap_or_default())
                .unwrap_or_default();
            let same = next.first().map(|f| f.method) == prev.first().map(|f| f.method);
            let mut clean_truth = if is_stale {
                if same {
                    Some(next.clone())
                } else {
                    stale_void += n;
                    None
                }
            } else {
                Some(truth.clone())
            };
            if let Some(t) = &clean_truth {
                let code = t.first().and_then(|f| {
                    infos_get(&mut infos2, &names, &pages, f.method).and_then(|i| {
                        usize::try_from(f.bci)
                            .ok()
                            .and_then(|b| i.bytecodes.get(b).copied())
                    })
                });
                if disproved(full, ends.get(&off), code, t) {
                    wrong_refs += n;
                    clean_truth = None;
                }
            }
            stale_hits += if is_stale { n } else { 0 };
            total += n;
            if known.contains(&path_of(&truth)) {
                in_tree += n
            } else if known.contains(&path_of(&truth[1..])) {
                *kinds.entry("child of known").or_default() += n
            } else if truth.len() > 2 && known.contains(&path_of(&truth[2..])) {
                *kinds.entry("grandchild").or_default() += n
            } else {
                *kinds.entry("deeper").or_default() += n
            }
            let evi = map.at(off.saturating_sub(1));
            let full_next = truth.clone();
            let answers = [
                next_record(&low, off),
                with_implicit(&low, off),
                vec![Frame {
                    method: full.method,
                    bci: i32::MAX,
                }],
                evi.map(|(_, c)| c.to_vec()).unwrap_or_default(),
            ];
            if let Some(truth) = &clean_truth {
                let mut judge = |score: &mut Score, answer: &[Frame]| {
                    let m = answer.first().map(|f| f.method) == truth.first().map(|f| f.method);
                    let c = path_of(answer) == path_of(truth);
                    let l = m && line_of(answer.first()) == line_of(truth.first());
                    score.add(n, m, c, l, m && answer.first() == truth.first());
                    m
                };
                for (k, answer) in answers.iter().enumerate() {
                    let good = judge(&mut scores[6 + k].1, answer);
                    if k == 3 && !good {
                        *wrong.entry((i, off)).or_default() += n
                    }
                    if k == 3 && same {
                        judge(&mut scores[11].1, answer);
                    }
                }
                if let Some((p, c)) = evi {
                    if p.exactness == Exactness::Exact
                        && !judge(&mut scores[10].1, c)
                        && options.iter().any(|o| o == "exact")
                    {
                        *wrong.entry((i, off)).or_default() += 1000 * n
                    }
                }
            }
            let mut judge = |score: &mut Score, answer: &[Frame]| {
                let m = answer.first().map(|f| f.method) == truth.first().map(|f| f.method);
                let c = path_of(answer) == path_of(&truth);
                let l = m && line_of(answer.first()) == line_of(truth.first());
                let b = m && answer.first() == truth.first();
                score.add(n, m, c, l, b);
                m
            };
            let _ = full_next;
            for (k, answer) in answers.iter().enumerate() {
                judge(&mut scores[k].1, answer);
            }
            if let Some((p, c)) = evi {
                if p.exactness == Exactness::Exact {
                    judge(&mut scores[4].1, c);
                }
            }
        }
    }
    let lv = |l: i8| {
        hits.iter()
            .filter(|(i, _)| nmethods[**i].level == l)
            .map(|(_, o)| o.values().sum::<u64>())
            .sum::<u64>()
    };
    println!(
        "{total} samples in {} nmethods (levels 1-4: {} {} {} {}), records {full_records} -> {kept_records}; innermost recorded: {:.1}%  {:?}; {took:?} for {code_bytes} bytes",
        hits.len(),
        lv(1),
        lv(2),
        lv(3),
        lv(4),
        100.0 * in_tree as f64 / total as f64,
        kinds
            .iter()
            .map(|(k, v)| format!("{k} {:.1}%", 100.0 * *v as f64 / total as f64))
            .collect::<Vec<_>>()
    );
    if options.iter().any(|o| o == "score") {
        let s = scores[9].1;
        println!(
            "SCORE {} {} {} {}",
            s.all, s.method, s.bci, scores[3].1.method
        );
    }
    println!(
        "  reference stale {:.1}%, void {:.1}%, disproved {:.1}%",
        100.0 * stale_hits as f64 / total as f64,
        100.0 * stale_void as f64 / total as f64,
        100.0 * wrong_refs as f64 / total as f64
    );
    for (name, score) in &scores {
        if score.all > 0 {
            score.show(name);
        }
    }
    let mut name = |m: Avma| {
        infos
            .entry(m)
            .or_insert_with(|| names.read(&pages, m).ok())
            .as_ref()
            .map(|i| format!("{}.{}", i.class.rsplit('/').next().unwrap_or(""), i.name))
            .unwrap_or_default()
    };
    if options.iter().any(|o| o == "stale") {
        for (i, offsets) in &hits {
            let full = &nmethods[*i];
            let total: u64 = offsets.values().sum();
            if total < 20 {
                continue;
            }
            let mut by: HashMap<Vec<Frame>, (u64, u64)> = HashMap::new();
            for p in &full.pcs {
                if full.scope(p.scope).is_ok_and(|s| s.values == [0; 3]) {
                    by.entry(full.chain(p.scope).unwrap_or_default())
                        .or_default()
                        .0 += 1;
                }
            }
            for (off, n) in offsets {
                if let Some(x) = by.get_mut(&next_record(full, *off)) {
                    x.1 += n
                }
            }
            let all: u64 = by.values().map(|x| x.0).sum();
            let mut by: Vec<_> = by.into_iter().collect();
            by.sort_by_key(|x| std::cmp::Reverse(x.1.0));
            println!(
                "{:x} {} level {} samples {total} dns records {all}",
                full.blob.code_begin.0,
                name(full.method),
                full.level
            );
            for (c, (r, n)) in by.iter().take(3) {
                println!(
                    "     {r:4} records {n:5} samples {}",
                    c.iter()
                        .take(4)
                        .map(|f| format!("{}@{}", name(f.method), f.bci))
                        .collect::<Vec<_>>()
                        .join(" < ")
                );
            }
        }
    }
    if options.iter().any(|o| o == "wrong") {
        let mut wrong: Vec<_> = wrong.into_iter().collect();
        wrong.sort_by_key(|w| std::cmp::Reverse(w.1));
        for ((i, off), n) in wrong.iter().take(40) {
            let full = &nmethods[*i];
            let low = reduced(full);
            let map = evidence::pieces(&low, &methods, &weights);
            let mut show = |c: &[Frame]| {
                c.iter()
                    .take(4)
                    .map(|f| format!("{}@{}", name(f.method), f.bci))
                    .collect::<Vec<_>>()
                    .join(" < ")
            };
            println!(
                "{n:5} {:x}+{off:x} level {}\n      truth {}\n      ours  {}",
                full.blob.code_begin.0,
                full.level,
                show(&next_record(&cleaned(full), *off)),
                show(
                    map.at(off.saturating_sub(1))
                        .map(|x| x.1)
                        .unwrap_or_default()
                )
            );
        }
    }
    if let Some(at) = options.iter().find_map(|o| o.strip_prefix("dump:")) {
        let at = u64::from_str_radix(at, 16)?;
        for (i, offsets) in &hits {
            let full = &nmethods[*i];
            if full.blob.code_begin.0 != at {
                continue;
            }
            std::fs::write("/tmp/ev/code.bin", &full.code)?;
            let low = reduced(full);
            let map = evidence::pieces(&low, &methods, &weights);
            let mut show = |c: &[Frame]| {
                c.iter()
                    .take(3)
                    .map(|f| format!("{}@{}", name(f.method), f.bci))
                    .collect::<Vec<_>>()
                    .join(" < ")
            };
            for off in 0..full.code.len() as u32 {
                let rec = full.pcs.iter().any(|p| p.pc as u32 == off);
                let lrec = low.pcs.iter().any(|p| p.pc as u32 == off);
                let imp = full.implicit.iter().any(|p| p.0 == off);
                println!(
                    "DUMP {off:x}\t{}{}{}\t{}\t{}\t{}",
                    if lrec {
                        "R"
                    } else if rec {
                        "r"
                    } else {
                        " "
                    },
                    if imp { "I" } else { " " },
                    "",
                    offsets.get(&off).copied().unwrap_or(0),
                    show(&next_record(full, off)),
                    map.at(off)
                        .map(|x| format!(
                            "{}{}",
                            if x.0.exactness == Exactness::Exact {
                                "!"
                            } else {
                                ""
                            },
                            show(x.1)
                        ))
                        .unwrap_or_default()
                );
            }
        }
    }
    Ok(())
}

fn infos_get<'a>(
    infos: &'a mut HashMap<Avma, Option<MethodInfo>>,
    names: &MethodLayout,
    pages: &Pages<'_>,
    method: Avma,
) -> Option<&'a MethodInfo> {
    infos
        .entry(method)
        .or_insert_with(|| names.read(pages, method).ok())
        .as_ref()
}

/// The methods of a chain and where each was inlined, without the innermost bytecode.
fn path_of(chain: &[Frame]) -> Vec<(Avma, i32)> {
    chain
        .iter()
        .enumerate()
        .map(|(k, f)| (f.method, if k == 0 { 0 } else { f.bci }))
        .collect()
}
