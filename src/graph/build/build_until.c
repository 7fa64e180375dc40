/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A repeat inside of another that has an `until` runs all of its iterations, and its nodes by a flag of its own, which
 * a map behind them sets to 0 once the repeat has ended, and back to 1 in the last iteration: the host asks nobody.
 * A node that has a flag already has two then, which build_flags.c makes one. What the repeat carries is copied.
 * Where all of its nodes have one `when`, so have these copies and the map: the repeat is carried out, or left out,
 * whole.
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

/* All nodes of the loop so far run by the flag, and what those inside of it begin with. */
static void guard(gantry_graph *g, const gy_loop *loop, gantry_buffer going)
{
    gantry_region all = gantry_all(going);
    gy_access flag;
    if (!gy_region_resolve(g, &all, &flag))
        return;
    for (uint32_t i = loop->first_node; i < g->nodes.count && !g->error.status; i++)
        gy_build_flag(g, i, flag);
    for (uint32_t i = 0; i < g->build_->handed.count && !g->error.status; i++)
        if (g->build_->handed.at[i].loop > g->build_->open_inner)
            gy_build_flag(g, GY_BEGINS + i, flag);
    if (!gy_vec_push(&g->build_->going, going.id))
        gy_build_nomem(g);
}

/* ---- a when around the loop ---- */

static bool writes(const gantry_graph *g, const gy_node *n, uint32_t buffer)
{
    for (uint32_t k = n->access; k < n->access + n->accesses; k++)
        if (g->access.at[k].buffer == buffer && g->access.at[k].mode != GANTRY_READ)
            return true;
    return false;
}

static bool is_carried(const gy_loop *loop, uint32_t buffer)
{
    for (size_t c = 0; c < loop->carry.count; c++)
        if (loop->carry.at[c].prev == buffer || loop->carry.at[c].next == buffer)
            return true;
    return false;
}

/* A fill of what only flags within others, or nodes of the loop, can be about: it need not have the flag. */
static bool only_clears(const gantry_graph *g, const gy_loop *loop, const gy_node *n)
{
    uint32_t buffer = n->accesses ? g->access.at[n->access].buffer : 0;
    const gy_buffer *b = &g->buffers.at[buffer];
    bool fills = n->kind == GY_NODE_FILL && !n->has_when && n->accesses == 1;
    return fills && b->cls == GANTRY_TEMP && !b->output && !b->external && !is_carried(loop, buffer);
}

/* The first flag of a node, which the program gave it, ahead of its arguments or behind them; NULL: it has none. */
static const gy_access *own_flag(const gantry_graph *g, const gy_node *n)
{
    if (n->kind == GY_NODE_COLLECTIVE)
        return n->extra != GY_NONE && g->extra.at[n->extra].meets ? &g->extra.at[n->extra].flag : NULL;
    for (uint32_t k = n->access; k < n->access + n->accesses; k++)
        if (g->access.at[k].arg == GY_ARG_WHEN)
            return &g->access.at[k];
    return NULL;
}

/* All nodes of the loop run by one flag that none of them writes: a block around the loop has this `when`, so that
 * where it is 0 nothing is carried either. */
static bool find_around(const gantry_graph *g, const gy_loop *loop, gy_access *around)
{
    const gy_access *flag = NULL;
    for (uint32_t i = loop->first_node; i < g->nodes.count; i++) {
        const gy_node *n = &g->nodes.at[i];
        const gy_access *own = own_flag(g, n);
        if (!own && only_clears(g, loop, n))
            continue;
        if (!own || (flag && (own->buffer != flag->buffer || own->first != flag->first || own->last != flag->last)))
            return false;
        flag = own;
    }
    if (!flag || is_carried(loop, flag->buffer) || gy_build_is_going(g, flag->buffer))
        return false;
    for (uint32_t i = loop->first_node; i < g->nodes.count; i++)
        if (writes(g, &g->nodes.at[i], flag->buffer))
            return false;
    *around = *flag;
    return true;
}

/* ---- carried pairs ---- */

static bool is_cut_alike(const gy_buffer *a, const gy_buffer *b)
{
    bool alike = a->bytes == b->bytes && gy_build_pieces(a) == gy_build_pieces(b) && a->split_auto == b->split_auto;
    for (int64_t i = 0; alike && a->parts && i <= a->parts; i++)
        alike = a->part_first[i] == b->part_first[i];
    return alike && (a->tiles[0] != 0) == (b->tiles[0] != 0);
}

/* Pairs are copied at the end of each iteration, by nodes that the flag guards, too: so names mean the same
 * behind the last one that runs, and those behind it cost nothing. */
static void hand_on(gantry_graph *g, const gy_loop *loop, uint32_t going, const gy_access *around)
{
    for (size_t c = 0; c < loop->carry.count && !g->error.status; c++) {
        gy_carry pair = loop->carry.at[c];
        gy_handed handed = { g->build_->open_inner, pair.prev, pair.next, going, around != NULL, { 0 } };
        if (!is_cut_alike(&g->buffers.at[pair.prev], &g->buffers.at[pair.next])) {
            gy_graph_mistake(g, GANTRY_E_GRAPH,
                             "carry of \"%s\" and \"%s\", which differ in size or in how they are cut; give both the "
                             "same dtype, shape and cut",
                             g->buffers.at[pair.prev].name, g->buffers.at[pair.next].name);
            return;
        }
        for (int64_t i = 0; i < gy_build_pieces(&g->buffers.at[pair.prev]) && !g->error.status; i++) {
            gantry_node made = gy_build_copy_piece(g, "carry", pair.next, pair.prev, i);
            if (around && !g->error.status)
                gy_build_flag(g, made.id, *around);
        }
        if (around) {
            handed.around = *around;
            gy_build_flag(g, GY_BEGINS + (uint32_t)g->build_->handed.count, *around);
        }
        if (!gy_vec_push(&g->build_->handed, handed))
            gy_build_nomem(g);
    }
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
static void ask(gantry_graph *g, const gy_loop *loop, gantry_buffer going, const gy_access *around)
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
    if (around && !g->error.status)
        gy_build_flag(g, node.id, *around);
}

void gy_build_guard(gantry_graph *graph, const gy_loop *innermost)
{
    gy_loop loop = *innermost; /* nodes that are added leave it where it is, buffers too */
    const gy_buffer *flag = &graph->buffers.at[loop.until];
    if (flag->bytes != gantry_dtype_size(flag->dtype)) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "until watches \"%s\", which has %llu elements; it must have one",
                         flag->name, (unsigned long long)(flag->bytes / gantry_dtype_size(flag->dtype)));
        return;
    }
    if (flag->init.kind == GY_INIT_NONE && !flag->class_given) /* where a start begins, nothing has ended */
        gantry_buffer_init_value(graph, (gantry_buffer){ loop.until, graph->number }, 0);
    gy_access around;
    if (graph->build_->late_access.count && !gy_build_merge(graph)) { /* a flag may have come behind a later node */
        gy_build_nomem(graph);
        return;
    }
    const gy_access *by = find_around(graph, &loop, &around) ? &around : NULL;
    gantry_buffer going = make_going(graph, loop.until);
    hand_on(graph, &loop, going.id, by);
    if (!graph->error.status)
        guard(graph, &loop, going);
    if (!graph->error.status)
        ask(graph, &loop, going, by);
}
