//! `vmscope view` and `vmscope top` in a real terminal: the real binary, keys pressed, the
//! screen read. What the views show is tested without a terminal (src/tui).

use crate::common::programs::script;
use crate::common::targets::Target;
use crate::common::tmux::{Tmux, line};
use crate::common::vmscope::{Folder, can_sample, command, run, trace_of, vmscope};
use nix::sys::signal::Signal;
use std::path::PathBuf;

const SIZE: (u16, u16) = (100, 30);

/// A recording of a made-up JVM.
fn java(folder: &Folder) -> PathBuf {
    let path = folder.file("java.vmscope");
    std::fs::write(&path, crate::recordings::screens::java()).expect("a file");
    path
}

/// Successful exit, terminal restored.
fn is_restored(tmux: &Tmux, code: i32) {
    let screen = tmux.shows(&format!("ended {code}"));
    assert!(!screen.contains("Overview"), "{screen}");
    edits_lines(tmux);
}

/// The terminal edits lines again.
fn edits_lines(tmux: &Tmux) {
    let screen = tmux.shows("icanon");
    assert!(!screen.contains("-icanon"), "{screen}");
}

#[test]
fn a_recording_is_looked_at_from_open_to_quit() {
    let folder = Folder::new();
    let file = java(&folder);
    let Some(tmux) = Tmux::run(SIZE, &line(&["view", "java.vmscope"], &file)) else {
        return;
    };
    tmux.shows("12,564 samples");
    // Search, as one types.
    tmux.press(&["2"]);
    tmux.shows("OrderBook.match");
    tmux.press(&["/"]);
    tmux.type_text("parseLine");
    tmux.shows("/parseLine");
    // Bytes directly after an escape would form one key.
    tmux.press(&["Escape"]);
    tmux.shows_no("/parseLine");
    tmux.press(&["g"]);
    // Into the hottest method, and back.
    tmux.press(&["Enter"]);
    tmux.shows("[3 Method");
    tmux.press(&["["]);
    tmux.shows("[2 Hot");
    // Only one region, from the palette; then a window in time.
    tmux.press(&[":"]);
    tmux.type_text("only region collector");
    tmux.press(&["Enter"]);
    tmux.shows("collector ✕");
    tmux.press(&["x", ":"]);
    tmux.type_text("window: from");
    tmux.press(&["Enter"]);
    tmux.type_text("10-12");
    tmux.press(&["Enter"]);
    tmux.shows("10.000-12.000 s ✕");
    // Every view can be drawn of that.
    for view in 1..=9 {
        tmux.press(&[&view.to_string()]);
        tmux.shows(&format!("[{view} "));
    }
    // Exported table of threads.
    tmux.press(&["8", "e", "C-u"]);
    tmux.type_text("threads.csv");
    tmux.press(&["Enter"]);
    tmux.shows("written to threads.csv");
    tmux.press(&["q"]);
    is_restored(&tmux, 0);
    let csv = std::fs::read_to_string(folder.file("threads.csv")).expect("the export");
    assert!(csv.contains("main"), "{csv}");
}

/// The views read lifetimes from the file.
#[test]
fn lifetimes_are_looked_at() {
    let folder = Folder::new();
    let file = folder.file("x.vmscope");
    std::fs::write(&file, crate::recordings::lifetimes::scavenged().bytes()).expect("a file");
    let Some(tmux) = Tmux::run(SIZE, &line(&["view", "x.vmscope"], &file)) else {
        return;
    };
    tmux.shows("400 samples");
    tmux.press(&["0"]);
    tmux.shows("Collector works for: Frame>>add:@10");
    tmux.press(&["L"]);
    tmux.shows("460 objects recorded singly");
    tmux.press(&["q"]);
    is_restored(&tmux, 0);
}

/// Screen line containing a text.
fn line_with<'a>(screen: &'a str, text: &str) -> &'a str {
    let mut lines = screen.lines();
    let found = lines.find(|line| line.contains(text));
    found.unwrap_or_else(|| panic!("no `{text}` in\n{screen}"))
}

#[test]
fn a_method_is_expanded_in_place() {
    let folder = Folder::new();
    let file = java(&folder);
    let Some(tmux) = Tmux::run(SIZE, &line(&["view", "java.vmscope"], &file)) else {
        return;
    };
    tmux.shows("12,564 samples");
    tmux.press(&["2"]);
    // Rows come with an answer: earlier screens have no expandable rows.
    let closed = tmux.shows("▸ com.acme.orders.OrderBook.match");
    assert!(!closed.contains("(line 43)"), "{closed}");
    tmux.press(&["g", "Space"]);
    let open = tmux.shows("(line 43)");
    assert!(line_with(&open, "OrderBook.match").contains('▾'), "{open}");
    tmux.press(&["Space"]);
    let closed = tmux.shows_no("(line 43)");
    assert!(
        line_with(&closed, "OrderBook.match").contains('▸'),
        "{closed}"
    );
    tmux.press(&["q"]);
    is_restored(&tmux, 0);
}

#[test]
fn a_window_is_selected_with_keys_and_with_the_mouse() {
    let folder = Folder::new();
    let file = java(&folder);
    let Some(tmux) = Tmux::run(SIZE, &line(&["view", "java.vmscope"], &file)) else {
        return;
    };
    let is_narrowed = |screen: &str| {
        let crumbs = screen.lines().nth(1).unwrap_or_default();
        crumbs.contains(" s ✕") && crumbs.contains(" samples") && !crumbs.contains("12,564")
    };
    tmux.shows("12,564 samples");
    tmux.press(&["4"]);
    tmux.shows("[4 Timeline");
    tmux.press(&["v", "Right", "Right", "Right", "Right", "Enter"]);
    let by_keys = tmux.await_screen("a window is selected", is_narrowed);
    // It is every view's.
    tmux.press(&["8"]);
    let threads = tmux.shows("[8 Threads");
    let crumb = |screen: &str| {
        let crumbs = screen.lines().nth(1).unwrap_or_default();
        crumbs.split('✕').next().unwrap_or_default().to_owned()
    };
    assert_eq!(crumb(&threads), crumb(&by_keys));
    tmux.press(&["x"]);
    tmux.shows("12,564 samples");
    tmux.press(&["4"]);
    tmux.shows("[4 Timeline");
    tmux.drag((40, 6), (60, 6));
    let by_mouse = tmux.await_screen("a window is selected", is_narrowed);
    assert_ne!(crumb(&by_mouse), crumb(&by_keys));
    tmux.press(&["x"]);
    tmux.shows("12,564 samples");
    tmux.press(&["q"]);
    is_restored(&tmux, 0);
}

#[test]
fn a_recording_of_node_is_looked_at() {
    let has_node = std::process::Command::new("node").arg("-v").output();
    if !has_node.is_ok_and(|output| output.status.success()) {
        return crate::common::skipped("there is no `node` here");
    }
    if !can_sample() {
        return;
    }
    let folder = Folder::new();
    let place = Folder::new();
    let file = folder.file("node.vmscope");
    let mut recording = command(["record", "--quiet", "--output"]);
    recording.arg(&file).args(["--", "node"]);
    recording
        .arg(script("known_shares.js"))
        .args(["--cycles", "200"]);
    recording.current_dir(place.path());
    run(recording).code(0);
    let Some(tmux) = Tmux::run(SIZE, &line(&["view", "node.vmscope"], &file)) else {
        return;
    };
    tmux.shows(" samples");
    tmux.press(&["2"]);
    tmux.await_screen("the list is shown", |screen| {
        screen.contains("[2 Hot list") && screen.contains("share_a") && screen.contains("share_d")
    });
    tmux.press(&["/"]);
    tmux.type_text("share_a");
    tmux.shows("/share_a");
    tmux.press(&["Enter"]);
    tmux.shows_no("/share_a");
    // Its lines, as the engine tells them.
    tmux.press(&["Enter"]);
    tmux.await_screen("the method is shown", |screen| {
        screen.contains("[3 Method") && screen.contains("share_a")
    });
    for view in 1..=9 {
        tmux.press(&[&view.to_string()]);
        tmux.shows(&format!("[{view} "));
    }
    tmux.press(&["q"]);
    is_restored(&tmux, 0);
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let folder = Folder::new();
    let file = java(&folder);
    let Some(tmux) = Tmux::run(SIZE, &line(&["view", "java.vmscope"], &file)) else {
        return;
    };
    tmux.shows("12,564 samples");
    // It is the shell's only child.
    let shell = tmux.pid();
    let children = format!("/proc/{shell}/task/{shell}/children");
    let children = std::fs::read_to_string(children).expect("the shell runs");
    let child = children.split_whitespace().next().expect("vmscope runs");
    let child = nix::unistd::Pid::from_raw(child.parse().expect("a pid"));
    nix::sys::signal::kill(child, Signal::SIGTERM).expect("it runs");
    is_restored(&tmux, 0);
}

#[test]
fn a_small_terminal_is_told_and_a_larger_one_shows_it() {
    let folder = Folder::new();
    let file = java(&folder);
    let Some(tmux) = Tmux::run((50, 12), &line(&["view", "java.vmscope"], &file)) else {
        return;
    };
    tmux.shows("vmscope needs a terminal of 60x16");
    tmux.resize((120, 40));
    tmux.shows("12,564 samples");
    tmux.press(&["q"]);
    // On leaving, tmux goes back to the small size and up again, and may show lines of the view from
    // its history: only the end is asked for.
    tmux.shows("ended 0");
    edits_lines(&tmux);
}

#[test]
fn a_damaged_recording_opens_as_far_as_it_goes() {
    let folder = Folder::new();
    let file = folder.file("bad.vmscope");
    std::fs::write(&file, crate::recordings::screens::damaged()).expect("a file");
    let Some(tmux) = Tmux::run(SIZE, &line(&["view", "bad.vmscope"], &file)) else {
        return;
    };
    tmux.shows("incomplete recording");
    tmux.shows("10,886 samples");
    tmux.press(&["q"]);
    is_restored(&tmux, 0);
}

#[test]
fn without_a_terminal_it_names_what_prints_text() {
    let folder = Folder::new();
    let file = java(&folder);
    let shown = file.display().to_string();
    vmscope(["view", &shown])
        .code(2)
        .says(&format!("vmscope report {shown}"));
    vmscope(["top", "1"]).code(2).says("vmscope attach 1");
}

#[test]
fn a_running_process_is_followed_to_its_end_and_saved() {
    if !can_sample() {
        return;
    }
    let Some(target) = Target::known_shares(2) else {
        return;
    };
    let folder = Folder::new();
    let pid = target.pid().to_string();
    let Some(tmux) = Tmux::run(SIZE, &line(&["top", &pid], &folder.file("any"))) else {
        return;
    };
    tmux.shows("live");
    tmux.press(&["2"]);
    tmux.shows("share_a");
    tmux.shows("last 10 s ✕");
    tmux.press(&["w"]);
    tmux.shows("last 30 s ✕");
    tmux.press(&["M"]);
    tmux.type_text("here");
    tmux.press(&["Enter"]);
    tmux.shows("marked: here");
    tmux.press(&["p"]);
    tmux.shows("held");
    tmux.press(&["p"]);
    tmux.shows("live");
    target.end();
    tmux.shows("the process has exited");
    // The picture remains and can be saved.
    tmux.press(&["X", "8"]);
    tmux.shows("share-0");
    tmux.press(&["W", "C-u"]);
    tmux.type_text("kept.vmscope");
    tmux.press(&["Enter"]);
    tmux.shows("samples saved in kept.vmscope");
    tmux.press(&["q"]);
    is_restored(&tmux, 0);
    let trace = trace_of(&folder.file("kept.vmscope")).expect("a recording");
    let marks: Vec<&str> = trace.marks.iter().map(|mark| mark.text.as_str()).collect();
    assert_eq!(marks, ["here"]);
    assert!(trace.end.is_some() && !trace.symbols.is_empty());
}
