//! Amounts beside each other, as bars.

use super::font::{fitted, label};
use super::ink::Ink;
use super::scene::{Anchor, Area, Hover};
use super::sketch::Sketch;

/// A bar.
pub struct Bar {
    /// What it is.
    pub name: String,
    /// Its pieces, from left to right.
    pub pieces: Vec<(Ink, u64)>,
    /// How much it is, in words.
    pub amount: String,
}

impl Bar {
    /// A bar of one piece.
    pub fn new(name: String, ink: Ink, bytes: u64, amount: String) -> Self {
        Self { name, pieces: vec![(ink, bytes)], amount }
    }

    fn whole(&self) -> u64 {
        self.pieces.iter().fold(0, |sum, &(_, bytes)| sum.saturating_add(bytes))
    }
}

/// Where the names of bars stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// Above each bar: there is room for long ones.
    Above,
    /// Left of the bars: they are short.
    Left,
}

/// A list of bars with its heading, all on one scale. Those for which there is no room are told
/// of in the last row, with what `rest` says of their number and sum.
pub fn draw(
    sketch: &mut Sketch,
    place: Area,
    heading: &str,
    names: Names,
    bars: &[Bar],
    rest: impl Fn(usize, u64) -> String,
) {
    if place.height < sketch.px(50.0) {
        return;
    }
    let heading = fitted(heading, sketch.font(), true, place.width);
    sketch.bold(place.x, place.y + sketch.px(12.0), Anchor::Start, Ink::Text, &heading);
    let area =
        Area { y: place.y + sketch.px(22.0), height: place.height - sketch.px(22.0), ..place };
    if bars.is_empty() {
        let baseline = area.y + sketch.px(12.0);
        sketch.words(area.x, baseline, Anchor::Start, Ink::Quiet, "nothing");
        return;
    }
    let least = sketch.px(if names == Names::Above { 36.0 } else { 23.0 }).max(1);
    // Few bars stand a little further apart.
    let pitch = (area.height / bars.len().max(1) as i32).clamp(least, least * 4 / 3);
    let thicker = pitch - least;
    let room = usize::try_from(area.height / pitch).unwrap_or(0);
    let shown = if bars.len() <= room { bars.len() } else { room.saturating_sub(1) };
    let (shown, hidden) = bars.split_at(shown);
    let most = bars.iter().map(Bar::whole).max().unwrap_or(0).max(1);
    let short = |bar: &Bar| sketch.width(&label(&bar.name));
    let left = match names {
        Names::Above => 0,
        Names::Left => shown.iter().map(short).max().unwrap_or(0).min(area.width * 2 / 5),
    };
    let gap = if left > 0 { sketch.px(8.0) } else { 0 };
    let amounts = shown.iter().map(|bar| sketch.width(&bar.amount)).max().unwrap_or(0);
    let amounts = amounts.min(area.width / 2);
    let length = (area.width - left - gap - amounts - sketch.px(8.0)).max(1);
    let mut rows = Vec::new();
    for (index, bar) in shown.iter().enumerate() {
        let y = area.y + index as i32 * pitch;
        let name = label(&bar.name);
        rows.push((y, pitch, format!("{name}: {}", bar.amount)));
        let row = match names {
            Names::Above => {
                let words = fitted(&name, sketch.font(), false, area.width);
                sketch.words(area.x, y + sketch.px(12.0), Anchor::Start, Ink::Text, &words);
                Area {
                    x: area.x,
                    y: y + sketch.px(17.0),
                    width: length,
                    height: sketch.px(12.0) + thicker / 2,
                }
            }
            Names::Left => {
                let words = fitted(&name, sketch.font(), false, left);
                let (x, height) = (area.x + left, sketch.px(15.0) + thicker / 2);
                let baseline = sketch.centred(y + height / 2);
                sketch.words(x, baseline, Anchor::End, Ink::Text, &words);
                Area { x: x + gap, y, width: length, height }
            }
        };
        let end = pieces(sketch, row, bar, most);
        let baseline = sketch.centred(row.y + row.height / 2);
        let words = fitted(&bar.amount, sketch.font(), false, area.right() - end);
        sketch.words(end + sketch.px(6.0), baseline, Anchor::Start, Ink::Quiet, &words);
    }
    if !hidden.is_empty() {
        let sum = hidden.iter().fold(0, |sum: u64, bar| sum.saturating_add(bar.whole()));
        let baseline = area.y + shown.len() as i32 * pitch + sketch.px(12.0);
        let words = fitted(&rest(hidden.len(), sum), sketch.font(), false, area.width);
        sketch.words(area.x, baseline, Anchor::Start, Ink::Quiet, &words);
    }
    sketch.hover(area, Hover::Rows(rows));
}

/// Draws the pieces of a bar and returns where it ends.
fn pieces(sketch: &mut Sketch, row: Area, bar: &Bar, most: u64) -> i32 {
    let mut sum: u64 = 0;
    let mut x = row.x;
    for &(ink, bytes) in &bar.pieces {
        sum = sum.saturating_add(bytes);
        let wide = u128::from(sum.min(most)) * row.width.unsigned_abs() as u128 / u128::from(most);
        // Anything at all is seen.
        let least = i32::from(bytes > 0);
        let end = (row.x + wide as i32).max(x + least);
        sketch.fill(Area { x, width: end - x, ..row }, ink, 0.9);
        x = end;
    }
    x
}
