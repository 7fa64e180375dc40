/* SPDX-License-Identifier: Apache-2.0 */
/* Which automatic splits belong together, and which nodes work on which of their parts. */
#include "scheduler/balance/balance.h"

#include "base/divisor.h"
#include "base/error.h"
#include "graph/nest.h"

bool gy_graph_has_auto(const gantry_graph *graph)
{
    for (size_t i = 0; i < graph->buffers.count; i++)
        if (graph->buffers.at[i].split_auto)
            return true;
    return false;
}

static const gy_buffer *buffer_of(const gantry_graph *g, const gy_access *a)
{
    return &g->buffers.at[a->buffer];
}

static bool names_part(const gantry_graph *g, const gy_access *a)
{
    return a->part >= 0 && buffer_of(g, a)->parts > 0;
}

/* An access of a node; to rows that follow parts of another buffer, as one to these parts. */
static gy_access access_of(const gantry_graph *g, const gy_node *n, uint32_t i)
{
    gy_access a = g->access.at[n->access + i];
    const gy_buffer *b = buffer_of(g, &a);
    if (!b->along)
        return a;
    int32_t first = (int32_t)b->piece - 1, parts = b->parts ? (int32_t)b->parts : 1;
    a.part_last = first + (a.part < 0 ? parts : a.part_last);
    a.part = first + (a.part < 0 ? 0 : a.part);
    a.buffer = b->along - 1;
    return a;
}

/* Parts and rows of each of the arrays that lie in a buffer. */
static int64_t parts_of(const gy_buffer *b)
{
    return b->parts / gy_buffer_turns(b);
}

static int64_t rows_of(const gy_buffer *b)
{
    return b->rows / gy_buffer_turns(b);
}

static uint32_t find_root(uint32_t *root, uint32_t b)
{
    while (root[b] != b) {
        root[b] = root[root[b]];
        b = root[b];
    }
    return b;
}

/* The lower index stands for the group. */
static void join(uint32_t *root, uint32_t a, uint32_t b)
{
    a = find_root(root, a);
    b = find_root(root, b);
    root[a > b ? a : b] = a > b ? b : a;
}

static void join_in_node(const gantry_graph *g, const gy_node *n, uint32_t *root)
{
    for (uint32_t i = 1; i < n->accesses; i++) {
        gy_access a = access_of(g, n, i);
        for (uint32_t k = 0; k < i && names_part(g, &a) && buffer_of(g, &a)->split_auto; k++) {
            gy_access b = access_of(g, n, k);
            if (names_part(g, &b) && buffer_of(g, &b)->split_auto &&
                parts_of(buffer_of(g, &b)) == parts_of(buffer_of(g, &a))) {
                join(root, a.buffer, b.buffer);
                break; /* those before are joined with each other already */
            }
        }
    }
}

/* `root` per buffer: the lowest of its group. */
static void join_all(const gantry_graph *g, uint32_t *root)
{
    for (uint32_t b = 0; b < g->buffers.count; b++)
        root[b] = b;
    for (size_t n = 0; n < g->nodes.count; n++)
        join_in_node(g, &g->nodes.at[n], root);
    for (size_t l = 0; l < gy_loop_count(g); l++)
        for (size_t i = 0; i < gy_loop_at(g, l)->carry.count; i++) {
            const gy_carry *c = &gy_loop_at(g, l)->carry.at[i];
            if (g->buffers.at[c->prev].split_auto && g->buffers.at[c->next].split_auto)
                join(root, c->prev, c->next);
        }
}

/* The largest unit that all its buffers are whole numbers of, and of their grains; if that is too coarse, the most rows
 * that one has, or equal parts where rows stay together. */
static void choose_unit(gy_splits *s, uint32_t group)
{
    gy_split_group *x = &s->group[group];
    int64_t most = 0;
    bool has_grain = false;
    for (uint32_t b = 0; b < s->graph->buffers.count; b++) {
        if (s->group_of[b] != group)
            continue;
        const gy_buffer *of = &s->graph->buffers.at[b];
        int64_t rows = rows_of(of), grain = of->grain ? of->grain : 1;
        x->unit = gy_common_divisor(x->unit, rows / grain);
        most = rows > most ? rows : most;
        has_grain = has_grain || grain > 1;
        x->fixed = x->fixed || rows < x->parts || rows % grain;
    }
    if (x->unit < x->parts && has_grain)
        x->fixed = true;
    if (x->unit < x->parts)
        x->unit = most;
}

static bool make_group(gy_splits *s, gy_split_group *x, int64_t parts)
{
    *x = (gy_split_group){ .parts = parts };
    size_t count = (size_t)parts;
    x->device = gy_arena_calloc(&s->arena, count, sizeof *x->device);
    x->count = gy_arena_calloc(&s->arena, s->workers, sizeof *x->count);
    x->time = gy_arena_calloc(&s->arena, count * s->workers, sizeof *x->time);
    x->bound = gy_arena_calloc(&s->arena, count + 1, sizeof *x->bound);
    x->best = gy_arena_calloc(&s->arena, count + 1, sizeof *x->best);
    return x->device && x->count && x->time && x->bound && x->best;
}

static bool make_groups(gy_splits *s, uint32_t *root)
{
    const gantry_graph *g = s->graph;
    for (uint32_t b = 0; b < g->buffers.count; b++) {
        const gy_buffer *buffer = &g->buffers.at[b];
        uint32_t first = find_root(root, b);
        s->group_of[b] = GY_NONE;
        if (!buffer->split_auto)
            continue;
        if (first == b) {
            if (!make_group(s, &s->group[s->groups], parts_of(buffer)))
                return false;
            s->group_of[b] = s->groups++;
        } else {
            s->group_of[b] = s->group_of[first];
        }
    }
    for (uint32_t i = 0; i < s->groups; i++)
        choose_unit(s, i);
    return true;
}

/* A split that the graph fixes, and an automatic one with as many parts and rows: indexed together, cut alike. */
static void fix_groups(gy_splits *s, const gy_node *n)
{
    const gantry_graph *g = s->graph;
    for (uint32_t i = 0; i < n->accesses; i++) {
        gy_access a = access_of(g, n, i);
        for (uint32_t k = 0; k < n->accesses && names_part(g, &a) && buffer_of(g, &a)->split_auto; k++) {
            gy_access b = access_of(g, n, k);
            if (names_part(g, &b) && !buffer_of(g, &b)->split_auto &&
                parts_of(buffer_of(g, &b)) == parts_of(buffer_of(g, &a)) &&
                rows_of(buffer_of(g, &b)) == rows_of(buffer_of(g, &a)))
                s->group[s->group_of[a.buffer]].fixed = true;
        }
    }
}

/* A node works on the one part that it changes; if it changes none, on the first that it reads. */
static void find_owner(gy_splits *s, uint32_t node)
{
    const gy_node *n = &s->graph->nodes.at[node];
    bool writes = false;
    s->owner[node] = GY_NONE;
    for (uint32_t i = 0; i < n->accesses && !writes; i++) {
        gy_access a = access_of(s->graph, n, i);
        if (!names_part(s->graph, &a) || s->group_of[a.buffer] == GY_NONE || a.part_last != a.part + 1)
            continue;
        writes = a.mode != GANTRY_READ;
        if (writes || s->owner[node] == GY_NONE) {
            s->owner[node] = s->group_of[a.buffer];
            s->part[node] = (uint32_t)(a.part % parts_of(buffer_of(s->graph, &a)));
        }
    }
}

gantry_status gy_splits_make(gy_splits *s, gantry_graph *graph, const gantry_machine *machine,
                             const gy_options *options, gantry_error *err)
{
    size_t buffers = graph->buffers.count, nodes = graph->nodes.count;
    *s = (gy_splits){ .graph = graph, .machine = machine, .options = options, .workers = gy_machine_workers(machine) };
    uint32_t *root = gy_arena_calloc(&s->arena, buffers + 1, sizeof *root);
    s->group_of = gy_arena_calloc(&s->arena, buffers + 1, sizeof *s->group_of);
    s->group = gy_arena_calloc(&s->arena, buffers + 1, sizeof *s->group);
    s->owner = gy_arena_calloc(&s->arena, nodes + 1, sizeof *s->owner);
    s->part = gy_arena_calloc(&s->arena, nodes + 1, sizeof *s->part);
    if (!root || !s->group_of || !s->group || !s->owner || !s->part)
        return gy_fail_nomem(err);
    join_all(graph, root);
    if (!make_groups(s, root))
        return gy_fail_nomem(err);
    for (uint32_t n = 0; n < nodes; n++) {
        fix_groups(s, &graph->nodes.at[n]);
        find_owner(s, n);
    }
    return GANTRY_OK;
}

void gy_splits_free(gy_splits *s)
{
    gy_arena_free(&s->arena);
}
