//! Questions of the view, and their answers.

use super::calls::{self, Shows};
use super::sides::Side;
use super::{Cx, Method, Own};
use crate::queries::method::{self as found, Known, Which};
use crate::tui::jobs::{Question, QuestionId};

impl Method {
    /// What is to be found.
    fn wanted(&self, cx: &Cx<'_>) -> Which {
        if let Some((base, subject)) = &self.over
            && *base == cx.subject
        {
            return Which::Subject(subject.clone());
        }
        if let Some(entry) = cx.subject {
            return Which::Entry(entry);
        }
        // The hottest method stays while the profile grows.
        match (&self.subject, self.found.answered()) {
            (Some(subject), Some(((Which::Hottest | Which::Subject(_), _), stamp)))
                if stamp.filters == cx.stamp.filters && stamp.profile != cx.stamp.profile =>
            {
                Which::Subject(subject.clone())
            }
            (_, Some(((which @ Which::Subject(_), _), stamp)))
                if stamp.filters == cx.stamp.filters =>
            {
                which.clone()
            }
            _ => Which::Hottest,
        }
    }

    pub(super) fn asked(&mut self, cx: &Cx<'_>) -> Vec<Question> {
        let which = self.wanted(cx);
        let is_same = match (&which, &self.which) {
            (Which::Subject(subject), Some(Which::Hottest)) => {
                Some(subject) == self.subject.as_ref()
            }
            (which, Some(before)) => which == before,
            (_, None) => true,
        };
        if !is_same {
            // Another method has other versions.
            self.origin = None;
            self.beside.forget();
        }
        self.which = Some(which.clone());
        let filter = cx.filters.filter().clone();
        // Side-by-side versions share the layout of all versions together.
        let origin = self.origin.filter(|_| !self.beside.on);
        let (asked, until) = (which.clone(), cx.end);
        let known = self.known(cx);
        let found = self
            .found
            .ask((which, origin), cx.stamp, move |profile, stop| {
                found::find(profile, &filter, (&asked, origin), until, known, stop)
            });
        let (filter, known) = (cx.filters.filter().clone(), self.known(cx));
        let hottest = self.hottest.ask((), cx.stamp, move |profile, stop| {
            found::hottest(profile, &filter, known, stop)
        });
        // Without stacks, only the pane needs the calls: what was inlined. Counting the stacks of
        // a growing profile every second takes long.
        let has_stacks = !cx.profile.trace.chains.is_empty() && cx.profile.omitted.is_none();
        let calls = self.subject.clone();
        let calls = calls.filter(|_| has_stacks || self.shows != Shows::Nothing);
        let calls = calls.and_then(|subject| {
            let filter = cx.filters.filter().clone();
            let (key, mut known) = (subject.clone(), self.known(cx));
            self.calls.ask(key, cx.stamp, move |profile, stop| {
                let located = known.located(profile, &subject);
                vmscope_symbolizer::annotate::calls(profile, &filter, &located, stop)
            })
        });
        let sides = self.asked_sides(cx);
        let all = found.into_iter().chain(hottest).chain(calls);
        all.chain(sides).collect()
    }

    fn asked_sides(&mut self, cx: &Cx<'_>) -> Option<Question> {
        self.pair()?;
        let subject = self.subject.clone()?;
        let room = self.room_for_sides(cx);
        let all = &self.annotated()?.versions;
        let origins = self.beside.shown(all, self.origin, room);
        let filter = cx.filters.filter().clone();
        let key = (subject.clone(), origins.clone());
        let mut known = self.known(cx);
        self.sides.ask(key, cx.stamp, move |profile, stop| {
            let located = known.located(profile, &subject);
            Side::all(profile, &filter, &located, &origins, stop)
        })
    }

    /// Filter-independent answers for the current profile.
    fn known(&self, cx: &Cx<'_>) -> Known {
        let answered = self.found.answered();
        let is_now = answered.is_some_and(|(_, stamp)| stamp.profile == cx.stamp.profile);
        let found = self.found.get().filter(|_| is_now);
        found.map_or_else(Known::default, |found| found.known.clone())
    }

    pub(super) fn answered(&mut self, ended: QuestionId, cx: &Cx<'_>) {
        if self.found.take(ended) {
            self.lay_out(cx);
            let versions = self.versions(cx).all.iter();
            let versions = versions.map(|version| Own::Version(Some(version.origin)));
            let fixed = [Own::Version(None), Own::Fold(true), Own::Fold(false)];
            self.remember_all(versions.chain(fixed).collect());
        }
        if self.hottest.take(ended) {
            let methods = self.hottest.get().into_iter().flatten();
            let methods = methods.map(|one| Own::Method(one.subject.clone()));
            self.remember_all(methods.collect());
        }
        if self.calls.take(ended) {
            self.lay_out(cx);
            self.with_calls(cx, |table, page, area| {
                table.arrange(page, calls::Table::height(area));
            });
        }
        if self.sides.take(ended) {
            self.with_table(cx, |table, page, height| table.arrange(page, height));
        }
    }
}
