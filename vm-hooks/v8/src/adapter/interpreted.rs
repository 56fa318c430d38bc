//! Interpreted functions that samples show.

use vmscope_process::{AdapterError, Poll, ProcessView, known};

use super::V8Adapter;
use super::reader::Reader;

impl V8Adapter {
    /// Reports interpreted functions that samples show.
    pub(super) fn tell_interpreted(
        &mut self,
        process: &ProcessView,
        reader: &mut Reader<'_>,
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        let maps = reader.bytecode_maps()?;
        self.interpreted.keep(poll);
        let values = self.interpreted.take_kept();
        let found = reader.direct.fields(&values, 0)?;
        for (value, map) in values.into_iter().zip(found) {
            if !map.is_some_and(|map| maps.contains(&map)) || !self.interpreted.has_room() {
                continue;
            }
            let Some(info) = self.owner(value, reader, poll.now())? else {
                if !reader.has_owners {
                    self.interpreted.keep_value(value);
                }
                continue;
            };
            // Lines and bytecodes; the name alone if they are unreadable.
            let whole = poll.spending(|poll| self.whole(info, process, reader, poll));
            let method = match known(whole)?.flatten() {
                Some(whole) => Some(whole.key),
                None => self.method_of(info, reader, poll)?,
            };
            if let Some(method) = method {
                known((self.interpreted).put(&reader.heap, value, (info, method)))?;
            }
        }
        if reader.has_owners {
            self.keep_interpreted(reader, poll)?;
        }
        self.interpreted.tell(poll);
        Ok(())
    }

    /// Forgets interpreted functions whose bytecodes have moved.
    fn keep_interpreted(
        &mut self,
        reader: &mut Reader<'_>,
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        let known: Vec<_> = self.interpreted.functions().collect();
        for (bytecodes, info, method) in known {
            let now = self.owners.function(bytecodes);
            let is_same = match now {
                Some(other) if other != info => {
                    self.method_of(other, reader, poll)? == Some(method)
                }
                other => other.is_some(),
            };
            if !is_same {
                self.interpreted.forget(bytecodes);
            }
        }
        Ok(())
    }
}
