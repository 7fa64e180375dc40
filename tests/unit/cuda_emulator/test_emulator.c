/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels on the CPU: right ones give what they should for any order, wrong ones are found. */
#include "emulator.h"
#include "support/run_suite.h"

#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEEDS = 20 };
static char error[240];

static int launch(const char *name, emulator_extents e, uint64_t seed, void **params)
{
    static void *library;
    library = library ? library : dlopen(EMULATED_LIBRARY, RTLD_NOW);
    ck_assert_msg(library != NULL, "%s", dlerror());
    const emulator_kernel *kernel = emulator_find(name);
    ck_assert_msg(kernel != NULL, "no kernel %s", name);
    error[0] = '\0';
    return emulator_run(kernel, &e, params, seed, error, sizeof error);
}

static emulator_extents line_of(unsigned blocks, unsigned threads)
{
    return (emulator_extents){ { blocks, 1, 1 }, { threads, 1, 1 }, 0 };
}

START_TEST(block_reduction)
{
    static const unsigned threads[] = { 32, 64, 256, 1024 };
    double x[3000], sum = 0, *px = x, *psum = &sum;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        int64_t n = (int64_t)(seed * 151);
        for (int64_t i = 0; i < n; i++)
            x[i] = (double)(i - 100);
        ck_assert_int_eq(
            launch("block_sum", line_of(1, threads[seed % 4]), seed, (void *[]){ (void *)&px, (void *)&psum, &n }), 0);
        ck_assert_double_eq(sum, (double)(n * (n - 1) / 2 - 100 * n));
    }
}
END_TEST

/* How many of the seeds give a right result. */
static int right_reversals(const char *name, unsigned threads)
{
    int right = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        int x[4 * 256], *px = x, wrong = 0, n = (int)threads;
        for (int i = 0; i < 4 * n; i++)
            x[i] = i;
        ck_assert_int_eq(launch(name, line_of(4, threads), seed, (void *[]){ (void *)&px }), 0);
        for (int i = 0; i < 4 * n; i++)
            wrong += x[i] != i / n * n + n - 1 - i % n;
        right += wrong == 0;
    }
    return right;
}

START_TEST(missing_barrier)
{
    ck_assert_int_eq(right_reversals("reverse", 256), SEEDS);
    ck_assert_int_eq(right_reversals("reverse", 33), SEEDS);
    ck_assert_int_eq(right_reversals("reverse_without_barrier", 256), 0);
    ck_assert_int_eq(right_reversals("reverse_by_warps", 32), SEEDS);
    ck_assert_int_eq(right_reversals("reverse_by_warps", 256), 0);
}
END_TEST

START_TEST(order_of_blocks)
{
    int right = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        int x[9] = { 0 }, *px = x;
        ck_assert_int_eq(launch("chain", line_of(8, 1), seed, (void *[]){ (void *)&px }), 0);
        right += x[8] == 8;
    }
    ck_assert_int_lt(right, SEEDS / 2);
}
END_TEST

/* The line says which kernel and why; the next launch is none the worse. */
START_TEST(errors)
{
    static const struct {
        const char *name, *why;
    } cases[] = { { "some_pass_by", "which thread " },
                  { "some_pass_by", " never comes to: it has ended" },
                  { "two_places", " waits for __syncthreads at line " },
                  { "lanes_missing", "waits for a warp function at line " },
                  { "not_in_mask", " is not in the mask that it gives a warp function at line " },
                  { "trap", " stopped at line " } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int x[64] = { 0 }, *px = x;
        char begin[60];
        snprintf(begin, sizeof begin, "kernel %s, block (0, 0, 0): ", cases[i].name);
        ck_assert_int_eq(launch(cases[i].name, line_of(1, 64), i, (void *[]){ (void *)&px }), -1);
        ck_assert_msg(strncmp(error, begin, strlen(begin)) == 0 && strstr(error, cases[i].why), "%s", error);
        ck_assert_int_eq(right_reversals("reverse", 64), SEEDS);
    }
    ck_assert_int_eq(launch("reverse", line_of(1, 1025), 0, NULL), -1);
}
END_TEST

START_TEST(launch_bounds)
{
    int x[65], *px = x;
    ck_assert_int_eq(launch("bounded", line_of(1, 64), 0, (void *[]){ (void *)&px }), 0);
    ck_assert_int_eq(launch("bounded", line_of(1, 65), 0, (void *[]){ (void *)&px }), -1);
    ck_assert_ptr_nonnull(strstr(error, "65 threads in a block; it is made for 64"));
}
END_TEST

/* AddressSanitizer leaves it 0. */
START_TEST(shared_memory_is_garbage)
{
#ifndef __SANITIZE_ADDRESS__
    int x[3], *px = x;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        ck_assert_int_eq(launch("not_cleared", line_of(3, 32), seed, (void *[]){ (void *)&px }), 0);
        ck_assert_msg(x[0] != 32 && x[1] != 32 && x[2] != 32, "%d %d %d", x[0], x[1], x[2]);
    }
#endif
}
END_TEST

/* 0: aligned; 1: ends its process. */
static int by_fours(int offset)
{
    _Alignas(16) int x[12] = { 0 };
    int *px = x + offset, status = 0;
    pid_t child = fork();
    if (child == 0) {
        int wrong = launch("by_fours", line_of(1, 2), 0, (void *[]){ (void *)&px }) || px[7] != 4;
        _exit(wrong ? 2 : 0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) || WEXITSTATUS(status) == 1;
}

START_TEST(misaligned)
{
    ck_assert_int_eq(by_fours(0), 0);
    ck_assert_int_eq(by_fours(4), 0);
    ck_assert_int_eq(by_fours(1), 1);
    ck_assert_int_eq(by_fours(2), 1);
}
END_TEST

START_TEST(atomics)
{
    int x[1000], want[12] = { 0 };
    want[9] = 1 << 30;
    for (int i = 0; i < 1000; i++) {
        x[i] = i * 7919 % 4001 - 300;
        want[x[i] & 7]++;
        want[8] = x[i] > want[8] ? x[i] : want[8];
        want[9] = x[i] < want[9] ? x[i] : want[9];
        want[10] |= x[i];
        want[11] = x[i] > want[11] ? x[i] : want[11];
    }
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        int bin[12] = { [9] = 1 << 30 }, *px = x, *pbin = bin;
        int64_t n = 1000;
        ck_assert_int_eq(launch("atomics", line_of(3, 96), seed, (void *[]){ (void *)&px, (void *)&pbin, &n }), 0);
        ck_assert_mem_eq(bin, want, sizeof want);
    }
}
END_TEST

/* As the CUDA C++ Programming Guide defines them. */
static void lanes_of(const int *x, int t, int *to)
{
    int first = t / 32 * 32, lane = t % 32;
    const int *w = x + first;
    int above = lane % 16 >= 2 ? lane - 2 : lane, below = lane + 5 < 32 ? lane + 5 : lane;
    int results[8] = { w[lane / 8 * 8 + 3], w[above], w[below], w[lane ^ 9], 0, 0, 1, lane < 16 ? 0 : w[16] };
    unsigned ballot = 0;
    for (int i = 0; i < 32; i++) {
        ballot |= (unsigned)(w[i] & 1) << i;
        results[5] |= w[i] == 1000;
        results[6] &= w[i] < 1000;
        results[7] = i / 16 != lane / 16 ? results[7]
                     : lane < 16         ? results[7] + w[i]
                     : w[i] > results[7] ? w[i]
                                         : results[7];
    }
    memcpy(&results[4], &ballot, sizeof ballot);
    memcpy(to, results, sizeof results);
}

START_TEST(warps)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        int x[96], y[96 * 8], want[8], *px = x, *py = y;
        for (int i = 0; i < 96; i++)
            x[i] = (i * 37 + (int)seed) % 101 - 50 + (i == 40 && seed % 2 ? 1000 : 0);
        x[40] = seed % 2 ? 1000 : x[40];
        ck_assert_int_eq(launch("lanes", line_of(1, 96), seed, (void *[]){ (void *)&px, (void *)&py }), 0);
        for (int t = 0; t < 96; t++) {
            lanes_of(x, t, want);
            ck_assert_mem_eq(y + (size_t)t * 8, want, sizeof want);
        }
    }
}
END_TEST

START_TEST(two_dimensions)
{
    static float x[50 * 37], z[50 * 37];
    int h = 50, w = 37;
    float *px = x, *pz = z;
    for (int i = 0; i < h * w; i++)
        x[i] = (float)i;
    emulator_extents e = { { 3, 4, 1 }, { 16, 16, 1 }, 0 };
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        memset(z, 0, sizeof z);
        ck_assert_int_eq(launch("turn", e, seed, (void *[]){ (void *)&px, (void *)&pz, &h, &w }), 0);
        for (int i = 0; i < h * w; i++)
            ck_assert_float_eq(z[i % w * h + i / w], x[i]);
    }
}
END_TEST

/* Nothing waits for the kernel ahead here. */
START_TEST(comes_early)
{
    double x[64] = { 0 }, sum = 0, *px = x, *psum = &sum;
    int64_t n = 64;
    emulator_extents e = line_of(1, 64);
    e.early = 1;
    ck_assert_int_eq(launch("block_sum", e, 1, (void *[]){ (void *)&px, (void *)&psum, &n }), -1);
    ck_assert_str_eq(error,
                     "kernel block_sum, block (0, 0, 0): it was launched early, and 0 of 64 threads waited for the "
                     "kernel ahead of it");
}
END_TEST

START_TEST(parameters)
{
    uint16_t half = 0x3E00; /* 1.5 */
    float four[4] = { 1, 2, 3, 4 };
    struct mixed {
        char c;
        double d;
        short s;
    } m = { 3, 0.25, -7 };
    unsigned char bytes[4] = { 200, 100, 50, 5 };
    double to[6] = { 0 }, *pto = to;
    ck_assert_int_eq(launch("types", line_of(1, 100), 1, (void *[]){ &half, four, &m, bytes, (void *)&pto }), 0);
    ck_assert_double_eq(to[0], 1.5);
    ck_assert_double_eq(to[1], 4321);
    ck_assert_double_eq(to[2], -3.75);
    ck_assert_double_eq(to[3], 355);
    ck_assert_double_eq(to[4], 34);
    ck_assert_double_eq(to[5], 3.5 + 3 + 1065353216 + 2.5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda emulator");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, block_reduction);
    tcase_add_test(tests, missing_barrier);
    tcase_add_test(tests, order_of_blocks);
    tcase_add_test(tests, errors);
    tcase_add_test(tests, launch_bounds);
    tcase_add_test(tests, shared_memory_is_garbage);
    tcase_add_test(tests, misaligned);
    tcase_add_test(tests, atomics);
    tcase_add_test(tests, warps);
    tcase_add_test(tests, two_dimensions);
    tcase_add_test(tests, comes_early);
    tcase_add_test(tests, parameters);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
