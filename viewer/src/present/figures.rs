//! Figures of VMs, in words.

use super::numbers::{bytes, milliseconds, number, percent};
use super::text::fit;
use crate::queries::vm::Figure;
use vmscope_records::CounterMeaning;

/// Maximum width of a unit.
const MAX_UNIT_COLUMNS: usize = 16;

/// Gauges: value, change, and bounds beyond both ends; or growth and rate of a total.
pub fn value_of(figure: &Figure) -> String {
    let unit = short(figure.unit, MAX_UNIT_COLUMNS);
    match (figure.meaning, unit.as_str()) {
        (CounterMeaning::Gauge, _) => {
            let value = |value: f64| match unit.as_str() {
                "ns" => milliseconds(value),
                "bytes" => signed_bytes(value),
                unit => with_unit(&number(value), unit),
            };
            let mut text = value(figure.last);
            if figure.change() != 0.0 {
                let sign = if figure.change() < 0.0 { "" } else { "+" };
                text.push_str(&format!(" ({sign}{})", value(figure.change())));
            }
            let (low, high) = (figure.first.min(figure.last), figure.first.max(figure.last));
            if figure.min < low || figure.max > high {
                let (min, max) = (value(figure.min), value(figure.max));
                text.push_str(&format!(", between {min} and {max}"));
            }
            text
        }
        (CounterMeaning::Total, "ns") => {
            let share = figure.per_second() / 1e9;
            let time = milliseconds(figure.change());
            format!("{time} ({} of elapsed time)", percent(share))
        }
        (CounterMeaning::Total, "bytes") => {
            format!("{}{}", signed_bytes(figure.change()), rate(figure))
        }
        (CounterMeaning::Total, _) => {
            let grown = with_unit(&number(figure.change()), &unit);
            format!("{grown}{}", rate(figure))
        }
    }
}

/// Rate of a growing total, in parentheses.
pub fn rate(figure: &Figure) -> String {
    let rate = figure.per_second();
    if figure.change() == 0.0 {
        String::new()
    } else if rate.abs() < 100.0 {
        format!(" ({rate:.1} per second)")
    } else {
        format!(" ({} per second)", number(rate.round()))
    }
}

/// Bytes in the largest unit with at most three digits.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative; greater ones saturate"
)]
fn signed_bytes(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", bytes(value.abs() as u64))
}

/// A word in at most `columns`.
pub fn short(word: &str, columns: usize) -> String {
    fit(word, columns).trim_end().to_owned()
}

fn with_unit(number: &str, unit: &str) -> String {
    format!("{number} {unit}").trim_end().to_owned()
}
