//! Charts as SVG.

use super::draw::{Anchor, Color, Shape, WIDTH, draw};
use crate::present::document::Chart;
use crate::present::text::harmless;
use inferno::flamegraph::{Options, from_lines};
use svg::Document as Svg;
use svg::node::element::{Element, Polyline, Rectangle, Text, Title};

/// The charts below each other; a flame graph alone.
///
/// # Errors
/// A sentence about a flame graph that cannot be drawn.
pub fn encode(charts: &[&Chart]) -> Result<Vec<u8>, String> {
    if let Some(Chart::Flame {
        title,
        unit,
        collapsed,
    }) = charts.first()
    {
        return flame(title, unit, collapsed);
    }
    let (shapes, height) = draw(charts);
    let ground = Rectangle::new()
        .set("width", "100%")
        .set("height", "100%")
        .set("fill", "#ffffff");
    let mut document = Svg::new()
        .set("viewBox", (0.0, 0.0, WIDTH, height))
        .set("font-family", "sans-serif")
        .set("font-size", 12)
        .add(ground);
    for shape in &shapes {
        document = document.add(element(shape));
    }
    Ok(document.to_string().into_bytes())
}

fn flame(title: &str, unit: &str, collapsed: &[String]) -> Result<Vec<u8>, String> {
    if collapsed.is_empty() {
        return Err("this view shows no stacks".to_owned());
    }
    let mut options = Options::default();
    options.title = harmless(title);
    unit.clone_into(&mut options.count_name);
    let mut bytes = Vec::new();
    let lines = collapsed.iter().map(String::as_str);
    from_lines(&mut options, lines, &mut bytes)
        .map_err(|error| format!("cannot draw the flame graph: {error}"))?;
    Ok(bytes)
}

fn element(shape: &Shape) -> Element {
    match shape {
        Shape::Rectangle { place, color, hint } => {
            let (x, y, width, height) = *place;
            let rectangle = Rectangle::new()
                .set("x", x)
                .set("y", y)
                .set("width", width)
                .set("height", height)
                .set("fill", hex(*color));
            match hint.as_str() {
                "" => rectangle.into(),
                hint => rectangle.add(Title::new(hint)).into(),
            }
        }
        Shape::Text {
            text,
            at,
            anchor,
            color,
        } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            Text::new(text)
                .set("x", at.0)
                .set("y", at.1)
                .set("text-anchor", anchor)
                .set("fill", hex(*color))
                .into()
        }
        Shape::Curve {
            points,
            width,
            color,
        } => {
            let points = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}"));
            let points: Vec<String> = points.collect();
            Polyline::new()
                .set("points", points.join(" "))
                .set("fill", "none")
                .set("stroke", hex(*color))
                .set("stroke-width", *width)
                .into()
        }
    }
}

fn hex([red, green, blue]: Color) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}
