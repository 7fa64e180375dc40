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
#include "kernel/identity.h"

#include <stdlib.h>
#include <string.h>

/* Both flags, as nodes of these loops find them until something writes one of them. */
typedef struct joint {
    gy_access outer, inner, both;
    uint32_t loop, within; /* of the nodes: the outermost loop and the innermost one */
} joint;

/* Rows of the `next` of a pair that is carried by copies, which each iteration begins with what adds nothing. */
typedef struct emptied {
    uint32_t handed; /* the pair, of those of the graph */
    gy_access rows;  /* as they are added to */
} emptied;

typedef struct flags {
    gantry_graph *g;
    uint32_t old;
    uint32_t at, kind, loop; /* where new nodes belong */
    uint32_t origin;         /* and whose they are */
    uint32_t *more;          /* by old node, and one more: its first entry of `flag` */
    gy_access *flag;         /* flags beyond the first, node by node */
    GY_VEC(joint) joint;
    gy_placed_nodes placed;
    GY_VEC(emptied) emptied; /* by pairs */
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
    gy_placed new = { x->at, x->loop, x->kind, (uint32_t)g->nodes.count - 1 };
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

/* ---- what is added to without having been written ---- */

/* A node that writes to a piece what adds nothing. Infinity is a formula, as graph files cannot say it of a fill. */
static gantry_node add_nothing(gantry_graph *g, const char *id, gantry_region to, gantry_dtype dtype, uint8_t op)
{
    bool unique = g->build_->unique_ids;
    gantry_node made;
    if (!id) {
        gy_build_nomem(g);
        return (gantry_node){ GANTRY_NONE, 0 };
    }
    g->build_->unique_ids = false;
    if (gy_dtype_is_float(dtype) && (op == GANTRY_MIN || op == GANTRY_MAX)) {
        made = gantry_graph_map(g, id, op == GANTRY_MIN ? "y = 1.0 / 0.0" : "y = -1.0 / 0.0");
        gantry_node_arg(g, made, "y", to);
    } else {
        gy_init what = { .kind = GY_INIT_VALUE, .a = gy_identity_constant(dtype, op) };
        made = gy_graph_fill_with(g, id, to, &what);
    }
    g->build_->unique_ids = unique;
    return made;
}

/* Nodes of this loop stand ahead of its first node: outside of loops within that begin there, too. */
static void stand_first(flags *x, uint32_t number)
{
    const gantry_graph *g = x->g;
    const gy_loop *loop = &g->inner.at[number];
    stand(x, loop->first_node, GY_AHEAD);
    for (size_t i = number + 1; i < g->inner.count && x->kind == GY_AHEAD; i++)
        if (g->inner.at[i].parent == number && g->inner.at[i].first_node == loop->first_node) {
            x->kind = GY_BEGIN;
            x->loop = (uint32_t)i;
        }
    x->origin = loop->origin;
    x->g->build_->open_loop = loop->top;
    x->g->build_->open_inner = number;
}

typedef GY_VEC(gy_access) accesses;

/* The flags of what each iteration of the pair's loop begins with, the innermost first: that of a `when` around the
 * loop, that of the loop, and those of loops around it. The first copy of the pair has all but that of the loop. */
static bool list_empty_flags(flags *x, uint32_t number, accesses *to)
{
    gantry_graph *g = x->g;
    const gy_build *b = g->build_;
    const gy_handed *handed = &b->handed.at[number];
    gantry_region all = gantry_all((gantry_buffer){ handed->going, g->number });
    gy_access going;
    bool ok = gy_region_resolve(g, &all, &going) && (handed->has_around || gy_vec_push(to, going));
    for (size_t i = 0; i < b->more_flag.count && ok; i++) {
        if (b->more_flag.at[i].node != GY_BEGINS + number)
            continue;
        bool is_around = handed->has_around && to->count == 0;
        ok = gy_vec_push(to, b->more_flag.at[i].flag) && (!is_around || gy_vec_push(to, going));
    }
    return ok;
}

static void add_empty(flags *x, const emptied *e)
{
    gantry_graph *g = x->g;
    const gy_handed handed = g->build_->handed.at[e->handed];
    accesses flag = { 0 };
    bool ok = list_empty_flags(x, e->handed, &flag);
    stand_first(x, handed.loop);
    if (ok) {
        gy_access by = join_all(x, &flag.at[0], &flag.at[1], (uint32_t)flag.count - 1), rows = e->rows;
        const gy_buffer *to = &g->buffers.at[handed.next];
        const char *id = gy_arena_printf(&g->arena, "empty.%s", to->name);
        gantry_node made = add_nothing(g, id, gy_build_piece(g, handed.next, 0), to->dtype, rows.mode);
        if (!g->error.status) {
            gy_access *first = &g->access.at[g->nodes.at[made.id].access];
            rows.mode = GANTRY_WRITE;
            rows.arg = first->arg;
            *first = rows;
            gy_build_flag(g, made.id, by);
        }
        place(x);
    }
    gy_vec_free(&flag);
    if (!ok)
        gy_build_nomem(g);
}

/* Of loops whose first node this is. */
static void begin_empty(flags *x, uint32_t node)
{
    for (size_t i = 0; i < x->emptied.count && !x->g->error.status; i++) {
        uint32_t loop = x->g->build_->handed.at[x->emptied.at[i].handed].loop;
        if (x->g->inner.at[loop].first_node == node)
            add_empty(x, &x->emptied.at[i]);
    }
}

static void give_one_flag(flags *x)
{
    gantry_graph *g = x->g;
    for (uint32_t i = 0; i < x->old && !g->error.status; i++) {
        uint32_t count = x->more[i + 1] - x->more[i];
        if (i && !are_in_one_loop(&g->nodes.at[i], &g->nodes.at[i - 1]))
            forget_carried(x);
        begin_empty(x, i);
        stand(x, i, GY_AHEAD);
        if (count) {
            gy_access first = *first_flag(g, i), flag = join_all(x, &first, &x->flag[x->more[i]], count);
            *first_flag(g, i) = flag;
        }
        forget(x, i);
    }
    x->joint.count = 0;
}

/* ---- what repeats that end by a flag carry ---- */

bool gy_build_is_going(const gantry_graph *g, uint32_t buffer)
{
    for (size_t i = 0; i < g->build_->going.count; i++)
        if (g->build_->going.at[i] == buffer)
            return true;
    return false;
}

/* The node runs wherever the repeats around it have not ended, and the `when` around its repeat lets it. */
static bool runs_always(flags *x, uint32_t node, const gy_handed *handed)
{
    const gantry_graph *g = x->g;
    const gy_access *first = g->nodes.at[node].has_when ? first_flag(x->g, node) : NULL;
    bool is_around = first && handed->has_around && is_same(first, &handed->around);
    bool always = !first || is_around || gy_build_is_going(g, first->buffer);
    for (uint32_t i = x->more[node]; i < x->more[node + 1]; i++)
        always = always && gy_build_is_going(g, x->flag[i].buffer);
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

static bool is_reduction(uint8_t mode)
{
    return mode != GANTRY_READ && mode != GANTRY_WRITE && mode != GANTRY_READWRITE;
}

/* Another loop renames one of the pair, or says when it ends by it; one around may carry `next` on, which makes it new
 * in each of its iterations. */
static bool is_renamed(const gantry_graph *g, const gy_handed *handed)
{
    const gy_loop *own = &g->inner.at[handed->loop];
    bool renamed = false;
    for (size_t i = 0; i < gy_loop_count(g); i++) {
        const gy_loop *l = gy_loop_at(g, i);
        bool is_around = l != own && l->first_node <= own->first_node && own->last_node <= l->last_node;
        renamed = renamed || l->until == handed->next || l->until == handed->prev;
        for (size_t c = 0; c < l->carry.count; c++) {
            const gy_carry *pair = &l->carry.at[c];
            renamed = renamed || pair->prev == handed->prev || pair->next == handed->prev ||
                      pair->prev == handed->next || (pair->next == handed->next && !is_around);
        }
    }
    for (size_t i = 0; i < g->build_->handed.count; i++) {
        const gy_handed *other = &g->build_->handed.at[i];
        bool is_own = other->loop == handed->loop && other->prev == handed->prev;
        renamed = renamed || (!is_own && (other->prev == handed->prev || other->next == handed->prev ||
                                          other->prev == handed->next || other->next == handed->next));
    }
    return renamed;
}

/* Whenever the loop begins, `next` holds nothing: nobody outside writes it, and no name but that of its pair means it.
 */
static bool begins_empty(const gantry_graph *g, const gy_handed *handed)
{
    const gy_buffer *b = &g->buffers.at[handed->next];
    const gy_loop *loop = &g->inner.at[handed->loop];
    bool empty = b->cls == GANTRY_TEMP && !b->external && b->init.kind == GY_INIT_NONE && !is_renamed(g, handed);
    for (uint32_t i = 0; i < g->nodes.count && empty; i++) {
        const gy_node *n = &g->nodes.at[i];
        for (uint32_t k = n->access; k < n->access + n->accesses && (i < loop->first_node || i >= loop->last_node); k++)
            empty = empty && (g->access.at[k].buffer != handed->next || g->access.at[k].mode == GANTRY_READ);
    }
    return empty;
}

/* Rows to which an iteration adds first begin with what adds nothing. */
static void note_empty(flags *x, uint32_t handed, const gy_access *rows)
{
    emptied new = { handed, *rows };
    if (!gy_vec_push(&x->emptied, new))
        gy_build_nomem(x->g);
}

static void refuse_ahead(flags *x, const gy_node *n, const gy_access *a, const gy_handed *handed)
{
    gantry_graph *g = x->g;
    gy_graph_fail(g, n->origin, &g->error, GANTRY_E_GRAPH,
                  "node \"%s\" %s \"%s\" ahead of what writes it, in a repeat with an until inside of another, "
                  "which carries it to \"%s\" by copies; let a node of the repeat that has no when, such as a "
                  "fill, write these rows first",
                  n->id, a->mode == GANTRY_READ ? "reads" : "changes", g->buffers.at[handed->next].name,
                  g->buffers.at[handed->prev].name);
}

/* A name that is carried by copies is not unwritten in the next iteration, so nobody may count on that but those who
 * add to it: what they add to is filled. */
static void check_carried(flags *x, uint32_t number, spans *written)
{
    gantry_graph *g = x->g;
    const gy_handed *handed = &g->build_->handed.at[number];
    const gy_loop *loop = &g->inner.at[handed->loop];
    bool is_empty = begins_empty(g, handed);
    for (uint32_t i = loop->first_node; i < loop->last_node && !g->error.status; i++) {
        const gy_node *n = &g->nodes.at[i];
        for (uint32_t k = n->access; k < n->access + n->accesses && !g->error.status; k++) {
            const gy_access *a = &g->access.at[k];
            span all = { a->first, a->last };
            bool is_new = a->mode == GANTRY_WRITE && runs_always(x, i, handed);
            if (a->buffer != handed->next || (!is_new && is_covered(written, a->first, a->last)))
                continue;
            if (!is_new && is_empty && is_reduction(a->mode))
                note_empty(x, number, a);
            else if (!is_new)
                refuse_ahead(x, n, a, handed);
            if (!gy_vec_push(written, all))
                gy_build_nomem(g);
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

/* Loops around that end by a flag run their first iteration always, and so what begins there: the init that such a
 * `next` cannot have been given is never seen. */
static void give_init(flags *x, uint32_t number)
{
    const gy_handed *handed = &x->g->build_->handed.at[number];
    gy_buffer *next = &x->g->buffers.at[handed->next];
    for (size_t i = 0; i < x->emptied.count && !handed->has_around; i++)
        if (x->emptied.at[i].handed == number) {
            next->init = (gy_init){ .kind = GY_INIT_VALUE };
            next->cls = GANTRY_INPUT;
        }
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
    x->kind = GY_BEGIN;
    x->loop = handed.loop;
    x->origin = loop.origin;
    x->joint.count = 0;
    g->build_->open_loop = loop.top;
    g->build_->open_inner = loop.parent;
    gy_access by;
    if (flag.count)
        give_init(x, number);
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
        check_carried(x, i, &written);
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

static bool is_by_auto(const gantry_graph *g, const gy_access *a)
{
    return g->buffers.at[a->buffer].split_auto && a->part >= 0;
}

/* A buffer for what the region of `out` is to get, element by element; of automatic parts, one in the same parts, which
 * the copy between them has cut alike. */
static gantry_buffer make_met(gantry_graph *g, const gy_access *out)
{
    const gy_buffer of = g->buffers.at[out->buffer];
    int64_t elements = gy_access_bytes(g, out) / (int64_t)gantry_dtype_size(of.dtype);
    if (!is_by_auto(g, out))
        return gy_build_beside(g, out->buffer, "met", of.dtype, 1, &elements);
    gantry_buffer made = gy_build_beside(g, out->buffer, "met", of.dtype, of.rank, of.shape);
    if (!g->error.status)
        gantry_buffer_split_auto(g, made, of.parts);
    return made;
}

/* The same rows of the other buffer, or all of it. */
static bool name_met(gantry_graph *g, const gy_access *out, gantry_buffer met, gy_access *to)
{
    gantry_region all = gantry_all(met);
    if (g->error.status || !gy_region_resolve(g, &all, to))
        return false;
    if (is_by_auto(g, out)) {
        *to = *out;
        to->buffer = met.id;
    }
    to->arg = out->arg;
    to->mode = GANTRY_WRITE;
    return true;
}

/* `met`: the buffer of the region before, if that was of automatic parts of the same buffer; else, and then, the one
 * that is made. */
static void hand_over(flags *x, uint32_t access, const gy_access *flag, gantry_buffer *met)
{
    gantry_graph *g = x->g;
    gy_access out = g->access.at[access], from;
    if (met->id == GANTRY_NONE)
        *met = make_met(g, &out);
    if (!name_met(g, &out, *met, &from))
        return;
    g->access.at[access] = from;
    gantry_region region = gy_build_piece(g, met->id, 0);
    gantry_node copy = add_copy(g, gy_arena_printf(&g->arena, "when.%s", g->buffers.at[met->id].name), region, region);
    if (g->error.status)
        return;
    from.mode = GANTRY_READ;
    from.arg = 0;
    out.arg = 1;
    g->access.at[g->nodes.at[copy.id].access] = from;
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
    uint32_t of = GY_NONE; /* the buffer in automatic parts whose results go to `met` */
    gantry_buffer met = { GANTRY_NONE, 0 };
    stand(x, node, GY_BEHIND);
    for (uint32_t k = 0; k < outs && !g->error.status; k++) {
        const gy_access *out = &g->access.at[first + k];
        uint32_t buffer = out->buffer;
        if (is_for_flag(x, node, buffer, &flag))
            continue;
        bool is_auto = is_by_auto(g, out);
        if (!is_auto || buffer != of)
            met.id = GANTRY_NONE;
        of = is_auto ? buffer : GY_NONE;
        hand_over(x, first + k, &flag, &met);
    }
}

static bool meets(const gantry_graph *g, uint32_t node)
{
    return g->nodes.at[node].kind == GY_NODE_COLLECTIVE && gy_node_extra_of(g, node)->meets;
}

/* ---- all nodes ---- */

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
        ok = gy_build_order(graph, x.old, &x.placed);
    gy_free(x.more);
    gy_free(x.flag);
    gy_vec_free(&x.joint);
    gy_vec_free(&x.placed);
    gy_vec_free(&x.emptied);
    if (ok && graph->error.status && err)
        *err = graph->error;
    return ok ? graph->error.status : gy_fail_nomem(err);
}
