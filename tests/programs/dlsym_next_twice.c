/*
 * A third library wraps functions and finds the next definition by RTLD_NEXT, twice in a row.
 *
 * Expected: both results non-null, equal, and not the wrapper; `foo 11`.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>

int foo(void);
extern void *open_next[2], *foo_next[2];

static int good(void *const next[2], void *wrapper) {
  return next[0] && next[0] == next[1] && next[0] != wrapper;
}

int main(void) {
  int opened = open("/dev/null", O_RDONLY), result = foo();
  int open_good = good(open_next, (void *)open), foo_good = good(foo_next, (void *)foo);
  printf("opened %d\nopen_next %d\nfoo_next %d\nfoo %d\n", opened >= 0, open_good, foo_good,
         result);
  return !(opened >= 0 && open_good && foo_good && result == 11);
}
