//! Arithmetic on SmallIntegers and LargeIntegers.

use num_bigint::{BigInt, Sign};

use super::Args;
use crate::image::builder::{large_class, magnitude};
use crate::interpreter::bytecodes::{floor_divide, floor_modulo, shift};
use crate::interpreter::objects;
use crate::interpreter::vm::Vm;
use crate::memory::{Oop, classes};

type Call = fn(&mut Vm, Args) -> Option<Oop>;
/// Longest LargeInteger that a shift makes, in bits.
const MOST_BITS: u64 = 1 << 26;

/// Two SmallIntegers.
#[inline(always)]
fn pair(args: Args) -> Option<(i64, i64)> {
    Some((args.receiver().as_integer()?, args.integer(0)?))
}

macro_rules! arithmetic {
    ($operation:expr) => {
        |_, args| {
            let (left, right) = pair(args)?;
            let operation: fn(i64, i64) -> Option<i64> = $operation;
            Oop::from_integer(operation(left, right)?)
        }
    };
}

macro_rules! comparison {
    ($operator:tt) => {
        |vm, args| {
            let (left, right) = pair(args)?;
            Some(vm.boolean(left $operator right))
        }
    };
}

/// Primitives 1 to 17.
pub fn small(number: usize) -> Option<Call> {
    Some(match number {
        1 => arithmetic!(i64::checked_add),
        2 => arithmetic!(i64::checked_sub),
        3 => comparison!(<),
        4 => comparison!(>),
        5 => comparison!(<=),
        6 => comparison!(>=),
        7 => comparison!(==),
        8 => comparison!(!=),
        9 => arithmetic!(i64::checked_mul),
        10 => arithmetic!(|left, right| (right != 0 && left % right == 0).then(|| left / right)),
        11 => arithmetic!(floor_modulo),
        12 => arithmetic!(floor_divide),
        13 => arithmetic!(i64::checked_div),
        14 => arithmetic!(|left, right| Some(left & right)),
        15 => arithmetic!(|left, right| Some(left | right)),
        16 => arithmetic!(|left, right| Some(left ^ right)),
        17 => arithmetic!(shift),
        _ => return None,
    })
}

/// Value of an integer of any size.
pub fn big(oop: Oop) -> Option<BigInt> {
    if let Some(value) = oop.as_integer() {
        return Some(value.into());
    }
    let sign = match objects::class_index(oop) {
        classes::LARGE_POSITIVE_INTEGER => Sign::Plus,
        classes::LARGE_NEGATIVE_INTEGER => Sign::Minus,
        _ => return None,
    };
    Some(BigInt::from_bytes_le(sign, objects::bytes(oop)))
}

impl Vm {
    /// An integer: small if possible.
    pub fn integer(&mut self, value: &BigInt) -> Option<Oop> {
        match i64::try_from(value).ok().and_then(Oop::from_integer) {
            Some(small) => Some(small),
            None => self.bytes_object(large_class(value), &magnitude(value)),
        }
    }
}

macro_rules! big_arithmetic {
    (|$left:ident, $right:ident| $value:expr) => {
        |vm, args| {
            let ($left, $right) = (big(args.receiver())?, big(args.at(0))?);
            let value: BigInt = $value;
            vm.integer(&value)
        }
    };
}

macro_rules! big_comparison {
    ($operator:tt) => {
        |vm, args| {
            let (left, right) = (big(args.receiver())?, big(args.at(0))?);
            Some(vm.boolean(left $operator right))
        }
    };
}

fn is_zero(value: &BigInt) -> bool {
    value.sign() == Sign::NoSign
}

/// Quotient rounded towards negative infinity, and its remainder. `None` for a divisor of 0.
fn floor(left: &BigInt, right: &BigInt) -> Option<(BigInt, BigInt)> {
    if is_zero(right) {
        return None;
    }
    let (quotient, remainder) = (left / right, left % right);
    if !is_zero(&remainder) && (remainder.sign() == Sign::Minus) != (right.sign() == Sign::Minus) {
        return Some((quotient - 1, remainder + right));
    }
    Some((quotient, remainder))
}

/// Primitives 20 to 37.
pub fn large(number: usize) -> Option<Call> {
    Some(match number {
        20 => big_arithmetic!(|left, right| {
            if is_zero(&right) {
                return None;
            }
            left % right
        }),
        21 => big_arithmetic!(|left, right| left + right),
        22 => big_arithmetic!(|left, right| left - right),
        23 => big_comparison!(<),
        24 => big_comparison!(>),
        25 => big_comparison!(<=),
        26 => big_comparison!(>=),
        27 => big_comparison!(==),
        28 => big_comparison!(!=),
        29 => big_arithmetic!(|left, right| left * right),
        30 => big_arithmetic!(|left, right| {
            if is_zero(&right) || !is_zero(&(&left % &right)) {
                return None;
            }
            left / right
        }),
        31 => big_arithmetic!(|left, right| floor(&left, &right)?.1),
        32 => big_arithmetic!(|left, right| floor(&left, &right)?.0),
        33 => big_arithmetic!(|left, right| {
            if is_zero(&right) {
                return None;
            }
            left / right
        }),
        34 => big_arithmetic!(|left, right| left & right),
        35 => big_arithmetic!(|left, right| left | right),
        36 => big_arithmetic!(|left, right| left ^ right),
        37 => |vm, args| {
            let (value, distance) = (big(args.receiver())?, args.integer(0)?);
            let value = if distance < 0 {
                value >> distance.unsigned_abs()
            } else {
                let distance = distance.unsigned_abs();
                if value.bits().checked_add(distance)? > MOST_BITS {
                    return None;
                }
                value << distance
            };
            vm.integer(&value)
        },
        _ => return None,
    })
}

/// `printString: radix`, from 2 to 36, with capital letters.
pub fn print(vm: &mut Vm, args: Args) -> Option<Oop> {
    let value = big(args.receiver())?;
    let radix = u32::try_from(args.integer(0)?)
        .ok()
        .filter(|radix| (2..=36).contains(radix))?;
    let text = value.to_str_radix(radix).to_ascii_uppercase();
    vm.string(text.as_bytes())
}

/// `Character value:`, of a code point.
pub fn as_character(_vm: &mut Vm, args: Args) -> Option<Oop> {
    let code_point = u32::try_from(args.integer(0)?).ok()?;
    char::from_u32(code_point).map(|character| Oop::character(u32::from(character)))
}

/// A String's decimal number, or nil.
pub fn parse(vm: &mut Vm, args: Args) -> Option<Oop> {
    let text = super::strings::text(args.receiver())?;
    match BigInt::parse_bytes(text, 10) {
        Some(value) => vm.integer(&value),
        None => Some(vm.known.nil),
    }
}
