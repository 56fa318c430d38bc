//! Memory of machine code: one memory file, mapped twice.
//!
//! The first mapping is executable and never writable; the second is writable and never executable.
//! Code addresses always refer to the first mapping.
#![allow(unsafe_code, reason = "maps memory, and writes code by address")]

use std::io;

/// The code zone.
#[derive(Debug)]
pub(super) struct Zone {
    /// Where code runs.
    run: *mut u8,
    /// The same memory, to be written.
    write: *mut u8,
    bytes: usize,
    /// Offset of the free space.
    pub free: usize,
}

/// Alignment of methods, blocks and PICs.
pub(super) const ALIGNMENT: usize = 16;

impl Zone {
    /// A zone.
    ///
    /// # Errors
    /// The system's, if it lacks memory or forbids executable memory.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.next_multiple_of(4096);
        let name = c"vmscope code zone";
        // SAFETY: the name is a C string; a new file is nobody else's.
        let file = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        let length = libc::off_t::try_from(bytes).unwrap_or(libc::off_t::MAX);
        // SAFETY: `file` is a valid, newly created file.
        let sized = match unsafe { libc::ftruncate(file, length) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        };
        let run = map(file, bytes, libc::PROT_READ | libc::PROT_EXEC);
        let write = map(file, bytes, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: the mappings keep the memory; nobody else knows the file.
        unsafe { libc::close(file) };
        let zone = Self {
            run: *run.as_ref().unwrap_or(&std::ptr::null_mut()),
            write: *write.as_ref().unwrap_or(&std::ptr::null_mut()),
            bytes,
            free: 0,
        };
        // A failure drops the zone.
        sized.and(run).and(write).map(|_| zone)
    }

    /// Address of the first byte.
    pub fn base(&self) -> usize {
        self.run as usize
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies code to an offset.
    pub fn put(&mut self, offset: usize, code: &[u8]) {
        assert!(offset + code.len() <= self.bytes, "code beyond the zone");
        let place = self.write.wrapping_add(offset);
        // SAFETY: the check above proves that the range lies in the writable mapping; `code` lies
        // outside.
        unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), place, code.len()) };
    }

    /// Sets a word of 32 bits.
    pub fn put_u32(&mut self, offset: usize, value: u32) {
        self.put(offset, &value.to_le_bytes());
    }

    /// A word of 32 bits.
    pub fn get_u32(&self, offset: usize) -> u32 {
        assert!(offset + 4 <= self.bytes, "a word beyond the zone");
        let place = self.write.wrapping_add(offset).cast::<u32>();
        // SAFETY: the check above proves that the word lies in the mapping.
        unsafe { place.read_unaligned() }
    }

    /// Moves code down.
    pub fn slide(&mut self, from: usize, to: usize, bytes: usize) {
        assert!(from.max(to) + bytes <= self.bytes, "code beyond the zone");
        let (from, to) = (self.write.wrapping_add(from), self.write.wrapping_add(to));
        // SAFETY: the check above proves that both ranges lie in the writable mapping.
        unsafe { std::ptr::copy(from, to, bytes) };
    }
}

fn map(file: i32, bytes: usize, rights: i32) -> io::Result<*mut u8> {
    // SAFETY: a new mapping; the kernel chooses the address.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            rights,
            libc::MAP_SHARED,
            file,
            0,
        )
    };
    match memory {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        memory => Ok(memory.cast()),
    }
}

impl Drop for Zone {
    fn drop(&mut self) {
        for memory in [self.run, self.write] {
            if !memory.is_null() {
                // SAFETY: `new` mapped this memory; the VM using the zone is dropped, too.
                unsafe { libc::munmap(memory.cast(), self.bytes) };
            }
        }
    }
}
