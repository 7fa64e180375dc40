/* SPDX-License-Identifier: Apache-2.0 */
/* Taking nodes away: later ones get lower numbers, so whatever names nodes by number follows. */
#include "graph/fuse/fuse.h"

#include "graph/build/build_state.h"

bool gy_fuse_compact(gy_fuser *f)
{
    gantry_graph *g = f->graph;
    uint32_t *number = gy_calloc(g->nodes.count + 1, sizeof *number); /* by old number, and one more: the new one */
    uint32_t left = 0;
    if (!number)
        return false;
    for (size_t i = 0; i < g->nodes.count; i++) {
        number[i] = left;
        left += !f->gone[i];
    }
    number[g->nodes.count] = left;
    gy_build_renumber(g, number);
    for (size_t i = 0; i < g->nodes.count; i++)
        if (!f->gone[i])
            g->nodes.at[number[i]] = g->nodes.at[i];
    g->nodes.count = left;
    gy_free(number);
    return gy_build_regroup(g);
}
