//! Rust source as a flat list of tokens with their lines, by `proc-macro2`. A list is easier to
//! look through than a syntax tree, and sees into the bodies of macros as well. Comments are gone;
//! strings, documentation among them, are opaque literals.

use proc_macro2::{Delimiter, LexError, TokenStream, TokenTree};

/// One token and the line it starts on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) line: usize,
}

/// What a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Word(String),
    Sign(char),
    Literal(String),
    Open(char),
    Close(char),
}

impl Token {
    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(&self.kind, Kind::Word(own) if own == word)
    }

    pub(super) fn is_sign(&self, sign: char) -> bool {
        self.kind == Kind::Sign(sign)
    }

    pub(super) fn opens(&self, bracket: char) -> bool {
        self.kind == Kind::Open(bracket)
    }

    pub(super) fn word(&self) -> Option<&str> {
        match &self.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }
}

/// The tokens of a source file.
pub(super) fn read(text: &str) -> Result<Vec<Token>, LexError> {
    let mut tokens = Vec::new();
    flatten(text.parse()?, &mut tokens);
    Ok(tokens)
}

/// The index of the token that closes what `open` opens.
pub(super) fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Open(_) => depth += 1,
            Kind::Close(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return index;
        }
    }
    tokens.len().saturating_sub(1)
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        let kind = match tree {
            TokenTree::Ident(word) => Kind::Word(word.to_string()),
            TokenTree::Punct(sign) => Kind::Sign(sign.as_char()),
            TokenTree::Literal(literal) => Kind::Literal(literal.to_string()),
            TokenTree::Group(group) => {
                let (open, close) = brackets(group.delimiter());
                tokens.push(Token {
                    kind: Kind::Open(open),
                    line,
                });
                flatten(group.stream(), tokens);
                let line = group.span_close().start().line;
                tokens.push(Token {
                    kind: Kind::Close(close),
                    line,
                });
                continue;
            }
        };
        tokens.push(Token { kind, line });
    }
}

fn brackets(delimiter: Delimiter) -> (char, char) {
    match delimiter {
        Delimiter::Parenthesis => ('(', ')'),
        Delimiter::Bracket => ('[', ']'),
        Delimiter::Brace | Delimiter::None => ('{', '}'),
    }
}

#[cfg(test)]
mod tests {
    use super::{closing, read};

    #[test]
    fn lines_and_brackets_are_kept() {
        let tokens = read("fn f(\n) {\n g![unsafe];\n}\n").unwrap();
        let lines: Vec<_> = tokens.iter().map(|token| token.line).collect();
        assert_eq!(lines, [1, 1, 1, 2, 2, 3, 3, 3, 3, 3, 3, 4]);
        let brace = tokens.iter().position(|token| token.opens('{')).unwrap();
        assert_eq!(closing(&tokens, brace), tokens.len() - 1);
    }

    #[test]
    fn comments_and_strings_hold_no_words() {
        let tokens = read("/// unsafe\n// unsafe\nconst S: &str = \"unsafe\";").unwrap();
        assert!(!tokens.iter().any(|token| token.is_word("unsafe")));
    }
}
