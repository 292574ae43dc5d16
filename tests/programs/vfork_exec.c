/*
 * vfork, then exec of this program again as the child, which allocates; before, between and after
 * the parent allocates too. The child of vfork shares the parent's memory until the exec.
 *
 * Expected: `parent.` and `child.` lines, each for a log of its own.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "tally.h"

static int child(void) {
  start_driver();
  take(3000);
  say("child.", "pid", (uint64_t)getpid());
  print_tally("child.", true);
  return 0;
}

int main(int argc, char **argv) {
  int status = 1;
  if (argc > 1) return child();
  start_driver();
  take(1000);
  for (int i = 0; i < 3; i++) {
    pid_t pid = vfork();
    if (pid == 0) {
      if (i) execl("/bin/true", "true", (char *)NULL);
      execl("/proc/self/exe", argv[0], "child", (char *)NULL);
      _exit(1);
    }
    waitpid(pid, &status, 0);
    if (status) return 1;
    give(take(2000), 2000);
  }
  say("parent.", "pid", (uint64_t)getpid());
  print_tally("parent.", true);
  return 0;
}
