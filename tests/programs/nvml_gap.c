/*
 * nvml_gap MILLISECONDS: memory that calls ask for and memory that objects own, with pauses of that
 * length in which the sampler can read.
 *
 * Expected: `context_bytes` before anything else is there, then `libraries_bytes` for libraries,
 * `kernels_bytes` for the first kernel of one, `modules_bytes` for a module, `blocks_bytes` for
 * 3 MiB of device memory.
 */
#include <unistd.h>

#include "tally.h"

int main(int count, char **arguments) {
  useconds_t pause = (useconds_t)(count > 1 ? atoi(arguments[1]) : 1000) * 1000;
  CUmodule module;
  CUlibrary library[2];
  start_driver();
  usleep(pause);
  for (int i = 0; i < 2; i++)
    MUST(cuLibraryLoadData(&library[i], "", NULL, NULL, 0, NULL, NULL, 0));
  usleep(pause);
  CUkernel kernel;
  MUST(cuLibraryGetKernel(&kernel, library[0], "name"));
  usleep(pause);
  CUdeviceptr block = take(3 << 20);
  MUST(cuModuleLoadData(&module, ""));
  usleep(pause);
  say("", "context_bytes", (uint64_t)(263 + 42) << 21);
  say("", "libraries_bytes", 2 << 21);
  say("", "kernels_bytes", 3 << 21);
  say("", "modules_bytes", 1 << 21);
  say("", "blocks_bytes", 2 << 21);
  print_tally("", true);
  (void)block;
  return 0;
}
