/*
 * marks: names phases as a program with NVTX does. The loader of NVTX's header is played here: it
 * opens NVTX_INJECTION64_PATH, hands it its table of functions and calls what was put into it.
 *
 * Expected: ranges `outer` (once), `inner` (twice), `across` (once, ended by another thread), marks
 * `plain`, `registered` and `by name`; one allocation within `inner`.
 */
#include <dlfcn.h>
#include <pthread.h>

#include "tally.h"

enum { CORE = 1, CORE2 = 5, SLOTS = 20 };

/* nvtxEventAttributes_t */
struct attributes {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;
  const void *message;
};

static void *core[SLOTS], *core2[SLOTS], **core_entries[SLOTS], **core2_entries[SLOTS];

static int functions(int module, void ****table, unsigned *count) {
  if (module != CORE && module != CORE2) return 0;
  *table = module == CORE ? core_entries : core2_entries;
  *count = SLOTS;
  return 1;
}

static const struct { size_t size; int (*functions)(int, void ****, unsigned *); } callbacks = {
    sizeof callbacks, functions};

static const void *export_table(uint32_t id) { return id == 1 ? &callbacks : NULL; }

static void load_injection(void) {
  for (int i = 1; i < SLOTS; i++) core_entries[i] = &core[i], core2_entries[i] = &core2[i];
  const char *path = getenv("NVTX_INJECTION64_PATH");
  void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
  int (*initialize)(const void *(*)(uint32_t)) = NULL;
  if (library) *(void **)&initialize = dlsym(library, "InitializeInjectionNvtx2");
  if (initialize) initialize(export_table);
}

static int push(const char *text) { return core[9] ? ((int (*)(const char *))core[9])(text) : 0; }
static int pop(void) { return core[11] ? ((int (*)(void))core[11])() : 0; }

static void *end_elsewhere(void *id) {
  if (core[7]) ((void (*)(uint64_t))core[7])((uint64_t)id);
  return NULL;
}

int main(void) {
  load_injection();
  start_driver();
  push("outer");
  push("inner");
  CUdeviceptr block = take(4096);
  pop();
  push("inner");
  pop();
  pop();
  uint64_t across = core[5] ? ((uint64_t (*)(const char *))core[5])("across") : 0;
  pthread_t thread;
  pthread_create(&thread, NULL, end_elsewhere, (void *)across);
  pthread_join(thread, NULL);
  if (core[2]) ((void (*)(const char *))core[2])("plain");
  char name[] = "registered"; /* gone before it is used */
  const void *kept = core2[10] ? ((void *(*)(void *, const char *))core2[10])(NULL, name) : NULL;
  memset(name, 'x', sizeof name - 1);
  struct attributes attributes = {.size = sizeof attributes, .message_type = 3, .message = kept};
  if (core2[1]) ((void (*)(void *, const void *))core2[1])(NULL, &attributes);
  void (*mark)(const char *);
  *(void **)&mark = dlsym(RTLD_DEFAULT, "gmmtrace_mark");
  if (mark) mark("by name");
  give(block, 4096);
  print_tally("", true);
  return 0;
}
