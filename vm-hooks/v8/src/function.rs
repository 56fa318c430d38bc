//! Functions: names, places, scripts.

use vmscope_process::{AdapterError, known};

use crate::object::{Heap, Tagged};

/// Maximum number of characters of a name.
const MAX_NAME: u64 = 512;

/// Maximum number of characters of a script's name: paths are shorter.
const MAX_SCRIPT_NAME: u64 = 4096;

/// Flags of a `ScopeInfo`.
const HAS_CLASS_VARIABLE: u64 = 1 << 10;
const FUNCTION_VARIABLE: u64 = 3 << 12;
const HAS_INFERRED_NAME: u64 = 1 << 14;
/// Type of the scope: four bits from 0.
const SCOPE_TYPE: u64 = 15;

/// A scope with more local variables keeps their names in a hash table.
const INLINE_NAMES: u64 = 75;

/// Maximum number of local variables; then the scope is damaged.
const MAX_LOCALS: u64 = 1 << 16;

/// A function, without its code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Name, or the name that V8 inferred; empty for anonymous functions.
    pub name: String,
    /// Position of its parameters in the script's text, in characters.
    pub position: Option<u32>,
    /// Its script; `None` for functions of V8 itself.
    pub script: Option<Tagged>,
}

/// A script without its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Its number, unique in the isolate.
    pub id: i32,
    /// Path or URL; empty for text from `eval` or `new Function`.
    pub name: String,
    /// Its text.
    pub source: Tagged,
    /// Number of lines before the text, which V8 counts; negative if the text begins with lines that V8
    /// made.
    pub line_offset: i32,
}

impl Heap<'_> {
    /// The function in a `SharedFunctionInfo`.
    ///
    /// # Errors
    /// Damaged objects; failed reads.
    pub fn function(&self, info: Tagged) -> Result<Function, AdapterError> {
        let fields = self.layout.function;
        let named = self.field(info, fields.name, "function")?;
        let script = self.field(info, fields.script, "function")?;
        let mut function = Function {
            script: self.is_script(script)?.then_some(script),
            ..Function::default()
        };
        if named.address().is_none() {
            return Ok(function);
        }
        if self.is_string(named)? {
            function.name = self.string(named, MAX_NAME)?;
        } else {
            self.read_scope(named, &mut function)?;
        }
        Ok(function)
    }

    /// Whether `object` has a script's number. Objects of other types lack a number at this offset.
    fn is_script(&self, object: Tagged) -> Result<bool, AdapterError> {
        if object.address().is_none() {
            return Ok(false);
        }
        let id = known(self.field(object, self.layout.script.id, "script"))?;
        Ok(id.and_then(Tagged::small_integer).is_some_and(|id| id > 0))
    }

    /// A script.
    ///
    /// # Errors
    /// Damaged objects; failed reads.
    pub fn script(&self, script: Tagged) -> Result<Script, AdapterError> {
        let fields = self.layout.script;
        let name = self.field(script, fields.name, "script")?;
        let has_name = name.address().is_some() && self.is_string(name)?;
        Ok(Script {
            id: self.integer(script, fields.id, "script")?,
            source: self.field(script, fields.source, "script")?,
            line_offset: self.integer(script, fields.line_offset, "script")?,
            name: match has_name {
                true => self.string(name, MAX_SCRIPT_NAME)?,
                false => String::new(),
            },
        })
    }

    /// Name and position from a `ScopeInfo`, whose contents depend on its flags.
    fn read_scope(&self, scope: Tagged, function: &mut Function) -> Result<(), AdapterError> {
        let word = |index: u64| self.field(scope, index * 8, "scope");
        let raw = word(1)?.0;
        let flags = if raw & u64::from(u32::MAX) == 0 {
            raw >> 32
        } else {
            raw & u64::from(u32::MAX)
        };
        let locals = word(3)?.small_integer();
        let locals = locals.and_then(|count| u64::try_from(count).ok());
        let locals = locals.filter(|count| *count <= MAX_LOCALS);
        let locals = locals.ok_or(AdapterError::Implausible {
            what: "scope's number of variables",
            value: word(3)?.0,
            at: scope.address().unwrap_or_default(),
        })?;
        let mut at = 4;
        let position = |at| -> Result<Option<u32>, AdapterError> {
            let number = word(at)?.small_integer();
            Ok(number.and_then(|number| u32::try_from(number).ok()))
        };
        if self.layout.scope.position_is_first {
            function.position = position(at)?;
            at += 2;
        }
        at += u64::from(self.layout.scope.counting_type == Some(flags & SCOPE_TYPE));
        at += if locals < INLINE_NAMES { locals } else { 1 };
        at += locals;
        at += u64::from(flags & HAS_CLASS_VARIABLE != 0);
        let mut name = Tagged(0);
        if flags & FUNCTION_VARIABLE != 0 {
            name = word(at)?;
            at += 2;
        }
        let mut text = self.name_in_scope(name)?;
        if flags & HAS_INFERRED_NAME != 0 {
            if text.is_empty() {
                text = self.name_in_scope(word(at)?)?;
            }
            at += 1;
        }
        function.name = text;
        if !self.layout.scope.position_is_first {
            function.position = position(at)?;
        }
        Ok(())
    }

    fn name_in_scope(&self, name: Tagged) -> Result<String, AdapterError> {
        match name.address() {
            Some(_) if self.is_string(name)? => self.string(name, MAX_NAME),
            _ => Ok(String::new()),
        }
    }
}
