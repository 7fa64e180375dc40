/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk takes accesses in adding order, and of each loop as many iterations as differ. Carrying is renaming, as in
 * flow.c. Unlike there only the state of a row matters (does it hold something, did this phase change it), not which
 * task made it so.
 */
#include "graph/derive/phase_walk.h"
#include "graph/nest.h"
#include <string.h>

static uint64_t payload_of(const gy_walk *w, bool defined)
{
    return (uint64_t)w->now << 1 | defined;
}

static uint32_t add_value(gy_walk *w, const gy_buffer *b, bool defined)
{
    gy_walk_value v = { .touch = GY_NONE, .born = w->now };
    if (w->values.count >= GY_NONE || !gy_vec_reserve(&w->values, w->values.count + 1) ||
        !gy_imap_init(&v.rows, 0, b->rows, payload_of(w, defined))) {
        w->failed = true;
        return 0;
    }
    w->values.at[w->values.count++] = v;
    return (uint32_t)w->values.count - 1;
}

/* ---- last uses ---- */

static void note_use(gy_walk *w, uint32_t buffer, uint32_t node)
{
    uint32_t *last = &w->last_use[buffer];
    *last = *last > node + 1 ? *last : node + 1;
}

static void note_pairs(gy_walk *w, const gy_loop *l, uint32_t node)
{
    for (size_t k = 0; k < l->carry.count && l->count > 0; k++) {
        note_use(w, l->carry.at[k].prev, node);
        note_use(w, l->carry.at[k].next, node);
    }
}

static void find_last_uses(gy_walk *w)
{
    const gantry_graph *g = w->graph;
    for (uint32_t n = 0; n < g->nodes.count; n++)
        for (uint32_t k = 0; k < g->nodes.at[n].accesses; k++)
            note_use(w, g->access.at[g->nodes.at[n].access + k].buffer, n);
    for (size_t i = 0; i < g->loops.count; i++) {
        const gy_loop *l = &g->loops.at[i];
        note_pairs(w, l, l->last_node - (l->last_node > 0));
        if (l->until != GY_NONE && l->last_node > 0)
            note_use(w, l->until, l->last_node - 1);
        for (uint32_t k = l->inner; k < l->inner_last && l->last_node > 0; k++)
            note_pairs(w, &g->inner.at[k], l->last_node - 1);
    }
    for (size_t b = 0; b < g->buffers.count; b++)
        if (g->buffers.at[b].output || g->buffers.at[b].cls == GANTRY_STATE)
            w->last_use[b] = UINT32_MAX;
}

bool gy_walk_init(gy_walk *w, const gantry_graph *graph, gy_arena *arena)
{
    size_t buffers = graph->buffers.count;
    *w = (gy_walk){ .graph = graph, .arena = arena };
    w->current = gy_calloc(buffers + 1, sizeof *w->current);
    w->last_use = gy_calloc(buffers + 1, sizeof *w->last_use);
    w->failed = !w->current || !w->last_use;
    for (uint32_t b = 0; b < buffers && !w->failed; b++)
        w->current[b] = add_value(w, &graph->buffers.at[b], graph->buffers.at[b].cls != GANTRY_TEMP);
    if (!w->failed)
        find_last_uses(w);
    return !w->failed;
}

void gy_walk_free(gy_walk *w)
{
    for (size_t i = 0; i < w->values.count; i++)
        gy_imap_free(&w->values.at[i].rows);
    gy_vec_free(&w->values);
    gy_vec_free(&w->touch);
    gy_free(w->current);
    gy_free(w->last_use);
    *w = (gy_walk){ 0 };
}

/* ---- values ---- */

/* The runs of rows that hold something. */
static uint32_t list_defined(gy_walk *w, const gy_imap *map, gy_rows **out)
{
    gy_rows *rows = gy_arena_calloc(w->arena, (size_t)map->count + 1, sizeof *rows);
    uint32_t count = 0;
    w->failed |= !rows;
    uint32_t i = map->count ? gy_imap_find(map, 0) : GY_IMAP_NONE;
    for (; i != GY_IMAP_NONE && rows; i = gy_imap_next(map, i)) {
        if (!(map->at[i].payload & 1))
            continue;
        if (count > 0 && rows[count - 1].last == map->at[i].first)
            rows[count - 1].last = map->at[i].last;
        else
            rows[count++] = (gy_rows){ map->at[i].first, map->at[i].last };
    }
    *out = rows;
    return count;
}

/* Notes that the phase touches a value, with what it was before; NULL for one that began in this phase. */
static gy_touched *touch(gy_walk *w, uint32_t value)
{
    gy_walk_value *v = &w->values.at[value];
    if (v->born == w->now)
        return NULL;
    if (v->touch >= w->touch.count || w->touch.at[v->touch].value != value) {
        gy_touched new = { .value = value };
        new.defineds = list_defined(w, &v->rows, &new.defined);
        v->touch = (uint32_t)w->touch.count;
        if (!gy_vec_push(&w->touch, new)) {
            w->failed = true;
            return NULL;
        }
    }
    return &w->touch.at[v->touch];
}

static bool access_rows(gy_walk *w, uint32_t buffer, gantry_access mode, int64_t first, int64_t last)
{
    uint32_t value = w->current[buffer];
    gy_touched *t = touch(w, value);
    if (w->failed || first >= last)
        return !w->failed;
    gy_imap *map = &w->values.at[value].rows;
    uint32_t i = gy_imap_cut(map, first, last);
    w->failed = i == GY_IMAP_NONE;
    for (; i != GY_IMAP_NONE && map->at[i].first < last; i = gy_imap_next(map, i)) {
        bool from_before = map->at[i].payload >> 1 != w->now && (map->at[i].payload & 1);
        if (t && from_before && mode != GANTRY_WRITE)
            t->used = true;
        if (mode != GANTRY_READ)
            map->at[i].payload = payload_of(w, true);
    }
    if (t && mode != GANTRY_READ)
        t->changed = true;
    gy_imap_join(map, first, last);
    return !w->failed;
}

static void walk_node(gy_walk *w, uint32_t node)
{
    const gy_node *n = &w->graph->nodes.at[node];
    for (uint32_t k = 0; k < n->accesses && !w->failed; k++) {
        const gy_access *a = &w->graph->access.at[n->access + k];
        access_rows(w, a->buffer, (gantry_access)a->mode, a->first, a->last);
    }
}

/* ---- loops ---- */

/* `renames`: it is not the first since names were last set right. */
static void begin_iteration(gy_walk *w, const gy_loop *l, bool renames)
{
    for (size_t i = 0; i < l->carry.count && !w->failed; i++) {
        uint32_t prev = l->carry.at[i].prev, next = l->carry.at[i].next;
        if (renames)
            w->current[prev] = w->current[next];
        if (w->current[prev] == w->current[next])
            w->current[next] = add_value(w, &w->graph->buffers.at[next], false);
    }
}

/* Both names of a pair mean what `next` meant in the last iteration. */
static void end_iterations(gy_walk *w, const gy_loop *l)
{
    for (size_t i = 0; i < l->carry.count; i++)
        w->current[l->carry.at[i].prev] = w->current[l->carry.at[i].next];
}

static int64_t shown(int64_t count)
{
    return count < GY_ITERATIONS_SHOWN ? count : GY_ITERATIONS_SHOWN;
}

static void walk_exactly(gy_walk *w, const gy_loop *l, int64_t count);

/* All iterations of a loop that is unrolled are taken, unless it has no loops inside and so settles by itself. More
 * than the limit are refused when the flow is made. */
static int64_t iterations_of(const gantry_graph *g, const gy_loop *l)
{
    int64_t most = gy_graph_limit(g);
    return l->inner == l->inner_last ? shown(l->count) : l->count < most ? l->count : most;
}

static void walk_range(gy_walk *w, const gy_range *range)
{
    const gy_loop *inner = w->graph->inner.at;
    uint32_t n = range->first;
    for (uint32_t i = range->inner; i < range->inner_last && !w->failed; i = inner[i].inner_last) {
        for (; n < inner[i].first_node; n++)
            walk_node(w, n);
        walk_exactly(w, &inner[i], iterations_of(w->graph, &inner[i]));
        n = inner[i].last_node;
    }
    for (; n < range->last; n++)
        walk_node(w, n);
}

static void walk_exactly(gy_walk *w, const gy_loop *l, int64_t count)
{
    gy_range body = gy_loop_range(l);
    for (int64_t it = 0; it < count && !w->failed; it++) {
        begin_iteration(w, l, it > 0);
        walk_range(w, &body);
    }
    if (count > 0)
        end_iterations(w, l);
}

/* So many iterations of an outermost loop, of which the walk takes as many as differ. */
static void walk_iterations(gy_walk *w, const gy_loop *l, int64_t count)
{
    walk_exactly(w, l, shown(count));
}

static void walk_nodes(gy_walk *w, const gy_phase *p)
{
    uint32_t n = p->first_node;
    for (uint32_t i = p->first_loop; i < p->last_loop && !w->failed; i++) {
        const gy_loop *l = &w->graph->loops.at[i];
        for (; n < l->first_node; n++)
            walk_node(w, n);
        walk_exactly(w, l, iterations_of(w->graph, l));
        n = l->last_node;
    }
    for (; n < p->last_node; n++)
        walk_node(w, n);
}

static void find_covered(gy_walk *w)
{
    for (size_t i = 0; i < w->touch.count; i++) {
        const gy_imap *map = &w->values.at[w->touch.at[i].value].rows;
        bool covered = true;
        uint32_t k = map->count ? gy_imap_find(map, 0) : GY_IMAP_NONE;
        for (; k != GY_IMAP_NONE; k = gy_imap_next(map, k))
            covered = covered && (map->at[k].first == map->at[k].last || map->at[k].payload >> 1 == w->now);
        w->touch.at[i].covered = covered;
    }
}

void gy_walk_phase(gy_walk *w, const gy_phase *p)
{
    const gantry_graph *g = w->graph;
    w->now++;
    w->touch.count = 0;
    if (p->loop == GY_NONE) {
        walk_nodes(w, p);
    } else {
        const gy_loop *l = &g->loops.at[p->loop];
        walk_iterations(w, l, p->iterations);
        if (gy_phase_looks(p))
            access_rows(w, l->until, GANTRY_READ, 0, g->buffers.at[l->until].rows);
    }
    find_covered(w);
}

/* ---- are the starts alike? ---- */

static bool copy_map(gy_imap *to, const gy_imap *from, int64_t rows)
{
    if (!gy_imap_init(to, 0, rows, 0))
        return false;
    uint32_t i = from->count ? gy_imap_find(from, 0) : GY_IMAP_NONE;
    for (; i != GY_IMAP_NONE; i = gy_imap_next(from, i)) {
        uint32_t k = from->at[i].first < from->at[i].last ? gy_imap_cut(to, from->at[i].first, from->at[i].last) : 0;
        if (k == GY_IMAP_NONE)
            return false;
        if (to->count)
            to->at[k].payload = from->at[i].payload;
    }
    return true;
}

static int64_t rows_of(const gy_imap *map)
{
    int64_t last = 0;
    uint32_t i = map->count ? gy_imap_find(map, 0) : GY_IMAP_NONE;
    for (; i != GY_IMAP_NONE; i = gy_imap_next(map, i))
        last = map->at[i].last;
    return last;
}

/* A walk of its own from here; last uses are shared. */
static bool fork_walk(gy_walk *to, const gy_walk *from)
{
    size_t buffers = from->graph->buffers.count;
    *to = (gy_walk){ .graph = from->graph, .arena = from->arena, .now = from->now + 1, .last_use = from->last_use };
    to->current = gy_calloc(buffers + 1, sizeof *to->current);
    to->failed = !to->current;
    if (to->current)
        memcpy(to->current, from->current, buffers * sizeof *to->current);
    for (size_t i = 0; i < from->values.count && !to->failed; i++) {
        gy_walk_value v = { .touch = GY_NONE, .born = to->now }; /* nothing is noted: it is over before it counts */
        const gy_imap *map = &from->values.at[i].rows;
        to->failed = !copy_map(&v.rows, map, rows_of(map)) || !gy_vec_push(&to->values, v);
        if (to->failed)
            gy_imap_free(&v.rows);
    }
    return !to->failed;
}

static void join_walk(gy_walk *w)
{
    w->last_use = NULL;
    gy_walk_free(w);
}

static bool matters(const gy_walk *w, uint32_t buffer, uint32_t from_node)
{
    return w->last_use[buffer] > from_node;
}

/* Per buffer that matters: the first such buffer whose name means the same. NULL: out of memory. */
static uint32_t *find_names(const gy_walk *w, uint32_t from_node)
{
    uint32_t *first = gy_calloc(w->values.count + 1, sizeof *first), buffers = (uint32_t)w->graph->buffers.count;
    uint32_t *name = gy_calloc((size_t)buffers + 1, sizeof *name);
    for (uint32_t b = buffers; name && first && b-- > 0;)
        if (matters(w, b, from_node))
            first[w->current[b]] = b;
    for (uint32_t b = 0; name && first && b < buffers; b++)
        name[b] = matters(w, b, from_node) ? first[w->current[b]] : b;
    if (!first) {
        gy_free(name);
        name = NULL;
    }
    gy_free(first);
    return name;
}

static bool same_names(const gy_walk *a, const gy_walk *b, uint32_t from_node, bool *failed)
{
    uint32_t *x = find_names(a, from_node), *y = find_names(b, from_node);
    bool same = x && y && memcmp(x, y, a->graph->buffers.count * sizeof *x) == 0;
    *failed = *failed || !x || !y;
    gy_free(x);
    gy_free(y);
    return same;
}

static bool is_defined(const gy_walk *w, uint32_t buffer, int64_t row, int64_t *last)
{
    const gy_imap *map = &w->values.at[w->current[buffer]].rows;
    uint32_t i = gy_imap_find(map, row);
    *last = map->at[i].last < *last ? map->at[i].last : *last;
    return map->at[i].payload & 1;
}

/* A contribution adds to what is there, or to nothing: for these rows that must be the same in both. */
static bool adds_alike(const gy_walk *a, const gy_walk *b, const gy_access *access)
{
    int64_t last = access->last;
    for (int64_t row = access->first; row < access->last; row = last) {
        last = access->last;
        bool here = is_defined(a, access->buffer, row, &last);
        if (here != is_defined(b, access->buffer, row, &last))
            return false;
    }
    return true;
}

static bool node_adds_alike(const gy_walk *a, const gy_walk *b, uint32_t node)
{
    const gantry_graph *g = a->graph;
    bool alike = true;
    for (uint32_t k = 0; k < g->nodes.at[node].accesses; k++) {
        const gy_access *access = &g->access.at[g->nodes.at[node].access + k];
        alike = alike && (!gy_access_reduces(access) || adds_alike(a, b, access));
    }
    return alike;
}

/* Carries out nodes in both: contributions begin with what is there when their turn comes. */
static bool nodes_add_alike(gy_walk *a, gy_walk *b, uint32_t first_node, uint32_t last_node)
{
    bool alike = true;
    for (uint32_t n = first_node; n < last_node && alike; n++) {
        alike = node_adds_alike(a, b, n);
        walk_node(a, n);
        walk_node(b, n);
        alike = alike && !a->failed && !b->failed;
    }
    return alike;
}

static bool iteration_adds_alike(gy_walk *a, gy_walk *b, const gy_loop *l, bool renames);

static bool inner_adds_alike(gy_walk *a, gy_walk *b, const gy_loop *l)
{
    bool alike = true;
    for (int64_t it = 0; it < iterations_of(a->graph, l) && alike; it++)
        alike = iteration_adds_alike(a, b, l, it > 0);
    if (l->count > 0) {
        end_iterations(a, l);
        end_iterations(b, l);
    }
    return alike;
}

static bool iteration_adds_alike(gy_walk *a, gy_walk *b, const gy_loop *l, bool renames)
{
    const gy_loop *inner = a->graph->inner.at;
    uint32_t node = l->first_node;
    begin_iteration(a, l, renames);
    begin_iteration(b, l, renames);
    bool alike = !a->failed && !b->failed;
    for (uint32_t i = l->inner; i < l->inner_last && alike; i = inner[i].inner_last) {
        alike = nodes_add_alike(a, b, node, inner[i].first_node) && inner_adds_alike(a, b, &inner[i]);
        node = inner[i].last_node;
    }
    return alike && nodes_add_alike(a, b, node, l->last_node);
}

/* True if a node of the loop may change what the name means before it. What a loop inside carries may be changed under
 * another name. */
static bool changes(const gantry_graph *g, const gy_loop *l, uint32_t buffer)
{
    for (uint32_t i = l->inner; i < l->inner_last; i++)
        for (size_t k = 0; k < g->inner.at[i].carry.count; k++)
            if (g->inner.at[i].carry.at[k].prev == buffer || g->inner.at[i].carry.at[k].next == buffer)
                return true;
    for (uint32_t n = l->first_node; n < l->last_node; n++) {
        for (uint32_t k = 0; k < g->nodes.at[n].accesses; k++) {
            const gy_access *a = &g->access.at[g->nodes.at[n].access + k];
            if (a->buffer == buffer && a->mode != GANTRY_READ)
                return true;
        }
    }
    return false;
}

/* True if only the loop uses the values that the pair means before the loop, or all uses of these only read. */
static bool is_private(const gy_walk *w, const gy_loop *l, gy_carry pair)
{
    const gantry_graph *g = w->graph;
    uint32_t old_prev = w->current[pair.prev], old_next = w->current[pair.next];
    bool prev_changes = changes(g, l, pair.prev);
    for (uint32_t c = 0; c < g->buffers.count; c++) {
        if (c == pair.prev || c == pair.next || !matters(w, c, l->first_node))
            continue;
        if ((w->current[c] == old_next && old_next != old_prev) ||
            (w->current[c] == old_prev && (prev_changes || changes(g, l, c))))
            return false;
    }
    return true;
}

/* Both names mean a value of their own that holds what both `prev` holds now and what it holds later on. */
static void forget(gy_walk *w, const gy_walk *later, gy_carry pair)
{
    const gy_buffer *b = &w->graph->buffers.at[pair.prev];
    uint32_t old = w->current[pair.prev], new = add_value(w, b, false);
    if (w->failed)
        return;
    gy_imap *map = &w->values.at[new].rows;
    int64_t last = 0;
    for (int64_t row = 0; row < b->rows && !w->failed; row = last) {
        uint32_t i = gy_imap_find(&w->values.at[old].rows, row);
        last = w->values.at[old].rows.at[i].last;
        bool now = w->values.at[old].rows.at[i].payload & 1;
        bool both = is_defined(later, pair.prev, row, &last) && now;
        uint32_t k = gy_imap_cut(map, row, last);
        w->failed = k == GY_IMAP_NONE;
        if (!w->failed)
            map->at[k].payload = payload_of(w, both);
    }
    w->current[pair.prev] = w->current[pair.next] = new;
}

static bool settles(gy_walk *w, gy_walk *later, const gy_loop *l)
{
    bool alike = true;
    for (size_t i = 0; i < l->carry.count; i++)
        alike = alike && is_private(w, l, l->carry.at[i]);
    gy_walk here = { 0 };
    if (alike && fork_walk(&here, w))
        alike = iteration_adds_alike(&here, later, l, false);
    w->failed = w->failed || here.failed || later->failed;
    join_walk(&here);
    return alike;
}

bool gy_walk_settle(gy_walk *w, const gy_phase *p)
{
    const gy_loop *l = &w->graph->loops.at[p->loop];
    if (p->first >= 2)
        return true;
    if (l->count < GY_ITERATIONS_SHOWN)
        return false;
    gy_walk later = { 0 }, names = { 0 }, try = { 0 };
    bool alike = fork_walk(&later, w);
    if (alike) {
        walk_iterations(&later, l, 2 - p->first);
        alike = !later.failed && fork_walk(&names, &later) && settles(w, &names, l);
    }
    if (alike && (alike = fork_walk(&try, w))) {
        for (size_t i = 0; i < l->carry.count; i++)
            forget(&try, &later, l->carry.at[i]);
        alike = !try.failed && same_names(&try, &later, l->first_node, &w->failed);
        for (size_t i = 0; i < l->carry.count && alike; i++)
            forget(w, &later, l->carry.at[i]);
    }
    w->failed = w->failed || later.failed || names.failed || try.failed;
    join_walk(&later);
    join_walk(&names);
    join_walk(&try);
    return alike && !w->failed;
}

/* True if all names mean the same in both, and what they mean holds something in the same rows. */
static bool same_state(const gy_walk *a, const gy_walk *b, uint32_t from_node, bool *failed)
{
    bool same = same_names(a, b, from_node, failed);
    for (uint32_t i = 0; i < a->graph->buffers.count && same && !*failed; i++) {
        gy_access all = { .buffer = i, .last = a->graph->buffers.at[i].rows };
        same = !matters(a, i, from_node) || adds_alike(a, b, &all);
    }
    return same;
}

bool gy_walk_inner_settles(gy_walk *w, uint32_t loop)
{
    const gy_loop *l = &w->graph->loops.at[loop];
    if (l->inner == l->inner_last || l->count <= GY_ITERATIONS_SHOWN)
        return true;
    gy_walk early = { 0 }, late = { 0 };
    bool same = fork_walk(&early, w);
    if (same) {
        walk_exactly(&early, l, GY_ITERATIONS_SHOWN - 1);
        same = !early.failed && fork_walk(&late, &early);
    }
    if (same) {
        walk_exactly(&late, l, 1);
        same = !late.failed && same_state(&early, &late, l->first_node, &w->failed);
    }
    w->failed = w->failed || early.failed || late.failed;
    join_walk(&early);
    join_walk(&late);
    return same && !w->failed;
}

/* True if what `next` means holds something in the same rows of both. */
static bool leaves_alike(const gy_walk *a, const gy_walk *b, const gy_loop *l)
{
    bool alike = true;
    for (size_t i = 0; i < l->carry.count; i++) {
        uint32_t next = l->carry.at[i].next;
        gy_access all = { .buffer = next, .last = a->graph->buffers.at[next].rows };
        alike = alike && adds_alike(a, b, &all);
    }
    return alike;
}

/* Carries out a loop in both. If it may end after its first iteration, that must not leave anything else either. */
static bool loop_adds_alike(gy_walk *a, gy_walk *b, uint32_t loop)
{
    const gy_loop *l = &a->graph->loops.at[loop];
    bool alike = gy_walk_inner_settles(a, loop) && gy_walk_inner_settles(b, loop),
         ends_early = l->until != GY_NONE && l->every == 1;
    for (int64_t it = 0; it < l->count && it < GY_ITERATIONS_SHOWN && alike; it++) {
        alike = iteration_adds_alike(a, b, l, it > 0);
        alike = alike && (it > 0 || !ends_early || leaves_alike(a, b, l));
    }
    if (l->count > 0) {
        end_iterations(a, l);
        end_iterations(b, l);
    }
    return alike;
}

/* Carries out all that comes after a loop in both. */
static bool rest_adds_alike(gy_walk *a, gy_walk *b, uint32_t loop)
{
    const gantry_graph *g = a->graph;
    uint32_t node = g->loops.at[loop].last_node;
    bool alike = true;
    for (uint32_t i = loop + 1; i < g->loops.count && alike; i++) {
        const gy_loop *l = &g->loops.at[i];
        alike = nodes_add_alike(a, b, node, l->first_node) && loop_adds_alike(a, b, i);
        node = l->last_node;
    }
    return alike && nodes_add_alike(a, b, node, (uint32_t)g->nodes.count);
}

bool gy_walk_ends_alike(gy_walk *w, uint32_t loop)
{
    const gy_loop *l = &w->graph->loops.at[loop];
    if (l->until == GY_NONE || l->every != 1 || l->count < 2)
        return true;
    gy_walk early = { 0 }, late = { 0 };
    bool failed = false, alike = fork_walk(&early, w) && fork_walk(&late, w);
    if (alike) {
        walk_iterations(&early, l, 1);
        walk_iterations(&late, l, l->count);
        alike = !early.failed && !late.failed && same_names(&early, &late, l->last_node, &failed) &&
                rest_adds_alike(&early, &late, loop);
    }
    w->failed = w->failed || failed || early.failed || late.failed;
    join_walk(&early);
    join_walk(&late);
    return alike && !w->failed;
}
