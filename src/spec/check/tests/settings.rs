//! Tests of the rules for settings.

use super::{assert_fine, assert_one, text, with_settings};
use crate::model::{Scalar, VersionRange};
use crate::spec::check::{check_trial, normalise_setting};

#[test]
fn settings_are_checked_against_the_version() {
    assert_fine(&with_settings(&[("max_wal_size", text("8GB")), ("fsync", Scalar::Bool(false))]));
    assert_fine(&with_settings(&[("auto_explain.log_min_duration", Scalar::Int(0))]));
    let misspelt = with_settings(&[("max_wal_sizes", text("8GB"))]);
    assert_one(&misspelt, "server.settings.max_wal_sizes", "PostgreSQL 15 has no setting");
    assert_eq!(check_trial(&misspelt)[0].hint.as_deref(), Some("did you mean `max_wal_size`?"));
    assert_one(&with_settings(&[("io_method", text("sync"))]), "server.settings.io_method", "came with 18");
    assert_one(&with_settings(&[("port", Scalar::Int(5432))]), "server.settings.port", "set by loadlab");
    assert_one(
        &with_settings(&[("block_size", Scalar::Int(8192))]),
        "server.settings.block_size",
        "read only",
    );
    assert_one(&with_settings(&[("fsync", Scalar::Null)]), "server.settings.fsync", "no value");
    let mut range = with_settings(&[("io_method", text("sync"))]);
    range.environment.versions = VersionRange { min: 14, max: 18 };
    assert_one(&range, "server.settings.io_method", "PostgreSQL 14 has no setting");
}

#[test]
fn settings_fit_together() {
    let minimal = [("wal_level", text("minimal"))];
    assert_one(&with_settings(&minimal), "server.settings.wal_level", "max_wal_senders");
    let senders = [("wal_level", text("minimal")), ("max_wal_senders", Scalar::Int(0))];
    assert_fine(&with_settings(&senders));
    let archive = [senders.as_slice(), &[("archive_mode", text("on"))]].concat();
    assert_one(&with_settings(&archive), "server.settings.archive_mode", "archive_mode");
    let mut segments = with_settings(&[("max_wal_size", text("64MB"))]);
    assert_fine(&segments);
    segments.environment.init.wal_segment_mib = Some(64);
    assert_one(&segments, "server.settings.max_wal_size", "twice the WAL segment size of 64 MB");
}

#[test]
fn spellings_of_one_value_are_one_value() {
    for value in ["off", "no", "0", "false", "OFF", "of"] {
        assert_eq!(normalise_setting("fsync", value, 15).as_deref(), Ok("off"), "{value}");
    }
    for value in ["1GB", "1024MB", "131072"] {
        assert_eq!(normalise_setting("SHARED_BUFFERS", value, 18).as_deref(), Ok("131072"), "{value}");
    }
    assert!(normalise_setting("fsync", "o", 15).is_err());
    assert!(normalise_setting("shared_buffers", "1 gb", 15).is_err());
}

#[test]
fn broken_names_and_values_are_refused() {
    assert_one(&with_settings(&[("a.b c", Scalar::Int(1))]), "server.settings.a.b c", "no name of a setting");
    assert_one(&with_settings(&[("", Scalar::Int(1))]), "server.settings.", "no name of a setting");
    let lines = text("x\nport = 1");
    assert_one(
        &with_settings(&[("application_name", lines)]),
        "server.settings.application_name",
        "line end",
    );
    let twice = with_settings(&[("work_mem", text("4MB")), ("WORK_MEM", text("8MB"))]);
    assert_eq!(check_trial(&twice).len(), 2);
}
