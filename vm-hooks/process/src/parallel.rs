//! Work in two threads, where the time to the first names counts.

use std::panic::resume_unwind;
use std::thread::Builder;

/// Runs `first` here and `second` in another thread; or here, if no thread starts.
pub(crate) fn both<A, B: Send>(
    first: impl FnOnce() -> A,
    mut second: impl FnMut() -> B + Send,
) -> (A, B) {
    let (first, done) = std::thread::scope(|scope| {
        let thread = Builder::new().spawn_scoped(scope, &mut second);
        let first = first();
        (first, thread.map(|thread| thread.join()))
    });
    let second = match done {
        Ok(done) => done.unwrap_or_else(|panic| resume_unwind(panic)),
        Err(_) => second(),
    };
    (first, second)
}
