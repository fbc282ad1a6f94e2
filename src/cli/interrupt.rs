//! SIGINT and SIGTERM: the first ends the trial in flight and the run, the second the program (the reaper then
//! removes what is left).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::failure::Failure;
use super::say;

/// Listens from now on; the receiver turns true at the first signal.
pub(super) fn watch() -> Result<watch::Receiver<bool>, Failure> {
    let failed = |error: io::Error| Failure::environment(format!("error: cannot listen to signals: {error}"));
    // A listener is told only of what comes after it was made, the handler is there a moment before: what
    // falls in between is kept in this flag.
    let early = Arc::new(AtomicBool::new(false));
    for kind in [SIGINT, SIGTERM] {
        signal_hook::flag::register(kind, Arc::clone(&early)).map_err(failed)?;
    }
    let interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let already = early.load(Ordering::SeqCst);
    let (asked, cancel) = watch::channel(already);
    tokio::spawn(listen(interrupt, terminate, already, asked));
    Ok(cancel)
}

async fn listen(mut interrupt: Signal, mut terminate: Signal, already: bool, asked: watch::Sender<bool>) {
    if !already {
        next(&mut interrupt, &mut terminate).await;
    }
    say("\nending: what is in flight is given up and its server removed (again to end at once)");
    asked.send_replace(true);
    next(&mut interrupt, &mut terminate).await;
    say("ended at once; complete the run with --resume");
    #[expect(clippy::exit, reason = "the user asked twice; the reaper cleans up")]
    std::process::exit(130);
}

async fn next(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
