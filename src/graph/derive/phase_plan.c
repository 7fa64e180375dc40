/* SPDX-License-Identifier: Apache-2.0 */
/* Where a graph is cut into phases, and how many iterations are unrolled in each. */
#include "base/error.h"
#include "graph/derive/phase_walk.h"
#include "graph/nest.h"

/* ---- which loops ---- */

/* The largest loop that is not cut yet and worth it, or GY_NONE. */
static uint32_t largest(const gantry_graph *g, const uint8_t *cut)
{
    uint32_t best = GY_NONE;
    for (uint32_t i = 0; i < g->loops.count; i++) {
        const gy_loop *l = &g->loops.at[i];
        if (!cut[i] && gy_loop_has_tasks(l) && l->count > GY_ITERATIONS_SHOWN &&
            (best == GY_NONE || gy_loop_tasks(l) > gy_loop_tasks(&g->loops.at[best])))
            best = i;
    }
    return best;
}

/* Marks the loops to cut; false: there are none. */
static bool choose_loops(const gantry_graph *g, int64_t most, uint8_t *cut)
{
    double tasks = (double)g->nodes.count;
    bool any = false;
    for (size_t i = 0; i < g->loops.count; i++) {
        const gy_loop *l = &g->loops.at[i];
        tasks += gy_loop_tasks(l) - (double)(l->last_node - l->first_node); /* each node is counted already */
        cut[i] = l->until != GY_NONE && gy_loop_has_tasks(l);
        tasks -= cut[i] ? gy_loop_tasks(l) : 0;
        any = any || cut[i];
    }
    for (uint32_t i; tasks > (double)most && (i = largest(g, cut)) != GY_NONE; any = true) {
        cut[i] = 1;
        tasks -= gy_loop_tasks(&g->loops.at[i]);
    }
    return any;
}

/* ---- how many iterations a start has ---- */

/* Iterations that make up a body of the right size. */
static int64_t body_of(const gy_loop *l, int64_t most)
{
    int64_t tasks = most < GY_UNROLL_BODY ? most : GY_UNROLL_BODY;
    return tasks / l->tasks > 1 ? tasks / l->tasks : 1;
}

/* The largest divisor of `every` that is not above `most`: `until` is looked at between starts only. */
static int64_t divisor(int64_t every, int64_t most)
{
    int64_t best = 1;
    for (int64_t d = 1; d <= most && d <= every; d++)
        best = every % d == 0 ? d : best;
    return best;
}

/* Between half of `most` and `most`: a divisor of the count if there is one, else as many as can be. */
static int64_t unroll(int64_t count, int64_t most)
{
    most = most < count ? most : count;
    for (int64_t u = most; u > most / 2; u--)
        if (count % u == 0)
            return u;
    return most;
}

/* ---- the list ---- */

typedef struct planner {
    gy_phases *list;
    const gantry_graph *graph;
    gy_walk walk;
    gantry_error *err;
} planner;

static gantry_status add_phase(planner *p, gy_phase phase)
{
    gy_walk_phase(&p->walk, &phase);
    return !p->walk.failed && gy_vec_push(p->list, phase) ? GANTRY_OK : gy_fail_nomem(p->err);
}

static gantry_status add_nodes(planner *p, uint32_t first_node, uint32_t last_node, uint32_t first_loop,
                               uint32_t last_loop)
{
    gy_phase phase = { .first_node = first_node,
                       .last_node = last_node,
                       .loop = GY_NONE,
                       .first_loop = first_loop,
                       .last_loop = last_loop,
                       .iterations = 1,
                       .starts = 1 };
    return first_node < last_node || first_loop < last_loop ? add_phase(p, phase) : GANTRY_OK;
}

static gantry_status refuse_end(const planner *p, uint32_t loop)
{
    const gy_loop *l = &p->graph->loops.at[loop];
    return gy_graph_fail(p->graph, p->graph->nodes.at[l->first_node].origin, p->err, GANTRY_E_UNSUPPORTED,
                         "a repeat that may end after its first iteration by \"until\" on \"%s\" leaves other rows, or "
                         "other names, behind then than later, and they are used after it; look every 2 iterations, or "
                         "write the carried buffers before they are used",
                         p->graph->buffers.at[l->until].name);
}

static gantry_status refuse_inner(const planner *p, uint32_t loop)
{
    const gy_loop *l = &p->graph->loops.at[loop];
    return gy_graph_fail(p->graph, l->origin, p->err, GANTRY_E_UNSUPPORTED,
                         "after %d of its %lld iterations, what the repeats inside of this one carry still means other "
                         "buffers, or other rows of them hold something, than an iteration later, so that the "
                         "iterations cannot be started again and again; write the carried buffers before each inner "
                         "repeat, or unroll the repeat wholly (option `unroll`, %lld tasks)",
                         GY_ITERATIONS_SHOWN - 1, (long long)l->count, (long long)gy_turns_times(l->count, l->tasks));
}

/* First iterations that are not like the others, the others, and what is left over. */
static gantry_status add_loop(planner *p, uint32_t loop, int64_t most)
{
    const gy_loop *l = &p->graph->loops.at[loop];
    bool ends = l->until != GY_NONE && l->every <= l->count;
    int64_t size = body_of(l, most), u = ends ? divisor(l->every, size) : unroll(l->count, size);
    gy_phase phase = { .first_node = l->first_node,
                       .last_node = l->last_node,
                       .loop = loop,
                       .first_loop = loop,
                       .last_loop = loop + 1,
                       .iterations = u,
                       .every = l->until != GY_NONE ? l->every : 0 };
    gantry_status status = GANTRY_OK;
    if (!gy_walk_inner_settles(&p->walk, loop))
        return p->walk.failed ? gy_fail_nomem(p->err) : refuse_inner(p, loop);
    if (!gy_walk_ends_alike(&p->walk, loop))
        return p->walk.failed ? gy_fail_nomem(p->err) : refuse_end(p, loop);
    while (!status && u <= l->count - phase.first) {
        phase.starts = (l->count - phase.first) / u;
        phase.starts = phase.starts > 1 && !gy_walk_settle(&p->walk, &phase) ? 1 : phase.starts;
        status = add_phase(p, phase);
        phase.first += gy_phase_turns(&phase);
    }
    if (!status && phase.first < l->count) {
        phase.iterations = l->count - phase.first;
        phase.starts = 1;
        status = add_phase(p, phase);
    }
    return status;
}

static gantry_status add_all(planner *p, const uint8_t *cut, int64_t most)
{
    const gantry_graph *g = p->graph;
    uint32_t node = 0, loop = 0;
    gantry_status status = GANTRY_OK;
    for (uint32_t i = 0; i < g->loops.count && !status; i++) {
        if (!cut[i])
            continue;
        status = add_nodes(p, node, g->loops.at[i].first_node, loop, i);
        status = status ? status : add_loop(p, i, most);
        node = g->loops.at[i].last_node;
        loop = i + 1;
    }
    return status ? status : add_nodes(p, node, (uint32_t)g->nodes.count, loop, (uint32_t)g->loops.count);
}

gantry_status gy_phases_plan(gy_phases *list, const gantry_graph *graph, int64_t most, gantry_error *err)
{
    uint8_t *cut = gy_calloc(graph->loops.count + 1, 1);
    gy_arena arena = { 0 };
    planner p = { .list = list, .graph = graph, .err = err };
    list->count = 0;
    gantry_status status = cut ? GANTRY_OK : gy_fail_nomem(err);
    if (!status && choose_loops(graph, most, cut)) {
        status = gy_walk_init(&p.walk, graph, &arena) ? add_all(&p, cut, most) : gy_fail_nomem(err);
        gy_walk_free(&p.walk);
    }
    gy_arena_free(&arena);
    gy_free(cut);
    return status;
}
