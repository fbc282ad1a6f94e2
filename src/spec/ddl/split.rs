//! Splits SQL text into statements by the rules psql uses.

/// The statements of `sql` without their semicolons, each with the byte offset of its first word.
///
/// Semicolons inside strings, quoted identifiers, dollar quotes, comments (nested ones too),
/// parentheses and the `BEGIN ATOMIC ... END` body of a function do not end a statement. Comments
/// before and after a statement are dropped, comments inside it are kept.
#[must_use]
pub fn split_statements(sql: &str) -> Vec<(usize, String)> {
    let mut statements = Vec::new();
    let mut current = Statement::default();
    let mut at = 0;
    while at < sql.len() {
        let (kind, length) = lexeme(&sql.as_bytes()[at..]);
        let end = at + length;
        match kind {
            Lexeme::Blank => {}
            Lexeme::Semicolon if current.is_closed() => {
                statements.extend(std::mem::take(&mut current).text(sql));
            }
            _ => current.push(&kind, &sql[at..end], at, end),
        }
        at = end;
    }
    statements.extend(current.text(sql));
    statements
}

/// What the splitter distinguishes.
#[derive(Debug, PartialEq, Eq)]
enum Lexeme {
    Blank,
    Semicolon,
    Open,
    Close,
    Word,
    Other,
}

/// A statement that is being collected.
#[derive(Default)]
struct Statement {
    span: Option<(usize, usize)>,
    parentheses: u32,
    /// The first words, to recognise `CREATE [OR REPLACE] FUNCTION | PROCEDURE`.
    first_words: Vec<String>,
    /// Open BEGIN and CASE of a function body.
    bodies: u32,
}

impl Statement {
    fn is_closed(&self) -> bool {
        self.parentheses == 0 && self.bodies == 0
    }

    fn push(&mut self, kind: &Lexeme, text: &str, start: usize, end: usize) {
        self.span = Some((self.span.map_or(start, |(first, _)| first), end));
        match kind {
            Lexeme::Open => self.parentheses += 1,
            Lexeme::Close => self.parentheses = self.parentheses.saturating_sub(1),
            Lexeme::Word => self.push_word(&text.to_ascii_lowercase()),
            _ => {}
        }
    }

    fn push_word(&mut self, word: &str) {
        if self.first_words.len() < 4 {
            self.first_words.push(word.to_owned());
        }
        if self.parentheses > 0 || !self.makes_a_function() {
            return;
        }
        match word {
            "begin" => self.bodies += 1,
            "case" if self.bodies > 0 => self.bodies += 1,
            "end" => self.bodies = self.bodies.saturating_sub(1),
            _ => {}
        }
    }

    fn makes_a_function(&self) -> bool {
        let words: Vec<&str> = self.first_words.iter().map(String::as_str).collect();
        matches!(
            words.as_slice(),
            ["create", "function" | "procedure", ..] | ["create", "or", "replace", "function" | "procedure"]
        )
    }

    fn text(self, sql: &str) -> Option<(usize, String)> {
        self.span.map(|(start, end)| (start, sql[start..end].to_owned()))
    }
}

/// Kind and length of the lexeme that `bytes` (not empty) begins with. Ends on a character boundary:
/// bytes above 127 are word characters and taken together.
fn lexeme(bytes: &[u8]) -> (Lexeme, usize) {
    match bytes {
        [b'-', b'-', ..] => (Lexeme::Blank, run(bytes, |byte| byte != b'\n')),
        [b'/', b'*', ..] => (Lexeme::Blank, block_comment(bytes)),
        [b'\'' | b'"', ..] => (Lexeme::Other, quoted(bytes, false)),
        [b'e' | b'E', b'\'', ..] => (Lexeme::Other, 1 + quoted(&bytes[1..], true)),
        [b'$', ..] => (Lexeme::Other, dollar_quoted(bytes)),
        [b';', ..] => (Lexeme::Semicolon, 1),
        [b'(', ..] => (Lexeme::Open, 1),
        [b')', ..] => (Lexeme::Close, 1),
        [first, ..] if first.is_ascii_whitespace() => {
            (Lexeme::Blank, run(bytes, |b| b.is_ascii_whitespace()))
        }
        [first, ..] if first.is_ascii_digit() => (Lexeme::Other, run(bytes, is_word)),
        [first, ..] if is_word_start(*first) => (Lexeme::Word, run(bytes, is_word)),
        _ => (Lexeme::Other, 1),
    }
}

fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn is_word(byte: u8) -> bool {
    is_word_start(byte) || byte.is_ascii_digit() || byte == b'$'
}

fn run(bytes: &[u8], belongs: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|byte| !belongs(*byte)).unwrap_or(bytes.len())
}

/// Length of the comment at the start of `bytes`; comments nest, unlike in C.
fn block_comment(bytes: &[u8]) -> usize {
    let mut depth = 0_u32;
    let mut at = 0;
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Length of the string or quoted identifier at the start of `bytes`; a doubled quote does not end it.
fn quoted(bytes: &[u8], backslash_escapes: bool) -> usize {
    let quote = bytes[0];
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if backslash_escapes => at += 2,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Length of the dollar-quoted string at the start of `bytes`, 1 when the `$` begins none (`$1`).
fn dollar_quoted(bytes: &[u8]) -> usize {
    let tag = run(&bytes[1..], |byte| is_word(byte) && byte != b'$');
    let opens = bytes.get(1 + tag) == Some(&b'$') && !bytes[1].is_ascii_digit();
    if !opens {
        return 1;
    }
    let delimiter = &bytes[..tag + 2];
    let body = &bytes[delimiter.len()..];
    let end = body.windows(delimiter.len()).position(|window| window == delimiter);
    end.map_or(bytes.len(), |end| end + 2 * delimiter.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sql: &str) -> Vec<String> {
        split_statements(sql).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn statements_end_at_semicolons_and_know_their_offset() {
        assert_eq!(
            split_statements("  SELECT 1 ;\n-- note\nSELECT 2"),
            vec![(2, "SELECT 1".to_owned()), (21, "SELECT 2".to_owned())]
        );
    }

    #[test]
    fn empty_statements_and_comments_are_dropped() {
        assert_eq!(texts(""), Vec::<String>::new());
        assert_eq!(texts(" ;; -- only\n/* comments */ ;"), Vec::<String>::new());
        assert_eq!(texts("SELECT /* kept; */ 1 -- dropped"), ["SELECT /* kept; */ 1"]);
    }

    #[test]
    fn strings_hide_semicolons() {
        assert_eq!(texts("SELECT 'a;''b;'; SELECT 2"), ["SELECT 'a;''b;'", "SELECT 2"]);
        assert_eq!(texts(r"SELECT E'a\';b'; SELECT 2"), [r"SELECT E'a\';b'", "SELECT 2"]);
        assert_eq!(texts(r"SELECT 'a\'; SELECT 2"), [r"SELECT 'a\'", "SELECT 2"]);
        assert_eq!(texts(r"SELECT type'a\'; SELECT 2"), [r"SELECT type'a\'", "SELECT 2"]);
    }

    #[test]
    fn quoted_identifiers_hide_semicolons() {
        assert_eq!(
            texts(r#"CREATE TABLE "a;""b" (x int); SELECT 2"#),
            [r#"CREATE TABLE "a;""b" (x int)"#, "SELECT 2"]
        );
    }

    #[test]
    fn dollar_quotes_hide_everything_up_to_the_same_tag() {
        assert_eq!(texts("DO $$ a; b; $$; SELECT 2"), ["DO $$ a; b; $$", "SELECT 2"]);
        assert_eq!(texts("DO $a$ x; $b$ y; $a$; SELECT 2"), ["DO $a$ x; $b$ y; $a$", "SELECT 2"]);
        assert_eq!(texts("SELECT $1; SELECT a$b$; SELECT c$b$"), ["SELECT $1", "SELECT a$b$", "SELECT c$b$"]);
        assert_eq!(texts("SELECT $ü$;$ü$; SELECT 2"), ["SELECT $ü$;$ü$", "SELECT 2"]);
    }

    #[test]
    fn comments_nest() {
        assert_eq!(
            texts("SELECT 1 /* a /* b; */ c; */ + 1; SELECT 2"),
            ["SELECT 1 /* a /* b; */ c; */ + 1", "SELECT 2"]
        );
        assert_eq!(texts("SELECT 1 -- a; ' b\n+ 1; SELECT 2"), ["SELECT 1 -- a; ' b\n+ 1", "SELECT 2"]);
    }

    #[test]
    fn bodies_and_parentheses_stay_together() {
        let function = "CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END";
        assert_eq!(texts(&format!("{function}; SELECT 3")), [function, "SELECT 3"]);
        let rule = "CREATE RULE r AS ON INSERT TO t DO ALSO (SELECT 1; SELECT 2)";
        assert_eq!(texts(&format!("{rule}; SELECT 3")), [rule, "SELECT 3"]);
        assert_eq!(texts("BEGIN; SELECT 1; END; SELECT 2").len(), 4);
    }

    #[test]
    fn unterminated_text_is_one_statement() {
        for sql in ["SELECT 'a; b", "SELECT \"a; b", "DO $$ a; b", "SELECT E'a\\", "SELECT (1; 2"] {
            assert_eq!(texts(sql), [sql]);
        }
        assert_eq!(texts("SELECT 1 /* a; /* b */"), ["SELECT 1"]);
        assert_eq!(texts("$"), ["$"]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_split_without_panic(sql in "[a-zA-Z$'\"\\\\;()/*\\-\n ü€1]{0,60}") {
            for (offset, text) in split_statements(&sql) {
                proptest::prop_assert_eq!(&sql[offset..offset + text.len()], text);
            }
        }
    }
}
