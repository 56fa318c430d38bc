//! The terminal UI: `vmscope view FILE` and `vmscope top PID`.
//!
//! ```text
//! terminal, workers, session ── Event ──► update (pure) ──► Effect ──► run (outside)
//!                                            │
//!                                            ▼
//!                                           App ──► draw (pure) ──► terminal
//! ```
//!
//! [`event`] has the two ends; [`app`] the state and `update`; [`screen`] draws what is
//! around a view; [`views`] has a file for each. What takes longer than a keystroke may is
//! a [`jobs::Job`]: worked out by other threads, the newest question of each kind alone.
//! [`run`] is the only place that does anything.

mod app;
mod event;
mod filter_state;
mod history;
mod jobs;
mod keys;
mod live;
mod mode;
mod palette;
mod run;
mod screen;
mod terminal;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod theme;
mod top;
mod view;
mod views;
mod widgets;

pub use top::{TopArgs, top};
pub use view::{ViewArgs, view};
