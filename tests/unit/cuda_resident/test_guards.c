/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that run by a flag, carried out by workers: what they have left is the host's, bit for bit, with flags that
 * change within a start and from start to start. Which packets ask a flag is read from the memory of emulated GPUs.
 */
#include "control.h"
#include "packets.h"
#include "rings.h"
#include "schedule/schedule.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT = 16384, MOST_OPS = 512, SEEDS = 16, STARTS = 4 };

typedef struct draft {
    char text[TEXT];
    int length;
} draft;

static void add(draft *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(draft *d, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    d->length += vsnprintf(d->text + d->length, sizeof d->text - (size_t)d->length, format, list);
    va_end(list);
    ck_assert_int_lt(d->length, TEXT);
}

static gantry_graph *parse(const draft *d)
{
    gantry_graph *g = NULL;
    MUST(gantry_graph_parse(&g, d->text, (size_t)d->length, "graph of the test", NULL, NULL, MUST_ERR));
    return g;
}

/* ---- what workers were given ---- */

typedef struct programs {
    bool packet[MOST_OPS], guarded[MOST_OPS], helped[MOST_OPS];
} programs;

static void see(void *to, int device, int worker, const gy_resident_packet *p)
{
    programs *all = to;
    (void)device;
    (void)worker;
    ck_assert_uint_lt(p->op, MOST_OPS);
    ck_assert_msg(!p->guarded || !p->sends, "op %u sends, and may store nothing", p->op);
    ck_assert_msg(!all->packet[p->op] || !p->function || all->guarded[p->op] == p->guarded || !all->guarded[p->op],
                  "only some of op %u ask its flag", p->op);
    all->packet[p->op] = true;
    all->guarded[p->op] = all->guarded[p->op] || p->guarded;
    all->helped[p->op] = all->helped[p->op] || p->shared;
}

typedef struct found {
    int guarded, helped; /* ops; of these, those that several workers share */
} found;

/* Workers ask a flag for just those of their ops whose node has a `when`. */
static found look_at(const gantry_schedule *s, int gpus)
{
    static programs p;
    found f = { 0 };
    memset(&p, 0, sizeof p);
    each_packet(gpus, see, &p);
    for (uint32_t i = 0; i < s->ops.count; i++) {
        bool conditional = gy_op_is_conditional(s, &s->ops.at[i]);
        ck_assert_msg(!p.packet[i] || p.guarded[i] == conditional, "op %u", i);
        f.guarded += p.packet[i] && conditional;
        f.helped += p.helped[i] && conditional;
    }
    return f;
}

static found run_both(gantry_graph *g, gantry_machine *m, int gpus, const char *policy, bool whole)
{
    gantry_schedule *s = make_schedule(g, m, "device", policy);
    gantry_run *host = open_run(s, "host"), *run = open_run(s, "cuda");
    for (int start = 0; start < STARTS; start++) {
        results wanted = run_results(host, g), got = run_results(run, g);
        ck_assert_msg(same(&wanted, &got), "start %d", start);
    }
    ck_assert_msg(strncmp(replay_of(run), "device", 6) == 0 && (!whole || !strstr(replay_of(run), "not by")), "%s",
                  replay_of(run));
    found f = look_at(s, gpus);
    gantry_run_free(host);
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
    char text[160];
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "left behind: %s", text);
    return f;
}

/* ---- random graphs ---- */

static unsigned draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33);
}

enum { FLAGS = 3 };

static void add_array(draft *d, const char *name, int number, const char *dtype, unsigned rows, unsigned parts)
{
    add(d,
        "\"%s%d\":{\"dtype\":\"%s\",\"shape\":[%u],\"split\":%u,\"init\":\"iota\",\"output\":true,\"class\":\"state\"}"
        ",",
        name, number, dtype, rows, parts);
}

/* Flags 0 and 1 change to and fro, each time that they are changed; flag 2 is 0 or -0 by flag 1. */
static void change_flag(draft *d, int node, unsigned flag)
{
    if (flag < 2)
        add(d, ",{\"id\":\"n%d\",\"kernel\":\"axpby\",\"args\":{\"a\":1,\"b\":-1,\"x\":\"one\",\"y\":\"f%u\"}}", node,
            flag);
    else
        add(d, ",{\"id\":\"n%d\",\"kernel\":\"scale\",\"args\":{\"a\":-1,\"x\":\"f1\",\"y\":\"f2\"}}", node);
}

static void add_random(draft *d, int node, uint64_t *seed, unsigned arrays, unsigned parts)
{
    unsigned x = draw(seed) % arrays, y = (x + 1 + draw(seed) % (arrays - 1)) % arrays;
    unsigned from = draw(seed) % parts, to = draw(seed) % parts;
    add(d, ",{\"id\":\"n%d\"", node);
    if (draw(seed) % 3)
        add(d, ",\"when\":{\"buffer\":\"f%u\"}", draw(seed) % FLAGS);
    unsigned kind = draw(seed) % 5;
    if (kind == 0)
        add(d, ",\"copy\":{\"from\":\"b%u[%u]\",\"to\":\"b%u[%u]\"}}", x, from, y, to);
    else if (kind == 1)
        add(d, ",\"fill\":{\"to\":\"b%u[%u]\",\"value\":%u}}", y, to, draw(seed) % 9);
    else if (kind == 2)
        add(d, ",\"kernel\":\"reduce_sum\",\"args\":{\"x\":\"b%u[%u]\",\"out\":\"t\"}}", x, from);
    else
        add(d, ",\"kernel\":\"axpby\",\"args\":{\"a\":0.5,\"b\":0.25,\"x\":\"b%u[%u]\",\"y\":\"b%u[%u]\"}}", x, from, y,
            to);
}

static gantry_graph *random_graph(uint64_t seed)
{
    draft d = { "{\"gantry\":1,\"buffers\":{", 23 };
    unsigned arrays = 3 + draw(&seed) % 3, parts = 2 + draw(&seed) % 2, rows = 12 * (1 + draw(&seed) % 200);
    const char *dtype = draw(&seed) % 2 ? "f64" : "f32"; /* of flags */
    for (unsigned i = 0; i < arrays; i++)
        add_array(&d, "b", (int)i, "f32", rows, parts);
    for (int i = 0; i < FLAGS; i++)
        add_array(&d, "f", i, dtype, 1, 1);
    add(&d, "\"one\":{\"dtype\":\"%s\",\"shape\":[1],\"init\":1},", dtype);
    add(&d, "\"t\":{\"dtype\":\"f32\",\"shape\":[1],\"init\":0,\"output\":true}},\"nodes\":[");
    add(&d,
        "{\"id\":\"first\",\"kernel\":\"copy\",\"args\":{\"x\":\"one\",\"y\":\"f0\"},\"when\":{\"buffer\":\"f1\"}}");
    int nodes = 10 + (int)(draw(&seed) % 14);
    for (int i = 0; i < nodes; i++)
        if (draw(&seed) % 4 == 0)
            change_flag(&d, i, draw(&seed) % FLAGS);
        else
            add_random(&d, i, &seed, arrays, parts);
    change_flag(&d, nodes, 1);
    add(&d, "]}");
    return parse(&d);
}

START_TEST(random_graphs)
{
    int guarded = 0;
    for (int seed = 1; seed <= SEEDS; seed++) {
        int gpus = 1 + seed % 3;
        fakeCudaDevices(gpus, "all", 0);
        fakeCudaSeed((uint64_t)seed);
        guarded +=
            run_both(random_graph((uint64_t)seed), small_machine(gpus, 1, 1 + seed % 4), gpus, "round-robin", false)
                .guarded;
    }
    ck_assert_int_gt(guarded, 4 * SEEDS);
}
END_TEST

/* ---- of one kind ---- */

/* A launch by a flag is followed by a copy of what it may have written to the other GPU. */
START_TEST(nothing_is_sent_by_a_flag)
{
    fakeCudaDevices(2, "all", 0);
    fakeCudaSeed((uint64_t)_i + 1);
    found f = run_both(flagged_of(2, 64 << _i % 4), small_machine(2, 1, 1), 2, NULL, true);
    ck_assert_int_eq(f.guarded, FLAGGED);
}
END_TEST

START_TEST(helpers_ask_as_well)
{
    fakeCudaDevices(2, "all", 0);
    fakeCudaSeed((uint64_t)_i + 1);
    found f = run_both(flagged_of(2, 3 << 12), ring_machine(2, 1), 2, NULL, true);
    ck_assert_int_eq(f.helped, FLAGGED);
}
END_TEST

/* A CPU's copy by a flag, which lies in memory of the host. */
START_TEST(flags_of_cpus)
{
    static const draft d = {
        "{\"gantry\":1,\"buffers\":{\"f\":{\"dtype\":\"f32\",\"shape\":[1],\"init\":0,\"class\":\"state\"},"
        "\"one\":{\"dtype\":\"f32\",\"shape\":[1],\"init\":1},"
        "\"x\":{\"dtype\":\"f32\",\"shape\":[64],\"init\":\"iota\"},\"z\":{\"dtype\":\"f32\",\"shape\":[64],\"init\":"
        "\"iota\"},"
        "\"y\":{\"dtype\":\"f32\",\"shape\":[64],\"init\":3,\"output\":true,\"class\":\"state\"}},\"nodes\":["
        "{\"id\":\"f\",\"on\":\"gpu0\",\"kernel\":\"axpby\",\"args\":{\"a\":1,\"b\":-1,\"x\":\"one\",\"y\":\"f\"}},"
        "{\"id\":\"c\",\"on\":\"cpu\",\"when\":{\"buffer\":\"f\"},\"copy\":{\"from\":\"x\",\"to\":\"y\"}},"
        "{\"id\":\"d\",\"on\":\"gpu0\",\"kernel\":\"axpby\",\"args\":{\"a\":1,\"b\":1,\"x\":\"z\",\"y\":\"y\"}}]}",
        0
    };
    fakeCudaDevices(1, "all", 0);
    draft text = d;
    text.length = (int)strlen(d.text);
    gantry_graph *g = parse(&text);
    gantry_machine *m = ring_machine(1, 1);
    gantry_schedule *s = make_schedule(g, m, "device", NULL);
    char replay[512];
    compare_with_host(g, s, STARTS, replay, sizeof replay);
    ck_assert_msg(strstr(replay, "the flag of its \"when\" is not in the memory of its GPU") != NULL, "%s", replay);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("flags of workers");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, random_graphs);
    tcase_add_loop_test(c, nothing_is_sent_by_a_flag, 0, 6);
    tcase_add_loop_test(c, helpers_ask_as_well, 0, 3);
    tcase_add_test(c, flags_of_cpus);
    Suite *s = suite_create("flags of workers");
    suite_add_tcase(s, c);
    return run_suite(s);
}
