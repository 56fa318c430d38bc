//! Builds the tables that all threads share.

use super::super::Export;
use super::super::frames::{Frame, FrameText, colors, frames_of};
use super::tables::{Category, Lib, Shared};
use crate::present::names::region_title;
use crate::present::text::harmless;
use rustc_hash::FxHashMap;
use vmscope_records::{Arch, BuildId, ConstituentKind, FileOffset, Module, ModuleKey, SymbolOwner};
use vmscope_symbolizer::profile::{EntryKind, last_component};
use vmscope_symbolizer::stacks::StackTree;
use vmscope_symbolizer::symbols::SymbolTable;
use vmscope_symbolizer::trace::Place;
use vmscope_symbolizer::{IndexVec, Region, SiteId, StackId};

/// Number of libraries among the front end's resource types.
const RESOURCE_IS_LIBRARY: u32 = 1;

pub(super) struct Tables<'a> {
    export: &'a Export<'a>,
    symbols: SymbolTable<'a>,
    pub shared: Shared,
    pub libs: Vec<Lib>,
    pub categories: Vec<Category>,
    /// Whether any function is the VM's own (`isJS`).
    pub has_methods: bool,
    strings: FxHashMap<String, u32>,
    sources: FxHashMap<u32, u32>,
    subcategories: FxHashMap<(u32, String), u32>,
    resources: FxHashMap<ModuleKey, u32>,
    funcs: FxHashMap<Func, u32>,
    frames: FxHashMap<FrameKey, u32>,
    native_symbols: FxHashMap<(ModuleKey, FileOffset), u32>,
    stacks: FxHashMap<(Option<u32>, u32), u32>,
    /// Frames of each visited site, outermost first.
    site_frames: IndexVec<SiteId, Option<Box<[u32]>>>,
    /// Native place of each site, if any.
    native: IndexVec<SiteId, Option<(ModuleKey, FileOffset)>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Func {
    name: u32,
    is_method: bool,
    resource: Option<u32>,
    source: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FrameKey {
    func: u32,
    category: (u32, u32),
    line: Option<u32>,
    inline_depth: u32,
    native_symbol: Option<u32>,
}

impl<'a> Tables<'a> {
    pub(super) fn new(export: &'a Export<'a>) -> Self {
        let profile = export.profile;
        let is_native = profile.is_native();
        let category = |region: &Region| Category {
            name: region_title(*region, is_native).to_owned(),
            color: colors(*region).1,
            subcategories: vec!["Other".to_owned()],
        };
        let symbols = profile.trace.symbols.iter().chain(&profile.resolved_now);
        let native = export.first_places(|place| match *place {
            Place::Native(module, offset, _) => Some((module, offset)),
            _ => None,
        });
        Tables {
            export,
            symbols: SymbolTable::new(symbols),
            shared: Shared::default(),
            libs: Vec::new(),
            categories: Region::ALL.iter().map(category).collect(),
            has_methods: false,
            strings: FxHashMap::default(),
            sources: FxHashMap::default(),
            subcategories: FxHashMap::default(),
            resources: FxHashMap::default(),
            funcs: FxHashMap::default(),
            frames: FxHashMap::default(),
            native_symbols: FxHashMap::default(),
            stacks: FxHashMap::default(),
            site_frames: profile.sites.with_each(None),
            native,
        }
    }

    /// Adds all stacks; returns the stack of each tree node. Nodes have higher indices than their
    /// parents.
    pub(super) fn put_stacks(&mut self, tree: &StackTree) -> IndexVec<StackId, Option<u32>> {
        let mut stack_of_node: IndexVec<StackId, Option<u32>> = IndexVec::default();
        for node in tree.nodes() {
            let mut stack = node.parent.and_then(|parent| stack_of_node[parent]);
            let frames = self.frames_of_site(node.label);
            for &frame in &frames {
                stack = Some(self.stack(stack, frame));
            }
            self.site_frames[node.label] = Some(frames);
            stack_of_node.push(stack);
        }
        stack_of_node
    }

    fn stack(&mut self, prefix: Option<u32>, frame: u32) -> u32 {
        let table = &mut self.shared.stack_table;
        *self.stacks.entry((prefix, frame)).or_insert_with(|| {
            table.prefix.push(prefix);
            table.frame.push(frame);
            table.length += 1;
            index_of_last(table.length)
        })
    }

    /// Frames of a site, taken out of the cache.
    fn frames_of_site(&mut self, site: SiteId) -> Box<[u32]> {
        if let Some(frames) = self.site_frames[site].take() {
            return frames;
        }
        let export = self.export;
        let frames = frames_of(export.profile, site, export.inlined);
        frames.map(|frame| self.frame(site, &frame)).collect()
    }

    fn frame(&mut self, site: SiteId, frame: &Frame<'_>) -> u32 {
        let native = self.native[site];
        let resource = native.and_then(|(module, _)| self.resource(module));
        let file = frame.file();
        let source = (!file.is_empty()).then(|| self.source(&file));
        let func = Func {
            name: self.string(&frame.name(self.export.profile)),
            is_method: is_method(frame),
            resource,
            source,
        };
        let key = FrameKey {
            func: self.func(func),
            category: self.category(frame),
            line: frame.place.line,
            inline_depth: frame.inline_depth,
            native_symbol: native.and_then(|(module, at)| self.native_symbol(module, at)),
        };
        let table = &mut self.shared.frame_table;
        *self.frames.entry(key).or_insert_with(|| {
            table.address.push(-1);
            table.inline_depth.push(key.inline_depth);
            table.category.push(key.category.0);
            table.subcategory.push(key.category.1);
            table.func.push(key.func);
            table.native_symbol.push(key.native_symbol);
            table.inner_window_id.push(0);
            table.line.push(key.line);
            table.column.push(());
            table.length += 1;
            index_of_last(table.length)
        })
    }

    fn func(&mut self, func: Func) -> u32 {
        let table = &mut self.shared.func_table;
        self.has_methods |= func.is_method;
        *self.funcs.entry(func).or_insert_with(|| {
            table.name.push(func.name);
            table.is_js.push(func.is_method);
            table.relevant_for_js.push(false);
            table.resource.push(func.resource.map_or(-1, i64::from));
            table.source.push(func.source);
            table.line_number.push(());
            table.column_number.push(());
            table.length += 1;
            index_of_last(table.length)
        })
    }

    /// Category and subcategory: region and tier.
    fn category(&mut self, frame: &Frame<'_>) -> (u32, u32) {
        // Indices in the list from `new`.
        let region = frame.entry.region as u32;
        let tier = &frame.entry.tier;
        if tier.is_empty() {
            return (region, 0);
        }
        let categories = &mut self.categories;
        let key = (region, harmless(tier));
        let subcategory = *self
            .subcategories
            .entry(key)
            .or_insert_with_key(|(_, tier)| {
                let list = &mut categories[region as usize].subcategories;
                list.push(tier.clone());
                index_of_last(list.len())
            });
        (region, subcategory)
    }

    fn string(&mut self, text: &str) -> u32 {
        if let Some(&index) = self.strings.get(text) {
            return index;
        }
        let list = &mut self.shared.string_array;
        list.push(text.to_owned());
        let index = index_of_last(list.len());
        self.strings.insert(text.to_owned(), index);
        index
    }

    fn source(&mut self, file: &str) -> u32 {
        let name = self.string(file);
        let table = &mut self.shared.sources;
        *self.sources.entry(name).or_insert_with(|| {
            table.id.push(());
            table.filename.push(name);
            table.length += 1;
            index_of_last(table.length)
        })
    }

    /// Resource of a module; equals the index of its library.
    fn resource(&mut self, key: ModuleKey) -> Option<u32> {
        if let Some(&resource) = self.resources.get(&key) {
            return Some(resource);
        }
        let module = self.export.profile.trace.modules.get(&key)?;
        let lib = lib(module, self.arch());
        let name = self.string(&lib.name);
        self.libs.push(lib);
        let table = &mut self.shared.resource_table;
        table.lib.push(index_of_last(self.libs.len()));
        table.name.push(name);
        table.host.push(());
        table.kind.push(RESOURCE_IS_LIBRARY);
        table.length += 1;
        let resource = index_of_last(table.length);
        self.resources.insert(key, resource);
        Some(resource)
    }

    fn native_symbol(&mut self, module: ModuleKey, at: FileOffset) -> Option<u32> {
        let owner = SymbolOwner::Module(module);
        let (function, _) = self.symbols.lookup(owner, at)?;
        if let Some(&known) = self.native_symbols.get(&(module, function.start)) {
            return Some(known);
        }
        let lib = self.resource(module)?;
        let name = self.string(&harmless(&function.name));
        let table = &mut self.shared.native_symbols;
        table.lib_index.push(lib);
        table.address.push(function.start.0);
        table.name.push(name);
        let size = function.size;
        table.function_size.push((size != 0).then_some(size));
        table.length += 1;
        let index = index_of_last(table.length);
        self.native_symbols.insert((module, function.start), index);
        Some(index)
    }

    fn arch(&self) -> &'static str {
        match self.export.session().map(|session| session.arch) {
            Some(Arch::X86_64) => "x86_64",
            Some(Arch::Aarch64) => "aarch64",
            _ => "",
        }
    }
}

/// Last index of a table. Places, counted in 32 bits, bound all tables.
fn index_of_last(length: usize) -> u32 {
    u32::try_from(length.saturating_sub(1)).unwrap_or(u32::MAX)
}

/// The front end calls the VM's methods JavaScript, and filters by that.
fn is_method(frame: &Frame<'_>) -> bool {
    frame.entry.region == Region::Generated
        && matches!(
            frame.entry.kind,
            EntryKind::Code(ConstituentKind::Method | ConstituentKind::Block)
        )
}

fn lib(module: &Module, arch: &'static str) -> Lib {
    let path = harmless(&module.path);
    let name = last_component(&path).to_owned();
    Lib {
        arch,
        debug_name: name.clone(),
        debug_path: path.clone(),
        breakpad_id: breakpad_id(module.build_id.as_ref()),
        code_id: module.build_id.as_ref().map(ToString::to_string),
        name,
        path,
    }
}

/// A build-id in Breakpad's form: its first 16 bytes as a GUID, whose first three fields are
/// little-endian, and an age of 0.
fn breakpad_id(build_id: Option<&BuildId>) -> String {
    let mut guid = [0u8; 16];
    let bytes = build_id.map_or(&[][..], BuildId::as_bytes);
    for (slot, byte) in guid.iter_mut().zip(bytes) {
        *slot = *byte;
    }
    for field in [0..4, 4..6, 6..8] {
        if let Some(field) = guid.get_mut(field) {
            field.reverse();
        }
    }
    let digits: String = guid.iter().map(|byte| format!("{byte:02X}")).collect();
    digits + "0"
}

#[cfg(test)]
mod tests {
    use super::breakpad_id;
    use vmscope_records::BuildId;

    #[test]
    fn a_breakpad_id_is_a_guid_and_an_age() {
        let bytes: Vec<u8> = (0..20).collect();
        let id = BuildId::new(&bytes);
        assert_eq!(
            breakpad_id(id.as_ref()),
            "030201000504070608090A0B0C0D0E0F0"
        );
        assert_eq!(breakpad_id(None), "0".repeat(33));
    }
}
