//! Messages between the threads of a session.

use std::path::PathBuf;

use crossbeam_channel::Sender;
use vmscope_process::Unwinder;
use vmscope_records::{
    EndReason, InterpreterSource, Limit, Mark, ProcessKey, Record, TimeNs, VmIdentity,
};

use super::sink::{Saved, SinkError};
use crate::engine::EngineEvent;

/// To the writer, from the drain thread and the session's owner.
#[derive(Debug)]
pub(super) enum Message {
    /// In time order.
    Events(Vec<EngineEvent>),
    /// Save a copy (`--keep-last`).
    Save(PathBuf, Sender<Result<Saved, SinkError>>),
    Mark(Mark),
    /// The engine's end: time, reason, detail. The recording ends after the adapters' channel.
    End(TimeNs, EndReason, String),
}

/// To the writer, from the adapters' thread; closing the channel ends the stream.
#[derive(Debug)]
pub(super) enum AdapterMessage {
    /// Records of a poll of a process.
    Poll(ProcessKey, Vec<Record>),
    /// A limit of the adapters.
    Limit(Limit),
    /// Adapters read a process; sources of interpreter positions in its samples.
    Reads(ProcessKey, Vec<InterpreterSource>),
    /// Unwind rules for a process, and the place of their family in the order of all families.
    Unwinder(ProcessKey, usize, Box<dyn Unwinder>),
    /// The recording's VM.
    Vm(VmIdentity),
    /// Records before this time are complete.
    CompleteUntil(TimeNs),
    /// The code of all recognised VMs was read once.
    CodeKnown,
}
