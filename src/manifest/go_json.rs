//! JSON as Go's `encoding/json` writes it: compact, with `<`, `>`, `&`, U+2028 and U+2029 escaped.
//!
//! Names of generated objects are hashes of such text, and annotations hold it, so it must be right to the byte.

use serde::Serialize;

/// The JSON text of a value; maps and structs in the order in which they serialise.
///
/// # Errors
/// When the value cannot be JSON at all, such as a map whose keys are no texts.
pub fn text(value: &impl Serialize) -> Result<String, serde_json::Error> {
    Ok(escape(&compact(&serde_json::to_string(value)?)))
}

/// Takes white space out from between the parts of JSON text, as raw values keep theirs.
fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut in_text, mut escaped) = (false, false);
    for character in json.chars() {
        if in_text {
            in_text = escaped || character != '"';
            escaped = !escaped && character == '\\';
        } else if matches!(character, ' ' | '\t' | '\n' | '\r') {
            continue;
        } else {
            in_text = character == '"';
        }
        out.push(character);
    }
    out
}

/// The characters are only ever found inside texts, where the escape means the same.
fn escape(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_json_is_compacted_outside_texts_only() {
        assert_eq!(
            compact(r#"{ "a b" : [ 1, "x \" y" ] }"#),
            r#"{"a b":[1,"x \" y"]}"#
        );
    }

    /// What Go prints for `json.NewEncoder(w).Encode("1 < 2 & 3")`, without the newline.
    #[test]
    fn html_characters_are_escaped_as_go_does() {
        assert_eq!(
            text(&"1 < 2 & 3").expect("JSON"),
            r#""1 \u003c 2 \u0026 3""#
        );
    }
}
