/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inserted collectives (no node) mean, row by row of one value: each write receives what the reads that contain the row
 * hold, combined with the previous value first. Those of the graph are told by ranks and by position within the
 * regions: a slice for rank r is as long as the r-th of the small regions. An algorithm of several steps makes more
 * pieces of these (rounds.c).
 */
#include "schedule/exchange/rounds.h"

#include "base/error.h"
#include <stdlib.h>
#include <string.h>

typedef struct builder {
    const gantry_schedule *schedule;
    const gantry_graph *graph;
    const gy_op *op;
    gy_pieces all;
    bool whole, failed; /* whole: without the steps of the algorithm; failed: out of memory */
} builder;

static const gy_use *use_of(const builder *b, uint32_t k)
{
    return &b->schedule->use.at[b->op->use + k];
}
static const gy_instance *instance_of(const builder *b, uint32_t k)
{
    return &b->schedule->instances.at[use_of(b, k)->instance];
}
static uint64_t bytes_of(const builder *b, uint32_t k)
{
    return gy_use_bytes(b->schedule, use_of(b, k));
}

static void open_piece(builder *b, uint64_t bytes)
{
    gy_exchange_piece piece = { .source = (uint32_t)b->all.end.count, .bytes = bytes };
    b->failed |= !gy_vec_push(&b->all.piece, piece);
}

static void add_end(builder *b, uint32_t use, uint64_t offset)
{
    gy_exchange_end end = { .use = use, .offset = offset };
    b->failed |= !gy_vec_push(&b->all.end, end);
}

static void sources_done(builder *b)
{
    if (!b->failed) {
        gy_exchange_piece *piece = gy_vec_last(&b->all.piece);
        piece->sources = (uint32_t)b->all.end.count - piece->source;
        piece->target = (uint32_t)b->all.end.count;
    }
}

static void targets_done(builder *b)
{
    if (!b->failed) {
        gy_exchange_piece *piece = gy_vec_last(&b->all.piece);
        piece->targets = (uint32_t)b->all.end.count - piece->target;
    }
}

/* ---- inserted ---- */

static int compare_rows(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool contains(const gy_use *use, int64_t first, int64_t last)
{
    return use->first <= first && last <= use->last;
}

static uint64_t offset_in(const builder *b, uint32_t k, int64_t row)
{
    const gantry_schedule *s = b->schedule;
    const gy_instance *instance = instance_of(b, k);
    return gy_instance_offset(s, instance, row) - gy_instance_offset(s, instance, use_of(b, k)->first);
}

/* The previous value comes before the accumulators; where nothing is combined one source is enough. */
static void add_sources(builder *b, int64_t first, int64_t last)
{
    size_t before = b->all.end.count;
    for (int accumulators = 0; accumulators < 2; accumulators++) {
        for (uint32_t k = 0; k < b->op->ins; k++) {
            bool accumulator = instance_of(b, k)->role == GY_ROLE_ACCUMULATOR;
            bool wanted = b->op->reduce || b->all.end.count == before;
            if (wanted && accumulator == (accumulators == 1) && contains(use_of(b, k), first, last))
                add_end(b, k, offset_in(b, k, first));
        }
    }
    sources_done(b);
}

static void add_targets(builder *b, int64_t first, int64_t last)
{
    for (uint32_t k = b->op->ins; k < b->op->uses; k++)
        if (contains(use_of(b, k), first, last))
            add_end(b, k, offset_in(b, k, first));
    targets_done(b);
}

static gantry_status fail_no_source(const builder *b, int64_t row, gantry_error *err)
{
    return gy_fail(err, GANTRY_E_SCHEDULE, NULL, "op %zu, a collective, reads row %lld of \"%s\" nowhere",
                   (size_t)(b->op - b->schedule->ops.at), (long long)row,
                   b->schedule->values.at[instance_of(b, 0)->value].name);
}

/* Between two neighbouring bounds all rows have the same sources and targets. */
static gantry_status plan_rows(builder *b, const int64_t *bound, size_t bounds, gantry_error *err)
{
    for (size_t i = 0; i + 1 < bounds; i++) {
        int64_t first = bound[i], last = bound[i + 1];
        if (first == last)
            continue;
        const gy_instance *instance = instance_of(b, 0);
        const gantry_schedule *s = b->schedule;
        const gy_buffer *buffer = &b->graph->buffers.at[s->values.at[instance->value].buffer];
        open_piece(b, (uint64_t)gy_buffer_span(buffer, first, last));
        add_sources(b, first, last);
        add_targets(b, first, last);
        if (b->failed)
            return GANTRY_OK;
        gy_exchange_piece *piece = gy_vec_last(&b->all.piece);
        if (piece->targets && !piece->sources)
            return fail_no_source(b, first, err);
        if (!piece->targets) {
            b->all.end.count = piece->source;
            b->all.piece.count--;
        }
    }
    return GANTRY_OK;
}

static gantry_status plan_inserted(builder *b, gantry_error *err)
{
    GY_VEC(int64_t) bound = { 0 };
    for (uint32_t k = 0; k < b->op->uses; k++)
        b->failed |= !gy_vec_push(&bound, use_of(b, k)->first) || !gy_vec_push(&bound, use_of(b, k)->last);
    gantry_status status = GANTRY_OK;
    if (!b->failed && bound.count) {
        qsort(bound.at, bound.count, sizeof *bound.at, compare_rows);
        status = plan_rows(b, bound.at, bound.count, err);
    }
    gy_vec_free(&bound);
    return status;
}

/* ---- of the graph ---- */

/* All reads combined at `from` into every write (whole), or one write at its beginning. */
static void reduce_into(builder *b, uint64_t from, uint64_t bytes, uint32_t first_write, uint32_t last_write)
{
    open_piece(b, bytes);
    for (uint32_t k = 0; k < b->op->ins; k++)
        add_end(b, k, from);
    sources_done(b);
    for (uint32_t k = first_write; k < last_write; k++)
        add_end(b, k, 0);
    targets_done(b);
}

static void copy_into(builder *b, uint32_t read, uint64_t from, uint32_t write, uint64_t to, uint64_t bytes)
{
    open_piece(b, bytes);
    add_end(b, read, from);
    sources_done(b);
    add_end(b, write, to);
    targets_done(b);
}

static void plan_broadcast(builder *b)
{
    open_piece(b, bytes_of(b, 0));
    add_end(b, 0, 0);
    sources_done(b);
    for (uint32_t k = b->op->ins; k < b->op->uses; k++)
        add_end(b, k, 0);
    targets_done(b);
}

static void plan_scatter(builder *b)
{
    uint64_t from = 0;
    for (uint32_t k = b->op->ins; k < b->op->uses; from += bytes_of(b, k), k++)
        copy_into(b, 0, from, k, 0, bytes_of(b, k));
}

/* gather, and for every write of it all_gather */
static void plan_gather(builder *b)
{
    uint64_t to = 0;
    for (uint32_t k = 0; k < b->op->ins; to += bytes_of(b, k), k++) {
        open_piece(b, bytes_of(b, k));
        add_end(b, k, 0);
        sources_done(b);
        for (uint32_t w = b->op->ins; w < b->op->uses; w++)
            add_end(b, w, to);
        targets_done(b);
    }
}

static void plan_reduce_scatter(builder *b)
{
    uint64_t from = 0;
    for (uint32_t w = b->op->ins; w < b->op->uses; from += bytes_of(b, w), w++)
        reduce_into(b, from, bytes_of(b, w), w, w + 1);
}

/* Block r of rank s goes to block s of rank r; blocks are equal parts. */
static void plan_all_to_all(builder *b)
{
    uint32_t ranks = b->op->ins;
    for (uint32_t s = 0; s < ranks; s++) {
        uint64_t block = bytes_of(b, s) / ranks;
        for (uint32_t r = 0; r < ranks && ranks + r < b->op->uses; r++)
            copy_into(b, s, r * block, ranks + r, s * block, block);
    }
}

static void plan_node(builder *b)
{
    switch ((gantry_collective)b->op->collective) {
    case GANTRY_ALL_REDUCE:
    case GANTRY_REDUCE:
        reduce_into(b, 0, bytes_of(b, 0), b->op->ins, b->op->uses);
        break;
    case GANTRY_BROADCAST:
        plan_broadcast(b);
        break;
    case GANTRY_SCATTER:
        plan_scatter(b);
        break;
    case GANTRY_GATHER:
    case GANTRY_ALL_GATHER:
        plan_gather(b);
        break;
    case GANTRY_REDUCE_SCATTER:
        plan_reduce_scatter(b);
        break;
    case GANTRY_ALL_TO_ALL:
        plan_all_to_all(b);
        break;
    }
}

/* ---- both ---- */

typedef struct extent {
    uint64_t space, first, last; /* `space`: kind and memory, or kind and buffer */
} extent;

static extent extent_of(const builder *b, gy_exchange_end end, uint64_t bytes)
{
    const gantry_schedule *s = b->schedule;
    const gy_instance *instance = instance_of(b, end.use);
    bool external = instance->space == GY_SPACE_INPUT || instance->space == GY_SPACE_OUTPUT;
    uint64_t first = instance->offset + gy_instance_offset(s, instance, use_of(b, end.use)->first) + end.offset;
    return (extent){ (uint64_t)instance->space << 32 | (external ? instance->value : instance->memory), first,
                     first + bytes };
}

/* A target may lie on a source of its own piece, byte for byte: blocks are read before they are written. */
static bool clashes(const builder *b, size_t written, size_t read)
{
    const gy_exchange_piece *w = &b->all.piece.at[written], *r = &b->all.piece.at[read];
    for (uint32_t t = 0; t < w->targets; t++) {
        extent to = extent_of(b, b->all.end.at[w->target + t], w->bytes);
        for (uint32_t k = 0; k < r->sources; k++) {
            extent from = extent_of(b, b->all.end.at[r->source + k], r->bytes);
            bool meet = to.space == from.space && to.first < from.last && from.first < to.last;
            if (meet && !(written == read && to.first == from.first))
                return true;
        }
    }
    return false;
}

static bool needs_stage(const builder *b)
{
    for (size_t w = 0; w < b->all.piece.count; w++) {
        for (size_t r = 0; r < b->all.piece.count; r++)
            if (clashes(b, w, r))
                return true;
    }
    return false;
}

static void *keep(gy_arena *arena, const void *data, size_t bytes)
{
    void *copy = gy_arena_alloc(arena, bytes ? bytes : 1);
    if (copy && bytes)
        memcpy(copy, data, bytes);
    return copy;
}

static gantry_status finish(gy_exchange **made, gy_arena *arena, builder *b, gantry_error *err)
{
    gy_exchange *x = gy_arena_calloc(arena, 1, sizeof *x);
    if (!x || b->failed)
        return gy_fail_nomem(err);
    bool staged = needs_stage(b); /* of the pieces as they are if all go at once */
    if (!staged && !b->whole && !gy_exchange_rounds(b->schedule, b->op, &b->all))
        return gy_fail_nomem(err);
    x->staged = staged;
    x->pieces = (uint32_t)b->all.piece.count;
    x->ends = (uint32_t)b->all.end.count;
    x->piece = keep(arena, b->all.piece.at, b->all.piece.count * sizeof *x->piece);
    x->end = keep(arena, b->all.end.at, b->all.end.count * sizeof *x->end);
    for (uint32_t i = 0; i < x->pieces; i++) {
        x->most_sources = b->all.piece.at[i].sources > x->most_sources ? b->all.piece.at[i].sources : x->most_sources;
        x->bytes += b->all.piece.at[i].bytes;
        x->rounds = b->all.piece.at[i].round + 1;
    }
    if (!x->piece || !x->end)
        return gy_fail_nomem(err);
    uint32_t value = instance_of(b, 0)->value;
    x->dtype = b->graph->buffers.at[b->schedule->values.at[value].buffer].dtype;
    x->reduce = (gantry_access)b->op->reduce;
    *made = x;
    return GANTRY_OK;
}

static gantry_status make(gy_exchange **made, gy_arena *arena, builder *b, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    if (b->op->node == GY_NONE)
        status = plan_inserted(b, err);
    else
        plan_node(b);
    if (status == GANTRY_OK)
        status = finish(made, arena, b, err);
    gy_pieces_free(&b->all);
    return status;
}

gantry_status gy_exchange_make(gy_exchange **made, gy_arena *arena, const gantry_schedule *schedule,
                               const gantry_graph *graph, uint32_t op, gantry_error *err)
{
    builder b = { .schedule = schedule, .graph = graph, .op = &schedule->ops.at[op] };
    return make(made, arena, &b, err);
}

gantry_status gy_exchange_make_whole(gy_exchange **made, gy_arena *arena, const gantry_schedule *schedule,
                                     const gantry_graph *graph, uint32_t op, gantry_error *err)
{
    builder b = { .schedule = schedule, .graph = graph, .op = &schedule->ops.at[op], .whole = true };
    return make(made, arena, &b, err);
}
