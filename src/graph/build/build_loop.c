/* SPDX-License-Identifier: Apache-2.0 */
/* Building: loops. */
#include "graph/build/build_state.h"
#include "graph/nest.h"
#include <string.h>

/* The innermost loop that is open; NULL: none is. */
static gy_loop *innermost(gantry_graph *g)
{
    const gy_build *b = g->build_;
    if (b->open_inner != GY_NONE)
        return &g->inner.at[b->open_inner];
    return b->open_loop == GY_NONE ? NULL : &g->loops.at[b->open_loop];
}

static int depth_of(const gantry_graph *g)
{
    int depth = g->build_->open_loop != GY_NONE;
    for (uint32_t i = g->build_->open_inner; i != GY_NONE; i = g->inner.at[i].parent)
        depth++;
    return depth;
}

/* The loop begins, within the one that is open if there is one. */
static bool open_another(gantry_graph *g, gy_loop loop)
{
    gy_build *b = g->build_;
    const gy_loop *around = innermost(g);
    if (!around) {
        b->open_loop = (uint32_t)g->loops.count;
        return gy_vec_push(&g->loops, loop);
    }
    loop.unrolled = loop.count;
    loop.turns = gy_turns_times(around->turns, loop.count);
    loop.top = b->open_loop;
    loop.parent = b->open_inner;
    loop.inner++; /* behind itself */
    b->open_inner = (uint32_t)g->inner.count;
    return gy_vec_push(&g->inner, loop);
}

void gantry_graph_repeat(gantry_graph *graph, int64_t count)
{
    if (!gy_building(graph))
        return;
    if (depth_of(graph) == GY_LOOPS_DEEP) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "a repeat inside of %d others; end one of them before", GY_LOOPS_DEEP);
        return;
    }
    if (count < 0) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "repeat %lld; the count must be at least 0", (long long)count);
        return;
    }
    gy_loop loop = { .count = count,
                     .turns = 1,
                     .index = "it",
                     .top = GY_NONE,
                     .parent = GY_NONE,
                     .inner = (uint32_t)graph->inner.count,
                     .inner_last = UINT32_MAX,
                     .first_node = (uint32_t)graph->nodes.count,
                     .last_node = UINT32_MAX,
                     .until = GY_NONE,
                     .origin = gy_build_origin(graph) };
    if (loop.origin == GY_NONE || !open_another(graph, loop))
        gy_build_nomem(graph);
}

/* The innermost loop that is open, or NULL with the mistake noted. */
static gy_loop *open_loop(gantry_graph *g, const char *what)
{
    gy_loop *loop = innermost(g);
    if (!loop)
        gy_graph_mistake(g, GANTRY_E_GRAPH, "%s outside a repeat; begin one with gantry_graph_repeat", what);
    return loop;
}

/* ---- the index ---- */

bool gy_is_expr_name(const char *name)
{
    size_t letters = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    return letters > 0 && name[letters] == '\0' && !(name[0] >= '0' && name[0] <= '9');
}

bool gy_is_expr_word(const char *name)
{
    static const char *const words[] = { "it", "devices", "and", "or", "not", "min", "max", "ceil_div", "clamp" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(name, words[i]) == 0)
            return true;
    return false;
}

/* A loop around `loop`, which is the innermost one that is open, calls its iteration so. */
static bool is_around(const gantry_graph *g, const gy_loop *loop, const char *name)
{
    if (g->build_->open_inner == GY_NONE)
        return false;
    for (uint32_t i = loop->parent; i != GY_NONE; i = g->inner.at[i].parent)
        if (strcmp(g->inner.at[i].index, name) == 0)
            return true;
    return strcmp(g->loops.at[g->build_->open_loop].index, name) == 0;
}

void gantry_graph_index(gantry_graph *graph, const char *name)
{
    gy_loop *loop = gy_building(graph) ? open_loop(graph, "an index") : NULL;
    if (!loop)
        return;
    bool is_default = name && strcmp(name, "it") == 0;
    if (!name || !gy_is_expr_name(name) || (gy_is_expr_word(name) && !is_default)) {
        gy_graph_mistake(graph, GANTRY_E_INVALID,
                         "\"%s\" cannot be the index of a repeat; give letters, digits and _, not a digit first, and "
                         "no word of expressions",
                         name ? name : "");
    } else if (!is_default && is_around(graph, loop, name)) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH,
                         "\"%s\" is the index of a repeat around this already; give the inner one another name", name);
    } else if (loop->first_node < graph->nodes.count) {
        gy_graph_mistake(graph, GANTRY_E_INVALID,
                         "the index \"%s\" of a repeat that has nodes already; name it before the first of them", name);
    } else if (!(loop->index = gy_build_string(graph, name))) {
        loop->index = "it"; /* the mistake is noted */
    }
}

/* ---- carry and until ---- */

static bool is_carried(const gy_loop *loop, uint32_t buffer)
{
    for (size_t i = 0; i < loop->carry.count; i++)
        if (loop->carry.at[i].prev == buffer || loop->carry.at[i].next == buffer)
            return true;
    return false;
}

void gantry_graph_carry(gantry_graph *graph, gantry_buffer prev, gantry_buffer next)
{
    gy_loop *loop = gy_building(graph) ? open_loop(graph, "carry") : NULL;
    const gy_buffer *p = loop ? gy_build_buffer(graph, prev) : NULL;
    const gy_buffer *n = p ? gy_build_buffer(graph, next) : NULL;
    if (!n)
        return;
    if (prev.id == next.id) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "buffer \"%s\" is carried into itself; name two buffers", p->name);
        return;
    }
    if (is_carried(loop, prev.id) || is_carried(loop, next.id)) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "buffer \"%s\" is in two carried pairs of one repeat; one is allowed",
                         is_carried(loop, prev.id) ? p->name : n->name);
        return;
    }
    struct gy_carry pair = { prev.id, next.id };
    if (!gy_vec_push(&loop->carry, pair))
        gy_build_nomem(graph);
}

void gantry_graph_until(gantry_graph *graph, gantry_buffer flag, int64_t every)
{
    gy_loop *loop = gy_building(graph) ? open_loop(graph, "until") : NULL;
    if (!loop || !gy_build_buffer(graph, flag))
        return;
    if (every < 1) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "until every %lld iterations; it must be at least 1", (long long)every);
        return;
    }
    if (loop->until != GY_NONE) {
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "a repeat with two untils; one is allowed");
        return;
    }
    loop->until = flag.id;
    loop->every = every;
}

void gantry_graph_repeat_end(gantry_graph *graph)
{
    gy_loop *loop = gy_building(graph) ? open_loop(graph, "the end of a repeat") : NULL;
    if (!loop)
        return;
    if (graph->build_->open_inner != GY_NONE && loop->until != GY_NONE) {
        gy_build_guard(graph, loop);
        loop->until = GY_NONE;
        loop->carry.count = 0; /* copies do it */
    }
    loop->last_node = (uint32_t)graph->nodes.count;
    loop->inner_last = (uint32_t)graph->inner.count;
    if (graph->build_->open_inner != GY_NONE)
        graph->build_->open_inner = loop->parent;
    else
        graph->build_->open_loop = GY_NONE;
}
