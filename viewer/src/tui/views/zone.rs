//! Addresses: samples by address with their integral, as VMProfiler plots them, and the
//! code zone as a map, as it was at any time.

mod map;
mod map_below;
mod map_drawn;
mod map_grid;
mod names;
mod plot;
mod plot_below;
mod plot_drawn;
#[cfg(test)]
mod tests;

use super::{Act, Choice, Click, Cx, Find, View};
use crate::present::document::Document;
use crate::queries::zone_cells::ZoneSamples;
use crate::tui::jobs::{Fetched, Question, QuestionId, Stamp};
use crate::tui::keys::{Binding, Command, ch, own};
use map::Map;
use plot::Plot;
use ratatui::Frame;
use ratatui::layout::Rect;
use std::sync::Arc;
use vmscope_symbolizer::Stop;
use vmscope_symbolizer::addresses::{Addresses, Layout};
use vmscope_symbolizer::zone::Residencies;

#[rustfmt::skip]
const BINDINGS: &[Binding] = &[
    own(Command::Mode, &[ch('m')], "plot/map", "samples by address, or the code zone as a map"),
    own(Command::ZoomIn, &[ch('+'), ch('=')], "zoom", "nearer: to what is selected, else around the cursor"),
    own(Command::ZoomOut, &[ch('-')], "out", "back to what was shown before zooming in"),
    own(Command::Select, &[ch('v')], "select", "plot: begin to select addresses, or end it"),
    own(Command::Toggle, &[ch(' ')], "include", "plot: leave this range out, or include it again"),
    own(Command::Earlier, &[ch(','), ch('<')], "", "map: earlier; plot: back to the zoom before"),
    own(Command::Later, &[ch('.'), ch('>')], "", "map: later; plot: forward to the zoom after"),
    own(Command::Sort, &[ch('s')], "", "map: step by single changes, or by a fiftieth of the time"),
    own(Command::NextHot, &[ch('}')], "hot", "the next hot place"),
    own(Command::PreviousHot, &[ch('{')], "", "the hot place before"),
    own(Command::Group, &[ch('b')], "", "map: the next code zone"),
    own(Command::GroupBack, &[ch('B')], "", "map: the code zone before"),
];

/// The view's forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Plot,
    Map,
}

/// The view.
#[derive(Clone, Debug, Default)]
pub struct Zone {
    form: Form,
    fetched: Fetched<(), (Arc<Layout>, Arc<Addresses>)>,
    ground: Option<ZoneSamples>,
    /// The profile that the layout is of.
    layout_of: Option<u64>,
    plot: Plot,
    /// What the plot's columns are made from: the newest ground may be ahead of them.
    plot_of: Option<ZoneSamples>,
    map: Map,
    /// The same of the map's cells.
    map_of: Option<ZoneSamples>,
}

impl Zone {
    fn ask_ground(&mut self, cx: &Cx<'_>) -> Option<Question> {
        let filter = cx.filters.filter().clone();
        let known = self.ground.as_ref();
        let known = known.map(|ground| Arc::clone(&ground.layout));
        let known = known.filter(|_| self.layout_of == Some(cx.stamp.profile));
        self.fetched.ask((), cx.stamp, move |profile, stop| {
            let make = || Arc::new(Layout::of(profile, Residencies::of(&profile.trace)));
            let layout = known.unwrap_or_else(make);
            let addresses = Addresses::of(profile, &filter, &layout, stop)?;
            Some((layout, Arc::new(addresses)))
        })
    }

    fn take_ground(&mut self, ended: QuestionId) {
        let is_there = self.fetched.take(ended);
        let Some((layout, addresses)) = self.fetched.get().filter(|_| is_there) else {
            return;
        };
        let number = self.ground.as_ref().map_or(0, |ground| ground.number) + 1;
        self.ground = Some(ZoneSamples {
            layout: Arc::clone(layout),
            addresses: Arc::clone(addresses),
            number,
        });
        let of = self.fetched.answered();
        self.layout_of = of.map(|(_, Stamp { profile, .. })| *profile);
    }
}

impl Zone {
    /// What the form's picture is made from; the newest before there is any.
    fn drawn(&self) -> Option<ZoneSamples> {
        let of = match self.form {
            Form::Plot => &self.plot_of,
            Form::Map => &self.map_of,
        };
        of.as_ref().or(self.ground.as_ref()).cloned()
    }

    /// The newest ground, where an answer is made from it.
    fn newest(&self, number: u64) -> Option<ZoneSamples> {
        let newest = self.ground.as_ref();
        newest.filter(|one| one.number == number).cloned()
    }
}

impl View for Zone {
    fn copied(&self) -> Box<dyn View> {
        Box::new(self.clone())
    }

    fn bindings(&self) -> &'static [Binding] {
        BINDINGS
    }

    fn act(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        if command == Command::Mode {
            self.form = match self.form {
                Form::Plot => Form::Map,
                Form::Map => Form::Plot,
            };
            return Vec::new();
        }
        let other = match self.form {
            Form::Plot => [Command::Sort, Command::Group, Command::GroupBack].contains(&command),
            Form::Map => [Command::Select, Command::Toggle].contains(&command),
        };
        if other {
            let text = match self.form {
                Form::Plot => "that is for the map: m shows it",
                Form::Map => "that is for the plot: m shows it",
            };
            return vec![Act::Say(text.to_owned())];
        }
        let Some(ground) = self.drawn() else {
            return Vec::new();
        };
        match self.form {
            Form::Plot => self.plot.act(command, &ground),
            Form::Map => self.map.act(command, &ground, cx),
        }
    }

    fn back(&mut self, _cx: &Cx<'_>) -> bool {
        match self.form {
            Form::Plot => self.plot.zoom_back(),
            Form::Map => self.map.zoom_back(),
        }
    }

    fn forward(&mut self, _cx: &Cx<'_>) -> bool {
        self.form == Form::Plot && self.plot.zoom_forward()
    }

    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let Some(ground) = self.drawn() else {
            return Vec::new();
        };
        match self.form {
            Form::Plot => self.plot.click(click, &ground, cx),
            Form::Map => self.map.click(click, &ground, cx),
        }
    }

    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question> {
        let mut asked: Vec<Question> = self.ask_ground(cx).into_iter().collect();
        if let Some(ground) = &self.ground {
            asked.extend(match self.form {
                Form::Plot => self.plot.ask(ground, cx),
                Form::Map => self.map.ask(ground, cx),
            });
        }
        asked
    }

    fn answer(&mut self, ended: QuestionId, _cx: &Cx<'_>) {
        self.take_ground(ended);
        if let Some(of) = self.plot.take(ended) {
            self.plot_of = self.newest(of).or(self.plot_of.take());
        }
        if let Some(of) = self.map.take(ended) {
            self.map_of = self.newest(of).or(self.map_of.take());
        }
    }

    fn find(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool {
        let Some(ground) = self.drawn() else {
            return false;
        };
        match self.form {
            Form::Plot => self.plot.find(pattern, find, cx),
            Form::Map => self.map.find(pattern, find, &ground, cx),
        }
    }

    fn draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let Some(ground) = self.drawn() else {
            return;
        };
        match self.form {
            Form::Plot => self.plot.draw(&ground, cx, frame, area),
            Form::Map => self.map.draw(&ground, cx, frame, area),
        }
    }

    fn shown(&self, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
        let Some(ground) = self.drawn() else {
            return Some(Document::default());
        };
        match self.form {
            Form::Plot => Some(self.plot.shown(&ground, cx)),
            Form::Map => self.map.shown(&ground, cx, stop),
        }
    }

    fn choices(&self, cx: &Cx<'_>) -> Vec<Choice> {
        let Some(ground) = self.drawn() else {
            return Vec::new();
        };
        match self.form {
            Form::Plot => self.plot.choices(&ground, cx),
            Form::Map => self.map.choices(&ground, cx),
        }
    }

    fn crumb(&self, _cx: &Cx<'_>) -> String {
        match self.form {
            Form::Plot => "by address".to_owned(),
            Form::Map => "code zone".to_owned(),
        }
    }

    fn is_pending(&self) -> bool {
        self.fetched.is_pending()
            || match self.form {
                Form::Plot => self.plot.is_pending(),
                Form::Map => self.map.is_pending(),
            }
    }
}
