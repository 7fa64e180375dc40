/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the nodes that become one: each takes in those before it whose results it reads, as long as there are any. */
#include "graph/fuse/fuse.h"

#include "base/error.h"
#include "graph/build/build_state.h"
#include "graph/nest.h"
#include <stdlib.h>
#include <string.h>

uint64_t gy_fuse_key(const gy_access *region)
{
    int64_t words[3] = { region->buffer, region->first, region->last };
    return gy_hash_bytes(words, sizeof words, 0);
}

/* ---- names of loops ---- */

static bool is_inside(const gantry_graph *g, const gy_node *node, const gy_loop *loop)
{
    uint32_t at = (uint32_t)(node - g->nodes.at);
    return loop->first_node <= at && at < loop->last_node;
}

/* Names of a pair mean two values within the loop that carries it. */
static bool are_apart(const gantry_graph *g, const gy_node *node, uint32_t a, uint32_t b)
{
    for (size_t i = 0; i < gy_loop_count(g); i++) {
        const gy_loop *l = gy_loop_at(g, i);
        for (size_t k = 0; k < l->carry.count && is_inside(g, node, l); k++) {
            gy_carry c = l->carry.at[k];
            if ((c.prev == a && c.next == b) || (c.prev == b && c.next == a))
                return true;
        }
    }
    return false;
}

/* By parts alone: their rows follow the cuts of the buffer, whatever these will be. */
static bool is_by_parts(const gy_access *a)
{
    return a->part >= 0 && !a->before && !a->after && !a->cut_before && !a->cut_after;
}

static bool are_parts_apart(const gy_access *a, const gy_access *b)
{
    return is_by_parts(a) && is_by_parts(b) && (a->part_last <= b->part || b->part_last <= a->part);
}

bool gy_fuse_clash(const gy_fuser *f, const gy_node *node, const gy_access *a, const gy_access *b)
{
    if (a->mode == GANTRY_READ && b->mode == GANTRY_READ)
        return false;
    if (a->buffer == b->buffer && f->graph->buffers.at[a->buffer].split_auto)
        return !are_parts_apart(a, b);
    if (a->buffer == b->buffer)
        return gy_rows_conflict(a, b);
    return f->carried[a->buffer] && f->carried[b->buffer] && !are_apart(f->graph, node, a->buffer, b->buffer);
}

/* ---- what is known of buffers and nodes ---- */

static int compare_regions(const void *one, const void *other)
{
    const gy_access *a = one, *b = other;
    if (a->buffer != b->buffer)
        return a->buffer < b->buffer ? -1 : 1;
    return a->first != b->first ? (a->first < b->first ? -1 : 1) : (a->last > b->last) - (a->last < b->last);
}

/* Buffers with regions that overlap without being equal are kept, and those that the scheduler cuts where some regions
 * do not follow the cuts: one region does not say who reads it. */
static bool keep_overlapping(gy_fuser *f)
{
    const gantry_graph *g = f->graph;
    size_t count = g->access.count;
    gy_access *sorted = gy_alloc((count + 1) * sizeof *sorted);
    if (!sorted)
        return false;
    if (count)
        memcpy(sorted, g->access.at, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_regions);
    for (size_t i = 1; i < count; i++) {
        const gy_access *a = &sorted[i - 1], *b = &sorted[i];
        bool is_equal = a->first == b->first && a->last == b->last;
        if (a->buffer == b->buffer && !is_equal && b->first < a->last)
            f->kept[a->buffer] = 1;
    }
    for (size_t i = 0; i < count; i++) {
        const gy_buffer *b = &g->buffers.at[sorted[i].buffer];
        bool is_all = sorted[i].first == 0 && sorted[i].last == b->rows && sorted[i].part < 0;
        if (b->split_auto && !is_all && !is_by_parts(&sorted[i]))
            f->kept[sorted[i].buffer] = 1;
    }
    gy_free(sorted);
    return true;
}

static void keep_named(gy_fuser *f)
{
    const gantry_graph *g = f->graph;
    for (size_t i = 0; i < g->buffers.count; i++) {
        const gy_buffer *b = &g->buffers.at[i];
        f->kept[i] = b->output || b->cls != GANTRY_TEMP || b->external;
    }
    for (size_t i = 0; i < gy_loop_count(g); i++) {
        const gy_loop *l = gy_loop_at(g, i);
        if (l->until != GY_NONE)
            f->kept[l->until] = 1;
        for (size_t k = 0; k < l->carry.count; k++) {
            gy_carry c = l->carry.at[k];
            f->kept[c.prev] = f->kept[c.next] = f->carried[c.prev] = f->carried[c.next] = 1;
        }
    }
}

bool gy_fuse_is_plain(const gantry_graph *g, uint32_t node)
{
    const gy_node *n = &g->nodes.at[node];
    const gy_node_extra *x = gy_node_extra_of(g, node);
    for (uint32_t i = n->access; i < n->access + n->accesses; i++)
        if (g->access.at[i].is_list || g->access.at[i].first == g->access.at[i].last)
            return false;
    bool is_alone = n->afters == 0 && !n->has_when && x->with.count == 0 && x->apart.count == 0;
    return is_alone && !n->cost_given && !n->scratch_given && x->time.count == 0 && x->priority == 0 && x->share == 1;
}

static void fix_nodes(gy_fuser *f)
{
    const gantry_graph *g = f->graph;
    for (uint32_t i = 0; i < g->nodes.count; i++)
        f->fixed[i] |= !gy_fuse_is_map(g, &g->nodes.at[i]) || !gy_fuse_is_plain(g, i);
    for (size_t i = 0; i < g->after.count; i++)
        f->fixed[g->after.at[i]] = 1;
    for (size_t i = 0; i < g->extra.count; i++) {
        for (size_t k = 0; k < g->extra.at[i].with.count; k++)
            f->fixed[g->extra.at[i].with.at[k]] = 1;
        for (size_t k = 0; k < g->extra.at[i].apart.count; k++)
            f->fixed[g->extra.at[i].apart.at[k]] = 1;
    }
}

static bool count_uses(gy_fuser *f, const gy_node *n, int by)
{
    bool ok = true;
    for (uint32_t i = n->access; i < n->access + n->accesses; i++) {
        uint64_t uses = 0, key = gy_fuse_key(&f->graph->access.at[i]);
        gy_map_get(&f->uses, key, &uses);
        ok = gy_map_put(&f->uses, key, by < 0 ? uses - 1 : uses + 1) && ok;
    }
    return ok;
}

static bool begin(gy_fuser *f)
{
    gantry_graph *g = f->graph;
    f->fixed = gy_calloc(g->nodes.count + 1, 1);
    f->gone = gy_calloc(g->nodes.count + 1, 1);
    f->kept = gy_calloc(g->buffers.count + 1, 1);
    f->carried = gy_calloc(g->buffers.count + 1, 1);
    f->stands_in = gy_calloc(g->nodes.count + 1, 1);
    f->original = gy_calloc(g->nodes.count + 1, sizeof *f->original);
    if (!f->fixed || !f->gone || !f->kept || !f->carried || !f->stands_in || !f->original || !gy_fuse_stand_in(f))
        return false;
    keep_named(f);
    fix_nodes(f);
    bool ok = keep_overlapping(f);
    for (uint32_t i = 0; i < g->nodes.count; i++)
        ok = ok && count_uses(f, &g->nodes.at[i], 1);
    return ok;
}

static void end(gy_fuser *f)
{
    gy_free(f->fixed);
    gy_free(f->gone);
    gy_free(f->kept);
    gy_free(f->carried);
    gy_free(f->stands_in);
    gy_free(f->original);
    gy_map_free(&f->writer);
    gy_map_free(&f->uses);
}

/* ---- order ---- */

/* May the node pass all nodes between a and b? */
static bool can_pass(const gy_fuser *f, uint32_t node, uint32_t a, uint32_t b)
{
    const gantry_graph *g = f->graph;
    const gy_node *n = &g->nodes.at[node];
    for (uint32_t i = a + 1; i < b; i++) {
        const gy_node *other = &g->nodes.at[i];
        for (uint32_t k = other->access; k < other->access + other->accesses && !f->gone[i]; k++)
            for (uint32_t m = n->access; m < n->access + n->accesses; m++)
                if (gy_fuse_clash(f, n, &g->access.at[k], &g->access.at[m]))
                    return false;
    }
    return true;
}

static bool have_one_device(const gantry_graph *g, uint32_t a, uint32_t b)
{
    const gy_node_extra *x = gy_node_extra_of(g, a), *y = gy_node_extra_of(g, b);
    if (!x->on != !y->on || (x->on && strcmp(x->on, y->on) != 0) || !x->on_expr != !y->on_expr)
        return false;
    gy_text one = { 0 }, other = { 0 };
    if (x->on_expr) {
        gy_expr_print(&one, x->on_expr);
        gy_expr_print(&other, y->on_expr);
    }
    bool equal = !x->on_expr || (one.at && other.at && strcmp(one.at, other.at) == 0);
    gy_text_free(&one);
    gy_text_free(&other);
    return equal;
}

/* ---- fusing ---- */

static bool note_writer(gy_fuser *f, uint32_t node)
{
    const gy_node *n = &f->graph->nodes.at[node];
    bool ok = true;
    for (uint32_t i = n->access; i < n->access + n->accesses; i++)
        if (f->graph->access.at[i].mode != GANTRY_READ)
            ok = gy_map_put(&f->writer, gy_fuse_key(&f->graph->access.at[i]), (uint64_t)node + 1) && ok;
    return ok;
}

/* Puts the new node in the place of one of the two. Formulas that do not fit each other after all change nothing. */
static bool replace(gy_fuser *f, uint32_t a, uint32_t b, uint32_t place, const gy_node *made, gantry_error *err)
{
    gantry_graph *g = f->graph;
    gy_node before = g->nodes.at[place], first = g->nodes.at[a], second = g->nodes.at[b];
    gantry_error refused;
    gy_maths_shape model = gy_fuse_model(g, &second), same = model;
    g->nodes.at[place] = *made;
    gantry_status status = gy_build_map(g, place, &refused);
    if (status == GANTRY_E_NOMEM)
        gy_fail_nomem(err);
    if (!status)
        same = gy_fuse_model(g, &g->nodes.at[place]);
    if (status || !gy_maths_same_shape(&model, &same)) {
        g->nodes.at[place] = before;
        return false;
    }
    bool ok = count_uses(f, &first, -1) && count_uses(f, &second, -1) && count_uses(f, &g->nodes.at[place], 1);
    f->gone[place == a ? b : a] = 1;
    f->stands_in[a] = f->stands_in[b] = 0;
    if (!ok)
        gy_fail_nomem(err);
    return ok;
}

/* Makes one of both if that is possible, and sets *at to it. */
static bool fuse_two(gy_fuser *f, uint32_t a, uint32_t b, uint32_t *at, gantry_error *err)
{
    gantry_graph *g = f->graph;
    const gy_node *one = &g->nodes.at[a], *other = &g->nodes.at[b];
    bool alike = one->loop == other->loop && one->inner == other->inner && have_one_device(g, a, b);
    if (a >= b || b - a > GY_FUSE_APART || f->fixed[a] || f->gone[a] || !alike || (f->stands_in[a] && f->stands_in[b]))
        return false;
    bool sinks = can_pass(f, a, a, b), rises = can_pass(f, b, a, b), keeps = false;
    size_t accesses = g->access.count, scalars = g->scalar.count;
    gy_node made;
    if ((!sinks && !rises) || !gy_fuse_pair(f, a, b, &made, &keeps, err) || (keeps && !rises)) {
        g->access.count = accesses;
        g->scalar.count = scalars;
        return false;
    }
    *at = sinks && (!keeps || b == a + 1) ? b : a;
    return replace(f, a, b, *at, &made, err);
}

/* Takes in one node whose result it reads. */
static bool fuse_one(gy_fuser *f, uint32_t *at, gantry_error *err)
{
    const gantry_graph *g = f->graph;
    uint32_t node = *at;
    const gy_node *n = &g->nodes.at[node];
    for (uint32_t i = n->access; i < n->access + n->accesses; i++) {
        const gy_access *a = &g->access.at[i];
        uint64_t writer;
        bool reads = a->mode == GANTRY_READ || a->mode == GANTRY_READWRITE;
        if (reads && gy_map_get(&f->writer, gy_fuse_key(a), &writer) &&
            fuse_two(f, (uint32_t)writer - 1, node, at, err))
            return true;
        if (err->status)
            return false;
    }
    return false;
}

gantry_status gy_graph_fuse(gantry_graph *graph, uint32_t *fused, gantry_error *err)
{
    gy_fuser f = { .graph = graph };
    gantry_error failed = { .status = GANTRY_OK };
    bool ok = begin(&f);
    *fused = 0;
    for (uint32_t i = 0; i < graph->nodes.count && ok; i++) {
        uint32_t at = i;
        while (!f.fixed[at] && fuse_one(&f, &at, &failed))
            ++*fused;
        ok = !failed.status && note_writer(&f, at);
    }
    if (ok)
        gy_fuse_step_back(&f);
    if (ok && *fused)
        ok = gy_fuse_compact(&f);
    end(&f);
    return ok ? GANTRY_OK : gy_fail_nomem(err);
}
