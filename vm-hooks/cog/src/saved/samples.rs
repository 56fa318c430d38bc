//! Sampled pcs: words as primitive 252 copies them, or lines of text.

use vmscope_records::{Avma, Tid, TimeNs};

use super::{SavedError, SavedZone, lines, wrong};

/// Number of bytes that tell text from words.
const LOOKED_AT: usize = 4096;

/// Names of the last column in the first line of a text file.
const TITLES: [&str; 3] = ["ip", "pc", "address"];

const A_SAMPLE: &str = "`PC`, `SECONDS PC` or `TID SECONDS PC`, as in the first line";

/// Word size of the VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordSize {
    /// Four bytes.
    Bits32,
    /// Eight bytes.
    Bits64,
}

impl WordSize {
    /// Size in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            WordSize::Bits32 => 4,
            WordSize::Bits64 => 8,
        }
    }
}

/// A sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedSample {
    /// Its thread; words have none.
    pub thread: Option<Tid>,
    /// Time of some clock; words have none.
    pub time: Option<TimeNs>,
    /// Address of the next instruction.
    pub pc: Avma,
}

/// A file of samples.
#[derive(Clone, Copy, Debug)]
pub struct SavedSamples<'f> {
    bytes: &'f [u8],
    /// `None` for text.
    word: Option<WordSize>,
}

impl<'f> SavedSamples<'f> {
    /// Recognises the form of a file. Words have `word` bytes, or those of the zone's VM: a zone beyond
    /// 4 GiB proves 64 bits, a zone below 4 GiB that holds some pcs of 32 bits and none of 64 proves 32.
    ///
    /// # Errors
    /// [`SavedError::Words`] for a part of a word at the end.
    pub fn new(
        bytes: &'f [u8],
        zone: &SavedZone,
        word: Option<WordSize>,
    ) -> Result<Self, SavedError> {
        let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        if word.is_none() && bytes.iter().take(LOOKED_AT).all(is_text) {
            return Ok(SavedSamples { bytes, word: None });
        }
        let word = word.unwrap_or_else(|| word_size(bytes, zone));
        if bytes.len().is_multiple_of(word.bytes()) {
            let word = Some(word);
            return Ok(SavedSamples { bytes, word });
        }
        Err(SavedError::Words {
            bytes: bytes.len(),
            word: word.bytes(),
        })
    }

    /// Whether samples have times.
    ///
    /// # Errors
    /// A wrong first line.
    pub fn has_times(&self) -> Result<bool, SavedError> {
        let first = self.iter().next().transpose()?;
        Ok(first.is_some_and(|sample| sample.time.is_some()))
    }

    /// All samples in the file's order. Times ascend. Ends after the first error.
    pub fn iter(&self) -> Box<dyn Iterator<Item = Result<SavedSample, SavedError>> + 'f> {
        match self.word {
            None => Box::new(text(self.bytes)),
            Some(word) => Box::new(words(self.bytes, word).map(|pc| {
                Ok(SavedSample {
                    thread: None,
                    time: None,
                    pc,
                })
            })),
        }
    }
}

fn words(bytes: &[u8], word: WordSize) -> impl Iterator<Item = Avma> {
    let number = |word: &[u8]| {
        let bytes = word.iter().rev();
        Avma(bytes.fold(0, |high, byte| high << 8 | u64::from(*byte)))
    };
    bytes.chunks_exact(word.bytes()).map(number)
}

fn word_size(bytes: &[u8], zone: &SavedZone) -> WordSize {
    let hits = |word| words(bytes, word).any(|pc| zone.start <= pc && pc < zone.end);
    let is_low = u32::try_from(zone.end.0).is_ok();
    match is_low && !hits(WordSize::Bits64) && hits(WordSize::Bits32) {
        true => WordSize::Bits32,
        false => WordSize::Bits64,
    }
}

fn text(bytes: &[u8]) -> impl Iterator<Item = Result<SavedSample, SavedError>> {
    let mut columns = None;
    let mut latest = TimeNs(0);
    let mut failed = false;
    lines(bytes).filter_map(move |line| {
        if failed {
            return None;
        }
        let sample = line.and_then(|(index, line)| {
            let fields = line.split_ascii_whitespace().count();
            let last = line.split_ascii_whitespace().next_back();
            let is_first = columns.is_none();
            if fields != *columns.get_or_insert(fields) {
                return Err(wrong(index, "another number of columns:", line, A_SAMPLE));
            }
            if is_first && last.is_some_and(|last| TITLES.contains(&last)) {
                return Ok(None);
            }
            let Some(sample) = sample(line) else {
                return Err(wrong(index, "not a sample:", line, A_SAMPLE));
            };
            let time = sample.time.unwrap_or(latest);
            if time < latest {
                return Err(wrong(
                    index,
                    "an earlier time than before:",
                    line,
                    "ascending times",
                ));
            }
            latest = time;
            Ok(Some(sample))
        });
        failed = sample.is_err();
        sample.transpose()
    })
}

/// A line of one, two or three columns.
fn sample(line: &str) -> Option<SavedSample> {
    let mut fields = line.split_ascii_whitespace().rev();
    let pc = fields.next()?;
    let pc = match pc.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => pc.parse(),
    };
    let time = fields.next().map(seconds);
    let thread = fields.next().map(|tid| tid.parse().ok().map(Tid));
    if fields.next().is_some() || time == Some(None) || thread == Some(None) {
        return None;
    }
    Some(SavedSample {
        thread: thread.flatten(),
        time: time.flatten(),
        pc: Avma(pc.ok()?),
    })
}

/// Decimal seconds with at most nine digits behind the point.
fn seconds(text: &str) -> Option<TimeNs> {
    const DIGITS: usize = 9;
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = part.len() <= DIGITS && part.bytes().all(|byte| byte.is_ascii_digit());
    let part: u64 = format!("{part:0<DIGITS$}")
        .parse()
        .ok()
        .filter(|_| is_number)?;
    let whole: u64 = whole.parse().ok()?;
    Some(TimeNs(whole.checked_mul(1_000_000_000)?.checked_add(part)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(start: u64, end: u64) -> SavedZone {
        let text = format!("~CogCode~ | {start}\n~CCEnd~ | {end}\n");
        SavedZone::parse(text.as_bytes()).unwrap()
    }

    fn pcs(bytes: &[u8], zone: &SavedZone, word: Option<WordSize>) -> Vec<u64> {
        let samples = SavedSamples::new(bytes, zone, word).unwrap();
        samples.iter().map(|sample| sample.unwrap().pc.0).collect()
    }

    #[test]
    fn the_zone_tells_the_size_of_words() {
        let low = zone(0x100_0000, 0x200_0000);
        let high = zone(0x5555_0000_0000, 0x5555_0100_0000);
        let narrow: Vec<u8> = [0x100_0010_u32, 0x80_0000, 0x100_0020]
            .into_iter()
            .flat_map(u32::to_le_bytes)
            .collect();
        assert_eq!(
            pcs(&narrow, &low, None),
            [0x100_0010, 0x80_0000, 0x100_0020]
        );
        let wide: Vec<u8> = [0x100_0010_u64, 0x7f00_0000_0000]
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .collect();
        assert_eq!(pcs(&wide, &low, None), [0x100_0010, 0x7f00_0000_0000]);
        assert_eq!(pcs(&wide, &high, None), [0x100_0010, 0x7f00_0000_0000]);
        let all = [0x100_0010, 0, 0, 0x7f00];
        assert_eq!(pcs(&wide, &high, Some(WordSize::Bits32)), all);
        let error = SavedSamples::new(&narrow, &high, None).unwrap_err();
        let text = "12 bytes are no whole number of words of 8 bytes";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn lines_are_checked() {
        let zone = zone(1, 2);
        let all = |text: &str| -> Result<Vec<SavedSample>, SavedError> {
            SavedSamples::new(text.as_bytes(), &zone, None)?
                .iter()
                .collect()
        };
        let sample = SavedSample {
            thread: Some(Tid(7)),
            time: Some(TimeNs(1_500_000_000)),
            pc: Avma(0x10),
        };
        assert_eq!(all("tid\ttime_s\tip\n7\t1.5\t0x10\n").unwrap(), [sample]);
        assert_eq!(all("16\n0x11\r\n\n").unwrap().len(), 2);
        for (text, what) in [
            ("1 5\n0.9 5\n", "line 2: an earlier time"),
            ("1 5\n5\n", "line 2: another number of columns"),
            ("1.0000000001 5\n", "line 1: not a sample"),
            ("99999999999999 5\n", "line 1: not a sample"),
            ("1 2 3 4\n", "line 1: not a sample"),
            ("0x1ffffffffffffffff\n", "line 1: not a sample"),
        ] {
            let error = all(text).unwrap_err().to_string();
            assert!(error.starts_with(what), "{error}");
        }
    }
}
