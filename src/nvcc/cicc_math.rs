//! Math options as words of cicc's command line.

use super::dry_run::DryrunStep;
use crate::launch::{Math, MathOption};
use std::path::Path;

/// The words that turn an option off and on. nvcc gives cicc one of them, and cicc refuses both.
fn words(option: MathOption) -> (&'static str, &'static str) {
    match option {
        MathOption::Ftz => ("-ftz=0", "-ftz=1"),
        MathOption::FastDiv => ("-prec_div=1", "-prec_div=0"),
        MathOption::FastSqrt => ("-prec_sqrt=1", "-prec_sqrt=0"),
        MathOption::Fmad => ("-fmad=0", "-fmad=1"),
    }
}

/// The options of a build: all that its step of cicc does not turn off.
pub(super) fn build_math(cicc: &DryrunStep) -> Math {
    MathOption::ALL.into_iter().map(|(_, option)| option).filter(|option| !cicc.has(words(*option).0)).collect()
}

/// The words to replace, for [`DryrunStep::rewritten`], so that these options are on.
pub(super) fn replacements<'a>(math: Math) -> impl Iterator<Item = (&'a str, &'a Path)> {
    math.options().map(words).map(|(off, on)| (off, Path::new(on)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvcc::Dryrun;

    fn cicc(options: &str) -> DryrunStep {
        let dryrun = Dryrun::parse(&format!("#$ cicc {options} \"a.ii\" -o \"a.ptx\"\n"));
        dryrun.steps.into_iter().next().expect("the step")
    }

    #[test]
    fn build_has_what_cicc_is_not_told_to_leave_off() {
        let of = |options| build_math(&cicc(options)).to_string();
        assert_eq!(of("-ftz=0 -prec_div=1 -prec_sqrt=1 -fmad=1"), "fmad");
        assert_eq!(of("-ftz=1 -prec_div=0 -prec_sqrt=0 -fmad=0"), "ftz+fast_div+fast_sqrt");
    }

    #[test]
    fn each_option_takes_the_place_of_its_word() {
        let step = cicc("-ftz=0 -prec_div=1 -prec_sqrt=1 -fmad=0");
        let math: Math = [MathOption::Ftz, MathOption::FastSqrt].into_iter().collect();
        let replaced: Vec<_> = replacements(math).collect();
        let line = step.rewritten(&replaced, &[]);
        let line = line.to_string_lossy();
        assert!(line.starts_with("cicc '-ftz=1' -prec_div=1 '-prec_sqrt=0' -fmad=0 "), "{line}");
    }
}
