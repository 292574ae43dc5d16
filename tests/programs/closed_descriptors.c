/*
 * closed_descriptors [EVENTS]: a daemon's start: it closes every descriptor from 3 on, opens
 * files of its own into those numbers, and goes on with enough calls for a log to grow.
 *
 * Expected: `files_intact 1` (nobody wrote into or closed the program's files) and every call
 * before and after in the log.
 */
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tally.h"

#define FILES 32
#define TEXT "this belongs to the program\n"

static int files[FILES];

static void close_all(void) {
  long kernel = -1;
#ifdef SYS_close_range
  kernel = syscall(SYS_close_range, 3u, ~0u, 0u);
#endif
  for (int i = 3; kernel && i < 1024; i++) close(i);
}

static void open_own(void) {
  for (int i = 0; i < FILES; i++) {
    char name[] = "/tmp/closed-descriptors-XXXXXX";
    files[i] = mkstemp(name);
    unlink(name);
    if (files[i] < 3 || write(files[i], TEXT, sizeof TEXT) != sizeof TEXT) exit(9);
  }
}

static bool intact(void) {
  char text[4096];
  for (int i = 0; i < FILES; i++) {
    ssize_t length = pread(files[i], text, sizeof text, 0);
    if (length != sizeof TEXT || memcmp(text, TEXT, sizeof TEXT)) return false;
    if (lseek(files[i], 0, SEEK_END) != sizeof TEXT) return false;
  }
  return true;
}

int main(int argc, char **argv) {
  uint64_t events = argument(argc, argv, 1, 20000);
  start_driver();
  for (int i = 0; i < 100; i++) take(100);
  close_all();
  open_own();
  for (uint64_t i = 0; i < events / 2; i++) give(take(1000 + i % 1000), 1000 + i % 1000);
  bool good = intact();
  say("", "files_intact", good);
  print_tally("", true);
  return !good;
}
