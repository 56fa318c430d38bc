//! Messages of interpreter rules.

use super::{Wire, WireError, messages as m};
use crate::{
    Avma, InterpreterRules, InterpreterSource, InterpreterValue, ProcessKey, SamplePlace, TimeNs,
};

impl Wire<m::InterpreterRules> for InterpreterRules {
    fn to_wire(&self) -> m::InterpreterRules {
        let size = |(start, end): &(Avma, Avma)| end.0.saturating_sub(start.0);
        m::InterpreterRules {
            process: self.process.0,
            time: self.time.0,
            vm: self.vm.clone(),
            starts: self.ranges.iter().map(|(start, _)| start.0).collect(),
            sizes: self.ranges.iter().map(size).collect(),
            sources: self.sources.iter().map(source_message).collect(),
        }
    }

    fn from_wire(r: m::InterpreterRules) -> Result<Self, WireError> {
        if r.starts.len() != r.sizes.len() {
            return Err(WireError::Columns("ranges"));
        }
        if r.starts.len() > InterpreterRules::MAX_RANGES
            || r.sources.len() > InterpreterRules::MAX_SOURCES
        {
            return Err(WireError::TooManyParts);
        }
        let range = |(start, size): (u64, u64)| {
            let end = start.checked_add(size).ok_or(WireError::Range("size"))?;
            Ok((Avma(start), Avma(end)))
        };
        let ranges = r.starts.into_iter().zip(r.sizes).map(range);
        // Skip sources with unknown contents.
        let sources = r
            .sources
            .iter()
            .filter_map(|source| source_of(source).transpose());
        Ok(InterpreterRules {
            process: ProcessKey(r.process),
            time: TimeNs(r.time),
            vm: r.vm,
            ranges: ranges.collect::<Result<_, WireError>>()?,
            sources: sources.collect::<Result<_, _>>()?,
        })
    }
}

fn source_message(source: &InterpreterSource) -> m::InterpreterSource {
    let (register, offset, added) = match source.place {
        SamplePlace::Register(register) => (register, None, None),
        SamplePlace::Stack { base, offset } => (base, Some(offset), None),
        SamplePlace::Sum { base, index } => (base, None, Some(index)),
    };
    m::InterpreterSource {
        register,
        on_stack: offset.is_some(),
        offset: offset.map_or(0, i64::from),
        added,
        holds: match source.holds {
            InterpreterValue::Bytecode => 1,
            InterpreterValue::Method => 2,
            InterpreterValue::Caller => 3,
        },
    }
}

fn source_of(source: &m::InterpreterSource) -> Result<Option<InterpreterSource>, WireError> {
    let holds = match source.holds {
        1 => InterpreterValue::Bytecode,
        2 => InterpreterValue::Method,
        3 => InterpreterValue::Caller,
        _ => return Ok(None),
    };
    let place = if source.on_stack {
        SamplePlace::Stack {
            base: source.register,
            offset: i32::try_from(source.offset).map_err(|_| WireError::Range("offset"))?,
        }
    } else if let Some(index) = source.added {
        SamplePlace::Sum {
            base: source.register,
            index,
        }
    } else {
        SamplePlace::Register(source.register)
    };
    Ok(Some(InterpreterSource { place, holds }))
}
