//! Directories that confine a target's paths.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket};
use nix::sys::stat::{Mode, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use vmscope_records::Pid;

use crate::ModuleFile;
use crate::attach::living;
use crate::file::{identity_of, reopen};

/// A directory that confines a target's paths.
#[derive(Debug)]
pub struct Root(OwnedFd);

impl Root {
    /// Root directory of process `pid`, in its mount namespace.
    ///
    /// # Errors
    /// I/O errors: `EACCES` for another user's process, `ENOENT` after its exit.
    pub fn of_process(pid: Pid) -> io::Result<Self> {
        let of = |id: Pid| Self::at(Path::new(&format!("/proc/{id}/root")));
        of(pid).or_else(|error| match living(pid) {
            other if other != pid => of(other),
            _ => Err(error),
        })
    }

    /// Our own directory `path`, for core files of other machines.
    ///
    /// # Errors
    /// I/O errors.
    pub fn at(path: &Path) -> io::Result<Self> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        Ok(Self(nix::fcntl::open(path, flags, Mode::empty())?))
    }

    /// Directory `path` as a root of its own, valid even after a rename or the exit of the process.
    ///
    /// # Errors
    /// I/O errors.
    pub fn folder(&self, path: &[u8]) -> io::Result<Root> {
        Ok(Root(self.find(path, OFlag::O_DIRECTORY)?))
    }

    /// Opens the regular file `path`; links and `..` never lead outside this root.
    ///
    /// # Errors
    /// I/O errors; [`io::ErrorKind::InvalidInput`] if it is no regular file.
    pub fn open(&self, path: &[u8]) -> io::Result<ModuleFile> {
        reopen(&self.find(path, OFlag::empty())?)
    }

    /// Like [`Root::open`], but rejects symbolic links, for world-writable directories.
    ///
    /// # Errors
    /// I/O errors; [`io::ErrorKind::InvalidInput`] for links and irregular files.
    pub fn open_no_link(&self, path: &[u8]) -> io::Result<ModuleFile> {
        reopen(&self.find(path, OFlag::O_NOFOLLOW)?)
    }

    /// Removes `path` if it has this [`ModuleFile::identity`]; returns whether it did.
    ///
    /// # Errors
    /// I/O errors; a missing file is no error.
    pub fn remove(&self, path: &[u8], identity: (u64, u64)) -> io::Result<bool> {
        let Some(slash) = path.iter().rposition(|byte| *byte == b'/') else {
            return Ok(false);
        };
        let (folder, name) = path.split_at(slash + 1);
        let name = Path::new(OsStr::from_bytes(name));
        let gone = |error: Errno| matches!(error, Errno::ENOENT | Errno::ENOTDIR);
        // The directory stays the same even if `path` changes.
        let folder = match self.find(folder, OFlag::O_DIRECTORY) {
            Ok(folder) => folder,
            Err(error) if gone(error) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let found = match fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(error) if gone(error) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        if identity_of(found.st_dev, found.st_ino) != identity {
            return Ok(false);
        }
        unlinkat(&folder, name, UnlinkatFlags::NoRemoveDir)?;
        Ok(true)
    }

    /// Names in directory `path`, the first `cap` of them.
    ///
    /// # Errors
    /// I/O errors.
    pub fn names_in(&self, path: &[u8], cap: usize) -> io::Result<Vec<Vec<u8>>> {
        let folder = self.find(path, OFlag::O_DIRECTORY)?;
        let link = format!("/proc/self/fd/{}", folder.as_raw_fd());
        let names = std::fs::read_dir(link)?.take(cap);
        names
            .map(|entry| Ok(entry?.file_name().as_bytes().to_vec()))
            .collect()
    }

    /// Connects to the socket `path` on which process `pid` listens. Links are refused, as in [`Root::open_no_link`].
    ///
    /// # Errors
    /// I/O errors; [`io::ErrorKind::WouldBlock`] if its queue is full; [`io::ErrorKind::PermissionDenied`] if another
    /// process listens.
    pub fn connect(&self, path: &[u8], pid: Pid) -> io::Result<UnixStream> {
        let found = self.find(path, OFlag::O_NOFOLLOW)?;
        let link = format!("/proc/self/fd/{}", found.as_raw_fd());
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
        connect(socket.as_raw_fd(), &UnixAddr::new(link.as_str())?)?;
        let listener = getsockopt(&socket, PeerCredentials)?.pid();
        if u32::try_from(listener) != Ok(pid.0) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(false)?;
        Ok(stream)
    }

    fn find(&self, path: &[u8], flags: OFlag) -> nix::Result<OwnedFd> {
        let how = OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_CLOEXEC | flags)
            .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
        let mut attempts = 0;
        loop {
            match openat2(self.0.as_fd(), Path::new(OsStr::from_bytes(path)), how) {
                // openat2(2) recommends a retry if a rename interferes with a `..`.
                Err(Errno::EAGAIN) if attempts < MAX_ATTEMPTS => attempts += 1,
                found => return found,
            }
        }
    }
}

/// Each attempt fails only if a rename happens within its few microseconds.
const MAX_ATTEMPTS: u32 = 16;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use nix::sys::socket::Backlog;

    use super::*;
    use crate::ReadAt;

    #[test]
    fn links_never_lead_out_of_the_root() {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("root");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(dir.path().join("secret"), "secret").unwrap();
        std::fs::write(inside.join("secret"), "inside").unwrap();
        symlink(dir.path().join("secret"), inside.join("absolute")).unwrap();
        symlink("../secret", inside.join("relative")).unwrap();
        symlink("/secret", inside.join("good")).unwrap();
        let root = Root::at(&inside).unwrap();
        let text = |path: &[u8]| root.open(path).and_then(|file| file.read_at(0, 6));
        assert!(text(b"/absolute").is_err());
        assert_eq!(text(b"/relative").unwrap(), b"inside");
        assert_eq!(text(b"/good").unwrap(), b"inside");
        assert_eq!(text(b"/../../secret").unwrap(), b"inside");
    }

    #[test]
    fn neither_fifos_nor_directories_nor_devices_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        nix::unistd::mkfifo(&dir.path().join("fifo"), Mode::S_IRWXU).unwrap();
        let root = Root::at(dir.path()).unwrap();
        // A blocking open would wait forever.
        assert_eq!(
            root.open(b"/fifo").unwrap_err().kind(),
            io::ErrorKind::InvalidInput
        );
        assert!(root.open(b"/").is_err());
        assert!(root.open(b"/\0").is_err());
        let system = Root::at(Path::new("/")).unwrap();
        assert!(system.open(b"/dev/null").is_err());
        // The kernel's magic links would lead outside.
        assert!(system.open(b"/proc/self/exe").is_err());
    }

    #[test]
    fn only_the_process_itself_is_connected() {
        let dir = tempfile::tempdir().unwrap();
        let listener = socket(
            AddressFamily::Unix,
            SockType::Stream,
            SockFlag::empty(),
            None,
        );
        let listener = listener.unwrap();
        let port = UnixAddr::new(&dir.path().join("port")).unwrap();
        nix::sys::socket::bind(listener.as_raw_fd(), &port).unwrap();
        nix::sys::socket::listen(&listener, Backlog::new(8).unwrap()).unwrap();
        symlink("port", dir.path().join("link")).unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let root = Root::at(dir.path()).unwrap();
        let own = Pid(std::process::id());
        assert!(root.connect(b"/port", own).is_ok());
        let other = root.connect(b"/port", Pid(1)).unwrap_err();
        assert_eq!(other.kind(), io::ErrorKind::PermissionDenied);
        for path in [&b"/link"[..], b"/file", b"/", b"/none"] {
            assert!(root.connect(path, own).is_err());
        }
        // Nobody accepts: a full queue is an error instead of a wait.
        let all: Vec<_> = (0..64).map(|_| root.connect(b"/port", own)).collect();
        let is_full = |one: &io::Error| one.kind() == io::ErrorKind::WouldBlock;
        assert!(all.last().unwrap().as_ref().is_err_and(is_full));
    }

    #[test]
    fn only_the_very_file_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name);
        std::fs::write(file("one"), "1").unwrap();
        std::fs::write(file("two"), "2").unwrap();
        symlink("two", file("link")).unwrap();
        let root = Root::at(dir.path()).unwrap();
        let one = root.open(b"/one").unwrap().identity().unwrap();
        let two = root.open_no_link(b"/two").unwrap().identity().unwrap();
        assert!(root.open(b"/link").is_ok());
        assert!(root.open_no_link(b"/link").is_err());
        assert!(!root.remove(b"/two", one).unwrap(), "another file");
        assert!(
            !root.remove(b"/link", two).unwrap(),
            "a link to it is not it"
        );
        assert!(!root.remove(b"/none", one).unwrap());
        assert!(!root.remove(b"/none/one", one).unwrap());
        assert!(root.remove(b"/one", one).unwrap());
        assert!(!file("one").exists() && file("two").exists() && file("link").exists());
    }
}
