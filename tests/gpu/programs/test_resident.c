/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replay by the device on real GPUs: exit code 77 without one. The same program runs on emulated GPUs. Results are the
 * host's, bit for bit, also while another run slows the GPUs at random; what a start takes is printed beside that of
 * streams and of a graph. GANTRY_GPU_SMALL=1: few steps and starts, for emulated GPUs and compute-sanitizer.
 */
#include "unit/cuda_resident/rings.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int gpus;
static bool small;

typedef struct problem {
    int lists, steps, length, lanes; /* lists and lanes of a GPU */
} problem;

/* One list a GPU; as many as lanes; more than lanes; lists that all workers of a lane share. */
static const problem problems[] = {
    { 1, 20, 1024, 1 }, { 8, 20, 1024, 8 }, { 16, 20, 1024, 4 }, { 24, 20, 1024, 24 }, { 1, 6, 1 << 20, 1 }
};
enum { PROBLEMS = sizeof problems / sizeof *problems };

typedef struct world {
    gantry_graph *g;
    gantry_machine *m;
    gantry_schedule *s;
} world;

static world make(const problem *p, int used, const char *replay, bool fetched)
{
    world w = { .g = ring_of(used, used * (small && p->lists > 4 ? 4 : p->lists), small ? 3 : p->steps,
                             small && p->length > 1 << 16 ? 1 << 16 : p->length, fetched),
                .m = ring_machine(used, small && p->lanes > 2 ? 2 : p->lanes) };
    w.s = make_schedule(w.g, w.m, replay, NULL);
    return w;
}

static void drop(world *w)
{
    gantry_schedule_free(w->s);
    gantry_machine_free(w->m);
    gantry_graph_free(w->g);
}

START_TEST(rings)
{
    for (int used = 1; used <= gpus; used++) {
        char replay[720];
        world w = make(&problems[_i], used, "device", true);
        compare_with_host(w.g, w.s, small ? 2 : 50, replay, sizeof replay);
        printf("held: ring %d on %d: %s\n", _i, used, replay);
        ck_assert_msg(strncmp(replay, "device", 6) == 0, "%s", replay);
        drop(&w);
    }
}
END_TEST

/* Starts that follow each other by one launch. */
START_TEST(series)
{
    for (int used = 1; used <= gpus; used++) {
        world w = make(&problems[_i], used, "device", true);
        gantry_run *host = open_run(w.s, "host"), *run = open_run(w.s, "cuda");
        for (uint64_t starts = 1; starts < (small ? 4 : 6); starts++) { /* numbers become small */
            MUST(gantry_run_repeat(host, starts, MUST_ERR));
            MUST(gantry_run_repeat(run, starts, MUST_ERR));
            results wanted = outputs_of(host, w.g), got = outputs_of(run, w.g);
            ck_assert_msg(same(&wanted, &got), "series of %d starts", (int)starts);
        }
        printf("held: series of ring %d on %d: %s\n", _i, used, replay_of(run));
        ck_assert_msg(strstr(replay_of(run), problems[_i].length > 1 << 14 ? "one start a launch" : "series"), "%s",
                      replay_of(run));
        gantry_run_free(host);
        gantry_run_free(run);
        drop(&w);
    }
}
END_TEST

enum { OVERLAPPING = 256 };

/* Of starts that overlap; microseconds from one to the next in the last series. */
static double repeat_overlapping(gantry_run *run, gantry_buffer x, const float *values, uint64_t starts)
{
    struct timespec before, after;
    MUST(gantry_run_bind(run, x, values, OVERLAPPING * sizeof *values, MUST_ERR));
    for (uint64_t i = 1; i <= 3; i++)
        MUST(gantry_run_repeat(run, i * 5, MUST_ERR));
    clock_gettime(CLOCK_MONOTONIC, &before);
    MUST(gantry_run_repeat(run, starts, MUST_ERR));
    clock_gettime(CLOCK_MONOTONIC, &after);
    return ((double)(after.tv_sec - before.tv_sec) * 1e6 + (double)(after.tv_nsec - before.tv_nsec) / 1e3) /
           (double)starts;
}

/* Starts that overlap, each lane of which goes on to the next one by itself; by streams, the host begins each. */
START_TEST(overlap)
{
    const uint64_t starts = small ? 11 : 1000;
    for (int used = 1; used <= gpus; used++) {
        gantry_schedule_options options = GANTRY_SCHEDULE_OPTIONS_INIT;
        gantry_graph *g = pipeline_of(used, 4, OVERLAPPING);
        gantry_machine *m = ring_machine(used, 2);
        gantry_schedule *s[2] = { NULL, NULL };
        float x[OVERLAPPING];
        for (int i = 0; i < OVERLAPPING; i++)
            x[i] = (float)i;
        options.objective = "period";
        options.in_flight = 2 + _i;
        results of[3];
        double us[3];
        for (int k = 0; k < 3; k++) { /* the host, the device, streams */
            options.replay = k == 1 ? "device" : "stream";
            if (k < 2)
                MUST(gantry_schedule_new(&s[k], g, m, &options, MUST_ERR));
            gantry_run *run = open_run(s[k % 2], k ? "cuda" : "host");
            us[k] = repeat_overlapping(run, gantry_graph_find_buffer(g, "x"), x, starts);
            of[k] = outputs_of(run, g);
            ck_assert_msg(k != 1 || strstr(replay_of(run), "series of starts by one launch"), "%s", replay_of(run));
            gantry_run_free(run);
        }
        ck_assert(same(&of[0], &of[1]) && same(&of[0], &of[2]));
        printf("held: pipeline of 4 stages on %d, %d in flight: device %.2f us a start, streams %.2f\n", used, 2 + _i,
               us[1], us[2]);
        gantry_schedule_free(s[0]);
        gantry_schedule_free(s[1]);
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
}
END_TEST

/* Workers ask flags, those that share a call as well. */
START_TEST(flags)
{
    for (int used = 1; used <= gpus; used++) {
        char replay[720];
        world w = { .g = flagged_of(used, _i ? 3 << 12 : 1024), .m = ring_machine(used, 1) };
        w.s = make_schedule(w.g, w.m, "device", NULL);
        compare_with_host(w.g, w.s, small ? 3 : 50, replay, sizeof replay);
        printf("held: flags %d on %d: %s\n", _i, used, replay);
        ck_assert_msg(strncmp(replay, "device", 6) == 0 && !strstr(replay, "not by"), "%s", replay);
        drop(&w);
    }
}
END_TEST

/* ---- code of users ---- */

static gantry_status own_on_host(const gantry_launch *l)
{
    float a = (float)l->arg[0].number, *y = l->arg[2].data;
    const float *x = l->arg[1].data;
    for (int64_t i = 0; i < l->arg[3].integer; i++) {
        float product = a * x[i ^ 1];
        y[i] = product + y[i];
    }
    return GANTRY_OK;
}

static const char own_source[] =
    "extern \"C\" __global__ void own(float a, const float *x, float *y, long long n)\n{\n"
    "    __shared__ float row[256];\n"
    "    long long block = (long long)blockIdx.y * gridDim.x + blockIdx.x, i = block * blockDim.x + threadIdx.x;\n"
    "    row[threadIdx.x] = i < n ? x[i] : 0;\n    __syncthreads();\n"
    "    if (i < n)\n        y[i] = a * row[threadIdx.x ^ 1] + y[i];\n}\n";

/* Two arrays that take each other in, in turn on each GPU; `threads` of a block. */
static gantry_graph *users_of(int used, const char *threads)
{
    static const gantry_kernel_arg args[] = { { .name = "a", .scalar = 1 },
                                              { .name = "x", .access = GANTRY_READ },
                                              { .name = "y", .access = GANTRY_READWRITE },
                                              { .name = "n", .scalar = 1, .optional = 1 } };
    static const gantry_dtype types[] = { GANTRY_F32, GANTRY_F32, GANTRY_F32, GANTRY_I64 };
    static const char *const defaults[] = { NULL, NULL, NULL, "x.size" };
    static const gantry_kernel own = { .struct_size = sizeof own,
                                       .name = "own",
                                       .summary = "",
                                       GANTRY_KERNEL_ARGS(args),
                                       .flags = GANTRY_KERNEL_RESIDENT,
                                       .host = own_on_host };
    enum { STEPS = 12 };
    gantry_graph *g = gantry_graph_new("users");
    gantry_cuda_code code = GANTRY_CUDA_CODE_INIT;
    const int64_t length = 8192;
    gantry_buffer x[2];
    code.source = own_source;
    code.grid[0] = "ceil_div(n, 512)";
    code.grid[1] = strcmp(threads, "256") == 0 ? "2" : "4";
    code.block[0] = threads;
    code.types = types;
    code.defaults = defaults;
    gantry_graph_add_cuda_kernel(g, &own, &code);
    for (int k = 0; k < 2; k++) {
        x[k] = gantry_graph_buffer(g, k ? "x1" : "x0", GANTRY_F32, 1, &length);
        gantry_buffer_init_uniform(g, x[k], 1 + (uint64_t)k, -1, 1);
        gantry_buffer_output(g, x[k]);
    }
    for (int i = 0; i < STEPS; i++) {
        char where[16];
        snprintf(where, sizeof where, "gpu%d", i / 2 % used);
        gantry_node node = gantry_graph_kernel(g, NULL, "own");
        gantry_node_scalar(g, node, "a", 0.5);
        gantry_node_arg(g, node, "x", gantry_all(x[i % 2]));
        gantry_node_arg(g, node, "y", gantry_all(x[1 - i % 2]));
        gantry_node_on(g, node, where);
    }
    return g;
}

/* Workers call a user's kernel, whose blocks wait at barriers, unless these have another shape. */
START_TEST(users)
{
    if (getenv("FAKE_CUDA_DEVICES")) {
        printf("left out: emulated GPUs run no code that NVRTC compiles\n");
        return;
    }
    for (int used = 1; used <= gpus; used++) {
        char replay[720];
        world w = { .g = users_of(used, _i ? "128" : "256"), .m = ring_machine(used, 1) };
        w.s = make_schedule(w.g, w.m, "device", NULL);
        compare_with_host(w.g, w.s, small ? 3 : 50, replay, sizeof replay);
        printf("held: users %d on %d: %s\n", _i, used, replay);
        if (_i)
            ck_assert_msg(strstr(replay, "its kernel has blocks of 128 x 1 x 1 threads, and workers are 256 x 1 x 1") ||
                              strstr(replay, "workers have code for no stretch"),
                          "%s", replay);
        else
            ck_assert_msg(strncmp(replay, "device", 6) == 0 && !strstr(replay, "not by"), "%s", replay);
        drop(&w);
    }
}
END_TEST

/* Of a start, in series of so many. */
static double least_us(const problem *p, int used, const char *replay, uint64_t starts)
{
    double least = 0;
    world w = make(p, used, replay, false);
    gantry_run *run = open_run(w.s, "cuda");
    for (int i = 0; i < (small ? 2 : 30); i++) {
        gantry_run_info info = GANTRY_RUN_INFO_INIT;
        MUST(gantry_run_repeat(run, starts, MUST_ERR));
        MUST(gantry_run_get_info(run, &info, MUST_ERR));
        least = i == 0 || info.last_us < least ? info.last_us : least;
    }
    gantry_run_free(run);
    drop(&w);
    return least;
}

START_TEST(times)
{
    for (int used = 1; used <= gpus; used++) {
        const problem *p = &problems[_i];
        double device = least_us(p, used, "device", 1), in_series = least_us(p, used, "device", small ? 2 : 50),
               stream = least_us(p, used, "stream", 1), graph = least_us(p, used, "graph", 1);
        printf("ring of %d x %d lists of %d, %d steps, %d lanes: device %.1f us, in series %.1f, stream %.1f, graph "
               "%.1f\n",
               used, p->lists, p->length, p->steps, p->lanes, device, in_series, stream, graph);
    }
}
END_TEST

/* ---- GPUs that something else slows ---- */

/* Another run on the same GPUs, by a thread of its own: on each, a kernel that waits for a random time, and one that
 * keeps all of its memory busy. */
typedef struct slower {
    gantry_graph *g;
    gantry_machine *m;
    gantry_schedule *s;
    gantry_run *run;
    gantry_node node[2]; /* that wait, one a GPU */
    pthread_t thread;
    atomic_bool stop;
    int starts;
    gantry_error err;
} slower;

static gantry_node add_slow(gantry_graph *g, int gpu)
{
    char id[32], where[16];
    const int64_t few = 64, many = small ? 4096 : 4 << 20;
    gantry_buffer b[4];
    for (int k = 0; k < 4; k++) {
        snprintf(id, sizeof id, "b%d_%d", gpu, k);
        b[k] = gantry_graph_buffer(g, id, GANTRY_F32, 1, k < 2 ? &few : &many);
        gantry_buffer_init_value(g, b[k], 0);
        gantry_buffer_set_class(g, b[k], GANTRY_STATE);
    }
    snprintf(where, sizeof where, "gpu%d", gpu);
    gantry_node busy = gantry_graph_kernel(g, NULL, "busy"), copy = gantry_graph_kernel(g, NULL, "copy");
    gantry_node_scalar_dynamic(g, busy, "us", 1);
    for (int k = 0; k < 2; k++) {
        gantry_node_arg(g, busy, k ? "y" : "x", gantry_all(b[k]));
        gantry_node_arg(g, copy, k ? "y" : "x", gantry_all(b[2 + k]));
        gantry_node_on(g, k ? busy : copy, where);
    }
    return busy;
}

static unsigned draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33);
}

static void *slow_down(void *data)
{
    enum { MOST_US = 2000 };
    slower *x = data;
    uint64_t random = 1;
    gantry_status status = GANTRY_OK;
    while (!status && !atomic_load(&x->stop)) {
        uint64_t ticket = 0;
        for (int i = 0; i < gpus && !status; i++)
            status = gantry_run_set_scalar(x->run, x->node[i], "us", draw(&random) % MOST_US, &x->err);
        status = status ? status : gantry_run_start(x->run, &ticket, &x->err);
        status = status ? status : gantry_run_wait(x->run, ticket, &x->err);
        x->starts += !status;
        nanosleep(&(struct timespec){ .tv_nsec = 1000 * (long)(draw(&random) % MOST_US) }, NULL);
    }
    return NULL;
}

static void begin_slowing(slower *x)
{
    *x = (slower){ .g = gantry_graph_new("slower"), .m = ring_machine(gpus, 2) };
    for (int i = 0; i < gpus; i++)
        x->node[i] = add_slow(x->g, i);
    x->s = make_schedule(x->g, x->m, "stream", NULL);
    x->run = open_run(x->s, "cuda");
    ck_assert_int_eq(pthread_create(&x->thread, NULL, slow_down, x), 0);
}

/* The other run is none the worse for what went on beside it. */
static void end_slowing(slower *x)
{
    atomic_store(&x->stop, true);
    pthread_join(x->thread, NULL);
    ck_assert_msg(x->err.status == GANTRY_OK, "%s", x->err.text);
    ck_assert_int_gt(x->starts, 0);
    gantry_run_free(x->run);
    gantry_schedule_free(x->s);
    gantry_machine_free(x->m);
    gantry_graph_free(x->g);
}

/* Workers of one GPU may begin long before those of another, and be held up at any time. */
START_TEST(slowed)
{
    slower other;
    char replay[720];
    world w = make(&problems[_i], gpus, "device", true);
    begin_slowing(&other);
    compare_with_host(w.g, w.s, small ? 3 : 100, replay, sizeof replay);
    end_slowing(&other);
    printf("held: ring %d on %d, slowed %d times: %s\n", _i, gpus, other.starts, replay);
    ck_assert_msg(strncmp(replay, "device", 6) == 0, "%s", replay);
    drop(&w);
}
END_TEST

/* A start that does not end is ended, the error names the op, and the GPUs are free for another run. */
static void check_hung(void)
{
    gantry_error err = { 0 };
    gantry_run *run = NULL;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    uint64_t ticket = 0;
    char replay[720];
    world w = make(&problems[1], gpus, "device", true);
    spoiled_wait spoiled = spoil_wait(w.s, false);
    options.backend = "cuda";
    options.deadline_us = 3e6;
    MUST(gantry_run_new(&run, w.s, &options, MUST_ERR));
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    ck_assert_int_eq(gantry_run_wait(run, ticket, &err), GANTRY_E_TIMEOUT);
    const char *lacked = small ? NULL : lacks(&spoiled, err.text);
    ck_assert_msg(strstr(err.text, "; op ") && !lacked, "%s, not %s", err.text, lacked);
    gantry_run_free(run);
    mend_wait(spoiled);
    compare_with_host(w.g, w.s, 3, replay, sizeof replay);
    drop(&w);
}

START_TEST(hung)
{
    check_hung();
}
END_TEST

/* The watchdog ends one run, and not the other. */
START_TEST(hung_beside_another)
{
    slower other;
    begin_slowing(&other);
    check_hung();
    end_slowing(&other);
}
END_TEST

int main(void)
{
    small = getenv("GANTRY_GPU_SMALL") != NULL;
    gpus = count_gpus() < 2 ? count_gpus() : 2;
    if (gpus == 0) {
        printf("skipped: no GPU, see \"gantry machine\"\n");
        return 77;
    }
    Suite *suite = suite_create("replay by the device");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, rings, 0, PROBLEMS);
    tcase_add_loop_test(tests, series, 0, PROBLEMS);
    tcase_add_loop_test(tests, overlap, 0, 3);
    tcase_add_loop_test(tests, flags, 0, 2);
    tcase_add_loop_test(tests, users, 0, 2);
    tcase_add_loop_test(tests, times, 0, small ? 1 : PROBLEMS);
    tcase_add_loop_test(tests, slowed, 0, small ? 2 : PROBLEMS);
    tcase_add_test(tests, hung);
    tcase_add_test(tests, hung_beside_another);
    suite_add_tcase(suite, tests);
    setenv("CK_FORK", "no", 0); /* CUDA does not survive a fork */
    return run_suite(suite);
}
