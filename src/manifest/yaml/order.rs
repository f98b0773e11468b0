//! The order in which the keys of a map are written: numbers inside them count as numbers.
//!
//! This is `keyList.Less` of go-yaml v2 (`sorter.go`). That relation is not transitive (`a2 < a10 < a1b < a2`),
//! so the sort here is our own: the standard library's may panic on such a relation.

use std::cmp::Ordering;

use serde_json::{Map, Value};

/// The entries of a map in the order in which go-yaml writes them.
pub(super) fn sorted(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let entries: Vec<_> = map.iter().collect();
    // Byte order, in which the map stands, nearly always is the right one already.
    if entries.is_sorted_by(|a, b| less(a.0, b.0)) {
        entries
    } else {
        merge_sort(entries)
    }
}

fn merge_sort<'v>(mut entries: Vec<(&'v String, &'v Value)>) -> Vec<(&'v String, &'v Value)> {
    let mut width = 1;
    while width < entries.len() {
        let mut merged = Vec::with_capacity(entries.len());
        for pair in entries.chunks(width * 2) {
            let (mut left, mut right) = pair.split_at(width.min(pair.len()));
            while let ([first, left_rest @ ..], [second, right_rest @ ..]) = (left, right) {
                if less(second.0, first.0) {
                    merged.push(*second);
                    right = right_rest;
                } else {
                    merged.push(*first);
                    left = left_rest;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        entries = merged;
        width *= 2;
    }
    entries
}

fn less(a: &str, b: &str) -> bool {
    let (x, y) = (a.as_bytes(), b.as_bytes());
    let common = x.iter().zip(y).take_while(|(p, q)| p == q).count();
    match (x.get(common), y.get(common)) {
        (None, None) => false,
        (None, Some(_)) => true,
        (Some(_), None) => false,
        (Some(p), Some(q)) if p.is_ascii_alphabetic() && q.is_ascii_alphabetic() => p < q,
        (Some(_), Some(_)) => compare_at(a, b, common).is_lt(),
    }
}

/// Compares two keys that are equal up to the byte `common` and differ there.
fn compare_at(a: &str, b: &str, mut common: usize) -> Ordering {
    while !a.is_char_boundary(common) {
        common -= 1;
    }
    let (rest_a, rest_b) = (&a[common..], &b[common..]);
    let (Some(p), Some(q)) = (rest_a.chars().next(), rest_b.chars().next()) else {
        return rest_a.len().cmp(&rest_b.len());
    };
    match (p.is_alphabetic(), q.is_alphabetic()) {
        (true, true) => return p.cmp(&q),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // Once a number has begun with something other than zero, a zero in it no longer is a leading zero.
    let inside_number = a[..common]
        .bytes()
        .rev()
        .take_while(u8::is_ascii_digit)
        .any(|digit| digit != b'0');
    let start = i64::from((p == '0' || q == '0') && inside_number);
    let (number_a, length_a) = leading_number(start, rest_a);
    let (number_b, length_b) = leading_number(start, rest_b);
    number_a
        .cmp(&number_b)
        .then(length_a.cmp(&length_b))
        .then(p.cmp(&q))
}

/// Go lets the number wrap around, and so does this.
fn leading_number(start: i64, text: &str) -> (i64, usize) {
    let digits = text.bytes().take_while(u8::is_ascii_digit);
    digits.fold((start, 0), |(number, length), digit| {
        let number = number
            .wrapping_mul(10)
            .wrapping_add(i64::from(digit - b'0'));
        (number, length + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // The order in which sigs.k8s.io/yaml writes these keys.
    #[test]
    fn numbers_count_as_numbers() {
        let keys = [
            "", "_a", "1", "2", "10", "A", "a", "a-b", "a1", "a2", "a02", "a10", "aB", "ab", "b.9",
            "b.10",
        ];
        for pair in keys.windows(2) {
            assert!(less(pair[0], pair[1]), "{pair:?}");
            assert!(!less(pair[1], pair[0]), "{pair:?}");
        }
    }

    #[test]
    fn a_cycle_in_the_relation_is_survived() {
        let map: Map<String, Value> = (0..400)
            .map(|n| (format!("a{}{}", n % 23, ["", "b", "0"][n % 3]), Value::Null))
            .collect();
        assert_eq!(sorted(&map).len(), map.len());
    }
}
