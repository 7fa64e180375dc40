/* SPDX-License-Identifier: Apache-2.0 */
/* Costs of ops that workers of resident kernels carry out; docs/performance.md has the measurements. */
#include "base/error.h"
#include "machine/build.h"
#include <string.h>

#define TURN_US   0.6 /* an op of a worker, beside what it computes */
#define SIGNAL_US 1.0 /* from the end of an op to what waited for it in another worker */
#define LEAST_US  0.8 /* a copy of few bytes between two GPUs */
#define WORKERS   64  /* of a GPU of which the number of multiprocessors is not known */
#define LAUNCHES  2   /* that a measured time has in it at most: an empty kernel's beside the call */

static bool is_gpu(const gantry_machine *m, uint32_t memory)
{
    for (uint32_t i = 0; i < m->devices; i++)
        if (m->device[i].gpu && m->device[i].memory == memory && !m->memory[memory].host)
            return true;
    return false;
}

/* The points less `by`, but none below `least`; NULL: out of memory. */
static const gy_point *less(gantry_machine *m, const gy_point *point, uint32_t points, gy_ticks by, gy_ticks least)
{
    gy_point *to = gy_arena_calloc(&m->arena, points + (size_t)1, sizeof *to);
    for (uint32_t i = 0; to && i < points; i++) {
        to[i] = point[i];
        to[i].time = point[i].time - by > least ? point[i].time - by : least;
    }
    return to;
}

static bool shorten_routes(gantry_machine *m)
{
    gy_ticks least = gy_ticks_from_us(LEAST_US);
    for (size_t i = 0; i < (size_t)m->memories * m->memories; i++) {
        gy_route *r = &m->route[i];
        if (r->kind != GY_ROUTE_DIRECT || !is_gpu(m, r->from) || !is_gpu(m, r->to) || r->point[0].time <= least)
            continue;
        r->point = less(m, r->point, r->points, r->point[0].time - least, least);
        if (!r->point)
            return false;
    }
    return true;
}

/* Tables lose the part of their times that is a launch's. */
static bool shorten_tables(gantry_machine *m, const gantry_machine *from)
{
    gy_ticks turn = gy_ticks_from_us(TURN_US);
    gy_kernel_table *to = gy_arena_calloc(&m->arena, m->kernels + (size_t)1, sizeof *to);
    for (uint32_t i = 0; to && i < m->kernels; i++) {
        gy_ticks launch = turn;
        to[i] = m->kernel[i];
        for (uint32_t d = 0; d < from->devices; d++)
            if (from->device[d].gpu && !strcmp(from->device[d].kind, to[i].kind))
                launch = from->device[d].launch;
        gy_ticks most = LAUNCHES * launch, least = to[i].points ? to[i].point[0].time : 0;
        if (least > turn)
            to[i].point = less(m, to[i].point, to[i].points, least - turn < most ? least - turn : most, turn);
        if (!to[i].point)
            return false;
    }
    m->kernel = to;
    return to != NULL;
}

static void become_workers(gantry_machine *m, gy_device *d)
{
    uint32_t workers = d->multiprocessors ? d->multiprocessors : WORKERS;
    gy_ticks signal = gy_ticks_from_us(SIGNAL_US);
    d->lanes = d->lanes > workers ? d->lanes : workers;
    d->launch = gy_ticks_from_us(TURN_US);
    d->signal = d->signal < signal ? d->signal : signal;
    m->memory[d->memory].signal = d->signal; /* no two GPUs work in one memory, nor does a CPU in a GPU's */
}

gantry_machine *gy_machine_for_workers(const gantry_machine *from)
{
    gantry_machine *m = gy_machine_again(from);
    if (!m)
        return NULL;
    m->workers = true;
    m->issue = m->submit = 0;
    for (uint32_t i = 0; i < m->devices; i++)
        if (m->device[i].gpu)
            become_workers(m, &m->device[i]);
    if (shorten_routes(m) && shorten_tables(m, from))
        return m;
    gantry_machine_free(m);
    return NULL;
}
