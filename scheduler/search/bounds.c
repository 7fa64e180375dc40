/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Bounds in the model. `tail` is the optimistic cost table of PEFT (Arabnejad, Barbosa, IEEE TPDS 25(3), 2014) with
 * transfers between the very two devices instead of a mean: what must still follow a task, however many devices are
 * free. `bound` is the longest of these, and for every pair (a, b) the work of the tasks that cannot begin before a and
 * are followed by at least b, spread over all devices (Fernandez and Bussell, IEEE Trans. Comput. C-22(8), 1973, in the
 * special case of intervals that reach both ends).
 */
#include "scheduler/search/model.h"

#include "base/divisor.h"
#include "base/error.h"
#include <stdlib.h>

#define PAIRS_UP_TO 1024               /* tasks: the work of all pairs (a, b) is looked at */
#define STEPS_UP_TO 4096               /* tasks: a common divisor is looked for */
#define TAILS_UP_TO INT64_C(100000000) /* arcs x devices x devices: transfers are counted in tails */

static gy_ticks fastest(const gy_model *m, uint32_t task)
{
    gy_ticks best = GY_TICKS_MAX;
    if (gy_model_is_team(m, task))
        return 0; /* depends on where its ranks are */
    for (uint32_t d = 0; d < m->devices; d++)
        if (gy_model_time(m, task, d) < best)
            best = gy_model_time(m, task, d);
    return best;
}

/* The least time for which it holds a device that it may run on. */
static gy_ticks least_hold(const gy_model *m, uint32_t task)
{
    gy_ticks best = fastest(m, task);
    for (uint32_t d = 0; d < m->devices && m->shares && best; d++)
        if (gy_model_time(m, task, d) < GY_TICKS_MAX && gy_model_hold(m, task, d) < best)
            best = gy_model_hold(m, task, d);
    return best;
}

/* ---- tails ---- */

/* The least time from the end of a task on device d to the end of everything, by way of one successor. */
static gy_ticks through(const gy_model *m, const gy_arc *a, uint32_t d, bool moves)
{
    gy_ticks best = GY_TICKS_MAX;
    for (uint32_t e = 0; e < m->devices; e++) {
        gy_ticks t = gy_model_time(m, a->task, e);
        if (t >= GY_TICKS_MAX)
            continue;
        t += m->tail[(size_t)a->task * m->devices + e] + (moves ? gy_model_move(m, a->size, d, e) : 0);
        best = t < best ? t : best;
    }
    return best;
}

static void make_tails(gy_model *m)
{
    int64_t pairs = (int64_t)m->devices * m->devices, arcs = (int64_t)m->pred_first[m->tasks];
    bool moves = arcs <= TAILS_UP_TO / pairs, alike = !moves || m->pool;
    for (uint32_t t = m->tasks; t-- > 0;) {
        gy_ticks *tail = &m->tail[(size_t)t * m->devices];
        for (uint32_t d = 0; d < m->devices && !gy_model_is_team(m, t); d++)
            tail[d] = gy_model_fetch(m, t, d);
        for (size_t i = m->succ_first[t]; i < m->succ_first[t + 1]; i++) {
            const gy_arc *a = &m->succ[i];
            bool team = gy_model_is_team(m, t) || gy_model_is_team(m, a->task);
            gy_ticks x = 0;
            for (uint32_t d = 0; d < m->devices && a->size != GY_SIZE_HERE; d++) {
                if (d == 0 || !(alike || team))
                    x = through(m, a, d, moves && !team);
                tail[d] = x > tail[d] ? x : tail[d];
            }
        }
    }
}

static gy_ticks shortest_tail(const gy_model *m, uint32_t task)
{
    gy_ticks best = GY_TICKS_MAX;
    for (uint32_t d = 0; d < m->devices; d++) {
        gy_ticks t = m->tail[(size_t)task * m->devices + d];
        if (t < best && (gy_model_is_team(m, task) || gy_model_time(m, task, d) < GY_TICKS_MAX))
            best = t;
    }
    return best;
}

/* ---- heads ---- */

static gy_ticks first_upload(const gy_model *m, uint32_t task)
{
    gy_ticks best = GY_TICKS_MAX;
    for (uint32_t d = 0; d < m->devices; d++)
        if (gy_model_time(m, task, d) < GY_TICKS_MAX && gy_model_upload(m, task, d) < best)
            best = gy_model_upload(m, task, d);
    return best;
}

static void make_heads(gy_model *m)
{
    for (uint32_t t = 0; t < m->tasks; t++) {
        m->head[t] = first_upload(m, t);
        for (size_t i = m->pred_first[t]; i < m->pred_first[t + 1]; i++) {
            uint32_t from = m->pred[i].task;
            gy_ticks end = m->pred[i].size == GY_SIZE_HERE ? 0 : m->head[from] + fastest(m, from);
            m->head[t] = end > m->head[t] ? end : m->head[t];
        }
    }
}

/* ---- the bound ---- */

/* Head, what it takes and tail of one task, on the device that is best for it. */
static gy_ticks longest_through(const gy_model *m, uint32_t task)
{
    gy_ticks best = GY_TICKS_MAX;
    for (uint32_t d = 0; d < m->devices; d++) {
        gy_ticks begin = gy_model_upload(m, task, d), time = gy_model_time(m, task, d);
        if (time >= GY_TICKS_MAX)
            continue;
        begin = begin > m->head[task] ? begin : m->head[task];
        gy_ticks end = begin + time + m->tail[(size_t)task * m->devices + d];
        best = end < best ? end : best;
    }
    return best;
}

typedef struct piece {
    gy_ticks head, work, tail;
} piece;

static int by_tail(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    return x->tail < y->tail ? 1 : x->tail > y->tail ? -1 : 0;
}

static gy_ticks spread(gy_ticks work, uint32_t devices)
{
    return work / devices + (work % devices != 0);
}

static gy_ticks work_of_pairs(const piece *at, size_t count, uint32_t devices)
{
    gy_ticks best = 0;
    for (size_t a = 0; a < count; a++) {
        gy_ticks work = 0;
        for (size_t i = 0; i < count; i++) {
            if (at[i].head < at[a].head)
                continue;
            work += at[i].work;
            gy_ticks bound = at[a].head + spread(work, devices) + at[i].tail;
            best = bound > best ? bound : best;
        }
    }
    return best;
}

static uint32_t useful_devices(const gy_model *m)
{
    uint32_t count = 0;
    for (uint32_t d = 0; d < m->devices; d++) {
        bool useful = false;
        for (uint32_t t = 0; t < m->tasks && !useful; t++)
            useful = gy_model_time(m, t, d) < GY_TICKS_MAX;
        count += useful;
    }
    return count ? count : 1;
}

static gantry_status bound_by_work(gy_model *m, gantry_error *err)
{
    uint32_t devices = useful_devices(m), count = 0;
    gy_ticks work = 0;
    piece *pieces = gy_calloc((size_t)m->tasks + 1, sizeof *pieces);
    if (!pieces)
        return gy_fail_nomem(err);
    for (uint32_t t = 0; t < m->tasks; t++) {
        piece p = { m->head[t], least_hold(m, t), shortest_tail(m, t) };
        if (p.work)
            pieces[count++] = p;
        work += p.work;
    }
    gy_ticks bound = spread(work, devices);
    if (count <= PAIRS_UP_TO) {
        qsort(pieces, count, sizeof *pieces, by_tail);
        gy_ticks pairs = work_of_pairs(pieces, count, devices);
        bound = pairs > bound ? pairs : bound;
    }
    m->bound = bound > m->bound ? bound : m->bound;
    m->mean = count ? work / count : 0;
    gy_free(pieces);
    return GANTRY_OK;
}

/* ---- the step ---- */

static void find_step(gy_model *m)
{
    gy_ticks step = 0;
    m->step = 1;
    if (m->tasks > STEPS_UP_TO || m->team || m->roads || m->shares) /* collectives and waiting take any time */
        return;
    for (uint32_t t = 0; t < m->tasks; t++)
        for (uint32_t d = 0; d < m->devices; d++)
            if (gy_model_time(m, t, d) < GY_TICKS_MAX)
                step = gy_common_divisor(step, gy_model_time(m, t, d));
    for (size_t i = 0; i < (size_t)m->sizes * m->kinds; i++)
        step = gy_common_divisor(step, m->move[i]);
    m->step = step ? step : 1;
}

/* By whatever route. */
static gy_ticks longest_move(const gy_model *m, uint32_t size)
{
    gy_ticks longest = 0;
    for (uint32_t k = 0; k < m->kinds; k++)
        if (m->move[(size_t)size * m->kinds + k] > longest)
            longest = m->move[(size_t)size * m->kinds + k];
    return longest;
}

/* Could any order of all of it, one thing after the other, take longer than we count? */
static bool is_overlong(const gy_model *m)
{
    gy_ticks sum = 0;
    for (uint32_t t = 0; t < m->tasks && sum < GY_TICKS_MAX; t++) {
        gy_ticks longest = 0;
        for (uint32_t d = 0; d < m->devices; d++)
            if (gy_model_time(m, t, d) < GY_TICKS_MAX && gy_model_time(m, t, d) > longest)
                longest = gy_model_time(m, t, d);
        sum = gy_ticks_both(sum, longest);
        sum = gy_ticks_both(sum, longest_move(m, m->upload[t]));
        sum = gy_ticks_both(sum, longest_move(m, m->fetch[t]));
        for (size_t i = m->pred_first[t]; i < m->pred_first[t + 1] && sum < GY_TICKS_MAX; i++)
            sum = gy_ticks_both(sum, longest_move(m, m->pred[i].size));
    }
    return sum >= GY_TICKS_MAX;
}

gantry_status gy_model_bounds(gy_model *m, gantry_error *err)
{
    m->overlong = is_overlong(m);
    if (m->overlong)
        return GANTRY_OK;
    m->tail = gy_calloc((size_t)m->tasks * m->devices + 1, sizeof *m->tail);
    m->head = gy_calloc((size_t)m->tasks + 1, sizeof *m->head);
    if (!m->tail || !m->head)
        return gy_fail_nomem(err);
    make_tails(m);
    make_heads(m);
    find_step(m);
    for (uint32_t t = 0; t < m->tasks; t++) {
        gy_ticks end = gy_model_is_team(m, t) ? 0 : longest_through(m, t);
        m->bound = end > m->bound ? end : m->bound;
    }
    gantry_status status = bound_by_work(m, err);
    m->bound = gy_model_round(m, m->bound);
    return status;
}
