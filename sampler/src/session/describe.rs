//! The session record.

use crate::engine::EngineDescription;
use nix::sys::utsname::uname;
use nix::time::{ClockId, clock_gettime};
use std::io::Read;
use vmscope_records::{Arch, Pid, Session, TimeNs, VmIdentity};

/// Longest kept command line in bytes; the kernel's bound is megabytes.
const MAX_COMMAND_BYTES: u64 = 64 << 10;

/// Current time on the clock of all records (`CLOCK_MONOTONIC`).
#[must_use]
pub fn now() -> TimeNs {
    let time =
        clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(std::time::Duration::ZERO, Into::into);
    TimeNs(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// A process's arguments; empty if unreadable.
#[must_use]
pub fn command_line(pid: Pid) -> Vec<String> {
    let mut bytes = Vec::new();
    if let Ok(file) = std::fs::File::open(format!("/proc/{pid}/cmdline")) {
        // Bytes before an error are kept.
        let _ = file.take(MAX_COMMAND_BYTES).read_to_end(&mut bytes);
    }
    let text = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    if text.is_empty() {
        return Vec::new();
    }
    text.split(|&byte| byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

pub(super) fn session(
    engine: &EngineDescription,
    engine_reason: &str,
    pid: Pid,
    launched: bool,
    command: Vec<String>,
    scheduling: String,
    time: TimeNs,
) -> Session {
    let system = uname().ok();
    let word = |text: Option<&std::ffi::OsStr>| {
        text.map_or_else(String::new, |text| text.to_string_lossy().into_owned())
    };
    let system = system.as_ref();
    // The wall clock at `time`.
    let since = now().since(time).0;
    let wall = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |elapsed| u64::try_from(elapsed.as_nanos()).unwrap_or(0));
    Session {
        time,
        wall_clock_unix_ns: wall.saturating_sub(since),
        producer: concat!("vmscope ", env!("CARGO_PKG_VERSION")).to_owned(),
        vm: VmIdentity {
            kind: "native".to_owned(),
            version: String::new(),
        },
        command,
        pid,
        launched,
        host: word(system.map(|system| system.nodename())),
        kernel: format!(
            "{} {}",
            word(system.map(|system| system.sysname())),
            word(system.map(|system| system.release()))
        ),
        arch: Arch::of_this_machine(),
        cpus: std::thread::available_parallelism()
            .map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX)),
        engine: engine.name.to_owned(),
        engine_reason: engine_reason.to_owned(),
        clock: engine.clock,
        period: engine.period,
        kernel_included: engine.kernel_included,
        scheduling,
    }
}
