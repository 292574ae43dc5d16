/*
 * Allocations from where a stack cannot be followed, or only in part, each with a size of its own:
 *
 *   1 MiB  code without tables, written at run time      5 MiB  a thread with the smallest stack
 *   2 MiB  a signal handler on its own stack             6, 9   a thread that forks, and its child
 *   3 MiB  a coroutine                                   7, 8   two libraries, one after the other
 *   4 MiB  a frame pointer that points nowhere                  in the same place
 *
 * Prints `survived`, the addresses that the C library tells for the last two as
 * `stack BYTES ADDRESS…`, and whether they lay in the same place.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "fake_cuda.h"

/* Keeps a call from being a jump. */
#define AFTER() __asm__ volatile("" ::: "memory")

#define MIB (1u << 20)

static CUcontext context;

__attribute__((noinline)) static void allocate(uint64_t mib) {
  CUdeviceptr pointer;
  if (cuMemAlloc_v2(&pointer, mib * MIB)) exit(1);
  if (cuMemFree_v2(pointer)) exit(1);
}

static void generated_code(void) {
  /* push rbp; xor ebp, ebp; sub rsp, 64; call rsi; add rsp, 64; pop rbp; ret */
  static const uint8_t code[] = {0x55, 0x31, 0xed, 0x48, 0x83, 0xec, 0x40, 0xff, 0xd6,
                                 0x48, 0x83, 0xc4, 0x40, 0x5d, 0xc3};
  void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                    -1, 0);
  if (page == MAP_FAILED) exit(1);
  memcpy(page, code, sizeof code);
  ((void (*)(uint64_t, void (*)(uint64_t)))page)(1, allocate);
}

static void handler(int number) {
  (void)number;
  allocate(2);
}

static void on_its_own_stack(void) {
  stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
  if (sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL)) exit(1);
  raise(SIGUSR1);
}

static ucontext_t outside, inside;

static void coroutine(void) { allocate(3); }

static void in_a_coroutine(void) {
  /* Given back at the end, so that what was seen of it is gone. */
  size_t bytes = 65536;
  for (int i = 0; i < 3; i++) {
    void *stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = bytes;
    inside.uc_link = &outside;
    makecontext(&inside, coroutine, 0);
    swapcontext(&outside, &inside);
    munmap(stack, bytes);
  }
}

void allocate_4(void) {
  allocate(4);
  AFTER();
}

/* Its table says that its frame is found by the frame pointer, which is not there. */
void caller_by_pointer(void);
__asm__(".text\n"
        "caller_by_pointer:\n\t"
        ".cfi_startproc\n\t"
        "push %rbp\n\t"
        ".cfi_def_cfa_offset 16\n\t.cfi_offset %rbp, -16\n\t.cfi_def_cfa_register %rbp\n\t"
        "movabs $0x1234567890, %rbp\n\t"
        "call allocate_4\n\t"
        "pop %rbp\n\t"
        "ret\n\t"
        ".cfi_endproc\n");

static void *small(void *unused) {
  (void)unused;
  if (cuCtxSetCurrent(context)) exit(1);
  allocate(5);
  return NULL;
}

static void *forks(void *unused) {
  (void)unused;
  if (cuCtxSetCurrent(context)) exit(1);
  allocate(6);
  pid_t child = fork();
  if (child == 0) {
    allocate(9);
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  if (status) exit(1);
  return NULL;
}

static void in_a_thread(void *(*run)(void *), size_t stack) {
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack);
  if (pthread_create(&thread, &attributes, run, NULL)) exit(1);
  pthread_join(thread, NULL);
}

static void *through(const char *folder, const char *name, uint64_t bytes) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) exit(1);
  void (*call)(uint64_t) = (void (*)(uint64_t))dlsym(library, "call_through");
  call(bytes);
  dlclose(library);
  return (void *)call;
}

int main(int count, char **arguments) {
  if (count != 2 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0)) return 1;
  if (cuCtxSetCurrent(context)) return 1;
  generated_code();
  on_its_own_stack();
  in_a_coroutine();
  caller_by_pointer();
  in_a_thread(small, (size_t)PTHREAD_STACK_MIN + 16384);
  in_a_thread(forks, 1 << 20);
  int same = 0;
  for (int i = 0; i < 8; i++) {
    void *first = through(arguments[1], "libthrough_small.so", 7ull * MIB + (uint64_t)i);
    void *second = through(arguments[1], "libthrough_large.so", 8ull * MIB + (uint64_t)i);
    same += first == second;
  }
  printf("same_place %d\nsurvived\n", same);
  return 0;
}
