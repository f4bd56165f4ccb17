//! What is known of the code around a source's kernels, and whether their launches go by the header.

use crate::comment::{Annotation, Launching};
use crate::cuda::{HeaderName, HostCode, HostLaunch};

/// What is known of the code around a source's kernels.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The file name of the source's header.
    pub header: String,
    pub includes_header: bool,
    /// What the header calls the kernels of the source.
    pub header_names: Vec<HeaderName>,
    /// Whether what is built holds the kernels' launch stubs.
    pub has_stubs: bool,
    /// The source's host code, where it is compiled.
    pub host: HostCode,
}

impl Surroundings {
    /// Whether the host code launches a kernel whatever the header says.
    pub fn goes_by_header(&self, annotation: &Annotation) -> bool {
        match annotation.clauses.launch {
            Some(Launching::Header) => true,
            Some(Launching::Remap) => false,
            // A header that is included for other kernels is not this one's; and one launch that surely knows nothing of it needs code
            // that any launch may have.
            None => {
                self.includes_header
                    && self.beside_header(annotation).is_empty()
                    && (self.uses_header(annotation) || self.has_header_for_others(annotation))
            }
        }
    }

    /// Whether the code has a word of what the header says of a kernel.
    pub fn uses_header(&self, annotation: &Annotation) -> bool {
        self.header_names.iter().any(|of| of.name == annotation.name && self.host.uses_header(of))
    }

    /// Whether the header is there for launches of a kernel in other sources: nothing of it is used in this one, which launches the kernel
    /// nowhere.
    fn has_header_for_others(&self, annotation: &Annotation) -> bool {
        !self.host.launches_somewhere(&annotation.kernel.name)
            && !self.header_names.iter().any(|of| self.host.uses_header(of))
    }

    /// The launches of a kernel that surely know nothing of the header.
    pub fn beside_header(&self, annotation: &Annotation) -> Vec<HostLaunch> {
        let instance = annotation.instance.as_ref().map(|instance| {
            let arguments = instance.arguments.iter().map(|argument| argument.text().replace(' ', ""));
            arguments.collect::<Vec<_>>().join(",")
        });
        self.host.beside_header(&annotation.kernel.name, instance.as_deref(), &self.header_names)
    }
}
