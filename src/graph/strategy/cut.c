/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of several pieces become one node a piece, in the place of the one, and those in slices one node a slice of
 * each of these. Buffers whose rows go with the batch are split accordingly, so that rows are called by parts; buffers
 * in slices become tiles, or, along axis 0, have as many more parts. */
#include "base/error.h"
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"
#include "graph/strategy/slices.h"

#include <string.h>

/* How a node is cut: into `count` pieces, each so far on in what says where its rows begin; and what its slices say. */
typedef struct cut_node {
    uint32_t count;
    gy_cut_rule rule;
    int64_t step;
    uint32_t numbers;
    gy_slice_number number[GY_SLICE_NUMBERS];
} cut_node;

typedef struct cutter {
    gy_spreading *s;
    gantry_graph *g;
    gy_nodes nodes;
    GY_VEC(gy_piece_range) of;
    GY_VEC(gy_origin_of_node) from;
    uint32_t *number;  /* by old node, and one more: the new one, the first of several */
    uint32_t *factor;  /* by buffer: how many parts each of its parts becomes; 1: as it is */
    cut_node *node;    /* by old node */
    gy_cut_role *role; /* by access */
    int8_t *axis;      /* by access of the node at hand: of slices */
} cutter;

/* ---- rules, while accesses are those of whole buffers ---- */

/* How much of the node's first number one of `count` pieces takes. */
static int64_t step_of(const cutter *c, const gy_node *n, gy_cut_first first, uint32_t count)
{
    const gantry_kernel *k = c->g->kernels.at[n->kernel].manifest;
    for (uint32_t i = 0; i < n->accesses; i++) {
        const gy_access *x = &c->g->access.at[n->access + i];
        if (strcmp(k->arg[x->arg].name, "x") != 0)
            continue;
        gy_maths_shape shape = gy_access_shape(c->g, x);
        int64_t elements = gy_maths_shape_elements(&shape);
        int64_t last = shape.extent[shape.rank - 1];
        int64_t all = first == GY_FIRST_ROWS       ? x->last - x->first
                      : first == GY_FIRST_ELEMENTS ? elements
                                                   : elements / (last ? last : 1);
        return all / count;
    }
    return 0;
}

static void find_numbers(const cutter *c, uint32_t node, cut_node *made)
{
    const gy_node *n = &c->g->nodes.at[node];
    for (uint32_t i = 0; i < n->accesses; i++)
        c->axis[i] = c->s->slice[c->g->access.at[n->access + i].buffer];
    made->numbers = gy_slice_numbers(c->g, node, c->axis, c->s->strategy.tp, made->number);
}

static gantry_status find_rules(cutter *c)
{
    for (uint32_t i = 0; i < c->g->nodes.count; i++) {
        const gy_node *n = &c->g->nodes.at[i];
        cut_node *made = &c->node[i];
        if (c->s->is_sliced[i])
            find_numbers(c, i, made);
        made->count = gy_spread_count(c->s, i);
        if (made->count < 2 && !c->s->is_sliced[i])
            continue;
        made->count = made->count ? made->count : 1;
        GY_TRY(gy_spread_rule(c->s, i, &c->role[n->access], &made->rule));
        if (made->count < 2)
            made->rule = (gy_cut_rule){ .role = made->rule.role };
        else if (made->rule.first != GY_FIRST_NONE)
            made->step = step_of(c, n, made->rule.first, made->count);
    }
    return GANTRY_OK;
}

/* ---- how buffers are split ---- */

/* A buffer gets parts where each access that is cut is one part of it, or all of it, and the number of pieces of each
 * divides that of others, as where rows of a slice are those of several pieces. */
static void find_factor(cutter *c, const gy_access *x, uint32_t count)
{
    const gy_buffer *b = &c->g->buffers.at[x->buffer];
    uint32_t *factor = &c->factor[x->buffer], all = *factor > count ? *factor : count;
    int64_t parts = b->parts ? b->parts : 1;
    bool is_part = b->parts ? x->part >= 0 && x->part_last == x->part + 1 : x->first == 0 && x->last == b->rows;
    bool fits = is_part && b->rows % (parts * all) == 0 && parts * all <= INT32_MAX;
    *factor = fits && *factor != 1 && all % count == 0 && (!*factor || all % *factor == 0) ? all : 1;
}

static void find_factors(cutter *c)
{
    for (uint32_t i = 0; i < c->g->nodes.count; i++) {
        const gy_node *n = &c->g->nodes.at[i];
        for (uint32_t k = 0; k < gy_node_regions(n) && c->node[i].count > 1; k++)
            if (c->node[i].rule.role[k] == GY_CUT_ROWS)
                find_factor(c, &c->g->access.at[n->access + k], c->node[i].count);
    }
}

static gantry_status cut_into_tiles(cutter *c, gy_buffer *b, int8_t axis, int64_t parts)
{
    for (int k = 0; k < GANTRY_TILE_AXES; k++)
        b->tiles[k] = k == 0 ? parts : k == axis ? c->s->strategy.tp : 1;
    b->parts = 0;
    b->part_first = NULL;
    b->rows = parts * c->s->strategy.tp;
    b->row_bytes = 0;
    return gy_build_measure_tiles(c->g, b) ? GANTRY_OK : gy_fail_nomem(c->s->err);
}

static gantry_status split(cutter *c, uint32_t buffer)
{
    gy_buffer *b = &c->g->buffers.at[buffer];
    int8_t axis = c->s->slice[buffer];
    int64_t parts = (b->parts ? b->parts : 1) * (c->factor[buffer] ? c->factor[buffer] : 1);
    int64_t all = axis == GY_SLICE_WHOLE ? parts : parts * c->s->strategy.tp;
    if (all > gy_graph_limit(c->g))
        return gy_graph_fail(c->g, b->origin, c->s->err, GANTRY_E_GRAPH,
                             "buffer \"%.80s\" would be cut into %lld parts; 1 to %lld are allowed; give smaller "
                             "numbers of the strategy, or raise the limit (--limits, gantry_graph_limit)",
                             b->name, (long long)all, (long long)gy_graph_limit(c->g));
    if (axis > 0)
        return cut_into_tiles(c, b, axis, parts);
    parts = all;
    int64_t *first = gy_arena_calloc(&c->g->arena, (size_t)parts + 1, sizeof *first);
    if (!first)
        return gy_fail_nomem(c->s->err);
    for (int64_t i = 0; i <= parts; i++)
        first[i] = gy_part_bound(b->rows, parts, i);
    b->in_pieces = axis == GY_SLICE_WHOLE;
    b->parts = parts;
    b->part_first = first;
    return GANTRY_OK;
}

/* ---- nodes ---- */

/* "fc[2]" of "fc", "fc[1,2]" of "fc[1]", and as many '_' behind it as make it new. */
static const char *piece_id(cutter *c, const char *id, uint32_t piece)
{
    gy_arena *arena = &c->g->arena;
    size_t length = strlen(id);
    bool has_index = length && id[length - 1] == ']';
    const char *made = has_index ? gy_arena_printf(arena, "%.*s,%u]", (int)(length - 1), id, piece)
                                 : gy_arena_printf(arena, "%s[%u]", id, piece);
    while (made && gy_names_find(&c->g->node_names, made) != GY_NO_NAME)
        made = gy_arena_printf(arena, "%s_", made);
    return made;
}

/* The node that is made: piece i of `count`, slice t; GY_NONE: it is in no slices. */
typedef struct place_of_piece {
    uint32_t i, count, slice;
} place_of_piece;

/* Rows of piece i of an access, by parts where these are cut so. Its parts are as before the buffer was split. */
static gy_access rows_of_piece(const cutter *c, gy_access x, const place_of_piece *p)
{
    const gy_buffer *b = &c->g->buffers.at[x.buffer];
    uint32_t factor = c->factor[x.buffer], step = factor / p->count;
    int64_t rows = (x.last - x.first) / p->count;
    x.first += rows * p->i;
    x.last = x.first + rows;
    int64_t part = (int64_t)(x.part < 0 ? 0 : x.part) * factor + (int64_t)step * p->i;
    bool is_part = factor > 1 && b->part_first[part] == x.first && b->part_first[part + step] == x.last;
    x.part = is_part ? (int32_t)part : -1;
    x.part_last = is_part ? (int32_t)(part + step) : -1;
    return x;
}

/* Numbers of which there is one more than rows: those of piece i, and the first of the next. */
static gy_access bounds_of_piece(gy_access x, const place_of_piece *p)
{
    int64_t rows = (x.last - x.first - 1) / p->count;
    x.first += rows * p->i;
    x.last = x.first + rows + 1;
    x.part = x.part_last = -1;
    return x;
}

/* The slice of an access: a tile, or a part. */
static gy_access slice_of_piece(const cutter *c, gy_access x, gy_cut_role role, const place_of_piece *p)
{
    const gy_buffer *b = &c->g->buffers.at[x.buffer];
    uint32_t factor = c->factor[x.buffer] ? c->factor[x.buffer] : 1;
    int64_t part = (int64_t)(x.part < 0 ? 0 : x.part) * factor + (role == GY_CUT_ROWS ? p->i : 0);
    x.part = (int32_t)(part * c->s->strategy.tp + p->slice);
    x.part_last = x.part + 1;
    x.first = b->tiles[0] ? x.part : b->part_first[x.part];
    x.last = b->tiles[0] ? x.part_last : b->part_first[x.part_last];
    return x;
}

static gy_access access_piece(const cutter *c, const gy_node *n, gy_access x, const gy_cut_rule *rule, uint32_t k,
                              const place_of_piece *p)
{
    gy_cut_role role = p->count > 1 ? rule->role[k] : GY_CUT_WHOLE;
    bool is_in_slices = p->slice != GY_NONE && c->s->slice[x.buffer] != GY_SLICE_WHOLE;
    int32_t factor = (int32_t)c->factor[x.buffer];
    if (role == GY_CUT_SUMMED && x.mode == GANTRY_WRITE)
        x.mode = (uint8_t)rule->mode;
    if (p->slice != GY_NONE && !is_in_slices && x.mode == GANTRY_WRITE)
        x.mode = (uint8_t)gy_slice_mode(c->g, n, &x);
    if (is_in_slices)
        return slice_of_piece(c, x, role, p);
    if (role == GY_CUT_ROWS)
        return rows_of_piece(c, x, p);
    if (role == GY_CUT_BOUNDS)
        return bounds_of_piece(x, p);
    x.part *= x.part >= 0 && factor ? factor : 1;
    x.part_last *= x.part_last >= 0 && factor ? factor : 1;
    return x;
}

/* Each access to a buffer in slices is one tile, or one part. */
static gantry_status check_slices(const cutter *c, uint32_t node)
{
    const gy_node *n = &c->g->nodes.at[node];
    const cut_node *how = &c->node[node];
    for (uint32_t i = 0; i < n->accesses && c->s->is_sliced[node]; i++) {
        uint32_t buffer = c->g->access.at[n->access + i].buffer;
        uint32_t factor = c->factor[buffer] ? c->factor[buffer] : 1;
        uint32_t own = how->count > 1 && how->rule.role[i] == GY_CUT_ROWS ? how->count : 1;
        if (c->s->slice[buffer] != GY_SLICE_WHOLE && own != factor)
            return gy_node_fail(
                c->g, c->s->err, node,
                "takes %u parts of the batch of \"%.60s\" at a time, each of which is to be in %d slices "
                "(tp=%d) of its own; write the node for each part of the batch, with \"for\", or give "
                "dp in place of tp",
                factor / own, c->g->buffers.at[buffer].name, (int)c->s->strategy.tp, (int)c->s->strategy.tp);
    }
    return GANTRY_OK;
}

/* More of a whole number of the node, which is the last; one that it does not say is 0. */
static bool add_to_number(cutter *c, gy_node *n, const char *name, int64_t more)
{
    gantry_graph *g = c->g;
    const gantry_kernel *k = g->kernels.at[n->kernel].manifest;
    gy_scalar made = { .number = gy_constant_whole(more) };
    while (more && strcmp(k->arg[made.arg].name, name) != 0)
        made.arg++;
    for (uint32_t i = n->scalar; more && i < n->scalar + n->scalars; i++) {
        gy_scalar *x = &g->scalar.at[i];
        if (x->arg != made.arg)
            continue;
        x->number = gy_constant_whole((int64_t)x->number.real + more);
        return true;
    }
    n->scalars += more != 0;
    return !more || gy_vec_push(&g->scalar, made);
}

/* The number that says where the rows of a piece begin is further on, and a slice has its own. */
static bool copy_scalars(cutter *c, const gy_node *from, gy_node *to, const cut_node *how, const place_of_piece *p)
{
    gantry_graph *g = c->g;
    bool ok = true;
    to->scalar = (uint32_t)g->scalar.count;
    for (uint32_t i = 0; i < from->scalars && ok; i++) {
        gy_scalar x = g->scalar.at[from->scalar + i];
        ok = gy_vec_push(&g->scalar, x);
    }
    if (ok && how->rule.first != GY_FIRST_NONE)
        ok = add_to_number(c, to, "first", how->step * p->i);
    for (uint32_t i = 0; i < how->numbers && p->slice != GY_NONE && ok; i++)
        ok = add_to_number(c, to, how->number[i].name, how->number[i].all + how->number[i].each * p->slice);
    return ok;
}

static bool push(cutter *c, const gy_node *made, gy_piece_range of, uint32_t node, uint32_t slice)
{
    gy_origin_of_node from = { node, slice };
    return gy_vec_push(&c->nodes, *made) && gy_vec_push(&c->of, of) && gy_vec_push(&c->from, from);
}

/* Pieces of the batch in a row that one of the nodes has: those of a micro-batch, where it is in slices. */
static gy_piece_range pieces_at(const cutter *c, uint32_t node, const place_of_piece *p)
{
    gy_piece_range all = c->s->of[node];
    uint32_t step = (all.to - all.from) / p->count;
    return (gy_piece_range){ all.from + step * p->i, all.from + step * (p->i + 1) };
}

static gantry_status add_piece(cutter *c, uint32_t node, const gy_node *n, const place_of_piece *p)
{
    gantry_graph *g = c->g;
    const cut_node *how = &c->node[node];
    gy_node made = *n;
    gy_piece_range own = pieces_at(c, node, p);
    bool is_slice = p->slice != GY_NONE;
    uint32_t among = p->count * (is_slice ? (uint32_t)c->s->strategy.tp : 1);
    made.id = p->count > 1 ? piece_id(c, n->id, is_slice ? own.from / (uint32_t)c->s->strategy.tp : own.from) : n->id;
    made.id = made.id && is_slice ? piece_id(c, made.id, p->slice) : made.id;
    made.flops /= among;
    made.bytes /= among;
    made.access = (uint32_t)g->access.count;
    bool ok = made.id && gy_build_copy_extra(g, &made, among) && copy_scalars(c, n, &made, how, p);
    for (uint32_t k = 0; k < n->accesses && ok; k++)
        ok = gy_vec_push(&g->access, access_piece(c, n, g->access.at[n->access + k], &how->rule, k, p));
    return ok && push(c, &made, own, node, p->slice) ? GANTRY_OK : gy_fail_nomem(c->s->err);
}

static gantry_status add(cutter *c, uint32_t node)
{
    gantry_graph *g = c->g;
    gy_node n = g->nodes.at[node];
    const cut_node *how = &c->node[node];
    uint32_t slices = c->s->is_sliced[node] ? (uint32_t)c->s->strategy.tp : 1;
    c->number[node] = (uint32_t)c->nodes.count;
    if (how->count < 2 && slices == 1)
        return push(c, &n, c->s->of[node], node, GY_NONE) ? GANTRY_OK : gy_fail_nomem(c->s->err);
    GY_TRY(check_slices(c, node));
    if (how->rule.mean)
        n.kernel = gy_build_formulas(g, how->rule.mean);
    if (n.kernel == GY_NONE && how->rule.mean)
        return gy_fail_nomem(c->s->err);
    for (uint32_t i = 0; i < how->count * slices; i++) {
        place_of_piece p = { i / slices, how->count, slices > 1 ? i % slices : GY_NONE };
        GY_TRY(add_piece(c, node, &n, &p));
    }
    return GANTRY_OK;
}

/* Accesses of nodes that were not cut name the parts that theirs became. */
static void follow_parts(const cutter *c)
{
    for (uint32_t i = 0; i < c->g->nodes.count; i++) {
        const gy_node *n = &c->g->nodes.at[i];
        bool is_kept = c->node[i].count < 2 && !c->s->is_sliced[i];
        for (uint32_t k = n->access; k < n->access + n->accesses && is_kept; k++) {
            gy_access *x = &c->g->access.at[k];
            int32_t factor = (int32_t)c->factor[x->buffer];
            x->part *= x->part >= 0 && factor ? factor : 1;
            x->part_last *= x->part_last >= 0 && factor ? factor : 1;
        }
    }
}

static gantry_status cut(cutter *c)
{
    gantry_graph *g = c->g;
    uint32_t count = (uint32_t)g->nodes.count;
    GY_TRY(find_rules(c));
    find_factors(c);
    for (uint32_t i = 0; i < g->buffers.count; i++)
        if (c->factor[i] > 1 || (i < c->s->buffers && c->s->slice[i] != GY_SLICE_WHOLE))
            GY_TRY(split(c, i));
    follow_parts(c);
    for (uint32_t i = 0; i < count; i++)
        GY_TRY(add(c, i));
    c->number[count] = (uint32_t)c->nodes.count;
    gy_free(c->s->of);
    c->s->of = c->of.at;
    memset(&c->of, 0, sizeof c->of);
    c->s->from = c->from.at;
    memset(&c->from, 0, sizeof c->from);
    return gy_build_replace_nodes(g, &c->nodes, c->number) ? GANTRY_OK : gy_fail_nomem(c->s->err);
}

gantry_status gy_spread_cut(gy_spreading *s)
{
    cutter c = { .s = s, .g = s->graph };
    c.number = gy_calloc(s->graph->nodes.count + 1, sizeof *c.number);
    c.factor = gy_calloc(s->graph->buffers.count + 1, sizeof *c.factor);
    c.node = gy_calloc(s->graph->nodes.count + 1, sizeof *c.node);
    c.role = gy_calloc(s->graph->access.count + 1, sizeof *c.role);
    c.axis = gy_calloc(s->graph->access.count + 1, sizeof *c.axis);
    gantry_status status = c.number && c.factor && c.node && c.role && c.axis ? cut(&c) : gy_fail_nomem(s->err);
    gy_vec_free(&c.nodes);
    gy_vec_free(&c.of);
    gy_vec_free(&c.from);
    gy_free(c.number);
    gy_free(c.factor);
    gy_free(c.node);
    gy_free(c.role);
    gy_free(c.axis);
    return status;
}
