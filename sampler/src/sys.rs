//! System calls of this crate, as safe functions with `io::Result`. Unsafe code exists here and in
//! `kernel::ring` only.
#![expect(
    unsafe_code,
    reason = "the funnel through which all system calls go, so that their safety is argued in one place"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use perf_event_open_sys::bindings::{PERF_FLAG_FD_CLOEXEC, perf_event_attr};
use perf_event_open_sys::ioctls;

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Owns a new descriptor.
fn own(fd: libc::c_int) -> OwnedFd {
    // SAFETY: every caller passes what the kernel has just returned to it, and
    // nobody else knows of.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// `perf_event_open(2)` on thread `tid` and `cpu` (`None`: any), close-on-exec.
pub(crate) fn perf_event_open(
    attr: &perf_event_attr,
    tid: u32,
    cpu: Option<u32>,
) -> io::Result<OwnedFd> {
    let mut attr = *attr;
    let tid = libc::pid_t::try_from(tid).map_err(io::Error::other)?;
    let cpu = match cpu {
        Some(cpu) => libc::c_int::try_from(cpu).map_err(io::Error::other)?,
        None => -1,
    };
    // SAFETY: `attr` is initialized and outlives the call; the kernel writes at most
    // its `size` field. The event measures another thread and touches no memory.
    let fd = unsafe {
        perf_event_open_sys::perf_event_open(
            &raw mut attr,
            tid,
            cpu,
            -1,
            libc::c_ulong::from(PERF_FLAG_FD_CLOEXEC),
        )
    };
    check(fd).map(own)
}

/// Enables an event and its inherited copies.
pub(crate) fn perf_enable(event: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes no pointer.
    check(unsafe { ioctls::ENABLE(event.as_raw_fd(), 0) }).map(drop)
}

/// Disables an event and its inherited copies.
pub(crate) fn perf_disable(event: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes no pointer.
    check(unsafe { ioctls::DISABLE(event.as_raw_fd(), 0) }).map(drop)
}

/// Redirects records of an event and its inherited copies to `output`'s ring.
pub(crate) fn perf_set_output(event: BorrowedFd<'_>, output: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes no pointer.
    check(unsafe { ioctls::SET_OUTPUT(event.as_raw_fd(), output.as_raw_fd()) }).map(drop)
}

/// Event id in the records of an event and its inherited copies.
pub(crate) fn perf_id(event: BorrowedFd<'_>) -> io::Result<u64> {
    let mut id = 0u64;
    // SAFETY: the kernel writes one u64 there.
    check(unsafe { ioctls::ID(event.as_raw_fd(), &raw mut id) })?;
    Ok(id)
}

/// Sets and restarts an event's period, inherited copies excluded.
pub(crate) fn perf_set_period(event: BorrowedFd<'_>, period_ns: u64) -> io::Result<()> {
    let mut period = period_ns;
    // The kernel reads the period from memory (`copy_from_user` in `_perf_ioctl`),
    // although the binding declares a number.
    let pointer = (&raw mut period).expose_provenance() as u64;
    // SAFETY: the argument is the address of a u64 that outlives the call.
    check(unsafe { ioctls::PERIOD(event.as_raw_fd(), pointer) }).map(drop)
}

/// Count of an event, in ns for clocks.
pub(crate) fn perf_count(event: BorrowedFd<'_>) -> io::Result<u64> {
    let mut bytes = [0u8; 8];
    // SAFETY: the kernel writes at most eight bytes there.
    let n = unsafe { libc::read(event.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) };
    match n {
        8 => Ok(u64::from_ne_bytes(bytes)),
        n if n < 0 => Err(io::Error::last_os_error()),
        // The event is in an error state (`PERF_EVENT_STATE_ERROR`).
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// A descriptor that becomes readable at the process's exit.
pub(crate) fn pidfd_open(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: takes no pointer.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = libc::c_int::try_from(fd).map_err(io::Error::other)?;
    check(fd).map(own)
}

/// Result of [`poll`] for one descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Polled {
    /// Data is readable.
    pub readable: bool,
    /// No more data follows.
    pub hung_up: bool,
}

/// Descriptors for [`poll`].
pub(crate) type PollSet = Vec<libc::pollfd>;

/// An entry of a [`PollSet`], for reading.
pub(crate) fn poll_entry(fd: BorrowedFd<'_>) -> libc::pollfd {
    libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    }
}

/// Result of the last [`poll`].
pub(crate) fn polled(entry: &libc::pollfd) -> Polled {
    Polled {
        readable: entry.revents & libc::POLLIN != 0,
        hung_up: entry.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0,
    }
}

/// Waits for readable data, `timeout`, or a signal.
pub(crate) fn poll(set: &mut PollSet, timeout: Duration) -> io::Result<()> {
    let millis = timeout.as_micros().div_ceil(1000);
    let millis = libc::c_int::try_from(millis).unwrap_or(libc::c_int::MAX);
    let count = libc::nfds_t::try_from(set.len()).map_err(io::Error::other)?;
    // SAFETY: the array has `count` entries and is not used by anyone else.
    match check(unsafe { libc::poll(set.as_mut_ptr(), count, millis) }) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            set.iter_mut().for_each(|entry| entry.revents = 0);
            Ok(())
        }
        Err(error) => Err(error),
    }
}

fn timespec_ns(time: libc::timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

fn clock_ns(clock: libc::clockid_t) -> io::Result<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec there.
    check(unsafe { libc::clock_gettime(clock, &raw mut time) })?;
    Ok(timespec_ns(time))
}

/// `CLOCK_MONOTONIC` in ns; 0 on failure, impossible on Linux.
pub(crate) fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// CPU time of a process in ns, exited threads and zombies included; readable by every user
/// (`clock_getcpuclockid(3)`).
pub(crate) fn process_cpu_ns(pid: u32) -> io::Result<u64> {
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the library writes one clockid_t there.
    match unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) } {
        0 => clock_ns(clock),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

pub(crate) fn page_size() -> usize {
    // SAFETY: takes no pointer.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

pub(crate) fn effective_uid() -> u32 {
    // SAFETY: takes no pointer and always succeeds.
    unsafe { libc::geteuid() }
}

/// Raises the soft limit on open descriptors to the hard limit, and returns it.
pub(crate) fn raise_open_files() -> io::Result<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel writes one rlimit there.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    if limit.rlim_cur < limit.rlim_max {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: the kernel reads one rlimit there.
        check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })?;
    }
    Ok(limit.rlim_cur)
}

/// The priority of threads that a thread of real-time priority starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heirs {
    Same,
    /// `SCHED_RESET_ON_FORK`.
    Ordinary,
}

/// Sets `SCHED_FIFO` with `priority` for the calling thread.
pub(crate) fn set_fifo(priority: i32, heirs: Heirs) -> io::Result<()> {
    let flag = match heirs {
        Heirs::Same => 0,
        Heirs::Ordinary => libc::SCHED_RESET_ON_FORK,
    };
    set_policy(0, libc::SCHED_FIFO | flag, priority)
}

/// Ends a thread's real-time priority; its nice value stays.
pub(crate) fn set_ordinary(tid: i32) -> io::Result<()> {
    set_policy(tid, libc::SCHED_OTHER, 0)
}

/// Whether a thread (0: the calling thread) has `SCHED_FIFO`, which its children inherit.
pub(crate) fn hands_on_fifo(tid: i32) -> bool {
    // SAFETY: takes no pointer.
    unsafe { libc::sched_getscheduler(tid) == libc::SCHED_FIFO }
}

fn set_policy(tid: i32, policy: i32, priority: i32) -> io::Result<()> {
    let param = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: the kernel reads one sched_param there.
    check(unsafe { libc::sched_setscheduler(tid, policy, &raw const param) }).map(drop)
}

/// The lowest real-time priority.
pub(crate) fn lowest_fifo_priority() -> i32 {
    // SAFETY: takes no pointer.
    unsafe { libc::sched_get_priority_min(libc::SCHED_FIFO) }.max(1)
}

/// Sets the calling thread's nice value (per thread on Linux, `setpriority(2)`).
pub(crate) fn set_nice(nice: i32) -> io::Result<()> {
    // SAFETY: takes no pointer.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) }).map(drop)
}

/// The calling thread's nice value.
pub(crate) fn nice() -> i32 {
    // The result -1 may be a nice value or an error; the calling thread (0) gives no error.
    // SAFETY: takes no pointer.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

/// A pipe, close-on-exec: read end, write end.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: the kernel writes two descriptors there.
    check(unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) })?;
    Ok((own(fds[0]), own(fds[1])))
}

/// Makes `command`'s child write its pid into `pid_out` before its exec, and wait for a byte from
/// `release`. Closing `release` without a byte fails the start with `ECANCELED`.
///
/// Signals: std's `Command` resets the mask and SIGPIPE; exec resets handlers but not ignored
/// signals, which are reset here.
pub(crate) fn hold_before_exec(
    command: &mut std::process::Command,
    pid_out: OwnedFd,
    release: OwnedFd,
    close: (libc::c_int, libc::c_int),
) {
    use std::os::unix::process::CommandExt as _;
    let hold = move || {
        // The kernel's struct, all zero: SIG_DFL, no flags, empty mask. A raw call, since the C
        // library refuses its own signals (32, 33), which are sometimes inherited ignored.
        let default = [0u64; 4];
        for signal in 1..=64 {
            // SAFETY: async-signal-safe; the kernel reads its struct, 32 bytes at most,
            // and writes none; a number that may not be set only yields EINVAL.
            unsafe {
                libc::syscall(
                    libc::SYS_rt_sigaction,
                    signal,
                    default.as_ptr(),
                    std::ptr::null_mut::<u64>(),
                    8usize,
                )
            };
        }
        // The child must not hold the parent's ends, or it waits for itself.
        // SAFETY: the child is single-threaded and uses neither again.
        unsafe { libc::close(close.0) };
        // SAFETY: as above.
        unsafe { libc::close(close.1) };
        // SAFETY: async-signal-safe, takes no pointer.
        let pid = unsafe { libc::getpid() }.to_ne_bytes();
        // SAFETY: four bytes are read there, fewer than a pipe takes at once.
        let written = unsafe { libc::write(pid_out.as_raw_fd(), pid.as_ptr().cast(), pid.len()) };
        if written != 4 {
            return Err(io::Error::last_os_error());
        }
        let mut byte = [0u8; 1];
        loop {
            // SAFETY: one byte is written there.
            let n = unsafe { libc::read(release.as_raw_fd(), byte.as_mut_ptr().cast(), 1) };
            match n {
                1 => return Ok(()),
                0 => return Err(io::Error::from_raw_os_error(libc::ECANCELED)),
                _ => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
    };
    // SAFETY: between fork and exec the closure calls only async-signal-safe
    // functions (rt_sigaction, close, getpid, write, read) and allocates nothing.
    unsafe { command.pre_exec(hold) };
}
