//! Words for CUDA's numbers, and for one thing of many.

use super::counted;

/// So many things of a class, by the name of many: `1 library`, `2 libraries`.
#[must_use]
pub fn of_class(count: u64, many: &str) -> String {
    let many = many.replace('_', " ");
    let one = match many.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => many.strip_suffix('s').unwrap_or(&many).to_owned(),
    };
    counted(count, &one, &many)
}

/// Name of a limit of contexts; empty for one that this version does not know.
#[must_use]
pub const fn limit(number: u64) -> &'static str {
    match number {
        0 => "stack_size",
        1 => "printf_fifo_size",
        2 => "malloc_heap_size",
        3 => "dev_runtime_sync_depth",
        4 => "dev_runtime_pending_launch_count",
        5 => "max_l2_fetch_granularity",
        6 => "persisting_l2_cache_size",
        7 => "shmem_size",
        8 => "cig_enabled",
        9 => "cig_shmem_fallback_enabled",
        10 => "per_block_memory_size",
        _ => "",
    }
}
