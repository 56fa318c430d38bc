//! Allocation sites whose objects are allocated in old space.

use rustc_hash::FxHashSet;

use super::objects;
use super::raw::Ip;
use super::vm::Vm;
use crate::compiler::bytecodes;

/// Number of callers searched for a site: the site calls `new`, and `new` calls `basicNew`.
const CALLERS: usize = 3;

/// The sites.
#[derive(Debug, Default)]
pub(super) struct PretenuredSites {
    /// Pretenured sites: method names (`Foo>>bar`) and send pcs.
    wanted: Vec<(String, u32)>,
    /// Return addresses (bytecodes) of these sends.
    found: FxHashSet<usize>,
}

impl PretenuredSites {
    /// Sites by method and bytecode pc.
    pub fn new(wanted: Vec<(String, u32)>) -> Self {
        Self {
            wanted,
            found: FxHashSet::default(),
        }
    }

    /// Whether there is a site.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}

impl Vm {
    /// Searches for sites in the method list, starting at index `first`.
    pub(crate) fn find_sites(&mut self, first: usize) {
        if self.pretenured_sites.wanted.is_empty() {
            return;
        }
        for method in self.image.methods.iter().skip(first) {
            let title = method.title();
            let body = objects::body(method.oop) as usize - 1;
            for (_, pc) in self
                .pretenured_sites
                .wanted
                .iter()
                .filter(|site| site.0 == title)
            {
                let offset = pc
                    .checked_sub(method.first_pc())
                    .map(|offset| offset as usize);
                let Some(offset) = offset.filter(|offset| *offset < method.code.bytecodes.len())
                else {
                    continue;
                };
                if let Ok((_, length)) = bytecodes::decode(&method.code.bytecodes, offset) {
                    let after = body + *pc as usize + length;
                    self.pretenured_sites.found.insert(after);
                }
            }
        }
    }

    /// Whether `ip`, or a return address of its callers, belongs to a pretenured site.
    pub(super) fn is_pretenured_site(&self, ip: Ip) -> bool {
        let is_site = |ip: Ip| self.pretenured_sites.found.contains(&(ip.0 as usize));
        let mut callee = self.fp;
        if is_site(self.bytecode_ip(ip)) {
            return true;
        }
        for _ in 0..CALLERS {
            let fp = callee.caller();
            if fp.is_none() {
                return false;
            }
            if is_site(self.ip_of(fp, Some(callee))) {
                return true;
            }
            callee = fp;
        }
        false
    }
}
