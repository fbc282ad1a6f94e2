//! What a read is to meet: a settled table, warm or cold caches; and whether it does, looked at last thing before the
//! clock starts.

use std::path::Path;
use std::time::Instant;

use super::Taken;
use crate::engine::postgres::load::WorkError;
use crate::engine::postgres::{quote_ident, relation, verify};
use crate::environment::page_cache;
use crate::model::{Backend, Cache, Guard, Read, ReadState, State, Table};
use crate::run::stage::Stage;

/// A cold read may find less than this of its table in a cache.
const COLD: f64 = 0.01;
/// A warm read must find at least this of its table in one cache.
const WARM: f64 = 0.95;

/// Brings table and caches into the state asked for. What could not be done is noted.
pub(super) async fn arrange(stage: &mut Stage<'_>, read: &Read, taken: &mut Taken) -> Result<(), WorkError> {
    let table = std::sync::Arc::clone(&stage.tables[read.table]);
    let met = taken.measurement.read.get_or_insert_default();
    if read.state == State::Settled {
        let start = Instant::now();
        for copy in &table.copies {
            let sql = format!("VACUUM (FREEZE, ANALYZE) {}", quote_ident(&copy.name));
            stage.admin.client.batch_execute(&sql).await?;
        }
        stage.needed_checkpoint().await?;
        taken.measurement.spans.settle = Some(start.elapsed().as_secs_f64());
    }
    match read.cache {
        Cache::AsIs => {}
        Cache::Warm => drop(verify::stored_content(&stage.owner.client, &table).await?),
        Cache::Cold => match stage.restart().await? {
            Ok(in_force) => {
                if !in_force {
                    taken.measurement.guards.push(Guard::SettingNotInForce);
                }
                met.cache_note = drop_pages(stage).await.err();
            }
            Err(why) => met.cache_note = Some(why),
        },
    }
    Ok(())
}

/// Lets go of everything that the operating system keeps of the server's files. The server has just started on them:
/// it holds nothing but some pages of its catalogs itself.
async fn drop_pages(stage: &Stage<'_>) -> Result<(), String> {
    let data = stage.instance.running.data_directory().ok_or(NO_FILES)?;
    let dropping = tokio::task::spawn_blocking(move || page_cache::drop_pages(&data));
    let dropped = dropping.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    dropped.map_err(|error| error.to_string())
}

const NO_FILES: &str = "the server's files cannot be reached from here (loadlab runs without root, or the server runs \
     on another machine)";

/// Looks at table and caches; a read that would not meet what was asked for trips a guard.
pub(super) async fn look(
    stage: &Stage<'_>,
    read: &Read,
    table: &Table,
    taken: &mut Taken,
) -> Result<(), WorkError> {
    let names: Vec<String> = table.copies.iter().map(|copy| quote_ident(&copy.name)).collect();
    let admin = &stage.admin.client;
    let met = taken.measurement.read.get_or_insert_default();
    // Nothing is tried out on a server that others use.
    if stage.instance.facts.backend != Backend::External {
        (met.all_visible_share, met.all_frozen_share) = relation::map_shares(admin, &names).await.unzip();
        met.buffered_share = relation::buffered_share(admin, &names).await;
    }
    match stage.instance.running.data_directory() {
        None => note(met, NO_FILES),
        Some(data) => match cached_share(&data, relation::files(admin, &names).await?).await {
            Ok(share) => met.cached_share = Some(share),
            Err(why) => note(met, &why),
        },
    }
    let guards = &mut taken.measurement.guards;
    match read.cache {
        Cache::AsIs => {}
        Cache::Cold if is_cold(met) => {}
        Cache::Cold => guards.push(Guard::CacheNotCold),
        Cache::Warm => {
            let most = met.cached_share.into_iter().chain(met.buffered_share).reduce(f64::max);
            if most.is_some_and(|share| share < WARM) {
                guards.push(Guard::CacheNotWarm);
            }
        }
    }
    Ok(())
}

/// The first reason is the one to tell.
fn note(state: &mut ReadState, why: &str) {
    state.cache_note.get_or_insert_with(|| why.to_owned());
}

/// Nothing went wrong on the way, the page cache is known to hold nothing, and shared buffers hold nothing.
fn is_cold(state: &ReadState) -> bool {
    state.cache_note.is_none()
        && state.cached_share.is_some_and(|share| share < COLD)
        && state.buffered_share.is_none_or(|share| share < COLD)
}

async fn cached_share(data: &Path, files: Vec<String>) -> Result<f64, String> {
    let files: Vec<_> = files.iter().flat_map(|file| page_cache::segments(&data.join(file))).collect();
    page_cache::share(&files).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cold_is_known_to_be_cold() {
        let cold = ReadState { cached_share: Some(0.0), buffered_share: Some(0.0), ..ReadState::default() };
        assert!(is_cold(&cold));
        assert!(is_cold(&ReadState { buffered_share: None, ..cold.clone() }), "a server just started");
        assert!(!is_cold(&ReadState { cached_share: None, ..cold.clone() }), "unknown is not cold");
        assert!(!is_cold(&ReadState { cached_share: Some(0.02), ..cold.clone() }));
        assert!(!is_cold(&ReadState { cache_note: Some("not restarted".to_owned()), ..cold }));
    }
}
