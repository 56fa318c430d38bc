//! Lines below and beside the map: kinds, time, details.

use super::map::Map;
use super::map_grid::{Places, TIME};
use super::pane::put;
use crate::present::numbers::{bytes, count, percent, ratio, some};
use crate::present::text::{name, right};
use crate::queries::code_kind::{name_of, singular};
use crate::queries::zone_cells::{Cells, FREE, Total, Wanted};
use crate::queries::zone_samples::ZoneSamples;
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use vmscope_symbolizer::zone::ZoneRange;

impl Map {
    pub(super) fn draw_below(
        &self,
        (of, cells): (&Wanted, &Cells),
        ground: &ZoneSamples,
        cx: &Cx<'_>,
        buffer: &mut Buffer,
        (area, places): (Rect, &Places),
    ) {
        let theme = cx.theme;
        let room = places.side.map_or(area.width, |side| side.x - area.x);
        let room = usize::from(room);
        let y = places.map.bottom();
        let gaps = cells
            .gaps()
            .map(|(sign, name, _)| format!("{sign} {name}  "));
        let gaps: String = gaps.collect();
        let text = if places.side.is_some() {
            format!(" {gaps}+ added  - removed since the previous step; underlined: samples")
        } else {
            let piece = |total: &Total| format!("{} {}", total.letter, name_of(&total.kind));
            let pieces: Vec<String> = cells.totals.iter().map(piece).collect();
            format!(" {gaps}+ added - removed  {}", pieces.join("  "))
        };
        put(buffer, (area.x, y), &text, room, theme.style(Role::Dim));
        let mut text = format!(" {} used", bytes(cells.used));
        for (sign, name, gaps) in cells.gaps() {
            text.push_str(&format!(", {} {name}", bytes(gaps.bytes)));
            if sign == FREE {
                let pieces = some(gaps.count, "gap", "gaps");
                let largest = bytes(gaps.largest);
                text.push_str(&format!(" in {pieces}, largest {largest}"));
            }
        }
        let constituents = cells.totals.iter().map(|total| total.count).sum();
        text.push_str(&format!(", {} pieces", count(constituents)));
        if cells.maybe > 0 {
            text.push_str(&format!(" ({} uncertain)", count(cells.maybe)));
        }
        if let (compactions, Some(last)) = cells.compactions {
            let times = some(compactions, "time", "times");
            let last = cx.seconds(last);
            text.push_str(&format!(", moved {times}, last at {last:.3} s"));
        }
        if let Some(zone) = self.zone(ground) {
            text.push_str(&forks(zone));
        }
        put(
            buffer,
            (area.x, y + 1),
            &text,
            room,
            theme.style(Role::Text),
        );
        draw_line((of, cells), cx, buffer, (area, places));
        let (first, second) = self.told((of, cells), ground, cx);
        let y = places.line.y;
        put(
            buffer,
            (area.x, y + 1),
            &first,
            room,
            theme.style(Role::Strong),
        );
        put(
            buffer,
            (area.x, y + 2),
            &second,
            room,
            theme.style(Role::Text),
        );
    }

    /// Details of the cursor's cell, two lines.
    fn told(
        &self,
        (of, cells): (&Wanted, &Cells),
        ground: &ZoneSamples,
        cx: &Cx<'_>,
    ) -> (String, String) {
        let changed = if cells.came + cells.went > 0 {
            format!(
                "; since the previous step {} added, {} removed",
                cells.came, cells.went
            )
        } else {
            String::new()
        };
        let Some((zone, residency)) = self.zone(ground).zip(self.chosen(ground, cx)) else {
            let what = self.gap(ground, cx);
            return (format!(" {what}{changed}"), String::new());
        };
        let Some(code) = residency.constituent(&cx.profile.trace) else {
            return (String::new(), String::new());
        };
        let others = self.here(ground, cx).len().saturating_sub(1);
        let more = if others > 0 {
            format!(", and {} here", some(others as u64, "other", "others"))
        } else {
            String::new()
        };
        let called = if code.name.is_empty() {
            "(no name)"
        } else {
            &code.name
        };
        let tier = if code.tier.is_empty() {
            String::new()
        } else {
            format!(" {}", code.tier)
        };
        let first = format!(" {called}: {}{tier}{more}{changed}", singular(&code.kind));
        let samples = ground.in_residency(zone, residency);
        let since = if residency.from <= cx.begin {
            "since before the recording".to_owned()
        } else {
            let age = of.time.since(residency.from).as_secs_f64();
            format!("since {:.3} s (for {age:.3} s)", cx.seconds(residency.from))
        };
        let until = residency.until.map_or_else(String::new, |until| {
            let how = if residency.replaced {
                "replaced"
            } else {
                "gone"
            };
            format!(", {how} at {:.3} s", cx.seconds(until))
        });
        let second = format!(
            " {:#x} +{}, {}, {}, {since}{until}",
            residency.start,
            bytes(residency.size()),
            some(samples, "sample", "samples"),
            percent(ratio(samples, ground.addresses.total)),
        );
        (first, second)
    }
}

/// Remark about forked processes.
fn forks(zone: &ZoneRange) -> String {
    match (zone.forks, zone.is_forked) {
        (0, false) => String::new(),
        (0, true) => ", without code inherited from its parent".to_owned(),
        (forks, _) => {
            let forks = some(forks.into(), "forked process", "forked processes");
            format!(", with samples of {forks}")
        }
    }
}

fn draw_line(
    (of, cells): (&Wanted, &Cells),
    cx: &Cx<'_>,
    buffer: &mut Buffer,
    (area, places): (Rect, &Places),
) {
    let theme = cx.theme;
    let seconds = format!(" {:>8.3} s", cx.seconds(of.time));
    let line = places.line;
    let style = theme.style(Role::Key);
    put(buffer, (area.x, line.y), &seconds, usize::from(TIME), style);
    let (from, to, _) = of.line;
    let span = u128::from(to.since(from).0).max(1);
    let last = u128::from(line.width.saturating_sub(1));
    let now = u128::from(of.time.since(from).0) * last / span;
    let most = cells.line.iter().copied().max().unwrap_or(0);
    for (x, at) in (line.x..line.right()).zip(0usize..) {
        let changes = cells.line.get(at).copied().unwrap_or(0);
        let mut place = [0; 4];
        let (sign, role) = if at as u128 == now {
            (theme.sign("●", "O"), Role::Key)
        } else if changes > 0 {
            let column = theme.column(ratio(changes, most));
            (&*column.encode_utf8(&mut place), Role::Text)
        } else {
            (theme.sign("─", "-"), Role::Dim)
        };
        put(buffer, (x, line.y), sign, 1, theme.style(role));
    }
}

pub(super) fn draw_kinds(cells: &Cells, cx: &Cx<'_>, buffer: &mut Buffer, area: Rect) {
    let theme = cx.theme;
    let columns = usize::from(area.width);
    let row = |what: &str, pieces: &str, bytes: &str, samples: &str| {
        let room = columns.saturating_sub(7 + 9 + 9);
        format!(
            "{}{}{}{}",
            name(what, room),
            right(pieces, 7),
            right(bytes, 9),
            right(samples, 9)
        )
    };
    let head = row("", "pieces", "bytes", "samples");
    let mut lines = vec![(head, Role::Title)];
    for one in cells.legend() {
        let samples = one.samples.map(count).unwrap_or_default();
        let text = row(
            &format!("{} {}", one.sign, one.name),
            &count(one.count),
            &bytes(one.bytes),
            &samples,
        );
        let role = one.samples.map_or(Role::Dim, |_| Role::Text);
        lines.push((text, role));
    }
    for ((text, role), y) in lines.into_iter().zip(area.y..area.bottom()) {
        put(buffer, (area.x, y), &text, columns, theme.style(role));
    }
}
