//! Which style a text is written in: plain, quoted, or as a literal block.
//!
//! The choice is that of go-yaml v2: `stringv` (`encode.go`), `yaml_emitter_analyze_scalar` and
//! `yaml_emitter_select_scalar_style` (`emitterc.go`), with two exceptions. Characters beyond U+FFFF are written as they
//! are, while U+2028, U+2029 and their like are always escaped. And text of several lines is a literal block also where
//! lines hold tabs or end in spaces: go-yaml quotes it, and nobody can review a configuration file on one long line.

use super::scalar::{Resolved, resolve};

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

/// The style of `text` as a value.
pub(super) fn of_value(text: &str) -> Style {
    of(text, &Traits::of(text.as_bytes()))
}

/// The style of `text` as the key of a map, and whether it can stand there in the usual form, `key: value`.
pub(super) fn of_key(text: &str) -> (Style, bool) {
    const LONGEST_SIMPLE_KEY: usize = 128;
    let traits = Traits::of(text.as_bytes());
    let simple = !traits.line_breaks && text.len() <= LONGEST_SIMPLE_KEY;
    // go-yaml leaves this key bare, and then takes it for a merge.
    let style = if text == "<<" {
        Style::DoubleQuoted
    } else {
        of(text, &traits)
    };
    (style, simple)
}

fn of(text: &str, traits: &Traits) -> Style {
    if traits.special || traits.tab && !traits.line_breaks {
        Style::DoubleQuoted
    } else if traits.line_breaks {
        // Readers take a tab where they look for indentation as an error.
        if traits.trailing_space || traits.tab_at_line_start {
            Style::DoubleQuoted
        } else {
            Style::Literal
        }
    } else if resolve(text) != Resolved::Text || is_base_60(text) {
        Style::DoubleQuoted
    } else if traits.indicators || traits.leading_space || traits.trailing_space {
        Style::SingleQuoted
    } else {
        Style::Plain
    }
}

/// Whether a character of a double-quoted text has to be written as an escape, other than `"` and `\`.
pub(super) fn needs_escape(character: char) -> bool {
    matches!(character,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// What decides about the style.
#[derive(Default)]
struct Traits {
    /// Something in it means something to YAML.
    indicators: bool,
    /// It holds characters that only double quotes can hold.
    special: bool,
    line_breaks: bool,
    leading_space: bool,
    trailing_space: bool,
    tab: bool,
    tab_at_line_start: bool,
}

impl Traits {
    fn of(bytes: &[u8]) -> Traits {
        let mut traits = Traits {
            indicators: starts_with_indicator(bytes),
            leading_space: bytes.first() == Some(&b' '),
            trailing_space: bytes.last() == Some(&b' '),
            ..Traits::default()
        };
        for (number, chunk) in bytes.chunks(CHUNK).enumerate() {
            // Without an early way out, the compiler looks at the whole chunk at once.
            if chunk.iter().fold(false, |any, &byte| any | decides(byte)) {
                for at in number * CHUNK..number * CHUNK + chunk.len() {
                    traits.add(bytes, at);
                }
            }
        }
        traits
    }

    /// Looks at the byte `at` of a text.
    fn add(&mut self, bytes: &[u8], at: usize) {
        let next = bytes.get(at + 1);
        match bytes[at] {
            b':' => self.indicators |= matches!(next, None | Some(b' ')),
            b'#' => self.indicators |= at == 0 || bytes[at - 1] == b' ',
            b'\n' => self.line_breaks = true,
            b'\t' => {
                self.tab = true;
                self.tab_at_line_start |= at == 0 || bytes[at - 1] == b'\n';
            }
            b'\r' => {
                self.line_breaks = true;
                self.special = true;
            }
            0x20..=0x7e => {}
            0xc2 => self.special |= next.is_some_and(|&next| next < 0xa0),
            0xe2 => self.special |= matches!(bytes.get(at + 1..at + 3), Some([0x80, 0xa8 | 0xa9])),
            0xef => self.special |= is_odd(bytes.get(at..at + 3)),
            0x80.. => {}
            _ => self.special = true,
        }
    }
}

const CHUNK: usize = 32;

/// Whether a byte may decide something, wherever it stands.
fn decides(byte: u8) -> bool {
    !(0x20..=0x7e).contains(&byte) | (byte == b':') | (byte == b'#')
}

/// The byte order mark and the two characters that are none.
fn is_odd(character: Option<&[u8]>) -> bool {
    matches!(
        character,
        Some([0xef, 0xbb, 0xbf] | [0xef, 0xbf, 0xbe | 0xbf])
    )
}

fn starts_with_indicator(bytes: &[u8]) -> bool {
    match bytes {
        [b'-', b'-', b'-', ..] | [b'.', b'.', b'.', ..] => true,
        [b'?' | b':' | b'-', rest @ ..] => matches!(rest.first(), None | Some(b' ')),
        [first, ..] => b"#,[]{}&*!|>'\"%@`".contains(first),
        [] => false,
    }
}

/// Numbers to the base of sixty, as YAML 1.1 has them and go-yaml does not read them: `190:20:30`.
fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut groups = unsigned.split(':');
    let digits = |group: &str| group.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let first = groups
        .next()
        .is_some_and(|group| group.starts_with(|c: char| c.is_ascii_digit()) && digits(group));
    let mut rest: Vec<&str> = groups.collect();
    let Some(last) = rest.pop() else {
        return false;
    };
    let (last, fraction) = last.split_once('.').unwrap_or((last, ""));
    rest.push(last);
    let sixty = |group: &&str| match group.as_bytes() {
        [digit] => digit.is_ascii_digit(),
        [b'0'..=b'5', digit] => digit.is_ascii_digit(),
        _ => false,
    };
    first && rest.iter().all(sixty) && digits(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Expected styles are what sigs.k8s.io/yaml prints.
    #[test]
    fn styles_are_those_of_go() {
        for (text, style) in [
            ("text", Style::Plain),
            ("a: b", Style::SingleQuoted),
            ("a:b", Style::Plain),
            ("ends:", Style::SingleQuoted),
            ("a #b", Style::SingleQuoted),
            ("a#b", Style::Plain),
            ("- x", Style::SingleQuoted),
            ("-x", Style::Plain),
            ("---x", Style::SingleQuoted),
            (" x", Style::SingleQuoted),
            ("", Style::DoubleQuoted),
            ("on", Style::DoubleQuoted),
            ("0755", Style::DoubleQuoted),
            ("2001-01-01", Style::DoubleQuoted),
            ("190:20:30.15", Style::DoubleQuoted),
            ("1:60", Style::Plain),
            ("a\tb", Style::DoubleQuoted),
            ("a\u{2028}b", Style::DoubleQuoted),
            ("\u{feff}a", Style::DoubleQuoted),
            ("na\u{ef}ve \u{2014} \u{1f600}", Style::Plain),
        ] {
            assert_eq!(of_value(text), style, "{text:?}");
        }
    }
}
