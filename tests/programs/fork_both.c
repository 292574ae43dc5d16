/*
 * Parent and forked child both allocate; a thread of the parent is inside calls while it forks.
 * Needs the simulated driver: the real one refuses calls in a child.
 *
 * Expected: `parent.` and `child.` lines, each for a log of its own; pids are printed. The thread's
 * allocations count for the parent.
 */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tally.h"

static int stop;

static void *busy(void *context) {
  MUST(cuCtxSetCurrent(context));
  while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
    give(take(640), 640);
    usleep(10);
  }
  return NULL;
}

static int child(CUdeviceptr parents) {
  memset(&tally, 0, sizeof tally);
  say("child.", "pid", (uint64_t)getpid());
  FAILED_FREE(DEVICE, cuMemFree_v2(parents)); /* not ours: the driver says so */
  take(3000);
  give(take(4000), 4000);
  print_tally("child.", true);
  return 3;
}

int main(void) {
  pthread_t thread;
  int status;
  CUcontext context = start_driver();
  CUdeviceptr kept = take(1000);
  pthread_create(&thread, NULL, busy, context);
  usleep(2000);
  pid_t pid = fork();
  if (pid == 0) _exit(child(kept));
  take(2000);
  waitpid(pid, &status, 0);
  __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
  pthread_join(thread, NULL);
  say("parent.", "pid", (uint64_t)getpid());
  print_tally("parent.", false);
  return WIFEXITED(status) && WEXITSTATUS(status) == 3 ? 0 : 1;
}
