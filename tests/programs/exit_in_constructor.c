/*
 * Opens a library whose constructor allocates and then calls exit(7), with the loader's lock held.
 *
 * Expected: exit status 7, and the log has the constructor's two allocations and one free.
 */
#include <dlfcn.h>

#include "tally.h"

int main(void) {
  dlopen(beside("libexits.so"), RTLD_NOW);
  return 1;
}
