//! Numbers for people.

/// Count with a comma before every three digits, as in VMProfiler.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Count with singular or plural.
pub fn some(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// Percentage with two digits.
pub fn percent(share: f64) -> String {
    format!("{}%", points(share))
}

/// Percentage points with two digits.
pub fn points(share: f64) -> String {
    format!("{:.2}", share * 100.0)
}

/// `part / whole`; 0 for an empty whole.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Bytes in at most three digits, with unit: `1.5 MiB`.
pub fn bytes(bytes: u64) -> String {
    let (value, unit) = scaled(bytes);
    match unit {
        "" => format!("{value} B"),
        unit => format!("{value} {unit}iB"),
    }
}

/// Bytes in at most five columns: `1.5M`.
pub fn bytes_short(bytes: u64) -> String {
    let (value, unit) = scaled(bytes);
    format!("{value}{unit}")
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn scaled(bytes: u64) -> (String, &'static str) {
    let mut value = bytes as f64;
    let mut unit = "";
    for next in ["K", "M", "G", "T", "P", "E"] {
        // Values that round to 1024 belong to the next unit.
        if value < 1023.5 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    (three_digits(value), unit)
}

/// Time in at most three digits, with unit: `1.5 ms`.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub fn brief(ns: u64) -> String {
    let mut value = ns as f64;
    let mut unit = "ns";
    for next in ["us", "ms", "s"] {
        if value < 999.5 {
            break;
        }
        (value, unit) = (value / 1000.0, next);
    }
    format!("{} {unit}", three_digits(value))
}

/// A non-negative number in three digits, or all digits of its whole part; without trailing zeros.
fn three_digits(value: f64) -> String {
    let digits = match value {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    match text.split_once('.') {
        Some(_) => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        None => text,
    }
}

pub fn milliseconds(ns: f64) -> String {
    if ns.is_finite() {
        format!("{:.3} ms", ns / 1e6)
    } else {
        "?".to_owned()
    }
}

/// Number with a comma before every three digits, and decimals if any.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    let text = if value.fract() == 0.0 {
        format!("{:.0}", value.abs())
    } else {
        format!("{:.3}", value.abs())
    };
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    let sign = if value < 0.0 { "-" } else { "" };
    let point = if decimals.is_empty() { "" } else { "." };
    // Numbers above 64 bits get no commas.
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), count);
    format!("{sign}{whole}{point}{decimals}")
}

/// Wall-clock time as `YYYY-MM-DD HH:MM:SS` in UTC.
pub fn session_time(unix_ns: u64) -> String {
    let seconds = i64::try_from(unix_ns / 1_000_000_000).unwrap_or(0);
    match jiff::Timestamp::from_second(seconds) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(3_801_936), "3,801,936");
    }

    #[test]
    fn bytes_and_times_have_three_digits_of_the_unit_that_fits() {
        for (number, text, short) in [
            (0, "0 B", "0"),
            (1_023, "1023 B", "1023"),
            (1_024, "1 KiB", "1K"),
            (1_536, "1.5 KiB", "1.5K"),
            (10_752, "10.5 KiB", "10.5K"),
            (1_048_064, "1 MiB", "1M"),
            (1_258_291, "1.2 MiB", "1.2M"),
            (327_155_712, "312 MiB", "312M"),
            (u64::MAX, "16 EiB", "16E"),
        ] {
            assert_eq!(
                (bytes(number).as_str(), bytes_short(number).as_str()),
                (text, short)
            );
        }
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1 us"),
            (999_499, "999 us"),
            (999_500, "1 ms"),
            (12_340_000, "12.3 ms"),
            (1_234_000_000, "1.23 s"),
            (12_345_000_000_000, "12345 s"),
        ] {
            assert_eq!(brief(ns), text);
        }
    }

    #[test]
    fn numbers_are_for_people() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1234.5, "1,234.500"),
            (-157_616.0, "-157,616"),
            (f64::NAN, "?"),
            (1e25, "10000000000000000905969664"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
