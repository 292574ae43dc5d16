//! Words for CUDA's numbers.

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
