//! The methods of the class library that generated programs use, once more.

use std::rc::Rc;

use num_bigint::{BigInt, Sign};

use super::evaluator::{Answer, Evaluator, Unwind, discard, exception};
use super::value::{Exception, Value, is_small, text_of};

/// Longest integers that programs may make, in bits.
const MOST_BITS: u64 = 20_000;

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
            Value::Array(_) => self.array(&receiver, selector, &arguments),
            Value::Block(_) => self.closure(&receiver, selector, &arguments),
            Value::Exception(exception) => self.exception(exception, selector, &arguments),
            Value::Class(name) => self.class(name, selector, &arguments),
            _ => None,
        };
        result.unwrap_or_else(|| self.not_understood(&receiver, selector))
    }

    fn not_understood(&mut self, receiver: &Value<'a>, selector: &str) -> Answer<'a> {
        if matches!(receiver, Value::Float(_)) {
            return discard("the class of a Float");
        }
        let class = receiver.class_name();
        let text = format!("{class} does not understand #{selector}");
        self.raise("MessageNotUnderstood", &text)
    }

    /// What all objects understand.
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

    fn boolean(
        &mut self,
        value: bool,
        selector: &str,
        arguments: &[Value<'a>],
    ) -> Option<Answer<'a>> {
        let mut run = |block: &Value<'a>| self.block(block, Vec::new());
        Some(match (selector, arguments) {
            ("not", []) => Ok(Value::Boolean(!value)),
            ("&", [other]) => Ok(if value {
                other.clone()
            } else {
                Value::Boolean(false)
            }),
            ("|", [other]) => Ok(if value {
                Value::Boolean(true)
            } else {
                other.clone()
            }),
            ("xor:", [Value::Boolean(other)]) => Ok(Value::Boolean(value != *other)),
            ("and:", [block]) if value => run(block),
            ("and:", [_]) => Ok(Value::Boolean(false)),
            ("or:", [block]) if !value => run(block),
            ("or:", [_]) => Ok(Value::Boolean(true)),
            ("ifTrue:", [block]) if value => run(block),
            ("ifFalse:", [block]) if !value => run(block),
            ("ifTrue:" | "ifFalse:", [_]) => Ok(Value::Nil),
            ("ifTrue:ifFalse:", [yes, no]) | ("ifFalse:ifTrue:", [no, yes]) => {
                run(if value { yes } else { no })
            }
            _ => return None,
        })
    }

    fn integer(
        &mut self,
        value: &BigInt,
        selector: &str,
        arguments: &[Value<'a>],
    ) -> Option<Answer<'a>> {
        let zero = BigInt::from(0);
        Some(match (selector, arguments) {
            ("negated", []) => Ok(Value::Integer(-value)),
            ("abs", []) => Ok(Value::Integer(BigInt::from(value.magnitude().clone()))),
            ("squared", []) => bounded(value * value),
            ("sign", []) => Ok(Value::Integer(match value.sign() {
                Sign::Minus => BigInt::from(-1),
                Sign::NoSign => zero,
                Sign::Plus => BigInt::from(1),
            })),
            ("even", []) => Ok(Value::Boolean(value % 2 == zero)),
            ("odd", []) => Ok(Value::Boolean(value % 2 != zero)),
            ("asFloat", []) => Ok(Value::Float(as_float(value))),
            ("between:and:", [Value::Integer(low), Value::Integer(high)]) => {
                Ok(Value::Boolean(low <= value && value <= high))
            }
            ("max:", [Value::Integer(other)]) => Ok(Value::Integer(value.max(other).clone())),
            ("min:", [Value::Integer(other)]) => Ok(Value::Integer(value.min(other).clone())),
            ("gcd:", [Value::Integer(other)]) => Ok(Value::Integer(gcd(value, other))),
            ("timesRepeat:", [block]) => {
                let mut count = zero;
                while count < *value {
                    if let Err(unwind) = self.block_step(block, Vec::new()) {
                        return Some(Err(unwind));
                    }
                    count += 1;
                }
                Ok(Value::Integer(value.clone()))
            }
            ("to:do:", [Value::Integer(limit), block]) => {
                self.count(value, limit, &BigInt::from(1), block)
            }
            ("to:by:do:", [Value::Integer(limit), Value::Integer(step), block])
                if *step != zero =>
            {
                self.count(value, limit, step, block)
            }
            ("//" | "\\\\" | "quo:" | "rem:", [Value::Integer(other)]) => {
                if *other == zero {
                    let exception = exception("ZeroDivide", None, Value::Nil);
                    return Some(self.signal(&exception));
                }
                let (quotient, remainder) = (value / other, value % other);
                let floors = remainder != zero && (remainder < zero) != (*other < zero);
                Ok(Value::Integer(match selector {
                    "quo:" => quotient,
                    "rem:" => remainder,
                    "//" if floors => quotient - 1,
                    "//" => quotient,
                    _ if floors => remainder + other,
                    _ => remainder,
                }))
            }
            ("bitAnd:", [Value::Integer(other)]) => Ok(Value::Integer(value & other)),
            ("bitOr:", [Value::Integer(other)]) => Ok(Value::Integer(value | other)),
            ("bitXor:", [Value::Integer(other)]) => Ok(Value::Integer(value ^ other)),
            ("bitShift:", [Value::Integer(other)]) => {
                let two_to = |power: i64| BigInt::from(2).pow(u32::try_from(power).unwrap_or(0));
                match i64::try_from(other) {
                    Ok(distance @ 0..=1000) => bounded(value * two_to(distance)),
                    Ok(distance @ -1000..0) => {
                        // Rounded down.
                        let divisor = two_to(-distance);
                        let rest = ((value % &divisor) + &divisor) % &divisor;
                        Ok(Value::Integer((value - rest) / divisor))
                    }
                    _ => discard("a wide shift"),
                }
            }
            ("bitAnd:" | "bitOr:" | "bitXor:" | "bitShift:", [_]) => {
                self.raise("InvalidArgument", "an integer is needed")
            }
            ("+", [Value::Integer(other)]) => bounded(value + other),
            ("-", [Value::Integer(other)]) => bounded(value - other),
            ("*", [Value::Integer(other)]) => bounded(value * other),
            ("<", [Value::Integer(other)]) => Ok(Value::Boolean(value < other)),
            (">", [Value::Integer(other)]) => Ok(Value::Boolean(value > other)),
            ("<=", [Value::Integer(other)]) => Ok(Value::Boolean(value <= other)),
            (">=", [Value::Integer(other)]) => Ok(Value::Boolean(value >= other)),
            ("+" | "-" | "*" | "<" | ">" | "<=" | ">=", [Value::Float(_)]) => {
                return self.float(as_float(value), selector, arguments);
            }
            ("+" | "-" | "*" | "<" | ">" | "<=" | ">=", [other]) => {
                // Its generality is asked for first.
                let result = self.not_understood(other, "generality");
                result.and_then(|_| discard("a number of an unknown kind"))
            }
            (
                "+" | "-" | "*" | "/" | "//" | "\\\\" | "quo:" | "rem:" | "max:" | "min:" | "gcd:"
                | "between:and:" | "to:do:" | "to:by:do:" | "@",
                _,
            ) => discard("numbers of several kinds"),
            _ => return None,
        })
    }

    /// A block of a loop: the loop counts as a message.
    fn block_step(&mut self, block: &Value<'a>, arguments: Vec<Value<'a>>) -> Answer<'a> {
        match block {
            Value::Block(_) if arguments.is_empty() => self.send(block.clone(), "value", arguments),
            Value::Block(_) => self.send(block.clone(), "value:", arguments),
            _ => discard("a loop without a block"),
        }
    }

    fn count(
        &mut self,
        first: &BigInt,
        limit: &BigInt,
        step: &BigInt,
        block: &Value<'a>,
    ) -> Answer<'a> {
        let up = *step > BigInt::from(0);
        let mut each = first.clone();
        while if up { each <= *limit } else { each >= *limit } {
            self.block_step(block, vec![Value::Integer(each.clone())])?;
            each += step;
        }
        Ok(Value::Integer(first.clone()))
    }

    fn float(&mut self, value: f64, selector: &str, arguments: &[Value<'a>]) -> Option<Answer<'a>> {
        let other = match arguments {
            [] => 0.0,
            [Value::Float(other)] => *other,
            [Value::Integer(other)] => as_float(other),
            _ => return Some(discard("a Float and something else")),
        };
        Some(Ok(match (selector, arguments.len()) {
            ("negated", 0) => Value::Float(-value),
            ("abs", 0) => Value::Float(if value < 0.0 { -value } else { value }),
            ("squared", 0) => Value::Float(value * value),
            ("truncated", 0) if value.is_finite() => {
                let text = format!("{:.0}", value.trunc());
                Value::Integer(text.parse().unwrap_or_default())
            }
            ("truncated", 0) => return Some(self.raise("Error", "Cannot truncate this number")),
            ("+", 1) => Value::Float(value + other),
            ("-", 1) => Value::Float(value - other),
            ("*", 1) => Value::Float(value * other),
            ("/", 1) if other == 0.0 => {
                let exception = exception("ZeroDivide", None, Value::Nil);
                return Some(self.signal(&exception));
            }
            ("/", 1) => Value::Float(value / other),
            ("<", 1) => Value::Boolean(value < other),
            (">", 1) => Value::Boolean(value > other),
            ("<=", 1) => Value::Boolean(value <= other),
            (">=", 1) => Value::Boolean(value >= other),
            ("max:", 1) => Value::Float(if value > other { value } else { other }),
            ("min:", 1) => Value::Float(if value < other { value } else { other }),
            _ => return None,
        }))
    }

    fn text(
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

    /// An index from 0, or what the error of a wrong one was resumed with.
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

    fn array(
        &mut self,
        receiver: &Value<'a>,
        selector: &str,
        arguments: &[Value<'a>],
    ) -> Option<Answer<'a>> {
        Some(self.array_message(receiver, selector, arguments))
    }

    fn array_message(
        &mut self,
        receiver: &Value<'a>,
        selector: &str,
        arguments: &[Value<'a>],
    ) -> Answer<'a> {
        let Value::Array(own) = receiver else {
            return discard("no Array");
        };
        // The library's loops read an element when they come to it.
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
        self.array_message(receiver, "at:", &[Value::integer(index)])
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

    fn exception(
        &mut self,
        exception: &Rc<Exception<'a>>,
        selector: &str,
        arguments: &[Value<'a>],
    ) -> Option<Answer<'a>> {
        let argument = arguments.first().cloned().unwrap_or(Value::Nil);
        let handler = exception.handler.borrow().clone();
        Some(match (selector, handler) {
            ("signal", _) => self.signal(exception),
            ("signal:", _) => {
                *exception.text.borrow_mut() = Some(argument.display());
                self.signal(exception)
            }
            ("messageText", _) => Ok(Value::string(&exception.message_text())),
            ("description", _) => Ok(Value::string(&exception.description())),
            ("result", _) => Ok(exception.result.clone()),
            ("return" | "return:", Some(handler)) => {
                handler.leaving.set(true);
                Err(Unwind::Leave(handler, argument))
            }
            ("retry", Some(handler)) => {
                handler.leaving.set(true);
                Err(Unwind::Retry(handler))
            }
            ("retryUsing:", Some(handler)) => {
                handler.leaving.set(true);
                Err(Unwind::RetryUsing(handler, argument))
            }
            ("pass", Some(handler)) => self.search(exception, handler.outer.clone()),
            ("resume" | "resume:", _) => {
                let errors = ["ZeroDivide", "MessageNotUnderstood", "NonBooleanReceiver"];
                let resumable = errors.contains(&exception.class.as_str())
                    || !self.inherits(&exception.class, "Error");
                if !resumable {
                    let text = exception.description();
                    return Some(self.raise("IllegalResumeAttempt", &text));
                }
                Err(Unwind::Resume(exception.signal.get(), argument))
            }
            _ => return None,
        })
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

fn bounded<'a>(value: BigInt) -> Answer<'a> {
    match value.bits() > MOST_BITS {
        true => discard("an integer too long"),
        false => Ok(Value::Integer(value)),
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

fn gcd(left: &BigInt, right: &BigInt) -> BigInt {
    let (mut a, mut b) = (left.clone(), right.clone());
    while b != BigInt::from(0) {
        (a, b) = (b.clone(), a % b);
    }
    BigInt::from(a.magnitude().clone())
}

fn as_float(value: &BigInt) -> f64 {
    value.to_string().parse().unwrap_or(f64::NAN)
}
