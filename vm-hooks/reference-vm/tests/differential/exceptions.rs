//! Exceptions: signals, handlers and unwinding.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::evaluator::{Answer, Evaluator, Unwind};
use super::value::{Exception, Handler, Value};

impl<'a> Evaluator<'a> {
    /// Signals a new exception.
    pub fn raise(&mut self, class: &str, text: &str) -> Answer<'a> {
        let exception = exception(class, Some(text), Value::Nil);
        self.signal(&exception)
    }

    /// Evaluates `signal`: runs the innermost matching handler on top of the signalling code.
    pub fn signal(&mut self, exception: &Rc<Exception<'a>>) -> Answer<'a> {
        self.signals += 1;
        let number = self.signals;
        let outer = exception.signal.replace(number);
        let outer_handler = exception.handler.borrow().clone();
        let result = self.search(exception, self.handlers.clone());
        match result {
            Err(Unwind::Resume(target, value)) if target == number => {
                exception.signal.set(outer);
                *exception.handler.borrow_mut() = outer_handler;
                Ok(value)
            }
            other => other,
        }
    }

    /// Runs the first matching handler from `handlers` outwards. Always answers by unwinding.
    fn search(
        &mut self,
        exception: &Rc<Exception<'a>>,
        mut handlers: Option<Rc<Handler<'a>>>,
    ) -> Answer<'a> {
        while let Some(handler) = handlers {
            if !handler.leaving.get() && self.inherits(&exception.class, &handler.class) {
                return self.handle(exception, &handler);
            }
            handlers = handler.outer.clone();
        }
        if self.inherits(&exception.class, "Notification") {
            return Err(Unwind::Resume(exception.signal.get(), Value::Nil));
        }
        Err(Unwind::Quit)
    }

    fn handle(&mut self, exception: &Rc<Exception<'a>>, handler: &Rc<Handler<'a>>) -> Answer<'a> {
        *exception.handler.borrow_mut() = Some(handler.clone());
        let inner = std::mem::replace(&mut self.handlers, handler.outer.clone());
        let arguments = match &handler.action {
            Value::Block(closure) if closure.block.arguments.is_empty() => Vec::new(),
            _ => vec![Value::Exception(exception.clone())],
        };
        let result = self.block(&handler.action, arguments);
        self.handlers = inner;
        let value = result?;
        handler.leaving.set(true);
        Err(Unwind::Leave(handler.clone(), value))
    }

    /// `on:do:`.
    pub fn on_do(&mut self, block: &Value<'a>, class: &str, action: &Value<'a>) -> Answer<'a> {
        let handler = Rc::new(Handler {
            class: class.to_owned(),
            action: action.clone(),
            outer: self.handlers.clone(),
            leaving: Cell::new(false),
        });
        let is_mine = |other: &Rc<Handler<'a>>| Rc::ptr_eq(other, &handler);
        loop {
            let outer = self.handlers.replace(handler.clone());
            let result = self.block(block, Vec::new());
            self.handlers = outer;
            match result {
                Err(Unwind::Leave(target, value)) if is_mine(&target) => return Ok(value),
                Err(Unwind::Retry(target)) if is_mine(&target) => handler.leaving.set(false),
                Err(Unwind::RetryUsing(target, other)) if is_mine(&target) => {
                    return self.on_do(&other, class, action);
                }
                other => return other,
            }
        }
    }

    /// `ensure:`, and `ifCurtailed:` if not `always`.
    pub fn guarded(&mut self, block: &Value<'a>, unwind: &Value<'a>, always: bool) -> Answer<'a> {
        let result = self.block(block, Vec::new());
        let runs = match &result {
            Ok(_) => always,
            Err(Unwind::Quit | Unwind::Discard(_)) => false,
            Err(_) => true,
        };
        if runs {
            self.block(unwind, Vec::new())?;
        }
        result
    }

    pub fn exception(
        &mut self,
        exception: &Rc<Exception<'a>>,
        selector: &str,
        arguments: &[Value<'a>],
    ) -> Option<Answer<'a>> {
        let argument = arguments.first().cloned().unwrap_or(Value::Nil);
        let handler = exception.handler.borrow().clone();
        Some(match (selector, handler) {
            ("signal", _) => self.signal(exception),
            ("signal:", _) => {
                *exception.text.borrow_mut() = Some(argument.display());
                self.signal(exception)
            }
            ("messageText", _) => Ok(Value::string(&exception.message_text())),
            ("description", _) => Ok(Value::string(&exception.description())),
            ("result", _) => Ok(exception.result.clone()),
            ("return" | "return:", Some(handler)) => {
                handler.leaving.set(true);
                Err(Unwind::Leave(handler, argument))
            }
            ("retry", Some(handler)) => {
                handler.leaving.set(true);
                Err(Unwind::Retry(handler))
            }
            ("retryUsing:", Some(handler)) => {
                handler.leaving.set(true);
                Err(Unwind::RetryUsing(handler, argument))
            }
            ("pass", Some(handler)) => self.search(exception, handler.outer.clone()),
            ("resume" | "resume:", _) => {
                let errors = ["ZeroDivide", "MessageNotUnderstood", "NonBooleanReceiver"];
                let resumable = errors.contains(&exception.class.as_str())
                    || !self.inherits(&exception.class, "Error");
                if !resumable {
                    let text = exception.description();
                    return Some(self.raise("IllegalResumeAttempt", &text));
                }
                Err(Unwind::Resume(exception.signal.get(), argument))
            }
            _ => return None,
        })
    }
}

/// A new exception.
pub fn exception<'a>(class: &str, text: Option<&str>, result: Value<'a>) -> Rc<Exception<'a>> {
    Rc::new(Exception {
        class: class.to_owned(),
        text: RefCell::new(text.map(str::to_owned)),
        signal: Cell::new(0),
        handler: RefCell::new(None),
        result,
    })
}
