//! What the view's keys and its lines of the palette do.

use super::calls::list_area;
use super::items::What;
use super::{Method, Own, versions};
use crate::tui::keys::{Binding, Command, ch, own};
use crate::tui::views::{Act, Choice, Cx};
use crate::tui::widgets::table;
use vmscope_symbolizer::annotate::Origin;

#[rustfmt::skip]
pub(super) const BINDINGS: &[Binding] = &[
    own(Command::NextHot, &[ch('}')], "hot", "the next hot line"),
    own(Command::PreviousHot, &[ch('{')], "", "the hot line before"),
    own(Command::Toggle, &[ch(' ')], "fold", "fold or unfold what was inlined here"),
    own(Command::Later, &[ch('.'), ch('>')], "version", "the method's next version alone; behind the last, all together"),
    own(Command::Earlier, &[ch(','), ch('<')], "", "the version before it alone"),
    own(Command::Compare, &[ch('v')], "beside", "two versions side by side, more where there is room; . and , change the second one"),
    own(Command::Reverse, &[ch('V')], "", "side by side: the first and the second change places"),
    own(Command::Group, &[ch('b')], "calls", "callers, callees, neither; Enter goes to one, ← back to the listing"),
    own(Command::GroupBack, &[ch('B')], "", "the same, backwards"),
    own(Command::Mode, &[ch('m')], "machine", "show or hide the offsets of the machine code"),
];

impl Method {
    /// Does what a command asks for.
    pub(super) fn command(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        if self.in_calls
            && let Some(acts) = self.in_calls(command, cx)
        {
            return acts;
        }
        let height = table::height(self.areas(cx).listing);
        if self.list.act(command, self.listing.visible.len(), height) {
            self.search.forget_origin();
            return Vec::new();
        }
        match command {
            Command::Toggle => self.fold(cx),
            Command::Right => self.inwards(cx),
            Command::Left => self.outwards(cx),
            Command::Open => return self.open(cx),
            Command::NextHot => return self.jump(true, cx),
            Command::PreviousHot => return self.jump(false, cx),
            Command::Later | Command::Earlier => {
                if self.versions().all.is_empty() {
                    let text = "native code has no versions, nor has what is in no code zone";
                    return vec![Act::Say(text.to_owned())];
                }
                let later = command == Command::Later;
                let Some((_, second)) = self.step_beside(later) else {
                    let origin = self.versions().step(later);
                    return self.choose(origin, cx);
                };
                return self.choose(Some(second), cx);
            }
            Command::Compare => return self.compare(cx),
            Command::Reverse => return self.swap(cx),
            Command::Group => self.show_calls(self.shows.next()),
            Command::GroupBack => self.show_calls(self.shows.back()),
            Command::Mode => return self.toggle_machine(cx),
            Command::Only => return self.only(cx),
            Command::Own(number) => return self.chosen(number, cx),
            _ => {}
        }
        Vec::new()
    }

    /// A command in the callers; `None` where it is none of theirs.
    fn in_calls(&mut self, command: Command, cx: &Cx<'_>) -> Option<Vec<Act>> {
        let rows = self
            .calls_shown()
            .map_or(0, |calls| self.shows.of(calls).len());
        let area = self.areas(cx).calls?;
        if self
            .call_list
            .act(command, rows, table::height(list_area(area)))
        {
            return Some(Vec::new());
        }
        match command {
            Command::Left | Command::Cancel => {
                self.in_calls = false;
                Some(Vec::new())
            }
            Command::Open | Command::Right => {
                let calls = self.calls_shown()?;
                let at = self.call_list.selected().min(rows.saturating_sub(1));
                let call = self.shows.of(calls).get(at);
                let subject = call.map(|call| call.subject.clone())?;
                Some(self.go(&subject, cx))
            }
            _ => None,
        }
    }

    /// Steps in what is side by side.
    fn step_beside(&mut self, later: bool) -> Option<(Origin, Origin)> {
        let all = &self.found.get()?.versions;
        self.beside.step(all, self.origin, later);
        self.pair()
    }

    /// Puts versions side by side, or ends that.
    fn compare(&mut self, cx: &Cx<'_>) -> Vec<Act> {
        if !self.versions().is_several() {
            let text = "there is one version of it: nothing to put beside it";
            return vec![Act::Say(text.to_owned())];
        }
        self.beside.on = !self.beside.on;
        if self.origin.is_some() {
            // The one that is shown alone is the one that stays.
            self.beside.forget();
        }
        self.find_hot();
        vec![Act::Say(self.told_pair(cx))]
    }

    fn swap(&mut self, cx: &Cx<'_>) -> Vec<Act> {
        let all = self.found.get().map_or(&[][..], |found| &found.versions);
        self.beside.swap(all, self.origin);
        let said = match self.pair() {
            Some(_) => self.told_pair(cx),
            None => "v puts versions side by side".to_owned(),
        };
        vec![Act::Say(said)]
    }

    fn told_pair(&self, cx: &Cx<'_>) -> String {
        let Some((first, second)) = self.pair() else {
            return "all versions together".to_owned();
        };
        let versions = self.versions();
        let label = |origin| versions.of(origin).map(|one| versions::label(one, cx));
        let first = label(first).unwrap_or_default();
        format!("{first} beside {}", label(second).unwrap_or_default())
    }

    fn fold(&mut self, cx: &Cx<'_>) {
        if let Some(number) = self.current() {
            self.listing.toggle(number);
            self.select(number, cx);
        }
    }

    /// Opens what is closed, else goes to its first line.
    fn inwards(&mut self, cx: &Cx<'_>) {
        let Some(item) = self.item().filter(|item| item.has_children) else {
            return;
        };
        if !self.listing.is_open(item) {
            self.fold(cx);
        } else if let Some(number) = self.current() {
            self.select(number + 1, cx);
        }
    }

    /// Closes what is open, else goes to what it is inlined at.
    fn outwards(&mut self, cx: &Cx<'_>) {
        if self.item().is_some_and(|item| self.listing.is_open(item)) {
            self.fold(cx);
        } else if let Some(outer) = self.current().and_then(|at| self.listing.parent(at)) {
            self.select(outer, cx);
        }
    }

    fn open(&mut self, cx: &Cx<'_>) -> Vec<Act> {
        let callee = self.item().and_then(|item| match &item.what {
            What::Callee(subject) => Some(subject.clone()),
            _ => None,
        });
        match callee {
            Some(subject) => self.go(&subject, cx),
            None => {
                self.fold(cx);
                Vec::new()
            }
        }
    }

    fn toggle_machine(&mut self, cx: &Cx<'_>) -> Vec<Act> {
        let mut items = self.listing.items.iter();
        let mut sides = self.sides_shown().iter();
        if items.all(|item| item.machine.is_empty()) && sides.all(|side| side.machine.is_empty()) {
            let text = "no machine code is known for these lines: it is native code, or was \
                        interpreted, or its code has no map";
            return vec![Act::Say(text.to_owned())];
        }
        self.machine = !self.machine;
        let shape = self.shape(cx);
        let is_shown = self.listing.shows_machine(shape, self.areas(cx).listing);
        let version = self.found.get().and_then(|found| {
            let at = found.machine_of?;
            found.versions.get(at)
        });
        let said = match version {
            _ if !is_shown => "machine code is hidden".to_owned(),
            Some(version) if shape.sides.is_empty() => {
                format!("machine code of {}", versions::label(version, cx))
            }
            _ => "machine code of each".to_owned(),
        };
        vec![Act::Say(said)]
    }

    fn chosen(&mut self, number: u16, cx: &Cx<'_>) -> Vec<Act> {
        let own = self.own.iter().find(|(known, _)| *known == number);
        match own.map(|(_, own)| own.clone()) {
            Some(Own::Method(subject)) => self.go(&subject, cx),
            Some(Own::Version(origin)) => self.choose(origin, cx),
            Some(Own::Fold(open)) => {
                let at = self.current();
                self.listing.set_all(open);
                let outermost = |mut at: usize| {
                    while let Some(outer) = self.listing.parent(at).filter(|_| !open) {
                        at = outer;
                    }
                    at
                };
                if let Some(at) = at.map(outermost) {
                    self.select(at, cx);
                }
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// The view's lines of the palette: versions, folds, the hottest methods.
    pub(super) fn palette(&self, cx: &Cx<'_>) -> Vec<Choice> {
        let mut choices = Vec::new();
        let mut line = |own: Own, text: String| {
            if let Some(&(number, _)) = self.own.iter().find(|(_, known)| *known == own) {
                choices.push(Choice { text, number });
            }
        };
        let versions = self.versions();
        if versions.is_several() {
            line(Own::Version(None), "version: all together".to_owned());
        }
        for version in versions.all {
            let text = format!("version: {}", versions::label(version, cx));
            line(Own::Version(Some(version.origin)), text);
        }
        line(Own::Fold(true), "unfold all that was inlined".to_owned());
        line(Own::Fold(false), "fold all that was inlined".to_owned());
        for candidate in self.hottest.get().into_iter().flatten() {
            let text = format!("method {}", candidate.label);
            line(Own::Method(candidate.subject.clone()), text);
        }
        choices
    }
}
