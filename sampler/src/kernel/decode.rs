//! Decodes ring records, with all lengths checked.
//!
//! Layouts: `enum perf_event_type` in `include/uapi/linux/perf_event.h`. Our `sample_type` is
//! IDENTIFIER|IP|TID|TIME(|CALLCHAIN)(|REGS_USER)(|STACK_USER), with `sample_id_all`: records other
//! than samples end with { pid u32, tid u32, time u64, id u64 }.

use perf_event_open_sys::bindings as sys;
use vmscope_records::{
    Arch, Avma, CallChain, ChainEnd, CpuMode, FileOffset, LossReason, Pid, Registers, SampleDetail,
    StackBytes, TimeNs,
};

use super::attr::Extras;
use super::ring::RawRecord;
use crate::engine::RawMapping;

/// `PERF_CONTEXT_MAX`: chain entries from here on are context marks.
const FIRST_CONTEXT: u64 = sys::PERF_CONTEXT_MAX;

/// Register number of the stack pointer (`perf_regs.h`).
pub(super) const SP_REGISTER: u32 = if cfg!(target_arch = "aarch64") { 31 } else { 7 };

/// General registers, stack pointer and pc (`perf_regs.h`): AX to IP and R8 to R15; on aarch64
/// x0 to x30, sp and pc.
pub(super) const GENERAL_REGISTERS: u64 = match cfg!(target_arch = "aarch64") {
    true => (1 << 33) - 1,
    false => 0x00ff_01ff,
};

/// A decoded record.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Decoded {
    pub time: u64,
    /// Id of the opened event, also for inherited ones.
    pub event: u64,
    /// The running thread.
    pub pid: u32,
    pub tid: u32,
    pub body: Body,
}

impl Decoded {
    /// A loss found while reading, not reported by the kernel.
    pub fn lost(reason: LossReason, count: u64, from: u64, to: u64) -> Self {
        Self {
            time: to,
            event: 0,
            pid: 0,
            tid: 0,
            body: Body::Lost {
                reason,
                count,
                from,
            },
        }
    }
}

/// Contents of a record.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Body {
    Sample {
        pc: u64,
        mode: CpuMode,
        detail: Option<Box<SampleDetail>>,
    },
    Forked {
        pid: u32,
        parent_pid: u32,
        tid: u32,
        parent_tid: u32,
    },
    Exited {
        tid: u32,
    },
    Named {
        pid: u32,
        tid: u32,
        name: String,
        exec: bool,
    },
    Mapped(Box<RawMapping>),
    /// Records lost to a full ring, or undecodable.
    Lost {
        reason: LossReason,
        count: u64,
        /// Time of the last record before the loss, if known.
        from: u64,
    },
    Throttled,
    Unthrottled,
    /// An irrelevant record.
    Nothing,
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(front)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.take(8)?.try_into().ok()?))
    }

    /// `count` words, if the record holds as many.
    fn words(&mut self, count: u64) -> Option<impl Iterator<Item = u64> + use<'a>> {
        let bytes = usize::try_from(count).ok()?.checked_mul(8)?;
        let (words, _) = self.take(bytes)?.as_chunks::<8>();
        Some(words.iter().map(|word| u64::from_ne_bytes(*word)))
    }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or(bytes)
}

/// Decodes a record; `None` for inconsistent lengths.
pub(super) fn decode(record: RawRecord<'_>, extras: &Extras) -> Option<Decoded> {
    if record.kind == sys::PERF_RECORD_SAMPLE {
        return sample(record, extras);
    }
    let (body, trailer) = record
        .body
        .split_at_checked(record.body.len().checked_sub(24)?)?;
    let mut trailer = Bytes(trailer);
    let (pid, tid) = (trailer.u32()?, trailer.u32()?);
    let (time, event) = (trailer.u64()?, trailer.u64()?);
    let mut from = Bytes(body);
    let body = match record.kind {
        sys::PERF_RECORD_FORK => {
            let (pid, parent_pid) = (from.u32()?, from.u32()?);
            let (tid, parent_tid) = (from.u32()?, from.u32()?);
            Body::Forked {
                pid,
                parent_pid,
                tid,
                parent_tid,
            }
        }
        sys::PERF_RECORD_EXIT => {
            let _pids = from.take(8)?;
            Body::Exited { tid: from.u32()? }
        }
        sys::PERF_RECORD_COMM => Body::Named {
            pid: from.u32()?,
            tid: from.u32()?,
            name: String::from_utf8_lossy(until_nul(from.0)).into_owned(),
            exec: u32::from(record.misc) & sys::PERF_RECORD_MISC_COMM_EXEC != 0,
        },
        sys::PERF_RECORD_MMAP2 => mapping(from, record.misc, time)?,
        sys::PERF_RECORD_LOST => {
            let _id = from.u64()?;
            Body::Lost {
                reason: LossReason::RingOverrun,
                count: from.u64()?,
                from: 0,
            }
        }
        sys::PERF_RECORD_LOST_SAMPLES => Body::Lost {
            reason: LossReason::RingOverrun,
            count: from.u64()?,
            from: 0,
        },
        sys::PERF_RECORD_THROTTLE => Body::Throttled,
        sys::PERF_RECORD_UNTHROTTLE => Body::Unthrottled,
        _ => Body::Nothing,
    };
    Some(Decoded {
        time,
        event,
        pid,
        tid,
        body,
    })
}

fn mapping(mut from: Bytes<'_>, misc: u16, time: u64) -> Option<Body> {
    let (pid, _tid) = (from.u32()?, from.u32()?);
    let (start, len, offset) = (from.u64()?, from.u64()?, from.u64()?);
    // A build-id may replace these fields (`PERF_RECORD_MISC_MMAP_BUILD_ID`); we do not request it.
    let (major, minor) = (from.u32()?, from.u32()?);
    let (inode, _generation) = (from.u64()?, from.u64()?);
    let (protection, _flags) = (from.u32()?, from.u32()?);
    let has_build_id = u32::from(misc) & sys::PERF_RECORD_MISC_MMAP_BUILD_ID != 0;
    Some(Body::Mapped(Box::new(RawMapping {
        time: TimeNs(time),
        pid: Pid(pid),
        start: Avma(start),
        len,
        offset: FileOffset(offset),
        major: if has_build_id { 0 } else { major },
        minor: if has_build_id { 0 } else { minor },
        inode: if has_build_id { 0 } else { inode },
        path: until_nul(from.0).to_vec(),
        // PROT_EXEC is 4 everywhere.
        executable: protection & 4 != 0,
    })))
}

fn sample(record: RawRecord<'_>, extras: &Extras) -> Option<Decoded> {
    let mut from = Bytes(record.body);
    let (event, pc) = (from.u64()?, from.u64()?);
    let (pid, tid) = (from.u32()?, from.u32()?);
    let time = from.u64()?;
    let mode = match u32::from(record.misc) & sys::PERF_RECORD_MISC_CPUMODE_MASK {
        sys::PERF_RECORD_MISC_USER => CpuMode::User,
        sys::PERF_RECORD_MISC_KERNEL => CpuMode::Kernel,
        _ => CpuMode::Other,
    };
    let detail = if *extras == Extras::default() {
        None
    } else {
        Some(Box::new(details(from, extras, mode)?))
    };
    Some(Decoded {
        time,
        event,
        pid,
        tid,
        body: Body::Sample { pc, mode, detail },
    })
}

fn details(mut from: Bytes<'_>, extras: &Extras, mode: CpuMode) -> Option<SampleDetail> {
    let mut detail = SampleDetail::default();
    if let Some(asked) = extras.chain {
        let count = from.u64()?;
        detail.chain = Some(call_chain(from.words(count)?, asked.depth, mode));
    }
    if extras.registers != 0 {
        // The ABI is 0 without registers: kernel threads, exiting threads.
        let abi = from.u64()?;
        if abi != 0 {
            let count = u64::from(extras.registers.count_ones());
            detail.registers = Some(Registers {
                arch: Arch::of_this_machine(),
                mask: extras.registers,
                values: from.words(count)?.collect(),
            });
        }
    }
    if extras.stack_bytes != 0 {
        let size = usize::try_from(from.u64()?).ok()?;
        if size != 0 {
            let dump = from.take(size)?;
            // Readable bytes.
            let valid = usize::try_from(from.u64()?).ok()?;
            let sp = detail.registers.as_ref().and_then(|r| r.value(SP_REGISTER));
            if let Some(sp) = sp {
                detail.stack = Some(StackBytes {
                    sp: Avma(sp),
                    bytes: dump.get(..valid)?.to_vec(),
                });
            }
        }
    }
    Some(detail)
}

/// Splits a chain at its context marks. Each part begins with the pc in its mode (Linux 6.18,
/// `get_perf_callchain`; the user part begins with the interrupted user pc, also for kernel
/// samples); the sample's own pc is omitted.
///
/// The kernel does not mark truncation: a chain of maximum depth counts as truncated, also a
/// complete one of exactly that depth.
fn call_chain(entries: impl Iterator<Item = u64>, depth: u16, mode: CpuMode) -> CallChain {
    let mut chain = CallChain::default();
    let mut context = 0;
    let mut addresses = 0u64;
    for entry in entries {
        if entry >= FIRST_CONTEXT {
            context = entry;
            continue;
        }
        addresses += 1;
        match context {
            sys::PERF_CONTEXT_KERNEL => chain.kernel.push(Avma(entry)),
            sys::PERF_CONTEXT_USER => chain.user.push(Avma(entry)),
            // Guests and hypervisors are excluded.
            _ => {}
        }
    }
    let own = match mode {
        CpuMode::Kernel => &mut chain.kernel,
        _ => &mut chain.user,
    };
    if !own.is_empty() {
        own.remove(0);
    }
    if addresses >= u64::from(depth) {
        chain.end = ChainEnd::Depth;
    }
    chain
}

#[cfg(test)]
#[expect(clippy::panic, reason = "tests fail by it")]
mod tests;
