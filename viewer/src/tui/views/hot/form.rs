//! Which form the hot list has.

use vmscope_symbolizer::matrix::Axis;

/// Which form the view has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// The list.
    #[default]
    List,
    /// Category × method.
    Methods,
    /// The same, one in the other.
    MethodsNested,
    /// Category × thread.
    Threads,
    /// The same, one in the other.
    ThreadsNested,
}

impl Form {
    /// All, in the order of the key's presses.
    pub const ALL: [Form; 5] = [
        Form::List,
        Form::Methods,
        Form::MethodsNested,
        Form::Threads,
        Form::ThreadsNested,
    ];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Form::List => "the list",
            Form::Methods => "category × method",
            Form::MethodsNested => "category × method, nested",
            Form::Threads => "category × thread",
            Form::ThreadsNested => "category × thread, nested",
        }
    }

    /// The next one.
    pub fn next(self) -> Form {
        let at = Form::ALL.iter().position(|one| *one == self).unwrap_or(0);
        let next = Form::ALL.get((at + 1) % Form::ALL.len());
        next.copied().unwrap_or_default()
    }

    /// What stands against the categories.
    pub fn axis(self) -> Axis {
        match self {
            Form::Threads | Form::ThreadsNested => Axis::Threads,
            _ => Axis::Methods,
        }
    }

    /// Whether it is a matrix, one side in the other.
    pub fn is_nested(self) -> bool {
        matches!(self, Form::MethodsNested | Form::ThreadsNested)
    }

    /// The same matrix, one side in the other.
    pub fn nested(self) -> Form {
        match self {
            Form::Methods => Form::MethodsNested,
            Form::Threads => Form::ThreadsNested,
            other => other,
        }
    }
}
