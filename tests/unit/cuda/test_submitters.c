/* SPDX-License-Identifier: Apache-2.0 */
/* A thread for each GPU that submits: the same results as by one, for schedules that are fit for it and long enough. */
#include "control.h"
#include "suite.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { GPUS = 3, BUFFERS = 9, MOST_TEXT = 1 << 16 };

static int count_threads(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(folder);
    for (struct dirent *d = readdir(folder); d; d = readdir(folder))
        count += d->d_name[0] != '.';
    closedir(folder);
    return count;
}

static int others; /* threads that are there without a run, such as a sanitizer's, which come with the first */

static void *nothing(void *data)
{
    return data;
}

static void count_others(void)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, nothing, NULL), 0);
    pthread_join(thread, NULL);
    nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
    others = count_threads();
}

/* Those that were waited for may be listed a moment longer. */
static void await_others(void)
{
    for (int i = 0; i < 2000 && count_threads() > others; i++)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    ck_assert_int_eq(count_threads(), others);
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Nodes that read one buffer and change another, each on some GPU: rows of the sync table go in all directions. */
static gantry_graph *random_graph(uint64_t seed, int nodes, int gpus)
{
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    gantry_graph *g = NULL;
    char *text = malloc(MOST_TEXT);
    ck_assert_ptr_nonnull(text);
    int used = snprintf(text, MOST_TEXT, "{\"gantry\":1,\"buffers\":{");
    for (int b = 0; b < BUFFERS; b++) {
        used +=
            snprintf(text + used, (size_t)(MOST_TEXT - used),
                     "%s\"b%d\":{\"dtype\":\"f32\",\"shape\":[40],\"init\":{\"random\":{\"seed\":%d}},\"output\":true}",
                     b ? "," : "", b, b);
    }
    used += snprintf(text + used, (size_t)(MOST_TEXT - used), "},\"nodes\":[");
    for (int i = 0; i < nodes; i++) {
        int x = (int)(next_random(&seed) % BUFFERS), y = (x + 1 + (int)(next_random(&seed) % (BUFFERS - 1))) % BUFFERS;
        used += snprintf(
            text + used, (size_t)(MOST_TEXT - used),
            "%s{\"id\":\"n%d\",\"kernel\":\"axpby\",\"on\":\"gpu%d\",\"args\":{\"a\":0.5,\"b\":0.5,\"x\":\"b%d\","
            "\"y\":\"b%d\"}}",
            i ? "," : "", i, (int)(next_random(&seed) % (uint64_t)gpus), x, y);
    }
    used += snprintf(text + used, (size_t)(MOST_TEXT - used), "]}");
    ck_assert_int_lt(used, MOST_TEXT - 1);
    MUST(gantry_graph_parse(&g, text, (size_t)used, "random", NULL, &options, MUST_ERR));
    free(text);
    return g;
}

/* How many threads came with a run on the fake GPUs, whose starts give what the host gives. */
static int try_graph(gantry_graph *g, const gantry_machine *m, const char *replay, uint64_t seed)
{
    gantry_schedule *s = make_schedule(g, m, replay, "heft");
    gantry_run *host = open_run(s, "host");
    results want = run_results(host, g);
    gantry_run_free(host);
    await_others();
    gantry_run *run = open_run(s, "cuda");
    int made = count_threads() - others;
    for (int start = 0; start < 6; start++) {
        fakeCudaSeed(seed * 8 + (uint64_t)start);
        results got = run_results(run, g);
        ck_assert_msg(same(&got, &want), "seed %d, start %d: other results", (int)seed, start);
    }
    gantry_run_free(run);
    await_others();
    gantry_schedule_free(s);
    return made;
}

START_TEST(many_submit_as_one)
{
    char text[160];
    fakeCudaDevices(GPUS, "all", 0);
    count_others();
    gantry_machine *m = gpu_machine(GPUS, false);
    for (uint64_t seed = 0; seed < 30; seed++) {
        gantry_graph *g = random_graph(seed, 20 + 8 * (int)seed, GPUS);
        setenv("GANTRY_CUDA_THREADS", "on", 1);
        ck_assert_int_eq(try_graph(g, m, "stream", seed), GPUS - 1);
        setenv("GANTRY_CUDA_THREADS", "off", 1);
        ck_assert_int_eq(try_graph(g, m, "stream", seed), 0);
        gantry_graph_free(g);
        ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "left behind: %s", text);
    }
    gantry_machine_free(m);
}
END_TEST

/* By themselves: not for a few ops, not on one GPU, not for what is captured, nor where GPUs do not reach each other;
 * and where each thread has a core. */
START_TEST(where_it_pays)
{
    enum { TWO = 2 };
    static const struct {
        int nodes, gpus;
        const char *reachable, *replay;
        bool pays;
    } cases[] = { { 200, TWO, "all", "stream", true },   { 200, TWO, "all", "auto", true },
                  { 20, TWO, "all", "stream", false },   { 200, TWO, "all", "graph", false },
                  { 200, TWO, "none", "stream", false }, { 200, 1, "all", "stream", false } };
    bool cores = sysconf(_SC_NPROCESSORS_ONLN) >= TWO;
    unsetenv("GANTRY_CUDA_THREADS");
    count_others();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fakeCudaDevices(cases[i].gpus, cases[i].reachable, 0);
        gantry_machine *m = shared_machine(TWO, cases[i].gpus);
        gantry_graph *g = random_graph(i, cases[i].nodes, TWO);
        int made = try_graph(g, m, cases[i].replay, i);
        ck_assert_msg(made == (cases[i].pays && cores), "case %zu: %d threads", i, made);
        gantry_graph_free(g);
        gantry_machine_free(m);
    }
}
END_TEST

/* Whoever fails, the others do not wait for it for ever, and its message is the one. */
START_TEST(one_fails)
{
    static const char *const calls[] = { "cuMemcpyDtoDAsync", "cuEventRecord", "cuStreamWaitEvent" };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    char spec[80], text[160];
    options.backend = "cuda";
    fakeCudaDevices(GPUS, "all", 0);
    setenv("GANTRY_CUDA_THREADS", "on", 1);
    gantry_machine *m = gpu_machine(GPUS, false);
    gantry_graph *g = random_graph(77, 60, GPUS);
    gantry_schedule *s = make_schedule(g, m, "stream", "heft");
    for (int n = 1; n <= 40; n++) {
        gantry_run *run = NULL;
        gantry_error err = { 0 };
        uint64_t ticket = 0;
        MUST(gantry_run_new(&run, s, &options, MUST_ERR));
        snprintf(spec, sizeof spec, "%s:%d:%d", calls[n % 3], n, CUDA_ERROR_INVALID_HANDLE);
        fakeCudaFail(spec);
        gantry_status status = gantry_run_start(run, &ticket, &err);
        status = status ? status : gantry_run_wait(run, ticket, &err);
        fakeCudaFail(NULL);
        ck_assert_msg(status == GANTRY_E_DEVICE && err.native == CUDA_ERROR_INVALID_HANDLE, "%s: %d: %s", spec, status,
                      err.text);
        gantry_run_free(run);
        ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "%s: left behind: %s", spec, text);
    }
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("submission threads");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, many_submit_as_one);
    tcase_add_test(tests, where_it_pays);
    tcase_add_test(tests, one_fails);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
