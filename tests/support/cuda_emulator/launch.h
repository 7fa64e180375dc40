/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the emulator: a block that runs. One block at a time is `run`, and kernels see its indices. */
#ifndef CUDA_EMULATOR_LAUNCH_H
#define CUDA_EMULATOR_LAUNCH_H

#include "control.h"
#include "emulator.h"
#include "fiber.h"

#include <stdbool.h>

enum { MOST_THREADS = 1024 };

/* As kernels see them. */
typedef struct index3 {
    unsigned x, y, z;
} index3;
extern index3 threadIdx, blockIdx, blockDim, gridDim;

typedef enum state { FRESH, READY, WAITING, ENDED } state;

typedef struct thread {
    state state;
    fiber *fiber; /* NULL: not begun, or ended */
    emulator_wait what;
    unsigned mask;
    int lane, line;
    uint64_t value;
} thread;

/* Of a launch whose blocks run one after the other there is one of these, of a resident one as many as blocks. */
struct launch {
    const emulator_kernel *kernel;
    void **params;
    thread *thread;
    int threads, current, ended, began;
    int *ready, readies; /* FRESH or READY */
    uint64_t random;
    bool failed, early;
    char *error;
    size_t size;
    bool resident, left, moved; /* left: to other blocks; moved: has done something else than to poll */
    fakeCudaView *view;         /* NULL: it sees memory as it is */
};
extern struct launch *run;

extern const fakeCudaResident emulator_resident;

uint64_t launch_draw(void);
__attribute__((format(printf, 1, 2))) void launch_fail(const char *format, ...);
/* 0, or -1: more threads than the kernel is made for. */
int launch_size(const emulator_extents *e);
void launch_block(const emulator_extents *e, uint64_t index); /* which block of the launch kernels see */
void launch_become(int thread);
void launch_begin(void); /* all threads are fresh */
void launch_go_on(void); /* until all have ended or the block is left */

#endif
