//! Settings read back from the server, and facts about it.

use indexmap::IndexMap;
use tokio_postgres::Client;

use super::{SessionError, cluster};
use crate::model::{ClusterFacts, EffectiveSetting, Scalar};
use crate::spec::check::normalise_setting;

/// What the server says of itself after its start.
#[derive(Debug, Clone)]
pub struct ServerReport {
    /// `server_version_num`.
    pub version_num: i32,
    /// `pg_postmaster_start_time()` as text.
    pub postmaster_start: String,
    /// Settings that were asked for, or whose value is not the built-in default.
    pub settings: Vec<EffectiveSetting>,
    /// False when `fsync`, `full_page_writes` or `synchronous_commit` is off.
    pub durable: bool,
    /// What no setting can change.
    pub cluster: ClusterFacts,
}

/// Settings that loadlab gives to every server to reach it; they are not part of an experiment.
const OWN: [&str; 10] = [
    "listen_addresses",
    "port",
    "unix_socket_directories",
    "unix_socket_permissions",
    "data_directory",
    "hba_file",
    "ident_file",
    "config_file",
    "application_name",
    "external_pid_file",
];

/// Reads everything back and compares it with what was asked for.
pub async fn report(
    admin: &Client,
    requested: &IndexMap<String, Scalar>,
) -> Result<ServerReport, SessionError> {
    let row = admin
        .query_one(
            "SELECT current_setting('server_version_num')::int4, pg_postmaster_start_time()::text",
            &[],
        )
        .await?;
    let version_num: i32 = row.get(0);
    let mut settings = Vec::new();
    let mut durable = true;
    for row in admin.query(ALL, &[]).await? {
        let name: String = row.get(0);
        let effective: String = row.get::<_, Option<String>>(1).unwrap_or_default();
        let at_default: bool = row.get(4);
        durable &= !(DURABILITY.contains(&name.as_str()) && effective == "off");
        let asked = asked_for(requested, &name);
        if OWN.contains(&name.as_str()) || (asked.is_none() && at_default) {
            continue;
        }
        let in_force = asked.as_ref().is_none_or(|asked| same(&name, asked, &effective, version_num));
        let (server_default, source) = (row.get(2), row.get(3));
        settings.push(EffectiveSetting {
            name,
            requested: asked,
            effective,
            server_default,
            source,
            in_force,
        });
    }
    for (name, value) in requested {
        if !settings.iter().any(|setting| setting.name.eq_ignore_ascii_case(name)) {
            settings.push(placeholder(admin, name, spelled(value)).await?);
        }
    }
    let cluster = cluster::facts(admin).await?;
    Ok(ServerReport { version_num, postmaster_start: row.get(1), settings, durable, cluster })
}

const DURABILITY: [&str; 3] = ["fsync", "full_page_writes", "synchronous_commit"];

const ALL: &str = "SELECT name, current_setting(name, true), boot_val || coalesce(' x ' || unit, ''), source, \
     setting IS NOT DISTINCT FROM boot_val \
     FROM pg_settings ORDER BY name";

fn spelled(value: &Scalar) -> String {
    match value {
        Scalar::Bool(true) => "on".to_owned(),
        Scalar::Bool(false) => "off".to_owned(),
        other => other.to_string(),
    }
}

/// Compares in one spelling: `off`, `no` and `0` are one value, so are `1GB` and `1024MB`.
fn same(name: &str, asked: &str, effective: &str, version_num: i32) -> bool {
    let major = u32::try_from(version_num / 10_000).unwrap_or(0);
    let alike = match (normalise_setting(name, asked, major), normalise_setting(name, effective, major)) {
        // -1 leaves the choice to the server (wal_buffers, autovacuum_work_mem), which then shows what it took.
        (Ok(asked), Ok(_)) if asked == "-1" => true,
        (Ok(asked), Ok(effective)) => asked == effective,
        _ => false,
    };
    // `german` is shown as `German, DMY`.
    let begins = name.eq_ignore_ascii_case("datestyle")
        && effective.to_ascii_lowercase().starts_with(&asked.to_ascii_lowercase());
    alike || begins || asked.eq_ignore_ascii_case(effective)
}

/// Names are not case-sensitive for the server.
fn asked_for(requested: &IndexMap<String, Scalar>, name: &str) -> Option<String> {
    requested.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| spelled(value))
}

/// A setting of an extension (`my.thing`) is in no catalogue until the extension is there; it has a value all the same.
async fn placeholder(
    admin: &Client,
    name: &str,
    requested: String,
) -> Result<EffectiveSetting, SessionError> {
    let row = admin.query_one("SELECT current_setting($1, true)", &[&name]).await?;
    let effective: Option<String> = row.get(0);
    Ok(EffectiveSetting {
        name: name.to_owned(),
        in_force: effective.as_ref() == Some(&requested),
        requested: Some(requested),
        effective: effective.unwrap_or_else(|| "(unknown to this server)".to_owned()),
        server_default: None,
        source: "none".to_owned(),
    })
}
