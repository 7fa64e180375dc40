/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Gathered rows. Regions of one memory that share rows are one instance, so a node that reads rows of all devices has
 * them where it keeps its own, for good if these persist. Where memory is short, that is too much: rows that live in a
 * memory, since something there writes them or they persist there, and what is read beyond them are apart. What is read
 * beyond is gathered into an instance that holds nothing else, own rows too; it can be dropped and gathered again.
 *
 * Constants, and states that nothing writes, would be in every memory that reads them, or in the first one. They are
 * dealt out: each part lives in one of the memories that read it, as evenly as that goes.
 */
#include "scheduler/lower/lowering.h"

#include "base/error.h"
#include <stdlib.h>

#define MOST_COUNTERS (1 << 22) /* parts times memories of one buffer */

/* ---- homes ---- */

typedef struct deal {
    gy_lower *l;
    uint32_t buffer, memories;
    int64_t parts;
    int32_t *readers; /* per part and memory: reads that begin there, less those that ended; then those that go on */
    uint64_t *has;    /* per memory: bytes that live there */
} deal;

static int64_t first_row(const deal *d, int64_t part)
{
    const gy_buffer *b = gy_lower_buffer(d->l, d->buffer);
    return b->parts ? b->part_first[part] : part ? b->rows : 0;
}

/* The part that the row is in. */
static int64_t part_of(const deal *d, int64_t row)
{
    int64_t low = 0, high = d->parts;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (first_row(d, middle) <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void count_readers(deal *d)
{
    for (size_t i = 0; i < d->l->touch.count; i++) {
        const gy_touch *t = &d->l->touch.at[i];
        if (t->value != d->buffer || !t->read || t->first >= t->last)
            continue;
        d->readers[part_of(d, t->first) * d->memories + t->memory]++;
        d->readers[(part_of(d, t->last - 1) + 1) * d->memories + t->memory]--;
    }
    for (int64_t i = d->memories; i < d->parts * d->memories; i++)
        d->readers[i] += d->readers[i - d->memories];
}

/* Of the memories that read the part the one that has least; the first reader where they were not counted. */
static uint32_t choose_home(const deal *d, int64_t part, uint32_t first_reader)
{
    uint32_t best = first_reader;
    for (uint32_t m = 1; m < d->memories && best && d->readers; m++)
        if (d->readers[part * d->memories + m] > 0 && d->has[m] < d->has[best])
            best = m;
    return best;
}

/* Rows [first, last) of one part are only read, and live somewhere. */
static gantry_status deal_rows(deal *d, gy_imap *map, const gy_interval *rows, int64_t part, gantry_error *err)
{
    int64_t end = first_row(d, part + 1), first = first_row(d, part);
    first = rows->first > first ? rows->first : first;
    end = rows->last < end ? rows->last : end;
    uint32_t home = choose_home(d, part, GY_HOME_WHERE(rows->payload));
    size_t index;
    if (first >= end)
        return GANTRY_OK;
    d->has[home] += (uint64_t)gy_buffer_span(gy_lower_buffer(d->l, d->buffer), first, end);
    if (!gy_imap_set(map, first, end, GY_HOME(GY_HOME_READ_FIRST, home)))
        return gy_fail_nomem(err);
    return gy_lower_touch(d->l, d->buffer, home, first, end, &index, err);
}

static gantry_status deal_parts(deal *d, gy_imap *map, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    int64_t rows = gy_lower_buffer(d->l, d->buffer)->rows;
    for (int64_t row = 0; row < rows && !status;) {
        const gy_interval at = map->at[gy_imap_find(map, row)];
        for (int64_t part = part_of(d, at.first); first_row(d, part) < at.last && !status; part++)
            if (GY_HOME_WHAT(at.payload) == GY_HOME_READ_FIRST)
                status = deal_rows(d, map, &at, part, err);
        row = at.last;
    }
    return status;
}

static gantry_status deal_buffer(deal *d, gantry_error *err)
{
    const gy_buffer *b = gy_lower_buffer(d->l, d->buffer);
    bool stays = d->l->p->flow->exit[d->buffer] == d->buffer; /* else its rows are about to be those of another */
    gantry_status status = GANTRY_OK;
    d->parts = b->parts ? b->parts : 1;
    d->readers = NULL;
    if (stays && d->parts <= MOST_COUNTERS / d->memories) {
        d->readers = gy_calloc((size_t)((d->parts + 1) * d->memories), sizeof *d->readers);
        if (!d->readers)
            return gy_fail_nomem(err);
        count_readers(d);
    }
    if (b->rows)
        status = deal_parts(d, d->l->home[d->buffer], err);
    gy_free(d->readers);
    return status;
}

gantry_status gy_lower_deal_homes(gy_lower *l, gantry_error *err)
{
    const gy_plan *p = l->p;
    deal d = { .l = l, .memories = p->machine->memories };
    gantry_status status = GANTRY_OK;
    d.has = gy_arena_calloc(&l->arena, d.memories, sizeof *d.has);
    if (!d.has)
        return gy_fail_nomem(err);
    for (d.buffer = 0; d.buffer < p->graph->buffers.count && !status; d.buffer++)
        if (l->home[d.buffer])
            status = deal_buffer(&d, err);
    return status;
}

/* ---- what is gathered ---- */

static int by_place(const void *a, const void *b)
{
    const gy_touch *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    if (x->memory != y->memory)
        return x->memory < y->memory ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

/* Is the read within what lives in its memory? `live` are disjoint, by place. */
static bool is_within(const gy_touch *live, size_t count, const gy_touch *read)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_place(&live[middle], read) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    const gy_touch *t = low ? &live[low - 1] : NULL;
    return t && t->value == read->value && t->memory == read->memory && read->last <= t->last;
}

/* Those that share rows become one; returns how many are left. */
static size_t join(gy_touch *live, size_t count)
{
    size_t kept = 0;
    qsort(live, count, sizeof *live, by_place);
    for (size_t i = 0; i < count; i++) {
        gy_touch *last = kept ? &live[kept - 1] : NULL;
        if (!last || last->value != live[i].value || last->memory != live[i].memory || last->last <= live[i].first)
            live[kept++] = live[i];
        else if (last->last < live[i].last)
            last->last = live[i].last;
    }
    return kept;
}

gantry_status gy_lower_mark_gathered(gy_lower *l, gantry_error *err)
{
    size_t count = 0;
    gy_touch *live = gy_calloc(l->touch.count + 1, sizeof *live);
    if (!live)
        return gy_fail_nomem(err);
    for (size_t i = 0; i < l->touch.count; i++)
        if (!l->touch.at[i].read)
            live[count++] = l->touch.at[i];
    count = join(live, count);
    for (size_t i = 0; i < l->touch.count; i++)
        l->touch.at[i].gathered = l->touch.at[i].read && !is_within(live, count, &l->touch.at[i]);
    gy_free(live);
    return GANTRY_OK;
}
