//! Text in XML and HTML: everything from outside passes through here.

use std::fmt;

/// Shows a text so that it is nothing but text, in content and in quoted attributes. What XML 1.0
/// (§2.2) has no place for, escaped or not, becomes U+FFFD; so does what would turn the text around it, since a
/// source could hide behind that what it does.
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(|letter: char| replacement(letter).is_some()) {
            let (plain, special) = rest.split_at(at);
            out.write_str(plain)?;
            let mut letters = special.chars();
            if let Some(text) = letters.next().and_then(replacement) {
                out.write_str(text)?;
            }
            rest = letters.as_str();
        }
        out.write_str(rest)
    }
}

/// A text as it is written in HTML.
#[must_use]
pub fn escaped(text: &str) -> String {
    Text(text).to_string()
}

fn replacement(letter: char) -> Option<&'static str> {
    Some(match letter {
        '&' => "&amp;",
        '<' => "&lt;",
        '>' => "&gt;",
        '"' => "&quot;",
        '\'' => "&#39;",
        '\t' | '\n' => return None,
        '\0'..='\u{1f}' | '\u{7f}' | '\u{fffe}' | '\u{ffff}' => "\u{fffd}",
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => "\u{fffd}",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_its_quotes() {
        assert_eq!(escaped("a\u{202e}b\u{2066}"), "a\u{fffd}b\u{fffd}");
        let text = Text("<a href=\"x\" onclick='y'>&amp;\0\u{b}\u{ffff}ä\t</a>").to_string();
        assert_eq!(
            text,
            "&lt;a href=&quot;x&quot; onclick=&#39;y&#39;&gt;&amp;amp;\u{fffd}\u{fffd}\u{fffd}ä\t&lt;/a&gt;"
        );
    }
}
