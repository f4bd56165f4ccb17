//! A workload and the PTX of its kernel -> the arguments of a T1 file.

use nvtune::cuda::{Element, Scalar};
use nvtune::ptx;
use nvtune::record::RecordedSpace;
use nvtune::workload::{Argument, Buffer, Fill};
use serde_json::{Value, json};

/// The arguments of the baseline's launch, in the order of the kernel's parameters.
pub fn arguments(space: &RecordedSpace) -> Vec<Value> {
    let baseline = &space.configurations[space.baseline];
    let workload = &space.workloads[baseline.workload].workload;
    let types = parameter_types(space, baseline.source);
    let argument = |(position, argument): (usize, &Argument)| match argument {
        Argument::Buffer(buffer) => workload.buffers.get(*buffer).map(vector),
        Argument::Scalar(bytes) => Some(scalar(types.get(position).copied(), bytes)),
        Argument::Struct { bytes, .. } => Some(custom("Scalar", bytes.len())),
    };
    workload.arguments.iter().enumerate().filter_map(argument).collect()
}

/// The types that the PTX of a source gives the kernel's parameters; none where it cannot be read.
fn parameter_types(space: &RecordedSpace, source: usize) -> Vec<ptx::Scalar> {
    let text = space.parts().ok().and_then(|parts| parts.ptx.into_iter().nth(source).flatten());
    let module = text.and_then(|text| ptx::Module::parse(&text).ok());
    let entry = module.as_ref().and_then(|module| module.entry(&space.sources[source].symbol));
    entry.into_iter().flat_map(|entry| &entry.parameters).map(|parameter| parameter.scalar).collect()
}

fn custom(memory: &str, bytes: usize) -> Value {
    json!({ "Type": "custom", "TypeSize": bytes, "MemoryType": memory })
}

/// A scalar that is passed by value. PTX does not tell signed from unsigned numbers: they are taken to be signed.
fn scalar(kind: Option<ptx::Scalar>, bytes: &[u8]) -> Value {
    use ptx::Scalar::{F32, F64, S8, S16, S32, S64, U8, U16, U32, U64};
    let (name, value) = match (kind, bytes) {
        (Some(S8 | U8), &[a]) => ("int8", json!(i8::from_le_bytes([a]))),
        (Some(S16 | U16), &[a, b]) => ("int16", json!(i16::from_le_bytes([a, b]))),
        (Some(S32 | U32), &[a, b, c, d]) => ("int32", json!(i32::from_le_bytes([a, b, c, d]))),
        (Some(F32), &[a, b, c, d]) => ("float", json!(f32::from_le_bytes([a, b, c, d]))),
        (Some(S64 | U64), _) if bytes.len() == 8 => ("int64", json!(eight(bytes).map(i64::from_le_bytes))),
        (Some(F64), _) if bytes.len() == 8 => ("double", json!(eight(bytes).map(f64::from_le_bytes))),
        _ => return custom("Scalar", bytes.len()),
    };
    let mut argument =
        json!({ "Type": name, "MemoryType": "Scalar", "AccessType": "ReadOnly", "FillType": "Constant" });
    // Infinity is no number of JSON.
    if value.is_number() {
        argument["FillValue"] = value;
    }
    argument
}

fn eight(bytes: &[u8]) -> Option<[u8; 8]> {
    bytes.try_into().ok()
}

/// A buffer, whose elements T1 may have no name for.
fn vector(buffer: &Buffer) -> Value {
    let mut argument = match element_type(buffer.element) {
        Some(name) => json!({ "Type": name, "MemoryType": "Vector" }),
        None => custom("Vector", buffer.element.size()),
    };
    argument["Name"] = buffer.name.as_str().into();
    argument["Size"] = buffer.count.into();
    let (fill, value) = match buffer.fill {
        Fill::Poison | Fill::Overwritten | Fill::Zeros => ("Constant", Some(0.0)),
        Fill::Constant(value) => ("Constant", Some(value)),
        Fill::Random { .. } => ("Random", None),
        Fill::Iota | Fill::Each(_) => ("Generator", None),
        Fill::File(_) | Fill::Table(_) => ("BinaryRaw", None),
    };
    argument["FillType"] = fill.into();
    if let Some(value) = value.filter(|value| value.is_finite()) {
        argument["FillValue"] = value.into();
    }
    if buffer.fill.is_only_written() {
        argument["AccessType"] = "WriteOnly".into();
    }
    argument
}

/// The name of an element in T1: vectors have one for floating types of 2, 4, 8 and 16 lanes.
fn element_type(Element { scalar, lanes }: Element) -> Option<String> {
    let name = match scalar {
        Scalar::I8 => "int8",
        Scalar::U8 => "uint8",
        Scalar::I16 => "int16",
        Scalar::U16 => "uint16",
        Scalar::I32 => "int32",
        Scalar::U32 => "uint32",
        Scalar::I64 => "int64",
        Scalar::U64 => "uint64",
        Scalar::F16 => "half",
        Scalar::F32 => "float",
        Scalar::F64 => "double",
        Scalar::Bf16 => return None,
    };
    match lanes {
        1 => Some(name.to_owned()),
        2 | 4 | 8 | 16 if scalar.is_float() => Some(format!("{name}{lanes}")),
        _ => None,
    }
}
