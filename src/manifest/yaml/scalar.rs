//! What a plain scalar stands for: text, or something else.
//!
//! These are the rules of YAML 1.1 as go-yaml v2 keeps them (`resolve.go`), and the step through JSON text that
//! sigs.k8s.io/yaml takes afterwards (`convertToJSONableObject` in `yaml.go`). Tags are `events.rs`'s business.

use std::borrow::Cow;

use serde_json::{Number, Value};

use super::timestamp::is_timestamp;

/// What a plain, untagged scalar stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Resolved {
    Null,
    Bool(bool),
    Integer(i64),
    Unsigned(u64),
    Float(f64),
    /// Read as text, but not plain text to go-yaml.
    Timestamp,
    Text,
}

/// Resolves a plain, untagged scalar.
pub(super) fn resolve(text: &str) -> Resolved {
    match text.as_bytes().first() {
        None => Resolved::Null,
        Some(b'+' | b'-' | b'0'..=b'9') => resolve_number(text),
        Some(b'.') => resolve_point(text),
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~') => {
            resolve_word(text)
        }
        Some(_) => Resolved::Text,
    }
}

/// The value that a resolved plain scalar has in JSON, or why it has none.
pub(super) fn value(text: Cow<'_, str>, resolved: Resolved) -> Result<Value, &'static str> {
    Ok(match resolved {
        Resolved::Null => Value::Null,
        Resolved::Bool(bool) => Value::Bool(bool),
        Resolved::Integer(integer) => Value::Number(integer.into()),
        Resolved::Unsigned(integer) => Value::Number(integer.into()),
        Resolved::Float(float) => Value::Number(
            number(float).ok_or("infinity and not-a-number cannot be expressed in JSON")?,
        ),
        Resolved::Timestamp | Resolved::Text => Value::String(text.into_owned()),
    })
}

/// The text that a resolved plain scalar becomes as the key of a map, or why it cannot be one.
pub(super) fn key(text: Cow<'_, str>, resolved: Resolved) -> Result<String, &'static str> {
    Ok(match resolved {
        Resolved::Null => return Err("null cannot be the key of a map"),
        Resolved::Unsigned(_) => {
            return Err("an integer of 2^63 or more cannot be the key of a map");
        }
        Resolved::Bool(bool) => bool.to_string(),
        Resolved::Integer(integer) => integer.to_string(),
        Resolved::Float(float) => float_key(float),
        Resolved::Timestamp | Resolved::Text => text.into_owned(),
    })
}

/// The number that Go's JSON makes of a float. One without a fraction becomes an integer, with the digits of the
/// shortest text that means the float, since Go goes through that text.
pub(super) fn number(float: f64) -> Option<Number> {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    if float.fract() == 0.0
        && float.abs() < TWO_TO_63
        && let Ok(integer) = format!("{}", float + 0.0).parse::<i64>()
    {
        return Some(integer.into());
    }
    Number::from_f64(float)
}

/// Go's `strconv.FormatFloat(float, 'g', -1, 64)`, given the float in Rust's `{:e}` form.
pub(super) fn go_format(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent = exponent.parse::<i32>().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    if !(-4..6).contains(&exponent) {
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{mantissa}e{exponent_sign}{:02}", exponent.abs());
    }
    let digits = mantissa.replace('.', "");
    let point = exponent + 1;
    if point <= 0 {
        let zeros = "0".repeat(point.unsigned_abs() as usize);
        return format!("{sign}0.{zeros}{digits}");
    }
    let point = point.unsigned_abs() as usize;
    if digits.len() <= point {
        return format!("{sign}{digits}{}", "0".repeat(point - digits.len()));
    }
    format!("{sign}{}.{}", &digits[..point], &digits[point..])
}

/// sigs.k8s.io/yaml formats keys in single precision.
fn float_key(float: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "upstream rounds keys to 32 bits"
    )]
    let single = float as f32;
    if single.is_nan() {
        ".nan".to_owned()
    } else if single.is_infinite() {
        if single > 0.0 { ".inf" } else { "-.inf" }.to_owned()
    } else {
        go_format(&format!("{single:e}"))
    }
}

fn resolve_word(text: &str) -> Resolved {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Resolved::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Resolved::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => Resolved::Null,
        _ => Resolved::Text,
    }
}

fn resolve_point(text: &str) -> Resolved {
    match text {
        ".nan" | ".NaN" | ".NAN" => Resolved::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" => Resolved::Float(f64::INFINITY),
        _ if underscores_separate_digits(text) => parse_float(&text.replace('_', "")),
        _ => Resolved::Text,
    }
}

/// Where a number starts with its point, go-yaml leaves underscores to Go, which wants digits around each.
fn underscores_separate_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    memchr::memchr_iter(b'_', bytes).all(|at| at > 0 && digit(at - 1) && digit(at + 1))
}

fn resolve_number(text: &str) -> Resolved {
    match text {
        "+.inf" | "+.Inf" | "+.INF" => return Resolved::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Resolved::Float(f64::NEG_INFINITY),
        _ if is_timestamp(text) => return Resolved::Timestamp,
        _ => {}
    }
    let plain = if text.contains('_') {
        Cow::Owned(text.replace('_', ""))
    } else {
        Cow::Borrowed(text)
    };
    parse_integer(&plain)
        .or_else(|| {
            let binary = plain.strip_prefix("0b")?;
            i64::from_str_radix(binary, 2).ok().map(Resolved::Integer)
        })
        .unwrap_or_else(|| parse_float(&plain))
}

/// Go's `ParseInt` and then `ParseUint` with base 0: the prefix says the base, and a leading zero says octal.
fn parse_integer(plain: &str) -> Option<Resolved> {
    let negative = plain.starts_with('-');
    let unsigned = plain.strip_prefix(['-', '+']).unwrap_or(plain);
    let (base, digits) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &unsigned[2..]),
        [b'0', b'o' | b'O', ..] => (8, &unsigned[2..]),
        [b'0', b'b' | b'B', ..] => (2, &unsigned[2..]),
        [b'0', _, ..] => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    // Rust would take a second sign here.
    if !digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, base).ok()?;
    if negative {
        return 0_i64.checked_sub_unsigned(magnitude).map(Resolved::Integer);
    }
    match i64::try_from(magnitude) {
        Ok(integer) => Some(Resolved::Integer(integer)),
        Err(_) if plain.starts_with('+') => None,
        Err(_) => Some(Resolved::Unsigned(magnitude)),
    }
}

/// A decimal float, or text where it is none or is out of range.
fn parse_float(plain: &str) -> Resolved {
    let digits_and_point = plain
        .bytes()
        .all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    // A sign before a bare point and the like are refused by both; names such as `inf` are kept out above.
    match plain.parse::<f64>() {
        Ok(float) if digits_and_point && float.is_finite() => Resolved::Float(float),
        _ => Resolved::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Expected values are what go-yaml v2's resolve() gives.
    #[test]
    fn numbers_follow_go() {
        for (text, expected) in [
            ("0755", Resolved::Integer(493)),
            ("08", Resolved::Float(8.0)),
            ("0o17", Resolved::Integer(15)),
            ("-0x10", Resolved::Integer(-16)),
            ("0b+1", Resolved::Integer(1)),
            ("1_000", Resolved::Integer(1000)),
            ("+5", Resolved::Integer(5)),
            ("0x", Resolved::Text),
            ("--5", Resolved::Text),
            ("0x-5", Resolved::Text),
            ("18446744073709551615", Resolved::Unsigned(u64::MAX)),
            (
                "+18446744073709551615",
                Resolved::Float(18_446_744_073_709_551_615.0),
            ),
            ("-9223372036854775808", Resolved::Integer(i64::MIN)),
            ("1e3", Resolved::Float(1000.0)),
            ("1e400", Resolved::Text),
            (".5", Resolved::Float(0.5)),
            (".1_0", Resolved::Float(0.1)),
            ("._1", Resolved::Text),
            (".", Resolved::Text),
            ("5.", Resolved::Float(5.0)),
            ("1:30", Resolved::Text),
            ("2001-01-01", Resolved::Timestamp),
            ("1.2.3", Resolved::Text),
        ] {
            assert_eq!(resolve(text), expected, "{text}");
        }
    }

    #[test]
    fn words_are_those_of_yaml_1_1() {
        assert_eq!(resolve("on"), Resolved::Bool(true));
        assert_eq!(resolve("N"), Resolved::Bool(false));
        assert_eq!(resolve("yEs"), Resolved::Text);
        assert_eq!(resolve("~"), Resolved::Null);
        assert_eq!(resolve("="), Resolved::Text);
    }

    #[test]
    fn floats_without_a_fraction_become_the_integer_go_prints() {
        assert_eq!(number(-0.0), Some(0.into()));
        assert_eq!(number(1e3), Some(1000.into()));
        // 2^62 in the shortest digits that mean it.
        assert_eq!(
            number(4_611_686_018_427_387_904.0),
            Some(4_611_686_018_427_388_000_i64.into())
        );
        assert_eq!(number(f64::NAN), None);
    }

    #[test]
    fn keys_are_formatted_as_go_does() {
        for (float, expected) in [
            (1.5, "1.5"),
            (1e6, "1e+06"),
            (123_456.0, "123456"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.5e-7, "-2.5e-07"),
            (1e300, ".inf"),
        ] {
            assert_eq!(float_key(float), expected);
        }
    }
}
