/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Kernels of CUDA on the CPU: their source is compiled as C++ (device.h), their launches are carried out here.
 *
 * The blocks of a launch run one after the other, the threads of a block one at a time until each waits or ends, both
 * in an order that a seed decides. Blocks of a cooperative launch of the fake driver are all under way: they take
 * turns, also with other such launches and all other work, where they pause, acquire or release. So a missing barrier,
 * or blocks that count on each other, show as wrong results for some seed. What this cannot show: two threads that
 * change a word at once without an atomic. Threads are fibers, made only for those that wait. One launch at a time, as
 * the lock of the fake driver sees to.
 *
 * Shared memory holds anything when a block begins. Reported as errors: more threads than __launch_bounds__ allows;
 * __syncthreads that some threads of the block do not come to, because they ended or wait
 * elsewhere; a warp function whose mask names lanes that do not come to it, or not the caller; of a launch that came
 * early, threads that never wait for the kernel ahead, and memory that is touched before.
 */
#ifndef CUDA_EMULATOR_H
#define CUDA_EMULATOR_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* A kernel: calls the function with the parameters that `params` point to. */
typedef struct emulator_kernel {
    const char *name;
    void (*call)(void **params);
    const size_t *sizes; /* bytes of each parameter */
    int params;
    int most_threads;           /* of a block, by __launch_bounds__; 0: as many as a device has */
    char *shared, *shared_last; /* what static memory its library has: shared memory of all its kernels */
    char *shared_kept;          /* the end of what a block finds again when others ran in between */
} emulator_kernel;

typedef struct emulator_extents {
    unsigned grid[3], block[3]; /* x, y, z */
    int early;                  /* launched before the kernel ahead of it ended */
} emulator_extents;

/* Kernels are kept until their library is closed, which is never; the fake driver learns of them. */
void emulator_register(const emulator_kernel *kernel);
const emulator_kernel *emulator_find(const char *name);

/* A constant that cuModuleGetGlobal finds: each module has a copy. */
void emulator_global(const char *name, const void *at, size_t bytes);

/* 0, or -1 with a line in `error`. */
int emulator_run(const emulator_kernel *kernel, const emulator_extents *extents, void **params, uint64_t seed,
                 char *error, size_t size);

/* ---- what device.h is made of; `line` is of the source ---- */

typedef enum emulator_wait {
    EMULATOR_BLOCK,  /* __syncthreads; the result counts the threads whose value is not 0 */
    EMULATOR_WARP,   /* __syncwarp */
    EMULATOR_LANE,   /* the value of lane `lane` */
    EMULATOR_BALLOT, /* a bit for each lane whose value is not 0 */
    EMULATOR_SUM,    /* of 32 bits, as are the following */
    EMULATOR_AND,
    EMULATOR_OR,
    EMULATOR_XOR,
    EMULATOR_MIN_S,
    EMULATOR_MAX_S,
    EMULATOR_MIN_U,
    EMULATOR_MAX_U
} emulator_wait;

uint64_t emulator_meet(emulator_wait what, unsigned mask, uint64_t value, int lane, int line);
int emulator_lane(void);
void emulator_began(void); /* the thread has waited for the kernel ahead of this one (kernels/begin.cuh) */
__attribute__((noreturn)) void emulator_trap(int line);

/* ---- words that blocks wait for ---- */

/* In loops that wait for a word: others go on. Of a cooperative launch only. */
void emulator_pause(void);
/* With FAKE_CUDA_WEAK a block of a cooperative launch keeps stores to itself, and may see old values, until it
 * releases and acquires; without it, all is seen at once. Relaxed accesses are seen at once, and nothing else is. */
uint64_t emulator_acquire(const uint64_t *at);
void emulator_release(uint64_t *at, uint64_t value);
uint64_t emulator_relaxed_load(const uint64_t *at);
void emulator_relaxed_store(uint64_t *at, uint64_t value);
void emulator_fence(void); /* releases and acquires */
/* On both sides of an atomic function: it sees and changes what all see. */
void emulator_before(const void *at, size_t bytes);
void emulator_after(const void *at, size_t bytes);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
