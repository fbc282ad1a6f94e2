//! Loads by duration: warm-up, then a measured window; and what they must know of a method.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::LoadMethod;

/// A load that ends by the clock and not with the last row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Work before the window opens, by the same clients on the same tables; zero for none.
    #[serde(with = "seconds")]
    pub warm_up: Duration,
    /// Length of the window; never zero.
    #[serde(with = "seconds")]
    pub measure: Duration,
    /// Distance of the samples; never zero.
    #[serde(with = "seconds")]
    pub sample_every: Duration,
}

impl Window {
    /// Warm-up and window together: no batch is begun later.
    #[must_use]
    pub fn end(&self) -> Duration {
        self.warm_up.saturating_add(self.measure)
    }

    /// Points of the time series of one client, those at the edges included.
    #[must_use]
    pub fn points(&self) -> u64 {
        let every = self.sample_every.as_nanos().max(1);
        let points = |span: Duration| span.as_nanos().div_ceil(every);
        u64::try_from(points(self.warm_up) + points(self.measure) + 1).unwrap_or(u64::MAX)
    }
}

impl LoadMethod {
    /// Rows per transaction, where a number is given.
    #[must_use]
    pub fn rows_per_commit(&self) -> Option<u64> {
        match self {
            Self::Insert(insert) => insert.rows_per_commit,
            Self::Copy(copy) => copy.rows_per_commit,
            Self::Unnest(unnest) => unnest.rows_per_commit,
            Self::Generate(generate) => generate.rows_per_commit,
            Self::Procedure(procedure) => procedure.rows_per_commit,
        }
    }

    /// Rows of a batch: what a client begins to send together. `None` when that is all it has.
    #[must_use]
    pub fn rows_per_batch(&self) -> Option<u64> {
        match self {
            Self::Insert(insert) => Some(insert.rows_per_batch),
            Self::Copy(copy) => copy.rows_per_commit,
            Self::Unnest(unnest) => Some(unnest.rows_per_batch),
            Self::Generate(_) | Self::Procedure(_) => None,
        }
    }
}

/// Durations as numbers of seconds, for people who read the parameters of a step.
mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(span.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_read_back_from_its_seconds() {
        let window = Window {
            warm_up: Duration::from_secs(5),
            measure: Duration::from_secs(30),
            sample_every: Duration::from_millis(250),
        };
        let text = serde_json::to_string(&window).unwrap();
        assert_eq!(text, r#"{"warm_up":5.0,"measure":30.0,"sample_every":0.25}"#);
        assert_eq!(serde_json::from_str::<Window>(&text).unwrap(), window);
        assert_eq!((window.end(), window.points()), (Duration::from_secs(35), 141));
    }
}
