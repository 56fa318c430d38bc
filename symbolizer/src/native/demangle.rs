//! Demangling of C++ (Itanium ABI) and Rust (legacy and v0) symbols.

use std::fmt::{self, Write};

use super::limits;

/// Demangles a symbol; drops Rust's hash and symbol versions (`@@GLIBC_2.14`). The result has at
/// most [`limits::DEMANGLED_BYTES`] bytes, which bounds time: demangled names can grow
/// exponentially.
pub(crate) fn demangle(linkage: &str) -> String {
    // A name that begins with '@' has no version.
    let plain = match linkage.find('@') {
        Some(at) if at > 0 && !linkage.ends_with("@plt") => &linkage[..at],
        _ => linkage,
    };
    if plain.len() > limits::MANGLED_BYTES {
        return plain.to_owned();
    }
    rust(plain)
        .or_else(|| cpp(plain))
        .unwrap_or_else(|| plain.to_owned())
}

fn rust(mangled: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(mangled).ok()?;
    bounded(|out| write!(out, "{name:#}"))
}

fn cpp(mangled: &str) -> Option<String> {
    // Only mangled functions or objects: "_Z", perhaps with the underscore of clones and macOS.
    if !mangled.starts_with("_Z") && !mangled.starts_with("__Z") {
        return None;
    }
    let parse = cpp_demangle::ParseOptions::default().recursion_limit(limits::DEMANGLE_DEPTH);
    let show = cpp_demangle::DemangleOptions::default().recursion_limit(limits::DEMANGLE_DEPTH);
    let symbol = cpp_demangle::Symbol::new_with_options(mangled.as_bytes(), &parse).ok()?;
    bounded(|out| symbol.structured_demangle(out, &show))
}

/// The written text; `None` after any error but an excessive length.
fn bounded(write: impl FnOnce(&mut Bounded) -> fmt::Result) -> Option<String> {
    let mut out = Bounded::default();
    match write(&mut out) {
        Ok(()) => Some(out.text),
        Err(fmt::Error) if out.full => {
            out.text.push('…');
            Some(out.text)
        }
        Err(fmt::Error) => None,
    }
    .filter(|text| !text.is_empty())
}

/// A string with a maximum length.
#[derive(Default)]
struct Bounded {
    text: String,
    full: bool,
}

impl Write for Bounded {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        if self.text.len() + piece.len() > limits::DEMANGLED_BYTES {
            self.full = true;
            return Err(fmt::Error);
        }
        self.text.push_str(piece);
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests say what went wrong by failing")]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (linkage, name) in [
            ("main", "main"),
            ("", ""),
            ("@", "@"),
            ("memcpy@@GLIBC_2.14", "memcpy"),
            ("write@plt", "write@plt"),
            ("_ZN3foo3barEi", "foo::bar(int)"),
            ("_ZN3foo3barEi.cold", "foo::bar(int) [clone .cold]"),
            (
                "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
                "core::fmt::Write::write_fmt",
            ),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("_Znonsense", "_Znonsense"),
        ] {
            assert_eq!(demangle(linkage), name, "{linkage}");
        }
    }

    #[test]
    fn exponential_names_end() {
        // Each substitution contains the previous one twice: 2^60 pieces.
        let mut name = String::from("_Z1fI1aE");
        name.push_str("St4pairI1bS1_E");
        for n in 2..60u32 {
            let digit = std::char::from_digit(n % 36, 36)
                .unwrap()
                .to_ascii_uppercase();
            let seq = if n < 36 {
                digit.to_string()
            } else {
                format!("1{digit}")
            };
            name.push_str(&format!("St4pairIS{seq}_S{seq}_E"));
        }
        assert!(demangle(&name).len() <= limits::DEMANGLED_BYTES + 3);
        let deep = format!("_Z1f{}i", "P".repeat(8000));
        assert!(demangle(&deep).len() <= limits::DEMANGLED_BYTES + 3);
        let long = format!("_Z{}", "1a".repeat(100_000));
        assert_eq!(demangle(&long), long);
    }
}
