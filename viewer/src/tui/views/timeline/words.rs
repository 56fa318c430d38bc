//! Words about the cursor or the selection; legend.

use super::drawn::unit;
use super::layout::Layout;
use super::{Column, Timeline};
use crate::present::names::{region_letter, region_name};
use crate::present::numbers::{count, ratio, some};
use crate::present::text;
use crate::queries::by_region::{self, ByRegion};
use crate::queries::time_grid::Grid;
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::widgets::chart::ms;
use crate::tui::widgets::pane::{Bit, Pane};
use ratatui::Frame;
use ratatui::layout::Rect;
use vmscope_symbolizer::Region;

impl Timeline {
    pub(super) fn draw_words(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect, grid: &Grid) {
        let theme = cx.theme;
        let pane = Pane { theme, area };
        let at = self.at(grid);
        let (role, words) = match self.selection(grid) {
            Some(selected) => (Role::Match, self.selected_words(cx, grid, selected)),
            None => {
                let whole = self.column_words(cx, grid, at, false);
                let words = match text::width(&whole) >= pane.columns() {
                    true => self.column_words(cx, grid, at, true),
                    false => whole,
                };
                (Role::Text, words)
            }
        };
        pane.line(frame, 0, &[(role, format!(" {words}"))]);
        let notes = self.lanes.get().and_then(|lanes| {
            let column = grid.column_in(&lanes.grid, at)?;
            lanes.notes.get(column).filter(|notes| !notes.is_empty())
        });
        let (role, words) = match notes {
            Some(notes) => (Role::Strong, notes.join("; ")),
            None => (Role::Dim, self.letters()),
        };
        pane.line(frame, 1, &[(role, format!(" {words}"))]);
    }

    /// Legend of the letters in the rows of threads and pauses.
    fn letters(&self) -> String {
        let mut words = match self.heights {
            true => String::new(),
            false => "threads: small letters below half a CPU".to_owned(),
        };
        let Some(lanes) = self.lanes.get().filter(|lanes| !lanes.letters.is_empty()) else {
            return words;
        };
        let names = lanes.letters.iter();
        let mut names: Vec<String> = names.map(|(c, name)| format!("{c} {name}")).collect();
        if lanes.has_counts {
            names.push("2-9 number of collections".to_owned());
        }
        if !words.is_empty() {
            words += "; ";
        }
        words + "collections: " + &names.join(", ")
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "counts and nanoseconds are below 2^52"
    )]
    fn column_words(&self, cx: &Cx<'_>, grid: &Grid, at: usize, is_short: bool) -> String {
        let (from, to) = Self::column(grid, at);
        let digits = if grid.column_ns() < 1_000_000 { 6 } else { 3 };
        let mut words = format!("{:.*} s", digits, cx.seconds(from));
        let Some((counts, promised)) = self.regions(grid, at) else {
            return words;
        };
        let samples: u64 = counts.iter().sum();
        let period = by_region::period_ns(cx.profile);
        let ns = to.since(from).0;
        if ns >= period.saturating_mul(4) {
            let busy = samples as f64 * period as f64 / ns as f64;
            words += &format!("  {busy:.2} {}", unit(cx));
        }
        words += &format!("  {}", some(samples, "sample", "samples"));
        // CPU time has a resolution of several readings per second.
        if let Some(promised) = promised.filter(|_| ns >= 1_000_000_000) {
            words += &format!(" of ~{promised:.0} expected");
        }
        let mut regions: Vec<(u64, Region)> = counts.iter().copied().zip(Region::ALL).collect();
        regions.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        for (count, region) in regions.into_iter().filter(|(count, _)| *count > 0) {
            let share = ratio(count, samples) * 100.0;
            words += &format!(
                "  {} {share:.0}%",
                name(region, cx.profile.is_native(), is_short)
            );
        }
        words
    }

    fn selected_words(&self, cx: &Cx<'_>, grid: &Grid, (from, to): Column) -> String {
        let columns = grid.columns_of(from, to);
        let columns = columns.map_or(0..0, |(first, last)| first..last + 1);
        let counts = columns.filter_map(|column| self.regions(grid, column));
        let samples = counts.map(|(counts, _)| counts.iter().sum::<u64>()).sum();
        let samples = some(samples, "sample", "samples");
        let length = ms(to.since(from).0);
        let (from, to) = (cx.seconds(from), cx.seconds(to));
        format!(
            "selected {from:.3}-{to:.3} s ({length}), {samples}: Enter makes it the window, Esc \
             cancels"
        )
    }

    /// Draws the regions' signs, with names and shares in the available width.
    pub(super) fn draw_legend(
        &self,
        cx: &Cx<'_>,
        frame: &mut Frame<'_>,
        layout: &Layout,
        hidden: usize,
    ) {
        let (theme, area) = (cx.theme, layout.legend);
        let mut sum = ByRegion::default();
        if let Some(activity) = self.activity.get() {
            for column in 0..activity.grid.columns {
                by_region::add(&mut sum, activity.columns.column(column));
            }
        }
        let total = sum.iter().sum();
        let mut note = match hidden {
            0 => String::new(),
            n => format!(" +{n} rows"),
        };
        if cx.profile.time_buckets.dropped() > 0 {
            note += &format!(" from {:.0} s", cx.seconds(cx.kept().0));
        }
        let is_native = cx.profile.is_native();
        let width = |bits: &[Bit]| -> usize { bits.iter().map(|(_, bit)| text::width(bit)).sum() };
        let of_size = |(is_short, has_shares): (bool, bool)| -> Vec<Bit> {
            let regions = Region::ALL.into_iter().zip(sum);
            let regions = regions.filter(|(_, count)| *count > 0);
            let bits = regions.flat_map(|(region, n)| {
                let fill = theme.fill(region, is_native);
                let sign = match (fill, region_letter(region, is_native)) {
                    (fill, letter) if fill == letter => format!(" {letter}"),
                    (fill, letter) => format!(" {fill}{letter}"),
                };
                let share = match has_shares {
                    true => format!(" {:.0}%", ratio(n, total) * 100.0),
                    false => String::new(),
                };
                let words = format!(" {}{share} ", name(region, is_native, is_short));
                [(Role::Region(region), sign), (Role::Text, words)]
            });
            bits.chain([(Role::Warning, note.clone())]).collect()
        };
        let room = usize::from(area.width);
        let sizes = [(false, true), (false, false)].into_iter().map(of_size);
        let fitting = sizes.into_iter().find(|bits| width(bits) <= room);
        let mut bits = fitting.unwrap_or_else(|| of_size((true, false)));
        let (rows, threads) = (usize::from(layout.threads.height), self.threads().len());
        let words = format!(" {rows} of {} threads", count(threads as u64));
        if threads > rows && width(&bits) + words.len() <= room {
            bits.push((Role::Dim, words));
        }
        Pane { theme, area }.line(frame, 0, &bits);
    }
}

/// Name of a region, or an abbreviation.
fn name(region: Region, is_native: bool, is_short: bool) -> &'static str {
    match region {
        _ if !is_short => region_name(region, is_native),
        Region::Vm if is_native => "prog",
        Region::Generated => "gen",
        Region::Interpreter => "int",
        Region::Gc => "coll",
        Region::Compiler => "comp",
        Region::Vm => "VM",
        Region::Library => "lib",
        Region::Kernel => "kern",
        Region::Idle => "idle",
        Region::Unknown => "unk",
    }
}
