/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes of nodes with `when`. Where such a node does not run, rows keep what they held, so that to everything but the
 * node's kernel a write is a readwrite. There is one exception: a temp buffer that nodes of one flag alone know, which
 * nothing writes from the first of them to the last. Where the flag is 0 none of them runs, and nobody asks what it
 * holds. The inner buffers of a graph that is used under a `when` are such.
 *
 * A flag may be *within* another: of a temp buffer that a fill with 0 comes first to, and then nodes under the other
 * alone write, as a `when` within another is built (build_when.c). Where the other is 0 it is, too, as long as nothing
 * writes the other from that fill on. So nodes of both flags, and of several within one, may be those that know a
 * buffer; what those of the other flag itself write is a write.
 */
#include "base/error.h"
#include "base/memory.h"
#include "graph/check/check.h"
#include "graph/nest.h"

#include <stdlib.h>

/* A buffer, and who knows it. */
typedef struct known {
    const gy_access *flag; /* of all nodes, or the one that theirs are within; NULL: no node yet */
    const gy_loop *loop;   /* the innermost around all of its nodes */
    uint32_t first, last;  /* nodes, and all of the loops within `loop` that some of them are in: [first, last) */
    bool is_open;          /* others may know it */
} known;

/* A node that writes a buffer which is a flag of some node. */
typedef struct writer {
    uint32_t buffer, node;
} writer;

/* A buffer that is the flag of some node. */
typedef struct within {
    const gy_access *flag; /* the one that it is within; NULL: none */
    uint32_t fill;         /* the node that puts 0 there first */
} within;

typedef struct guarding {
    gantry_graph *g;
    known *of;        /* each buffer */
    within *within;   /* each buffer */
    uint8_t *is_flag; /* is the flag of some node */
    GY_VEC(writer) writer;
} guarding;

static const gy_access *flag_of(const gantry_graph *g, const gy_node *n)
{
    if (n->kind == GY_NODE_COLLECTIVE && n->extra != GY_NONE && g->extra.at[n->extra].meets)
        return &g->extra.at[n->extra].flag; /* it runs in every start, and nobody else asks what it reads or gives */
    return n->has_when ? &g->access.at[n->access + n->accesses - 1] : NULL;
}

static bool is_same(const gy_access *a, const gy_access *b)
{
    return a->buffer == b->buffer && a->first == b->first && a->last == b->last;
}

/* The flag that this one is within; NULL: none. Their fills come one behind the other, so there are no circles. */
static const gy_access *outer_flag(const guarding *w, const gy_access *flag)
{
    const within *inner = &w->within[flag->buffer];
    const within *outer = inner->flag ? &w->within[inner->flag->buffer] : NULL;
    return !outer || (outer->flag && outer->fill >= inner->fill) ? NULL : inner->flag;
}

/* The innermost flag that both are, or are within; NULL: there is none. */
static const gy_access *common_flag(const guarding *w, const gy_access *a, const gy_access *b)
{
    for (const gy_access *x = a; x; x = outer_flag(w, x))
        for (const gy_access *y = b; y; y = outer_flag(w, y))
            if (is_same(x, y))
                return x;
    return NULL;
}

/* ---- loops ---- */

static const gy_loop *around_node(const gantry_graph *g, const gy_node *n)
{
    return n->inner != GY_NONE ? &g->inner.at[n->inner] : n->loop != GY_NONE ? &g->loops.at[n->loop] : NULL;
}

static const gy_loop *around_loop(const gantry_graph *g, const gy_loop *l)
{
    bool is_inner = g->inner.count && l >= g->inner.at && l <= gy_vec_last(&g->inner);
    return !is_inner ? NULL : l->parent != GY_NONE ? &g->inner.at[l->parent] : &g->loops.at[l->top];
}

static bool contains(const gy_loop *l, uint32_t node)
{
    return !l || (node >= l->first_node && node < l->last_node);
}

/* Takes the node into the range: it, or the outermost loop within `loop` that it is in. */
static void widen(const gantry_graph *g, known *k, uint32_t node)
{
    uint32_t first = node, last = node + 1;
    for (const gy_loop *l = around_node(g, &g->nodes.at[node]); l && l != k->loop; l = around_loop(g, l)) {
        first = l->first_node;
        last = l->last_node;
    }
    k->first = first < k->first ? first : k->first;
    k->last = last > k->last ? last : k->last;
}

/* ---- who knows a buffer ---- */

static void see_access(const guarding *w, uint32_t node, const gy_access *a)
{
    const gantry_graph *g = w->g;
    const gy_node *n = &g->nodes.at[node];
    const gy_access *flag = flag_of(g, n);
    known *k = &w->of[a->buffer];
    if (!k->is_open && flag && a != flag)
        flag = k->flag ? common_flag(w, k->flag, flag) : flag;
    else
        flag = NULL;
    if (!k->flag)
        k->loop = around_node(g, n);
    k->is_open = !flag;
    k->flag = flag;
}

/* The loop around all of its nodes takes in another. */
static void enclose(const gantry_graph *g, known *k, uint32_t node)
{
    while (!contains(k->loop, node))
        k->loop = around_loop(g, k->loop);
}

/* For the node and the fills of the flags between its own and that of all. */
static void see_around(const guarding *w, known *k, uint32_t node, void (*see)(const gantry_graph *, known *, uint32_t))
{
    const gy_access *flag = flag_of(w->g, &w->g->nodes.at[node]);
    see(w->g, k, node);
    for (; flag && !is_same(flag, k->flag); flag = outer_flag(w, flag))
        see(w->g, k, w->within[flag->buffer].fill);
}

static void see_all_around(const guarding *w, void (*see)(const gantry_graph *, known *, uint32_t))
{
    const gantry_graph *g = w->g;
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        const gy_node *n = &g->nodes.at[i];
        for (uint32_t a = n->access; a < n->access + n->accesses; a++)
            if (!w->of[g->access.at[a].buffer].is_open)
                see_around(w, &w->of[g->access.at[a].buffer], i, see);
    }
}

static void see_buffers(const guarding *w)
{
    const gantry_graph *g = w->g;
    for (uint32_t b = 0; b < g->buffers.count; b++) {
        const gy_buffer *buffer = &g->buffers.at[b];
        w->of[b] = (known){ .first = UINT32_MAX };
        w->of[b].is_open = buffer->cls != GANTRY_TEMP || buffer->output || buffer->external;
    }
    for (size_t i = 0; i < gy_loop_count(g); i++) {
        const gy_loop *l = gy_loop_at(g, i);
        for (size_t c = 0; c < l->carry.count; c++)
            w->of[l->carry.at[c].prev].is_open = w->of[l->carry.at[c].next].is_open = true;
        if (l->until != GY_NONE)
            w->of[l->until].is_open = true;
    }
}

/* A name that is carried means other rows from iteration to iteration, as if they were written. */
static bool is_carried(const gantry_graph *g, uint32_t buffer)
{
    for (size_t i = 0; i < gy_loop_count(g); i++) {
        const gy_loop *l = gy_loop_at(g, i);
        for (size_t c = 0; c < l->carry.count; c++)
            if (l->carry.at[c].prev == buffer || l->carry.at[c].next == buffer)
                return true;
    }
    return false;
}

static int compare_writers(const void *one, const void *other)
{
    const writer *a = one, *b = other;
    if (a->buffer != b->buffer)
        return a->buffer < b->buffer ? -1 : 1;
    return (a->node > b->node) - (a->node < b->node);
}

/* Does a node of the range write the buffer of the flag? */
static bool is_flag_written(const guarding *w, const known *k)
{
    size_t low = 0, high = w->writer.count;
    writer first = { k->flag->buffer, k->first };
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_writers(&w->writer.at[middle], &first) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < w->writer.count && w->writer.at[low].buffer == first.buffer && w->writer.at[low].node < k->last;
}

/* ---- all nodes ---- */

static bool list_writers(guarding *w)
{
    gantry_graph *g = w->g;
    bool ok = true;
    for (uint32_t i = 0; i < g->nodes.count; i++)
        if (flag_of(g, &g->nodes.at[i]))
            w->is_flag[flag_of(g, &g->nodes.at[i])->buffer] = 1;
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        const gy_node *n = &g->nodes.at[i];
        for (uint32_t k = n->access; k < n->access + n->accesses; k++) {
            const gy_access *a = &g->access.at[k];
            if (w->is_flag[a->buffer] && a->mode != GANTRY_READ)
                ok = gy_vec_push(&w->writer, ((writer){ a->buffer, i })) && ok;
        }
    }
    if (w->writer.count)
        qsort(w->writer.at, w->writer.count, sizeof *w->writer.at, compare_writers);
    return ok;
}

/* The flag that all of these nodes but the first, which fills with 0, have; NULL: there is no such. */
static const gy_access *flag_of_writers(const gantry_graph *g, const writer *of, size_t count)
{
    const gy_access *flag = NULL;
    if (g->nodes.at[of->node].kind != GY_NODE_FILL || !gy_fill_is_identity(g, of->node, GANTRY_SUM))
        return NULL;
    for (size_t i = 1; i < count; i++) {
        const gy_access *other = flag_of(g, &g->nodes.at[of[i].node]);
        if (!other || other->buffer == of->buffer || (flag && !is_same(flag, other)))
            return NULL;
        flag = other;
    }
    return flag;
}

/* Whole elements of a buffer are what a flag that is within another has been filled with; it is not carried, or known
 * before. */
static void find_within(const guarding *w)
{
    const gantry_graph *g = w->g;
    for (size_t i = 0, end; i < w->writer.count; i = end) {
        const writer *first = &w->writer.at[i];
        const gy_buffer *b = &g->buffers.at[first->buffer];
        for (end = i; end < w->writer.count && w->writer.at[end].buffer == first->buffer;)
            end++;
        bool one = b->bytes == gantry_dtype_size(b->dtype) && !w->of[first->buffer].is_open;
        if (one)
            w->within[first->buffer] = (within){ flag_of_writers(g, first, end - i), first->node };
    }
    for (uint32_t i = 0; i < g->nodes.count; i++) /* ahead of its fill it may be what it was in the last iteration */
        for (uint32_t k = g->nodes.at[i].access; k < g->nodes.at[i].access + g->nodes.at[i].accesses; k++) {
            within *x = &w->within[g->access.at[k].buffer];
            x->flag = x->flag && i < x->fill ? NULL : x->flag;
        }
}

static bool see_all(guarding *w)
{
    gantry_graph *g = w->g;
    see_buffers(w);
    bool ok = list_writers(w);
    find_within(w);
    for (uint32_t i = 0; i < g->nodes.count; i++)
        for (uint32_t k = g->nodes.at[i].access; k < g->nodes.at[i].access + g->nodes.at[i].accesses; k++)
            see_access(w, i, &g->access.at[k]);
    see_all_around(w, enclose);
    see_all_around(w, widen); /* loops are known now */
    return ok;
}

static void keep(const guarding *w)
{
    gantry_graph *g = w->g;
    for (uint32_t b = 0; b < g->buffers.count; b++) {
        known *k = &w->of[b];
        k->is_open = k->is_open || !k->flag || is_carried(g, k->flag->buffer) || is_flag_written(w, k);
    }
    for (size_t i = 0; i < g->nodes.count; i++) {
        const gy_node *n = &g->nodes.at[i];
        for (uint32_t k = n->access; n->has_when && k < n->access + n->accesses; k++) {
            gy_access *a = &g->access.at[k];
            bool all = !w->of[a->buffer].is_open && is_same(flag_of(g, n), w->of[a->buffer].flag);
            a->is_kept = a->mode == GANTRY_WRITE && !all;
            a->mode = a->is_kept ? GANTRY_READWRITE : a->mode;
        }
    }
}

gantry_status gy_check_keep(gantry_graph *graph, gantry_error *err)
{
    bool has_when = false;
    for (size_t i = 0; i < graph->nodes.count && !has_when; i++)
        has_when = graph->nodes.at[i].has_when;
    if (!has_when)
        return GANTRY_OK;
    guarding w = { .g = graph,
                   .of = gy_calloc(graph->buffers.count + 1, sizeof *w.of),
                   .within = gy_calloc(graph->buffers.count + 1, sizeof *w.within),
                   .is_flag = gy_calloc(graph->buffers.count + 1, 1) };
    bool ok = w.of && w.within && w.is_flag && see_all(&w);
    if (ok)
        keep(&w);
    gy_free(w.of);
    gy_free(w.within);
    gy_free(w.is_flag);
    gy_vec_free(&w.writer);
    return ok ? GANTRY_OK : gy_fail_nomem(err);
}
