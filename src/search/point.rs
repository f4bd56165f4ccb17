//! A configuration as the search sees it.

use crate::model::Score;

/// A feasible configuration as the search sees it.
#[derive(Clone, Debug)]
pub struct Point {
    /// Threads of the whole grid.
    pub threads: u64,
    /// Identity of the machine code: points of one variant and equal metrics differ in shape
    /// alone.
    pub variant: usize,
    /// Identity of cache operator and carve-out. The model knows next to nothing of caches, so
    /// POSF and Ryoo choose among the points of each as if they were alone.
    pub policy: usize,
    /// Whether it has code that is there before that of the others: see
    /// [`crate::ptx::Edits::is_compiled_first`].
    pub compiled_first: bool,
    pub score: Score,
    /// Where in the space it is: numbers in which configurations that behave alike are near,
    /// the same ones for all points.
    pub coordinates: Vec<f64>,
}

pub(crate) fn sort_by_prediction(points: &[Point], indices: &mut [usize]) {
    indices.sort_by(|&a, &b| points[a].score.predicted_us.total_cmp(&points[b].score.predicted_us).then(a.cmp(&b)));
}
