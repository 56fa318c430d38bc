//! A page of text, in the form of VMProfiler's reports (the paper's Figure 7).

use super::options::{MIN_SHARE, ReportOptions};
use crate::present::entries::namesakes;
use crate::present::names::region_name;
use crate::present::numbers::{count, percent, ratio, some};
use crate::present::text::{fit, wrap};
use ratatui::crossterm::terminal::window_size;
use rustc_hash::FxHashSet;
use vmscope_records::TimeNs;
use vmscope_symbolizer::{EntryId, Filter, Profile, Summary};

/// Names are indistinguishable on narrower pages.
const MIN_WIDTH: usize = 60;

/// Columns beside the name: both percentages, samples, cumulative.
const FIXED_COLUMNS: usize = 2 * 10 + 11 + 12 + 5;

/// Page width in columns: requested width, else terminal width, else 100.
pub(crate) fn width(asked: Option<u16>) -> usize {
    // `crossterm::terminal::size` would run `tput` without a terminal.
    let terminal = || window_size().ok().map(|size| size.columns);
    let terminal = || terminal().filter(|columns| *columns > 0);
    usize::from(asked.or_else(terminal).unwrap_or(100)).max(MIN_WIDTH)
}

/// What a filter leaves: regions, threads and window; `None` for everything.
pub(crate) fn narrowed_to(profile: &Profile, filter: &Filter, summary: &Summary) -> Option<String> {
    let session = profile.trace.session.as_ref()?;
    if filter.is_everything() {
        return None;
    }
    let regions = filter.only.regions.iter();
    let regions: Vec<&str> = regions
        .map(|region| region_name(*region, profile.is_native()))
        .collect();
    let regions = match regions.is_empty() {
        true => String::new(),
        false => format!("region {}, ", regions.join(" or ")),
    };
    let threads = filter.threads.as_ref().map_or_else(String::new, |chosen| {
        format!(
            "{} of {} threads, ",
            chosen.len(),
            profile.trace.threads.len()
        )
    });
    let second = |time: TimeNs| time.since(session.time).as_secs_f64();
    let (from, to) = summary.window;
    let (from, to) = (second(from), second(to));
    let empty = if from < to {
        ""
    } else {
        " (outside the recording)"
    };
    Some(format!(
        "filter: {regions}{threads}window {from:.3} to {to:.3} s{empty}"
    ))
}

/// What all sections need. Sections append to `out`, a string.
pub(super) struct Page<'a> {
    pub profile: &'a Profile,
    pub summary: &'a Summary,
    pub filter: &'a Filter,
    pub options: &'a ReportOptions,
    pub width: usize,
    /// Entries distinguishable only by the whole paths of their files.
    pub namesakes: FxHashSet<EntryId>,
}

impl<'a> Page<'a> {
    pub fn new(
        profile: &'a Profile,
        summary: &'a Summary,
        filter: &'a Filter,
        options: &'a ReportOptions,
    ) -> Self {
        Page {
            profile,
            summary,
            filter,
            options,
            width: width(options.width),
            namesakes: namesakes(profile, summary),
        }
    }

    /// Duration of the window.
    pub fn seconds(&self) -> f64 {
        let (from, to) = self.summary.window;
        to.since(from).as_secs_f64()
    }

    /// Samples per second of the window.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub fn frequency(&self) -> f64 {
        match self.seconds() {
            seconds if seconds > 0.0 => self.summary.total as f64 / seconds,
            _ => 0.0,
        }
    }

    /// Appends a paragraph, wrapped, later lines indented.
    pub fn paragraph(&self, out: &mut String, text: &str) {
        out.push_str(&wrap(text, self.width, 2));
        out.push('\n');
    }

    /// Appends a section's heading, behind an empty line.
    pub fn heading(&self, out: &mut String, name: &str) {
        let name = fit(name, self.width.saturating_sub(4));
        out.push_str(&format!("\n**{}**\n", name.trim_end()));
    }

    /// Appends a line of a section, wrapped behind its indentation.
    pub fn item(&self, out: &mut String, indent: usize, text: &str) {
        let margin = " ".repeat(indent);
        for line in wrap(text, self.width.saturating_sub(indent), 2).lines() {
            out.push_str(&format!("{margin}{line}\n"));
        }
    }

    /// Columns of a name in a table.
    pub fn name_columns(&self) -> usize {
        self.width.saturating_sub(FIXED_COLUMNS)
    }

    /// Begins a table of shares of `whole`, titled `% of {of} (% of total)`.
    pub fn table(&self, out: &mut String, of: &str, whole: u64) -> Table<'_> {
        // Width of both percentages and the name.
        let left = self.name_columns() + 23;
        let (title, samples) = (format!("% of {of} (% of total)"), "(samples)");
        let cumulative = "(cumulative)";
        out.push_str(&format!(
            "\n{title:<left$}{samples:>11}  {cumulative:>12}\n"
        ));
        self.rows(whole, false)
    }

    /// Rows inside a table's row: shares of `whole`, without shares of the total.
    pub fn inner_rows(&self, whole: u64) -> Table<'_> {
        self.rows(whole, true)
    }

    fn rows(&self, whole: u64, is_inner: bool) -> Table<'_> {
        Table {
            page: self,
            whole,
            is_inner,
            cumulative: 0,
        }
    }

    /// Splits off rows that belong to ...others...: those below the minimum share of `whole`.
    /// Without a requested minimum, single samples too: groups of few samples would have a line per
    /// sample. One small row alone stays.
    pub fn split_small<T>(
        &self,
        rows: Vec<T>,
        whole: u64,
        samples: impl Fn(&T) -> u64,
    ) -> (Vec<T>, Others) {
        let asked = self.options.min_share;
        let is_small = |row: &T| {
            let samples = samples(row);
            let share = ratio(samples, whole) * 100.0;
            let of_all = self.summary.share(samples) * 100.0;
            share < asked.unwrap_or(MIN_SHARE)
                || (asked.is_none() && samples == 1 && of_all < MIN_SHARE)
        };
        let small = rows.iter().filter(|row| is_small(row)).count();
        if small == 0 || (asked.is_none() && small == 1) {
            return (rows, Others::default());
        }
        let (small, large): (Vec<T>, Vec<T>) = rows.into_iter().partition(is_small);
        let others = Others::of(small.iter().map(samples));
        (large, others)
    }
}

/// Rows without lines of their own.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Others {
    pub number: u64,
    pub samples: u64,
}

impl Others {
    pub fn of(samples: impl ExactSizeIterator<Item = u64>) -> Self {
        Others {
            number: samples.len() as u64,
            samples: samples.sum(),
        }
    }

    /// Name of their common line: `...others... (3 entries)`.
    pub fn name(self, [one, many]: [&str; 2]) -> String {
        format!("...others... ({})", some(self.number, one, many))
    }
}

/// Rows `% of whole (% of total) name (samples) (cumulative)`.
pub(super) struct Table<'p> {
    page: &'p Page<'p>,
    whole: u64,
    is_inner: bool,
    cumulative: u64,
}

impl Table<'_> {
    pub fn row(&mut self, out: &mut String, name: &str, samples: u64) {
        self.cumulative += samples;
        let share = percent(ratio(samples, self.whole));
        // Inner rows: the first column serves as indentation.
        let (first, second, indent) = match self.is_inner {
            false => {
                let total = percent(self.page.summary.share(samples));
                (share, format!("({total})"), "")
            }
            true => (String::new(), share, "  "),
        };
        let text = format!(
            "{first:>8}  {second:>10}  {} {:>11}  {:>12}",
            fit(&format!("{indent}{name}"), self.page.name_columns()),
            format!("({})", count(samples)),
            format!("({})", percent(ratio(self.cumulative, self.whole))),
        );
        out.push_str(text.trim_end());
        out.push('\n');
    }

    /// Appends the common line of small rows, if any.
    pub fn others(&mut self, out: &mut String, others: Others, words: [&str; 2]) {
        if others.number > 0 {
            self.row(out, &others.name(words), others.samples);
        }
    }
}
