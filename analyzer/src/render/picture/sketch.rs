//! A picture while it is drawn: sizes that follow the picture's, and the parts that every picture
//! has: its head, its legend, its axes.

use super::font::{fitted, label, width};
use super::ink::Ink;
use super::scene::{Anchor, Area, Hover, Item, Scene, Size, Text};
use super::subject::Subject;

/// Most letters of a font are about this high, in parts of its size.
const HALF_LETTER: f32 = 0.36;

/// A picture that is drawn.
pub struct Sketch {
    scene: Scene,
    unit: f32,
    /// What is still free.
    pub free: Area,
}

/// How something is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// An area.
    Area,
    /// A line through time.
    Line,
    /// An upright line.
    Upright,
}

/// A line of the legend.
pub struct Key {
    /// Its colour.
    pub ink: Ink,
    /// How it is drawn.
    pub shape: Shape,
    /// What it means.
    pub words: String,
}

impl Key {
    /// An area.
    pub fn area(ink: Ink, words: impl Into<String>) -> Self {
        Self { ink, shape: Shape::Area, words: words.into() }
    }

    /// An upright line.
    pub fn upright(ink: Ink, words: impl Into<String>) -> Self {
        Self { ink, shape: Shape::Upright, words: words.into() }
    }

    /// A line.
    pub fn line(ink: Ink, words: impl Into<String>) -> Self {
        Self { ink, shape: Shape::Line, words: words.into() }
    }
}

impl Sketch {
    /// An empty picture with its head: what it shows, of whom, and whether that is a bound.
    pub fn new(size: Size, title: &str, detail: &str, subject: &Subject) -> Self {
        let unit = (size.width as f32 / 1200.0).min(size.height as f32 / 700.0).clamp(0.75, 4.0);
        let whole = Area { x: 0, y: 0, width: size.width as i32, height: size.height as i32 };
        let scene = Scene { size, title: title.to_owned(), items: Vec::new(), hovers: Vec::new() };
        let mut sketch = Self { scene, unit, free: whole };
        sketch.fill(whole, Ink::Ground, 1.0);
        let margin = sketch.px(18.0);
        sketch.free = Area {
            x: margin,
            y: margin,
            width: whole.width - 2 * margin,
            height: whole.height - 2 * margin,
        };
        sketch.head(title, detail, subject);
        sketch
    }

    /// The picture.
    pub fn finish(self) -> Scene {
        self.scene
    }

    /// A length that follows the size of the picture.
    pub fn px(&self, length: f32) -> i32 {
        (length * self.unit).round() as i32
    }

    /// The size of the usual font.
    pub fn font(&self) -> f32 {
        12.5 * self.unit
    }

    /// The width of words in the usual font.
    pub fn width(&self, words: &str) -> i32 {
        width(words, self.font(), false)
    }

    /// Adds an item.
    pub fn item(&mut self, item: Item) {
        self.scene.items.push(item);
    }

    /// Where something can be pointed at.
    pub fn hover(&mut self, area: Area, hover: Hover) {
        self.scene.hovers.push((area, hover));
    }

    /// A filled rectangle.
    pub fn fill(&mut self, area: Area, ink: Ink, opacity: f64) {
        if area.width > 0 && area.height > 0 {
            self.item(Item::Box(area, ink, opacity));
        }
    }

    /// A line of words in the usual font, on a baseline.
    pub fn words(&mut self, x: i32, baseline: i32, anchor: Anchor, ink: Ink, words: &str) {
        self.write(x, baseline, anchor, ink, words, self.font(), false);
    }

    /// A line of bold words in the usual font, on a baseline.
    pub fn bold(&mut self, x: i32, baseline: i32, anchor: Anchor, ink: Ink, words: &str) {
        self.write(x, baseline, anchor, ink, words, self.font(), true);
    }

    #[expect(clippy::too_many_arguments, reason = "private, behind words and bold")]
    fn write(
        &mut self,
        x: i32,
        baseline: i32,
        anchor: Anchor,
        ink: Ink,
        words: &str,
        size: f32,
        bold: bool,
    ) {
        if !words.is_empty() {
            let words = words.to_owned();
            self.item(Item::Text(Text { x, baseline, size, bold, anchor, ink, words }));
        }
    }

    /// A baseline for words in the usual font whose middle is at `y`.
    pub fn centred(&self, y: i32) -> i32 {
        y + (self.font() * HALF_LETTER).round() as i32
    }

    /// Takes rows of pixels off the top of what is free.
    pub fn take_top(&mut self, height: i32) -> Area {
        let height = height.clamp(0, self.free.height);
        let taken = Area { height, ..self.free };
        self.free.y += height;
        self.free.height -= height;
        taken
    }

    fn head(&mut self, title: &str, detail: &str, subject: &Subject) {
        let row = self.take_top(self.px(22.0));
        let baseline = row.y + self.px(15.0);
        let mut room = row.width;
        if subject.bound {
            let words = &format!("bound: {}", subject.doubt.words());
            self.bold(row.right(), baseline, Anchor::End, Ink::Alarm, words);
            room -= width(words, self.font(), true) + self.px(16.0);
        }
        let sizes = [17.0, 15.0, 13.0].map(|size| size * self.unit);
        let size = sizes.into_iter().find(|&size| width(title, size, true) <= room);
        let size = size.unwrap_or(13.0 * self.unit);
        let title = fitted(title, size, true, room);
        self.write(row.x, baseline, Anchor::Start, Ink::Text, &title, size, true);
        for words in [&label(&subject.process), detail] {
            let row = self.take_top(self.px(18.0));
            let words = fitted(words, self.font(), false, row.width);
            let baseline = row.y + self.px(13.0);
            self.words(row.x, baseline, Anchor::Start, Ink::Quiet, &words);
        }
        self.take_top(self.px(8.0));
    }

    /// A legend in as many rows as it needs.
    pub fn legend(&mut self, keys: &[Key]) {
        if keys.is_empty() {
            return;
        }
        let height = self.px(19.0);
        let mut row = self.take_top(height);
        let mut x = row.x;
        for key in keys {
            if x > row.x && x + self.key_width(key) > row.right() {
                row = self.take_top(height);
                x = row.x;
            }
            x = self.key(x, row, key);
        }
        self.take_top(self.px(9.0));
    }

    fn key_width(&self, key: &Key) -> i32 {
        self.px(17.0) + self.width(&key.words)
    }

    /// A line of a legend in a row; returns where the next may begin.
    pub fn key(&mut self, x: i32, row: Area, key: &Key) -> i32 {
        let (swatch, thin, middle) = (self.px(11.0), self.px(2.0), row.y + row.height / 2);
        let (width, height) = match key.shape {
            Shape::Area => (swatch, swatch),
            Shape::Line => (swatch, thin),
            Shape::Upright => (1, swatch),
        };
        let room = row.right() - x - self.px(17.0);
        let words = fitted(&key.words, self.font(), false, room);
        if words.is_empty() {
            return row.right();
        }
        let (left, top) = (x + (swatch - width) / 2, middle - height / 2);
        self.fill(Area { x: left, y: top, width, height }, key.ink, 1.0);
        let baseline = self.centred(middle);
        self.words(x + self.px(17.0), baseline, Anchor::Start, Ink::Text, &words);
        x + self.px(35.0) + self.width(&words)
    }

    /// A sentence where a figure would be.
    pub fn nothing(&mut self, words: &str) {
        let (x, y) = (self.free.x + self.free.width / 2, self.free.y + self.free.height / 2);
        let words = fitted(words, self.font(), false, self.free.width);
        self.words(x, y, Anchor::Middle, Ink::Quiet, &words);
    }
}
