/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that one node of a family writes (nodes of one `for`, of one line of a program) and another writes over before
 * anything has read them: the parts of a sum without the access `sum`, most often. */
#include "base/error.h"
#include "base/imap.h"
#include "graph/check/check.h"
#include "graph/nest.h"
#include <string.h>

/* Nodes that one place of the file, or of the program, has made, in the same loops. */
static bool is_family(const gantry_graph *g, const gy_node *a, const gy_node *b)
{
    return a->loop == b->loop && a->inner == b->inner &&
           gy_origin_is_same(&g->origins.at[a->origin], &g->origins.at[b->origin]);
}

/* The node that wrote rows last, while nothing else has happened to them: payload 1 + node, or 0. */
typedef struct gy_writers {
    gantry_graph *graph;
    gy_imap *rows;         /* by buffer; empty until a node writes there */
    const gy_node *warned; /* of a family of nodes only one is warned of */
} gy_writers;

static bool warn(gy_writers *w, const gy_node *before, const gy_node *node, const gy_access *a)
{
    gantry_graph *g = w->graph;
    gy_text rows = { 0 };
    gy_rows_text(&rows, g, a->buffer, a->first, a->last);
    const char *text =
        rows.failed ? NULL
                    : gy_arena_printf(&g->arena,
                                      "node \"%s\" writes over %s, which node \"%s\" wrote and nothing has read: that "
                                      "result is lost; add both up (access \"sum\", or \"readwrite\" where the kernel "
                                      "has that), or give each a region of its own",
                                      node->id, rows.at, before->id);
    gy_text_free(&rows);
    gy_warning warning = { node->origin, text };
    w->warned = node;
    return text && gy_vec_push(&g->warnings, warning);
}

/* All of what one access of an earlier node wrote, and no more, is written again. */
static const gy_node *find_lost(const gy_writers *w, const gy_node *node, const gy_access *a)
{
    const gy_imap *rows = &w->rows[a->buffer];
    uint32_t i = gy_imap_find(rows, a->first);
    if (i == GY_IMAP_NONE || !rows->at[i].payload || rows->at[i].first != a->first || rows->at[i].last != a->last)
        return NULL;
    const gy_node *before = &w->graph->nodes.at[rows->at[i].payload - 1];
    return before != node && is_family(w->graph, before, node) ? before : NULL;
}

static bool note(gy_writers *w, uint32_t node, const gy_access *a)
{
    const gy_node *n = &w->graph->nodes.at[node];
    gy_imap *rows = &w->rows[a->buffer];
    bool writes = a->mode == GANTRY_WRITE;
    if (a->first >= a->last || (!rows->at && !writes))
        return true;
    if (!rows->at && !gy_imap_init(rows, 0, w->graph->buffers.at[a->buffer].rows, 0))
        return false;
    const gy_node *lost = writes ? find_lost(w, n, a) : NULL;
    if (lost && !(w->warned && is_family(w->graph, w->warned, n)) && !warn(w, lost, n, a))
        return false;
    return gy_imap_set(rows, a->first, a->last, writes ? (uint64_t)node + 1 : 0);
}

gantry_status gy_check_overwritten(gantry_graph *g, gantry_error *err)
{
    gy_writers w = { .graph = g, .rows = gy_calloc(g->buffers.count + 1, sizeof *w.rows) };
    bool ok = w.rows != NULL;
    for (uint32_t i = 0; ok && i < g->nodes.count; i++)
        for (uint32_t k = g->nodes.at[i].access; ok && k < g->nodes.at[i].access + g->nodes.at[i].accesses; k++)
            ok = note(&w, i, &g->access.at[k]);
    for (size_t b = 0; w.rows && b < g->buffers.count; b++)
        gy_imap_free(&w.rows[b]);
    gy_free(w.rows);
    return ok ? GANTRY_OK : gy_fail_nomem(err);
}
