/* SPDX-License-Identifier: Apache-2.0 */
/* The backward pass reads what copies of the model's nodes make again: which, where they come, and what they wait for.
 */
#include "graph/adjoint/recompute.h"
#include "base/error.h"
#include "graph/build/build_state.h"

#include <stdlib.h>
#include <string.h>

/* A copy that reads nothing that is made again: it waits. By its new number. */
typedef struct first_copy {
    uint32_t node, segment;
} first_copy;

/* The graph as it becomes. */
typedef struct remaking {
    gy_recompute c;
    gy_adjoint *a;
    gantry_graph *g;
    uint32_t *again;    /* by buffer of the model: that of the rows that are made again; GY_NONE: none yet */
    uint32_t *primal;   /* by buffer: the one whose adjoint it is; GY_NONE: it is none */
    uint32_t *number;   /* by node, and one more: the new one */
    uint8_t *is_needed; /* by node of the model: it is carried out again */
    uint32_t *latest;   /* by piece: the segment of which the backward pass has begun last; GY_NONE: none */
    uint32_t buffers;   /* before any came for rows that are made again */
    gy_nodes nodes;
    GY_VEC(first_copy) firsts;
} remaking;

/* ---- what the backward pass reads ---- */

static bool note_giver(gy_segment *s, uint32_t node)
{
    for (size_t i = 0; i < s->giver.count; i++)
        if (s->giver.at[i] == node)
            return true;
    return gy_vec_push(&s->giver, node);
}

/* The nodes that gave last to the adjoints of what the segment gives. A segment without any has no backward pass to
 * wait for: the loss follows from it at once, so nothing of it is made again. */
static bool wait_for_adjoints(remaking *r, gy_segment *s)
{
    bool ok = true;
    for (uint32_t i = s->first; i < s->last && ok; i++) {
        const gy_node *n = &r->g->nodes.at[r->c.order.at[i]];
        for (uint32_t k = n->access; k < n->access + n->accesses && ok; k++) {
            const gy_access *x = &r->g->access.at[k];
            const gy_rows_used *rows = x->mode == GANTRY_READ ? NULL : gy_recompute_rows(&r->c, x);
            if (rows && rows->segment == GY_NONE && rows->giver != GY_NONE)
                ok = note_giver(s, rows->giver);
        }
    }
    s->is_kept = !s->giver.count;
    return ok;
}

/* The first node that reads of the segment: its copies come before it, if there are any. */
static bool begin_segment(remaking *r, uint32_t segment, uint32_t node)
{
    gy_segment *s = &r->c.segment.at[segment];
    s->before = node;
    if (!s->is_kept && !wait_for_adjoints(r, s))
        return false;
    s->behind = r->latest[s->piece];
    r->latest[s->piece] = segment;
    return true;
}

static bool look_at_read(remaking *r, uint32_t node, const gy_access *x)
{
    gy_rows_used *rows = gy_recompute_rows(&r->c, x);
    if (!rows || rows->segment == GY_NONE)
        return true;
    if (r->c.segment.at[rows->segment].before == GY_NONE && !begin_segment(r, rows->segment, node))
        return false;
    gy_segment *s = &r->c.segment.at[rows->segment];
    rows->is_wanted = !s->is_kept;
    bool is_noted = s->reader.count && *gy_vec_last(&s->reader) == node;
    return is_noted || gy_vec_push(&s->reader, node);
}

/* The node gives to adjoints of rows. */
static void look_at_write(remaking *r, uint32_t node, const gy_access *x)
{
    uint32_t primal = x->buffer < r->buffers ? r->primal[x->buffer] : GY_NONE;
    if (primal == GY_NONE)
        return;
    gy_access same = *x;
    same.buffer = primal;
    const gy_recompute *c = &r->c;
    gy_rows_used *end = gy_vec_from(&c->rows, c->rows_of[primal + 1]);
    for (gy_rows_used *rows = gy_recompute_rows(c, &same); rows && rows < end && rows->first < x->last; rows++)
        rows->giver = node;
}

static bool look_back(remaking *r)
{
    bool ok = true;
    for (uint32_t i = r->a->nodes; i < r->g->nodes.count && ok; i++) {
        const gy_node *n = &r->g->nodes.at[i];
        for (uint32_t k = n->access; k < n->access + n->accesses && ok; k++)
            ok = r->g->access.at[k].mode != GANTRY_READ || look_at_read(r, i, &r->g->access.at[k]);
        for (uint32_t k = n->access; k < n->access + n->accesses; k++)
            if (r->g->access.at[k].mode != GANTRY_READ)
                look_at_write(r, i, &r->g->access.at[k]);
    }
    return ok;
}

/* ---- which nodes, and where ---- */

/* Nodes that write what is wanted want what they read of their segment. */
static void find_needed(remaking *r, const gy_segment *s)
{
    for (uint32_t i = s->last; i-- > s->first;) {
        uint32_t node = r->c.order.at[i], segment = r->c.segment_of[node];
        const gy_node *n = &r->g->nodes.at[node];
        for (uint32_t k = n->access; k < n->access + n->accesses; k++) {
            const gy_access *x = &r->g->access.at[k];
            const gy_rows_used *rows = x->mode == GANTRY_READ ? NULL : gy_recompute_rows(&r->c, x);
            r->is_needed[node] = r->is_needed[node] || (rows && rows->segment != GY_NONE && rows->is_wanted);
        }
        for (uint32_t k = n->access; k < n->access + n->accesses && r->is_needed[node]; k++) {
            gy_rows_used *rows = gy_recompute_rows(&r->c, &r->g->access.at[k]);
            if (rows && r->g->access.at[k].mode == GANTRY_READ && rows->segment == segment)
                rows->is_wanted = true;
        }
    }
}

/* The buffer that has rows of this one that are made again. */
static uint32_t again_of(remaking *r, uint32_t buffer)
{
    if (r->again[buffer] == GY_NONE)
        r->again[buffer] = gy_adjoint_clone(r->a, buffer, "again").id;
    return r->again[buffer];
}

static const char *again_id(remaking *r, const char *id)
{
    const char *made = gy_arena_printf(&r->g->arena, "%s.again", id);
    while (made && gy_names_find(&r->g->node_names, made) != GY_NO_NAME)
        made = gy_arena_printf(&r->g->arena, "%s_", made);
    return made;
}

/* Copies node `node`. What it writes, and what it reads of its segment, is in buffers of rows that are made again. Its
 * turn is that of its adjoint. */
static bool add_copy(remaking *r, uint32_t node)
{
    gantry_graph *g = r->g;
    const gy_node from = g->nodes.at[node];
    gy_node made = from;
    first_copy first = { (uint32_t)r->nodes.count, r->c.segment_of[node] };
    bool is_first = true;
    made.id = again_id(r, from.id);
    made.after = made.afters = 0;
    made.access = (uint32_t)g->access.count;
    made.scalar = (uint32_t)g->scalar.count;
    bool ok = made.id && gy_build_copy_extra(g, &made, 1);
    if (ok && made.extra != GY_NONE)
        g->extra.at[made.extra].priority -= g->extra.at[made.extra].back_delay;
    for (uint32_t k = from.access; k < from.access + from.accesses && ok; k++) {
        gy_access x = g->access.at[k];
        const gy_rows_used *rows = gy_recompute_rows(&r->c, &x);
        bool is_made = x.mode == GANTRY_READ && rows && rows->segment != GY_NONE;
        is_first = is_first && !is_made;
        if (is_made || x.mode != GANTRY_READ)
            x.buffer = again_of(r, x.buffer);
        ok = gy_vec_push(&g->access, x);
    }
    for (uint32_t k = from.scalar; k < from.scalar + from.scalars && ok; k++) {
        gy_scalar x = g->scalar.at[k];
        ok = gy_vec_push(&g->scalar, x);
    }
    return ok && gy_vec_push(&r->nodes, made) && (!is_first || gy_vec_push(&r->firsts, first));
}

/* The node of the backward pass reads what is made again. */
static void turn_reads(remaking *r, uint32_t node)
{
    const gy_node *n = &r->g->nodes.at[node];
    for (uint32_t k = n->access; k < n->access + n->accesses; k++) {
        const gy_rows_used *rows = gy_recompute_rows(&r->c, &r->g->access.at[k]);
        if (rows && rows->is_wanted && r->g->access.at[k].mode == GANTRY_READ) {
            uint32_t again = again_of(r, rows->buffer);
            r->g->access.at[k].buffer = again;
        }
    }
}

static int compare_numbers(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

/* All nodes, the copies of each segment before the node that reads of it first. `order` has room for an entry a
 * segment. */
static bool add_all(remaking *r, uint64_t *order)
{
    size_t count = 0, next = 0;
    for (size_t i = 0; i < r->c.segment.count; i++) {
        const gy_segment *s = &r->c.segment.at[i];
        if (s->is_kept || s->before == GY_NONE)
            continue;
        find_needed(r, s);
        order[count++] = (uint64_t)s->before << 32 | i;
    }
    if (count)
        qsort(order, count, sizeof *order, compare_numbers);
    bool ok = true;
    for (uint32_t i = 0; i < r->g->nodes.count && ok; i++) {
        if (i >= r->a->nodes)
            turn_reads(r, i);
        for (; next < count && order[next] >> 32 == i; next++) {
            const gy_segment *s = &r->c.segment.at[(uint32_t)order[next]];
            for (uint32_t k = s->first; k < s->last && ok; k++)
                ok = !r->is_needed[r->c.order.at[k]] || add_copy(r, r->c.order.at[k]);
        }
        r->number[i] = (uint32_t)r->nodes.count;
        ok = ok && gy_vec_push(&r->nodes, r->g->nodes.at[i]);
    }
    r->number[r->g->nodes.count] = (uint32_t)r->nodes.count;
    return ok;
}

/* ---- order ---- */

static void wait_for(const remaking *r, uint32_t node, uint32_t old)
{
    uint32_t number = r->g->number;
    gantry_node_after(r->g, (gantry_node){ node, number }, (gantry_node){ r->number[old], number });
}

/* Copies that read nothing made again wait for the adjoints of what the segment gives; and for what reads, on their
 * device, of the segment that is gone back through before, so that its rows have left when theirs come. */
static void set_order(const remaking *r)
{
    for (size_t i = 0; i < r->firsts.count; i++) {
        uint32_t node = r->firsts.at[i].node;
        const gy_segment *s = &r->c.segment.at[r->firsts.at[i].segment];
        const gy_segment *behind = s->behind == GY_NONE ? NULL : &r->c.segment.at[s->behind];
        for (size_t k = 0; k < s->giver.count; k++)
            wait_for(r, node, s->giver.at[k]);
        for (size_t k = 0; behind && k < behind->reader.count; k++) {
            uint32_t reader = behind->reader.at[k];
            bool is_near =
                gy_adjoint_is_same_place(gy_node_extra_of(r->g, r->number[reader]), gy_node_extra_of(r->g, node));
            if (is_near && reader < s->before)
                wait_for(r, node, reader);
        }
    }
}

static gantry_status remake(remaking *r)
{
    gantry_graph *g = r->g;
    for (uint32_t b = 0; b < r->a->buffers; b++)
        if (r->a->of[b].buffer.id < r->buffers)
            r->primal[r->a->of[b].buffer.id] = b;
    uint64_t *order = NULL;
    bool ok = look_back(r);
    order = ok ? gy_calloc(r->c.segment.count + 1, sizeof *order) : NULL;
    ok = order && add_all(r, order);
    gy_free(order);
    GY_TRY(gy_adjoint_built(r->a));
    if (!ok)
        return gy_fail_nomem(r->a->err);
    if (!gy_build_replace_nodes(g, &r->nodes, r->number))
        return gy_fail_nomem(r->a->err);
    set_order(r);
    return gy_adjoint_built(r->a);
}

static uint32_t *none(size_t count)
{
    uint32_t *made = gy_calloc(count + 1, sizeof *made);
    if (made)
        memset(made, 0xff, (count + 1) * sizeof *made);
    return made;
}

static bool begin(remaking *r)
{
    gy_recompute *c = &r->c;
    uint32_t nodes = r->a->nodes, buffers = r->a->buffers;
    r->buffers = (uint32_t)r->g->buffers.count;
    c->rows_of = none(buffers);
    c->piece = none(nodes);
    c->stage = gy_calloc(nodes + 1, sizeof *c->stage);
    c->label = none(nodes);
    c->segment_of = none(nodes);
    r->again = none(buffers);
    r->primal = none(r->buffers);
    r->number = none(r->g->nodes.count);
    r->latest = none(nodes);
    r->is_needed = gy_calloc(nodes + 1, 1);
    return c->rows_of && c->piece && c->stage && c->label && c->segment_of && r->again && r->primal && r->number &&
           r->latest && r->is_needed && gy_build_merge(r->g);
}

static void end(remaking *r)
{
    gy_recompute *c = &r->c;
    for (size_t i = 0; i < c->segment.count; i++) {
        gy_vec_free(&c->segment.at[i].reader);
        gy_vec_free(&c->segment.at[i].giver);
    }
    gy_vec_free(&c->segment);
    gy_vec_free(&c->order);
    gy_vec_free(&c->rows);
    gy_vec_free(&r->nodes);
    gy_vec_free(&r->firsts);
    gy_free(c->rows_of);
    gy_free(c->piece);
    gy_free(c->stage);
    gy_free(c->label);
    gy_free(c->segment_of);
    gy_free(r->again);
    gy_free(r->primal);
    gy_free(r->number);
    gy_free(r->latest);
    gy_free(r->is_needed);
}

gantry_status gy_adjoint_recompute(gy_adjoint *a)
{
    remaking r = { .a = a, .g = a->graph };
    r.c.a = a;
    gantry_status status = begin(&r) ? gy_recompute_segments(&r.c) : gy_fail_nomem(a->err);
    status = status ? status : remake(&r);
    end(&r);
    return status;
}
