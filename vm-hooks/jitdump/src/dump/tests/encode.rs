//! Writes valid and invalid dumps.

use crate::dump::{LineStart, Load, Move};

pub(crate) struct Encoder {
    pub bytes: Vec<u8>,
    big_endian: bool,
    /// Process id in loads and moves.
    pub pid: u32,
}

impl Encoder {
    /// Header: 40 bytes plus `extra`.
    pub fn new(big_endian: bool, extra: u32) -> Self {
        let mut dump = Self {
            bytes: Vec::new(),
            big_endian,
            pid: 4711,
        };
        dump.numbers32(&[0x4a69_5444, 1, 40 + extra, 62, 0xdead_beef, 4711]);
        dump.numbers64(&[1_000_000, 0]);
        dump.bytes.resize(40 + extra as usize, 0xee);
        dump
    }

    pub fn numbers32(&mut self, numbers: &[u32]) {
        for number in numbers {
            self.bytes.extend(if self.big_endian {
                number.to_be_bytes()
            } else {
                number.to_le_bytes()
            });
        }
    }

    pub fn numbers64(&mut self, numbers: &[u64]) {
        for number in numbers {
            self.bytes.extend(if self.big_endian {
                number.to_be_bytes()
            } else {
                number.to_le_bytes()
            });
        }
    }

    /// Writes any record; adds `lie` to the size.
    pub fn record(&mut self, kind: u32, time: u64, lie: i64, body: impl FnOnce(&mut Self)) {
        let begin = self.bytes.len();
        self.numbers32(&[kind, 0]);
        self.numbers64(&[time]);
        body(self);
        let size = i64::try_from(self.bytes.len() - begin).unwrap() + lie;
        self.resize(begin, u32::try_from(size).unwrap());
    }

    /// Changes the size of the record at `begin`.
    pub fn resize(&mut self, begin: usize, size: u32) {
        let mut number = Self {
            bytes: Vec::new(),
            big_endian: self.big_endian,
            pid: self.pid,
        };
        number.numbers32(&[size]);
        self.bytes[begin + 4..begin + 8].copy_from_slice(&number.bytes);
    }

    /// Writes source positions, then the load with code.
    pub fn load(&mut self, load: &Load) {
        if !load.lines.is_empty() {
            self.lines(load);
        }
        self.load_body(load, load.name.as_bytes(), load.size, 0);
    }

    pub fn load_body(&mut self, load: &Load, name: &[u8], code: u64, lie: i64) {
        self.record(0, load.time, lie, |dump| {
            dump.numbers32(&[dump.pid, 4712]);
            let address = load.address.0;
            dump.numbers64(&[address, address, load.size, load.index]);
            dump.bytes.extend_from_slice(name);
            dump.bytes.push(0);
            let end = dump.bytes.len() + usize::try_from(code).unwrap();
            dump.bytes.resize(end, 0xc3);
        });
    }

    /// Writes debug information; repeated files use the short form.
    pub fn lines(&mut self, load: &Load) {
        self.record(2, load.time, 0, |dump| {
            dump.numbers64(&[load.address.0, load.lines.len() as u64]);
            let mut last: Option<&LineStart> = None;
            for line in &load.lines {
                dump.numbers64(&[line.address.0]);
                dump.numbers32(&[line.line, line.column]);
                let same = last.is_some_and(|last| last.file == line.file);
                let name = line.file.as_bytes();
                let name = if same { b"\xff" } else { name };
                dump.bytes.extend_from_slice(name);
                dump.bytes.push(0);
                last = Some(line);
            }
            // V8's padding.
            let end = dump.bytes.len().next_multiple_of(8);
            dump.bytes.resize(end, 0);
        });
    }

    pub fn moved(&mut self, moved: &Move) {
        self.record(1, moved.time, 0, |dump| {
            dump.numbers32(&[dump.pid, 4712]);
            let (from, to) = (moved.from.0, moved.to.0);
            dump.numbers64(&[to, from, to, moved.size, moved.index]);
        });
    }

    pub fn close(&mut self, time: u64) {
        self.record(3, time, 0, |_| {});
    }

    /// Writes `bytes` bytes of unwinding information.
    pub fn unwinding(&mut self, bytes: u64) {
        self.record(4, 0, 0, |dump| {
            dump.numbers64(&[bytes, 0, 0]);
            let end = dump.bytes.len() + usize::try_from(bytes).unwrap();
            dump.bytes.resize(end.next_multiple_of(8), 0x41);
        });
    }
}
