//! V8's constants for debuggers: symbols `v8dbg_*`, each a 32-bit number.

use vmscope_process::{AdapterError, Memory, Symbol};
use vmscope_records::Avma;

pub(crate) const PREFIX: &str = "v8dbg_";

/// The constants of one V8, by name.
#[derive(Clone, Debug, Default)]
pub struct Debug {
    /// Without the prefix, in order of names.
    values: Vec<(String, u64)>,
}

impl Debug {
    /// Reads the constants among V8's `symbols`. Builds without constants give none.
    ///
    /// # Errors
    /// Failed reads.
    pub fn read(symbols: &[Symbol], memory: &dyn Memory) -> Result<Self, AdapterError> {
        let symbols = symbols
            .iter()
            .filter(|symbol| symbol.name.starts_with(PREFIX));
        let symbols: Vec<&Symbol> = symbols.collect();
        let addresses: Vec<Avma> = symbols.iter().map(|symbol| symbol.address).collect();
        let mut bytes = Vec::new();
        let read = memory.read_each(&addresses, 4, &mut bytes);
        let read = read.map_err(AdapterError::reading("constants for debuggers"))?;
        let (numbers, _) = bytes.as_chunks::<4>();
        let each = symbols.iter().zip(numbers).zip(read);
        let mut values: Vec<(String, u64)> = each
            .filter(|(_, is_read)| *is_read)
            .filter_map(|((symbol, number), _)| {
                let name = symbol.name.strip_prefix(PREFIX)?;
                let number = u32::from_le_bytes(*number);
                Some((name.to_owned(), u64::from(number)))
            })
            .collect();
        values.sort();
        Ok(Debug { values })
    }

    /// The number of the first constant that begins with `name`: names end with types, which change
    /// between versions.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        let at = self.values.partition_point(|(other, _)| &**other < name);
        let (found, value) = self.values.get(at)?;
        found.starts_with(name).then_some(*value)
    }

    /// Whether V8 has no constants.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_is_found_by_the_begin_of_its_name() {
        let values = [
            ("CodeKindBaseline", 11),
            ("class_Code__flags__uint32_t", 48),
        ];
        let debug = Debug {
            values: values.map(|(name, value)| (name.to_owned(), value)).into(),
        };
        assert_eq!(debug.get("class_Code__flags"), Some(48));
        assert_eq!(debug.get("CodeKindBaseline"), Some(11));
        assert_eq!(debug.get("class_Code__size"), None);
        assert_eq!(debug.get("z"), None);
    }
}
