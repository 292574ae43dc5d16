/*
 * Touches nothing of CUDA, but has threads, looks names up, and opens and closes a library.
 *
 * Expected: no log, no thread (`threads 1`), and `files` as without a preload.
 */
#include <dirent.h>
#include <dlfcn.h>

#include "tally.h"

static int entries(const char *path) {
  int count = 0;
  DIR *folder = opendir(path);
  while (folder && readdir(folder)) count++;
  if (folder) closedir(folder);
  return count - 2;
}

int main(void) {
  void *library = dlopen("libm.so.6", RTLD_NOW);
  int found = dlsym(library, "cos") != NULL;
  found += dlsym(RTLD_DEFAULT, "malloc") != NULL;
  dlclose(library);
  int files = entries("/proc/self/fd") - 1; /* without the folder itself */
  printf("found %d\nthreads %d\nfiles %d\n", found, entries("/proc/self/task"), files);
  return found != 2;
}
