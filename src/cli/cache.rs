//! `nvtune cache stats|clear|trim`: what is kept between builds.

use super::arguments::CacheCommand;
use crate::diag::console::{fatal, warn};
use crate::diag::{MessageCode, in_units};
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
