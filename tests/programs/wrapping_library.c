/* A library of dlsym_next_twice: wraps `open` and `foo` and looks the next one up, twice. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>

typedef int (*open_t)(const char *, int, ...);
typedef int (*foo_t)(void);

void *open_next[2], *foo_next[2];

int open(const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  int mode = va_arg(list, int);
  va_end(list);
  for (int i = 0; i < 2; i++) open_next[i] = dlsym(RTLD_NEXT, "open");
  return open_next[1] ? ((open_t)open_next[1])(path, flags, mode) : -2;
}

int foo(void) {
  for (int i = 0; i < 2; i++) foo_next[i] = dlsym(RTLD_NEXT, "foo");
  return foo_next[1] ? 1 + ((foo_t)foo_next[1])() : -1;
}
