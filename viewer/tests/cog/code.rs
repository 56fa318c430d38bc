//! Machine code (x86-64) that a test writes into a code zone without instructions.
//!
//! Callers pass the number of rounds in `rdi`, the address of the loop in `rsi`, and a factor in `rdx`.
//!
//! The loop repeats one dependent multiplication. Methods are short, so a round has four of them,
//! and not 200 as in programs with longer code. Skid moves only the last samples of a loop.

/// Multiplies until the rounds are over. With a frame, leaves it.
pub fn rounds(has_frame: bool) -> Vec<u8> {
    let multiply = [0x48, 0x0f, 0xaf, 0xd2].repeat(4); // imul rdx, rdx
    let mut code = multiply;
    code.extend([0xff, 0xcf]); // dec edi
    let back = (code.len() as u8 + 2).wrapping_neg();
    code.extend([0x75, back]); // jnz
    code.extend(end(has_frame));
    code
}

/// The code at `at` that makes a VM's frame and jumps to `rsi`. `method` is the header's address with
/// flags, `nil` an object.
pub fn frame(at: u64, method: u64, nil: u64) -> Vec<u8> {
    let mut code = vec![0x55, 0x48, 0x89, 0xe5]; // push rbp; mov rbp, rsp
    code.extend([0x4c, 0x8d, 0x15]); // lea r10, [rip + …]
    let behind = at + code.len() as u64 + 4;
    code.extend(relative(behind, method));
    code.extend([0x41, 0x52, 0x49, 0xba]); // push r10; mov r10, …
    code.extend(nil.to_le_bytes());
    code.extend([0x41, 0x52, 0x52]); // push r10; push rdx
    code.extend([0xff, 0xe6]); // jmp rsi
    code
}

/// The code in a framed method that calls `entry` with another loop, and leaves the frame. `back` is the
/// call's return address.
pub fn call(back: u64, entry: u64, with_loop: u64) -> Vec<u8> {
    let mut code = vec![0x48, 0xbe]; // mov rsi, …
    code.extend(with_loop.to_le_bytes());
    code.push(0xe8);
    code.extend(relative(back, entry));
    code.extend(end(true));
    code
}

fn end(has_frame: bool) -> &'static [u8] {
    match has_frame {
        true => &[0xc9, 0xc3], // leave; ret
        false => &[0xc3],
    }
}

fn relative(from: u64, to: u64) -> [u8; 4] {
    let distance = to.cast_signed() - from.cast_signed();
    i32::try_from(distance).expect("near").to_le_bytes()
}
