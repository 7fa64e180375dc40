/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: blocks, threads, and what threads wait for. Global state, as a device has. */
#include "launch.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KERNELS = 2048, LANES = 32 };

__attribute__((visibility("default"))) index3 threadIdx, blockIdx, blockDim, gridDim;

struct launch *run;

static const emulator_kernel *kernels[MOST_KERNELS];
static int kernel_count;

/* splitmix64 (Steele, Lea, Flood 2014) */
uint64_t launch_draw(void)
{
    uint64_t z = run->random += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* ---- kernels ---- */

static void body(const fakeCudaLaunch *l, void **params)
{
    char error[240];
    emulator_extents extents = { .early = l->early };
    memcpy(extents.grid, l->grid, sizeof extents.grid);
    memcpy(extents.block, l->block, sizeof extents.block);
    if (emulator_run(emulator_find(l->name), &extents, params, l->seed, error, sizeof error)) {
        fprintf(stderr, "cuda_emulator: %s\n", error);
        abort();
    }
}

void emulator_register(const emulator_kernel *kernel)
{
    if (kernel_count == MOST_KERNELS) {
        fprintf(stderr, "cuda_emulator: no room for kernel %s\n", kernel->name);
        abort();
    }
    kernels[kernel_count++] = kernel;
    CUfunction function = fakeCudaFunction(kernel->name, body, kernel->sizes, kernel->params);
    fakeCudaBegins(function); /* what does not is told of when it comes early */
    fakeCudaLimit(function, kernel->most_threads);
    fakeCudaResides(function, &emulator_resident);
}

void emulator_global(const char *name, const void *at, size_t bytes)
{
    fakeCudaGlobal(name, at, bytes);
}

const emulator_kernel *emulator_find(const char *name)
{
    for (int i = 0; i < kernel_count; i++)
        if (strcmp(kernels[i]->name, name) == 0)
            return kernels[i];
    return NULL;
}

/* ---- errors ---- */

void launch_fail(const char *format, ...)
{
    va_list args;
    if (!run->failed) {
        int used = snprintf(run->error, run->size, "kernel %s, block (%u, %u, %u): ", run->kernel->name, blockIdx.x,
                            blockIdx.y, blockIdx.z);
        size_t at = (size_t)used < run->size ? (size_t)used : run->size;
        va_start(args, format);
        vsnprintf(run->error + at, run->size - at, format, args);
        va_end(args);
    }
    run->failed = true;
}

void emulator_trap(int line)
{
    launch_fail("thread %d stopped at line %d", run->current, line);
    fiber_leave();
    abort();
}

static const char *text_of(emulator_wait what)
{
    return what == EMULATOR_BLOCK ? "__syncthreads" : what == EMULATOR_WARP ? "__syncwarp" : "a warp function";
}

/* Nobody can go on. */
static void fail_stuck(void)
{
    int waiting = 0, other = -1;
    while (run->thread[waiting].state != WAITING)
        waiting++;
    const thread *t = &run->thread[waiting];
    for (int i = 0; i < run->threads && other < 0; i++) {
        const thread *o = &run->thread[i];
        other = o->state == ENDED || o->what != t->what || o->line != t->line || o->mask != t->mask ? i : -1;
    }
    if (other < 0) {
        launch_fail("all threads wait for %s at line %d, by a mask that names lanes that do not come", text_of(t->what),
                    t->line);
    } else if (run->thread[other].state == ENDED) {
        launch_fail("thread %d waits for %s at line %d, which thread %d never comes to: it has ended", waiting,
                    text_of(t->what), t->line, other);
    } else {
        const thread *o = &run->thread[other];
        launch_fail("thread %d waits for %s at line %d, thread %d for %s at line %d", waiting, text_of(t->what),
                    t->line, other, text_of(o->what), o->line);
    }
}

/* ---- meeting ---- */

static void make_ready(int i)
{
    run->thread[i].state = READY;
    run->ready[run->readies++] = i;
}

static bool waits_alike(const thread *a, const thread *b)
{
    return a->state == WAITING && a->what == b->what && a->line == b->line && a->mask == b->mask;
}

static uint64_t combine(emulator_wait what, uint64_t a, uint64_t b, int lane)
{
    uint32_t x = (uint32_t)a, y = (uint32_t)b;
    bool less_s = (int32_t)x < (int32_t)y;
    switch (what) {
    case EMULATOR_BALLOT:
        return a | (uint64_t)(b != 0) << lane;
    case EMULATOR_SUM:
        return x + y;
    case EMULATOR_AND:
        return x & y;
    case EMULATOR_OR:
        return x | y;
    case EMULATOR_XOR:
        return x ^ y;
    case EMULATOR_MIN_S:
        return less_s ? x : y;
    case EMULATOR_MAX_S:
        return less_s ? y : x;
    case EMULATOR_MIN_U:
        return x < y ? x : y;
    case EMULATOR_MAX_U:
        return x < y ? y : x;
    default:
        return 0;
    }
}

static uint64_t identity(emulator_wait what)
{
    switch (what) {
    case EMULATOR_AND:
    case EMULATOR_MIN_U:
        return UINT32_MAX;
    case EMULATOR_MIN_S:
        return INT32_MAX;
    case EMULATOR_MAX_S:
        return (uint32_t)INT32_MIN;
    default:
        return 0;
    }
}

/* The lanes of one mask, once all that exist are there. A lane outside of the mask has no value: anything is read. */
static void meet_lanes(int first, unsigned mask, emulator_wait what)
{
    uint64_t value[LANES], all = identity(what);
    for (int i = 0; i < LANES; i++) {
        bool there = mask >> i & 1 && first + i < run->threads;
        value[i] = there ? run->thread[first + i].value : launch_draw();
        all = there ? combine(what, all, value[i], i) : all;
    }
    for (int i = 0; i < LANES && first + i < run->threads; i++) {
        if (mask >> i & 1) {
            thread *t = &run->thread[first + i];
            t->value = what == EMULATOR_LANE ? value[t->lane & (LANES - 1)] : all;
            make_ready(first + i);
        }
    }
}

static void try_lanes(int i)
{
    const thread *t = &run->thread[i];
    int first = i / LANES * LANES;
    for (int k = 0; k < LANES && first + k < run->threads; k++)
        if (t->mask >> k & 1 && !waits_alike(&run->thread[first + k], t))
            return;
    meet_lanes(first, t->mask, t->what);
}

static void meet_block(void)
{
    uint64_t count = 0;
    for (int i = 0; i < run->threads; i++) {
        if (run->thread[i].what != EMULATOR_BLOCK || !waits_alike(&run->thread[i], &run->thread[0])) {
            fail_stuck();
            return;
        }
        count += run->thread[i].value != 0;
    }
    for (int i = 0; i < run->threads; i++) {
        run->thread[i].value = count;
        make_ready(i);
    }
}

/* Memory is closed until the first thread of a block has waited. */
void emulator_began(void)
{
    if (run->early && run->began == 0)
        fakeCudaBegin(1);
    run->began++;
}

int emulator_lane(void)
{
    return run->current % LANES;
}

/* ---- one at a time ---- */

static int take(void)
{
    int at = (int)(launch_draw() % (uint64_t)run->readies), i = run->ready[at];
    run->ready[at] = run->ready[--run->readies];
    return i;
}

void launch_become(int i)
{
    unsigned n = (unsigned)i;
    run->current = i;
    threadIdx = (index3){ n % blockDim.x, n / blockDim.x % blockDim.y, n / blockDim.x / blockDim.y };
}

uint64_t emulator_meet(emulator_wait what, unsigned mask, uint64_t value, int lane, int line)
{
    int self = run->current;
    thread *t = &run->thread[self];
    *t = (thread){ WAITING, fiber_current(), what, mask, lane, line, value };
    if (what != EMULATOR_BLOCK && !(mask >> self % LANES & 1))
        launch_fail("thread %d is not in the mask that it gives %s at line %d", self, text_of(what), line);
    else if (what != EMULATOR_BLOCK)
        try_lanes(self);
    fiber_leave();
    launch_become(self);
    return t->value;
}

/* On a fiber: threads from their beginning, one after the other, until one waits or another has to go on. */
static void run_threads(void)
{
    do {
        run->kernel->call(run->params);
        run->thread[run->current].state = ENDED;
        run->ended++;
        if (run->readies == 0)
            return;
        int next = take();
        if (run->thread[next].state != FRESH) {
            run->ready[run->readies++] = next;
            return;
        }
        launch_become(next);
    } while (true);
}

void launch_begin(void)
{
    run->readies = run->ended = run->began = 0;
    for (int i = 0; i < run->threads; i++) {
        run->thread[i] = (thread){ .state = FRESH };
        run->ready[run->readies++] = i;
    }
}

void launch_go_on(void)
{
    run->left = false;
    while (run->ended < run->threads && !run->failed && !run->left) {
        if (run->readies == 0) {
            meet_block();
            continue;
        }
        int next = take();
        launch_become(next);
        if (run->thread[next].state == FRESH)
            fiber_begin(run_threads, run);
        else
            fiber_resume(run->thread[next].fiber);
    }
}

static void run_block(void)
{
    if (run->early)
        fakeCudaBegin(0);
    memset(run->kernel->shared, launch_draw() % 2 ? 0xFF : 0x5A,
           (size_t)(run->kernel->shared_last - run->kernel->shared));
    launch_begin();
    launch_go_on();
    if (run->early && run->began != run->threads)
        launch_fail("it was launched early, and %d of %d threads waited for the kernel ahead of it", run->began,
                    run->threads);
}

/* ---- launches ---- */

int launch_size(const emulator_extents *e)
{
    uint64_t threads = (uint64_t)e->block[0] * e->block[1] * e->block[2];
    uint64_t most = run->kernel->most_threads ? (uint64_t)run->kernel->most_threads : MOST_THREADS;
    if (threads < 1 || threads > most) {
        launch_fail("%llu threads in a block; it is made for %llu", (unsigned long long)threads,
                    (unsigned long long)most);
        return -1;
    }
    run->threads = (int)threads;
    return 0;
}

void launch_block(const emulator_extents *e, uint64_t index)
{
    const unsigned *g = e->grid, *b = e->block;
    blockDim = (index3){ b[0], b[1], b[2] };
    gridDim = (index3){ g[0], g[1], g[2] };
    blockIdx = (index3){ (unsigned)(index % g[0]), (unsigned)(index / g[0] % g[1]), (unsigned)(index / g[0] / g[1]) };
}

static uint64_t divisor(uint64_t a, uint64_t b)
{
    return b ? divisor(b, a % b) : a;
}

int emulator_run(const emulator_kernel *kernel, const emulator_extents *e, void **params, uint64_t seed, char *error,
                 size_t size)
{
    static thread threads[MOST_THREADS];
    static int ready[MOST_THREADS];
    static struct launch plain;
    uint64_t blocks = (uint64_t)e->grid[0] * e->grid[1] * e->grid[2], stride = 1;
    plain = (struct launch){ .kernel = kernel, .params = params, .error = error, .size = size, .early = e->early };
    plain.thread = threads;
    plain.ready = ready;
    plain.random = seed;
    run = &plain;
    if (launch_size(e))
        return -1;
    do {
        stride = launch_draw() % blocks + 1;
    } while (divisor(stride, blocks) != 1);
    for (uint64_t i = 0, at = launch_draw() % blocks; i < blocks && !run->failed; i++, at = (at + stride) % blocks) {
        launch_block(e, at);
        run_block();
    }
    fiber_abandon(run);
    return run->failed ? -1 : 0;
}

/* A condition of the fake driver is a word, and its handle the address of that. */
__attribute__((visibility("default"))) void cudaGraphSetConditional(unsigned long long handle, unsigned value);
void cudaGraphSetConditional(unsigned long long handle, unsigned value)
{
    *(unsigned *)(uintptr_t)handle = value;
}
