/*
 * A child made by the raw system call, so that no atfork handler runs, allocates and ends by
 * _exit. Needs the simulated driver.
 *
 * Expected: `parent.` and `child.` lines, each for a log of its own.
 */
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tally.h"

int main(void) {
  int status;
  start_driver();
  take(1000);
  pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) {
    memset(&tally, 0, sizeof tally);
    take(3000);
    give(take(4000), 4000);
    say("child.", "pid", (uint64_t)getpid());
    print_tally("child.", true);
    _exit(0);
  }
  waitpid(pid, &status, 0);
  take(2000);
  say("parent.", "pid", (uint64_t)getpid());
  print_tally("parent.", true);
  return status != 0;
}
