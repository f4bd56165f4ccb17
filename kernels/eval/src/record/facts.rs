//! What a record says of the machine besides the device: the driver and clocks by nvidia-smi.

use nvtune::gpu::Device;
use nvtune::record::DeviceState;
use std::process::Command;

/// In the order of [`DeviceState`]'s fields.
const QUERY: &str = "--query-gpu=driver_version,clocks.max.sm,clocks.max.memory,clocks.sm,clocks.mem,power.limit";

/// The state of a device now; `None` where nvidia-smi does not know it.
pub fn state(device: &Device) -> Option<DeviceState> {
    let mut command = Command::new("nvidia-smi");
    command.args([QUERY, "--format=csv,noheader,nounits"]);
    if !device.uuid.is_empty() {
        command.arg(format!("--id={}", device.uuid));
    }
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut values = text.lines().next()?.split(',').map(str::trim);
    let driver = values.next()?.to_owned();
    // What it would not tell is in brackets.
    let mut number = || values.next().map(|value| value.parse().unwrap_or(0.0));
    Some(DeviceState {
        driver,
        max_sm_mhz: number()?,
        max_memory_mhz: number()?,
        sm_mhz: number()?,
        memory_mhz: number()?,
        power_limit_w: number()?,
    })
}

/// The name of a device's folder among the results: `h200` for an `NVIDIA H200`.
pub fn folder(device: &Device) -> String {
    let name = device.name.to_lowercase();
    let name = name.strip_prefix("nvidia ").unwrap_or(&name);
    let words = name.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use nvtune::gpu::Device;

    #[test]
    fn a_folder_is_named_after_its_gpu() {
        for (name, folder) in
            [("NVIDIA H200", "h200"), ("Tesla V100-SXM2-32GB", "tesla-v100-sxm2-32gb"), ("NVIDIA B200 (x)", "b200-x")]
        {
            assert_eq!(super::folder(&Device { name: name.to_owned(), ..Device::default() }), folder);
        }
    }
}
