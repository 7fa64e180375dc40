/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments where the graph says no layers (Chen, Xu, Zhang, Guestrin, Training Deep Nets with Sublinear Memory Cost,
 * 2016): the nodes of a piece in their order are cut at places over which little is read, so that what is kept, and
 * what the largest segment makes again, are together as little as can be. For a number of bounds of what a segment may
 * make, the cuts that keep least are found by dynamic programming.
 */
#include "base/error.h"
#include "graph/adjoint/recompute.h"

#include <string.h>

typedef struct line {
    gy_recompute *c;
    const uint32_t *at;
    size_t count;
    int64_t *made;  /* by node: bytes of all that it and those before it write */
    int64_t *over;  /* by node: bytes that it or those before it write, and others behind it read */
    int64_t *least; /* by node: bytes kept at the best cuts up to the one behind it */
    size_t *from;   /* where the segment that ends behind it begins, with these */
    size_t *queue;
    size_t *best; /* the best of all so far: where the segment of a node begins */
} line;

/* Where rows are written last, and read last; `written` is one more, 0: nobody has. */
typedef struct span_of_rows {
    size_t written, read;
} span_of_rows;

static int64_t bytes_of(const gy_recompute *c, const gy_rows_used *r)
{
    return gy_buffer_span(&c->a->graph->buffers.at[r->buffer], r->first, r->last);
}

/* Of the rows of an access, which it gives, too; NULL: they are none that joins segments. */
static span_of_rows *span_of(const line *l, span_of_rows *spans, const gy_access *x, const gy_rows_used **rows)
{
    const gy_rows_used *r = *rows = gy_recompute_rows(l->c, x);
    return r && r->joins ? &spans[r - l->c->rows.at] : NULL;
}

static void look(const line *l, span_of_rows *spans)
{
    const gantry_graph *g = l->c->a->graph;
    for (size_t i = 0; i < l->count; i++) {
        const gy_node *n = &g->nodes.at[l->at[i]];
        for (uint32_t k = n->access; k < n->access + n->accesses; k++) {
            const gy_rows_used *r;
            span_of_rows *s = span_of(l, spans, &g->access.at[k], &r);
            if (s && g->access.at[k].mode != GANTRY_READ)
                s->written = i + 1;
            if (s)
                s->read = i;
        }
    }
}

/* Adds up what is written and what is over; gives `spans` back as it was. */
static void add_up(const line *l, span_of_rows *spans)
{
    const gantry_graph *g = l->c->a->graph;
    for (size_t i = 0; i < l->count; i++) {
        const gy_node *n = &g->nodes.at[l->at[i]];
        for (uint32_t k = n->access; k < n->access + n->accesses; k++) {
            const gy_rows_used *r;
            span_of_rows *s = span_of(l, spans, &g->access.at[k], &r);
            if (!s || !s->written)
                continue;
            int64_t bytes = bytes_of(l->c, r);
            l->made[s->written - 1] += bytes;
            l->over[s->written - 1] += bytes;
            l->over[s->read] -= bytes;
            *s = (span_of_rows){ 0, 0 };
        }
    }
    for (size_t i = 1; i < l->count; i++) {
        l->made[i] += l->made[i - 1];
        l->over[i] += l->over[i - 1];
    }
}

static int64_t made_by(const line *l, size_t from, size_t last)
{
    return l->made[last] - (from ? l->made[from - 1] : 0);
}

/* Bytes that are kept up to a segment that begins there. */
static int64_t kept_before(const line *l, size_t from)
{
    return from ? l->least[from - 1] : 0;
}

/* The cuts that keep least where no segment of several nodes makes more than so many bytes. Returns what is kept and
 * what the largest makes. */
static int64_t cut(const line *l, int64_t most)
{
    size_t begin = 0, end = 0; /* of the queue: beginnings of the segment at hand, those that keep less last out */
    int64_t largest = 0;
    for (size_t i = 0; i < l->count; i++) {
        while (end > begin && kept_before(l, l->queue[end - 1]) >= kept_before(l, i))
            end--;
        l->queue[end++] = i;
        while (l->queue[begin] < i && made_by(l, l->queue[begin], i) > most)
            begin++;
        l->from[i] = l->queue[begin];
        l->least[i] = kept_before(l, l->queue[begin]) + l->over[i];
    }
    for (size_t i = l->count; i > 0; i = l->from[i - 1]) {
        int64_t made = made_by(l, l->from[i - 1], i - 1);
        largest = made > largest ? made : largest;
    }
    return l->least[l->count - 1] + largest;
}

static void choose(const line *l)
{
    enum { BOUNDS = 64 };
    int64_t all = l->made[l->count - 1], least = INT64_MAX;
    for (int64_t i = 1; i <= BOUNDS; i++) {
        int64_t bytes = cut(l, all / i);
        if (bytes >= least)
            continue;
        least = bytes;
        for (size_t end = l->count; end > 0; end = l->from[end - 1])
            for (size_t k = l->from[end - 1]; k < end; k++)
                l->best[k] = l->from[end - 1];
    }
    for (size_t i = 0; i < l->count; i++)
        l->c->label[l->at[i]] = (uint32_t)l->best[i];
}

/* The nodes of one piece and stage. */
static void cut_stage(line *l, size_t first, size_t end, span_of_rows *spans)
{
    l->at = l->c->order.at + first;
    l->count = end - first;
    memset(l->made, 0, l->count * sizeof *l->made);
    memset(l->over, 0, l->count * sizeof *l->over);
    look(l, spans);
    add_up(l, spans);
    choose(l);
}

gantry_status gy_recompute_between(gy_recompute *c)
{
    line l = { .c = c };
    size_t most = c->order.count + 1;
    span_of_rows *spans = gy_calloc(c->rows.count + 1, sizeof *spans);
    l.made = gy_calloc(most, sizeof *l.made);
    l.over = gy_calloc(most, sizeof *l.over);
    l.least = gy_calloc(most, sizeof *l.least);
    l.from = gy_calloc(most, sizeof *l.from);
    l.queue = gy_calloc(most, sizeof *l.queue);
    l.best = gy_calloc(most, sizeof *l.best);
    bool ok = spans && l.made && l.over && l.least && l.from && l.queue && l.best;
    for (size_t first = 0, end; ok && first < c->order.count; first = end) {
        end = gy_recompute_stage_end(c, first);
        cut_stage(&l, first, end, spans);
    }
    gy_free(spans);
    gy_free(l.made);
    gy_free(l.over);
    gy_free(l.least);
    gy_free(l.from);
    gy_free(l.queue);
    gy_free(l.best);
    return ok ? GANTRY_OK : gy_fail_nomem(c->a->err);
}
