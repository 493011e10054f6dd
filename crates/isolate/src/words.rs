//! What a predicate says, in words: of a branch, whether its condition held, where the lines to which it leads tell.

use tomo_export::predicates::{Line, Site, Sources, case_name};
use tomo_wire::predicates::{Kind, Width};

/// A predicate in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// Where it is: a line of the source, or an address.
    pub place: String,
    /// What was so: `` `i < n` was false ``.
    pub what: String,
    /// How that is known, where it is not what was observed itself.
    pub inferred: Option<String>,
}

/// The words for one of a site's predicates.
pub fn words(site: &Site, case: u8, sources: &mut Sources) -> Words {
    let place = match &site.line {
        Some(line) => line.short(),
        None => format!("{} at {:#x}", site.function, site.address.0),
    };
    let text = site.line.as_ref().and_then(|line| sources.text(line));
    if site.kind == Kind::Result {
        let callee = site.callee.as_deref();
        let who = callee.map_or_else(|| "a call".to_owned(), |callee| format!("`{callee}()`"));
        let what = format!("{who} returned {}{}", sign(case), read_as(site));
        return Words {
            place,
            what,
            inferred: None,
        };
    }
    let condition = text.as_deref().and_then(condition);
    let held = condition.and_then(|_| held(site, case, sources));
    if let (Some(condition), Some(held)) = (condition, held) {
        let lead = |case: u8| site.leads.get(usize::from(case)).and_then(Option::as_ref);
        let inferred = lead(case).zip(lead(1 - case)).map(|(to, other)| {
            format!("it went on at line {}, not at line {}", to.line, other.line)
        });
        return Words {
            place,
            what: format!("`{condition}` was {held}"),
            inferred,
        };
    }
    let lead = site.leads.get(usize::from(case)).cloned().flatten();
    let to = lead.map_or_else(String::new, |lead| format!(", to line {}", lead.line));
    let what = match text {
        Some(text) => format!("the branch in `{text}`"),
        None => "the branch".into(),
    };
    Words {
        place,
        what: format!(
            "{what} was {}{to}",
            case_name(Kind::Branch, case).replace('-', " ")
        ),
        inferred: None,
    }
}

fn sign(case: u8) -> &'static str {
    match case {
        0 => "a negative value",
        1 => "zero",
        _ => "a positive value",
    }
}

/// How the sign was read, where nobody is known to look at the result: a negative `int` is a positive number of 64 bits.
fn read_as(site: &Site) -> String {
    match site.width {
        Width::Whole => format!(", read as {} bits", site.bits),
        _ => String::new(),
    }
}

/// The condition of a line that begins with `if`, `while` or `for`, if all of it is there.
fn condition(text: &str) -> Option<&str> {
    let text = text.trim_start_matches(['}', ' ']);
    let text = text.strip_prefix("else ").unwrap_or(text);
    let (word, rest) = text.split_at(text.find(|c: char| !c.is_ascii_alphabetic())?);
    let inside = match rest.trim_start().strip_prefix('(') {
        Some(rest) => closed(rest)?,
        // Rust has no parentheses there.
        None => rest.trim().strip_suffix('{')?.trim(),
    };
    match word {
        "if" | "while" => Some(inside.trim()),
        "for" => inside.split(';').nth(1).map(str::trim),
        _ => None,
    }
    .filter(|condition| !condition.is_empty())
}

/// What comes before the parenthesis that closes.
fn closed(text: &str) -> Option<&str> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return text.get(..at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Whether the condition held, if the lines tell: one way leads into what is done if it holds, the other behind that.
///
/// Where neither does, nothing is told: of `if (c) break;` both ways lead elsewhere, and which of them is nearer says
/// nothing.
fn held(site: &Site, case: u8, sources: &mut Sources) -> Option<bool> {
    let here = site.line.as_ref()?;
    let lead = |case: usize| site.leads.get(case).and_then(Option::as_ref);
    let (this, other) = (lead(case.into())?, lead(usize::from(1 - case))?);
    let is_behind = |lead: &Line| lead.file == here.file && lead.line > here.line;
    if !is_behind(this) || !is_behind(other) {
        return None;
    }
    let farthest = this.line.max(other.line);
    let end = body_end(here, farthest, sources);
    let is_inside = |lead: &Line| lead.line < end;
    (is_inside(this) != is_inside(other)).then(|| is_inside(this))
}

/// The first line behind a condition that does not belong to what is done if it holds: the first that is not further
/// to the right. Lone opening braces, empty lines and those of the preprocessor do not count. Not beyond `farthest`.
fn body_end(here: &Line, farthest: u32, sources: &mut Sources) -> u32 {
    let text = |line: u32, sources: &mut Sources| {
        let text = sources.line(&here.file, line);
        text.map_or_else(String::new, |text| text.into_owned())
    };
    let own = indentation(&text(here.line, sources));
    let counts = |text: &str| !matches!(text.trim(), "" | "{") && !text.starts_with('#');
    let mut behind = here.line + 1..=farthest;
    let end = behind.find(|line| {
        let text = text(*line, sources);
        counts(&text) && indentation(&text) <= own
    });
    end.unwrap_or(farthest.saturating_add(1))
}

/// How far to the right a line begins; a tab reaches to the next multiple of eight.
fn indentation(text: &str) -> usize {
    let space = text.chars().take_while(|c| matches!(c, ' ' | '\t'));
    space.fold(0, |column, c| match c {
        '\t' => column / 8 * 8 + 8,
        _ => column + 1,
    })
}

#[cfg(test)]
mod tests {
    use tomo_export::predicates::{Line, Site, Sources};
    use tomo_program::Address;
    use tomo_wire::predicates::{Kind, Width};

    use super::{condition, words};

    fn site(kind: Kind, line: Line, leads: [u32; 2]) -> Site {
        let at = |number| Line {
            line: number,
            ..line.clone()
        };
        Site {
            kind,
            address: Address(0),
            block: Address(0),
            function: "f".into(),
            ways: [Address(0); 2],
            leads: leads.map(|number| Some(at(number))),
            line: Some(line),
            callee: Some("g".into()),
            bits: 64,
            width: Width::None,
            first: 0,
            told: Vec::new(),
        }
    }

    /// What is said of a branch in the first line, of which the way that was taken leads to the first of `leads`.
    fn said(text: &str, leads: [u32; 2]) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.c");
        std::fs::write(&path, text).expect("written");
        let file = path.to_string_lossy().into_owned();
        let site = site(Kind::Branch, Line { file, line: 1 }, leads);
        words(&site, 0, &mut Sources::default()).what
    }

    #[test]
    fn a_condition_held_where_the_way_leads_into_what_is_done_then() {
        for text in [
            "  if (c) {\n    a();\n  }\n  b();\n",
            "  if (c)\n    a();\n\n  b();\n",
            "\tif (c)\n\t    a();\n  else\n        b();\n",
        ] {
            assert_eq!(said(text, [2, 4]), "`c` was true", "{text}");
            assert_eq!(said(text, [4, 2]), "`c` was false", "{text}");
        }
        let text = "if (c)\n{\n#ifdef A\n  a();\n#endif\n  b();\n}\nd();\n";
        assert_eq!(said(text, [6, 8]), "`c` was true");
    }

    #[test]
    fn of_a_jump_that_has_no_code_nothing_is_told() {
        for text in [
            "  if (c) break;\n  a();\n }\n b();\n",
            "  if (c)\n   break;\n  a();\n }\n b();\n",
            "  if (c)\n   goto out;\n  a();\n  a();\n out:\n  b();\n",
        ] {
            let last = text.lines().count() as u32;
            for leads in [[last - 2, last], [last, last - 2]] {
                let said = said(text, leads);
                assert!(said.starts_with("the branch in `if (c)"), "{said}");
            }
        }
        // Both ways lead into it.
        let said = said("if (c) {\n  a();\n  b();\n}\n", [2, 3]);
        assert!(said.starts_with("the branch in "), "{said}");
    }

    #[test]
    fn how_the_sign_of_a_result_was_read_is_said_where_nobody_looks_at_it() {
        let line = Line {
            file: "/nowhere/a.c".into(),
            line: 1,
        };
        let mut site = site(Kind::Result, line, [1, 1]);
        for (width, said) in [
            (Width::Used, "`g()` returned a positive value"),
            (Width::Elsewhere, "`g()` returned a positive value"),
            (
                Width::Whole,
                "`g()` returned a positive value, read as 64 bits",
            ),
        ] {
            site.width = width;
            assert_eq!(words(&site, 2, &mut Sources::default()).what, said);
        }
    }

    #[test]
    fn conditions_are_taken_out_of_their_lines() {
        for (text, found) in [
            ("if (i < n) {", Some("i < n")),
            ("} else if (f(a) && b)", Some("f(a) && b")),
            ("while (*p++) ;", Some("*p++")),
            ("for (i = 0; i < n; i++)", Some("i < n")),
            ("if x.is_none() {", Some("x.is_none()")),
            ("if (a &&", None),
            ("return a ? b : c;", None),
            ("for (;;) {", None),
        ] {
            assert_eq!(condition(text), found, "{text}");
        }
    }
}
