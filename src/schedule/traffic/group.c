/* SPDX-License-Identifier: Apache-2.0 */
/* Groups: from the regions of a node, from rows of one value, from an op of a schedule. */
#include "schedule/traffic/group.h"

#include "kernel/dtype.h"
#include <stdlib.h>

#define ALIGN_MOST 256

void gy_group_free(gy_group *g)
{
    gy_free(g->memory);
    gy_free(g->part);
    gy_free(g->block);
    gy_free(g->gives);
    gy_free(g->takes);
    *g = (gy_group){ 0 };
}

/* ---- making ---- */

/* Room for as many ranks; `memory` is theirs, in order, each once. */
static bool make(gy_group *g, gantry_collective kind, uint8_t reduce, uint32_t *memory, uint32_t ranks)
{
    *g = (gy_group){ .kind = kind, .reduce = reduce, .ranks = ranks, .memory = memory, .align = ALIGN_MOST };
    g->part = gy_calloc(ranks, sizeof *g->part);
    g->gives = gy_calloc(ranks, 1);
    g->takes = gy_calloc(ranks, 1);
    bool square = kind == GANTRY_ALL_TO_ALL;
    g->block = square ? gy_calloc((size_t)ranks * ranks, sizeof *g->block) : NULL;
    if (g->memory && g->part && g->gives && g->takes && (g->block || !square))
        return true;
    gy_group_free(g);
    return false;
}

uint32_t gy_group_rank(const gy_group *g, uint32_t memory)
{
    uint32_t i = 0;
    while (g->memory[i] != memory)
        i++;
    return i;
}

static void align_to(gy_group *g, int64_t bytes)
{
    while (bytes % g->align)
        g->align /= 2;
}

/* A root that has what it gives, or keeps what it has. */
static bool is_rooted(gantry_collective kind)
{
    return kind == GANTRY_BROADCAST || kind == GANTRY_SCATTER || kind == GANTRY_GATHER || kind == GANTRY_REDUCE;
}

static bool is_whole(gantry_collective kind)
{
    return kind == GANTRY_BROADCAST || kind == GANTRY_REDUCE || kind == GANTRY_ALL_REDUCE;
}

static bool takes_parts(gantry_collective kind)
{
    return kind == GANTRY_SCATTER || kind == GANTRY_REDUCE_SCATTER;
}

/* One input or output of a rank: what it means for the parts depends on the kind. */
static void note(gy_group *g, uint32_t rank, bool in, int64_t bytes)
{
    bool parted = !is_whole(g->kind) && takes_parts(g->kind) != in && g->kind != GANTRY_ALL_TO_ALL;
    *(in ? &g->gives[rank] : &g->takes[rank]) = 1;
    align_to(g, bytes);
    if (is_whole(g->kind))
        g->bytes = bytes > g->bytes ? bytes : g->bytes;
    if (parted) {
        g->part[rank] += bytes;
        g->bytes += bytes;
    }
}

/* ---- from a node ---- */

/* Each memory once, in the order of ranks. */
static uint32_t *list_memories(const gy_group_end *end, uint32_t count, uint32_t *ranks)
{
    uint32_t *memory = gy_calloc((size_t)count + 1, sizeof *memory);
    *ranks = 0;
    for (uint32_t i = 0; memory && i < count; i++) {
        uint32_t k = 0;
        while (k < *ranks && memory[k] != end[i].memory)
            k++;
        if (k == *ranks)
            memory[(*ranks)++] = end[i].memory;
    }
    return memory;
}

/* In place matters where others need what is overwritten. */
static bool overwrites(const gy_group_end *end, uint32_t ins, uint32_t outs)
{
    for (uint32_t i = 0; i < ins; i++)
        for (uint32_t k = ins; k < ins + outs; k++)
            if (end[i].buffer == end[k].buffer && end[i].first < end[k].last && end[k].first < end[i].last)
                return true;
    return false;
}

bool gy_group_of_node(gy_group *g, gantry_collective kind, uint8_t reduce, const gy_group_end *end, uint32_t ins,
                      uint32_t outs)
{
    uint32_t ranks, *memory = list_memories(end, ins + outs, &ranks);
    if (!make(g, kind, reduce, memory, ranks))
        return false;
    if (is_rooted(kind))
        g->root = gy_group_rank(g, end[ins == 1 && kind != GANTRY_GATHER && kind != GANTRY_REDUCE ? 0 : ins].memory);
    for (uint32_t i = 0; i < ins + outs; i++)
        note(g, gy_group_rank(g, end[i].memory), i < ins, end[i].bytes);
    for (uint32_t i = 0; i < ins && g->block; i++)
        for (uint32_t k = 0; k < outs; k++) {
            int64_t bytes = end[i].bytes / outs;
            g->block[(size_t)gy_group_rank(g, end[i].memory) * ranks + gy_group_rank(g, end[ins + k].memory)] += bytes;
            g->bytes += bytes;
            g->pieces += bytes > 0;
            align_to(g, bytes);
        }
    g->in_place = overwrites(end, ins, outs);
    for (uint32_t i = 0; i < ins + outs; i++)
        for (uint32_t k = i + 1; k < (i < ins ? ins : ins + outs); k++)
            g->twice = g->twice || end[i].memory == end[k].memory;
    return true;
}

/* ---- from rows ---- */

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static uint32_t *sort_memories(const gy_group_span *span, uint32_t count, uint32_t *ranks)
{
    uint32_t *memory = gy_calloc((size_t)count + 1, sizeof *memory);
    *ranks = 0;
    for (uint32_t i = 0; memory && i < count; i++)
        memory[i] = span[i].memory;
    if (memory && count)
        qsort(memory, count, sizeof *memory, by_number);
    for (uint32_t i = 0; memory && i < count; i++)
        if (!i || memory[i] != memory[i - 1])
            memory[(*ranks)++] = memory[i];
    return memory;
}

static int64_t overlap(const gy_group_span *a, const gy_group_span *b)
{
    int64_t first = a->first > b->first ? a->first : b->first, last = a->last < b->last ? a->last : b->last;
    return last > first ? last - first : 0;
}

static void note_blocks(gy_group *g, const gy_group_span *span, uint32_t ins, uint32_t outs)
{
    for (uint32_t i = 0; i < ins; i++)
        for (uint32_t k = ins; k < ins + outs; k++) {
            int64_t bytes = overlap(&span[i], &span[k]);
            g->block[(size_t)gy_group_rank(g, span[i].memory) * g->ranks + gy_group_rank(g, span[k].memory)] += bytes;
            g->bytes += bytes;
            g->pieces += bytes > 0;
        }
}

/* Rows that are read or written, of one memory or instance (`of`). */
typedef struct interval {
    uint32_t of;
    bool out;
    int64_t first, last;
} interval;

static int by_place(const void *one, const void *other)
{
    const interval *a = one, *b = other;
    if (a->of != b->of)
        return a->of < b->of ? -1 : 1;
    return (a->first > b->first) - (a->first < b->first);
}

/* Do two overlap that are of the same, both read or both written (`alike`), or one read and one written? */
static bool do_meet(interval *at, size_t count, bool alike)
{
    int64_t end[2] = { 0, 0 }; /* of what is read, of what is written, so far */
    if (count)
        qsort(at, count, sizeof *at, by_place);
    for (size_t i = 0; i < count; i++) {
        if (!i || at[i].of != at[i - 1].of)
            end[0] = end[1] = INT64_MIN;
        if (at[i].first < end[at[i].out == alike])
            return true;
        if (at[i].last > end[at[i].out])
            end[at[i].out] = at[i].last;
    }
    return false;
}

/* Which rows are in place, or twice. False: out of memory. */
static bool find_meetings(gy_group *g, const gy_group_span *span, uint32_t ins, uint32_t count)
{
    interval *at = gy_calloc((size_t)count + 1, sizeof *at);
    size_t filled = 0;
    for (uint32_t i = 0; at && i < count; i++)
        if (span[i].first < span[i].last)
            at[filled++] = (interval){ span[i].instance, i >= ins, span[i].first, span[i].last };
    g->in_place = do_meet(at, filled, false);
    filled = 0;
    for (uint32_t i = 0; at && i < count; i++)
        if (span[i].first < span[i].last)
            at[filled++] = (interval){ span[i].memory, i >= ins, span[i].first, span[i].last };
    g->twice = do_meet(at, filled, true);
    gy_free(at);
    return at != NULL;
}

bool gy_group_of_rows(gy_group *g, gantry_collective kind, uint8_t reduce, const gy_group_span *span, uint32_t ins,
                      uint32_t outs)
{
    uint32_t ranks, *memory = sort_memories(span, ins + outs, &ranks);
    if (!make(g, kind, reduce, memory, ranks))
        return false;
    if (is_rooted(kind))
        g->root = gy_group_rank(g, span[kind == GANTRY_BROADCAST || kind == GANTRY_SCATTER ? 0 : ins].memory);
    int64_t first = INT64_MAX;
    for (uint32_t i = 0; i < ins + outs; i++)
        first = span[i].first < first ? span[i].first : first;
    for (uint32_t i = 0; i < ins + outs; i++) {
        note(g, gy_group_rank(g, span[i].memory), i < ins, span[i].last - span[i].first);
        align_to(g, span[i].first - first);
    }
    if (g->block)
        note_blocks(g, span, ins, outs);
    bool done = find_meetings(g, span, ins, ins + outs);
    if (!done)
        gy_group_free(g);
    return done;
}

void gy_group_type(gy_group *g, gantry_dtype dtype)
{
    g->with_nan = gy_dtype_is_float(dtype) && (g->reduce == GANTRY_MIN || g->reduce == GANTRY_MAX);
}

/* ---- from an op ---- */

/* Of a schedule from a file without its graph nobody knows. */
static void type_of_op(gy_group *g, const gantry_schedule *s, const gy_op *op)
{
    if (s->graph && op->uses) {
        const gy_instance *in = &s->instances.at[s->use.at[op->use].instance];
        gy_group_type(g, s->graph->buffers.at[s->values.at[in->value].buffer].dtype);
    }
}

/* Where rows begin in the packed form of their value. */
static int64_t offset_of(const gantry_schedule *s, const gy_instance *in, int64_t row)
{
    const gy_schedule_value *v = &s->values.at[in->value];
    return v->offset ? v->offset[row] : row * v->row_bytes;
}

static bool op_of_rows(gy_group *g, const gantry_schedule *s, const gy_op *op)
{
    gy_group_span *span = gy_calloc((size_t)op->uses + 1, sizeof *span);
    for (uint32_t i = 0; span && i < op->uses; i++) {
        const gy_use *u = &s->use.at[op->use + i];
        const gy_instance *in = &s->instances.at[u->instance];
        span[i] = (gy_group_span){ in->memory, u->instance, offset_of(s, in, u->first), offset_of(s, in, u->last) };
    }
    bool done = span && gy_group_of_rows(g, op->collective, op->reduce, span, op->ins, op->uses - op->ins);
    gy_free(span);
    if (done)
        type_of_op(g, s, op);
    return done;
}

bool gy_group_of_op(gy_group *g, const gantry_schedule *s, const gy_op *op)
{
    if (op->node == GY_NONE)
        return op_of_rows(g, s, op);
    gy_group_end *end = gy_calloc((size_t)op->uses + 1, sizeof *end);
    for (uint32_t i = 0; end && i < op->uses; i++) {
        const gy_use *u = &s->use.at[op->use + i];
        const gy_schedule_value *v = &s->values.at[s->instances.at[u->instance].value];
        end[i] = (gy_group_end){ s->instances.at[u->instance].memory, (int64_t)gy_use_bytes(s, u), v->buffer, u->first,
                                 u->last };
    }
    bool done = end && gy_group_of_node(g, op->collective, op->reduce, end, op->ins, op->uses - op->ins);
    gy_free(end);
    if (done)
        type_of_op(g, s, op);
    return done;
}

/* ---- of several ---- */

static uint32_t find_rank(const gy_group *g, uint32_t memory)
{
    uint32_t i = 0;
    while (i < g->ranks && g->memory[i] != memory)
        i++;
    return i < g->ranks ? i : GY_NONE;
}

void gy_group_add(gy_group *g, const gy_group *more)
{
    g->bytes += more->bytes;
    g->pieces += more->pieces;
    g->in_place = g->in_place || more->in_place;
    g->twice = g->twice || more->twice;
    g->with_nan = g->with_nan || more->with_nan;
    g->align = more->align < g->align ? more->align : g->align;
    for (uint32_t i = 0; i < more->ranks; i++) {
        uint32_t rank = find_rank(g, more->memory[i]);
        if (rank == GY_NONE)
            continue;
        g->part[rank] += more->part[i];
        g->gives[rank] |= more->gives[i];
        g->takes[rank] |= more->takes[i];
        for (uint32_t k = 0; g->block && more->block && k < more->ranks; k++) {
            uint32_t to = find_rank(g, more->memory[k]);
            if (to != GY_NONE)
                g->block[(size_t)rank * g->ranks + to] += more->block[(size_t)i * more->ranks + k];
        }
    }
}

bool gy_group_of_batch(gy_group *g, const gantry_schedule *s, const gy_op *op)
{
    bool done = gy_group_of_op(g, s, op);
    for (uint32_t i = 1; i < op->batch && done; i++) {
        gy_group more;
        done = !op[i].uses || gy_group_of_op(&more, s, &op[i]);
        if (done && op[i].uses) {
            gy_group_add(g, &more);
            gy_group_free(&more);
        }
        if (!done)
            gy_group_free(g);
    }
    return done;
}

/* ---- questions ---- */

int64_t gy_group_need(const gy_group *g, uint32_t from, uint32_t to)
{
    if (from == to)
        return 0;
    switch (g->kind) {
    case GANTRY_BROADCAST:
        return from == g->root && g->takes[to] ? g->bytes : 0;
    case GANTRY_SCATTER:
        return from == g->root ? g->part[to] : 0;
    case GANTRY_GATHER:
        return to == g->root ? g->part[from] : 0;
    case GANTRY_ALL_GATHER:
        return g->takes[to] ? g->part[from] : 0;
    case GANTRY_REDUCE:
    case GANTRY_ALL_REDUCE:
        return g->gives[from] && g->takes[to] ? g->bytes : 0;
    case GANTRY_REDUCE_SCATTER:
        return g->gives[from] ? g->part[to] : 0;
    case GANTRY_ALL_TO_ALL:
        break;
    }
    return g->block[(size_t)from * g->ranks + to];
}

bool gy_group_is_full(const gy_group *g)
{
    bool gather = g->kind == GANTRY_GATHER, all = !is_rooted(g->kind) || g->kind == GANTRY_REDUCE;
    for (uint32_t i = 0; i < g->ranks; i++) {
        bool gives = g->gives[i], takes = g->takes[i] || g->kind == GANTRY_REDUCE;
        if (all ? !gives || !takes : i != g->root && !(gather ? gives : takes))
            return false;
    }
    return true;
}

/* True if all transfers have one size; rows that stay where they are do not count. */
bool gy_group_is_even(const gy_group *g)
{
    int64_t size = -1;
    for (uint32_t from = 0; from < g->ranks && !is_whole(g->kind); from++)
        for (uint32_t to = 0; to < g->ranks; to++) {
            int64_t bytes = gy_group_need(g, from, to);
            bool asked = from != to && (!is_rooted(g->kind) || (g->kind == GANTRY_GATHER ? to : from) == g->root);
            if (asked && size >= 0 && bytes != size)
                return false;
            size = asked ? bytes : size;
        }
    return true;
}

int64_t gy_group_largest(const gy_group *g)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < g->ranks; i++)
        most = g->part[i] > most ? g->part[i] : most;
    return most;
}
