/* SPDX-License-Identifier: Apache-2.0 */
#include "mixed.h"

#include "chain.h"
#include "schedule/schedule.h"
#include <stdio.h>

void mixed_by_counters(gantry_schedule *s)
{
    for (size_t i = 0; i < s->ops.count; i++)
        if (s->ops.at[i].kind == GY_OP_COLLECTIVE)
            s->ops.at[i].algorithm = GY_ALGORITHM_COUNTERS;
}

static uint64_t state;
static int draw(int below)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (int)((state * UINT64_C(0x2545F4914F6CDD1D) >> 33) % (uint64_t)below);
}

/* Buffers have a part for each GPU. */
enum { BUFFERS = 4, MOST_GPUS = 4, OF_A_RANK = 7 };
typedef struct drawn {
    gantry_graph *g;
    gantry_buffer buffer[BUFFERS];
    gantry_dtype dtype;
    int gpus;
} drawn;

static gantry_region part(const drawn *d, int buffer, int gpu, int64_t rows)
{
    int64_t first = (int64_t)gpu * OF_A_RANK * d->gpus;
    return gantry_rows(d->buffer[buffer], first, first + rows);
}

/* From a part of a GPU to one of another, so that rows cross. */
static void add_step(const drawn *d, int i, int from, int to)
{
    char id[16], where[16];
    int gpu = draw(d->gpus), whole = OF_A_RANK * d->gpus;
    int64_t rows = draw(3) ? whole : 1 + draw(whole);
    snprintf(id, sizeof id, "s%d", i);
    snprintf(where, sizeof where, "gpu%d", gpu);
    gantry_node n = gantry_graph_kernel(d->g, id, "copy");
    gantry_node_arg(d->g, n, "x", part(d, from, draw(d->gpus), rows));
    gantry_node_arg(d->g, n, "y", part(d, to, gpu, rows));
    gantry_node_on(d->g, n, where);
}

/* Of all GPUs, or of two or more of them. */
static void add_collective(const drawn *d, int i, int from, int to)
{
    static const gantry_collective kinds[] = { GANTRY_ALL_REDUCE, GANTRY_ALL_REDUCE,     GANTRY_BROADCAST,
                                               GANTRY_ALL_GATHER, GANTRY_REDUCE_SCATTER, GANTRY_ALL_TO_ALL };
    gantry_collective kind = kinds[draw(6)];
    gantry_region in[MOST_GPUS], out[MOST_GPUS];
    bool reduces = kind == GANTRY_ALL_REDUCE || kind == GANTRY_REDUCE_SCATTER;
    int ranks = 2 + draw(d->gpus - 1), first = draw(d->gpus - ranks + 1), each = 1 + draw(OF_A_RANK);
    bool few_in = kind == GANTRY_ALL_GATHER, few_out = kind == GANTRY_REDUCE_SCATTER;
    char id[16];
    snprintf(id, sizeof id, "c%d", i);
    for (int r = 0; r < ranks; r++) {
        in[r] = part(d, from, first + r, few_in ? each : each * ranks);
        out[r] = part(d, to, first + r, few_out ? each : each * ranks);
    }
    int root = kind == GANTRY_BROADCAST ? draw(ranks) : 0;
    gantry_graph_collective(d->g, id, kind, reduces ? (draw(2) ? GANTRY_SUM : GANTRY_MAX) : 0,
                            kind == GANTRY_BROADCAST ? 1 : (size_t)ranks, kind == GANTRY_BROADCAST ? &in[root] : in,
                            (size_t)ranks, out, root);
}

gantry_graph *mixed_graph(uint64_t seed, int gpus)
{
    drawn d = { .g = gantry_graph_new("steps and collectives"), .gpus = gpus };
    state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    d.dtype = chain_types[draw(CHAIN_TYPES)];
    for (int b = 0; b < BUFFERS; b++) {
        char id[16];
        snprintf(id, sizeof id, "b%d", b);
        d.buffer[b] = gantry_graph_buffer(d.g, id, d.dtype, 2, (int64_t[]){ (int64_t)gpus * OF_A_RANK * gpus, 5 });
        if (d.dtype == GANTRY_I32)
            gantry_buffer_init_value(d.g, d.buffer[b], b + 1);
        else
            gantry_buffer_init_uniform(d.g, d.buffer[b], (uint64_t)b + seed, -1, 1);
        gantry_buffer_output(d.g, d.buffer[b]);
    }
    for (int i = 0, steps = 10 + draw(20); i < steps; i++) {
        int from = draw(BUFFERS), to = (from + 1 + draw(BUFFERS - 1)) % BUFFERS;
        if (draw(3))
            add_step(&d, i, from, to);
        else
            add_collective(&d, i, from, to);
    }
    MUST(gantry_graph_check(d.g, MUST_ERR));
    return d.g;
}
