//! Finding a process's files, opening them, and removing those that are ours.

use std::cmp::Reverse;

use vmscope_process::{Poll, ProcessView};

use super::{Dump, FileAdapter, MAX_DUMPS, Map, error_chain};
use crate::cleanup::Cleanup;
use crate::find::{self, DumpMarker};
use crate::vm::VmKind;

impl FileAdapter {
    /// Opens what has appeared since the last poll.
    pub(super) fn find_files(&mut self, process: &ProcessView, poll: &mut Poll) {
        let reporting = (self.origin.asked.as_ref()).and_then(|asked| asked.as_ref().ok());
        let ended = reporting.map_or(&[][..], |reporting| &reporting.ended);
        let mut markers = find::dump_markers(process);
        markers.retain(|marker| marker.is_of(process) && !ended.contains(marker));
        // Of dumps with one path, the VM writes the newest: each later one replaced the file before.
        if markers.len() > 1 && self.dumps.is_empty() {
            markers.sort_by_cached_key(|marker| Reverse(marker.written(process)));
        }
        for marker in markers {
            if self.dumps.len() < MAX_DUMPS {
                self.open_dump(process, &marker, poll);
            }
        }
        // A VM may write both files: vmscope then ignores the map's contents, but removes the map.
        let read = !self.reads_a_dump(false);
        if self.map.is_some() || (!read && self.own_files().is_none()) {
            return;
        }
        match find::open_perf_map(process, &self.origin.map_folder, self.vm.kind) {
            Ok(Some(found)) => {
                let path = find::perf_map_path(&self.origin.map_folder, process);
                let file = found.map;
                let ours = self
                    .own_files()
                    .is_some_and(|cleanup| cleanup.remove_map_later(process, &path, file.file()));
                self.report_kept_files(poll);
                let remove = ours.then_some((found.folder, found.name));
                self.map = Some(Map::new(file, remove));
            }
            Err(error) if read => self.limit(error_chain(&error), "", poll),
            Ok(None) | Err(_) => {}
        }
    }

    pub(super) fn open_dump(
        &mut self,
        process: &ProcessView,
        marker: &DumpMarker,
        poll: &mut Poll,
    ) {
        let identity = (marker.mapping.device, marker.mapping.inode);
        let is_known = |dump: &Dump| {
            dump.path == marker.path()
                || dump
                    .file
                    .file()
                    .identity()
                    .is_ok_and(|known| known == identity)
        };
        if self.dumps.iter().any(is_known) {
            return;
        }
        let file = match marker.open(process) {
            Ok(file) => file,
            Err(error) => {
                self.limit(
                    format!("cannot read the VM's jitdump: {}", error_chain(&error)),
                    "",
                    poll,
                );
                return;
            }
        };
        if let Some(cleanup) = self.own_files() {
            cleanup.remove_dump(process, marker.path(), file.file());
        }
        self.report_kept_files(poll);
        self.dumps.push(Dump::new(file, marker.path().to_vec()));
    }

    /// What removes this process's files, if vmscope requested them.
    pub(super) fn own_files(&self) -> Option<&Cleanup> {
        if let Some(Ok(reporting)) = &self.origin.asked {
            return Some(&reporting.cleanup);
        }
        let launched = self.origin.launched.as_ref()?;
        self.origin.attribution.files.then(|| launched.cleanup())
    }

    /// Reports files that may surprisingly stay.
    pub(super) fn report_kept_files(&mut self, poll: &mut Poll) {
        if self.origin.attribution.in_doubt {
            let text = format!(
                "the jitdump or perf map of {} was not removed: its environment or command line \
                 was changed, so the file may be yours",
                self.vm.identity.kind
            );
            self.limit(text, "", poll);
        }
    }

    /// Removes the logs that V8 writes beside a dump that vmscope asked for.
    pub(super) fn clean_up(&self, process: &ProcessView) {
        if self.vm.kind != VmKind::V8 || !self.origin.attribution.logs {
            return;
        }
        for dump in &self.dumps {
            let folder = dump.path.iter().rposition(|byte| *byte == b'/');
            let folder = dump.path.get(..folder.unwrap_or(0)).unwrap_or_default();
            Cleanup::remove_logs(process, folder);
        }
    }

    /// Removes a requested, completely read perf map. After an exec, the new program may write to the
    /// same file; the recording's end then removes the file.
    pub(super) fn remove_map(&self, process: &ProcessView) {
        let is_over = process.is_alive() || vmscope_process::examine(process.pid()).is_err();
        if let Some(cleanup) = self.own_files().filter(|_| is_over)
            && let Some(map) = &self.map
            && let Some((folder, name)) = &map.remove
        {
            cleanup.remove_map(folder, name, map.file.file());
        }
    }
}
