//! What was fixed when the server was compiled and its cluster made, read back from the server itself.

use indexmap::IndexMap;
use serde_json::Value;
use tokio_postgres::Client;

use super::SessionError;
use crate::model::{Backend, Checksums, ClusterFacts, EnvironmentSpec, Scalar};

/// `to_jsonb` keeps the query one for all majors: the columns about locales have changed their names three times.
const QUERY: &str = "SELECT current_setting('block_size')::int8, pg_size_bytes(current_setting('wal_segment_size')), \
     current_setting('data_checksums') = 'on', pg_encoding_to_char(encoding)::text, to_jsonb(d)::text \
     FROM pg_database d WHERE datname = current_database()";

/// Asks the server.
///
/// # Errors
/// When it does not answer.
pub async fn facts(admin: &Client) -> Result<ClusterFacts, SessionError> {
    let row = admin.query_one(QUERY, &[]).await?;
    let database: String = row.get(4);
    let (locale_provider, locale) = locale_of(&serde_json::from_str(&database).unwrap_or(Value::Null));
    Ok(ClusterFacts {
        block_size: u32::try_from(row.get::<_, i64>(0)).unwrap_or(0),
        wal_segment_size: u64::try_from(row.get::<_, i64>(1)).unwrap_or(0),
        data_checksums: row.get(2),
        encoding: row.get(3),
        locale_provider,
        locale,
    })
}

/// Provider and its locale of a row of `pg_database`: `datlocprovider` from 15; `daticulocale` in 15 and 16,
/// `datlocale` from 17.
fn locale_of(database: &Value) -> (String, String) {
    let text = |name: &str| database.get(name).and_then(Value::as_str);
    let own = || text("datlocale").or_else(|| text("daticulocale"));
    let (provider, locale) = match text("datlocprovider") {
        Some("i") => ("icu", own()),
        Some("b") => ("builtin", own()),
        _ => ("libc", text("datcollate")),
    };
    (provider.to_owned(), locale.unwrap_or_default().to_owned())
}

/// Settings that must read back as asked for: those of the environment, and what only compiling or initdb can set. A
/// server that already runs was made by somebody else, so only a block size that is asked for counts there.
#[must_use]
pub fn requested(environment: &EnvironmentSpec, backend: Backend) -> IndexMap<String, Scalar> {
    let mut requested = environment.settings.clone();
    let mut ask = |name: &str, value: String| {
        requested.insert(name.to_owned(), Scalar::Text(value));
    };
    if let Some(bytes) = environment.block_size {
        ask("block_size", bytes.to_string());
    }
    if backend != Backend::External {
        let checksums = if environment.init.checksums == Checksums::On { "on" } else { "off" };
        ask("data_checksums", checksums.to_owned());
        if let Some(mib) = environment.init.wal_segment_mib {
            ask("wal_segment_size", if mib == 1024 { "1GB".to_owned() } else { format!("{mib}MB") });
        }
    }
    requested
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_locale_is_found_under_the_names_of_every_major() {
        let cases = [
            (json!({"datcollate": "C"}), ("libc", "C")),
            (
                json!({"datlocprovider": "c", "datcollate": "en_US.utf8", "daticulocale": null}),
                ("libc", "en_US.utf8"),
            ),
            (json!({"datlocprovider": "i", "datcollate": "C", "daticulocale": "en-US"}), ("icu", "en-US")),
            (json!({"datlocprovider": "i", "datcollate": "C", "datlocale": "de"}), ("icu", "de")),
            (
                json!({"datlocprovider": "b", "datcollate": "C", "datlocale": "C.UTF-8"}),
                ("builtin", "C.UTF-8"),
            ),
        ];
        for (row, (provider, locale)) in cases {
            assert_eq!(locale_of(&row), (provider.to_owned(), locale.to_owned()), "{row}");
        }
    }
}
