//! The `perf_event_attr`s of all events.
//!
//! Source: `include/uapi/linux/perf_event.h` and perf_event_open(2).

use perf_event_open_sys::bindings::{self as sys, perf_event_attr};

/// Optional sample contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extras {
    /// The kernel's call chains.
    pub chain: Option<KernelChain>,
    /// User registers by the kernel's numbers; 0 for none.
    pub registers: u64,
    /// Bytes of user stack, a multiple of 8 below 64 KiB; 0 for none.
    pub stack_bytes: u16,
    /// The part of them that adapters need; callers may do with less.
    pub needed_stack: u16,
}

/// Number of stacks that a ring holds at least: some 20 ms of samples of a thread, in which a drain
/// without priority mostly gets a CPU. Losing samples is worse than cutting stacks off.
const STACKS_IN_RING: usize = 32;

impl Extras {
    /// Copies no more user stack than a ring of this size has room for.
    pub fn fit(&mut self, ring_bytes: usize) {
        let room = u16::try_from(ring_bytes / STACKS_IN_RING).unwrap_or(u16::MAX);
        self.stack_bytes = self.stack_bytes.min(room.max(self.needed_stack)) & !7;
    }
}

/// A kernel's call chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KernelChain {
    /// Maximum frames, kernel and user together.
    pub depth: u16,
    /// Follow frame pointers in user code, too.
    pub user: bool,
}

/// Properties of all events, determined when opening the first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recipe {
    pub period_ns: u64,
    pub extras: Extras,
    /// Exclude kernel and hypervisor.
    pub exclude_kernel: bool,
    /// Include started threads, from their first instruction.
    pub inherit: bool,
    /// Inherit to threads only, not to processes (Linux 5.13).
    pub inherit_thread: bool,
    /// Start at the next exec instead of on command.
    pub on_exec: bool,
    /// Ring fill level that wakes the reader, in bytes.
    pub wakeup_bytes: u32,
}

fn software(config: sys::perf_sw_ids) -> perf_event_attr {
    let mut attr = perf_event_attr {
        type_: sys::PERF_TYPE_SOFTWARE,
        // The kernel accepts a longer struct if the rest is zero (`perf_copy_attr`).
        size: u32::try_from(size_of::<perf_event_attr>()).unwrap_or(0),
        config: u64::from(config),
        clockid: libc::CLOCK_MONOTONIC,
        ..perf_event_attr::default()
    };
    attr.set_use_clockid(1);
    attr
}

impl Recipe {
    /// The sampling event of a thread.
    pub fn sampling(&self) -> perf_event_attr {
        let mut attr = software(sys::PERF_COUNT_SW_CPU_CLOCK);
        attr.__bindgen_anon_1.sample_period = self.period_ns;
        attr.__bindgen_anon_2.wakeup_watermark = self.wakeup_bytes;
        attr.set_watermark(1);
        attr.sample_type = u64::from(
            sys::PERF_SAMPLE_IDENTIFIER
                | sys::PERF_SAMPLE_IP
                | sys::PERF_SAMPLE_TID
                | sys::PERF_SAMPLE_TIME,
        );
        if let Some(chain) = self.extras.chain {
            attr.sample_type |= u64::from(sys::PERF_SAMPLE_CALLCHAIN);
            attr.sample_max_stack = chain.depth;
            attr.set_exclude_callchain_user(u64::from(!chain.user));
            attr.set_exclude_callchain_kernel(u64::from(self.exclude_kernel));
        }
        if self.extras.registers != 0 {
            attr.sample_type |= u64::from(sys::PERF_SAMPLE_REGS_USER);
            attr.sample_regs_user = self.extras.registers;
        }
        if self.extras.stack_bytes != 0 {
            attr.sample_type |= u64::from(sys::PERF_SAMPLE_STACK_USER);
            attr.sample_stack_user = u32::from(self.extras.stack_bytes);
        }
        attr.set_sample_id_all(1);
        attr.set_task(1);
        attr.set_comm(1);
        attr.set_comm_exec(1);
        // `mmap` without `mmap_data`: executable mappings only.
        attr.set_mmap(1);
        attr.set_mmap2(1);
        attr.set_inherit(u64::from(self.inherit));
        attr.set_inherit_thread(u64::from(self.inherit && self.inherit_thread));
        self.start_and_mode(&mut attr);
        attr
    }

    /// Counts one thread's CPU time in ns, readable after its end. An inherited counter would
    /// include children.
    pub fn counter(&self) -> perf_event_attr {
        let mut attr = software(sys::PERF_COUNT_SW_CPU_CLOCK);
        self.start_and_mode(&mut attr);
        attr
    }

    /// A dummy event that owns its CPU's ring.
    pub fn ring_owner(&self) -> perf_event_attr {
        let mut attr = software(sys::PERF_COUNT_SW_DUMMY);
        attr.__bindgen_anon_2.wakeup_watermark = self.wakeup_bytes;
        attr.set_watermark(1);
        // Allows it for every user.
        attr.set_exclude_kernel(1);
        attr.set_exclude_hv(1);
        attr
    }

    fn start_and_mode(&self, attr: &mut perf_event_attr) {
        attr.set_disabled(1);
        attr.set_enable_on_exec(u64::from(self.on_exec));
        attr.set_exclude_kernel(u64::from(self.exclude_kernel));
        attr.set_exclude_hv(u64::from(self.exclude_kernel));
    }
}
