//! A recorded space -> T4, the results of its configurations.

use super::parameters::Parameters;
use nvtune::measure::Reason;
use nvtune::record::{CHECKED, PointTime, RecordedSpace, SpaceConfiguration};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Version of the format.
const SCHEMA_VERSION: &str = "1.0.0";

/// Microseconds of the record in a millisecond, the unit of the file.
const US_IN_MS: f64 = 1000.0;

/// What became of a configuration, in the words of T4. A space has no configuration that its constraints exclude, for which the
/// word is `constraints`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Validity {
    Correct,
    /// The compiler refused it.
    Compile,
    /// It cannot be launched, or crashed.
    Runtime,
    /// It did not end in time.
    Timeout,
    /// Its results are not the baseline's.
    Correctness,
}

impl Validity {
    /// `None` if the configuration was not run yet. `point` is the one with the same machine code and launch.
    fn new(configuration: &SpaceConfiguration, point: Option<&SpaceConfiguration>) -> Option<Self> {
        if configuration.variant.is_none() {
            return Some(Self::Compile);
        }
        if configuration.infeasible.is_some() {
            return Some(Self::Runtime);
        }
        let point = point?;
        if point.check.as_deref()? == CHECKED {
            return Some(Self::Correct);
        }
        Some(point.refused.as_ref().map_or(Self::Runtime, Self::of_refused))
    }

    fn of_refused(reason: &Reason) -> Self {
        match reason {
            Reason::Differs(_)
            | Reason::Unsteady(_)
            | Reason::Stray { .. }
            | Reason::Incomparable { .. }
            | Reason::Uncompared => Self::Correctness,
            Reason::LaunchFailed { .. }
            | Reason::TooManyResources { .. }
            | Reason::Faulted { .. }
            | Reason::Died { .. }
            | Reason::OutOfMemory { .. } => Self::Runtime,
            Reason::Hung { .. } => Self::Timeout,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Correct => "correct",
            Self::Compile => "compile",
            Self::Runtime => "runtime",
            Self::Timeout => "timeout",
            Self::Correctness => "correctness",
        }
    }
}

/// Draws up the results. Configurations with the same machine code and launch share the times of the one that was run; one that
/// was not run yet is left out.
pub fn results(space: &RecordedSpace) -> Value {
    let parameters = Parameters::new(space);
    let key = |found: &SpaceConfiguration| Some((found.variant?, found.launch));
    let points: HashMap<_, usize> =
        space.points().filter_map(|index| Some((key(&space.configurations[index])?, index))).collect();
    let result = |(index, found): (usize, &SpaceConfiguration)| {
        let point = key(found).and_then(|key| points.get(&key).copied());
        let run = point.map(|point| &space.configurations[point]);
        let validity = Validity::new(found, run)?;
        let time = run.and_then(|run| run.time).filter(|_| validity == Validity::Correct);
        let runtimes: Vec<f64> = time.iter().flat_map(runs_us).map(|us| us / US_IN_MS).collect();
        Some(json!({
            "configuration": parameters.object(index),
            "objectives": ["time"],
            "times": { "runtimes": runtimes },
            "invalidity": validity.word(),
            "correctness": u8::from(validity == Validity::Correct),
            "measurements": measurements(space, found, point.zip(time)),
        }))
    };
    json!({
        "schema_version": SCHEMA_VERSION,
        "metadata": {
            "timeunit": "milliseconds",
            "timestamp": space.date,
            "framework": format!("nvtune {}", space.nvtune),
            "kernel": space.kernel,
            "source": space.source,
            "source_sha256": space.source_digest,
            "compiler_options": space.options,
            "toolkit": space.toolkit,
            "device": space.device,
            "device_state": space.state,
        },
        "results": space.configurations.iter().enumerate().filter_map(result).collect::<Vec<Value>>(),
    })
}

/// The medians of its runs in processes of their own.
fn runs_us(time: &PointTime) -> impl Iterator<Item = f64> {
    std::iter::once(time.median_us).chain(time.again_us)
}

/// What is known of a configuration, as numbers. Those with the same `point` were timed as one.
fn measurements(space: &RecordedSpace, found: &SpaceConfiguration, timed: Option<(usize, PointTime)>) -> Vec<Value> {
    let measured = |name: &str, value: Value, unit: &str| json!({ "name": name, "value": value, "unit": unit });
    let mut all = Vec::new();
    if let Some((point, time)) = timed {
        all.push(measured("time", (time.us() / US_IN_MS).into(), "ms"));
        all.push(measured("spread", time.spread.into(), ""));
        all.push(measured("samples", time.samples.into(), ""));
        all.push(measured("point", point.into(), ""));
    }
    if let Some(variant) = found.variant.map(|variant| &space.variants[variant].variant) {
        all.push(measured("registers", variant.registers.into(), "registers per thread"));
        all.push(measured("static_shared", variant.static_shared.into(), "bytes per block"));
        all.push(measured("stack", variant.stack.into(), "bytes per thread"));
        all.push(measured("spills", variant.spills.into(), "instructions"));
    }
    all
}
