/* SPDX-License-Identifier: Apache-2.0 */
/* Resident launches: all blocks are under way, and take turns where they wait for each other. */
#include "launch.h"

#include "kernels/combine/meeting.h"
#include "kernels/gate/gate.h"
#include "kernels/push/push.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct resident_block {
    struct launch launch;
    uint64_t index;
    char *shared; /* what shared memory holds while another block runs */
    thread thread[MOST_THREADS];
    int ready[MOST_THREADS];
} resident_block;

typedef struct resident {
    emulator_extents extents;
    uint64_t random;
    char error[240];
    size_t alive;
    resident_block *block[]; /* those that are alive */
} resident;

/* Word by word, and not by the C library: AddressSanitizer keeps bytes between variables that it would guard. */
__attribute__((no_sanitize("address"))) static void move_bytes(char *to, const char *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((volatile char *)to)[i] = ((const volatile char *)from)[i];
}

static size_t shared_bytes(const emulator_kernel *kernel)
{
    return (size_t)(kernel->shared_kept - kernel->shared);
}

/* Shared memory holds anything at first, but what AddressSanitizer keeps there stays. */
static resident_block *new_block(resident *r, const emulator_kernel *kernel, void **params, uint64_t index)
{
    resident_block *b = calloc(1, sizeof *b);
    char *shared = malloc(shared_bytes(kernel) + 1);
    if (!b || !shared) {
        fprintf(stderr, "cuda_emulator: no memory for a block of %s\n", kernel->name);
        abort();
    }
    b->launch = (struct launch){ .kernel = kernel, .params = params, .thread = b->thread, .ready = b->ready };
    b->launch.random = r->random += 0x9E3779B97F4A7C15u;
    b->launch.error = r->error;
    b->launch.size = sizeof r->error;
    b->launch.resident = true;
    b->launch.view = fakeCudaViewNew();
    b->index = index;
    b->shared = shared;
    run = &b->launch;
    move_bytes(shared, kernel->shared, shared_bytes(kernel));
    memset(shared, launch_draw() % 2 ? 0xFF : 0x5A, (size_t)(kernel->shared_last - kernel->shared));
    return b;
}

static void free_block(resident_block *b)
{
    fiber_abandon(&b->launch);
    fakeCudaViewFree(b->launch.view);
    free(b->shared);
    free(b);
}

static void check(const resident *r, const struct launch *l)
{
    if (l->failed) {
        fprintf(stderr, "cuda_emulator: %s\n", r->error);
        abort();
    }
}

static void *begin(const fakeCudaLaunch *l, void **params)
{
    const emulator_kernel *kernel = emulator_find(l->name);
    size_t blocks = (size_t)l->grid[0] * l->grid[1] * l->grid[2];
    resident *r = calloc(1, sizeof *r + blocks * sizeof *r->block);
    memcpy(r->extents.grid, l->grid, sizeof r->extents.grid);
    memcpy(r->extents.block, l->block, sizeof r->extents.block);
    r->random = l->seed;
    for (; r->alive < blocks; r->alive++) {
        r->block[r->alive] = new_block(r, kernel, params, r->alive);
        launch_block(&r->extents, r->alive);
        launch_size(&r->extents);
        check(r, run);
        launch_begin();
    }
    return r;
}

/* The block is what kernels see, shared memory is its own, until it leaves. */
static void run_slice(const resident *r, resident_block *b)
{
    const emulator_kernel *kernel = b->launch.kernel;
    run = &b->launch;
    run->moved = false;
    launch_block(&r->extents, b->index);
    move_bytes(kernel->shared, b->shared, shared_bytes(kernel));
    fakeCudaViewEnter(run->view);
    launch_go_on();
    fakeCudaViewLeave(run->view, run->ended == run->threads);
    move_bytes(b->shared, kernel->shared, shared_bytes(kernel));
    check(r, run);
}

static int go_on(void *begun)
{
    resident *r = begun;
    uint64_t random = r->random = r->random * 0x5851F42D4C957F2Du + 0x14057B7EF767814Fu;
    size_t i = (size_t)(random >> 33) % r->alive;
    resident_block *b = r->block[i];
    run_slice(r, b);
    bool moved = b->launch.moved;
    if (b->launch.ended == b->launch.threads) {
        free_block(b);
        r->block[i] = r->block[--r->alive];
        moved = true;
    }
    return r->alive == 0 ? FAKE_ENDED : moved ? FAKE_MOVED : FAKE_POLLED;
}

static void end(void *begun)
{
    resident *r = begun;
    while (r->alive)
        free_block(r->block[--r->alive]);
    free(r);
}

/* Kernels of collectives do if they are given peers; so do gates of graphs. A copy tells others before it waits. */
static int waits(const char *name, void **params)
{
    if (strncmp(name, "push_", 5) == 0)
        return ((const gy_push *)params[1])->peers > 0;
    if (strcmp(name, "gate_copy") == 0)
        return ((const gy_gate_copy *)params[0])->waits > 0 ? FAKE_WAITS : FAKE_TELLS;
    return strncmp(name, "gate_wait", 9) == 0 ||
           (strncmp(name, "combine_", 8) == 0 && ((const gy_combine_meeting *)params[1])->peers > 0);
}

const fakeCudaResident emulator_resident = { .begin = begin, .go_on = go_on, .end = end, .waits = waits };

/* ---- what device code calls ---- */

/* The thread goes on later, and perhaps other blocks before. */
static void give_way(bool leave)
{
    int self = run->current;
    run->thread[self].state = READY;
    run->thread[self].fiber = fiber_current();
    run->ready[run->readies++] = self;
    run->left = leave;
    fiber_leave();
    launch_become(self);
}

void emulator_pause(void)
{
    if (!run->resident) {
        launch_fail("thread %d waits for other blocks, and the launch does not say so", run->current);
        fiber_leave();
        abort();
    }
    give_way(launch_draw() % 4 != 0);
}

/* Other blocks come in between now and then. */
static void passed(void)
{
    if (run->resident && launch_draw() % 8 == 0)
        give_way(true);
}

static uint64_t load(const uint64_t *at)
{
    return run->view ? fakeCudaViewLoad(run->view, at) : __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static void store(uint64_t *at, uint64_t value)
{
    run->moved = run->moved || load(at) != value;
    if (run->view)
        fakeCudaViewStore(run->view, at, value);
    else
        __atomic_store_n(at, value, __ATOMIC_RELEASE);
}

static bool mistakes(const char *what)
{
    const char *text = getenv("FAKE_CUDA_MISTAKE");
    return text && strcmp(text, what) == 0;
}

/* The first few releases are made, in spite of that mistake: FAKE_CUDA_SPARED of this image. */
static bool is_spared(void)
{
    static int spared;
    const char *most = getenv("FAKE_CUDA_SPARED");
    return most && __atomic_fetch_add(&spared, 1, __ATOMIC_RELAXED) < atoi(most);
}

uint64_t emulator_acquire(const uint64_t *at)
{
    passed();
    uint64_t value = load(at);
    if (run->view && !mistakes("acquire"))
        fakeCudaViewRefresh(run->view);
    return mistakes("wait") ? value | UINT64_C(1) << 60 : value + mistakes("ahead");
}

void emulator_release(uint64_t *at, uint64_t value)
{
    if (run->view && !mistakes("release"))
        fakeCudaViewPublish(run->view);
    if (!mistakes("never") || is_spared())
        store(at, value);
    passed();
}

uint64_t emulator_relaxed_load(const uint64_t *at)
{
    passed();
    return load(at);
}

void emulator_relaxed_store(uint64_t *at, uint64_t value)
{
    store(at, value);
    passed();
}

void emulator_fence(void)
{
    if (run->view) {
        fakeCudaViewPublish(run->view);
        fakeCudaViewRefresh(run->view);
    }
}

void emulator_before(const void *at, size_t bytes)
{
    if (run->view)
        fakeCudaViewRead(run->view, at, bytes);
}

void emulator_after(const void *at, size_t bytes)
{
    if (run->view)
        fakeCudaViewWrite(run->view, at, bytes);
}
