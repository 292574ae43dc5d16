/*
 * Ends by _exit: no handler runs.
 *
 * Expected: exit status 5, everything in the log.
 */
#include <unistd.h>

#include "tally.h"

int main(void) {
  start_driver();
  for (int i = 1; i <= 100; i++) take((size_t)i * 10);
  print_tally("", true);
  _exit(5);
}
