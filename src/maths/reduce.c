/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions on the host, in the order that maths.h states. */
#include "maths/runner.h"

#include "base/memory.h"
#include <math.h>
#include <string.h>

/* A total of real or of whole numbers. */
typedef union total {
    double real;
    int64_t whole;
} total;

typedef struct lanes {
    total lane[GY_MATHS_CHUNK];
} lanes;

/* NaN where either is one. */
static double join_real(gy_maths_reduction reduction, double a, double b)
{
    if (reduction == GY_MATHS_LEAST)
        return a < b || a != a ? a : b;
    if (reduction == GY_MATHS_MOST)
        return a > b || a != a ? a : b;
    return a + b;
}

/* Sums wrap around. */
static int64_t join_whole(gy_maths_reduction reduction, int64_t a, int64_t b)
{
    if (reduction == GY_MATHS_LEAST)
        return a < b ? a : b;
    if (reduction == GY_MATHS_MOST)
        return a > b ? a : b;
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static total join(gy_maths_reduction reduction, gy_maths_type type, total a, total b)
{
    if (type == GY_MATHS_I64)
        return (total){ .whole = join_whole(reduction, a.whole, b.whole) };
    return (total){ .real = join_real(reduction, a.real, b.real) };
}

/* The total of no elements. */
static total nothing(gy_maths_reduction reduction, gy_maths_type type)
{
    bool is_least = reduction == GY_MATHS_LEAST, is_most = reduction == GY_MATHS_MOST;
    if (type == GY_MATHS_I64)
        return (total){ .whole = is_least ? INT64_MAX : is_most ? INT64_MIN : 0 };
    return (total){ .real = is_least ? INFINITY : is_most ? -INFINITY : 0 };
}

static void add_chunk(lanes *to, gy_maths_reduction reduction, gy_maths_type type, const void *value, size_t n)
{
    const double *real = value;
    const int64_t *whole = value;
    if (type == GY_MATHS_I64)
        for (size_t i = 0; i < n; i++)
            to->lane[i].whole = join_whole(reduction, to->lane[i].whole, whole[i]);
    else if (reduction == GY_MATHS_TOTAL || reduction == GY_MATHS_MEAN)
        for (size_t i = 0; i < n; i++)
            to->lane[i].real += real[i];
    else
        for (size_t i = 0; i < n; i++)
            to->lane[i].real = join_real(reduction, to->lane[i].real, real[i]);
}

static total join_lanes(lanes *l, gy_maths_reduction reduction, gy_maths_type type)
{
    for (size_t width = GY_MATHS_CHUNK / 2; width > 0; width /= 2)
        for (size_t i = 0; i < width; i++)
            l->lane[i] = join(reduction, type, l->lane[i], l->lane[i + width]);
    return l->lane[0];
}

/* One total a result. */
static void do_segment(gy_maths_runner *r, int64_t first, int64_t last, lanes *room, total *to)
{
    const gy_maths_program *p = r->program;
    uint32_t results = p->maths->results;
    for (uint32_t k = 0; k < results; k++)
        for (size_t i = 0; i < GY_MATHS_CHUNK; i++)
            room[k].lane[i] = nothing(p->maths->result[k].reduction, p->value_type[k]);
    for (int64_t at = first; at < last; at += GY_MATHS_CHUNK) {
        size_t n = (size_t)(last - at < GY_MATHS_CHUNK ? last - at : GY_MATHS_CHUNK);
        gy_maths_do_chunk(r, at, n);
        for (uint32_t k = 0; k < results; k++)
            add_chunk(&room[k], p->maths->result[k].reduction, p->value_type[k], r->value[p->value[k]], n);
    }
    for (uint32_t k = 0; k < results; k++)
        to[k] = join_lanes(&room[k], p->maths->result[k].reduction, p->value_type[k]);
}

/* Segment by segment; `step` totals lie between those of one result. */
static total join_segments(total *t, size_t count, size_t step, gy_maths_reduction reduction, gy_maths_type type)
{
    for (; count > 1; count = (count + 1) / 2) {
        for (size_t i = 0; i < count / 2; i++)
            t[i * step] = join(reduction, type, t[2 * i * step], t[(2 * i + 1) * step]);
        if (count % 2)
            t[count / 2 * step] = t[(count - 1) * step];
    }
    return t[0];
}

/* A contribution is added to what is there. */
static total add_before(total found, const gantry_arg *arg, gy_maths_reduction reduction, gy_maths_type type)
{
    char value[sizeof(double)];
    total before;
    gantry_dtype wide = type == GY_MATHS_I64 ? GANTRY_I64 : GANTRY_F64;
    gy_maths_type from = arg->dtype == GANTRY_F64        ? GY_MATHS_F64
                         : gy_dtype_is_float(arg->dtype) ? GY_MATHS_F32
                                                         : GY_MATHS_I64;
    gy_maths_load(value, arg->data, arg->dtype, 1);
    gy_maths_cast(&before, value, wide, from, 1);
    return join(reduction, type, before, found);
}

static void store(const gy_maths_runner *r, uint32_t result, total found, int64_t elements)
{
    const gy_maths_result *s = &r->program->maths->result[result];
    const gantry_arg *arg = gantry_launch_arg(r->launch, (int32_t)s->arg);
    gy_maths_type type = r->program->value_type[result];
    if (s->reduction == GY_MATHS_MEAN)
        found.real /= (double)elements;
    if (arg->access >= GANTRY_SUM)
        found = add_before(found, arg, s->reduction, type);
    gy_maths_store(arg->data, &found, arg->dtype, type, 1);
}

gantry_status gy_maths_reduce(gy_maths_runner *runner, int64_t elements)
{
    const gy_maths_program *p = runner->program;
    size_t results = p->maths->results;
    size_t segments = elements ? ((size_t)elements + GY_MATHS_SEGMENT - 1) / GY_MATHS_SEGMENT : 1;
    total *totals = gy_calloc(segments * results, sizeof *totals);
    lanes *room = gy_alloc(results * sizeof *room);
    for (size_t i = 0; i < segments && totals && room; i++) {
        int64_t first = (int64_t)i * GY_MATHS_SEGMENT, left = elements - first;
        do_segment(runner, first, first + (left < GY_MATHS_SEGMENT ? left : GY_MATHS_SEGMENT), room,
                   &totals[i * results]);
    }
    for (uint32_t k = 0; k < results && totals && room; k++)
        store(runner, k, join_segments(&totals[k], segments, results, p->maths->result[k].reduction, p->value_type[k]),
              elements);
    gantry_status status = totals && room ? GANTRY_OK : GANTRY_E_NOMEM;
    gy_free(totals);
    gy_free(room);
    return status;
}
