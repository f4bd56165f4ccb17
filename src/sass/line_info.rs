//! `.nv_debug_line_sass` -> the PTX line of each instruction.
//!
//! ptxas writes the section with `-lineinfo`: a DWARF line program (version 2) whose lines are
//! those of the PTX it read, with one sequence for each function, its start address left to a
//! relocation against the function's section. NVIDIA's own extended opcodes in it are skipped.

use super::elf;
use super::error::SassError;
use gimli::{DebugLine, DebugLineOffset, EndianSlice, LittleEndian};
use std::collections::HashMap;

const SECTION: &str = ".nv_debug_line_sass";
/// A relocated address carries its section's index above this bit.
const SECTION_BIT: u32 = 40;
/// Size of an address in a cubin.
const ADDRESS_BYTES: u8 = 8;

/// PTX lines of one kernel's instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// First byte of a stretch of code and its PTX line (1-based; 0 is none), ascending.
    rows: Vec<(u32, u32)>,
}

impl Lines {
    /// Returns the PTX line (1-based) of the instruction at `offset` (bytes from the
    /// section's start).
    pub fn line_at(&self, offset: u32) -> Option<u32> {
        let after = self.rows.partition_point(|&(start, _)| start <= offset);
        let &(_, line) = self.rows.get(after.checked_sub(1)?)?;
        (line != 0).then_some(line)
    }

    /// Whether the cubin has no line table (it was made without `-lineinfo`).
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// The line tables of a cubin by section index.
///
/// # Errors
/// Where the line program is malformed.
pub(super) fn by_section(file: &elf::File<'_>) -> Result<HashMap<usize, Lines>, SassError> {
    let mut tables: HashMap<usize, Lines> = HashMap::new();
    let Some(section) = file.section(SECTION) else {
        return Ok(tables);
    };
    let mut data = file.section_data(SECTION, section)?.to_vec();
    for relocation in file.relocations_of(SECTION)? {
        let place = usize::try_from(relocation.offset)
            .ok()
            .and_then(|start| data.get_mut(start..start.checked_add(usize::from(ADDRESS_BYTES))?))
            .ok_or_else(|| SassError::at(SECTION, relocation.offset, "a relocation lies outside"))?;
        let address = ((relocation.section as u64) << SECTION_BIT).wrapping_add(relocation.address);
        place.copy_from_slice(&address.to_le_bytes());
    }

    let debug_line = DebugLine::new(&data, LittleEndian);
    let mut unit = 0;
    while unit < data.len() {
        let at = |error: gimli::Error| SassError::at(SECTION, unit as u64, error.to_string());
        let program = debug_line.program(DebugLineOffset(unit), ADDRESS_BYTES, None, None).map_err(at)?;
        let length = program.header().unit_length();
        read_rows(program, &mut tables).map_err(at)?;
        unit = unit.saturating_add(length).saturating_add(size_of::<u32>());
    }
    for table in tables.values_mut() {
        table.rows.sort_by_key(|&(start, _)| start);
        table.rows.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                earlier.1 = later.1;
            }
            same
        });
    }
    Ok(tables)
}

type LineProgram<'data> = gimli::IncompleteLineProgram<EndianSlice<'data, LittleEndian>>;

fn read_rows(program: LineProgram<'_>, tables: &mut HashMap<usize, Lines>) -> Result<(), gimli::Error> {
    let mut rows = program.rows();
    while let Some((_, row)) = rows.next_row()? {
        let section = usize::try_from(row.address() >> SECTION_BIT).unwrap_or(0);
        let Ok(offset) = u32::try_from(row.address() & ((1 << SECTION_BIT) - 1)) else {
            continue;
        };
        let line = row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(0));
        if !row.end_sequence() {
            tables.entry(section).or_default().rows.push((offset, line));
        }
    }
    Ok(())
}
