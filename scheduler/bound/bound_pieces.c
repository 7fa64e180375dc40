/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Pieces: rows of a value between two ends of accesses. No copy moves less than a piece, since what is brought, fetched
 * or spilled is cut only where accesses begin and end. A copy that is not above the first time of its route takes no
 * rate from anybody (sim/sim.h), so a piece of that size may come for its latency alone.
 */
#include "scheduler/bound/bound.h"

#include "base/error.h"
#include <stdlib.h>

/* The most bytes that the route moves in its first time. */
static int64_t light_of(const gy_route *r)
{
    uint32_t i = 0;
    while (i + 1 < r->points && r->point[i + 1].time == r->point[0].time)
        i++;
    return r->point[i].bytes;
}

static int64_t lightest(const gantry_machine *m)
{
    int64_t most = 0;
    for (size_t i = 0; i < (size_t)m->memories * m->memories && m->contention; i++) {
        const gy_route *r = &m->route[i];
        int64_t light = r->kind == GY_ROUTE_DIRECT && r->from != r->to ? light_of(r) : 0;
        most = light > most ? light : most;
    }
    return most;
}

static int by_row(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void count_ends(gy_row_pieces *x, const uint8_t *wanted)
{
    const gy_flow *f = x->p->flow;
    for (size_t i = 0; i < f->accesses; i++)
        x->first[f->access[i].value + 1] += wanted[f->access[i].value] ? 2 : 0;
    for (uint32_t v = 0; v < f->values; v++)
        x->first[v + 1] += x->first[v] + (wanted[v] ? 2 : 0);
}

static void list_ends(gy_row_pieces *x, const uint8_t *wanted)
{
    const gy_flow *f = x->p->flow;
    size_t *end = x->last;
    for (uint32_t v = 0; v < f->values; v++) {
        end[v] = x->first[v];
        if (!wanted[v])
            continue;
        x->row[end[v]++] = 0;
        x->row[end[v]++] = gy_value_buffer(x->p->graph, f, v)->rows;
    }
    for (size_t i = 0; i < f->accesses; i++) {
        uint32_t v = f->access[i].value;
        const gy_access *a = gy_flow_access_of(x->p->graph, f, i);
        if (!wanted[v] || a->first >= a->last)
            continue;
        x->row[end[v]++] = a->first;
        x->row[end[v]++] = a->last;
    }
}

/* Each end once, with the bytes of the heavy pieces before it. */
static void add_up(gy_row_pieces *x, uint32_t value)
{
    const gy_buffer *b = gy_value_buffer(x->p->graph, x->p->flow, value);
    size_t first = x->first[value], kept = first;
    if (first == x->last[value])
        return;
    qsort(x->row + first, x->last[value] - first, sizeof *x->row, by_row);
    for (size_t i = first + 1; i < x->last[value]; i++) {
        if (x->row[i] == x->row[kept])
            continue;
        int64_t bytes = gy_buffer_span(b, x->row[kept], x->row[i]);
        x->heavy[kept + 1] = x->heavy[kept] + (bytes > x->light ? bytes : 0);
        x->row[++kept] = x->row[i];
    }
    x->last[value] = kept + 1;
}

static bool list_pieces(gy_row_pieces *x, const uint8_t *wanted)
{
    const gy_plan *p = x->p;
    size_t values = (size_t)p->flow->values + 1;
    x->first = gy_calloc(values, sizeof *x->first);
    x->last = gy_calloc(values, sizeof *x->last);
    if (!x->first || !x->last)
        return false;
    count_ends(x, wanted);
    x->row = gy_calloc(x->first[values - 1] + 1, sizeof *x->row);
    x->heavy = gy_calloc(x->first[values - 1] + 1, sizeof *x->heavy);
    if (!x->row || !x->heavy)
        return false;
    list_ends(x, wanted);
    for (uint32_t v = 0; v < p->flow->values; v++)
        add_up(x, v);
    return true;
}

bool gy_row_pieces_make(gy_row_pieces *x, const gy_plan *p, const uint8_t *wanted)
{
    *x = (gy_row_pieces){ .p = p, .light = lightest(p->machine) };
    return !x->light || list_pieces(x, wanted);
}

bool gy_row_pieces_list(gy_row_pieces *x, const gy_plan *p, const uint8_t *wanted)
{
    *x = (gy_row_pieces){ .p = p };
    return list_pieces(x, wanted);
}

void gy_row_pieces_free(gy_row_pieces *x)
{
    gy_free(x->first);
    gy_free(x->last);
    gy_free(x->row);
    gy_free(x->heavy);
}

size_t gy_row_pieces_find(const gy_row_pieces *x, uint32_t value, int64_t row)
{
    size_t low = x->first[value], high = x->last[value];
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (x->row[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

int64_t gy_row_pieces_heavy(const gy_row_pieces *x, uint32_t value, int64_t first, int64_t last)
{
    if (!x->light)
        return gy_buffer_span(gy_value_buffer(x->p->graph, x->p->flow, value), first, last);
    return x->heavy[gy_row_pieces_find(x, value, last)] - x->heavy[gy_row_pieces_find(x, value, first)];
}
