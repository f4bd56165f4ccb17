//! `nvtune cache stats|clear|trim`: what is kept between builds.

use super::arguments::CacheCommand;
use crate::diag::MessageCode;
use crate::diag::console::{fatal, warn};
use crate::put;
use crate::record::{Cache, Journal};
use crate::settings::{Settings, bytes};

/// Runs one of the commands; the exit code is 1 where there is no cache or it cannot be
/// cleared.
pub fn run(command: &CacheCommand) -> u8 {
    let (settings, problems) = Settings::new(|name| std::env::var_os(name));
    for problem in problems {
        warn(MessageCode::InvalidSetting, problem);
    }
    let Some(folder) = &settings.cache else {
        fatal(
            MessageCode::NoCache,
            "no cache: NVTUNE_CACHE_SIZE is 0, or none of NVTUNE_CACHE_DIR, XDG_CACHE_HOME, HOME is set",
        );
        return 1;
    };
    let cache = Cache::new(folder, settings.cache_bytes);
    match command {
        CacheCommand::Stats => {
            let contents = cache.contents();
            put!("folder     {}", folder.display());
            put!("entries    {}", contents.entries);
            put!("size       {} of {}", in_units(contents.bytes), in_units(cache.limit()));
            put!("searches   {} interrupted", Journal::count(&cache));
            put!("unfinished {}", contents.unfinished);
            0
        }
        CacheCommand::Clear => match cache.clear() {
            Ok(entries) => {
                put!("removed {entries} entries");
                0
            }
            Err(error) => {
                fatal(MessageCode::CommandFailed, format!("cannot clear the cache '{}': {error}", folder.display()));
                1
            }
        },
        CacheCommand::Trim { size } => {
            let Some(limit) = size.as_deref().map_or(Some(cache.limit()), bytes) else {
                fatal(MessageCode::WrongArgument, "--size takes a number of bytes, such as 500M");
                return super::exit_status::USAGE;
            };
            put!("removed {} entries", cache.trim(limit));
            0
        }
    }
}

/// A number of bytes as a person reads it: `1.5 MiB`.
pub(super) fn in_units(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(shift, _)| bytes >> shift > 0) {
        Some((shift, unit)) => format!("{:.1} {unit}", bytes as f64 / (1u64 << shift) as f64),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::in_units;

    #[test]
    fn bytes_are_shown_in_the_largest_unit_that_they_fill() {
        for (bytes, shown) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_572_864, "1.5 MiB"),
            (1 << 30, "1.0 GiB"),
            (5 << 40, "5120.0 GiB"),
        ] {
            assert_eq!(in_units(bytes), shown);
        }
    }
}
