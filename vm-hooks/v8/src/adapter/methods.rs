//! Methods with lines, bytecodes and listings, read once a sample needs them.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_process::{AdapterError, Poll, ProcessView, known};
use vmscope_records::{BytecodePc, LineEntry, Method, MethodKey, Position};

use super::names::shown_name;
use super::{Reader, V8Adapter};
use crate::bytecodes::{InstructionSet, Listing};
use crate::function::Script;
use crate::lines::{Lines, Width};
use crate::object::Tagged;
use crate::positions::positions;
use crate::strings::Characters;

/// Maximum number of characters of a script whose lines are read.
const MAX_SOURCE: u64 = 256 << 20;

/// Maximum number of characters of a source that is read through the cache.
const SHORT_SOURCE: u64 = 1 << 14;

/// Maximum memory for lines and positions, in bytes, before they are read again.
const MAX_KEPT: usize = 64 << 20;

/// What maps need of a method.
#[derive(Debug)]
pub(super) struct Whole {
    /// The method.
    pub key: MethodKey,
    /// Bytes of its bytecodes; 0 if they are unknown.
    pub size: usize,
    lines: Option<Arc<Lines>>,
    /// Offsets in the script with the first bytecode there, ascending.
    places: Vec<(u32, BytecodePc)>,
    /// Likewise, with the first call there: an expression and its call share an offset.
    calls: Vec<(u32, BytecodePc)>,
}

/// Methods and scripts that were read.
#[derive(Debug, Default)]
pub(super) struct Wholes {
    set: Option<Option<Arc<InstructionSet>>>,
    told: FxHashSet<MethodKey>,
    kept: FxHashMap<MethodKey, Arc<Whole>>,
    /// By script and its text: V8 may use an address again.
    lines: FxHashMap<(Tagged, Tagged, i32), Option<Arc<Lines>>>,
    bytes: usize,
}

impl Whole {
    /// The place of a source position: its first bytecode, else its line. In a caller of inlined code, its
    /// first call comes before both.
    pub fn position(&self, offset: Option<u32>, is_caller: bool) -> Position {
        let Some(offset) = offset else {
            return Position::Unknown;
        };
        let find = |places: &[(u32, BytecodePc)]| {
            let found = places.binary_search_by_key(&offset, |place| place.0);
            found.ok().and_then(|index| places.get(index)).copied()
        };
        let call = find(&self.calls).filter(|_| is_caller);
        if let Some((_, pc)) = call.or_else(|| find(&self.places)) {
            return Position::Bytecode(pc);
        }
        let line = self.lines.as_ref().and_then(|lines| lines.line_of(offset));
        line.map_or(Position::Unknown, Position::Line)
    }
}

impl V8Adapter {
    /// V8's instructions; `None` if they are unreadable.
    pub(super) fn instructions(
        &mut self,
        process: &ProcessView,
        reader: &Reader<'_>,
        poll: &mut Poll,
    ) -> Result<Option<Arc<InstructionSet>>, AdapterError> {
        if let Some(known) = &self.wholes.set {
            return Ok(known.clone());
        }
        let Some(isolate) = reader.isolates.first() else {
            return Ok(None);
        };
        let read = InstructionSet::read(process, &self.vm, (*isolate, reader.tables));
        let set = match read {
            Ok(set) => Some(Arc::new(set)),
            Err(AdapterError::NotReady { .. }) => return Ok(None),
            Err(error) if matches!(error, AdapterError::Gone { .. }) => return Err(error),
            Err(error) => {
                let error = error.in_full();
                self.limit(&format!("V8's bytecodes are unknown: {error}"), poll);
                None
            }
        };
        self.wholes.set = Some(set.clone());
        Ok(set)
    }

    /// The method of a function. Reports its lines, bytecodes and listing once.
    pub(super) fn whole(
        &mut self,
        info: Tagged,
        process: &ProcessView,
        reader: &mut Reader<'_>,
        poll: &mut Poll,
    ) -> Result<Option<Arc<Whole>>, AdapterError> {
        let function = reader.heap.function(info)?;
        let Some(key) = self.method(&function, reader, poll)? else {
            return Ok(None);
        };
        if let Some(known) = self.wholes.kept.get(&key) {
            return Ok(Some(Arc::clone(known)));
        }
        let id = reader.method_id(&function)?;
        let lines = match function.script {
            Some(script) => self.lines(script, reader, poll)?,
            None => None,
        };
        let line_of = |offset: u32| lines.as_ref()?.line_of(offset);
        let mut method = Method {
            key,
            time: poll.now(),
            name: shown_name(&id),
            line: function.position.and_then(line_of).unwrap_or(0),
            file: id.file,
            ..Method::default()
        };
        let (mut places, mut calls) = (Vec::new(), Vec::new());
        if let Some(bytecodes) = reader.bytecodes_of(info)? {
            method.bytecodes = reader.heap.bytecodes(bytecodes)?;
            let table = reader.heap.bytecode_positions(bytecodes)?;
            for entry in positions(&table, reader.heap.layout.positions).map_while(Result::ok) {
                let pc = BytecodePc(u32::try_from(entry.code).unwrap_or(0));
                let Some(offset) = entry.position.offset else {
                    continue;
                };
                // The function's begin may be lines above its first bytecode.
                if entry.code >= 0 {
                    places.push((offset, pc));
                }
                if let Some(line) = line_of(offset) {
                    put_line(&mut method.lines, LineEntry { from: pc, line });
                }
            }
            if let Some(set) = self.instructions(process, reader, poll)? {
                let constants = reader.heap.constants(bytecodes, reader.kinds()?)?;
                let listing = Listing {
                    set: &set,
                    first_register: reader.heap.layout.bytecodes.first_register,
                    constant: &|number| constants.get(number),
                };
                method.listing = listing.lines(&method.bytecodes);
                let called = set.instructions(&method.bytecodes).map_while(Result::ok);
                let called = called.filter(|it| is_call(set.name(it.opcode)));
                let called: FxHashSet<BytecodePc> = called.map(|it| it.pc).collect();
                let all = places.iter().copied();
                calls.extend(all.filter(|(_, pc)| called.contains(pc)));
            }
            // V8 may have moved the bytecodes meanwhile.
            if !reader.has_still(info, bytecodes)? {
                return Err(AdapterError::Busy { what: "bytecodes" });
            }
        }
        for places in [&mut places, &mut calls] {
            places.sort_unstable();
            places.dedup_by_key(|place| place.0);
        }
        let size = method.bytecodes.len();
        if self.wholes.told.insert(key) {
            poll.method(method);
        }
        self.make_room(size_of_val(places.as_slice()));
        let whole = Arc::new(Whole {
            key,
            size,
            lines,
            places,
            calls,
        });
        self.wholes.kept.insert(key, Arc::clone(&whole));
        Ok(Some(whole))
    }

    /// The lines of a script; `None` without text.
    fn lines(
        &mut self,
        script: Tagged,
        reader: &mut Reader<'_>,
        poll: &mut Poll,
    ) -> Result<Option<Arc<Lines>>, AdapterError> {
        let Script {
            id,
            source,
            line_offset,
            ..
        } = reader.script(script)?;
        let id = (script, source, id);
        if let Some(known) = self.wholes.lines.get(&id) {
            return Ok(known.clone());
        }
        let mut lines: Option<Lines> = None;
        // Long texts would fill the cache.
        let length = known(reader.heap.string_length(source))?;
        let heap = match length {
            Some(0..=SHORT_SOURCE) => reader.heap,
            _ => reader.direct,
        };
        let read = heap.visit_string(source, MAX_SOURCE, &mut |text| {
            let (bytes, width) = match text {
                Characters::OneByte(bytes) => (bytes, Width::One),
                Characters::TwoByte(bytes) => (bytes, Width::Two),
            };
            let lines = lines.get_or_insert_with(|| Lines::behind(line_offset));
            lines.add(bytes, width);
        });
        match read {
            Err(error) if error.is_final() => return Err(error),
            // V8 moves the text, or the script has none.
            Err(_) => return Ok(None),
            Ok(()) => {}
        }
        let lines = lines.map(Arc::new);
        let is_cut = lines.as_ref().is_some_and(|lines| lines.is_cut());
        if is_cut {
            self.limit("lines of a script beyond line 4,194,304 are unknown", poll);
        }
        self.make_room(lines.as_ref().map_or(0, |lines| lines.heap_bytes()));
        self.wholes.lines.insert(id, lines.clone());
        Ok(lines)
    }

    fn make_room(&mut self, bytes: usize) {
        self.wholes.bytes = self.wholes.bytes.saturating_add(bytes).saturating_add(64);
        if self.wholes.bytes > MAX_KEPT {
            self.wholes.kept.clear();
            self.wholes.lines.clear();
            self.wholes.bytes = bytes;
        }
    }
}

/// Whether an instruction calls a function that V8 may inline.
fn is_call(name: &str) -> bool {
    name.starts_with("Call") || name.starts_with("Construct")
}

/// Adds a line's begin. Of several at one bytecode, the last counts.
fn put_line(lines: &mut Vec<LineEntry>, entry: LineEntry) {
    lines.pop_if(|last| last.from == entry.from);
    if lines.last().is_none_or(|last| last.line != entry.line) {
        lines.push(entry);
    }
}
