//! The adapter of a VM that publishes itself.

use std::time::Duration;

use vmscope_process::{
    Adapter, AdapterError, KeptFramePointers, Poll, ProcessView, SampleNeeds, Unwinder,
};
use vmscope_publish::LifetimeRate;
use vmscope_publish::reader::{Attached, Identity};
use vmscope_records::{TimeNs, VmIdentity};

use crate::books::Books;
use crate::needs::sample_needs;
use crate::stream::{Batch, Stream};

/// Pause between polls. Events carry timestamps, and a thread reads the stream during pauses.
const PAUSE: Duration = Duration::from_millis(50);

/// Reads one VM.
#[derive(Debug)]
pub(crate) struct PublishAdapter {
    identity: Identity,
    /// `Some` before the first poll.
    attached: Option<Attached>,
    stream: Option<Stream>,
    rate: Option<LifetimeRate>,
    books: Books,
}

impl PublishAdapter {
    /// With a `rate`, the VM publishes lifetimes of objects while the adapter reads.
    pub fn new(attached: Attached, rate: Option<LifetimeRate>) -> Self {
        if let Some(rate) = rate {
            attached.set_lifetime_rate(rate);
        }
        PublishAdapter {
            identity: attached.identity().clone(),
            attached: Some(attached),
            stream: None,
            rate,
            books: Books::default(),
        }
    }

    fn take(&mut self, batch: Batch, process: &ProcessView, poll: &mut Poll) {
        let read_until = TimeNs(batch.read_until);
        self.books.take(batch, process, poll);
        poll.happened_at(None);
        poll.code_is_told_until(match self.books.is_complete() {
            true => read_until.min(poll.began()),
            false => TimeNs(0),
        });
    }
}

impl Adapter for PublishAdapter {
    fn identity(&self) -> VmIdentity {
        VmIdentity {
            kind: self.identity.name.clone(),
            version: self.identity.version.clone(),
        }
    }

    fn sample_needs(&self) -> SampleNeeds {
        sample_needs()
    }

    fn poll(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        if let Some(attached) = self.attached.take() {
            let started = Stream::start(attached).map_err(|source| AdapterError::File {
                path: "the VM's shared memory".to_owned(),
                source,
            })?;
            self.stream = Some(started);
            if let Some(rate) = self.rate.filter(|rate| rate.distance > 0) {
                poll.fact("sampling of lifetimes", rate.to_string());
            }
        }
        if let Some(stream) = &self.stream {
            let batch = stream.take();
            self.take(batch, process, poll);
        }
        Ok(())
    }

    fn unwinder(&mut self, process: &ProcessView) -> Option<Box<dyn Unwinder>> {
        Some(Box::new(KeptFramePointers::new(
            process.shared_memory(),
            self.books.pieces.clone(),
            self.books.frames.clone(),
        )))
    }

    fn tells_all_code(&self) -> bool {
        self.books.is_complete()
    }

    fn next_poll(&self) -> Duration {
        PAUSE
    }

    fn finish(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        if let Some(stream) = &mut self.stream {
            let batch = stream.end(!process.is_alive());
            self.take(batch, process, poll);
        }
        self.books.finish(poll);
        Ok(())
    }
}
