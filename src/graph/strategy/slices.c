/* SPDX-License-Identifier: Apache-2.0 */
/* Which buffers are in slices, and along which axis: products with weights open, and what follows from them is found
 * node by node. Buffers that are cut together are a group; one that some node cannot take so is whole, all of it, and
 * the search begins anew. Shapes are looked at last: what could be cut and is not divisible is refused. */
#include "graph/strategy/slices.h"
#include "base/error.h"
#include "graph/adjoint/adjoint.h"

#include <stdio.h>
#include <string.h>

/* How a pair is closed: what it would cut may stay whole, or has to be divided. */
enum { LENIENTLY = 1, STRICTLY };

typedef struct slicer {
    gy_spreading *s;
    const gantry_graph *g;
    uint32_t *group; /* by buffer: another one of its group, itself at the end */
    uint8_t *never;  /* by buffer: it is whole */
    uint8_t *made;   /* by buffer: it follows from weights alone, as one that is converted does, or is a constant */
    int8_t *axis;    /* of the node at hand, by access */
    bool is_final;   /* no more buffers are cut */
    bool is_changed; /* `never` is */
    bool is_grown;   /* more buffers are cut than before */
} slicer;

static uint32_t group_of(const slicer *c, uint32_t buffer)
{
    while (c->group[buffer] != buffer)
        buffer = c->group[buffer] = c->group[c->group[buffer]];
    return buffer;
}

static const gy_access *access_at(const slicer *c, uint32_t node, uint32_t i)
{
    return &c->g->access.at[c->g->nodes.at[node].access + i];
}

/* Notes as what the accesses of a node are known. True: some of them are cut. */
static bool look(const slicer *c, uint32_t node)
{
    bool is_cut = false;
    for (uint32_t i = 0; i < c->g->nodes.at[node].accesses; i++) {
        c->axis[i] = c->s->slice[access_at(c, node, i)->buffer];
        is_cut = is_cut || c->axis[i] != GY_SLICE_WHOLE;
    }
    return is_cut;
}

/* As pieces.c finds it. */
static bool is_batch(const slicer *c, uint32_t buffer)
{
    const gantry_train_options *o = c->s->options;
    for (size_t i = 0; i < o->batch_count; i++)
        if (strcmp(o->batch[i], c->g->buffers.at[buffer].name) == 0)
            return true;
    return !o->batch_count && c->g->buffers.at[buffer].parts;
}

/* Constants that are not of the batch, and those of which all rows are written by nodes that read weights, and what
 * follows from weights, alone. */
static void find_made(slicer *c)
{
    for (uint32_t i = 0; i < c->s->buffers; i++)
        c->made[i] = c->g->buffers.at[i].cls == GANTRY_CONST && !c->s->writer[i] && !is_batch(c, i);
    for (uint32_t i = 0; i < c->g->nodes.count; i++) {
        bool reads = false, is_other = false;
        for (uint32_t k = 0; k < c->g->nodes.at[i].accesses; k++) {
            const gy_access *x = access_at(c, i, k);
            reads = reads || x->mode == GANTRY_READ;
            is_other = is_other || (x->mode == GANTRY_READ ? !c->s->is_weight[x->buffer] && !c->made[x->buffer]
                                                           : x->mode != GANTRY_WRITE);
        }
        for (uint32_t k = 0; k < c->g->nodes.at[i].accesses; k++) {
            const gy_access *x = access_at(c, i, k);
            bool is_first_writer = c->s->writer[x->buffer] == i + 1;
            if (x->mode != GANTRY_READ)
                c->made[x->buffer] = reads && !is_other && (is_first_writer || c->made[x->buffer]);
        }
    }
}

static bool is_weight(const slicer *c, uint32_t buffer)
{
    return c->s->is_weight[buffer] || c->made[buffer];
}

/* ---- what can be in slices ---- */

/* Nobody has written the rows before, so that summands are all there is in them. */
static bool is_first(const slicer *c, uint32_t node, const gy_access *x)
{
    uint32_t writer = c->s->writer[x->buffer];
    for (uint32_t i = writer - 1; writer && i < node; i++)
        for (uint32_t k = 0; k < c->g->nodes.at[i].accesses; k++) {
            const gy_access *y = access_at(c, i, k);
            if (y->buffer == x->buffer && y->mode != GANTRY_READ && y->first < x->last && x->first < y->last)
                return false;
        }
    return c->g->buffers.at[x->buffer].cls == GANTRY_TEMP;
}

static bool can_be_cut(const slicer *c, const gy_access *x, int8_t axis)
{
    const gy_buffer *b = &c->g->buffers.at[x->buffer];
    bool is_part = b->parts ? x->part >= 0 && x->part_last == x->part + 1 : x->first == 0 && x->last == b->rows;
    bool is_ours = is_weight(c, x->buffer) || b->cls == GANTRY_TEMP;
    return is_part && is_ours && !b->external && !b->tiles[0] && !b->split_auto && !c->never[x->buffer] &&
           (axis == 0 || b->rank <= GANTRY_TILE_AXES);
}

/* Can slices give summands, by the kernel, and is that all there will be? */
static bool can_be_summed(const slicer *c, uint32_t node, const gy_access *x)
{
    const gy_node *n = &c->g->nodes.at[node];
    const gantry_kernel_arg *a = &c->g->kernels.at[n->kernel].manifest->arg[x->arg];
    gantry_access mode = gy_slice_mode(c->g, n, x);
    bool is_taken = (a->accesses ? a->accesses : GANTRY_ACCESS_BIT(a->access)) & GANTRY_ACCESS_BIT(mode);
    return is_taken && (x->mode == mode || (x->mode == GANTRY_WRITE && is_first(c, node, x)));
}

/* Can the access be as the rule wants it, by what is known of its buffer? */
static bool can_take(const slicer *c, uint32_t node, const gy_access *x, int8_t wanted)
{
    int8_t known = c->s->slice[x->buffer];
    if (wanted >= 0 && known == GY_SLICE_WHOLE && x->mode == GANTRY_READ && !is_weight(c, x->buffer))
        return false;
    if (wanted >= 0 && c->is_final)
        return known == wanted;
    if (wanted >= 0)
        return (known == GY_SLICE_WHOLE || known == wanted) && can_be_cut(c, x, wanted);
    if (known != GY_SLICE_WHOLE)
        return false;
    return wanted == GY_SLICE_WHOLE || can_be_summed(c, node, x);
}

/* ---- groups ---- */

static void give_up_group(slicer *c, uint32_t group)
{
    for (uint32_t b = 0; b < c->s->buffers; b++)
        c->never[b] = c->never[b] || group_of(c, b) == group;
    c->is_changed = true;
}

/* The buffers of a node that are cut, or would be, are whole, and with them all of their groups. */
static void give_up(slicer *c, uint32_t node)
{
    const gy_node *n = &c->g->nodes.at[node];
    for (uint32_t i = 0; i < n->accesses; i++) {
        uint32_t buffer = access_at(c, node, i)->buffer;
        if (c->axis[i] >= 0 || c->s->slice[buffer] != GY_SLICE_WHOLE)
            give_up_group(c, group_of(c, buffer));
    }
}

static void take(slicer *c, uint32_t node)
{
    uint32_t group = GY_NONE;
    for (uint32_t i = 0; i < gy_node_regions(&c->g->nodes.at[node]); i++) {
        uint32_t buffer = access_at(c, node, i)->buffer;
        if (c->axis[i] < 0)
            continue;
        c->is_grown = c->is_grown || c->s->slice[buffer] != c->axis[i];
        c->s->slice[buffer] = c->axis[i];
        group = group == GY_NONE ? group_of(c, buffer) : group;
        c->group[group_of(c, buffer)] = group;
    }
}

/* A product of what is whole with a weight that may be cut. */
static bool opens(slicer *c, uint32_t node)
{
    uint32_t i = gy_slice_opens(c->g, node, c->axis);
    if (i == GY_NONE)
        return false;
    const gy_access *x = access_at(c, node, i);
    return is_weight(c, x->buffer) && x->mode == GANTRY_READ && can_be_cut(c, x, c->axis[i]);
}

static bool fits(slicer *c, uint32_t node)
{
    if (c->s->is_named[node] || !gy_slice_rule(c->g, node, c->axis))
        return false;
    for (uint32_t i = 0; i < c->g->nodes.at[node].accesses; i++)
        if (!can_take(c, node, access_at(c, node, i), c->axis[i]))
            return false;
    return true;
}

/* Forward, so that what a node reads is known before it; up to the first node that cannot. */
static void sweep(slicer *c)
{
    c->is_grown = false;
    for (uint32_t i = 0; i < c->g->nodes.count && !c->is_changed; i++) {
        if (!look(c, i) && !opens(c, i))
            continue;
        if (fits(c, i))
            take(c, i);
        else
            give_up(c, i);
    }
}

/* Again and again, since weights that others follow from are found behind the nodes that make these. */
static void search(slicer *c)
{
    for (uint32_t i = 0; i < c->s->buffers; i++) {
        c->s->slice[i] = GY_SLICE_WHOLE;
        c->group[i] = i;
    }
    c->is_final = false;
    do
        sweep(c);
    while (c->is_grown && !c->is_changed);
}

static bool divides(const slicer *c, uint32_t buffer)
{
    const gy_buffer *b = &c->g->buffers.at[buffer];
    int8_t axis = c->s->slice[buffer];
    int64_t parts = axis == 0 && b->parts ? b->parts : 1;
    return axis < 0 || (b->shape[axis] % (parts * c->s->strategy.tp) == 0 && b->shape[axis] != 0);
}

/* Pairs have a second product, or a reduction in its place; what that alone would cut, and cannot, is whole. */
static void give_up_open(slicer *c, const uint8_t *is_closed)
{
    for (uint32_t i = 0; i < c->s->buffers && !c->is_changed; i++) {
        uint8_t closed = is_closed[group_of(c, i)];
        if (c->s->slice[i] != GY_SLICE_WHOLE && (!closed || (closed == LENIENTLY && !divides(c, i))))
            give_up_group(c, group_of(c, i));
    }
}

/* Notes the groups that end in a node that gives summands. */
static void close_groups(const slicer *c, uint32_t node, uint8_t *is_closed)
{
    const gy_node *n = &c->g->nodes.at[node];
    uint8_t by = gy_slice_may_stay_whole(c->g, node) ? LENIENTLY : STRICTLY;
    bool sums = false;
    for (uint32_t k = 0; k < n->accesses; k++)
        sums = sums || c->axis[k] == GY_SLICE_SUMMED;
    for (uint32_t k = 0; k < n->accesses && sums; k++)
        if (c->axis[k] >= 0) {
            uint8_t *closed = &is_closed[group_of(c, access_at(c, node, k)->buffer)];
            *closed = by > *closed ? by : *closed;
        }
}

/* Weights may have become cut behind a node that reads them, and pairs may have no second. */
static void verify(slicer *c)
{
    uint8_t *is_closed = c->never + c->s->buffers; /* by group */
    c->is_final = true;
    for (uint32_t i = 0; i < c->s->buffers; i++)
        is_closed[i] = 0;
    for (uint32_t i = 0; i < c->g->nodes.count && !c->is_changed; i++) {
        if (!look(c, i))
            continue;
        if (!fits(c, i))
            give_up(c, i);
        close_groups(c, i, is_closed);
    }
    give_up_open(c, is_closed);
}

/* ---- shapes ---- */

static gantry_status fail_shape(const slicer *c, uint32_t buffer)
{
    const gy_buffer *b = &c->g->buffers.at[buffer];
    int axis = c->s->slice[buffer];
    char parts[40] = "";
    if (axis == 0 && b->parts)
        snprintf(parts, sizeof parts, " in %lld parts", (long long)b->parts);
    return gy_graph_fail(c->g, b->origin, c->s->err, GANTRY_E_GRAPH,
                         "tp=%d cuts buffer \"%.80s\" along axis %d, which is %lld long%s and cannot be cut into %d; "
                         "give a tp that divides heads and columns of weights, or other sizes",
                         (int)c->s->strategy.tp, b->name, axis, (long long)b->shape[axis], parts,
                         (int)c->s->strategy.tp);
}

static gantry_status check_shapes(const slicer *c)
{
    int32_t slices = c->s->strategy.tp;
    bool is_any = false;
    for (uint32_t i = 0; i < c->s->buffers; i++) {
        is_any = is_any || c->s->slice[i] >= 0;
        if (!divides(c, i))
            return fail_shape(c, i);
    }
    for (uint32_t i = 0; i < c->g->nodes.count; i++) {
        c->s->is_sliced[i] = look(c, i);
        if (c->s->is_sliced[i] && !gy_slice_divides(c->g, i, c->axis, slices))
            return gy_node_fail(c->g, c->s->err, i,
                                "is cut into %d slices (tp=%d), which would begin within a head (\"dim\"); give a tp "
                                "that divides the number of heads",
                                (int)slices, (int)slices);
    }
    if (is_any)
        return GANTRY_OK;
    return gy_graph_fail(c->g, c->g->train_origin, c->s->err, GANTRY_E_GRAPH,
                         "tp=%d finds no weights that it can cut: no product (gemm, conv2d) with a weight whose result "
                         "goes, by maps, heads and the like alone, to a product with another weight, and no table "
                         "(embedding) of which it divides the rows; use dp, or pp",
                         (int)slices);
}

static gantry_status slice(slicer *c)
{
    find_made(c);
    do {
        c->is_changed = false;
        search(c);
        if (!c->is_changed)
            verify(c);
    } while (c->is_changed);
    return check_shapes(c);
}

gantry_status gy_spread_slices(gy_spreading *s)
{
    uint32_t most = 0;
    if (s->strategy.tp == 1)
        return GANTRY_OK;
    for (size_t i = 0; i < s->graph->nodes.count; i++)
        most = s->graph->nodes.at[i].accesses > most ? s->graph->nodes.at[i].accesses : most;
    slicer c = { .s = s, .g = s->graph };
    c.group = gy_calloc(s->buffers + 1, sizeof *c.group);
    c.never = gy_calloc(2 * s->buffers + 1, 1);
    c.made = gy_calloc(s->buffers + 1, 1);
    c.axis = gy_calloc(most + 1, 1);
    gantry_status status = c.group && c.never && c.made && c.axis ? slice(&c) : gy_fail_nomem(s->err);
    gy_free(c.group);
    gy_free(c.never);
    gy_free(c.made);
    gy_free(c.axis);
    return status;
}
