/* SPDX-License-Identifier: Apache-2.0 */
/* Weights in shards: each part of a weight becomes as many parts as there are devices that read the same of it, which
 * the optimiser steps one on each (graph/adjoint/owners.c). What reads a part of the weight reads all of its shards. */
#include "base/error.h"
#include "graph/strategy/slices.h"

/* Has each part as many rows as there are shards? Others stay whole, on one device each. */
static bool can_shard(const gy_buffer *b, int64_t shards)
{
    for (int64_t i = 0; i < b->parts; i++)
        if (b->part_first[i + 1] - b->part_first[i] < shards)
            return false;
    return shards > 1 && b->rows >= shards && !b->split_auto && !b->tiles[0] &&
           (b->parts ? b->parts : 1) * shards <= INT32_MAX;
}

static gantry_status shard(gy_spreading *s, gy_buffer *b, int64_t shards)
{
    int64_t parts = b->parts ? b->parts : 1;
    int64_t *first = gy_arena_calloc(&s->graph->arena, (size_t)(parts * shards) + 1, sizeof *first);
    if (!first)
        return gy_fail_nomem(s->err);
    for (int64_t i = 0; i <= parts * shards; i++)
        first[i] = gy_part_bound(b->rows, parts * shards, i);
    b->parts = parts * shards;
    b->part_first = first;
    return GANTRY_OK;
}

/* A weight in slices is read by one device of each replica. */
static int32_t shards_of(const gy_spreading *s, uint32_t buffer)
{
    return s->slice[buffer] == GY_SLICE_WHOLE ? s->strategy.dp * s->strategy.tp : s->strategy.dp;
}

gantry_status gy_spread_shards(gy_spreading *s)
{
    gantry_graph *g = s->graph;
    if (!s->strategy.zero || s->strategy.dp * s->strategy.tp == 1)
        return GANTRY_OK;
    g->shards = (uint32_t)(s->strategy.dp * s->strategy.tp);
    for (uint32_t i = 0; i < s->buffers; i++) {
        s->is_weight[i] = s->is_weight[i] && can_shard(&g->buffers.at[i], shards_of(s, i));
        if (s->is_weight[i])
            GY_TRY(shard(s, &g->buffers.at[i], shards_of(s, i)));
    }
    for (size_t i = 0; i < g->access.count; i++) {
        gy_access *x = &g->access.at[i];
        if (s->is_weight[x->buffer] && x->part >= 0) {
            x->part *= shards_of(s, x->buffer);
            x->part_last *= shards_of(s, x->buffer);
        }
    }
    return GANTRY_OK;
}
