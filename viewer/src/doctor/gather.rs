//! Gathers the machine's facts from `/proc`, `/sys` and resource limits.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind};

use anyhow::Context;
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::{Uid, User, geteuid};

use super::facts::{Capabilities, Limit, MachineFacts, Setting};

/// Collects the machine's facts.
///
/// # Errors
/// Unreadable `/proc`; single unreadable settings are facts.
pub fn machine() -> anyhow::Result<MachineFacts> {
    let status = procfs::process::Process::myself()
        .and_then(|me| me.status())
        .context("cannot read /proc/self/status: is /proc mounted?")?;
    let uid = geteuid().as_raw();
    Ok(MachineFacts {
        kernel_release: fs::read_to_string("/proc/sys/kernel/osrelease")
            .context("cannot read /proc/sys/kernel/osrelease")?
            .trim()
            .to_owned(),
        cpus: cpus_online(),
        paranoid: setting("kernel/perf_event_paranoid"),
        mlock_kb: setting("kernel/perf_event_mlock_kb"),
        kptr_restrict: setting("kernel/kptr_restrict"),
        kernel_addresses: kernel_addresses(),
        ptrace_scope: setting("kernel/yama/ptrace_scope"),
        uid,
        user: user_name(uid),
        capabilities: Capabilities(status.capeff),
        // Missing before Linux 2.6.26 only.
        bounding: Capabilities(status.capbnd.unwrap_or(u64::MAX)),
        initial_user_namespace: fs::read_to_string("/proc/self/uid_map")
            .is_ok_and(|map| maps_every_user(&map)),
        rtprio: limit(Resource::RLIMIT_RTPRIO)?,
        nice: limit(Resource::RLIMIT_NICE)?,
        descriptors: limit(Resource::RLIMIT_NOFILE)?,
        seccomp_filter: status.seccomp == Some(2),
        container: container(),
    })
}

/// A user's name, from the user database.
pub fn user_name(uid: u32) -> Option<String> {
    User::from_uid(Uid::from_raw(uid))
        .ok()
        .flatten()
        .map(|user| user.name)
}

fn setting(path: &str) -> Setting {
    match fs::read_to_string(format!("/proc/sys/{path}")) {
        Ok(text) => match text.trim().parse() {
            Ok(value) => Setting::Value(value),
            Err(_) => Setting::Unreadable(format!("not a number: {:?}", text.trim())),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Setting::Absent,
        Err(error) => Setting::Unreadable(error.to_string()),
    }
}

fn limit(resource: Resource) -> anyhow::Result<Limit> {
    let (soft, hard) =
        getrlimit(resource).with_context(|| format!("getrlimit({resource:?}) failed"))?;
    Ok(Limit { soft, hard })
}

/// All CPUs online: the target may run on CPUs that vmscope may not use.
fn cpus_online() -> u32 {
    fs::read_to_string("/sys/devices/system/cpu/online")
        .ok()
        .and_then(|list| count_cpus(list.trim()))
        .unwrap_or_else(|| {
            let here = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            u32::try_from(here).unwrap_or(u32::MAX)
        })
}

/// Number of CPUs in a list such as `0-3,8`; `None` for other texts.
fn count_cpus(list: &str) -> Option<u32> {
    list.split(',').try_fold(0_u32, |sum, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

/// The initial user namespace maps every id to itself. Other namespaces with this map require root.
fn maps_every_user(uid_map: &str) -> bool {
    uid_map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// An attempt, since the rules of `kptr_restrict` differ between kernels. Without permission, the
/// kernel prints zeros.
fn kernel_addresses() -> bool {
    let Ok(file) = fs::File::open("/proc/kallsyms") else {
        return false;
    };
    // The list begins with per-CPU symbols, the first one at address 0.
    BufReader::new(file)
        .lines()
        .take(64)
        .map_while(Result::ok)
        .any(|line| {
            line.split(' ')
                .next()
                .is_some_and(|a| a.bytes().any(|digit| digit != b'0'))
        })
}

/// A guess for hints only.
fn container() -> Option<(String, String)> {
    let named = |kind: &str, by: &str| Some((kind.to_owned(), by.to_owned()));
    if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
        return named("kubernetes", "$KUBERNETES_SERVICE_HOST");
    }
    if fs::exists("/run/.containerenv").unwrap_or(false) {
        return named("podman", "/run/.containerenv");
    }
    if fs::exists("/.dockerenv").unwrap_or(false) {
        return named("docker", "/.dockerenv");
    }
    if let Ok(kind) = fs::read_to_string("/run/systemd/container") {
        return named(kind.trim(), "/run/systemd/container");
    }
    let cgroup = fs::read_to_string("/proc/1/cgroup").unwrap_or_default();
    ["kubepods", "docker", "containerd", "lxc"]
        .into_iter()
        .find(|kind| cgroup.contains(kind))
        .and_then(|kind| named(kind, "/proc/1/cgroup"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_counted() {
        assert_eq!(count_cpus("0"), Some(1));
        assert_eq!(count_cpus("0-3,8"), Some(5));
        assert_eq!(count_cpus("3-0"), None);
        assert_eq!(count_cpus(""), None);
        assert_eq!(count_cpus("0-4294967295"), None);
    }

    #[test]
    fn only_the_whole_map_is_the_initial_namespace() {
        assert!(maps_every_user("         0          0 4294967295\n"));
        assert!(!maps_every_user("         0       1000          1\n"));
        assert!(!maps_every_user(""));
    }

    #[test]
    fn this_machine_can_be_looked_at() {
        let facts = machine().expect("a machine with /proc");
        assert!(facts.cpus >= 1);
        assert!(!facts.kernel_release.is_empty());
    }
}
