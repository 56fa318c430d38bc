//! Commands of the whole UI.

use super::App;
use crate::present::encode::Format;
use crate::present::names::region_name;
use crate::present::names::thread_label;
use crate::tui::event::Effect;
use crate::tui::filter_state::FilterChange;
use crate::tui::jobs::Slot;
use crate::tui::keys::{Command, GLOBAL, LIVE};
use crate::tui::mode::{Ask, Edited, Mode, edit};
use crate::tui::palette::{Item, Palette, Then, of_bindings};
use crate::tui::screen::help;
use crate::tui::view_id::ViewId;
use crate::tui::views::Find;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use tui_input::Input;
use vmscope_records::TimeNs;
use vmscope_symbolizer::{Profile, Region};

/// Spans of a running process in seconds, in the order of key presses; the whole session comes
/// last.
pub(super) const SPANS: [u64; 4] = [10, 30, 60, 300];

/// Maximum number of threads in the palette; the threads view lists all.
const MAX_THREAD_ITEMS: usize = 200;

impl App {
    /// Executes a command.
    pub(super) fn command(
        &mut self,
        profile: Option<&Profile>,
        command: Command,
        effects: &mut Vec<Effect>,
    ) {
        if command != Command::Quit {
            self.quit_asked = false;
        }
        match command {
            Command::Quit => return self.quit(effects),
            Command::Suspend => return effects.push(Effect::Suspend),
            Command::Redraw => {
                self.ask_again();
                return effects.push(Effect::Redraw);
            }
            Command::Help => self.mode = Mode::Help(0),
            _ => {}
        }
        let Some(profile) = profile else {
            return;
        };
        match command {
            Command::Quit | Command::Suspend | Command::Redraw | Command::Help => {}
            Command::Show(id) => self.show(id),
            Command::NextView => self.show(self.neighbour(false)),
            Command::PreviousView => self.show(self.neighbour(true)),
            Command::Back => {
                if self.with_view(profile, |view, cx| view.back(cx)) == Some(true) {
                    return;
                }
                let spot = self.history.back(self.spot());
                self.restore(spot, "no earlier screen");
            }
            Command::Forward => {
                if self.with_view(profile, |view, cx| view.forward(cx)) == Some(true) {
                    return;
                }
                let spot = self.history.forward(self.spot());
                self.restore(spot, "no later screen");
            }
            Command::Search => {
                self.pattern.clear();
                self.find(Some(profile), Find::Here);
                self.mode = Mode::Search(Input::default());
            }
            Command::NextMatch => self.find(Some(profile), Find::Next),
            Command::PreviousMatch => self.find(Some(profile), Find::Previous),
            Command::Palette => self.mode = Mode::Palette(Palette::new(self.items(profile))),
            Command::DropFilter => self.narrow(FilterChange::DropNewest),
            Command::DropFilters => self.narrow(FilterChange::DropAll),
            Command::Copy => self.copy(profile, effects),
            Command::Export => self.ask_export(Format::Text),
            Command::Pause if self.live.is_some() => {
                self.paused = !self.paused;
                let (_, end) = self.bounds;
                let until = TimeNs(end.0.saturating_add(1));
                self.filters.hold(self.paused.then_some(until));
            }
            Command::AddMark if self.live.is_some() => {
                self.mode = Mode::Ask(Ask::Mark, Input::default());
            }
            Command::Save if self.live.is_some() => {
                self.mode = Mode::Ask(Ask::Save, Input::new("top.vmscope".to_owned()));
            }
            Command::Span if self.live.is_some() => self.next_span(),
            // One press ends one thing: long work with visible progress first.
            Command::Cancel if self.slow().is_some() => {
                self.message = self.stop_all().to_owned();
            }
            Command::Cancel => {
                self.pattern.clear();
                self.find(Some(profile), Find::Here);
                self.hand_on(profile, command);
            }
            _ => self.hand_on(profile, command),
        }
    }

    fn hand_on(&mut self, profile: &Profile, command: Command) {
        let acts = self.with_view(profile, |view, cx| view.act(command, cx));
        self.acts(acts.unwrap_or_default());
    }

    fn neighbour(&self, is_before: bool) -> ViewId {
        let mut tabs: Vec<ViewId> = self.tabs().collect();
        if is_before {
            tabs.reverse();
        }
        let at = tabs.iter().position(|id| *id == self.current);
        let next = at.map_or(0, |at| (at + 1) % tabs.len());
        tabs.get(next).copied().unwrap_or(self.current)
    }

    fn next_span(&mut self) {
        let at = SPANS.iter().position(|&seconds| Some(seconds) == self.span);
        let next = at.map_or(0, |at| at + 1);
        let before = self.spot();
        self.history.leave(before);
        self.filters.narrow(FilterChange::Window(None));
        self.span = SPANS.get(next).copied();
        self.follow_span();
    }

    /// Quits; with an unsaved recording, at the second request.
    fn quit(&mut self, effects: &mut Vec<Effect>) {
        let live = self.live.as_ref();
        let is_lost = live.is_some_and(|live| live.output.is_empty()) && !self.is_saved;
        let is_made = self.running.contains_key(&Slot::Export);
        if (is_lost || is_made) && !self.quit_asked {
            self.quit_asked = true;
            let why = match is_made {
                true => "the export is not finished: q again quits without the file",
                false => "the recording is not saved: W saves it, q again quits",
            };
            self.message = why.to_owned();
        } else {
            effects.push(Effect::Quit);
        }
    }

    pub(super) fn help_key(&self, line: usize, key: &KeyEvent) -> Mode {
        let most = help::lines(self).saturating_sub(help::height(self));
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => Mode::Help(line.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => Mode::Help((line + 1).min(most)),
            KeyCode::PageUp => Mode::Help(line.saturating_sub(help::height(self))),
            KeyCode::PageDown | KeyCode::Char(' ') => {
                Mode::Help((line + help::height(self)).min(most))
            }
            KeyCode::Home | KeyCode::Char('g') => Mode::Help(0),
            KeyCode::End | KeyCode::Char('G') => Mode::Help(most),
            _ => Mode::Normal,
        }
    }

    pub(super) fn palette_key(
        &mut self,
        profile: Option<&Profile>,
        mut palette: Palette,
        key: &KeyEvent,
        effects: &mut Vec<Effect>,
    ) {
        match key.code {
            KeyCode::Up => palette.step(-1),
            KeyCode::Down | KeyCode::Tab => palette.step(1),
            KeyCode::PageUp => palette.step(-10),
            KeyCode::PageDown => palette.step(10),
            _ => match edit(&mut palette.input, key) {
                Edited::Cancelled => return,
                Edited::Entered => {
                    let then = palette.chosen().map(|item| item.then.clone());
                    return self.chosen(profile, then, effects);
                }
                Edited::Changed => palette.refresh(),
                Edited::Ignored => {}
            },
        }
        self.mode = Mode::Palette(palette);
    }

    fn chosen(&mut self, profile: Option<&Profile>, then: Option<Then>, effects: &mut Vec<Effect>) {
        match (then, profile) {
            (Some(Then::Command(command)), _) => self.command(profile, command, effects),
            (Some(Then::FilterChange(narrow)), Some(_)) => self.narrow(narrow),
            (Some(Then::Ask(ask, text)), _) => self.mode = Mode::Ask(ask, Input::new(text)),
            _ => {}
        }
    }

    /// Lines of the palette.
    fn items(&self, profile: &Profile) -> Vec<Item> {
        let own = self.view().map_or(&[][..], |view| view.bindings());
        let live = if self.live.is_some() { LIVE } else { &[] };
        let cx = self.cx(profile);
        let mut items = of_bindings(&[own]);
        let choices = self.view().map(|view| view.choices(&cx));
        items.extend(choices.into_iter().flatten().map(|choice| Item {
            text: choice.text,
            key: String::new(),
            then: Then::Command(Command::Own(choice.number)),
        }));
        items.extend(of_bindings(&[GLOBAL, live]));
        let line = |text: String, then: Then| Item {
            text,
            key: String::new(),
            then,
        };
        for &kind in self.filters.kinds() {
            let label = self.filters.label(kind, profile, self.bounds.0);
            items.push(line(
                format!("remove filter: {label}"),
                Then::FilterChange(FilterChange::Drop(kind)),
            ));
        }
        items.push(line(
            "window: from and to a time in seconds".to_owned(),
            Then::Ask(Ask::Window, String::new()),
        ));
        items.push(line(
            "only names containing a text".to_owned(),
            Then::Ask(Ask::Names, self.pattern.clone()),
        ));
        for format in Format::ALL {
            let text = format!("export as {}", format.name());
            let file = self.export_name(format);
            items.push(line(text, Then::Ask(Ask::Export, file)));
        }
        let threads = profile
            .trace
            .threads
            .enumerated()
            .filter(|(_, thread)| !thread.is_nobody())
            .take(MAX_THREAD_ITEMS);
        for (id, thread) in threads {
            let text = format!("only thread {}", thread_label(&thread.thread));
            let only = Some([id].into_iter().collect());
            items.push(line(text, Then::FilterChange(FilterChange::Threads(only))));
        }
        for region in Region::ALL {
            let text = format!("only region {}", region_name(region, profile.is_native()));
            items.push(line(
                text,
                Then::FilterChange(FilterChange::Regions(vec![region])),
            ));
        }
        items
    }
}
