//! A part of a page that a program writes: what stands between `<!-- name -->` and
//! `<!-- /name -->` is replaced, the rest is left to people.

use anyhow::{Context, Result};
use std::path::Path;

/// Replaces the named part of a page on disk.
pub(crate) fn rewrite(path: &Path, name: &str, content: &str) -> Result<()> {
    let page = std::fs::read_to_string(path);
    let page = page.with_context(|| format!("cannot read {}", path.display()))?;
    let page = replaced(&page, name, content);
    let page = page.with_context(|| format!("{} has no part <!-- {name} -->", path.display()))?;
    std::fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))
}

/// Replaces the named part of a page on disk by what `made` makes of it.
pub(crate) fn remake(path: &Path, name: &str, made: impl FnOnce(&str) -> String) -> Result<()> {
    let page = std::fs::read_to_string(path);
    let page = page.with_context(|| format!("cannot read {}", path.display()))?;
    let before = split(&page, name).map(|[_, part, _]| part);
    rewrite(path, name, &made(before.unwrap_or_default()))
}

fn replaced(page: &str, name: &str, content: &str) -> Option<String> {
    let [before, _, after] = split(page, name)?;
    Some(format!("{before}\n{}\n{after}", content.trim_end()))
}

/// What stands up to the named part, in it, and behind it.
fn split<'p>(page: &'p str, name: &str) -> Option<[&'p str; 3]> {
    let (open, close) = (format!("<!-- {name} -->"), format!("<!-- /{name} -->"));
    let start = page.find(&open)? + open.len();
    let end = start + page[start..].find(&close)?;
    Some([&page[..start], &page[start..end], &page[end..]])
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn only_the_named_part_changes() {
        let page = "a\n<!-- x -->\nold\n<!-- /x -->\nb <!-- y --><!-- /y -->\n";
        let expected = "a\n<!-- x -->\nnew\n<!-- /x -->\nb <!-- y --><!-- /y -->\n";
        assert_eq!(replaced(page, "x", "new\n").as_deref(), Some(expected));
        assert_eq!(replaced(expected, "x", "new").as_deref(), Some(expected));
    }

    #[test]
    fn a_page_without_the_part_is_refused() {
        assert_eq!(replaced("a\n", "x", "new"), None);
        assert_eq!(replaced("<!-- /x --> <!-- x -->", "x", "new"), None);
    }
}
