//! Pictures. Each is drawn once into a [`Scene`] of whole pixels, which is then written as SVG or
//! as PNG: both show the same, on every machine, because the font comes along.
//!
//! ```text
//! report → subject → timeline, peak, fragmentation, copies → scene → svg, png
//!                    └ with sketch, figure, axis, bars, columns, font, ink ┘
//! ```

mod axis;
mod bars;
mod columns;
mod copies;
mod figure;
pub mod font;
mod fragmentation;
mod ink;
mod peak;
pub mod png;
mod scene;
mod sketch;
mod subject;
pub mod svg;
mod timeline;

pub use copies::copy_words;
pub use ink::{Ink, Theme};
pub use peak::{site_words, size_words};
pub use scene::{Anchor, Area, Hover, Item, Scene, Size, Text};
pub use subject::{Facts, Subject};

/// What there are pictures of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Picture {
    /// GPU memory over time.
    Timeline,
    /// What the peak was made of.
    Peak,
    /// Memory kept from use, over time.
    Fragmentation,
    /// What was copied.
    Copies,
}

impl Picture {
    /// Every picture.
    pub const ALL: &'static [Self] =
        &[Self::Timeline, Self::Peak, Self::Fragmentation, Self::Copies];

    /// Its name in file names.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timeline => "timeline",
            Self::Peak => "peak",
            Self::Fragmentation => "fragmentation",
            Self::Copies => "copies",
        }
    }

    /// Draws it.
    #[must_use]
    pub fn draw(self, facts: &Facts<'_>, size: Size) -> Scene {
        match self {
            Self::Timeline => timeline::scene(facts, size),
            Self::Peak => peak::scene(facts, size),
            Self::Fragmentation => fragmentation::scene(facts, size),
            Self::Copies => copies::scene(facts, size),
        }
    }
}
