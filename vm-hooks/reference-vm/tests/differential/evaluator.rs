//! A direct evaluator of syntax trees. It uses no bytecodes, frames or inlining: every block is a
//! closure.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use vmscope_reference_vm::compiler::Literal;
use vmscope_reference_vm::syntax::Item;
use vmscope_reference_vm::syntax::ast::{
    Expression, ExpressionKind, Message, Method, Name, Statement,
};

use super::exceptions::exception;
use super::value::{Closure, Handler, Home, Object, Scope, Value};

/// Reasons why evaluations end early.
pub enum Unwind<'a> {
    /// `^` returns from a method.
    Return(Rc<Home<'a>>, Value<'a>),
    /// `on:do:` answers.
    Leave(Rc<Handler<'a>>, Value<'a>),
    /// `on:do:` begins again.
    Retry(Rc<Handler<'a>>),
    /// `on:do:` begins again with another block.
    RetryUsing(Rc<Handler<'a>>, Value<'a>),
    /// `signal` answers.
    Resume(u64, Value<'a>),
    /// An unhandled error ends the program.
    Quit,
    /// The evaluator does not support the program.
    Discard(String),
}

pub type Answer<'a> = Result<Value<'a>, Unwind<'a>>;

/// Exception classes with their superclasses.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("Error", "Exception"),
    ("Notification", "Exception"),
    ("Warning", "Notification"),
    ("ZeroDivide", "Error"),
    ("MessageNotUnderstood", "Error"),
    ("NonBooleanReceiver", "Error"),
    ("BlockCannotReturn", "Error"),
    ("IllegalResumeAttempt", "Error"),
    ("InvalidArgument", "Error"),
    ("SubscriptOutOfBounds", "Error"),
];

/// Maximum number of messages per program.
const MOST_SENDS: usize = 30_000;
/// Maximum nesting depth of method and block evaluations.
const MOST_DEPTH: usize = 300;

/// A program and its state.
pub struct Evaluator<'a> {
    superclasses: HashMap<String, String>,
    fields: HashMap<String, Vec<String>>,
    methods: HashMap<(String, bool, String), &'a Method>,
    class_variables: HashMap<String, Value<'a>>,
    /// Each literal evaluates to one object: repeated evaluations answer the same object.
    literals: HashMap<*const Expression, Value<'a>>,
    /// The innermost handler.
    pub handlers: Option<Rc<Handler<'a>>>,
    pub output: String,
    /// Number of `signal` sends.
    pub signals: u64,
    sends: usize,
    depth: usize,
}

/// Output of a program. `Err`: reason why the evaluator does not support the program.
pub fn output(items: &[Item]) -> Result<String, String> {
    let superclasses = EXCEPTIONS.iter();
    let mut evaluator = Evaluator {
        superclasses: superclasses
            .map(|&(class, above)| (class.to_owned(), above.to_owned()))
            .collect(),
        fields: HashMap::new(),
        methods: HashMap::new(),
        class_variables: HashMap::new(),
        literals: HashMap::new(),
        handlers: None,
        output: String::new(),
        signals: 0,
        sends: 0,
        depth: 0,
    };
    for item in items {
        if let Err(Unwind::Discard(reason)) = evaluator.item(item) {
            return Err(reason);
        }
    }
    Ok(evaluator.output)
}

impl<'a> Evaluator<'a> {
    fn item(&mut self, item: &'a Item) -> Answer<'a> {
        match item {
            Item::Class(class) => {
                let above = class.superclass.clone().unwrap_or_default();
                let mut fields = self.fields.get(&above).cloned().unwrap_or_default();
                fields.extend(class.instance_variables.iter().cloned());
                self.fields.insert(class.name.clone(), fields);
                self.superclasses.insert(class.name.clone(), above);
                for name in &class.class_variables {
                    self.class_variables.insert(name.clone(), Value::Nil);
                }
                Ok(Value::Nil)
            }
            Item::Method(source) => {
                let selector = source.ast.selector.clone();
                let key = (source.class.clone(), source.meta, selector);
                self.methods.insert(key, &source.ast);
                Ok(Value::Nil)
            }
            Item::DoIt(source) => self.call(Value::Nil, "UndefinedObject", &source.ast, Vec::new()),
            Item::ClassInstanceVariables { .. } => discard("instance variables of a class"),
        }
    }

    /// Whether `class` equals or inherits from `above`.
    pub fn inherits(&self, class: &str, above: &str) -> bool {
        class == above
            || self
                .superclasses
                .get(class)
                .is_some_and(|next| self.inherits(next, above))
    }

    /// Finds a method in `class` or a superclass. Returns the defining class and the method.
    fn lookup(&self, class: &str, meta: bool, selector: &str) -> Option<(String, &'a Method)> {
        let key = (class.to_owned(), meta, selector.to_owned());
        match self.methods.get(&key) {
            Some(method) => Some((key.0, method)),
            None => self.lookup(self.superclasses.get(class)?, meta, selector),
        }
    }

    /// Evaluates a method.
    fn call(
        &mut self,
        receiver: Value<'a>,
        class: &str,
        method: &'a Method,
        arguments: Vec<Value<'a>>,
    ) -> Answer<'a> {
        let home = Rc::new(Home {
            receiver: receiver.clone(),
            class: class.to_owned(),
            alive: Cell::new(true),
        });
        let scope = scope(None, &method.arguments, arguments, &method.temps);
        let result = self.statements(&method.statements, &scope, &home);
        home.alive.set(false);
        match result {
            Err(Unwind::Return(target, value)) if Rc::ptr_eq(&target, &home) => Ok(value),
            Ok(_) => Ok(receiver),
            other => other,
        }
    }

    /// Evaluates a block.
    pub fn block(&mut self, block: &Value<'a>, arguments: Vec<Value<'a>>) -> Answer<'a> {
        let Value::Block(closure) = block else {
            return discard("something else in a block's place");
        };
        if closure.block.arguments.len() != arguments.len() {
            return discard("a wrong number of arguments");
        }
        let outer = Some(closure.scope.clone());
        let block = closure.block;
        let scope = scope(outer, &block.arguments, arguments, &block.temps);
        self.statements(&block.statements, &scope, &closure.home)
    }

    /// Evaluates statements. Answers the last statement's value, or nil without statements.
    fn statements(
        &mut self,
        statements: &'a [Statement],
        scope: &Rc<Scope<'a>>,
        home: &Rc<Home<'a>>,
    ) -> Answer<'a> {
        self.depth += 1;
        let result = if self.depth > MOST_DEPTH {
            discard("too deep")
        } else {
            self.statements_in_turn(statements, scope, home)
        };
        self.depth -= 1;
        result
    }

    fn statements_in_turn(
        &mut self,
        statements: &'a [Statement],
        scope: &Rc<Scope<'a>>,
        home: &Rc<Home<'a>>,
    ) -> Answer<'a> {
        let mut last = Value::Nil;
        for statement in statements {
            last = self.expression(&statement.expression, scope, home)?;
            if statement.returns {
                if home.alive.get() {
                    return Err(Unwind::Return(home.clone(), last));
                }
                let exception = exception("BlockCannotReturn", None, last);
                return self.signal(&exception);
            }
        }
        Ok(last)
    }

    fn expression(
        &mut self,
        expression: &'a Expression,
        scope: &Rc<Scope<'a>>,
        home: &Rc<Home<'a>>,
    ) -> Answer<'a> {
        match &expression.kind {
            ExpressionKind::Literal(value) => {
                let key = std::ptr::from_ref(expression);
                let known = self.literals.entry(key);
                Ok(known.or_insert_with(|| literal(value)).clone())
            }
            ExpressionKind::Variable(name) => self.read(name, scope, home),
            ExpressionKind::Assignment(name, value) => {
                let value = self.expression(value, scope, home)?;
                self.write(&name.text, value.clone(), scope, home)?;
                Ok(value)
            }
            ExpressionKind::Send(receiver, message) => {
                let target = self.expression(receiver, scope, home)?;
                self.message(receiver, target, message, scope, home)
            }
            ExpressionKind::Cascade(receiver, messages) => {
                let target = self.expression(receiver, scope, home)?;
                let mut last = Value::Nil;
                for message in messages {
                    last = self.message(receiver, target.clone(), message, scope, home)?;
                }
                Ok(last)
            }
            ExpressionKind::Block(block) => Ok(Value::Block(Rc::new(Closure {
                block,
                scope: scope.clone(),
                home: home.clone(),
            }))),
            ExpressionKind::Array(elements) => {
                let values: Result<Vec<_>, _> = elements
                    .iter()
                    .map(|element| self.expression(element, scope, home))
                    .collect();
                Ok(Value::array(values?))
            }
        }
    }

    fn read(&mut self, name: &str, scope: &Rc<Scope<'a>>, home: &Rc<Home<'a>>) -> Answer<'a> {
        if name == "self" || name == "super" {
            return Ok(home.receiver.clone());
        }
        let mut place = Some(scope);
        while let Some(scope) = place {
            if let Some(value) = scope.variables.borrow().get(name) {
                return Ok(value.clone());
            }
            place = scope.outer.as_ref();
        }
        if let Value::Object(object) = &home.receiver
            && let Some(value) = object.fields.borrow().get(name)
        {
            return Ok(value.clone());
        }
        match self.class_variables.get(name) {
            Some(value) => Ok(value.clone()),
            None => Ok(Value::Class(name.to_owned())),
        }
    }

    fn write(
        &mut self,
        name: &str,
        value: Value<'a>,
        scope: &Rc<Scope<'a>>,
        home: &Rc<Home<'a>>,
    ) -> Answer<'a> {
        let mut place = Some(scope);
        while let Some(scope) = place {
            if let Some(variable) = scope.variables.borrow_mut().get_mut(name) {
                *variable = value;
                return Ok(Value::Nil);
            }
            place = scope.outer.as_ref();
        }
        if let Value::Object(object) = &home.receiver
            && let Some(field) = object.fields.borrow_mut().get_mut(name)
        {
            *field = value;
            return Ok(Value::Nil);
        }
        match self.class_variables.get_mut(name) {
            Some(variable) => *variable = value,
            None => return discard("an assignment to something unknown"),
        }
        Ok(Value::Nil)
    }

    fn message(
        &mut self,
        receiver: &'a Expression,
        target: Value<'a>,
        message: &'a Message,
        scope: &Rc<Scope<'a>>,
        home: &Rc<Home<'a>>,
    ) -> Answer<'a> {
        let mut arguments = Vec::new();
        for argument in &message.arguments {
            arguments.push(self.expression(argument, scope, home)?);
        }
        if matches!(&receiver.kind, ExpressionKind::Variable(name) if name == "super") {
            let above = self.superclasses.get(&home.class).cloned();
            let found = above.and_then(|above| self.lookup(&above, false, &message.selector));
            return match found {
                Some((class, method)) => self.call(target, &class, method, arguments),
                None => self.library(target, &message.selector, arguments),
            };
        }
        // Branches with literal blocks are inlined: the receiver gets no message.
        let literal = |argument: &Expression| matches!(argument.kind, ExpressionKind::Block(_));
        let mut target = target;
        if BRANCHES.contains(&message.selector.as_str()) && message.arguments.iter().all(literal) {
            while !matches!(target, Value::Boolean(_)) {
                target = self.not_boolean(&target)?;
            }
        }
        self.send(target, &message.selector, arguments)
    }

    /// Handles a non-Boolean branch receiver. The value that resumes the error decides the branch.
    pub fn not_boolean(&mut self, value: &Value<'a>) -> Answer<'a> {
        self.sends += 1;
        if self.sends > MOST_SENDS || matches!(value, Value::Float(_)) {
            return discard("a branch that nothing decides");
        }
        let text = format!("true or false expected, not {}", value.class_name());
        self.raise("NonBooleanReceiver", &text)
    }

    /// Sends a message.
    pub fn send(
        &mut self,
        receiver: Value<'a>,
        selector: &str,
        arguments: Vec<Value<'a>>,
    ) -> Answer<'a> {
        self.sends += 1;
        if self.sends > MOST_SENDS {
            return discard("too long");
        }
        let found = match &receiver {
            Value::Class(name) => self.lookup(name, true, selector),
            other => self.lookup(&other.class_name(), false, selector),
        };
        match found {
            Some((class, method)) => self.call(receiver, &class, method, arguments),
            None => self.library(receiver, selector, arguments),
        }
    }

    /// `new` of a program's class.
    pub fn new_object(&mut self, class: &str) -> Answer<'a> {
        let Some(fields) = self.fields.get(class) else {
            return discard("an instance of a class of the library");
        };
        let fields = fields.iter().map(|name| (name.clone(), Value::Nil));
        let object = Value::Object(Rc::new(Object {
            class: class.to_owned(),
            fields: RefCell::new(fields.collect()),
        }));
        self.send(object, "initialize", Vec::new())
    }
}

const BRANCHES: [&str; 6] = [
    "ifTrue:",
    "ifFalse:",
    "ifTrue:ifFalse:",
    "ifFalse:ifTrue:",
    "and:",
    "or:",
];

pub fn discard<'a>(reason: &str) -> Answer<'a> {
    Err(Unwind::Discard(reason.to_owned()))
}

/// Creates variables: arguments with values, temps with nil.
fn scope<'a>(
    outer: Option<Rc<Scope<'a>>>,
    names: &[Name],
    values: Vec<Value<'a>>,
    temps: &[Name],
) -> Rc<Scope<'a>> {
    let arguments = names.iter().map(|name| name.text.clone()).zip(values);
    let temps = temps.iter().map(|name| (name.text.clone(), Value::Nil));
    Rc::new(Scope {
        variables: RefCell::new(arguments.chain(temps).collect()),
        outer,
    })
}

fn literal<'a>(literal_: &Literal) -> Value<'a> {
    match literal_ {
        Literal::Nil | Literal::Binding(_) | Literal::Block(_) | Literal::Bytes(_) => Value::Nil,
        Literal::True => Value::Boolean(true),
        Literal::False => Value::Boolean(false),
        Literal::Integer(value) => Value::Integer(value.clone()),
        Literal::Float(value) => Value::Float(*value),
        Literal::Character(code) => Value::Character(*code),
        Literal::String(bytes) => Value::String(Rc::new(RefCell::new(bytes.clone()))),
        Literal::Symbol(text) => Value::Symbol(text.clone()),
        Literal::Array(elements) => Value::array(elements.iter().map(literal).collect()),
    }
}
