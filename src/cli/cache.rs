//! `nvtune cache stats|clear|trim`: what is kept between builds.

use super::arguments::CacheCommand;
use crate::record::{Cache, Journal};
use crate::settings::{Settings, bytes};

/// Runs one of the commands; the exit code is 1 where there is no cache or it cannot be cleared.
pub fn run(command: &CacheCommand) -> u8 {
    let (settings, problems) = Settings::new(|name| std::env::var_os(name));
    for problem in problems {
        eprintln!("nvtune warning : {problem}");
    }
    let Some(folder) = &settings.cache else {
        eprintln!(
            "nvtune fatal   : there is no cache: NVTUNE_CACHE_SIZE is 0, or NVTUNE_CACHE_DIR, XDG_CACHE_HOME and HOME are not set"
        );
        return 1;
    };
    let cache = Cache::new(folder, settings.cache_bytes);
    match command {
        CacheCommand::Stats => {
            let contents = cache.contents();
            println!("folder     {}", folder.display());
            println!("entries    {}", contents.entries);
            println!("bytes      {} of {}", contents.bytes, cache.limit());
            println!("searches   {} interrupted", Journal::count(&cache));
            println!("unfinished {}", contents.unfinished);
            0
        }
        CacheCommand::Clear => match cache.clear() {
            Ok(entries) => {
                println!("removed {entries} entries");
                0
            }
            Err(error) => {
                eprintln!("nvtune fatal   : cannot clear the cache '{}': {error}", folder.display());
                1
            }
        },
        CacheCommand::Trim { size } => {
            let Some(limit) = size.as_deref().map_or(Some(cache.limit()), bytes) else {
                eprintln!("nvtune fatal   : --size takes a number of bytes, such as 500M");
                return super::USAGE;
            };
            println!("removed {} entries", cache.trim(limit));
            0
        }
    }
}
