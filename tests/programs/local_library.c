/* The library of dlsym_default_local: asks the default scope for a name of its own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

int local_only(void);
int local_only(void) { return 5; }

/* The scope of an RTLD_LOCAL library includes itself. */
int find_own(void);
int find_own(void) { return dlsym(RTLD_DEFAULT, "local_only") == (void *)local_only; }

/* The same for a name of the runtime that only this library's dependencies have. */
int find_runtime(void);
int find_runtime(void) { return dlsym(RTLD_DEFAULT, "cudaMalloc") != NULL; }
