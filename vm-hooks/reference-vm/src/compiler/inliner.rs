//! Inlines messages with literal blocks as control structures.

use super::Literal;
use super::resolver::Resolver;
use super::tree::{Arm, Count, If, IfNil, Node, While};
use crate::syntax::SyntaxError;
use crate::syntax::ast::{Block, Expression, ExpressionKind, Message};
use num_bigint::{BigInt, Sign};

/// `expression` as a block literal with `num_args` arguments.
fn block(expression: &Expression, num_args: usize) -> Option<&Block> {
    match &expression.kind {
        ExpressionKind::Block(block) if block.arguments.len() == num_args => Some(block),
        _ => None,
    }
}

/// A block of `ifNotNil:`.
fn block_with_or_without(expression: &Expression) -> Option<&Block> {
    block(expression, 0).or_else(|| block(expression, 1))
}

type Inlined = Result<Option<Node>, SyntaxError>;

impl Resolver<'_> {
    /// The control structure of an inlinable message.
    pub(super) fn inlined(&mut self, receiver: &Expression, message: &Message) -> Inlined {
        if matches!(&receiver.kind, ExpressionKind::Variable(name) if name == "super") {
            return Ok(None);
        }
        let plain: Vec<&Block> = message
            .arguments
            .iter()
            .filter_map(|argument| block(argument, 0))
            .collect();
        match (message.selector.as_str(), plain.as_slice()) {
            ("ifTrue:", [yes]) => self.branch(receiver, Ok(yes), Err(Literal::Nil)),
            ("ifFalse:", [no]) => self.branch(receiver, Err(Literal::Nil), Ok(no)),
            ("ifTrue:ifFalse:", [yes, no]) | ("ifFalse:ifTrue:", [no, yes]) => {
                self.branch(receiver, Ok(yes), Ok(no))
            }
            ("and:", [other]) => self.branch(receiver, Ok(other), Err(Literal::False)),
            ("or:", [other]) => self.branch(receiver, Err(Literal::True), Ok(other)),
            ("timesRepeat:", [body]) => self.times(receiver, body, message),
            ("ifNil:" | "ifNotNil:" | "ifNil:ifNotNil:" | "ifNotNil:ifNil:", _) => {
                self.nil_test(receiver, message)
            }
            ("whileTrue:" | "whileFalse:" | "whileTrue" | "whileFalse" | "repeat", body) => {
                if body.len() != message.arguments.len() {
                    return Ok(None);
                }
                match block(receiver, 0) {
                    Some(condition) => self.loop_of(condition, message, body.first().copied()),
                    None => Ok(None),
                }
            }
            ("to:do:" | "to:by:do:", _) => self.count(receiver, message),
            _ => Ok(None),
        }
    }

    fn branch(
        &mut self,
        condition: &Expression,
        when_true: Result<&Block, Literal>,
        when_false: Result<&Block, Literal>,
    ) -> Inlined {
        let condition = self.expression(condition)?;
        Ok(Some(Node::If(Box::new(If {
            condition,
            when_true: self.arm(when_true)?,
            when_false: self.arm(when_false)?,
        }))))
    }

    fn arm(&mut self, arm: Result<&Block, Literal>) -> Result<Arm, SyntaxError> {
        Ok(match arm {
            Ok(block) => Arm::Body(self.inlined_body(block, false)?.1),
            Err(literal) => Arm::Constant(literal),
        })
    }

    fn nil_test(&mut self, value: &Expression, message: &Message) -> Inlined {
        let (when_nil, otherwise) = match (message.selector.as_str(), &*message.arguments) {
            ("ifNil:", [nil]) => (Some(block(nil, 0)), None),
            ("ifNotNil:", [other]) => (None, Some(block_with_or_without(other))),
            ("ifNil:ifNotNil:", [nil, other]) | ("ifNotNil:ifNil:", [other, nil]) => {
                (Some(block(nil, 0)), Some(block_with_or_without(other)))
            }
            _ => return Ok(None),
        };
        if when_nil == Some(None) || otherwise == Some(None) {
            return Ok(None);
        }
        let value = self.expression(value)?;
        Ok(Some(Node::IfNil(Box::new(IfNil {
            value,
            when_nil: match when_nil.flatten() {
                Some(block) => Some(self.inlined_body(block, false)?.1),
                None => None,
            },
            otherwise: match otherwise.flatten() {
                Some(block) => Some(self.inlined_body(block, false)?),
                None => None,
            },
        }))))
    }

    fn loop_of(&mut self, condition: &Block, message: &Message, body: Option<&Block>) -> Inlined {
        let condition = self.inlined_body(condition, true)?.1;
        if message.selector == "repeat" {
            return Ok(Some(Node::Repeat(condition)));
        }
        Ok(Some(Node::While(Box::new(While {
            condition,
            wanted: message.selector.starts_with("whileTrue"),
            body: match body {
                Some(body) => Some(self.inlined_body(body, true)?.1),
                None => None,
            },
        }))))
    }

    fn count(&mut self, first: &Expression, message: &Message) -> Inlined {
        let one = Literal::Integer(BigInt::from(1));
        let (limit, step, body) = match message.arguments.as_slice() {
            [limit, body] => (limit, one, body),
            [limit, step, body] => match &step.kind {
                ExpressionKind::Literal(step) => (limit, step.clone(), body),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let ascending = match &step {
            Literal::Integer(step) if step.sign() != Sign::NoSign => step.sign() == Sign::Plus,
            Literal::Float(step) if *step != 0.0 => *step > 0.0,
            _ => return Ok(None),
        };
        let Some(body) = block(body, 1) else {
            return Ok(None);
        };
        let first = self.expression(first)?;
        let limit = self.expression(limit)?;
        let limit_variable = match &limit {
            Node::Constant(Literal::Integer(_) | Literal::Float(_)) => None,
            _ => Some(self.hidden("limit", message.position)?),
        };
        let (Some(counter), body) = self.inlined_body(body, true)? else {
            return Ok(None);
        };
        Ok(Some(Node::Count(Box::new(Count {
            counter,
            first,
            limit,
            limit_variable,
            step,
            ascending,
            body,
            answers_limit: false,
        }))))
    }

    fn times(&mut self, limit: &Expression, body: &Block, message: &Message) -> Inlined {
        let limit = self.expression(limit)?;
        let limit_variable = match &limit {
            Node::Constant(Literal::Integer(_)) => None,
            _ => Some(self.hidden("limit", message.position)?),
        };
        let counter = self.hidden("counter", message.position)?;
        let body = self.inlined_body(body, true)?.1;
        Ok(Some(Node::Count(Box::new(Count {
            counter,
            first: Node::Constant(Literal::Integer(BigInt::from(1))),
            limit,
            limit_variable,
            step: Literal::Integer(BigInt::from(1)),
            ascending: true,
            body,
            answers_limit: true,
        }))))
    }
}
