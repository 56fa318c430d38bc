//! Where the view's parts are: drawing them, and the mouse in them.

use super::calls::{self, Shows};
use super::plan::{Shape, number_title, wants_machine};
use super::{Act, Click, Cx, Method, head, versions};
use crate::present::text::wrap;
use crate::tui::keys::Command;
use crate::tui::theme::Role;
use crate::tui::views::{Press, View};
use crate::tui::widgets::pane::{below, beside};
use crate::tui::widgets::table;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use vmscope_symbolizer::annotate::Origin;

/// Versions are beside the listing where there are so many columns.
const WIDE: u16 = 120;

/// Where everything is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Areas {
    pub head: Rect,
    pub strip: Option<Rect>,
    pub pane: Option<Rect>,
    /// What versions side by side are called, above the listing.
    pub labels: Option<Rect>,
    pub listing: Rect,
    pub calls: Option<Rect>,
}

impl Method {
    pub(super) fn areas(&self, cx: &Cx<'_>) -> Areas {
        let area = cx.area;
        let versions = self.versions();
        let lines = self
            .shown_one()
            .map_or(0, |found| head::lines(found, cx).len());
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

    /// How many versions there is room for side by side.
    pub(super) fn room_for_sides(&self, cx: &Cx<'_>) -> usize {
        let area = self.areas(cx).listing;
        let all = self.versions().all;
        let any = |origin: Origin| matches!(origin, Origin::Code(_));
        let machine = all.iter().any(|version| any(version.origin));
        let machine = machine && wants_machine(self.machine, area);
        self.listing.plan(all.len(), machine, area).sides
    }

    /// How the listing is shown.
    pub(super) fn shape<'a>(&'a self, cx: &Cx<'a>) -> Shape<'a> {
        Shape {
            theme: cx.theme,
            sides: self.sides_shown(),
            machine: self.machine,
            number: self.shown_one().map_or("", number_title),
        }
    }

    /// Takes the mouse.
    pub(super) fn pressed(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let areas = self.areas(cx);
        let is_press = matches!(click.what, Press::Down | Press::Double);
        if let Some(strip) = areas
            .strip
            .filter(|strip| strip.contains(click.at) && is_press)
        {
            let (columns, at) = (usize::from(strip.width), usize::from(click.at.x - strip.x));
            let chosen = self.versions().in_strip(cx, columns, at);
            return chosen.map_or_else(Vec::new, |origin| self.choose(origin, cx));
        }
        if let Some(pane) = areas
            .pane
            .filter(|pane| pane.contains(click.at) && is_press)
        {
            let line = usize::from(click.at.y - pane.y).checked_sub(1);
            let height = table::height(pane);
            let chosen = line.and_then(|line| self.versions().in_pane(line, height));
            return chosen.map_or_else(Vec::new, |origin| self.choose(origin, cx));
        }
        if let Some(calls) = areas.calls.filter(|calls| calls.contains(click.at)) {
            let area = calls::list_area(calls);
            let rows = self
                .calls_shown()
                .map_or(0, |calls| self.shows.of(calls).len());
            let line = usize::from(click.at.y).checked_sub(usize::from(area.y) + 1);
            self.in_calls |= is_press;
            let height = table::height(area);
            let is_row =
                line.is_some_and(|line| self.call_list.press(click.what, line, rows, height));
            if is_row && click.what == Press::Double {
                return self.act(Command::Open, cx);
            }
            return Vec::new();
        }
        if !areas.listing.contains(click.at) {
            return Vec::new();
        }
        self.in_calls &= !is_press;
        let Some(line) = click.at.y.checked_sub(areas.listing.y + 1) else {
            return Vec::new();
        };
        let (rows, height) = (self.listing.visible.len(), table::height(areas.listing));
        let is_row = self.list.press(click.what, usize::from(line), rows, height);
        if is_row && click.what == Press::Double {
            return self.act(Command::Open, cx);
        }
        Vec::new()
    }

    /// Draws it.
    pub(super) fn draw_all(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let Some(found) = self.shown_one() else {
            let why = self.found.get().map(|found| found.why.as_str());
            let why = why.unwrap_or("Looking for the method with most samples ...");
            let columns = usize::from(area.width).saturating_sub(4).max(1);
            let text = wrap(why, columns, 0);
            let lines = text.lines().map(|line| Line::raw(format!("  {line}")));
            for (line, y) in lines.zip(area.y.saturating_add(1)..area.bottom()) {
                frame.render_widget(
                    line,
                    Rect {
                        y,
                        height: 1,
                        ..area
                    },
                );
            }
            return;
        };
        let areas = self.areas(cx);
        let lines = head::lines(found, cx).into_iter();
        for (line, y) in lines.zip(areas.head.y..areas.head.bottom()) {
            frame.render_widget(
                line,
                Rect {
                    y,
                    height: 1,
                    ..areas.head
                },
            );
        }
        if let Some(strip) = areas.strip {
            self.versions().draw_strip(cx, frame, strip);
        }
        if let Some(pane) = areas.pane {
            self.versions().draw_pane(cx, frame, pane);
        }
        let shape = self.shape(cx);
        if let Some(line) = areas.labels {
            let versions = self.versions();
            let labels = shape.sides.iter().filter_map(|side| {
                let version = versions.of(side.origin)?;
                Some((versions::short(version), versions::label(version, cx)))
            });
            let labels: Vec<_> = labels.collect();
            self.listing.draw_labels(shape, &labels, frame, line);
        }
        self.listing.draw(shape, self.list, frame, areas.listing);
        if let Some(area) = areas.calls {
            let calls = (self.shows, self.calls_shown());
            calls::draw(cx, calls, (self.call_list, self.in_calls), frame, area);
        }
        if self.listing.items.is_empty() {
            let line = Line::styled("  no place in it has samples", cx.theme.style(Role::Dim));
            let (_, rows) = below(areas.listing, 1);
            let (first, _) = below(rows, 1);
            frame.render_widget(line, first);
        }
    }
}
