/* A runtime without a driver says so and touches nothing. */
#include "check.h"

int main(void) {
  void *pointer = (void *)77;
  int version = 5;
  EQUAL(cudaMalloc(&pointer, 1), cudaErrorInsufficientDriver);
  CHECK(pointer == (void *)77);
  EQUAL(cudaDriverGetVersion(&version), 0);
  EQUAL(version, 0);
  EQUAL(cudaGetLastError(), cudaErrorInsufficientDriver);
  return failures != 0;
}
