/*
 * signal_storm [PAIRS]: allocates while two timers interrupt it all the time (SIGPROF as sampling
 * profilers do, SIGALRM); the handlers change errno's neighbours and return.
 *
 * Expected: PAIRS allocations and frees, `signals` of more than zero, `errno_changed 0`.
 */
#include <errno.h>
#include <signal.h>
#include <sys/time.h>

#include "tally.h"

static volatile sig_atomic_t signals;

static void handle(int number) {
  (void)number;
  int saved = errno;
  signals++;
  errno = saved;
}

static void arm(int timer, int signal, long microseconds) {
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
  struct itimerval interval = {{0, microseconds}, {0, microseconds}};
  MUST(sigaction(signal, &action, NULL));
  MUST(setitimer(timer, &interval, NULL));
}

int main(int argc, char **argv) {
  uint64_t pairs = argument(argc, argv, 1, 100000), changed = 0;
  start_driver();
  arm(ITIMER_PROF, SIGPROF, 200);
  arm(ITIMER_REAL, SIGALRM, 300);
  for (uint64_t i = 0; i < pairs || signals == 0; i++) {
    errno = EXDEV;
    give(take(512 + i % 512), 512 + i % 512);
    changed += errno != EXDEV;
  }
  say("", "signals", (uint64_t)signals);
  say("", "errno_changed", changed);
  print_tally("", true);
  return changed != 0;
}
