/*
 * A service that answers requests, in two releases: the one built with -DKEEP_ANSWERS keeps every
 * answer on the device, "for the status page". Nothing in it knows that it is watched.
 *
 *   nvcc service.c -o service            on a GPU; simulated.sh builds it for the simulated one
 */
#ifdef SIMULATED
#include "fake_cudart.h"
#else
#include <cuda_runtime.h>
#endif
#include <stdio.h>
#include <stdlib.h>

#define REQUESTS 64
#define WEIGHTS ((size_t)96 << 20)
#define IMAGES ((size_t)6 << 20)
#define ANSWER ((size_t)512 << 10)

static void check(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "service: %s: %s\n", what, cudaGetErrorString(error));
  exit(3);
}

static void handle_request(const void *staging) {
  void *images, *answer;
  check(cudaMalloc(&images, IMAGES), "images");
  check(cudaMalloc(&answer, ANSWER), "answer");
  check(cudaMemcpy(images, staging, IMAGES, cudaMemcpyHostToDevice), "copy in");
#ifndef KEEP_ANSWERS
  check(cudaFree(answer), "answer free");
#endif
  check(cudaFree(images), "images free");
}

int main(void) {
  void *weights, *staging;
  check(cudaMalloc(&weights, WEIGHTS), "weights");
  check(cudaMallocHost(&staging, IMAGES), "staging");
  for (int i = 0; i < REQUESTS; i++) handle_request(staging);
  check(cudaFreeHost(staging), "staging free");
  check(cudaFree(weights), "weights free");
  return 0;
}
