/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions on the host, in the order that maths.h states. */
#include "maths/runner.h"

#include "base/memory.h"
#include <math.h>
#include <string.h>

/* A total of real or of whole numbers; argmin and argmax note which element it was. */
typedef struct total {
    union {
        double real;
        int64_t whole;
    };
    int64_t at;
} total;

enum { NO_ELEMENT = -1 };

/* ---- two totals ---- */

/* NaN where either is one. */
static double join_real(gy_maths_reduction reduction, double a, double b)
{
    if (reduction == GY_MATHS_LEAST)
        return a < b || a != a ? a : b;
    if (reduction == GY_MATHS_MOST)
        return a > b || a != a ? a : b;
    return a + b;
}

/* Sums wrap around; any is the largest of 0 and 1, all the least. */
static int64_t join_whole(gy_maths_reduction reduction, int64_t a, int64_t b)
{
    if (reduction == GY_MATHS_LEAST || reduction == GY_MATHS_ALL)
        return a < b ? a : b;
    if (reduction == GY_MATHS_MOST || reduction == GY_MATHS_ANY)
        return a > b ? a : b;
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* Does a go before b? The first NaN does, else what is larger (or smaller), else what comes first. */
static bool is_before(gy_maths_reduction reduction, gy_maths_type type, total a, total b)
{
    bool most = reduction == GY_MATHS_WHERE_MOST;
    if (a.at == NO_ELEMENT || b.at == NO_ELEMENT)
        return a.at != NO_ELEMENT;
    if (type == GY_MATHS_I64)
        return a.whole == b.whole ? a.at < b.at : most ? a.whole > b.whole : a.whole < b.whole;
    bool is_nan = a.real != a.real, other_nan = b.real != b.real;
    if (is_nan || other_nan)
        return is_nan && (!other_nan || a.at < b.at);
    return a.real == b.real ? a.at < b.at : most ? a.real > b.real : a.real < b.real;
}

static total join(gy_maths_reduction reduction, gy_maths_type type, total a, total b)
{
    if (gy_maths_finds(reduction))
        return is_before(reduction, type, a, b) ? a : b;
    if (type == GY_MATHS_I64)
        return (total){ .whole = join_whole(reduction, a.whole, b.whole) };
    return (total){ .real = join_real(reduction, a.real, b.real) };
}

/* The total of no elements. */
static total nothing(gy_maths_reduction reduction, gy_maths_type type)
{
    bool is_least = reduction == GY_MATHS_LEAST, is_most = reduction == GY_MATHS_MOST;
    if (type == GY_MATHS_I64)
        return (total){ .whole = is_least                    ? INT64_MAX
                                 : is_most                   ? INT64_MIN
                                 : reduction == GY_MATHS_ALL ? 1
                                                             : 0,
                        .at = NO_ELEMENT };
    return (total){ .real = is_least ? INFINITY : is_most ? -INFINITY : 0, .at = NO_ELEMENT };
}

/* ---- many ---- */

/* How the segments of all results are divided into items that threads take: a group of neighbouring ones each, 2^n but
 * for the last of a result, whose total so is that of a subtree, and has the same bits whoever adds it up. */
typedef struct groups {
    const gy_maths_code *code;
    gy_maths_extents extents;
    int64_t segment, segments; /* elements of a result that are one segment; segments of a result */
    int64_t group, groups;     /* segments of a group; groups of a result */
    total *totals;             /* per item, result and column, where a result has several groups */
} groups;

typedef struct reducer {
    gy_maths_runner *runner;
    uint32_t results, beside;
    uint32_t result[GY_MATHS_RESULTS]; /* those of reductions, then those beside, as numbers of the program */
    gy_maths_extents extents;
    gy_maths_places places;
    int64_t segment; /* elements of a result that are one segment */
    size_t width;    /* results at a time: all that a row has, or 1 */
    size_t lanes;    /* of a segment */
    size_t totals;   /* of a segment: for each lane, one for each of the results at a time */
    total *so_far;   /* by result, lane and column */
    double *sums;    /* the same for sums of real numbers while a segment is added up: nothing beside the numbers */
    total *waiting;  /* by result, level and column: totals of 2^level segments that wait for their neighbours */
    uint32_t levels;
} reducer;

static gy_maths_reduction reduction_of(const reducer *r, uint32_t k)
{
    return r->runner->program->maths->result[r->result[k]].reduction;
}

static gy_maths_type type_of(const reducer *r, uint32_t k)
{
    return r->runner->program->value_type[r->result[k]];
}

static const void *value_of(const reducer *r, uint32_t k)
{
    return gy_maths_result_values(r->runner, r->result[k]);
}

/* Lanes that have no element change nothing, so they are left out. */
static size_t lanes_of(gy_maths_extents e)
{
    size_t lanes = 1, most = e.inner == 1 ? GY_MATHS_LANES : GY_MATHS_COLUMN_LANES;
    while (lanes < most && (int64_t)lanes < e.mid)
        lanes *= 2;
    return lanes;
}

static bool sums_reals(const reducer *r, uint32_t result)
{
    gy_maths_reduction reduction = reduction_of(r, result);
    return type_of(r, result) == GY_MATHS_F64 && (reduction == GY_MATHS_TOTAL || reduction == GY_MATHS_MEAN);
}

static void begin_segment(reducer *r)
{
    memset(r->sums, 0, r->results * r->totals * sizeof *r->sums);
    for (uint32_t k = 0; k < r->results; k++)
        for (size_t i = 0; i < r->totals; i++)
            r->so_far[k * r->totals + i] = nothing(reduction_of(r, k), type_of(r, k));
}

/* The totals of all lanes meet in those of the first. */
static void end_segment(reducer *r)
{
    for (uint32_t k = 0; k < r->results; k++) {
        total *found = &r->so_far[k * r->totals];
        for (size_t i = 0; i < r->totals && sums_reals(r, k); i++)
            found[i].real = r->sums[k * r->totals + i];
        for (size_t half = r->totals / 2; half >= r->width; half /= 2)
            for (size_t i = 0; i < half; i++)
                found[i] = join(reduction_of(r, k), type_of(r, k), found[i], found[i + half]);
    }
}

/* n values for neighbouring lanes or columns from `lane` on; the first is element `at` of its result, as are all, or
 * those after it follow by `step`. */
static void add_values(reducer *r, uint32_t result, size_t lane, const void *value, size_t n, int64_t at, int64_t step)
{
    const double *real = value;
    const int64_t *whole = value;
    double *sum = &r->sums[result * r->totals + lane];
    total *to = &r->so_far[result * r->totals + lane];
    gy_maths_reduction reduction = reduction_of(r, result);
    gy_maths_type type = type_of(r, result);
    if (sums_reals(r, result)) {
        for (size_t i = 0; i < n; i++)
            sum[i] += real[i];
        return;
    }
    for (size_t i = 0; i < n; i++) {
        total one = { .at = at + step * (int64_t)i };
        if (type == GY_MATHS_I64)
            one.whole = whole[i];
        else
            one.real = real[i];
        to[i] = join(reduction, type, to[i], one);
    }
}

/* ---- segments ---- */

/* Results that are not reduced are stored behind the reductions, which may read an element that they replace. */
static void store_beside(const reducer *r, int64_t first, size_t n)
{
    for (uint32_t k = r->results; k < r->results + r->beside; k++)
        gy_maths_store_chunk(r->runner, r->result[k], first, n);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Elements [first, last) of result o: as many at a time as lie side by side, up to the last lane. */
static void do_lanes(reducer *r, int64_t o, int64_t first, int64_t last)
{
    for (int64_t at = first, n; at < last; at += n) {
        int64_t lane = at % GY_MATHS_LANES, place = gy_maths_place_of(&r->places, o, at);
        n = least(least(last - at, GY_MATHS_CHUNK - lane), gy_maths_side_by_side(&r->places, at));
        gy_maths_do_chunk(r->runner, place, (size_t)n);
        for (uint32_t k = 0; k < r->results; k++)
            add_values(r, k, (size_t)lane, value_of(r, k), (size_t)n, at, 1);
        store_beside(r, place, (size_t)n);
    }
}

/* A chunk of values that begins with column `column` of row `row`. */
static void add_columns(reducer *r, uint32_t k, int64_t row, size_t column, size_t n)
{
    const char *value = value_of(r, k);
    for (size_t done = 0; done < n; row++) {
        size_t count = r->width - column < n - done ? r->width - column : n - done;
        add_values(r, k, (size_t)row % r->lanes * r->width + column, value + 8 * done, count, row, 0);
        done += count;
        column = 0;
    }
}

/* Rows [first, last) of block o: a total for each column. */
static void do_columns(reducer *r, int64_t o, int64_t first, int64_t last)
{
    int64_t inner = r->extents.inner, end = last * inner;
    for (int64_t at = first * inner, n; at < end; at += n) {
        int64_t row = at / inner, column = at % inner;
        int64_t place = gy_maths_place_of(&r->places, o, row) * inner + column;
        n = least(least(end - at, GY_MATHS_CHUNK), gy_maths_side_by_side(&r->places, row) * inner - column);
        gy_maths_do_chunk(r->runner, place, (size_t)n);
        for (uint32_t k = 0; k < r->results; k++)
            add_columns(r, k, row, (size_t)column, (size_t)n);
        store_beside(r, place, (size_t)n);
    }
}

/* ---- neighbours ---- */

static total *waiting_at(const reducer *r, uint32_t result, uint32_t level)
{
    return &r->waiting[(result * (size_t)r->levels + level) * r->width];
}

static void join_all(const reducer *r, uint32_t k, const total *before, total *to)
{
    for (size_t i = 0; i < r->width; i++)
        to[i] = join(reduction_of(r, k), type_of(r, k), before[i], to[i]);
}

/* Segment number `count`, counted from 0, meets those before it as a bit that is added to a number carries. */
static void push(reducer *r, int64_t count)
{
    for (uint32_t k = 0; k < r->results; k++) {
        total *now = &r->so_far[k * r->totals];
        uint32_t level = 0;
        for (; count >> level & 1; level++)
            join_all(r, k, waiting_at(r, k, level), now);
        memcpy(waiting_at(r, k, level), now, r->width * sizeof *now);
    }
}

/* The pairs of `count` segments that found no neighbours meet at last, beginning with `now`, what is behind all of
 * them; NULL: nothing is. */
static const total *collect(reducer *r, uint32_t k, int64_t count, total *now)
{
    for (uint32_t level = 0; count >> level; level++) {
        if (!(count >> level & 1))
            continue;
        if (now)
            join_all(r, k, waiting_at(r, k, level), now);
        else
            now = waiting_at(r, k, level);
    }
    return now;
}

/* ---- results ---- */

/* A contribution is added to what is there: in reals where that is real, though what is added be whole. */
static total add_before(total found, const gantry_arg *arg, const char *at, gy_maths_reduction reduction,
                        gy_maths_type type)
{
    char value[sizeof(double)];
    total before = { .at = NO_ELEMENT };
    gantry_dtype wide = type == GY_MATHS_I64 ? GANTRY_I64 : GANTRY_F64;
    gy_maths_type from = arg->dtype == GANTRY_F64        ? GY_MATHS_F64
                         : gy_dtype_is_float(arg->dtype) ? GY_MATHS_F32
                                                         : GY_MATHS_I64;
    gy_maths_load(value, at, arg->dtype, 1);
    gy_maths_cast(&before, value, wide, from, 1);
    return join(reduction, type, before, found);
}

static void store(const reducer *r, uint32_t k, int64_t element, total found)
{
    const gy_maths_result *s = &r->runner->program->maths->result[r->result[k]];
    const gantry_arg *arg = gantry_launch_arg(r->runner->launch, (int32_t)s->arg);
    gy_maths_type type = type_of(r, k);
    char *at = (char *)arg->data + (size_t)element * gantry_dtype_size(arg->dtype);
    if (s->reduction == GY_MATHS_MEAN)
        found.real /= (double)r->extents.mid;
    if (gy_maths_finds(s->reduction)) {
        found.whole = found.at;
        type = GY_MATHS_I64;
    }
    if (arg->access >= GANTRY_SUM && type == GY_MATHS_I64 && gy_dtype_is_float(arg->dtype)) {
        found.real = (double)found.whole;
        type = GY_MATHS_F64;
    }
    if (arg->access >= GANTRY_SUM)
        found = add_before(found, arg, at, gy_maths_added_by(s->reduction), type);
    gy_maths_store(at, &found, arg->dtype, type, 1);
}

/* Results [o * width, (o + 1) * width), from their totals. */
static void store_all(const reducer *r, int64_t o, uint32_t k, const total *found)
{
    for (size_t i = 0; i < r->width; i++)
        store(r, k, o * (int64_t)r->width + (int64_t)i, found[i]);
}

static total *totals_of(const groups *all, const reducer *r, int64_t item, uint32_t k)
{
    return all->totals + ((size_t)item * r->results + k) * r->width;
}

/* One group of segments: its totals, or, where it is all that there is, the results. */
static void do_group(reducer *r, const groups *all, int64_t item)
{
    int64_t o = item / all->groups, mid = r->extents.mid, size = all->group * r->segment, count = 0;
    int64_t from = item % all->groups * size, end = mid - from < size ? mid : from + size;
    for (int64_t first = from; first < end || first == from; first += r->segment) {
        int64_t last = end - first < r->segment ? end : first + r->segment;
        begin_segment(r);
        if (r->extents.inner == 1)
            do_lanes(r, o, first, last);
        else
            do_columns(r, o, first, last);
        end_segment(r);
        push(r, count++);
    }
    for (uint32_t k = 0; k < r->results; k++) {
        const total *found = collect(r, k, count, NULL);
        if (all->groups == 1)
            store_all(r, o, k, found);
        else
            memcpy(totals_of(all, r, item, k), found, r->width * sizeof *found);
    }
}

/* The groups of a result meet as their segments would. */
static void join_groups(reducer *r, const groups *all, int64_t o)
{
    int64_t whole = all->segments / all->group; /* groups; the one behind them has fewer segments */
    for (int64_t g = 0; g < whole; g++) {
        for (uint32_t k = 0; k < r->results; k++)
            memcpy(&r->so_far[k * r->totals], totals_of(all, r, o * all->groups + g, k), r->width * sizeof(total));
        push(r, g);
    }
    for (uint32_t k = 0; k < r->results; k++) {
        total *behind = whole < all->groups ? totals_of(all, r, o * all->groups + whole, k) : NULL;
        store_all(r, o, k, collect(r, k, whole, behind));
    }
}

/* ---- a thread ---- */

static void sort_results(reducer *r)
{
    const gy_maths *m = r->runner->program->maths;
    for (uint32_t i = 0; i < m->results; i++)
        if (gy_maths_is_reduced(m, i))
            r->result[r->results++] = i;
    for (uint32_t i = 0; i < m->results; i++)
        if (!gy_maths_is_reduced(m, i))
            r->result[r->results + r->beside++] = i;
}

static void free_reducer(reducer *r)
{
    gy_free(r->so_far);
    gy_free(r->waiting);
    gy_free(r->sums);
}

static bool make_reducer(reducer *r, gy_maths_runner *runner, const groups *all)
{
    gy_maths_extents e = all->extents;
    *r = (reducer){ .runner = runner, .extents = e, .segment = all->segment, .width = (size_t)e.inner, .levels = 2 };
    gy_maths_shape model = gy_maths_model(runner->program, runner->launch);
    gy_maths_find_places(&r->places, &model, &runner->program->along);
    r->lanes = lanes_of(e);
    r->totals = r->lanes * r->width;
    sort_results(r);
    while (e.mid / r->segment >> (r->levels - 1))
        r->levels++;
    r->so_far = gy_alloc(r->results * r->totals * sizeof *r->so_far);
    r->waiting = gy_alloc(r->results * r->levels * r->width * sizeof *r->waiting);
    r->sums = gy_alloc(r->results * r->totals * sizeof *r->sums);
    if (r->so_far && r->waiting && r->sums)
        return true;
    free_reducer(r);
    return false;
}

/* Items are groups, or, with `join`, results whose groups meet. */
static gantry_status reduce(const gantry_launch *launch, const groups *all, int64_t first, int64_t last, bool join)
{
    gy_maths_runner runner;
    reducer r;
    if (!gy_maths_runner_make(&runner, launch, all->code->program, all->code->steps))
        return GANTRY_E_NOMEM;
    bool made = make_reducer(&r, &runner, all);
    for (int64_t item = first; item < last && made; item++)
        (join ? join_groups : do_group)(&r, all, item);
    if (made)
        free_reducer(&r);
    gy_maths_runner_free(&runner);
    return made ? GANTRY_OK : GANTRY_E_NOMEM;
}

static gantry_status reduce_items(const gantry_launch *launch, void *data, int64_t first, int64_t last)
{
    return reduce(launch, data, first, last, false);
}

/* ---- all ---- */

enum { ENOUGH = 64, MOST_GROUPS = 1024, MOST_TOTALS = 1 << 20 };

/* Results are items where there are many of them; else each is divided, into groups that are worth a thread. What
 * follows is from the shape alone. */
static groups divide(const gy_maths_code *code, gy_maths_extents e)
{
    groups all = { .code = code, .extents = e, .segment = e.inner == 1 ? GY_MATHS_SEGMENT : GY_MATHS_COLUMN };
    all.segments = e.mid ? (e.mid - 1) / all.segment + 1 : 1;
    for (all.group = 1; all.group < all.segments; all.group *= 2) {
        all.groups = (all.segments - 1) / all.group + 1;
        if (e.outer < ENOUGH && all.group * all.segment * e.inner >= GY_MATHS_GRAIN && all.groups <= MOST_GROUPS &&
            e.outer * all.groups * e.inner <= MOST_TOTALS)
            return all;
    }
    all.groups = 1;
    return all;
}

gantry_status gy_maths_reduce(const gantry_launch *launch, gy_maths_code *code)
{
    const gy_maths_program *p = code->program;
    gy_maths_shape model = gy_maths_model(p, launch);
    gy_maths_extents e = gy_maths_reduced(&model, &p->along);
    if (e.outer == 0 || e.inner == 0)
        return GANTRY_OK;
    groups all = divide(code, e);
    int64_t size = all.group * all.segment < e.mid ? all.group * all.segment : e.mid, one = size * e.inner;
    int64_t grain = one > 0 && one < GY_MATHS_GRAIN ? GY_MATHS_GRAIN / one : 1;
    if (all.groups > 1)
        all.totals = gy_alloc((size_t)(e.outer * all.groups * e.inner) * p->maths->results * sizeof *all.totals);
    if (all.groups > 1 && !all.totals)
        return GANTRY_E_NOMEM;
    gantry_status status = gantry_launch_cut(launch, e.outer * all.groups, grain, reduce_items, &all);
    if (!status && all.groups > 1)
        status = reduce(launch, &all, 0, e.outer, true);
    gy_free(all.totals);
    return status;
}
