//! Connections: where a server is, who connects, and when it is ready.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio_postgres::{Client, Config, NoTls};

use super::{ADMIN, DATABASE, OWNER};

/// A password. Never printed, never serialised.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// Unix socket `<directory>/.s.PGSQL.<port>`.
    Socket {
        /// Folder of the socket.
        directory: PathBuf,
        /// Port number in the socket's name.
        port: u16,
        /// Password, where the server asks for one.
        password: Option<Secret>,
    },
    /// TCP.
    Tcp {
        /// Address.
        host: String,
        /// Port.
        port: u16,
        /// Password of both roles.
        password: Secret,
    },
    /// A server that already runs: the whole connection is given by a URL, one role for everything.
    External {
        /// `postgres://...`; holds a password.
        url: Secret,
        /// The schema that is ours there.
        schema: String,
    },
}

/// A connection in the words of libpq's environment variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// `PGHOST`: folder of the socket, or address.
    pub host: String,
    /// `PGPORT`.
    pub port: u16,
    /// `PGUSER`.
    pub user: String,
    /// `PGDATABASE`.
    pub database: String,
    /// For a `PGPASSFILE`, where the server asks for a password.
    pub password: Option<Secret>,
    /// `PGOPTIONS`: the schema that is ours on an external server.
    pub options: Option<String>,
}

/// A folder that server and client both see, for COPY from a file of the server.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// Its path here; files written here must be made world-readable.
    pub client_dir: PathBuf,
    /// Its path as the server sees it.
    pub server_dir: String,
}

/// Who connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Superuser: counters, CHECKPOINT, server-side files.
    Admin,
    /// Owner of the trial's database.
    Owner,
}

/// A connection could not be made or broke.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Refused, or the network failed.
    #[error("cannot connect: {}", chain(.0))]
    Connect(#[source] tokio_postgres::Error),
    /// A statement failed.
    #[error("{}", chain(.0))]
    Statement(#[from] tokio_postgres::Error),
    /// A deadline passed.
    #[error("no answer within {0:?}; last try: {1}")]
    Deadline(Duration, String),
}

/// The error with all its causes: tokio-postgres hides the server's words behind "db error".
#[must_use]
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        source = cause.source();
    }
    text
}

/// One connection with its driver task.
pub struct Session {
    /// The tokio-postgres client.
    pub client: Client,
    /// Ends when the connection ends; aborted on drop.
    driver: tokio::task::JoinHandle<()>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Session {
    /// Connects to the trial's database as a role.
    ///
    /// # Errors
    /// When the server refuses or cannot be reached.
    pub async fn open(endpoint: &Endpoint, role: Role) -> Result<Self, SessionError> {
        Self::open_as(endpoint, role, "loadlab").await
    }

    /// The same under an `application_name` of its own.
    ///
    /// # Errors
    /// When the server refuses or cannot be reached.
    pub async fn open_as(endpoint: &Endpoint, role: Role, application: &str) -> Result<Self, SessionError> {
        let mut config = endpoint.config(role).map_err(SessionError::Connect)?;
        config.application_name(application);
        Self::connect(&config).await
    }

    /// Connects as [`ADMIN`] to the database `postgres`, which is there before the trial's database is.
    ///
    /// # Errors
    /// When the server refuses or cannot be reached.
    pub async fn open_maintenance(endpoint: &Endpoint) -> Result<Self, SessionError> {
        let mut config = endpoint.config(Role::Admin).map_err(SessionError::Connect)?;
        config.dbname("postgres");
        Self::connect(&config).await
    }

    async fn connect(config: &Config) -> Result<Self, SessionError> {
        let (client, connection) = config.connect(NoTls).await.map_err(SessionError::Connect)?;
        // Errors of the connection reach every pending request through the client.
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok(Self { client, driver })
    }
}

impl Endpoint {
    /// Whether connections go through a unix socket; `false` for a URL that cannot be parsed.
    pub fn uses_socket(&self) -> bool {
        let unix =
            |host: &tokio_postgres::config::Host| matches!(host, tokio_postgres::config::Host::Unix(_));
        self.config(Role::Owner).is_ok_and(|config| config.get_hosts().first().is_some_and(unix))
    }

    /// How any other client connects as the owner of the trial's database.
    ///
    /// # Errors
    /// When the URL of an external server cannot be parsed.
    pub fn reach(&self) -> Result<Reach, tokio_postgres::Error> {
        use tokio_postgres::config::Host;
        let config = self.config(Role::Owner)?;
        let host = match config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            Some(Host::Unix(folder)) => folder.display().to_string(),
            None => "localhost".to_owned(),
        };
        let user = config.get_user().unwrap_or(OWNER).to_owned();
        Ok(Reach {
            host,
            port: config.get_ports().first().copied().unwrap_or(5432),
            database: config.get_dbname().unwrap_or(&user).to_owned(),
            user,
            password: config.get_password().map(|bytes| Secret(String::from_utf8_lossy(bytes).into_owned())),
            options: config.get_options().map(str::to_owned),
        })
    }

    /// The driver's configuration for a role.
    ///
    /// # Errors
    /// When the URL of an external server cannot be parsed.
    pub fn config(&self, role: Role) -> Result<Config, tokio_postgres::Error> {
        let mut config = match self {
            Self::External { url, .. } => url.0.parse::<Config>()?,
            _ => Config::new(),
        };
        config.connect_timeout(Duration::from_secs(5));
        let user = match role {
            Role::Admin => ADMIN,
            Role::Owner => OWNER,
        };
        match self {
            Self::Socket { directory, port, password } => {
                config.host_path(directory).port(*port).user(user).dbname(DATABASE);
                if let Some(password) = password {
                    config.password(&password.0);
                }
            }
            Self::Tcp { host, port, password } => {
                config.host(host).port(*port).user(user).dbname(DATABASE).password(&password.0);
            }
            Self::External { schema, .. } => {
                // Options of the URL stay in force; ours comes last and wins.
                let given = config.get_options().unwrap_or_default().to_owned();
                config.options(format!("{given} -c search_path={schema}").trim_start());
            }
        }
        Ok(config)
    }
}

/// Waits until two queries, each on its own connection, were answered by the same postmaster.
/// Log lines and open ports say less: the official image first starts a temporary server.
///
/// # Errors
/// [`SessionError::Deadline`] with the last refusal.
pub async fn ready(endpoint: &Endpoint, deadline: Duration) -> Result<(), SessionError> {
    let start = Instant::now();
    let mut previous: Option<String> = None;
    loop {
        let answer =
            tokio::time::timeout(deadline.saturating_sub(start.elapsed()), postmaster_start(endpoint))
                .await
                .unwrap_or_else(|_| Err(SessionError::Deadline(deadline, "no answer".to_owned())));
        match answer {
            Ok(started) if previous.as_ref() == Some(&started) => return Ok(()),
            Ok(started) => {
                previous = Some(started);
                continue;
            }
            Err(error) if start.elapsed() >= deadline => {
                return Err(SessionError::Deadline(deadline, error.to_string()));
            }
            Err(_) => previous = None,
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn postmaster_start(endpoint: &Endpoint) -> Result<String, SessionError> {
    let session = Session::open(endpoint, Role::Admin).await?;
    let row = session.client.query_one("SELECT pg_postmaster_start_time()::text", &[]).await?;
    Ok(row.get(0))
}
