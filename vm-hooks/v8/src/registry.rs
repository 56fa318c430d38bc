//! All machine code of all isolates: by V8's own trees of code (since V8 12), or by a walk over pages.

use vmscope_process::{AdapterError, MapEntry, Memory, read_words};
use vmscope_records::Avma;

use crate::object::{Heap, Tagged};
use crate::tree::{KEY, Node, ROOT, TOO_MUCH, VALUE, last_before, nodes};
use crate::versions::Registry;

/// Maximum number of pieces of code.
pub const MAX_CODE: usize = 1 << 18;

/// Maximum number of pages of code.
const MAX_PAGES: usize = 1 << 14;

/// Offset of the pages' tree in `ThreadIsolation::trusted_data_`.
const PAGES: u64 = 24;

/// Type of an entry that is an instruction stream; others are WebAssembly's.
const INSTRUCTION_STREAM: u32 = 0;

/// Alignment of a page of code.
const PAGE: u64 = 1 << 18;

/// Maximum bytes of code of all pages.
const MAX_BYTES: u64 = 1 << 30;

/// Largest page: each large function has its own page.
const MAX_PAGE: u64 = 64 << 20;

/// Alignment of code in a page.
const ALIGNMENT: u64 = 32;

/// Addresses of instruction streams, and whether the list is incomplete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Streams {
    /// Ascending, each once.
    pub addresses: Vec<Avma>,
    /// Why some are missing.
    pub damage: Option<&'static str>,
}

/// Address of the root of the pages' tree; `trusted` is the address of `ThreadIsolation::trusted_data_`.
fn root_of_pages(memory: &dyn Memory, trusted: Avma) -> Result<Avma, AdapterError> {
    let failed = AdapterError::reading("list of code");
    let map = memory.read_u64(Avma(trusted.0.wrapping_add(PAGES)));
    let map = map.map_err(&failed)?;
    if map == 0 {
        return Err(AdapterError::NotReady {
            what: "list of code",
        });
    }
    let root = memory.read_u64(Avma(map.wrapping_add(ROOT)));
    root.map(Avma).map_err(&failed)
}

/// Roots of the trees of code of these pages; `None` for unreadable ones.
fn roots_of_code(
    memory: &dyn Memory,
    pages: impl Iterator<Item = Node>,
    allocations: u64,
) -> Result<Vec<Option<Avma>>, AdapterError> {
    let root_at = |page: Node| Avma(page[VALUE].wrapping_add(allocations + ROOT));
    let at: Vec<Avma> = pages.map(root_at).collect();
    let roots = read_words(memory, &at).map_err(AdapterError::reading("list of code"))?;
    let roots = roots.into_iter().map(|root| root.map(|[root]| Avma(root)));
    Ok(roots.collect())
}

/// Instruction streams, by V8's trees, that may hold `addresses`: for each, the last before it.
///
/// # Errors
/// As [`by_trees`].
pub fn by_trees_at(
    memory: &dyn Memory,
    trusted: Avma,
    allocations: u64,
    addresses: &[Avma],
) -> Result<Vec<Avma>, AdapterError> {
    let root = root_of_pages(memory, trusted)?;
    let places: Vec<(Avma, Avma)> = addresses.iter().map(|at| (root, *at)).collect();
    let pages = last_before(memory, &places)?;
    let pages = addresses.iter().zip(pages);
    let pages: Vec<(Avma, Node)> = pages.filter_map(|(at, page)| Some((*at, page?))).collect();
    let roots = roots_of_code(memory, pages.iter().map(|(_, page)| *page), allocations)?;
    let places = pages.iter().zip(roots);
    let places: Vec<(Avma, Avma)> = places
        .filter_map(|((at, _), root)| Some((root?, *at)))
        .collect();
    let found = last_before(memory, &places)?;
    let streams = found.into_iter().flatten().filter(is_stream);
    Ok(sorted(streams.map(|node| Avma(node[KEY])).collect(), None).addresses)
}

/// Nodes hold a size, then a type of 32 bits.
fn is_stream(node: &Node) -> bool {
    node[VALUE + 1] as u32 == INSTRUCTION_STREAM
}

/// Instruction streams by V8's trees; `trusted` is the address of `ThreadIsolation::trusted_data_`.
///
/// # Errors
/// Failed reads.
pub fn by_trees(
    memory: &dyn Memory,
    trusted: Avma,
    allocations: u64,
) -> Result<Streams, AdapterError> {
    let mut damage = None;
    let root = root_of_pages(memory, trusted)?;
    let pages = nodes(memory, vec![root], (MAX_PAGES, &mut damage))?;
    let roots = roots_of_code(memory, pages.into_iter(), allocations)?;
    let roots = roots.into_iter().flatten().collect();
    let found = nodes(memory, roots, (MAX_CODE, &mut damage))?;
    let streams = found.iter().filter(|node| is_stream(node));
    Ok(sorted(
        streams.map(|node| Avma(node[KEY])).collect(),
        damage,
    ))
}

/// Instruction streams by a walk over all pages of code in `mappings`.
///
/// # Errors
/// Failed reads of all memory.
pub fn by_pages(
    heap: &Heap<'_>,
    mappings: &[MapEntry],
    (stream_map, free_map): (Tagged, Tagged),
) -> Result<Streams, AdapterError> {
    let Registry::Pages {
        size,
        area_start,
        area_end,
    } = heap.layout.registry
    else {
        return Ok(Streams::default());
    };
    let pages = mappings
        .iter()
        .filter(|entry| entry.is_for_generated_code());
    let mut pages: Vec<Avma> = pages
        .map(|entry| Avma(entry.start.0 & !(PAGE - 1)))
        .collect();
    pages.dedup();
    let (mut all, mut left) = (Streams::default(), MAX_BYTES);
    for page in pages.into_iter().take(MAX_PAGES) {
        let word = |offset: u64| heap.memory.read_u64(Avma(page.0.wrapping_add(offset)));
        let (Ok(length), Ok(from), Ok(to)) = (word(size), word(area_start), word(area_end)) else {
            continue;
        };
        let end = page.0.wrapping_add(length);
        if from < page.0 || to < from || to > end || !(PAGE / 4..=MAX_PAGE).contains(&length) {
            continue;
        }
        let Some(rest) = left.checked_sub(to - from) else {
            all.damage = Some(TOO_MUCH);
            break;
        };
        left = rest;
        let mut area = vec![0; usize::try_from(to - from).unwrap_or(0)];
        let got = heap.memory.read_partial(Avma(from), &mut area);
        match got {
            Err(error) if error.is_final() => return Err(AdapterError::reading("code")(error)),
            got => area.truncate(got.unwrap_or(0)),
        }
        let area = Area {
            base: from,
            bytes: &area,
        };
        area.walk(heap, (stream_map, free_map), &mut all);
    }
    Ok(sorted(all.addresses, all.damage))
}

/// Objects of a page, read at once.
#[derive(Clone, Copy)]
struct Area<'a> {
    base: u64,
    bytes: &'a [u8],
}

impl Area<'_> {
    fn word(&self, at: usize) -> Option<u64> {
        let bytes = self.bytes.get(at..)?.first_chunk::<8>()?;
        Some(u64::from_le_bytes(*bytes))
    }

    /// Walks over all objects, and adds the streams' addresses.
    fn walk(&self, heap: &Heap<'_>, (stream_map, free_map): (Tagged, Tagged), all: &mut Streams) {
        let mut at = 0;
        while let Some(map) = self.word(at) {
            let size = if map == stream_map.0 {
                if all.addresses.len() >= MAX_CODE {
                    all.damage = Some(TOO_MUCH);
                    return;
                }
                all.addresses.push(Avma(self.base + at as u64));
                self.stream_size(heap, at)
            } else if map == free_map.0 {
                let size = self.word(at + 8).map(|size| size >> 32);
                size.filter(|size| *size >= 16)
            } else {
                Some(8)
            };
            let Some(size) = size.and_then(|size| usize::try_from(size).ok()) else {
                all.damage = Some("a page of code is damaged, or changed while vmscope read it");
                return;
            };
            at = at.saturating_add(size);
        }
    }

    /// Bytes of an instruction stream: header, instructions, metadata. The sizes of both parts are
    /// neighbours.
    fn stream_size(&self, heap: &Heap<'_>, at: usize) -> Option<u64> {
        let layout = heap.layout;
        let sizes = match layout.stream.code {
            None => self.word(at + usize::try_from(layout.code.size).ok()?)?,
            Some(code) => {
                let object = Tagged(self.word(at + usize::try_from(code).ok()?)?);
                let sizes = heap.at(object, layout.code.size, "code").ok()?;
                heap.memory.read_u64(sizes).ok()?
            }
        };
        let (instructions, metadata) = (sizes & u64::from(u32::MAX), sizes >> 32);
        let size = layout.stream.start + instructions + metadata;
        Some(size.next_multiple_of(ALIGNMENT))
    }
}

fn sorted(mut addresses: Vec<Avma>, damage: Option<&'static str>) -> Streams {
    addresses.sort();
    addresses.dedup();
    Streams { addresses, damage }
}
