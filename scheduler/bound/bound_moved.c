/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Bytes that any schedule within these memories moves between them in a start, whatever the placement and the order,
 * and whoever leaves. The sum of what the three sources below ask for, none of which counts a copy of another:
 *
 *   - Inputs come up that a task reads which runs in the memory of a device, and outputs go down that such a task
 *     writes last: each byte once.
 *   - Constants and states that do not persist in memories of devices come up in every start, and go back where they
 *     are changed. Those that persist take room from one start to the next, beside all that any one task uses.
 *   - Rows between two uses are in the memory of a device all the time, or come back from host memory; what a start
 *     made has to be brought there, too. What stays has to fit beside what the tasks between the two uses have in
 *     memory. A chain of tasks, each of which needs the one before it, is in that order in any schedule; and which
 *     tasks of the chain come before and after another task follows from dependencies.
 *
 * All memories of devices count as one. Rows that a node can make again may be dropped for nothing, and so may what a
 * collective or a copy of the graph has written. What persists has no place for other rows, so how much does is chosen
 * for the least sum; the third source alone, with constants and states in it, is another bound.
 */
#include "scheduler/bound/bound.h"
#include "scheduler/bound/paging.h"

#include "base/error.h"
#include "graph/repeat.h"

#define DEPENDENCIES UINT64_C(4000000)  /* of larger graphs only what needs no chain is bounded */
#define PIECES       UINT64_C(20000000) /* looked at, and steps of sweeps */

/* The rows of one piece, as they are now in the order of the list of tasks. */
typedef struct piece {
    uint32_t after;            /* first task of the chain that surely comes after the last use */
    gy_stay longest;           /* of the stays of what the start has made here */
    bool used;                 /* in a device's memory, and nobody can make it again */
    bool made;                 /* by a task of this start */
    bool found;                /* of what is kept: read as the start found it, */
    bool changed, overwritten; /* and then counted in `changed`, `overwritten` of moved */
    uint32_t seen;             /* 1 + the task that was looked at last */
} piece;

typedef struct moved {
    const gy_plan *p;
    gy_row_pieces pieces;
    piece *piece;              /* by the row at its beginning (gy_row_pieces.row) */
    uint8_t *kept, *output;    /* per value: a constant or state as a start finds it; an output at the end */
    uint32_t *index;           /* per task: in the chain, GY_NONE */
    uint32_t *before, *after;  /* per task: 1 + the last task of the chain before it; the first after it */
    int64_t room;              /* of all memories of devices */
    int64_t *use, *kept_use;   /* per task of the chain: bytes of other rows, and of constants and states */
    int64_t most, least;       /* over tasks: most of other rows; the least with one access of what is kept */
    gy_stays all, all_out;     /* between uses; and of each that a start has made the longest */
    gy_stays other, other_out; /* the same without constants and states */
    gy_paging paging;
    int64_t changed;     /* bytes of states that are found and changed */
    int64_t overwritten; /* of those that are found and then overwritten */
    uint64_t looks;
} moved;

/* ---- the chain ---- */

static bool counts(const gy_plan *p, uint32_t task)
{
    uint32_t node = p->flow->task[task].node;
    return p->graph->nodes.at[node].kind != GY_NODE_COPY && gy_bound_is_away(p, node);
}

static const gy_access *access_at(const moved *m, uint32_t task, uint32_t k)
{
    return gy_flow_access_of(m->p->graph, m->p->flow, m->p->flow->task[task].access + k);
}

static uint32_t value_at(const moved *m, uint32_t task, uint32_t k)
{
    return m->p->flow->access[m->p->flow->task[task].access + k].value;
}

static const gy_buffer *buffer_of(const moved *m, uint32_t value)
{
    return gy_value_buffer(m->p->graph, m->p->flow, value);
}

static int64_t bytes_used(const moved *m, uint32_t task)
{
    int64_t bytes = 1;
    for (uint32_t k = 0; k < gy_plan_node(m->p, task)->accesses && counts(m->p, task); k++) {
        const gy_access *a = access_at(m, task, k);
        if (a->first < a->last && !buffer_of(m, value_at(m, task, k))->external)
            bytes += gy_buffer_span(buffer_of(m, value_at(m, task, k)), a->first, a->last);
    }
    return bytes;
}

/* The chain of tasks that use most bytes, one after the other; `weight` and `behind` are room for it. */
static void choose_chain(moved *m, int64_t *weight, uint32_t *behind)
{
    const gy_flow *f = m->p->flow;
    uint32_t end = 0, i;
    for (uint32_t t = 0; t < f->tasks; t++) {
        int64_t most = 0;
        behind[t] = m->index[t] = GY_NONE;
        for (const gy_dep *d = gy_deps_begin(f, t); d < gy_deps_end(f, t); d++)
            if (weight[d->from] > most && gy_plan_holds(m->p, d, t)) {
                most = weight[d->from];
                behind[t] = d->from;
            }
        weight[t] = most + bytes_used(m, t);
        end = weight[t] > weight[end] ? t : end;
    }
    m->paging.length = 0;
    for (i = end; i != GY_NONE; i = behind[i])
        m->paging.length++;
    for (uint32_t n = m->paging.length, t = end; t != GY_NONE; t = behind[t])
        m->index[t] = --n;
}

static void order_tasks(moved *m)
{
    const gy_flow *f = m->p->flow;
    for (uint32_t t = 0; t < f->tasks; t++)
        m->after[t] = m->paging.length;
    for (uint32_t t = 0; t < f->tasks; t++)
        for (const gy_dep *d = gy_deps_begin(f, t); d < gy_deps_end(f, t); d++) {
            uint32_t ended = m->index[d->from] != GY_NONE ? m->index[d->from] + 1 : m->before[d->from];
            if (ended > m->before[t] && gy_plan_holds(m->p, d, t))
                m->before[t] = ended;
        }
    for (uint32_t t = f->tasks; t-- > 0;)
        for (const gy_dep *d = gy_deps_begin(f, t); d < gy_deps_end(f, t); d++) {
            uint32_t begins = m->index[t] != GY_NONE ? m->index[t] : m->after[t];
            if (begins < m->after[d->from] && gy_plan_holds(m->p, d, t))
                m->after[d->from] = begins;
        }
    for (uint32_t t = 0; t < f->tasks; t++)
        if (m->index[t] != GY_NONE)
            m->after[t] = m->index[t] + 1;
}

/* ---- what stays between uses ---- */

/* The rows of the piece are used. *stayed: they had to stay since the last time, or come back. */
static bool stay(moved *m, uint32_t task, uint32_t value, piece *x, int64_t bytes, bool *stayed)
{
    gy_stay s = { .bytes = bytes, .first = x->after, .last = m->before[task] - 1 };
    *stayed = x->used && m->before[task] > 0 && s.first <= s.last;
    if (!*stayed)
        return true;
    if (x->made && !m->output[value] && (!x->longest.bytes || s.last - s.first > x->longest.last - x->longest.first))
        x->longest = s;
    return gy_vec_push(&m->all, s) && (m->kept[value] || gy_vec_push(&m->other, s));
}

static bool read_piece(moved *m, uint32_t task, uint32_t value, piece *x, int64_t bytes)
{
    bool stayed, first = !x->used;
    if (!stay(m, task, value, x, bytes, &stayed))
        return false;
    x->found = x->found || !x->made;
    x->used = x->used || !x->made;
    if (first || stayed || m->index[task] != GY_NONE || x->after > m->after[task])
        x->after = m->after[task];
    return true;
}

/* The next rows are others: so much for those that the start has made. */
static bool end_version(moved *m, uint32_t value, piece *x)
{
    gy_stay s = x->longest;
    x->longest.bytes = 0;
    return !s.bytes || (gy_vec_push(&m->all_out, s) && (m->kept[value] || gy_vec_push(&m->other_out, s)));
}

/* A state that is overwritten needs no room between its last use and that. */
static void change_kept(moved *m, uint32_t value, piece *x, int64_t bytes, bool goes_on)
{
    if (!x->found || x->overwritten)
        return;
    if (x->changed)
        m->changed -= goes_on ? 0 : bytes;
    else if (goes_on && !m->output[value])
        m->changed += bytes;
    m->overwritten += goes_on ? 0 : bytes;
    x->changed = x->changed || (goes_on && !m->output[value]);
    x->overwritten = !goes_on;
}

static bool write_piece(moved *m, uint32_t task, uint32_t value, piece *x, int64_t bytes, gantry_access mode)
{
    bool done = end_version(m, value, x), away = counts(m->p, task), goes_on = away && mode == GANTRY_READWRITE;
    if (m->kept[value])
        change_kept(m, value, x, bytes, goes_on);
    x->made = true;
    x->after = m->after[task];
    x->used = (goes_on || (away && mode == GANTRY_WRITE)) && !gy_node_remakes(m->p->graph, m->p->flow->task[task].node);
    return done;
}

static bool look_at_piece(moved *m, uint32_t task, const gy_access *a, uint32_t value, size_t i)
{
    piece *x = &m->piece[i];
    int64_t bytes = gy_buffer_span(buffer_of(m, value), m->pieces.row[i], m->pieces.row[i + 1]);
    uint32_t l = m->index[task];
    bool away = counts(m->p, task), reads = a->mode == GANTRY_READ || a->mode == GANTRY_READWRITE;
    if (away && l != GY_NONE && x->seen != task + 1)
        *(m->kept[value] ? &m->kept_use[l] : &m->use[l]) += bytes;
    x->seen = task + 1;
    if (away && reads && !read_piece(m, task, value, x, bytes))
        return false;
    return a->mode == GANTRY_READ || write_piece(m, task, value, x, bytes, a->mode);
}

/* The least that the task has in memory: `other` and what is kept, and the smallest access of that. */
static void weigh_task(moved *m, uint32_t task)
{
    int64_t other = 0, least = INT64_MAX;
    for (uint32_t k = 0; k < gy_plan_node(m->p, task)->accesses; k++) {
        const gy_access *a = access_at(m, task, k);
        uint32_t v = value_at(m, task, k);
        int64_t bytes = a->first < a->last ? gy_buffer_span(buffer_of(m, v), a->first, a->last) : 0;
        if (buffer_of(m, v)->external || !bytes)
            continue;
        if (m->kept[v])
            least = bytes < least ? bytes : least;
        else /* accesses overlap where all of them read */
            other = bytes > other ? bytes : other;
    }
    m->most = other > m->most ? other : m->most;
    if (least < INT64_MAX)
        m->least = other + least < m->least ? other + least : m->least;
}

static bool look_at_task(moved *m, uint32_t task)
{
    bool done = true;
    if (counts(m->p, task))
        weigh_task(m, task);
    for (uint32_t k = 0; k < gy_plan_node(m->p, task)->accesses && done; k++) {
        const gy_access *a = access_at(m, task, k);
        uint32_t v = value_at(m, task, k);
        if (a->first >= a->last || buffer_of(m, v)->external)
            continue;
        size_t i = gy_row_pieces_find(&m->pieces, v, a->first), end = gy_row_pieces_find(&m->pieces, v, a->last);
        m->looks += end - i;
        for (; i < end && done; i++)
            done = look_at_piece(m, task, a, v, i);
    }
    return done;
}

static bool look_at_tasks(moved *m)
{
    const gy_flow *f = m->p->flow;
    for (uint32_t t = 0; t < f->tasks && m->looks < PIECES; t++)
        if (!look_at_task(m, t))
            return false;
    for (uint32_t v = 0; v < f->values; v++)
        for (size_t i = m->pieces.first[v]; i < m->pieces.last[v]; i++)
            if (!end_version(m, v, &m->piece[i]))
                return false;
    return gy_stays_sort(&m->all) && gy_stays_sort(&m->all_out) && gy_stays_sort(&m->other) &&
           gy_stays_sort(&m->other_out);
}

/* ---- sums ---- */

/* Room beside what tasks of the chain use, where so much of what is kept persists. */
static void leave_room(moved *m, int64_t persists)
{
    for (uint32_t l = 0; l < m->paging.length; l++)
        m->paging.room[l] = m->room - m->use[l] - (m->kept_use[l] > persists ? m->kept_use[l] : persists);
}

/* The most of what is kept that can persist; -1: what one task uses is too much. */
static int64_t most_persists(const moved *m, int64_t kept)
{
    int64_t room = m->room - m->most;
    if (kept > room) /* then some of it comes in every start, beside what persists */
        kept = m->room - m->least < room ? m->room - m->least : room;
    for (uint32_t l = 0; l < m->paging.length; l++) {
        int64_t left = m->room - m->use[l];
        kept = left < kept ? left : kept;
        kept = left < m->kept_use[l] ? -1 : kept;
    }
    return kept;
}

/* Where so much persists: the second source and the third. Both are convex functions of it, as linear programs are. */
static int64_t sum_with(moved *m, int64_t kept, int64_t persists)
{
    int64_t away = kept - persists, fixed = kept - m->changed, back = away > fixed ? away - fixed : 0;
    leave_room(m, persists);
    return away + back + gy_paging_missed(&m->paging, &m->other) + gy_paging_missed(&m->paging, &m->other_out);
}

static int64_t least_sum(moved *m, int64_t kept, int64_t most)
{
    int64_t low = 0, high = most;
    while (low < high && m->paging.steps < PIECES) {
        int64_t middle = low + (high - low) / 2;
        if (sum_with(m, kept, middle) <= sum_with(m, kept, middle + 1))
            high = middle;
        else
            low = middle + 1;
    }
    return low < high ? kept - most : sum_with(m, kept, low);
}

/* Whatever asks for more than inputs and outputs do. */
static int64_t add_up(moved *m, int64_t kept)
{
    kept -= m->overwritten;
    int64_t most = m->looks < PIECES ? most_persists(m, kept) : -1, sum;
    if (most < 0)
        return 0;
    leave_room(m, 0);
    sum = gy_paging_missed(&m->paging, &m->all) + gy_paging_missed(&m->paging, &m->all_out);
    int64_t other = least_sum(m, kept, most);
    return other > sum ? other : sum;
}

/* ---- begin and end ---- */

static bool note_values(moved *m)
{
    const gy_plan *p = m->p;
    size_t values = (size_t)p->flow->values + 1;
    m->kept = gy_calloc(values, 1);
    m->output = gy_calloc(values, 1);
    for (uint32_t b = 0; m->kept && m->output && b < p->graph->buffers.count; b++) {
        gantry_buffer_class cls = p->graph->buffers.at[b].cls;
        m->kept[p->flow->entry[b]] |= cls == GANTRY_CONST || cls == GANTRY_STATE;
        m->output[p->flow->exit[b]] |= p->graph->buffers.at[b].output;
    }
    return m->kept && m->output;
}

static bool list_pieces(moved *m)
{
    size_t values = (size_t)m->p->flow->values + 1;
    uint8_t *wanted = gy_calloc(values, 1);
    for (size_t v = 0; wanted && v < values; v++)
        wanted[v] = 1;
    bool done = wanted && gy_row_pieces_list(&m->pieces, m->p, wanted);
    gy_free(wanted);
    if (done)
        m->piece = gy_calloc(m->pieces.first[values - 1] + 1, sizeof *m->piece);
    return done && m->piece;
}

static bool make_chain(moved *m)
{
    size_t tasks = (size_t)m->p->flow->tasks + 1;
    int64_t *weight = gy_calloc(tasks, sizeof *weight);
    m->index = gy_calloc(tasks, sizeof *m->index);
    m->before = gy_calloc(tasks, sizeof *m->before);
    m->after = gy_calloc(tasks, sizeof *m->after);
    if (weight && m->index && m->before && m->after) {
        choose_chain(m, weight, m->after);
        order_tasks(m);
    }
    size_t length = (size_t)m->paging.length + 1;
    m->use = gy_calloc(length, sizeof *m->use);
    m->kept_use = gy_calloc(length, sizeof *m->kept_use);
    m->paging.room = gy_calloc(length, sizeof *m->paging.room);
    m->paging.staying = gy_calloc(length, sizeof *m->paging.staying);
    bool done =
        weight && m->index && m->before && m->after && m->use && m->kept_use && m->paging.room && m->paging.staying;
    gy_free(weight);
    return done;
}

static void free_moved(moved *m)
{
    gy_row_pieces_free(&m->pieces);
    gy_free(m->piece);
    gy_free(m->kept);
    gy_free(m->output);
    gy_free(m->index);
    gy_free(m->before);
    gy_free(m->after);
    gy_free(m->use);
    gy_free(m->kept_use);
    gy_free(m->paging.room);
    gy_free(m->paging.staying);
    gy_vec_free(&m->all);
    gy_vec_free(&m->all_out);
    gy_vec_free(&m->other);
    gy_vec_free(&m->other_out);
}

/* Could everything be in memories of devices at once? */
static bool is_ample(const moved *m)
{
    const gy_flow *f = m->p->flow;
    int64_t bytes = 0;
    for (uint32_t v = 0; v < f->values && bytes <= m->room; v++)
        bytes += gy_buffer_span(buffer_of(m, v), 0, buffer_of(m, v)->rows);
    return bytes <= m->room;
}

gantry_status gy_bound_moved(const gy_plan *p, int64_t *bytes, gantry_error *err)
{
    moved m = { .p = p, .least = INT64_MAX };
    gy_bound_bytes ends;
    for (uint32_t i = 1; i < p->machine->memories; i++)
        m.room += p->capacity[i] < (uint64_t)(INT64_MAX - m.room) ? (int64_t)p->capacity[i] : INT64_MAX - m.room;
    GY_TRY(gy_bound_bytes_find(&ends, p, true, err));
    *bytes = ends.ups + ends.downs;
    if (p->flow->tasks && !is_ample(&m) && p->flow->deps < DEPENDENCIES) {
        bool done = note_values(&m) && list_pieces(&m) && make_chain(&m) && look_at_tasks(&m);
        *bytes += done ? add_up(&m, ends.kept) : 0;
        free_moved(&m);
        if (!done) {
            gy_bound_bytes_free(&ends);
            return gy_fail_nomem(err);
        }
    }
    gy_bound_bytes_free(&ends);
    return GANTRY_OK;
}
