//! Current meaning of keys: commands of the view, or text input.

use super::palette::Palette;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tui_input::{Input, InputRequest};

/// Meaning of keys.
#[derive(Debug, Default)]
pub enum Mode {
    /// Commands of the view.
    #[default]
    Normal,
    /// Help, from a given line.
    Help(usize),
    /// Typing a search.
    Search(Input),
    /// Choosing a palette line.
    Palette(Palette),
    /// Typing input for a prompt.
    Ask(Ask, Input),
}

/// Kind of prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Export file; the extension names the format.
    Export,
    /// Text of a mark.
    Mark,
    /// File for saving a recording.
    Save,
    /// Window in seconds: `FROM-TO`.
    Window,
    /// Parts of names.
    Names,
}

impl Ask {
    /// Label of the prompt.
    pub const fn prompt(self) -> &'static str {
        match self {
            Ask::Export => "export to (.txt .csv .json .svg): ",
            Ask::Mark => "mark: ",
            Ask::Save => "save in: ",
            Ask::Window => "seconds FROM-TO: ",
            Ask::Names => "only names containing: ",
        }
    }
}

/// Effect of a key on a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edited {
    /// Changed text or cursor.
    Changed,
    /// Finished.
    Entered,
    /// Cancelled.
    Cancelled,
    /// No effect.
    Ignored,
}

/// Edits a line with shell keys.
pub fn edit(input: &mut Input, key: &KeyEvent) -> Edited {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let request = match key.code {
        KeyCode::Enter => return Edited::Entered,
        KeyCode::Esc => return Edited::Cancelled,
        KeyCode::Char('c' | 'g') if control => return Edited::Cancelled,
        KeyCode::Backspace if input.value().is_empty() => return Edited::Cancelled,
        KeyCode::Char('a') if control => InputRequest::GoToStart,
        KeyCode::Char('e') if control => InputRequest::GoToEnd,
        KeyCode::Char('u') if control => InputRequest::DeleteLine,
        KeyCode::Char('w') if control => InputRequest::DeletePrevWord,
        KeyCode::Char(c) if !control => InputRequest::InsertChar(c),
        KeyCode::Backspace => InputRequest::DeletePrevChar,
        KeyCode::Delete => InputRequest::DeleteNextChar,
        KeyCode::Left => InputRequest::GoToPrevChar,
        KeyCode::Right => InputRequest::GoToNextChar,
        KeyCode::Home => InputRequest::GoToStart,
        KeyCode::End => InputRequest::GoToEnd,
        _ => return Edited::Ignored,
    };
    input.handle(request);
    Edited::Changed
}

/// Inserts pasted text without line ends.
pub fn paste(input: &mut Input, text: &str) {
    for c in text.chars().filter(|c| !c.is_control()).take(1000) {
        input.handle(InputRequest::InsertChar(c));
    }
}
