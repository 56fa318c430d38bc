//! Copying and exporting. Both take long with 100,000 rows, so a copy of the view makes the
//! document on a worker.

use super::App;
use crate::present::document::Document;
use crate::present::encode::{Format, encode, text_of};
use crate::tui::event::Effect;
use crate::tui::jobs::{QuestionId, Slot, Stamp};
use crate::tui::mode::{Ask, Mode};
use std::path::PathBuf;
use tui_input::Input;
use vmscope_symbolizer::{Profile, Stop};

/// Result.
#[derive(Debug)]
pub(super) enum Made {
    /// Text for the clipboard.
    Text(String),
    /// Bytes of a file, or a reason for their absence.
    File(PathBuf, Result<Vec<u8>, String>),
}

impl App {
    /// Copies the view as text.
    pub(super) fn copy(&mut self, profile: &Profile, effects: &mut Vec<Effect>) {
        let make = |shown: &Document, stop: &Stop| text_of(shown, stop).map(Made::Text);
        self.make(profile, Slot::Copy, make, effects);
    }

    /// Exports the view; the file extension names the format.
    pub(super) fn export_to(&mut self, profile: &Profile, name: &str, effects: &mut Vec<Effect>) {
        let path = PathBuf::from(name);
        let Some(format) = Format::of(&path) else {
            self.message = format!("`{name}` does not end in .txt, .csv, .json or .svg");
            return;
        };
        let make = move |shown: &Document, stop: &Stop| {
            let bytes = encode(shown, format, stop)?;
            Some(Made::File(path, bytes))
        };
        self.make(profile, Slot::Export, make, effects);
    }

    fn make(
        &mut self,
        profile: &Profile,
        slot: Slot,
        make: impl FnOnce(&Document, &Stop) -> Option<Made> + Send + 'static,
        effects: &mut Vec<Effect>,
    ) {
        let kept = self.with_view(profile, |view, cx| (view.copied(), cx.keep()));
        let Some((view, kept)) = kept else {
            return;
        };
        self.tickets += 1;
        let number = self.tickets;
        let made = match slot {
            Slot::Copy => &mut self.copied,
            _ => &mut self.exported,
        };
        let question = made.ask(number, Stamp::default(), move |profile, stop| {
            make(&view.shown(&kept.cx(profile), stop)?, stop)
        });
        if let Some(question) = question {
            self.start(slot, question, effects);
        }
    }

    /// Handles a finished copy or export.
    pub(super) fn made(&mut self, question: QuestionId, effects: &mut Vec<Effect>) {
        for made in [&mut self.copied, &mut self.exported] {
            made.take(question);
            match made.remove() {
                Some(Made::Text(text)) => effects.push(Effect::Copy(text)),
                Some(Made::File(path, Ok(bytes))) => {
                    self.exports += 1;
                    effects.push(Effect::Write(path, bytes));
                }
                Some(Made::File(_, Err(why))) => self.message = why,
                None => {}
            }
        }
    }

    /// Unused name for the next export.
    pub(super) fn export_name(&self, format: Format) -> String {
        let name = self.current.name().to_lowercase().replace(' ', "-");
        match self.exports {
            0 => format!("{name}.{}", format.extension()),
            n => format!("{name}-{}.{}", n + 1, format.extension()),
        }
    }

    /// Prompts for the export file.
    pub(super) fn ask_export(&mut self, format: Format) {
        self.mode = Mode::Ask(Ask::Export, Input::new(self.export_name(format)));
    }
}
