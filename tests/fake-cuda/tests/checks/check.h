/* For the checks: one line on stderr and a failure at the end for each thing that is not so. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cudart.h"

static int failures;

#define CHECK(condition)                                                \
  do {                                                                  \
    if (condition) break;                                               \
    fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);     \
    failures++;                                                         \
  } while (0)

#define EQUAL(left, right)                                                                  \
  do {                                                                                      \
    unsigned long long a_ = (unsigned long long)(left), b_ = (unsigned long long)(right);   \
    if (a_ == b_) break;                                                                    \
    fprintf(stderr, "%s:%d: %s is %llu (0x%llx), %s is %llu\n", __FILE__, __LINE__, #left,  \
            a_, a_, #right, b_);                                                            \
    failures++;                                                                             \
  } while (0)

#define MIB ((size_t)1 << 20)

static inline size_t used(void) {
  size_t available = 0, total = 0;
  EQUAL(cuMemGetInfo_v2(&available, &total), 0);
  return total - available;
}

static inline CUcontext start(void) {
  CUcontext context;
  EQUAL(cuInit(0), 0);
  EQUAL(cuCtxCreate_v2(&context, 0, 0), 0);
  return context;
}
