/* SPDX-License-Identifier: Apache-2.0 */
/* Measured times of kernels. */
#include "machine/build.h"
#include <stdlib.h>
#include <string.h>

#define MOST_WORK (INT64_MAX / 2)

static bool speaks_of(const gy_kernel_table *t, const char *kernel, gantry_dtype dtype, const char *kind)
{
    return t->dtype == dtype && !strcmp(t->kernel, kernel) && !strcmp(t->kind, kind);
}

const gy_kernel_table *gy_machine_kernel(const gantry_machine *m, const char *kernel, gantry_dtype dtype,
                                         const char *kind)
{
    for (uint32_t i = 0; i < m->kernels; i++)
        if (!m->kernel[i].arguments && speaks_of(&m->kernel[i], kernel, dtype, kind))
            return &m->kernel[i];
    return NULL;
}

const gy_kernel_table *gy_machine_case(const gantry_machine *m, const char *kernel, gantry_dtype dtype,
                                       const char *kind, const char *arguments)
{
    for (uint32_t i = 0; i < m->kernels; i++) {
        const gy_kernel_table *t = &m->kernel[i];
        if (t->arguments && !strcmp(t->arguments, arguments) && speaks_of(t, kernel, dtype, kind))
            return t;
    }
    return NULL;
}

#define ALIKE 0.05 /* work that differs by less may be one point of a table */

static bool has_case_at(const gantry_machine *m, const gy_kernel_table *table, int64_t work)
{
    for (uint32_t i = 0; i < m->kernels; i++) {
        const gy_kernel_table *t = &m->kernel[i];
        if (t->arguments && t->by_flops == table->by_flops &&
            llabs(t->point[0].bytes - work) <= (int64_t)(ALIKE * (double)work) &&
            speaks_of(t, table->kernel, table->dtype, table->kind))
            return true;
    }
    return false;
}

bool gy_kernel_of_cases(const gantry_machine *m, const gy_kernel_table *table)
{
    for (uint32_t i = 0; i < table->points; i++)
        if (!has_case_at(m, table, table->point[i].bytes))
            return false;
    return true;
}

/* Room for one more: twice as much whenever the number is a power of two, since an arena gives nothing back. */
static gy_kernel_table *grow(gantry_machine *m)
{
    if (m->kernels & (m->kernels - 1))
        return (gy_kernel_table *)(uintptr_t)m->kernel;
    gy_kernel_table *grown = gy_arena_calloc(&m->arena, m->kernels ? (size_t)m->kernels * 2 : 1, sizeof *grown);
    if (grown && m->kernels)
        memcpy(grown, m->kernel, m->kernels * sizeof *grown);
    return grown;
}

bool gy_machine_add_kernel(gantry_machine *m, const gy_kernel_table *table)
{
    gy_kernel_table *grown = grow(m);
    gy_point *point = gy_arena_alloc(&m->arena, table->points * sizeof *point);
    uint16_t *share = table->share ? gy_arena_alloc(&m->arena, table->points * sizeof *share) : NULL;
    const char *kernel = table->kernel ? gy_machine_text(m, table->kernel) : NULL;
    const char *kind = table->kind ? gy_machine_text(m, table->kind) : NULL;
    const char *arguments = table->arguments ? gy_machine_text(m, table->arguments) : NULL;
    if (!grown || !point || !kernel || !kind || (table->share && !share) || (table->arguments && !arguments))
        return false;
    memcpy(point, table->point, table->points * sizeof *point);
    grown[m->kernels] = *table;
    grown[m->kernels].kernel = kernel;
    grown[m->kernels].kind = kind;
    grown[m->kernels].arguments = arguments;
    grown[m->kernels].point = point;
    if (share)
        memcpy(share, table->share, table->points * sizeof *share);
    grown[m->kernels].share = share;
    if (!gy_machine_copy_batched(m, &grown[m->kernels]) || !gy_machine_copy_strided(m, &grown[m->kernels]))
        return false;
    m->kernel = grown;
    m->kernels++;
    return true;
}

gy_ticks gy_kernel_time(const gy_kernel_table *t, double work, gy_ticks launch)
{
    const gy_point first = t->point[0], last = t->point[t->points - 1];
    int64_t whole = !(work > 0) ? 0 : work < (double)MOST_WORK ? (int64_t)(work + 0.5) : MOST_WORK;
    if (whole <= first.bytes) {
        gy_ticks least = launch < first.time ? launch : first.time;
        return least + gy_scale_up(first.time - least, whole, first.bytes);
    }
    if (whole >= last.bytes)
        return gy_scale_up(last.time, whole, last.bytes);
    return gy_points_time(t->point, t->points, whole);
}

uint32_t gy_kernel_share(const gy_kernel_table *t, double work)
{
    uint32_t i = 0;
    if (!t->share)
        return GY_WHOLE_DEVICE;
    while (i < t->points && (double)t->point[i].bytes < work)
        i++;
    if (i == 0 || i == t->points)
        return t->share[i == 0 ? 0 : t->points - 1];
    gy_point a = t->point[i - 1], b = t->point[i];
    double part = (work - (double)a.bytes) / ((double)b.bytes - (double)a.bytes);
    double time = (double)a.time + ((double)b.time - (double)a.time) * part;
    double low = (double)a.time * t->share[i - 1], high = (double)b.time * t->share[i];
    return time > 0 ? (uint32_t)((low + (high - low) * part) / time + 0.5) : t->share[i];
}

bool gy_machine_has_workspace(const gantry_machine *m)
{
    for (uint32_t i = 0; i < m->kernels; i++)
        if (m->kernel[i].scratch)
            return true;
    return false;
}
