/* SPDX-License-Identifier: Apache-2.0 */
/* Contributions to a sum, one after the other: each is `after` those before it that give to the same rows, so they are
 * added in that order wherever nodes run. What has more priority comes first, such as an earlier micro-batch. */
#include "base/error.h"
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"

#include <stdlib.h>

typedef struct summand {
    uint32_t buffer, turn; /* turn: how often the sums so far were read or written over before */
    int32_t priority;
    uint32_t node;
    int64_t first, last;
} summand;

typedef struct sums {
    gantry_graph *g;
    GY_VEC(summand) summand;
    uint32_t *turn; /* by buffer */
    bool *adds;     /* by buffer: the last that had to do with it contributed */
} sums;

static int compare(const void *one, const void *other)
{
    const summand *a = one, *b = other;
    if (a->buffer != b->buffer)
        return a->buffer < b->buffer ? -1 : 1;
    if (a->turn != b->turn)
        return a->turn < b->turn ? -1 : 1;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    return (a->node > b->node) - (a->node < b->node);
}

static bool look(sums *s, uint32_t node)
{
    const gy_node *n = &s->g->nodes.at[node];
    for (uint32_t k = n->access; k < n->access + n->accesses; k++) {
        const gy_access *x = &s->g->access.at[k];
        bool adds = gy_access_reduces(x);
        s->turn[x->buffer] += s->adds[x->buffer] && !adds;
        s->adds[x->buffer] = adds;
        summand made = {
            x->buffer, s->turn[x->buffer], gy_node_extra_of(s->g, node)->priority, node, x->first, x->last
        };
        if (adds && x->first < x->last && n->loop == GY_NONE && !gy_vec_push(&s->summand, made))
            return false;
    }
    return true;
}

/* Back to the one that gives to all of the rows: the others before it are before it already. */
static void follow(const sums *s, size_t at)
{
    const summand *mine = &s->summand.at[at];
    for (size_t i = at; i-- > 0 && s->summand.at[i].buffer == mine->buffer;) {
        const summand *other = &s->summand.at[i];
        if (other->node == mine->node || other->last <= mine->first || mine->last <= other->first)
            continue;
        if (!gy_node_is_after(s->g, &s->g->nodes.at[mine->node], other->node))
            gantry_node_after(s->g, (gantry_node){ mine->node, s->g->number },
                              (gantry_node){ other->node, s->g->number });
        if (other->first <= mine->first && mine->last <= other->last)
            return;
    }
}

static gantry_status order(sums *s, gantry_error *err)
{
    bool ok = s->turn && s->adds && gy_build_merge(s->g);
    for (uint32_t i = 0; ok && i < s->g->nodes.count; i++)
        ok = look(s, i);
    if (!ok)
        return gy_fail_nomem(err);
    if (s->summand.count)
        qsort(s->summand.at, s->summand.count, sizeof *s->summand.at, compare);
    for (size_t i = 0; i < s->summand.count; i++)
        follow(s, i);
    if (!gy_build_merge(s->g))
        return gy_fail_nomem(err);
    return s->g->error.status ? (*err = s->g->error, err->status) : GANTRY_OK;
}

gantry_status gy_order_sums(gantry_graph *graph, gantry_error *err)
{
    if (!graph->orders_sums)
        return GANTRY_OK;
    GY_TRY(gy_part_sums(graph, err));
    sums s = { .g = graph };
    s.turn = gy_calloc(graph->buffers.count + 1, sizeof *s.turn);
    s.adds = gy_calloc(graph->buffers.count + 1, sizeof *s.adds);
    gantry_status status = order(&s, err);
    gy_vec_free(&s.summand);
    gy_free(s.turn);
    gy_free(s.adds);
    return status;
}
