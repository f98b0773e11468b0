//! Which texts go-yaml v2 takes for a point in time.
//!
//! A timestamp is read as text, but written in quotes, so the writer has to know one. The rules are those of
//! `parseTimestamp` (go-yaml v2 `resolve.go`) with Go's `time.Parse`; no time is computed.

/// Whether go-yaml resolves the plain scalar `text` as a timestamp.
pub(super) fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    let year_digits = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    if year_digits != 4 || bytes.get(4) != Some(&b'-') {
        return false;
    }
    let Ok(year) = text[..4].parse::<u32>() else {
        return false;
    };
    let mut rest = Rest(&bytes[5..]);
    let Some(month) = rest.number(1, 12) else {
        return false;
    };
    if !rest.take(b'-') || rest.number(1, days_in(month, year)).is_none() {
        return false;
    }
    match rest.0 {
        [] => true,
        [b'T' | b't', ..] => rest.skip_one().clock() && rest.zone(),
        [b' ', ..] => rest.skip_one().clock() && rest.0.is_empty(),
        _ => false,
    }
}

fn days_in(month: u32, year: u32) -> u32 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// What is still to be looked at.
struct Rest<'t>(&'t [u8]);

impl Rest<'_> {
    fn skip_one(&mut self) -> &mut Self {
        self.0 = self.0.get(1..).unwrap_or_default();
        self
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.0.first() == Some(&byte);
        if found {
            self.skip_one();
        }
        found
    }

    /// One or two digits between `low` and `high`.
    fn number(&mut self, low: u32, high: u32) -> Option<u32> {
        let mut number = None;
        for _ in 0..2 {
            let Some(digit) = self.0.first().filter(|b| b.is_ascii_digit()) else {
                break;
            };
            number = Some(number.unwrap_or(0) * 10 + u32::from(digit - b'0'));
            self.skip_one();
        }
        number.filter(|n| (low..=high).contains(n))
    }

    /// Hours, minutes, seconds and, after a dot or a comma, a fraction of any length.
    fn clock(&mut self) -> bool {
        let whole = self.number(0, 23).is_some()
            && self.take(b':')
            && self.number(0, 59).is_some()
            && self.take(b':')
            && self.number(0, 59).is_some();
        if whole && let [b'.' | b',', b'0'..=b'9', ..] = self.0 {
            self.skip_one();
            while self.0.first().is_some_and(u8::is_ascii_digit) {
                self.skip_one();
            }
        }
        whole
    }

    /// `Z`, or a signed offset of two digits each; Go tolerates offsets of 24 hours and of 60 minutes.
    fn zone(&mut self) -> bool {
        match *self.0 {
            [b'Z'] => true,
            [b'+' | b'-', h1, h2, b':', m1, m2] => {
                let two = |a: u8, b: u8| {
                    (a.is_ascii_digit() && b.is_ascii_digit())
                        .then(|| u32::from(a - b'0') * 10 + u32::from(b - b'0'))
                };
                two(h1, h2).is_some_and(|h| h <= 24) && two(m1, m2).is_some_and(|m| m <= 60)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_timestamp;

    // What Go's yaml.Marshal puts in quotes, and what it does not.
    #[test]
    fn knows_the_formats_that_go_knows() {
        for text in [
            "2001-01-01",
            "2001-1-2",
            "2024-02-29",
            "2001-12-14t21:59:43.10Z",
            "2001-12-14T1:2:3+24:60",
            "2001-12-14 21:59:43,5",
        ] {
            assert!(is_timestamp(text), "{text}");
        }
        for text in [
            "2001",
            "2001-",
            "2001-13-01",
            "2023-02-29",
            "2001-00-10",
            "2001-12-14 21:59:43.10 -5",
            "2001-12-14T21:59:43",
            "2001-12-14T21:59:43+2:00",
            "2001-12-14 24:00:00",
            "2001-01-01x",
            "20011-01-01",
        ] {
            assert!(!is_timestamp(text), "{text}");
        }
    }
}
