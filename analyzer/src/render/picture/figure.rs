//! The axes of figures over time, and points marked in them.

use super::axis::{AmountScale, TimeScale, Unit};
use super::font::{fitted, width};
use super::ink::Ink;
use super::scene::{Anchor, Area, Item};
use super::sketch::Sketch;
use crate::units::Nanos;

/// What is inside the axes.
pub struct Figure {
    /// Where.
    pub area: Area,
    /// Its height.
    pub bytes: AmountScale,
    /// Its width.
    pub time: TimeScale,
}

impl Sketch {
    /// Draws the axes of a figure over time into `outer`, and returns what is inside.
    /// Between heading and figure some rows may stay free.
    pub fn axes(
        &mut self,
        outer: Area,
        (heading, between): (&str, i32),
        (from, to): (Nanos, Nanos),
        (unit, most): (Unit, u64),
    ) -> Figure {
        let (above, below) = (self.px(26.0) + between, self.px(28.0));
        let rows = u64::try_from(outer.height / self.px(52.0).max(1)).unwrap_or(1).clamp(2, 8);
        let inside = |left: i32| Area {
            x: outer.x + left,
            y: outer.y + above,
            width: (outer.width - left).max(1),
            height: (outer.height - above - below).max(1),
        };
        let ticks = AmountScale::new(inside(0), most).ticks(unit, rows);
        let left = ticks.iter().map(|(_, words)| self.width(words)).max().unwrap_or(0);
        // Figures above each other begin at the same place.
        let usual = if outer.width > self.px(480.0) { self.width("1024 MiB") } else { 0 };
        let area = inside(left.max(usual) + self.px(9.0));
        let bytes = AmountScale::new(area, most);
        let heading = fitted(heading, self.font(), true, outer.width);
        self.bold(outer.x, outer.y + self.px(12.0), Anchor::Start, Ink::Text, &heading);
        for (value, words) in ticks {
            let y = bytes.y(value);
            self.fill(Area { y: y - 1, height: 1, ..area }, Ink::Grid, 1.0);
            let baseline = self.centred(y);
            self.words(area.x - self.px(7.0), baseline, Anchor::End, Ink::Quiet, &words);
        }
        let time = TimeScale::new(area, from, to);
        self.time_axis(area, &time);
        Figure { area, bytes, time }
    }

    fn time_axis(&mut self, area: Area, time: &TimeScale) {
        let most = i64::from(area.width / self.px(120.0).max(1)).clamp(2, 12);
        let baseline = area.bottom() + self.px(16.0);
        let mut end = i32::MIN;
        for (at, words) in time.ticks(most) {
            let (x, wide) = (time.x(at), self.width(&words));
            let mark = Area { x, y: area.bottom(), width: 1, height: self.px(4.0) };
            self.fill(mark, Ink::Axis, 1.0);
            // Within the picture, and apart from the one before.
            let left = (x - wide / 2).min(area.right() - wide).max(0);
            if left > end {
                self.words(left, baseline, Anchor::Start, Ink::Quiet, &words);
                end = left + wide + self.px(8.0);
            }
        }
        self.fill(Area { y: area.bottom() - 1, height: 1, ..area }, Ink::Axis, 1.0);
    }

    /// Marks a value with a dot and words beside it, within the figure.
    pub fn point(&mut self, figure: &Figure, x: i32, y: i32, ink: Ink, words: &str) {
        let (gap, area) = (self.px(8.0), figure.area);
        let words = fitted(words, self.font(), true, area.width - 2 * gap);
        let wide = width(&words, self.font(), true);
        let left = (x - wide / 2).clamp(area.x + 2, (area.right() - wide - 2).max(area.x + 2));
        let baseline = (y - gap).max(area.y + self.px(4.0));
        let pad = self.px(3.0);
        let behind = Area {
            x: left - pad,
            y: baseline - self.px(11.0),
            width: wide + 2 * pad,
            height: self.px(14.0),
        };
        self.fill(behind, Ink::Ground, 0.8);
        self.bold(left, baseline, Anchor::Start, ink, &words);
        let radius = self.px(4.0).unsigned_abs();
        self.item(Item::Dot { centre: (x, y), radius: radius + 1, ink: Ink::Ground });
        self.item(Item::Dot { centre: (x, y), radius, ink });
    }
}
