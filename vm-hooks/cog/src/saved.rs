//! Files that an image saves about its own VM: the constituents of the code zone (primitive 253) and the
//! buffer of sampled pcs (primitive 252). `smalltalk/SaveForVmscope.st` writes them.

mod constituents;
mod item;
mod samples;

pub use constituents::{SavedPiece, SavedZone};
pub use samples::{SavedSample, SavedSamples, WordSize};

use vmscope_records::{ProcessKey, RegionRules, TimeNs};

use crate::adapter::VM;
use crate::regions;

/// Regions of the VM's C functions, whose program has this path.
#[must_use]
pub fn region_rules(process: ProcessKey, time: TimeNs, program: &str) -> RegionRules {
    let program = regions::file_name(program.as_bytes());
    RegionRules {
        process,
        time,
        vm: VM.to_owned(),
        rules: regions::rules(&program, &[]),
    }
}

/// A fault in a saved file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SavedError {
    /// A wrong line of a text file.
    #[error("line {line}: {what}; expected {expected}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// The fault.
        what: String,
        /// Description of a right line.
        expected: &'static str,
    },
    /// A buffer with an incomplete last word.
    #[error("{bytes} bytes are no whole number of words of {word} bytes")]
    Words {
        /// Size of the buffer.
        bytes: usize,
        /// Size of a word.
        word: usize,
    },
}

/// A fault in line `index`, counted from 0. Quotes `text`, shortened.
fn wrong(index: usize, what: &str, text: &str, expected: &'static str) -> SavedError {
    const MAX_QUOTED: usize = 80;
    let mut quoted: String = text.chars().take(MAX_QUOTED).collect();
    if quoted.len() < text.len() {
        quoted.push('…');
    }
    SavedError::Line {
        line: index.saturating_add(1),
        what: format!("{what} `{quoted}`"),
        expected,
    }
}

/// The lines of a file with their indices from 0, without empty lines.
///
/// Lines without valid UTF-8 are errors.
fn lines(bytes: &[u8]) -> impl Iterator<Item = Result<(usize, &str), SavedError>> {
    let lines = bytes.split(|&byte| byte == b'\n').enumerate();
    let lines = lines.map(|(index, line)| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = std::str::from_utf8(line).map_err(|_| SavedError::Line {
            line: index.saturating_add(1),
            what: "bytes that are not UTF-8".to_owned(),
            expected: "text in UTF-8",
        })?;
        Ok((index, text))
    });
    lines.filter(|line| !matches!(line, Ok((_, ""))))
}
