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

/* ---- what was measured ---- */

bool gy_machine_knows_workers(const gantry_machine *m)
{
    bool any = false, all = true;
    for (uint32_t i = 0; i < m->devices; i++) {
        any = any || m->device[i].gpu;
        all = all && (!m->device[i].gpu || m->device[i].workers.points);
    }
    return any && all;
}

gy_ticks gy_worker_time(const gy_device *d, gy_ticks launched)
{
    const gy_worker_times *w = &d->workers;
    return w->points && launched < GY_TICKS_MAX ? gy_points_time(w->point, w->points, launched) : launched;
}

gy_ticks gy_worker_formula_time(const gy_device *d, gantry_dtype dtype, double work, gy_ticks launched)
{
    const gy_worker_times *w = &d->workers;
    double gflops = gy_formula_gflops(w->formulas, dtype);
    gy_ticks time = gy_worker_time(d, launched);
    gy_ticks least = w->points && gflops > 0 ? w->point[0].time + gy_ticks_from_us(work / (gflops * 1e3)) : 0;
    return least > time ? least : time;
}

/* Its GPUs of that kind; NULL: there is none, or nothing was measured. */
static const gy_device *measured_of(const gantry_machine *m, const char *kind)
{
    for (uint32_t i = 0; i < m->devices; i++)
        if (m->device[i].gpu && m->device[i].workers.points && !strcmp(m->device[i].kind, kind))
            return &m->device[i];
    return NULL;
}

/* Times of a table as they were measured of workers. NULL: out of memory. */
static const gy_point *by_workers(gantry_machine *m, const gy_kernel_table *t, const gy_device *d)
{
    gy_point *to = gy_arena_calloc(&m->arena, t->points + (size_t)1, sizeof *to);
    for (uint32_t i = 0; to && i < t->points; i++)
        to[i] = (gy_point){ t->point[i].bytes, gy_worker_time(d, t->point[i].time) };
    return to;
}

/* Of large ops, so many times as long as launched: what follows from speeds is longer by as much. */
static double slope_of(const gy_worker_times *w)
{
    const gy_point *a = &w->point[w->points - 2], *b = &w->point[w->points - 1];
    return (double)(b->time - a->time) / (double)(b->bytes - a->bytes);
}

static void slow_down(gy_device *d)
{
    double slope = slope_of(&d->workers);
    d->bandwidth_gbs /= slope;
    for (int i = 0; i < GANTRY_DTYPE_COUNT; i++) {
        d->gflops[i] /= slope;
        d->formulas[i] = d->workers.formulas[i] > 0 ? d->workers.formulas[i] : d->formulas[i] / slope;
    }
}

/* ---- all of it ---- */

static uint32_t workers_of(const gy_device *d)
{
    return d->multiprocessors ? d->multiprocessors : WORKERS;
}

/* Thousandths of the workers that ops take, at those points. Small launches beside each other wait for the driver to
 * give them out, so that each was measured to take as much of the device as that lasts, however few its blocks are.
 * Workers wait for nobody: they take what a launch takes beyond the one that takes least. NULL: out of memory. */
static const uint16_t *shares_of_workers(gantry_machine *m, const gy_kernel_table *t, const gy_point *point,
                                         uint32_t workers)
{
    uint16_t *to = gy_arena_calloc(&m->arena, t->points + (size_t)1, sizeof *to);
    gy_ticks least = GY_TICKS_MAX, one = GY_WHOLE_DEVICE / workers + 1;
    for (uint32_t i = 0; i < t->points; i++)
        least = t->point[i].time * t->share[i] < least ? t->point[i].time * t->share[i] : least;
    for (uint32_t i = 0; to && i < t->points; i++) {
        gy_ticks part = (t->point[i].time * t->share[i] - least) / (point[i].time > 0 ? point[i].time : 1);
        to[i] = (uint16_t)(part < one ? one : part < t->share[i] ? part : t->share[i]);
    }
    return to;
}

/* Tables lose the part of their times that is a launch's. */
static bool shorten_tables(gantry_machine *m, const gantry_machine *from)
{
    gy_ticks turn = gy_ticks_from_us(TURN_US);
    gy_kernel_table *to = gy_arena_calloc(&m->arena, m->kernels + (size_t)1, sizeof *to);
    for (uint32_t i = 0; to && i < m->kernels; i++) {
        gy_ticks launch = turn;
        uint32_t workers = 0;
        to[i] = m->kernel[i];
        for (uint32_t d = 0; d < from->devices; d++)
            if (from->device[d].gpu && !strcmp(from->device[d].kind, to[i].kind)) {
                launch = from->device[d].launch;
                workers = workers_of(&from->device[d]);
            }
        gy_ticks most = LAUNCHES * launch, least = to[i].points ? to[i].point[0].time : 0;
        const gy_device *measured = measured_of(from, to[i].kind);
        if (measured)
            to[i].point = by_workers(m, &to[i], measured);
        else if (least > turn)
            to[i].point = less(m, to[i].point, to[i].points, least - turn < most ? least - turn : most, turn);
        if (to[i].point && to[i].share && workers)
            to[i].share = shares_of_workers(m, &m->kernel[i], to[i].point, workers);
        if (!to[i].point || (m->kernel[i].share && !to[i].share))
            return false;
    }
    m->kernel = to;
    return to != NULL;
}

static void become_workers(gantry_machine *m, gy_device *d)
{
    uint32_t workers = workers_of(d);
    gy_ticks signal = gy_ticks_from_us(SIGNAL_US);
    d->lanes = d->lanes > workers ? d->lanes : workers;
    d->launch = d->workers.points ? d->workers.point[0].time : gy_ticks_from_us(TURN_US);
    d->signal = d->signal < signal ? d->signal : signal;
    m->memory[d->memory].signal = d->signal; /* no two GPUs work in one memory, nor does a CPU in a GPU's */
    if (d->workers.points)
        slow_down(d);
    d->workers = (gy_worker_times){ 0 }; /* all times of the machine are workers' now */
}

/* A start begins when the last GPU has been given its kernel. */
static gy_ticks start_of(const gantry_machine *m)
{
    gy_ticks most = 0;
    for (uint32_t i = 0; i < m->devices; i++)
        if (m->device[i].gpu && m->device[i].workers.start > most)
            most = m->device[i].workers.start;
    return gy_machine_knows_workers(m) ? most : m->start;
}

/* The host gives out kernels that go on by themselves: no op, and no graph with edges or gates. */
static void give_out_nothing(gantry_machine *m, const gantry_machine *from)
{
    m->issue = m->submit = m->another = m->edge = m->gate = 0;
    m->start = start_of(from);
}

gantry_machine *gy_machine_beside_workers(const gantry_machine *from)
{
    gantry_machine *m = gy_machine_again(from);
    if (m)
        give_out_nothing(m, from);
    return m;
}

gantry_machine *gy_machine_without_workers(const gantry_machine *from)
{
    gantry_machine *m = gy_machine_again(from);
    for (uint32_t i = 0; m && i < m->devices; i++)
        m->device[i].workers = (gy_worker_times){ 0 };
    return m;
}

gantry_machine *gy_machine_for_workers(const gantry_machine *from)
{
    gantry_machine *m = gy_machine_again(from);
    if (!m)
        return NULL;
    m->workers = true;
    give_out_nothing(m, from);
    for (uint32_t i = 0; i < m->devices; i++)
        if (m->device[i].gpu)
            become_workers(m, &m->device[i]);
    if (shorten_routes(m) && shorten_tables(m, from))
        return m;
    gantry_machine_free(m);
    return NULL;
}
