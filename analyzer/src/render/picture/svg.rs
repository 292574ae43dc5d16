//! A picture as SVG, by plotters' SVG backend.

use plotters::prelude::{
    DrawingBackend, FontStyle, IntoFont, RGBAColor, SVGBackend, ShapeStyle, TextStyle,
};
use plotters::style::text_anchor;

use super::font::FAMILY;
use super::ink::{Ink, Theme};
use super::scene::{Anchor, Item, Scene, Text};

/// What colours stand for in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// Those of a theme.
    Of(Theme),
    /// Variables of the page around it, named by ink.
    Variables,
}

/// The picture as a document of its own, or to stand within a page.
#[must_use]
pub fn write(scene: &Scene, colours: Colours) -> String {
    let theme = match colours {
        Colours::Of(theme) => theme,
        Colours::Variables => Theme::Light,
    };
    let mut text = String::new();
    {
        let mut backend = SVGBackend::with_string(&mut text, (scene.size.width, scene.size.height));
        for item in &scene.items {
            draw(&mut backend, item, theme);
        }
        let _ = backend.present();
    }
    let safe = escaped(&scene.title);
    match colours {
        Colours::Of(_) => headed(&text, "role=\"img\"", &format!("<title>{safe}</title>\n")),
        // A page has words of its own beside the pointer, and parts that take the focus.
        Colours::Variables => {
            with_variables(headed(&text, &format!("role=\"group\" aria-label=\"{safe}\""), ""))
        }
    }
}

fn colour(ink: Ink, theme: Theme, opacity: f64) -> RGBAColor {
    let (red, green, blue) = ink.rgb(theme);
    RGBAColor(red, green, blue, opacity)
}

/// The backend writes to memory: it cannot fail.
fn draw(backend: &mut SVGBackend<'_>, item: &Item, theme: Theme) {
    match item {
        Item::Box(area, ink, opacity) => {
            let (from, to) = ((area.x, area.y), (area.right(), area.bottom()));
            let _ = backend.draw_rect(from, to, &colour(*ink, theme, *opacity), true);
        }
        Item::Columns { x, edges, ink, opacity } => {
            for outline in outlines(*x, edges) {
                let _ = backend.fill_polygon(outline, &colour(*ink, theme, *opacity));
            }
        }
        Item::Steps { x, heights, ink, width } => {
            let color = colour(*ink, theme, 1.0);
            let style = ShapeStyle { color, filled: false, stroke_width: *width };
            for path in paths(*x, heights) {
                let _ = backend.draw_path(path, &style);
            }
        }
        Item::Dot { centre, radius, ink } => {
            let _ = backend.draw_circle(*centre, *radius, &colour(*ink, theme, 1.0), true);
        }
        Item::Text(text) => words(backend, text, theme),
    }
}

fn words(backend: &mut SVGBackend<'_>, text: &Text, theme: Theme) {
    let anchor = match text.anchor {
        Anchor::Start => text_anchor::HPos::Left,
        Anchor::Middle => text_anchor::HPos::Center,
        Anchor::End => text_anchor::HPos::Right,
    };
    // The backend divides a font's size by 1.24, and puts the baseline 0.76 of it below a top.
    let size = (f64::from(text.size) * 100.0).round() / 100.0;
    let weight = if text.bold { FontStyle::Bold } else { FontStyle::Normal };
    let colour = colour(text.ink, theme, 1.0);
    let style = TextStyle::from((FAMILY, size * 1.24, weight).into_font())
        .color(&colour)
        .pos(text_anchor::Pos::new(anchor, text_anchor::VPos::Top));
    let top = text.baseline - (size * 0.76).round() as i32;
    let _ = backend.draw_text(&text.words, &style, (text.x, top));
}

/// The outlines of runs of columns that are not empty, with a point only where an edge moves.
fn outlines(x: i32, edges: &[(i32, i32)]) -> Vec<Vec<(i32, i32)>> {
    let mut found = Vec::new();
    let mut at = 0;
    for run in edges.chunk_by(|one, other| (one.0 < one.1) == (other.0 < other.1)) {
        let from = x + at as i32;
        at += run.len();
        if run.iter().all(|(upper, lower)| upper >= lower) {
            continue;
        }
        let upper = steps(from, run.iter().map(|edge| edge.0));
        let mut lower = steps(from, run.iter().map(|edge| edge.1));
        lower.reverse();
        found.push(upper.into_iter().chain(lower).collect());
    }
    found
}

/// Lines of steps, one for each run without a gap.
fn paths(x: i32, heights: &[Option<i32>]) -> Vec<Vec<(i32, i32)>> {
    let mut found = Vec::new();
    let mut at = 0;
    for run in heights.chunk_by(|one, other| one.is_some() == other.is_some()) {
        let from = x + at as i32;
        at += run.len();
        let path = steps(from, run.iter().copied().flatten());
        if !path.is_empty() {
            found.push(path);
        }
    }
    found
}

fn steps(x: i32, heights: impl Iterator<Item = i32>) -> Vec<(i32, i32)> {
    let mut path: Vec<(i32, i32)> = Vec::new();
    let mut end = x;
    for (column, height) in heights.enumerate() {
        let left = x + column as i32;
        if path.last().is_none_or(|&(_, last)| last != height) {
            if let Some(&(_, last)) = path.last() {
                path.push((left, last));
            }
            path.push((left, height));
        }
        end = left + 1;
    }
    if let Some(&(_, last)) = path.last() {
        path.push((end, last));
    }
    path
}

/// Text between tags and in attributes.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            _ => safe.push(letter),
        }
    }
    safe
}

/// Adds attributes to the first element, and what stands first in it.
fn headed(text: &str, attributes: &str, first: &str) -> String {
    let Some((head, body)) = text.split_once('\n') else { return text.to_owned() };
    let head = head.strip_suffix('>').unwrap_or(head);
    format!("{head} {attributes}>\n{first}{body}")
}

/// Puts variables where colours stand. Text cannot hold such a place: its quotes are escaped.
fn with_variables(mut text: String) -> String {
    for ink in Ink::ALL {
        let colour = format!("\"#{:06X}\"", ink.colour(Theme::Light));
        text = text.replace(&colour, &format!("\"var(--{})\"", ink.name()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outline_has_points_only_where_an_edge_moves() {
        let edges = [(5, 9), (5, 9), (3, 9), (9, 9), (8, 9)];
        let found = outlines(100, &edges);
        assert_eq!(found.len(), 2);
        let first = [(100, 5), (102, 5), (102, 3), (103, 3), (103, 9), (100, 9)];
        assert_eq!(found.first().map(Vec::as_slice), Some(first.as_slice()));
    }

    #[test]
    fn a_line_is_broken_where_there_is_no_value() {
        assert_eq!(
            paths(0, &[Some(4), None, Some(4), Some(2)]),
            vec![vec![(0, 4), (1, 4)], vec![(2, 4), (3, 4), (3, 2), (4, 2)],]
        );
    }
}
