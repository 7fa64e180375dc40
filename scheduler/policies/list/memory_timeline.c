/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policies/list/memory_timeline.h"

#include "base/align.h"
#include "scheduler/policies/list/profile.h"
#include <stdlib.h>

typedef struct cell {
    uint64_t bytes;
    uint32_t left; /* accesses of tasks that are not placed yet */
    bool persists;
    gy_ticks end; /* of the last task that touches it, so far */
} cell;

struct gy_memory_timeline {
    const gy_plan *p;
    uint64_t *capacity; /* per memory */
    gy_profile *usage;  /* per memory: bytes over time */
    int64_t *bound;     /* rows at which cells begin, by value; a value's last bound ends its last cell */
    size_t *first;      /* per value: its first bound; cell i begins at bound i */
    cell *cell;
    uint8_t *here; /* per cell and memory */
};

typedef struct mark {
    uint32_t value;
    int64_t row;
} mark;

static int by_row(const void *a, const void *b)
{
    const mark *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static const gy_access *access_of(const gy_memory_timeline *k, size_t i)
{
    return gy_flow_access_of(k->p->graph, k->p->flow, i);
}

/* ---- cells ---- */

static mark *list_marks(const gy_memory_timeline *k)
{
    const gy_flow *f = k->p->flow;
    mark *m = gy_calloc(2 * f->accesses + 1, sizeof *m);
    for (size_t i = 0; m && i < f->accesses; i++) {
        const gy_access *a = access_of(k, i);
        m[2 * i] = (mark){ f->access[i].value, a->first };
        m[2 * i + 1] = (mark){ f->access[i].value, a->last };
    }
    if (m && f->accesses)
        qsort(m, 2 * f->accesses, sizeof *m, by_row);
    return m;
}

static void cut_cells(gy_memory_timeline *k, const mark *m)
{
    const gy_flow *f = k->p->flow;
    size_t bounds = 0, i = 0;
    for (uint32_t v = 0; v < f->values; v++) {
        const gy_buffer *b = gy_value_buffer(k->p->graph, f, v);
        k->first[v] = bounds;
        for (; i < 2 * f->accesses && m[i].value == v; i++) {
            if (bounds > k->first[v] && k->bound[bounds - 1] == m[i].row)
                continue;
            if (bounds > k->first[v]) {
                uint64_t bytes = (uint64_t)gy_buffer_span(b, k->bound[bounds - 1], m[i].row);
                k->cell[bounds - 1].bytes = gy_aligned(bytes);
                k->cell[bounds - 1].persists = b->cls == GANTRY_STATE || b->cls == GANTRY_CONST;
            }
            k->bound[bounds++] = m[i].row;
        }
    }
    k->first[f->values] = bounds;
}

/* The cell of a value that begins at the row. */
static size_t find_cell(const gy_memory_timeline *k, uint32_t value, int64_t row)
{
    size_t low = k->first[value], high = k->first[value + 1];
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (k->bound[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void count_touches(gy_memory_timeline *k)
{
    const gy_flow *f = k->p->flow;
    for (size_t i = 0; i < f->accesses; i++) {
        const gy_access *a = access_of(k, i);
        for (size_t c = find_cell(k, f->access[i].value, a->first); a->first < a->last && k->bound[c] < a->last; c++)
            k->cell[c].left++;
    }
}

/* ---- begin and end ---- */

void gy_memory_timeline_free(gy_memory_timeline *k)
{
    if (!k)
        return;
    for (uint32_t m = 0; k->usage && m < k->p->machine->memories; m++)
        gy_profile_free(&k->usage[m]);
    gy_free(k->usage);
    gy_free(k->capacity);
    gy_free(k->bound);
    gy_free(k->first);
    gy_free(k->cell);
    gy_free(k->here);
    gy_free(k);
}

/* The scratch of the node that asks most counts everywhere: where it will run is not known yet. */
static bool make_usage(gy_memory_timeline *k)
{
    const gy_plan *p = k->p;
    uint32_t memories = p->machine->memories;
    uint64_t scratch = 0;
    for (uint32_t n = 0; n < p->graph->nodes.count; n++)
        if (gy_plan_node_scratch(p, n) > scratch)
            scratch = gy_plan_node_scratch(p, n);
    scratch = gy_aligned(scratch);
    k->capacity = gy_calloc(memories, sizeof *k->capacity);
    k->usage = gy_calloc(memories, sizeof *k->usage);
    for (uint32_t m = 0; m < memories; m++) {
        if (!k->capacity || !k->usage || !gy_profile_init(&k->usage[m]))
            return false;
        k->capacity[m] = p->capacity[m] > scratch ? p->capacity[m] - scratch : 0;
    }
    return true;
}

gy_memory_timeline *gy_memory_timeline_new(const gy_plan *p)
{
    size_t marks = 2 * p->flow->accesses + 1;
    gy_memory_timeline *k = gy_calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->p = p;
    mark *m = list_marks(k);
    k->bound = gy_calloc(marks, sizeof *k->bound);
    k->first = gy_calloc((size_t)p->flow->values + 1, sizeof *k->first);
    k->cell = gy_calloc(marks, sizeof *k->cell);
    if (!m || !k->bound || !k->first || !k->cell || !make_usage(k))
        goto free_book;
    cut_cells(k, m);
    count_touches(k);
    k->here = gy_calloc(k->first[p->flow->values] + 1, p->machine->memories);
    if (!k->here)
        goto free_book;
    gy_free(m);
    return k;
free_book:
    gy_free(m);
    gy_memory_timeline_free(k);
    return NULL;
}

/* ---- questions and entries ---- */

static uint8_t *here(const gy_memory_timeline *k, size_t c, uint32_t memory)
{
    return &k->here[c * k->p->machine->memories + memory];
}

uint64_t gy_memory_timeline_excess(const gy_memory_timeline *k, uint32_t task, uint32_t memory, gy_ticks start)
{
    const gy_flow *f = k->p->flow;
    uint64_t bytes = 0;
    bool persists = false;
    for (uint32_t n = 0; n < gy_plan_node(k->p, task)->accesses; n++) {
        size_t i = f->task[task].access + n;
        const gy_access *a = access_of(k, i);
        for (size_t c = find_cell(k, f->access[i].value, a->first); a->first < a->last && k->bound[c] < a->last; c++) {
            if (*here(k, c, memory))
                continue;
            bytes += k->cell[c].bytes;
            persists = persists || k->cell[c].persists;
        }
    }
    uint64_t used = (uint64_t)gy_profile_most(&k->usage[memory], persists ? 0 : start);
    return used + bytes > k->capacity[memory] ? used + bytes - k->capacity[memory] : 0;
}

static bool take_cell(gy_memory_timeline *k, size_t c, uint32_t memory, uint32_t task)
{
    cell *l = &k->cell[c];
    if (!*here(k, c, memory)) {
        *here(k, c, memory) = 1;
        if (!gy_profile_add(&k->usage[memory], l->persists ? 0 : k->p->placed.start[task], (int64_t)l->bytes))
            return false;
    }
    l->end = k->p->placed.finish[task] > l->end ? k->p->placed.finish[task] : l->end;
    if (--l->left || l->persists)
        return true;
    for (uint32_t m = 0; m < k->p->machine->memories; m++)
        if (*here(k, c, m) && !gy_profile_add(&k->usage[m], l->end, -(int64_t)l->bytes))
            return false;
    return true;
}

bool gy_memory_timeline_take(gy_memory_timeline *k, uint32_t task)
{
    const gy_plan *p = k->p;
    const gy_team *team = gy_plan_team(p, task);
    for (uint32_t n = 0; n < gy_plan_node(p, task)->accesses; n++) {
        size_t i = p->flow->task[task].access + n;
        const gy_access *a = access_of(k, i);
        uint32_t device =
            team ? team->device[gy_access_rank(gy_plan_extra(p, p->flow->task[task].node), n)] : p->placed.device[task];
        for (size_t c = find_cell(k, p->flow->access[i].value, a->first); a->first < a->last && k->bound[c] < a->last;
             c++)
            if (!take_cell(k, c, p->machine->device[device].memory, task))
                return false;
    }
    return true;
}
