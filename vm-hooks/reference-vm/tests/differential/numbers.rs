//! Library methods of Booleans, integers and Floats.

use num_bigint::{BigInt, Sign};

use super::evaluator::{Answer, Evaluator, discard};
use super::exceptions::exception;
use super::value::Value;

/// Maximum size of program-made integers, in bits.
const MOST_BITS: u64 = 20_000;

impl<'a> Evaluator<'a> {
    pub fn boolean(
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

    pub fn integer(
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
                // The VM first asks for the operand's generality.
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

    pub fn float(
        &mut self,
        value: f64,
        selector: &str,
        arguments: &[Value<'a>],
    ) -> Option<Answer<'a>> {
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
}

fn gcd(left: &BigInt, right: &BigInt) -> BigInt {
    let (mut a, mut b) = (left.clone(), right.clone());
    while b != BigInt::from(0) {
        (a, b) = (b.clone(), a % b);
    }
    BigInt::from(a.magnitude().clone())
}

pub fn as_float(value: &BigInt) -> f64 {
    value.to_string().parse().unwrap_or(f64::NAN)
}

fn bounded<'a>(value: BigInt) -> Answer<'a> {
    match value.bits() > MOST_BITS {
        true => discard("an integer too long"),
        false => Ok(Value::Integer(value)),
    }
}
