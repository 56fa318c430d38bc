//! Areas of the view's parts: drawing, mouse.

use super::{Act, Click, Cx, Method, Shows, calls, head, versions};
use crate::present::text::{self, wrap};
use crate::tui::keys::Command;
use crate::tui::theme::Role;
use crate::tui::views::{Press, View};
use crate::tui::widgets::data_table::Clicked;
use crate::tui::widgets::pane::{Pane, below, beside};
use ratatui::Frame;
use ratatui::layout::Rect;
use vmscope_symbolizer::annotate::Origin;

/// Minimum screen width for versions beside the listing, which then has as much text as on the
/// whole of a narrower screen.
const WIDE: u16 = 160;

/// Areas of the view's parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Areas {
    pub head: Rect,
    pub strip: Option<Rect>,
    pub pane: Option<Rect>,
    /// Names of versions side by side, above the listing.
    pub labels: Option<Rect>,
    pub listing: Rect,
    pub calls: Option<Rect>,
}

impl Method {
    pub(super) fn areas(&self, cx: &Cx<'_>) -> Areas {
        let area = cx.area;
        let versions = self.versions(cx);
        let lines = self.annotated().map_or(0, |found| {
            head::lines(found, self.calls_of_stacks(cx), cx).len()
        });
        let lines = u16::try_from(lines).unwrap_or(0).min(area.height);
        let (head, mut rest) = below(area, lines);
        let (mut strip, mut pane) = (None, None);
        let are_beside = versions.pair.is_some();
        if versions.is_several() && area.width >= WIDE && !are_beside {
            let (left, right) = beside(rest, versions::PANE);
            (pane, rest) = (Some(left), right);
        } else if !versions.all.is_empty() {
            let (line, below) = below(rest, 1);
            (strip, rest) = (Some(line), below);
        }
        let mut calls = None;
        if self.shows != Shows::Nothing {
            let height = (rest.height / 3).clamp(5, 16).min(rest.height);
            let (listing, below) = below(rest, rest.height - height);
            (rest, calls) = (listing, Some(below));
        }
        let mut labels = None;
        if are_beside {
            let (line, listing) = below(rest, 1);
            (labels, rest) = (Some(line), listing);
        }
        Areas {
            head,
            strip,
            pane,
            labels,
            listing: rest,
            calls,
        }
    }

    /// Number of versions that fit side by side.
    pub(super) fn room_for_sides(&self, cx: &Cx<'_>) -> usize {
        let all = self.versions(cx).all;
        let has_code = |origin: Origin| matches!(origin, Origin::Code(_));
        let has_machine = all.iter().any(|version| has_code(version.origin));
        let width = self.areas(cx).listing.width;
        self.page(cx).room_for_sides(all.len(), has_machine, width)
    }

    pub(super) fn pressed(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let areas = self.areas(cx);
        let is_press = matches!(click.what, Press::Down | Press::Double);
        let is_in = |area: &Rect| area.contains(click.at);
        if let Some(strip) = areas.strip.filter(is_in).filter(|_| is_press) {
            let (columns, at) = (usize::from(strip.width), usize::from(click.at.x - strip.x));
            let chosen = self.versions(cx).in_strip(columns, at);
            return chosen.map_or_else(Vec::new, |origin| self.choose(origin, cx));
        }
        if let Some(pane) = areas.pane.filter(is_in).filter(|_| is_press) {
            let versions = self.versions(cx);
            let mut table = versions.table(pane);
            let chosen = match table.click(click, &versions, pane) {
                Clicked::Row { .. } => table.chosen().copied(),
                Clicked::Nothing => None,
            };
            return chosen.map_or_else(Vec::new, |origin| self.choose(origin, cx));
        }
        let is_in_calls = areas.calls.as_ref().is_some_and(is_in);
        if !is_in_calls && !is_in(&areas.listing) {
            return Vec::new();
        }
        if is_press {
            self.in_calls = is_in_calls;
        }
        let clicked = if is_in_calls {
            self.with_calls(cx, |table, page, area| table.click(click, page, area))
        } else {
            Some(self.with_table(cx, |table, page, _| table.click(click, page, areas.listing)))
        };
        match clicked {
            Some(Clicked::Row { twice: true, .. }) => self.act(Command::Open, cx),
            _ => Vec::new(),
        }
    }

    pub(super) fn draw_all(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let theme = cx.theme;
        let pane = |area| Pane { theme, area };
        let Some(found) = self.annotated() else {
            let why = self.found.get().map(|found| found.why.as_str());
            let why = why.unwrap_or("Looking for the method with most samples ...");
            let columns = usize::from(area.width).saturating_sub(4).max(1);
            for (line, row) in wrap(why, columns, 0).lines().zip(1..) {
                pane(area).line(frame, row, &[(Role::Text, format!("  {line}"))]);
            }
            return;
        };
        let areas = self.areas(cx);
        let lines = head::lines(found, self.calls_of_stacks(cx), cx);
        for (row, line) in lines.into_iter().enumerate() {
            pane(areas.head).line(frame, row, &[line]);
        }
        let versions = self.versions(cx);
        if let Some(strip) = areas.strip {
            versions.draw_strip(frame, strip);
        }
        if let Some(pane) = areas.pane {
            versions.table(pane).draw(&versions, theme, frame, pane);
        }
        let page = self.page(cx);
        if let Some(line) = areas.labels {
            let labels = page.sides.iter().filter_map(|(_, side)| {
                let version = versions.of(side.origin)?;
                Some((versions::short(version), versions.label(version)))
            });
            page.draw_labels(&labels.collect::<Vec<_>>(), theme, frame, line);
        }
        self.table.draw(&page, theme, frame, areas.listing);
        if page.items.is_empty() {
            let text = match self.calls.is_pending() {
                true => "  counting calls ...",
                false => "  no line has samples",
            };
            let line = (Role::Dim, text.to_owned());
            pane(areas.listing).line(frame, 1, &[line]);
        }
        let Some(area) = areas.calls else {
            return;
        };
        let Some(calls) = self.calls_shown() else {
            return pane(area).line(frame, 0, &[(Role::Dim, "counting calls ...".to_owned())]);
        };
        let title = calls::title(self.shows, calls, cx, self.in_calls);
        let title = text::line(&title, usize::from(area.width));
        let role = if self.in_calls {
            Role::Title
        } else {
            Role::Strong
        };
        pane(area).line(frame, 0, &[(role, title)]);
        let rows = calls::Page::of(self.shows, calls, cx.profile.is_native());
        self.call_table.draw(&rows, theme, frame, below_title(area));
    }
}

/// Area of a table below the title of its pane.
pub(super) fn below_title(area: Rect) -> Rect {
    below(area, 1).1
}
