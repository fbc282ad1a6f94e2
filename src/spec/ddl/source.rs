//! One statement of an SQL text, its tokens and the places they stand at.

use sqlparser::ast::Statement as Ast;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Word};

use super::identifier::{fold_word, identifier_problem};
use super::split::split_statements;

/// Something wrong inside an SQL text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlFinding {
    /// Line inside the SQL, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do instead.
    pub hint: Option<String>,
}

/// A place inside an SQL text, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Place {
    /// The place of a byte offset.
    fn of_offset(sql: &str, offset: usize) -> Self {
        let before = &sql[..offset];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        Self { line, column: before[line_start..].chars().count() + 1 }
    }

    pub(super) fn finding(self, message: impl Into<String>, hint: impl Into<String>) -> SqlFinding {
        let hint = hint.into();
        let hint = (!hint.is_empty()).then_some(hint);
        SqlFinding { line: self.line, column: self.column, message: message.into(), hint }
    }
}

/// One statement with its tokens (white space and comments left out).
pub(super) struct Source {
    /// The statement as written.
    pub(super) text: String,
    /// Where it begins.
    pub(super) start: Place,
    tokens: Vec<TokenWithSpan>,
}

impl Source {
    /// The statements of `sql`; what cannot even be cut into tokens, and names the server would cut,
    /// become findings.
    pub(super) fn read(sql: &str, findings: &mut Vec<SqlFinding>) -> Vec<Self> {
        if let Some(offset) = sql.find('\0') {
            findings.push(Place::of_offset(sql, offset).finding("the SQL holds a NUL character", ""));
            return Vec::new();
        }
        let mut sources = Vec::new();
        for (offset, text) in split_statements(sql) {
            let start = Place::of_offset(sql, offset);
            match Tokenizer::new(&PostgreSqlDialect {}, &text).tokenize_with_location() {
                Ok(mut tokens) => {
                    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
                    let source = Self { text, start, tokens };
                    findings.extend(source.long_names());
                    sources.push(source);
                }
                Err(error) => {
                    let place = inside(start, error.location);
                    findings.push(place.finding(format!("the SQL cannot be read: {}", error.message), ""));
                }
            }
        }
        sources
    }

    fn long_names(&self) -> impl Iterator<Item = SqlFinding> {
        self.tokens.iter().filter_map(|token| match &token.token {
            Token::Word(word) => identifier_problem(&word.value)
                .map(|problem| self.place(token.span.start).finding(problem, "use a shorter name")),
            _ => None,
        })
    }

    /// The place of a location inside this statement; the statement's start for an unknown one.
    pub(super) fn place(&self, location: Location) -> Place {
        inside(self.start, location)
    }

    /// Token number `index`.
    pub(super) fn token(&self, index: usize) -> Option<&Token> {
        self.tokens.get(index).map(|token| &token.token)
    }

    /// Place of token number `index`, or of the statement when there are not so many.
    pub(super) fn token_place(&self, index: usize) -> Place {
        self.tokens.get(index).map_or(self.start, |token| self.place(token.span.start))
    }

    /// Token `index` as a word.
    pub(super) fn word(&self, index: usize) -> Option<&Word> {
        match self.token(index) {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    /// Whether token `index` is the unquoted word `keyword` (lower case).
    pub(super) fn is(&self, index: usize, keyword: &str) -> bool {
        self.word(index)
            .is_some_and(|word| word.quote_style.is_none() && word.value.eq_ignore_ascii_case(keyword))
    }

    /// Whether the unquoted words `keywords` stand at token `index`.
    pub(super) fn are(&self, index: usize, keywords: &[&str]) -> bool {
        keywords.iter().enumerate().all(|(step, keyword)| self.is(index + step, keyword))
    }

    /// The first word in capitals, for messages and for telling statements apart.
    pub(super) fn verb(&self) -> String {
        self.word(0).map_or_else(String::new, |word| word.value.to_ascii_uppercase())
    }

    /// The possibly qualified name at token `index`: its last part folded, whether it is qualified, and the
    /// index of the token after it.
    pub(super) fn name(&self, index: usize) -> Option<(String, bool, usize)> {
        let mut last = self.word(index)?;
        let mut next = index + 1;
        while self.token(next) == Some(&Token::Period) {
            last = self.word(next + 1)?;
            next += 2;
        }
        Some((fold_word(&last.value, last.quote_style), next > index + 1, next))
    }

    /// Indexes of the tokens outside of parentheses, from token `from` on.
    pub(super) fn top_level(&self, from: usize) -> impl Iterator<Item = usize> {
        let mut depth = 0_usize;
        (from..self.tokens.len()).filter(move |index| {
            match self.tokens[*index].token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ => return depth == 0,
            }
            false
        })
    }

    /// The index after the parenthesis that closes the one at token `open`; `None` when none opens or closes.
    pub(super) fn closed(&self, open: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for (index, token) in self.tokens.iter().enumerate().skip(open) {
            match token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return (index > open).then_some(index + 1);
            }
        }
        None
    }

    /// The statement as sqlparser understands it.
    pub(super) fn parse(&self) -> Result<Ast, SqlFinding> {
        self.parse_until(self.tokens.len())
    }

    /// The first `end` tokens of the statement as sqlparser understands them.
    pub(super) fn parse_until(&self, end: usize) -> Result<Ast, SqlFinding> {
        let dialect = PostgreSqlDialect {};
        let mut parser = Parser::new(&dialect).with_tokens_with_locations(self.tokens[..end].to_vec());
        let mut statements = parser.parse_statements().map_err(|error| self.parse_finding(&error))?;
        statements.pop().ok_or_else(|| self.start.finding("the statement is empty", ""))
    }

    fn parse_finding(&self, error: &ParserError) -> SqlFinding {
        let text = match error {
            ParserError::TokenizerError(text) | ParserError::ParserError(text) => text.as_str(),
            ParserError::RecursionLimitExceeded => "it is nested too deeply",
        };
        // The location is part of the text; without one the statement ended too early.
        let (message, place) = match text.split_once(" at Line: ") {
            Some((message, location)) => (message, location_of(location).map(|at| self.place(at))),
            None => (text, None),
        };
        let last = self.tokens.last().map(|token| self.place(token.span.end));
        let place = place.or(last).unwrap_or(self.start);
        place.finding(format!("this SQL is not understood: {message}"), "")
    }
}

/// `3, Column: 14` as a location.
fn location_of(text: &str) -> Option<Location> {
    let (line, column) = text.split_once(", Column: ")?;
    Some(Location { line: line.parse().ok()?, column: column.parse().ok()? })
}

/// The place in the whole text of a location inside a statement that begins at `start`.
fn inside(start: Place, location: Location) -> Place {
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    match (number(location.line), number(location.column)) {
        (0, _) => start,
        (1, column) => Place { line: start.line, column: start.column + column.max(1) - 1 },
        (line, column) => Place { line: start.line + line - 1, column: column.max(1) },
    }
}
