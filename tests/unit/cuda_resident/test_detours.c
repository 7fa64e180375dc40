/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts by the device on GPUs of which some pairs do not reach each other: the real module and its resident kernel,
 * emulated, beside the fake NCCL. The fake driver ends the program where a kernel, a copy or a stream touches memory
 * that its GPU does not reach, and what streams and events leave unordered is done in a random order.
 */
#include "control.h"
#include "rings.h"
#include "schedule/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int fakeNcclAlive(void);

enum { TEXT = 65536, SEEDS = 12, GRAPHS = 3 * SEEDS, ARRAYS = 4 };

static unsigned draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33);
}

typedef struct world {
    gantry_graph *g;
    gantry_machine *m;
    gantry_schedule *s;
} world;

/* ---- GPUs ---- */

/* Pairs of GPUs with access, as the fake driver wants them; at least one has none, or only one of its directions. */
static const char *random_peers(int gpus, uint64_t seed)
{
    static char text[64];
    size_t at = 0;
    unsigned missing = draw(&seed) % (unsigned)(gpus * (gpus - 1) / 2), number = 0;
    *text = 0;
    for (int a = 0; a < gpus; a++) {
        for (int b = a + 1; b < gpus; b++, number++) {
            bool none = number == missing || draw(&seed) % 3 == 0, one_way = none && draw(&seed) % 4 == 0;
            if (!none)
                at += (size_t)snprintf(text + at, sizeof text - at, "%d%d,", a, b);
            if (!none || one_way)
                at += (size_t)snprintf(text + at, sizeof text - at, "%d%d,", b, a);
        }
    }
    return at ? text : "none";
}

/* Copies between its GPUs go through the host, in two parts: workers make both. */
static gantry_machine *machine_by_host(int gpus, int lanes)
{
    char text[2048];
    gantry_machine *m = NULL;
    int at = snprintf(text, sizeof text, "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"}");
    for (int i = 0; i < gpus; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, ",{\"id\":\"gpu%d\",\"capacity\":\"64MiB\"}", i);
    at += snprintf(text + at, sizeof text - (size_t)at,
                   "],\"devices\":[{\"id\":\"cpu\",\"type\":\"cpu\",\"memory\":\"host\"}");
    for (int i = 0; i < gpus; i++)
        at += snprintf(text + at, sizeof text - (size_t)at,
                       ",{\"id\":\"gpu%d\",\"type\":\"gpu\",\"memory\":\"gpu%d\",\"ordinal\":%d,\"lanes\":%d}", i, i, i,
                       lanes);
    snprintf(text + at, sizeof text - (size_t)at,
             "],\"routes\":[{\"from\":\"gpu*\",\"to\":\"host\",\"both\":true,\"bandwidth_gbs\":10}]}");
    MUST(gantry_machine_parse(&m, text, strlen(text), "machine of the test", MUST_ERR));
    return m;
}

/* ---- graphs ---- */

enum { FROM_FIRST = -1, FROM_LAST = -2 };

/* A sum on each GPU, of what it has and what the GPU `shift` behind it has, or the first or last one. With `after` it
 * comes behind a sum of that one in the row ahead as well. */
static int add_row(char *text, int at, int gpus, int *node, uint64_t *seed, int shift, int after)
{
    unsigned x = draw(seed) % ARRAYS, y = (x + 1) % ARRAYS, z = (x + 2) % ARRAYS;
    for (int i = 0; i < gpus; i++, ++*node) {
        int other = shift == FROM_FIRST ? 0 : shift == FROM_LAST ? gpus - 1 : (i + shift) % gpus;
        char order[32] = "";
        if (after && *node >= gpus)
            snprintf(order, sizeof order, ",\"after\":[\"n%d\"]", *node - i - gpus + (i + after) % gpus);
        at += snprintf(text + at, TEXT - (size_t)at,
                       "%s{\"id\":\"n%d\",\"kernel\":\"add\",\"on\":%d,\"args\":{\"x\":\"b%u[%d]\",\"y\":\"b%u[%d]\","
                       "\"z\":\"b%u[%d]\"}%s}",
                       *node ? "," : "", *node, i + 1, x, i, y, other, z, i, order);
    }
    return at;
}

/* Each GPU adds to what another one has, which is of a later start there, too. */
static int add_guests(char *text, int at, int gpus, int number, uint64_t *seed, int shift)
{
    unsigned x = draw(seed) % ARRAYS, y = (x + 1) % ARRAYS, z = (x + 2) % ARRAYS;
    for (int i = 0; i < gpus; i++)
        at +=
            snprintf(text + at, TEXT - (size_t)at,
                     "%s{\"id\":\"g%d_%d\",\"kernel\":\"add\",\"on\":%d,\"args\":{\"x\":\"b%u[%d]\",\"y\":\"b%u[%d]\","
                     "\"z\":\"b%u[%d]\"}}",
                     number || i ? "," : "", number, i, (i + shift) % gpus + 1, x, i, y, i, z, i);
    return number ? at : at + snprintf(text + at, TEXT - (size_t)at, ",");
}

/* Over all GPUs. Its name is none of those of rows. */
static int add_collective(char *text, int at, int gpus, int number, uint64_t *seed)
{
    static const char *const ops[] = { "sum", "max" };
    static const char *const names[] = { "on", "in", "out" };
    unsigned x = draw(seed) % ARRAYS, y = (x + 1) % ARRAYS;
    at += snprintf(text + at, TEXT - (size_t)at, ",{\"id\":\"c%d\",\"collective\":\"all_reduce\",\"op\":\"%s\"", number,
                   ops[draw(seed) % 2]);
    for (int part = 0; part < 3; part++) {
        at += snprintf(text + at, TEXT - (size_t)at, ",\"%s\":[", names[part]);
        for (int i = 0; i < gpus; i++)
            at += part ? snprintf(text + at, TEXT - (size_t)at, "%s\"b%u[%d]\"", i ? "," : "", part == 1 ? x : y, i)
                       : snprintf(text + at, TEXT - (size_t)at, "%s%d", i ? "," : "", i + 1);
        at += snprintf(text + at, TEXT - (size_t)at, "]");
    }
    return at + snprintf(text + at, TEXT - (size_t)at, "}");
}

/* Rows within GPUs, and between two such parts what makes GPUs wait for each other. */
static gantry_graph *graph_of(int gpus, uint64_t seed)
{
    static char text[TEXT];
    int parts = 2 + (int)(draw(&seed) % 3), node = 0;
    unsigned rows = 8 * (1 + draw(&seed) % 100);
    int at = snprintf(text, TEXT, "{\"gantry\":1,\"buffers\":{");
    for (int i = 0; i < ARRAYS; i++)
        at += snprintf(text + at, TEXT - (size_t)at,
                       "%s\"b%d\":{\"dtype\":\"u64\",\"shape\":[%u],\"split\":%d,\"init\":\"iota\",\"output\":true%s}",
                       i ? "," : "", i, rows * (unsigned)gpus, gpus, draw(&seed) % 2 ? ",\"class\":\"state\"" : "");
    at += snprintf(text + at, TEXT - (size_t)at, "},\"nodes\":[");
    for (int part = 0; part < parts; part++) {
        int steps = 6 + (int)(draw(&seed) % 4), behind = 1 + (int)(draw(&seed) % (unsigned)(gpus - 1));
        unsigned between = draw(&seed) % 4;
        if (part && between == 0)
            at = add_collective(text, at, gpus, part, &seed);
        else if (part && between == 1)
            at = add_row(text, at, gpus, &node, &seed, behind, 0);
        else if (between == 2)
            at = add_guests(text, at, gpus, part, &seed, behind);
        for (int i = 0; i < steps; i++)
            at = add_row(text, at, gpus, &node, &seed, 0, between == 3 && i == 0 ? behind : 0);
    }
    snprintf(text + at, TEXT - (size_t)at, "]}");
    gantry_graph *g = NULL;
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    return g;
}

static world make_of(gantry_graph *g, gantry_machine *m, const char *replay, int in_flight, bool nccl)
{
    world w = { .g = g, .m = m };
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    o.replay = replay;
    o.policy = "round-robin";
    o.objective = in_flight > 1 ? "period" : NULL;
    o.in_flight = in_flight;
    MUST(gantry_schedule_new(&w.s, w.g, w.m, &o, MUST_ERR));
    for (size_t i = 0; i < w.s->ops.count; i++) {
        gy_op *op = &w.s->ops.at[i];
        op->algorithm = nccl && op->kind == GY_OP_COLLECTIVE ? GY_ALGORITHM_NCCL : op->algorithm;
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

static const char by_events[] = " wait for each other by events, as they do not reach each other's memory: \"gantry "
                                "doctor\" says why";

/* ---- tests ---- */

/* All add what the first GPU has, then what the last one has: two cuts where these do not reach each other. */
static gantry_graph *exchange_of(int gpus)
{
    static char text[TEXT];
    uint64_t seed = 1;
    int node = 0, at = snprintf(text, TEXT, "{\"gantry\":1,\"buffers\":{");
    for (int i = 0; i < ARRAYS; i++)
        at += snprintf(text + at, TEXT - (size_t)at,
                       "%s\"b%d\":{\"dtype\":\"u64\",\"shape\":[%d],\"split\":%d,\"init\":\"iota\",\"output\":true,"
                       "\"class\":\"state\"}",
                       i ? "," : "", i, 64 * gpus, gpus);
    at += snprintf(text + at, TEXT - (size_t)at, "},\"nodes\":[");
    for (int i = 0; i < 26; i++)
        at = add_row(text, at, gpus, &node, &seed, i == 8 ? FROM_FIRST : i == 17 ? FROM_LAST : 0, 0);
    snprintf(text + at, TEXT - (size_t)at, "]}");
    gantry_graph *g = NULL;
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    return g;
}

START_TEST(three_kernels)
{
    fakeCudaDevices(2, "none", 0);
    world w = make_of(exchange_of(2), machine_by_host(2, 1 + _i % 2), "device", 1, false);
    fakeCudaSeed((uint64_t)_i + 1);
    gantry_run *host = open_run(w.s, "host"), *run = open_run(w.s, "cuda");
    for (int start = 0; start < 3; start++) {
        int before = launches(), waits = fakeCudaCalls("cuStreamWaitValue64");
        results wanted = run_results(host, w.g), got = run_results(run, w.g);
        ck_assert_msg(same(&wanted, &got), "start %d", start);
        ck_assert_int_eq(launches() - before, 3 * 2);
        ck_assert_int_eq(fakeCudaCalls("cuStreamWaitValue64"), waits);
    }
    const char *replay = replay_of(run);
    ck_assert_msg(strstr(replay, "device; up to 3 kernels of workers a GPU; \"gpu0\" and \"gpu1\"") == replay &&
                      strstr(replay, by_events),
                  "%s", replay);
    gantry_run_free(host);
    gantry_run_free(run);
    drop(&w);
}
END_TEST

/* The third GPU reaches the others, which do not reach each other: it waits by counters. Only the first exchange cuts.
 */
START_TEST(one_pair)
{
    char replay[1024];
    fakeCudaDevices(3, "02,20,12,21", 0);
    world w = make_of(exchange_of(3), ring_machine(3, 1), "device", 1, false);
    fakeCudaSeed((uint64_t)_i + 1);
    compare_with_host(w.g, w.s, 3, replay, sizeof replay);
    ck_assert_msg(strstr(replay, "device and stream") == replay &&
                      strstr(replay, "; up to 2 kernels of workers a GPU") &&
                      strstr(replay, "; \"gpu0\" and \"gpu1\" wait for each other by events"),
                  "%s", replay);
    drop(&w);
}
END_TEST

static int by_device;

/* With NCCL, by copies, and with all that leaves a GPU brought through the host. */
START_TEST(random_graphs)
{
    char replay[1024];
    int gpus = 2 + _i % 3, lanes = 1 + _i / 3 % 3;
    uint64_t seed = (uint64_t)_i + 1;
    fakeCudaDevices(gpus, _i % 5 ? random_peers(gpus, seed) : "none", 0);
    gantry_machine *m = _i % 4 == 3 ? machine_by_host(gpus, lanes) : ring_machine(gpus, lanes);
    world w = make_of(graph_of(gpus, seed), m, "device", 1, _i / 2 % 2);
    fakeCudaSeed(seed);
    compare_with_host(w.g, w.s, 3, replay, sizeof replay);
    by_device += !strncmp(replay, "device", 6) && strstr(replay, by_events);
    drop(&w);
}
END_TEST

/* Most of them are carried out by workers, and not as a whole by streams. */
static void check_random(void)
{
    ck_assert_msg(by_device == 0 || 5 * by_device > 4 * GRAPHS, "%d by the device", by_device);
}

/* Both GPUs write rows of what lies on the first one, and that one adds them up: ahead of what it gets from the second
 * one in this start (`early`), or behind it. Nothing but a wait from start to start keeps the rows of the next start
 * from coming too soon, or those of this start from being read too late. */
static gantry_graph *gathered_of(bool early, int steps)
{
    static const char adds[] =
        "{\"id\":\"take\",\"kernel\":\"add\",\"on\":1,\"args\":{\"x\":\"s\",\"y\":\"sum\",\"z\":"
        "\"more\"}},{\"id\":\"keep\",\"kernel\":\"copy\",\"on\":1,\"args\":{\"x\":\"more\",\"y\":"
        "\"sum\"}}";
    static char text[TEXT];
    static const char *const whole[] = { "s", "sum", "more" };
    int at = snprintf(text, TEXT, "{\"gantry\":1,\"buffers\":{");
    for (int i = 0; i < 3; i++)
        at += snprintf(text + at, TEXT - (size_t)at,
                       "\"%s\":{\"dtype\":\"u64\",\"shape\":[64],\"init\":\"iota\",\"class\":\"state\",\"output\":%s},",
                       whole[i], i == 1 ? "true" : "false");
    for (int i = 0; i < 3; i++)
        at += snprintf(text + at, TEXT - (size_t)at,
                       "%s\"b%d\":{\"dtype\":\"u64\",\"shape\":[64],\"split\":2,\"init\":\"iota\",\"class\":\"state\"}",
                       i ? "," : "", i);
    at += snprintf(text + at, TEXT - (size_t)at, "},\"nodes\":[%s%s", early ? adds : "", early ? "," : "");
    for (int k = 0; k < steps; k++)
        for (int i = 0; i < 2; i++)
            at += snprintf(
                text + at, TEXT - (size_t)at,
                "{\"id\":\"n%d_%d\",\"kernel\":\"add\",\"on\":%d,\"args\":{\"x\":\"b%d[%d]\",\"y\":\"b%d[%d]\","
                "\"z\":\"b%d[%d]\"}},",
                k, i, i + 1, k % 3, i, (k + 1) % 3, i, (k + 2) % 3, i);
    for (int i = 0; i < 2; i++)
        at += snprintf(text + at, TEXT - (size_t)at,
                       "%s{\"id\":\"send%d\",\"kernel\":\"copy\",\"on\":%d,\"args\":{\"x\":\"b0[%d]\",\"y\":"
                       "\"s{%d:%d}\"}}",
                       i ? "," : "", i, i + 1, i, 32 * i, 32 * i + 32);
    snprintf(text + at, TEXT - (size_t)at, "%s%s]}", early ? "" : ",", early ? "" : adds);
    gantry_graph *g = NULL;
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    return g;
}

/* Waits between GPUs, from a start that can be in flight to a later one. */
static int waits_in_flight(const gantry_schedule *s)
{
    int waits = 0;
    for (size_t i = 0; i < s->counters.at.count; i++) {
        const gy_counter *c = &s->counters.at.at[i];
        for (uint32_t k = 0; k < c->waits && s->lanes.at[c->from].device != s->lanes.at[c->to].device; k++) {
            uint32_t distance = s->counters.wait.at[c->wait + k].distance;
            waits += distance > 0 && distance < s->in_flight;
        }
    }
    return waits;
}

/* Several starts under way: the results of the last one are the host's. */
static void compare_in_flight(const world *w)
{
    enum { STARTS = 6, MOST = 3 };
    uint64_t ticket[STARTS] = { 0 };
    gantry_run *host = open_run(w->s, "host"), *run = open_run(w->s, "cuda");
    results wanted = { .count = 0 };
    for (int start = 0; start < STARTS; start++) {
        wanted = run_results(host, w->g);
        MUST(gantry_run_start(run, &ticket[start], MUST_ERR));
        if (start >= MOST - 1)
            MUST(gantry_run_wait(run, ticket[start - (MOST - 1)], MUST_ERR));
    }
    MUST(gantry_run_wait(run, ticket[STARTS - 1], MUST_ERR));
    results got = outputs_of(run, w->g);
    ck_assert(same(&wanted, &got));
    gantry_run_free(host);
    gantry_run_free(run);
}

/* A kernel comes behind the starts that it waits for. */
START_TEST(in_flight)
{
    int gpus = 2 + _i % 3, flying = 2 + _i % 2;
    uint64_t seed = (uint64_t)_i + 100;
    fakeCudaDevices(gpus, _i % 3 ? random_peers(gpus, seed) : "none", 0);
    gantry_machine *m = _i % 4 == 3 ? machine_by_host(gpus, 2) : ring_machine(gpus, 2);
    world w = make_of(graph_of(gpus, seed), m, "device", flying, _i / 2 % 2);
    fakeCudaSeed(seed);
    compare_in_flight(&w);
    drop(&w);
}
END_TEST

/* Nothing but a wait for an earlier start in flight keeps GPUs apart. */
START_TEST(from_start_to_start)
{
    fakeCudaDevices(2, "none", 0);
    world w = make_of(gathered_of(_i % 2, 6), ring_machine(2, 2), "device", 2 + _i / 2 % 2, false);
    ck_assert_int_gt(waits_in_flight(w.s), 0);
    fakeCudaSeed((uint64_t)_i + 1);
    int before = launches();
    compare_in_flight(&w);
    ck_assert_int_gt(launches(), before);
    drop(&w);
}
END_TEST

/* Nobody is between the starts of a series to give an event to streams. */
START_TEST(series)
{
    enum { STARTS = 5 };
    fakeCudaDevices(2, "none", 0);
    world w = make_of(exchange_of(2), machine_by_host(2, 1), "device", 1, false);
    fakeCudaSeed((uint64_t)_i + 1);
    gantry_run *host = open_run(w.s, "host"), *run = open_run(w.s, "cuda");
    int before = launches();
    MUST(gantry_run_repeat(host, STARTS, MUST_ERR));
    MUST(gantry_run_repeat(run, STARTS, MUST_ERR));
    ck_assert_int_eq(launches() - before, 3 * 2 * STARTS);
    results wanted = outputs_of(host, w.g), got = outputs_of(run, w.g);
    ck_assert(same(&wanted, &got));
    ck_assert_msg(strstr(replay_of(run),
                         "; one start a launch: GPUs that do not reach each other's memory wait for each "
                         "other"),
                  "%s", replay_of(run));
    gantry_run_free(host);
    gantry_run_free(run);
    drop(&w);
}
END_TEST

/* Only who asks for the device has it on such GPUs. */
START_TEST(not_unasked)
{
    gantry_run *run = NULL;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    fakeCudaDevices(2, "none", 0);
    world w = make_of(exchange_of(2), machine_by_host(2, 1), "auto", 1, false);
    int before = launches();
    options.backend = "cuda";
    MUST(gantry_run_new(&run, w.s, &options, MUST_ERR));
    MUST(gantry_run_repeat(run, 400, MUST_ERR));
    ck_assert_int_eq(launches(), before);
    gantry_run_free(run);
    drop(&w);
}
END_TEST

static const char *const failing[] = { "cuLaunchCooperativeKernel", "cuStreamWaitValue64", "cuStreamWriteValue64",
                                       "cuEventRecord", "cuStreamWaitEvent" };

/* A start of which a part was not given to the GPUs comes to its end, and the next one is right. */
START_TEST(failures)
{
    int failed = 0;
    for (int nth = 1; nth <= 9; nth += nth < 4 ? 1 : 2) {
        char spec[64], replay[1024];
        gantry_error err = { 0 };
        uint64_t ticket = 0;
        bool by_host = !strstr(failing[_i], "Value64"); /* else streams have a part of it */
        fakeCudaDevices(3, "02,20,12,21", 0);
        world w = make_of(exchange_of(3), by_host ? machine_by_host(3, 2) : ring_machine(3, 2), "device", 1, false);
        fakeCudaSeed((uint64_t)nth);
        gantry_run *run = open_run(w.s, "cuda");
        MUST(gantry_run_start(run, &ticket, MUST_ERR));
        MUST(gantry_run_wait(run, ticket, MUST_ERR));
        snprintf(spec, sizeof spec, "%s:%d:2", failing[_i], nth);
        fakeCudaFail(spec);
        gantry_status status = gantry_run_start(run, &ticket, &err);
        status = status ? status : gantry_run_wait(run, ticket, &err);
        fakeCudaFail(NULL);
        failed += status != GANTRY_OK;
        ck_assert_msg(!status || strstr(err.text, "CUDA_ERROR_OUT_OF_MEMORY"), "%s", err.text);
        MUST(gantry_run_start(run, &ticket, MUST_ERR));
        MUST(gantry_run_wait(run, ticket, MUST_ERR));
        gantry_run_free(run);
        compare_with_host(w.g, w.s, 2, replay, sizeof replay);
        drop(&w);
    }
    ck_assert_int_gt(failed, 0);
}
END_TEST

/* The first wait of a launch by a counter, or the last one, is for more than is ever signalled. */
static gy_counter_wait *find_wait(const gantry_schedule *s, bool last)
{
    gy_counter_wait *found = NULL;
    for (size_t i = 0; i < s->counters.at.count; i++) {
        const gy_counter *c = &s->counters.at.at[i];
        bool within = s->lanes.at[c->from].device == s->lanes.at[c->to].device;
        for (uint32_t k = 0; k < c->waits && within; k++) {
            gy_counter_wait *w = &s->counters.wait.at[c->wait + k];
            bool launched = s->ops.at[w->op].kind == GY_OP_LAUNCH && w->distance == 0;
            if (launched && (!found || (last ? w->op > found->op : w->op < found->op)))
                found = w;
        }
    }
    ck_assert(found);
    return found;
}

/* A worker waits for what never comes, and another GPU for its kernel: all are let go, and the counter is told. */
START_TEST(hung)
{
    gantry_error err = { 0 };
    gantry_run *run = NULL;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    uint64_t ticket = 0;
    char replay[1024], name[32];
    fakeCudaDevices(2, "none", 0);
    world w = make_of(exchange_of(2), machine_by_host(2, 2), "device", 1, false);
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

int main(void)
{
    TCase *first = tcase_create("pairs");
    tcase_set_timeout(first, 120);
    tcase_add_loop_test(first, three_kernels, 0, 4);
    tcase_add_loop_test(first, one_pair, 0, 4);
    tcase_add_loop_test(first, series, 0, 2);
    tcase_add_test(first, not_unasked);
    TCase *c = tcase_create("detours");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, random_graphs, 0, GRAPHS);
    tcase_add_unchecked_fixture(c, NULL, check_random);
    tcase_add_loop_test(c, in_flight, 0, SEEDS);
    tcase_add_loop_test(c, from_start_to_start, 0, SEEDS);
    TCase *f = tcase_create("failures");
    tcase_set_timeout(f, 120);
    tcase_add_loop_test(f, failures, 0, (int)(sizeof failing / sizeof *failing));
    tcase_add_loop_test(f, hung, 0, 2);
    Suite *s = suite_create("detours");
    suite_add_tcase(s, first);
    suite_add_tcase(s, c);
    suite_add_tcase(s, f);
    return run_suite(s);
}
