//! Whether this machine has what an experiment needs, and in words what it lacks.

use std::path::Path;

use nix::unistd::geteuid;

use super::EnvironmentError;
use super::account::on_path;
use super::discover::{Found, discover};
use super::doctor::free_space;
use crate::model::{Backend, Bound, Needs, block_size_words};

/// What this machine has.
#[derive(Debug, Default)]
pub struct Machine {
    /// CPUs that this process may use.
    pub cores: Option<u64>,
    /// Physical memory, bytes.
    pub memory: Option<u64>,
    /// Bytes free where the cache is.
    pub disk: Option<u64>,
    /// Whether this process runs as root.
    pub root: bool,
    /// Servers that are found here.
    pub servers: Found,
}

impl Machine {
    /// Looks around; for servers only when `servers` is true, since each is asked for its version.
    ///
    /// # Errors
    /// As [`discover`].
    pub async fn look(cache: &Path, servers: bool) -> Result<Self, EnvironmentError> {
        Ok(Self {
            cores: std::thread::available_parallelism().ok().and_then(|n| u64::try_from(n.get()).ok()),
            memory: memory(),
            disk: free_space(cache),
            root: geteuid().is_root(),
            servers: if servers { discover(None, cache).await? } else { Found::default() },
        })
    }

    /// What is missing, a sentence each, before any server is looked for.
    #[must_use]
    pub fn lacks(&self, needs: &Needs) -> Vec<String> {
        let mut lacks = Vec::new();
        let plain = |number: u64| number.to_string();
        lacks.extend(bounded("CPUs", needs.cores.as_ref(), self.cores, plain));
        lacks.extend(bounded("memory", needs.memory.as_ref(), self.memory, size));
        lacks.extend(bounded("free disk", needs.disk.as_ref(), self.disk, size));
        if let Some(root) = needs.root.filter(|root| *root != self.root) {
            lacks.push(if root { "it needs to run as root" } else { "it must not run as root" }.to_owned());
        }
        for tool in needs.tools.iter().filter(|tool| !self.has_tool(tool)) {
            lacks.push(format!("it needs the program {tool}, which is not on the search path"));
        }
        for bytes in &needs.block_sizes {
            if !self.servers.usable.iter().any(|server| server.block_size == *bytes) {
                let words = block_size_words(*bytes);
                lacks.push(format!(
                    "it needs a server with blocks of {words}: `loadlab env build --block-size {words}` makes one"
                ));
            }
        }
        lacks
    }

    fn has_tool(&self, tool: &str) -> bool {
        on_path(tool).is_some()
            || self.servers.usable.iter().any(|server| server.tools.iter().any(|there| there == tool))
    }
}

/// What is wrong with the server that a treatment would get.
#[must_use]
pub fn wrong_server(needs: &Needs, backend: Backend, major: Option<u32>) -> Option<String> {
    if let Some(wanted) = needs.backend.filter(|wanted| *wanted != backend) {
        return Some(format!("it needs backend {}, and would run on {}", wanted.word(), backend.word()));
    }
    bounded("PostgreSQL", needs.version.as_ref(), major.map(u64::from), |major| major.to_string())
}

/// A number that is not known here fulfils no bound.
fn bounded(
    what: &str,
    bound: Option<&Bound>,
    is: Option<u64>,
    show: impl Fn(u64) -> String,
) -> Option<String> {
    let bound = bound?;
    match is {
        Some(is) if bound.holds(is) => None,
        Some(is) => Some(format!("it needs {what} {}, here it is {}", bound.text, show(is))),
        None => Some(format!("it needs {what} {}, and how much there is cannot be told here", bound.text)),
    }
}

/// In the units in which needs are written.
fn size(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
    let gib = bytes as f64 / f64::from(1 << 30);
    format!("{gib:.1} GB")
}

fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Relation;

    fn at_least(value: u64, text: &str) -> Bound {
        Bound { relation: Relation::AtLeast, value, text: text.to_owned() }
    }

    #[test]
    fn every_need_that_is_not_met_is_told_with_what_there_is() {
        let machine = Machine {
            cores: Some(2),
            memory: Some(8 << 30),
            disk: None,
            root: false,
            servers: Found::default(),
        };
        assert!(machine.lacks(&Needs::default()).is_empty());
        let needs = Needs {
            cores: Some(at_least(4, ">= 4")),
            memory: Some(at_least(16 << 30, ">= 16GB")),
            disk: Some(at_least(1, ">= 1")),
            root: Some(true),
            tools: vec!["sh".to_owned(), "no-such-program".to_owned()],
            block_sizes: vec![4096],
            ..Needs::default()
        };
        let lacks = machine.lacks(&needs);
        let parts = [
            "CPUs >= 4, here it is 2",
            "memory >= 16GB, here it is 8.0 GB",
            "free disk >= 1, and how much there is cannot be told",
            "run as root",
            "the program no-such-program",
            "env build --block-size 4kB",
        ];
        assert_eq!(lacks.len(), parts.len(), "{lacks:?}");
        for (said, part) in lacks.iter().zip(parts) {
            assert!(said.contains(part), "{part}: {said}");
        }
        let met = Needs { cores: Some(at_least(2, ">= 2")), root: Some(false), ..Needs::default() };
        assert!(machine.lacks(&met).is_empty());
    }

    #[test]
    fn the_server_must_be_of_the_backend_and_version() {
        let needs =
            Needs { backend: Some(Backend::Local), version: Some(at_least(17, ">= 17")), ..Needs::default() };
        assert_eq!(wrong_server(&needs, Backend::Local, Some(17)), None);
        let said = wrong_server(&needs, Backend::Container, Some(17)).expect("wrong");
        assert!(said.contains("backend local, and would run on container"), "{said}");
        let said = wrong_server(&needs, Backend::Local, Some(15)).expect("wrong");
        assert!(said.contains("PostgreSQL >= 17, here it is 15"), "{said}");
        assert!(wrong_server(&needs, Backend::Local, None).is_some(), "unknown is not met");
        assert_eq!(wrong_server(&Needs::default(), Backend::External, None), None);
    }
}
