//! A recorded space -> T1, the description of its tuning problem.

use super::arguments::arguments;
use super::launch_size::{LaunchSize, tuple};
use super::parameters::Parameters;
use nvtune::launch::DIMENSIONS;
use nvtune::record::{RecordedSpace, Sample};
use serde_json::{Map, Value, json};
use thiserror::Error;

/// Version of the format.
const FORMAT_VERSION: u32 = 1;

/// The space is not recorded as a whole.
#[derive(Debug, Error)]
#[error("has a sample of {sample} of {points} points: T1 describes whole spaces")]
pub struct SampledSpace {
    sample: usize,
    points: usize,
}

/// Describes the problem.
///
/// # Errors
/// If the record is of a sample: values and conditions of the rest are not known.
pub fn problem(space: &RecordedSpace) -> Result<Value, SampledSpace> {
    if let Some(Sample { points: sample, .. }) = space.size.sample {
        return Err(SampledSpace { sample, points: space.size.points });
    }
    let parameters = Parameters::new(space);
    Ok(json!({
        "General": { "FormatVersion": FORMAT_VERSION, "TimeUnit": "Milliseconds", "OutputFormat": "JSON" },
        "ConfigurationSpace": {
            "TuningParameters": tuning_parameters(&parameters),
            "Conditions": conditions(&parameters),
        },
        "Search": { "Name": "brute_force" },
        "KernelSpecification": kernel_specification(space, &parameters),
    }))
}

fn tuning_parameters(parameters: &Parameters) -> Vec<Value> {
    let names = parameters.names.iter().enumerate();
    names
        .map(|(index, name)| {
            let values: Vec<Value> = parameters.values(index).into_iter().map(Value::from).collect();
            let kind = match parameters.numbers(index) {
                Some(_) => "int",
                None => "string",
            };
            json!({ "Name": name, "Type": kind, "Values": Value::from(values).to_string() })
        })
        .collect()
}

/// The combinations that the space has of the parameters that depend on each other.
fn conditions(parameters: &Parameters) -> Vec<Value> {
    let dependent = parameters.dependent();
    if dependent.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = dependent.iter().map(|&parameter| parameters.names[parameter].as_str()).collect();
    let combinations: Vec<String> =
        parameters.combinations(&dependent).into_iter().map(|settings| tuple(&settings)).collect();
    let expression = format!("({},) in {{{}}}", names.join(", "), combinations.join(", "));
    vec![json!({ "Parameters": names, "Expression": expression })]
}

/// The kernel and its launch. `ProblemSize` and `GridDivX` are what Kernel Tuner reads besides.
fn kernel_specification(space: &RecordedSpace, parameters: &Parameters) -> Value {
    let launches = || space.configurations.iter().map(|found| found.launch);
    let shared = launches().next().map(|launch| launch.shared);
    let shared = shared.filter(|&shared| launches().all(|launch| launch.shared == shared));
    let mut specification = json!({
        "Language": "CUDA",
        "Device": { "Name": space.device.name },
        "CompilerOptions": space.options,
        "KernelName": space.kernel,
        "KernelFile": space.source,
        "GlobalSizeType": "CUDA",
        "Arguments": arguments(space),
    });
    if let Some(shared) = shared {
        specification["SharedMemory"] = shared.into();
    }
    let (mut global, mut local, mut problem) = (Map::new(), Map::new(), Vec::new());
    for (axis, name) in DIMENSIONS.into_iter().enumerate() {
        let key = name.to_uppercase();
        let sizes: Vec<u64> = launches().map(|launch| launch.grid[axis].into()).collect();
        let blocks = LaunchSize::new(parameters, &sizes);
        let sizes: Vec<u64> = launches().map(|launch| launch.block[axis].into()).collect();
        local.insert(key.clone(), LaunchSize::new(parameters, &sizes).expression().into());
        global.insert(key.clone(), blocks.expression().into());
        let (size, divisors) = match blocks {
            LaunchSize::Quotient { problem, divisors } => (problem.into(), divisors),
            LaunchSize::Expression(expression) => (Value::from(expression), Vec::new()),
        };
        problem.push(size);
        let divisors = if divisors.is_empty() { vec!["1".to_owned()] } else { divisors };
        specification[format!("GridDiv{key}")] = divisors.into();
    }
    specification["GlobalSize"] = global.into();
    specification["LocalSize"] = local.into();
    specification["ProblemSize"] = problem.into();
    specification
}
