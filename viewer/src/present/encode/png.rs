//! Charts as PNG, in the size of the SVG's view box.

use super::draw::{Anchor, Color, Shape, WIDTH, draw};
use crate::present::document::Chart;
use embedded_graphics::mono_font::MonoTextStyle;
use embedded_graphics::mono_font::iso_8859_1::FONT_7X13;
use embedded_graphics::pixelcolor::Rgb888;
use embedded_graphics::prelude::*;
use embedded_graphics::primitives::{Polyline, PrimitiveStyle, Rectangle};
use embedded_graphics::text::{Alignment, Text};
use png::{BitDepth, ColorType, Encoder, EncodingError, Filter};
use std::convert::Infallible;

/// Greatest height in pixels.
const MAX_HEIGHT: f64 = 20_000.0;

/// The charts below each other.
///
/// # Errors
/// A sentence, for flame graphs and for more charts than fit.
pub fn encode(charts: &[&Chart]) -> Result<Vec<u8>, String> {
    if let Some(Chart::Flame { .. }) = charts.first() {
        return Err("flame graphs are not drawn as PNG: export SVG".to_owned());
    }
    let (shapes, height) = draw(charts);
    if height > MAX_HEIGHT {
        return Err("there are too many charts for a PNG: export SVG".to_owned());
    }
    let mut picture = Picture::new(whole(WIDTH), whole(height));
    for shape in &shapes {
        let Ok(()) = picture.put(shape);
    }
    let written = picture.png();
    written.map_err(|error| format!("cannot write PNG: {error}"))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "pixels of a picture; others saturate, and are not drawn"
)]
fn whole(pixels: f64) -> u32 {
    pixels.round() as u32
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "pixels of a picture; others saturate, and are not drawn"
)]
fn point(x: f64, y: f64) -> Point {
    Point::new(x.round() as i32, y.round() as i32)
}

fn rgb([red, green, blue]: Color) -> Rgb888 {
    Rgb888::new(red, green, blue)
}

struct Picture {
    width: u32,
    height: u32,
    /// Red, green, blue of each pixel, from the left upper corner on.
    pixels: Vec<u8>,
}

impl Picture {
    /// A white picture.
    fn new(width: u32, height: u32) -> Self {
        Picture {
            width,
            height,
            pixels: vec![255; width as usize * height as usize * 3],
        }
    }

    /// The picture as PNG, with 8 bits per colour.
    fn png(&self) -> Result<Vec<u8>, EncodingError> {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes, self.width, self.height);
        encoder.set_color(ColorType::Rgb);
        encoder.set_depth(BitDepth::Eight);
        encoder.set_filter(Filter::NoFilter);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.pixels)?;
        writer.finish()?;
        Ok(bytes)
    }

    fn put(&mut self, shape: &Shape) -> Result<(), Infallible> {
        match shape {
            Shape::Rectangle { place, color, .. } => {
                let (x, y, width, height) = *place;
                // Edges are rounded: cells touch, and none vanishes.
                let (from, to) = (point(x, y), point(x + width, y + height));
                let size = Size::new(
                    (to.x.saturating_sub(from.x)).max(1).unsigned_abs(),
                    (to.y.saturating_sub(from.y)).max(1).unsigned_abs(),
                );
                Rectangle::new(from, size)
                    .into_styled(PrimitiveStyle::with_fill(rgb(*color)))
                    .draw(self)
            }
            Shape::Text {
                text,
                at,
                anchor,
                color,
            } => {
                let alignment = match anchor {
                    Anchor::Start => Alignment::Left,
                    Anchor::Middle => Alignment::Center,
                    Anchor::End => Alignment::Right,
                };
                let style = MonoTextStyle::new(&FONT_7X13, rgb(*color));
                Text::with_alignment(text, point(at.0, at.1), style, alignment).draw(self)?;
                Ok(())
            }
            Shape::Curve { points, color, .. } => {
                let points: Vec<Point> = points.iter().map(|(x, y)| point(*x, *y)).collect();
                Polyline::new(&points)
                    .into_styled(PrimitiveStyle::with_stroke(rgb(*color), 1))
                    .draw(self)
            }
        }
    }
}

impl OriginDimensions for Picture {
    fn size(&self) -> Size {
        Size::new(self.width, self.height)
    }
}

impl DrawTarget for Picture {
    type Color = Rgb888;
    type Error = Infallible;

    fn draw_iter<I>(&mut self, pixels: I) -> Result<(), Infallible>
    where
        I: IntoIterator<Item = Pixel<Rgb888>>,
    {
        for Pixel(Point { x, y }, color) in pixels {
            let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else {
                continue;
            };
            let at = (y as usize * self.width as usize + x as usize) * 3;
            if x < self.width
                && let Some(pixel) = self.pixels.get_mut(at..at + 3)
            {
                pixel.copy_from_slice(&[color.r(), color.g(), color.b()]);
            }
        }
        Ok(())
    }
}
