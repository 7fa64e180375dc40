/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of the regions of a node: which one says how many elements there are, and how others fit it. */
#include "maths/maths.h"

#include "base/error.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- extents ---- */

static int64_t extent_of(const gantry_arg *a, int32_t axis)
{
    return axis == 0 ? a->rows : a->shape[axis];
}

static int64_t product(const gy_maths_shape *s, uint32_t first, uint32_t last)
{
    int64_t all = 1;
    for (uint32_t i = first; i < last; i++)
        all *= s->extent[i];
    return all;
}

int64_t gy_maths_elements(const gantry_arg *arg)
{
    return arg->rows * arg->row_bytes / (int64_t)gantry_dtype_size(arg->dtype);
}

/* Axes behind the last that are counted are taken as one. */
gy_maths_shape gy_maths_shape_of(const gantry_arg *region)
{
    gy_maths_shape s = { .rank = (uint32_t)region->rank < GY_MATHS_AXES ? (uint32_t)region->rank : GY_MATHS_AXES };
    for (int32_t i = 0; i < region->rank; i++) {
        int32_t axis = i < GY_MATHS_AXES ? i : GY_MATHS_AXES - 1;
        s.extent[axis] = (i == axis ? 1 : s.extent[axis]) * extent_of(region, i);
    }
    return s;
}

gy_maths_shape gy_maths_model(const gy_maths_program *program, const gantry_launch *launch)
{
    if (!program->is_joint)
        return gy_maths_shape_of(gantry_launch_arg(launch, (int32_t)program->model));
    gy_maths_shape s = { .rank = program->rank };
    for (uint32_t i = 0; i < s.rank; i++)
        s.extent[i] = extent_of(gantry_launch_arg(launch, program->axis[i].arg), program->axis[i].axis);
    return s;
}

bool gy_maths_same_shape(const gy_maths_shape *a, const gy_maths_shape *b)
{
    return a->rank == b->rank && memcmp(a->extent, b->extent, a->rank * sizeof *a->extent) == 0;
}

int64_t gy_maths_shape_elements(const gy_maths_shape *shape)
{
    return product(shape, 0, shape->rank);
}

gy_maths_extents gy_maths_extents_of(const gy_maths_shape *model, uint32_t first, uint32_t last)
{
    return (gy_maths_extents){ .outer = product(model, 0, first),
                               .mid = product(model, first, last),
                               .inner = product(model, last, model->rank) };
}

static void add_shape(char *to, size_t size, const gy_maths_shape *s)
{
    size_t used = (size_t)snprintf(to, size, "%" PRId64, s->extent[0]);
    for (uint32_t i = 1; i < s->rank && used < size; i++)
        used += (size_t)snprintf(to + used, size - used, " x %" PRId64, s->extent[i]);
}

static bool has_shape(const gantry_arg *a, const gy_maths_shape *shape)
{
    gy_maths_shape own = gy_maths_shape_of(a);
    return gy_maths_same_shape(&own, shape);
}

/* ---- how one region fits another ---- */

typedef struct fitting {
    const gy_maths *maths;
    gy_maths_kind *kind;
    const gantry_arg *arg;
    const bool *varies;
    uint32_t model;       /* the region whose shape it is; GY_MATHS_ARGS: they have it together */
    gy_maths_shape shape; /* of the model */
    bool grows;           /* its rows may be more later */
    char *text;
    size_t size;
} fitting;

/* The next of the axes of the model along which a region has one element. */
static void add_axis(gy_maths_runs *all, bool is_apart, uint32_t axis)
{
    if (is_apart)
        all->at[all->count++].first = (uint8_t)axis;
    all->at[all->count - 1].last = (uint8_t)(axis + 1);
}

/* Axes that the region does not have, and of which the model has one element each, are a run only if there is no other,
 * unless its rows may be more later. */
static void leave_out_ones(const fitting *f, gy_maths_runs *all)
{
    int64_t elements = all->count > 1 && !f->grows ? product(&f->shape, all->at[0].first, all->at[0].last) : 0;
    if (elements == 1)
        memmove(all->at, all->at + 1, --all->count * sizeof *all->at);
}

/* Axes with one element behind the last run belong to it. */
static void end_runs(const fitting *f, gy_maths_runs *all)
{
    gy_maths_axes *last = all->count ? &all->at[all->count - 1] : NULL;
    while (last && last->last < f->shape.rank && f->shape.extent[last->last] == 1)
        last->last++;
}

/* Aligns the last axes of a region and of the model, as NumPy does: where the extents differ, that of the region is 1.
 * Axes of the model with one element keep no others apart. Where the model has none, nothing is read. */
static bool align(const fitting *f, uint32_t arg, bool is_result, gy_maths_runs *out)
{
    const gantry_arg *a = &f->arg[arg];
    int32_t rank = (int32_t)f->shape.rank, missing = rank - a->rank;
    bool is_apart = true;
    *out = (gy_maths_runs){ 0 };
    if (missing < 0)
        return false;
    for (int32_t i = 0; i < rank; i++) {
        int64_t wanted = f->shape.extent[i], given = i < missing ? 1 : extent_of(a, i - missing);
        bool grows = i == 0 && f->grows && !f->varies[arg]; /* one row now, maybe more later */
        bool any = !is_result && wanted == 0 && given == 1;
        bool is_one = i < missing || (given == 1 && ((wanted != 1 && !any) || grows));
        if (!is_one && !any && given != wanted)
            return false;
        if (is_one)
            add_axis(out, is_apart, (uint32_t)i);
        is_apart = !is_one && (is_apart || (!any && wanted != 1));
    }
    end_runs(f, out);
    leave_out_ones(f, out);
    return true;
}

static void set_model(fitting *f, uint32_t arg)
{
    f->model = arg;
    f->shape = gy_maths_shape_of(&f->arg[arg]);
    f->grows = f->varies[arg];
}

static bool is_region(const fitting *f, uint32_t arg)
{
    return !f->kind[arg].is_number;
}

/* Rows that are not all of their buffer are told with how many it has. */
static void add_region(char *to, size_t size, const gantry_arg *a)
{
    gy_maths_shape own = gy_maths_shape_of(a);
    add_shape(to, size, &own);
    size_t used = strlen(to);
    if (a->rank > 0 && !a->whole && a->rows > 0 && a->rows != a->shape[0])
        snprintf(to + used, size - used, " (rows %" PRId64 " to %" PRId64 " of %" PRId64 ")", a->first_row,
                 a->first_row + a->rows - 1, a->shape[0]);
}

/* Pieces of two buffers that would fit each other as a whole: how they are named or cut is what does not fit. NULL: it
 * is something else. */
static const char *find_piece_remedy(const fitting *f, uint32_t arg)
{
    const gantry_arg *a = &f->arg[arg], *model = &f->arg[f->model];
    bool is_reduced = f->maths->reduces && f->maths->is_written[arg];
    bool alike = !is_reduced && a->rank > 0 && a->rank == model->rank && !a->whole && !model->whole &&
                 a->rows != model->rows && memcmp(a->shape, model->shape, (size_t)a->rank * sizeof *a->shape) == 0;
    if (!alike)
        return NULL;
    if (a->own_rows == model->rows)
        return "a formula takes element by element and reads no neighbours: leave the halo (~) out";
    if (a->rows == a->shape[0] || model->rows == model->shape[0])
        return "name the same piece of both, such as x[i] and y[i]";
    return "these are pieces of different sizes: cut both buffers into as many parts, and name the same one of each";
}

static gantry_status fail(const fitting *f, uint32_t arg, const char *remedy)
{
    char one[200], other[200];
    bool is_joint = f->model == GY_MATHS_ARGS;
    const char *of_pieces = is_joint ? NULL : find_piece_remedy(f, arg);
    add_region(one, sizeof one, &f->arg[arg]);
    if (is_joint)
        add_shape(other, sizeof other, &f->shape);
    else
        add_region(other, sizeof other, &f->arg[f->model]);
    snprintf(f->text, f->size, "region \"%s\" is %s and %s%s%s is %s; %s", f->maths->arg[arg], one,
             is_joint ? "" : "\"", is_joint ? "what is read together" : f->maths->arg[f->model], is_joint ? "" : "\"",
             other, of_pieces ? of_pieces : remedy);
    return GANTRY_E_GRAPH;
}

/* One element may be for all, which is found when the node is carried out. */
static bool fit_read(fitting *f, uint32_t arg)
{
    gy_maths_runs along;
    gy_maths_kind *kind = &f->kind[arg];
    if (!align(f, arg, false, &along))
        return gy_maths_elements(&f->arg[arg]) == 1;
    bool is_one = along.count && along.at[0].first == 0 && along.at[0].last == f->shape.rank;
    kind->is_spread = along.count > 0 && !is_one;
    kind->runs = (uint8_t)(kind->is_spread ? along.count : 0);
    memcpy(kind->run, along.at, sizeof kind->run);
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
        "all that a map gives has one shape; what it reads has that shape, one element, or an extent of 1 along some "
        "of the axes, where the last axes are aligned, as NumPy broadcasts";
    set_model(f, f->maths->result[0].arg);
    for (uint32_t i = 0; i < f->maths->args; i++)
        if (f->maths->is_written[i] && is_region(f, i) && !has_shape(&f->arg[i], &f->shape))
            return fail(f, i, remedy);
    uint32_t wrong = fit_all_read(f);
    return wrong == GY_MATHS_ARGS ? GANTRY_OK : fail(f, wrong, remedy);
}

/* ---- reductions ---- */

/* Results that are not reduced have the shape of the model, so the first of them is it. */
static gantry_status fit_beside(fitting *f, uint32_t first)
{
    set_model(f, f->maths->result[first].arg);
    for (uint32_t i = first; i < f->maths->results; i++) {
        uint32_t arg = f->maths->result[i].arg;
        if (gy_maths_is_reduced(f->maths, i) || !is_region(f, arg))
            continue;
        if (!has_shape(&f->arg[arg], &f->shape))
            return fail(f, arg, "the formulas of a node that do not reduce give regions of one shape");
        f->kind[arg].is_beside = true;
    }
    uint32_t wrong = fit_all_read(f);
    return wrong == GY_MATHS_ARGS ? GANTRY_OK
                                  : fail(f, wrong,
                                         "what is read has the shape of what is given without a reduction, one "
                                         "element, or an extent of 1 along some of the axes, where the last axes are "
                                         "aligned, as NumPy broadcasts");
}

/* Does the region say the extent of an axis of the model, where `now` did so far? One that is not 1 does, and else one
 * whose rows may be others later. */
static bool says(const fitting *f, uint32_t axis, uint32_t arg, uint32_t now)
{
    int32_t own = (int32_t)axis - (int32_t)f->shape.rank + f->arg[arg].rank;
    if (own < 0)
        return false;
    return now == GY_MATHS_ARGS ||
           (f->shape.extent[axis] == 1 && (extent_of(&f->arg[arg], own) != 1 || (own == 0 && f->varies[arg])));
}

static bool is_operand(const fitting *f, uint32_t arg)
{
    return is_region(f, arg) && !f->maths->is_written[arg];
}

static uint32_t most_axes(const fitting *f)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < f->maths->args; i++)
        if (is_operand(f, i) && (uint32_t)f->arg[i].rank > most)
            most = (uint32_t)f->arg[i].rank;
    return most;
}

/* The shape that what is read has together, as NumPy broadcasts operands. False: they have none. */
static bool join_shapes(fitting *f)
{
    f->model = GY_MATHS_ARGS;
    f->shape.rank = most_axes(f);
    f->grows = false;
    if (f->shape.rank > GY_MATHS_AXES)
        return false;
    for (uint32_t axis = 0; axis < f->shape.rank; axis++) {
        uint32_t now = GY_MATHS_ARGS;
        for (uint32_t i = 0; i < f->maths->args; i++) {
            if (!is_operand(f, i) || !says(f, axis, i, now))
                continue;
            now = i;
            f->shape.extent[axis] = extent_of(&f->arg[i], (int32_t)(axis + (uint32_t)f->arg[i].rank - f->shape.rank));
        }
        f->kind[now].gives |= UINT32_C(1) << axis;
        f->grows = f->grows || (axis == 0 && f->varies[now]);
    }
    double elements = 1; /* counts stay exact */
    for (uint32_t axis = 0; axis < f->shape.rank; axis++)
        elements *= (double)f->shape.extent[axis];
    for (uint32_t i = 0; i < f->maths->args; i++)
        f->kind[i].missing = (uint8_t)(is_operand(f, i) ? f->shape.rank - (uint32_t)f->arg[i].rank : 0);
    return elements < 9e15 && fit_all_read(f) == GY_MATHS_ARGS;
}

/* The first region that all others fit, and that has as many axes; or the shape of all; the first region where there is
 * none. */
static gantry_status choose_model(fitting *f)
{
    uint32_t first = GY_MATHS_ARGS, wrong = GY_MATHS_ARGS, rank = most_axes(f);
    for (uint32_t i = 0; i < f->maths->results; i++)
        if (!gy_maths_is_reduced(f->maths, i))
            return fit_beside(f, i);
    for (uint32_t i = f->maths->args; i-- > 0;)
        if (is_operand(f, i))
            first = i;
    for (uint32_t i = first; i < f->maths->args; i++) {
        if (!is_operand(f, i) || (uint32_t)f->arg[i].rank < rank)
            continue;
        set_model(f, i);
        wrong = fit_all_read(f);
        if (wrong == GY_MATHS_ARGS)
            return GANTRY_OK;
    }
    if (first == GY_MATHS_ARGS) /* types.c says that no region is reduced */
        return GANTRY_OK;
    if (join_shapes(f))
        return GANTRY_OK;
    set_model(f, first);
    wrong = fit_all_read(f);
    return fail(f, wrong < GY_MATHS_ARGS ? wrong : first,
                "what a reduction reads has one shape, or is broadcast to one as by NumPy: where the last axes are "
                "aligned, extents are equal or 1");
}

/* Is it, from its axis `at` on, the shape of the model without some axes, or with 1 there? */
static bool lacks_axes_from(const gantry_arg *a, int32_t at, const gy_maths_shape *model, uint32_t axes)
{
    bool is_kept = (uint32_t)(a->rank - at) == model->rank;
    for (uint32_t i = 0; i < model->rank; i++) {
        bool is_one = axes >> i & 1;
        if (is_one && !is_kept)
            continue;
        if (at == a->rank || extent_of(a, at++) != (is_one ? 1 : model->extent[i]))
            return false;
    }
    return at == a->rank;
}

/* Axes of one element in front change nothing. */
static bool lacks_axes(const gantry_arg *a, const gy_maths_shape *model, uint32_t axes)
{
    int32_t first = 0;
    while (!lacks_axes_from(a, first, model, axes) && first < a->rank && extent_of(a, first) == 1)
        first++;
    return lacks_axes_from(a, first, model, axes);
}

/* The axes that a formula names, by bit. */
static gantry_status name_axes(const fitting *f, const gy_maths_result *r, uint32_t *out)
{
    int32_t rank = (int32_t)f->shape.rank;
    char remedy[160];
    *out = 0;
    for (uint32_t i = 0; i < r->axes; i++) {
        int32_t axis = r->axis[i] < 0 ? r->axis[i] + rank : r->axis[i];
        bool is_axis = axis >= 0 && axis < rank;
        if (is_axis && !(*out >> axis & 1)) {
            *out |= UINT32_C(1) << axis;
            continue;
        }
        if (is_axis)
            snprintf(remedy, sizeof remedy, "formula \"%.60s\" names axis %d twice: name it once", r->text, (int)axis);
        else
            snprintf(remedy, sizeof remedy, "formula \"%.60s\" reduces axis %d, and there are axes 0 to %d", r->text,
                     (int)r->axis[i], (int)rank - 1);
        return fail(f, r->arg, remedy);
    }
    return GANTRY_OK;
}

static gantry_status fail_axes(const fitting *f, const gy_maths_result *r, uint32_t axes)
{
    char remedy[200];
    int used = snprintf(remedy, sizeof remedy, r->axes == 1 ? "reducing axis" : "reducing axes");
    for (uint32_t i = 0, told = 0; i < f->shape.rank; i++)
        if (axes >> i & 1)
            used += snprintf(remedy + used, sizeof remedy - (size_t)used, "%s %" PRIu32, told++ ? "," : "", i);
    snprintf(remedy + used, sizeof remedy - (size_t)used,
             " gives the shape without %s, or with 1 there: give it a region of that shape",
             r->axes == 1 ? "it" : "them");
    return fail(f, r->arg, remedy);
}

static gantry_status fit_axes(const fitting *f, const gy_maths_result *r, gy_maths_runs *out)
{
    const gantry_arg *a = &f->arg[r->arg];
    uint32_t axes;
    bool is_apart = true;
    GY_TRY(name_axes(f, r, &axes));
    bool is_all = f->shape.rank == r->axes && gy_maths_elements(a) == 1;
    if (!is_all && !lacks_axes(a, &f->shape, axes))
        return fail_axes(f, r, axes);
    *out = (gy_maths_runs){ 0 };
    for (uint32_t i = 0; i < f->shape.rank; i++) {
        bool is_one = axes >> i & 1;
        if (is_one)
            add_axis(out, is_apart, i);
        is_apart = !is_one && (is_apart || f->shape.extent[i] != 1);
    }
    end_runs(f, out);
    return GANTRY_OK;
}

static bool has_short_axis(const gy_maths_shape *s)
{
    for (uint32_t i = 0; i < s->rank; i++)
        if (s->extent[i] <= 1)
            return true;
    return false;
}

static gantry_status fit_result(const fitting *f, const gy_maths_result *r, gy_maths_runs *out)
{
    if (r->axes)
        return fit_axes(f, r, out);
    if (align(f, r->arg, true, out)) {
        bool is_none = out->count == 0;
        out->count += is_none; /* an empty run, before all axes */
        return !is_none || has_short_axis(&f->shape)
                   ? GANTRY_OK
                   : fail(f, r->arg,
                          "a reduction of that shape reduces nothing: give it one element, or one along axes");
    }
    if (gy_maths_elements(&f->arg[r->arg]) != 1)
        return fail(f, r->arg,
                    "without an axis, as in sum(x, 1), a reduction gives one element, or an extent of 1 along the axes "
                    "that it reduces, where the last axes of both are aligned");
    *out = (gy_maths_runs){ .count = 1, .at = { { 0, (uint8_t)f->shape.rank } } };
    return GANTRY_OK;
}

static bool are_same(const gy_maths_runs *a, const gy_maths_runs *b)
{
    return a->count == b->count && memcmp(a->at, b->at, a->count * sizeof *a->at) == 0;
}

static void note_along(const fitting *f, uint32_t arg, const gy_maths_runs *along)
{
    gy_maths_kind *kind = &f->kind[arg];
    bool is_whole = gy_maths_begin_of(along) == 0 && gy_maths_end_of(along) == f->shape.rank && along->count < 2;
    kind->along = *along;
    kind->is_columns = gy_maths_end_of(along) < f->shape.rank;
    kind->is_spread = f->maths->is_read[arg] && !is_whole;
    kind->runs = (uint8_t)(kind->is_spread ? along->count : 0);
    memcpy(kind->run, along->at, sizeof kind->run);
    kind->is_added = f->arg[arg].access >= GANTRY_SUM;
}

static gantry_status fit_reduction(fitting *f)
{
    gy_maths_runs all = { 0 }, along = { 0 };
    bool is_first = true;
    gantry_status status = choose_model(f);
    for (uint32_t i = 0; i < f->maths->results && !status && is_region(f, f->maths->result[i].arg); i++) {
        const gy_maths_result *r = &f->maths->result[i];
        if (!gy_maths_is_reduced(f->maths, i))
            continue;
        status = fit_result(f, r, &along);
        all = is_first ? along : all;
        is_first = false;
        if (!status && !are_same(&all, &along))
            status = fail(f, r->arg, "the formulas of one node reduce the same axes: make two nodes");
        note_along(f, r->arg, &along);
    }
    if (f->model < GY_MATHS_ARGS)
        f->kind[f->model].is_model = true;
    return status;
}

/* A launch has room for what they need. */
static gantry_status check_runs(const fitting *f)
{
    uint32_t runs = 0, reduced = 0;
    for (uint32_t i = 0; i < f->maths->args; i++) {
        runs += f->kind[i].runs;
        reduced = f->kind[i].along.count > reduced ? f->kind[i].along.count : reduced;
    }
    runs += reduced > 1 ? reduced : 0;
    if (runs <= GY_MATHS_ALL_RUNS)
        return GANTRY_OK;
    snprintf(f->text, f->size,
             "what its formulas read is broadcast along %u runs of neighbouring axes, and there may be %d: make two "
             "nodes of it, or give regions the shape that is wanted before",
             runs, GY_MATHS_ALL_RUNS);
    return GANTRY_E_GRAPH;
}

gantry_status gy_maths_fit(const gy_maths *maths, gy_maths_kind *kind, const gantry_arg *arg, const bool *varies,
                           char *text, size_t size)
{
    fitting f = { .maths = maths, .kind = kind, .arg = arg, .varies = varies, .text = text, .size = size };
    gantry_status status = maths->reduces ? fit_reduction(&f) : fit_map(&f);
    status = status ? status : check_runs(&f);
    for (uint32_t i = 0; i < maths->args; i++)
        kind[i].rank = (uint8_t)f.shape.rank;
    return status;
}

/* ---- launches ---- */

/* Has the region the extents of the model but those of some runs of axes? Extents of 1 change nothing. */
static bool has_extents(const gantry_arg *a, const gy_maths_shape *model, const gy_maths_axes *run, uint32_t runs)
{
    int32_t at = 0;
    for (uint32_t i = 0, k = 0; i < model->rank; i++) {
        while (k < runs && i >= run[k].last)
            k++;
        bool is_left_out = k < runs && i >= run[k].first;
        if (is_left_out || model->extent[i] == 1)
            continue;
        while (at < a->rank && extent_of(a, at) == 1)
            at++;
        if (at == a->rank || extent_of(a, at++) != model->extent[i])
            return false;
    }
    while (at < a->rank && extent_of(a, at) == 1)
        at++;
    return at == a->rank;
}

/* Rows may be others than when the program was made. */
static bool fits(const gy_maths_program *p, const gantry_launch *launch, const gy_maths_shape *model, uint32_t i)
{
    const gantry_arg *a = gantry_launch_arg(launch, (int32_t)i);
    const gy_maths_kind *kind = &p->kind[i];
    if (kind->is_number || (!p->maths->is_written[i] && gy_maths_shape_elements(model) == 0))
        return true;
    if (p->maths->reduces && p->maths->is_written[i] && !kind->is_beside)
        return has_extents(a, model, p->along.at, p->along.count);
    if (kind->is_spread)
        return has_extents(a, model, kind->run, kind->runs);
    return has_shape(a, model) || (!p->maths->is_written[i] && gy_maths_elements(a) == 1);
}

gantry_status gy_maths_check(const gantry_launch *launch, char *text, size_t size)
{
    const gy_maths_program *p = launch->user;
    gy_maths_shape model = gy_maths_model(p, launch);
    for (uint32_t i = 0; i < p->maths->args; i++) {
        char one[100], other[100];
        if (fits(p, launch, &model, i))
            continue;
        gy_maths_shape own = gy_maths_shape_of(gantry_launch_arg(launch, (int32_t)i));
        add_shape(one, sizeof one, &own);
        add_shape(other, sizeof other, &model);
        snprintf(text, size,
                 "region \"%s\" is %s and %s%s%s is %s, which do not fit each other with these rows: cut "
                 "both alike",
                 p->maths->arg[i], one, p->is_joint ? "" : "\"",
                 p->is_joint ? "what is read together" : p->maths->arg[p->model], p->is_joint ? "" : "\"", other);
        return GANTRY_E_GRAPH;
    }
    return GANTRY_OK;
}
