//! Reimplements the class library methods used by generated programs.

use std::rc::Rc;

use super::evaluator::{Answer, Evaluator, discard};
use super::exceptions::exception;
use super::numbers::as_float;
use super::value::{Value, is_small};

impl<'a> Evaluator<'a> {
    /// Evaluates a method of the library.
    pub fn library(
        &mut self,
        receiver: Value<'a>,
        selector: &str,
        arguments: Vec<Value<'a>>,
    ) -> Answer<'a> {
        if let Some(result) = self.any(&receiver, selector, &arguments) {
            return result;
        }
        let result = match &receiver {
            Value::Boolean(value) => self.boolean(*value, selector, &arguments),
            Value::Integer(value) => self.integer(value, selector, &arguments),
            Value::Float(value) => self.float(*value, selector, &arguments),
            Value::String(_) | Value::Symbol(_) => self.text(&receiver, selector, &arguments),
            Value::Array(_) => Some(self.array(&receiver, selector, &arguments)),
            Value::Block(_) => self.closure(&receiver, selector, &arguments),
            Value::Exception(exception) => self.exception(exception, selector, &arguments),
            Value::Class(name) => self.class(name, selector, &arguments),
            _ => None,
        };
        result.unwrap_or_else(|| self.not_understood(&receiver, selector))
    }

    pub fn not_understood(&mut self, receiver: &Value<'a>, selector: &str) -> Answer<'a> {
        if matches!(receiver, Value::Float(_)) {
            return discard("the class of a Float");
        }
        let class = receiver.class_name();
        let text = format!("{class} does not understand #{selector}");
        self.raise("MessageNotUnderstood", &text)
    }

    /// Methods of all objects.
    fn any(
        &mut self,
        receiver: &Value<'a>,
        selector: &str,
        arguments: &[Value<'a>],
    ) -> Option<Answer<'a>> {
        let is_nil = matches!(receiver, Value::Nil);
        Some(match (selector, arguments) {
            ("yourself", []) => Ok(receiver.clone()),
            ("initialize", []) => Ok(receiver.clone()),
            ("isNil", []) => Ok(Value::Boolean(is_nil)),
            ("notNil", []) => Ok(Value::Boolean(!is_nil)),
            ("printString", []) => Ok(Value::string(&receiver.print())),
            ("displayString", []) => Ok(Value::string(&receiver.display())),
            ("class", []) if matches!(receiver, Value::Float(_)) => discard("class of a Float"),
            ("class", []) => Ok(Value::Class(receiver.class_name())),
            ("ifNil:", [block]) if is_nil => self.block(block, Vec::new()),
            ("ifNil:", [_]) => Ok(receiver.clone()),
            ("ifNotNil:", [_]) if is_nil => Ok(Value::Nil),
            ("ifNotNil:", [block]) => self.cull(block, receiver),
            ("ifNil:ifNotNil:", [nil, _]) | ("ifNotNil:ifNil:", [_, nil]) if is_nil => {
                self.block(nil, Vec::new())
            }
            ("ifNil:ifNotNil:", [_, block]) | ("ifNotNil:ifNil:", [block, _]) => {
                self.cull(block, receiver)
            }
            ("==", [other]) => identical(receiver, other),
            ("~~", [other]) => not(identical(receiver, other)),
            ("=", [other]) => equal(receiver, other),
            ("~=", [other]) => not(equal(receiver, other)),
            ("perform:", [Value::Symbol(name)]) => self.send(receiver.clone(), name, Vec::new()),
            ("perform:with:", [Value::Symbol(name), first]) => {
                self.send(receiver.clone(), name, vec![first.clone()])
            }
            ("perform:with:with:", [Value::Symbol(name), first, second]) => {
                self.send(receiver.clone(), name, vec![first.clone(), second.clone()])
            }
            _ => return None,
        })
    }

    fn cull(&mut self, block: &Value<'a>, argument: &Value<'a>) -> Answer<'a> {
        match block {
            Value::Block(closure) if closure.block.arguments.is_empty() => {
                self.block(block, Vec::new())
            }
            _ => self.block(block, vec![argument.clone()]),
        }
    }

    /// Evaluates a loop's block; counts as one message.
    pub fn block_step(&mut self, block: &Value<'a>, arguments: Vec<Value<'a>>) -> Answer<'a> {
        match block {
            Value::Block(_) if arguments.is_empty() => self.send(block.clone(), "value", arguments),
            Value::Block(_) => self.send(block.clone(), "value:", arguments),
            _ => discard("a loop without a block"),
        }
    }

    fn closure(
        &mut self,
        receiver: &Value<'a>,
        selector: &str,
        arguments: &[Value<'a>],
    ) -> Option<Answer<'a>> {
        Some(match (selector, arguments) {
            ("value" | "value:" | "value:value:" | "value:value:value:", _) => {
                self.block(receiver, arguments.to_vec())
            }
            ("whileTrue:", [body]) => self.while_loop(receiver, Some(body), true),
            ("whileFalse:", [body]) => self.while_loop(receiver, Some(body), false),
            ("whileTrue", []) => self.while_loop(receiver, None, true),
            ("whileFalse", []) => self.while_loop(receiver, None, false),
            ("on:do:", [Value::Class(class), action]) => self.on_do(receiver, class, action),
            ("ensure:", [block]) => self.guarded(receiver, block, true),
            ("ifCurtailed:", [block]) => self.guarded(receiver, block, false),
            _ => return None,
        })
    }

    fn while_loop(
        &mut self,
        condition: &Value<'a>,
        body: Option<&Value<'a>>,
        wanted: bool,
    ) -> Answer<'a> {
        loop {
            let mut value = self.block_step(condition, Vec::new())?;
            while !matches!(value, Value::Boolean(_)) {
                value = self.not_boolean(&value)?;
            }
            if !matches!(value, Value::Boolean(value) if value == wanted) {
                return Ok(Value::Nil);
            }
            if let Some(body) = body {
                self.block(body, Vec::new())?;
            }
        }
    }

    fn class(&mut self, name: &str, selector: &str, arguments: &[Value<'a>]) -> Option<Answer<'a>> {
        Some(match (name, selector, arguments) {
            ("Transcript", "showln:", [text]) => {
                self.output += &text.display();
                self.output.push('\n');
                Ok(Value::Class(name.to_owned()))
            }
            ("Array", "new:", [Value::Integer(size)]) => {
                let size = usize::try_from(size).unwrap_or(0);
                Ok(Value::array(vec![Value::Nil; size]))
            }
            ("Array", "new:withAll:", [Value::Integer(size), value]) => {
                let size = usize::try_from(size).unwrap_or(0);
                Ok(Value::array(vec![value.clone(); size]))
            }
            (_, "name", []) => Ok(Value::Symbol(name.to_owned())),
            _ if self.inherits(name, "Exception") => {
                let text = arguments.first().map(Value::display);
                let exception = exception(name, text.as_deref(), Value::Nil);
                match selector {
                    "new" => Ok(Value::Exception(exception)),
                    "signal" | "signal:" => self.signal(&exception),
                    _ => return None,
                }
            }
            (_, "new", []) => self.new_object(name),
            _ => return None,
        })
    }
}

fn not(answer: Answer<'_>) -> Answer<'_> {
    match answer? {
        Value::Boolean(value) => Ok(Value::Boolean(!value)),
        other => Ok(other),
    }
}

fn identical<'a>(left: &Value<'a>, right: &Value<'a>) -> Answer<'a> {
    Ok(Value::Boolean(match (left, right) {
        (Value::Nil, Value::Nil) => true,
        (Value::Boolean(left), Value::Boolean(right)) => left == right,
        (Value::Integer(left), Value::Integer(right)) => {
            if !is_small(left) || !is_small(right) {
                return discard("the identity of LargeIntegers");
            }
            left == right
        }
        (Value::Float(_), Value::Float(_)) => return discard("the identity of Floats"),
        (Value::Character(left), Value::Character(right)) => left == right,
        (Value::Symbol(left), Value::Symbol(right)) => left == right,
        (Value::String(left), Value::String(right)) => Rc::ptr_eq(left, right),
        (Value::Array(left), Value::Array(right)) => Rc::ptr_eq(left, right),
        (Value::Block(left), Value::Block(right)) if Rc::ptr_eq(left, right) => true,
        (Value::Block(_), Value::Block(_)) => return discard("the identity of blocks"),
        (Value::Object(left), Value::Object(right)) => Rc::ptr_eq(left, right),
        (Value::Exception(left), Value::Exception(right)) => Rc::ptr_eq(left, right),
        (Value::Class(left), Value::Class(right)) => left == right,
        _ => false,
    }))
}

fn equal<'a>(left: &Value<'a>, right: &Value<'a>) -> Answer<'a> {
    Ok(Value::Boolean(match (left, right) {
        (Value::Integer(left), Value::Integer(right)) => left == right,
        (Value::Float(left), Value::Float(right)) => left == right,
        (Value::Integer(left), Value::Float(right)) => as_float(left) == *right,
        (Value::Float(left), Value::Integer(right)) => *left == as_float(right),
        (Value::String(left), Value::String(right)) => *left.borrow() == *right.borrow(),
        (Value::String(_), Value::Symbol(_)) | (Value::Symbol(_), Value::String(_)) => {
            return discard("a String and a Symbol are compared");
        }
        (Value::Array(left), Value::Array(right)) => {
            let (left, right) = (left.borrow().clone(), right.borrow().clone());
            if left.len() != right.len() {
                return Ok(Value::Boolean(false));
            }
            for (left, right) in left.iter().zip(&right) {
                if let Value::Boolean(false) = equal(left, right)? {
                    return Ok(Value::Boolean(false));
                }
            }
            true
        }
        _ => return identical(left, right),
    }))
}
