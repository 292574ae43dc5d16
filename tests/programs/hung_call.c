/*
 * The third allocation never returns: to be killed. What was printed is what has returned.
 *
 * Run with: FAKE_CUDA_HANG=cuMemAlloc_v2:3
 * Expected: two allocations (1,000 and 2,000 bytes) in the log and cuMemAlloc of 3,000 in flight.
 */
#include <unistd.h>

#include "tally.h"

int main(void) {
  alarm(60); /* should nobody be left to kill it */
  start_driver();
  take(1000);
  take(2000);
  print_tally("", true);
  puts("calling 3000");
  fflush(stdout);
  take(3000);
  return 1;
}
