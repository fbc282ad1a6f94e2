//! `measurements.parquet`: a row per trial and step, failed ones too.

use super::{Column, FileSchema, Row, Value, columns, identity};
use crate::model::{
    ClusterFacts, Latency, Measurement, Outside, Pressure, ReadState, Scanned, ServerCounters, ServerFacts,
    Spans,
};
use crate::store::host::DeviceFacts;

pub(super) const FILE: FileSchema = FileSchema {
    file: "measurements.parquet",
    row: "one step of one trial; a trial that ended before its first step has one row with `step` null",
    identity: identity::COLUMNS,
    own: COLUMNS,
};

const COLUMNS: &[Column] = columns! {
    experiment_hash Text "" "SHA-256 of the resolved experiment and every file it names" = |r| (&r.run.spec.hash).into();
    tool_version Text "" "Version of loadlab" = |r| (&r.run.tool.version).into();
    tool_commit Text "" "Commit loadlab was built from, or `unknown`" = |r| (&r.run.tool.commit).into();
    smoke Bool "" "Whether rows, durations and blocks were capped (`--smoke`): numbers that prove nothing about speed" = |r| r.run.smoke.into();
    seed Unsigned "" "Seed of the order and of generated rows" = |r| Value::Unsigned(r.run.seed);
    host_os Text "" "Operating system of the machine" = |r| (&r.run.host.os).into();
    host_kernel Text "" "Kernel release" = |r| r.run.host.kernel.as_ref().into();
    host_cpu_model Text "" "Model of the first CPU" = |r| r.run.host.cpu_model.as_ref().into();
    host_cores Int "" "CPUs loadlab may use" = |r| r.run.host.cores.into();
    host_memory_bytes Int "bytes" "Physical memory" = |r| r.run.host.memory_bytes.into();
    host_filesystem Text "" "File system under the results folder" = |r| r.run.host.filesystem.as_ref().into();
    host_virtualisation Text "" "`none`, or the kind of virtual machine as far as it can be told" = |r| r.run.host.virtualisation.as_ref().into();
    host_cpu_governor Text "" "Which rule sets the CPUs' frequencies" = |r| r.run.host.cpu_governor.as_ref().into();
    host_turbo Bool "" "Whether CPUs may run above their nominal frequency" = |r| r.run.host.turbo.into();
    host_transparent_huge_pages Text "" "`always`, `madvise` or `never`" = |r| r.run.host.transparent_huge_pages.as_ref().into();
    host_swap_bytes Int "bytes" "Swap space, 0 for none" = |r| r.run.host.swap_bytes.into();
    host_load_average Float "" "Load average of the minute before the run began" = |r| r.run.host.state_at_start.load_average.into();
    data_device Text "" "Family of the device below the data of the trial's server: `nvme`, `virtio`, `scsi`, ...; null where it is not known" = |r| device(r, |d| d.kind.as_ref().into());
    data_device_rotational Bool "" "Whether that device is said to have turning parts" = |r| device(r, |d| d.rotational.into());
    data_device_write_cache Text "" "`write back` when it keeps writes in a cache of its own, else `write through`" = |r| device(r, |d| d.write_cache.as_ref().into());

    started_at Time "UTC" "When the trial began; a label, spans do not come from it" = |r| Value::Time(r.record.started_at);
    trial_seconds Float "seconds" "Whole trial, from launching the server to having removed it" = |r| r.record.seconds.into();
    server_start_seconds Float "seconds" "Launch to the second answered query; outside every step" = |r| r.record.server_start_seconds.into();
    trial_outcome Text "" "`ok`, `failed`, `timed_out`, `environment_fault`, `cancelled`, or `not_run` when this machine lacks what the experiment needs, for the trial" = |r| r.record.outcome.name().into();
    trial_error Text "" "What ended the trial, with its causes; passwords removed" = |r| r.record.error.as_ref().into();
    trial_error_sqlstate Text "" "SQLSTATE of that error, when the server sent one" = |r| r.record.error_sqlstate.as_ref().into();

    environment Text "" "Name of the environment" = |r| server(r, |s| (&s.environment).into());
    backend Text "" "`container`, `local` or `external`" = |r| server(r, |s| s.backend.word().into());
    server_version_num Int "" "`server_version_num`, 180001 for 18.1" = |r| server(r, |s| s.version_num.into());
    server_identity Text "" "Image id, or version and checksum of the binaries" = |r| server(r, |s| (&s.identity).into());
    server_fresh Text "" "How the data directory was made fresh" = |r| server(r, |s| (&s.fresh).into());
    server_storage Text "" "File system or volume kind under the data directory" = |r| server(r, |s| (&s.storage).into());
    connection Text "" "`socket`, `address` or `published`" = |r| server(r, |s| (&s.connection).into());
    server_cpuset Text "" "CPUs of the server, if limited" = |r| server(r, |s| s.cpuset.as_ref().into());
    client_cpuset Text "" "CPUs of the client, if limited" = |r| server(r, |s| s.client_cpuset.as_ref().into());
    durable Bool "" "False when fsync, full_page_writes or synchronous_commit is off, or the storage is memory" = |r| server(r, |s| s.durable.into());
    sync_seconds Float "seconds" "What a synchronous commit of almost nothing took longer on the trial's server than one that does not wait (median); null where it is not known" = |r| server(r, |s| s.sync_seconds.into());

    block_size_bytes Int "bytes" "Size of a block, as the server says it" = |r| cluster(r, |c| c.block_size.into());
    wal_segment_size_bytes Int "bytes" "Size of a WAL segment" = |r| cluster(r, |c| c.wal_segment_size.into());
    data_checksums Bool "" "Whether pages carry checksums" = |r| cluster(r, |c| c.data_checksums.into());
    encoding Text "" "Encoding of the trial's database" = |r| cluster(r, |c| (&c.encoding).into());
    locale_provider Text "" "Who compares text in it: `libc`, `icu` or `builtin`" = |r| cluster(r, |c| (&c.locale_provider).into());
    locale Text "" "By which locale of that provider" = |r| cluster(r, |c| (&c.locale).into());

    step_index Int "" "Place of the step in the trial, from 0" = |r| step(r, |m| m.step_index.into());
    step Text "" "Name of the step" = |r| step(r, |m| (&m.step).into());
    repetition Int "" "Which repetition of the step inside the trial (`repeat`), from 0" = |r| step(r, |m| m.repetition.into());
    kind Text "" "`create`, `index`, `sql`, `command`, `load`, `read`, `dump` or `restore`" = |r| step(r, |m| (&m.kind).into());
    method Text "" "`insert`, `copy`, `unnest`, `generate`, `procedure`; `select`, `copy_out`, `scan`; format of a dump; `direct` or `psql` of a restore; null for other kinds" = |r| step(r, |m| Some(&m.method).filter(|name| !name.is_empty()).into());
    parameters Text "" "Parameters of the step after all templates, as JSON" = |r| step(r, |m| (&m.parameters).into());
    table Text "" "SQL names of the table, if the step has one" = |r| step(r, |m| m.table.as_ref().into());
    clients Int "" "Parallel connections" = |r| step(r, |m| m.clients.into());
    outcome Text "" "How the step ended, in the words of `trial_outcome`" = |r| step(r, |m| m.outcome.map(crate::model::Outcome::name).into());
    error Text "" "What ended the step; passwords removed" = |r| step(r, |m| m.error.as_ref().into());
    guards Texts "" "Guards that tripped in the step; empty for none" = guards;
    valid Bool "" "Trial and step are ok, the step tripped no guard but `client_bound`, no step tripped one that voids the trial, and it is no smoke run; only these may be averaged" = valid;

    rows_per_second Float "rows/second" "`rows` / `seconds`; null over a span of zero and for a step that did not end well" = |r| step(r, |m| m.rows_per_second().into());
    payload_bytes_per_second Float "bytes/second" "`payload_bytes` / `seconds`, under the same conditions" = |r| step(r, |m| m.payload_bytes_per_second().into());
    seconds Float "seconds" "The headline span: first BEGIN to last acknowledged COMMIT, or all statements of the step" = |r| spans(r, |s| s.seconds.into());
    connect_seconds Float "seconds" "Opening the connections; outside `seconds`" = |r| spans(r, |s| s.connect.into());
    prepare_seconds Float "seconds" "Preparing statements, writing server files; outside `seconds`" = |r| spans(r, |s| s.prepare.into());
    transfer_seconds Float "seconds" "Until the last row was accepted; null where commits lie inside one statement (procedure) or program (restore)" = |r| spans(r, |s| s.transfer.into());
    commit_seconds Float "seconds" "COMMIT round trips of the slowest client, inside `seconds`" = |r| spans(r, |s| s.commit.into());
    first_row_seconds Float "seconds" "Asking to first row (reads)" = |r| spans(r, |s| s.first_row.into());
    flush_seconds Float "seconds" "CHECKPOINT after the commit: durable in the data files; outside `seconds`" = |r| spans(r, |s| s.flush.into());
    durable_seconds Float "seconds" "`seconds` + `flush_seconds`: until the rows are in the data files" = |r| step(r, |m| m.durable_seconds().into());
    settle_seconds Float "seconds" "VACUUM (ANALYZE) after that; outside `seconds`" = |r| spans(r, |s| s.settle.into());
    verify_seconds Float "seconds" "Counting rows and comparing content; outside every other span" = |r| spans(r, |s| s.verify.into());

    warm_up_seconds Float "seconds" "Warm-up of a load by duration, before `seconds`; null for other steps" = |r| outside(r, |o| o.warm_up.into());
    longest_gap_seconds Float "seconds" "Longest time within `seconds` without an acknowledged row, over all clients together, from answers to batches; null where no client had two" = |r| step(r, |m| m.longest_gap.into());
    stalled_share Float "" "Share of `seconds` in which rows came at under a tenth of the median rate (docs/METHODOLOGY.md); null where batches are too few to know" = |r| step(r, |m| m.stalled_share.into());

    rows Int "rows" "Rows the client sent or received; of a load by duration, those whose COMMIT was acknowledged within `seconds`" = |r| step(r, |m| m.rows.into());
    rows_expected Int "rows" "Rows the step was to move; null for a load by duration" = |r| step(r, |m| m.rows_expected.into());
    rows_warm_up Int "rows" "Rows of a load by duration whose COMMIT was acknowledged in the warm-up; null for other steps" = |r| outside(r, |o| o.rows_warm_up.into());
    rows_after Int "rows" "Rows of a load by duration whose COMMIT was acknowledged after the window: those of the last transactions" = |r| outside(r, |o| o.rows_after.into());
    rows_in_table Int "rows" "Rows in the table at verification" = |r| step(r, |m| m.rows_in_table.into());
    checksum Text "" "Content checksum of the table or of the decoded values (hex)" = |r| step(r, |m| m.checksum.as_ref().into());
    checksum_expected Text "" "Content checksum according to the generator (hex)" = |r| step(r, |m| m.checksum_expected.as_ref().into());
    content_unverified Text "" "Why the content was not compared with the generator, where the experiment's own SQL makes it" = |r| step(r, |m| m.content_unverified.as_ref().into());
    payload_bytes Int "bytes" "Row data over the connection or in the file; 0 where the server makes the rows; for dumps and restores the size of the dump" = |r| step(r, |m| m.payload_bytes.into());
    client_cpu_seconds Float "seconds" "CPU time of loadlab, all threads, within `seconds`, with that of the programs of a dump or restore; of a `command` step that of the program and of what it waited for" = |r| step(r, |m| m.client_cpu_seconds.into());
    client_peak_memory_bytes Int "bytes" "Highest resident memory of loadlab during the step; null for `command`" = |r| step(r, |m| m.client_peak_memory_bytes.into());
    output Text "" "Where in the run's folder a program's output is kept, with `.stdout` and `.stderr` after it" = |r| step(r, |m| m.output.as_ref().into());

    wal_bytes Int "bytes" "WAL written, by LSN difference" = |r| counters(r, |c| c.wal_bytes.into());
    wal_records Int "" "WAL records" = |r| counters(r, |c| c.wal_records.into());
    wal_full_page_images Int "" "Full-page images in the WAL" = |r| counters(r, |c| c.wal_full_page_images.into());
    table_bytes Int "bytes" "Size of the tables after the step, with free space and visibility map; for `sql` steps all tables of the trial" = |r| counters(r, |c| c.table_bytes.into());
    index_bytes Int "bytes" "Size of their indexes after the step" = |r| counters(r, |c| c.index_bytes.into());
    toast_bytes Int "bytes" "Size of TOAST after the step" = |r| counters(r, |c| c.toast_bytes.into());
    checkpoints_timed Int "" "Checkpoints begun by time or WAL volume" = |r| counters(r, |c| c.checkpoints_timed.into());
    checkpoints_requested Int "" "Checkpoints asked for, without loadlab's own" = |r| counters(r, |c| c.checkpoints_requested.into());
    autovacuum_runs Int "" "Autovacuum and autoanalyze runs on the trial's tables" = |r| counters(r, |c| c.autovacuum_runs.into());
    server_cpu_seconds Float "seconds" "CPU time of all server processes" = |r| counters(r, |c| c.server_cpu_seconds.into());
    server_read_bytes Int "bytes" "Bytes the server caused to be read from the block layer" = |r| counters(r, |c| c.server_read_bytes.into());
    server_written_bytes Int "bytes" "Bytes the server caused to be written to the block layer" = |r| counters(r, |c| c.server_written_bytes.into());
    pages_hit Int "pages" "Pages a scan by the server found in shared buffers; null for other methods" = |r| scan(r, |s| s.pages_hit.into());
    pages_read Int "pages" "Pages a scan by the server read into shared buffers" = |r| scan(r, |s| s.pages_read.into());
    pages_dirtied Int "pages" "Clean pages a scan by the server changed, such as by hint bits" = |r| scan(r, |s| s.pages_dirtied.into());
    pages_written Int "pages" "Pages a scan by the server had to write to make room" = |r| scan(r, |s| s.pages_written.into());
    scan_wal_bytes Int "bytes" "WAL written by a scan by the server itself" = |r| scan(r, |s| s.wal_bytes.into());
    cached_share Float "" "Share of the bytes of the table's files, with indexes and TOAST, in the operating system's page cache just before a read (0 to 1); null where it is not known" = |r| read(r, |s| s.cached_share.into());
    buffered_share Float "" "Share of the table's pages in shared buffers just before a read (0 to 1); null without pg_buffercache" = |r| read(r, |s| s.buffered_share.into());
    all_visible_share Float "" "Share of the table's pages that the visibility map says are all-visible just before a read; null without pg_visibility" = |r| read(r, |s| s.all_visible_share.into());
    all_frozen_share Float "" "Share of the table's pages that are all-frozen just before a read; null without pg_visibility" = |r| read(r, |s| s.all_frozen_share.into());
    cache_note Text "" "Why the caches are not as asked for, or are not known" = |r| read(r, |s| s.cache_note.as_ref().into());
    session_settings Texts "" "Settings that loadlab gave to the sessions of a read, `name=value`" = session_settings;

    busiest_client_thread_share Float "" "Share of the window that loadlab's busiest thread was on a CPU, 0 to 1" = |r| pressure(r, |p| p.busiest_client_thread_share.into());
    client_wait_share Float "" "Share of looks that found a session of the step waiting for its client, 0 to 1; null after few looks" = |r| pressure(r, |p| p.client_wait_share.into());
    stolen_share Float "" "Share of the machine's CPU time that a hypervisor gave to others, 0 to 1" = |r| pressure(r, |p| p.stolen_share.into());
    swapped_bytes Int "bytes" "Swapped in and out by the whole machine" = |r| pressure(r, |p| p.swapped_bytes.into());
    throttled_periods Int "" "Times the server's cgroup was held back by its CPU quota" = |r| pressure(r, |p| p.throttled_periods.into());
    client_throttled_periods Int "" "Times the cgroup of loadlab itself, in which local servers live as well, was held back by a CPU quota" = |r| pressure(r, |p| p.client_throttled_periods.into());
    memory_kills Int "" "Processes of the server's cgroup that the kernel killed for want of memory" = |r| pressure(r, |p| p.memory_kills.into());
    clock_disagreement_seconds Float "seconds" "How far wall clock and monotonic clock moved apart" = |r| pressure(r, |p| p.clock_disagreement_seconds.into());
    other_cpus Float "CPUs" "CPUs that neither the server nor loadlab kept busy, on average over the window; null where the server's use is not known" = |r| pressure(r, |p| p.other_cpus.into());
    cpu_pressure_share Float "" "Share of the window in which some task of the machine waited for a CPU, 0 to 1 (pressure stall information)" = |r| pressure(r, |p| p.cpu_pressure_share.into());
    io_pressure_share Float "" "The same for a device" = |r| pressure(r, |p| p.io_pressure_share.into());
    memory_pressure_share Float "" "The same for memory" = |r| pressure(r, |p| p.memory_pressure_share.into());
    other_runs Int "" "Other runs of loadlab on the machine when the step began or ended, the larger number; null where processes cannot be looked at" = |r| pressure(r, |p| p.other_runs.into());

    batch_count Int "" "Number of timed batches (insert), COPY statements (copy) or fetches (portal)" = |r| batch(r, |l| l.count.into());
    batch_p50_seconds Float "seconds" "Median time per batch" = |r| batch(r, |l| l.p50.into());
    batch_p90_seconds Float "seconds" "90th percentile" = |r| batch(r, |l| l.p90.into());
    batch_p99_seconds Float "seconds" "99th percentile" = |r| batch(r, |l| l.p99.into());
    batch_max_seconds Float "seconds" "Longest batch" = |r| batch(r, |l| l.max.into());
    scheduled_count Int "" "Number of batches timed from when they were due; only with a rate" = |r| scheduled(r, |l| l.count.into());
    scheduled_p50_seconds Float "seconds" "Median time from when a batch was due to its answer: waiting for a free client is part of it" = |r| scheduled(r, |l| l.p50.into());
    scheduled_p90_seconds Float "seconds" "90th percentile" = |r| scheduled(r, |l| l.p90.into());
    scheduled_p99_seconds Float "seconds" "99th percentile" = |r| scheduled(r, |l| l.p99.into());
    scheduled_max_seconds Float "seconds" "Longest" = |r| scheduled(r, |l| l.max.into());
    commit_count Int "" "Number of timed commits" = |r| commit(r, |l| l.count.into());
    commit_p50_seconds Float "seconds" "Median time per COMMIT" = |r| commit(r, |l| l.p50.into());
    commit_p90_seconds Float "seconds" "90th percentile" = |r| commit(r, |l| l.p90.into());
    commit_p99_seconds Float "seconds" "99th percentile" = |r| commit(r, |l| l.p99.into());
    commit_max_seconds Float "seconds" "Longest COMMIT" = |r| commit(r, |l| l.max.into());
};

fn server(row: &Row<'_>, value: fn(&ServerFacts) -> Value) -> Value {
    row.record.server.as_ref().map_or(Value::Null, value)
}

/// What the data of the trial's server lie on.
fn device(row: &Row<'_>, value: fn(&DeviceFacts) -> Value) -> Value {
    let backend = row.record.server.as_ref().map(|server| server.backend);
    let mut devices = row.run.host.data_devices.iter();
    devices.find(|device| Some(device.backend) == backend).map_or(Value::Null, value)
}

fn cluster(row: &Row<'_>, value: fn(&ClusterFacts) -> Value) -> Value {
    row.record.server.as_ref().and_then(|server| server.cluster.as_ref()).map_or(Value::Null, value)
}

fn step(row: &Row<'_>, value: fn(&Measurement) -> Value) -> Value {
    row.measurement.map_or(Value::Null, value)
}

fn spans(row: &Row<'_>, value: fn(&Spans) -> Value) -> Value {
    row.measurement.map_or(Value::Null, |measurement| value(&measurement.spans))
}

fn counters(row: &Row<'_>, value: fn(&ServerCounters) -> Value) -> Value {
    row.measurement.map_or(Value::Null, |measurement| value(&measurement.counters))
}

fn pressure(row: &Row<'_>, value: fn(&Pressure) -> Value) -> Value {
    row.measurement.map_or(Value::Null, |measurement| value(&measurement.pressure))
}

fn scan(row: &Row<'_>, value: fn(&Scanned) -> Value) -> Value {
    row.measurement.and_then(|measurement| measurement.scan.as_ref()).map_or(Value::Null, value)
}

fn read(row: &Row<'_>, value: fn(&ReadState) -> Value) -> Value {
    row.measurement.and_then(|measurement| measurement.read.as_ref()).map_or(Value::Null, value)
}

fn session_settings(row: &Row<'_>) -> Value {
    let state = row.measurement.and_then(|measurement| measurement.read.as_ref());
    Value::Texts(state.map(|state| state.session_settings.clone()).unwrap_or_default())
}

fn batch(row: &Row<'_>, value: fn(&Latency) -> Value) -> Value {
    row.measurement.and_then(|measurement| measurement.batch_latency.as_ref()).map_or(Value::Null, value)
}

fn commit(row: &Row<'_>, value: fn(&Latency) -> Value) -> Value {
    row.measurement.and_then(|measurement| measurement.commit_latency.as_ref()).map_or(Value::Null, value)
}

fn scheduled(row: &Row<'_>, value: fn(&Latency) -> Value) -> Value {
    row.measurement.and_then(|measurement| measurement.scheduled_latency.as_ref()).map_or(Value::Null, value)
}

fn outside(row: &Row<'_>, value: fn(&Outside) -> Value) -> Value {
    row.measurement.and_then(|measurement| measurement.outside.as_ref()).map_or(Value::Null, value)
}

fn guards(row: &Row<'_>) -> Value {
    let guards = row.measurement.map(|measurement| measurement.guards.as_slice()).unwrap_or_default();
    Value::Texts(guards.iter().map(|guard| guard.name().to_owned()).collect())
}

fn valid(row: &Row<'_>) -> Value {
    let usable = |measurement| row.record.reasons_against(measurement).is_empty();
    (!row.run.smoke && row.measurement.is_some_and(usable)).into()
}
