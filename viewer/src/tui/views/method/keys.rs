//! Effects of the view's keys and palette lines.

use super::{Method, Own, calls};
use crate::tui::keys::{Binding, Command, ch, own};
use crate::tui::views::{Act, Choice, Cx, Find};
use vmscope_symbolizer::annotate::Origin;

#[rustfmt::skip]
pub(super) const BINDINGS: &[Binding] = &[
    own(Command::NextHot, &[ch('}')], "hot", "next hot line"),
    own(Command::PreviousHot, &[ch('{')], "", "previous hot line"),
    own(Command::Toggle, &[ch(' ')], "fold", "fold or unfold inlined methods of this line"),
    own(Command::Later, &[ch('.'), ch('>')], "version", "next version of the method; after the last, all versions"),
    own(Command::Earlier, &[ch(','), ch('<')], "", "previous version"),
    own(Command::Compare, &[ch('v')], "compare", "compare two versions side by side; . and , change the second"),
    own(Command::Reverse, &[ch('V')], "", "side by side: swap the two versions"),
    own(Command::Group, &[ch('b')], "calls", "show callers, callees or neither; Enter opens one, ← returns to the listing"),
    own(Command::GroupBack, &[ch('B')], "", "the same in reverse order"),
    own(Command::Mode, &[ch('m')], "machine", "show or hide the offsets of the machine code"),
];

impl Method {
    pub(super) fn command(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        if self.in_calls
            && let Some(acts) = self.in_calls(command, cx)
        {
            return acts;
        }
        match command {
            Command::Toggle => {
                self.with_table(cx, |table, page, height| table.toggle(page, height));
            }
            Command::Open => match self.callee() {
                Some(subject) => return self.go(&subject, cx),
                None => return self.command(Command::Toggle, cx),
            },
            Command::NextHot => return self.jump(Find::Next, cx),
            Command::PreviousHot => return self.jump(Find::Previous, cx),
            Command::Later | Command::Earlier => {
                if self.versions(cx).all.is_empty() {
                    let text = "only JIT code has versions";
                    return vec![Act::Say(text.to_owned())];
                }
                let later = command == Command::Later;
                let Some((_, second)) = self.step_beside(later) else {
                    let origin = self.versions(cx).step(later);
                    return self.choose(origin, cx);
                };
                return self.choose(Some(second), cx);
            }
            Command::Compare => return self.compare(cx),
            Command::Reverse => return self.swap(cx),
            Command::Group => self.show_calls(self.shows.next(), cx),
            Command::GroupBack => self.show_calls(self.shows.next().next(), cx),
            Command::Mode => return self.toggle_machine(cx),
            Command::Only => return self.only(cx),
            Command::Own(number) => return self.chosen(number, cx),
            _ => {
                self.with_table(cx, |table, page, height| table.act(command, page, height));
            }
        }
        Vec::new()
    }

    /// Executes a command in the calls; `None` for other commands.
    fn in_calls(&mut self, command: Command, cx: &Cx<'_>) -> Option<Vec<Act>> {
        match command {
            Command::Left | Command::Cancel => {
                self.in_calls = false;
                Some(Vec::new())
            }
            Command::Open | Command::Right => {
                let subject = self.with_calls(cx, |table, page, _| {
                    Some(page.all.get(table.selected()?)?.subject.clone())
                });
                Some(self.go(&subject??, cx))
            }
            Command::Reverse | Command::NextHot | Command::PreviousHot => None,
            _ => {
                let is_done = self.with_calls(cx, |table, page, area| {
                    table.act(command, page, calls::Table::height(area))
                });
                (is_done == Some(true)).then(Vec::new)
            }
        }
    }

    /// Puts the next or previous version beside the first.
    fn step_beside(&mut self, later: bool) -> Option<(Origin, Origin)> {
        let all = &self.found.get()?.versions;
        self.beside.step(all, self.origin, later);
        self.pair()
    }

    /// Puts versions side by side, or ends that.
    fn compare(&mut self, cx: &Cx<'_>) -> Vec<Act> {
        if !self.versions(cx).is_several() {
            let text = "only one version: nothing to compare";
            return vec![Act::Say(text.to_owned())];
        }
        self.beside.on = !self.beside.on;
        if self.origin.is_some() {
            // The version shown alone stays.
            self.beside.forget();
        }
        vec![Act::Say(self.pair_in_words(cx))]
    }

    fn swap(&mut self, cx: &Cx<'_>) -> Vec<Act> {
        let all = self.found.get().map_or(&[][..], |found| &found.versions);
        self.beside.swap(all, self.origin);
        let said = match self.pair() {
            Some(_) => self.pair_in_words(cx),
            None => "v compares versions side by side".to_owned(),
        };
        vec![Act::Say(said)]
    }

    fn pair_in_words(&self, cx: &Cx<'_>) -> String {
        let versions = self.versions(cx);
        match self.pair() {
            Some((first, second)) => {
                let [first, second] = [first, second].map(|origin| versions.label_of(origin));
                format!("{first} beside {second}")
            }
            None => "all versions".to_owned(),
        }
    }

    fn toggle_machine(&mut self, cx: &Cx<'_>) -> Vec<Act> {
        if !self.page(cx).has_machine() {
            return vec![Act::Say(self.versions(cx).why_no_machine().to_owned())];
        }
        self.machine = !self.machine;
        let page = self.page(cx);
        let version = self.found.get().and_then(|found| {
            let at = found.machine_of?;
            found.versions.get(at)
        });
        let said = match version {
            _ if !page.shows_machine(cx.area.width) => "machine code is hidden".to_owned(),
            Some(version) if page.sides.is_empty() => {
                format!("machine code of {}", self.versions(cx).label(version))
            }
            _ => "machine code of both".to_owned(),
        };
        vec![Act::Say(said)]
    }

    fn chosen(&mut self, number: u16, cx: &Cx<'_>) -> Vec<Act> {
        let own = self.own.iter().find(|(known, _)| *known == number);
        match own.map(|(_, own)| own.clone()) {
            Some(Own::Method(subject)) => self.go(&subject, cx),
            Some(Own::Version(origin)) => self.choose(origin, cx),
            Some(Own::Fold(open)) => {
                self.with_table(cx, |table, page, height| {
                    table.set_all(page, open.then_some(0.0), height);
                });
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// The view's palette lines: versions, folds, the hottest methods.
    pub(super) fn palette(&self, cx: &Cx<'_>) -> Vec<Choice> {
        let mut choices = Vec::new();
        let mut line = |own: Own, text: String| {
            if let Some(&(number, _)) = self.own.iter().find(|(_, known)| *known == own) {
                choices.push(Choice { text, number });
            }
        };
        let versions = self.versions(cx);
        if versions.is_several() {
            line(Own::Version(None), "version: all".to_owned());
        }
        for version in versions.all {
            let text = format!("version: {}", versions.label(version));
            line(Own::Version(Some(version.origin)), text);
        }
        line(Own::Fold(true), "unfold all inlined methods".to_owned());
        line(Own::Fold(false), "fold all inlined methods".to_owned());
        for candidate in self.hottest.get().into_iter().flatten() {
            let text = format!("method {}", candidate.label);
            line(Own::Method(candidate.subject.clone()), text);
        }
        choices
    }
}
