//! Sites of interpreted methods.

use super::Builder;
use super::code::{MethodTexts, line_of};
use crate::profile::{Entry, EntryKind, Frame, Region, Site, SiteId};
use crate::zone::CodeId;
use vmscope_records::{BytecodePc, ConstituentKind, Exactness, Method};

/// The tier of interpreted methods.
const TIER: &str = "interpreter";

impl Builder<'_> {
    /// The site of a bytecode; without a bytecode, of the method's entry. `data` is the method's
    /// bytecodes or object. Bytecodes are exact only inside their own handler: between two
    /// handlers the bytecode pointer is ahead.
    pub(super) fn interpreted_site(
        &mut self,
        handler: CodeId,
        data: CodeId,
        bytecode: Option<BytecodePc>,
    ) -> SiteId {
        let is_caller = handler == data;
        let data = self.trace.constituent(data);
        let known = data
            .method
            .filter(|key| self.trace.methods.contains_key(key));
        let method = known.and_then(|key| self.trace.methods.get(&key));
        let texts = match known {
            Some(key) => self.method_texts(key),
            None if data.name.is_empty() => MethodTexts {
                name: self.text("(unknown method)"),
                file: self.text(""),
                key: None,
            },
            None => MethodTexts {
                name: self.text(&data.name),
                file: self.text(""),
                key: None,
            },
        };
        let kind = match known {
            None if data.name.is_empty() => EntryKind::Unnamed,
            _ => EntryKind::Code(ConstituentKind::Method),
        };
        let entry = self.put_entry(Entry {
            region: Region::Interpreter,
            tier: TIER.to_owned(),
            module: method.map_or_else(String::new, |method| method.class.clone()),
            file: method.map_or_else(String::new, |method| method.file.clone()),
            line: method.map(|method| method.line).filter(|&line| line != 0),
            ..Entry::named(&texts.name, kind)
        });
        let line = bytecode.and_then(|pc| line_of(method?, pc));
        let handler = &self.trace.constituent(handler).name;
        let is_handled =
            |pc| method.is_some_and(|method| handles(handler, instruction_at(method, pc)));
        let exactness = match bytecode {
            Some(pc) if !is_caller && !is_handled(pc) => Exactness::Approximate,
            _ => Exactness::Exact,
        };
        let frame = Frame {
            name: texts.name,
            file: texts.file,
            line,
            bytecode,
            method: texts.key,
        };
        self.put_site(Site {
            from: bytecode,
            exactness,
            ..Site::whole(entry, frame)
        })
    }
}

/// Whether a handler of this name executes the instruction. A handler of several instructions lists them
/// after its own name, in parentheses: `ShortStar (Star0, Star1)`.
fn handles(handler: &str, instruction: Option<&str>) -> bool {
    let mut names = handler.split([' ', ',', '(', ')']);
    instruction.is_some_and(|instruction| names.any(|name| name == instruction))
}

fn first_word(text: &str) -> Option<&str> {
    text.split_ascii_whitespace().next()
}

/// The instruction name at a bytecode.
fn instruction_at(method: &Method, pc: BytecodePc) -> Option<&str> {
    let after = method.listing.partition_point(|(at, _)| *at <= pc);
    let (at, text) = method.listing.get(after.checked_sub(1)?)?;
    (*at == pc).then(|| first_word(text)).flatten()
}
