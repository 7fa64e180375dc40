/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/search/room.h"

#include "base/align.h"
#include "base/error.h"
#include "scheduler/cost/cost.h"
#include <stdlib.h>
#include <string.h>

#define MOST_MEMORIES 64
#define MOST_USES     64 /* for each task, and as many for the first LEAST_TASKS */
#define LEAST_TASKS   64
#define MIB           INT64_C(1048576)
#define READS         1U
#define WRITES        2U

/* Where an access begins or ends. */
typedef struct mark {
    uint32_t buffer;
    int64_t row;
} mark;

static int by_place(const void *a, const void *b)
{
    const mark *x = a, *y = b;
    if (x->buffer != y->buffer)
        return x->buffer < y->buffer ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

typedef struct touched {
    const gy_access *access;
    uint32_t buffer;
} touched;

static touched touched_by(const gy_plan *p, uint32_t task, uint32_t k)
{
    uint32_t at = p->flow->task[task].access + k;
    return (touched){ gy_flow_access_of(p->graph, p->flow, at), p->flow->value[p->flow->access[at].value].buffer };
}

/* Sorted, each once. */
static size_t find_marks(const gy_plan *p, mark *marks)
{
    size_t count = 0, kept = 0;
    for (uint32_t t = 0; t < p->flow->tasks; t++)
        for (uint32_t k = 0; k < gy_plan_node(p, t)->accesses; k++) {
            touched x = touched_by(p, t, k);
            marks[count++] = (mark){ x.buffer, x.access->first };
            marks[count++] = (mark){ x.buffer, x.access->last };
        }
    if (count)
        qsort(marks, count, sizeof *marks, by_place);
    for (size_t i = 0; i < count; i++)
        if (!kept || by_place(&marks[kept - 1], &marks[i]))
            marks[kept++] = marks[i];
    return kept;
}

static size_t find_mark(const mark *marks, size_t count, mark x)
{
    const mark *found = bsearch(&x, marks, count, sizeof *marks, by_place);
    return found ? (size_t)(found - marks) : 0;
}

/* Piece i is what lies between marks i and i + 1, if these are of one buffer. */
static void add_pieces(gy_room *r, const mark *marks, size_t count)
{
    const gy_plan *p = r->m->plan;
    for (size_t i = 0; i + 1 < count; i++) {
        const gy_buffer *b = &p->graph->buffers.at[marks[i].buffer];
        r->stays[i] = b->cls == GANTRY_CONST || b->cls == GANTRY_STATE;
        if (marks[i + 1].buffer == marks[i].buffer)
            r->size[i] = gy_aligned((uint64_t)gy_buffer_span(b, marks[i].row, marks[i + 1].row));
    }
    r->pieces = (uint32_t)count;
}

/* Lists what each task touches, if `use` is there; returns how much that is, or more than `most`. */
static size_t list_uses(gy_room *r, const mark *marks, size_t count, size_t most)
{
    const gy_plan *p = r->m->plan;
    size_t at = 0;
    for (uint32_t t = 0; t < r->m->tasks && at <= most; t++) {
        r->first[t] = at;
        for (uint32_t k = 0; k < gy_plan_node(p, t)->accesses; k++) {
            touched x = touched_by(p, t, k);
            size_t from = find_mark(marks, count, (mark){ x.buffer, x.access->first });
            size_t to = find_mark(marks, count, (mark){ x.buffer, x.access->last });
            uint32_t what = x.access->mode == GANTRY_READ    ? READS
                            : x.access->mode == GANTRY_WRITE ? WRITES
                                                             : READS | WRITES;
            for (size_t i = from; i < to && r->use; i++)
                r->use[at + (i - from)] = (uint32_t)i * 4 + what;
            at += to - from;
        }
    }
    r->first[r->m->tasks] = at;
    return at;
}

static size_t accesses_of(const gy_plan *p)
{
    size_t count = 0;
    for (uint32_t t = 0; t < p->flow->tasks; t++)
        count += gy_plan_node(p, t)->accesses;
    return count;
}

static void find_times(gy_room *r)
{
    const gy_plan *p = r->m->plan;
    for (uint32_t i = 1; i < r->memories; i++)
        r->mib[i] = gy_ticks_both(gy_transfer_time(p, 0, i, MIB), gy_transfer_time(p, i, 0, MIB));
}

static bool fill(gy_room *r, const mark *marks, size_t count, size_t most)
{
    size_t uses = list_uses(r, marks, count, most);
    if (uses > most || count > UINT32_MAX / 4)
        return true;
    r->use = gy_calloc(uses + 1, sizeof *r->use);
    r->size = gy_calloc(count + 1, sizeof *r->size);
    r->stays = gy_calloc(count + 1, sizeof *r->stays);
    r->needed = gy_calloc(count + 1, sizeof *r->needed);
    r->uses = gy_calloc(count * r->memories + 1, sizeof *r->uses);
    if (!r->use || !r->size || !r->stays || !r->needed || !r->uses)
        return false;
    add_pieces(r, marks, count);
    (void)list_uses(r, marks, count, most);
    find_times(r);
    return true;
}

gantry_status gy_room_make(gy_room *r, const gy_model *m, gantry_error *err)
{
    *r = (gy_room){ .m = m, .memories = m->plan->machine->memories };
    size_t accesses = accesses_of(m->plan), tasks = m->tasks > LEAST_TASKS ? m->tasks : LEAST_TASKS;
    if (r->memories > MOST_MEMORIES || accesses > tasks * MOST_USES)
        return GANTRY_OK;
    mark *marks = gy_calloc(2 * accesses + 1, sizeof *marks);
    r->first = gy_calloc((size_t)m->tasks + 1, sizeof *r->first);
    r->held = gy_calloc(r->memories, sizeof *r->held);
    r->mib = gy_calloc(r->memories, sizeof *r->mib);
    bool done = marks && r->first && r->held && r->mib;
    if (done)
        done = fill(r, marks, find_marks(m->plan, marks), tasks * MOST_USES);
    gy_free(marks);
    return done ? GANTRY_OK : gy_fail_nomem(err);
}

void gy_room_free(gy_room *r)
{
    gy_free(r->first);
    gy_free(r->use);
    gy_free(r->size);
    gy_free(r->stays);
    gy_free(r->needed);
    gy_free(r->uses);
    gy_free(r->held);
    gy_free(r->mib);
    *r = (gy_room){ 0 };
}

static uint32_t memory_of(const gy_room *r, uint32_t device)
{
    return r->m->plan->machine->device[device].memory;
}

/* Uses of each piece in each memory, and what stays there. */
static void begin(gy_room *r, const uint32_t *device)
{
    memset(r->needed, 0, r->pieces * sizeof *r->needed);
    memset(r->uses, 0, (size_t)r->pieces * r->memories * sizeof *r->uses);
    memset(r->held, 0, r->memories * sizeof *r->held);
    for (uint32_t t = 0; t < r->m->tasks; t++)
        for (size_t i = r->first[t]; i < r->first[t + 1]; i++) {
            uint32_t piece = r->use[i] / 4, memory = memory_of(r, device[t]);
            if (r->uses[(size_t)piece * r->memories + memory]++ == 0 && r->stays[piece])
                r->held[memory] += r->size[piece];
        }
}

static void drop(gy_room *r, uint32_t piece, uint64_t memories)
{
    memories &= r->needed[piece];
    r->needed[piece] &= ~memories;
    for (; memories; memories &= memories - 1)
        r->held[__builtin_ctzll(memories)] -= r->size[piece];
}

/* All that the task uses is there while it runs; returns how much that is. */
static uint64_t bring(gy_room *r, uint32_t task, uint32_t memory)
{
    uint64_t bytes = 0, bit = UINT64_C(1) << memory;
    for (size_t i = r->first[task]; i < r->first[task + 1]; i++) {
        uint32_t piece = r->use[i] / 4;
        bytes += r->size[piece];
        if (r->stays[piece] || r->needed[piece] & bit)
            continue;
        r->needed[piece] |= bit;
        r->held[memory] += r->size[piece];
    }
    return bytes;
}

/* Before the task, what it writes is nowhere, or where it changes that, with it alone; and what it is the first to use
 * in its memory is not there. */
static void go_before(gy_room *r, uint32_t task, uint32_t memory)
{
    uint64_t bit = UINT64_C(1) << memory;
    for (size_t i = r->first[task]; i < r->first[task + 1]; i++) {
        uint32_t piece = r->use[i] / 4;
        bool first = --r->uses[(size_t)piece * r->memories + memory] == 0;
        if (r->stays[piece])
            continue;
        if (r->use[i] & WRITES)
            drop(r, piece, r->use[i] & READS ? ~bit : UINT64_MAX);
        if (first)
            drop(r, piece, bit);
    }
}

gy_ticks gy_room_lack(gy_room *r, const uint32_t *order, const uint32_t *device)
{
    __extension__ typedef unsigned __int128 wide;
    gy_ticks sum = 0;
    begin(r, device);
    for (uint32_t k = r->m->tasks; k-- > 0;) {
        uint32_t memory = memory_of(r, device[order[k]]);
        uint64_t bytes = bring(r, order[k], memory), room = r->m->plan->capacity[memory], held = r->held[memory];
        if (held > room) {
            uint64_t missing = (uint64_t)((wide)bytes * (held - room) / held);
            wide time = (wide)missing * (uint64_t)r->mib[memory] / (uint64_t)MIB;
            sum = gy_ticks_both(sum, time < GY_TICKS_MAX ? (gy_ticks)time : GY_TICKS_MAX);
        }
        go_before(r, order[k], memory);
    }
    return sum;
}
