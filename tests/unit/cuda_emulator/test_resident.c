/* SPDX-License-Identifier: Apache-2.0 */
/* Cooperative launches on the fake driver: blocks of several devices, streams and the program wait for each other. */
#include "control.h"
#include "support/run_suite.h"

#include <check.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 12, GPUS = 2, WORKERS = 16, TILE = 256 };

static CUcontext context[GPUS];
static CUstream stream[2 * GPUS]; /* two of each device */
static CUmodule module;

static void cu(CUresult code)
{
    ck_assert_msg(code == CUDA_SUCCESS, "error %d", code);
}

static void open_devices(const char *peer, bool weak)
{
    static const unsigned char image[64] = { 0x50, 0xED, 0x55, 0xBA };
    setenv("FAKE_CUDA_WEAK", weak ? "1" : "0", 1);
    fakeCudaDevices(GPUS, peer, 0);
    ck_assert_msg(dlopen(EMULATED_LIBRARY, RTLD_NOW) != NULL, "%s", dlerror());
    cu(cuInit(0));
    for (int i = 0; i < GPUS; i++) {
        cu(cuDevicePrimaryCtxRetain(&context[i], i));
        cu(cuCtxSetCurrent(context[i]));
        cu(cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
        cu(cuStreamCreate(&stream[GPUS + i], CU_STREAM_NON_BLOCKING));
    }
    for (int i = 0; i < GPUS && strcmp(peer, "all") == 0; i++) {
        cu(cuCtxSetCurrent(context[i]));
        cu(cuCtxEnablePeerAccess(context[1 - i], 0));
    }
    cu(cuCtxSetCurrent(context[0]));
    cu(cuModuleLoadData(&module, image));
}

static void close_devices(void)
{
    char alive[160];
    cu(cuModuleUnload(module));
    for (int i = 0; i < 2 * GPUS; i++)
        cu(cuStreamDestroy(stream[i]));
    cu(cuCtxSetCurrent(NULL));
    for (int i = 0; i < GPUS; i++)
        cu(cuDevicePrimaryCtxRelease(i));
    ck_assert_msg(fakeCudaAlive(alive, sizeof alive) == 0, "left behind: %s", alive);
}

/* Memory of the device that is filled with 0. */
static void *zeros(int device, size_t bytes)
{
    CUdeviceptr at;
    cu(cuCtxSetCurrent(context[device]));
    cu(cuMemAlloc(&at, bytes));
    cu(cuMemsetD8Async(at, 0, bytes, stream[device]));
    cu(cuStreamSynchronize(stream[device]));
    return (void *)(uintptr_t)at;
}

static void let_go(void *at)
{
    cu(cuMemFree((CUdeviceptr)(uintptr_t)at));
}

static uint64_t *host_word(void)
{
    void *at;
    cu(cuMemHostAlloc(&at, sizeof(uint64_t), CU_MEMHOSTALLOC_PORTABLE));
    memset(at, 0, sizeof(uint64_t));
    return at;
}

static CUresult launch(const char *name, int on, unsigned blocks, unsigned threads, void **params)
{
    CUfunction function;
    cu(cuCtxSetCurrent(context[on % GPUS]));
    cu(cuModuleGetFunction(&function, module, name));
    return cuLaunchCooperativeKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream[on], params);
}

static void take(void *to, const void *from, size_t bytes, int device)
{
    cu(cuCtxSetCurrent(context[device]));
    cu(cuMemcpyDtoH(to, (CUdeviceptr)(uintptr_t)from, bytes));
}

/* ---- the ring ---- */

typedef struct ring {
    uint64_t *counter[WORKERS];
    int64_t *payload[WORKERS];
    int workers, first, rounds, n, acquire, release;
} ring;

static void pass_round(ring *r)
{
    for (int i = 0; i < GPUS; i++) {
        r->first = i * r->workers / GPUS;
        cu(launch("pass_round", i, (unsigned)(r->workers / GPUS), TILE, (void *[]){ r }));
    }
    for (int i = 0; i < GPUS; i++)
        cu(cuStreamSynchronize(stream[i]));
}

/* Element i begins as i. */
static void fill(const ring *r)
{
    size_t bytes = (size_t)r->n * sizeof(int64_t);
    int64_t *host;
    cu(cuCtxSetCurrent(context[0]));
    cu(cuMemHostAlloc((void **)&host, bytes, CU_MEMHOSTALLOC_PORTABLE));
    for (int i = 0; i < r->n; i++)
        host[i] = i;
    cu(cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)r->payload[0], host, bytes, stream[0]));
    cu(cuStreamSynchronize(stream[0]));
    cu(cuMemFreeHost(host));
}

/* As many steps have added one, and turned each tile by one. */
static bool is_right(const ring *r)
{
    int64_t *x = malloc((size_t)r->n * sizeof *x);
    int steps = r->rounds * r->workers;
    bool right = true;
    take(x, r->payload[0], (size_t)r->n * sizeof *x, 0);
    for (int i = 0; i < r->n; i++)
        right = right && x[i] == i / TILE * TILE + (i + steps) % TILE + steps;
    free(x);
    return right;
}

static bool ring_is_right(uint64_t seed, int workers, int n, int rounds, int acquire, int release)
{
    ring r = { .workers = workers, .rounds = rounds, .n = n, .acquire = acquire, .release = release };
    fakeCudaSeed(seed);
    for (int i = 0; i < workers; i++) {
        r.counter[i] = zeros(i / (workers / GPUS), sizeof(uint64_t));
        r.payload[i] = zeros(i / (workers / GPUS), (size_t)n * sizeof(int64_t));
    }
    fill(&r);
    pass_round(&r);
    bool right = is_right(&r);
    for (int i = 0; i < workers; i++) {
        let_go(r.counter[i]);
        let_go(r.payload[i]);
    }
    return right;
}

static int right_rings(bool weak, int acquire, int release)
{
    int right = 0;
    open_devices("all", weak);
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        right += ring_is_right(seed, 6, 2 * TILE, 5, acquire, release);
    close_devices();
    return right;
}

START_TEST(a_ring)
{
    ck_assert_int_eq(right_rings(false, 1, 1), SEEDS);
    ck_assert_int_eq(right_rings(false, 0, 0), SEEDS);
    ck_assert_int_eq(right_rings(true, 1, 1), SEEDS);
}
END_TEST

START_TEST(release_or_acquire_is_left_out)
{
    ck_assert_int_lt(right_rings(true, 0, 1), SEEDS / 2);
    ck_assert_int_lt(right_rings(true, 1, 0), SEEDS / 2);
}
END_TEST

/* A mebibyte, in all. */
START_TEST(a_large_ring)
{
    for (int weak = 0; weak < 2; weak++) {
        open_devices("all", weak);
        ck_assert(ring_is_right(5, WORKERS, 8192, 8, 1, 1));
        close_devices();
    }
}
END_TEST

/* ---- blocks of one launch ---- */

START_TEST(shared_memory_is_of_a_block)
{
    enum { BLOCKS = 5 };
    static int got[BLOCKS * TILE];
    for (uint64_t seed = 0; seed < 2 * SEEDS; seed++) {
        open_devices("all", seed % 2);
        fakeCudaSeed(seed);
        uint64_t *arrived = zeros(0, BLOCKS * sizeof *arrived);
        int *to = zeros(0, sizeof got);
        cu(launch("keep_shared", 0, BLOCKS, TILE, (void *[]){ (void *)&arrived, (void *)&to }));
        cu(cuStreamSynchronize(stream[0]));
        take(got, to, sizeof got, 0);
        for (int i = 0; i < BLOCKS * TILE; i++)
            ck_assert_int_eq(got[i], i / TILE * 1000 + (i + 1) % TILE);
        let_go(arrived);
        let_go(to);
        close_devices();
    }
}
END_TEST

START_TEST(atomic_functions)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        open_devices("all", true);
        fakeCudaSeed(seed);
        uint64_t *sum = zeros(0, sizeof *sum), *go = host_word(), got;
        cu(launch("count_all", 0, 4, 64, (void *[]){ (void *)&sum, (void *)&go }));
        ck_assert_int_eq(cuStreamQuery(stream[0]), CUDA_ERROR_NOT_READY);
        *go = 1;
        cu(cuStreamSynchronize(stream[0]));
        take(&got, sum, sizeof got, 0);
        ck_assert_uint_eq(got, 4 * 64 * 63 / 2);
        let_go(sum);
        cu(cuMemFreeHost(go));
        close_devices();
    }
}
END_TEST

START_TEST(fences)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        open_devices("all", true);
        fakeCudaSeed(seed);
        int64_t *x = zeros(0, TILE * sizeof *x), *to = zeros(0, TILE * sizeof *to), got[TILE];
        uint64_t *flag = zeros(0, sizeof *flag);
        cu(launch("by_fences", 0, 2, TILE, (void *[]){ (void *)&flag, (void *)&x, (void *)&to }));
        cu(cuStreamSynchronize(stream[0]));
        take(got, to, sizeof got, 0);
        for (int i = 0; i < TILE; i++)
            ck_assert_int_eq(got[i], i + 1);
        let_go(x);
        let_go(to);
        let_go(flag);
        close_devices();
    }
}
END_TEST

/* ---- streams and the program ---- */

/* A stream copies there, the kernel adds to that, the next copy brings it back. */
static void talk(uint64_t *ask, uint64_t *answer, int64_t *x, int64_t *host)
{
    enum { ROUNDS = 6, BLOCKS = 2 };
    int rounds = ROUNDS;
    CUstream other = stream[GPUS];
    cu(launch("echo", 0, BLOCKS, 64, (void *[]){ (void *)&ask, (void *)&answer, (void *)&x, &rounds }));
    for (int k = 1; k <= ROUNDS; k++) {
        cu(cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)x, host, 1024, other));
        cu(cuStreamWriteValue64(other, (CUdeviceptr)(uintptr_t)ask, (uint64_t)k, 0));
        for (int i = 0; i < BLOCKS; i++)
            cu(cuStreamWaitValue64(other, (CUdeviceptr)(uintptr_t)(answer + i), (uint64_t)k, CU_STREAM_WAIT_VALUE_GEQ));
        cu(cuMemcpyDtoHAsync(host, (CUdeviceptr)(uintptr_t)x, 1024, other));
    }
    cu(cuStreamSynchronize(other));
    cu(cuStreamSynchronize(stream[0]));
    for (int i = 0; i < 128; i++)
        ck_assert_int_eq(host[i], i + ROUNDS * (ROUNDS + 1) / 2);
}

START_TEST(streams_wait_and_write)
{
    for (uint64_t seed = 0; seed < 2 * SEEDS; seed++) {
        open_devices("all", seed % 2);
        fakeCudaSeed(seed);
        uint64_t *ask = seed % 3 ? zeros(seed % 3 == 1, sizeof *ask) : host_word();
        uint64_t *answer = zeros(0, 2 * sizeof *answer);
        int64_t *x = zeros(0, 1024), *host;
        cu(cuMemHostAlloc((void **)&host, 1024, CU_MEMHOSTALLOC_PORTABLE));
        for (int i = 0; i < 128; i++)
            host[i] = i;
        talk(ask, answer, x, host);
        let_go(answer);
        let_go(x);
        cu(cuMemFreeHost(host));
        cu(seed % 3 ? cuMemFree((CUdeviceptr)(uintptr_t)ask) : cuMemFreeHost(ask));
        close_devices();
    }
}
END_TEST

/* The comparison is cyclic, as cuda.h says. */
START_TEST(words_of_streams)
{
    CUgraph graph = NULL;
    open_devices("all", false);
    uint64_t *word = host_word();
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)word;
    *word = 2;
    cu(cuStreamWaitValue64(stream[0], at, UINT64_MAX, CU_STREAM_WAIT_VALUE_GEQ));
    cu(cuStreamSynchronize(stream[0]));
    cu(cuStreamWaitValue64(stream[0], at, 3, CU_STREAM_WAIT_VALUE_GEQ));
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(cuStreamQuery(stream[0]), CUDA_ERROR_NOT_READY);
    cu(cuStreamWriteValue64(stream[GPUS], at, 3, 0));
    cu(cuStreamSynchronize(stream[0]));
    ck_assert_int_eq(cuStreamWaitValue64(stream[0], at, 3, CU_STREAM_WAIT_VALUE_EQ), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuStreamWaitValue64(stream[0], at + 4, 3, 0), CUDA_ERROR_INVALID_VALUE);
    cu(cuStreamBeginCapture(stream[0], CU_STREAM_CAPTURE_MODE_RELAXED));
    ck_assert_int_eq(cuStreamWriteValue64(stream[0], at, 3, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ck_assert_int_eq(cuStreamEndCapture(stream[0], &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    cu(cuMemFreeHost(word));
    close_devices();
}
END_TEST

/* The kernel is under way until the program stops it; a query comes back. The second launch has no room before. */
START_TEST(the_program_stops_it)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        open_devices("all", seed % 2);
        fakeCudaSeed(seed);
        uint64_t *stop = host_word(), *ended = zeros(0, sizeof *ended), got = 2;
        cu(launch("until_stopped", 0, 3, 33, (void *[]){ (void *)&stop }));
        fakeCudaFinish();
        cu(launch("store_one", GPUS, 1, 1, (void *[]){ (void *)&ended }));
        for (int i = 0; i < 50; i++) {
            ck_assert_int_eq(cuStreamQuery(stream[0]), CUDA_ERROR_NOT_READY);
            ck_assert_int_eq(cuStreamQuery(stream[GPUS]), CUDA_ERROR_NOT_READY);
        }
        take(&got, ended, sizeof got, 0);
        ck_assert_uint_eq(got, 0);
        *stop = 1;
        cu(cuStreamSynchronize(stream[GPUS]));
        cu(cuStreamSynchronize(stream[0]));
        take(&got, ended, sizeof got, 0);
        ck_assert_uint_eq(got, 1);
        let_go(ended);
        cu(cuMemFreeHost(stop));
        close_devices();
    }
}
END_TEST

static void *stop_it(void *data)
{
    uint64_t at = (uint64_t)(uintptr_t)data;
    for (int i = 0; i < 200; i++)
        ck_assert_int_eq(cuStreamQuery(stream[0]), CUDA_ERROR_NOT_READY);
    cu(cuCtxSetCurrent(context[1]));
    cu(cuStreamWriteValue64(stream[1], at, 1, 0));
    return NULL;
}

/* One thread waits, another asks, and gives what both wait for: the kernel goes on in either. */
START_TEST(another_thread_stops_it)
{
    pthread_t thread;
    open_devices("all", false);
    fakeCudaPatience(-1);
    uint64_t *stop = host_word();
    cu(launch("until_stopped", 0, 2, 32, (void *[]){ (void *)&stop }));
    ck_assert_int_eq(pthread_create(&thread, NULL, stop_it, stop), 0);
    cu(cuStreamSynchronize(stream[0]));
    pthread_join(thread, NULL);
    cu(cuStreamSynchronize(stream[1]));
    cu(cuMemFreeHost(stop));
    close_devices();
}
END_TEST

/* ---- what does not work ---- */

START_TEST(too_large)
{
    int value, blocks;
    CUfunction function;
    open_devices("all", false);
    uint64_t *stop = host_word();
    *stop = 1;
    void *params[] = { (void *)&stop };
    cu(cuModuleGetFunction(&function, module, "until_stopped"));
    cu(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 256, 0));
    cu(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    ck_assert_int_eq(launch("until_stopped", 0, (unsigned)(value * blocks + 1), 256, params),
                     CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    setenv("FAKE_CUDA_PLACES", "4", 1);
    cu(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 256, 0));
    ck_assert_int_eq(blocks, 1);
    cu(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    ck_assert_int_eq(value, 4);
    ck_assert_int_eq(launch("until_stopped", 0, 5, 256, params), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    cu(launch("until_stopped", 0, 4, 256, params));
    cu(cuStreamSynchronize(stream[0]));
    cu(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0));
    ck_assert_int_eq(value, 1);
    cu(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 0));
    ck_assert_int_eq(value, 1);
    unsetenv("FAKE_CUDA_PLACES");
    cu(cuMemFreeHost(stop));
    close_devices();
}
END_TEST

START_TEST(globals)
{
    CUdeviceptr at;
    size_t bytes;
    uint64_t got[3];
    open_devices("all", false);
    cu(cuModuleGetGlobal(&at, &bytes, module, "resident_layout"));
    ck_assert_uint_eq(bytes, sizeof got);
    cu(cuMemcpyDtoH(got, at, sizeof got));
    ck_assert_uint_eq(got[0] * 100 + got[1] * 10 + got[2], 789);
    ck_assert_int_eq(cuModuleGetGlobal(&at, &bytes, module, "resident"), CUDA_ERROR_NOT_FOUND);
    close_devices();
}
END_TEST

/* Each of these ends the program. */

START_TEST(deadlock_of_kernels)
{
    open_devices("all", _i);
    uint64_t *stop = host_word();
    setenv("FAKE_CUDA_PATIENCE", "3000", 1);
    cu(launch("until_stopped", 0, 2, 32, (void *[]){ (void *)&stop }));
    cuStreamSynchronize(stream[0]);
}
END_TEST

START_TEST(deadlock_of_streams)
{
    open_devices("all", false);
    fakeCudaPatience(100);
    cu(cuStreamWaitValue64(stream[0], (CUdeviceptr)(uintptr_t)host_word(), 1, 0));
    cuStreamSynchronize(stream[0]);
}
END_TEST

START_TEST(pause_without_company)
{
    CUfunction function;
    open_devices("all", false);
    uint64_t *stop = host_word();
    cu(cuModuleGetFunction(&function, module, "until_stopped"));
    cu(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream[0], (void *[]){ (void *)&stop }, NULL));
    cuStreamSynchronize(stream[0]);
}
END_TEST

#ifndef __SANITIZE_ADDRESS__ /* which makes an error of the signal */
START_TEST(memory_of_another_device)
{
    open_devices("none", _i);
    uint64_t *theirs = zeros(1, sizeof *theirs);
    cu(launch("store_one", 0, 1, 1, (void *[]){ (void *)&theirs }));
    cuStreamSynchronize(stream[0]);
}
END_TEST

static void add_accesses(TCase *tests)
{
    tcase_add_loop_test_raise_signal(tests, memory_of_another_device, SIGSEGV, 0, 2);
}
#else
static void add_accesses(TCase *tests)
{
    (void)tests;
}
#endif

int main(void)
{
    Suite *suite = suite_create("resident kernels");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_ring);
    tcase_add_test(tests, release_or_acquire_is_left_out);
    tcase_add_test(tests, a_large_ring);
    tcase_add_test(tests, shared_memory_is_of_a_block);
    tcase_add_test(tests, atomic_functions);
    tcase_add_test(tests, fences);
    tcase_add_test(tests, streams_wait_and_write);
    tcase_add_test(tests, words_of_streams);
    tcase_add_test(tests, the_program_stops_it);
    tcase_add_test(tests, another_thread_stops_it);
    tcase_add_test(tests, too_large);
    tcase_add_test(tests, globals);
    tcase_add_loop_test_raise_signal(tests, deadlock_of_kernels, SIGABRT, 0, 2);
    tcase_add_test_raise_signal(tests, deadlock_of_streams, SIGABRT);
    tcase_add_test_raise_signal(tests, pause_without_company, SIGABRT);
    add_accesses(tests);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
