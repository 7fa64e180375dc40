/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A repeat inside of another that has an `until` runs all of its iterations, and its nodes by a flag of its own, which
 * a map behind them sets to 0 once the repeat has ended, and back to 1 in the last iteration: the host asks nobody.
 */
#include "graph/build/build_state.h"
#include "graph/nest.h"

/* A buffer "FLAG.going" of one element, which each start begins with 1. */
static gantry_buffer make_going(gantry_graph *g, uint32_t flag)
{
    gantry_buffer made = gy_build_beside(g, flag, "going", GANTRY_I32, 1, &(int64_t){ 1 });
    gantry_buffer_init_value(g, made, 1);
    return made;
}

static bool say_no_guard(gantry_graph *g, const gy_node *n, const char *why)
{
    gy_graph_mistake(
        g, GANTRY_E_GRAPH,
        "node \"%s\" %s, in a repeat with an until inside of another, which leaves its nodes out by a flag "
        "of its own; let the inner repeat run all of its iterations, or the outermost have the until",
        n->id, why);
    return false;
}

static bool guard(gantry_graph *g, const gy_loop *loop, gantry_buffer going)
{
    for (uint32_t i = loop->first_node; i < g->nodes.count && !g->error.status; i++) {
        const gy_node *n = &g->nodes.at[i];
        if (n->kind == GY_NODE_COLLECTIVE)
            return say_no_guard(g, n, "is a collective");
        if (n->has_when)
            return say_no_guard(g, n, "has a when");
        gantry_node_when(g, (gantry_node){ i, g->number }, gantry_all(going));
    }
    return !g->error.status;
}

static void give_expr(gantry_graph *g, gantry_node node, const char *name, const char *index, int64_t modulus)
{
    gy_text text = { 0 };
    const gy_expr *expr = NULL;
    gy_text_printf(&text, modulus ? "(%s + 1) %% %lld" : "%s", index, (long long)modulus);
    if (text.failed ||
        gy_expr_parse(&expr, &g->arena, text.at, text.length, GANTRY_E_GRAPH, NULL, NULL) == GANTRY_E_NOMEM)
        gy_build_nomem(g);
    else
        gy_node_scalar_expr(g, node, name, expr, false);
    gy_text_free(&text);
}

/* The map that asks, every so many iterations; `left` is 0 in the last one. */
static void ask(gantry_graph *g, const gy_loop *loop, gantry_buffer going)
{
    gantry_buffer flag = { loop->until, g->number };
    const char *id = gy_arena_printf(&g->arena, "until.%s", g->buffers.at[loop->until].name), *index = loop->index;
    int64_t every = loop->every, count = loop->count;
    bool unique = g->build_->unique_ids;
    if (!id) {
        gy_build_nomem(g);
        return;
    }
    g->build_->unique_ids = false; /* the id gives way to those that are there */
    gantry_node node =
        gantry_graph_map(g, id, "going = select(it == last, 1, select(rest == 0, going * (flag == 0), going))");
    g->build_->unique_ids = unique;
    gantry_node_arg(g, node, "going", gantry_all(going));
    gantry_node_arg(g, node, "flag", gantry_all(flag));
    gantry_node_scalar(g, node, "last", (double)(count - 1));
    give_expr(g, node, "it", index, 0);
    give_expr(g, node, "rest", index, every);
}

void gy_build_guard(gantry_graph *graph, const gy_loop *innermost)
{
    gy_loop loop = *innermost; /* nodes that are added leave it where it is, buffers too */
    const gy_buffer *flag = &graph->buffers.at[loop.until];
    if (loop.carry.count) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH,
                         "a repeat inside of another with an until carries \"%s\", which would be carried on after it "
                         "has ended; change the buffer in place, or copy \"%s\" to it, and carry nothing",
                         graph->buffers.at[loop.carry.at[0].prev].name, graph->buffers.at[loop.carry.at[0].next].name);
        return;
    }
    if (flag->bytes != gantry_dtype_size(flag->dtype)) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "until watches \"%s\", which has %llu elements; it must have one",
                         flag->name, (unsigned long long)(flag->bytes / gantry_dtype_size(flag->dtype)));
        return;
    }
    if (flag->init.kind == GY_INIT_NONE && !flag->class_given) /* where a start begins, nothing has ended */
        gantry_buffer_init_value(graph, (gantry_buffer){ loop.until, graph->number }, 0);
    gantry_buffer going = make_going(graph, loop.until);
    if (!graph->error.status && guard(graph, &loop, going))
        ask(graph, &loop, going);
}
