//! The state of a code zone after the last record.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use vmscope_records::{
    Avma, Constituent, ConstituentKey, ConstituentKind, Limit, LimitKind, Method, MethodKey,
    PicCase, Record,
};

/// Maximum memory of a table in bytes, roughly: several times the largest code caches with all pc
/// maps.
const MAX_BYTES: usize = 1 << 30;

/// Distinct limits.
const MAX_LIMITS: usize = 100;

/// The current state of a code zone: later records of a key replace earlier ones.
#[derive(Debug, Default)]
pub struct CodeTable {
    constituents: BTreeMap<ConstituentKey, Constituent>,
    /// Without bytecodes, lines and listings.
    methods: FxHashMap<MethodKey, Method>,
    limits: Vec<String>,
    bytes: usize,
    /// Records beyond [`MAX_BYTES`].
    refused: u64,
    lost: u64,
}

impl CodeTable {
    /// Takes a record; ignores records unrelated to code.
    pub fn take(&mut self, record: Record) {
        match record {
            Record::Constituent(one) => self.put(*one),
            Record::ConstituentGone(gone) => drop(self.remove(gone.key)),
            Record::ConstituentMoved(moved) => self.put_at(moved.key, moved.to),
            Record::Method(method) => self.put_method(*method),
            Record::Lost(lost) => self.lost += lost.count,
            Record::Limit(limit) => self.put_limit(limit),
            _ => {}
        }
    }

    /// Adds a limit of the table.
    pub fn limit(&mut self, text: String) {
        if self.limits.len() < MAX_LIMITS && !self.limits.contains(&text) {
            self.limits.push(text);
        }
    }

    /// No code.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.constituents.is_empty()
    }

    /// The constituents, sorted by key.
    pub fn constituents(&self) -> impl Iterator<Item = &Constituent> {
        self.constituents.values()
    }

    /// The code zone's constituents sorted by address, without data such as method objects.
    #[must_use]
    pub fn by_address(&self) -> Vec<&Constituent> {
        let is_code = |one: &&Constituent| {
            !matches!(
                one.kind,
                ConstituentKind::Bytecodes | ConstituentKind::MethodObject
            )
        };
        let mut all: Vec<&Constituent> = self.constituents().filter(is_code).collect();
        all.sort_by_key(|one| (one.start, one.end));
        all
    }

    /// The newest key.
    #[must_use]
    pub fn last_key(&self) -> Option<ConstituentKey> {
        self.constituents.last_key_value().map(|(key, _)| *key)
    }

    /// A method, without bytecodes and lines.
    #[must_use]
    pub fn method(&self, key: MethodKey) -> Option<&Method> {
        self.methods.get(&key)
    }

    /// Limits of the table, with remedies.
    #[must_use]
    pub fn limits(&self) -> Vec<String> {
        let mut limits = self.limits.clone();
        if self.lost > 0 {
            let lost = self.lost;
            limits.push(match lost {
                1 => "1 VM code event was lost; some code may be missing".to_owned(),
                _ => format!("{lost} VM code events were lost; some code may be missing"),
            });
        }
        if self.refused > 0 {
            limits.push(format!(
                "{} constituents, methods or pc maps were left out (more than {} MiB)",
                self.refused,
                MAX_BYTES >> 20
            ));
        }
        limits
    }

    fn put(&mut self, one: Constituent) {
        let before = self.remove(one.key);
        let bytes = bytes_of(&one);
        if self.has_room(bytes) {
            self.bytes += bytes;
            self.constituents.insert(one.key, one);
        } else if let Some(before) = before {
            // Without room for the new version, keep the old version.
            self.bytes += bytes_of(&before);
            self.constituents.insert(before.key, before);
        }
    }

    fn remove(&mut self, key: ConstituentKey) -> Option<Constituent> {
        let gone = self.constituents.remove(&key)?;
        self.bytes = self.bytes.saturating_sub(bytes_of(&gone));
        Some(gone)
    }

    fn put_at(&mut self, key: ConstituentKey, to: Avma) {
        if let Some(one) = self.constituents.get_mut(&key) {
            let bytes = one.end.0.saturating_sub(one.start.0);
            (one.start, one.end) = (to, Avma(to.0.saturating_add(bytes)));
        }
    }

    fn put_method(&mut self, method: Method) {
        let method = Method {
            lines: Vec::new(),
            bytecodes: Vec::new(),
            listing: Vec::new(),
            ..method
        };
        let bytes = size_of::<Method>() + method.heap_bytes();
        if self.has_room(bytes) {
            self.bytes += bytes;
            let before = self.methods.insert(method.key, method);
            let before = before.map_or(0, |before| size_of::<Method>() + before.heap_bytes());
            self.bytes = self.bytes.saturating_sub(before);
        }
    }

    /// Adds a record's limit. Limits about callers concern samples only.
    fn put_limit(&mut self, limit: Limit) {
        if limit.kind == LimitKind::Callers {
            return;
        }
        self.limit(match limit.remedy.as_str() {
            "" => limit.text,
            remedy => format!("{}; {remedy}", limit.text),
        });
    }

    fn has_room(&mut self, bytes: usize) -> bool {
        let has_room = self.bytes.saturating_add(bytes) <= MAX_BYTES;
        self.refused += u64::from(!has_room);
        has_room
    }
}

/// Memory of a constituent, roughly.
fn bytes_of(one: &Constituent) -> usize {
    let case = |case: &PicCase| size_of::<PicCase>() + case.class.len() + case.target.len();
    let cases: usize = one.cases.iter().map(case).sum();
    size_of::<Constituent>() + one.tier.len() + one.name.len() + cases + one.map.heap_bytes()
}
