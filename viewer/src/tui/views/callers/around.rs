//! The callers and the callees of a function, side by side.

use super::branches::NOBODY;
use super::words;
use crate::present::numbers::{count, percent, ratio};
use crate::present::text;
use crate::tui::theme::{Role, Theme};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use vmscope_symbolizer::calls::{Around, CallTree, FunctionId};

/// Draws who called a function, itself, and what it called, side by side.
pub fn draw(
    (tree, theme, all): (&CallTree, &Theme, u64),
    function: FunctionId,
    around: Option<&Around>,
    frame: &mut Frame<'_>,
    area: Rect,
) {
    let counts = tree.counts_of(function);
    let third = area.width / 3;
    let pane = |at: u16| Rect {
        x: area.x + at * third,
        width: if at == 2 {
            area.width - 2 * third
        } else {
            third - 1
        },
        ..area
    };
    let name = |id: Option<FunctionId>, columns: usize| {
        let function = id.and_then(|id| tree.function(id));
        function.map_or_else(
            || (' ', Role::Dim, NOBODY.to_owned()),
            |one| {
                (
                    words::letter(one),
                    words::role(one),
                    words::short(one, columns),
                )
            },
        )
    };
    let list = |title: &str, rows: Vec<(Option<FunctionId>, u64)>, area: Rect| {
        let columns = usize::from(area.width);
        let height = usize::from(area.height.saturating_sub(1));
        let title = text::line(title, columns);
        let mut lines = vec![Line::styled(title, theme.style(Role::Title))];
        let left_out = rows.len().saturating_sub(height);
        let shown = if left_out > 0 {
            height.saturating_sub(1)
        } else {
            height
        };
        for &(id, samples) in rows.iter().take(shown) {
            let share = ratio(samples, counts.total);
            let room = columns.saturating_sub(11);
            let (letter, role, name) = name(id, room);
            lines.push(Line::from(vec![
                Span::styled(
                    text::right(&percent(share), 7),
                    theme.style(Role::Heat(share)),
                ),
                Span::styled(format!(" {letter} "), theme.style(role)),
                Span::raw(text::name(&name, room)),
            ]));
        }
        if left_out > 0 {
            let rest = rows.iter().skip(shown).map(|(_, samples)| samples).sum();
            let rest = percent(ratio(rest, counts.total));
            let text = format!("{} {} more", text::right(&rest, 7), rows.len() - shown);
            lines.push(Line::styled(text, theme.style(Role::Dim)));
        }
        (lines, area)
    };
    let mut panes = Vec::new();
    let wait = || vec![Line::styled("...", theme.style(Role::Dim))];
    let (callers, callees) = around.map_or_else(Default::default, |around| {
        let callees = around
            .callees
            .iter()
            .map(|&(id, samples)| (Some(id), samples));
        (around.callers.clone(), callees.collect::<Vec<_>>())
    });
    panes.push(list("callers, of its samples", callers, pane(0)));
    let middle = pane(1);
    let columns = usize::from(middle.width);
    let (letter, role, short) = name(Some(function), columns.saturating_sub(2));
    let share = |samples: u64| percent(ratio(samples, all));
    let mut lines = vec![
        Line::styled(text::line("function", columns), theme.style(Role::Title)),
        Line::from(vec![
            Span::styled(format!("{letter} "), theme.style(role)),
            Span::styled(
                text::line(&short, columns.saturating_sub(2)),
                theme.style(Role::Strong),
            ),
        ]),
        Line::raw(format!(
            "{} total  {}",
            share(counts.total),
            count(counts.total)
        )),
        Line::raw(format!(
            "{} self   {}",
            share(counts.own),
            count(counts.own)
        )),
    ];
    if counts.recursive {
        let text = "calls itself: each stack counts once";
        lines.push(Line::styled(
            text::line(text, columns),
            theme.style(Role::Dim),
        ));
    }
    panes.push((lines, middle));
    panes.push(list("called from it, of its samples", callees, pane(2)));
    for (at, (mut lines, area)) in panes.into_iter().enumerate() {
        if around.is_none() && at != 1 {
            lines.extend(wait());
        }
        for (line, y) in lines.into_iter().zip(area.y..area.bottom()) {
            frame.render_widget(
                line,
                Rect {
                    y,
                    height: 1,
                    ..area
                },
            );
        }
    }
}
