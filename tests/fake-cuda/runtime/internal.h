/* Between the files of one runtime. Each built copy has a state of its own. */
#ifndef FAKE_CUDART_INTERNAL_H
#define FAKE_CUDART_INTERNAL_H

#include "fake_cudart.h"

#pragma GCC visibility push(hidden)

struct driver {
#define ONE(field, name, version, params) CUresult(*field) params;
#define TWO(field, name, version, thread_version, params) CUresult(*field[2]) params;
#include "lookups.inc"
#undef ONE
#undef TWO
  CUresult (*get)(const char *, void **, int, uint64_t, int *);
};

extern struct driver cudart_driver;

/* Loads the driver and makes the device's primary context current, when that was not done. */
cudaError_t cudart_start(void);
/* Remembers an error for cudaGetLastError and counts the call. */
cudaError_t cudart_end(cudaError_t error);
/* Where memory of a device lives, for copies between devices. */
cudaError_t cudart_primary(int device, CUcontext *context);

/* The body of a runtime call: start, one expression, end. */
#define RUN(expression)                       \
  do {                                        \
    cudaError_t error = cudart_start();       \
    if (!error) error = (expression);         \
    return cudart_end(error);                 \
  } while (0)

/* Stream variants: index into the pairs of the driver's table. */
enum { LEGACY, PER_THREAD };

#pragma GCC visibility pop

#endif
