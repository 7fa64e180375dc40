/* SPDX-License-Identifier: Apache-2.0 */
/* Which device computes which node of the model: a replica's own, stage by stage. The nodes of a micro-batch, in the
 * order in which they could begin, are cut into stages where their operations are shared out evenly. */
#include "base/error.h"
#include "graph/build/build_state.h"
#include "graph/strategy/strategy.h"

#include <stdio.h>
#include <stdlib.h>

/* A byte counts as so many operations: about what GPUs do while they read one. */
static const double operations_per_byte = 16;

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

/* ---- stages ---- */

/* When the rows that a node writes are there, if nothing waits but for rows. */
typedef struct made_rows {
    int64_t first, last;
    double end;
} made_rows;

/* A node of a micro-batch; by that, then by begin, nodes that do the same for other parts of it come together. */
typedef struct step {
    uint32_t micro, node;
    double begin, cost;
} step;

typedef struct stager {
    gy_spreading *s;
    GY_VEC(made_rows) * made; /* by buffer */
    GY_VEC(step) steps;
} stager;

static int compare_steps(const void *one, const void *other)
{
    const step *a = one, *b = other;
    if (a->micro != b->micro)
        return a->micro < b->micro ? -1 : 1;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return (a->node > b->node) - (a->node < b->node);
}

/* Micro-batches of all replicas have one row of numbers. */
static uint32_t micro_of(const gy_spreading *s, uint32_t node)
{
    return s->of[node].from / (uint32_t)s->strategy.tp;
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

static gantry_status add_step(stager *t, uint32_t node, gantry_arg *args)
{
    const gy_node *n = &t->s->graph->nodes.at[node];
    step made = { .micro = micro_of(t->s, node), .node = node, .begin = begin_of(t, n) };
    GY_TRY(cost_of(t->s, node, args, &made.cost));
    bool ok = gy_vec_push(&t->steps, made);
    for (uint32_t i = n->access; i < n->access + n->accesses && ok; i++) {
        const gy_access *x = &t->s->graph->access.at[i];
        made_rows rows = { x->first, x->last, made.begin + made.cost };
        ok = x->mode == GANTRY_READ || gy_vec_push(&t->made[x->buffer], rows);
    }
    return ok ? GANTRY_OK : gy_fail_nomem(t->s->err);
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
            status = add_step(t, i, args);
    gy_free(args);
    return status;
}

/* The steps of one micro-batch, in their order, are shared out by cost. */
static void share_out(const step *at, size_t count, uint32_t stages, uint32_t *stage)
{
    double all = 0, before = 0;
    for (size_t i = 0; i < count; i++)
        all += at[i].cost;
    for (size_t i = 0; i < count; i++) {
        double share = all > 0 ? (before + at[i].cost / 2) / all * stages : 0;
        stage[at[i].node] = share < stages - 1 ? (uint32_t)share : stages - 1;
        before += at[i].cost;
    }
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

static gantry_status find_stages(gy_spreading *s, uint32_t *stage)
{
    stager t = { .s = s, .made = gy_calloc(s->graph->buffers.count + 1, sizeof *t.made) };
    gantry_status status = t.made ? find_steps(&t) : gy_fail_nomem(s->err);
    if (!status && t.steps.count)
        qsort(t.steps.at, t.steps.count, sizeof *t.steps.at, compare_steps);
    for (size_t i = 0, k = 0; !status && i < t.steps.count; i = k) {
        while (k < t.steps.count && t.steps.at[k].micro == t.steps.at[i].micro)
            k++;
        if ((status = check_stages(s, k - i)))
            break;
        share_out(&t.steps.at[i], k - i, (uint32_t)(s->strategy.pp * s->strategy.interleave), stage);
    }
    for (uint32_t i = 1; !status && i < s->graph->nodes.count; i++) /* what was one node is of one stage */
        if (s->from[i].node == s->from[i - 1].node && micro_of(s, i) == micro_of(s, i - 1))
            stage[i] = stage[i - 1];
    for (size_t i = 0; t.made && i < s->graph->buffers.count; i++)
        gy_vec_free(&t.made[i]);
    gy_free(t.made);
    gy_vec_free(&t.steps);
    return status;
}

/* ---- places ---- */

static bool has_place(const gantry_graph *g, uint32_t node)
{
    const gy_node_extra *x = gy_node_extra_of(g, node);
    return x->on || x->on_expr;
}

/* One expression for each device, so that places are equal where they are the same one. On fewer devices than the
 * strategy is for, each takes what several would have: the same graph, so it can go on there (checkpoints). */
static gantry_status make_places(gy_spreading *s, const gy_expr **place, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        char text[32];
        int length = snprintf(text, sizeof text, "%u %% devices", i);
        GY_TRY(gy_expr_parse(&place[i], &s->graph->arena, text, (size_t)length, GANTRY_E_GRAPH, NULL, s->err));
    }
    return GANTRY_OK;
}

/*
 * Micro-batches follow each other by priority. Each device takes chunk after chunk for as many of them as there are
 * stages, as in Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM
 * (2021); with one chunk it is one micro-batch after the other. Backward passes come so many turns later as it takes a
 * micro-batch to go through the chunks. Where nothing is kept for a backward pass and there are no stages, they have no
 * order: one computes while what another has given is sent.
 */
static void give_turn(gy_spreading *s, gantry_node node, uint32_t chunk)
{
    int pp = s->strategy.pp, chunks = s->strategy.interleave;
    int micro = (int)(micro_of(s, node.id) % (uint32_t)s->strategy.micro);
    int turn = micro / pp * pp * chunks + (int)chunk * pp + micro % pp;
    int delay = 2 * (chunks - 1 - (int)chunk) * pp;
    if ((!turn && !delay) || (pp == 1 && s->graph->is_used))
        return;
    gantry_node_priority(s->graph, node, -turn);
    gy_node_extra *x = gy_build_extra(s->graph, &s->graph->nodes.at[node.id]);
    if (x)
        x->back_delay = delay;
}

static gantry_status place_nodes(gy_spreading *s, const gy_expr *const *place, const uint32_t *stage)
{
    gantry_graph *g = s->graph;
    uint32_t dp = (uint32_t)s->strategy.dp, micro = (uint32_t)s->strategy.micro, tp = (uint32_t)s->strategy.tp;
    uint32_t pp = (uint32_t)s->strategy.pp;
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        gantry_node node = { i, g->number };
        uint32_t slice = s->from[i].slice == GY_NONE ? s->of[i].from % tp : s->from[i].slice;
        if (s->of[i].from == s->of[i].to)
            continue;
        if (!has_place(g, i))
            gy_node_on_expr(g, node, place[(stage[i] % pp * dp + micro_of(s, i) / micro) * tp + slice]);
        give_turn(s, node, stage[i] / pp);
    }
    return g->error.status ? (*s->err = g->error, g->error.status) : GANTRY_OK;
}

gantry_status gy_spread_place(gy_spreading *s)
{
    uint32_t devices = (uint32_t)(s->strategy.dp * s->strategy.tp * s->strategy.pp);
    const gy_expr **place = gy_calloc(devices + 1, sizeof *place);
    uint32_t *stage = gy_calloc(s->graph->nodes.count + 1, sizeof *stage);
    gantry_status status = place && stage ? make_places(s, place, devices) : gy_fail_nomem(s->err);
    if (!status && s->strategy.pp > 1)
        status = find_stages(s, stage);
    status = status ? status : place_nodes(s, place, stage);
    gy_free((void *)place);
    gy_free(stage);
    return status;
}
