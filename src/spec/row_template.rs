//! `template:` of a generator: text with functions of the row number.
//!
//! `{{ row }}` is not rendered by the template engine but kept as arithmetic that is evaluated for every
//! row: `+`, `-`, `*`, `//`, `%`, whole numbers, parentheses and `| pad(8)`. Everything a row can be is
//! `(row // divide) % modulo * multiply + add`; what does not have this form is refused.

use crate::model::TemplatePart;

/// A piece of a template value: text for the engine, or a function of the row.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Rendered once per treatment (may contain other `{{ }}`); with its byte offset.
    Engine(usize, String),
    /// Evaluated for every row.
    Row(TemplatePart),
}

/// Why an expression with `row` is refused, and where it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowProblem {
    /// Byte offset of the expression.
    pub offset: usize,
    /// The expression as written.
    pub expression: String,
    /// What is wrong with it.
    pub message: String,
}

/// Cuts a template into pieces.
///
/// # Errors
/// The first expression that uses `row` in a form that is not possible.
pub fn split(text: &str) -> Result<Vec<Piece>, RowProblem> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut from = 0;
    let mut at = 0;
    while let Some(open) = text[at..].find("{{").map(|open| at + open) {
        let Some(close) = text[open..].find("}}").map(|close| open + close) else { break };
        let expression = text[open + 2..close].trim();
        at = close + 2;
        if !uses_row(expression) {
            continue;
        }
        if text[from..open].contains("{%") {
            return Err(problem(open, expression, "`row` cannot be used together with `{% %}`"));
        }
        if from < open {
            pieces.push(Piece::Engine(from, text[from..open].to_owned()));
        }
        let part = parse(expression).map_err(|message| problem(open, expression, &message))?;
        pieces.push(Piece::Row(part));
        from = at;
    }
    if from < text.len() {
        pieces.push(Piece::Engine(from, text[from..].to_owned()));
    }
    Ok(pieces)
}

fn problem(offset: usize, expression: &str, message: &str) -> RowProblem {
    RowProblem { offset, expression: expression.to_owned(), message: message.to_owned() }
}

fn uses_row(expression: &str) -> bool {
    tokens(expression).is_ok_and(|tokens| tokens.contains(&Token::Word("row".to_owned())))
        || expression.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == "row")
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(u64),
    Word(String),
    Sign(&'static str),
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    const SIGNS: [&str; 8] = ["//", "+", "-", "*", "%", "(", ")", "|"];
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push(Token::Sign(sign));
            rest = rest[sign.len()..].trim_start();
            continue;
        }
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let word = &rest[..end];
        if end == 0 {
            return Err(format!("`{first}` is not possible with `row`"));
        }
        tokens.push(if first.is_ascii_digit() {
            Token::Number(
                word.replace('_', "").parse().map_err(|_| format!("`{word}` is not a whole number"))?,
            )
        } else {
            Token::Word(word.to_owned())
        });
        rest = rest[end..].trim_start();
    }
    Ok(tokens)
}

/// `(row / divide) % modulo * multiply + add`, or a plain number.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Number(i64),
    Row { divide: u64, modulo: u64, multiply: i64, add: i64 },
}

fn parse(expression: &str) -> Result<TemplatePart, String> {
    let mut reader = Tokens { tokens: tokens(expression)?, next: 0 };
    let form = reader.sum()?;
    let pad = if reader.take("|") { reader.pad()? } else { 0 };
    if let Some(token) = reader.tokens.get(reader.next) {
        return Err(format!("{} is not possible here", name(token)));
    }
    match form {
        Form::Row { divide, modulo, multiply, add } => {
            Ok(TemplatePart::Row { divide, modulo, multiply, add, pad })
        }
        Form::Number(_) => Err("`row` does not matter here".to_owned()),
    }
}

fn name(token: &Token) -> String {
    match token {
        Token::Number(number) => format!("`{number}`"),
        Token::Word(word) => format!("`{word}`"),
        Token::Sign(sign) => format!("`{sign}`"),
    }
}

struct Tokens {
    tokens: Vec<Token>,
    next: usize,
}

impl Tokens {
    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.tokens.get(self.next), Some(Token::Sign(next)) if *next == sign);
        self.next += usize::from(found);
        found
    }

    fn sum(&mut self) -> Result<Form, String> {
        let mut left = self.product()?;
        loop {
            let sign = if self.take("+") {
                1
            } else if self.take("-") {
                -1
            } else {
                return Ok(left);
            };
            let right = self.product()?;
            left = add(left, right, sign).ok_or_else(too_large)??;
        }
    }

    fn product(&mut self) -> Result<Form, String> {
        let mut left = self.atom()?;
        loop {
            let operator = ["*", "//", "%"].into_iter().find(|sign| self.take(sign));
            let Some(operator) = operator else { return Ok(left) };
            let right = self.atom()?;
            left = match operator {
                "*" => multiply(left, right)?,
                "//" => divide(left, right)?,
                _ => modulo(left, right)?,
            };
        }
    }

    fn atom(&mut self) -> Result<Form, String> {
        if self.take("(") {
            let inner = self.sum()?;
            return if self.take(")") { Ok(inner) } else { Err("a `)` is missing".to_owned()) };
        }
        let token = self.tokens.get(self.next).cloned();
        self.next += 1;
        match token {
            Some(Token::Number(number)) => i64::try_from(number).map(Form::Number).map_err(|_| too_large()),
            Some(Token::Word(word)) if word == "row" => {
                Ok(Form::Row { divide: 1, modulo: 0, multiply: 1, add: 0 })
            }
            Some(other) => Err(format!("{} is not possible together with `row`", name(&other))),
            None => Err("the expression ends too early".to_owned()),
        }
    }

    fn pad(&mut self) -> Result<u8, String> {
        let expected = "the only filter for `row` is `| pad(8)`, with 1 to 30 digits";
        match self.tokens.get(self.next..self.next + 4) {
            Some([Token::Word(word), Token::Sign("("), Token::Number(digits @ 1..=30), Token::Sign(")")])
                if word == "pad" =>
            {
                self.next += 4;
                u8::try_from(*digits).map_err(|_| expected.to_owned())
            }
            _ => Err(expected.to_owned()),
        }
    }
}

fn too_large() -> String {
    "a number is too large".to_owned()
}

fn add(left: Form, right: Form, sign: i64) -> Option<Result<Form, String>> {
    Some(Ok(match (left, right) {
        (Form::Number(a), Form::Number(b)) => Form::Number(a.checked_add(b.checked_mul(sign)?)?),
        (Form::Row { divide, modulo, multiply, add }, Form::Number(b)) => {
            Form::Row { divide, modulo, multiply, add: add.checked_add(b.checked_mul(sign)?)? }
        }
        (Form::Number(a), Form::Row { divide, modulo, multiply, add }) => Form::Row {
            divide,
            modulo,
            multiply: multiply.checked_mul(sign)?,
            add: a.checked_add(add.checked_mul(sign)?)?,
        },
        _ => return Some(Err("`row` can stand only once in an expression".to_owned())),
    }))
}

fn multiply(left: Form, right: Form) -> Result<Form, String> {
    match (left, right) {
        (Form::Number(a), Form::Number(b)) => a.checked_mul(b).map(Form::Number).ok_or_else(too_large),
        (Form::Row { divide, modulo, multiply, add }, Form::Number(by))
        | (Form::Number(by), Form::Row { divide, modulo, multiply, add }) => {
            let scaled = multiply.checked_mul(by).zip(add.checked_mul(by));
            scaled.map(|(multiply, add)| Form::Row { divide, modulo, multiply, add }).ok_or_else(too_large)
        }
        _ => Err("`row` can stand only once in an expression".to_owned()),
    }
}

fn divide(left: Form, right: Form) -> Result<Form, String> {
    let Form::Number(by @ 1..) = right else {
        return Err("`//` needs a whole number greater than 0 behind it".to_owned());
    };
    match left {
        Form::Number(a) => Ok(Form::Number(a.div_euclid(by))),
        Form::Row { divide, modulo: 0, multiply: 1, add: 0 } => {
            let divide = divide.checked_mul(by.unsigned_abs()).ok_or_else(too_large)?;
            Ok(Form::Row { divide, modulo: 0, multiply: 1, add: 0 })
        }
        Form::Row { .. } => Err("`//` must come before `%`, `*`, `+` and `-`".to_owned()),
    }
}

fn modulo(left: Form, right: Form) -> Result<Form, String> {
    let Form::Number(by @ 1..) = right else {
        return Err("`%` needs a whole number greater than 0 behind it".to_owned());
    };
    match left {
        Form::Number(a) => Ok(Form::Number(a.rem_euclid(by))),
        Form::Row { divide, modulo: 0, multiply: 1, add: 0 } => {
            Ok(Form::Row { divide, modulo: by.unsigned_abs(), multiply: 1, add: 0 })
        }
        Form::Row { .. } => Err("`%` must come before `*`, `+` and `-`, and only once".to_owned()),
    }
}

/// Most characters that a part can give for rows `0 .. rows`.
#[must_use]
pub fn longest(part: &TemplatePart, rows: u64) -> usize {
    match part {
        TemplatePart::Text(text) => text.chars().count(),
        TemplatePart::Row { divide, modulo, multiply, add, pad } => {
            let last = rows.saturating_sub(1) / (*divide).max(1);
            let last = if *modulo == 0 { last } else { last.min(modulo - 1) };
            let value = |row: u64| i128::from(row) * i128::from(*multiply) + i128::from(*add);
            let length = |value: i128| value.to_string().len();
            length(value(0)).max(length(value(last))).max(usize::from(*pad))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "reads better where results are compared")]
    fn row(divide: u64, modulo: u64, multiply: i64, add: i64, pad: u8) -> Result<TemplatePart, String> {
        Ok(TemplatePart::Row { divide, modulo, multiply, add, pad })
    }

    #[test]
    fn expressions_become_one_form() {
        assert_eq!(parse("row"), row(1, 0, 1, 0, 0));
        assert_eq!(parse("row + 1"), row(1, 0, 1, 1, 0));
        assert_eq!(parse("1_000_000 + row | pad(8)"), row(1, 0, 1, 1_000_000, 8));
        assert_eq!(parse("row // 10 % 7 * 3 - 1"), row(10, 7, 3, -1, 0));
        assert_eq!(parse("(row % 5) * (2 + 1)"), row(1, 5, 3, 0, 0));
        assert_eq!(parse("100 - row"), row(1, 0, -1, 100, 0));
    }

    #[test]
    fn other_forms_are_refused_with_the_reason() {
        for (wrong, part) in [
            ("(row + 1) % 5", "before"),
            ("row * row", "only once"),
            ("row // 0", "greater than 0"),
            ("row | upper", "pad(8)"),
            ("row * batch", "`batch`"),
            ("row ~ 'x'", "`~`"),
            ("(row", "missing"),
        ] {
            let message = parse(wrong).expect_err(wrong);
            assert!(message.contains(part), "{wrong}: {message}");
        }
    }

    #[test]
    fn templates_are_cut_at_row_expressions() {
        let pieces = split("boe{{ row }}-{{ batch }}").expect("fine");
        assert_eq!(pieces.len(), 3);
        assert_eq!(pieces[0], Piece::Engine(0, "boe".to_owned()));
        assert_eq!(pieces[2], Piece::Engine(12, "-{{ batch }}".to_owned()));
        assert_eq!(
            longest(&TemplatePart::Row { divide: 1, modulo: 0, multiply: 1, add: 0, pad: 0 }, 1000),
            3
        );
    }
}
