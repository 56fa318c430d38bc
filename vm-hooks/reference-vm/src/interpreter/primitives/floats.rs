//! Floats, of both forms.

use num_bigint::BigInt;

use super::Args;
use super::integers::big;
use crate::interpreter::objects;
use crate::interpreter::vm::Vm;
use crate::memory::Oop;

type Call = fn(&mut Vm, Args) -> Option<Oop>;

/// Value of a Float, or of a SmallInteger converted to a Float.
#[inline(always)]
fn number(oop: Oop) -> Option<f64> {
    match oop.as_integer() {
        Some(value) => Some(value as f64),
        None => objects::float(oop),
    }
}

/// An integer as Float.
pub fn as_float(vm: &mut Vm, args: Args) -> Option<Oop> {
    let value = match args.receiver().as_integer() {
        Some(value) => value as f64,
        None => to_float(&big(args.receiver())?),
    };
    vm.float(value)
}

/// The nearest Float of an integer; infinite beyond the Floats.
fn to_float(value: &BigInt) -> f64 {
    // The decimal digits' nearest Float, which the standard library finds exactly.
    value.to_string().parse().unwrap_or(f64::NAN)
}

macro_rules! binary {
    ($operator:tt) => {
        |vm, args| {
            let (left, right) = (objects::float(args.receiver())?, number(args.at(0))?);
            vm.float(left $operator right)
        }
    };
}

macro_rules! comparison {
    ($operator:tt) => {
        |vm, args| {
            let (left, right) = (objects::float(args.receiver())?, number(args.at(0))?);
            Some(vm.boolean(left $operator right))
        }
    };
}

/// Primitives 41 to 50.
pub fn binary(number_: usize) -> Option<Call> {
    Some(match number_ {
        41 => binary!(+),
        42 => binary!(-),
        43 => comparison!(<),
        44 => comparison!(>),
        45 => comparison!(<=),
        46 => comparison!(>=),
        47 => comparison!(==),
        48 => comparison!(!=),
        49 => binary!(*),
        50 => |vm, args| {
            let (left, right) = (objects::float(args.receiver())?, number(args.at(0))?);
            if right == 0.0 {
                return None;
            }
            vm.float(left / right)
        },
        _ => return None,
    })
}

macro_rules! function {
    ($function:expr) => {
        |vm, args| {
            let function: fn(f64) -> f64 = $function;
            let value = function(objects::float(args.receiver())?);
            vm.float(value)
        }
    };
}

/// Primitives 51 to 59.
pub fn function(number: usize) -> Option<Call> {
    Some(match number {
        51 => |vm, args| {
            let value = objects::float(args.receiver())?.trunc();
            if !value.is_finite() {
                return None;
            }
            // Whole Floats print as their exact digits.
            let value: BigInt = format!("{value:.0}").parse().ok()?;
            vm.integer(&value)
        },
        52 => function!(f64::fract),
        53 => |_, args| {
            let value = objects::float(args.receiver())?;
            if value == 0.0 || !value.is_finite() {
                return None;
            }
            Oop::from_integer(exponent(value))
        },
        54 => |vm, args| {
            let (value, power) = (objects::float(args.receiver())?, args.integer(0)?);
            let power = i32::try_from(power.clamp(-5000, 5000)).ok()?;
            // Multiply in two steps: the full power may exceed the Float range although the product
            // fits.
            let half = power / 2;
            vm.float(value * 2_f64.powi(half) * 2_f64.powi(power - half))
        },
        55 => function!(f64::sqrt),
        56 => function!(f64::sin),
        57 => function!(f64::atan),
        58 => function!(f64::ln),
        59 => function!(f64::exp),
        _ => return None,
    })
}

/// Binary exponent of a finite, nonzero Float.
fn exponent(value: f64) -> i64 {
    let biased = |value: f64| (value.to_bits() >> 52 & 0x7ff).cast_signed();
    match biased(value) {
        // Subnormal: scaled up first.
        0 => biased(value * 2_f64.powi(60)) - 1023 - 60,
        exponent => exponent - 1023,
    }
}

/// Shortest text that parses to the same Float.
pub fn print(vm: &mut Vm, args: Args) -> Option<Oop> {
    let value = objects::float(args.receiver())?;
    let text = if value.is_nan() {
        "Float nan".to_owned()
    } else if value.is_infinite() {
        let sign = if value < 0.0 { " negated" } else { "" };
        format!("Float infinity{sign}")
    } else if value == 0.0 || (1e-4..1e16).contains(&value.abs()) {
        format!("{value:?}")
    } else {
        // The mantissa of 1e100 lacks a point; Smalltalk prints 1.0e100.
        let text = format!("{value:e}");
        match text.split_once('e') {
            Some((mantissa, exponent)) if !mantissa.contains('.') => {
                format!("{mantissa}.0e{exponent}")
            }
            _ => text,
        }
    };
    vm.string(text.as_bytes())
}

/// A String's Float, or nil.
pub fn parse(vm: &mut Vm, args: Args) -> Option<Oop> {
    let text = super::strings::text(args.receiver())?;
    let value = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.trim().parse::<f64>().ok());
    match value {
        Some(value) => vm.float(value),
        None => Some(vm.known.nil),
    }
}
