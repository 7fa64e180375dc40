/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of several pieces become one node a piece, in the place of the one. Buffers whose rows go with the batch are
 * split accordingly, so that rows are called by parts. */
#include "base/error.h"
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"
#include "graph/strategy/strategy.h"

#include <string.h>

typedef struct cutter {
    gy_spreading *s;
    gantry_graph *g;
    GY_VEC(gy_node) nodes;
    GY_VEC(gy_piece_range) of;
    uint32_t *number;  /* by old node, and one more: the new one, the first of several */
    uint32_t *factor;  /* by buffer: how many parts each of its parts becomes; 1: as it is */
    gy_cut_role *role; /* of the node at hand */
} cutter;

/* ---- how buffers are split ---- */

/* A buffer gets parts where each access that is cut is one part of it, or all of it, and all are cut into as many. */
static void find_factor(cutter *c, const gy_access *x, uint32_t count)
{
    const gy_buffer *b = &c->g->buffers.at[x->buffer];
    uint32_t *factor = &c->factor[x->buffer];
    int64_t parts = b->parts ? b->parts : 1;
    bool is_part = b->parts ? x->part >= 0 && x->part_last == x->part + 1 : x->first == 0 && x->last == b->rows;
    bool fits = is_part && b->rows % (parts * count) == 0 && parts * count <= INT32_MAX;
    if (!fits || (*factor && *factor != count))
        *factor = 1;
    else
        *factor = count;
}

static gantry_status find_factors(cutter *c)
{
    for (uint32_t i = 0; i < c->g->nodes.count; i++) {
        gy_cut_rule rule;
        const gy_node *n = &c->g->nodes.at[i];
        uint32_t count = c->s->of[i].to - c->s->of[i].from;
        if (count < 2)
            continue;
        GY_TRY(gy_spread_rule(c->s, i, c->role, &rule));
        for (uint32_t k = 0; k < gy_node_regions(n); k++)
            if (c->role[k] == GY_CUT_ROWS)
                find_factor(c, &c->g->access.at[n->access + k], count);
    }
    return GANTRY_OK;
}

static gantry_status split(cutter *c, uint32_t buffer)
{
    gy_buffer *b = &c->g->buffers.at[buffer];
    int64_t parts = (b->parts ? b->parts : 1) * c->factor[buffer];
    int64_t *first = gy_arena_calloc(&c->g->arena, (size_t)parts + 1, sizeof *first);
    if (!first)
        return gy_fail_nomem(c->s->err);
    for (int64_t i = 0; i <= parts; i++)
        first[i] = gy_part_bound(b->rows, parts, i);
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

/* Attributes of its own, with one of `count` parts of the times that were given. */
static bool copy_extra(cutter *c, gy_node *n, uint32_t count)
{
    if (n->extra == GY_NONE)
        return true;
    gy_node_extra x = c->g->extra.at[n->extra];
    memset(&x.time, 0, sizeof x.time);
    memset(&x.rank_on, 0, sizeof x.rank_on);
    memset(&x.with, 0, sizeof x.with);
    memset(&x.apart, 0, sizeof x.apart);
    for (size_t i = 0; i < c->g->extra.at[n->extra].time.count; i++) {
        gy_node_time t = c->g->extra.at[n->extra].time.at[i];
        t.us /= count;
        if (!gy_vec_push(&x.time, t)) {
            gy_vec_free(&x.time);
            return false;
        }
    }
    n->extra = (uint32_t)c->g->extra.count;
    if (gy_vec_push(&c->g->extra, x))
        return true;
    gy_vec_free(&x.time);
    return false;
}

/* Piece i of `count` of an access. */
static gy_access access_piece(const cutter *c, gy_access x, gy_cut_role role, gantry_access mode, uint32_t i,
                              uint32_t count)
{
    const gy_buffer *b = &c->g->buffers.at[x.buffer];
    uint32_t factor = c->factor[x.buffer];
    int64_t rows = (x.last - x.first) / count;
    if (role == GY_CUT_SUMMED && x.mode == GANTRY_WRITE)
        x.mode = (uint8_t)mode;
    if (role != GY_CUT_ROWS)
        return x;
    x.first += rows * i;
    x.last = x.first + rows;
    int64_t part = x.part < 0 ? 0 : x.part; /* as it was before the buffer was split */
    bool is_part =
        factor > 1 && b->part_first[part * factor + i] == x.first && b->part_first[part * factor + i + 1] == x.last;
    x.part = is_part ? (int32_t)(part * factor + i) : -1;
    x.part_last = is_part ? x.part + 1 : -1;
    return x;
}

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

/* The number that says where the rows of a piece begin is further on. */
static bool copy_scalars(cutter *c, const gy_node *from, gy_node *to, gy_cut_first first, int64_t before)
{
    gantry_graph *g = c->g;
    bool has_first = first == GY_FIRST_NONE || before == 0;
    to->scalar = (uint32_t)g->scalar.count;
    for (uint32_t i = 0; i < from->scalars; i++) {
        gy_scalar x = g->scalar.at[from->scalar + i];
        bool is_first =
            first != GY_FIRST_NONE && strcmp(g->kernels.at[from->kernel].manifest->arg[x.arg].name, "first") == 0;
        if (is_first) {
            x.number = gy_constant_whole((int64_t)x.number.real + before);
            has_first = true;
        }
        if (!gy_vec_push(&g->scalar, x))
            return false;
    }
    to->scalars = (uint32_t)g->scalar.count - to->scalar;
    if (has_first)
        return true;
    const gantry_kernel *k = g->kernels.at[from->kernel].manifest;
    gy_scalar made = { .number = gy_constant_whole(before) };
    while (strcmp(k->arg[made.arg].name, "first") != 0)
        made.arg++;
    to->scalars++;
    return gy_vec_push(&g->scalar, made);
}

static gantry_status add_piece(cutter *c, const gy_node *n, const gy_cut_rule *rule, gy_piece_range all, uint32_t i,
                               int64_t step)
{
    gantry_graph *g = c->g;
    gy_node made = *n;
    uint32_t count = all.to - all.from;
    made.id = piece_id(c, n->id, all.from + i);
    made.flops /= count;
    made.bytes /= count;
    made.access = (uint32_t)g->access.count;
    bool ok = made.id && copy_extra(c, &made, count) && copy_scalars(c, n, &made, rule->first, step * i);
    for (uint32_t k = 0; k < n->accesses && ok; k++)
        ok = gy_vec_push(&g->access, access_piece(c, g->access.at[n->access + k], rule->role[k], rule->mode, i, count));
    gy_piece_range own = { all.from + i, all.from + i + 1 };
    return ok && gy_vec_push(&c->nodes, made) && gy_vec_push(&c->of, own) ? GANTRY_OK : gy_fail_nomem(c->s->err);
}

static gantry_status add(cutter *c, uint32_t node)
{
    gantry_graph *g = c->g;
    gy_node n = g->nodes.at[node];
    gy_piece_range all = c->s->of[node];
    gy_cut_rule rule;
    c->number[node] = (uint32_t)c->nodes.count;
    if (all.to - all.from < 2) {
        bool ok = gy_vec_push(&c->nodes, n) && gy_vec_push(&c->of, all);
        return ok ? GANTRY_OK : gy_fail_nomem(c->s->err);
    }
    GY_TRY(gy_spread_rule(c->s, node, c->role, &rule));
    int64_t step = rule.first == GY_FIRST_NONE ? 0 : step_of(c, &n, rule.first, all.to - all.from);
    if (rule.mean)
        n.kernel = gy_build_formulas(g, rule.mean);
    if (n.kernel == GY_NONE && rule.mean)
        return gy_fail_nomem(c->s->err);
    for (uint32_t i = 0; i < all.to - all.from; i++)
        GY_TRY(add_piece(c, &n, &rule, all, i, step));
    return GANTRY_OK;
}

/* Accesses of nodes that were not cut name the parts that theirs became. */
static void follow_parts(const cutter *c)
{
    for (uint32_t i = 0; i < c->g->nodes.count; i++) {
        const gy_node *n = &c->g->nodes.at[i];
        for (uint32_t k = n->access; k < n->access + n->accesses && c->s->of[i].to - c->s->of[i].from < 2; k++) {
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
    GY_TRY(find_factors(c));
    for (uint32_t i = 0; i < g->buffers.count; i++)
        if (c->factor[i] > 1)
            GY_TRY(split(c, i));
    follow_parts(c);
    for (uint32_t i = 0; i < count; i++)
        GY_TRY(add(c, i));
    c->number[count] = (uint32_t)c->nodes.count;
    gy_build_renumber(g, c->number);
    gy_vec_free(&g->nodes);
    g->nodes.at = c->nodes.at;
    g->nodes.count = c->nodes.count;
    g->nodes.capacity = c->nodes.capacity;
    memset(&c->nodes, 0, sizeof c->nodes);
    gy_free(c->s->of);
    c->s->of = c->of.at;
    memset(&c->of, 0, sizeof c->of);
    gy_map_free(&g->build_->late_args);
    return gy_build_regroup(g) ? GANTRY_OK : gy_fail_nomem(c->s->err);
}

gantry_status gy_spread_cut(gy_spreading *s)
{
    uint32_t most = 0;
    for (size_t i = 0; i < s->graph->nodes.count; i++)
        most = s->graph->nodes.at[i].accesses > most ? s->graph->nodes.at[i].accesses : most;
    cutter c = { .s = s, .g = s->graph };
    c.number = gy_calloc(s->graph->nodes.count + 1, sizeof *c.number);
    c.factor = gy_calloc(s->graph->buffers.count + 1, sizeof *c.factor);
    c.role = gy_calloc(most + 1, sizeof *c.role);
    gantry_status status = c.number && c.factor && c.role ? cut(&c) : gy_fail_nomem(s->err);
    gy_vec_free(&c.nodes);
    gy_vec_free(&c.of);
    gy_free(c.number);
    gy_free(c.factor);
    gy_free(c.role);
    return status;
}
