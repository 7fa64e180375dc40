/* SPDX-License-Identifier: Apache-2.0 */
/* Adjoints as buffers: who gives to which rows, and who comes first. */
#include "base/error.h"
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"

#include <stdlib.h>
#include <string.h>

/* ---- regions ---- */

gantry_region gy_adjoint_part(const gantry_graph *graph, gantry_buffer buffer, int64_t i)
{
    int64_t first[GANTRY_TILE_AXES], last[GANTRY_TILE_AXES];
    if (buffer.id >= graph->buffers.count) /* the graph has a mistake */
        return gantry_all(buffer);
    const gy_buffer *b = &graph->buffers.at[buffer.id];
    if (!b->tiles[0])
        return b->parts ? gantry_part(buffer, i) : gantry_all(buffer);
    gy_tile_index(b, i, first);
    for (int k = 0; k < GANTRY_TILE_AXES; k++)
        last[k] = first[k] + 1;
    return gantry_tiles_by_axis(buffer, b->rank, first, last);
}

gantry_region gy_adjoint_rows(const gy_adjoint *a, const gy_access *access, gantry_buffer buffer)
{
    if (buffer.id < a->graph->buffers.count && a->graph->buffers.at[buffer.id].tiles[0])
        return gy_adjoint_part(a->graph, buffer, access->first);
    return access->part >= 0 ? gantry_parts(buffer, access->part, access->part_last)
                             : gantry_rows(buffer, access->first, access->last);
}

static gantry_region rows_in(const gy_adjoint *a, const gy_access *access, gantry_buffer buffer)
{
    bool is_all = access->part < 0 && access->first == 0 && access->last == a->graph->buffers.at[access->buffer].rows;
    return is_all ? gantry_all(buffer) : gy_adjoint_rows(a, access, buffer);
}

gantry_region gy_adjoint_primal_rows(const gy_adjoint *a, const gy_access *access)
{
    return rows_in(a, access, (gantry_buffer){ access->buffer, a->graph->number });
}

gy_maths_shape gy_access_shape(const gantry_graph *graph, const gy_access *access)
{
    gantry_arg region;
    gy_arg_describe(&region, graph, access);
    return gy_maths_shape_of(&region);
}

/* Tiles of an array of that shape: it has the axes of `like`, and others of extent 1. */
static void cut_into_tiles(gantry_graph *g, uint32_t like, gantry_buffer made, int rank, const int64_t *shape)
{
    int64_t tiles[GANTRY_TILE_AXES] = { 0 };
    const gy_buffer *b = &g->buffers.at[like];
    for (int k = 0, axis = 0; k < rank && k < GANTRY_TILE_AXES; k++)
        tiles[k] = axis < b->rank && shape[k] == b->shape[axis] ? b->tiles[axis++] : 1;
    gantry_buffer_tiles_by_axis(g, made, rank, tiles);
}

gantry_buffer gy_adjoint_named(gy_adjoint *a, uint32_t like, const char *suffix, int rank, const int64_t *shape,
                               gantry_dtype dtype)
{
    gantry_graph *g = a->graph;
    const gy_buffer *b = &g->buffers.at[like];
    int64_t parts = b->parts;
    bool is_auto = b->split_auto, is_tiled = b->tiles[0] != 0;
    gantry_buffer made = gy_build_beside(g, like, suffix, dtype, rank, shape);
    if (is_tiled)
        cut_into_tiles(g, like, made, rank, shape);
    else if (parts && is_auto)
        gantry_buffer_split_auto(g, made, parts);
    else if (parts)
        gantry_buffer_split(g, made, parts);
    if (made.id < g->buffers.count) {
        g->buffers.at[made.id].in_pieces = g->buffers.at[like].in_pieces;
        g->buffers.at[made.id].turns = g->buffers.at[like].turns;
        g->buffers.at[made.id].piece = g->buffers.at[like].piece;
    }
    return made;
}

gantry_buffer gy_adjoint_number(gy_adjoint *a, const char *name)
{
    static const int64_t one = 1;
    const char *unused = name;
    while (unused && gy_names_find(&a->graph->buffer_names, unused) != GY_NO_NAME)
        unused = gy_arena_printf(&a->scratch, "%s_", unused);
    if (!unused)
        gy_build_nomem(a->graph);
    return gantry_graph_buffer(a->graph, unused ? unused : name, GANTRY_F64, 1, &one);
}

gantry_buffer gy_adjoint_clone(gy_adjoint *a, uint32_t buffer, const char *suffix)
{
    const gy_buffer *b = &a->graph->buffers.at[buffer];
    return gy_adjoint_named(a, buffer, suffix, b->rank, b->shape, b->dtype);
}

const char *gy_adjoint_id(gy_adjoint *a, const gy_primal *p, const char *arg)
{
    const char *id = gy_arena_printf(&a->scratch, "%s.grad.%s", p->id, arg);
    if (!id)
        gy_build_nomem(a->graph);
    return id ? id : "";
}

/* ---- finding inflows ---- */

static int compare_inflows(const void *one, const void *other)
{
    const gy_inflow *a = one, *b = other;
    if (a->buffer != b->buffer)
        return a->buffer < b->buffer ? -1 : 1;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return (a->last > b->last) - (a->last < b->last);
}

static gantry_status note_readers(gy_adjoint *a, uint32_t node)
{
    gy_primal p;
    GY_TRY(gy_adjoint_look(a, node, &p));
    const gantry_graph *g = a->graph;
    const gy_node *n = &g->nodes.at[node];
    for (uint32_t i = 0; i < gy_node_regions(n); i++) {
        const gy_access *x = &g->access.at[n->access + i];
        gy_access to = p.rule && p.rule->to && gy_adjoint_gives(a, &p, x) ? gy_stencil_inflow(a, &p) : *x;
        gy_inflow made = { .buffer = to.buffer, .first = to.first, .last = to.last, .readers = 1 };
        bool gives = x->mode == GANTRY_READ && to.first < to.last && gy_adjoint_is_active(a, to.buffer) &&
                     gy_adjoint_gives(a, &p, x);
        if (gives && !gy_vec_push(&a->inflow, made))
            return gy_fail_nomem(a->err);
        a->given[to.buffer] = a->given[to.buffer] || gives;
    }
    return GANTRY_OK;
}

/* Equal entries become one, of all their readers. */
static void join_equal(gy_adjoint *a)
{
    size_t kept = 0;
    for (size_t i = 0; i < a->inflow.count; i++)
        if (kept && compare_inflows(&a->inflow.at[kept - 1], &a->inflow.at[i]) == 0)
            a->inflow.at[kept - 1].readers++;
        else
            a->inflow.at[kept++] = a->inflow.at[i];
    a->inflow.count = kept;
}

/* Do the inflows of a buffer lie one behind the other, and give each row once? */
static bool is_cut(const gy_adjoint *a, uint32_t buffer)
{
    const gy_adjoint_state *c = &a->of[buffer];
    int64_t end = 0;
    for (uint32_t i = c->inflow; i < c->inflow + c->inflows; i++) {
        if (a->inflow.at[i].first != end)
            return false;
        end = a->inflow.at[i].last;
    }
    return end == a->graph->buffers.at[buffer].rows;
}

gantry_status gy_adjoint_find_inflows(gy_adjoint *a)
{
    for (uint32_t i = a->nodes; i-- > 0;)
        if (gy_adjoint_is_on_path(a, i))
            GY_TRY(note_readers(a, i));
    if (a->inflow.count)
        qsort(a->inflow.at, a->inflow.count, sizeof *a->inflow.at, compare_inflows);
    join_equal(a);
    for (uint32_t b = 0; b < a->buffers; b++)
        a->of[b].buffer.id = GANTRY_NONE;
    for (size_t i = a->inflow.count; i-- > 0;) {
        gy_adjoint_state *c = &a->of[a->inflow.at[i].buffer];
        c->inflow = (uint32_t)i;
        c->inflows++;
    }
    for (uint32_t b = 0; b < a->buffers; b++)
        a->of[b].is_filled = !is_cut(a, b);
    return GANTRY_OK;
}

/* ---- making adjoints ---- */

/* The derivative of the loss by itself, times the scale of the loss. */
static void make_first(gy_adjoint *a, gantry_buffer made)
{
    static const double first = 65536; /* as PyTorch's GradScaler begins */
    if (gy_train_scales_itself(a->options)) {
        a->scale = gy_adjoint_number(a, "train.scale");
        gantry_buffer_set_class(a->graph, a->scale, GANTRY_STATE);
        gantry_buffer_init_value(a->graph, a->scale, first);
        gantry_buffer_output(a->graph, a->scale); /* so that it can be watched */
        gantry_node node = gantry_graph_map(a->graph, "train.seed", "seed = scale");
        gantry_node_arg(a->graph, node, "seed", gantry_all(made));
        gantry_node_arg(a->graph, node, "scale", gantry_all(a->scale));
        return;
    }
    gantry_buffer_set_class(a->graph, made, GANTRY_CONST);
    gantry_buffer_init_value(a->graph, made, a->options->loss_scale);
}

gantry_buffer gy_adjoint_buffer(gy_adjoint *a, uint32_t buffer)
{
    gy_adjoint_state *c = &a->of[buffer];
    if (c->buffer.id != GANTRY_NONE)
        return c->buffer;
    c->buffer = gy_adjoint_clone(a, buffer, "grad");
    if (buffer == a->loss) {
        make_first(a, c->buffer);
    } else if (c->is_filled) {
        const char *id = gy_arena_printf(&a->scratch, "%s.grad.zero", a->graph->buffers.at[buffer].name);
        if (!id)
            gy_build_nomem(a->graph);
        gantry_graph_fill(a->graph, id, gantry_all(c->buffer), 0);
    }
    return c->buffer;
}

gantry_region gy_adjoint_of(gy_adjoint *a, const gy_access *access)
{
    return rows_in(a, access, gy_adjoint_buffer(a, access->buffer));
}

static gy_inflow *inflow_of(gy_adjoint *a, const gy_access *access)
{
    gy_inflow key = { .buffer = access->buffer, .first = access->first, .last = access->last };
    return bsearch(&key, a->inflow.at, a->inflow.count, sizeof key, compare_inflows);
}

gy_destination gy_adjoint_target(gy_adjoint *a, const gy_access *access)
{
    gy_destination t = { .region = gy_adjoint_of(a, access) };
    gy_inflow *inflow = inflow_of(a, access);
    bool is_filled = a->of[access->buffer].is_filled;
    t.adds = is_filled || !inflow || inflow->done > 0;
    t.is_alone = !is_filled && inflow && inflow->readers == 1;
    if (inflow)
        inflow->done++;
    return t;
}

gantry_region gy_adjoint_written(gy_adjoint *a, const gy_access *access, gy_destination *target)
{
    gy_access copy = *access;
    *target = gy_adjoint_target(a, &copy);
    return target->adds ? rows_in(a, &copy, gy_adjoint_clone(a, copy.buffer, "inflow")) : target->region;
}

void gy_adjoint_add_rows(gy_adjoint *a, const gy_primal *p, const char *arg, gantry_region from,
                         const gy_destination *target)
{
    if (!target->adds)
        return;
    const char *id = gy_arena_printf(&a->scratch, "%s.grad.%s.add", p->id, arg);
    if (!id)
        gy_build_nomem(a->graph);
    gantry_node node = gantry_graph_map(a->graph, id, "to = to + from");
    gantry_node_arg(a->graph, node, "to", target->region);
    gantry_node_arg(a->graph, node, "from", from);
    gy_adjoint_place(a, node, p->node);
}
