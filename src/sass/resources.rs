//! ELF sections and `.nv.info` records -> each kernel's resources.

use super::elf::{File, Section, Symbol};
use super::error::SassError;
use super::info;
use super::info::{Attribute, InfoRecord};
use super::kernel::{CubinKernel, DeviceFunction, IndirectBranch};
use super::kernel::{Parameter, Resources};
use super::line_info;
use std::collections::HashMap;

/// Shared memory that the driver keeps for itself in each block. A linked cubin for compute
/// capability 9.0 and later counts it in the kernel's shared section; an older one does not
/// (seen with ptxas 12.8 and 13.0).
const RESERVED_SHARED: u64 = 1024;
/// `MAXREG_COUNT` where no cap was given.
const NO_CAP: u16 = 0xff;
/// Space of an `.nv.shared` section whose symbols are not laid out yet (`-rdc=true`); the
/// reserve is not in it.
const GLOBAL_INFO: &str = ".nv.info";

/// Reads the kernels of a cubin, in the order of its symbol table.
pub(super) fn read_kernels<'data>(file: &File<'data>) -> Result<Vec<CubinKernel<'data>>, SassError> {
    let symbols: Vec<(u32, Symbol<'data>)> = file.function_symbols().collect();
    let mut callees: HashMap<usize, Vec<DeviceFunction<'data>>> = HashMap::new();
    for (_, symbol) in symbols.iter().filter(|(_, symbol)| !symbol.kernel) {
        let place = (u32::try_from(symbol.value), u32::try_from(symbol.size));
        if let (Ok(offset), Ok(size)) = place {
            callees.entry(symbol.section).or_default().push(DeviceFunction { name: symbol.name, offset, size });
        }
    }
    let mut lines = line_info::by_section(file)?;
    let by_symbol = global_records(file)?;

    let mut kernels = Vec::new();
    // Sections of a file that is in order do not overlap. Reading no more than there is of it
    // bounds memory by its size, however many symbols and section headers point to the same bytes.
    let mut left = file.size_of_file();
    let mut take = |name: &str, bytes: usize| {
        left = left.checked_sub(bytes).ok_or_else(|| SassError::at(name, 0, "the kernels' sections overlap"))?;
        Ok(())
    };
    for (index, symbol) in symbols.iter().filter(|(_, symbol)| symbol.kernel) {
        let text_name = format!(".text.{}", symbol.name);
        let text = file
            .section(&text_name)
            .ok_or_else(|| SassError::at(".symtab", u64::from(*index), format!("no section `{text_name}`")))?;
        let code = file.section_data(&text_name, text)?;
        take(&text_name, code.len())?;
        let mut resources = by_symbol.get(index).cloned().unwrap_or_default();
        if file.first_layout() {
            // Overridden below where the attributes are there too.
            resources.barriers = u32::try_from((file.section_flags(text) >> 20) & 0x1f).unwrap_or(0);
            if resources.registers == 0 {
                resources.registers = file.section_info(text) >> 24;
            }
        }
        resources.static_shared = static_shared(file, symbol.name);
        let mut indirect = Vec::new();
        let info_name = format!(".nv.info.{}", symbol.name);
        if let Some(section) = file.section(&info_name) {
            let data = file.section_data(&info_name, section)?;
            take(&info_name, data.len())?;
            for record in info::read_records(&info_name, data)? {
                apply_record(&record, &info_name, &mut resources, &mut indirect)?;
            }
        }
        resources.parameters.sort_by_key(|parameter| parameter.ordinal);
        let mut functions = callees.remove(&text.index).unwrap_or_default();
        functions.sort_by_key(|function| function.offset);
        kernels.push(CubinKernel {
            name: symbol.name,
            architecture: file.architecture(),
            resources,
            code,
            functions,
            lines: lines.remove(&text.index).unwrap_or_default(),
            indirect,
        });
    }
    Ok(kernels)
}

/// Registers and stack by symbol index, from the records that hold for the whole cubin.
fn global_records(file: &File<'_>) -> Result<HashMap<u32, Resources>, SassError> {
    let mut by_symbol: HashMap<u32, Resources> = HashMap::new();
    let Some(section) = file.section(GLOBAL_INFO) else {
        return Ok(by_symbol);
    };
    for record in info::read_records(GLOBAL_INFO, file.section_data(GLOBAL_INFO, section)?)? {
        let field: fn(&mut Resources) -> &mut u32 = match record.attribute {
            Attribute::Registers => |resources| &mut resources.registers,
            // The frame of the kernel itself; the sum over its calls where ptxas knows it, which is
            // at least as much.
            Attribute::FrameSize | Attribute::MinStackSize => |resources| &mut resources.stack_frame,
            _ => continue,
        };
        let (symbol, value) = (record.word(GLOBAL_INFO, 0)?, record.word(GLOBAL_INFO, 1)?);
        let field = field(by_symbol.entry(symbol).or_default());
        *field = value.max(*field);
    }
    Ok(by_symbol)
}

fn static_shared(file: &File<'_>, kernel: &str) -> u32 {
    let Some(section) = file.section(&format!(".nv.shared.{kernel}")) else {
        return 0;
    };
    let size = file.section_size(section);
    let reserve = if file.architecture() >= 90 && is_linked(section) { RESERVED_SHARED } else { 0 };
    u32::try_from(size.saturating_sub(reserve)).unwrap_or(u32::MAX)
}

/// Whether the shared section is laid out (`SHT_NOBITS`); the relocatable form has a type of
/// its own.
fn is_linked(section: Section<'_>) -> bool {
    section.header.sh_type.get(object::LittleEndian) == object::elf::SHT_NOBITS
}

fn apply_record(
    record: &InfoRecord<'_>,
    section: &str,
    resources: &mut Resources,
    indirect: &mut Vec<IndirectBranch>,
) -> Result<(), SassError> {
    match record.attribute {
        Attribute::MaxThreads => resources.max_threads = Some(record.shape(section)?),
        Attribute::RequiredThreads => resources.required_threads = Some(record.shape(section)?),
        Attribute::ClusterShape => resources.cluster = Some(record.shape(section)?),
        Attribute::ClusterRank => resources.max_cluster = Some(record.word(section, 0)?),
        Attribute::ParameterBytes => resources.parameter_bytes = u32::from(record.value),
        // Present in every cubin; the size is the same as PARAMETER_BYTES says.
        Attribute::ParameterBank => {
            if resources.parameter_bytes == 0 {
                resources.parameter_bytes = record.word(section, 1)? >> 16;
            }
        }
        Attribute::RegisterCap => {
            resources.register_cap = (record.value != NO_CAP).then_some(u32::from(record.value));
        }
        Attribute::Barriers => resources.barriers = u32::from(record.value & 0xff),
        Attribute::VirtualResources => resources.virtual_resources = u32::from(record.value & 0xff),
        Attribute::Parameter | Attribute::LargeParameter => {
            let (place, size) = (record.word(section, 1)?, record.word(section, 2)?);
            let size = if record.attribute == Attribute::Parameter { size >> 18 } else { size };
            resources.parameters.push(Parameter { ordinal: place & 0xffff, offset: place >> 16, size });
        }
        Attribute::IndirectTargets => {
            let words: Vec<u32> = record.words().collect();
            let mut rest = &words[..];
            while let [offset, _, count, tail @ ..] = rest {
                let (targets, tail) = usize::try_from(*count)
                    .ok()
                    .and_then(|count| tail.split_at_checked(count))
                    .ok_or_else(|| SassError::at(section, record.offset, "a jump table reaches beyond the record"))?;
                indirect.push(IndirectBranch { offset: *offset, targets: targets.to_vec() });
                rest = tail;
            }
        }
        // Whole-cubin records; not in a kernel's own section.
        Attribute::FrameSize | Attribute::MinStackSize | Attribute::Registers => {}
    }
    Ok(())
}
