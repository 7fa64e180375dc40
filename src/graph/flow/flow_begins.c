/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/imap.h"
#include "graph/flow/flow.h"

static bool is_written(const gy_imap *written, int64_t first, int64_t last)
{
    uint32_t i = first < last ? gy_imap_find(written, first) : GY_IMAP_NONE;
    for (; i != GY_IMAP_NONE && written->at[i].first < last; i = gy_imap_next(written, i))
        if (!written->at[i].payload)
            return false;
    return true;
}

/* Follows the tasks up to one that finds what the buffer begins with; false: out of memory. */
static bool follow(const gantry_graph *g, uint32_t buffer, gy_imap *written, bool *found)
{
    const gy_flow *f = g->flow;
    for (size_t i = 0; i < f->accesses && !*found; i++) {
        const gy_access *a = gy_flow_access_of(g, f, i);
        if (f->access[i].value != buffer)
            continue;
        *found = a->mode != GANTRY_WRITE && !is_written(written, a->first, a->last);
        if (!gy_imap_set(written, a->first, a->last, 1))
            return false;
    }
    return true;
}

/* Some output or state ends as the buffer, which may be another than itself where names are carried. A state that no
 * node touches is in no memory. */
static bool is_left(const gantry_graph *g, uint32_t buffer, bool touched)
{
    for (uint32_t b = 0; b < g->buffers.count; b++) {
        const gy_buffer *x = &g->buffers.at[b];
        bool kept = x->cls == GANTRY_STATE && (touched || b != buffer);
        if ((x->output || kept) && g->flow->exit[b] == buffer)
            return true;
    }
    return false;
}

gantry_status gy_flow_finds_beginning(const gantry_graph *graph, uint32_t buffer, bool *found, gantry_error *err)
{
    int64_t rows = graph->buffers.at[buffer].rows;
    gy_imap written;
    if (!gy_imap_init(&written, 0, rows, 0))
        return gy_fail_nomem(err);
    *found = false;
    bool done = follow(graph, buffer, &written, found);
    bool touched = written.count > 1 || (rows && written.at[0].payload);
    *found = *found || (is_left(graph, buffer, touched) && !is_written(&written, 0, rows));
    gy_imap_free(&written);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}
