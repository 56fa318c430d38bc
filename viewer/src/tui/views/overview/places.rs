//! Layout of the overview.

use crate::tui::widgets::pane::{below, beside};
use ratatui::layout::Rect;

/// Areas of the parts; empty without room.
#[derive(Clone, Copy, Debug, Default)]
pub struct Places {
    pub head: Rect,
    pub strip: Rect,
    pub truth: Rect,
    pub regions: Rect,
    pub entries: Rect,
    pub threads: Rect,
    pub collector: Rect,
    pub compilers: Rect,
    pub figures: Rect,
}

/// Layout for a number of limits (`truth`), a number of regions, and a VM with reports on
/// collector, compilers or figures (`vm`).
pub fn places(area: Rect, truth: usize, regions: usize, vm: bool) -> Places {
    let mut places = Places::default();
    let is_tall = area.height >= 30;
    let rows = |rows: usize| u16::try_from(rows).unwrap_or(0);
    let (head, rest) = below(area, if area.height < 17 { 2 } else { 4 });
    let (strip, rest) = below(rest, if is_tall { 3 } else { 1 });
    let lines = rows(truth.min(if area.height < 17 { 1 } else { 3 }));
    let (truth, rest) = below(rest, lines + u16::from(is_tall));
    (places.head, places.strip, places.truth) = (head, strip, truth);
    let bottom = match (vm, is_tall) {
        (false, _) => 0,
        (true, true) => (rest.height / 3).min(14),
        (true, false) if area.height >= 19 => 2,
        (true, false) => 0,
    };
    let (lists, bottom) = below(rest, rest.height - bottom.min(rest.height));
    if area.width >= 150 {
        let (left, rest) = beside(lists, 52);
        let (middle, right) = beside(rest, rest.width.saturating_sub(46));
        (places.regions, places.entries, places.threads) = (left, middle, right);
    } else if area.width >= 110 && is_tall {
        let (left, right) = beside(lists, 46);
        let (left, threads) = below(left, left.height - left.height / 3);
        (places.regions, places.entries, places.threads) = (left, right, threads);
    } else {
        let (left, right) = beside(lists, (area.width * 8 / 20).min(48));
        (places.regions, places.entries) = (left, right);
        // Threads take rows below the regions.
        let spare = left.height.saturating_sub(rows(regions) + 1);
        if spare >= 8 {
            let (regions, threads) = below(left, left.height - spare / 2);
            (places.regions, places.threads) = (regions, threads);
        }
    }
    if bottom.height == 0 {
        return places;
    }
    if !is_tall {
        (places.collector, places.compilers) = below(bottom, 1);
    } else if area.width >= 150 {
        let (left, rest) = beside(bottom, 52);
        let (middle, right) = beside(rest, rest.width / 2);
        (places.collector, places.compilers, places.figures) = (left, middle, right);
    } else {
        (places.collector, places.compilers) = beside(bottom, area.width * 9 / 20);
    }
    places
}
