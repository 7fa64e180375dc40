/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of the regions of a node: which one says how many elements there are, and how others fit it. */
#include "maths/maths.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- extents ---- */

static int64_t extent_of(const gantry_arg *a, int32_t axis)
{
    return axis == 0 ? a->rows : a->shape[axis];
}

static int64_t product(const gantry_arg *a, uint32_t first, uint32_t last)
{
    int64_t all = 1;
    for (uint32_t i = first; i < last; i++)
        all *= extent_of(a, (int32_t)i);
    return all;
}

int64_t gy_maths_elements(const gantry_arg *arg)
{
    return arg->rows * arg->row_bytes / (int64_t)gantry_dtype_size(arg->dtype);
}

gy_maths_extents gy_maths_extents_of(const gantry_arg *model, uint32_t first, uint32_t last)
{
    return (gy_maths_extents){ .outer = product(model, 0, first),
                               .mid = product(model, first, last),
                               .inner = product(model, last, (uint32_t)model->rank) };
}

static void add_shape(char *to, size_t size, const gantry_arg *a)
{
    size_t used = (size_t)snprintf(to, size, "%" PRId64, a->rows);
    for (int32_t i = 1; i < a->rank && used < size; i++)
        used += (size_t)snprintf(to + used, size - used, " x %" PRId64, a->shape[i]);
}

static bool have_one_shape(const gantry_arg *a, const gantry_arg *b)
{
    if (a->rank != b->rank || a->rows != b->rows)
        return false;
    for (int32_t i = 1; i < a->rank; i++)
        if (a->shape[i] != b->shape[i])
            return false;
    return true;
}

/* ---- how one region fits another ---- */

typedef struct fitting {
    const gy_maths *maths;
    gy_maths_kind *kind;
    const gantry_arg *arg;
    const bool *varies;
    uint32_t model;
    char *text;
    size_t size;
} fitting;

typedef struct axes {
    uint32_t first, last;
} axes;

/* Aligns the last axes of a region and of the model, as NumPy does: where the extents differ, that of the region is 1.
 * These axes are neighbours, but for axes of the model with one element. Where the model has none, nothing is read. */
static bool align(const fitting *f, uint32_t arg, bool is_result, axes *out)
{
    const gantry_arg *model = &f->arg[f->model], *a = &f->arg[arg];
    int32_t missing = model->rank - a->rank;
    bool is_after = false;
    *out = (axes){ 0, 0 };
    for (int32_t i = 0; i < model->rank; i++) {
        int64_t wanted = extent_of(model, i), given = i < missing ? 1 : extent_of(a, i - missing);
        bool grows = i == 0 && f->varies[f->model] && !f->varies[arg]; /* one row now, maybe more later */
        bool any = !is_result && wanted == 0 && given == 1;
        bool is_one = i < missing || (given == 1 && ((wanted != 1 && !any) || grows));
        if ((!is_one && !any && given != wanted) || (is_one && is_after))
            return false;
        is_after = is_after || (out->last > 0 && !is_one && !any && wanted != 1);
        if (is_one) {
            out->first = out->last ? out->first : (uint32_t)i;
            out->last = (uint32_t)i + 1;
        }
    }
    for (; out->last && out->last < (uint32_t)model->rank && extent_of(model, (int32_t)out->last) == 1;)
        out->last++;
    return missing >= 0 && model->rank <= UINT8_MAX;
}

static bool is_region(const fitting *f, uint32_t arg)
{
    return !f->kind[arg].is_number;
}

static gantry_status fail(const fitting *f, uint32_t arg, const char *remedy)
{
    char one[100], other[100];
    add_shape(one, sizeof one, &f->arg[arg]);
    add_shape(other, sizeof other, &f->arg[f->model]);
    snprintf(f->text, f->size, "region \"%s\" is %s and \"%s\" is %s; %s", f->maths->arg[arg], one,
             f->maths->arg[f->model], other, remedy);
    return GANTRY_E_GRAPH;
}

/* One element may be for all, which is found when the node is carried out. */
static bool fit_read(fitting *f, uint32_t arg)
{
    axes along;
    gy_maths_kind *kind = &f->kind[arg];
    if (!align(f, arg, false, &along))
        return gy_maths_elements(&f->arg[arg]) == 1;
    kind->is_spread = along.last > 0 && !(along.first == 0 && along.last == (uint32_t)f->arg[f->model].rank);
    kind->first = (uint8_t)along.first;
    kind->last = (uint8_t)along.last;
    return true;
}

/* Those that do not fit, or GY_MATHS_ARGS. */
static uint32_t fit_all_read(fitting *f)
{
    for (uint32_t i = 0; i < f->maths->args; i++)
        if (is_region(f, i) && !f->maths->is_written[i] && i != f->model && !fit_read(f, i))
            return i;
    return GY_MATHS_ARGS;
}

/* ---- maps ---- */

static gantry_status fit_map(fitting *f)
{
    static const char remedy[] =
        "all that a map gives has one shape; what it reads has that shape, one element, or one "
        "along neighbouring axes, as NumPy broadcasts";
    f->model = f->maths->result[0].arg;
    for (uint32_t i = 0; i < f->maths->args; i++)
        if (f->maths->is_written[i] && is_region(f, i) && !have_one_shape(&f->arg[i], &f->arg[f->model]))
            return fail(f, i, remedy);
    uint32_t wrong = fit_all_read(f);
    return wrong == GY_MATHS_ARGS ? GANTRY_OK : fail(f, wrong, remedy);
}

/* ---- reductions ---- */

/* The first region that all others fit; the first of all where there is none. */
static gantry_status choose_model(fitting *f)
{
    uint32_t first = GY_MATHS_ARGS, wrong = GY_MATHS_ARGS;
    for (uint32_t i = f->maths->args; i-- > 0;)
        if (is_region(f, i) && !f->maths->is_written[i])
            first = i;
    for (uint32_t i = first; i < f->maths->args; i++) {
        if (!is_region(f, i) || f->maths->is_written[i])
            continue;
        f->model = i;
        wrong = fit_all_read(f);
        if (wrong == GY_MATHS_ARGS)
            return GANTRY_OK;
    }
    if (first == GY_MATHS_ARGS) /* types.c says that no region is reduced */
        return GANTRY_OK;
    f->model = first;
    return fail(f, fit_all_read(f),
                "one region that a reduction reads has all elements; others have its shape, one element, or one along "
                "neighbouring axes, as NumPy broadcasts");
}

/* The shape of the model without an axis, or with 1 there. */
static bool lacks_axis(const gantry_arg *a, const gantry_arg *model, int32_t axis)
{
    bool is_kept = a->rank == model->rank;
    if (!is_kept && a->rank != model->rank - 1)
        return false;
    for (int32_t i = 0; i < model->rank; i++)
        if (i != axis && extent_of(a, i - (!is_kept && i > axis)) != extent_of(model, i))
            return false;
    return !is_kept || extent_of(a, axis) == 1;
}

static gantry_status fit_axis(fitting *f, const gy_maths_result *r, axes *out)
{
    const gantry_arg *model = &f->arg[f->model], *a = &f->arg[r->arg];
    int32_t axis = r->axis < 0 ? r->axis + model->rank : r->axis;
    char remedy[160];
    if (axis < 0 || axis >= model->rank) {
        snprintf(remedy, sizeof remedy, "formula \"%.60s\" reduces axis %d, and there are axes 0 to %d", r->text,
                 (int)r->axis, (int)model->rank - 1);
        return fail(f, r->arg, remedy);
    }
    bool is_all = model->rank == 1 && gy_maths_elements(a) == 1;
    if (!is_all && !lacks_axis(a, model, axis)) {
        snprintf(remedy, sizeof remedy,
                 "reducing axis %d gives the shape without it, or with 1 there: give it a region of that shape",
                 (int)axis);
        return fail(f, r->arg, remedy);
    }
    *out = (axes){ (uint32_t)axis, (uint32_t)axis + 1 };
    while (out->last < (uint32_t)model->rank && extent_of(model, (int32_t)out->last) == 1)
        out->last++;
    return GANTRY_OK;
}

static bool has_short_axis(const gantry_arg *a)
{
    for (int32_t i = 0; i < a->rank; i++)
        if (extent_of(a, i) <= 1)
            return true;
    return false;
}

static gantry_status fit_result(fitting *f, const gy_maths_result *r, axes *out)
{
    if (r->has_axis)
        return fit_axis(f, r, out);
    if (align(f, r->arg, true, out)) {
        return out->last || has_short_axis(&f->arg[f->model])
                   ? GANTRY_OK
                   : fail(f, r->arg,
                          "a reduction of that shape reduces nothing: give it one element, or one along axes");
    }
    if (gy_maths_elements(&f->arg[r->arg]) != 1)
        return fail(f, r->arg,
                    "without an axis, as in sum(x, 1), a reduction gives one element, or one along the axes where the "
                    "shapes differ, which are neighbours");
    *out = (axes){ 0, (uint32_t)f->arg[f->model].rank };
    return GANTRY_OK;
}

static gantry_status fit_reduction(fitting *f)
{
    axes all = { 0, 0 }, along;
    gantry_status status = choose_model(f);
    for (uint32_t i = 0; i < f->maths->results && !status && is_region(f, f->maths->result[i].arg); i++) {
        const gy_maths_result *r = &f->maths->result[i];
        gy_maths_kind *kind = &f->kind[r->arg];
        status = fit_result(f, r, &along);
        all = i ? all : along;
        if (!status && (all.first != along.first || all.last != along.last))
            status = fail(f, r->arg, "the formulas of one node reduce the same axes: make two nodes");
        kind->first = (uint8_t)along.first;
        kind->last = (uint8_t)along.last;
        kind->is_columns = along.last < (uint32_t)f->arg[f->model].rank;
        bool is_whole = along.first == 0 && !kind->is_columns;
        kind->is_spread = f->maths->is_read[r->arg] && !is_whole;
        kind->is_added = f->arg[r->arg].access >= GANTRY_SUM;
    }
    f->kind[f->model].is_model = true;
    return status;
}

gantry_status gy_maths_fit(const gy_maths *maths, gy_maths_kind *kind, const gantry_arg *arg, const bool *varies,
                           char *text, size_t size)
{
    fitting f = { .maths = maths, .kind = kind, .arg = arg, .varies = varies, .text = text, .size = size };
    gantry_status status = maths->reduces ? fit_reduction(&f) : fit_map(&f);
    for (uint32_t i = 0; i < maths->args; i++)
        kind[i].rank = (uint8_t)arg[f.model].rank;
    return status;
}

/* ---- launches ---- */

/* Has the region the extents of the model but those in [first, last)? Extents of 1 change nothing. */
static bool has_extents(const gantry_arg *a, const gantry_arg *model, uint32_t first, uint32_t last)
{
    int32_t at = 0;
    for (int32_t i = 0; i < model->rank; i++) {
        bool is_left_out = (uint32_t)i >= first && (uint32_t)i < last;
        if (is_left_out || extent_of(model, i) == 1)
            continue;
        while (at < a->rank && extent_of(a, at) == 1)
            at++;
        if (at == a->rank || extent_of(a, at++) != extent_of(model, i))
            return false;
    }
    while (at < a->rank && extent_of(a, at) == 1)
        at++;
    return at == a->rank;
}

/* Rows may be others than when the program was made. */
static bool fits(const gy_maths_program *p, const gantry_launch *launch, uint32_t i)
{
    const gantry_arg *a = gantry_launch_arg(launch, (int32_t)i);
    const gantry_arg *model = gantry_launch_arg(launch, (int32_t)p->model);
    const gy_maths_kind *kind = &p->kind[i];
    if (kind->is_number || (!p->maths->is_written[i] && gy_maths_elements(model) == 0))
        return true;
    if (p->maths->reduces && p->maths->is_written[i])
        return has_extents(a, model, p->first, p->last);
    if (kind->is_spread)
        return has_extents(a, model, kind->first, kind->last);
    return have_one_shape(a, model) || (!p->maths->is_written[i] && gy_maths_elements(a) == 1);
}

gantry_status gy_maths_check(const gantry_launch *launch, char *text, size_t size)
{
    const gy_maths_program *p = launch->user;
    for (uint32_t i = 0; i < p->maths->args; i++) {
        char one[100], other[100];
        if (fits(p, launch, i))
            continue;
        add_shape(one, sizeof one, gantry_launch_arg(launch, (int32_t)i));
        add_shape(other, sizeof other, gantry_launch_arg(launch, (int32_t)p->model));
        snprintf(text, size,
                 "region \"%s\" is %s and \"%s\" is %s, which do not fit each other with these rows: cut "
                 "both alike",
                 p->maths->arg[i], one, p->maths->arg[p->model], other);
        return GANTRY_E_GRAPH;
    }
    return GANTRY_OK;
}
