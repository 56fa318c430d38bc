//! What keys mean at the moment: the view's, or a line that is being typed.

use super::palette::Palette;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tui_input::{Input, InputRequest};

/// What keys mean.
#[derive(Debug, Default)]
pub enum Mode {
    /// They are the view's.
    #[default]
    Normal,
    /// The keys are shown, from that line on.
    Help(usize),
    /// A search is typed.
    Search(Input),
    /// A line of the palette is chosen.
    Palette(Palette),
    /// An answer to a question of ours is typed.
    Ask(Ask, Input),
}

/// What is asked for in a line of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The file to export to; its extension is the format.
    Export,
    /// The text of a mark.
    Mark,
    /// The file to save a recording in.
    Save,
    /// A window, in seconds: `FROM-TO`.
    Window,
    /// What names have in them.
    Names,
}

impl Ask {
    /// What stands before the line.
    pub const fn prompt(self) -> &'static str {
        match self {
            Ask::Export => "export to (.txt .csv .json .svg): ",
            Ask::Mark => "mark: ",
            Ask::Save => "save in: ",
            Ask::Window => "seconds FROM-TO: ",
            Ask::Names => "only names with: ",
        }
    }
}

/// What a key does to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edited {
    /// It is changed, or its cursor moved.
    Changed,
    /// It is finished.
    Entered,
    /// It is given up.
    Cancelled,
    /// Nothing.
    Ignored,
}

/// Edits a line as shells do.
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

/// Puts pasted text into a line, without what ends lines.
pub fn paste(input: &mut Input, text: &str) {
    for c in text.chars().filter(|c| !c.is_control()).take(1000) {
        input.handle(InputRequest::InsertChar(c));
    }
}
