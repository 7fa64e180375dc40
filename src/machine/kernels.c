/* SPDX-License-Identifier: Apache-2.0 */
/* Measured times of kernels. */
#include "machine/build.h"
#include <string.h>

#define MOST_WORK (INT64_MAX / 2)

const gy_kernel_table *gy_machine_kernel(const gantry_machine *m, const char *kernel, gantry_dtype dtype,
                                         const char *kind)
{
    for (uint32_t i = 0; i < m->kernels; i++) {
        const gy_kernel_table *t = &m->kernel[i];
        if (t->dtype == dtype && !strcmp(t->kernel, kernel) && !strcmp(t->kind, kind))
            return t;
    }
    return NULL;
}

bool gy_machine_add_kernel(gantry_machine *m, const gy_kernel_table *table)
{
    gy_kernel_table *grown = gy_arena_calloc(&m->arena, (size_t)m->kernels + 1, sizeof *grown);
    gy_point *point = gy_arena_alloc(&m->arena, table->points * sizeof *point);
    uint16_t *share = table->share ? gy_arena_alloc(&m->arena, table->points * sizeof *share) : NULL;
    const char *kernel = table->kernel ? gy_machine_text(m, table->kernel) : NULL;
    const char *kind = table->kind ? gy_machine_text(m, table->kind) : NULL;
    if (!grown || !point || !kernel || !kind || (table->share && !share))
        return false;
    if (m->kernels)
        memcpy(grown, m->kernel, m->kernels * sizeof *grown);
    memcpy(point, table->point, table->points * sizeof *point);
    grown[m->kernels] = *table;
    grown[m->kernels].kernel = kernel;
    grown[m->kernels].kind = kind;
    grown[m->kernels].point = point;
    if (share)
        memcpy(share, table->share, table->points * sizeof *share);
    grown[m->kernels].share = share;
    if (!gy_machine_copy_batched(m, &grown[m->kernels]))
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
    double low = (double)t->point[i - 1].bytes, part = (work - low) / ((double)t->point[i].bytes - low);
    return (uint32_t)(t->share[i - 1] + ((double)t->share[i] - t->share[i - 1]) * part + 0.5);
}

bool gy_machine_has_workspace(const gantry_machine *m)
{
    for (uint32_t i = 0; i < m->kernels; i++)
        if (m->kernel[i].scratch)
            return true;
    return false;
}
