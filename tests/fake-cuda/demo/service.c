/*
 * A small inference service, so that a trace has a story to tell without a GPU.
 *
 * It loads weights, then serves requests: pinned staging buffers, copies in and out, activations
 * of varying size that are freed again. Its response cache keeps one buffer of CACHE_BYTES for
 * every request and never drops one: that is the leak. At the end it asks for more than the
 * device has, as a service does shortly before somebody is called.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fake_cudart.h"

#define LAYERS 24
#define REQUESTS 160
#define MAX_BATCH 32
#define CACHE_BYTES ((size_t)768 << 10)
#define IMAGE_BYTES ((size_t)3 * 224 * 224 * 4)
#define OUTPUT_BYTES ((size_t)1000 * 4)

static struct {
  unsigned long requests, items, cached, refused;
  size_t weight_bytes;
} served;

static void *layers[LAYERS];
static void *cache[REQUESTS];

static void check(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "service: %s: %s\n", what, cudaGetErrorString(error));
  exit(1);
}

static void rest(long microseconds) {
  struct timespec time = {0, microseconds * 1000};
  nanosleep(&time, NULL);
}

/* The same sequence in every run. */
static unsigned next(void) {
  static unsigned state = 20240229;
  state = state * 1664525u + 1013904223u;
  return state >> 16;
}

static __attribute__((noinline)) void load_weights(void *staging, size_t room) {
  for (int i = 0; i < LAYERS; i++) {
    size_t bytes = ((size_t)2 + (size_t)(i % 6) * 3) << 20;
    check(cudaMalloc(&layers[i], bytes), "weights");
    for (size_t done = 0; done < bytes; done += room) {
      size_t part = bytes - done < room ? bytes - done : room;
      check(cudaMemcpy((char *)layers[i] + done, staging, part, cudaMemcpyHostToDevice),
            "weights in");
    }
    served.weight_bytes += bytes;
    rest(4000);
  }
}

static __attribute__((noinline)) void run_layers(size_t batch, cudaStream_t stream) {
  void *activation, *scratch;
  for (int stage = 0; stage < 4; stage++) {
    size_t bytes = batch * ((size_t)401408 >> stage) * 4;
    check(cudaMallocAsync(&activation, bytes, stream), "activation");
    check(cudaMalloc(&scratch, bytes / 3 + 512), "scratch");
    check(cudaMemsetAsync(scratch, 0, bytes / 3 + 512, stream), "clear");
    check(cudaFree(scratch), "scratch free");
    check(cudaFreeAsync(activation, stream), "activation free");
  }
}

/* Keeps an answer for the next time that it is asked, which never comes. */
static __attribute__((noinline)) void remember_answer(const void *output, cudaStream_t stream) {
  void **slot = &cache[served.cached];
  check(cudaMalloc(slot, CACHE_BYTES), "cache");
  check(cudaMemcpyAsync(*slot, output, OUTPUT_BYTES, cudaMemcpyDeviceToDevice, stream), "keep");
  served.cached++;
}

static __attribute__((noinline)) void handle_request(char *staging, cudaStream_t stream) {
  size_t batch = 1 + next() % MAX_BATCH;
  void *input, *output;
  check(cudaMalloc(&input, batch * IMAGE_BYTES), "input");
  check(cudaMalloc(&output, batch * OUTPUT_BYTES), "output");
  check(cudaMemcpyAsync(input, staging, batch * IMAGE_BYTES, cudaMemcpyHostToDevice, stream),
        "copy in");
  run_layers(batch, stream);
  check(cudaMemcpyAsync(staging, output, batch * OUTPUT_BYTES, cudaMemcpyDeviceToHost, stream),
        "copy out");
  check(cudaStreamSynchronize(stream), "wait");
  remember_answer(output, stream);
  check(cudaFree(output), "output free");
  check(cudaFree(input), "input free");
  served.requests++;
  served.items += batch;
  rest(5000);
}

/* A request that is too large for what is left. */
static __attribute__((noinline)) void ask_for_too_much(void) {
  size_t available, total;
  check(cudaMemGetInfo(&available, &total), "memory information");
  for (int i = 1; i <= 3; i++) {
    void *buffer;
    if (cudaMalloc(&buffer, available + ((size_t)i << 30)) == cudaErrorMemoryAllocation) {
      served.refused++;
      cudaGetLastError();
    } else {
      cudaFree(buffer);
    }
    rest(10000);
  }
}

int main(void) {
  void *staging;
  cudaStream_t stream;
  size_t room = MAX_BATCH * IMAGE_BYTES;
  check(cudaSetDevice(0), "no device");
  check(cudaStreamCreate(&stream), "stream");
  check(cudaMallocHost(&staging, room), "staging");
  load_weights(staging, room);
  for (int i = 0; i < REQUESTS; i++) handle_request(staging, stream);
  ask_for_too_much();
  for (int i = 0; i < LAYERS; i++) check(cudaFree(layers[i]), "weights free");
  check(cudaFreeHost(staging), "staging free");
  check(cudaStreamDestroy(stream), "stream end");
  printf("service: %lu requests with %lu images, %zu MiB of weights, %lu answers kept "
         "(%zu MiB never freed), %lu allocations refused\n",
         served.requests, served.items, served.weight_bytes >> 20, served.cached,
         served.cached * CACHE_BYTES >> 20, served.refused);
  return 0;
}
