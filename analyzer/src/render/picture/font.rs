//! The font of every picture. It comes along, so that a picture is the same on every machine.

use std::sync::OnceLock;

use ab_glyph::{Font, FontRef, PxScale, ScaleFont, point};

use crate::render::clean;

/// What an SVG asks for; the first is what pictures are measured by.
pub const FAMILY: &str = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif";

static REGULAR: &[u8] = include_bytes!("../../../assets/DejaVuSans.ttf");
static BOLD: &[u8] = include_bytes!("../../../assets/DejaVuSans-Bold.ttf");

fn face(bold: bool) -> Option<&'static FontRef<'static>> {
    static FACES: [OnceLock<Option<FontRef<'static>>>; 2] = [OnceLock::new(), OnceLock::new()];
    let [regular, heavy] = &FACES;
    let (slot, bytes) = if bold { (heavy, BOLD) } else { (regular, REGULAR) };
    slot.get_or_init(|| FontRef::try_from_slice(bytes).ok()).as_ref()
}

/// A font's size counts the em; the library's counts from the highest to the lowest letter.
fn scale(face: &FontRef<'_>, size: f32) -> PxScale {
    let em = face.units_per_em().unwrap_or(1000.0).max(1.0);
    PxScale::from(size * face.height_unscaled() / em)
}

/// The width of a line of words, in pixels.
#[must_use]
pub fn width(words: &str, size: f32, bold: bool) -> i32 {
    let Some(face) = face(bold) else { return 0 };
    let face = face.as_scaled(scale(face, size));
    let letters = words.chars().map(|letter| face.h_advance(face.glyph_id(letter)));
    letters.sum::<f32>().ceil() as i32
}

/// Calls `draw` for every pixel of a line of words that begins at `x` and stands on `baseline`,
/// with how much of it is covered, from 0 to 1.
pub fn draw(
    words: &str,
    (x, baseline): (i32, i32),
    size: f32,
    bold: bool,
    mut draw: impl FnMut(i32, i32, f32),
) {
    let Some(face) = face(bold) else { return };
    let scale = scale(face, size);
    let scaled = face.as_scaled(scale);
    let mut at = x as f32;
    for letter in words.chars() {
        let id = scaled.glyph_id(letter);
        let glyph = id.with_scale_and_position(scale, point(at, baseline as f32));
        if let Some(outline) = face.outline_glyph(glyph) {
            let bounds = outline.px_bounds();
            let (left, top) = (bounds.min.x as i32, bounds.min.y as i32);
            outline.draw(|x, y, covered| draw(left + x as i32, top + y as i32, covered));
        }
        at += scaled.h_advance(id);
    }
}

/// Letters of a text of unknown length that anybody could want to read.
const LETTERS: usize = 160;

/// The text without what could harm: control characters, those that turn the direction of
/// writing, and what XML cannot hold are escaped; the middle of a long text is left out.
#[must_use]
pub fn label(text: &str) -> String {
    let harmful = |letter: char| {
        matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
    };
    let cut = middle(text, LETTERS);
    let mut safe = String::with_capacity(cut.len());
    for letter in clean(&cut).chars() {
        match harmful(letter) {
            true => safe.extend(letter.escape_default()),
            false => safe.push(letter),
        }
    }
    safe
}

/// At most `most` letters: the middle is left out.
#[must_use]
pub fn middle(text: &str, most: usize) -> String {
    // A text of fewer bytes cannot have more letters; a long one is never walked through.
    if text.len() <= most || text.chars().nth(most).is_none() {
        return text.to_owned();
    }
    let kept = most.saturating_sub(1);
    let tail = kept / 2;
    let head: String = text.chars().take(kept - tail).collect();
    let mut end: Vec<char> = text.chars().rev().take(tail).collect();
    end.reverse();
    head + "…" + &end.into_iter().collect::<String>()
}

/// The words, with so much of their middle left out that they are not wider than `most` pixels.
#[must_use]
pub fn fitted(words: &str, size: f32, bold: bool, most: i32) -> String {
    if width(words, size, bold) <= most {
        return words.to_owned();
    }
    let (mut fits, mut fails) = (0, words.chars().count());
    while fits + 1 < fails {
        let tried = fits.midpoint(fails);
        match width(&middle(words, tried), size, bold) <= most {
            true => fits = tried,
            false => fails = tried,
        }
    }
    if fits == 0 { String::new() } else { middle(words, fits) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_comes_along() {
        assert!(width("peak", 13.0, false) > 20);
        assert!(width("peak", 13.0, true) > width("peak", 13.0, false));
    }

    #[test]
    fn the_middle_of_a_long_name_is_left_out() {
        assert_eq!(middle("libtorch_cuda.so", 16), "libtorch_cuda.so");
        assert_eq!(middle("libtorch_cuda.so", 9), "libt…a.so");
        assert_eq!(middle("äöü", 2), "ä…");
        assert_eq!(middle("abc", 1), "…");
        assert_eq!(middle("abc", 0), "…");
    }

    #[test]
    fn a_fitted_name_is_not_wider_than_its_place() {
        for most in [0, 3, 20, 57, 400] {
            let fitted = fitted("cudaMalloc > cuMemAlloc_v2, libc10_cuda.so", 13.0, false, most);
            assert!(width(&fitted, 13.0, false) <= most, "{fitted}");
        }
    }

    #[test]
    fn a_label_holds_nothing_that_acts() {
        let long = "x".repeat(1 << 20) + "\u{202e}";
        assert!(label(&long).chars().count() <= LETTERS + 10);
        assert!(label(&long).ends_with("\\u{202e}"));
        assert_eq!(label("a\0b\u{85}\u{ffff}"), "a\\0b\\u{85}\\u{ffff}");
    }
}
