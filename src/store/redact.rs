//! Takes passwords out of texts before they are stored: drivers put URLs and keyword strings into their errors.

use serde_json::Value;

const HIDDEN: &str = "***";
const KEYWORD: &str = "password";

/// The text with passwords replaced by `***`: in URLs (`scheme://user:secret@host`), keyword strings (`password=secret`,
/// `PGPASSWORD='secret'`), SQL (`PASSWORD 'secret'`) and JSON or YAML (`"password": "secret"`).
#[must_use]
pub fn redact(text: &str) -> String {
    redact_keywords(&redact_urls(text))
}

/// Redacts every string inside a JSON value, in place.
pub(super) fn redact_json(value: &mut Value) {
    match value {
        Value::String(text) => {
            if text.contains("://") || find_keyword(text).is_some() {
                *text = redact(text);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact_json),
        Value::Object(members) => {
            for (key, member) in members.iter_mut() {
                match member {
                    Value::String(secret) if key.to_ascii_lowercase().ends_with(KEYWORD) => {
                        HIDDEN.clone_into(secret);
                    }
                    other => redact_json(other),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn redact_urls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end = after.find(|c: char| c.is_whitespace() || "/?#\"'<>".contains(c)).unwrap_or(after.len());
        let authority = &after[..end];
        match (authority.rfind('@'), authority.find(':')) {
            (Some(host), Some(colon)) if colon < host => {
                out.push_str(&authority[..=colon]);
                out.push_str(HIDDEN);
                out.push_str(&authority[host..]);
            }
            _ => out.push_str(authority),
        }
        rest = &after[end..];
    }
    out.push_str(rest);
    out
}

fn redact_keywords(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = find_keyword(rest) {
        let (before, after) = rest.split_at(at + KEYWORD.len());
        out.push_str(before);
        let (lead, secret) = secret_after(after);
        out.push_str(&after[..lead]);
        if secret > 0 {
            out.push_str(HIDDEN);
        }
        rest = &after[lead + secret..];
    }
    out.push_str(rest);
    out
}

fn find_keyword(text: &str) -> Option<usize> {
    text.as_bytes().windows(KEYWORD.len()).position(|window| window.eq_ignore_ascii_case(KEYWORD.as_bytes()))
}

/// Lengths of what stands between the keyword and a secret (`": "`, ` = '`), and of the secret.
fn secret_after(text: &str) -> (usize, usize) {
    let body = text.trim_start_matches(['"', '\\']).trim_start();
    let (body, assigned) = match body.strip_prefix(['=', ':']) {
        Some(value) => (value.trim_start(), true),
        None => (body, false),
    };
    let value = body.trim_start_matches('\\');
    let quote = value.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let lead = |value: &str| text.len() - value.len();
    match quote {
        Some(quote) if assigned || quote == '\'' => {
            let secret = &value[1..];
            (lead(secret), secret.find([quote, '\\']).unwrap_or(secret.len()))
        }
        _ if assigned => {
            let end =
                value.find(|c: char| c.is_whitespace() || "&,;)}\"'".contains(c)).unwrap_or(value.len());
            (lead(value), end)
        }
        _ => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_every_spelling_are_hidden() {
        for text in [
            "connect postgres://me:canary@db:5432/x?sslmode=disable failed",
            "postgresql://me:can@canary@db/x",
            "postgresql://db/x?user=me&password=canary&sslmode=disable",
            "host=db password=canary user=me",
            "host=db password = 'canary two' user=me",
            "PGPASSWORD=canary psql",
            "CREATE ROLE me LOGIN PASSWORD 'canary'",
            "{\"password\":\"canary\"}",
            "{\\\"password\\\": \\\"canary\\\"}",
            "  password: canary",
            "sslpassword=canary",
        ] {
            let clean = redact(text);
            assert!(!clean.contains("canary") && clean.contains(HIDDEN), "{text} -> {clean}");
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        for text in [
            "password authentication failed for user \"me\"",
            "password_encryption = scram-sha-256",
            "see https://example.org/a:b@c and postgres://me@db/x",
            "the word password",
            "",
            "passwört: ok",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    #[test]
    fn rest_of_the_text_stays() {
        assert_eq!(redact("a postgres://u:s@h/d b password=s c"), "a postgres://u:***@h/d b password=*** c");
    }

    #[test]
    fn json_is_redacted_inside() {
        let mut value = serde_json::json!({"a": ["x password=canary"], "Password": "canary", "n": 1});
        redact_json(&mut value);
        assert!(!value.to_string().contains("canary"));
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text in ".{0,80}", more in "[pPasword=:'\"\\\\ /@é]{0,60}") {
            let _ = redact(&format!("{text}password{more}://{more}"));
        }
    }
}
