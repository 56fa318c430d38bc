//! Stack traces as text, for error messages.

use std::fmt::Write;

use super::raw::Fp;
use super::vm::Vm;
use crate::interpreter::objects;
use crate::memory::Oop;

/// Maximum number of frames in a trace: half innermost, half outermost.
const MOST: usize = 40;

impl Vm {
    /// Frames from `inner` outwards, one line per frame.
    pub(super) fn stack_trace(&self, inner: Fp) -> String {
        let mut frames = Vec::new();
        let mut fp = inner;
        while !fp.is_none() {
            frames.push(fp);
            fp = fp.caller();
        }
        let mut text = String::new();
        for (at, fp) in frames.iter().enumerate() {
            let is_left_out = frames.len() > MOST && at >= MOST / 2 && at < frames.len() - MOST / 2;
            if !is_left_out {
                let _ = writeln!(text, "    {}", self.frame_name(*fp));
            } else if at == MOST / 2 {
                let _ = writeln!(text, "    … {} more …", frames.len() - MOST);
            }
        }
        text
    }

    /// `Receiver(Class)>>selector (file:line)`.
    fn frame_name(&self, fp: Fp) -> String {
        let code = fp.method();
        let Some(method) = self.image.method(code) else {
            return "unknown code".to_owned();
        };
        let class = |oop: Oop| self.image.class(objects::class_index(oop));
        let receiver = class(fp.receiver()).map_or("?", |class| &class.name);
        let (blocks, selector) = match method.name.rsplit_once(" in ") {
            Some((blocks, selector)) => (format!("{blocks} in "), selector),
            None => (String::new(), method.name.as_str()),
        };
        let within = if receiver == method.class {
            receiver.to_owned()
        } else {
            format!("{receiver}({})", method.class)
        };
        let line = self.line_of(fp).unwrap_or(method.line);
        format!("{blocks}{within}>>{selector} ({}:{line})", method.file)
    }

    /// Source line of a frame's current instruction.
    fn line_of(&self, fp: Fp) -> Option<u32> {
        let code = fp.method();
        let method = self.image.method(code)?;
        let first = super::sends::MethodHeader::of(code).first_bytecode();
        let start = (objects::body(code) as usize).checked_add_signed(first)?;
        // The saved address belongs to the next bytecode.
        let offset = (self.ip_of(fp, self.callee_of(fp)).0 as usize)
            .checked_sub(start)?
            .checked_sub(1)?;
        let line = method.code.lines.iter().rev().find(|line| line.0 <= offset);
        line.map(|line| line.1)
    }
}
