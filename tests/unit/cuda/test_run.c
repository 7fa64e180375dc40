/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA back end as a program sees it: functions of its own on streams, arrays that are bound and bound again,
 * states, scalars, failures of kernels, starts that overlap, sizes beyond a chunk. Expected values are computed
 * here. */
#include "control.h"
#include "parcel.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const replays[] = { "stream", "graph" };

static void check_alive(void)
{
    char text[160];
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "left behind: %s", text);
}

/* ---- functions of the program ---- */

static int calls;
static float poison_at = -1; /* an element of this value makes the kernel report 7 */

/* y = 2 x + 1 */
static gantry_status twice(const gantry_launch *l)
{
    if (l->stream) {
        calls++;
        ck_assert_ptr_eq(l->user, &calls);
        ck_assert_int_ge(l->device_ordinal, 0);
        return parcel_queue((parcel_driver){ fakeCudaFunction, cuLaunchKernel }, l, twice, NULL);
    }
    const float *x = l->arg[0].data;
    float *y = l->arg[1].data;
    for (int64_t i = 0; i < l->arg[0].rows; i++) {
        y[i] = 2 * x[i] + 1;
        *l->status = x[i] == poison_at ? 7 : *l->status;
    }
    return GANTRY_OK;
}

/* sum += x, all elements; the CPU does it */
static gantry_status add_up(const gantry_launch *l)
{
    ck_assert_ptr_null(l->stream);
    ck_assert_int_eq(l->device_ordinal, -1);
    const float *x = l->arg[0].data;
    double *sum = l->arg[1].data;
    for (int64_t i = 0; i < l->arg[0].rows; i++)
        sum[0] += x[i];
    return GANTRY_OK;
}

static gantry_status refuse(const gantry_launch *l)
{
    return l->stream ? GANTRY_E_INVALID : GANTRY_OK;
}

/* x -> two GPUs, a part each, there and back once -> y, and the sum of all starts in a state. */
typedef struct line {
    gantry_graph *g;
    gantry_buffer x, y, sum;
    gantry_schedule *s;
    gantry_run *run;
} line;

enum { N = 40000 }; /* 160 KB: page-locked; the sum is staged */

static gantry_node step(gantry_graph *g, gantry_buffer from, gantry_buffer to, int part, const char *on)
{
    gantry_node n = gantry_graph_launch(g, "twice", twice, &calls);
    gantry_node_read(g, n, gantry_part(from, part));
    gantry_node_write(g, n, gantry_part(to, part));
    gantry_node_on(g, n, on);
    return n;
}

static line make_line(const char *replay, int in_flight)
{
    line l = { .g = gantry_graph_new("line") };
    const int64_t n = N, one = 1;
    l.x = gantry_graph_buffer(l.g, "x", GANTRY_F32, 1, &n);
    gantry_buffer a = gantry_graph_buffer(l.g, "a", GANTRY_F32, 1, &n),
                  b = gantry_graph_buffer(l.g, "b", GANTRY_F32, 1, &n);
    l.y = gantry_graph_buffer(l.g, "y", GANTRY_F32, 1, &n);
    l.sum = gantry_graph_buffer(l.g, "sum", GANTRY_F64, 1, &one);
    const gantry_buffer all[] = { l.x, a, b, l.y };
    for (int i = 0; i < 4; i++)
        gantry_buffer_split(l.g, all[i], 2);
    gantry_buffer_set_class(l.g, l.x, GANTRY_INPUT);
    gantry_buffer_set_class(l.g, l.sum, GANTRY_STATE);
    gantry_buffer_init_value(l.g, l.sum, 0);
    gantry_buffer_output(l.g, l.y);
    gantry_buffer_output(l.g, l.sum);
    for (int i = 0; i < 3; i++) {
        step(l.g, all[i], all[i + 1], 0, i % 2 ? "gpu1" : "gpu0");
        step(l.g, all[i], all[i + 1], 1, i % 2 ? "gpu0" : "gpu1");
    }
    gantry_node h = gantry_graph_host(l.g, "add_up", add_up, NULL);
    gantry_node_read(l.g, h, gantry_all(l.y));
    gantry_node_readwrite(l.g, h, gantry_all(l.sum));
    gantry_machine *m = gpu_machine(2, false);
    gantry_schedule_options options = GANTRY_SCHEDULE_OPTIONS_INIT;
    options.replay = replay;
    if (in_flight > 1) {
        options.objective = "period";
        options.in_flight = in_flight;
    }
    MUST(gantry_schedule_new(&l.s, l.g, m, &options, MUST_ERR));
    gantry_machine_free(m);
    l.run = open_run(l.s, "cuda");
    return l;
}

static void free_line(line *l)
{
    gantry_run_free(l->run);
    gantry_schedule_free(l->s);
    gantry_graph_free(l->g);
    check_alive();
}

static void fill(float *x, int from)
{
    for (int i = 0; i < N; i++)
        x[i] = (float)((i * 7 + from) % 1000);
}

/* 8 x + 7, exactly, in floats. */
static void expect_y(const float *x, const float *y)
{
    for (int i = 0; i < N; i++)
        ck_assert_msg(y[i] == 8 * x[i] + 7, "element %d is %g, not %g", i, (double)y[i], (double)(8 * x[i] + 7));
}

static double sum_of(const float *x)
{
    double sum = 0;
    for (int i = 0; i < N; i++)
        sum += 8 * x[i] + 7;
    return sum;
}

static const void *output(const line *l, gantry_buffer b)
{
    const void *at = NULL;
    uint64_t bytes = 0;
    MUST(gantry_run_output(l->run, b, &at, &bytes, MUST_ERR));
    return at;
}

static void start_and_wait(line *l)
{
    uint64_t ticket = 0;
    MUST(gantry_run_start(l->run, &ticket, MUST_ERR));
    MUST(gantry_run_wait(l->run, ticket, MUST_ERR));
}

/* Inputs of all kinds of addresses, an output of the program's; the state goes on from start to start. */
START_TEST(bound_again_and_again)
{
    fakeCudaDevices(2, _i / 2 ? "none" : "all", 0);
    line l = make_line(replays[_i % 2], 1);
    float *room = malloc((2 * N + 5) * sizeof *room), *y = malloc(N * sizeof *y);
    double sum = 0;
    for (int start = 0; start < 6; start++) {
        float *x = room + (start % 3 == 0 ? 1 : start % 3 == 1 ? N + 3 : 2);
        fakeCudaSeed((uint64_t)start + 1);
        fill(x, start);
        MUST(gantry_run_bind(l.run, l.x, x, N * sizeof *x, MUST_ERR));
        if (start == 2)
            MUST(gantry_run_bind_output(l.run, l.y, y, N * sizeof *y, MUST_ERR));
        start_and_wait(&l);
        sum += sum_of(x);
        ck_assert_ptr_eq(start < 2 ? NULL : y, start < 2 ? NULL : output(&l, l.y));
        expect_y(x, output(&l, l.y));
        ck_assert_double_eq(*(const double *)output(&l, l.sum), sum);
    }
    free_line(&l);
    free(room);
    free(y);
}
END_TEST

/* Another memory at the old address must be locked anew: the fake knows what is locked by address, so the calls are
 * counted. */
START_TEST(bound_to_the_same_address)
{
    fakeCudaDevices(2, "all", 0);
    line l = make_line(replays[_i], 1);
    float *x = malloc(N * sizeof *x);
    fill(x, 0);
    for (int start = 0; start < 3; start++) {
        int before = fakeCudaCalls("cuMemHostRegister");
        MUST(gantry_run_bind(l.run, l.x, x, N * sizeof *x, MUST_ERR));
        start_and_wait(&l);
        ck_assert_int_gt(fakeCudaCalls("cuMemHostRegister"), before);
        before = fakeCudaCalls("cuMemHostRegister");
        start_and_wait(&l);
        ck_assert_int_eq(fakeCudaCalls("cuMemHostRegister"), before);
    }
    free_line(&l);
    free(x);
}
END_TEST

/* Launches are called once where a graph is replayed, at every start where streams are. */
START_TEST(how_often_functions_are_called)
{
    fakeCudaDevices(2, "all", 0);
    line l = make_line(replays[_i], 1);
    float *x = malloc(N * sizeof *x);
    fill(x, 0);
    MUST(gantry_run_bind(l.run, l.x, x, N * sizeof *x, MUST_ERR));
    calls = 0;
    for (int start = 0; start < 3; start++)
        start_and_wait(&l);
    ck_assert_int_eq(calls, _i ? 6 : 18);
    free_line(&l);
    free(x);
}
END_TEST

/* A kernel that reports failure ends that start; states begin again, the next start succeeds. */
START_TEST(a_kernel_fails)
{
    gantry_error err = { 0 };
    uint64_t ticket = 0;
    fakeCudaDevices(2, "all", 0);
    line l = make_line(replays[_i], 1);
    float *x = malloc(N * sizeof *x);
    fill(x, 0);
    MUST(gantry_run_bind(l.run, l.x, x, N * sizeof *x, MUST_ERR));
    start_and_wait(&l);
    poison_at = 999;
    MUST(gantry_run_start(l.run, &ticket, MUST_ERR));
    ck_assert_int_eq(gantry_run_wait(l.run, ticket, &err), GANTRY_E_KERNEL);
    poison_at = -1;
    ck_assert_msg(strncmp(err.text, "node \"twice", 11) == 0 &&
                      strstr(err.text, "its kernel left 7 in the status word"),
                  "%s", err.text);
    ck_assert_int_eq(err.native, 7);
    ck_assert(err.device == 0 || err.device == 1);
    for (int start = 1; start < 3; start++) {
        start_and_wait(&l);
        expect_y(x, output(&l, l.y));
        ck_assert_double_eq(*(const double *)output(&l, l.sum), start * sum_of(x));
    }
    free_line(&l);
    free(x);
}
END_TEST

START_TEST(a_function_refuses)
{
    gantry_error err = { 0 };
    uint64_t ticket = 0;
    const int64_t n = 4;
    fakeCudaDevices(1, "all", 0);
    gantry_graph *g = gantry_graph_new("refuse");
    gantry_buffer y = gantry_graph_buffer(g, "y", GANTRY_F32, 1, &n);
    gantry_buffer_output(g, y);
    gantry_node node = gantry_graph_launch(g, "refuse", refuse, NULL);
    gantry_node_write(g, node, gantry_all(y));
    gantry_node_on(g, node, "gpu0");
    gantry_machine *m = gpu_machine(1, false);
    gantry_schedule *s = make_schedule(g, m, replays[_i], NULL);
    gantry_run *run = open_run(s, "cuda");
    for (int k = 0; k < 2; k++) {
        ck_assert_int_eq(gantry_run_start(run, &ticket, &err), GANTRY_E_KERNEL);
        ck_assert_str_eq(err.text,
                         "node \"refuse\" failed on device \"gpu0\": its function returned GANTRY_E_INVALID (-2)");
    }
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
    check_alive();
}
END_TEST

/* Starts that overlap, each with an input and an output of its own. */
START_TEST(several_in_flight)
{
    enum { STARTS = 9, FLIGHT = 3 };
    float *x[STARTS], *y[STARTS];
    uint64_t ticket[STARTS];
    fakeCudaDevices(2, "all", 0);
    for (int seed = 1; seed <= 10; seed++) {
        line l = make_line("stream", FLIGHT); /* a graph does not overlap itself */
        double sum = 0;
        fakeCudaSeed((uint64_t)seed);
        for (int i = 0; i < STARTS; i++) {
            x[i] = malloc(N * sizeof(float));
            y[i] = malloc(N * sizeof(float));
            fill(x[i], i * 13);
            MUST(gantry_run_bind(l.run, l.x, x[i], N * sizeof(float), MUST_ERR));
            MUST(gantry_run_bind_output(l.run, l.y, y[i], N * sizeof(float), MUST_ERR));
            MUST(gantry_run_start(l.run, &ticket[i], MUST_ERR));
        }
        for (int i = 0; i < STARTS; i++) {
            MUST(gantry_run_wait(l.run, ticket[i], MUST_ERR));
            sum += sum_of(x[i]);
        }
        ck_assert_double_eq(*(const double *)output(&l, l.sum), sum);
        for (int i = 0; i < STARTS; i++)
            expect_y(x[i], y[i]);
        free_line(&l);
        for (int i = 0; i < STARTS; i++) {
            free(x[i]);
            free(y[i]);
        }
    }
}
END_TEST

/* ---- fills, scalars, collectives, times ---- */

typedef struct small {
    gantry_graph *g;
    gantry_machine *m;
    gantry_schedule *s;
    gantry_run *run;
} small;

/* From a graph file's text; the same on the host gives what is expected. */
static small open_text(const char *text, const char *replay, int gpus, const char *backend, int record)
{
    small w = { 0 };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    MUST(gantry_graph_parse(&w.g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    w.m = gpu_machine(gpus, false);
    w.s = make_schedule(w.g, w.m, replay, "round-robin");
    options.backend = backend;
    options.record_trace = record;
    MUST(gantry_run_new(&w.run, w.s, &options, MUST_ERR));
    return w;
}

static void close_text(small *w)
{
    gantry_run_free(w->run);
    gantry_schedule_free(w->s);
    gantry_machine_free(w->m);
    gantry_graph_free(w->g);
}

static void like_host(const char *text, int gpus, int seeds)
{
    small host = open_text(text, "stream", gpus, "host", 0);
    results want = run_results(host.run, host.g);
    close_text(&host);
    for (int seed = 1; seed <= seeds; seed++) {
        for (int k = 0; k < 2; k++) {
            fakeCudaSeed((uint64_t)seed);
            small w = open_text(text, replays[k], gpus, "cuda", 0);
            results got = run_results(w.run, w.g);
            ck_assert_msg(same(&got, &want), "replay %s, seed %d: %s", replays[k], seed, text);
            close_text(&w);
            check_alive();
        }
    }
}

/* Patterns of 1, 2, 4 and 8 bytes, equal halves or not, and what has no pattern. */
START_TEST(fills)
{
    static const char *const dtypes[] = { "i8", "u8", "f16", "bf16", "f32", "i32", "f64", "i64", "u64" };
    static const char *const values[] = { "\"value\": 0", "\"value\": 3", "\"value\": 1.1",
                                          "\"random\": {\"seed\": 5, \"low\": 0, \"high\": 100}",
                                          "\"iota\": {\"start\": 2, \"step\": 3}" };
    fakeCudaDevices(2, "all", 0);
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            char text[600];
            if (v == 2 && dtypes[d][0] != 'f' && dtypes[d][0] != 'b')
                continue;
            snprintf(text, sizeof text,
                     "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"%s\",\"shape\":[37],\"split\":2},"
                     "\"b\":{\"dtype\":\"%s\",\"shape\":[37],\"split\":2,\"output\":true}},\"nodes\":["
                     "{\"id\":\"f[i]\",\"for\":{\"i\":2},\"fill\":{\"to\":\"a[i]\",%s},\"on\":\"gpu0\"},"
                     "{\"id\":\"k[i]\",\"for\":{\"i\":2},\"kernel\":\"copy\",\"args\":{\"x\":\"a[i]\",\"y\":\"b[i]\"},"
                     "\"on\":\"gpu1\"}]}",
                     dtypes[d], dtypes[d], values[v]);
            like_host(text, 2, 1);
        }
    }
}
END_TEST

/* Every kind, on as many GPUs as ranks; sums of numbers for which the order matters. */
START_TEST(collectives)
{
    static const struct {
        const char *kind, *in, *out, *more;
    } cases[] = {
        { "all_reduce", "[\"a\",\"b\",\"c\",\"d\"]", "[\"w\",\"x\",\"y\",\"z\"]", ",\"op\":\"sum\"" },
        { "all_reduce", "[\"a\",\"b\",\"c\",\"d\"]", "[\"a\",\"b\",\"c\",\"d\"]", ",\"op\":\"max\"" },
        { "all_reduce", "[\"d\",\"b\",\"c\",\"a\"]", "[\"z\",\"x\",\"y\",\"w\"]", ",\"op\":\"prod\"" },
        { "reduce", "[\"a\",\"b\",\"c\",\"d\"]", "[\"w\"]", ",\"op\":\"sum\",\"root\":2" },
        { "broadcast", "[\"a\"]", "[\"w\",\"x\",\"y\",\"z\"]", ",\"root\":0" },
        { "all_to_all", "[\"a\",\"b\",\"c\",\"d\"]", "[\"w\",\"x\",\"y\",\"z\"]", "" },
        { "gather", "[\"a{0:2}\",\"b{0:2}\",\"c{0:2}\",\"d{0:2}\"]", "[\"w\"]", ",\"root\":1" },
        { "all_gather", "[\"a{0:2}\",\"b{0:2}\",\"c{0:2}\",\"d{0:2}\"]", "[\"w\",\"x\",\"y\",\"z\"]", "" },
        { "scatter", "[\"a\"]", "[\"w{0:2}\",\"x{2:4}\",\"y{4:6}\",\"z{6:8}\"]", ",\"root\":0" },
        { "reduce_scatter", "[\"a\",\"b\",\"c\",\"d\"]", "[\"w{0:2}\",\"x{2:4}\",\"y{4:6}\",\"z{6:8}\"]",
          ",\"op\":\"sum\"" },
    };
    fakeCudaDevices(4, _i ? "none" : "all", 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[3000];
        int length = snprintf(text, sizeof text, "{\"gantry\":1,\"buffers\":{");
        for (const char *name = "abcdwxyz"; *name; name++) {
            length += snprintf(text + length, sizeof text - (size_t)length,
                               "\"%c0\":{\"dtype\":\"f32\",\"shape\":[8,50],\"init\":{\"random\":{\"seed\":%d}}},"
                               "\"%c\":{\"dtype\":\"f32\",\"shape\":[8,50],\"output\":true}%s",
                               *name, *name, *name, *name == 'z' ? "" : ",");
        }
        length += snprintf(text + length, sizeof text - (size_t)length, "},\"nodes\":[");
        for (const char *name = "abcdwxyz"; *name; name++) {
            length +=
                snprintf(text + length, sizeof text - (size_t)length,
                         "{\"id\":\"c%c\",\"kernel\":\"copy\",\"args\":{\"x\":\"%c0\",\"y\":\"%c\"},\"on\":\"gpu%d\"},",
                         *name, *name, *name, (int)(*name >= 'w' ? *name - 'w' : *name - 'a'));
        }
        snprintf(text + length, sizeof text - (size_t)length,
                 "{\"id\":\"it\",\"collective\":\"%s\",\"in\":%s,\"out\":%s%s}]}", cases[i].kind, cases[i].in,
                 cases[i].out, cases[i].more);
        like_host(text, 4, 6);
    }
}
END_TEST

/* More than a chunk: staged copies in both halves, reductions piece by piece. */
START_TEST(large)
{
    static const char text[] =
        "{\"gantry\":1,\"params\":{\"n\":3000001},\"buffers\":{"
        "\"x\":{\"dtype\":\"f32\",\"shape\":[\"n\"],\"init\":{\"random\":{\"seed\":3}}},"
        "\"y\":{\"dtype\":\"f32\",\"shape\":[\"n\"]},\"z\":{\"dtype\":\"f32\",\"shape\":[\"n\"],\"output\":true},"
        "\"s\":{\"dtype\":\"f32\",\"shape\":[\"n\"]},\"t\":{\"dtype\":\"f32\",\"shape\":[\"n\"],\"output\":true}},"
        "\"nodes\":[{\"id\":\"a\",\"kernel\":\"scale\",\"args\":{\"a\":2,\"x\":\"x\",\"y\":\"y\"},\"on\":\"gpu0\"},"
        "{\"id\":\"b\",\"kernel\":\"scale\",\"args\":{\"a\":3,\"x\":\"y\",\"y\":\"z\"},\"on\":\"gpu1\"},"
        "{\"id\":\"c\",\"kernel\":\"scale\",\"args\":{\"a\":5,\"x\":\"x\",\"y\":\"s\"},\"on\":\"gpu1\"},"
        "{\"id\":\"d\",\"collective\":\"reduce\",\"op\":\"sum\",\"in\":[\"y\",\"s\"],\"out\":[\"t\"],\"root\":0}]}";
    fakeCudaDevices(2, _i ? "none" : "all", 0);
    like_host(text, 2, 2);
}
END_TEST

START_TEST(dynamic_scalars)
{
    static const char text[] =
        "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[100],\"init\":\"iota\"},"
        "\"y\":{\"dtype\":\"f32\",\"shape\":[100],\"output\":true}},"
        "\"nodes\":[{\"id\":\"s\",\"kernel\":\"scale\",\"args\":{\"a\":{\"dynamic\":2},\"x\":\"x\",\"y\":\"y\"}}]}";
    fakeCudaDevices(1, "all", 0);
    small w = open_text(text, replays[_i], 1, "cuda", 0);
    for (int start = 0; start < 4; start++) {
        const void *at = NULL;
        uint64_t bytes = 0, ticket = 0;
        if (start > 0)
            MUST(gantry_run_set_scalar(w.run, gantry_graph_find_node(w.g, "s"), "a", start + 2, MUST_ERR));
        MUST(gantry_run_start(w.run, &ticket, MUST_ERR));
        MUST(gantry_run_wait(w.run, ticket, MUST_ERR));
        MUST(gantry_run_output(w.run, gantry_graph_find_buffer(w.g, "y"), &at, &bytes, MUST_ERR));
        for (int i = 0; i < 100; i++)
            ck_assert_float_eq(((const float *)at)[i], (float)(i * (start + 2)));
    }
    close_text(&w);
    check_alive();
}
END_TEST

/* Times of ops: each ends after it began, after what it waits for, and before the start ended. */
START_TEST(times)
{
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    char *text = NULL;
    size_t length = 0;
    fakeCudaDevices(2, "all", 0);
    line l = make_line("graph", 1);
    gantry_run_free(l.run);
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "cuda";
    options.record_trace = 1;
    MUST(gantry_run_new(&l.run, l.s, &options, MUST_ERR));
    float *x = malloc(N * sizeof *x);
    fill(x, 0);
    MUST(gantry_run_bind(l.run, l.x, x, N * sizeof *x, MUST_ERR));
    for (int start = 0; start < 2; start++)
        start_and_wait(&l);
    MUST(gantry_run_get_info(l.run, &info, MUST_ERR));
    ck_assert_str_eq(info.replay, "stream; times by events, CUPTI cannot be used");
    ck_assert_double_gt(info.last_us, 0);
    MUST(gantry_run_trace(l.run, &text, &length, MUST_ERR));
    int events = 0;
    double last = 0;
    for (const char *at = text; (at = strstr(at, "\"pid\":0,\"tid\":")); at++) {
        double ts = 0, dur = 0;
        const char *place = strstr(at, "\"ts\":");
        if (place && place - at < 40 && sscanf(place, "\"ts\":%lf,\"dur\":%lf", &ts, &dur) == 2) {
            events++;
            ck_assert_double_ge(dur, 0);
            ck_assert_double_ge(ts, 0);
            ck_assert_double_gt(ts + dur, 0); /* on every device */
            last = ts + dur > last ? ts + dur : last;
        }
    }
    ck_assert_int_gt(events, 12);
    ck_assert_double_le(last, info.last_us + 1);
    gantry_free(text);
    free_line(&l);
    free(x);
}
END_TEST

/* Six chains of two on one GPU, which has three lanes for them. */
static gantry_graph *chains(void)
{
    gantry_graph *g = gantry_graph_new("chains");
    for (int i = 0; i < 6; i++) {
        char name[16];
        gantry_buffer b[2];
        for (int k = 0; k < 2; k++) {
            snprintf(name, sizeof name, "b%d", 2 * i + k);
            b[k] = gantry_graph_buffer(g, name, GANTRY_F32, 1, (int64_t[]){ 5000 + i });
        }
        gantry_buffer_set_class(g, b[0], GANTRY_STATE);
        gantry_buffer_init_value(g, b[0], i + 1);
        gantry_buffer_output(g, b[0]);
        for (int k = 0; k < 2; k++) {
            gantry_node n = gantry_graph_kernel(g, k ? "back" : "there", "scale");
            gantry_node_scalar(g, n, "a", 1.5);
            gantry_node_arg(g, n, "x", gantry_all(b[k]));
            gantry_node_arg(g, n, "y", gantry_all(b[1 - k]));
        }
    }
    return g;
}

/* Ops that are kept apart share one stream, and compute the same. */
START_TEST(kept_apart)
{
    fakeCudaDevices(1, "all", 0);
    gantry_graph *g = chains();
    gantry_machine *m = gpu_machine(1, false);
    gantry_schedule *s = make_schedule(g, m, replays[_i], "heft");
    results found[2];
    int streams[2];
    for (int apart = 0; apart < 2; apart++) {
        gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
        gantry_run *run = NULL;
        options.backend = "cuda";
        options.apart = apart;
        streams[apart] = fakeCudaCalls("cuStreamCreate");
        MUST(gantry_run_new(&run, s, &options, MUST_ERR));
        streams[apart] = fakeCudaCalls("cuStreamCreate") - streams[apart];
        for (int i = 0; i < 3; i++)
            found[apart] = run_results(run, g);
        gantry_run_free(run);
    }
    ck_assert_int_eq(found[0].count, 6);
    ck_assert(same(&found[0], &found[1]));
    ck_assert_int_eq(streams[0] - streams[1], 2);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
    check_alive();
}
END_TEST

/* Page-locked arrays that a run makes until its first start has ended, with so many states of rising size; each is
 * right at the end. */
static int page_locked_with(int states)
{
    enum { ROWS = 16370 }; /* the last ones are larger than 64 KiB */
    gantry_graph *g = gantry_graph_new("states");
    gantry_buffer all[40];
    for (int i = 0; i < states; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        all[i] = gantry_graph_buffer(g, name, GANTRY_F32, 1, (int64_t[]){ ROWS + i });
        gantry_buffer_set_class(g, all[i], GANTRY_STATE);
        gantry_buffer_init_value(g, all[i], i + 1);
        gantry_node n = gantry_graph_kernel(g, "scale", "scale");
        gantry_node_scalar(g, n, "a", 2);
        gantry_node_arg(g, n, "x", gantry_all(all[i]));
        gantry_buffer out = gantry_graph_buffer(g, strcat(name, "out"), GANTRY_F32, 1, (int64_t[]){ ROWS + i });
        gantry_buffer_output(g, out);
        gantry_node_arg(g, n, "y", gantry_all(out));
    }
    gantry_machine *m = gpu_machine(2, false);
    gantry_schedule *s = make_schedule(g, m, "graph", "round-robin");
    int before = fakeCudaCalls("cuMemHostAlloc");
    gantry_run *run = open_run(s, "cuda");
    uint64_t ticket, bytes;
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    MUST(gantry_run_wait(run, ticket, MUST_ERR));
    int made = fakeCudaCalls("cuMemHostAlloc") - before;
    for (int i = 0; i < states; i++) {
        char name[16];
        const void *at;
        snprintf(name, sizeof name, "s%dout", i);
        MUST(gantry_run_output(run, gantry_graph_find_buffer(g, name), &at, &bytes, MUST_ERR));
        const float *y = at;
        ck_assert(y[0] == 2 * ((float)i + 1) && y[ROWS - 1 + i] == y[0]);
    }
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
    check_alive();
    return made;
}

/* Page-locking costs more than most states: not for each of them. */
START_TEST(states_share_a_page_locked_array)
{
    fakeCudaDevices(2, "all", 0);
    int one = page_locked_with(1), many = page_locked_with(40);
    ck_assert_msg(many <= one + 10, "%d, with one state %d", many, one); /* lanes have some, too */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda run");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, bound_again_and_again, 0, 4);
    tcase_add_test(tests, states_share_a_page_locked_array);
    tcase_add_loop_test(tests, bound_to_the_same_address, 0, 2);
    tcase_add_loop_test(tests, how_often_functions_are_called, 0, 2);
    tcase_add_loop_test(tests, a_kernel_fails, 0, 2);
    tcase_add_loop_test(tests, a_function_refuses, 0, 2);
    tcase_add_test(tests, several_in_flight);
    tcase_add_test(tests, fills);
    tcase_add_loop_test(tests, collectives, 0, 2);
    tcase_add_loop_test(tests, large, 0, 2);
    tcase_add_loop_test(tests, dynamic_scalars, 0, 2);
    tcase_add_test(tests, times);
    tcase_add_loop_test(tests, kept_apart, 0, 2);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
