//! Quoted names.

/// A name quoted so that PostgreSQL takes it as it is, whatever is in it.
pub fn quote_ident(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Quoted names in parentheses: `("id", "name")`.
pub fn column_list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(quote_ident).collect();
    format!("({})", quoted.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_doubled() {
        assert_eq!(column_list(["id", "a\"b", "Order"]), r#"("id", "a""b", "Order")"#);
    }
}
