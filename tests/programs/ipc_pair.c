/*
 * Memory shared between two processes by an IPC handle: the parent owns it, the child opens it
 * twice (the same address, counted), closes it twice, and leaves another one open.
 *
 * Expected: the block counts as device memory in the parent only; in the child it is imported.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "tally.h"

static int child(int from) {
  CUipcMemHandle handles[2];
  CUdeviceptr first, again, second;
  if (read(from, handles, sizeof handles) != sizeof handles) return 1;
  start_driver();
  MUST(cuIpcOpenMemHandle_v2(&first, handles[0], 1));
  did_alloc(IMPORTED, 3000);
  MUST(cuIpcOpenMemHandle_v2(&again, handles[0], 1));
  if (first != again) return 1;
  /* The first ABI, by name and version. */
  CUresult (*old_open)(CUdeviceptr *, CUipcMemHandle, unsigned int);
  MUST(cuGetProcAddress_v2("cuIpcOpenMemHandle", (void **)&old_open, 4010, 0, NULL));
  MUST(old_open(&second, handles[1], 1));
  did_alloc(IMPORTED, 5000);
  FAILED_ALLOC(IMPORTED, old_open(NULL, handles[1], 1));
  FAILED_ALLOC(IMPORTED, cuIpcOpenMemHandle_v2(&again, handles[0], 77));
  MUST(cuMemcpyDtoD_v2(second, first, 100));
  did_copy(DEVICE_TO_DEVICE, SYNC, 100);
  MUST(cuIpcCloseMemHandle(first));
  MUST(cuIpcCloseMemHandle(first));
  did_free(IMPORTED, 3000);
  FAILED_FREE(IMPORTED, cuIpcCloseMemHandle(first)); /* closed already */
  say("child.", "pid", (uint64_t)getpid());
  print_tally("child.", true);
  return 0;
}

int main(void) {
  int ends[2], status;
  CUipcMemHandle handles[2];
  if (pipe(ends)) return 9;
  pid_t pid = fork(); /* before the driver starts, as it must be */
  if (pid == 0) return child(ends[0]);
  start_driver();
  MUST(cuIpcGetMemHandle(&handles[0], take(3000)));
  MUST(cuIpcGetMemHandle(&handles[1], take(5000)));
  if (write(ends[1], handles, sizeof handles) != sizeof handles) return 9;
  waitpid(pid, &status, 0);
  say("parent.", "pid", (uint64_t)getpid());
  print_tally("parent.", true);
  return status != 0;
}
