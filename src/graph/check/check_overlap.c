/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses of one node may share rows only if all of them read. */
#include "base/error.h"
#include "graph/check/check.h"
#include <stdlib.h>

static bool conflict(const gy_access *a, const gy_access *b)
{
    return a->buffer == b->buffer && gy_rows_conflict(a, b);
}

/* A collective may work in place: rank i reads and writes the very same rows. */
static bool is_in_place(const gantry_graph *g, const gy_node *n, const gy_access *a, const gy_access *b)
{
    if (n->kind != GY_NODE_COLLECTIVE)
        return false;
    const gy_node_extra *e = &g->extra.at[n->extra];
    const gy_access *in = a < b ? a : b, *out = a < b ? b : a;
    int64_t rank_in = in - &g->access.at[n->access], rank_out = out - &g->access.at[n->access] - e->ins;
    if (rank_out < 0 || in->first != out->first || in->last != out->last)
        return false;
    rank_in = e->ins == 1 && e->outs > 1 ? e->root : rank_in;
    rank_out = e->outs == 1 && e->ins > 1 ? e->root : rank_out;
    return rank_in == rank_out;
}

static gantry_status say_overlap(const gantry_graph *g, const gy_node *n, const gy_access *a, const gy_access *b,
                                 gantry_error *err)
{
    gy_text one = { 0 }, other = { 0 }, both = { 0 };
    gy_access_text(&one, g, a);
    gy_access_text(&other, g, b);
    int64_t first = a->first > b->first ? a->first : b->first, last = a->last < b->last ? a->last : b->last;
    gy_rows_text(&both, g, a->buffer, first, last);
    gantry_status status = GANTRY_OK;
    if (one.failed || other.failed || both.failed)
        status = gy_fail_nomem(err);
    else if (b->arg == GY_ARG_WHEN)
        status =
            gy_graph_fail(g, n->origin, err, GANTRY_E_GRAPH,
                          "node \"%s\" has access %s to %s and a \"when\" on %s: a node may only read the flag that it "
                          "runs by; write a second buffer, and copy that to %s by a node behind this one",
                          n->id, gantry_access_name(gy_access_given(a)), one.at, other.at, other.at);
    else
        status = gy_graph_fail(
            g, n->origin, err, GANTRY_E_GRAPH,
            "node \"%s\" has access %s to %s and %s to %s: %s is in both; accesses of a node may overlap only if "
            "all read: use a second buffer",
            n->id, gantry_access_name(gy_access_given(a)), one.at, gantry_access_name(gy_access_given(b)), other.at,
            both.at);
    gy_text_free(&one);
    gy_text_free(&other);
    gy_text_free(&both);
    return status;
}

/* ---- few accesses: each with each ---- */

static gantry_status check_pairs(const gantry_graph *g, const gy_node *n, gantry_error *err)
{
    const gy_access *at = gy_vec_from(&g->access, n->access);
    for (uint32_t i = 1; i < n->accesses; i++) {
        for (uint32_t k = 0; k < i; k++)
            if (conflict(&at[k], &at[i]) && !is_in_place(g, n, &at[k], &at[i]))
                return say_overlap(g, n, &at[k], &at[i], err);
    }
    return GANTRY_OK;
}

/* ---- many: in order of their first rows ---- */

static int compare_accesses(const void *x, const void *y)
{
    const gy_access *a = *(const gy_access *const *)x, *b = *(const gy_access *const *)y;
    if (a->buffer != b->buffer)
        return a->buffer < b->buffer ? -1 : 1;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* The two that reach furthest in one buffer: one of them may be what the next access works on in place. */
typedef struct reach {
    const gy_access *best, *second;
} reach;

static void extend(reach *r, const gy_access *a)
{
    if (!r->best || r->best->buffer != a->buffer)
        *r = (reach){ a, NULL };
    else if (a->last > r->best->last)
        *r = (reach){ a, r->best };
    else if (!r->second || a->last > r->second->last)
        r->second = a;
}

static const gy_access *find_conflict(const gantry_graph *g, const gy_node *n, const reach *r, const gy_access *a)
{
    if (r->best && conflict(r->best, a) && !is_in_place(g, n, r->best, a))
        return r->best;
    if (r->second && conflict(r->second, a) && !is_in_place(g, n, r->second, a))
        return r->second;
    return NULL;
}

static gantry_status check_sweep(const gantry_graph *g, const gy_node *n, const gy_access **sorted, gantry_error *err)
{
    reach any = { 0 }, writers = { 0 };
    for (uint32_t i = 0; i < n->accesses; i++)
        sorted[i] = &g->access.at[n->access + i];
    qsort(sorted, n->accesses, sizeof *sorted, compare_accesses);
    for (uint32_t i = 0; i < n->accesses; i++) {
        const gy_access *a = sorted[i];
        const gy_access *other = find_conflict(g, n, a->mode == GANTRY_READ ? &writers : &any, a);
        if (other)
            return say_overlap(g, n, other < a ? other : a, other < a ? a : other, err);
        extend(&any, a);
        if (a->mode != GANTRY_READ)
            extend(&writers, a);
    }
    return GANTRY_OK;
}

/* The flag of a collective is none of its accesses. */
static gantry_status check_flag(const gantry_graph *g, const gy_node *n, gantry_error *err)
{
    const gy_node_extra *e = n->extra != GY_NONE ? &g->extra.at[n->extra] : NULL;
    for (uint32_t i = n->access; e && e->meets && i < n->access + n->accesses; i++)
        if (conflict(&g->access.at[i], &e->flag))
            return say_overlap(g, n, &g->access.at[i], &e->flag, err);
    return GANTRY_OK;
}

gantry_status gy_check_overlap(const gantry_graph *graph, const gy_node *node, gantry_error *err)
{
    GY_TRY(check_flag(graph, node, err));
    if (node->accesses <= 16)
        return check_pairs(graph, node, err);
    const gy_access **sorted = gy_calloc(node->accesses, sizeof(const gy_access *));
    if (!sorted)
        return gy_fail_nomem(err);
    gantry_status status = check_sweep(graph, node, sorted, err);
    gy_free(sorted);
    return status;
}
