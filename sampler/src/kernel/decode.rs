//! From the bytes of a record to what it says, with every length checked.
//!
//! Layouts: `enum perf_event_type` in `include/uapi/linux/perf_event.h`. Ours have
//! `sample_type` IDENTIFIER|IP|TID|TIME(|CALLCHAIN)(|REGS_USER)(|STACK_USER), and
//! `sample_id_all`, so all but samples end with { pid u32, tid u32, time u64, id u64 }.

use perf_event_open_sys::bindings as sys;
use vmscope_records::{
    Arch, Avma, CallChain, CpuMode, FileOffset, LossReason, Pid, Registers, SampleDetail,
    StackBytes, TimeNs,
};

use super::attr::Extras;
use super::ring::RawRecord;
use crate::engine::RawMapping;

/// `PERF_CONTEXT_MAX`: chain entries from here on are marks, not addresses.
const FIRST_CONTEXT: u64 = sys::PERF_CONTEXT_MAX;

/// The number of the stack pointer among the registers (`perf_regs.h`).
pub(super) const SP_REGISTER: u32 = if cfg!(target_arch = "aarch64") { 31 } else { 7 };

/// A decoded record.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Decoded {
    pub time: u64,
    /// The event it came through: of inherited ones, the one that was opened.
    pub event: u64,
    /// The thread that was running when it was written.
    pub pid: u32,
    pub tid: u32,
    pub body: Body,
}

impl Decoded {
    /// A loss that was found while reading, rather than told by the kernel.
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

/// What a record says.
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
    /// Records were not written for want of room, or made no sense.
    Lost {
        reason: LossReason,
        count: u64,
        /// When the record before the loss was written, where that is known.
        from: u64,
    },
    Throttled,
    Unthrottled,
    /// One of a kind that tells us nothing.
    Nothing,
}

/// Bytes that are eaten from the front.
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

    /// As many u64s as the record says there are, if it can hold them.
    fn words(&mut self, count: u64) -> Option<impl Iterator<Item = u64> + use<'a>> {
        let bytes = usize::try_from(count).ok()?.checked_mul(8)?;
        let (words, _) = self.take(bytes)?.as_chunks::<8>();
        Some(words.iter().map(|word| u64::from_ne_bytes(*word)))
    }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or(bytes)
}

/// Decodes a record, or `None` when its lengths do not fit together.
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
    // A build-id may stand in the place of these (`PERF_RECORD_MISC_MMAP_BUILD_ID`);
    // it is not asked for.
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
    if let Some(depth) = extras.chain_depth {
        let count = from.u64()?;
        detail.chain = Some(call_chain(from.words(count)?, depth, mode));
    }
    if extras.registers != 0 {
        // The ABI is 0 where there are none: a kernel thread, or an exiting one.
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
            // How much of it could be read.
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

/// Sorts a chain by its marks. Each part begins with the pc in that mode (seen on
/// Linux 6.18, and so in `get_perf_callchain`: the user part begins with the
/// interrupted user pc also where the sample was taken in the kernel); the one that
/// is the sample's own pc is left out.
///
/// The kernel does not say that it cut a chain off, so one that is as deep as it
/// may be counts as truncated: a chain of exactly that depth does wrongly.
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
            // Guests and hypervisors are not asked for.
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
    chain.truncated = addresses >= u64::from(depth);
    chain
}

#[cfg(test)]
#[expect(clippy::panic, reason = "tests fail by it")]
mod tests;
