/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One number for everything that a schedule depends on. Each thing is written as words and texts into a buffer with
 * their lengths, so that no two graphs write the same, and chained through xxh64.
 */
#include "base/map.h"
#include "graph/halo.h"
#include <string.h>

typedef struct writer {
    GY_VEC(uint64_t) words;
    uint64_t hash;
    bool ok;
} writer;

static void flush(writer *w)
{
    w->hash = gy_hash_bytes(w->words.at, w->words.count * sizeof *w->words.at, w->hash);
    w->words.count = 0;
}

static void add(writer *w, uint64_t word)
{
    w->ok = gy_vec_push(&w->words, word) && w->ok;
}

static void add_int(writer *w, int64_t value)
{
    add(w, (uint64_t)value);
}

static void add_double(writer *w, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add(w, bits);
}

static void add_text(writer *w, const char *text)
{
    add(w, text ? strlen(text) : UINT64_MAX);
    add(w, text ? gy_hash_bytes(text, strlen(text), 0) : 0);
}

static void add_expr(writer *w, const gy_expr *expr)
{
    gy_text text = { 0 };
    if (expr)
        gy_expr_print(&text, expr);
    w->ok = w->ok && !text.failed;
    add_text(w, expr && !text.failed ? text.at : NULL);
    gy_text_free(&text);
}

static void add_buffer(writer *w, const gy_buffer *b)
{
    add_text(w, b->name);
    add(w, (uint64_t)b->dtype);
    add(w, (uint64_t)b->cls);
    add(w, (uint64_t)b->output | (uint64_t)b->split_auto << 1 | (uint64_t)(b->init.kind != GY_INIT_NONE) << 2);
    add_int(w, b->rank);
    for (int i = 0; i < b->rank; i++)
        add_int(w, b->shape[i]);
    add_int(w, b->parts);
    for (int i = 0; i < 2 || (i < b->rank && b->tiles[0]); i++)
        add_int(w, b->tiles[i]);
    for (int i = 0; i < b->rank && b->halo; i++) {
        add_int(w, b->halo->before[i]);
        add_int(w, b->halo->after[i]);
    }
    if (b->split_auto && (b->turns > 1 || b->grain)) {
        add_int(w, b->turns);
        add_int(w, b->grain);
    }
    if (b->along) {
        add(w, b->along);
        add(w, b->piece);
    }
    if (b->external)
        add_text(w, b->external);
    flush(w);
}

static void add_loop(writer *w, const gy_loop *loop)
{
    add_int(w, loop->count);
    add(w, loop->first_node);
    add(w, loop->last_node);
    add(w, loop->until);
    add_int(w, loop->until == GY_NONE ? 0 : loop->every);
    add(w, loop->carry.count);
    for (size_t i = 0; i < loop->carry.count; i++)
        add(w, (uint64_t)loop->carry.at[i].prev << 32 | loop->carry.at[i].next);
    flush(w);
}

static void add_ids(writer *w, const uint32_t *id, size_t count)
{
    add(w, count);
    for (size_t i = 0; i < count; i++)
        add(w, id[i]);
}

static void add_constant(writer *w, gy_constant value)
{
    add_double(w, value.real);
    if (value.rest != 0)
        add_int(w, value.rest);
}

/* Names by their letters and by the numbers in them, so that gpu2 comes before gpu10; NULL (everywhere else) is last.
 */
static int compare_names(const char *a, const char *b)
{
    if (!a || !b)
        return (a == NULL) - (b == NULL);
    const char *x = a, *y = b;
    while (*x && *y) {
        size_t p = strspn(x, "0123456789"), q = strspn(y, "0123456789");
        if (p && q) {
            size_t zeros = strspn(x, "0"), others = strspn(y, "0"); /* digits that say nothing of the size */
            int order = (p - zeros > q - others) - (p - zeros < q - others);
            order = order ? order : strncmp(x + zeros, y + others, p - zeros);
            if (order)
                return order;
            x += p;
            y += q;
        } else if (*x++ != *y++) {
            return (unsigned char)x[-1] < (unsigned char)y[-1] ? -1 : 1;
        }
    }
    return *x || *y ? (*x != 0) - (*y != 0) : strcmp(a, b);
}

/* The time whose name is the first behind that of `last` (NULL: of all), or NULL. */
static const gy_node_time *time_behind(const gy_node_extra *e, const gy_node_time *last)
{
    const gy_node_time *next = NULL;
    for (size_t i = 0; i < e->time.count; i++) {
        const gy_node_time *t = &e->time.at[i];
        bool comes = !last || compare_names(t->device, last->device) > 0;
        next = comes && (!next || compare_names(t->device, next->device) < 0) ? t : next;
    }
    return next;
}

/* The order in which times were given says nothing. One name is given once. */
static void add_times(writer *w, const gy_node_extra *e)
{
    add(w, e->time.count);
    for (const gy_node_time *t = time_behind(e, NULL); t; t = time_behind(e, t)) {
        add_text(w, t->device);
        add_double(w, t->us);
    }
}

static void add_extra(writer *w, const gy_node_extra *e)
{
    add(w, (uint64_t)e->fill.kind);
    add_constant(w, e->fill.a);
    add_constant(w, e->fill.b);
    add(w, (uint64_t)e->collective << 32 | (uint64_t)e->op);
    add(w, (uint64_t)e->ins << 32 | e->outs);
    add_int(w, e->root);
    add_text(w, e->algorithm);
    add_text(w, e->on);
    add_expr(w, e->on_expr);
    for (size_t i = 0; i < e->rank_on.count; i++) {
        add_text(w, e->rank_on.at[i].on);
        add_expr(w, e->rank_on.at[i].on_expr);
    }
    add_ids(w, e->with.at, e->with.count);
    add_ids(w, e->apart.at, e->apart.count);
    add_times(w, e);
    add_int(w, e->priority);
    add_double(w, e->share);
}

static void add_access(writer *w, const gy_access *a)
{
    add(w, (uint64_t)a->buffer << 32 | a->arg);
    add_int(w, a->first);
    add_int(w, a->last);
    add(w, (uint64_t)(uint32_t)a->before << 32 | (uint32_t)a->after);
    add(w, (uint64_t)a->cut_after << 32 | (uint64_t)a->cut_before << 16 | (uint64_t)a->mode << 8 | a->is_list);
}

static void add_node(writer *w, const gantry_graph *g, uint32_t node)
{
    const gy_node *n = &g->nodes.at[node];
    add_text(w, n->id);
    add(w, n->kind);
    add_text(w, n->kernel == GY_NONE ? NULL : g->kernels.at[n->kernel].manifest->name);
    add_double(w, n->flops);
    add_double(w, n->bytes);
    add_int(w, n->scratch);
    add(w, n->accesses);
    for (uint32_t i = 0; i < n->accesses; i++)
        add_access(w, &g->access.at[n->access + i]);
    add_ids(w, gy_vec_from(&g->after, n->after), n->afters);
    /* A node without attributes of its own is one whose attributes all have their defaults. */
    add_extra(w, gy_node_extra_of(g, node));
    flush(w);
}

uint64_t gy_graph_hash(const gantry_graph *graph, bool *ok)
{
    writer w = { .ok = true };
    add(&w, 1); /* version of this list */
    add(&w, graph->buffers.count);
    add(&w, graph->loops.count);
    add(&w, graph->nodes.count);
    flush(&w);
    for (size_t i = 0; i < graph->buffers.count; i++)
        add_buffer(&w, &graph->buffers.at[i]);
    for (size_t i = 0; i < graph->loops.count; i++)
        add_loop(&w, &graph->loops.at[i]);
    for (size_t i = 0; i < graph->inner.count; i++) {
        add_loop(&w, &graph->inner.at[i]);
        add(&w, (uint64_t)graph->inner.at[i].top << 32 | graph->inner.at[i].parent);
    }
    for (uint32_t i = 0; i < graph->nodes.count; i++)
        add_node(&w, graph, i);
    *ok = w.ok;
    gy_vec_free(&w.words);
    return w.hash;
}
