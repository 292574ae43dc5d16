/*
 * Failures, delays and hangs on demand, read once from the environment:
 *
 *   FAKE_CUDA_FAIL="cuMemAlloc_v2:3=2,cuMemFree_v2:*=999"   nth call (or every call) = code
 *   FAKE_CUDA_DELAY="cuMemAlloc_v2=45000"                   busy-wait, in nanoseconds
 *   FAKE_CUDA_HANG="cuMemAlloc_v2:3"                        that call never returns
 *
 * A symbol without a rule costs one load and one branch that is never taken.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

enum deed { FAIL, DELAY, HANG };

struct rule {
  enum symbol_id id;
  enum deed deed;
  unsigned long call; /* 0: every call */
  long value;         /* the code, or nanoseconds */
};

#define MAX_RULES 64

bool script_armed[SYMBOLS];
static unsigned long calls[SYMBOLS];
static struct rule rules[MAX_RULES];
static int rule_count;

static const char *const names[SYMBOLS] = {
#define ROW(base, version, stream, symbol) #symbol,
#include "table.inc"
#undef ROW
};

static int find(const char *name, size_t length) {
  for (int id = 0; id < SYMBOLS; id++)
    if (strlen(names[id]) == length && memcmp(names[id], name, length) == 0) return id;
  return -1;
}

static void complain(const char *text, size_t length) {
  fprintf(stderr, "fake-cuda: rule not understood: %.*s\n", (int)length, text);
}

/* One rule: SYMBOL[:CALL][=VALUE]. */
static void parse(const char *text, size_t length, enum deed deed) {
  size_t name = strcspn(text, ":=,");
  int id = find(text, name);
  if (id < 0 || rule_count == MAX_RULES) {
    complain(text, length);
    return;
  }
  struct rule rule = {(enum symbol_id)id, deed, 0, 0};
  const char *rest = text + name;
  if (*rest == ':') {
    rule.call = strtoul(rest + 1, NULL, 10); /* `*` reads as 0 */
    rest += 1 + strcspn(rest + 1, "=,");
  }
  if (*rest == '=') rule.value = strtol(rest + 1, NULL, 10);
  rules[rule_count++] = rule;
  script_armed[id] = true;
}

static void read_rules(const char *variable, enum deed deed) {
  const char *text = getenv(variable);
  while (text && *text) {
    size_t length = strcspn(text, ",");
    if (length) parse(text, length, deed);
    text += length + (text[length] == ',');
  }
}

void script_init(void) {
  read_rules("FAKE_CUDA_FAIL", FAIL);
  read_rules("FAKE_CUDA_DELAY", DELAY);
  read_rules("FAKE_CUDA_HANG", HANG);
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void wait_busily(int64_t nanoseconds) {
  int64_t end = now() + nanoseconds;
  while (now() < end) {
  }
}

CUresult script_step(enum symbol_id id) {
  unsigned long call = __atomic_add_fetch(&calls[id], 1, __ATOMIC_RELAXED);
  CUresult result = CUDA_SUCCESS;
  for (int i = 0; i < rule_count; i++) {
    const struct rule *rule = &rules[i];
    if (rule->id != id || (rule->call && rule->call != call)) continue;
    if (rule->deed == FAIL) result = (CUresult)rule->value;
    if (rule->deed == DELAY) wait_busily(rule->value);
    while (rule->deed == HANG) pause();
  }
  return result;
}
