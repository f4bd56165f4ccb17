//! The code that an object will hold for its kernels, and what of it a GPU loads.
//!
//! The rules are those of the CUDA programming guide ("Application Compatibility", "Feature set
//! compiler targets"): a cubin runs on GPUs of its major version with the same or a higher
//! minor one; one of an architecture-specific target (`sm_90a`) on exactly that GPU, one of a
//! family-specific target (`sm_100f`) as a plain one does; PTX is compiled by the driver for
//! any GPU that is not older, or, of a specific target, for those that its cubin would run on.
//! Of cubins that run the newest is taken, and PTX only where none runs.

use super::dry_run::{Dryrun, Pipeline};

/// Code of a source in the object.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Image {
    target: Target,
    is_ptx: bool,
    file: String,
}

/// A target: `90a` of `sm_90a` or `compute_90a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Target {
    /// Major times 10 plus minor.
    number: u32,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Plain,
    Family,
    Architecture,
}

impl Image {
    /// The machine code of a pipeline.
    fn of(pipeline: &Pipeline) -> Option<Image> {
        let target = Target::new(pipeline.architecture.rsplit('_').next()?)?;
        Some(Image { target, is_ptx: false, file: pipeline.ptxas.option("-o")?.to_owned() })
    }
}

impl Target {
    /// Reads `90`, `90a`, `100f`.
    fn new(text: &str) -> Option<Target> {
        let (digits, kind) = match (text.strip_suffix('a'), text.strip_suffix('f')) {
            (Some(digits), _) => (digits, Kind::Architecture),
            (_, Some(digits)) => (digits, Kind::Family),
            _ => (text, Kind::Plain),
        };
        Some(Target { number: digits.parse().ok()?, kind })
    }

    /// Whether machine code of this target runs on a GPU of compute capability `device`.
    fn runs_on(self, device: u32) -> bool {
        match self.kind {
            Kind::Architecture => self.number == device,
            Kind::Plain | Kind::Family => self.number / 10 == device / 10 && self.number <= device,
        }
    }

    /// Whether the driver compiles PTX of this target for such a GPU.
    fn compiles_for(self, device: u32) -> bool {
        match self.kind {
            Kind::Plain => self.number <= device,
            Kind::Family | Kind::Architecture => self.runs_on(device),
        }
    }
}

/// What a program runs on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// The machine code of the pipeline.
    Cubin,
    /// The PTX of the pipeline, which the driver compiles.
    Ptx,
    /// Nothing of the pipeline: this object does not run there, or from PTX alone.
    Nothing,
}

/// The code of a source in an object, and which of it is made by one pipeline.
#[derive(Clone, Debug)]
pub struct Loads {
    images: Vec<(Image, bool)>,
}

impl Loads {
    /// What of the pipeline a GPU of this compute capability loads.
    pub fn by(&self, device: u32) -> Loaded {
        let images: Vec<&Image> = self.images.iter().map(|(image, _)| image).collect();
        match best(&images, device).and_then(|at| self.images.get(at)) {
            Some((image, true)) if image.is_ptx => Loaded::Ptx,
            Some((_, true)) => Loaded::Cubin,
            _ => Loaded::Nothing,
        }
    }

    /// A word that changes with what any GPU would load.
    pub fn words(&self) -> String {
        let each = self.images.iter().map(|(Image { target, is_ptx, .. }, is_own)| {
            let code = if *is_ptx { "compute" } else { "sm" };
            format!("{code}_{}{:?}{}", target.number, target.kind, if *is_own { " " } else { " of another " })
        });
        each.collect()
    }
}

/// The index of the image that a GPU of compute capability `device` takes.
fn best(images: &[&Image], device: u32) -> Option<usize> {
    let fits = |image: &Image| match image.is_ptx {
        true => image.target.compiles_for(device),
        false => image.target.runs_on(device),
    };
    let fitting = images.iter().enumerate().filter(|(_, image)| fits(image));
    let best = fitting.max_by_key(|(_, image)| (!image.is_ptx, image.target.number, image.target.kind))?;
    Some(best.0)
}

/// Whether an image is made by a pipeline.
fn is_made_by(image: &Image, pipeline: &Pipeline) -> bool {
    match image.is_ptx {
        true => pipeline.ptxas.has(&image.file),
        false => pipeline.ptxas.option("-o") == Some(image.file.as_str()),
    }
}

impl Dryrun {
    /// What GPUs load of the pipeline of a source.
    pub fn loads(&self, source: &str, pipeline: &Pipeline) -> Loads {
        // A virtual architecture alone has no pipeline, and its PTX may be the one that is loaded.
        let images = self.images().into_iter().filter(|image| self.is_of(image, source));
        Loads { images: images.map(|image| (image.clone(), is_made_by(&image, pipeline))).collect() }
    }

    /// The pipeline of `source` whose code a program would run on a GPU of compute capability
    /// `device`; without a device, or where none is for it, the newest. `None` where there
    /// is no pipeline.
    pub fn loaded(&self, source: &str, device: Option<u32>) -> Option<Pipeline> {
        let pipelines: Vec<Pipeline> =
            self.pipelines().into_iter().filter(|pipeline| pipeline.source == source).collect();
        let images: Vec<Image> = self.images().into_iter().filter(|image| self.is_of(image, source)).collect();
        let images: Vec<&Image> = images.iter().collect();
        let found = device.and_then(|device| {
            let best = images.get(best(&images, device)?)?;
            pipelines.iter().find(|pipeline| is_made_by(best, pipeline)).cloned()
        });
        found.or_else(|| {
            let number = |pipeline: &&Pipeline| {
                pipeline
                    .architecture
                    .rsplit('_')
                    .next()
                    .and_then(Target::new)
                    .map(|target| (target.number, target.kind))
            };
            pipelines.iter().max_by_key(number).cloned()
        })
    }

    /// What `fatbinary` is given; without it (`-cubin`), what ptxas writes.
    fn images(&self) -> Vec<Image> {
        if !self.steps.iter().any(|step| step.program() == "fatbinary") {
            let pipelines = self.pipelines();
            return pipelines.iter().filter_map(Image::of).collect();
        }
        let options = self.steps.iter().filter(|step| step.program() == "fatbinary").flat_map(|step| step.words());
        options
            .filter_map(|option| {
                let fields = option.strip_prefix("--image3=").or(option.strip_prefix("--image="))?;
                let field =
                    |name: &str| fields.split(',').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
                let file = fields.split_once("file=")?.1.to_owned();
                Some(Image { target: Target::new(field("sm")?)?, is_ptx: field("kind")? == "ptx", file })
            })
            .collect()
    }

    /// Whether an image is made of this source.
    fn is_of(&self, image: &Image, source: &str) -> bool {
        let ptx = match image.is_ptx {
            true => Some(image.file.as_str()),
            false => {
                let made = |step: &&super::dry_run::DryrunStep| {
                    step.program() == "ptxas" && step.option("-o") == Some(&image.file)
                };
                self.steps.iter().find(made).and_then(|step| step.words().find(|word| word.ends_with(".ptx")))
            }
        };
        let of = |step: &super::dry_run::DryrunStep| {
            step.program() == "cicc" && step.option("-o") == ptx && step.option("--orig_src_file_name") == Some(source)
        };
        ptx.is_some() && self.steps.iter().any(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_where() {
        let rows: [(&str, &[u32], &[u32]); 5] = [
            // Target; GPUs that run its machine code; GPUs that PTX of it is compiled for.
            ("80", &[80, 86, 87, 89], &[80, 86, 87, 89, 90, 100, 103, 120]),
            ("86", &[86, 87, 89], &[86, 87, 89, 90, 100, 103, 120]),
            ("90", &[90], &[90, 100, 103, 120]),
            ("90a", &[90], &[90]),
            ("100f", &[100, 103], &[100, 103]),
        ];
        let gpus = [75, 80, 86, 87, 89, 90, 100, 103, 120];
        for (target, runs, compiles) in rows {
            let target = Target::new(target).unwrap();
            let running: Vec<u32> = gpus.into_iter().filter(|&gpu| target.runs_on(gpu)).collect();
            let compiled: Vec<u32> = gpus.into_iter().filter(|&gpu| target.compiles_for(gpu)).collect();
            assert_eq!((running.as_slice(), compiled.as_slice()), (runs, compiles), "{target:?}");
        }
        assert_eq!(["x", "", "a", "9 0"].map(Target::new), [None; 4]);
    }
}
