//! `nvtune cache stats|clear|trim`: what is kept between builds.

use super::arguments::CacheCommand;
use crate::record::{Cache, Journal};
use crate::settings::{Settings, bytes};
use crate::{put, say};

/// Runs one of the commands; the exit code is 1 where there is no cache or it cannot be cleared.
pub fn run(command: &CacheCommand) -> u8 {
    let (settings, problems) = Settings::new(|name| std::env::var_os(name));
    for problem in problems {
        say!("nvtune warning : {problem}");
    }
    let Some(folder) = &settings.cache else {
        say!(
            "nvtune fatal   : there is no cache: NVTUNE_CACHE_SIZE is 0, or NVTUNE_CACHE_DIR, XDG_CACHE_HOME and HOME are not set"
        );
        return 1;
    };
    let cache = Cache::new(folder, settings.cache_bytes);
    match command {
        CacheCommand::Stats => {
            let contents = cache.contents();
            put!("folder     {}", folder.display());
            put!("entries    {}", contents.entries);
            put!("bytes      {} of {}", contents.bytes, cache.limit());
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
                say!("nvtune fatal   : cannot clear the cache '{}': {error}", folder.display());
                1
            }
        },
        CacheCommand::Trim { size } => {
            let Some(limit) = size.as_deref().map_or(Some(cache.limit()), bytes) else {
                say!("nvtune fatal   : --size takes a number of bytes, such as 500M");
                return super::exit_status::USAGE;
            };
            put!("removed {} entries", cache.trim(limit));
            0
        }
    }
}
