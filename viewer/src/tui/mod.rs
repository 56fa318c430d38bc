//! The terminal UI: `vmscope view FILE` and `vmscope top PID`.
//!
//! ```text
//! terminal, workers, session ── Event ──► update (pure) ──► Effect ──► run (outside)
//!                                            │
//!                                            ▼
//!                                           App ──► draw (pure) ──► terminal
//! ```
//!
//! [`event`] defines input and output, [`app`] state and `update`, [`screen`] the frame around a
//! view, [`views`] the views. Work longer than a keystroke is a [`jobs::Job`] for worker threads; a
//! new question stops its predecessor. Side effects happen in [`run`] alone.

pub(crate) mod app;
pub(crate) mod event;
mod filter_state;
mod history;
pub(crate) mod jobs;
pub(crate) mod keys;
mod live;
mod mode;
mod palette;
mod run;
pub(crate) mod screen;
mod terminal;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod theme;
mod top;
mod view;
pub(crate) mod view_id;
mod views;
mod widgets;

pub use top::{TopArgs, top};
pub use view::{ViewArgs, view};
