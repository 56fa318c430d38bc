//! Every system call of this crate, each a safe function that returns
//! `io::Result`: the only place, with `kernel::ring`, where there is unsafe code.
#![expect(
    unsafe_code,
    reason = "the funnel through which all system calls go, so that their safety is argued in one place"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use perf_event_open_sys::bindings::{PERF_FLAG_FD_CLOEXEC, perf_event_attr};
use perf_event_open_sys::ioctls;

/// A C return value as a result: -1 is `errno`.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// A fresh descriptor, returned by a call that has just succeeded.
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

/// Starts the event and all that were inherited from it.
pub(crate) fn perf_enable(event: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes no pointer.
    check(unsafe { ioctls::ENABLE(event.as_raw_fd(), 0) }).map(drop)
}

/// Stops the event and all that were inherited from it.
pub(crate) fn perf_disable(event: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes no pointer.
    check(unsafe { ioctls::DISABLE(event.as_raw_fd(), 0) }).map(drop)
}

/// Lets the event (and what inherits from it) write into `output`'s ring.
pub(crate) fn perf_set_output(event: BorrowedFd<'_>, output: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes no pointer.
    check(unsafe { ioctls::SET_OUTPUT(event.as_raw_fd(), output.as_raw_fd()) }).map(drop)
}

/// The id that the event's records (and those of what inherits from it) carry.
pub(crate) fn perf_id(event: BorrowedFd<'_>) -> io::Result<u64> {
    let mut id = 0u64;
    // SAFETY: the kernel writes one u64 there.
    check(unsafe { ioctls::ID(event.as_raw_fd(), &raw mut id) })?;
    Ok(id)
}

/// Sets the event's period (not that of those inherited from it) and starts it anew.
pub(crate) fn perf_set_period(event: BorrowedFd<'_>, period_ns: u64) -> io::Result<()> {
    let mut period = period_ns;
    // The kernel reads the period from memory (`copy_from_user` in `_perf_ioctl`),
    // although the binding declares a number.
    let pointer = (&raw mut period).expose_provenance() as u64;
    // SAFETY: the argument is the address of a u64 that outlives the call.
    check(unsafe { ioctls::PERIOD(event.as_raw_fd(), pointer) }).map(drop)
}

/// Reads a counting event: its count so far, in ns for the clocks.
pub(crate) fn perf_count(event: BorrowedFd<'_>) -> io::Result<u64> {
    let mut bytes = [0u8; 8];
    // SAFETY: the kernel writes at most eight bytes there.
    let n = unsafe { libc::read(event.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) };
    match n {
        8 => Ok(u64::from_ne_bytes(bytes)),
        n if n < 0 => Err(io::Error::last_os_error()),
        // The event could not be scheduled (`PERF_EVENT_STATE_ERROR`).
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// A descriptor of the process that becomes readable when it has ended.
pub(crate) fn pidfd_open(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: takes no pointer.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = libc::c_int::try_from(fd).map_err(io::Error::other)?;
    check(fd).map(own)
}

/// What [`poll`] saw on one descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Polled {
    /// There is something to read.
    pub readable: bool,
    /// There will be no more.
    pub hung_up: bool,
}

/// Descriptors to wait for, kept between calls of [`poll`].
pub(crate) type PollSet = Vec<libc::pollfd>;

/// An entry of a [`PollSet`] that waits for something to read.
pub(crate) fn poll_entry(fd: BorrowedFd<'_>) -> libc::pollfd {
    libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    }
}

/// What the last [`poll`] saw.
pub(crate) fn polled(entry: &libc::pollfd) -> Polled {
    Polled {
        readable: entry.revents & libc::POLLIN != 0,
        hung_up: entry.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0,
    }
}

/// Waits until something can be read or `timeout` is over. A signal ends the wait
/// early, as if nothing had happened.
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

/// `CLOCK_MONOTONIC` now, in ns. It cannot fail on Linux; 0 if it did.
pub(crate) fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// CPU time of a whole process, threads that have ended included, in ns; also of
/// a zombie. Anyone may ask (`clock_getcpuclockid(3)`).
pub(crate) fn process_cpu_ns(pid: u32) -> io::Result<u64> {
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the library writes one clockid_t there.
    match unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) } {
        0 => clock_ns(clock),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Bytes in a page.
pub(crate) fn page_size() -> usize {
    // SAFETY: takes no pointer.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

/// The user that we act as.
pub(crate) fn effective_uid() -> u32 {
    // SAFETY: takes no pointer and always succeeds.
    unsafe { libc::geteuid() }
}

/// Raises the soft limit on open descriptors to the hard one and returns it.
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

/// Gives the calling thread `SCHED_FIFO` at `priority`; what it starts begins at
/// the ordinary one (`SCHED_RESET_ON_FORK`).
pub(crate) fn set_fifo(priority: i32) -> io::Result<()> {
    let param = libc::sched_param {
        sched_priority: priority,
    };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the kernel reads one sched_param there.
    check(unsafe { libc::sched_setscheduler(0, policy, &raw const param) }).map(drop)
}

/// The lowest real-time priority.
pub(crate) fn lowest_fifo_priority() -> i32 {
    // SAFETY: takes no pointer.
    unsafe { libc::sched_get_priority_min(libc::SCHED_FIFO) }.max(1)
}

/// Sets the calling thread's nice value (on Linux it is the thread's, `setpriority(2)`).
pub(crate) fn set_nice(nice: i32) -> io::Result<()> {
    // SAFETY: takes no pointer.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) }).map(drop)
}

/// The calling thread's nice value.
pub(crate) fn nice() -> i32 {
    // -1 is an answer as well as an error, but with 0 for "this thread" there is none.
    // SAFETY: takes no pointer.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

/// A pipe, close-on-exec: reading end, writing end.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: the kernel writes two descriptors there.
    check(unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) })?;
    Ok((own(fds[0]), own(fds[1])))
}

/// Makes `command`'s child, just before its exec, write its pid into `told` and
/// wait until something can be read from `release`. When `release` ends without
/// that, the child fails to start with `ECANCELED`.
///
/// Signals: std's `Command` gives the child an empty mask and SIGPIPE's default;
/// exec itself resets handlers, but not what is ignored, so that is reset here.
pub(crate) fn hold_before_exec(
    command: &mut std::process::Command,
    told: OwnedFd,
    release: OwnedFd,
    close: (libc::c_int, libc::c_int),
) {
    use std::os::unix::process::CommandExt as _;
    let hold = move || {
        // The kernel's own struct, all zero: SIG_DFL, no flags, empty mask. By the raw
        // call, as the C library does not touch the signals it uses itself (32, 33),
        // which are sometimes inherited ignored.
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
        // The parent's ends: while this child holds them too, it would wait for itself.
        // SAFETY: the child is single-threaded and uses neither again.
        unsafe { libc::close(close.0) };
        // SAFETY: as above.
        unsafe { libc::close(close.1) };
        // SAFETY: async-signal-safe, takes no pointer.
        let pid = unsafe { libc::getpid() }.to_ne_bytes();
        // SAFETY: four bytes are read there, fewer than a pipe takes at once.
        let written = unsafe { libc::write(told.as_raw_fd(), pid.as_ptr().cast(), pid.len()) };
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
