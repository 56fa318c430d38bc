//! Instructions and labels in order; jumps get their lengths at the end.

use super::bytecodes::Instruction;
use super::encoder::encode;

/// A place to jump to.
#[derive(Clone, Copy)]
pub struct Label(usize);

enum Item {
    Instruction(Instruction),
    /// Makes the jump from its distance.
    Jump(fn(i32) -> Instruction, Label),
    Label(Label),
    Line(u32),
}

impl Item {
    fn least_length(&self) -> usize {
        match self {
            Self::Instruction(_) | Self::Jump(..) => 1,
            Self::Label(_) | Self::Line(_) => 0,
        }
    }
}

/// Collects code. Drops unreachable instructions.
pub struct Assembler {
    items: Vec<Item>,
    /// Per label: whether a jump targets it.
    targeted: Vec<bool>,
    reachable: bool,
}

/// Bytecodes, and offsets with their lines.
pub type Assembled = (Vec<u8>, Vec<(usize, u32)>);

impl Assembler {
    pub fn new() -> Self {
        Self {
            items: Vec::new(),
            targeted: Vec::new(),
            reachable: true,
        }
    }

    pub fn emit(&mut self, instruction: Instruction) {
        self.add(Item::Instruction(instruction));
        self.reachable &= !instruction.is_return();
    }

    pub fn label(&mut self) -> Label {
        self.targeted.push(false);
        Label(self.targeted.len() - 1)
    }

    /// Binds a label here.
    pub fn bind(&mut self, label: Label) {
        self.reachable |= self.targeted[label.0];
        self.items.push(Item::Label(label));
    }

    pub fn jump(&mut self, label: Label) {
        self.add_jump(Instruction::Jump, label);
        self.reachable = false;
    }

    pub fn jump_if(&mut self, condition: bool, label: Label) {
        if condition {
            self.add_jump(Instruction::JumpTrue, label);
        } else {
            self.add_jump(Instruction::JumpFalse, label);
        }
    }

    pub fn line(&mut self, line: u32) {
        self.add(Item::Line(line));
    }

    fn add_jump(&mut self, jump: fn(i32) -> Instruction, label: Label) {
        self.targeted[label.0] |= self.reachable;
        self.add(Item::Jump(jump, label));
    }

    fn add(&mut self, item: Item) {
        if self.reachable {
            self.items.push(item);
        }
    }

    /// Returns the code. `None`: an operand or a distance exceeds its range.
    pub fn finish(self) -> Option<Assembled> {
        // Lengths only grow, so the loop ends.
        let mut lengths: Vec<usize> = self.items.iter().map(Item::least_length).collect();
        loop {
            let labels = self.labels(&lengths);
            let mut bytecodes = Vec::new();
            let mut lines: Vec<(usize, u32)> = Vec::new();
            let mut end = 0;
            let mut settled = true;
            for (item, length) in self.items.iter().zip(&mut lengths) {
                let start = bytecodes.len();
                match item {
                    Item::Instruction(instruction) => encode(*instruction, &mut bytecodes)?,
                    Item::Jump(jump, label) => {
                        let from = i32::try_from(end + *length).ok()?;
                        let to = i32::try_from(labels[label.0]).ok()?;
                        encode(jump(to - from), &mut bytecodes)?;
                    }
                    Item::Label(_) => {}
                    Item::Line(line) => add_line(&mut lines, start, *line),
                }
                let now = bytecodes.len() - start;
                end += *length;
                settled &= now == *length;
                *length = now;
            }
            if settled {
                return Some((bytecodes, lines));
            }
        }
    }

    /// Offsets of the labels.
    fn labels(&self, lengths: &[usize]) -> Vec<usize> {
        let mut labels = vec![0; self.targeted.len()];
        let mut offset = 0;
        for (item, length) in self.items.iter().zip(lengths) {
            if let Item::Label(label) = item {
                labels[label.0] = offset;
            }
            offset += length;
        }
        labels
    }
}

fn add_line(lines: &mut Vec<(usize, u32)>, offset: usize, line: u32) {
    if let Some(last) = lines.last_mut() {
        if last.1 == line {
            return;
        }
        if last.0 == offset {
            last.1 = line;
            return;
        }
    }
    lines.push((offset, line));
}
