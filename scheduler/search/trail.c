/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/search/trail.h"

#include "base/error.h"
#include "scheduler/search/decode.h"
#include <string.h>

/* Words of a state that are noted in about the time in which a task is decoded. */
#define A_TASK 64

enum { MAKESPAN, WORST, END, FIRST }; /* words of a state; behind them what devices and links were at */

static size_t resources_of(const gy_model *m)
{
    return m->roads ? (size_t)m->plan->machine->resources + m->roads->engines : 0;
}

/* States that are noted on the way, and tasks that are decoded again from the last one, take about as long together. */
static uint32_t stride_of(uint32_t tasks, size_t words)
{
    uint64_t stride = 1, wanted = tasks * (1 + (uint64_t)words / A_TASK);
    while (stride * stride < wanted && stride <= tasks)
        stride++;
    return (uint32_t)stride;
}

gantry_status gy_trail_init(gy_trail *t, const gy_model *m, gantry_error *err)
{
    size_t n = (size_t)m->tasks + 1;
    size_t words = FIRST + 2 * (size_t)m->devices + resources_of(m);
    *t = (gy_trail){ .words = words, .stride = stride_of(m->tasks, words), .end = GY_NONE };
    size_t places = m->tasks / t->stride + 1;
    t->state = gy_calloc(2 * places * t->words, sizeof *t->state);
    t->kept = gy_calloc(places, sizeof *t->kept);
    t->finish = gy_calloc(n, sizeof *t->finish);
    t->before = gy_calloc(n, sizeof *t->before);
    t->device = m->like ? gy_calloc(n, sizeof *t->device) : NULL;
    t->arrived = gy_calloc((m->roads ? m->pred_first[m->tasks] : 0) + 1, sizeof *t->arrived);
    t->uploaded = gy_calloc((m->roads ? m->roads->upload_first[m->tasks] : 0) + 1, sizeof *t->uploaded);
    bool done = t->state && t->kept && t->finish && t->before && t->arrived && t->uploaded;
    return done && (t->device || !m->like) ? GANTRY_OK : gy_fail_nomem(err);
}

void gy_trail_free(gy_trail *t)
{
    gy_free(t->state);
    gy_free(t->kept);
    gy_free(t->finish);
    gy_free(t->before);
    gy_free(t->device);
    gy_free(t->arrived);
    gy_free(t->uploaded);
    *t = (gy_trail){ 0 };
}

/* ---- states ---- */

void gy_trail_note(gy_decode *d, uint32_t position)
{
    const gy_trail *t = &d->trail;
    const gy_model *m = d->m;
    if (position % t->stride)
        return;
    size_t place = position / t->stride;
    gy_ticks *w = &t->state[(2 * place + !t->kept[place]) * t->words];
    w[MAKESPAN] = d->makespan;
    w[WORST] = d->worst;
    w[END] = d->end;
    w += FIRST;
    for (uint32_t e = 0; e < m->devices; e++) {
        *w++ = d->free_at[e];
        *w++ = d->latest[e];
    }
    if (!m->roads)
        return;
    memcpy(w, d->traffic.resource, m->plan->machine->resources * sizeof *w);
    memcpy(w + m->plan->machine->resources, d->traffic.engine, m->roads->engines * sizeof *w);
}

uint32_t gy_trail_return(gy_decode *d, uint32_t position)
{
    const gy_trail *t = &d->trail;
    const gy_model *m = d->m;
    size_t place = position / t->stride;
    const gy_ticks *w = &t->state[(2 * place + t->kept[place]) * t->words];
    d->makespan = w[MAKESPAN];
    d->worst = w[WORST];
    d->end = (uint32_t)w[END];
    w += FIRST;
    for (uint32_t e = 0; e < m->devices; e++) {
        d->free_at[e] = *w++;
        d->latest[e] = (uint32_t)*w++;
    }
    if (m->roads) {
        memcpy(d->traffic.resource, w, m->plan->machine->resources * sizeof *w);
        memcpy(d->traffic.engine, w + m->plan->machine->resources, m->roads->engines * sizeof *w);
    }
    return (uint32_t)place * t->stride;
}

/* ---- what became of tasks ---- */

/* When arrives what the task sends. */
static void copy_arrivals(const gy_model *m, gy_ticks *to, const gy_ticks *from, uint32_t task)
{
    for (size_t i = m->succ_first[task]; i < m->succ_first[task + 1]; i++)
        to[i] = from[i];
}

static void copy_uploads(const gy_model *m, gy_ticks *to, const gy_ticks *from)
{
    memcpy(to, from, m->roads->upload_first[m->tasks] * sizeof *to);
}

void gy_trail_keep(gy_decode *d, const uint32_t *order, uint32_t from, bool uploads)
{
    gy_trail *t = &d->trail;
    const gy_model *m = d->m;
    for (uint32_t k = from; k < m->tasks; k++) {
        uint32_t task = order[k];
        t->finish[task] = d->finish[task];
        t->before[task] = d->before[task];
        if (t->device)
            t->device[task] = d->device[task];
        if (m->roads)
            copy_arrivals(m, t->arrived, d->traffic.arrived, task);
        if (k % t->stride == 0)
            t->kept[k / t->stride] ^= 1;
    }
    if (m->roads && uploads)
        copy_uploads(m, t->uploaded, d->traffic.uploaded);
    t->end = d->end;
}

void gy_trail_drop(gy_decode *d, const uint32_t *order, uint32_t from, bool uploads)
{
    const gy_trail *t = &d->trail;
    const gy_model *m = d->m;
    for (uint32_t k = from; k < d->reached; k++) {
        uint32_t task = order[k];
        d->finish[task] = t->finish[task];
        d->before[task] = t->before[task];
        if (t->device)
            d->device[task] = t->device[task];
        if (m->roads)
            copy_arrivals(m, d->traffic.arrived, t->arrived, task);
    }
    if (m->roads && uploads)
        copy_uploads(m, d->traffic.uploaded, t->uploaded);
    d->end = t->end;
}
