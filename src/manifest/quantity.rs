//! Amounts of CPU, memory and the like (`500m`, `1Gi`, `1e3`), in the one spelling that Go prints.
//!
//! Reproduces `ParseQuantity` and `Quantity.CanonicalizeBytes` of apimachinery's pkg/api/resource/quantity.go: what is
//! accepted, what is rounded, and which spellings are printed as they were read. It does no arithmetic on amounts, and
//! leaves a valid one alone that has more than 38 digits, or more than exa in decimal (Go prints the latter wrong).

use std::borrow::Cow;

/// Why a text is no quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum QuantityError {
    /// It is not digits followed by a unit.
    #[error("is not a number with an optional unit, as in 500m, 1.5 or 2Gi")]
    Form,
    /// There are no digits to go with the unit.
    #[error("has no digits")]
    Digits,
    /// The unit is unknown.
    #[error(
        "has the unknown unit {0}; known are n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei"
    )]
    Unit(String),
}

/// Gives the text that Go prints after reading `text` as a quantity.
///
/// The amount is the same, except that it is rounded up to a whole nano unit, and that binary amounts end at 2^63-1.
pub(super) fn canonical(text: &str) -> Result<Cow<'_, str>, QuantityError> {
    let text = text.trim_matches(|c: char| c.is_whitespace() && !c.is_ascii_control());
    if text.is_empty() {
        return Err(QuantityError::Form);
    }
    let parts = Parts::of(text)?;
    if parts.printed_as_read() {
        return Ok(Cow::Borrowed(text));
    }
    let printed = match parts.unit {
        Unit::Binary(_) => parts.amount()?.and_then(Amount::binary),
        Unit::Decimal(_) => parts.amount()?.and_then(|amount| amount.decimal(false)),
        Unit::Exponent(_) => parts.amount()?.and_then(|amount| amount.decimal(true)),
    };
    Ok(match printed {
        Some(printed) if parts.negative && printed != "0" => Cow::Owned(format!("-{printed}")),
        Some(printed) => Cow::Owned(printed),
        None => Cow::Borrowed(text),
    })
}

/// What stands behind the digits; the number is an exponent to 10, or to 2 for `Binary`.
#[derive(Clone, Copy)]
enum Unit {
    Decimal(i32),
    Exponent(i32),
    Binary(i32),
}

/// The units by name.
const UNITS: [(&str, Unit); 17] = [
    ("", Unit::Decimal(0)),
    ("n", Unit::Decimal(-9)),
    ("u", Unit::Decimal(-6)),
    ("m", Unit::Decimal(-3)),
    ("k", Unit::Decimal(3)),
    ("M", Unit::Decimal(6)),
    ("G", Unit::Decimal(9)),
    ("T", Unit::Decimal(12)),
    ("P", Unit::Decimal(15)),
    ("E", Unit::Decimal(18)),
    ("Ki", Unit::Binary(10)),
    ("Mi", Unit::Binary(20)),
    ("Gi", Unit::Binary(30)),
    ("Ti", Unit::Binary(40)),
    ("Pi", Unit::Binary(50)),
    ("Ei", Unit::Binary(60)),
    // What 2^0 is called.
    ("", Unit::Binary(0)),
];

/// A quantity's text, taken apart.
struct Parts {
    negative: bool,
    /// All digits without leading zeros, but with one if nothing stands before the point.
    digits: String,
    /// How many of the digits stand behind the point.
    fraction: usize,
    /// Whether the text had digits at all; Go lets a bare unit pass as zero.
    has_digits: bool,
    unit: Unit,
}

impl Parts {
    fn of(text: &str) -> Result<Parts, QuantityError> {
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let significant = unsigned.trim_start_matches('0');
        let (whole, rest) = split_digits(significant);
        let (fraction, rest) = match rest.strip_prefix('.') {
            Some(rest) => split_digits(rest),
            None => ("", rest),
        };
        let whole = if whole.is_empty() { "0" } else { whole };
        Ok(Parts {
            negative: text.starts_with('-'),
            digits: format!("{whole}{fraction}"),
            fraction: fraction.len(),
            has_digits: unsigned.starts_with(|c: char| c.is_ascii_digit()) || !fraction.is_empty(),
            unit: unit(rest)?,
        })
    }

    /// Whether Go remembers the text as it was, which it does for common spellings.
    fn printed_as_read(&self) -> bool {
        self.is_short()
            && match self.unit {
                Unit::Decimal(_) | Unit::Exponent(_) => {
                    self.scale() % 3 == 0
                        && !self.digits.ends_with("000")
                        && !self.digits.starts_with('0')
                }
                Unit::Binary(exponent) => {
                    let value = self.digits.parse::<i64>().unwrap_or(0);
                    value % 8 != 0 && value.checked_mul(1 << exponent).is_some()
                }
            }
    }

    /// Whether Go works with the number as with an `int64`, not with all its digits.
    fn is_short(&self) -> bool {
        let digits = i32::try_from(self.digits.len()).unwrap_or(i32::MAX);
        match self.unit {
            Unit::Decimal(_) | Unit::Exponent(_) => digits <= 18 && self.scale() >= -9,
            Unit::Binary(exponent) => self.fraction == 0 && digits <= 14 - exponent * 3 / 10,
        }
    }

    /// The power of ten that the digits, read as a whole number, are multiplied with.
    fn scale(&self) -> i32 {
        let fraction = i32::try_from(self.fraction).unwrap_or(i32::MAX);
        match self.unit {
            Unit::Decimal(exponent) | Unit::Exponent(exponent) => exponent.saturating_sub(fraction),
            Unit::Binary(_) => -fraction,
        }
    }

    /// The amount without its sign, rounded as Go rounds; none if it has too many digits to be worked with here.
    fn amount(&self) -> Result<Option<Amount>, QuantityError> {
        // Go takes a bare unit for zero, but not where it works with all digits.
        if !self.has_digits && !self.is_short() {
            return Err(QuantityError::Digits);
        }
        let factor = match self.unit {
            Unit::Binary(exponent) => 1_u128 << exponent,
            Unit::Decimal(_) | Unit::Exponent(_) => 1,
        };
        let value = self.digits.parse::<u128>().ok();
        let value = value.and_then(|value| value.checked_mul(factor));
        Ok(value.map(|value| {
            Amount {
                value,
                scale: self.scale(),
            }
            .rounded_to_nano()
        }))
    }
}

/// The most that a binary unit is printed with: 2^63-1.
const MOST: u128 = (1 << 63) - 1;

/// `value` times ten to the power of `scale`.
struct Amount {
    value: u128,
    scale: i32,
}

impl Amount {
    /// Rounds up to a billionth: whoever asks for too little gets the least there is.
    fn rounded_to_nano(self) -> Amount {
        if self.scale >= -9 {
            return self;
        }
        let surplus = self.scale.saturating_add(9).unsigned_abs();
        let value = match 10_u128.checked_pow(surplus) {
            Some(divisor) => self.value.div_ceil(divisor),
            None => u128::from(self.value != 0),
        };
        Amount { value, scale: -9 }
    }

    /// Prints with a decimal unit, or with an exponent; none if there is no unit that large.
    fn decimal(mut self, as_exponent: bool) -> Option<String> {
        if self.value == 0 {
            return Some("0".to_owned());
        }
        while self.value.is_multiple_of(10) {
            self.value /= 10;
            self.scale = self.scale.checked_add(1)?;
        }
        while self.scale % 3 != 0 {
            self.value = self.value.checked_mul(10)?;
            self.scale = self.scale.checked_sub(1)?;
        }
        match (as_exponent, self.scale) {
            (_, 0) => Some(self.value.to_string()),
            (true, scale) => Some(format!("{}e{scale}", self.value)),
            (false, scale) => {
                let is_it =
                    |unit: &Unit| matches!(unit, Unit::Decimal(exponent) if *exponent == scale);
                let (name, _) = UNITS.iter().find(|(_, unit)| is_it(unit))?;
                Some(format!("{}{name}", self.value))
            }
        }
    }

    /// Prints with a binary unit, or with a decimal one if that would lose something.
    fn binary(self) -> Option<String> {
        let divisor = 10_u128.checked_pow(self.scale.unsigned_abs())?;
        let mut whole = self.value / divisor;
        if whole >= MOST {
            whole = MOST;
        } else if whole < 1024 || !self.value.is_multiple_of(divisor) {
            return self.decimal(false);
        }
        let mut exponent = 0;
        while whole.is_multiple_of(1024) {
            whole /= 1024;
            exponent += 10;
        }
        let is_it = |unit: &Unit| matches!(unit, Unit::Binary(other) if *other == exponent);
        let (name, _) = UNITS.iter().find(|(_, unit)| is_it(unit))?;
        Some(format!("{whole}{name}"))
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

/// Reads what stands behind the digits.
fn unit(text: &str) -> Result<Unit, QuantityError> {
    let known = UNITS.iter().find(|(name, _)| *name == text);
    if let Some((_, unit)) = known {
        return Ok(*unit);
    }
    let after_letters = text.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let after_sign = after_letters
        .strip_prefix(['-', '+'])
        .unwrap_or(after_letters);
    if !after_sign.chars().all(|c| c.is_ascii_digit()) {
        return Err(QuantityError::Form);
    }
    let exponent = text.strip_prefix(['e', 'E']).unwrap_or_default();
    match exponent.parse::<i32>() {
        Ok(exponent) => Ok(Unit::Exponent(exponent)),
        Err(_) => Err(QuantityError::Unit(super::findings::quoted(text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What apimachinery v0.36.1 prints.
    const PRINTED: &[(&str, &str)] = &[
        ("1", "1"),
        ("0.1", "100m"),
        ("0.5", "500m"),
        ("1000", "1k"),
        ("1024Mi", "1Gi"),
        ("8Mi", "8Mi"),
        ("0.5Gi", "512Mi"),
        ("0.5Ki", "512"),
        ("1.3Gi", "1395864371200m"),
        ("1.50", "1500m"),
        ("1.500", "1.500"),
        ("05", "05"),
        ("+5", "+5"),
        ("-0.1", "-100m"),
        ("-0", "0"),
        ("1e3", "1e3"),
        ("1e4", "10e3"),
        ("1E3", "1E3"),
        ("0.1n", "1n"),
        ("1e-400", "1e-9"),
        ("100Ei", "9223372036854775807"),
        ("m", "0"),
        (".", "0"),
        (" 2Gi ", "2Gi"),
    ];

    #[test]
    fn prints_what_go_prints() {
        for (text, expected) in PRINTED {
            assert_eq!(canonical(text).as_deref(), Ok(*expected), "{text}");
        }
    }

    #[test]
    fn refuses_what_go_refuses() {
        for text in [
            "", "1 Gi", "abc", "1.2.3", "1gi", "1KB", "0x10", "\t1", "one", "1ee3", "e-400",
        ] {
            assert!(canonical(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_unknown_unit_is_named() {
        let error = canonical("1GiG").map_err(|error| error.to_string());
        assert_eq!(
            error.as_ref().map_err(|text| &text[..25]),
            Err("has the unknown unit \"GiG"),
        );
    }
}
