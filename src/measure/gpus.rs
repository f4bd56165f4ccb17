//! The GPUs that the measuring process may use: claims one of them and opens its bench.
//!
//! Invariants: jobs run on a claimed GPU only, and a process has one GPU at a time. The driver
//! lists the GPUs, so `CUDA_VISIBLE_DEVICES`, MIG and MPS work as for any program; of several
//! models only the first one is used.

use super::bench::Bench;
use super::gpu::{Gpu, visible};
use super::protocol::Reply;
use super::replay::{Recording, Replay};
use crate::gpu::Device;
use crate::gpu::lock::GpuLock;
use std::fs::File;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Time between two attempts to claim a GPU, and between two reports to the caller that it waits.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// What a GPU is opened as: the driver's, or one of a recording.
enum BenchSource {
    /// Whether buffers have a guard behind them.
    Driver {
        guarded: bool,
    },
    Recorded(Rc<Recording>, File),
}

/// The GPUs of one model, in the driver's order.
pub(super) struct Gpus {
    source: BenchSource,
    /// With the driver's number of each.
    devices: Vec<(usize, Device)>,
    open: Option<OpenGpu>,
    /// How many were opened so far.
    opened: u64,
    /// Whether the one that is open is this process's.
    claimed: bool,
    /// Whether it is claimed only to prepare a baseline.
    is_borrowed: bool,
    claim: Option<GpuLock>,
}

/// A GPU that is ready to run jobs.
struct OpenGpu {
    index: usize,
    device: Device,
    bench: Box<dyn Bench>,
}

impl Gpus {
    /// Those that the driver shows. The error says why there is none.
    pub fn visible(guarded: bool) -> Result<Gpus, String> {
        Gpus::new(BenchSource::Driver { guarded }, visible()?).ok_or_else(|| "the driver shows none".to_owned())
    }

    /// Those of a recording.
    pub fn recorded(recording: Rc<Recording>, stdout: File) -> Gpus {
        let devices = recording.devices();
        let source = BenchSource::Recorded(recording, stdout);
        let devices = devices.into_iter().enumerate().collect();
        Gpus { source, devices, open: None, opened: 0, claimed: false, is_borrowed: false, claim: None }
    }

    fn new(source: BenchSource, devices: Vec<Device>) -> Option<Gpus> {
        let first = devices.first()?.clone();
        let alike = |device: &Device| {
            device.name == first.name && device.sms == first.sms && device.memory_bytes == first.memory_bytes
        };
        let devices = devices.into_iter().enumerate().filter(|(_, device)| alike(device)).collect();
        Some(Gpus { source, devices, open: None, opened: 0, claimed: false, is_borrowed: false, claim: None })
    }

    /// The first one, and how many there are.
    pub fn first(&self) -> (Device, usize) {
        let first = self.devices.first().map(|(_, device)| device.clone());
        (first.unwrap_or_default(), self.devices.len())
    }

    /// Opens a free GPU, if there is one, and releases it. Errors are ignored: the next claim meets
    /// them again.
    pub fn prepare(&mut self) {
        let _ = self.take();
        self.release_gpu();
    }

    /// Claims a GPU and opens it; waits at most this many seconds for it. `None`: others have
    /// them all.
    pub fn claim(&mut self, wait_s: f64, send: &mut dyn FnMut(Reply)) -> Result<Option<Device>, String> {
        let begin = Instant::now();
        let mut last_report: Option<Instant> = None;
        while !self.take()? {
            if begin.elapsed().as_secs_f64() >= wait_s {
                return Ok(None);
            }
            if last_report.is_none_or(|last| last.elapsed() > REPORT_INTERVAL) {
                send(Reply::Waiting);
                last_report = Some(Instant::now());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(self.open.as_ref().map(|open| open.device.clone()))
    }

    /// The bench of the claimed GPU.
    pub fn claimed(&mut self) -> Option<&mut dyn Bench> {
        let open = self.open.as_mut().filter(|_| self.claimed)?;
        Some(open.bench.as_mut())
    }

    /// Claims a free GPU briefly (see [`Self::release_borrowed`]) and returns its bench; `None` if
    /// none is free, or one is claimed already. Errors are ignored: the next claim meets them
    /// again.
    pub fn claim_briefly(&mut self) -> Option<&mut dyn Bench> {
        if self.claimed || !self.take().unwrap_or(false) {
            return None;
        }
        self.is_borrowed = true;
        self.claimed()
    }

    /// Gives a borrowed GPU back, and keeps what is in its memory.
    pub fn release_borrowed(&mut self) {
        if std::mem::take(&mut self.is_borrowed) {
            self.pause();
        }
    }

    /// Gives the claimed GPU back, and keeps what is in its memory.
    pub fn pause(&mut self) {
        self.claimed = false;
        self.claim = None;
    }

    /// Returns a number that identifies the open bench.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// Gives the claimed GPU back, with all memory of it but its context.
    pub fn release_gpu(&mut self) {
        if let Some(open) = &mut self.open {
            open.bench.clear();
        }
        self.pause();
    }

    /// Claims the first GPU that is free, the open one before all others, and opens it. False
    /// where none is.
    fn take(&mut self) -> Result<bool, String> {
        if self.claimed {
            return Ok(true);
        }
        let open = self.open.as_ref().map(|open| open.index);
        let mut order: Vec<usize> = (0..self.devices.len()).collect();
        order.sort_by_key(|index| Some(*index) != open);
        for index in order {
            let Some((ordinal, device)) = self.devices.get(index) else { continue };
            // A GPU without a name of its own cannot be locked: an old recording's.
            let claim = match device.uuid.as_str() {
                "" => None,
                uuid => match GpuLock::try_claim(uuid).map_err(|error| error.to_string())? {
                    None => continue,
                    claim => claim,
                },
            };
            if open != Some(index) {
                // One process has one context: the other's goes before.
                self.open = None;
                let (device, bench): (Device, Box<dyn Bench>) = match &self.source {
                    BenchSource::Driver { guarded } => {
                        let gpu = Gpu::open(*ordinal, *guarded)?;
                        (gpu.device().clone(), Box::new(gpu))
                    }
                    BenchSource::Recorded(recording, stdout) => {
                        let stdout = stdout.try_clone().map_err(|error| format!("standard output: {error}"))?;
                        (device.clone(), Box::new(Replay::new(Rc::clone(recording), device.uuid.clone(), stdout)))
                    }
                };
                self.open = Some(OpenGpu { index, device, bench });
                self.opened += 1;
            }
            self.claim = claim;
            self.claimed = true;
            return Ok(true);
        }
        Ok(false)
    }
}
