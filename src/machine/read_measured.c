/* SPDX-License-Identifier: Apache-2.0 */
/* Reading what was measured: lists of points, and "collectives". docs/machine-format.md describes the format. */
#include "base/error.h"
#include "base/memory.h"
#include "machine/read.h"
#include <string.h>

/* ---- points ---- */

static gantry_status read_point(gantry_error *err, const gy_json_at *at, const char *unit, gy_point_list *to)
{
    const json_t *bytes = json_array_get(at->value, 0), *us = json_array_get(at->value, 1);
    if (json_array_size(at->value) != 2 || !json_is_integer(bytes) || !json_is_number(us))
        return gy_json_fail(err, GANTRY_E_MACHINE, at, "a point must be [%s, microseconds], such as [4096, 1.72]",
                            unit);
    gy_point p = { json_integer_value(bytes), gy_ticks_from_us(json_number_value(us)) };
    if (p.bytes < 0 || p.bytes > INT64_MAX / 2)
        return gy_json_fail(err, GANTRY_E_MACHINE, at, "%lld %s is not a size; give 0 to %lld", (long long)p.bytes,
                            unit, (long long)INT64_MAX / 2);
    if (!(json_number_value(us) >= 0 && json_number_value(us) <= GY_MOST_US))
        return gy_json_fail(err, GANTRY_E_MACHINE, at, "%g us is not a time; give 0 to %g", json_number_value(us),
                            GY_MOST_US);
    const gy_point *last = to->count ? gy_vec_last(to) : NULL;
    if (last && p.bytes <= last->bytes)
        return gy_json_fail(err, GANTRY_E_MACHINE, at, "%lld %s after %lld; list the points by rising size",
                            (long long)p.bytes, unit, (long long)last->bytes);
    if (last && p.time < last->time)
        return gy_json_fail(err, GANTRY_E_MACHINE, at,
                            "%g us after %g us: more %s cannot take less time; smooth the measurements",
                            gy_ticks_to_us(p.time), gy_ticks_to_us(last->time), unit);
    return gy_vec_push(to, p) ? GANTRY_OK : gy_fail_nomem(err);
}

gantry_status gy_machine_read_pairs(gantry_error *err, const gy_json_at *list, const char *unit, gy_point_list *to)
{
    to->count = 0;
    for (size_t i = 0; i < json_array_size(list->value); i++) {
        gy_json_at item = gy_json_item(list, i);
        gantry_status status = read_point(err, &item, unit, to);
        if (status)
            return status;
    }
    return GANTRY_OK;
}

gantry_status gy_machine_read_points(gantry_error *err, const gy_json_at *list, const char *instead, gy_point_list *to)
{
    GY_TRY(gy_machine_read_pairs(err, list, "bytes", to));
    size_t n = to->count;
    if (n < 2)
        return gy_json_fail(err, GANTRY_E_MACHINE, list, "%zu point%s; give at least two%s", n, n == 1 ? "" : "s",
                            instead);
    if (to->at[n - 1].time == to->at[n - 2].time)
        return gy_json_fail(
            err, GANTRY_E_MACHINE, list,
            "the last two points take the same time; larger copies go on at their slope, so it must rise");
    return GANTRY_OK;
}

/* ---- collectives ---- */

gantry_status gy_machine_read_name(gy_machine_reader *r, const gy_json_at *at, const char *key, int first, int last,
                                   const char *(*name_of)(int), int *out)
{
    const char *text = NULL;
    gantry_status status = gy_json_string(at, key, true, NULL, &text, GANTRY_E_MACHINE, r->err);
    gy_json_at place = gy_json_key(at, key);
    gy_text names = { 0 };
    gy_near near = { 0 };
    if (status)
        return status;
    for (int i = first; i <= last; i++) {
        if (!strcmp(text, name_of(i))) {
            gy_text_free(&names);
            *out = i;
            return GANTRY_OK;
        }
        gy_text_printf(&names, "%s%s", i > first ? ", " : "", name_of(i));
        gy_near_offer(&near, text, name_of(i));
    }
    if (names.failed)
        status = gy_fail_nomem(r->err);
    else if (near.best)
        status =
            gy_json_fail(r->err, GANTRY_E_MACHINE, &place, "no %s \"%s\" (did you mean \"%s\"?)", key, text, near.best);
    else
        status = gy_json_fail(r->err, GANTRY_E_MACHINE, &place, "no %s \"%s\"; there are %s", key, text, names.at);
    gy_text_free(&names);
    return status;
}

static const char *collective_name(int i)
{
    return gantry_collective_name((gantry_collective)i);
}

static const char *algorithm_name(int i)
{
    return gy_algorithm_name((gy_algorithm)i);
}

gantry_status gy_machine_read_kind(gy_machine_reader *r, const gy_json_at *at, const char **kind)
{
    const gantry_machine *m = r->m;
    gantry_status status = gy_json_string(at, "kind", true, NULL, kind, GANTRY_E_MACHINE, r->err);
    gy_json_at place = gy_json_key(at, "kind");
    gy_near near = { 0 };
    for (uint32_t i = 0; i < m->devices && !status; i++) {
        if (!strcmp(m->device[i].kind, *kind))
            return GANTRY_OK;
        gy_near_offer(&near, *kind, m->device[i].kind);
    }
    if (status)
        return status;
    if (near.best)
        return gy_json_fail(r->err, GANTRY_E_MACHINE, &place, "no device of kind \"%s\" (did you mean \"%s\"?)", *kind,
                            near.best);
    return gy_json_fail(r->err, GANTRY_E_MACHINE, &place, "no device of kind \"%s\"; kinds are those in \"devices\"",
                        *kind);
}

static gantry_status check_new(const gy_machine_reader *r, const gy_json_at *at, const gy_collective_table *t)
{
    if (!gy_machine_table(r->m, t->collective, t->algorithm, t->kind, t->ranks))
        return GANTRY_OK;
    return gy_json_fail(r->err, GANTRY_E_MACHINE, at, "%s by %s of %u devices of kind \"%s\" is given twice",
                        gantry_collective_name(t->collective), gy_algorithm_name(t->algorithm), t->ranks, t->kind);
}

gantry_status gy_machine_read_collective(gy_machine_reader *r, const gy_json_at *at, gy_point_list *points)
{
    static const char *const keys[] = { "collective", "algorithm", "kind", "ranks", "points" };
    gy_collective_table t = { 0 };
    int collective = 0, algorithm = 0;
    int64_t ranks = 0;
    gy_json_at list;
    gantry_status status = gy_machine_object(r->err, at, "a measured collective", keys, GY_COUNT(keys));
    if (status ||
        (status = gy_machine_read_name(r, at, "collective", GANTRY_ALL_REDUCE, GANTRY_ALL_TO_ALL, collective_name,
                                       &collective)) ||
        (status = gy_machine_read_name(r, at, "algorithm", 1, GY_ALGORITHM_COUNT - 1, algorithm_name, &algorithm)) ||
        (status = gy_machine_read_kind(r, at, &t.kind)) ||
        (status = gy_json_int(at, "ranks", true, 0, 2, UINT16_MAX, &ranks, GANTRY_E_MACHINE, r->err)) ||
        (status = gy_machine_array(r->err, at, "points", "give measured [bytes, microseconds] pairs", &list)) ||
        (status = gy_machine_read_points(r->err, &list, "", points)))
        return status;
    t.collective = (gantry_collective)collective;
    t.algorithm = (gy_algorithm)algorithm;
    t.ranks = (uint32_t)ranks;
    t.point = points->at;
    t.points = (uint32_t)points->count;
    status = check_new(r, at, &t);
    return status || gy_machine_add_table(r->m, &t) ? status : gy_fail_nomem(r->err);
}

gantry_status gy_machine_read_tables(gy_machine_reader *r, const gy_json_at *root, const char *key,
                                     gy_table_reader *read)
{
    gy_json_at list;
    gy_point_list points = { 0 };
    gantry_status status = gy_machine_array(r->err, root, key, NULL, &list);
    for (size_t i = 0; i < json_array_size(list.value) && !status; i++) {
        gy_json_at item = gy_json_item(&list, i);
        status = read(r, &item, &points);
    }
    gy_vec_free(&points);
    return status;
}
