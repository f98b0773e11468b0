//! What a name may look like: the rules of apimachinery `pkg/util/validation/validation.go`.

/// Why `name` is no DNS subdomain of RFC 1123 (`IsDNS1123Subdomain`); `None` when it is one.
pub fn subdomain_error(name: &str) -> Option<String> {
    let mut reasons = vec![];
    if !name.split('.').all(is_label) {
        reasons.push("it must consist of lower case letters, digits, `-` and `.`, each part starting and ending with a letter or digit");
    }
    if name.len() > 253 {
        reasons.push("it must be no more than 253 characters");
    }
    joined(&reasons)
}

/// Why `name` is no DNS label of RFC 1123 (`IsDNS1123Label`); `None` when it is one.
pub fn label_error(name: &str) -> Option<String> {
    let mut reasons = vec![];
    if !is_label(name) {
        reasons.push("it must consist of lower case letters, digits and `-`, starting and ending with a letter or digit");
    }
    if name.len() > 63 {
        reasons.push("it must be no more than 63 characters");
    }
    joined(&reasons)
}

/// Why `name` cannot stand in the path of a request (`IsValidPathSegmentName`); RBAC asks for no more than that.
#[must_use]
pub fn path_segment_error(name: &str) -> Option<String> {
    let bad = |character: char| {
        let turns = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        turns || matches!(character, '/' | '%') || character.is_control()
    };
    let reason = match name {
        "" => "it is empty, and `generateName` would give another object each time",
        "." | ".." => "it may not be `.` or `..`",
        _ if name.contains(bad) => {
            "it may not contain `/`, `%`, control characters or such as turn the direction of text"
        }
        _ => return None,
    };
    Some(reason.to_owned())
}

/// Why `name` is no DNS label of RFC 1035 (`IsDNS1035Label`), as Services want it; `None` when it is one.
#[must_use]
pub fn service_error(name: &str) -> Option<String> {
    let begins = name.starts_with(|first: char| first.is_ascii_lowercase());
    let reason = "it must start with a letter";
    label_error(name).or_else(|| (!begins).then(|| reason.to_owned()))
}

/// Why `key` cannot be the key of a label (`IsQualifiedName`); `None` when it can.
#[must_use]
pub fn label_key_error(key: &str) -> Option<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if let Some(reason) = prefix.and_then(subdomain_error) {
        return Some(format!("what stands before the `/` is no domain: {reason}"));
    }
    if name.is_empty() {
        return Some("it has no name".to_owned());
    }
    label_value_error(name)
}

/// Why `value` cannot be the value of a label (`IsValidLabelValue`); `None` when it can.
#[must_use]
pub fn label_value_error(value: &str) -> Option<String> {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let outer = |character: char| character.is_ascii_alphanumeric();
    let mut reasons = vec![];
    let is_framed = value.starts_with(outer) && value.ends_with(outer);
    let is_good = value.is_empty() || (is_framed && value.bytes().all(inner));
    if !is_good {
        reasons.push("it must consist of letters, digits, `-`, `_` and `.`, starting and ending with a letter or digit");
    }
    if value.len() > 63 {
        reasons.push("it must be no more than 63 characters");
    }
    joined(&reasons)
}

fn is_label(text: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
        && bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
}

fn joined(reasons: &[&str]) -> Option<String> {
    (!reasons.is_empty()).then(|| reasons.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subdomains_are_told_from_what_only_looks_like_one() {
        for good in ["a", "a.b", "0-a.b-1", &"a".repeat(253)] {
            assert_eq!(subdomain_error(good), None, "{good}");
        }
        for bad in [
            "",
            "A",
            "a_b",
            "-a",
            "a-",
            "a..b",
            ".a",
            "a.",
            "a.-b",
            "ä",
            &"a".repeat(254),
        ] {
            assert!(subdomain_error(bad).is_some(), "{bad}");
        }
    }
}
