//! The names of source files: kept once each, and restored where a VM spoilt them.
//!
//! V8 (11.3 in Node 20 does; its `perf-jit.cc`) writes the name of a script into the debug
//! entries after it has freed the copy it made of it, whenever the script's name is a
//! string that it has to copy: for a program's own files, not for `node:…`. By then the
//! allocator (glibc's) has written two pointers over the first 16 bytes. The bytes may
//! hold zeros, so the name does not even seem to end where it does; the length is right,
//! and so is everything after the 16 bytes. The load that follows has the whole name in its
//! own (`JS:*fib /app/fib.js:1:13`), and so have the loads of what was inlined.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How many bytes of a freed name the allocator overwrites.
const OVERWRITTEN_BYTES: usize = 16;
/// How a script's name begins, if it is a whole one.
const STARTS: [&str; 2] = ["/", "file:"];
/// More names than this are not kept; then they are kept anew.
const MAX_NAMES: usize = 1 << 14;

/// A name by its length and what comes after its first 16 bytes.
type LengthAndEnd = (usize, Box<[u8]>);

/// The names that were seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    known: HashSet<Arc<str>>,
    /// The only known name of that length that ends so after its first 16 bytes;
    /// `None` where there are several.
    by_end: HashMap<LengthAndEnd, Option<Arc<str>>>,
}

impl Names {
    /// `name`, shared with whoever has it already.
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

    /// Learns the script that a piece of code's name ends with, if it ends so.
    pub fn learn(&mut self, code_name: &str) {
        if let Some(script) = script_of(code_name) {
            self.share(script);
        }
    }

    /// The name that `spoilt` was, in the debug entries of the code `code_name`.
    pub fn restore(&mut self, spoilt: &[u8], code_name: &str) -> Option<Arc<str>> {
        let own = before_position(code_name).and_then(|name| {
            let from = name.len().checked_sub(spoilt.len())?;
            let (before, script) = name.split_at_checked(from)?;
            let same = end_of(script.as_bytes()) == end_of(spoilt);
            // A space may be the function's name's or the path's.
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

/// What is left of a name that was overwritten; `None` where nothing is.
fn end_of(name: &[u8]) -> Option<&[u8]> {
    name.get(OVERWRITTEN_BYTES..).filter(|end| !end.is_empty())
}

/// A name without `:LINE:COLUMN` at its end; `None` where it has none.
fn before_position(name: &str) -> Option<&str> {
    let number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let (rest, column) = name.rsplit_once(':')?;
    let (rest, line) = rest.rsplit_once(':')?;
    (number(line) && number(column)).then_some(rest)
}

/// The script in `JS:*name /path/script.js:LINE:COLUMN`; names and paths may have
/// spaces.
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
        // Nothing is left of a short one but its length.
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
