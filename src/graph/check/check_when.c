/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes of nodes with `when`. Where such a node does not run, rows keep what they held, so that to everything but the
 * node's kernel a write is a readwrite. There is one exception: a temp buffer that nodes of one flag alone know, which
 * nothing writes from the first of them to the last. Where the flag is 0 none of them runs, and nobody asks what it
 * holds. The inner buffers of a graph that is used under a `when` are such.
 */
#include "base/error.h"
#include "base/memory.h"
#include "graph/check/check.h"
#include "graph/nest.h"

#include <stdlib.h>

/* A buffer, and who knows it. */
typedef struct known {
    const gy_access *flag; /* of the first node; NULL: no node yet */
    const gy_loop *loop;   /* the innermost around all of its nodes */
    uint32_t first, last;  /* nodes, and all of the loops within `loop` that some of them are in: [first, last) */
    bool is_open;          /* others may know it */
} known;

/* A node that writes a buffer which is a flag of some node. */
typedef struct writer {
    uint32_t buffer, node;
} writer;

typedef struct guarding {
    gantry_graph *g;
    known *of;        /* each buffer */
    uint8_t *is_flag; /* is the flag of some node */
    GY_VEC(writer) writer;
} guarding;

static const gy_access *flag_of(const gantry_graph *g, const gy_node *n)
{
    return n->has_when ? &g->access.at[n->access + n->accesses - 1] : NULL;
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
    if (!flag || a == flag ||
        (k->flag && (k->flag->buffer != flag->buffer || k->flag->first != flag->first || k->flag->last != flag->last)))
        k->is_open = true;
    if (k->is_open)
        return;
    if (!k->flag) {
        k->flag = flag;
        k->loop = around_node(g, n);
    }
    while (!contains(k->loop, node))
        k->loop = around_loop(g, k->loop);
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

static bool see_all(guarding *w)
{
    gantry_graph *g = w->g;
    bool ok = true;
    see_buffers(w);
    for (uint32_t i = 0; i < g->nodes.count; i++)
        if (flag_of(g, &g->nodes.at[i]))
            w->is_flag[flag_of(g, &g->nodes.at[i])->buffer] = 1;
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        const gy_node *n = &g->nodes.at[i];
        for (uint32_t k = n->access; k < n->access + n->accesses; k++) {
            const gy_access *a = &g->access.at[k];
            see_access(w, i, a);
            if (w->is_flag[a->buffer] && a->mode != GANTRY_READ)
                ok = gy_vec_push(&w->writer, ((writer){ a->buffer, i })) && ok;
        }
    }
    for (uint32_t i = 0; i < g->nodes.count; i++) /* loops are known now */
        for (uint32_t k = g->nodes.at[i].access; k < g->nodes.at[i].access + g->nodes.at[i].accesses; k++)
            if (!w->of[g->access.at[k].buffer].is_open)
                widen(g, &w->of[g->access.at[k].buffer], i);
    if (w->writer.count)
        qsort(w->writer.at, w->writer.count, sizeof *w->writer.at, compare_writers);
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
            a->is_kept = a->mode == GANTRY_WRITE && w->of[a->buffer].is_open;
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
                   .is_flag = gy_calloc(graph->buffers.count + 1, 1) };
    bool ok = w.of && w.is_flag && see_all(&w);
    if (ok)
        keep(&w);
    gy_free(w.of);
    gy_free(w.is_flag);
    gy_vec_free(&w.writer);
    return ok ? GANTRY_OK : gy_fail_nomem(err);
}
