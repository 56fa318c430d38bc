//! Writes the compiler's output into memory: literals, methods, blocks.

use num_bigint::{BigInt, Sign};

use super::{Image, Method, NoMemory, permanent, permanent_bytes};
use crate::compiler::{CompiledCode, Literal};
use crate::interpreter::objects;
use crate::memory::header::Format;
use crate::memory::{Heap, Oop, classes};

/// Bit of a method header: the code has a primitive.
pub const HAS_PRIMITIVE: i64 = 1 << 16;
/// Bits of a method header: number of literals.
pub const LITERALS: i64 = 0x7fff;
/// Shift of the temp count in a method header.
pub const TEMPS_SHIFT: u32 = 18;
/// Shift of the argument count in a method header.
pub const ARGS_SHIFT: u32 = 24;

/// The class and source location of built code.
#[derive(Debug)]
pub struct Owner<'a> {
    /// Index of the class.
    pub class: u32,
    /// The class's Association; for do-its, the root's Association.
    pub binding: Oop,
    /// Name of the class.
    pub name: &'a str,
    /// Source file.
    pub file: &'a str,
    /// First line.
    pub line: u32,
}

impl Image {
    /// Builds a method, with its blocks.
    pub(super) fn build(
        &mut self,
        heap: &mut Heap,
        code: CompiledCode,
        owner: &Owner<'_>,
    ) -> Result<Oop, NoMemory> {
        let selector = self.symbol(heap, code.selector.as_bytes())?;
        let name = code.selector.clone();
        let method =
            self.build_code(heap, code, owner, &name, classes::COMPILED_METHOD, selector)?;
        let last = literals_of(method);
        heap.store(method, last, owner.binding);
        Ok(method)
    }

    /// Builds code. The last literal stays nil until the caller stores the class's Association or
    /// the enclosing code.
    fn build_code(
        &mut self,
        heap: &mut Heap,
        code: CompiledCode,
        owner: &Owner<'_>,
        name: &str,
        class: u32,
        selector: Oop,
    ) -> Result<Oop, NoMemory> {
        let mut literals = Vec::with_capacity(code.literals.len() + 2);
        for literal in &code.literals {
            literals.push(self.literal(heap, literal, owner, name)?);
        }
        let blocks: Vec<Oop> = (code.literals.iter().zip(&literals))
            .filter(|(literal, _)| matches!(literal, Literal::Block(_)))
            .map(|(_, block)| *block)
            .collect();
        literals.extend([selector, heap.nil()]);
        let bytes = 8 * (literals.len() + 1) + code.bytecodes.len();
        let format = Format::with_bytes(Format::METHOD, bytes);
        let method = heap
            .allocate_permanent(class, format, bytes.div_ceil(8))
            .ok_or(NoMemory)?;
        let number = |value: usize| i64::try_from(value).unwrap_or(0);
        let header = number(literals.len()) & LITERALS
            | if code.primitive == 0 { 0 } else { HAS_PRIMITIVE }
            | number(code.num_temps) << TEMPS_SHIFT
            | number(code.num_args) << ARGS_SHIFT
            // A negative header selects the second bytecode set, SistaV1.
            | i64::MIN >> 3;
        heap.store(method, 0, Oop::small(header));
        for (at, literal) in literals.iter().enumerate() {
            heap.store(method, at + 1, *literal);
        }
        let first = 8 * (literals.len() + 1);
        if let Some(place) = objects::bytes_mut(method).get_mut(first..) {
            place.copy_from_slice(&code.bytecodes);
        }
        for block in blocks {
            heap.store(block, literals_of(block), method);
        }
        let id = u64::try_from(self.methods.len()).unwrap_or(0) + 1;
        self.by_address.insert(method, self.methods.len());
        self.methods.push(Method {
            oop: method,
            id,
            class: owner.name.to_owned(),
            name: name.to_owned(),
            file: owner.file.to_owned(),
            line: code
                .lines
                .first()
                .map_or(owner.line, |line| line.1.min(owner.line.max(line.1))),
            code,
        });
        Ok(method)
    }

    fn literal(
        &mut self,
        heap: &mut Heap,
        literal: &Literal,
        owner: &Owner<'_>,
        name: &str,
    ) -> Result<Oop, NoMemory> {
        Ok(match literal {
            Literal::Nil => heap.nil(),
            Literal::True => self.singleton("true", heap),
            Literal::False => self.singleton("false", heap),
            Literal::Integer(value) => {
                match i64::try_from(value).ok().and_then(Oop::from_integer) {
                    Some(small) => small,
                    None => permanent_bytes(heap, large_class(value), &magnitude(value))?,
                }
            }
            Literal::Float(value) => match Oop::from_float(*value) {
                Some(small) => small,
                None => permanent_bytes(heap, classes::BOXED_FLOAT, &value.to_le_bytes())?,
            },
            Literal::Character(code_point) => Oop::character(*code_point),
            Literal::String(text) => permanent_bytes(heap, classes::STRING, text)?,
            Literal::Symbol(text) => self.symbol(heap, text.as_bytes())?,
            Literal::Bytes(bytes) => permanent_bytes(heap, classes::BYTE_ARRAY, bytes)?,
            Literal::Array(elements) => {
                let array = permanent(heap, classes::ARRAY, Format::INDEXED, elements.len())?;
                for (at, element) in elements.iter().enumerate() {
                    let element = self.literal(heap, element, owner, name)?;
                    heap.store(array, at, element);
                }
                array
            }
            Literal::Binding(variable) => self.binding(heap, variable, owner.class)?,
            Literal::Block(code) => {
                let (nil, name) = (heap.nil(), format!("[] in {name}"));
                let code = (**code).clone();
                self.build_code(heap, code, owner, &name, classes::COMPILED_BLOCK, nil)?
            }
        })
    }

    /// Returns true or false: values of two globals with names that no program can write.
    fn singleton(&self, name: &str, heap: &Heap) -> Oop {
        let association = self.globals.get(name);
        association.map_or(heap.nil(), |association| objects::slot(*association, 1))
    }

    /// Finds the Association of a class variable or global.
    fn binding(&mut self, heap: &mut Heap, name: &str, class: u32) -> Result<Oop, NoMemory> {
        match self.class_variable(name, class) {
            Some(association) => Ok(association),
            None => self.global(heap, name),
        }
    }

    /// Finds a class variable's Association, searching upwards from a class or metaclass.
    pub(super) fn class_variable(&self, name: &str, class: u32) -> Option<Oop> {
        let first = self.class(class)?;
        let mut index = if first.meta { first.other } else { class };
        while let Some(class) = self.class(index) {
            if let Some(association) = class.class_variables.get(name) {
                return Some(*association);
            }
            index = class.superclass;
        }
        None
    }
}

/// Number of a method's literals, read from its header.
pub fn literals_of(method: Oop) -> usize {
    let header = objects::slot(method, 0).as_integer().unwrap_or(0);
    usize::try_from(header & LITERALS).unwrap_or(0)
}

/// Class of a LargeInteger.
pub fn large_class(value: &BigInt) -> u32 {
    match value.sign() {
        Sign::Minus => classes::LARGE_NEGATIVE_INTEGER,
        _ => classes::LARGE_POSITIVE_INTEGER,
    }
}

/// Magnitude bytes of a LargeInteger, lowest first.
pub fn magnitude(value: &BigInt) -> Vec<u8> {
    value.magnitude().to_bytes_le()
}
