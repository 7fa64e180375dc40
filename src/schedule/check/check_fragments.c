/* SPDX-License-Identifier: Apache-2.0 */
/* Contents on their way from instance to instance: what copies move and collectives put together. */
#include "base/error.h"
#include "schedule/check/check.h"
#include <stdlib.h>

static gantry_status push(gy_check *k, gy_fragments *to, gy_fragment fragment)
{
    return gy_vec_push(&to->at, fragment) ? GANTRY_OK : gy_fail_nomem(k->err);
}

/* Sums that a made-up file could drive out of range: they are only ever compared. */
static int64_t wrap(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

gantry_status gy_fragments_read(gy_check *k, const gy_use *u, gy_fragments *to)
{
    const gy_instance *in = gy_use_instance(k, u);
    const gy_imap *map = gy_bytes_space(&k->bytes, k->s, in);
    int64_t first, last, base = gy_bytes_base(k, in);
    gy_use_span(k, u, &first, &last);
    if (first == last)
        return GANTRY_OK;
    if (!map) {
        gy_content_id content = gy_content_entry(&k->contents, k->s->values.at[in->value].buffer);
        gy_fragment fragment = { first - base, last - base, 0, content, k->geometry[in->value] };
        return push(k, to, fragment);
    }
    gantry_status status = GANTRY_OK;
    uint32_t i = gy_imap_find(map, first);
    for (; !status && i != GY_IMAP_NONE && map->at[i].first < last; i = gy_imap_next(map, i)) {
        const gy_cell *cell = &k->bytes.cell.at[map->at[i].payload];
        int64_t from = map->at[i].first > first ? map->at[i].first : first;
        int64_t end = map->at[i].last < last ? map->at[i].last : last;
        gy_fragment fragment = { from - base, end - base, wrap(cell->base, -base), cell->content, cell->geometry };
        status = push(k, to, fragment);
    }
    return status;
}

/* Index of the first fragment that ends behind `byte`. */
static size_t find_piece(const gy_fragments *p, int64_t byte)
{
    size_t low = 0, high = p->at.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->at.at[middle].last > byte)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

gantry_status gy_fragments_write(gy_check *k, const gy_use *u, const gy_fragments *from)
{
    const gy_instance *in = gy_use_instance(k, u);
    gy_imap *map = gy_bytes_space(&k->bytes, k->s, in);
    int64_t first, last, base = gy_bytes_base(k, in);
    gy_use_span(k, u, &first, &last);
    gantry_status status = GANTRY_OK;
    for (size_t i = find_piece(from, first - base); !status && i < from->at.count; i++) {
        const gy_fragment *p = &from->at.at[i];
        int64_t begin = p->first + base > first ? p->first + base : first;
        int64_t end = p->last + base < last ? p->last + base : last;
        if (begin >= end)
            break;
        gy_cell what = { .content = p->content, .geometry = p->geometry, .base = wrap(base, p->shift) };
        status = gy_bytes_put(k, map, begin, end, what);
    }
    return status;
}

static int by_first(const void *a, const void *b)
{
    const gy_fragment *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Combines `more` into `sum`, the content of an elementary run of bytes, whose geometry says that it is not empty. */
static void fold(gy_check *k, gy_fragment *sum, bool isfirst, const gy_fragment *more, gantry_dtype dtype,
                 gantry_access op)
{
    if (isfirst) {
        sum->content = more->content;
        sum->geometry = more->geometry;
        sum->shift = more->shift;
        return;
    }
    bool anywhere = sum->geometry == GY_GEOMETRY_ANY || more->geometry == GY_GEOMETRY_ANY;
    bool aligned = anywhere || (sum->geometry == more->geometry && sum->shift == more->shift);
    sum->content =
        aligned && op ? gy_content_combine(&k->contents, sum->content, more->content, dtype, op) : GY_UNKNOWN;
    if (sum->geometry == GY_GEOMETRY_ANY) {
        sum->geometry = more->geometry;
        sum->shift = more->shift;
    }
}

/* The sweep's state: fragments that reach beyond the point it has come to. */
typedef struct active {
    GY_VEC(size_t) at;
} active;

/* Where the next fragment begins or an active one ends. */
static int64_t next_bound(const gy_fragments *in, const active *now, size_t next)
{
    int64_t bound = next < in->at.count ? in->at.at[next].first : INT64_MAX;
    for (size_t i = 0; i < now->at.count; i++) {
        int64_t last = in->at.at[now->at.at[i]].last;
        bound = last < bound ? last : bound;
    }
    return bound;
}

static void drop_ended(const gy_fragments *in, active *now, int64_t at)
{
    size_t kept = 0;
    for (size_t i = 0; i < now->at.count; i++)
        if (in->at.at[now->at.at[i]].last > at)
            now->at.at[kept++] = now->at.at[i];
    now->at.count = kept;
}

static gantry_status sweep(gy_check *k, const gy_fragments *in, active *now, gy_fragments *out, gantry_dtype dtype,
                           gantry_access op)
{
    size_t next = 0;
    gantry_status status = GANTRY_OK;
    while (!status && (next < in->at.count || now->at.count > 0)) {
        int64_t at = now->at.count ? out->at.at[out->at.count - 1].last : in->at.at[next].first;
        while (next < in->at.count && in->at.at[next].first <= at) {
            if (!gy_vec_push(&now->at, next))
                return gy_fail_nomem(k->err);
            next++;
        }
        gy_fragment fragment = { .first = at, .last = next_bound(in, now, next) };
        for (size_t i = 0; i < now->at.count; i++)
            fold(k, &fragment, i == 0, &in->at.at[now->at.at[i]], dtype, op);
        status = push(k, out, fragment);
        drop_ended(in, now, fragment.last);
    }
    return status;
}

gantry_status gy_fragments_combine(gy_check *k, gy_fragments *fragments, gantry_dtype dtype, gantry_access op)
{
    gy_fragments out = { 0 };
    active now = { 0 };
    if (fragments->at.count > 1)
        qsort(fragments->at.at, fragments->at.count, sizeof *fragments->at.at, by_first);
    gantry_status status = sweep(k, fragments, &now, &out, dtype, op);
    gy_vec_free(&now.at);
    gy_vec_free(&fragments->at);
    *fragments = out;
    return status;
}
