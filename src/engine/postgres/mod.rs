//! PostgreSQL 14 to 18 through tokio-postgres.

pub mod cluster;
pub mod counters;
mod decode;
pub mod encode;
pub mod load;
pub mod read;
pub mod relation;
mod session;
pub mod settings;
pub mod sync;
pub mod timeline;
pub mod verify;
pub mod work;

pub use encode::quote_ident;
pub use session::{Endpoint, Exchange, Reach, Role, Secret, Session, SessionError, chain, ready};

/// `application_name` of the connections that load and read. Their statistics have reached the server's
/// views when none of them is left.
pub const WORKER: &str = "loadlab worker";

/// Superuser of every server loadlab makes.
pub const ADMIN: &str = "postgres";
/// Owner of the trial's database; never a superuser. SQL of experiments runs as this role.
pub const OWNER: &str = "loadlab";
/// The trial's database.
pub const DATABASE: &str = "loadlab";

/// SQL run once when a template or baked image is made, as [`ADMIN`] in database `postgres`.
/// `password` must consist of letters and digits.
#[must_use]
pub fn init_statements(password: &str) -> Vec<String> {
    vec![
        format!("CREATE ROLE {OWNER} LOGIN PASSWORD '{password}'"),
        format!("CREATE DATABASE {DATABASE} OWNER {OWNER}"),
    ]
}
