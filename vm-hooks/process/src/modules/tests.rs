use std::path::Path;
use std::process::{Child, Command, Stdio};

use vmscope_records::ModuleState;

use super::*;
use crate::opening::mapped_build_id;

/// A sleeping child process, killed on drop.
struct Sleeper(Child);

impl Sleeper {
    fn run(program: &Path) -> Self {
        let child = Command::new(program)
            .arg("600")
            .stdout(Stdio::null())
            .spawn();
        let sleeper = Self(child.unwrap());
        sleeper.wait_until_running();
        sleeper
    }

    fn pid(&self) -> Pid {
        Pid(self.0.id())
    }

    /// Waits until the child sleeps: until the dynamic linker has finished.
    fn wait_until_running(&self) {
        for _ in 0..2000 {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
            let waits = std::fs::read_to_string(format!("/proc/{}/syscall", self.pid()));
            let sleeping = stat.contains(") S ");
            // clock_nanosleep, if readable.
            if sleeping
                && waits
                    .is_ok_and(|call| call.starts_with("230 ") || cfg!(not(target_arch = "x86_64")))
            {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn sleep_program() -> &'static Path {
    let candidates = ["/usr/bin/sleep", "/bin/sleep"].map(Path::new);
    candidates.into_iter().find(|path| path.exists()).unwrap()
}

fn copied(dir: &tempfile::TempDir) -> std::path::PathBuf {
    let copy = dir.path().join("sleeper");
    copy_program(sleep_program(), &copy);
    copy
}

/// Copies in another process. A child started by a parallel test inherits our descriptors; a
/// descriptor open for writing makes a program busy (ETXTBSY).
fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status();
    assert!(copied.unwrap().success());
}

fn sightings(scanned: Result<Vec<(MapEntry, Sighting)>, MapsError>) -> Vec<Sighting> {
    let scanned = scanned.unwrap().into_iter();
    scanned.map(|(_, sighting)| sighting).collect()
}

fn module_named<'a>(sightings: &'a [Sighting], part: &str) -> &'a Module {
    let modules = || sightings.iter().filter_map(|s| s.new_module.as_ref());
    let found = modules().find(|module| module.path.contains(part));
    found.unwrap_or_else(|| panic!("{part} among {:?}", modules().collect::<Vec<_>>()))
}

#[test]
fn the_modules_of_a_child() {
    let child = Sleeper::run(sleep_program());
    let mut modules = Modules::new();
    let seen = sightings(modules.scan(child.pid(), TimeNs(7)));
    let program = module_named(&seen, "sleep");
    assert_eq!(program.state, ModuleState::Opened);
    assert!(
        program.size > 0 && program.build_id.is_some(),
        "{program:?}"
    );
    let file = modules.file(program.key).unwrap();
    assert_eq!(file.read_at(0, 4).unwrap(), b"\x7fELF");
    let vdso = module_named(&seen, "[vdso]");
    assert_eq!(vdso.state, ModuleState::Vdso);
    let image = modules.file(vdso.key).unwrap();
    assert_eq!(image.read_at(0, 4).unwrap(), b"\x7fELF");
    assert!(!image.holds_descriptor());
    assert!(vdso.build_id.is_some());
    assert!(seen.iter().all(|sighting| sighting.executable));
    let mapping = seen[0].mapping(ProcessKey(3), TimeNs(9));
    assert_eq!((mapping.process, mapping.time), (ProcessKey(3), TimeNs(9)));

    // Another process shares keys; no new modules.
    let other = Sleeper::run(sleep_program());
    let again = sightings(modules.scan(other.pid(), TimeNs(8)));
    assert!(again.iter().all(|sighting| sighting.new_module.is_none()));
    assert_eq!(again[0].module, seen[0].module);
    assert!(modules.take_limits(TimeNs(9)).is_empty());
}

#[test]
fn a_deleted_program_is_still_opened() {
    let dir = tempfile::tempdir().unwrap();
    let program = copied(&dir);
    let child = Sleeper::run(&program);
    std::fs::remove_file(&program).unwrap();
    let mut modules = Modules::new();
    let seen = sightings(modules.scan(child.pid(), TimeNs(0)));
    let module = module_named(&seen, "sleeper");
    assert_eq!(module.state, ModuleState::Opened);
    assert!(module.path.ends_with("sleeper"), "{}", module.path);
    assert!(modules.file(module.key).is_some());
}

#[test]
fn a_replaced_program_is_not_taken_for_the_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let program = copied(&dir);
    let child = Sleeper::run(&program);
    std::fs::remove_file(&program).unwrap();
    copy_program(&std::env::current_exe().unwrap(), &program);
    let maps = read_maps(child.pid()).unwrap().entries;
    let code = |entry: &&MapEntry| entry.executable && entry.path().is_some();
    let mut entry = maps.iter().find(code).unwrap().clone();
    let expected = mapped_build_id(child.pid(), &entry, Some(&maps));
    assert!(expected.is_some());
    let opened = Opening::of_file(child.pid(), &entry, Some(&maps));
    assert_eq!(opened.state, ModuleState::Opened);
    assert_eq!(opened.build_id, expected);

    // Without links to the file: the mapping is gone, and its file is another program.
    entry.start = Avma(entry.start.get() + 1);
    entry.inode ^= 1 << 40;
    let opened = Opening::of_file(child.pid(), &entry, Some(&[]));
    assert_eq!(opened.state, ModuleState::Replaced);
    std::fs::remove_file(&program).unwrap();
    let opened = Opening::of_file(child.pid(), &entry, Some(&[]));
    assert_eq!(opened.state, ModuleState::Deleted);
    nix::unistd::mkfifo(&program, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let opened = Opening::of_file(child.pid(), &entry, Some(&[]));
    assert!(
        matches!(&opened.state, ModuleState::Unreadable(why) if why.contains("regular")),
        "{:?}",
        opened.state
    );
}

#[test]
fn another_device_number_is_settled_by_the_build_id() {
    let child = Sleeper::run(sleep_program());
    let mut maps = read_maps(child.pid()).unwrap().entries;
    for entry in &mut maps {
        entry.device ^= 0xff;
    }
    let code = |entry: &&MapEntry| entry.executable && entry.path().is_some();
    let entry = maps.iter().find(code).unwrap();
    let opened = Opening::of_file(child.pid(), entry, Some(&maps));
    assert_eq!(opened.state, ModuleState::Opened);
}

#[test]
fn files_beyond_the_limit_are_known_but_not_kept_open() {
    let child = Sleeper::run(sleep_program());
    let mut modules = Modules::with_max_open_files(1);
    let seen = sightings(modules.scan(child.pid(), TimeNs(0)));
    let open = modules
        .iter()
        .filter(|(_, file)| file.is_some_and(|file| file.holds_descriptor()));
    assert_eq!(open.count(), 1);
    assert!(seen.iter().any(|s| {
        s.new_module.as_ref().is_some_and(|m| {
            m.state == ModuleState::Opened && m.build_id.is_some() && modules.file(m.key).is_none()
        })
    }));
    let limits = modules.take_limits(TimeNs(5));
    assert_eq!(limits.len(), 1);
    assert!(limits[0].text.contains("only 1 binaries are kept open"));
    assert!(modules.take_limits(TimeNs(6)).is_empty());
}

#[test]
fn a_limit_is_told_once_though_files_are_mapped_endlessly() {
    let mut modules = Modules::with_max_open_files(0);
    let mut limits = Vec::new();
    for inode in 1..=MAX_MODULES + 500 {
        let line = format!("1000-2000 r-xp 00000000 00:01 {inode}    /none/lib{inode}.so");
        let entry = crate::parse_line(line.as_bytes()).unwrap();
        modules.see(Pid(std::process::id()), &entry, TimeNs(1));
        limits.append(&mut modules.take_limits(TimeNs(1)));
    }
    let texts: Vec<&str> = limits.iter().map(|limit| limit.text.as_str()).collect();
    assert_eq!(
        texts,
        ["more than 16384 binaries: functions in the others have no names"]
    );
}

#[test]
fn anonymous_memory_has_no_module() {
    let entry = crate::parse_line(b"1000-2000 rwxp 00000000 00:00 0    [anon:jit]").unwrap();
    let mut modules = Modules::new();
    let sighting = modules.see(Pid(std::process::id()), &entry, TimeNs(0));
    assert_eq!(sighting.module, None);
    assert_eq!(sighting.name, "[anon:jit]");
}
