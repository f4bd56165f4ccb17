//! Recorded spaces -> what each constant of the model buys on them: what the model alone loses if the constant has its neutral value.
//!
//! In: records of whole spaces. Out: a table in Markdown. A kernel's loss is the mean over the GPUs on which it was recorded, for
//! these are no two kernels.

mod table;

use crate::judge;
use crate::judge::Losses;
use nvtune::model::CONSTANTS;
use nvtune::record::{RecordedSpace, SpaceError};
use nvtune::tune;
use nvtune::tune::{Allowance, ProfileCache, Scored};
use nvtune::{put_on, say};
use std::path::PathBuf;
use std::time::Instant;

/// What the model loses on one space.
#[derive(Clone, Debug)]
pub struct Ablated {
    pub kernel: String,
    /// With the constants as they are.
    pub losses: Losses,
    /// By constant: with its neutral value; `None` where no prediction changes.
    pub without: Vec<Option<Losses>>,
}

/// Prints the table of all constants over every record among these files and below these folders. The exit code tells whether all
/// could be scored.
pub fn run(paths: &[PathBuf]) -> u8 {
    let clock = Instant::now();
    let Some(files) = judge::files(paths) else { return 1 };
    let (ablated, problems) = judge::of_each(&files, ablate);
    put_on!("{}", table::text(&ablated));
    for problem in &problems {
        say!("nvtune warning : {problem}");
    }
    say!("nvtune: {} constants on {} spaces in {:.1} s", CONSTANTS.len(), ablated.len(), clock.elapsed().as_secs_f64());
    u8::from(ablated.is_empty() || !problems.is_empty())
}

/// Scores one space with all constants as they are, and without each.
///
/// # Errors
/// Where the record is broken, or where its baseline cannot be scored.
pub fn ablate(space: &RecordedSpace) -> Result<Ablated, SpaceError> {
    let mut profiles = ProfileCache::new(Allowance::TIMED);
    let mut score = |input| {
        tune::score_again(input, &mut profiles)
            .map_err(|none| SpaceError::Inconsistent(format!("its baseline: {}", none.reason)))
    };
    let mut scored = score(tune::recorded_scoring_input(space)?)?;
    let (losses, predicted) = (judge::losses(space, &scored), predicted_times(&scored));
    let mut without = Vec::with_capacity(CONSTANTS.len());
    for constant in CONSTANTS {
        let mut input = scored.input;
        input.calibration = constant.neutralized();
        scored = score(input)?;
        without.push((predicted_times(&scored) != predicted).then(|| judge::losses(space, &scored)));
    }
    Ok(Ablated { kernel: space.kernel.clone(), losses, without })
}

fn predicted_times(scored: &Scored) -> Vec<Option<f64>> {
    scored.scores.iter().map(|score| score.map(|score| score.predicted_us)).collect()
}
