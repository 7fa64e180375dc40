/* SPDX-License-Identifier: Apache-2.0 */
/* Measured times of ops that are carried out together with others of their kernel. */
#include "base/error.h"
#include "machine/build.h"
#include "machine/read.h"
#include <string.h>

bool gy_machine_copy_batched(gantry_machine *m, gy_kernel_table *table)
{
    if (!table->batched_points)
        return true;
    gy_point *point = gy_arena_alloc(&m->arena, table->batched_points * sizeof *point);
    if (!point)
        return false;
    memcpy(point, table->batched, table->batched_points * sizeof *point);
    table->batched = point;
    return true;
}

gy_ticks gy_kernel_batched(const gy_kernel_table *t, double work)
{
    if (!t->batched_points || !(work > 0) || work > (double)t->batched[t->batched_points - 1].bytes)
        return GY_TICKS_MAX;
    gy_kernel_table added = { .point = t->batched, .points = t->batched_points };
    return gy_kernel_time(&added, work, GY_TICKS_MAX);
}

static gantry_status read_points(gy_machine_reader *r, const gy_json_at *list, const char *unit, gy_kernel_table *to,
                                 gy_point_list *points)
{
    GY_TRY(gy_machine_read_pairs(r->err, list, unit, points));
    if (!points->count || points->at[0].bytes < 1) {
        return gy_json_fail(r->err, GANTRY_E_MACHINE, list,
                            "%zu points of %s; what an op adds to a batch is given for at least one work, from 1 on",
                            points->count, unit);
    }
    to->batched = points->at;
    to->batched_points = (uint32_t)points->count;
    return gy_machine_copy_batched(r->m, to) ? GANTRY_OK : gy_fail_nomem(r->err);
}

gantry_status gy_machine_read_batched(gy_machine_reader *r, const gy_json_at *at, const char *unit, gy_kernel_table *to)
{
    gy_json_at list;
    gy_point_list points = { 0 };
    if (!json_object_get(at->value, "batched"))
        return GANTRY_OK;
    GY_TRY(gy_machine_array(r->err, at, "batched", "give measured [work, microseconds] pairs", &list));
    gantry_status status = read_points(r, &list, unit, to, &points);
    gy_vec_free(&points);
    return status;
}
