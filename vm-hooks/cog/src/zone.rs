//! The code zone: trampolines, then methods, then free space, then the array of young referrers.
//!
//! ```text
//! codeBase       methodZoneBase              mzFreeStart       youngReferrers   limitAddress
//!    │ trampolines    │ methods, blocks, PICs     │ free            │ pointers      │
//! ```

use vmscope_process::{AdapterError, Memory};
use vmscope_records::Avma;

use crate::Variables;
use crate::cog_method::{CogMethod, Damage, Fields, Layout, RawEntry, number};
use crate::variables::ZONE;

/// Maximum size of a code zone; the VM's own is 16 MiB.
const MAX_ZONE: u64 = 32 << 20;

/// Maximum number of entries: several times those of a full zone of 16 MiB.
const MAX_ENTRIES: usize = 1 << 17;

/// Alignment of methods in bytes.
const ALIGNMENT: usize = 8;

/// Limits of the zone's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Start: the first trampoline.
    pub start: Avma,
    /// First method.
    pub methods: Avma,
    /// End of the methods.
    pub free: Avma,
    /// The array of young referrers.
    pub young_referrers: Avma,
    /// End.
    pub end: Avma,
}

impl Bounds {
    /// Reads the limits.
    ///
    /// # Errors
    /// [`AdapterError::NotReady`] before the VM has a code zone, impossible limits; failed reads.
    pub fn read(variables: &Variables, memory: &dyn Memory) -> Result<Self, AdapterError> {
        let mut limits = [0; ZONE.len()];
        for (limit, name) in limits.iter_mut().zip(ZONE) {
            let at = variables.needed(name)?;
            let value = memory.read_pointer(at);
            *limit = value
                .map_err(AdapterError::reading("code zone's limits"))?
                .0;
        }
        let [start, methods, free, young_referrers, end] = limits;
        if limits.contains(&0) {
            return Err(AdapterError::NotReady { what: "code zone" });
        }
        let is_sorted = limits.is_sorted();
        if !is_sorted || end - start > MAX_ZONE || !methods.is_multiple_of(ALIGNMENT as u64) {
            let wrong = ZONE.iter().zip(limits);
            let mut wrong = wrong.filter(|(_, limit)| *limit < start || limit - start > MAX_ZONE);
            let (name, value) = wrong.next().unwrap_or((&"methodZoneBase", methods));
            return Err(AdapterError::Implausible {
                what: "code zone's limit",
                value,
                at: variables.needed(name)?,
            });
        }
        Ok(Bounds {
            start: Avma(start),
            methods: Avma(methods),
            free: Avma(free),
            young_referrers: Avma(young_referrers),
            end: Avma(end),
        })
    }
}

/// The methods of a zone, with the memory of their code.
#[derive(Clone, Debug)]
pub struct Methods {
    /// Entries, ascending.
    pub entries: Vec<CogMethod>,
    /// Addresses of entries that may refer to young objects, as the VM's array lists them.
    pub young_referrers: Vec<Avma>,
    /// Their layout; `None` if nothing shows it, and entries are read as classic ones.
    pub layout: Option<Layout>,
    /// Reason for which entries after the last one are unknown.
    pub damage: Option<Damage>,
    bytes: Vec<u8>,
    start: Avma,
}

impl Methods {
    /// Reads all methods in few reads. Stops at an impossible entry.
    ///
    /// # Errors
    /// Failed reads.
    pub fn read(
        bounds: &Bounds,
        evidence: &Evidence,
        memory: &dyn Memory,
    ) -> Result<Self, AdapterError> {
        let cap = usize::try_from(MAX_ZONE).unwrap_or(usize::MAX);
        let reading = AdapterError::reading("code zone");
        let bytes = memory.read_vec(bounds.methods, bounds.free.0 - bounds.methods.0, cap);
        let referrers = bounds.end.0 - bounds.young_referrers.0;
        let referrers = memory.read_vec(bounds.young_referrers, referrers, cap);
        let word = memory.pointer_bytes();
        let mut methods = Methods {
            entries: Vec::new(),
            layout: None,
            young_referrers: words(&referrers.map_err(&reading)?, word),
            damage: None,
            bytes: bytes.map_err(&reading)?,
            start: bounds.methods,
        };
        let fields = Fields::of(word);
        methods.layout = evidence.layout(&methods.bytes, methods.start, &fields);
        let layout = methods.layout.unwrap_or(Layout::Classic);
        methods.damage = methods.walk(layout, &fields).err();
        Ok(methods)
    }

    /// Bytes of an entry.
    #[must_use]
    pub fn code(&self, entry: &CogMethod) -> &[u8] {
        let from = entry.at.offset_from(self.start).unwrap_or(u64::MAX);
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let rest = self.bytes.get(from..).unwrap_or_default();
        rest.get(..usize::from(entry.size)).unwrap_or(rest)
    }

    /// The entry that begins at `at`.
    #[must_use]
    pub fn at(&self, at: Avma) -> Option<&CogMethod> {
        let index = self.entries.binary_search_by_key(&at, |entry| entry.at);
        self.entries.get(index.ok()?)
    }

    /// The entry whose code contains `at`.
    #[must_use]
    pub fn around(&self, at: Avma) -> Option<&CogMethod> {
        let after = self.entries.partition_point(|entry| entry.at <= at);
        let entry = self.entries.get(after.checked_sub(1)?)?;
        (at < entry.end()).then_some(entry)
    }

    fn walk(&mut self, layout: Layout, fields: &Fields) -> Result<(), Damage> {
        let mut from = 0;
        while let Some((raw, at)) = raw_at(&self.bytes, self.start, from, fields) {
            let entry = raw?.interpret(at, layout, fields)?;
            from = behind(from, entry.size);
            self.entries.push(entry);
            if self.entries.len() > MAX_ENTRIES {
                let (what, value) = ("number of methods", MAX_ENTRIES as u64);
                return Err(Damage { what, value, at });
            }
        }
        Ok(())
    }
}

/// The entry at offset `from` in `bytes`, and its address; `None` at the end.
fn raw_at<'b>(
    bytes: &'b [u8],
    start: Avma,
    from: usize,
    fields: &Fields,
) -> Option<(Result<RawEntry<'b>, Damage>, Avma)> {
    let rest = bytes.get(from..).filter(|rest| !rest.is_empty())?;
    let at = Avma(start.0.saturating_add(from as u64));
    Some((RawEntry::of(rest, at, fields), at))
}

/// Offset of the next entry.
fn behind(from: usize, size: u16) -> usize {
    from.saturating_add(usize::from(size).next_multiple_of(ALIGNMENT))
}

/// Constants of a VM that show its layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Size of a closed PIC.
    pub closed_pic: Option<u64>,
    /// Size of an open PIC.
    pub open_pic: Option<u64>,
    /// Number of bytecode sets in the VM's table.
    pub bytecode_sets: Option<usize>,
}

impl Evidence {
    /// The layout; `None` without evidence.
    ///
    /// Only the classic layout has type 5. Type 3 is an entry in Pharo only: classic blocks (type 3) lie inside
    /// methods. Type 4 is a closed PIC in the classic layout and an open PIC in Pharo: the size decides. Pharo has
    /// one set of bytecodes.
    fn layout(&self, bytes: &[u8], start: Avma, fields: &Fields) -> Option<Layout> {
        let mut from = 0;
        while let Some((Ok(raw), _)) = raw_at(bytes, start, from, fields) {
            let size = Some(u64::from(raw.size));
            let has_sizes = self.closed_pic != self.open_pic;
            match raw.kind {
                3 => return Some(Layout::Pharo),
                5 => return Some(Layout::Classic),
                4 if has_sizes && size == self.closed_pic => return Some(Layout::Classic),
                4 if has_sizes && size == self.open_pic => return Some(Layout::Pharo),
                _ => from = behind(from, raw.size),
            }
        }
        match self.bytecode_sets? {
            1 => Some(Layout::Pharo),
            _ => Some(Layout::Classic),
        }
    }
}

fn words(bytes: &[u8], word: usize) -> Vec<Avma> {
    let words = bytes.chunks_exact(word.max(1));
    words.map(|bytes| Avma(number(bytes))).collect()
}
