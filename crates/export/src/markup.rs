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

/// The same in an attribute of XML, whose readers make a space of each tab and line break that is not escaped (§3.3.3).
pub(crate) struct Attribute<'a>(pub(crate) &'a str);

impl fmt::Display for Attribute<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(['\t', '\n', '\r']) {
            let (before, behind) = rest.split_at(at);
            let escaped = match behind.as_bytes().first() {
                Some(b'\t') => "&#9;",
                Some(b'\n') => "&#10;",
                _ => "&#13;",
            };
            write!(out, "{}{escaped}", Text(before))?;
            rest = &behind[1..];
        }
        write!(out, "{}", Text(rest))
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
    fn tabs_and_line_breaks_of_a_name_come_through_a_reader_of_xml() {
        let name = "a\tb\nc\rd<\u{b}";
        let text = format!("<a name=\"{}\"/>", Attribute(name));
        assert_eq!(text, "<a name=\"a&#9;b&#10;c&#13;d&lt;\u{fffd}\"/>");
    }

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
