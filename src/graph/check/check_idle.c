/* SPDX-License-Identifier: Apache-2.0 */
/* Loops whose iterations all do the same: none reads what the one before wrote, since what is to be carried from one to
 * the next was forgotten, most often. */
#include "base/error.h"
#include "graph/check/check.h"
#include "graph/nest.h"

/* Buffers by name are not what is read and written where names change their meaning. */
static bool *find_carried(const gantry_graph *g)
{
    bool *carried = gy_calloc(g->buffers.count + 1, sizeof *carried);
    for (size_t i = 0; carried && i < gy_loop_count(g); i++)
        for (size_t k = 0; k < gy_loop_at(g, i)->carry.count; k++) {
            carried[gy_loop_at(g, i)->carry.at[k].prev] = true;
            carried[gy_loop_at(g, i)->carry.at[k].next] = true;
        }
    return carried;
}

/* True if what a node does follows from what it reads, in every iteration alike: formulas and kernels of the library
 * with scalars that do not change. Functions and code of others may count for themselves. */
static bool is_steady(const gantry_graph *g, const gy_node *n)
{
    bool known = n->kind == GY_NODE_COPY || n->kind == GY_NODE_FILL || n->kind == GY_NODE_COLLECTIVE;
    if (n->kind == GY_NODE_KERNEL && n->function == GY_NONE) {
        const gantry_kernel *k = g->kernels.at[n->kernel].manifest;
        known = k == gantry_kernel_find(k->name) || g->kernels.at[n->kernel].maths;
    }
    for (uint32_t i = 0; i < n->scalars && known; i++)
        known = !g->scalar.at[n->scalar + i].expr;
    return known;
}

/* True if no iteration reads what one before it wrote. `last`: by buffer 1 + the last node of the loop that writes it.
 */
static bool is_idle(const gantry_graph *g, const gy_loop *l, const bool *carried, const uint32_t *last)
{
    for (uint32_t i = l->first_node; i < l->last_node; i++) {
        const gy_node *n = &g->nodes.at[i];
        if (!is_steady(g, n))
            return false;
        for (uint32_t k = n->access; k < n->access + n->accesses; k++) {
            const gy_access *a = &g->access.at[k];
            bool is_plain = a->mode == GANTRY_READ || a->mode == GANTRY_WRITE;
            if (!is_plain || carried[a->buffer] || (a->mode == GANTRY_READ && last[a->buffer] > i))
                return false;
        }
    }
    return true;
}

static bool warn(gantry_graph *g, const gy_loop *l, const bool *carried, uint32_t *last)
{
    static const char text[] =
        "every iteration of the repeat does the same, since none reads what the one before wrote; "
        "say what is carried from one to the next, as in \"carry\": {\"x\": \"y\"}, or let a node "
        "read and write the same region";
    if (l->count < 2 || l->until != GY_NONE || l->first_node == l->last_node)
        return true;
    for (uint32_t i = l->first_node; i < l->last_node; i++)
        for (uint32_t k = g->nodes.at[i].access; k < g->nodes.at[i].access + g->nodes.at[i].accesses; k++)
            last[g->access.at[k].buffer] = g->access.at[k].mode == GANTRY_READ ? last[g->access.at[k].buffer] : i + 1;
    bool idle = is_idle(g, l, carried, last);
    for (uint32_t i = l->first_node; i < l->last_node; i++)
        for (uint32_t k = g->nodes.at[i].access; k < g->nodes.at[i].access + g->nodes.at[i].accesses; k++)
            last[g->access.at[k].buffer] = 0;
    gy_warning warning = { l->origin, text };
    return !idle || gy_vec_push(&g->warnings, warning);
}

gantry_status gy_check_idle(gantry_graph *g, gantry_error *err)
{
    if (g->loops.count == 0)
        return GANTRY_OK;
    bool *carried = find_carried(g);
    uint32_t *last = gy_calloc(g->buffers.count + 1, sizeof *last);
    bool ok = carried && last;
    for (size_t i = 0; ok && i < gy_loop_count(g); i++)
        ok = warn(g, gy_loop_at(g, i), carried, last);
    gy_free(carried);
    gy_free(last);
    return ok ? GANTRY_OK : gy_fail_nomem(err);
}
