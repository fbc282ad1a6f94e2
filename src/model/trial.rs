//! A trial as planned and as bound.

use serde::{Deserialize, Serialize};

use super::{EnvironmentSpec, Needs, Step, Table, Treatment};

/// One trial of the plan: which treatment, in which block, at which place of the order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTrial {
    /// Number over the whole run, from 0, in running order.
    pub number: u64,
    /// Block, from 0.
    pub block: u32,
    /// Place inside the block, from 0.
    pub position: u32,
    /// Index of the treatment in the plan's list.
    pub treatment_index: u64,
    /// The treatment.
    pub treatment: Treatment,
    /// The block's second trial of a treatment, which shows how far the same differs from the same: it is compared with
    /// the first one and counts for nothing else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub control: bool,
}

/// One treatment with every template rendered, every name resolved and every value checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoundTrial {
    /// The server.
    pub environment: EnvironmentSpec,
    /// What the machine must have.
    #[serde(default)]
    pub needs: Needs,
    /// Tables, in the order of the file.
    pub tables: Vec<Table>,
    /// Steps, in order.
    pub steps: Vec<Step>,
}
