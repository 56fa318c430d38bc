//! Source file names: stored once each; overwritten names are restored.
//!
//! V8 (`perf-jit.cc`; 11.3 in Node 20) copies some script names, frees the copy, then writes the
//! freed bytes into debug entries. This affects a program's own files, not `node:…`. glibc's
//! allocator overwrites the first 16 bytes with two pointers. Pointers can contain zeros, so names
//! seem to end early; length and bytes after the first 16 stay correct. The next load's name
//! contains the entire file name (`JS:*fib /app/fib.js:1:13`), like the loads of inlined functions.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Number of bytes overwritten by the allocator.
const OVERWRITTEN_BYTES: usize = 16;
/// Starts of complete script names.
const STARTS: [&str; 2] = ["/", "file:"];
/// Full tables are cleared.
const MAX_NAMES: usize = 1 << 14;

/// Name length, bytes after the first 16.
type LengthAndEnd = (usize, Box<[u8]>);

/// Known names.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    known: HashSet<Arc<str>>,
    /// The only known name with this length and end; `None` for several names.
    by_end: HashMap<LengthAndEnd, Option<Arc<str>>>,
}

impl Names {
    /// Returns a shared copy of `name`.
    pub fn share(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.known.get(name) {
            return Arc::clone(known);
        }
        if self.known.len() >= MAX_NAMES {
            self.known.clear();
            self.by_end.clear();
        }
        let shared: Arc<str> = name.into();
        self.known.insert(Arc::clone(&shared));
        if let Some(end) = end_of(name.as_bytes()) {
            let only = Some(Arc::clone(&shared));
            self.by_end
                .entry((name.len(), end.into()))
                .and_modify(|several| *several = None)
                .or_insert(only);
        }
        shared
    }

    /// Stores the script name from the end of `code_name`, if present.
    pub fn learn(&mut self, code_name: &str) {
        if let Some(script) = script_of(code_name) {
            self.share(script);
        }
    }

    /// Restores the name `spoilt`, from debug entries of the code `code_name`.
    pub fn restore(&mut self, spoilt: &[u8], code_name: &str) -> Option<Arc<str>> {
        let own = before_position(code_name).and_then(|name| {
            let from = name.len().checked_sub(spoilt.len())?;
            let (before, script) = name.split_at_checked(from)?;
            let same = end_of(script.as_bytes()) == end_of(spoilt);
            // Function names and paths can contain spaces.
            let begins = STARTS.iter().any(|start| script.starts_with(start));
            let is_whole = before.ends_with(' ') && (begins || !script.contains(' '));
            (same && is_whole).then_some(script)
        });
        if let Some(own) = own {
            return Some(self.share(own));
        }
        let end = end_of(spoilt)?;
        self.by_end.get(&(spoilt.len(), end.into()))?.clone()
    }
}

/// Intact end of an overwritten name; `None` if empty.
fn end_of(name: &[u8]) -> Option<&[u8]> {
    name.get(OVERWRITTEN_BYTES..).filter(|end| !end.is_empty())
}

/// Strips `:LINE:COLUMN`; `None` for names without position.
fn before_position(name: &str) -> Option<&str> {
    let number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let (rest, column) = name.rsplit_once(':')?;
    let (rest, line) = rest.rsplit_once(':')?;
    (number(line) && number(column)).then_some(rest)
}

/// Script in `JS:*name /path/script.js:LINE:COLUMN`; names and paths can contain spaces.
fn script_of(name: &str) -> Option<&str> {
    let name = before_position(name)?;
    let spaces = name.match_indices(' ');
    let mut after = spaces.filter_map(|(space, _)| name.get(space + 1..));
    after.find(|rest| STARTS.iter().any(|start| rest.starts_with(start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPOILT: &[u8] = b"\xc1\xb2\0\0\0\0\0\0\x11\x8d\xd4\x19\xaf?\xc0\xc6s/rec/fib.js";
    const WHOLE: &str = "/home/our formats/rec/fib.js";

    fn restore(names: &mut Names, code: &str) -> Option<String> {
        assert_eq!(SPOILT.len(), WHOLE.len());
        Some(names.restore(SPOILT, code)?.to_string())
    }

    #[test]
    fn spoilt_names_are_restored_from_the_name_of_the_code() {
        let mut names = Names::default();
        let own = format!("JS:*get fib {WHOLE}:1:13");
        assert_eq!(restore(&mut names, &own).as_deref(), Some(WHOLE));
        let shorter = "JS:*get fib /home/formats/rec/fib.js:1:13";
        assert_eq!(restore(&mut Names::default(), shorter), None);
        let no_position = format!("JS:*get fib {WHOLE}");
        assert_eq!(restore(&mut Names::default(), &no_position), None);
        // Short names keep only their length.
        let short = names.restore(b"\0\x01\x02/b.j", "JS:^f /b/b.js:1:1");
        assert_eq!(short.as_deref(), Some("/b/b.js"));
    }

    #[test]
    fn names_of_what_was_inlined_are_restored_if_only_one_fits() {
        let mut names = Names::default();
        let other = "JS:*main /main.js:1:1";
        assert_eq!(restore(&mut names, other), None);
        names.learn(&format!("JS:~fib {WHOLE}:1:13"));
        assert_eq!(restore(&mut names, other).as_deref(), Some(WHOLE));
        names.learn("JS:~fib /home/our_formats/rec/fib.js:1:13");
        assert_eq!(restore(&mut names, other), None);
    }

    #[test]
    fn a_name_is_kept_once() {
        let mut names = Names::default();
        assert!(Arc::ptr_eq(&names.share("a.js"), &names.share("a.js")));
        for number in 0..=MAX_NAMES {
            names.share(&number.to_string());
        }
        assert!(names.known.len() <= MAX_NAMES);
    }
}
