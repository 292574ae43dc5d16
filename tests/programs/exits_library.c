/* The library of exit_in_constructor: it uses the driver and ends the process while it loads. */
#include "tally.h"

__attribute__((constructor)) static void load(void) {
  start_driver();
  take(1000);
  give(take(2000), 2000);
  print_tally("", true);
  exit(7);
}
