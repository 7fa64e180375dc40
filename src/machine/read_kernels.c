/* SPDX-License-Identifier: Apache-2.0 */
/* Reading "kernels" and "calibration". docs/machine-format.md describes the format. */
#include "base/error.h"
#include "machine/read.h"
#include <string.h>

#define LEAST_SHARE 0.001

/* ---- kernels ---- */

static const char *dtype_name(int i)
{
    return gantry_dtype_name((gantry_dtype)i);
}

static const char *by_name(int i)
{
    return i ? "flops" : "bytes";
}

static gantry_status check_points(gy_machine_reader *r, const gy_json_at *list, const char *unit,
                                  const gy_point_list *points)
{
    if (!points->count)
        return gy_json_fail(r->err, GANTRY_E_MACHINE, list, "0 points; give at least one");
    gy_json_at first = gy_json_item(list, 0);
    if (points->at[0].bytes < 1)
        return gy_json_fail(r->err, GANTRY_E_MACHINE, &first,
                            "%lld %s are no work; times of a kernel are given for at least 1",
                            (long long)points->at[0].bytes, unit);
    return GANTRY_OK;
}

/* "share": of each point, the portion of the device. */
static gantry_status read_shares(gy_machine_reader *r, const gy_json_at *at, gy_kernel_table *t)
{
    gy_json_at list;
    GY_TRY(gy_machine_array(r->err, at, "share", NULL, &list));
    if (!list.value)
        return GANTRY_OK;
    if (json_array_size(list.value) != t->points)
        return gy_json_fail(r->err, GANTRY_E_MACHINE, &list, "%zu portions for %u points; give one for each point",
                            json_array_size(list.value), t->points);
    uint16_t *share = gy_arena_alloc(&r->m->arena, t->points * sizeof *share);
    if (!share)
        return gy_fail_nomem(r->err);
    for (uint32_t i = 0; i < t->points; i++) {
        gy_json_at item = gy_json_item(&list, i);
        double part = json_number_value(item.value);
        if (!json_is_number(item.value))
            return gy_json_fail(r->err, GANTRY_E_MACHINE, &item, "a portion of the device is a number, found %s",
                                gy_json_kind(item.value));
        if (!(part >= LEAST_SHARE && part <= 1))
            return gy_json_fail(r->err, GANTRY_E_MACHINE, &item, "%g is no portion of a device; give %g to 1", part,
                                LEAST_SHARE);
        share[i] = (uint16_t)(part * GY_WHOLE_DEVICE + 0.5);
    }
    t->share = share;
    return GANTRY_OK;
}

static gantry_status check_new(const gy_machine_reader *r, const gy_json_at *at, const gy_kernel_table *t)
{
    const char *of = t->arguments;
    if (!(of ? gy_machine_case(r->m, t->kernel, t->dtype, t->kind, of)
             : gy_machine_kernel(r->m, t->kernel, t->dtype, t->kind)))
        return GANTRY_OK;
    return gy_json_fail(
        r->err, GANTRY_E_MACHINE, at, "kernel \"%s\" of %s on devices of kind \"%s\"%s%s%s is given twice", t->kernel,
        gantry_dtype_name(t->dtype), t->kind, of ? " with arguments \"" : "", of ? of : "", of ? "\"" : "");
}

/* A text that no node has says nothing; one that none can have is a mistake. */
static gantry_status read_case(gy_machine_reader *r, const gy_json_at *at, const char **text)
{
    gantry_status status = gy_json_string(at, "case", false, NULL, text, GANTRY_E_MACHINE, r->err);
    if (status || !*text || (**text && strlen(*text) <= GY_CASE_MOST && gy_is_plain(*text)))
        return status;
    gy_json_at place = gy_json_key(at, "case");
    return gy_json_fail(r->err, GANTRY_E_MACHINE, &place,
                        "\"case\" is a text of %zu bytes; give the arguments as `gantry run --calibrate` writes them, "
                        "1 to %d bytes without control characters",
                        strlen(*text), GY_CASE_MOST);
}

static gantry_status check_case(gy_machine_reader *r, const gy_json_at *list, const gy_kernel_table *t)
{
    if (!t->arguments || t->points == 1)
        return GANTRY_OK;
    return gy_json_fail(r->err, GANTRY_E_MACHINE, list, "%u points; a time for exact arguments (\"case\") is one point",
                        t->points);
}

gantry_status gy_machine_read_kernel(gy_machine_reader *r, const gy_json_at *at, gy_point_list *points)
{
    static const char *const keys[] = { "kernel", "dtype", "kind",    "case",    "by",
                                        "points", "share", "scratch", "batched", "strided" };
    gy_kernel_table t = { 0 };
    int dtype = 0, by = 0;
    int64_t scratch = 0;
    gy_json_at list;
    gantry_status status = gy_machine_object(r->err, at, "a measured kernel", keys, GY_COUNT(keys));
    if (status || (status = gy_json_string(at, "kernel", true, NULL, &t.kernel, GANTRY_E_MACHINE, r->err)) ||
        (status = gy_machine_read_name(r, at, "dtype", 0, GANTRY_DTYPE_COUNT - 1, dtype_name, &dtype)) ||
        (status = gy_machine_read_kind(r, at, &t.kind)) || (status = read_case(r, at, &t.arguments)) ||
        (status = gy_machine_read_name(r, at, "by", 0, 1, by_name, &by)) ||
        (status = gy_machine_array(r->err, at, "points", "give measured [work, microseconds] pairs", &list)) ||
        (status = gy_machine_read_pairs(r->err, &list, by_name(by), points)) ||
        (status = check_points(r, &list, by_name(by), points)) ||
        (status = gy_json_int(at, "scratch", false, 0, 1, INT64_MAX / 4, &scratch, GANTRY_E_MACHINE, r->err)) ||
        (status = gy_machine_read_batched(r, at, by_name(by), &t)))
        return status;
    t.scratch = (uint64_t)scratch;
    t.dtype = (gantry_dtype)dtype;
    t.by_flops = by == 1;
    t.point = points->at;
    t.points = (uint32_t)points->count;
    if (!(status = check_case(r, &list, &t)) && !(status = check_new(r, at, &t)))
        status = gy_machine_read_strided(r, at, &t);
    status = status ? status : read_shares(r, at, &t);
    return status || gy_machine_add_kernel(r->m, &t) ? status : gy_fail_nomem(r->err);
}

/* ---- calibration ---- */

static gantry_status read_facts(gy_machine_reader *r, const gy_json_at *at)
{
    gy_json_at facts = gy_json_key(at, "fingerprint");
    if (!facts.value)
        return GANTRY_OK;
    if (!json_is_object(facts.value))
        return gy_json_fail(r->err, GANTRY_E_MACHINE, &facts,
                            "\"fingerprint\" must be an object of texts by name, found %s", gy_json_kind(facts.value));
    json_t *object = (json_t *)(uintptr_t)facts.value;
    for (void *item = json_object_iter(object); item; item = json_object_iter_next(object, item)) {
        const char *name = json_object_iter_key(item), *value = NULL;
        gantry_status status = gy_json_string(&facts, name, true, NULL, &value, GANTRY_E_MACHINE, r->err);
        if (status)
            return status;
        if (!gy_machine_fact(r->m, name, value))
            return gy_fail_nomem(r->err);
    }
    return GANTRY_OK;
}

static gantry_status read_quality(gy_machine_reader *r, const gy_json_at *at, const char *name, gy_quality *q)
{
    static const char *const keys[] = { "figures", "samples", "mad", "worst" };
    int64_t figures = 0, samples = 0;
    gy_json_at place = gy_json_key(at, name);
    if (!place.value)
        return GANTRY_OK;
    gantry_status status = gy_machine_object(r->err, &place, name, keys, GY_COUNT(keys));
    if (status ||
        (status = gy_json_int(&place, "figures", true, 0, 1, UINT32_MAX, &figures, GANTRY_E_MACHINE, r->err)) ||
        (status = gy_json_int(&place, "samples", true, 0, 1, UINT32_MAX, &samples, GANTRY_E_MACHINE, r->err)) ||
        (status = gy_json_number(&place, "mad", true, 0, 0, 1e9, &q->mad, GANTRY_E_MACHINE, r->err)) ||
        (status = gy_json_number(&place, "worst", true, 0, 0, 1e9, &q->worst, GANTRY_E_MACHINE, r->err)))
        return status;
    q->figures = (uint32_t)figures;
    q->samples = (uint32_t)samples;
    return GANTRY_OK;
}

gantry_status gy_machine_read_calibration(gy_machine_reader *r, const gy_json_at *root)
{
    static const char *const keys[] = { "fingerprint",
#define GY_X(name, text) #text,
                                        GY_FAMILY_MAP(GY_X)
#undef GY_X
    };
    gy_json_at place = gy_json_key(root, "calibration");
    if (!place.value)
        return GANTRY_OK;
    gantry_status status = gy_machine_object(r->err, &place, "calibration", keys, GY_COUNT(keys));
    if (!status)
        status = read_facts(r, &place);
    for (int i = 0; i < GY_FAMILY_COUNT && !status; i++)
        status = read_quality(r, &place, gy_family_name((gy_family)i), &r->m->calibration.quality[i]);
    r->m->calibration.measured = true;
    return status;
}
