//! The timeline on the screen.

use super::grid::{Grid, step};
use super::lanes::{Glyph, Lane};
use super::layout::Layout;
use super::{Column, Span as Shows, Timeline};
use crate::report::text::thread_name;
use crate::report::words::{count, ratio, some};
use crate::tui::theme::{Colors, Role, region_letter, region_name};
use crate::tui::views::Cx;
use crate::tui::views::by_region::{self, ByRegion};
use crate::tui::views::empty::{no_samples, say};
use crate::tui::widgets::text;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use vmscope_records::{SampleClock, TimeNs};
use vmscope_symbolizer::Region;

/// The least columns between two numbers of the axis.
const TICK: u64 = 12;

/// What the height of the activity counts.
pub(super) fn unit(cx: &Cx<'_>) -> &'static str {
    let session = cx.profile.trace.session.as_ref();
    match session.map(|session| session.clock) {
        Some(SampleClock::Wall) => "threads",
        _ => "CPUs",
    }
}

/// What stands for full height: so many samples in a column, and how that is called.
struct Scale {
    samples: f64,
    top: String,
}

/// A round number that is not much less than `most`.
fn round_up(most: f64) -> f64 {
    let mut power = 1.0;
    loop {
        for times in [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0] {
            let round: f64 = power * times;
            // What is above by a tenth is chance: samples come at random.
            if round.fract() == 0.0 && most <= round * 1.1 {
                return round;
            }
        }
        power *= 10.0;
        if power > 1e18 {
            return power;
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts and nanoseconds are below 2^52"
)]
fn scale(cx: &Cx<'_>, grid: &Grid, most: u64) -> Scale {
    let period = by_region::period_ns(cx.profile);
    let per_cpu = grid.column_ns() as f64 / period as f64;
    if per_cpu < 4.0 {
        // Too short to tell how busy it was.
        let top = round_up(most as f64);
        return Scale {
            samples: top,
            top: format!("{top} samples"),
        };
    }
    let top = round_up(most as f64 / per_cpu);
    let unit = if top > 1.0 {
        unit(cx)
    } else {
        unit(cx).trim_end_matches('s')
    };
    Scale {
        samples: top * per_cpu,
        top: format!("{top} {unit}"),
    }
}

fn put(buffer: &mut Buffer, x: u16, y: u16, c: char, style: Style) {
    if let Some(cell) = buffer.cell_mut((x, y)) {
        cell.set_char(c).set_style(style);
    }
}

/// The screen's column of a column of the charts.
fn x_of(layout: &Layout, column: usize) -> u16 {
    let column = u16::try_from(column).unwrap_or(u16::MAX);
    layout.left.saturating_add(column)
}

impl Timeline {
    pub(super) fn draw_all(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let layout = self.layout(area);
        let grid = self.grid(cx, area);
        if grid.columns == 0 {
            return;
        }
        self.draw_axis(cx, frame, &layout, &grid);
        self.draw_activity(cx, frame, &layout, &grid);
        self.draw_threads(cx, frame, &layout, &grid);
        let hidden = self.draw_lanes(cx, frame, &layout, &grid);
        self.draw_cursor(cx, frame, &layout, &grid);
        self.draw_words(cx, frame, &layout, &grid);
        self.draw_legend(cx, frame, &layout, hidden);
    }

    fn name(&self, frame: &mut Frame<'_>, layout: &Layout, y: u16, line: Line<'_>) {
        let width = layout.left.saturating_sub(layout.axis.x + 1);
        let area = Rect::new(layout.axis.x, y, width, 1);
        frame.render_widget(line, area.intersection(frame.area()));
    }

    fn draw_axis(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, layout: &Layout, grid: &Grid) {
        if layout.axis.height < 2 {
            return;
        }
        let theme = cx.theme;
        let dim = theme.style(Role::Dim);
        let title = Line::styled("seconds", theme.style(Role::Title));
        self.name(frame, layout, layout.axis.y, title);
        let (ns, digits) = step(grid.column_ns().saturating_mul(TICK));
        let words = match grid.column_ns() {
            ns @ 0..1_000 => format!("{ns} ns/col"),
            ns @ 1_000..1_000_000 => format!("{} us/col", ns / 1000),
            _ => format!("{}/col", super::lanes::ms(grid.column_ns())),
        };
        self.name(
            frame,
            layout,
            layout.axis.y + 1,
            Line::styled(text::line(&words, usize::from(layout.left) - 1), dim),
        );
        let window = cx.lens.window();
        let window = window.and_then(|(from, to)| grid.columns_of(from, to));
        let selection = self.selection(grid);
        let selection = selection.and_then(|(from, to)| grid.columns_of(from, to));
        let inside = |span: Option<(usize, usize)>, column: usize| {
            span.is_some_and(|(first, last)| (first..=last).contains(&column))
        };
        let ruler = layout.axis.y + 1;
        let sign = |frame: &mut Frame<'_>, column, (unicode, ascii), role| {
            let sign = if theme.unicode { unicode } else { ascii };
            let (x, style) = (x_of(layout, column), theme.style(role));
            put(frame.buffer_mut(), x, ruler, sign, style);
        };
        let sums_until = Self::sums_until(cx);
        for column in 0..grid.columns {
            let is_sum = sums_until.is_some_and(|until| grid.edge(column) < until);
            if inside(selection, column) {
                sign(frame, column, ('≈', '~'), Role::Match);
            } else if inside(window, column) {
                sign(frame, column, ('═', '='), Role::Chip);
            } else if is_sum {
                sign(frame, column, ('╌', '.'), Role::Warning);
            } else {
                sign(frame, column, ('─', '-'), Role::Dim);
            }
        }
        let offset = grid.from.since(cx.begin).0;
        let mut tick = offset.div_ceil(ns).saturating_mul(ns);
        let mut free = 0;
        for _ in 0..grid.columns {
            let time = TimeNs(cx.begin.0.saturating_add(tick));
            if !grid.has(time) {
                break;
            }
            let column = grid.column_of(time);
            if !inside(selection, column) && !inside(window, column) {
                sign(frame, column, ('┴', '+'), Role::Dim);
            }
            #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a recording")]
            let label = format!("{:.*}", digits, tick as f64 / 1e9);
            if column >= free && column + label.len() <= grid.columns {
                let style = theme.style(Role::Text);
                for (at, c) in label.chars().enumerate() {
                    put(
                        frame.buffer_mut(),
                        x_of(layout, column + at),
                        layout.axis.y,
                        c,
                        style,
                    );
                }
                free = column + label.len() + 1;
            }
            tick = tick.saturating_add(ns);
        }
        if let Some((first, last)) = window {
            sign(frame, first, ('╞', '['), Role::Chip);
            sign(frame, last, ('╡', ']'), Role::Chip);
        }
        sign(frame, self.at(grid), ('▼', 'v'), Role::Key);
    }

    /// Why there is nothing in what is shown, and the key that shows more.
    fn nothing(&self, cx: &Cx<'_>, grid: &Grid) -> String {
        let threads = self.listed.get().map_or(&[][..], |listed| &listed.threads);
        if threads.is_empty() || self.span == Shows::Whole {
            return no_samples(cx);
        }
        let (from, to) = (cx.seconds(grid.from), cx.seconds(grid.to));
        let key = match self.span {
            Shows::Window => "m shows the whole time, x removes the window",
            _ => "- shows more of it",
        };
        format!("No samples from {from:.3} to {to:.3} s: {key}.")
    }

    /// Before which time only sums over time are known; `None` that all samples are.
    fn sums_until(cx: &Cx<'_>) -> Option<TimeNs> {
        let first = cx.profile.trace.samples.times.first().copied();
        (cx.profile.slices.forgotten() > 0).then(|| first.unwrap_or(cx.end))
    }

    /// A column's samples by region; `None` where they are not known yet.
    fn regions(&self, grid: &Grid, column: usize) -> Option<(&[u64], Option<f64>)> {
        let activity = self.activity.get()?;
        let column = grid.column_in(&activity.grid, column)?;
        let promised = activity.promised.as_ref();
        let promised = promised.and_then(|all| all.get(column).copied());
        Some((activity.columns.column(column), promised))
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rows of a terminal, counts below 2^52"
    )]
    fn draw_activity(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, layout: &Layout, grid: &Grid) {
        let Some(activity) = self.activity.get() else {
            return;
        };
        let theme = cx.theme;
        let area = layout.activity;
        let old = activity.grid;
        let all = (0..old.columns).map(|at| activity.columns.column(at).iter().sum());
        let most: u64 = all.max().unwrap_or(0);
        if most == 0 {
            let at = Rect {
                x: layout.left,
                width: area.right().saturating_sub(layout.left),
                ..area
            };
            return say(&self.nothing(cx, grid), cx, frame, at);
        }
        let scale = scale(cx, &old, most);
        let dim = theme.style(Role::Dim);
        let title = theme.style(Role::Title);
        self.name(
            frame,
            layout,
            area.y,
            Line::styled(scale.top, title).right_aligned(),
        );
        if area.height > 2 {
            let words = Line::styled("activity", dim);
            self.name(frame, layout, area.y + 1, words);
            let zero = Line::styled("0", dim).right_aligned();
            self.name(frame, layout, area.bottom().saturating_sub(1), zero);
        }
        let window = cx.lens.window();
        let window = window.and_then(|(from, to)| grid.columns_of(from, to));
        for column in 0..grid.columns {
            let Some((counts, _)) = self.regions(grid, column) else {
                continue;
            };
            let total: u64 = counts.iter().sum();
            let height = total as f64 / scale.samples * f64::from(area.height);
            let height = height.min(f64::from(area.height));
            let full = (height + 1e-9).floor() as usize;
            let rest = height - full as f64;
            let outside = window.is_some_and(|(first, last)| !(first..=last).contains(&column));
            let style = |region: Region| {
                theme.style(if outside {
                    Role::Dim
                } else {
                    Role::Region(region)
                })
            };
            let cells = full + usize::from(rest > 0.0);
            let x = x_of(layout, column);
            let stack = by_region::stacked(counts, cells);
            for (at, region) in stack.into_iter().enumerate() {
                let Some(y) = u16::try_from(at)
                    .ok()
                    .and_then(|at| area.bottom().checked_sub(at + 1))
                else {
                    break;
                };
                // Without colours the sign has to say what it is.
                let is_part = at >= full && theme.colors != Colors::None && rest < 0.95;
                if is_part {
                    put(frame.buffer_mut(), x, y, theme.column(rest), style(region));
                } else if at < full || rest >= 0.5 || full == 0 {
                    put(frame.buffer_mut(), x, y, theme.fill(region), style(region));
                }
            }
        }
    }

    fn draw_threads(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, layout: &Layout, grid: &Grid) {
        let theme = cx.theme;
        let period = by_region::period_ns(cx.profile);
        let visible = self.visible(layout);
        let total = self.listed.get().map_or(0, |listed| {
            let included = listed.threads.iter().take(listed.included);
            included.map(|(_, samples)| samples).sum()
        });
        let width = usize::from(layout.left.saturating_sub(layout.axis.x + 1));
        for ((thread, samples, included), y) in visible.into_iter().zip(layout.threads.y..) {
            let Some(one) = cx.profile.trace.threads.get(thread as usize) else {
                continue;
            };
            let is_chosen = self.chosen == Some(thread);
            let base = if is_chosen {
                theme.style(Role::Selected)
            } else {
                theme.style(if included { Role::Text } else { Role::Dim })
            };
            let sign = match (is_chosen, included) {
                (true, _) => ">",
                (false, true) => " ",
                (false, false) => "-",
            };
            let share = if width >= 18 && included {
                format!(" {:3.0}%", ratio(samples, total) * 100.0)
            } else {
                String::new()
            };
            let room = width.saturating_sub(1 + share.len());
            let name = text::name(&thread_name(&one.thread), room);
            let words = format!("{sign}{name}{share}");
            self.name(frame, layout, y, Line::styled(words, base));
            let ended = one.end.as_ref().filter(|end| !end.alive);
            let ended = ended.map(|end| end.time);
            for column in (0..grid.columns).filter(|_| included) {
                let counts = self
                    .rows
                    .get()
                    .map_or(&[][..], |rows| rows.at(grid, thread, column));
                let samples: u64 = counts.iter().sum();
                let is_there = one.thread.time < grid.edge(column + 1)
                    && ended.is_none_or(|ended| ended >= grid.edge(column));
                let (c, role) = match by_region::dominant(counts) {
                    None if is_there => (if theme.unicode { '·' } else { '.' }, Role::Dim),
                    None => (' ', Role::Dim),
                    Some(region) => {
                        let share = by_region::activity(samples, period, grid.column_ns());
                        let letter = region_letter(region);
                        let letter = if share < 0.5 {
                            letter.to_ascii_lowercase()
                        } else {
                            letter
                        };
                        let c = if self.heights {
                            theme.column(share)
                        } else {
                            letter
                        };
                        (c, Role::Region(region))
                    }
                };
                let x = x_of(layout, column);
                put(frame.buffer_mut(), x, y, c, theme.style(role));
            }
        }
    }

    /// Returns how many there is no room for.
    fn draw_lanes(
        &self,
        cx: &Cx<'_>,
        frame: &mut Frame<'_>,
        layout: &Layout,
        grid: &Grid,
    ) -> usize {
        let Some(lanes) = self.lanes.get() else {
            return 0;
        };
        let room = usize::from(layout.lanes.height);
        let mut ranks: Vec<(u8, usize)> =
            lanes.lanes.iter().map(|lane| lane.rank).zip(0..).collect();
        ranks.sort_unstable();
        let mut kept: Vec<usize> = ranks.iter().take(room).map(|(_, at)| *at).collect();
        kept.sort_unstable();
        let kept = kept.into_iter().filter_map(|at| lanes.lanes.get(at));
        let width = usize::from(layout.left.saturating_sub(layout.axis.x + 1));
        for (lane, y) in kept.zip(layout.lanes.y..) {
            let style = cx.theme.style(lane.role);
            let label = text::name(&lane.label, width);
            self.name(frame, layout, y, Line::styled(label, style));
            for column in 0..grid.columns {
                let c = glyph(cx, lane, grid.column_in(&lanes.grid, column));
                if let Some(c) = c {
                    put(frame.buffer_mut(), x_of(layout, column), y, c, style);
                }
            }
        }
        lanes.lanes.len().saturating_sub(room)
    }

    /// Marks the cursor's column.
    fn draw_cursor(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, layout: &Layout, grid: &Grid) {
        if self.cursor.is_none_or(|cursor| !grid.has(cursor)) {
            return;
        }
        let x = x_of(layout, self.at(grid));
        let style = cx.theme.style(Role::Selected);
        let bottom = layout.lanes.bottom().max(layout.threads.bottom());
        for y in layout.activity.y..bottom {
            if let Some(cell) = frame.buffer_mut().cell_mut((x, y)) {
                cell.set_style(style);
            }
        }
    }

    /// What is at the cursor, or selected, in words.
    fn draw_words(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, layout: &Layout, grid: &Grid) {
        let width = usize::from(layout.cursor.width);
        let line = |at: u16| Rect {
            y: layout.cursor.y + at,
            height: layout.cursor.height.min(1),
            ..layout.cursor
        };
        let at = self.at(grid);
        let (role, words) = match self.selection(grid) {
            Some(selected) => (Role::Match, self.selected_words(cx, grid, selected)),
            None => (Role::Text, self.column_words(cx, grid, at)),
        };
        let words = text::line(&format!(" {words}"), width);
        let first = Line::styled(words, cx.theme.style(role));
        frame.render_widget(first, line(0).intersection(frame.area()));
        if layout.cursor.height < 2 {
            return;
        }
        let lanes = self.lanes.get();
        let notes = lanes.and_then(|lanes| {
            let column = grid.column_in(&lanes.grid, at)?;
            lanes.notes.get(column)
        });
        let notes = notes.map_or_else(String::new, |notes| notes.join("; "));
        let words = text::line(&format!(" {notes}"), width);
        let second = Line::styled(words, cx.theme.style(Role::Strong));
        frame.render_widget(second, line(1).intersection(frame.area()));
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "counts and nanoseconds are below 2^52"
    )]
    fn column_words(&self, cx: &Cx<'_>, grid: &Grid, at: usize) -> String {
        let (from, to): Column = Self::column(grid, at);
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
        let sums_until = Self::sums_until(cx).filter(|until| from < *until);
        let about = if sums_until.is_some() { "~" } else { "" };
        words += &format!("  {about}{}", some(samples, "sample", "samples"));
        // CPU time is read some times a second: of less than a second little is known.
        if let Some(promised) = promised.filter(|_| ns >= 1_000_000_000) {
            words += &format!(" of ~{promised:.0} promised");
        }
        let mut regions: Vec<(u64, Region)> = counts.iter().copied().zip(Region::ALL).collect();
        regions.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        for (count, region) in regions.into_iter().filter(|(count, _)| *count > 0) {
            let share = ratio(count, samples) * 100.0;
            words += &format!("  {} {share:.0}%", region_name(region));
        }
        if let Some(until) = sums_until {
            let until = cx.seconds(until);
            words += &format!("  (before {until:.3} s only sums over time are known)");
        }
        words
    }

    fn selected_words(&self, cx: &Cx<'_>, grid: &Grid, (from, to): Column) -> String {
        let columns = grid.columns_of(from, to);
        let mut sum = ByRegion::default();
        for column in columns.map_or(0..0, |(first, last)| first..last + 1) {
            if let Some((counts, _)) = self.regions(grid, column) {
                by_region::add(&mut sum, counts);
            }
        }
        let samples = some(sum.iter().sum(), "sample", "samples");
        let length = super::lanes::ms(to.since(from).0);
        let (from, to) = (cx.seconds(from), cx.seconds(to));
        format!(
            "selected {from:.3}-{to:.3} s ({length}), {samples}: Enter takes it as the window, Esc gives up"
        )
    }

    fn draw_legend(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, layout: &Layout, hidden: usize) {
        let theme = cx.theme;
        let mut sum = ByRegion::default();
        if let Some(activity) = self.activity.get() {
            for column in 0..activity.grid.columns {
                by_region::add(&mut sum, activity.columns.column(column));
            }
        }
        let total = sum.iter().sum();
        let width = usize::from(layout.legend.width);
        let mut note = match hidden {
            0 => String::new(),
            n => format!(" +{n} rows"),
        };
        if Self::sums_until(cx).is_some() {
            note += &format!(" {} sums", theme.sign("╌", "."));
        }
        let sizes = [(12, true), (12, false), (4, false)];
        let of_size = |(letters, shares): (usize, bool)| -> Vec<Span<'static>> {
            let regions = Region::ALL
                .into_iter()
                .zip(sum)
                .filter(|(_, count)| *count > 0);
            let mut spans = Vec::new();
            for (region, n) in regions {
                let (fill, letter) = (theme.fill(region), region_letter(region));
                let sign = if fill == letter {
                    format!(" {letter}")
                } else {
                    format!(" {fill}{letter}")
                };
                spans.push(Span::styled(sign, theme.style(Role::Region(region))));
                let name: String = short(region, letters).to_owned();
                let share = match shares {
                    true => format!(" {:.0}%", ratio(n, total) * 100.0),
                    false => String::new(),
                };
                spans.push(Span::raw(format!(" {name}{share} ")));
            }
            spans
        };
        let needed = |spans: &[Span<'_>]| -> usize { spans.iter().map(Span::width).sum() };
        let all = sizes.into_iter().map(of_size);
        let mut last = Vec::new();
        for spans in all {
            let fits = needed(&spans) + text::width(&note) <= width;
            last = spans;
            if fits {
                break;
            }
        }
        let left = width.saturating_sub(needed(&last) + text::width(&note));
        last.push(Span::styled(note, theme.style(Role::Warning)));
        let threads = self.listed.get().map_or(0, |listed| listed.threads.len());
        let rows = usize::from(layout.threads.height);
        if threads > rows {
            let words = format!(" {rows} of {} threads", count(threads as u64));
            if words.len() <= left {
                last.push(Span::styled(words, theme.style(Role::Dim)));
            }
        }
        frame.render_widget(Line::from(last), layout.legend.intersection(frame.area()));
    }
}

/// A region's name, in few letters where there is little room.
fn short(region: Region, letters: usize) -> &'static str {
    if letters > 4 {
        return region_name(region);
    }
    match region {
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

fn glyph(cx: &Cx<'_>, lane: &Lane, column: Option<usize>) -> Option<char> {
    match *lane.cells.get(column?)? {
        Glyph::None => None,
        Glyph::Char(c) if c.is_ascii() || cx.theme.unicode => Some(c),
        Glyph::Char(_) => Some('?'),
        Glyph::Sign(unicode, ascii) => Some(if cx.theme.unicode { unicode } else { ascii }),
        Glyph::Height(share) => Some(cx.theme.column(share)),
    }
}
