/* SPDX-License-Identifier: Apache-2.0 */
/* Which node is of which stage of a pipeline: the nodes of a micro-batch, in the order in which they could begin, are
 * cut where the stage that has most to do has as little as can be. */
#include "base/error.h"
#include "graph/build/build_state.h"
#include "graph/strategy/strategy.h"

#include <math.h>
#include <stdlib.h>

/* A byte counts as so many operations: about what GPUs do while they read one. */
static const double operations_per_byte = 16;

/* When the rows that a node writes are there, if nothing waits but for rows. */
typedef struct made_rows {
    int64_t first, last;
    double end;
} made_rows;

/* Nodes [from, to) that a micro-batch has of one node of the model, one for each slice or piece; they are of one
 * stage. */
typedef struct step {
    uint32_t micro, from, to;
    double begin, cost;
} step;

typedef struct stager {
    gy_spreading *s;
    GY_VEC(made_rows) * made; /* by buffer */
    GY_VEC(step) steps;
} stager;

/* ---- steps of a micro-batch ---- */

static gantry_status cost_of(gy_spreading *s, uint32_t node, gantry_arg *args, double *cost)
{
    gantry_graph *g = s->graph;
    const gy_node *n = &g->nodes.at[node];
    gantry_launch launch;
    double flops = n->flops, bytes = n->bytes;
    int64_t scratch;
    if (!n->cost_given && n->kernel != GY_NONE) {
        GY_TRY(gy_launch_describe(g, node, 0, &launch, args, s->err));
        GY_TRY(gy_kernel_cost(&g->kernels.at[n->kernel], &launch, &flops, &bytes, &scratch, s->err));
    }
    *cost = flops > operations_per_byte * bytes ? flops : operations_per_byte * bytes;
    return GANTRY_OK;
}

static double begin_of(const stager *t, const gy_node *n)
{
    double begin = 0;
    for (uint32_t i = n->access; i < n->access + n->accesses; i++) {
        const gy_access *x = &t->s->graph->access.at[i];
        for (size_t k = 0; x->mode == GANTRY_READ && k < t->made[x->buffer].count; k++) {
            const made_rows *m = &t->made[x->buffer].at[k];
            if (m->first < x->last && x->first < m->last && m->end > begin)
                begin = m->end;
        }
    }
    return begin;
}

/* The step that the node before is of, if both were one node of the model. */
static step *find_step(stager *t, uint32_t node)
{
    const gy_spreading *s = t->s;
    step *last = t->steps.count ? &t->steps.at[t->steps.count - 1] : NULL;
    return last && last->to == node && last->micro == gy_spread_micro(s, node) &&
                   s->from[node].node == s->from[node - 1].node
               ? last
               : NULL;
}

static gantry_status add_node(stager *t, uint32_t node, gantry_arg *args)
{
    const gy_node *n = &t->s->graph->nodes.at[node];
    step made = { .micro = gy_spread_micro(t->s, node), .from = node, .to = node + 1, .begin = begin_of(t, n) };
    GY_TRY(cost_of(t->s, node, args, &made.cost));
    step *with = find_step(t, node);
    bool ok = with || gy_vec_push(&t->steps, made);
    if (with) {
        with->to = made.to;
        with->begin = fmax(with->begin, made.begin);
        with->cost += made.cost;
    }
    for (uint32_t i = n->access; i < n->access + n->accesses && ok; i++) {
        const gy_access *x = &t->s->graph->access.at[i];
        made_rows rows = { x->first, x->last, made.begin + made.cost };
        ok = x->mode == GANTRY_READ || gy_vec_push(&t->made[x->buffer], rows);
    }
    return ok ? GANTRY_OK : gy_fail_nomem(t->s->err);
}

/* By micro-batch, then by begin: steps that do the same for other parts of it come together. */
static int compare_steps(const void *one, const void *other)
{
    const step *a = one, *b = other;
    if (a->micro != b->micro)
        return a->micro < b->micro ? -1 : 1;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return (a->from > b->from) - (a->from < b->from);
}

static gantry_status find_steps(stager *t)
{
    gantry_graph *g = t->s->graph;
    size_t most = 0;
    GY_TRY(gy_build_maps(g, t->s->err));
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        size_t args = gy_launch_args(g, i);
        most = args > most ? args : most;
    }
    gantry_arg *args = gy_calloc(most + 1, sizeof *args);
    gantry_status status = args ? GANTRY_OK : gy_fail_nomem(t->s->err);
    for (uint32_t i = 0; i < g->nodes.count && !status; i++)
        if (t->s->of[i].from != t->s->of[i].to)
            status = add_node(t, i, args);
    gy_free(args);
    if (!status && t->steps.count)
        qsort(t->steps.at, t->steps.count, sizeof *t->steps.at, compare_steps);
    return status;
}

/* ---- where they are cut ---- */

/*
 * `count` steps in a row become `stages` parts, none of them empty: the linear partition problem, or chains on chains.
 * It is solved by dynamic programming as in Pinar and Aykanat, Fast Optimal Load Balancing Algorithms for 1D
 * Partitioning (Journal of Parallel and Distributed Computing 64, 2004). before[i] is the cost of the steps before
 * step i.
 */
typedef struct partition {
    const double *before;
    size_t count, stages;
    size_t *cut; /* where stages begin, and where the last one ends */
} partition;

/* How much the largest stage has at least. most[i] is that of the first i steps, in one stage and then in more; the
 * best place for the last cut of fewer steps is no later, so it only moves back. */
static double least_largest(const partition *p, double *most)
{
    for (size_t i = 0; i <= p->count; i++)
        most[i] = p->before[i];
    for (size_t stages = 2; stages <= p->stages; stages++) {
        size_t cut = p->count - 1;
        for (size_t i = p->count; i >= stages; i--) {
            cut = cut < i ? cut : i - 1;
            double with = fmax(most[cut], p->before[i] - p->before[cut]);
            for (; cut >= stages; cut--) {
                double earlier = fmax(most[cut - 1], p->before[i] - p->before[cut - 1]);
                if (earlier > with)
                    break;
                with = earlier;
            }
            most[i] = with;
        }
    }
    return most[p->count];
}

/* Each stage begins as early as it can if none after it has more than `largest`. */
static void cut_early(partition *p, double largest)
{
    p->cut[p->stages] = p->count;
    for (size_t s = p->stages; s-- > 0;) {
        size_t at = p->cut[s + 1] - 1;
        while (at > s && p->before[p->cut[s + 1]] - p->before[at - 1] <= largest)
            at--;
        p->cut[s] = at;
    }
}

/* Of those cuts the one that is nearest to equal shares, stage by stage. Where two are as near it is the later: what
 * takes all micro-batches together, such as a mean of their losses, is computed with the first, whose last stage has a
 * little more, and should be cut like the others. */
static void cut_evenly(partition *p, double largest)
{
    double all = p->before[p->count];
    for (size_t s = 1; s < p->stages; s++) {
        size_t from = p->cut[s - 1], last = p->count - (p->stages - s);
        double share = all * (double)s / (double)p->stages;
        size_t at = p->cut[s] > from ? p->cut[s] : from + 1;
        while (at < last && p->before[at + 1] - p->before[from] <= largest &&
               fabs(p->before[at + 1] - share) <= fabs(p->before[at] - share))
            at++;
        p->cut[s] = at;
    }
}

/* The steps of one micro-batch, in their order. */
static gantry_status share_out(const gy_spreading *s, const step *at, size_t count, size_t stages, uint32_t *stage)
{
    double *before = gy_calloc(2 * (count + 1), sizeof *before);
    partition p = { before, count, stages, gy_calloc(stages + 1, sizeof *p.cut) };
    gantry_status status = before && p.cut ? GANTRY_OK : gy_fail_nomem(s->err);
    for (size_t i = 0; !status && i < count; i++)
        before[i + 1] = before[i] + at[i].cost;
    if (!status) {
        double largest = least_largest(&p, before + count + 1);
        cut_early(&p, largest);
        cut_evenly(&p, largest);
    }
    for (size_t k = 0; !status && k < stages; k++)
        for (size_t i = p.cut[k]; i < p.cut[k + 1]; i++)
            for (uint32_t node = at[i].from; node < at[i].to; node++)
                stage[node] = (uint32_t)k;
    gy_free(before);
    gy_free(p.cut);
    return status;
}

/* Devices of a stage that no node can be in would have nothing to do. */
static gantry_status check_stages(gy_spreading *s, size_t steps)
{
    int64_t stages = (int64_t)s->strategy.pp * s->strategy.interleave;
    if (stages <= (int64_t)steps)
        return GANTRY_OK;
    return gy_graph_fail(
        s->graph, s->graph->train_origin, s->err, GANTRY_E_GRAPH,
        "pp=%d and interleave=%d are %lld stages, and the forward pass of a micro-batch has %zu nodes to "
        "share out among them; give a pp and an interleave whose product is at most %zu",
        (int)s->strategy.pp, (int)s->strategy.interleave, (long long)stages, steps, steps);
}

gantry_status gy_spread_stages(gy_spreading *s, uint32_t *stage)
{
    stager t = { .s = s, .made = gy_calloc(s->graph->buffers.count + 1, sizeof *t.made) };
    gantry_status status = t.made ? find_steps(&t) : gy_fail_nomem(s->err);
    for (size_t i = 0, k = 0; !status && i < t.steps.count; i = k) {
        while (k < t.steps.count && t.steps.at[k].micro == t.steps.at[i].micro)
            k++;
        status = check_stages(s, k - i);
        if (!status)
            status =
                share_out(s, &t.steps.at[i], k - i, (size_t)s->strategy.pp * (size_t)s->strategy.interleave, stage);
    }
    for (size_t i = 0; t.made && i < s->graph->buffers.count; i++)
        gy_vec_free(&t.made[i]);
    gy_free(t.made);
    gy_vec_free(&t.steps);
    return status;
}
