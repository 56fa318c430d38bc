//! All methods of a JVM, by where their bytecodes are: an interpreted frame shows only
//! the address of the bytecode that it executes.

use vmscope_records::Avma;
use vmscope_target::{AdapterError, Memory};

use crate::layout::{Scalar, VmStructs};
use crate::method::MethodLayout;

/// More class loaders, classes of one loader, or methods of one class are not believed.
const MAX_LOADERS: usize = 1 << 20;
const MAX_CLASSES: usize = 1 << 22;
const MAX_METHODS: u64 = 1 << 16;

/// More methods than this are not indexed.
const MAX_INDEX: usize = 4 << 20;

const WHAT: &str = "classes";

/// Where things lie in class loaders and classes.
#[derive(Clone, Debug)]
pub struct ClassLayout {
    head: Avma,
    next_loader: Scalar,
    classes: Scalar,
    next_class: Scalar,
    layout_helper: Scalar,
    methods: Scalar,
    array_length: Scalar,
    array_data: u64,
}

/// Methods by their bytecodes' addresses.
#[derive(Clone, Debug, Default)]
pub struct BytecodeIndex {
    /// First address, first address after, `Method*`; ascending.
    ranges: Vec<(u64, u64, Avma)>,
    /// All `Method*`, ascending.
    methods: Vec<Avma>,
    /// Classes and methods that could not be read: they came or went meanwhile.
    pub unread: u64,
    /// Whether there were more than are indexed.
    pub is_cut: bool,
}

impl ClassLayout {
    /// Looks everything up.
    ///
    /// # Errors
    ///
    /// [`AdapterError::MissingField`].
    pub fn of(structs: &VmStructs) -> Result<Self, AdapterError> {
        Ok(ClassLayout {
            head: structs.static_at("ClassLoaderDataGraph", "_head")?,
            next_loader: structs.scalar("ClassLoaderData", "_next")?,
            classes: structs.scalar("ClassLoaderData", "_klasses")?,
            next_class: structs.scalar("Klass", "_next_link")?,
            layout_helper: structs.scalar("Klass", "_layout_helper")?,
            methods: structs.scalar("InstanceKlass", "_methods")?,
            array_length: structs.scalar("Array<int>", "_length")?,
            array_data: structs.offset("Array<Method*>", "_data")?,
        })
    }

    /// Walks all class loaders. A class that goes while it is read ends its loader's
    /// list; that is counted.
    ///
    /// # Errors
    ///
    /// What reading the first loader fails with, and what is final.
    pub fn index(
        &self,
        methods: &MethodLayout,
        memory: &dyn Memory,
    ) -> Result<BytecodeIndex, AdapterError> {
        let mut index = BytecodeIndex::default();
        let reading = AdapterError::reading(WHAT);
        let mut loader = Avma(memory.read_u64(self.head).map_err(&reading)?);
        let mut classes = 0;
        for _ in 0..MAX_LOADERS {
            if loader.0 == 0 {
                break;
            }
            let mut class = self.classes.read_address(memory, loader, WHAT)?;
            while class.0 != 0 && classes < MAX_CLASSES && !index.is_cut {
                classes += 1;
                if let Err(error) = self.methods_of(class, methods, memory, &mut index) {
                    if error.is_final() {
                        return Err(error);
                    }
                    index.unread += 1;
                }
                match self.next_class.read_address(memory, class, WHAT) {
                    Ok(next) => class = next,
                    Err(error) if error.is_final() => return Err(error),
                    Err(_) => {
                        index.unread += 1;
                        break;
                    }
                }
            }
            match self.next_loader.read_address(memory, loader, WHAT) {
                Ok(next) => loader = next,
                Err(error) if error.is_final() => return Err(error),
                Err(_) => {
                    index.unread += 1;
                    break;
                }
            }
        }
        index.ranges.sort_unstable();
        index.methods = index.ranges.iter().map(|(_, _, method)| *method).collect();
        index.methods.sort_unstable();
        Ok(index)
    }

    fn methods_of(
        &self,
        class: Avma,
        methods: &MethodLayout,
        memory: &dyn Memory,
        index: &mut BytecodeIndex,
    ) -> Result<(), AdapterError> {
        // Arrays have no methods, and no field for them; their helper is negative.
        if self.layout_helper.read(memory, class, WHAT)? <= 0 {
            return Ok(());
        }
        let array = self.methods.read_address(memory, class, WHAT)?;
        if array.0 == 0 {
            return Ok(());
        }
        let length = self.array_length.read(memory, array, WHAT)?;
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        if length > MAX_METHODS {
            return Err(AdapterError::TooMany {
                what: "methods of a class",
                cap: MAX_METHODS,
            });
        }
        let data = Avma(array.0.wrapping_add(self.array_data));
        let all = memory
            .read_u64s(data, length, 1 << 16)
            .map_err(AdapterError::reading(WHAT))?;
        for method in all.into_iter().map(Avma) {
            if index.ranges.len() >= MAX_INDEX {
                index.is_cut = true;
                break;
            }
            match methods.bytecode_range(memory, method) {
                Ok((_, 0)) => {}
                Ok((at, size)) => {
                    let end = at.0.saturating_add(size);
                    index.ranges.push((at.0, end, method));
                }
                Err(error) if error.is_final() => return Err(error),
                Err(_) => index.unread += 1,
            }
        }
        Ok(())
    }
}

impl BytecodeIndex {
    /// The method that the bytecode at `at` belongs to, and where its bytecodes are.
    #[must_use]
    pub fn find(&self, at: Avma) -> Option<(Avma, Avma, Avma)> {
        let after = self.ranges.partition_point(|(start, _, _)| *start <= at.0);
        let (start, end, method) = *self.ranges.get(after.checked_sub(1)?)?;
        (at.0 < end).then_some((method, Avma(start), Avma(end)))
    }

    /// Whether there is a method's object at `at`.
    #[must_use]
    pub fn is_method(&self, at: Avma) -> bool {
        self.methods.binary_search(&at).is_ok()
    }

    /// How many methods there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}
