/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between GPUs, within one, and between one and the host that kernels make, several by one launch, where
 * GANTRY_CUDA_COPIES or the machine asks for it. */
#include "control.h"
#include "schedule/schedule.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 65536 };

static const char *const replays[] = { "stream", "graph" };

static void check_alive(void)
{
    char text[160];
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "left behind: %s", text);
}

static unsigned draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33);
}

/* Nodes over arrays of several sizes, each where the round-robin policy puts it. */
static gantry_graph *random_graph(uint64_t seed, int nodes, unsigned arrays)
{
    char text[TEXT];
    gantry_graph *g = NULL;
    int at = snprintf(text, sizeof text, "{\"gantry\":1,\"buffers\":{");
    for (unsigned i = 0; i < arrays; i++) {
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "%s\"b%u\":{\"dtype\":\"f32\",\"shape\":[120],\"split\":3,\"init\":\"iota\",\"output\":true}",
                       i ? "," : "", i);
    }
    at += snprintf(text + at, sizeof text - (size_t)at, "},\"nodes\":[");
    for (int i = 0; i < nodes; i++) {
        unsigned x = draw(&seed) % arrays, y = (x + 1 + draw(&seed) % (arrays - 1)) % arrays;
        bool whole = draw(&seed) % 3 == 0;
        char part[16] = "";
        if (!whole)
            snprintf(part, sizeof part, "[%u]", draw(&seed) % 3);
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "%s{\"id\":\"n%d\",\"kernel\":\"axpby\",\"args\":{\"a\":0.5,\"x\":\"b%u%s\",\"b\":0.25,\"y\":"
                       "\"b%u%s\"}}",
                       i ? "," : "", i, x, part, y, part);
    }
    snprintf(text + at, sizeof text - (size_t)at, "]}");
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    return g;
}

typedef struct counts {
    int copies, kernels; /* calls that copy; launches that ran */
} counts;

static int copies_made(void)
{
    return fakeCudaCalls("cuMemcpyDtoDAsync") + fakeCudaCalls("cuMemcpyHtoDAsync") + fakeCudaCalls("cuMemcpyDtoHAsync");
}

/* The bits of three starts are the host's. */
static counts compare(gantry_graph *g, gantry_schedule *s, const char *replay)
{
    gantry_run *host = open_run(s, "host"), *run = open_run(s, "cuda");
    counts c = { -copies_made(), -fakeCudaCalls("kernel") };
    for (int start = 0; start < 3; start++) {
        results wanted = run_results(host, g), got = run_results(run, g);
        ck_assert(same(&wanted, &got));
    }
    ck_assert_str_eq(replay_of(run), replay);
    c.copies += copies_made();
    c.kernels += fakeCudaCalls("kernel");
    gantry_run_free(host);
    gantry_run_free(run);
    check_alive();
    return c;
}

static counts try_copies(gantry_graph *g, gantry_schedule *s, const char *replay, const char *copies)
{
    if (copies)
        setenv("GANTRY_CUDA_COPIES", copies, 1);
    counts c = compare(g, s, replay);
    unsetenv("GANTRY_CUDA_COPIES");
    return c;
}

START_TEST(random_graphs)
{
    int starts = _i ? 3 : 1, less = 0, more = 0; /* those of a graph are captured once */
    for (uint64_t seed = 1; seed <= 30; seed++) {
        int gpus = 2 + (int)(seed % 3);
        fakeCudaDevices(gpus, seed % 6 ? "all" : "none", 0);
        fakeCudaSeed(seed);
        gantry_graph *g = random_graph(seed, 12 + (int)(seed % 3) * 12, 3 + (unsigned)(seed % 4));
        gantry_machine *m = gpu_machine(gpus, seed % 4 == 0);
        gantry_schedule *s = make_schedule(g, m, replays[_i], "round-robin");
        counts engines = try_copies(g, s, replays[_i], NULL),
               kernels = try_copies(g, s, replays[_i], "kernels:1000000");
        less += engines.copies - kernels.copies;
        more += kernels.kernels - engines.kernels;
        gantry_schedule_free(s);
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
    ck_assert_int_gt(less, 100);
    ck_assert_int_gt(more, 100);
    ck_assert_int_lt(more, less * starts); /* some are carried by others */
}
END_TEST

/* Larger copies are left to the engines, those of nothing asked for, too. */
START_TEST(large_copies)
{
    gantry_graph *g = random_graph(7, 24, 4);
    fakeCudaDevices(2, "all", 0);
    gantry_machine *m = gpu_machine(2, false);
    gantry_schedule *s = make_schedule(g, m, replays[_i], "round-robin");
    counts none = try_copies(g, s, replays[_i], NULL);
    ck_assert_int_gt(none.copies, 0);
    static const char *const same_as_none[] = { "kernels:0", "kernels:16", "engines", "" };
    for (size_t i = 0; i < sizeof same_as_none / sizeof *same_as_none; i++) {
        counts c = try_copies(g, s, replays[_i], same_as_none[i]);
        ck_assert_int_eq(c.copies, none.copies);
        ck_assert_int_eq(c.kernels, none.kernels);
    }
    counts some = try_copies(g, s, replays[_i], "kernels:160"); /* a part, not a whole array */
    ck_assert_int_lt(some.copies, none.copies);
    ck_assert_int_gt(some.kernels, none.kernels);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

static gantry_machine *machine_with(int64_t kernel_bytes)
{
    char text[1024];
    gantry_machine *m = NULL;
    int length = snprintf(
        text, sizeof text,
        "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},{\"id\":\"gpu0\",\"capacity\":"
        "\"64MiB\"},{\"id\":\"gpu1\",\"capacity\":\"64MiB\"}],\"devices\":[{\"id\":\"gpu0\",\"type\":\"gpu\","
        "\"memory\":\"gpu0\"},{\"id\":\"gpu1\",\"type\":\"gpu\",\"memory\":\"gpu1\",\"ordinal\":1}],\"routes\":"
        "[{\"from\":\"gpu0\",\"to\":\"gpu1\",\"both\":true,\"bandwidth_gbs\":10,\"kernel_bytes\":%lld},{\"from\":"
        "\"gpu*\",\"to\":\"host\",\"both\":true,\"bandwidth_gbs\":10,\"kernel_bytes\":%lld}]}",
        (long long)kernel_bytes, (long long)kernel_bytes);
    MUST(gantry_machine_parse(&m, text, (size_t)length, "machine of the test", MUST_ERR));
    return m;
}

/* The machine says up to which size, and GANTRY_CUDA_COPIES goes before it. */
START_TEST(as_the_machine_says)
{
    static const struct {
        int64_t kernel_bytes;
        const char *copies;
    } cases[] = { { 0, NULL }, { 1000000, NULL }, { 1000000, "engines" }, { 0, "kernels:1000000" } };
    counts c[4];
    for (int i = 0; i < 4; i++) {
        gantry_graph *g = random_graph(7, 24, 4);
        fakeCudaDevices(2, "all", 0);
        gantry_machine *m = machine_with(cases[i].kernel_bytes);
        gantry_schedule *s = make_schedule(g, m, replays[_i], "round-robin");
        c[i] = try_copies(g, s, replays[_i], cases[i].copies);
        gantry_schedule_free(s);
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
    ck_assert_int_gt(c[0].copies, c[1].copies);
    ck_assert_int_eq(c[2].copies, c[0].copies);
    ck_assert_int_eq(c[2].kernels, c[0].kernels);
    ck_assert_int_eq(c[3].copies, c[1].copies);
    ck_assert_int_eq(c[3].kernels, c[1].kernels);
}
END_TEST

/* Copies within a GPU, and with the host ahead and behind, by kernels in place of the driver: one each, as each reads
 * what the one before wrote. */
START_TEST(within_a_gpu)
{
    static const char text[] =
        "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[40],\"init\":\"iota\"},\"y\":{"
        "\"dtype\":\"f32\",\"shape\":[40]},\"z\":{\"dtype\":\"f32\",\"shape\":[40]},\"w\":{\"dtype\":\"f32\",\"shape\":"
        "[40],"
        "\"output\":true}},"
        "\"nodes\":[{\"id\":\"a\",\"kernel\":\"scale\",\"args\":{\"a\":2,\"x\":\"x\",\"y\":\"y\"}},{\"id\":\"c\","
        "\"copy\":{\"from\":\"y\",\"to\":\"z\"}},{\"id\":\"d\",\"copy\":{\"from\":\"z\",\"to\":\"w\"}}]}";
    gantry_graph *g = NULL;
    MUST(gantry_graph_parse(&g, text, sizeof text - 1, "text", NULL, NULL, MUST_ERR));
    fakeCudaDevices(1, "all", 0);
    gantry_machine *m = gpu_machine(1, false);
    gantry_schedule *s = make_schedule(g, m, replays[_i], NULL);
    counts driver = try_copies(g, s, replays[_i], "engines"), kernel = try_copies(g, s, replays[_i], "kernels:160");
    ck_assert_int_eq(driver.copies - kernel.copies, _i ? 4 : 12); /* those of a graph are captured once */
    ck_assert_int_eq(kernel.kernels - driver.kernels, 12);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* Kernels tell of failures in host memory: nothing but the output is fetched, in one start as in the next. */
START_TEST(status_words_take_no_copy)
{
    static const char text[] = "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[40],\"init\":\"iota\"},"
                               "\"y\":{\"dtype\":\"f32\",\"shape\":"
                               "[40],\"output\":true}},\"nodes\":[{\"id\":\"a\",\"kernel\":\"scale\",\"args\":{\"a\":2,"
                               "\"x\":\"x\",\"y\":\"y\"}}]}";
    gantry_graph *g = NULL;
    MUST(gantry_graph_parse(&g, text, sizeof text - 1, "text", NULL, NULL, MUST_ERR));
    fakeCudaDevices(1, "all", 0);
    gantry_machine *m = gpu_machine(1, false);
    gantry_schedule *s = make_schedule(g, m, replays[_i], NULL);
    int before = fakeCudaCalls("cuMemcpyDtoHAsync");
    try_copies(g, s, replays[_i], "engines");
    ck_assert_int_eq(fakeCudaCalls("cuMemcpyDtoHAsync") - before, _i ? 1 : 3);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* One small result, fetched while another node computes for `us`; returns the copies of copy engines. */
static int fetched_beside(const char *replay, int us)
{
    static const char machine[] =
        "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},{\"id\":\"gpu0\",\"capacity\":"
        "\"64MiB\"}],"
        "\"devices\":[{\"id\":\"gpu0\",\"type\":\"gpu\",\"memory\":\"gpu0\",\"launch_us\":1,\"signal_us\":3}],"
        "\"routes\":"
        "[{\"from\":\"gpu0\",\"to\":\"host\",\"both\":true,\"bandwidth_gbs\":10,\"kernel_bytes\":65536}]}";
    char text[1024];
    gantry_graph *g = NULL;
    gantry_machine *m = NULL;
    snprintf(text, sizeof text,
             "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[40],\"init\":\"iota\"},\"y\":{\"dtype\":"
             "\"f32\","
             "\"shape\":[40],\"output\":true},\"z\":{\"dtype\":\"f32\",\"shape\":[40],\"output\":true}},\"nodes\":["
             "{\"id\":\"a\",\"kernel\":\"scale\",\"args\":{\"a\":2,\"x\":\"x\",\"y\":\"y\"},\"cost\":{\"time_us\":{\"*"
             "\":5}}},"
             "{\"id\":\"b\",\"kernel\":\"scale\",\"after\":[\"a\"],\"args\":{\"a\":3,\"x\":\"x\",\"y\":\"z\"},\"cost\":"
             "{\"time_us\":"
             "{\"*\":%d}}}]}",
             us);
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    fakeCudaDevices(1, "all", 0);
    MUST(gantry_machine_parse(&m, machine, sizeof machine - 1, "machine of the test", MUST_ERR));
    gantry_schedule *s = make_schedule(g, m, replay, NULL);
    int copies = try_copies(g, s, replay, NULL).copies;
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
    return copies;
}

/* Copy engines go on beside a kernel that fills the GPU; another kernel would wait for it. */
START_TEST(beside_long_kernels)
{
    ck_assert_int_eq(fetched_beside(replays[_i], 5), 0);
    ck_assert_int_eq(fetched_beside(replays[_i], 1000), _i ? 1 : 3);
}
END_TEST

/* Small arrays that one GPU gets from the host and the other from it; some come back. */
static gantry_graph *small_arrays(int count, const char *on)
{
    char text[TEXT];
    gantry_graph *g = NULL;
    int at = snprintf(text, sizeof text, "{\"gantry\":1,\"buffers\":{");
    for (int i = 0; i < count; i++)
        at += snprintf(
            text + at, sizeof text - (size_t)at,
            "%s\"x%d\":{\"dtype\":\"f32\",\"shape\":[%d],\"init\":\"iota\"},\"y%d\":{\"dtype\":\"f32\",\"shape\":"
            "[%d],\"init\":\"iota\"%s}",
            i ? "," : "", i, 1 + i % 7, i, 1 + i % 7, i < 14 ? ",\"output\":true" : "");
    at += snprintf(text + at, sizeof text - (size_t)at, "},\"nodes\":[");
    for (int i = 0; i < count; i++)
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "%s{\"id\":\"a%d\",\"kernel\":\"saxpy\",\"args\":{\"a\":2,\"x\":\"x%d\",\"y\":\"y%d\"},\"on\":"
                       "\"gpu0\"},{\"id\":\"b%d\",\"kernel\":\"saxpy\",\"args\":{\"a\":3,\"x\":\"x%d\",\"y\":\"y%d\"},"
                       "\"on\":\"%s\"}",
                       i ? "," : "", i, i, i, i, i, i, on);
    snprintf(text + at, sizeof text - (size_t)at, "]}");
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    return g;
}

static uint32_t batched_copies(const gantry_schedule *s, bool of_host)
{
    uint32_t count = 0;
    for (size_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        const gy_use *use = &s->use.at[op->use];
        bool host = gy_op_is_copy(op) &&
                    (s->instances.at[use[0].instance].memory == 0 || s->instances.at[use[1].instance].memory == 0);
        if (gy_op_is_copy(op) && (op->batch || op->joined))
            count += host == of_host;
    }
    return count;
}

/* Batches that the schedule has are few launches instead of many copies; or the copies, if asked for. */
START_TEST(batches_of_the_schedule)
{
    static const char machine[] =
        "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\",\"pinned\":true},{\"id\":\"gpu0\","
        "\"capacity\":\"64MiB\"},{\"id\":\"gpu1\",\"capacity\":\"64MiB\"}],\"devices\":[{\"id\":\"gpu0\",\"type\":"
        "\"gpu\","
        "\"launch_us\":1,\"memory\":\"gpu0\"},{\"id\":\"gpu1\",\"type\":\"gpu\",\"launch_us\":1,\"memory\":\"gpu1\","
        "\"ordinal\":1}],\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":20,\"bandwidth_gbs\":10}]}";
    gantry_machine *m = NULL;
    fakeCudaDevices(2, "all", 0);
    MUST(gantry_machine_parse(&m, machine, sizeof machine - 1, "machine of the test", MUST_ERR));
    gantry_graph *g = small_arrays(90, "gpu1");
    gantry_schedule *s = make_schedule(g, m, replays[_i], NULL);
    uint32_t host = batched_copies(s, true), peers = batched_copies(s, false);
    ck_assert_uint_gt(host, 150);
    ck_assert_uint_gt(peers, 20);
    counts kernels = try_copies(g, s, replays[_i], NULL), engines = try_copies(g, s, replays[_i], "engines");
    ck_assert_int_gt(engines.copies, kernels.copies);
    ck_assert_int_gt(kernels.kernels, engines.kernels);
    ck_assert_int_lt(kernels.kernels - engines.kernels, (int)(host + peers) / 4); /* many by one */
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

START_TEST(graphs_of_the_gallery)
{
    for (const graph_case *c = graph_cases; c->file; c++) {
        fakeCudaDevices(2, "all", 0);
        gantry_graph *g = load_graph(c);
        gantry_machine *m = gpu_machine(2, false);
        gantry_schedule *s = make_schedule(g, m, replays[_i], NULL);
        try_copies(g, s, replays[_i], "kernels:1000000");
        gantry_schedule_free(s);
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("carry");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, random_graphs, 0, 2);
    tcase_add_loop_test(tests, large_copies, 0, 2);
    tcase_add_loop_test(tests, as_the_machine_says, 0, 2);
    tcase_add_loop_test(tests, within_a_gpu, 0, 2);
    tcase_add_loop_test(tests, beside_long_kernels, 0, 2);
    tcase_add_loop_test(tests, status_words_take_no_copy, 0, 2);
    tcase_add_loop_test(tests, batches_of_the_schedule, 0, 2);
    tcase_add_loop_test(tests, graphs_of_the_gallery, 0, 2);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
