//! Library methods of Strings, Symbols and Arrays.

use super::evaluator::{Answer, Evaluator, Unwind, discard};
use super::value::{Value, text_of};

impl<'a> Evaluator<'a> {
    pub fn text(
        &mut self,
        receiver: &Value<'a>,
        selector: &str,
        arguments: &[Value<'a>],
    ) -> Option<Answer<'a>> {
        let bytes = match receiver {
            Value::String(bytes) => bytes.borrow().clone(),
            other => other.display().into_bytes(),
        };
        let text = text_of(&bytes);
        Some(match (selector, arguments) {
            ("size", []) => Ok(Value::integer(bytes.len())),
            ("asSymbol", []) => Ok(Value::Symbol(text)),
            ("asString", []) => match receiver {
                Value::Symbol(text) => Ok(Value::string(text)),
                _ => Ok(receiver.clone()),
            },
            ("copy", []) if matches!(receiver, Value::String(_)) => Ok(Value::string(&text)),
            ("reversed", []) => Ok(Value::string(&text.chars().rev().collect::<String>())),
            ("asUppercase", []) => Ok(Value::string(&text.to_ascii_uppercase())),
            (",", [other @ (Value::String(_) | Value::Symbol(_))]) => {
                Ok(Value::string(&(text + &other.display())))
            }
            ("<", [other @ (Value::String(_) | Value::Symbol(_))]) => {
                Ok(Value::Boolean(bytes < other.display().into_bytes()))
            }
            ("includes:", [Value::Character(code)]) => Ok(Value::Boolean(
                bytes.iter().any(|byte| u32::from(*byte) == *code),
            )),
            ("at:", [index]) => match self.index(receiver, index, bytes.len()) {
                Ok(Ok(at)) => Ok(Value::Character(bytes[at].into())),
                Ok(Err(answer)) => Ok(answer),
                Err(unwind) => Err(unwind),
            },
            ("at:put:", [index, value @ Value::Character(code)]) => {
                let Value::String(own) = receiver else {
                    return Some(discard("a Symbol is written to"));
                };
                match self.index(receiver, index, bytes.len()) {
                    Ok(Ok(at)) => {
                        own.borrow_mut()[at] = u8::try_from(*code).unwrap_or(b'?');
                        Ok(value.clone())
                    }
                    Ok(Err(answer)) => Ok(answer),
                    Err(unwind) => Err(unwind),
                }
            }
            _ => return Some(discard("an unusual message to a String")),
        })
    }

    /// A 0-based index. For a wrong index: the value that resumed the error.
    fn index(
        &mut self,
        receiver: &Value<'a>,
        index: &Value<'a>,
        size: usize,
    ) -> Result<Result<usize, Value<'a>>, Unwind<'a>> {
        let Value::Integer(index) = index else {
            let answer = self.raise("InvalidArgument", "only integers are indices")?;
            return Ok(Err(answer));
        };
        match usize::try_from(index) {
            Ok(at) if (1..=size).contains(&at) => Ok(Ok(at - 1)),
            _ => {
                let text = format!("{index} is out of bounds of {}", receiver.class_name());
                Ok(Err(self.raise("SubscriptOutOfBounds", &text)?))
            }
        }
    }

    pub fn array(
        &mut self,
        receiver: &Value<'a>,
        selector: &str,
        arguments: &[Value<'a>],
    ) -> Answer<'a> {
        let Value::Array(own) = receiver else {
            return discard("no Array");
        };
        // Library loops read each element at its own iteration.
        let size = own.borrow().len();
        let element = |at: usize| own.borrow()[at].clone();
        match (selector, arguments) {
            ("size", []) => Ok(Value::integer(size)),
            ("isEmpty", []) => Ok(Value::Boolean(size == 0)),
            ("copy", []) => Ok(Value::array(own.borrow().clone())),
            ("reversed", []) => Ok(Value::array(own.borrow().iter().rev().cloned().collect())),
            ("first", []) => self.at(receiver, 1),
            ("last", []) => self.at(receiver, size),
            (",", [Value::Array(other)]) => {
                let mut elements = own.borrow().clone();
                elements.extend(other.borrow().iter().cloned());
                Ok(Value::array(elements))
            }
            ("at:", [index]) => match self.index(receiver, index, size)? {
                Ok(at) => Ok(element(at)),
                Err(answer) => Ok(answer),
            },
            ("at:put:", [index, value]) => match self.index(receiver, index, size)? {
                Ok(at) => {
                    own.borrow_mut()[at] = value.clone();
                    Ok(value.clone())
                }
                Err(answer) => Ok(answer),
            },
            ("do:", [block]) => {
                for at in 0..size {
                    self.send(block.clone(), "value:", vec![element(at)])?;
                }
                Ok(receiver.clone())
            }
            ("reverseDo:", [block]) => {
                for at in (0..size).rev() {
                    self.send(block.clone(), "value:", vec![element(at)])?;
                }
                Ok(receiver.clone())
            }
            ("doWithIndex:", [block]) => {
                for at in 0..size {
                    let arguments = vec![element(at), Value::integer(at + 1)];
                    self.send(block.clone(), "value:value:", arguments)?;
                }
                Ok(receiver.clone())
            }
            ("collect:", [block]) => {
                let mut result = Vec::new();
                for at in 0..size {
                    result.push(self.send(block.clone(), "value:", vec![element(at)])?);
                }
                Ok(Value::array(result))
            }
            ("select:", [block]) => {
                let mut result = Vec::new();
                for at in 0..size {
                    if self.test(block, &element(at))? {
                        result.push(element(at));
                    }
                }
                Ok(Value::array(result))
            }
            ("anySatisfy:", [block]) => {
                for at in 0..size {
                    if self.test(block, &element(at))? {
                        return Ok(Value::Boolean(true));
                    }
                }
                Ok(Value::Boolean(false))
            }
            ("detect:ifNone:", [block, none]) => {
                for at in 0..size {
                    let each = element(at);
                    if self.test(block, &each)? {
                        return Ok(each);
                    }
                }
                self.block(none, Vec::new())
            }
            ("inject:into:", [first, block]) => {
                let mut value = first.clone();
                for at in 0..size {
                    value = self.send(block.clone(), "value:value:", vec![value, element(at)])?;
                }
                Ok(value)
            }
            _ => discard("an unusual message to an Array"),
        }
    }

    fn at(&mut self, receiver: &Value<'a>, index: usize) -> Answer<'a> {
        self.array(receiver, "at:", &[Value::integer(index)])
    }

    /// A block's Boolean.
    fn test(&mut self, block: &Value<'a>, argument: &Value<'a>) -> Result<bool, Unwind<'a>> {
        let mut value = self.send(block.clone(), "value:", vec![argument.clone()])?;
        loop {
            match value {
                Value::Boolean(value) => return Ok(value),
                other => value = self.not_boolean(&other)?,
            }
        }
    }
}
