//! Functions of code and of bytecodes, and the methods that stand for them.

use vmscope_process::{AdapterError, Poll, known};
use vmscope_records::{Method, MethodKey, TimeNs};

use super::names::shown_name;
use super::reader::Reader;
use super::{MAX_KNOWN, V8Adapter};
use crate::code::{Code, Kind};
use crate::function::Function;
use crate::object::Tagged;
use crate::owners::Owners;
use crate::sighted::Maps;

/// Result of the search for a code's function.
pub(super) enum Found {
    /// Its `SharedFunctionInfo`.
    Function(Tagged),
    /// It belongs to no function.
    Nothing,
    /// A later poll reads its function.
    Later,
}

impl V8Adapter {
    /// The function that a piece of code executes. [`V8Adapter::check_unmoved`] must follow.
    pub(super) fn function_of(
        &mut self,
        code: &Code,
        reader: &mut Reader<'_>,
        now: TimeNs,
    ) -> Result<Found, AdapterError> {
        let info = match code.kind {
            Kind::Turbofan | Kind::Maglev => reader.heap.function_of_optimised(code)?,
            Kind::Baseline => {
                let owner = match reader.has_owners {
                    // What this poll has read is current, as the check for collections confirms.
                    true => self.owners.function(code.data),
                    false => self.owner(code.data, reader, now)?,
                };
                match owner {
                    Some(info) => info,
                    None if reader.has_owners => return Ok(Found::Nothing),
                    None => return Ok(Found::Later),
                }
            }
            Kind::Builtin | Kind::RegExp | Kind::Wasm | Kind::Interpreted => {
                return Ok(Found::Nothing);
            }
        };
        Ok(Found::Function(info))
    }

    /// The function with these bytecodes. For an unknown function, a poll reads the functions of new scripts
    /// once, if the pause is over. After a longer pause, the poll also reads the functions of all scripts; at first, all
    /// scripts are new.
    pub(super) fn owner(
        &mut self,
        bytecodes: Tagged,
        reader: &mut Reader<'_>,
        now: TimeNs,
    ) -> Result<Option<Tagged>, AdapterError> {
        let maps = reader.bytecode_maps()?;
        if !self.owners.has_died()
            && let Some(known) = self.owners.current(&reader.heap, bytecodes, &maps)?
        {
            return Ok(Some(known));
        }
        let maps = Maps {
            bytecodes: maps,
            functions: reader.function_maps()?,
        };
        let died_until = self.states.died_until();
        let sighted = (self.sighted).current(&reader.direct, bytecodes, &maps, died_until)?;
        if sighted.is_some() {
            return Ok(sighted);
        }
        let is_due = self.is_last || self.owner_readings.is_due(now);
        let are_due = self.is_last || self.script_readings.is_due(now);
        if !reader.has_new_owners && are_due && (self.has_begun || !is_due) {
            let (isolates, tables) = (reader.isolates, reader.tables);
            let (owners, heap) = (&mut self.owners, &reader.direct);
            let read = || owners.read_new(heap, isolates, tables);
            self.script_readings.reading(now, read)?;
            reader.has_new_owners = true;
            if let Some(known) = self
                .owners
                .current(&reader.heap, bytecodes, &maps.bytecodes)?
            {
                return Ok(Some(known));
            }
        }
        if reader.has_owners || !is_due {
            return Ok(None);
        }
        let (isolates, tables) = (reader.isolates, reader.tables);
        let read = || Owners::read(&reader.direct, isolates, tables);
        self.owners = self.owner_readings.reading(now, read)?;
        reader.has_owners = true;
        self.owners
            .current(&reader.heap, bytecodes, &maps.bytecodes)
    }

    pub(super) fn method(
        &mut self,
        function: &Function,
        reader: &mut Reader<'_>,
        poll: &mut Poll,
    ) -> Result<Option<MethodKey>, AdapterError> {
        let id = reader.method_id(function)?;
        if let Some(key) = self.methods.get(&id) {
            return Ok(Some(*key));
        }
        if self.methods.len() >= MAX_KNOWN {
            self.methods.clear();
            self.names.methods.clear();
        }
        let key = poll.keys().method();
        let name = shown_name(&id);
        self.names.methods.insert(key, name.clone());
        poll.method(Method {
            key,
            time: poll.now(),
            name,
            file: id.file.clone(),
            ..Method::default()
        });
        self.methods.insert(id, key);
        Ok(Some(key))
    }

    /// The method of a `SharedFunctionInfo`; `None` if it is damaged.
    pub(super) fn method_of(
        &mut self,
        info: Tagged,
        reader: &mut Reader<'_>,
        poll: &mut Poll,
    ) -> Result<Option<MethodKey>, AdapterError> {
        if let Some(known) = reader.methods.get(&info) {
            return Ok(*known);
        }
        let method = match known(reader.heap.function(info))? {
            None => None,
            Some(function) => self.method(&function, reader, poll)?,
        };
        reader.methods.insert(info, method);
        Ok(method)
    }
}
