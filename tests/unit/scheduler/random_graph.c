/* SPDX-License-Identifier: Apache-2.0 */
#include "random_graph.h"

#include "base/map.h"
#include <stdio.h>

#define BUFFERS 7

typedef struct maker {
    uint64_t state;
    gantry_graph *g;
    gantry_buffer buffer[BUFFERS], wide; /* wide: tiles */
    int64_t rows[BUFFERS];
    gantry_node last;
    gantry_access op; /* of reductions: two in a row on the same rows must agree */
    int count;
    bool constant[BUFFERS];
} maker;

static int pick(maker *k, int n)
{
    k->state += UINT64_C(0x9e3779b97f4a7c15);
    return (int)(gy_hash64(k->state) % (uint64_t)n);
}

static const char *new_id(maker *k)
{
    static char id[32];
    snprintf(id, sizeof id, "n%d", k->count++);
    return id;
}

static void make_buffers(maker *k)
{
    char name[16];
    int parts = pick(k, 2) ? 1 + pick(k, 6) : 0;
    for (int i = 0; i < BUFFERS; i++) {
        snprintf(name, sizeof name, "b%d", i);
        k->rows[i] = i < 4 ? 24 : 1 + pick(k, 40); /* the first four are alike: carried, copied, joined */
        int64_t shape[2] = { k->rows[i], i == 6 ? 33 : 1 };
        k->buffer[i] = gantry_graph_buffer(k->g, name, GANTRY_F32, i == 6 ? 2 : 1, shape);
        if (i < 4 ? parts : pick(k, 3))
            gantry_buffer_split(k->g, k->buffer[i], i < 4 ? parts : 1 + pick(k, 6));
        static const gantry_buffer_class classes[] = { GANTRY_INPUT, GANTRY_STATE, GANTRY_TEMP, GANTRY_TEMP };
        gantry_buffer_class cls = i == 5 ? GANTRY_CONST : i < 2 ? GANTRY_TEMP : classes[pick(k, 4)];
        gantry_buffer_set_class(k->g, k->buffer[i], cls);
        k->constant[i] = cls == GANTRY_CONST;
        if (cls != GANTRY_TEMP)
            gantry_buffer_init_value(k->g, k->buffer[i], 1);
        else if (pick(k, 16))
            gantry_graph_fill(k->g, new_id(k), gantry_all(k->buffer[i]), pick(k, 2));
        if (!pick(k, 3))
            gantry_buffer_output(k->g, k->buffer[i]);
    }
    int64_t square[2] = { 10, 10 };
    k->wide = gantry_graph_buffer(k->g, "tiled", GANTRY_F64, 2, square);
    gantry_buffer_tiles(k->g, k->wide, 3, 3);
    gantry_buffer_init_value(k->g, k->wide, 0);
    if (pick(k, 2))
        gantry_buffer_output(k->g, k->wide);
}

static gantry_region some_rows(maker *k, int b)
{
    int64_t rows = k->rows[b], first = pick(k, (int)rows), last = first + 1 + pick(k, (int)(rows - first));
    if (!pick(k, 4))
        return gantry_all(k->buffer[b]);
    gantry_region r = gantry_rows(k->buffer[b], first, last);
    int before = pick(k, 6), after = pick(k, 3); /* no two calls of pick in one argument list: compilers differ */
    return before > 2 ? r : gantry_halo(r, before, after);
}

/* Accesses to different buffers, so that none overlap. */
static void add_accesses(maker *k, gantry_node n)
{
    for (int b = pick(k, 3); b < BUFFERS; b += 1 + pick(k, 4)) {
        gantry_region r = some_rows(k, b);
        int what = k->constant[b] ? 0 : pick(k, 9);
        if (what < 3)
            gantry_node_read(k->g, n, r);
        else if (what < 5)
            gantry_node_write(k->g, n, r);
        else if (what < 7)
            gantry_node_readwrite(k->g, n, r);
        else
            gantry_node_reduce(k->g, n, r, k->op);
    }
    if (!pick(k, 4)) {
        int i = pick(k, 3), j = pick(k, 3);
        gantry_region t = gantry_tile(k->wide, i, j);
        pick(k, 2) ? gantry_node_read(k->g, n, t) : gantry_node_readwrite(k->g, n, t);
    }
}

static void add_work(maker *k)
{
    static const char *const where[] = { "0", "devices-1", "3%devices", "1%devices" };
    gantry_node n = gantry_graph_work(k->g, new_id(k));
    add_accesses(k, n);
    if (pick(k, 2))
        gantry_node_time(k->g, n, NULL, pick(k, 50));
    else {
        int flops = pick(k, 1000000), bytes = pick(k, 1000000);
        gantry_node_cost(k->g, n, flops, bytes);
    }
    bool with = k->last.id != GANTRY_NONE && !pick(k, 12);
    if (with)
        gantry_node_with(k->g, n, k->last);
    else if (!pick(k, 3))
        gantry_node_on(k->g, n, where[pick(k, 4)]);
    if (k->last.id != GANTRY_NONE && !pick(k, 8))
        gantry_node_after(k->g, n, k->last);
    if (!pick(k, 10))
        gantry_node_priority(k->g, n, pick(k, 5));
    k->last.id = with ? GANTRY_NONE : n.id; /* groups of two: with a third, both may be pinned elsewhere */
}

/* The many small sums that make reductions over several devices. */
static void add_sums(maker *k)
{
    int b = pick(k, 4), count = 2 + pick(k, 4);
    gantry_region r = pick(k, 2) ? gantry_all(k->buffer[b]) : some_rows(k, b);
    for (int i = 0; i < count; i++) {
        gantry_node n = gantry_graph_work(k->g, new_id(k));
        gantry_node_time(k->g, n, NULL, 5);
        gantry_node_reduce(k->g, n, r, k->op);
    }
}

static void add_collective(maker *k)
{
    int a = pick(k, 4), b = (a + 1 + pick(k, 3)) % 4;
    gantry_region in[4], out[4];
    for (int i = 0; i < 4; i++) {
        in[i] = gantry_rows(k->buffer[a], 6 * i, 6 * i + 6);
        out[i] = gantry_rows(k->buffer[b], 6 * i, 6 * i + 6);
    }
    gantry_region all = gantry_all(k->buffer[b]), from = gantry_all(k->buffer[a]);
    int root = pick(k, 4);
    switch (pick(k, 7)) {
    case 0:
        gantry_graph_collective(k->g, new_id(k), GANTRY_ALL_REDUCE, GANTRY_SUM, 4, in, 4, root % 2 ? in : out, 0);
        break;
    case 1:
        gantry_graph_collective(k->g, new_id(k), GANTRY_REDUCE, GANTRY_MAX, 4, in, 1, out, root);
        break;
    case 2:
        gantry_graph_collective(k->g, new_id(k), GANTRY_BROADCAST, (gantry_access)0, 1, in, 4, out, root);
        break;
    case 3:
        gantry_graph_collective(k->g, new_id(k), GANTRY_SCATTER, (gantry_access)0, 1, &from, 4, out, root);
        break;
    case 4:
        gantry_graph_collective(k->g, new_id(k), GANTRY_GATHER, (gantry_access)0, 4, in, 1, &all, root);
        break;
    case 5:
        gantry_graph_collective(
            k->g, new_id(k), GANTRY_REDUCE_SCATTER, GANTRY_SUM, 2,
            (gantry_region[]){ gantry_rows(k->buffer[a], 0, 12), gantry_rows(k->buffer[a], 12, 24) }, 2, out, 0);
        break;
    default:
        gantry_graph_collective(k->g, new_id(k), GANTRY_ALL_TO_ALL, (gantry_access)0, 3, in, 3, out, 0);
        break;
    }
}

static void add_something(maker *k)
{
    int a = pick(k, 4), b = (a + 1 + pick(k, 3)) % 4;
    int64_t first = pick(k, 12), rows = 1 + pick(k, 12), to = pick(k, 12);
    switch (pick(k, 12)) {
    case 0:
        gantry_graph_copy(k->g, new_id(k), gantry_rows(k->buffer[a], first, first + rows),
                          gantry_rows(k->buffer[b], to, to + rows));
        break;
    case 1:
        gantry_graph_fill(k->g, new_id(k), some_rows(k, a), (double)(to % 2));
        break;
    case 2:
        add_collective(k);
        break;
    case 3:
    case 4:
        add_sums(k);
        break;
    default:
        add_work(k);
        break;
    }
}

gantry_graph *random_graph(uint64_t seed, int nodes)
{
    static const gantry_access ops[] = { GANTRY_SUM, GANTRY_MIN, GANTRY_MAX, GANTRY_PROD };
    maker k = { .state = seed * 977, .g = gantry_graph_new("random"), .last = { .id = GANTRY_NONE } };
    k.op = ops[pick(&k, 4)];
    make_buffers(&k);
    bool loop = pick(&k, 3) == 0;
    int begin = nodes / 4, end = nodes / 2;
    for (int i = 0; i < nodes; i++) {
        if (loop && i == begin) {
            k.last.id = GANTRY_NONE;
            gantry_graph_repeat(k.g, 1 + pick(&k, 4));
            int prev = pick(&k, 2), next = 2 + pick(&k, 2);
            if (pick(&k, 3))
                gantry_graph_carry(k.g, k.buffer[prev], k.buffer[next]);
            gantry_node n = gantry_graph_work(k.g, new_id(&k));
            gantry_node_write(k.g, n, gantry_all(k.buffer[2]));
            gantry_node_write(k.g, n, gantry_all(k.buffer[3]));
        }
        if (loop && i == end) {
            gantry_graph_repeat_end(k.g);
            k.last.id = GANTRY_NONE;
        }
        add_something(&k);
    }
    return k.g;
}
