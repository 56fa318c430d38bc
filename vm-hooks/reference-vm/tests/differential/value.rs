//! Values of the simple evaluator.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use num_bigint::BigInt;
use vmscope_reference_vm::syntax::ast::Block;

/// A Smalltalk object.
#[derive(Clone)]
pub enum Value<'a> {
    Nil,
    Boolean(bool),
    Integer(BigInt),
    Float(f64),
    Character(u32),
    Symbol(String),
    String(Rc<RefCell<Vec<u8>>>),
    Array(Rc<RefCell<Vec<Value<'a>>>>),
    Block(Rc<Closure<'a>>),
    Object(Rc<Object<'a>>),
    Exception(Rc<Exception<'a>>),
    Class(String),
}

/// An instance of a program's class.
pub struct Object<'a> {
    pub class: String,
    pub fields: RefCell<HashMap<String, Value<'a>>>,
}

/// Variables of one method or block evaluation.
pub struct Scope<'a> {
    pub variables: RefCell<HashMap<String, Value<'a>>>,
    pub outer: Option<Rc<Scope<'a>>>,
}

/// One method evaluation: holds `self`; target of `^`.
pub struct Home<'a> {
    pub receiver: Value<'a>,
    /// Class that defines the method: `super` lookup begins above.
    pub class: String,
    pub alive: Cell<bool>,
}

/// A block with its captured variables.
pub struct Closure<'a> {
    pub block: &'a Block,
    pub scope: Rc<Scope<'a>>,
    pub home: Rc<Home<'a>>,
}

/// An exception.
pub struct Exception<'a> {
    pub class: String,
    pub text: RefCell<Option<String>>,
    /// Evaluation of `signal` from which `resume:` returns.
    pub signal: Cell<u64>,
    pub handler: RefCell<Option<Rc<Handler<'a>>>>,
    /// The value that a BlockCannotReturn failed to return.
    pub result: Value<'a>,
}

/// One evaluation of `on:do:`.
pub struct Handler<'a> {
    pub class: String,
    pub action: Value<'a>,
    pub outer: Option<Rc<Handler<'a>>>,
    /// The handler has finished: it ignores exceptions raised by unwind blocks.
    pub leaving: Cell<bool>,
}

impl<'a> Value<'a> {
    pub fn integer(value: usize) -> Self {
        Self::Integer(BigInt::from(value))
    }

    pub fn string(text: &str) -> Self {
        Self::String(Rc::new(RefCell::new(text.as_bytes().to_vec())))
    }

    pub fn array(elements: Vec<Value<'a>>) -> Self {
        Self::Array(Rc::new(RefCell::new(elements)))
    }

    pub fn class_name(&self) -> String {
        match self {
            Self::Nil => "UndefinedObject",
            Self::Boolean(true) => "True",
            Self::Boolean(false) => "False",
            Self::Integer(value) if is_small(value) => "SmallInteger",
            Self::Integer(value) if *value > BigInt::from(0) => "LargePositiveInteger",
            Self::Integer(_) => "LargeNegativeInteger",
            // Programs print no Float class names: the VM has two Float classes.
            Self::Float(_) => "Float",
            Self::Character(_) => "Character",
            Self::Symbol(_) => "Symbol",
            Self::String(_) => "String",
            Self::Array(_) => "Array",
            Self::Block(_) => "BlockClosure",
            Self::Object(object) => &object.class,
            Self::Exception(exception) => &exception.class,
            Self::Class(name) => return format!("{name} class"),
        }
        .to_owned()
    }

    /// `isLiteral`.
    fn is_literal(&self) -> bool {
        match self {
            Self::Block(_) | Self::Object(_) | Self::Exception(_) | Self::Class(_) => false,
            Self::Array(elements) => elements.borrow().iter().all(Value::is_literal),
            _ => true,
        }
    }

    /// `printString`.
    pub fn print(&self) -> String {
        match self {
            Self::Nil => "nil".to_owned(),
            Self::Boolean(value) => value.to_string(),
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => print_float(*value),
            Self::Character(code) if (33..127).contains(code) => {
                format!("${}", char::from_u32(*code).unwrap_or(' '))
            }
            Self::Character(code) => format!("(Character value: {code})"),
            Self::Symbol(text) => format!("#{text}"),
            Self::String(bytes) => format!("'{}'", text_of(&bytes.borrow()).replace('\'', "''")),
            Self::Array(elements) => {
                let printed: Vec<String> = elements.borrow().iter().map(Value::print).collect();
                match self.is_literal() {
                    true => format!("#({})", printed.join(" ")),
                    false => format!("{{{}}}", printed.join(". ")),
                }
            }
            Self::Exception(exception) => exception.description(),
            Self::Class(name) => name.clone(),
            Self::Block(_) | Self::Object(_) => {
                let class = self.class_name();
                let vowel = class.starts_with(['A', 'E', 'I', 'O', 'U']);
                format!("{} {class}", if vowel { "an" } else { "a" })
            }
        }
    }

    /// `displayString`.
    pub fn display(&self) -> String {
        match self {
            Self::String(bytes) => text_of(&bytes.borrow()),
            Self::Symbol(text) => text.clone(),
            Self::Character(code) => char::from_u32(*code).unwrap_or(' ').to_string(),
            _ => self.print(),
        }
    }
}

impl Exception<'_> {
    pub fn message_text(&self) -> String {
        let text = self.text.borrow().clone();
        text.unwrap_or_else(|| match self.class.as_str() {
            "ZeroDivide" => "division by zero".to_owned(),
            "BlockCannotReturn" => "the frame to return from is gone".to_owned(),
            class => class.to_owned(),
        })
    }

    pub fn description(&self) -> String {
        let text = self.message_text();
        if text == self.class {
            return text;
        }
        format!("{}: {text}", self.class)
    }
}

pub fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether an integer is a SmallInteger: 61 bits.
pub fn is_small(value: &BigInt) -> bool {
    let limit = BigInt::from(1_u64 << 60);
    -&limit <= *value && *value < limit
}

fn print_float(value: f64) -> String {
    if value.is_nan() {
        return "Float nan".to_owned();
    }
    if value.is_infinite() {
        let sign = if value > 0.0 { "" } else { " negated" };
        return format!("Float infinity{sign}");
    }
    if value == 0.0 || (1e-4..1e16).contains(&value.abs()) {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    match text.contains('.') {
        true => text,
        false => text.replace('e', ".0e"),
    }
}
