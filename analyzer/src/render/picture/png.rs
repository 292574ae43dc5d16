//! A picture as PNG: shapes by plotters' bitmap backend, words by the font that comes along.

use plotters::prelude::{BitMapBackend, Color, DrawingBackend, RGBAColor};

use super::font;
use super::ink::{Ink, Theme};
use super::scene::{Anchor, Area, Item, Scene, Text};
use crate::Error;

/// Bytes of a pixel.
const PIXEL: usize = 3;

/// The picture's file.
///
/// # Errors
/// When it cannot be encoded.
pub fn write(scene: &Scene, theme: Theme) -> Result<Vec<u8>, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Said(format!("cannot draw: {error}"));
    let (width, height) = (scene.size.width, scene.size.height);
    let mut pixels = vec![0; width as usize * height as usize * PIXEL];
    {
        let mut backend = BitMapBackend::with_buffer(&mut pixels, (width, height));
        for item in &scene.items {
            draw(&mut backend, item, theme).map_err(|error| failed(&error))?;
        }
    }
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Balanced);
    let mut writer = encoder.write_header().map_err(|error| failed(&error))?;
    writer.write_image_data(&pixels).map_err(|error| failed(&error))?;
    writer.finish().map_err(|error| failed(&error))?;
    Ok(file)
}

fn colour(ink: Ink, theme: Theme, opacity: f64) -> RGBAColor {
    let (red, green, blue) = ink.rgb(theme);
    RGBAColor(red, green, blue, opacity)
}

/// What the backend said.
type Drawn = Result<(), String>;

fn draw<B: DrawingBackend>(backend: &mut B, item: &Item, theme: Theme) -> Drawn {
    match item {
        Item::Box(area, ink, opacity) => fill(backend, *area, colour(*ink, theme, *opacity)),
        Item::Columns { x, edges, ink, opacity } => {
            let colour = colour(*ink, theme, *opacity);
            let mut at = *x;
            for run in edges.chunk_by(|one, other| one == other) {
                let width = run.len() as i32;
                if let Some(&(upper, lower)) = run.first().filter(|edge| edge.0 < edge.1) {
                    let area = Area { x: at, y: upper, width, height: lower - upper };
                    fill(backend, area, colour)?;
                }
                at += width;
            }
            Ok(())
        }
        Item::Steps { x, heights, ink, width } => {
            steps(backend, *x, heights, colour(*ink, theme, 1.0), *width)
        }
        Item::Dot { centre, radius, ink } => {
            let circle = backend.draw_circle(*centre, *radius, &colour(*ink, theme, 1.0), true);
            circle.map_err(|error| error.to_string())
        }
        Item::Text(text) => words(backend, text, theme),
    }
}

/// The backend's filled rectangles do not include their last row and column.
fn fill<B: DrawingBackend>(backend: &mut B, area: Area, colour: RGBAColor) -> Drawn {
    if area.width <= 0 || area.height <= 0 {
        return Ok(());
    }
    let (from, to) = ((area.x, area.y), (area.right(), area.bottom()));
    backend.draw_rect(from, to, &colour, true).map_err(|error| error.to_string())
}

/// A line of steps consists of upright and level strokes only.
fn steps<B: DrawingBackend>(
    backend: &mut B,
    x: i32,
    heights: &[Option<i32>],
    colour: RGBAColor,
    width: u32,
) -> Drawn {
    let thick = i32::try_from(width).unwrap_or(1).max(1);
    let half = thick / 2;
    let (mut at, mut last) = (x, None);
    for run in heights.chunk_by(|one, other| one == other) {
        let length = run.len() as i32;
        let height = run.first().copied().flatten();
        if let Some(height) = height {
            let level = Area { x: at, y: height - half, width: length, height: thick };
            fill(backend, level, colour)?;
            if let Some(last) = last {
                let (upper, lower) = (height.min(last), height.max(last));
                let upright = Area {
                    x: at - half,
                    y: upper - half,
                    width: thick,
                    height: lower - upper + thick,
                };
                fill(backend, upright, colour)?;
            }
        }
        last = height;
        at += length;
    }
    Ok(())
}

fn words<B: DrawingBackend>(backend: &mut B, text: &Text, theme: Theme) -> Drawn {
    let wide = font::width(&text.words, text.size, text.bold);
    let x = match text.anchor {
        Anchor::Start => text.x,
        Anchor::Middle => text.x - wide / 2,
        Anchor::End => text.x - wide,
    };
    let (width, height) = backend.get_size();
    let within = |at: i32, limit: u32| u32::try_from(at).is_ok_and(|at| at < limit);
    let mut drawn = Ok(());
    font::draw(&text.words, (x, text.baseline), text.size, text.bold, |x, y, covered| {
        if drawn.is_ok() && covered > 0.0 && within(x, width) && within(y, height) {
            let covered = f64::from(covered.min(1.0));
            let pixel =
                backend.draw_pixel((x, y), colour(text.ink, theme, covered).to_backend_color());
            drawn = pixel.map_err(|error| error.to_string());
        }
    });
    drawn
}
