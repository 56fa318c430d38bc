//! The Java runtimes of this machine.

use std::path::{Path, PathBuf};

use super::skipped;

/// The releases that are read.
pub const RELEASES: [u32; 4] = [11, 17, 21, 25];

/// A Java runtime, perhaps with a compiler.
#[derive(Clone, Debug)]
pub struct Jdk {
    /// Its folder: `bin/java` is in it.
    pub home: PathBuf,
    /// Its release: 11, 17 …
    pub release: u32,
}

impl Jdk {
    /// The runtime in a folder.
    fn of(home: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(home.join("release")).ok()?;
        let version = text
            .lines()
            .find_map(|line| line.strip_prefix("JAVA_VERSION=\""))?;
        let digits = version.split(|char: char| !char.is_ascii_digit()).next()?;
        let home = home.canonicalize().ok()?;
        home.join("bin/java").is_file().then_some(Jdk {
            home,
            release: digits.parse().ok()?,
        })
    }

    /// Its `java`.
    pub fn java(&self) -> PathBuf {
        self.home.join("bin/java")
    }

    /// Whether the JDK has a compiler and the JVMTI header.
    fn is_whole(&self) -> bool {
        self.home.join("bin/javac").is_file() && self.home.join("include/jvmti.h").is_file()
    }
}

/// The repository's folder.
pub fn repository() -> PathBuf {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut above = ours.ancestors();
    let root = above.find(|folder| folder.join("Cargo.lock").is_file());
    root.expect("a workspace").to_path_buf()
}

/// Runtimes by preference: `.ci/jdks`, JAVA_HOME, PATH, system.
fn candidates() -> Vec<Jdk> {
    let ours = RELEASES.iter().map(|release| {
        let folder = repository().join("target/jdks").join(release.to_string());
        folder.join("java-runtime")
    });
    let home = std::env::var_os("JAVA_HOME").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let programs = ["java", "javac"].into_iter().flat_map(|name| {
        let files: Vec<PathBuf> = std::env::split_paths(&path)
            .map(|folder| folder.join(name))
            .collect();
        files
    });
    // Links lead to it.
    let real = programs.filter_map(|file| file.canonicalize().ok());
    let homes = real.filter_map(|file| Some(file.parent()?.parent()?.to_path_buf()));
    let installed = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten();
    let mut installed: Vec<PathBuf> = installed.flatten().map(|entry| entry.path()).collect();
    installed.sort();
    let all = ours.chain(home).chain(homes).chain(installed);
    all.filter_map(|home| Jdk::of(&home)).collect()
}

/// A runtime of that release; says SKIPPED where there is none.
pub fn jdk(release: u32) -> Option<Jdk> {
    let found = candidates().into_iter().find(|jdk| jdk.release == release);
    if found.is_none() {
        skipped(&format!(
            "there is no Java runtime {release} here (.ci/jdks gets one)"
        ));
    }
    found
}

/// All the releases that there are; says SKIPPED of each that is missing.
pub fn jdks() -> Vec<Jdk> {
    RELEASES.into_iter().filter_map(jdk).collect()
}

/// All runtimes of the tested releases, several per release: a JDK has line tables and a build-id
/// that a JRE may lack. Says SKIPPED if none exists.
pub fn every() -> Vec<Jdk> {
    let mut all: Vec<Jdk> = Vec::new();
    for jdk in candidates() {
        let is_known = all.iter().any(|known| known.home == jdk.home);
        if !is_known && RELEASES.contains(&jdk.release) {
            all.push(jdk);
        }
    }
    if all.is_empty() {
        skipped("there is no Java runtime here (.ci/jdks gets some)");
    }
    all
}

/// A JDK with javac and jvmti.h; says SKIPPED where there is none.
pub fn compiler() -> Option<Jdk> {
    let found = candidates().into_iter().find(Jdk::is_whole);
    if found.is_none() {
        skipped("there is no javac with jvmti.h here (apt-get install openjdk-17-jdk-headless)");
    }
    found
}

/// `javap` of the newest JDK: old ones cannot read newer classes. Says SKIPPED if none exists.
pub fn javap() -> Option<PathBuf> {
    let with_javap = candidates()
        .into_iter()
        .filter(|jdk| jdk.home.join("bin/javap").is_file());
    let newest = with_javap.max_by_key(|jdk| jdk.release);
    if newest.is_none() {
        skipped("there is no javap here (apt-get install openjdk-17-jdk-headless)");
    }
    newest.map(|jdk| jdk.home.join("bin/javap"))
}
