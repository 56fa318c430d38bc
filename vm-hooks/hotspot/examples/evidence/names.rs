//! How much two answers agree, and what is needed to tell: lines, bytecodes, names.

use std::collections::HashMap;

use vmscope_hotspot::code::Frame;
use vmscope_hotspot::method::{MethodInfo, MethodLayout};
use vmscope_process::Memory;
use vmscope_records::Avma;

use super::reference;

/// Number of samples, total and by kind of agreement.
#[derive(Default, Clone, Copy)]
pub struct Score {
    pub all: u64,
    pub method: u64,
    pub chain: u64,
    pub line: u64,
    pub bci: u64,
}

impl Score {
    pub fn show(&self, name: &str) {
        if self.all == 0 {
            return;
        }
        let percent = |part: u64| 100.0 * part as f64 / self.all as f64;
        let [method, chain] = [percent(self.method), percent(self.chain)];
        let [line, bci] = [percent(self.line), percent(self.bci)];
        println!(
            "  {name:34} {:6} method {method:5.1} chain {chain:5.1} line {line:5.1} bci {bci:5.1}",
            self.all
        );
    }
}

/// Names, lines and bytecodes of methods.
pub struct Names<'a> {
    pub layout: MethodLayout,
    pub memory: &'a dyn Memory,
    pub kept: HashMap<Avma, Option<MethodInfo>>,
}

impl Names<'_> {
    pub fn of(&mut self, method: Avma) -> Option<&MethodInfo> {
        let read = || self.layout.read(self.memory, method).ok();
        self.kept.entry(method).or_insert_with(read).as_ref()
    }

    pub fn line(&mut self, frame: Option<&Frame>) -> Option<(Avma, u32)> {
        let frame = frame?;
        let lines = &self.of(frame.method)?.lines;
        let behind =
            lines.partition_point(|line| i64::from(line.from.0) <= i64::from(frame.bci.max(0)));
        let line = behind.checked_sub(1).and_then(|at| lines.get(at));
        Some((frame.method, line.map_or(0, |line| line.line)))
    }

    pub fn bytecode(&mut self, frame: Option<&Frame>) -> Option<u8> {
        let frame = frame?;
        let bytecodes = &self.of(frame.method)?.bytecodes;
        bytecodes.get(usize::try_from(frame.bci).ok()?).copied()
    }

    pub fn show(&mut self, chain: &[Frame]) -> String {
        let mut shown = Vec::new();
        for frame in chain.iter().take(4) {
            let name = self.of(frame.method).map(|info| {
                let class = info.class.rsplit('/').next().unwrap_or_default();
                format!("{class}.{}", info.name)
            });
            shown.push(format!("{}@{}", name.unwrap_or_default(), frame.bci));
        }
        shown.join(" < ")
    }

    pub fn judge(
        &mut self,
        score: &mut Score,
        samples: u64,
        answer: &[Frame],
        truth: &[Frame],
    ) -> bool {
        let method = answer.first().map(|f| f.method) == truth.first().map(|f| f.method);
        let mut add = |slot: fn(&mut Score) -> &mut u64, agrees: bool| {
            *slot(score) += samples * u64::from(agrees);
        };
        add(|score| &mut score.all, true);
        add(|score| &mut score.method, method);
        add(
            |score| &mut score.chain,
            reference::path(answer) == reference::path(truth),
        );
        add(
            |score| &mut score.line,
            method && self.line(answer.first()) == self.line(truth.first()),
        );
        add(|score| &mut score.bci, answer.first() == truth.first());
        method
    }
}
