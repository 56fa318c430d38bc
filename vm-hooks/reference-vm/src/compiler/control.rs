//! Code of control structures.

use super::bytecodes::{GREATER_OR_EQUAL, IDENTICAL, Instruction, LESS_OR_EQUAL, PLUS};
use super::frame::{POP_INTO, PUSH, STORE_INTO};
use super::generator::{Generated, Generator};
use super::tree::{Arm, Body, Count, If, IfNil, Place, While};

impl Generator<'_> {
    fn arm(&mut self, arm: &Arm, wanted: bool) -> Generated {
        match arm {
            Arm::Body(body) => self.body(body, wanted),
            Arm::Constant(literal) if wanted => self.constant(literal),
            Arm::Constant(_) => Ok(()),
        }
    }

    pub(super) fn branch(&mut self, node: &If, wanted: bool) -> Generated {
        self.value(&node.condition)?;
        // The constant arm comes last.
        let (first, second, skip) = match node.when_true {
            Arm::Body(_) => (&node.when_true, &node.when_false, false),
            Arm::Constant(_) => (&node.when_false, &node.when_true, true),
        };
        let other = self.code.label();
        self.code.jump_if(skip, other);
        self.arm(first, wanted)?;
        if !wanted && matches!(second, Arm::Constant(_)) {
            self.code.bind(other);
            return Ok(());
        }
        let end = self.code.label();
        self.code.jump(end);
        self.code.bind(other);
        self.arm(second, wanted)?;
        self.code.bind(end);
        Ok(())
    }

    fn is_nil(&mut self) {
        self.emit(Instruction::PushNil);
        self.emit(Instruction::SendSpecial(IDENTICAL));
    }

    pub(super) fn nil_test(&mut self, node: &IfNil, wanted: bool) -> Generated {
        self.value(&node.value)?;
        let end = self.code.label();
        let Some((argument, otherwise)) = &node.otherwise else {
            // ifNil: the value stays on the stack.
            if wanted {
                self.emit(Instruction::Dup);
            }
            self.is_nil();
            self.code.jump_if(false, end);
            if wanted {
                self.emit(Instruction::Pop);
            }
            if let Some(body) = &node.when_nil {
                self.body(body, wanted)?;
            }
            self.code.bind(end);
            return Ok(());
        };
        if let Some(argument) = argument {
            self.access(&STORE_INTO, &Place::Variable(*argument))?;
        }
        self.is_nil();
        let nil = self.code.label();
        self.code.jump_if(true, nil);
        self.body(otherwise, wanted)?;
        if wanted || node.when_nil.is_some() {
            self.code.jump(end);
        }
        self.code.bind(nil);
        match &node.when_nil {
            Some(body) => self.body(body, wanted)?,
            None => self.nil_if(wanted)?,
        }
        self.code.bind(end);
        Ok(())
    }

    pub(super) fn repeat(&mut self, body: &Body) -> Generated {
        let start = self.code.label();
        self.code.bind(start);
        self.body(body, false)?;
        self.code.jump(start);
        Ok(())
    }

    pub(super) fn while_loop(&mut self, node: &While) -> Generated {
        let start = self.code.label();
        let end = self.code.label();
        self.code.bind(start);
        self.body(&node.condition, true)?;
        self.code.jump_if(!node.wanted, end);
        if let Some(body) = &node.body {
            self.body(body, false)?;
        }
        self.code.jump(start);
        self.code.bind(end);
        Ok(())
    }

    pub(super) fn count(&mut self, node: &Count, wanted: bool) -> Generated {
        let counter = Place::Variable(node.counter);
        self.value(&node.first)?;
        if wanted && !node.answers_limit {
            self.access(&STORE_INTO, &counter)?;
        } else {
            self.access(&POP_INTO, &counter)?;
        }
        let keep_limit = wanted && node.answers_limit;
        let limit_variable = node.limit_variable.map(Place::Variable);
        if limit_variable.is_some() || keep_limit {
            self.value(&node.limit)?;
        }
        match &limit_variable {
            Some(limit) if keep_limit => self.access(&STORE_INTO, limit)?,
            Some(limit) => self.access(&POP_INTO, limit)?,
            None => {}
        }
        let start = self.code.label();
        let end = self.code.label();
        self.code.bind(start);
        self.access(&PUSH, &counter)?;
        match &limit_variable {
            Some(limit) => self.access(&PUSH, limit)?,
            None => self.value(&node.limit)?,
        }
        self.emit(Instruction::SendSpecial(if node.ascending {
            LESS_OR_EQUAL
        } else {
            GREATER_OR_EQUAL
        }));
        self.code.jump_if(false, end);
        self.body(&node.body, false)?;
        self.access(&PUSH, &counter)?;
        self.constant(&node.step)?;
        self.emit(Instruction::SendSpecial(PLUS));
        self.access(&POP_INTO, &counter)?;
        self.code.jump(start);
        self.code.bind(end);
        Ok(())
    }
}
