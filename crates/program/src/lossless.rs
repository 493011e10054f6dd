//! Paths as text that loses nothing. A path is any bytes; line tables, JSON and reports hold text.
//!
//! A byte that is no UTF-8 becomes a letter at the end of the last private plane, U+10FF00 plus the byte, and
//! so does each byte of such a letter that was in the path. Every other letter stays. So [`path_of`] gives
//! back what [`text_of`] was given, to the byte.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

const FIRST: u32 = 0x10_ff00;

/// The text of a path.
#[must_use]
pub fn text_of(path: &Path) -> String {
    text_of_bytes(path.as_os_str().as_bytes())
}

/// The text of a path's bytes.
#[must_use]
pub fn text_of_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match byte_of(letter) {
                None => text.push(letter),
                Some(_) => text.extend(letter.encode_utf8(&mut [0; 4]).bytes().map(letter_of)),
            }
        }
        text.extend(chunk.invalid().iter().copied().map(letter_of));
    }
    text
}

/// The path of a text.
#[must_use]
pub fn path_of(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    for letter in text.chars() {
        match byte_of(letter) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend(letter.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    OsString::from_vec(bytes).into()
}

/// The byte that a letter stands for. Bytes below 0x80 are always UTF-8.
fn byte_of(letter: char) -> Option<u8> {
    let byte = u32::from(letter).checked_sub(FIRST)?;
    u8::try_from(byte).ok().filter(|byte| *byte >= 0x80)
}

fn letter_of(byte: u8) -> char {
    char::from_u32(FIRST + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn comes_back(bytes: &[u8]) {
        let text = text_of_bytes(bytes);
        assert_eq!(path_of(&text).as_os_str().as_bytes(), bytes, "{text:?}");
    }

    #[test]
    fn what_is_utf_8_stays() {
        let text = "/src/grün/\u{10ff7f}.c";
        assert_eq!(text_of_bytes(text.as_bytes()), text);
        comes_back(b"/src/nu-\xff/\xc3.c");
        comes_back("letters that stand for bytes: \u{10ff80}\u{10ffff}".as_bytes());
    }

    proptest! {
        #[test]
        fn paths_come_back_to_the_byte(bytes: Vec<u8>, letters: String) {
            comes_back(&bytes);
            comes_back(letters.as_bytes());
        }
    }
}
