/* FAKE_CUDA_FAST: distinct live addresses, the last freed one first, null and zero as always. */
#include <pthread.h>

#include "check.h"

#define THREADS 4
#define ROUNDS 100000

static unsigned char owned[1 << 16];

/* Two owners of one address at the same time would collide in `owned`. */
static void *churn(void *unused) {
  for (int i = 0; i < ROUNDS; i++) {
    CUdeviceptr pointer;
    if (cuMemAlloc_v2(&pointer, 512)) abort();
    unsigned slot = (unsigned)(pointer >> 9) % sizeof owned;
    if (__atomic_fetch_add(&owned[slot], 1, __ATOMIC_SEQ_CST)) abort();
    __atomic_fetch_sub(&owned[slot], 1, __ATOMIC_SEQ_CST);
    if (cuMemFree_v2(pointer)) abort();
  }
  return unused;
}

int main(void) {
  CUdeviceptr a, b, c;
  EQUAL(cuInit(0), 0);
  EQUAL(cuMemAlloc_v2(&a, 3 * MIB), 0);
  EQUAL(cuMemAlloc_v2(&b, 4 * MIB), 0);
  CHECK((a > b ? a - b : b - a) >= 4 * MIB);
  EQUAL(cuMemFree_v2(a), 0);
  EQUAL(cuMemAlloc_v2(&c, 4 * MIB), 0);
  EQUAL(c, a);
  EQUAL(cuMemAlloc_v2(&c, 0), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemFree_v2(0), 0);
  EQUAL(cuMemFree_v2(5), CUDA_ERROR_INVALID_VALUE);
  EQUAL(cuMemcpyHtoDAsync_v2(b, &a, 8, NULL), 0);
  pthread_t threads[THREADS];
  if (strcmp(getenv("FAKE_CUDA_FAST"), "local") == 0) return failures != 0;
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, churn, NULL);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  return failures != 0;
}
