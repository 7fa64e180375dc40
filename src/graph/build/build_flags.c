/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flags that a back end need not know of. What is scheduled has nodes that run by one flag each, and collectives that
 * run always; this makes them of what was built:
 * - A node of several flags, since a repeat around it ends by one, gets a buffer "FLAG.both" of its own, which is
 * filled with 0 ahead of it, and to which its flag is copied where the outer one is set. Neighbours share it.
 * - A repeat that ends by a flag copies what it carries. Where `next` is known outside, too, it begins as a copy of
 *   `prev`: nodes that may be left out keep what is there, so that something has to be.
 * - The ranks of a collective meet in every start, so nobody can wait for one that was left out. What it gives goes to
 * a buffer "NAME.met", and by copies of the flag to where it belongs. It goes there at once where nodes of the same
 * flag behind it alone read it: where the flag is 0 nobody asks what it is.
 */
#include "base/error.h"
#include "base/memory.h"
#include "graph/build/build_state.h"
#include "graph/nest.h"

#include <stdlib.h>
#include <string.h>

enum { BEGIN, AHEAD, BEHIND }; /* before a loop begins; right before a node; right behind it */

/* A new node, whose number is behind those of the old ones, and where it belongs. */
typedef struct placed {
    uint32_t at, loop; /* an old node; BEGIN: the loop of `inner` */
    uint32_t kind, node;
} placed;

/* Both flags, as nodes of these loops find them until something writes one of them. */
typedef struct joint {
    gy_access outer, inner, both;
    uint32_t loop, within; /* of the nodes: the outermost loop and the innermost one */
} joint;

typedef struct flags {
    gantry_graph *g;
    uint32_t old;
    uint32_t at, kind, loop; /* where new nodes belong */
    uint32_t origin;         /* and whose they are */
    uint32_t *more;          /* by old node, and one more: its first entry of `flag` */
    gy_access *flag;         /* flags beyond the first, node by node */
    GY_VEC(joint) joint;
    GY_VEC(placed) placed;
} flags;

static bool is_same(const gy_access *a, const gy_access *b)
{
    return a->buffer == b->buffer && a->first == b->first && a->last == b->last;
}

/* ---- pieces of buffers ---- */

int64_t gy_build_pieces(const gy_buffer *b)
{
    return b->tiles[0] ? b->rows : b->parts ? b->parts : 1;
}

gantry_region gy_build_piece(const gantry_graph *g, uint32_t buffer, int64_t piece)
{
    const gy_buffer *b = &g->buffers.at[buffer];
    gantry_buffer handle = { buffer, g->number };
    int64_t first[GANTRY_TILE_AXES], last[GANTRY_TILE_AXES];
    if (!b->tiles[0])
        return b->parts ? gantry_part(handle, piece) : gantry_all(handle);
    gy_tile_index(b, piece, first);
    for (int k = 0; k < GANTRY_TILE_AXES; k++)
        last[k] = first[k] + 1;
    return gantry_tiles_by_axis(handle, b->rank < GANTRY_TILE_AXES ? b->rank : GANTRY_TILE_AXES, first, last);
}

/* A name that is there gives way. */
static gantry_node add_copy(gantry_graph *g, const char *id, gantry_region from, gantry_region to)
{
    bool unique = g->build_->unique_ids;
    if (!id) {
        gy_build_nomem(g);
        return (gantry_node){ GANTRY_NONE, 0 };
    }
    g->build_->unique_ids = false;
    gantry_node made = gantry_graph_copy(g, id, from, to);
    g->build_->unique_ids = unique;
    return made;
}

gantry_node gy_build_copy_piece(gantry_graph *g, const char *what, uint32_t from, uint32_t to, int64_t piece)
{
    const gy_buffer *b = &g->buffers.at[strcmp(what, "begin") == 0 ? to : from];
    const char *id = gy_build_pieces(b) > 1 ? gy_arena_printf(&g->arena, "%s.%s[%lld]", what, b->name, (long long)piece)
                                            : gy_arena_printf(&g->arena, "%s.%s", what, b->name);
    return add_copy(g, id, gy_build_piece(g, from, piece), gy_build_piece(g, to, piece));
}

/* ---- new nodes ---- */

/* Notes where the last node that was added belongs. */
static void place(flags *x)
{
    gantry_graph *g = x->g;
    placed new = { x->at, x->loop, x->kind, (uint32_t)g->nodes.count - 1 };
    if (g->error.status)
        return;
    gy_vec_last(&g->nodes)->origin = x->origin;
    if (!gy_vec_push(&x->placed, new))
        gy_build_nomem(g);
}

/* New nodes are in the loops of this one. */
static void stand(flags *x, uint32_t node, uint32_t kind)
{
    const gy_node *n = &x->g->nodes.at[node];
    x->at = node;
    x->kind = kind;
    x->loop = GY_NONE;
    x->origin = n->origin;
    x->g->build_->open_loop = n->loop;
    x->g->build_->open_inner = n->inner;
}

/* ---- several flags ---- */

/* An element that is `inner` where `outer` is set, and else 0. */
static gy_access join(flags *x, const gy_access *outer, const gy_access *inner)
{
    gantry_graph *g = x->g;
    joint made = { *outer, *inner, *inner, g->build_->open_loop, g->build_->open_inner };
    for (size_t i = 0; i < x->joint.count; i++) {
        const joint *j = &x->joint.at[i];
        bool alike = j->loop == made.loop && j->within == made.within;
        if (alike && is_same(&j->outer, outer) && is_same(&j->inner, inner))
            return j->both;
    }
    gantry_dtype dtype = g->buffers.at[inner->buffer].dtype;
    gantry_buffer both = gy_build_beside(g, inner->buffer, "both", dtype, 1, &(int64_t){ 1 });
    gantry_region all = gantry_all(both);
    if (g->error.status || !gy_region_resolve(g, &all, &made.both))
        return *inner;
    const char *name = g->buffers.at[both.id].name, *clear = gy_arena_printf(&g->arena, "clear.%s", name);
    gantry_graph_fill(g, clear ? clear : name, all, 0);
    place(x);
    gantry_node set = add_copy(g, gy_arena_printf(&g->arena, "set.%s", name), all, all);
    if (g->error.status)
        return *inner;
    gy_access from = *inner;
    from.mode = GANTRY_READ;
    from.arg = 0;
    g->access.at[g->nodes.at[set.id].access] = from;
    gy_build_flag(g, set.id, *outer);
    place(x);
    if (!gy_vec_push(&x->joint, made))
        gy_build_nomem(g);
    return made.both;
}

static gy_access *first_flag(gantry_graph *g, uint32_t node)
{
    const gy_node *n = &g->nodes.at[node];
    return n->kind == GY_NODE_COLLECTIVE ? &g->extra.at[n->extra].flag : &g->access.at[n->access + n->accesses - 1];
}

/* Of the flags of a node, the innermost first: one. */
static gy_access join_all(flags *x, const gy_access *first, const gy_access *more, uint32_t count)
{
    gy_access flag = count ? more[count - 1] : *first;
    for (uint32_t i = count; i > 0 && !x->g->error.status; i--)
        flag = join(x, &flag, i > 1 ? &more[i - 2] : first);
    flag.mode = GANTRY_READ;
    flag.arg = GY_ARG_WHEN;
    return flag;
}

/* Flags that were joined of one that the node writes are old. */
static void forget(flags *x, uint32_t node)
{
    const gantry_graph *g = x->g;
    const gy_node *n = &g->nodes.at[node];
    for (uint32_t k = n->access; k < n->access + n->accesses; k++) {
        const gy_access *a = &g->access.at[k];
        for (size_t i = x->joint.count; i > 0 && a->mode != GANTRY_READ; i--)
            if (x->joint.at[i - 1].outer.buffer == a->buffer || x->joint.at[i - 1].inner.buffer == a->buffer)
                x->joint.at[i - 1] = x->joint.at[--x->joint.count];
    }
}

static bool is_named_by_loop(const gantry_graph *g, uint32_t buffer)
{
    for (size_t i = 0; i < gy_loop_count(g); i++) {
        const gy_loop *l = gy_loop_at(g, i);
        for (size_t c = 0; c < l->carry.count; c++)
            if (l->carry.at[c].prev == buffer || l->carry.at[c].next == buffer)
                return true;
        if (l->until == buffer)
            return true;
    }
    return false;
}

static bool are_in_one_loop(const gy_node *a, const gy_node *b)
{
    return a->loop == b->loop && a->inner == b->inner;
}

/* A loop begins or ends: a name that is carried may mean something else. */
static void forget_carried(flags *x)
{
    for (size_t i = x->joint.count; i > 0; i--)
        if (is_named_by_loop(x->g, x->joint.at[i - 1].outer.buffer) ||
            is_named_by_loop(x->g, x->joint.at[i - 1].inner.buffer))
            x->joint.at[i - 1] = x->joint.at[--x->joint.count];
}

static void give_one_flag(flags *x)
{
    gantry_graph *g = x->g;
    for (uint32_t i = 0; i < x->old && !g->error.status; i++) {
        uint32_t count = x->more[i + 1] - x->more[i];
        if (i && !are_in_one_loop(&g->nodes.at[i], &g->nodes.at[i - 1]))
            forget_carried(x);
        stand(x, i, AHEAD);
        if (count) {
            gy_access first = *first_flag(g, i), flag = join_all(x, &first, &x->flag[x->more[i]], count);
            *first_flag(g, i) = flag;
        }
        forget(x, i);
    }
    x->joint.count = 0;
}

/* ---- what repeats that end by a flag carry ---- */

static bool is_going(const gantry_graph *g, uint32_t buffer)
{
    for (size_t i = 0; i < g->build_->going.count; i++)
        if (g->build_->going.at[i] == buffer)
            return true;
    return false;
}

/* The node runs wherever the repeats around it have not ended. */
static bool runs_always(flags *x, uint32_t node)
{
    const gantry_graph *g = x->g;
    bool always = !g->nodes.at[node].has_when || is_going(g, first_flag(x->g, node)->buffer);
    for (uint32_t i = x->more[node]; i < x->more[node + 1]; i++)
        always = always && is_going(g, x->flag[i].buffer);
    return always;
}

typedef struct span {
    int64_t first, last;
} span;
typedef GY_VEC(span) spans;

static bool is_covered(const spans *written, int64_t first, int64_t last)
{
    for (size_t i = 0; i < written->count && first < last;) {
        const span *s = &written->at[i];
        bool takes = s->first <= first && first < s->last;
        first = takes ? s->last : first;
        i = takes ? 0 : i + 1;
    }
    return first >= last;
}

/* A name that is carried by copies is not unwritten in the next iteration, so nobody may count on that. */
static void check_carried(flags *x, const gy_handed *handed, spans *written)
{
    gantry_graph *g = x->g;
    const gy_loop *loop = &g->inner.at[handed->loop];
    for (uint32_t i = loop->first_node; i < loop->last_node && !g->error.status; i++) {
        const gy_node *n = &g->nodes.at[i];
        for (uint32_t k = n->access; k < n->access + n->accesses && !g->error.status; k++) {
            const gy_access *a = &g->access.at[k];
            span all = { a->first, a->last };
            bool is_new = a->buffer == handed->next && a->mode == GANTRY_WRITE && runs_always(x, i);
            if (is_new && !gy_vec_push(written, all))
                gy_build_nomem(g);
            else if (a->buffer == handed->next && !is_new && !is_covered(written, a->first, a->last))
                gy_graph_fail(
                    g, n->origin, &g->error, GANTRY_E_GRAPH,
                    "node \"%s\" %s \"%s\" ahead of what writes it, in a repeat with an until inside of another, "
                    "which carries it to \"%s\" by copies; let a node of the repeat that has no when, such as a "
                    "fill, write these rows first",
                    n->id, a->mode == GANTRY_READ ? "reads" : "changes", g->buffers.at[handed->next].name,
                    g->buffers.at[handed->prev].name);
        }
    }
}

static bool is_known_outside(const gantry_graph *g, const gy_handed *handed)
{
    const gy_buffer *b = &g->buffers.at[handed->next];
    const gy_loop *loop = &g->inner.at[handed->loop];
    bool known = b->cls != GANTRY_TEMP || b->output || b->external;
    for (size_t i = 0; i < gy_loop_count(g); i++) {
        const gy_loop *l = gy_loop_at(g, i);
        known = known || l->until == handed->next;
        for (size_t c = 0; c < l->carry.count; c++)
            known = known || l->carry.at[c].prev == handed->next || l->carry.at[c].next == handed->next;
    }
    for (uint32_t i = 0; i < g->nodes.count && !known; i++) {
        bool is_outside = i < loop->first_node || i >= loop->last_node;
        for (uint32_t k = 0; k < g->nodes.at[i].accesses && is_outside; k++)
            known = known || g->access.at[g->nodes.at[i].access + k].buffer == handed->next;
    }
    return known;
}

static void begin_with(flags *x, uint32_t number)
{
    gantry_graph *g = x->g;
    gy_handed handed = g->build_->handed.at[number];
    gy_loop loop = g->inner.at[handed.loop];
    GY_VEC(gy_access) flag = { 0 };
    bool ok = true;
    for (size_t i = 0; i < g->build_->more_flag.count; i++)
        if (g->build_->more_flag.at[i].node == GY_BEGINS + number)
            ok = gy_vec_push(&flag, g->build_->more_flag.at[i].flag) && ok;
    x->at = loop.first_node;
    x->kind = BEGIN;
    x->loop = handed.loop;
    x->origin = loop.origin;
    x->joint.count = 0;
    g->build_->open_loop = loop.top;
    g->build_->open_inner = loop.parent;
    gy_access by;
    if (flag.count)
        by = join_all(x, &flag.at[0], &flag.at[1], (uint32_t)flag.count - 1);
    for (int64_t i = 0; i < gy_build_pieces(&g->buffers.at[handed.next]) && ok && !g->error.status; i++) {
        gantry_node made = gy_build_copy_piece(g, "begin", handed.prev, handed.next, i);
        if (flag.count && !g->error.status)
            gy_build_flag(g, made.id, by);
        place(x);
    }
    x->joint.count = 0;
    gy_vec_free(&flag);
    if (!ok)
        gy_build_nomem(g);
}

static void begin_loops(flags *x)
{
    gantry_graph *g = x->g;
    for (uint32_t i = 0; i < g->build_->handed.count && !g->error.status; i++) {
        spans written = { 0 };
        check_carried(x, &g->build_->handed.at[i], &written);
        gy_vec_free(&written);
    }
    for (uint32_t i = 0; i < g->build_->handed.count && !g->error.status; i++)
        if (is_known_outside(g, &g->build_->handed.at[i]))
            begin_with(x, i);
}

/* ---- collectives ---- */

static bool runs_by(flags *x, uint32_t node, const gy_access *flag)
{
    const gy_node *n = &x->g->nodes.at[node];
    bool has = n->kind == GY_NODE_COLLECTIVE ? n->extra != GY_NONE && x->g->extra.at[n->extra].meets : n->has_when;
    return has && is_same(first_flag(x->g, node), flag);
}

/* The collective alone writes the buffer, and all others read it behind it in the same iteration, by the same flag. */
static bool is_for_flag(flags *x, uint32_t node, uint32_t buffer, const gy_access *flag)
{
    const gantry_graph *g = x->g;
    const gy_buffer *b = &g->buffers.at[buffer];
    const gy_node *met = &g->nodes.at[node];
    bool own = b->cls == GANTRY_TEMP && !b->output && !b->external && !is_named_by_loop(g, buffer), changed = false;
    for (uint32_t i = 0; i < g->nodes.count && own; i++) {
        const gy_node *n = &g->nodes.at[i];
        bool knows = false, writes = false, alike = n->loop == met->loop && n->inner == met->inner;
        for (uint32_t k = n->access; k < n->access + n->accesses; k++) {
            const gy_access *a = &g->access.at[k];
            knows = knows || a->buffer == buffer;
            writes = writes || (a->buffer == buffer && a->mode != GANTRY_WRITE && i == node) ||
                     (a->buffer == buffer && a->mode != GANTRY_READ && i != node);
            changed = changed || (i > node && a->buffer == flag->buffer && a->mode != GANTRY_READ);
        }
        own = !writes && (!knows || i == node || (i > node && alike && !changed && runs_by(x, i, flag)));
    }
    return own;
}

/* A buffer for what the region of `out` is to get, element by element. */
static gantry_buffer make_met(gantry_graph *g, const gy_access *out)
{
    gantry_dtype dtype = g->buffers.at[out->buffer].dtype;
    int64_t elements = gy_access_bytes(g, out) / (int64_t)gantry_dtype_size(dtype);
    return gy_build_beside(g, out->buffer, "met", dtype, 1, &elements);
}

static void hand_over(flags *x, uint32_t node, uint32_t access, const gy_access *flag)
{
    gantry_graph *g = x->g;
    gy_access out = g->access.at[access], all;
    const gy_buffer *b = &g->buffers.at[out.buffer];
    if (b->split_auto && out.part >= 0) {
        gy_graph_fail(g, g->nodes.at[node].origin, &g->error, GANTRY_E_GRAPH,
                      "collective \"%s\" runs by a flag and gives to automatic parts of \"%s\"; give \"%s\" a number "
                      "of parts",
                      g->nodes.at[node].id, b->name, b->name);
        return;
    }
    gantry_buffer met = make_met(g, &out);
    gantry_region region = gantry_all(met);
    if (g->error.status || !gy_region_resolve(g, &region, &all))
        return;
    all.mode = GANTRY_WRITE;
    all.arg = out.arg;
    g->access.at[access] = all;
    gantry_node copy = add_copy(g, gy_arena_printf(&g->arena, "when.%s", g->buffers.at[met.id].name), region, region);
    if (g->error.status)
        return;
    out.arg = 1;
    g->access.at[g->nodes.at[copy.id].access + 1] = out;
    gy_build_flag(g, copy.id, *flag);
    place(x);
}

static void meet(flags *x, uint32_t node)
{
    gantry_graph *g = x->g;
    const gy_node_extra *extra = gy_node_extra_of(g, node);
    gy_access flag = extra->flag;
    uint32_t first = g->nodes.at[node].access + extra->ins, outs = extra->outs;
    stand(x, node, BEHIND);
    for (uint32_t k = 0; k < outs && !g->error.status; k++)
        if (!is_for_flag(x, node, g->access.at[first + k].buffer, &flag))
            hand_over(x, node, first + k, &flag);
}

static bool meets(const gantry_graph *g, uint32_t node)
{
    return g->nodes.at[node].kind == GY_NODE_COLLECTIVE && gy_node_extra_of(g, node)->meets;
}

/* ---- all nodes ---- */

static int compare_placed(const void *one, const void *other)
{
    const placed *a = one, *b = other;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->loop != b->loop)
        return a->loop < b->loop ? -1 : 1;
    return (a->node > b->node) - (a->node < b->node);
}

typedef struct borders {
    uint32_t first, last;
} borders;

/* The new order, while it is made. */
typedef struct order {
    gy_nodes nodes;
    uint32_t *number,
        *start;      /* by node: its new number; by old node, and one more: where what stands before it begins */
    uint32_t *first; /* by loop of `inner` */
    borders *was;    /* of loops, those of `inner` and uses */
    size_t next;     /* of `placed` */
    bool ok;
} order;

static void take(const flags *x, order *o, uint32_t node)
{
    o->number[node] = (uint32_t)o->nodes.count;
    o->ok = gy_vec_push(&o->nodes, x->g->nodes.at[node]) && o->ok;
}

static void take_placed(const flags *x, order *o, uint32_t at, uint32_t kind, uint32_t loop)
{
    for (; o->next < x->placed.count; o->next++) {
        const placed *p = &x->placed.at[o->next];
        if (p->at != at || p->kind != kind || (kind == BEGIN && p->loop > loop))
            return;
        take(x, o, p->node);
    }
}

static void order_all(const flags *x, order *o)
{
    const gantry_graph *g = x->g;
    size_t loop = 0; /* of `inner`, in the order in which they begin */
    for (uint32_t i = 0; i <= x->old && o->ok; i++) {
        o->start[i] = (uint32_t)o->nodes.count;
        for (; loop < g->inner.count && g->inner.at[loop].first_node == i; loop++) {
            take_placed(x, o, i, BEGIN, (uint32_t)loop);
            o->first[loop] = (uint32_t)o->nodes.count;
        }
        if (i == x->old)
            return;
        take_placed(x, o, i, AHEAD, 0);
        take(x, o, i);
        take_placed(x, o, i, BEHIND, 0);
    }
}

/* Loops and uses have what stands ahead of their first nodes, too. */
static void move_borders(gantry_graph *g, const order *o)
{
    const borders *was = o->was;
    for (size_t i = 0; i < g->loops.count; i++, was++) {
        g->loops.at[i].first_node = o->start[was->first];
        g->loops.at[i].last_node = o->start[was->last];
    }
    for (size_t i = 0; i < g->inner.count; i++, was++) {
        uint32_t first = o->first[i], last = o->start[was->last];
        g->inner.at[i].first_node = first;
        g->inner.at[i].last_node = last < first ? first : last; /* without nodes */
    }
    for (size_t i = 0; i < g->build_->uses.count; i++, was++) {
        g->build_->uses.at[i].first = o->start[was->first];
        g->build_->uses.at[i].last = o->start[was->last];
    }
}

static bool make_order(const flags *x, order *o)
{
    const gantry_graph *g = x->g;
    size_t loops = gy_loop_count(g), uses = g->build_->uses.count;
    o->number = gy_calloc(g->nodes.count + 1, sizeof *o->number);
    o->start = gy_calloc((size_t)x->old + 1, sizeof *o->start);
    o->first = gy_calloc(g->inner.count + 1, sizeof *o->first);
    o->was = gy_calloc(loops + uses + 1, sizeof *o->was);
    o->ok = o->number && o->start && o->first && o->was;
    for (size_t i = 0; i < loops + uses && o->ok; i++)
        o->was[i] = i < loops ? (borders){ gy_loop_at(g, i)->first_node, gy_loop_at(g, i)->last_node }
                              : (borders){ g->build_->uses.at[i - loops].first, g->build_->uses.at[i - loops].last };
    if (o->ok)
        order_all(x, o);
    if (o->ok)
        o->number[g->nodes.count] = (uint32_t)o->nodes.count;
    return o->ok;
}

static bool put_in_order(flags *x)
{
    gantry_graph *g = x->g;
    order o = { 0 };
    if (x->placed.count)
        qsort(x->placed.at, x->placed.count, sizeof *x->placed.at, compare_placed);
    bool ok = make_order(x, &o) && gy_build_replace_nodes(g, &o.nodes, o.number);
    if (ok)
        move_borders(g, &o);
    gy_vec_free(&o.nodes);
    gy_free(o.number);
    gy_free(o.start);
    gy_free(o.first);
    gy_free(o.was);
    return ok;
}

/* The flags beyond the first of each old node lie together, in the order in which they were given. */
static bool list_flags(flags *x)
{
    const gy_build *b = x->g->build_;
    x->more = gy_calloc((size_t)x->old + 2, sizeof *x->more);
    x->flag = gy_calloc(b->more_flag.count + 1, sizeof *x->flag);
    if (!x->more || !x->flag)
        return false;
    for (size_t i = 0; i < b->more_flag.count; i++)
        if (b->more_flag.at[i].node < GY_BEGINS)
            x->more[b->more_flag.at[i].node + 2]++;
    for (uint32_t i = 1; i < x->old + 2; i++)
        x->more[i] += x->more[i - 1];
    for (size_t i = 0; i < b->more_flag.count; i++)
        if (b->more_flag.at[i].node < GY_BEGINS)
            x->flag[x->more[b->more_flag.at[i].node + 1]++] = b->more_flag.at[i].flag;
    return true;
}

static void change_all(flags *x)
{
    gantry_graph *g = x->g;
    uint32_t loop = g->build_->open_loop, inner = g->build_->open_inner;
    begin_loops(x);
    give_one_flag(x);
    for (uint32_t i = 0; i < x->old && !g->error.status; i++)
        if (meets(g, i))
            meet(x, i);
    g->build_->open_loop = loop;
    g->build_->open_inner = inner;
}

gantry_status gy_build_flags(gantry_graph *graph, gantry_error *err)
{
    const gy_build *b = graph->build_;
    bool any = b->more_flag.count || b->handed.count;
    for (uint32_t i = 0; i < graph->nodes.count && !any; i++)
        any = meets(graph, i);
    if (!any)
        return GANTRY_OK;
    flags x = { .g = graph, .old = (uint32_t)graph->nodes.count };
    bool ok = list_flags(&x);
    if (ok)
        change_all(&x);
    if (ok && !graph->error.status)
        ok = put_in_order(&x);
    gy_free(x.more);
    gy_free(x.flag);
    gy_vec_free(&x.joint);
    gy_vec_free(&x.placed);
    if (ok && graph->error.status && err)
        *err = graph->error;
    return ok ? graph->error.status : gy_fail_nomem(err);
}
