/* SPDX-License-Identifier: Apache-2.0 */
/* "workers" of a device: what workers of a resident kernel take. docs/machine-format.md describes the format. */
#include "base/error.h"
#include "machine/read.h"

#include <string.h>

bool gy_machine_copy_workers(gantry_machine *m, gy_worker_times *workers)
{
    const gy_point *from = workers->point;
    gy_point *to = workers->points ? gy_arena_alloc(&m->arena, workers->points * sizeof *to) : NULL;
    if (to)
        memcpy(to, from, workers->points * sizeof *to);
    workers->point = to;
    return to || !workers->points;
}

static gantry_status bad_pair(gantry_error *err, const gy_json_at *at)
{
    return gy_json_fail(err, GANTRY_E_MACHINE, at,
                        "a pair must be [microseconds launched, microseconds by workers], such as [2.1, 0.6], each "
                        "from 0 to %g",
                        GY_MOST_US);
}

static gantry_status read_pair(gantry_error *err, const gy_json_at *at, gy_point_list *to)
{
    double us[2] = { 0 };
    for (size_t i = 0; i < 2; i++) {
        const json_t *value = json_array_get(at->value, i);
        us[i] = json_number_value(value);
        if (json_array_size(at->value) != 2 || !json_is_number(value) || !(us[i] >= 0 && us[i] <= GY_MOST_US))
            return bad_pair(err, at);
    }
    gy_point p = { gy_ticks_from_us(us[0]), gy_ticks_from_us(us[1]) };
    const gy_point *last = to->count ? gy_vec_last(to) : NULL;
    if (last && (p.bytes <= last->bytes || p.time < last->time))
        return gy_json_fail(
            err, GANTRY_E_MACHINE, at,
            "[%g, %g] after [%g, %g]: list the pairs by rising time of the launched op; that of workers "
            "must not fall",
            us[0], us[1], gy_ticks_to_us(last->bytes), gy_ticks_to_us(last->time));
    return gy_vec_push(to, p) ? GANTRY_OK : gy_fail_nomem(err);
}

static gantry_status read_pairs(gantry_error *err, const gy_json_at *list, gy_point_list *to)
{
    size_t n = json_array_size(list->value);
    for (size_t i = 0; i < n; i++) {
        gy_json_at item = gy_json_item(list, i);
        GY_TRY(read_pair(err, &item, to));
    }
    if (n < 2)
        return gy_json_fail(err, GANTRY_E_MACHINE, list, "%zu pair%s; give at least two", n, n == 1 ? "" : "s");
    if (to->at[n - 1].time == to->at[n - 2].time)
        return gy_json_fail(err, GANTRY_E_MACHINE, list,
                            "workers take as long for the last two; larger ops go on at their slope, so it must rise");
    return GANTRY_OK;
}

static gantry_status read_rest(gy_machine_reader *r, const gy_json_at *at, gy_worker_times *w)
{
    double change = 0, start = 0, beside = 1;
    GY_TRY(gy_json_number(at, "switch_us", true, 0, 0, GY_MOST_US, &change, GANTRY_E_MACHINE, r->err));
    GY_TRY(gy_json_number(at, "start_us", true, 0, 0, GY_MOST_US, &start, GANTRY_E_MACHINE, r->err));
    GY_TRY(gy_json_number(at, "beside", false, 1, 1, 1000, &beside, GANTRY_E_MACHINE, r->err));
    w->change = gy_ticks_from_us(change);
    w->start = gy_ticks_from_us(start);
    w->beside = (uint32_t)(beside * GY_ALONE + 0.5);
    return GANTRY_OK;
}

gantry_status gy_machine_read_workers(gy_machine_reader *r, const gy_json_at *at, gy_device *d)
{
    static const char *const keys[] = { "times_us", "switch_us", "start_us", "beside", "formulas" };
    gy_json_at place = gy_json_key(at, "workers"), list;
    gy_point_list points = { 0 };
    if (!place.value)
        return GANTRY_OK;
    if (!d->gpu)
        return gy_json_fail(r->err, GANTRY_E_MACHINE, &place,
                            "\"workers\" is given for a cpu; they are of devices of type \"gpu\": leave it out");
    GY_TRY(gy_machine_object(r->err, &place, "\"workers\"", keys, GY_COUNT(keys)));
    GY_TRY(read_rest(r, &place, &d->workers));
    GY_TRY(gy_machine_read_gflops(r, &place, "formulas", d->workers.formulas));
    GY_TRY(gy_machine_array(r->err, &place, "times_us", "give [launched, by workers] pairs of microseconds", &list));
    gantry_status status = read_pairs(r->err, &list, &points);
    d->workers.point = points.at;
    d->workers.points = (uint32_t)points.count;
    if (!status && !gy_machine_copy_workers(r->m, &d->workers))
        status = gy_fail_nomem(r->err);
    gy_vec_free(&points);
    return status;
}
