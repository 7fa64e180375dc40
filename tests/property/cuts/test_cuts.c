/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No schedule is predicted below what its links can carry. Random graphs of collectives, copies and reductions on
 * random machines of islands; for every set of memories, the bytes that the ops of the schedule cannot help bringing
 * into the set are held against what the ports and the links around it carry until the end. The bytes are counted from
 * the rows that ops read and write and from the meaning of the kinds alone, so no algorithm is asked.
 */
#include "../../unit/scheduler/suite.h"

#include <stdio.h>

#define MOST_MEMORIES 8

static uint64_t state;

static uint32_t below(uint32_t n)
{
    uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((z ^ (z >> 31)) % n);
}

/* ---- machines: memory 0 is the host's, the others are dealt to islands; each has ports, islands have links ---- */

typedef struct world {
    uint32_t memories, islands, island[MOST_MEMORIES];
    double in[MOST_MEMORIES], out[MOST_MEMORIES], link[MOST_MEMORIES][MOST_MEMORIES]; /* GB/s */
    gantry_machine *m;
} world;

static void put_route(gy_text *t, const world *w, uint32_t from, uint32_t to)
{
    uint32_t a = w->island[from], b = w->island[to];
    gy_text_printf(t, ",{\"from\":\"m%u\",\"to\":\"m%u\",\"via\":[\"out%u\",\"in%u\"", from, to, from, to);
    double rate = w->out[from] < w->in[to] ? w->out[from] : w->in[to];
    if (a != b) {
        gy_text_printf(t, ",\"link%u.%u\"", a, b);
        rate = w->link[a][b] < rate ? w->link[a][b] : rate;
    }
    if (below(4))
        gy_text_printf(t, "],\"latency_us\":%u,\"bandwidth_gbs\":%g}", below(6), rate);
    else /* flat up to the first point: what is smaller takes as long */
        gy_text_printf(t, "],\"points\":[[%u,4],[%u,%g]]}", 4096U << below(6), 1U << 20, 4 + 1048576 / (rate * 1e3));
}

static void describe(world *w)
{
    *w = (world){ .memories = 3 + below(5), .islands = 1 + below(3) };
    for (uint32_t i = 0; i < w->memories; i++) {
        w->island[i] = i ? 1 + below(w->islands) : 0;
        w->in[i] = 1 + below(60);
        w->out[i] = 1 + below(60);
    }
    for (uint32_t a = 0; a <= w->islands; a++)
        for (uint32_t b = 0; b <= w->islands; b++)
            w->link[a][b] = 1 + below(20);
}

static void make_world(world *w)
{
    gy_text t = { 0 };
    describe(w);
    gy_text_add(&t, "{\"gantry_machine\":1,\"memories\":[{\"id\":\"m0\",\"capacity\":\"64GiB\"}");
    for (uint32_t i = 1; i < w->memories; i++)
        gy_text_printf(&t, ",{\"id\":\"m%u\",\"capacity\":\"64GiB\"}", i);
    gy_text_add(&t, "],\"devices\":[");
    for (uint32_t i = 1; i < w->memories; i++)
        gy_text_printf(&t, "%s{\"id\":\"d%u\",\"type\":\"gpu\",\"memory\":\"m%u\",\"copy_engines\":%u,\"launch_us\":1}",
                       i > 1 ? "," : "", i, i, 1 + below(4));
    gy_text_printf(&t, "],\"resources\":{\"out0\":%g,\"in0\":%g", w->out[0], w->in[0]);
    for (uint32_t i = 1; i < w->memories; i++)
        gy_text_printf(&t, ",\"out%u\":%g,\"in%u\":%g", i, w->out[i], i, w->in[i]);
    for (uint32_t a = 0; a <= w->islands; a++)
        for (uint32_t b = 0; b <= w->islands; b++)
            if (a != b)
                gy_text_printf(&t, ",\"link%u.%u\":%g", a, b, w->link[a][b]);
    gy_text_add(&t, "},\"routes\":[{\"from\":\"m0\",\"to\":\"m0\",\"bandwidth_gbs\":100}");
    for (uint32_t from = 0; from < w->memories; from++)
        for (uint32_t to = 0; to < w->memories; to++)
            if (from != to)
                put_route(&t, w, from, to);
    gy_text_add(&t, "]}");
    ck_assert(!t.failed);
    w->m = parse_machine(t.at);
    gy_text_free(&t);
}

/* ---- graphs: strands side by side; in each, regions made on devices, a collective or copies, and readers ---- */

typedef struct strand {
    gantry_graph *g;
    const world *w;
    uint32_t number, parts;
    int64_t rows, width; /* of a part, elements of a row */
    gantry_buffer x, y;
} strand;

static const char *name(const char *stem, uint32_t a, uint32_t b)
{
    static char text[48];
    snprintf(text, sizeof text, "%s%u.%u", stem, a, b);
    return text;
}

static void put_on(const strand *k, gantry_node n, uint32_t part)
{
    char where[16];
    snprintf(where, sizeof where, "d%u", 1 + part % (k->w->memories - 1));
    gantry_node_on(k->g, n, where);
}

static gantry_buffer make_buffer(const strand *k, const char *stem, int64_t rows)
{
    int64_t shape[2] = { rows, k->width };
    gantry_buffer b = gantry_graph_buffer(k->g, name(stem, k->number, 0), GANTRY_F32, 2, shape);
    gantry_buffer_split(k->g, b, (int)k->parts);
    return b;
}

/* Writes all parts of x, each on its device. */
static void make_parts(strand *k, bool sum)
{
    for (uint32_t i = 0; i < k->parts; i++) {
        gantry_node n = gantry_graph_work(k->g, name("make", k->number, i));
        gantry_region r = sum ? gantry_all(k->x) : gantry_part(k->x, (int)i);
        if (sum)
            gantry_node_reduce(k->g, n, r, GANTRY_SUM);
        else
            gantry_node_write(k->g, n, r);
        gantry_node_time(k->g, n, NULL, 1 + below(3));
        put_on(k, n, i);
    }
}

static void read_parts(strand *k, gantry_buffer b, bool all)
{
    for (uint32_t i = 0; i < k->parts; i++) {
        gantry_node n = gantry_graph_work(k->g, name("read", k->number, i));
        gantry_node_read(k->g, n, all ? gantry_all(b) : gantry_part(b, (int)(i + 1) % (int)k->parts));
        gantry_node_time(k->g, n, NULL, 1 + below(3));
        put_on(k, n, i);
    }
}

/* A collective node of the strand's parts: all_reduce in place, all_gather or all_to_all. */
static void add_node(strand *k)
{
    gantry_region in[MOST_MEMORIES], out[MOST_MEMORIES];
    static const gantry_collective kinds[] = { GANTRY_ALL_REDUCE, GANTRY_ALL_GATHER, GANTRY_ALL_TO_ALL,
                                               GANTRY_REDUCE_SCATTER };
    gantry_collective kind = kinds[below(4)];
    int64_t scale = kind == GANTRY_ALL_GATHER ? k->parts : 1;
    k->y = make_buffer(k, "y", kind == GANTRY_REDUCE_SCATTER ? k->rows : k->parts * k->rows * scale);
    bool reduces = kind == GANTRY_ALL_REDUCE || kind == GANTRY_REDUCE_SCATTER;
    for (uint32_t i = 0; i < k->parts; i++) {
        in[i] = gantry_part(k->x, (int)i);
        out[i] = gantry_part(k->y, (int)i);
    }
    (void)gantry_graph_collective(k->g, name("all", k->number, 0), kind, reduces ? GANTRY_SUM : (gantry_access)0,
                                  k->parts, in, k->parts, out, 0);
    if (below(2))
        read_parts(k, k->y, false);
}

static void add_strand(gantry_graph *g, const world *w, uint32_t number)
{
    strand k = { .g = g, .w = w, .number = number, .parts = 2 + below(w->memories - 2) };
    k.rows = (int64_t)k.parts * (1 + below(4));
    k.width = 1 + below(1 << (1 + below(16)));
    k.x = make_buffer(&k, "x", k.parts * k.rows);
    uint32_t what = below(4);
    make_parts(&k, what == 3);
    if (what < 2)
        add_node(&k);
    else
        read_parts(&k, k.x, below(2));
}

static gantry_graph *random_graph(const world *w)
{
    gantry_graph *g = gantry_graph_new("cuts");
    uint32_t strands = 1 + below(6);
    for (uint32_t i = 0; i < strands; i++)
        add_strand(g, w, i);
    return g;
}

/* ---- what must get into a set of memories ---- */

static bool has(uint32_t set, uint32_t memory)
{
    return set >> memory & 1;
}

static uint32_t memory_of(const gantry_schedule *s, const gy_op *op, uint32_t use)
{
    return s->instances.at[s->use.at[op->use + use].instance].memory;
}

static double bytes_of(const gantry_schedule *s, const gy_op *op, uint32_t use)
{
    return (double)gy_use_bytes(s, &s->use.at[op->use + use]);
}

/* Of a node: whole regions, by the meaning of its kind. */
static double node_bytes(const gantry_schedule *s, const gy_op *op, uint32_t set)
{
    double outside = 0, inside = 0, most = 0;
    bool takes = false, reduces = op->collective == GANTRY_ALL_REDUCE;
    for (uint32_t i = 0; i < op->ins; i++) {
        bool far = !has(set, memory_of(s, op, i));
        outside += far ? bytes_of(s, op, i) : 0;
        most = far ? bytes_of(s, op, i) : most;
    }
    for (uint32_t i = op->ins; i < op->uses; i++) {
        takes = takes || has(set, memory_of(s, op, i));
        inside += has(set, memory_of(s, op, i)) ? bytes_of(s, op, i) : 0;
    }
    if (op->collective == GANTRY_ALL_TO_ALL)
        return outside * inside / (bytes_of(s, op, 0) * op->ins);
    if (op->collective == GANTRY_REDUCE_SCATTER)
        return most > 0 ? inside : 0;
    return !takes ? 0 : reduces ? most : outside;
}

/* Of one that scheduling put in: rows that are written in the set and are read outside it and nowhere in it, or, if
 * they are combined, are read outside it at all. */
static double row_bytes(const gantry_schedule *s, const gy_op *op, uint32_t set)
{
    const gy_use *u = &s->use.at[op->use];
    int64_t first = INT64_MAX, last = 0, rows = 0;
    for (uint32_t i = 0; i < op->uses; i++) {
        first = u[i].first < first ? u[i].first : first;
        last = u[i].last > last ? u[i].last : last;
    }
    for (int64_t row = first; row < last; row++) {
        bool wanted = false, far = false, near = false;
        for (uint32_t i = 0; i < op->uses; i++)
            if (u[i].first <= row && row < u[i].last) {
                bool inner = has(set, memory_of(s, op, i));
                wanted = wanted || (i >= op->ins && inner);
                far = far || (i < op->ins && !inner);
                near = near || (i < op->ins && inner);
            }
        rows += wanted && far && (op->reduce || !near);
    }
    return (double)rows * (double)gy_use_bytes(s, u) / (double)(u->last - u->first);
}

static double must_enter(const gantry_schedule *s, uint32_t set)
{
    double sum = 0;
    for (size_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        if (gy_op_is_copy(op))
            sum += !has(set, memory_of(s, op, 0)) && has(set, memory_of(s, op, 1)) ? bytes_of(s, op, 0) : 0;
        else if (op->kind == GY_OP_COLLECTIVE)
            sum += op->node == GY_NONE ? row_bytes(s, op, set) : node_bytes(s, op, set);
    }
    return sum;
}

/* GB/s into the set: ports of those inside, ports of those outside, or the links where it is made of whole islands. */
static double can_enter(const world *w, uint32_t set)
{
    double in = 0, out = 0, links = 0;
    bool whole = true;
    for (uint32_t i = 0; i < w->memories; i++) {
        in += has(set, i) ? w->in[i] : 0;
        out += has(set, i) ? 0 : w->out[i];
        for (uint32_t k = 0; k < w->memories; k++)
            whole = whole && (w->island[i] != w->island[k] || has(set, i) == has(set, k));
    }
    for (uint32_t a = 0; a <= w->islands && whole; a++)
        for (uint32_t b = 0; b <= w->islands; b++) {
            bool from = false, to = false;
            for (uint32_t i = 0; i < w->memories; i++) {
                from = from || (w->island[i] == a && !has(set, i));
                to = to || (w->island[i] == b && has(set, i));
            }
            links += from && to ? w->link[a][b] : 0;
        }
    double ports = in < out ? in : out;
    return whole && links > 0 && links < ports ? links : ports;
}

static uint32_t collectives, tight;

static void hold_cuts(const world *w, const gantry_schedule *s, uint64_t seed)
{
    double us = gy_ticks_to_us(s->makespan), closest = 0;
    for (uint32_t set = 1; set + 1 < 1U << w->memories; set++) {
        double bytes = must_enter(s, set), rate = can_enter(w, set);
        double least = bytes / (rate * 1e3);
        ck_assert_msg(us >= least * (1 - 1e-5),
                      "seed %llu: %g us predicted, but %g bytes enter memories %#x at %g GB/s: %g us",
                      (unsigned long long)seed, us, bytes, set, rate, least);
        closest = least > closest ? least : closest;
    }
    collectives += count_kind(s, GY_OP_COLLECTIVE);
    tight += closest > us / 2;
}

START_TEST(none_below_its_cut)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        world w;
        state = seed;
        make_world(&w);
        gantry_graph *g = random_graph(&w);
        gantry_schedule *s = schedule(g, w.m, "heft");
        hold_cuts(&w, s, seed);
        gantry_schedule_free(s);
        gantry_graph_free(g);
        gantry_machine_free(w.m);
    }
    ck_assert_uint_gt(collectives, 200);
    ck_assert_uint_gt(tight, 50); /* the bound is worth something */
}
END_TEST

/* Four pairs of devices, each with an all_reduce of 256 MiB, over one link of 25 GB/s each way: 42.9 ms. */
static gantry_machine *pairs_over_one_link(void)
{
    gy_text t = { 0 };
    gy_text_add(&t, "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"64GiB\"}");
    for (int i = 0; i < 8; i++)
        gy_text_printf(&t, ",{\"id\":\"m%d\",\"capacity\":\"64GiB\"}", i);
    gy_text_add(&t, "],\"devices\":[");
    for (int i = 0; i < 8; i++)
        gy_text_printf(&t, "%s{\"id\":\"d%d\",\"type\":\"gpu\",\"memory\":\"m%d\"}", i ? "," : "", i, i);
    gy_text_add(&t, "],\"resources\":{\"there\":25,\"back\":25},\"routes\":["
                    "{\"from\":\"host\",\"to\":\"m*\",\"both\":true,\"bandwidth_gbs\":25}");
    for (int i = 0; i < 4; i++)
        gy_text_printf(&t,
                       ",{\"from\":\"m%d\",\"to\":\"m%d\",\"bandwidth_gbs\":25,\"via\":[\"there\"]},"
                       "{\"from\":\"m%d\",\"to\":\"m%d\",\"bandwidth_gbs\":25,\"via\":[\"back\"]}",
                       i, i + 4, i + 4, i);
    gy_text_add(&t, "]}");
    ck_assert(!t.failed);
    gantry_machine *m = parse_machine(t.at);
    gy_text_free(&t);
    return m;
}

START_TEST(four_over_one_link)
{
    gantry_machine *m = pairs_over_one_link();
    gantry_graph *g = gantry_graph_new("four");
    for (uint32_t i = 0; i < 4; i++) {
        int64_t rows = 2 * (64 << 20);
        gantry_buffer x = gantry_graph_buffer(g, name("x", i, 0), GANTRY_F32, 1, &rows);
        gantry_buffer_split(g, x, 2);
        gantry_region r[] = { gantry_part(x, 0), gantry_part(x, 1) };
        for (uint32_t k = 0; k < 2; k++) {
            char where[16];
            snprintf(where, sizeof where, "d%u", i + 4 * k);
            gantry_node n = gantry_graph_work(g, name("make", i, k));
            gantry_node_write(g, n, r[k]);
            gantry_node_on(g, n, where);
        }
        (void)gantry_graph_collective(g, name("all", i, 0), GANTRY_ALL_REDUCE, GANTRY_SUM, 2, r, 2, r, 0);
    }
    gantry_schedule *s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_kind(s, GY_OP_COLLECTIVE), 4);
    ck_assert_double_ge(gy_ticks_to_us(s->makespan), 4.0 * (256 << 20) / 25e3);
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuts");
    TCase *c = tcase_create("cuts");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, none_below_its_cut);
    tcase_add_test(c, four_over_one_link);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
