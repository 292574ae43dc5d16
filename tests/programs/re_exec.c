/*
 * Replaces itself by execv: the second image has the pid and start time of the first.
 *
 * Expected: `first.` and `second.` lines, each for a log of its own, same pid.
 */
#include <unistd.h>

#include "tally.h"

int main(int argc, char **argv) {
  const char *prefix = argc > 1 ? "second." : "first.";
  start_driver();
  take(argc > 1 ? 2000 : 1000);
  give(take(500), 500);
  if (argc == 1) take(300);
  say(prefix, "pid", (uint64_t)getpid());
  print_tally(prefix, true);
  if (argc > 1) return 0;
  execl("/proc/self/exe", argv[0], "second", (char *)NULL);
  return 1;
}
