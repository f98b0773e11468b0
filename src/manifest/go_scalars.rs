//! Go types that read a JSON string or number in a way of their own.
//!
//! Reproduces the decoders and encoders of `metav1.Time` (apimachinery's pkg/apis/meta/v1/time.go), `IntOrString`
//! (pkg/util/intstr), `Quantity` as far as JSON goes (pkg/api/resource), `OperatorVersion` and `OperatorRelease`
//! (operator-framework/api's pkg/lib), `[]byte`, and the numbers of encoding/json. Every function takes a value that
//! is not null, and either leaves in it what Go prints or gives the reason why Go refuses it.

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use jiff::Timestamp;
use semver::Prerelease;
use serde_json::{Number, Value};

use super::findings::{describe, quoted};
use super::quantity;
use crate::versions;

/// Numbers that Go's `float64` holds one by one, without gaps.
const EXACT_IN_FLOAT: u64 = 1 << 53;

/// What a scalar is refused for: the wrong type (what was expected), or a sentence of its own.
pub(super) enum Refusal {
    WrongType(&'static str),
    Invalid(String),
}

/// A whole number between `least` and `most`; 80.0 is one too.
///
/// Go's converter cuts what does not fit into 32 bits down to its lower bits, which nobody wants: it is refused.
pub(super) fn integer(value: &mut Value, least: i64, most: i64) -> Result<(), Refusal> {
    let Value::Number(number) = value else {
        return Err(Refusal::WrongType("an integer"));
    };
    if number.as_f64().is_some_and(|found| found.fract() != 0.0) {
        return Err(Refusal::WrongType("an integer"));
    }
    through_go(number);
    match number.as_i64() {
        Some(found) if (least..=most).contains(&found) => Ok(()),
        _ => Err(Refusal::Invalid(format!(
            "expected an integer from {least} to {most}, found {number}"
        ))),
    }
}

/// A 64-bit floating point number.
pub(super) fn float(value: &mut Value) -> Result<(), Refusal> {
    let Value::Number(number) = value else {
        return Err(Refusal::WrongType("a number"));
    };
    match number.as_i64() {
        Some(whole) if whole.unsigned_abs() <= EXACT_IN_FLOAT => {}
        _ => through_float(number),
    }
    Ok(())
}

/// Any JSON: only the spelling of numbers changes, by a round through `int64` and `float64`.
pub(super) fn any(value: &mut Value) {
    match value {
        Value::Number(number) => through_go(number),
        Value::Array(items) => items.iter_mut().for_each(any),
        Value::Object(entries) => entries.values_mut().for_each(any),
        _ => {}
    }
}

/// Makes a number what is left of it when Go has read it into `int64`, or else into `float64`.
fn through_go(number: &mut Number) {
    if !number.is_i64() {
        through_float(number);
    }
}

/// Makes a number what is left of it when Go has read it into `float64`, and printed it: an integer if it is whole.
fn through_float(number: &mut Number) {
    let Some(float) = number.as_f64() else { return };
    // Rust and Go agree on the digits: the fewest that name the number, filled up with zeros.
    let digits = if float.fract() == 0.0 {
        float.to_string()
    } else {
        String::new()
    };
    let printed = match (digits.parse::<i64>(), digits.parse::<u64>()) {
        (Ok(whole), _) => Some(Number::from(whole)),
        (_, Ok(whole)) => Some(Number::from(whole)),
        _ => Number::from_f64(float),
    };
    if let Some(printed) = printed {
        *number = printed;
    }
}

/// A port or a share: a 32-bit integer or a string.
pub(super) fn int_or_string(value: &mut Value) -> Result<(), Refusal> {
    match value {
        Value::String(_) => Ok(()),
        Value::Number(_) => integer(value, i32::MIN.into(), i32::MAX.into()),
        _ => Err(Refusal::WrongType("an integer or a string")),
    }
}

/// An amount. A number becomes the string that Go prints for it.
pub(super) fn quantity(value: &mut Value) -> Result<(), Refusal> {
    let text = match &*value {
        Value::String(text) => Cow::Borrowed(text.as_str()),
        Value::Number(number) => Cow::Owned(number_text(number)),
        _ => return Err(Refusal::WrongType("a quantity")),
    };
    let printed = quantity::canonical(&text)
        .map_err(|problem| Refusal::Invalid(format!("the quantity {} {problem}", quoted(&text))))?;
    if value.as_str() != Some(&printed) {
        *value = Value::from(printed);
    }
    Ok(())
}

/// Whether two values are the same amount, as Go prints it: `0.5` and `500m`. What is no amount is not.
#[must_use]
pub fn same_quantity(one: &Value, other: &Value) -> bool {
    let printed = |value: &Value| {
        let mut value = value.clone();
        quantity(&mut value).is_ok().then_some(value)
    };
    match (printed(one), printed(other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

/// A number as encoding/json writes it: plain digits, and an exponent only for the very small and the very large.
fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if !number.is_i64() => match float.abs() {
            size if size >= 1e21 => format!("{float:e}").replace('e', "e+"),
            size if size != 0.0 && size < 1e-6 => format!("{float:e}"),
            _ => float.to_string(),
        },
        _ => number.to_string(),
    }
}

/// A point in time, printed in UTC and in whole seconds; null for Go's zero time, which Go does not print.
pub(super) fn time(value: &mut Value) -> Result<(), Refusal> {
    let Value::String(text) = &*value else {
        return Err(Refusal::WrongType("a time"));
    };
    let invalid = || unlike("a time as in 2006-01-02T15:04:05Z", value);
    if !has_shape_of_time(text.as_bytes()) {
        return Err(invalid());
    }
    let time: Timestamp = text.parse().map_err(|_| invalid())?;
    let printed = time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    *value = match printed.as_str() {
        "0001-01-01T00:00:00Z" => Value::Null,
        _ => Value::from(printed),
    };
    Ok(())
}

/// Whether a text is digits and signs in the order of RFC 3339; whether they are a date is for others to say.
fn has_shape_of_time(text: &[u8]) -> bool {
    let like = |text: &[u8], shape: &[u8]| {
        let same = |(found, wanted): (&u8, &u8)| match wanted {
            b'0' => found.is_ascii_digit(),
            _ => found == wanted,
        };
        text.len() == shape.len() && text.iter().zip(shape).all(same)
    };
    let Some((seconds, mut rest)) = text.split_at_checked(b"0000-00-00T00:00:00".len()) else {
        return false;
    };
    if let Some((b'.' | b',', fraction)) = rest.split_first() {
        let digits = fraction.iter().take_while(|c| c.is_ascii_digit()).count();
        rest = if digits > 0 { &fraction[digits..] } else { b"" };
    }
    let zone = rest == b"Z" || like(rest, b"+00:00") || like(rest, b"-00:00");
    // A leap second is no second to Go.
    zone && like(seconds, b"0000-00-00T00:00:00") && !seconds.ends_with(b":60")
}

/// Base64 as Go reads it: line breaks are passed over, and so are bits that are left at the end.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// The bytes that a text in base64 stands for, as Go reads it into `[]byte`.
///
/// # Errors
/// When it is no base64; the text says why.
pub fn decode_base64(text: &str) -> Result<Vec<u8>, String> {
    let decoded = BASE64.decode(text.replace(['\r', '\n'], ""));
    decoded.map_err(|error| error.to_string())
}

/// Base64, printed without line breaks.
pub(super) fn bytes(value: &mut Value) -> Result<(), Refusal> {
    let Value::String(text) = &*value else {
        return Err(Refusal::WrongType("base64 text"));
    };
    let decoded = decode_base64(text).map_err(|_| unlike("base64 text", value))?;
    *value = Value::from(BASE64.encode(decoded));
    Ok(())
}

/// A semantic version; a leading `v`, leading zeros and missing last numbers are put right, as blang/semver does.
pub(super) fn version(value: &mut Value) -> Result<(), Refusal> {
    let Value::String(text) = &*value else {
        return Err(Refusal::WrongType("a string"));
    };
    *value = match versions::parse_tolerant(text) {
        Ok(version) => Value::from(version.to_string()),
        Err(_) => return Err(unlike("a semantic version as in 1.2.3", value)),
    };
    Ok(())
}

/// Whether the numbers among the identifiers fit into Go's `uint64`.
fn numbers_fit(identifiers: &str) -> bool {
    identifiers.split('.').all(|identifier| {
        let number = identifier.bytes().all(|byte| byte.is_ascii_digit());
        !number || identifier.is_empty() || identifier.parse::<u64>().is_ok()
    })
}

/// The release of a package of one version: identifiers between dots.
pub(super) fn release(value: &mut Value) -> Result<(), Refusal> {
    let Value::String(text) = &*value else {
        return Err(Refusal::WrongType("a string"));
    };
    match Prerelease::new(text) {
        Ok(release) if !release.is_empty() && numbers_fit(&release) => Ok(()),
        _ => Err(unlike("a release as in 1 or 2.rc-1", value)),
    }
}

/// Refuses a value of the right JSON type that does not read as it should.
fn unlike(expected: &str, found: &Value) -> Refusal {
    Refusal::Invalid(format!("expected {expected}, found {}", describe(found)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    type Reader = fn(&mut Value) -> Result<(), Refusal>;

    /// What Go prints after reading a value, or none if it refuses it.
    fn read(reader: Reader, value: Value) -> Option<Value> {
        let mut value = value;
        reader(&mut value).ok().map(|()| value)
    }

    fn int32(value: &mut Value) -> Result<(), Refusal> {
        integer(value, i32::MIN.into(), i32::MAX.into())
    }

    #[test]
    fn integers_may_be_written_as_floats_and_must_fit() {
        assert_eq!(read(int32, json!(80.0)), Some(json!(80)));
        assert_eq!(read(int32, json!(i32::MIN)), Some(json!(i32::MIN)));
        for refused in [
            json!(80.5),
            json!(1_i64 << 31),
            json!(1e300),
            json!("80"),
            json!(true),
        ] {
            assert_eq!(read(int32, refused.clone()), None, "{refused}");
        }
    }

    #[test]
    fn floats_print_as_integers_where_go_does() {
        assert_eq!(read(float, json!(1e3)), Some(json!(1000)));
        assert_eq!(read(float, json!(0.25)), Some(json!(0.25)));
        // The largest int64, which CRDs give as a maximum, has no float64 of its own.
        let largest = json!(9_223_372_036_854_775_807_u64);
        let printed = json!(9_223_372_036_854_776_000_u64);
        assert_eq!(read(float, largest.clone()), Some(printed));
        let mut raw = json!({"default": [largest, 2.0]});
        any(&mut raw);
        assert_eq!(raw.to_string(), r#"{"default":[9223372036854775807,2]}"#);
    }

    #[test]
    fn numbers_become_quantities() {
        for (number, printed) in [
            (json!(1), "1"),
            (json!(0.5), "500m"),
            (json!(1000), "1k"),
            (json!(1e21), "1e+21"),
            (json!(1e-7), "100e-9"),
        ] {
            assert_eq!(read(quantity, number), Some(json!(printed)));
        }
        assert_eq!(read(quantity, json!(true)), None);
    }

    #[test]
    fn times_print_in_utc_and_whole_seconds() {
        let local = json!("2020-01-02T03:04:05.678+02:30");
        assert_eq!(read(time, local), Some(json!("2020-01-02T00:34:05Z")));
        assert_eq!(read(time, json!("0001-01-01T00:00:00Z")), Some(Value::Null));
        for refused in [
            "2020-01-02",
            "2020-02-30T00:00:00Z",
            "2020-01-02t03:04:05z",
            "2020-01-02T03:04:60Z",
        ] {
            assert_eq!(read(time, json!(refused)), None, "{refused}");
        }
    }

    #[test]
    fn versions_are_put_right() {
        for (text, printed) in [
            ("v1.2", "1.2.0"),
            (" 01.02.03 ", "1.2.3"),
            ("1.0.00-a+01", "1.0.0-a+01"),
        ] {
            assert_eq!(read(version, json!(text)), Some(json!(printed)));
        }
        for refused in [
            "",
            "1.2-rc",
            "1.2.3-01",
            "vv1",
            "1.0.0-18446744073709551616",
        ] {
            assert_eq!(read(version, json!(refused)), None, "{refused}");
        }
    }

    #[test]
    fn releases_are_identifiers() {
        assert_eq!(read(release, json!("1.rc-2")), Some(json!("1.rc-2")));
        for refused in ["", "01", "1..2", "1_2"] {
            assert_eq!(read(release, json!(refused)), None, "{refused}");
        }
    }

    #[test]
    fn base64_loses_its_line_breaks() {
        assert_eq!(read(bytes, json!("YWJj\nYWI=\n")), Some(json!("YWJjYWI=")));
        assert_eq!(read(bytes, json!("YWI")), None);
    }
}
