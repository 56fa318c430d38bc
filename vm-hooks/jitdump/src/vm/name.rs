//! Names that tell by themselves which VM gave them.

use vmscope_records::ConstituentKind;

use super::CodeName;

impl CodeName {
    /// Code that is called `name`, where nothing more is known about it.
    pub(super) fn new(name: &str, kind: ConstituentKind, tier: &str) -> Self {
        let name = if name.is_empty() { UNNAMED } else { name };
        Self {
            name: name.to_owned(),
            kind,
            tier: tier.to_owned(),
            class: String::new(),
            file: String::new(),
            line: 0,
        }
    }

    /// The same, in `file`, beginning at `line`.
    pub(super) fn at(mut self, file: &str, line: u32) -> Self {
        file.clone_into(&mut self.file);
        self.line = line;
        self
    }
}

/// What code without a name is called.
const UNNAMED: &str = "(unnamed)";

/// A number of decimal digits and nothing else.
pub(super) fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// `name:12` in two, at the last colon.
pub(super) fn line_behind(name: &str) -> Option<(&str, u32)> {
    let (name, line) = name.rsplit_once(':')?;
    Some((name, number(line)?))
}
