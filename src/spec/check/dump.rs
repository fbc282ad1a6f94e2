//! Rules for dump and restore steps that look at the step alone.

use super::finding::Finding;
use crate::model::{Dump, DumpFormat, Restore, Through};

/// Most workers: each has a connection.
const MAX_JOBS: u32 = 1000;

pub(super) fn dump(index: usize, dump: &Dump) -> Vec<Finding> {
    let base = format!("steps.{index}.dump");
    let mut findings = jobs(&base, dump.jobs);
    if dump.jobs > 1 && dump.format != DumpFormat::Directory {
        let message = format!("pg_dump cannot write format `{}` with {} jobs", dump.format.name(), dump.jobs);
        let finding = Finding::new(format!("{base}.jobs"), message);
        findings.push(
            finding
                .expected("format: directory")
                .hint("only the directory format has a file for each worker to write"),
        );
    }
    if dump.compress.is_some() && dump.format == DumpFormat::Plain {
        let finding = Finding::new(format!("{base}.compress"), "psql cannot read a compressed script");
        findings
            .push(finding.expected("format: directory or custom").hint("take `compress` out for `plain`"));
    }
    findings
}

pub(super) fn restore(index: usize, restore: &Restore) -> Vec<Finding> {
    let base = format!("steps.{index}.restore");
    let mut findings = jobs(&base, restore.jobs);
    let finding = |key: &str, message: &str| Finding::new(format!("{base}.{key}"), message);
    if restore.through == Through::Psql && restore.jobs > 1 {
        let message = format!(
            "{} jobs are impossible through psql: the script goes over one connection, one statement after another",
            restore.jobs
        );
        findings.push(finding("jobs", &message).expected("through: direct, or jobs: 1").hint(
            "pg_restore takes --jobs beside --file and restores serially all the same, so such a command line says \
             nothing about parallel restores; jobs only apply where pg_restore connects itself",
        ));
    }
    if restore.format == DumpFormat::Plain {
        if restore.through == Through::Direct {
            let finding = finding("through", "pg_restore does not read the plain format");
            findings
                .push(finding.expected("through: psql").hint("or dump with `format: directory` or `custom`"));
        }
        if !restore.with_indexes {
            let finding = finding("with_indexes", "a plain script cannot be restored without its indexes");
            findings.push(finding.expected("a dump with `format: directory` or `custom`"));
        }
    }
    findings
}

fn jobs(base: &str, jobs: u32) -> Vec<Finding> {
    if (1..=MAX_JOBS).contains(&jobs) {
        return Vec::new();
    }
    let finding = Finding::new(format!("{base}.jobs"), format!("{jobs} jobs are not possible"));
    vec![finding.expected(format!("1 to {MAX_JOBS}"))]
}
