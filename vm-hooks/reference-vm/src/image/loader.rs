//! Loads source files: defines classes, installs methods, evaluates do-its.

use super::builder::Owner;
use super::classes::ClassError;
use super::{CLASS_SLOTS, Image, NoMemory};
use crate::compiler::bytecodes::{self, Instruction};
use crate::compiler::verifier::{self, VerifyError};
use crate::compiler::{self, CompiledCode, Literal, Scope};
use crate::interpreter::{Outcome, Vm};
use crate::memory::{Oop, classes};
use crate::syntax::{self, DoItSource, Item, MethodSource, SyntaxError};

/// Reasons why loading a file fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The text is not Smalltalk.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// A class can't be defined.
    #[error("{file}:{line}: {error}")]
    Class {
        /// The file.
        file: String,
        /// Line of the definition.
        line: u32,
        /// The reason.
        error: ClassError,
    },
    /// Methods of an undefined class.
    #[error("{file}:{line}: the class {name} is not defined")]
    NoClass {
        /// The file.
        file: String,
        /// Line of the method.
        line: u32,
        /// The class.
        name: String,
    },
    /// The compiler made wrong code.
    #[error("{file}:{line}: the compiler made invalid code: {error}")]
    Verify {
        /// The file.
        file: String,
        /// Line of the code.
        line: u32,
        /// The reason.
        error: VerifyError,
    },
    /// A method writes an instance variable reserved for the VM.
    #[error(
        "{file}:{line}: the instance variables of {class} can only be read: the VM relies on them"
    )]
    ReadOnly {
        /// The file.
        file: String,
        /// Line of the method.
        line: u32,
        /// The class.
        class: String,
    },
    /// No memory for classes and methods.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
}

/// Classes with instance variables that only the VM writes. Class objects count, too.
const READ_ONLY: [u32; 4] = [
    classes::BLOCK_CLOSURE,
    classes::CONTEXT,
    classes::PROCESSOR_SCHEDULER,
    classes::COMPILED_METHOD,
];

/// Whether code or a nested block writes one of the first `fields` instance variables.
fn writes_field_below(code: &CompiledCode, fields: usize) -> bool {
    let mut offset = 0;
    while let Ok((instruction, length)) = bytecodes::decode(&code.bytecodes, offset) {
        if let Instruction::PopIntoReceiverVariable(field)
        | Instruction::StoreIntoReceiverVariable(field) = instruction
            && field < fields
        {
            return true;
        }
        offset += length;
    }
    code.literals.iter().any(|literal| match literal {
        Literal::Block(block) => writes_field_below(block, fields),
        _ => false,
    })
}

/// Names visible to code of a class.
struct ClassScope<'a> {
    image: &'a Image,
    class: u32,
}

impl Scope for ClassScope<'_> {
    fn instance_variable(&self, name: &str) -> Option<usize> {
        let class = self.image.class(self.class)?;
        class
            .instance_variables
            .iter()
            .position(|variable| variable == name)
    }

    fn is_class_variable(&self, name: &str) -> bool {
        self.image.class_variable(name, self.class).is_some()
    }

    fn is_global(&self, name: &str) -> bool {
        self.image.globals.contains_key(name)
    }
}

impl Vm {
    /// Loads a source file. Ends early if the program quits.
    ///
    /// # Errors
    ///
    /// Fails on wrong text or exhausted memory. The [`Outcome`] reports errors of the running
    /// program.
    pub fn load(&mut self, file: &str, text: &str) -> Result<Outcome, LoadError> {
        let mut outcome = Outcome::Value(self.heap.nil());
        self.do_its.clear();
        for item in syntax::parse_file(file, text)? {
            match item {
                Item::Class(definition) => {
                    let (file, line) = (definition.file.clone(), definition.line);
                    (self.image.define_class(&mut self.heap, &definition))
                        .map_err(|error| LoadError::Class { file, line, error })?;
                }
                Item::ClassInstanceVariables { class, names, line } => {
                    let file = file.to_owned();
                    (self
                        .image
                        .define_class_variables(&mut self.heap, &class, &names))
                    .map_err(|error| LoadError::Class { file, line, error })?;
                }
                Item::Method(source) => self.install(&source)?,
                Item::DoIt(source) => {
                    outcome = self.evaluate(&source)?;
                    if matches!(outcome, Outcome::Quit(_)) {
                        break;
                    }
                }
            }
        }
        Ok(outcome)
    }

    /// Evaluates statements; returns the last statement's value.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn evaluate(&mut self, source: &DoItSource) -> Result<Outcome, LoadError> {
        let code = self.compile(
            &source.ast,
            &source.file,
            source.line,
            classes::UNDEFINED_OBJECT,
        )?;
        let binding = self.image.global(&mut self.heap, "UndefinedObject")?;
        let owner = Owner {
            class: classes::UNDEFINED_OBJECT,
            binding,
            name: "UndefinedObject",
            file: &source.file,
            line: source.line,
        };
        let method = self.image.build(&mut self.heap, code, &owner)?;
        self.publish_newest();
        self.do_its.push(method);
        Ok(self.run(method))
    }

    fn install(&mut self, source: &MethodSource) -> Result<(), LoadError> {
        let not_there = || LoadError::NoClass {
            file: source.file.clone(),
            line: source.line,
            name: source.class.clone(),
        };
        let index = self
            .image
            .class_named(&source.class)
            .ok_or_else(not_there)?;
        let other = self.image.class(index).ok_or_else(not_there)?.other;
        let index = if source.meta { other } else { index };
        let code = self.compile(&source.ast, &source.file, source.line, index)?;
        let name = self.image.class(index).ok_or_else(not_there)?.name.clone();
        let binding = self.image.global(&mut self.heap, &name)?;
        let owner = Owner {
            class: index,
            binding,
            name: &name,
            file: &source.file,
            line: source.line,
        };
        let selector = self
            .image
            .symbol(&mut self.heap, code.selector.as_bytes())?;
        let method = self.image.build(&mut self.heap, code, &owner)?;
        if let Some(class) = self.image.class_mut(index) {
            class.methods.insert(selector, method);
        }
        self.flush_cache();
        self.publish_newest();
        Ok(())
    }

    fn compile(
        &self,
        ast: &syntax::ast::Method,
        file: &str,
        line: u32,
        class: u32,
    ) -> Result<CompiledCode, LoadError> {
        let scope = ClassScope {
            image: &self.image,
            class,
        };
        let code = compiler::compile(ast, file, &scope)?;
        let fields = self
            .image
            .class(class)
            .map_or(0, |class| class.instance_variables.len());
        let file = file.to_owned();
        if let Some(class) = self.writes_read_only(&code, class) {
            let class = class.to_owned();
            return Err(LoadError::ReadOnly { file, line, class });
        }
        verifier::verify(&code, fields).map_err(|error| LoadError::Verify { file, line, error })?;
        Ok(code)
    }

    /// Name of the class, if a method writes instance variables reserved for the VM.
    fn writes_read_only(&self, code: &CompiledCode, class: u32) -> Option<&str> {
        let mut index = class;
        while let Some(class) = self.image.class(index) {
            let describes_classes = class.meta || index == classes::BEHAVIOR;
            if describes_classes || READ_ONLY.contains(&index) {
                let fields = match describes_classes {
                    true => CLASS_SLOTS,
                    false => class.instance_variables.len(),
                };
                return writes_field_below(code, fields).then_some(class.name.as_str());
            }
            index = class.superclass;
        }
        None
    }

    /// Class for super sends: the value of a method's last literal.
    pub(crate) fn method_class(&self, method: Oop) -> u32 {
        let mut method = method;
        loop {
            let last =
                crate::interpreter::objects::slot(method, super::builder::literals_of(method));
            if crate::interpreter::objects::format(last).is_method() {
                method = last;
                continue;
            }
            let class = crate::interpreter::objects::slot(last, 1);
            return self.class_index_of(class);
        }
    }
}
