/*
 * exec_storm [COUNT]: a process that allocates in one thread and starts COUNT short programs from
 * another, as build tools and data loaders do. The children never touch CUDA.
 *
 * Expected: every child ends with 0, exactly one log exists.
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
    usleep(50);
  }
  return NULL;
}

int main(int argc, char **argv) {
  uint64_t count = argument(argc, argv, 1, 200), good = 0;
  pthread_t thread;
  CUcontext context = start_driver();
  pthread_create(&thread, NULL, busy, context);
  for (uint64_t i = 0; i < count; i++) {
    int status = 1;
    pid_t pid = fork();
    if (pid == 0) {
      execl("/bin/true", "true", (char *)NULL);
      _exit(1);
    }
    waitpid(pid, &status, 0);
    good += status == 0;
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
  pthread_join(thread, NULL);
  say("", "children", good);
  print_tally("", false);
  return good != count;
}
