//! Documents as one page for browsers, which needs nothing else.

use crate::present::document::{Chart, Document, Part, Table, Value};
use crate::present::encode::{Format, cell, encode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write;
use vmscope_symbolizer::Stop;

/// Light and dark, by the browser's wish.
const STYLE: &str = "\
:root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; }
body { max-width: 1240px; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0 2rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.15rem 0.6rem; text-align: left; white-space: nowrap; }
th { border-bottom: 1px solid; font-weight: 600; white-space: normal; vertical-align: bottom; }
tr:nth-child(even) td { background: color-mix(in srgb, currentColor 6%, transparent); }
.r { text-align: right; }
.wide { overflow-x: auto; }
.chart { background: #fff; }
.flame { width: 100%; height: 600px; border: 0; background: #fff; }
svg { max-width: 100%; height: auto; }
";

/// The page.
pub fn page(document: &Document) -> String {
    let title = escape(&document.title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <style>\n{STYLE}</style></head>\n<body><h1>{title}</h1>\n"
    );
    for part in &document.parts {
        match part {
            Part::Text(lines) => {
                for line in lines {
                    let _ = writeln!(out, "<p>{}</p>", escape(line));
                }
            }
            Part::Table(table) => put_table(&mut out, table),
            Part::Chart(chart) => {
                let alone = Document {
                    title: String::new(),
                    parts: vec![part.clone()],
                };
                if let Some(Ok(svg)) = encode(&alone, Format::Svg, &Stop::new()) {
                    put_chart(&mut out, chart, &svg);
                }
            }
        }
    }
    out.push_str("</body></html>\n");
    out
}

/// A flame graph has a script, which believes that it is alone.
fn put_chart(out: &mut String, chart: &Chart, svg: &[u8]) {
    let _ = match chart {
        Chart::Flame { .. } => {
            let encoded = STANDARD.encode(svg);
            writeln!(
                out,
                "<iframe class=\"flame\" sandbox=\"allow-scripts\" \
                 src=\"data:image/svg+xml;base64,{encoded}\"></iframe>"
            )
        }
        _ => {
            let svg = String::from_utf8_lossy(svg);
            writeln!(out, "<div class=\"chart\">{svg}</div>")
        }
    };
}

fn put_table(out: &mut String, table: &Table) {
    let class = |right: bool| if right { " class=\"r\"" } else { "" };
    let _ = write!(
        out,
        "<h2>{}</h2>\n<div class=\"wide\"><table><tr>",
        escape(&table.title)
    );
    for column in &table.columns {
        let _ = write!(
            out,
            "<th{}>{}</th>",
            class(column.right),
            escape(&column.name)
        );
    }
    out.push_str("</tr>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for (column, value) in table.columns.iter().zip(row) {
            let text = match value {
                Value::Text(text) => escape(text),
                value => escape(&cell(value)),
            };
            let _ = write!(out, "<td{}>{text}</td>", class(column.right));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n");
}

fn escape(text: &str) -> String {
    let text = crate::present::text::harmless(text);
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
