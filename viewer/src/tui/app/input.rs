//! Keys, mouse and pasted text.

use super::{App, Stage, open};
use crate::tui::event::Effect;
use crate::tui::filter_state::FilterChange;
use crate::tui::keys::{Command, command_of};
use crate::tui::live::LiveOrder;
use crate::tui::mode::{Ask, Edited, Mode, edit, paste};
use crate::tui::screen::{self, Spots};
use crate::tui::view_id::ViewId;
use crate::tui::views::{Click, Find, Press};
use ratatui::crossterm::event::{KeyCode, KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};
use vmscope_symbolizer::Profile;

/// Maximum delay of a double click, in milliseconds.
const DOUBLE_CLICK_MS: u64 = 400;

impl App {
    /// Handles a key.
    pub(super) fn key(
        &mut self,
        profile: Option<&Profile>,
        key: &KeyEvent,
        effects: &mut Vec<Effect>,
    ) {
        match std::mem::take(&mut self.mode) {
            Mode::Normal => {
                self.message.clear();
                let own = self.view().map_or(&[][..], |view| view.bindings());
                let live = self.live.is_some();
                let command = command_of(key, own, live);
                match command {
                    Some(command) if self.stage == Stage::Open => {
                        self.command(profile, command, effects);
                    }
                    // Before opening, quitting loses nothing.
                    Some(Command::Quit | Command::Cancel) => effects.push(Effect::Quit),
                    Some(Command::Suspend) => effects.push(Effect::Suspend),
                    Some(Command::Redraw) => effects.push(Effect::Redraw),
                    _ => {}
                }
            }
            Mode::Help(line) => self.mode = self.help_key(line, key),
            Mode::Search(input) if key.code == KeyCode::Tab => {
                self.pattern.clear();
                self.find(profile, Find::Restore);
                self.told(profile, Ask::Names, input.value(), effects);
            }
            Mode::Search(mut input) => {
                let edited = edit(&mut input, key);
                match edited {
                    Edited::Cancelled => {
                        self.pattern.clear();
                        self.find(profile, Find::Restore);
                    }
                    Edited::Entered => {}
                    Edited::Changed | Edited::Ignored => {
                        let pattern = input.value().to_owned();
                        self.mode = Mode::Search(input);
                        if edited == Edited::Changed {
                            self.search(profile, &pattern);
                        }
                    }
                }
            }
            Mode::Palette(palette) => self.palette_key(profile, palette, key, effects),
            Mode::Ask(ask, mut input) => match edit(&mut input, key) {
                Edited::Cancelled => {}
                Edited::Entered => self.told(profile, ask, input.value(), effects),
                Edited::Changed | Edited::Ignored => self.mode = Mode::Ask(ask, input),
            },
        }
    }

    /// Handles pasted text.
    pub(super) fn pasted(&mut self, profile: Option<&Profile>, text: &str) {
        match &mut self.mode {
            Mode::Search(input) => {
                paste(input, text);
                let pattern = input.value().to_owned();
                self.search(profile, &pattern);
            }
            Mode::Palette(palette) => {
                paste(&mut palette.input, text);
                palette.refresh();
            }
            Mode::Ask(_, input) => paste(input, text),
            Mode::Normal | Mode::Help(_) => {}
        }
    }

    /// Searches the view for the pattern typed so far.
    fn search(&mut self, profile: Option<&Profile>, pattern: &str) {
        self.pattern = pattern.to_owned();
        self.find(profile, Find::Here);
    }

    /// Selects a match.
    pub(super) fn find(&mut self, profile: Option<&Profile>, find: Find) {
        let pattern = self.pattern.clone();
        let Some(profile) = profile else {
            return;
        };
        let found = self.with_view(profile, |view, cx| view.find(&pattern, find, cx));
        self.message = if found == Some(true) || pattern.is_empty() {
            String::new()
        } else {
            format!("no match for `{pattern}`")
        };
    }

    /// Handles a mouse event at `at_ms` milliseconds.
    pub(super) fn mouse(&mut self, profile: Option<&Profile>, mouse: MouseEvent, at_ms: u64) {
        let at = Position::new(mouse.column, mouse.row);
        let what = match mouse.kind {
            MouseEventKind::Down(MouseButton::Left) => {
                let again = self.last_click.take().is_some_and(|(place, then)| {
                    place == at && at_ms.saturating_sub(then) < DOUBLE_CLICK_MS
                });
                if again {
                    Press::Double
                } else {
                    self.last_click = Some((at, at_ms));
                    Press::Down
                }
            }
            MouseEventKind::Drag(MouseButton::Left) => Press::Drag,
            MouseEventKind::Up(MouseButton::Left) => Press::Up,
            MouseEventKind::ScrollUp => Press::WheelUp,
            MouseEventKind::ScrollDown => Press::WheelDown,
            _ => return,
        };
        let was_held = std::mem::take(&mut self.held_button);
        let Some(profile) = profile.filter(|_| matches!(self.mode, Mode::Normal)) else {
            return;
        };
        if what == Press::Down {
            match screen::spot_at(self, at) {
                Some(Spots::Tab(id)) => return self.show(id),
                Some(Spots::Crumb(kind)) => return self.narrow(FilterChange::Drop(kind)),
                Some(Spots::Limits) => return self.show(ViewId::Truth),
                None => {}
            }
        }
        let body: Rect = screen::body(self);
        let is_inside = body.contains(at);
        // A drag that began in the view ends there, even with the mouse outside.
        let goes_on = was_held && matches!(what, Press::Drag | Press::Up) && !body.is_empty();
        self.held_button = match what {
            Press::Down | Press::Double => is_inside,
            Press::Up => false,
            Press::Drag | Press::WheelUp | Press::WheelDown => was_held,
        };
        if is_inside || goes_on {
            let at = Position::new(
                at.x.clamp(body.x, body.right().saturating_sub(1).max(body.x)),
                at.y.clamp(body.y, body.bottom().saturating_sub(1).max(body.y)),
            );
            let click = Click { at, what };
            let acts = self.with_view(profile, |view, cx| view.click(click, cx));
            self.acts(acts.unwrap_or_default());
        }
    }

    /// Handles typed input for a prompt.
    fn told(&mut self, profile: Option<&Profile>, ask: Ask, text: &str, effects: &mut Vec<Effect>) {
        let Some(profile) = profile else {
            return;
        };
        match ask {
            Ask::Export => self.export_to(profile, text, effects),
            Ask::Mark => effects.push(Effect::Live(LiveOrder::Mark(text.to_owned()))),
            Ask::Save if text.is_empty() => {}
            Ask::Save => {
                effects.push(Effect::Live(LiveOrder::Save(text.into())));
            }
            Ask::Names => {
                let names = [text.trim().to_owned()];
                let names = names.into_iter().filter(|name| !name.is_empty());
                self.narrow(FilterChange::Names(names.collect()));
            }
            Ask::Window => match open::parse_window(text, self.bounds) {
                Some(window) => self.narrow(FilterChange::Window(Some(window))),
                None => {
                    self.message = format!(
                        "`{text}` is not a window: give two times in \
                                                seconds, such as 1.5-3"
                    )
                }
            },
        }
    }
}
