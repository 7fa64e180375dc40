/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resident replay: the real module with its resident kernel, emulated, on several GPUs at once, whose blocks run in an
 * order that a seed decides, and see each other's stores late (FAKE_CUDA_WEAK). Results are the host's, bit for bit.
 */
#include "control.h"
#include "packets.h"
#include "rings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 65536, SEEDS = 12 };

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

static gantry_graph *parse(const char *text)
{
    gantry_graph *g = NULL;
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    return g;
}

/* Kernels of all sorts over arrays of several sizes; sums and fills, too. */
static gantry_graph *random_graph(uint64_t seed)
{
    char text[TEXT];
    unsigned arrays = 3 + draw(&seed) % 3, parts = 2 + draw(&seed) % 2, rows = 12 * (1 + draw(&seed) % 400);
    int nodes = 8 + (int)(draw(&seed) % 16), at = snprintf(text, sizeof text, "{\"gantry\":1,\"buffers\":{");
    for (unsigned i = 0; i < arrays; i++) {
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "\"b%u\":{\"dtype\":\"%s\",\"shape\":[%u],\"split\":%u,\"init\":\"iota\",\"output\":true%s},", i,
                       "f32", rows, parts, draw(&seed) % 2 ? ",\"class\":\"state\"" : "");
    }
    at += snprintf(text + at, sizeof text - (size_t)at,
                   "\"t\":{\"dtype\":\"f32\",\"shape\":[1],\"init\":0,\"output\":true}},\"nodes\":[");
    for (int i = 0; i < nodes; i++) {
        static const char *const kernels[] = { "axpby", "add", "scale", "copy" };
        unsigned x = draw(&seed) % arrays, y = (x + 1 + draw(&seed) % (arrays - 1)) % arrays, p = draw(&seed) % parts;
        unsigned k = draw(&seed) % 4, q = draw(&seed) % parts, z = 0;
        while (z == x || z == y)
            z++;
        at += snprintf(text + at, sizeof text - (size_t)at, "%s{\"id\":\"n%d\",\"kernel\":\"%s\",\"args\":{%s%s",
                       i ? "," : "", i, kernels[k], k == 0 ? "\"a\":0.5,\"b\":0.25," : "", k == 2 ? "\"a\":0.75," : "");
        at += snprintf(text + at, sizeof text - (size_t)at, "\"x\":\"b%u[%u]\",\"y\":\"b%u[%u]\"%s", x, p, y, q,
                       k == 1 ? ",\"z\":" : "}}");
        if (k == 1)
            at += snprintf(text + at, sizeof text - (size_t)at, "\"b%u[%u]\"}}", z, q);
    }
    at += snprintf(text + at, sizeof text - (size_t)at,
                   ",{\"id\":\"sum\",\"kernel\":\"reduce_sum\",\"args\":{\"x\":\"b0[0]\",\"out\":\"t\"}}");
    snprintf(text + at, sizeof text - (size_t)at, "]}");
    return parse(text);
}

typedef struct world {
    gantry_graph *g;
    gantry_machine *m;
    gantry_schedule *s;
} world;

static world make(gantry_graph *g, gantry_machine *m)
{
    return (world){ g, m, make_schedule(g, m, "device", "round-robin") };
}

static void drop(world *w)
{
    gantry_schedule_free(w->s);
    gantry_machine_free(w->m);
    gantry_graph_free(w->g);
    check_alive();
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Outputs go to the host by the streams of copy lanes. */
START_TEST(rings)
{
    char replay[512];
    fakeCudaDevices(2, "all", 0);
    fakeCudaSeed((uint64_t)_i + 1);
    world w = make(ring_of(0, 4 + _i % 3, 3 + _i % 2, 64 << _i % 4, true), ring_machine(2, 2 + _i % 3));
    compare_with_host(w.g, w.s, 3, replay, sizeof replay);
    ck_assert_msg(begins(replay, "device"), "%s", replay);
    ck_assert_int_gt(fakeCudaCalls("cuLaunchCooperativeKernel"), 0);
    drop(&w);
}
END_TEST

START_TEST(random_graphs)
{
    char replay[512];
    int gpus = 1 + _i % 3;
    fakeCudaDevices(gpus, "all", 0);
    fakeCudaSeed((uint64_t)_i + 1);
    world w = make(random_graph((uint64_t)_i + 1), ring_machine(gpus, 1 + _i % 4));
    compare_with_host(w.g, w.s, 3, replay, sizeof replay);
    ck_assert_msg(begins(replay, "device"), "%s", replay);
    drop(&w);
}
END_TEST

/* Collectives in a row, of random kinds, and a copy of each result to where the next begins; all_to_all also in place,
 * and then from there. Rank i is on GPU i, which is device i + 1. */
static gantry_graph *random_collectives(uint64_t seed, int ranks, bool *in_place)
{
    static const char *const dtypes[] = { "f16", "bf16", "f32", "f64", "i8", "u8", "i32", "u32", "i64", "u64" };
    static const char *const ops[] = { "sum", "min", "max", "prod" };
    char text[TEXT], all[4][200];
    unsigned rows = 16 * (1 + draw(&seed) % 200), steps = 2 + draw(&seed) % 3;
    for (int k = 0; k < 4; k++)
        for (int i = 0, at = 0; i < ranks; i++)
            at += snprintf(all[k] + at, sizeof all[k] - (size_t)at, "%s\"%c[%d]\"", i ? "," : "", "xywv"[k], i);
    int at = snprintf(text, sizeof text, "{\"gantry\":1,\"buffers\":{");
    for (int k = 0; k < 4; k++)
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "%s\"%c\":{\"dtype\":\"%s\",\"shape\":[%u],\"split\":%d,\"init\":\"iota\",\"output\":true}",
                       k ? "," : "", "xywv"[k], dtypes[(seed >> 20) % 10],
                       rows * (unsigned)(k >= 2 ? ranks * ranks : ranks), ranks);
    at += snprintf(text + at, sizeof text - (size_t)at, "},\"nodes\":[");
    for (unsigned step = 0; step < steps; step++) {
        unsigned kind = draw(&seed) % 5, op = draw(&seed) % 4;
        *in_place = *in_place || (kind == 4 && op % 2);
        const char *in = kind == 2 || kind == 4 ? all[2] : all[0];
        const char *out = kind == 4 ? all[3 - op % 2] : kind == 3 ? all[2] : all[1];
        const char *then = kind != 4 ? "yx" : op % 2 ? "wv" : "vw";
        static const char *const kinds[] = { "all_reduce", "broadcast", "reduce_scatter", "all_gather", "all_to_all" };
        at += snprintf(text + at, sizeof text - (size_t)at, "%s{\"id\":\"c%u\",\"collective\":\"%s\",\"on\":[",
                       step ? "," : "", step, kinds[kind]);
        for (int i = 0; i < ranks; i++)
            at += snprintf(text + at, sizeof text - (size_t)at, "%s%d", i ? "," : "", i + 1);
        at +=
            snprintf(text + at, sizeof text - (size_t)at, "],\"in\":[%.*s],\"out\":[%s]", kind == 1 ? 6 : 200, in, out);
        at += kind == 1   ? snprintf(text + at, sizeof text - (size_t)at, ",\"root\":0}")
              : kind >= 3 ? snprintf(text + at, sizeof text - (size_t)at, "}")
                          : snprintf(text + at, sizeof text - (size_t)at, ",\"op\":\"%s\"}", ops[op]);
        at += snprintf(text + at, sizeof text - (size_t)at,
                       ",{\"id\":\"t%u[i]\",\"for\":{\"i\":%d},\"on\":\"i + "
                       "1\",\"kernel\":\"copy\",\"args\":{\"x\":\"%c[i]\",\"y\":\"%c[i]\"}}",
                       step, ranks, then[0], then[1]);
    }
    snprintf(text + at, sizeof text - (size_t)at, "]}");
    return parse(text);
}

/* ---- who writes and awaits a counter ---- */

enum { MOST_COUNTERS = 4096 };

typedef struct counted {
    uint64_t at;
    int device[2], worker[2]; /* who writes it, who awaits it; worker -1: a stream may */
    bool near[2];
} counted;

typedef struct counters {
    counted of[MOST_COUNTERS];
    int count;
} counters;

static void see_counter(counters *all, uint64_t at, int waits, int device, int worker, bool near)
{
    int i = 0;
    while (i < all->count && all->of[i].at != at)
        i++;
    counted *c = &all->of[i];
    if (i == all->count) {
        ck_assert_int_lt(all->count++, MOST_COUNTERS);
        *c = (counted){ .at = at, .worker = { -1, -1 } };
    }
    ck_assert_msg(c->worker[waits] < 0 || (c->device[waits] == device && c->worker[waits] == worker),
                  "a counter is %s by workers %d of GPU %d and %d of GPU %d", waits ? "awaited" : "written",
                  c->worker[waits], c->device[waits], worker, device);
    c->device[waits] = device;
    c->worker[waits] = worker;
    c->near[waits] = near;
}

static void see_counters(void *context, int device, int worker, const gy_resident_packet *p)
{
    const gy_resident_wait *wait = (const gy_resident_wait *)(const void *)p->word;
    const gy_resident_signal *signal =
        (const gy_resident_signal *)(const void *)(p->word + GY_RESIDENT_WAIT_WORDS * p->waits);
    for (int i = 0; i < p->waits; i++)
        see_counter(context, wait[i].counter, 1, device, worker, i < p->near_waits);
    for (int i = 0; i < p->signals; i++)
        see_counter(context, signal[i].counter, 0, device, worker, i < p->near_signals);
}

/* One worker alone writes a counter, one alone awaits it; where they do so at the scope of a GPU, it is the GPU of
 * both. */
static void check_counters(const world *w, int gpus)
{
    static counters all;
    gantry_run *run = open_run(w->s, "cuda");
    run_results(run, w->g);
    all.count = 0;
    each_packet(gpus, see_counters, &all);
    for (int i = 0; i < all.count; i++) {
        const counted *c = &all.of[i];
        bool both = c->worker[0] >= 0 && c->worker[1] >= 0;
        ck_assert_msg(!both || c->near[0] == c->near[1], "counter %d is near for one of two", i);
        ck_assert_msg(!both || !c->near[0] || c->device[0] == c->device[1], "counter %d is near between GPUs %d and %d",
                      i, c->device[0], c->device[1]);
    }
    gantry_run_free(run);
}

/* Lanes of several GPUs meet by counters, and each GPU combines its share. Streams have those that go to all in place,
 * and copies to the host. */
START_TEST(collectives)
{
    char replay[512];
    int gpus = 2 + _i % 3;
    fakeCudaDevices(gpus, "all", 0);
    fakeCudaSeed((uint64_t)_i + 1);
    bool in_place = false;
    world w = make(random_collectives((uint64_t)_i + 1, gpus, &in_place), ring_machine(gpus, 1 + _i % 2));
    compare_with_host(w.g, w.s, 3, replay, sizeof replay);
    const char *left = strchr(replay, ';');
    bool staged = left && strstr(left, "it overwrites what other ranks read: give what it writes memory of its own");
    ck_assert_msg(begins(replay, "device") && (!left || staged || strstr(left, "\"copy ")), "%s", replay);
    ck_assert_msg(in_place ? left != NULL : !staged, "%s", replay);
    check_counters(&w, gpus);
    drop(&w);
}
END_TEST

/* Nothing is left to streams: workers copy few bytes to the host, too. */
START_TEST(outputs)
{
    char replay[512];
    fakeCudaDevices(2, "all", 0);
    fakeCudaSeed((uint64_t)_i + 1);
    world w = make(ring_of(2, 2, 3, 64 << _i % 4, true), ring_machine(2, 1));
    compare_with_host(w.g, w.s, 3, replay, sizeof replay);
    ck_assert_str_eq(replay, "device");
    drop(&w);
}
END_TEST

/* Calls of many blocks are shared by all workers of a lane. */
START_TEST(wide)
{
    char replay[512];
    fakeCudaDevices(2, "all", 0);
    fakeCudaSeed((uint64_t)_i + 1);
    world w = make(ring_of(0, 2, 3, 1 << 15, true), ring_machine(2, 1));
    compare_with_host(w.g, w.s, 2, replay, sizeof replay);
    ck_assert_msg(begins(replay, "device"), "%s", replay);
    drop(&w);
}
END_TEST

/* Scales of arrays of their own, each in a lane of its own; the first and the last are outputs. */
static gantry_graph *scales_of(const int64_t length[3])
{
    gantry_graph *g = gantry_graph_new("scales");
    for (int i = 0; i < 3; i++) {
        char id[16];
        gantry_buffer b[2];
        for (int k = 0; k < 2; k++) {
            snprintf(id, sizeof id, "%c%d", "xy"[k], i);
            b[k] = gantry_graph_buffer(g, id, GANTRY_F32, 1, &length[i]);
            gantry_buffer_init_iota(g, b[k]);
            gantry_buffer_set_class(g, b[k], GANTRY_STATE);
        }
        if (i != 1)
            gantry_buffer_output(g, b[1]);
        snprintf(id, sizeof id, "n%d", i);
        gantry_node node = gantry_graph_kernel(g, id, "scale");
        gantry_node_scalar(g, node, "a", 3);
        gantry_node_arg(g, node, "x", gantry_all(b[0]));
        gantry_node_arg(g, node, "y", gantry_all(b[1]));
        gantry_node_on(g, node, "gpu0");
        gantry_node_share(g, node, 0.3); /* or the scheduler would put those that fill the GPU into one lane */
    }
    return g;
}

/* The blocks of each scale, and the workers of its lane, the most blocks first. */
typedef struct shared {
    uint32_t blocks[3], workers[3];
    int count;
} shared;

static void note_shared(void *context, int device, int worker, const gy_resident_packet *packet)
{
    shared *s = context;
    if (packet->function != GY_RESIDENT_scale_f32)
        return;
    ck_assert_int_lt(s->count, 3);
    int at = s->count++;
    for (; at > 0 && s->blocks[at - 1] < packet->blocks_x; at--) {
        s->blocks[at] = s->blocks[at - 1];
        s->workers[at] = s->workers[at - 1];
    }
    s->blocks[at] = packet->blocks_x;
    s->workers[at] = workers_of(device, worker);
}

/* A GPU has room for 16 workers, also where streams copy to the host, which takes none of it. Each lane has one. Of the
 * other 12, a lane with 64 blocks, four times those of another, has twice as many. With one more lane that copies there
 * are 11: a lane of 4 blocks can use no more than 3 of them, and the rest is that of 12 blocks. */
START_TEST(shares)
{
    static const int64_t length[2][3] = { { 1 << 17, 1 << 14, 256 }, { 12288, 4096, 256 } };
    static const uint32_t wanted[2][3] = { { 9, 5, 1 }, { 9, 4, 1 } };
    char replay[512];
    shared found = { .count = 0 };
    fakeCudaDevices(1, "all", 0);
    world w = make(scales_of(length[_i]), ring_machine(1, 4));
    compare_with_host(w.g, w.s, 2, replay, sizeof replay);
    ck_assert_msg(begins(replay, _i ? "device" : "device and stream"), "%s", replay);
    gantry_run *run = open_run(w.s, "cuda");
    run_results(run, w.g);
    each_packet(1, note_shared, &found);
    gantry_run_free(run);
    ck_assert_int_eq(found.count, 3);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(found.workers[i] == wanted[_i][i], "%u blocks have %u workers, not %u", found.blocks[i],
                      found.workers[i], wanted[_i][i]);
    drop(&w);
}
END_TEST

START_TEST(scalars)
{
    static const char scaled[] =
        "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[100],\"split\":2,\"init\":\"iota\"},"
        "\"y\":{\"dtype\":\"f32\",\"shape\":[100],\"split\":2,\"output\":true}},"
        "\"nodes\":[{\"id\":\"s[i]\",\"for\":{\"i\":2},\"kernel\":\"scale\",\"args\":{\"a\":{\"dynamic\":2},\"x\":\"x["
        "i]"
        "\",\"y\":\"y[i]\"}}]}";
    fakeCudaDevices(2, "all", 0);
    world w = make(parse(scaled), ring_machine(2, 1));
    gantry_run *host = open_run(w.s, "host"), *run = open_run(w.s, "cuda");
    for (int start = 0; start < 4; start++) {
        for (uint32_t i = 0; i < 2; i++) {
            gantry_node node = gantry_graph_find_node(w.g, i ? "s[1]" : "s[0]");
            MUST(gantry_run_set_scalar(host, node, "a", 3 + start, MUST_ERR));
            MUST(gantry_run_set_scalar(run, node, "a", 3 + start, MUST_ERR));
        }
        results wanted = run_results(host, w.g), got = run_results(run, w.g);
        ck_assert(same(&wanted, &got));
    }
    gantry_run_free(host);
    gantry_run_free(run);
    drop(&w);
}
END_TEST

static const char *const failing[] = { "cuLaunchCooperativeKernel", "cuStreamWaitValue64", "cuStreamWriteValue64",
                                       "cuEventRecord", "cuMemcpyDtoHAsync" };

/* Lists are of more than workers copy to the host, so streams have something to do.
 *
 * A start of which a part was not given to the GPUs comes to its end, and the next one is right. */
START_TEST(failures)
{
    int failed = 0;
    fakeCudaDevices(2, "all", 0);
    for (int nth = 1; nth <= 4; nth++) {
        char spec[64];
        gantry_error err = { 0 };
        fakeCudaSeed((uint64_t)nth);
        world w = make(ring_of(0, 4, 3, 17 << 10, true), ring_machine(2, 2));
        gantry_run *host = open_run(w.s, "host"), *run = open_run(w.s, "cuda");
        results wanted = run_results(host, w.g), got = run_results(run, w.g);
        ck_assert(same(&wanted, &got));
        snprintf(spec, sizeof spec, "%s:%d:2", failing[_i], nth);
        fakeCudaFail(spec);
        uint64_t ticket = 0;
        gantry_status status = gantry_run_start(run, &ticket, &err);
        status = status ? status : gantry_run_wait(run, ticket, &err);
        fakeCudaFail(NULL);
        failed += status != GANTRY_OK;
        ck_assert_msg(status == GANTRY_OK || strstr(err.text, "CUDA_ERROR_OUT_OF_MEMORY"), "%s", err.text);
        MUST(gantry_run_start(run, &ticket, MUST_ERR));
        MUST(gantry_run_wait(run, ticket, MUST_ERR));
        gantry_run_free(run);
        run = open_run(w.s, "cuda");
        gantry_run_free(host);
        host = open_run(w.s, "host");
        for (int start = 0; start < 2; start++) {
            wanted = run_results(host, w.g);
            got = run_results(run, w.g);
            ck_assert(same(&wanted, &got));
        }
        gantry_run_free(host);
        gantry_run_free(run);
        drop(&w);
    }
    ck_assert_int_gt(failed, 1);
}
END_TEST

/* A wait that nobody ends, of a worker or a stream: the watchdog names the op and the counter, the GPUs are free again,
 * and another run is right. */
START_TEST(hung)
{
    gantry_error err = { 0 };
    gantry_run *run = NULL;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    uint64_t ticket = 0;
    fakeCudaDevices(2, "all", 0);
    fakeCudaPatience(-1);
    world w = make(ring_of(0, 4, 3, _i ? 17 << 10 : 64, true), ring_machine(2, 2));
    spoiled_wait spoiled = spoil_wait(w.s, _i);
    options.backend = "cuda";
    options.deadline_us = 2e6;
    MUST(gantry_run_new(&run, w.s, &options, MUST_ERR));
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    ck_assert_int_eq(gantry_run_wait(run, ticket, &err), GANTRY_E_TIMEOUT);
    ck_assert_msg(strstr(err.text, "the deadline of 2000.000 ms passed") && strstr(err.text, "; op "), "%s", err.text);
    const char *lacked = SLOW ? NULL : lacks(&spoiled, err.text);
    ck_assert_msg(!lacked, "%s, not %s", err.text, lacked);
    ck_assert_int_eq(gantry_run_start(run, &ticket, &err), GANTRY_E_TIMEOUT);
    gantry_run_free(run);
    mend_wait(spoiled);
    char replay[512];
    compare_with_host(w.g, w.s, 2, replay, sizeof replay);
    drop(&w);
}
END_TEST

static void start_and_wait(gantry_run *run)
{
    uint64_t ticket = 0;
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    MUST(gantry_run_wait(run, ticket, MUST_ERR));
}

/* Where workers do all of a start, no stream waits for another: the host sees the end of each kernel. A run may be
 * freed before that.
 */
START_TEST(nothing_for_streams)
{
    enum { GPUS = 3 };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    gantry_run *run = NULL;
    uint64_t ticket = 0;
    fakeCudaDevices(GPUS, "all", 0);
    fakeCudaSeed((uint64_t)_i + 1);
    world w = make(ring_of(GPUS, 6, 4, 64, false), ring_machine(GPUS, 2));
    options.backend = "cuda";
    MUST(gantry_run_new(&run, w.s, &options, MUST_ERR));
    start_and_wait(run);
    int waits = fakeCudaCalls("cuStreamWaitEvent"), events = fakeCudaCalls("cuEventRecord");
    start_and_wait(run);
    ck_assert_int_eq(fakeCudaCalls("cuStreamWaitEvent"), waits);
    ck_assert_int_eq(fakeCudaCalls("cuEventRecord"), events + GPUS + 1);
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    gantry_run_free(run);
    drop(&w);
}
END_TEST

/* Numbers that are drawn and that count are the workers', in parts and tiles, too; normal ones are uploaded by a stream
 * beside them. */
START_TEST(drawn)
{
    static const char *const dtypes[] = { "f32", "f64", "bf16", "f16", "u8", "i64" };
    static const char format[] =
        "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"%s\",\"shape\":[20011],\"split\":4},"
        "\"b\":{\"dtype\":\"%s\",\"shape\":[20011],\"split\":4,\"output\":true},"
        "\"t\":{\"dtype\":\"%s\",\"shape\":[33,21],\"tiles\":[2,2],\"output\":true},"
        "\"z\":{\"dtype\":\"f32\",\"shape\":[501],\"output\":true}},\"nodes\":["
        "{\"for\":{\"i\":4},\"nodes\":[{\"id\":\"d[i]\",\"fill\":{\"to\":\"a[i]\",\"random\":{\"seed\":4,\"low\":1,"
        "\"high\":90}}},{\"id\":\"e[i]\",\"fill\":{\"to\":\"b[i]\",\"iota\":{\"start\":3,\"step\":2}}},"
        "{\"id\":\"k[i]\",\"kernel\":\"axpby\",\"args\":{\"a\":1,\"b\":1,\"x\":\"a[i]\",\"y\":\"b[i]\"}}]},"
        "{\"id\":\"t\",\"fill\":{\"to\":\"t\",\"random\":{\"seed\":2,\"low\":0,\"high\":100}}},"
        "{\"id\":\"z\",\"fill\":{\"to\":\"z\",\"%s\":{\"seed\":5}}}]}";
    char text[1600], replay[512];
    const char *dtype = dtypes[_i % 6];
    bool is_normal = _i >= 6;
    fakeCudaDevices(2, "all", 0);
    fakeCudaSeed((uint64_t)_i + 1);
    snprintf(text, sizeof text, format, dtype, dtype, dtype, is_normal ? "normal" : "random");
    world w = make(parse(text), ring_machine(2, 2));
    int launches = fakeCudaCalls("cuLaunchKernel");
    compare_with_host(w.g, w.s, 3, replay, sizeof replay);
    ck_assert_msg(begins(replay, "device"), "%s", replay);
    ck_assert_int_eq(fakeCudaCalls("cuLaunchKernel"), launches);
    drop(&w);
}
END_TEST

/* Kernels of two runs wait for kernels of their own on another GPU, while each has one of the GPUs: so runs take turns,
 * in one order on all GPUs. Results are those of runs alone. */
START_TEST(two_runs)
{
    enum { RUNS = 3, STARTS = 4 };
    uint64_t ticket[RUNS];
    gantry_run *run[RUNS], *host;
    world w[RUNS];
    int gpus = 1 + _i % 3;
    fakeCudaDevices(gpus, "all", 0);
    fakeCudaSeed((uint64_t)_i + 1);
    for (int k = 0; k < RUNS; k++) { /* of some, streams carry a part out */
        w[k] = make(ring_of(k < 2 ? gpus : 0, 4, 3 + k, k == 1 ? 17 << 10 : 64, true), ring_machine(gpus, 2));
        run[k] = open_run(w[k].s, "cuda");
    }
    for (int start = 0; start < STARTS; start++) {
        for (int k = 0; k < RUNS; k++)
            MUST(gantry_run_start(run[(k + start) % RUNS], &ticket[(k + start) % RUNS], MUST_ERR));
        for (int k = RUNS; k-- > 0;)
            MUST(gantry_run_wait(run[k], ticket[k], MUST_ERR));
    }
    for (int k = 0; k < RUNS; k++) {
        results wanted, got = outputs_of(run[k], w[k].g);
        host = open_run(w[k].s, "host");
        for (int start = 0; start < STARTS; start++)
            wanted = run_results(host, w[k].g);
        ck_assert_msg(same(&wanted, &got), "run %d", k);
        ck_assert(begins(replay_of(run[k]), "device"));
        gantry_run_free(host);
    }
    for (int k = 0; k < RUNS; k++)
        gantry_run_free(run[k]);
    for (int k = 0; k < RUNS; k++) {
        gantry_schedule_free(w[k].s);
        gantry_machine_free(w[k].m);
        gantry_graph_free(w[k].g);
    }
    check_alive();
}
END_TEST

static void check_refused(gantry_graph *g, gantry_machine *m, const char *why)
{
    char replay[512];
    world w = make(g, m);
    int launches = fakeCudaCalls("cuLaunchCooperativeKernel");
    compare_with_host(w.g, w.s, 2, replay, sizeof replay);
    ck_assert_msg(begins(replay, "stream; not by the device: ") && strstr(replay, why), "%s", replay);
    ck_assert_int_eq(fakeCudaCalls("cuLaunchCooperativeKernel"), launches);
    drop(&w);
}

/* The run says what is in the way, and starts are replayed otherwise. */
START_TEST(no_peers)
{
    static const char *const remedy[] = { "\"gantry doctor\" says why; or plan for GPUs that do (--devices, --machine)",
                                          "unset GANTRY_CUDA_PEERS" };
    fakeCudaDevices(2, _i ? "all" : "none", 0);
    setenv("GANTRY_CUDA_PEERS", _i ? "off" : "on", 1);
    check_refused(ring_of(0, 4, 2, 64, true), ring_machine(2, 1),
                  "GPUs that wait for each other do not reach each other's memory (\"gpu");
    check_refused(ring_of(0, 4, 2, 64, true), ring_machine(2, 1), remedy[_i]);
    unsetenv("GANTRY_CUDA_PEERS");
}
END_TEST

START_TEST(too_many_lanes)
{
    setenv("FAKE_CUDA_PLACES", "1", 1); /* before the driver is looked at */
    fakeCudaDevices(2, "all", 0);
    check_refused(
        ring_of(0, 8, 2, 64, true), ring_machine(2, 4),
        " on \"gpu0\", those that copy too, and it can run 1): give its device of the machine fewer \"lanes\"");
}
END_TEST

START_TEST(two_devices_of_one)
{
    fakeCudaDevices(1, "all", 0);
    check_refused(ring_of(0, 4, 2, 64, true), shared_machine(2, 1), "plan for one device a GPU (--devices)");
}
END_TEST

/* Each is in the way by itself, and a word that changes nothing is not. */
START_TEST(surroundings)
{
    static const struct {
        const char *name, *none, *some, *why;
    } way[] = { { "CUDA_LAUNCH_BLOCKING", "0", "1", "CUDA_LAUNCH_BLOCKING is set" },
                { "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "100", "49.5", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE leaves" },
                { "FAKE_CUDA_DISPLAY", NULL, "1", "leave it out by CUDA_VISIBLE_DEVICES" } };
    char replay[512];
    if (way[_i].none)
        setenv(way[_i].name, way[_i].none, 1);
    fakeCudaDevices(2, "all", 0);
    world w = make(ring_of(2, 4, 2, 64, false), ring_machine(2, 2));
    compare_with_host(w.g, w.s, 2, replay, sizeof replay);
    ck_assert_str_eq(replay, "device");
    drop(&w);
    setenv(way[_i].name, way[_i].some, 1);
    check_refused(ring_of(0, 4, 2, 64, true), ring_machine(2, 1), way[_i].why);
    unsetenv(way[_i].name);
}
END_TEST

START_TEST(debugged)
{
    fakeCudaDebug(1);
    fakeCudaDevices(2, "all", 0);
    check_refused(ring_of(0, 4, 2, 64, true), ring_machine(2, 1), "run it without, or with the replay mode \"stream\"");
    fakeCudaDebug(0);
}
END_TEST

/* Nothing that workers have code for. */
START_TEST(no_lane)
{
    static const char sorted[] =
        "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"u8\",\"shape\":[100],\"init\":\"iota\"},"
        "\"y\":{\"dtype\":\"u32\",\"shape\":[256],\"init\":0,\"output\":true}},"
        "\"nodes\":[{\"id\":\"h\",\"kernel\":\"histogram\",\"args\":{\"x\":\"x\",\"out\":\"y\"}}]}";
    fakeCudaDevices(1, "all", 0);
    check_refused(parse(sorted), ring_machine(1, 1),
                  "workers have code for no stretch of its ops: they have formulas, small kernels of the library");
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("resident replay");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, rings, 0, SEEDS);
    tcase_add_loop_test(c, random_graphs, 0, SEEDS);
    tcase_add_loop_test(c, outputs, 0, SEEDS);
    tcase_add_loop_test(c, wide, 0, 2);
    tcase_add_test(c, scalars);
    tcase_add_loop_test(c, failures, 0, (int)(sizeof failing / sizeof *failing));
    tcase_add_loop_test(c, nothing_for_streams, 0, SEEDS);
    tcase_add_loop_test(c, two_runs, 0, SEEDS);
    tcase_add_loop_test(c, no_peers, 0, 2);
    tcase_add_test(c, too_many_lanes);
    tcase_add_test(c, two_devices_of_one);
    tcase_add_test(c, no_lane);
    tcase_add_loop_test(c, surroundings, 0, 3);
    tcase_add_test(c, debugged);
    Suite *s = suite_create("resident replay");
    TCase *together = tcase_create("collectives");
    tcase_set_timeout(together, 120);
    tcase_add_loop_test(together, collectives, 0, 2 * SEEDS);
    suite_add_tcase(s, together);
    TCase *fills = tcase_create("fills");
    tcase_set_timeout(fills, 60);
    tcase_add_loop_test(fills, drawn, 0, 8);
    TCase *dealt = tcase_create("workers of lanes");
    tcase_set_timeout(dealt, 60);
    tcase_add_loop_test(dealt, shares, 0, 2);
    TCase *hang = tcase_create("hung");
    tcase_set_timeout(hang, 60);
    tcase_add_loop_test(hang, hung, 0, 2);
    suite_add_tcase(s, hang);
    suite_add_tcase(s, dealt);
    suite_add_tcase(s, fills);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
