//! `--symbols`: a file that names a VM's functions and variables.

use crate::inputs::{open, read_rest};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::collections::BTreeMap;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vmscope_process::{
    LoadedModule, ModuleFile, ProcessView, Symbol, SymbolKind, build_id_in_memory,
};
use vmscope_records::Avma;
use vmscope_symbolizer::native::{ListedSymbol, symbols_in_listing};

/// Maximum size of a list of symbols.
const MAX_LISTING: u64 = 256 << 20;

const MAGIC: &[u8] = b"\x7fELF";

#[derive(Args, Clone, Debug)]
pub struct SymbolsOptions {
    /// Names of the VM's functions and variables: its binary, or the output of `nm -S`
    #[arg(long, value_name = "FILE")]
    pub symbols: Option<PathBuf>,
    /// Place of a position-independent binary: the address of its first line in the VM's /proc/PID/maps
    #[arg(long, value_name = "HEX", requires = "symbols", value_parser = hex)]
    pub load_address: Option<u64>,
}

fn hex(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| "expected a hexadecimal address".to_owned())
}

/// A file with symbols.
#[derive(Debug)]
pub enum SymbolsFile {
    Elf(ModuleFile),
    /// Text of a list.
    List(Vec<u8>),
}

impl SymbolsFile {
    /// Opens an ELF file, or reads a list.
    ///
    /// # Errors
    /// An unreadable file, a list that is too long.
    pub fn open(path: &Path) -> Result<Self> {
        let cannot = || format!("cannot read {}", path.display());
        let mut file = open(path)?;
        let mut text = Vec::new();
        let begun = (&mut file).take(MAGIC.len() as u64).read_to_end(&mut text);
        begun.with_context(cannot)?;
        if text == MAGIC {
            // A magic number was read, so that the path is no pipe.
            let file = ModuleFile::from_file(open(path)?);
            return Ok(SymbolsFile::Elf(file.with_context(cannot)?));
        }
        if file.rewind().is_ok() {
            text.clear();
        }
        text.extend(read_rest(file, path, MAX_LISTING)?);
        Ok(SymbolsFile::List(text))
    }
}

impl SymbolsOptions {
    /// Gives the file's symbols to a module of the process.
    ///
    /// # Errors
    /// An unreadable file, a wrong list, another build's file, no such module.
    pub fn add_to(&self, view: ProcessView) -> Result<ProcessView> {
        let Some(path) = &self.symbols else {
            return Ok(view);
        };
        match SymbolsFile::open(path)? {
            SymbolsFile::Elf(file) => self.add_elf(path, file, &view).map(|()| view),
            SymbolsFile::List(text) => {
                let shown = path.display();
                let symbols = symbols_in_listing(&text, self.load_address.unwrap_or(0));
                let symbols = symbols.with_context(|| shown.to_string())?;
                let module = module_of(&symbols, &view).with_context(|| {
                    format!(
                        "no address of {shown} lies in a mapped file: symbols need their run-time \
                         addresses, or --load-address with the address of the VM's first mapping"
                    )
                })?;
                let symbols = symbols.into_iter().map(symbol).collect();
                Ok(view.with_symbols(module, symbols))
            }
        }
    }

    fn add_elf(&self, path: &Path, file: ModuleFile, view: &ProcessView) -> Result<()> {
        let shown = path.display();
        let module = match self.load_address {
            Some(at) => {
                let begins = |module: &LoadedModule| module.start() == Avma(at);
                let module = view.modules().into_iter().find(begins);
                module.with_context(|| format!("no mapped file begins at {at:#x}"))?
            }
            None => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let module = view.module(|mapped| mapped == name);
                module.with_context(|| {
                    format!(
                        "no mapped file has the name {name}: add --load-address with the address of the \
                         VM's first mapping"
                    )
                })?
            }
        };
        view.keep(&module.path, None, Arc::new(file));
        let wrong = || shown.to_string();
        let own = view.elf(&module).with_context(wrong)?.build_id();
        let own = own.with_context(wrong)?;
        // A core file may lack the first page.
        let mapped = build_id_in_memory(view.memory(), module.start());
        if let (Some(own), Ok(Some(mapped))) = (own, mapped)
            && own != mapped
        {
            bail!("{shown} is of another build than the VM: their build-ids differ");
        }
        view.bias(&module).map(drop).with_context(wrong)
    }
}

/// Path of the mapped file with most symbols.
fn module_of(symbols: &[ListedSymbol], view: &ProcessView) -> Option<Vec<u8>> {
    let mut counts: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    for symbol in symbols {
        let mapping = view.mapping_at(Avma(symbol.address));
        if let Some(path) = mapping.as_ref().and_then(|mapping| mapping.path()) {
            *counts.entry(path.to_vec()).or_default() += 1;
        }
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map(|(path, _)| path)
}

fn symbol(listed: ListedSymbol) -> Symbol {
    Symbol {
        name: listed.name,
        address: Avma(listed.address),
        size: listed.size,
        kind: match listed.is_function {
            true => SymbolKind::Function,
            false => SymbolKind::Object,
        },
    }
}
