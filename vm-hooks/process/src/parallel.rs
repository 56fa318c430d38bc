//! Work in two threads, where the time to the first names counts.

use std::panic::resume_unwind;
use std::thread::Builder;

/// Runs `first` here and `second` in another thread; or here, if no thread starts.
pub(crate) fn both<A, B: Send>(first: impl FnOnce() -> A, second: impl Fn() -> B + Sync) -> (A, B) {
    std::thread::scope(|scope| {
        let thread = Builder::new().spawn_scoped(scope, &second);
        let first = first();
        let second = match thread.map(|thread| thread.join()) {
            Ok(done) => done.unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => second(),
        };
        (first, second)
    })
}
