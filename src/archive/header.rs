//! The fields of a header of a tar archive, read so that no program reads them otherwise.

use std::io;

use tar::Header;

/// Checks a header: its sum, and that all programs read its fields alike.
pub(super) fn check(header: &Header) -> io::Result<()> {
    let bytes = header.as_bytes();
    let field = |start: usize, end: usize| bytes.get(start..end).unwrap_or_default();
    let sum = bytes.iter().map(|byte| u32::from(*byte)).sum::<u32>()
        - field(148, 156)
            .iter()
            .map(|byte| u32::from(*byte))
            .sum::<u32>()
        + 8 * u32::from(b' ');
    if number(field(148, 156)) != Some(sum.into()) {
        return Err(io::Error::other(
            "it is not a tar archive, or damaged: a header's checksum is wrong",
        ));
    }
    // Mode, owner, group and time do not matter here, and programs differ in what they do when these are no numbers.
    let numbers = [(100, 108), (108, 116), (116, 124), (136, 148)];
    // The old format ends here; others go on with a device, and GNU's with times where others have the start of a path.
    let device = [(329, 337), (337, 345)];
    let device = if field(257, 262) == b"ustar" {
        &device[..]
    } else {
        &[]
    };
    let ustar = field(257, 263) == b"ustar\0";
    let unknown = ustar && (field(263, 265) != b"00" || field(508, 512) == b"tar\0")
        || field(257, 263) == b"ustar " && field(263, 265) != b" \0";
    let gnu_times = header
        .as_gnu()
        .map_or(&[][..], |_| &[(345, 357), (357, 369)]);
    let is_number = |(start, end): &(usize, usize)| match field(*start, *end) {
        // Larger numbers than digits can tell are in binary; no program takes more than eight bytes of it.
        [0x80, 0, 0, 0, rest @ ..] | [0xff, 0xff, 0xff, 0xff, rest @ ..] if rest.len() == 8 => true,
        [0x80 | 0xff, rest @ ..] => rest.len() < 8,
        digits => number(digits).is_some(),
    };
    if unknown || !numbers.iter().chain(device).chain(gnu_times).all(is_number) {
        return Err(io::Error::other("a header in it is of no known format"));
    }
    Ok(())
}

/// The byte that tells what an entry is; to the `tar` crate two of them are one.
pub(super) fn kind_of(header: &Header) -> u8 {
    header.as_old().linkflag[0]
}

/// The size that a header tells.
pub(super) fn size_of(header: &Header) -> io::Result<u64> {
    let field = header.as_bytes().get(124..136).unwrap_or_default();
    let size = match field {
        [0x80, 0, 0, 0, large @ ..] => large.try_into().ok().map(u64::from_be_bytes),
        _ => number(field),
    };
    // No position in the archive may be over what fits.
    size.filter(|size| *size < 1 << 62)
        .ok_or_else(|| io::Error::other("a header in it has a size that is no number"))
}

/// Octal digits, with spaces before and spaces and zero bytes after them; none at all are zero.
fn number(field: &[u8]) -> Option<u64> {
    let start = field.iter().take_while(|byte| **byte == b' ').count();
    let digits = field.get(start..).unwrap_or_default();
    let end = digits.iter().position(|byte| !byte.is_ascii_digit());
    let (digits, rest) = digits.split_at(end.unwrap_or(digits.len()));
    let is_padding = rest.iter().all(|byte| matches!(byte, b' ' | 0));
    let add = |sum: u64, digit: &u8| {
        let digit = Some(u64::from(digit - b'0')).filter(|digit| *digit < 8)?;
        sum.checked_mul(8)?.checked_add(digit)
    };
    is_padding.then(|| digits.iter().try_fold(0, add)).flatten()
}
