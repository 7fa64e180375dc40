/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts by the device that ops of NCCL cut into segments: the real module and its resident kernel, emulated, beside
 * the fake NCCL. There no kernel of NCCL begins on a GPU that has a resident kernel, nor the other way round, as either
 * may need all of it: what would wait for the other in such a state ends the program.
 */
#include "control.h"
#include "rings.h"
#include "schedule/schedule.h"

#include <stdio.h>
#include <string.h>

int fakeNcclAlive(void);

enum { TEXT = 65536, SEEDS = 9 };

static unsigned draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33);
}

typedef struct world {
    gantry_graph *g;
    gantry_machine *m;
    gantry_schedule *s;
    int cuts;
} world;

/* ---- graphs ---- */

enum { ARRAYS = 4 };

/* One sum on each GPU, of what it has and what some GPU has. */
static int add_row(char *text, int at, int gpus, int *node, uint64_t *seed)
{
    unsigned x = draw(seed) % ARRAYS, y = (x + 1) % ARRAYS, z = (x + 2) % ARRAYS, shift = draw(seed) % 3;
    for (int i = 0; i < gpus; i++, (*node)++)
        at += snprintf(text + at, TEXT - (size_t)at,
                       "%s{\"id\":\"n%d\",\"kernel\":\"add\",\"on\":%d,\"args\":{\"x\":\"b%u[%d]\",\"y\":\"b%u[%d]\","
                       "\"z\":\"b%u[%d]\"}}",
                       *node ? "," : "", *node, i + 1, x, i, y, (i + (int)shift) % gpus, z, i);
    return at;
}

/* Over some GPUs that follow each other: ranks of the others go on meanwhile. */
static int add_collective(char *text, int at, int gpus, int *node, uint64_t *seed)
{
    static const char *const ops[] = { "sum", "max" };
    int count = gpus > 2 && draw(seed) % 3 == 0 ? gpus - 1 : gpus, first = (int)(draw(seed) % 2) * (gpus - count);
    unsigned x = draw(seed) % ARRAYS, y = (x + 1) % ARRAYS;
    at += snprintf(text + at, TEXT - (size_t)at, ",{\"id\":\"n%d\",\"collective\":\"all_reduce\",\"op\":\"%s\"", *node,
                   ops[draw(seed) % 2]);
    for (int part = 0; part < 3; part++) {
        static const char *const names[] = { "on", "in", "out" };
        at += snprintf(text + at, TEXT - (size_t)at, ",\"%s\":[", names[part]);
        for (int i = first; i < first + count; i++)
            at += part ? snprintf(text + at, TEXT - (size_t)at, "%s\"b%u[%d]\"", i > first ? "," : "",
                                  part == 1 ? x : y, i)
                       : snprintf(text + at, TEXT - (size_t)at, "%s%d", i > first ? "," : "", i + 1);
        at += snprintf(text + at, TEXT - (size_t)at, "]");
    }
    ++*node;
    return at + snprintf(text + at, TEXT - (size_t)at, "}");
}

/* `seed`: 0: rows, a collective, rows, a collective, rows. */
static gantry_graph *graph_of(int gpus, uint64_t seed)
{
    static char text[TEXT];
    bool any = seed > 0;
    int parts = any ? 2 + (int)(draw(&seed) % 4) : 3, node = 0;
    unsigned rows = any ? 8 * (1 + draw(&seed) % 100) : 64;
    int at = snprintf(text, TEXT, "{\"gantry\":1,\"buffers\":{");
    for (int i = 0; i < ARRAYS; i++)
        at += snprintf(text + at, TEXT - (size_t)at,
                       "%s\"b%d\":{\"dtype\":\"u64\",\"shape\":[%u],\"split\":%d,\"init\":\"iota\",\"output\":true%s}",
                       i ? "," : "", i, rows * (unsigned)gpus, gpus,
                       !any || draw(&seed) % 2 ? ",\"class\":\"state\"" : "");
    at += snprintf(text + at, TEXT - (size_t)at, "},\"nodes\":[");
    for (int part = 0; part < parts; part++) {
        int calls = part ? 1 + (any && draw(&seed) % 3 == 0) : 0, steps = any ? (int)(draw(&seed) % 9) : 6;
        for (int i = 0; i < calls; i++)
            at = add_collective(text, at, gpus, &node, &seed);
        for (int i = 0; i < steps + 6 * !part; i++)
            at = add_row(text, at, gpus, &node, &seed);
    }
    snprintf(text + at, TEXT - (size_t)at, "]}");
    gantry_graph *g = NULL;
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    return g;
}

static world make(int gpus, int lanes, uint64_t seed, const char *replay, int in_flight)
{
    world w = { .g = graph_of(gpus, seed), .m = ring_machine(gpus, lanes) };
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    o.replay = replay;
    o.policy = "round-robin";
    o.objective = in_flight > 1 ? "period" : NULL;
    o.in_flight = in_flight;
    MUST(gantry_schedule_new(&w.s, w.g, w.m, &o, MUST_ERR));
    for (size_t i = 0; i < w.s->ops.count; i++) {
        gy_op *op = &w.s->ops.at[i];
        bool cuts = op->kind == GY_OP_COLLECTIVE;
        op->algorithm = cuts ? GY_ALGORITHM_NCCL : op->algorithm;
        w.cuts += cuts;
    }
    return w;
}

static void drop(world *w)
{
    char text[160];
    gantry_schedule_free(w->s);
    gantry_machine_free(w->m);
    gantry_graph_free(w->g);
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "left behind: %s", text);
    ck_assert_int_eq(fakeNcclAlive(), 0);
}

static int launches(void)
{
    return fakeCudaCalls("cuLaunchCooperativeKernel");
}

/* ---- tests ---- */

/* Two calls of NCCL: three kernels on each GPU in a start. */
START_TEST(segments)
{
    int gpus = 2 + _i % 2;
    fakeCudaDevices(gpus, "all", 0);
    world w = make(gpus, 1 + _i / 2 % 2, 0, "device", 1);
    fakeCudaSeed((uint64_t)_i + 1);
    gantry_run *host = open_run(w.s, "host"), *run = open_run(w.s, "cuda");
    for (int start = 0; start < 3; start++) {
        int before = launches(), calls = fakeCudaCalls("ncclAllReduce");
        results wanted = run_results(host, w.g), got = run_results(run, w.g);
        ck_assert_msg(same(&wanted, &got), "start %d", start);
        ck_assert_int_eq(w.cuts, 2);
        ck_assert_int_eq(launches() - before, 3 * gpus);
        ck_assert_int_eq(fakeCudaCalls("ncclAllReduce") - calls, 2 * gpus);
    }
    const char *replay = replay_of(run);
    ck_assert_msg(!strncmp(replay, "device", 6) &&
                      strstr(replay,
                             "; up to 3 kernels of workers a GPU, with collectives between them; NCCL 2.28.9 does "
                             "2 collectives"),
                  "%s", replay);
    gantry_run_free(host);
    gantry_run_free(run);
    drop(&w);
}
END_TEST

START_TEST(random_graphs)
{
    char replay[512];
    int gpus = 2 + _i % 3;
    fakeCudaDevices(gpus, "all", 0);
    world w = make(gpus, 1 + _i % 4, (uint64_t)_i + 1, "device", 1);
    fakeCudaSeed((uint64_t)_i + 1);
    int before = launches();
    compare_with_host(w.g, w.s, 3, replay, sizeof replay);
    ck_assert_msg(strncmp(replay, "device", 6) == 0, "%s", replay);
    ck_assert_int_gt(launches(), before);
    drop(&w);
}
END_TEST

/* Sums that are alike, of what each GPU has copied, and copies of them; on links so slow that they are worth a batch.
 */
static world make_alike(void)
{
    enum { COUNT = 5 };
    static const char slow[] =
        "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},{\"id\":\"gpu0\",\"capacity\":"
        "\"64MiB\"},{\"id\":\"gpu1\",\"capacity\":\"64MiB\"}],\"devices\":[{\"id\":\"gpu0\",\"type\":\"gpu\","
        "\"memory\":"
        "\"gpu0\",\"ordinal\":0},{\"id\":\"gpu1\",\"type\":\"gpu\",\"memory\":\"gpu1\",\"ordinal\":1}],\"routes\":[{"
        "\"from\":"
        "\"*\",\"to\":\"*\",\"latency_us\":50,\"bandwidth_gbs\":100}]}";
    world w = { .g = gantry_graph_new("alike") };
    for (int k = 0; k < COUNT; k++) {
        gantry_buffer b[4];
        for (int i = 0; i < 4; i++) {
            char name[16];
            snprintf(name, sizeof name, "%c%d", "xaby"[i], k);
            b[i] = gantry_graph_buffer(w.g, name, GANTRY_U64, 1, (int64_t[]){ 2 * (33 + k) });
            gantry_buffer_split(w.g, b[i], 2);
        }
        gantry_buffer_init_iota(w.g, b[0]);
        gantry_buffer_output(w.g, b[3]);
        for (int p = 0; p < 4; p++) {
            if (p == 2)
                gantry_graph_collective(w.g, NULL, GANTRY_ALL_REDUCE, GANTRY_SUM, 2,
                                        (gantry_region[]){ gantry_part(b[1], 0), gantry_part(b[1], 1) }, 2,
                                        (gantry_region[]){ gantry_part(b[2], 0), gantry_part(b[2], 1) }, 0);
            gantry_node n = gantry_graph_kernel(w.g, NULL, "copy");
            gantry_node_arg(w.g, n, "x", gantry_part(b[p / 2 * 2], p % 2));
            gantry_node_arg(w.g, n, "y", gantry_part(b[p / 2 * 2 + 1], p % 2));
            gantry_node_on(w.g, n, p % 2 ? "gpu1" : "gpu0");
        }
    }
    MUST(gantry_machine_parse(&w.m, slow, sizeof slow - 1, "machine of the test", MUST_ERR));
    w.s = make_schedule(w.g, w.m, "device", "round-robin");
    return w;
}

/* A batch is one group call, so one cut. */
START_TEST(batches)
{
    char replay[720], text[80];
    int heads = 0, joined = 0;
    fakeCudaDevices(2, "all", 0);
    fakeCudaSeed((uint64_t)_i + 1);
    world w = make_alike();
    for (size_t i = 0; i < w.s->ops.count; i++) {
        gy_op *op = &w.s->ops.at[i];
        if (op->kind != GY_OP_COLLECTIVE)
            continue;
        op->algorithm = GY_ALGORITHM_NCCL;
        heads += !op->joined;
        joined += op->joined;
    }
    compare_with_host(w.g, w.s, 3, replay, sizeof replay);
    snprintf(text, sizeof text, "; up to %d kernels of workers a GPU", heads + 1);
    ck_assert_msg(joined > 0 && !strncmp(replay, "device", 6) && strstr(replay, text), "%s, not %s (%d joined)", replay,
                  text, joined);
    drop(&w);
}
END_TEST

/* Several starts under way: the first kernel of one comes behind the last call of NCCL of the one before. */
START_TEST(in_flight)
{
    enum { STARTS = 5, MOST = 3 };
    fakeCudaDevices(2 + _i % 2, "all", 0);
    world w = make(2 + _i % 2, 2, (uint64_t)_i + 100, "device", 2 + _i % 2);
    uint64_t ticket[STARTS] = { 0 };
    fakeCudaSeed((uint64_t)_i + 1);
    gantry_run *host = open_run(w.s, "host"), *run = open_run(w.s, "cuda");
    results wanted = { .count = 0 };
    for (int start = 0; start < STARTS; start++) {
        wanted = run_results(host, w.g);
        MUST(gantry_run_start(run, &ticket[start], MUST_ERR));
        if (start >= MOST - 1)
            MUST(gantry_run_wait(run, ticket[start - (MOST - 1)], MUST_ERR));
    }
    MUST(gantry_run_wait(run, ticket[STARTS - 1], MUST_ERR));
    results got = outputs_of(run, w.g);
    ck_assert(same(&wanted, &got));
    ck_assert_msg(strncmp(replay_of(run), "device", 6) == 0, "%s", replay_of(run));
    gantry_run_free(host);
    gantry_run_free(run);
    drop(&w);
}
END_TEST

/* Runs take turns, as they do with either alone. */
START_TEST(two_runs)
{
    enum { RUNS = 2, STARTS = 2 };
    gantry_run *run[RUNS];
    uint64_t ticket[RUNS];
    world w[RUNS];
    fakeCudaDevices(3, "all", 0);
    fakeCudaSeed((uint64_t)_i + 1);
    for (int k = 0; k < RUNS; k++) {
        w[k] = make(3, 2, k ? (uint64_t)_i + 200 : 0, "device", 1);
        run[k] = open_run(w[k].s, "cuda");
    }
    for (int start = 0; start < STARTS; start++) {
        for (int k = 0; k < RUNS; k++)
            MUST(gantry_run_start(run[(k + start) % RUNS], &ticket[(k + start) % RUNS], MUST_ERR));
        for (int k = RUNS; k-- > 0;)
            MUST(gantry_run_wait(run[k], ticket[k], MUST_ERR));
    }
    for (int k = 0; k < RUNS; k++) {
        gantry_run *host = open_run(w[k].s, "host");
        results wanted = { .count = 0 }, got = outputs_of(run[k], w[k].g);
        for (int start = 0; start < STARTS; start++)
            wanted = run_results(host, w[k].g);
        ck_assert_msg(same(&wanted, &got), "run %d", k);
        gantry_run_free(host);
    }
    for (int k = 0; k < RUNS; k++)
        gantry_run_free(run[k]);
    for (int k = 0; k < RUNS; k++) {
        gantry_schedule_free(w[k].s);
        gantry_machine_free(w[k].m);
        gantry_graph_free(w[k].g);
    }
}
END_TEST

static const char *const failing[] = {
    "cuLaunchCooperativeKernel", "cuStreamWaitValue64", "cuStreamWriteValue64", "cuEventRecord",
    "cuStreamWaitEvent",         "ncclAllReduce",       "ncclGroupEnd"
};

/* A start of which a part was not given to the GPUs comes to its end. If NCCL failed the run is over, else the next
 * start is right. */
START_TEST(failures)
{
    int failed = 0;
    fakeCudaDevices(2, "all", 0);
    for (int nth = 1; nth <= 9; nth += nth < 3 ? 1 : 3) {
        char spec[64];
        gantry_error err = { 0 };
        uint64_t ticket = 0;
        bool nccl = !strncmp(failing[_i], "nccl", 4);
        world w = make(2, 2, 0, "device", 1);
        fakeCudaSeed((uint64_t)nth);
        gantry_run *run = open_run(w.s, "cuda");
        MUST(gantry_run_start(run, &ticket, MUST_ERR));
        MUST(gantry_run_wait(run, ticket, MUST_ERR));
        snprintf(spec, sizeof spec, "%s:%d:%d", failing[_i], nth, nccl ? 5 : 2);
        fakeCudaFail(spec);
        gantry_status status = gantry_run_start(run, &ticket, &err);
        status = status ? status : gantry_run_wait(run, ticket, &err);
        fakeCudaFail(NULL);
        failed += status != GANTRY_OK;
        ck_assert_msg(!status || strstr(err.text, nccl ? "NCCL: " : "CUDA_ERROR_OUT_OF_MEMORY"), "%s", err.text);
        if (nccl && status) {
            ck_assert_int_eq(gantry_run_start(run, &ticket, &err), GANTRY_E_DEVICE);
        } else {
            MUST(gantry_run_start(run, &ticket, MUST_ERR));
            MUST(gantry_run_wait(run, ticket, MUST_ERR));
        }
        gantry_run_free(run);
        char replay[512];
        compare_with_host(w.g, w.s, 2, replay, sizeof replay);
        drop(&w);
    }
    ck_assert_int_gt(failed, 1);
}
END_TEST

/* The first wait of a launch, or the last one, is for more than is ever signalled. */
static gy_counter_wait *find_wait(const gantry_schedule *s, bool last)
{
    gy_counter_wait *found = NULL;
    for (size_t i = 0; i < s->counters.wait.count; i++) {
        gy_counter_wait *w = &s->counters.wait.at[i];
        bool launched = s->ops.at[w->op].kind == GY_OP_LAUNCH && w->distance == 0;
        if (launched && (!found || (last ? w->op > found->op : w->op < found->op)))
            found = w;
    }
    ck_assert(found);
    return found;
}

/* A worker waits for what never comes, ahead of all calls of NCCL or behind them: it is let go before NCCL is aborted,
 * which waits for the GPU. */
START_TEST(hung)
{
    gantry_error err = { 0 };
    gantry_run *run = NULL;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    uint64_t ticket = 0;
    char replay[512], name[32];
    fakeCudaDevices(2, "all", 0);
    world w = make(2, 2, 0, "device", 1);
    gy_counter_wait *wait = find_wait(w.s, _i), kept = *wait;
    snprintf(name, sizeof name, "; op %u, ", wait->op);
    wait->value += 1000000;
    options.backend = "cuda";
    options.deadline_us = 1e6;
    MUST(gantry_run_new(&run, w.s, &options, MUST_ERR));
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    fakeCudaPatience(200000); /* to wait for a worker that nobody lets go is a mistake */
    ck_assert_int_eq(gantry_run_wait(run, ticket, &err), GANTRY_E_TIMEOUT);
    ck_assert_msg(strstr(err.text, "the deadline of 1000.000 ms passed"), "%s", err.text);
    ck_assert_msg(SLOW || (strstr(err.text, name) && strstr(err.text, " waits for counter ")), "%s, not %s", err.text,
                  name);
    ck_assert_int_eq(gantry_run_start(run, &ticket, &err), GANTRY_E_TIMEOUT);
    gantry_run_free(run);
    *wait = kept;
    compare_with_host(w.g, w.s, 2, replay, sizeof replay);
    drop(&w);
}
END_TEST

/* Kernels of NCCL that never end, in either call. */
START_TEST(nccl_hangs)
{
    gantry_error err = { 0 };
    gantry_run *run = NULL;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    uint64_t ticket = 0;
    char replay[512];
    fakeCudaDevices(3, "all", 0);
    world w = make(3, 2, 0, "device", 1);
    options.backend = "cuda";
    options.deadline_us = 2e5;
    fakeCudaFail(_i ? "ncclHang:2:1" : "ncclHang:1:1");
    MUST(gantry_run_new(&run, w.s, &options, MUST_ERR));
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    ck_assert_int_eq(gantry_run_wait(run, ticket, &err), GANTRY_E_TIMEOUT);
    ck_assert_msg(strstr(err.text, "the deadline of 200.000 ms passed"), "%s", err.text);
    ck_assert_int_eq(fakeNcclAlive(), 0);
    gantry_run_free(run);
    fakeCudaFail(NULL);
    compare_with_host(w.g, w.s, 2, replay, sizeof replay);
    drop(&w);
}
END_TEST

/* Communicators cannot be made, which is known at the first start: copies do it, between the same segments. */
START_TEST(no_communicator)
{
    char replay[720];
    fakeCudaDevices(2, "all", 0);
    world w = make(2, 2, 0, "device", 1);
    fakeCudaFail("ncclCommInitRankConfig:1:5");
    compare_with_host(w.g, w.s, 3, replay, sizeof replay);
    fakeCudaFail(NULL);
    ck_assert_msg(strncmp(replay, "device and stream", 17) == 0 && strstr(replay, " by copies instead of NCCL"), "%s",
                  replay);
    drop(&w);
}
END_TEST

/* Only who asks for the device has it beside NCCL. */
START_TEST(not_unasked)
{
    gantry_run *run = NULL;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    fakeCudaDevices(2, "all", 0);
    world w = make(2, 2, 0, "auto", 1);
    int before = launches();
    options.backend = "cuda";
    MUST(gantry_run_new(&run, w.s, &options, MUST_ERR));
    MUST(gantry_run_repeat(run, 400, MUST_ERR));
    ck_assert_int_eq(launches(), before);
    gantry_run_free(run);
    drop(&w);
}
END_TEST

int main(void)
{
    TCase *first = tcase_create("segments");
    tcase_set_timeout(first, 120);
    tcase_add_loop_test(first, segments, 0, 4);
    TCase *c = tcase_create("cuts");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, random_graphs, 0, 2 * SEEDS);
    tcase_add_loop_test(c, batches, 0, 4);
    tcase_add_loop_test(c, in_flight, 0, 6);
    tcase_add_loop_test(c, two_runs, 0, 4);
    tcase_add_test(c, no_communicator);
    tcase_add_test(c, not_unasked);
    TCase *f = tcase_create("failures");
    tcase_set_timeout(f, 120);
    tcase_add_loop_test(f, failures, 0, (int)(sizeof failing / sizeof *failing));
    tcase_add_loop_test(f, hung, 0, 2);
    tcase_add_loop_test(f, nccl_hangs, 0, 2);
    Suite *s = suite_create("cuts");
    suite_add_tcase(s, first);
    suite_add_tcase(s, c);
    suite_add_tcase(s, f);
    return run_suite(s);
}
