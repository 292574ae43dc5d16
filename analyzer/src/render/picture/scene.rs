//! What a picture consists of, in whole pixels: drawn first, written as SVG or PNG afterwards.

use super::ink::Ink;
use crate::units::Nanos;

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// From left to right.
    pub width: u32,
    /// From top to bottom.
    pub height: u32,
}

impl Default for Size {
    fn default() -> Self {
        Self { width: 1200, height: 700 }
    }
}

impl Size {
    /// No picture is narrower or lower than this, nor more than the second.
    pub const LIMITS: ((u32, u32), (u32, u32)) = ((320, 240), (8192, 8192));
}

impl std::str::FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str| part.parse::<u32>().ok();
        let parts = text.split_once(['x', 'X']);
        let read = parts.and_then(|(width, height)| Some((number(width)?, number(height)?)));
        let Some((width, height)) = read else {
            return Err("a size is WIDTHxHEIGHT in pixels, as 1200x700".to_owned());
        };
        let ((least_width, least_height), (most_width, most_height)) = Self::LIMITS;
        let fits = (least_width..=most_width).contains(&width)
            && (least_height..=most_height).contains(&height);
        match fits {
            true => Ok(Self { width, height }),
            false => Err(format!(
                "between {least_width}x{least_height} and {most_width}x{most_height} pixels"
            )),
        }
    }
}

/// A rectangle, in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Area {
    /// Its left edge.
    pub x: i32,
    /// Its upper edge.
    pub y: i32,
    /// Its width.
    pub width: i32,
    /// Its height.
    pub height: i32,
}

impl Area {
    /// Its right edge, outside of it.
    #[must_use]
    pub const fn right(self) -> i32 {
        self.x + self.width
    }

    /// Its lower edge, outside of it.
    #[must_use]
    pub const fn bottom(self) -> i32 {
        self.y + self.height
    }
}

/// Where a text stands, seen from its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Right of it.
    Start,
    /// Around it.
    Middle,
    /// Left of it.
    End,
}

/// A line of words.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// The point's column.
    pub x: i32,
    /// The line that the letters stand on.
    pub baseline: i32,
    /// Height of the font, in pixels.
    pub size: f32,
    /// Whether it is bold.
    pub bold: bool,
    /// Where it stands.
    pub anchor: Anchor,
    /// What it is written in.
    pub ink: Ink,
    /// The words, made safe.
    pub words: String,
}

/// Something to draw.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A filled rectangle; opacity from 0 to 1.
    Box(Area, Ink, f64),
    /// Between two edges, a pixel wide each from `x` on.
    Columns {
        /// The first column.
        x: i32,
        /// Upper and lower edge of each.
        edges: Vec<(i32, i32)>,
        /// What it is filled with.
        ink: Ink,
        /// From 0 to 1.
        opacity: f64,
    },
    /// A line through columns, a pixel wide each from `x` on; it is broken at `None`.
    Steps {
        /// The first column.
        x: i32,
        /// Its heights.
        heights: Vec<Option<i32>>,
        /// What it is drawn in.
        ink: Ink,
        /// Its width.
        width: u32,
    },
    /// A filled circle.
    Dot {
        /// The centre.
        centre: (i32, i32),
        /// Its radius.
        radius: u32,
        /// What it is filled with.
        ink: Ink,
    },
    /// Words.
    Text(Text),
}

/// What a page tells beside the pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hover {
    /// Values of a moment.
    Time {
        /// What the left edge is.
        from: Nanos,
        /// What the right edge is.
        to: Nanos,
        /// Which series, as indexes into those of the timeline.
        series: Vec<usize>,
    },
    /// Rows, each with its upper edge, height and words.
    Rows(Vec<(i32, i32, String)>),
    /// Columns, each with its left edge, width and words.
    Columns(Vec<(i32, i32, String)>),
}

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Its size.
    pub size: Size,
    /// What it shows, in words.
    pub title: String,
    /// What is drawn, the lowest first.
    pub items: Vec<Item>,
    /// Where something can be pointed at.
    pub hovers: Vec<(Area, Hover)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_two_numbers_within_limits() {
        assert_eq!("800x600".parse(), Ok(Size { width: 800, height: 600 }));
        for wrong in ["", "x", "800", "800x", "0x0", "99999x99999", "-5x600", "800x600x2", "1e3x9"]
        {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }
}
