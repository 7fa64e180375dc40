/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/norm.h"
#include <math.h>
#include <string.h>

enum { EPS, X, GAIN, DY, DX, DGAIN }; /* arguments; those from DY on are of gradients */

static int64_t width_of(const gantry_launch *l)
{
    return gy_arg_size(&l->arg[GAIN]);
}

/* All but f64 is computed in float, as on GPUs: a sum, product, quotient or root of two floats that is rounded to
 * double and then to float is the same as if it had been rounded once (S. A. Figueroa, 1995). */
static inline double rounded(double x, bool is_single)
{
    return is_single ? (double)(float)x : x;
}

static double sum_of(const gy_lanes *lanes, int count, bool is_single)
{
    gy_lanes sum = *lanes;
    for (int half = count / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++)
            sum.at[k] = rounded(sum.at[k] + sum.at[k + half], is_single);
    return sum.at[0];
}

/* The sum of x alone is in double: where elements are far from 0, all that is left of them depends on the mean. */
static double mean_of(const gantry_arg *x, int64_t first, int64_t width, bool is_single)
{
    int lanes = gy_lanes_of(width), pack = gy_row_pack(x), most = lanes * pack;
    gy_lanes sum = { { 0 } };
    gy_packs v;
    for (int64_t i = first; i < first + width; i += most) {
        int count = gy_packs_load(&v, most, x, i, first + width);
        for (int k = 0; k < count; k++)
            sum.at[k / pack] += v.at[k];
    }
    return rounded(gy_lanes_sum(&sum, lanes) / (double)width, is_single);
}

static inline double inverse_of(double squares, int64_t width, double eps, bool is_single)
{
    double mean = rounded(squares / (double)width, is_single);
    double root = rounded(sqrt(rounded(mean + rounded(eps, is_single), is_single)), is_single);
    return rounded(1 / root, is_single);
}

static gy_norm norm_of(const gantry_launch *l, int64_t row, bool centred)
{
    const gantry_arg *x = &l->arg[X];
    int64_t width = width_of(l), first = row * width;
    int lanes = gy_lanes_of(width), pack = gy_row_pack(x), most = lanes * pack;
    bool is_single = x->dtype != GANTRY_F64;
    gy_lanes squares = { { 0 } };
    gy_packs v;
    gy_norm n = { centred ? mean_of(x, first, width, is_single) : 0, 0 };
    for (int64_t i = first; i < first + width; i += most) {
        int count = gy_packs_load(&v, most, x, i, first + width);
        for (int k = 0; k < count; k++) {
            double apart = rounded(v.at[k] - n.mean, is_single), *sum = &squares.at[k / pack];
            *sum = rounded(*sum + rounded(apart * apart, is_single), is_single);
        }
    }
    n.inverse = inverse_of(sum_of(&squares, lanes, is_single), width, l->arg[EPS].number, is_single);
    return n;
}

typedef struct forward {
    const gantry_arg *bias, *y;
} forward;

/* Each element for itself, so the order says nothing. */
static gantry_status forward_rows(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    const gantry_arg *x = &l->arg[X], *gain = &l->arg[GAIN];
    const gantry_arg *bias = ((const forward *)data)->bias, *y = ((const forward *)data)->y;
    int64_t width = width_of(l);
    bool is_single = x->dtype != GANTRY_F64;
    for (int64_t r = first; r < last; r++) {
        gy_norm n = norm_of(l, r, bias != NULL);
        for (int64_t c = 0; c < width; c += GY_LONG_LANES) {
            gy_packs v, g, b;
            int count = gy_packs_load(&v, GY_LONG_LANES, x, r * width + c, (r + 1) * width);
            gy_packs_load(&g, GY_LONG_LANES, gain, c, width);
            if (bias)
                gy_packs_load(&b, GY_LONG_LANES, bias, c, width);
            for (int k = 0; k < count; k++) {
                double u = rounded(rounded(v.at[k] - n.mean, is_single) * n.inverse, is_single);
                v.at[k] = rounded(rounded(u * g.at[k], is_single) + (bias ? b.at[k] : 0), is_single);
            }
            gy_packs_store(&v, y, r * width + c, count);
        }
    }
    return GANTRY_OK;
}

gantry_status gy_norm_forward(const gantry_launch *l, const gantry_arg *bias, const gantry_arg *y)
{
    int64_t width = width_of(l);
    forward f = { bias, y };
    return gantry_launch_cut(l, gy_row_count(&l->arg[X], width), gy_grain_of_rows(width * 4), forward_rows, &f);
}

/* Means over a row of d = dy * gain and of d * u, where u = (x - mean) * inverse. */
typedef struct means {
    double of_d, along;
} means;

/* One lane: adds to the sums, and gives dx as it follows from the means. */
static inline double add_lane(double x, double d, gy_norm n, means m, double *sum, double *product, bool is_single)
{
    double u = rounded(rounded(x - n.mean, is_single) * n.inverse, is_single);
    double rest = rounded(rounded(d - m.of_d, is_single) - rounded(u * m.along, is_single), is_single);
    *sum = rounded(*sum + d, is_single);
    *product = rounded(*product + rounded(d * u, is_single), is_single);
    return rounded(n.inverse * rest, is_single);
}

/* dx = inverse * (d - mean(d) - u * mean(d u)), without mean(d) where no mean was taken off. */
static void backward_row(const gantry_launch *l, int64_t r, gy_norm n, bool centred)
{
    int64_t width = width_of(l), end = (r + 1) * width;
    int lanes = gy_lanes_of(width), pack = gy_row_pack(&l->arg[X]), most = lanes * pack;
    bool is_single = l->arg[X].dtype != GANTRY_F64;
    gy_lanes sum = { { 0 } }, product = { { 0 } };
    gy_packs x, g, d;
    means m = { 0, 0 };
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t c = 0; c < width; c += most) {
            int count = gy_packs_load(&x, most, &l->arg[X], r * width + c, end);
            gy_packs_load(&g, most, &l->arg[GAIN], c, width);
            gy_packs_load(&d, most, &l->arg[DY], r * width + c, end);
            for (int k = 0; k < count; k++) {
                double v = rounded(d.at[k] * g.at[k], is_single);
                d.at[k] = add_lane(x.at[k], v, n, m, &sum.at[k / pack], &product.at[k / pack], is_single);
            }
            if (pass)
                gy_packs_store(&d, &l->arg[DX], r * width + c, count);
        }
        m.of_d = centred ? rounded(sum_of(&sum, lanes, is_single) / (double)width, is_single) : 0;
        m.along = rounded(sum_of(&product, lanes, is_single) / (double)width, is_single);
    }
}

/* Sums of rows that one thread of a GPU has. */
typedef struct column_sums {
    gy_lanes gain[GY_LANES], bias[GY_LANES]; /* of row r in entry r % GY_LANES */
} column_sums;

static void add_halves(gy_lanes *sum)
{
    for (int half = GY_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            for (int k = 0; k < GY_LANES; k++)
                sum[i].at[k] += sum[i + half].at[k];
}

/* Of the columns from c on, over all rows: dgain += sum of dy * u, dbias += sum of dy. */
static void backward_columns(const gantry_launch *l, const gy_norm *norm, const gantry_arg *dbias, int64_t c)
{
    const gantry_arg *x = &l->arg[X];
    int64_t width = width_of(l), rows = gy_row_count(x, width);
    column_sums s;
    gy_lanes v, d;
    int count = 0;
    memset(&s, 0, sizeof s);
    for (int64_t r = 0; r < rows; r++) {
        count = gy_lanes_load(&v, GY_LANES, x, r * width + c, (r + 1) * width);
        gy_lanes_load(&d, GY_LANES, &l->arg[DY], r * width + c, (r + 1) * width);
        for (int k = 0; k < GY_LANES; k++) {
            s.gain[r % GY_LANES].at[k] += d.at[k] * ((v.at[k] - norm[r].mean) * norm[r].inverse);
            s.bias[r % GY_LANES].at[k] += d.at[k];
        }
    }
    add_halves(s.gain);
    add_halves(s.bias);
    gy_lanes_add(&s.gain[0], &l->arg[DGAIN], c, count);
    if (dbias)
        gy_lanes_add(&s.bias[0], dbias, c, count);
}

static gantry_status backward_rows(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    gy_norm *norm = l->scratch;
    for (int64_t r = first; r < last; r++) {
        norm[r] = norm_of(l, r, data != NULL);
        backward_row(l, r, norm[r], data != NULL);
    }
    return GANTRY_OK;
}

/* Items are strips of columns, which have their sums to themselves. */
static gantry_status backward_strips(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    for (int64_t strip = first; strip < last; strip++)
        backward_columns(l, l->scratch, data, strip * GY_LANES);
    return GANTRY_OK;
}

gantry_status gy_norm_backward(const gantry_launch *l, const gantry_arg *dbias)
{
    int64_t width = width_of(l), rows = gy_row_count(&l->arg[X], width), strips = (width + GY_LANES - 1) / GY_LANES;
    void *data = (void *)(uintptr_t)dbias;
    gantry_status status = gantry_launch_cut(l, rows, gy_grain_of_rows(width * 8), backward_rows, data);
    if (status || !rows)
        return status;
    return gantry_launch_cut(l, strips, gy_grain_of_rows(rows * GY_LANES), backward_strips, data);
}

gantry_status gy_check_norm(const gantry_launch *l, int y, int first, int last, char *text, size_t size)
{
    const gantry_arg *x = &l->arg[X];
    int64_t width = width_of(l), along = gy_row_width(x);
    if (width != along && (x->rank < 2 || width != gy_arg_width(x)))
        return gy_check_fail(text, size, "a row of \"x\" has %lld elements and \"gain\" has %lld; they must agree",
                             (long long)along, (long long)width);
    for (int i = first; i <= last; i++) {
        if (gy_arg_size(&l->arg[i]) != width)
            return gy_check_fail(text, size, "a row of \"x\" has %lld elements and \"%s\" has %lld; they must agree",
                                 (long long)width, l->arg[i].name, (long long)gy_arg_size(&l->arg[i]));
    }
    return gy_check_same_size(l, X, y, text, size);
}
