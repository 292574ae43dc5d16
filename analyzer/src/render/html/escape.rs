//! Text made safe for the place where it stands.

use serde_json::Value;

/// Between tags, and in attributes with double quotes.
#[must_use]
pub fn text(words: &str) -> String {
    let mut safe = String::with_capacity(words.len());
    for letter in words.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(letter),
        }
    }
    safe
}

/// JSON in a script element: nothing in it can end the element or begin another.
#[must_use]
pub fn script(value: &Value) -> String {
    let mut safe = String::new();
    for letter in value.to_string().chars() {
        match letter {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                safe.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            _ => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_place() {
        let safe = text("</td><script>\" onmouseover='x' &amp;");
        assert!(!safe.contains(['<', '>', '"', '\'']));
        assert_eq!(text("a & b"), "a &amp; b");
    }

    #[test]
    fn json_cannot_end_its_script() {
        let value = Value::from("</script><!--\u{2028}&");
        let safe = script(&value);
        assert!(!safe.contains(['<', '>', '&', '\u{2028}']));
        assert_eq!(serde_json::from_str::<Value>(&safe).ok(), Some(value));
    }
}
