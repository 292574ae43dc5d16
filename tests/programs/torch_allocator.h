/* The stand-in for PyTorch's caching allocator, as programs in C see it. */
#ifndef TORCH_ALLOCATOR_H
#define TORCH_ALLOCATOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A block of at least `size` bytes on a device; 0 after an out-of-memory report. */
uint64_t torch_take(int device, size_t size);
/* Takes the block back. 1 when the reporter threw. */
int torch_give(int device, uint64_t pointer);
/* Gives back segments in which nothing is live. */
void torch_empty_cache(int device);
/* A report about memory that is on no CUDA device: CPU, and XPU. */
void torch_elsewhere(void *pointer, int64_t size);
/* A report in the words of PyTorch 1.13. */
void torch_of_old(uint64_t pointer, int64_t size, int64_t allocated, int64_t reserved);
/* One report, on a device that libc10 keeps no count of. */
void torch_report(uint64_t pointer, int64_t size, uint64_t allocated, uint64_t reserved);
/* What libc10 was told: calls, about CUDA, about others, out of memory, checksum, thrown, and
   whether its caller was the allocator itself. */
void torch_counts(uint64_t counts[7]);
/* Segments taken and their bytes, given back and their bytes, and refused. */
void torch_segments(uint64_t counts[5]);
void torch_totals(int device, uint64_t *allocated, uint64_t *reserved);
/* The next report throws. */
void torch_throw(const char *text);
/* Blocks left are given back when the process ends. */
void torch_give_back_at_exit(void);

#ifdef __cplusplus
}
#endif
#endif
