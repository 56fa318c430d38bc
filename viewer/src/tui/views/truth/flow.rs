//! Accuracy as lines of a given width; a line may belong to a selectable item.

use crate::present::names::{region_letter, region_name};
use crate::present::numbers::{count, percent, ratio};
use crate::present::text;
use crate::present::text::wrap;
use crate::queries::accuracy::{ABOUT, Accuracy};
use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::pane::Bit;
use vmscope_symbolizer::summary::Quality;

/// Selectable item, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// Limit.
    Line(usize),
    /// Row of a thread.
    Thread(usize),
    /// Row of a part.
    Exact(usize),
    /// Row of an entry.
    Nameless(usize),
}

/// Line with its item.
pub type Flowing = (Option<Item>, Vec<Bit>);

/// Width of samples and share before a text.
const NUMBERS: usize = 19;

/// Text of an item, for searches.
pub fn text_of(all: &Accuracy, item: Item) -> String {
    let text = match item {
        Item::Line(index) => {
            (all.lines.get(index)).map(|line| format!("{} {}", line.text, line.remedy))
        }
        Item::Thread(index) => all.threads.get(index).map(|row| row.name.clone()),
        Item::Exact(index) => (all.exact.get(index))
            .map(|row| format!("{} {}", region_name(row.region, all.is_native), row.part)),
        Item::Nameless(index) => {
            (all.nameless.get(index)).map(|row| format!("{} {}", row.name, row.place))
        }
    };
    text.unwrap_or_default()
}

/// Limits by kind.
pub fn limits(all: &Accuracy, theme: &Theme, columns: usize) -> Vec<Flowing> {
    let mut flow: Vec<Flowing> = Vec::new();
    if all.lines.is_empty() {
        let text = " No known limits.".to_owned();
        flow.push((None, vec![(Role::Strong, text)]));
    }
    let room = columns.saturating_sub(NUMBERS + 1).max(20);
    for (about, title) in ABOUT {
        let mut lines = (0..)
            .zip(&all.lines)
            .filter(|(_, line)| line.about == about);
        let Some(first) = lines.next() else {
            continue;
        };
        flow.push((None, vec![(Role::Title, format!(" {title}"))]));
        for (index, line) in std::iter::once(first).chain(lines) {
            let item = Some(Item::Line(index));
            let samples = line.samples.map_or_else(String::new, count);
            let share = all.share(line).map_or_else(String::new, percent);
            let mut numbers = format!("{}{} ", text::right(&samples, 10), text::right(&share, 8));
            // The text repeats the share column.
            let said = format!("({share}) ");
            let text = line.text.strip_prefix(&said).unwrap_or(&line.text);
            let sentence = wrap(text, room, 0);
            for piece in sentence.lines() {
                let role = if line.samples.is_some() {
                    Role::Warning
                } else {
                    Role::Text
                };
                let bits = vec![(role, numbers), (Role::Text, piece.to_owned())];
                flow.push((item, bits));
                numbers = " ".repeat(NUMBERS);
            }
            if !line.remedy.is_empty() {
                let remedy = format!("{} {}", theme.sign("↳ helps:", "> helps:"), line.remedy);
                for piece in wrap(&remedy, room, 2).lines() {
                    let blank = (Role::Text, " ".repeat(NUMBERS));
                    flow.push((item, vec![blank, (Role::Dim, piece.to_owned())]));
                }
            }
        }
        flow.push((None, Vec::new()));
    }
    flow
}

/// Tables of exactness, delivery and unnamed samples.
pub fn tables(all: &Accuracy, theme: &Theme, columns: usize) -> Vec<Flowing> {
    let mut flow: Vec<Flowing> = Vec::new();
    exactness(all, theme, columns, &mut flow);
    threads(all, theme, columns, &mut flow);
    nameless(all, columns, &mut flow);
    flow
}

fn head(flow: &mut Vec<Flowing>, title: &str, remark: &str, columns: String) {
    let bits = vec![
        (Role::Title, format!(" {title}")),
        (Role::Dim, format!("  {remark}")),
    ];
    flow.push((None, bits));
    flow.push((None, vec![(Role::Dim, columns)]));
}

/// Quality in column order.
pub fn worths(quality: &Quality) -> [u64; 5] {
    [
        quality.exact,
        quality.approximate,
        quality.method_only,
        quality.unresolved,
        quality.doubtful,
    ]
}

fn exactness(all: &Accuracy, theme: &Theme, columns: usize, flow: &mut Vec<Flowing>) {
    const CELL: usize = 9;
    let name = columns.saturating_sub(6 * CELL + 4).clamp(8, 40);
    let bar = columns.saturating_sub(name + 6 * CELL + 6).min(20);
    let mut heading = format!("   {}", text::name("region, part", name));
    for column in [
        "samples", "exact", "approx.", "method", "unknown", "doubtful",
    ] {
        heading.push_str(&text::right(column, CELL));
    }
    head(flow, "Resolution", "exactness by region and part", heading);
    for (index, row) in all.exact.iter().enumerate() {
        let total = row.quality.total();
        let region = region_name(row.region, all.is_native);
        let label = match row.part.as_str() {
            "" => region.to_owned(),
            part => format!("{region}: {part}"),
        };
        let mut bits = vec![
            (
                Role::Region(row.region),
                format!(" {} ", region_letter(row.region, all.is_native)),
            ),
            (Role::Text, text::name(&label, name)),
            (Role::Strong, text::right(&count(total), CELL)),
        ];
        for (at, samples) in worths(&row.quality).into_iter().enumerate() {
            let share = match samples {
                0 => "-".to_owned(),
                _ => format!("{:.1}%", ratio(samples, total) * 100.0),
            };
            let role = match (samples, at) {
                (0, _) => Role::Dim,
                (_, 3 | 4) => Role::Warning,
                _ => Role::Text,
            };
            bits.push((role, text::right(&share, CELL)));
        }
        if bar >= 8 {
            let share = ratio(row.quality.exact, total);
            bits.push((Role::Dim, format!("  {}", theme.bar(share, bar))));
        }
        flow.push((Some(Item::Exact(index)), bits));
    }
    flow.push((None, Vec::new()));
}

/// Rounded count.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are far below 2^52 and not negative"
)]
pub fn whole(number: f64) -> String {
    count(number.round() as u64)
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn threads(all: &Accuracy, theme: &Theme, columns: usize, flow: &mut Vec<Flowing>) {
    let name = columns.saturating_sub(11 + 11 + 10 + 2).clamp(8, 40);
    let bar = columns.saturating_sub(name + 32 + 4).min(20);
    let heading = format!(
        " {}{}{}{}",
        text::name("thread", name),
        text::right("received", 11),
        text::right("expected", 11),
        text::right("share", 10)
    );
    let remark = match all.promised {
        Some(promised) => format!(
            "{} of {} expected samples received",
            count(all.total),
            whole(promised)
        ),
        None => "number of expected samples unknown with these filters".to_owned(),
    };
    head(flow, "Delivery", &remark, heading);
    for (index, row) in all.threads.iter().enumerate() {
        let arrived = row.promised.filter(|promised| *promised >= 0.5);
        let arrived = arrived.map(|promised| row.samples as f64 / promised);
        let promised = row.promised.map_or_else(|| "?".to_owned(), whole);
        let words = arrived.map_or_else(String::new, |share| format!("{:.1}%", share * 100.0));
        // Small counts vary by chance.
        let is_low = arrived.is_some_and(|share| share < 0.95) && row.promised > Some(100.0);
        let role = if is_low { Role::Warning } else { Role::Text };
        let mut bits = vec![
            (Role::Text, format!(" {}", text::name(&row.name, name))),
            (Role::Text, text::right(&count(row.samples), 11)),
            (Role::Text, text::right(&promised, 11)),
            (role, text::right(&words, 10)),
        ];
        if bar >= 8 {
            bits.push((
                Role::Dim,
                format!("  {}", theme.bar(arrived.unwrap_or(0.0), bar)),
            ));
        }
        flow.push((Some(Item::Thread(index)), bits));
    }
    flow.push((None, Vec::new()));
}

fn nameless(all: &Accuracy, columns: usize, flow: &mut Vec<Flowing>) {
    if all.nameless.is_empty() {
        let text = " No unknown or doubtful samples.".to_owned();
        return flow.push((None, vec![(Role::Dim, text)]));
    }
    let name = columns.saturating_sub(11 + 9 + 17 + 2).clamp(12, 70);
    let heading = format!(
        " {}{}{}  why",
        text::name("entry", name),
        text::right("samples", 11),
        text::right("share", 9)
    );
    head(flow, "Unknown or doubtful", "by entry", heading);
    for (index, row) in all.nameless.iter().enumerate() {
        let label = if row.place.is_empty() || row.name.contains(&row.place) {
            row.name.clone()
        } else {
            format!("{} [{}]", row.name, row.place)
        };
        let bits = vec![
            (Role::Text, format!(" {}", text::name(&label, name))),
            (Role::Warning, text::right(&count(row.samples), 11)),
            (
                Role::Text,
                text::right(&percent(ratio(row.samples, all.total)), 9),
            ),
            (Role::Dim, format!("  {}", row.why.word())),
        ];
        flow.push((Some(Item::Nameless(index)), bits));
    }
    if all.left_out.0 > 0 {
        let (entries, samples) = all.left_out;
        let text = format!(
            " ({} more entries with {} samples)",
            count(entries),
            count(samples)
        );
        flow.push((None, vec![(Role::Dim, text)]));
    }
}
