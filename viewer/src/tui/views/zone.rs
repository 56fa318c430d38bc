//! Samples by address with their integral, as in VMProfiler, and a map of the code zone at any
//! time.

mod map;
mod map_below;
mod map_drawn;
mod map_grid;
mod names;
mod pane;
mod plot;
mod plot_below;
mod plot_drawn;
mod ranges;
#[cfg(test)]
mod tests;

use super::{Act, Choice, Click, Cx, Find, View};
use crate::present::document::Document;
use crate::queries::zone_samples::ZoneSamples;
use crate::tui::jobs::{Fetched, Question, QuestionId};
use crate::tui::keys::{Binding, Command, ch, own};
use map::Map;
use pane::Pane;
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
    own(Command::ZoomIn, &[ch('+'), ch('=')], "zoom", "zoom in: to the selection, else around the cursor"),
    own(Command::ZoomOut, &[ch('-')], "", "zoom back out"),
    own(Command::Select, &[ch('v')], "select", "plot: start or end a selection of addresses"),
    own(Command::Toggle, &[ch(' ')], "include", "plot: include or exclude this range"),
    own(Command::Earlier, &[ch(','), ch('<')], "", "map: earlier; plot: previous zoom"),
    own(Command::Later, &[ch('.'), ch('>')], "", "map: later; plot: next zoom"),
    own(Command::Sort, &[ch('s')], "step", "map: step by change, or by 2% of the time"),
    own(Command::NextHot, &[ch('}')], "", "next hot place"),
    own(Command::PreviousHot, &[ch('{')], "", "previous hot place"),
    own(Command::Group, &[ch('b')], "next zone", "map: next code zone"),
    own(Command::GroupBack, &[ch('B')], "", "map: previous code zone"),
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
    fetched: Fetched<(), (ZoneSamples, Panes)>,
    ground: Option<ZoneSamples>,
    /// Number of the newest request for samples.
    number: u64,
    panes: Panes,
}

/// The chosen form, and both panes with their computed pictures.
#[derive(Clone, Debug, Default)]
struct Panes {
    form: Form,
    plot: Plot,
    map: Map,
}

impl Panes {
    fn pane(&self) -> &dyn Pane {
        match self.form {
            Form::Plot => &self.plot,
            Form::Map => &self.map,
        }
    }

    fn pane_mut(&mut self) -> &mut dyn Pane {
        match self.form {
            Form::Plot => &mut self.plot,
            Form::Map => &mut self.map,
        }
    }

    /// Computes the picture of the visible form; `None` after a stop.
    fn compute(&mut self, samples: &ZoneSamples, cx: &Cx<'_>, stop: &Stop) -> Option<()> {
        let pane = self.pane_mut();
        if let Some(Question { id, work }) = pane.ask(samples, cx) {
            work(cx.profile, stop).then(|| pane.take(id))?;
        }
        Some(())
    }

    /// Takes over the picture of the visible form.
    fn take_picture(&mut self, from: &Panes) {
        match from.form {
            Form::Plot => self.plot.fetched = from.plot.fetched.clone(),
            Form::Map => self.map.cells = from.map.cells.clone(),
        }
    }
}

impl Zone {
    /// Asks for samples and their picture in one question: the user waits once.
    fn ask_ground(&mut self, cx: &Cx<'_>) -> Option<Question> {
        let filter = cx.filters.filter().clone();
        let known = self.ground.as_ref();
        let known = known.map(|ground| Arc::clone(&ground.layout));
        let (mut panes, kept) = (self.panes.clone(), cx.keep());
        let number = self.number + 1;
        let question = self.fetched.ask((), cx.stamp, move |profile, stop| {
            let make = || Arc::new(Layout::of(profile, Residencies::of(&profile.trace)));
            let layout = known.filter(|it| it.is_of(profile)).unwrap_or_else(make);
            let addresses = Arc::new(Addresses::of(profile, &filter, &layout, stop)?);
            let samples = ZoneSamples {
                layout,
                addresses,
                number,
            };
            panes.compute(&samples, &kept.cx(profile), stop)?;
            Some((samples, panes))
        });
        self.number += u64::from(question.is_some());
        question
    }

    fn take_ground(&mut self, ended: QuestionId) {
        let is_there = self.fetched.take(ended);
        if let Some((samples, panes)) = self.fetched.get().filter(|_| is_there) {
            self.ground = Some(samples.clone());
            self.panes.take_picture(panes);
        }
    }

    /// Samples of the picture; without a picture, the newest samples.
    fn samples(&self) -> Option<ZoneSamples> {
        self.panes
            .pane()
            .samples()
            .or(self.ground.as_ref())
            .cloned()
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
            self.panes.form = match self.panes.form {
                Form::Plot => Form::Map,
                Form::Map => Form::Plot,
            };
            return Vec::new();
        }
        let (commands, text) = self.panes.pane().missing();
        if commands.contains(&command) {
            return vec![Act::Say(text.to_owned())];
        }
        match self.samples() {
            Some(samples) => self.panes.pane_mut().act(command, &samples, cx),
            None => Vec::new(),
        }
    }

    fn back(&mut self, _cx: &Cx<'_>) -> bool {
        self.panes.pane_mut().zoom_back()
    }

    fn forward(&mut self, _cx: &Cx<'_>) -> bool {
        self.panes.pane_mut().zoom_forward()
    }

    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        match self.samples() {
            Some(samples) => self.panes.pane_mut().click(click, &samples, cx),
            None => Vec::new(),
        }
    }

    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question> {
        let mut asked: Vec<Question> = self.ask_ground(cx).into_iter().collect();
        if let Some(samples) = self.ground.clone() {
            asked.extend(self.panes.pane_mut().ask(&samples, cx));
        }
        asked
    }

    fn answer(&mut self, ended: QuestionId, _cx: &Cx<'_>) {
        self.take_ground(ended);
        self.panes.plot.take(ended);
        self.panes.map.take(ended);
    }

    fn find(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool {
        let samples = self.samples();
        samples.is_some_and(|samples| self.panes.pane_mut().find(pattern, find, &samples, cx))
    }

    fn draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        if let Some(samples) = self.samples() {
            self.panes.pane().draw(&samples, cx, frame, area);
        }
    }

    fn shown(&self, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
        match self.samples() {
            Some(samples) => self.panes.pane().shown(&samples, cx, stop),
            None => Some(Document::default()),
        }
    }

    fn choices(&self, cx: &Cx<'_>) -> Vec<Choice> {
        let samples = self.samples();
        samples.map_or_else(Vec::new, |samples| self.panes.pane().choices(&samples, cx))
    }

    fn crumb(&self, _cx: &Cx<'_>) -> String {
        self.panes.pane().crumb().to_owned()
    }

    fn is_pending(&self) -> bool {
        self.fetched.is_pending() || self.panes.pane().is_pending()
    }
}
