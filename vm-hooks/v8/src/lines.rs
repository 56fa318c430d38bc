//! Lines of a script's source.

/// Maximum number of lines with a known begin: 16 MiB. Later positions have no line.
const MAX_LINES: usize = 4 << 20;

/// Width of a source's characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Latin-1.
    One,
    /// UTF-16.
    Two,
}

/// Begins of a source's lines. Reads the source piece by piece: large sources need little memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines {
    /// First character of each line but the first.
    starts: Vec<u32>,
    /// Number of characters so far.
    length: u32,
    /// Whether the last character was a carriage return.
    was_return: bool,
    /// First character without a known line.
    known_until: u32,
    /// Lines before the source.
    before: i32,
}

impl Default for Lines {
    fn default() -> Self {
        Lines::new()
    }
}

impl Lines {
    /// Lines of an empty source.
    #[must_use]
    pub fn new() -> Self {
        Lines {
            starts: Vec::new(),
            length: 0,
            was_return: false,
            known_until: u32::MAX,
            before: 0,
        }
    }

    /// Likewise, of a source behind `before` lines. V8 counts from a negative number if it made the
    /// first lines of the source.
    #[must_use]
    pub fn behind(before: i32) -> Self {
        Lines {
            before,
            ..Lines::new()
        }
    }

    /// Lines of a whole source.
    #[must_use]
    pub fn of(source: &[u8], width: Width) -> Self {
        let mut lines = Lines::new();
        lines.add(source, width);
        lines
    }

    /// Adds the next piece of the source: whole characters, little-endian. Pieces may differ in width.
    pub fn add(&mut self, piece: &[u8], width: Width) {
        match width {
            Width::One => piece.iter().for_each(|byte| self.take(u16::from(*byte))),
            Width::Two => {
                let (characters, _) = piece.as_chunks::<2>();
                let characters = characters.iter().copied().map(u16::from_le_bytes);
                characters.for_each(|character| self.take(character));
            }
        }
    }

    fn take(&mut self, character: u16) {
        // The end of a line is known only from the character behind a carriage return.
        let is_feed = character == u16::from(b'\n');
        if self.was_return && !is_feed {
            self.begin_line();
        }
        self.was_return = character == u16::from(b'\r');
        self.length = self.length.saturating_add(1);
        // U+2028 and U+2029 separate lines and paragraphs.
        if is_feed || matches!(character, 0x2028 | 0x2029) {
            self.begin_line();
        }
    }

    fn begin_line(&mut self) {
        if self.starts.len() < MAX_LINES {
            self.starts.push(self.length);
        } else {
            self.known_until = self.known_until.min(self.length);
        }
    }

    /// Line of a character, 1-based. `None` in lines that V8 made, beyond the source, and beyond line 4,194,305.
    #[must_use]
    pub fn line_of(&self, offset: u32) -> Option<u32> {
        let before = self.starts.partition_point(|start| *start <= offset);
        let is_known = offset <= self.length && offset < self.known_until;
        let line = i64::try_from(before).ok()? + 1 + i64::from(self.before);
        u32::try_from(line)
            .ok()
            .filter(|line| *line > 0 && is_known)
    }

    /// Whether some lines are unknown.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.known_until != u32::MAX
    }

    /// Approximate heap memory in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.starts.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_end_as_in_javascript() {
        let lines = Lines::of(b"a\nb\r\nc\rd", Width::One);
        let all: Vec<_> = (0..=9).map(|at| lines.line_of(at)).collect();
        let expected = [1, 1, 2, 2, 2, 3, 3, 4, 4].map(Some);
        assert_eq!(all[..9], expected);
        assert_eq!(all[9], None, "beyond the end");
        let text: Vec<u8> = ("\u{2028}é\u{2029}\n".encode_utf16())
            .flat_map(u16::to_le_bytes)
            .collect();
        let lines = Lines::of(&text, Width::Two);
        let all: Vec<_> = (0..=4).filter_map(|at| lines.line_of(at)).collect();
        assert_eq!(all, [1, 2, 2, 3, 4]);
        assert_eq!(Lines::of(b"", Width::One).line_of(0), Some(1));
        let behind = |before| {
            let mut lines = Lines::behind(before);
            lines.add(b"a\nb\nc", Width::One);
            [0, 2, 4].map(|at| lines.line_of(at))
        };
        assert_eq!(behind(-2), [None, None, Some(1)]);
        assert_eq!(behind(7), [Some(8), Some(9), Some(10)]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut lines = Lines::new();
        for _ in 0..5 {
            lines.add(&vec![b'\n'; 1 << 20], Width::One);
        }
        assert!(lines.is_cut() && lines.heap_bytes() <= 4 * MAX_LINES);
        assert_eq!(lines.line_of(4 << 20), Some((4 << 20) + 1));
        assert_eq!(lines.line_of((4 << 20) + 1), None);
    }

    proptest! {
        /// Pieces of any size give equal lines. A line's number is the number of earlier line ends plus one.
        #[test]
        fn pieces_are_as_the_whole(source in "[a\r\n]{0,40}", cut in 0..40_usize, at in 0..40_usize) {
            let bytes = source.as_bytes();
            let (first, second) = bytes.split_at(cut.min(bytes.len()));
            let mut lines = Lines::new();
            lines.add(first, Width::One);
            lines.add(second, Width::One);
            let at = at.min(bytes.len());
            let ends = (0..at).filter(|&i| match bytes[i] {
                b'\r' => i + 1 < bytes.len() && bytes[i + 1] != b'\n',
                byte => byte == b'\n',
            });
            prop_assert_eq!(lines.line_of(at as u32), Some(ends.count() as u32 + 1));
        }
    }
}
