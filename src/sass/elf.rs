//! The ELF layer: cubin bytes in; header fields, sections and symbols by name out.
//!
//! Section and symbol contents are checked only where they are read. Section names are matched
//! exactly: CUDA 13 adds copies under `.nv.merc` and `.nv.capmerc` for another encoding, which
//! are not read.

use super::error::SassError;
use object::LittleEndian as LE;
use object::elf::{self, FileHeader64, SectionHeader64, Sym64};
use object::read::elf::{FileHeader, Rel, Rela, SectionHeader, SectionTable, Sym, SymbolTable};
use std::collections::HashMap;

/// `EI_ABIVERSION` from which the second layout is used (ptxas 12.8 for sm_100 and later, ptxas
/// 13 for all).
const ABI_VERSION_2: u8 = 8;
/// Bit of a function symbol's `st_other` that marks a kernel.
const STO_CUDA_ENTRY: u8 = 0x10;

pub(super) struct File<'data> {
    bytes: &'data [u8],
    architecture: u32,
    abi: u8,
    sections: SectionTable<'data, FileHeader64<LE>>,
    symbols: SymbolTable<'data, FileHeader64<LE>>,
    by_name: HashMap<&'data str, usize>,
}

/// A section that was looked up.
#[derive(Clone, Copy)]
pub(super) struct Section<'data> {
    pub index: usize,
    pub header: &'data SectionHeader64<LE>,
}

/// A function symbol.
#[derive(Clone, Copy)]
pub(super) struct Symbol<'data> {
    pub name: &'data str,
    /// Index of its section.
    pub section: usize,
    pub value: u64,
    pub size: u64,
    pub kernel: bool,
}

/// A 64-bit address to be filled in: at `offset`, the address of byte `addend` of `section`.
pub(super) struct Relocation {
    pub offset: u64,
    pub section: usize,
    pub address: u64,
}

impl<'data> File<'data> {
    pub(super) fn parse(bytes: &'data [u8]) -> Result<Self, SassError> {
        let broken = |error: object::Error| SassError::Elf(error.to_string());
        let header = FileHeader64::<LE>::parse(bytes).map_err(|_| SassError::NotACubin("no 64-bit ELF header"))?;
        if header.e_ident().data != elf::ELFDATA2LSB {
            return Err(SassError::NotACubin("not little-endian"));
        }
        if header.e_machine(LE) != elf::EM_CUDA {
            return Err(SassError::NotACubin("the ELF file is not for a CUDA device"));
        }
        let abi = header.e_ident().abi_version;
        let flags = header.e_flags(LE);
        let architecture = if abi >= ABI_VERSION_2 { (flags >> 8) & 0xff } else { flags & 0xff };
        if architecture < 70 {
            return Err(SassError::Architecture(architecture));
        }
        let sections = header.sections(LE, bytes).map_err(broken)?;
        let symbols = sections.symbols(LE, bytes, elf::SHT_SYMTAB).map_err(broken)?;
        let mut by_name = HashMap::new();
        for (index, section) in sections.enumerate() {
            let name = sections.section_name(LE, section).map_err(broken)?;
            if let Ok(name) = std::str::from_utf8(name) {
                by_name.entry(name).or_insert(index.0);
            }
        }
        Ok(Self { bytes, architecture, abi, sections, symbols, by_name })
    }

    pub(super) fn size_of_file(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn architecture(&self) -> u32 {
        self.architecture
    }

    /// Whether the file has the layout of CUDA 12 and before.
    pub(super) fn first_layout(&self) -> bool {
        self.abi < ABI_VERSION_2
    }

    pub(super) fn section(&self, name: &str) -> Option<Section<'data>> {
        let index = *self.by_name.get(name)?;
        let header = self.sections.section(object::SectionIndex(index)).ok()?;
        Some(Section { index, header })
    }

    /// Returns the bytes of a section; none for a section without contents
    /// (`SHT_NOBITS`).
    pub(super) fn section_data(&self, name: &str, section: Section<'data>) -> Result<&'data [u8], SassError> {
        section.header.data(LE, self.bytes).map_err(|_| {
            SassError::at(name, section.header.sh_offset(LE), "the contents reach beyond the end of the file")
        })
    }

    /// Returns the range of a section in the file.
    pub(super) fn section_place(&self, name: &str) -> Option<std::ops::Range<usize>> {
        let header = self.section(name)?.header;
        let start = usize::try_from(header.sh_offset(LE)).ok()?;
        Some(start..start.checked_add(usize::try_from(header.sh_size(LE)).ok()?)?)
    }

    /// Returns the size of a section in memory.
    pub(super) fn section_size(&self, section: Section<'data>) -> u64 {
        section.header.sh_size(LE)
    }

    /// Returns the section's flags, which carry the barrier count in the first layout.
    pub(super) fn section_flags(&self, section: Section<'data>) -> u64 {
        section.header.sh_flags(LE)
    }

    /// Returns the section's info field, which carries the register count in the first
    /// layout.
    pub(super) fn section_info(&self, section: Section<'data>) -> u32 {
        section.header.sh_info(LE)
    }

    /// Lists the function symbols with their indices in the symbol table.
    pub(super) fn function_symbols(&self) -> impl Iterator<Item = (u32, Symbol<'data>)> + '_ {
        self.symbols.iter().enumerate().filter_map(|(index, symbol)| {
            if symbol.st_type() != elf::STT_FUNC {
                return None;
            }
            let name = symbol.name(LE, self.symbols.strings()).ok().and_then(|name| std::str::from_utf8(name).ok())?;
            let section = self.section_of(symbol)?;
            let kernel = symbol.st_other() & STO_CUDA_ENTRY != 0;
            let function = Symbol { name, section, value: symbol.st_value(LE), size: symbol.st_size(LE), kernel };
            Some((u32::try_from(index).ok()?, function))
        })
    }

    fn section_of(&self, symbol: &Sym64<LE>) -> Option<usize> {
        let index = usize::from(symbol.st_shndx(LE));
        (index != 0 && index < self.sections.len()).then_some(index)
    }

    /// Reads the relocations of the section called `name`, in either form (`.rel` with
    /// the addend in place, `.rela`).
    ///
    /// # Errors
    /// Where the relocation section is cut short.
    pub(super) fn relocations_of(&self, name: &str) -> Result<Vec<Relocation>, SassError> {
        let mut found = Vec::new();
        let resolve = |symbol: u32| {
            let symbol = self.symbols.symbol(object::SymbolIndex(symbol as usize)).ok()?;
            Some((self.section_of(symbol)?, symbol.st_value(LE)))
        };
        let rela_name = format!(".rela{name}");
        if let Some(section) = self.section(&rela_name) {
            let entries = section
                .header
                .rela(LE, self.bytes)
                .map_err(|error| SassError::at(&rela_name, 0, error.to_string()))?
                .map_or(&[][..], |(entries, _)| entries);
            for entry in entries {
                if let Some((section, value)) = resolve(entry.r_sym(LE, false)) {
                    let address = value.wrapping_add_signed(entry.r_addend(LE));
                    found.push(Relocation { offset: entry.r_offset(LE), section, address });
                }
            }
        }
        let rel_name = format!(".rel{name}");
        if let Some(section) = self.section(&rel_name) {
            let entries = section
                .header
                .rel(LE, self.bytes)
                .map_err(|error| SassError::at(&rel_name, 0, error.to_string()))?
                .map_or(&[][..], |(entries, _)| entries);
            for entry in entries {
                if let Some((section, value)) = resolve(entry.r_sym(LE)) {
                    found.push(Relocation { offset: entry.r_offset(LE), section, address: value });
                }
            }
        }
        Ok(found)
    }
}
