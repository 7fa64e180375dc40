/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/norm.h"
#include <math.h>
#include <string.h>

enum { EPS, X, GAIN, DY, DX, DGAIN }; /* arguments; those from DY on are of gradients */

gy_norm gy_norm_of(const gantry_arg *x, int64_t row, double eps, bool centred)
{
    int64_t width = gy_arg_width(x), first = row * width, end = first + width;
    gy_lanes sum = { { 0 } }, squares = { { 0 } }, v;
    gy_norm n = { 0, 0 };
    if (centred) {
        for (int64_t i = first; i < end; i += GY_LANES) {
            gy_lanes_load(&v, x, i, end);
            for (int k = 0; k < GY_LANES; k++)
                sum.at[k] += v.at[k];
        }
        n.mean = gy_lanes_sum(&sum) / (double)width;
    }
    for (int64_t i = first; i < end; i += GY_LANES) {
        int count = gy_lanes_load(&v, x, i, end);
        for (int k = 0; k < count; k++)
            squares.at[k] += (v.at[k] - n.mean) * (v.at[k] - n.mean);
    }
    n.inverse = 1 / sqrt(gy_lanes_sum(&squares) / (double)width + eps);
    return n;
}

gantry_status gy_norm_forward(const gantry_launch *l, const gantry_arg *bias, const gantry_arg *y)
{
    const gantry_arg *x = &l->arg[X], *gain = &l->arg[GAIN];
    int64_t width = gy_arg_width(x);
    for (int64_t r = 0; r < x->rows; r++) {
        gy_norm n = gy_norm_of(x, r, l->arg[EPS].number, bias != NULL);
        for (int64_t c = 0; c < width; c += GY_LANES) {
            gy_lanes v, g, b = { { 0 } };
            int count = gy_lanes_load(&v, x, r * width + c, (r + 1) * width);
            gy_lanes_load(&g, gain, c, width);
            if (bias)
                gy_lanes_load(&b, bias, c, width);
            for (int k = 0; k < GY_LANES; k++)
                v.at[k] = (v.at[k] - n.mean) * n.inverse * g.at[k] + b.at[k];
            gy_lanes_store(&v, y, r * width + c, count);
        }
    }
    return GANTRY_OK;
}

/* With u = (x - mean) * inverse and d = dy * gain: dx = inverse * (d - mean(d) - u * mean(d u)), without mean(d) where
 * no mean was taken off. */
static void backward_row(const gantry_launch *l, int64_t r, gy_norm n, bool centred)
{
    int64_t width = gy_arg_width(&l->arg[X]), end = (r + 1) * width;
    gy_lanes sum = { { 0 } }, product = { { 0 } }, x, g, d;
    double mean = 0, along = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t c = 0; c < width; c += GY_LANES) {
            int count = gy_lanes_load(&x, &l->arg[X], r * width + c, end);
            gy_lanes_load(&g, &l->arg[GAIN], c, width);
            gy_lanes_load(&d, &l->arg[DY], r * width + c, end);
            for (int k = 0; k < GY_LANES; k++) {
                double u = (x.at[k] - n.mean) * n.inverse, v = d.at[k] * g.at[k];
                sum.at[k] += v;
                product.at[k] += v * u;
                d.at[k] = n.inverse * (v - mean - u * along);
            }
            if (pass)
                gy_lanes_store(&d, &l->arg[DX], r * width + c, count);
        }
        mean = centred ? gy_lanes_sum(&sum) / (double)width : 0;
        along = gy_lanes_sum(&product) / (double)width;
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
    int64_t width = gy_arg_width(x);
    column_sums s;
    gy_lanes v, d;
    int count = 0;
    memset(&s, 0, sizeof s);
    for (int64_t r = 0; r < x->rows; r++) {
        count = gy_lanes_load(&v, x, r * width + c, (r + 1) * width);
        gy_lanes_load(&d, &l->arg[DY], r * width + c, (r + 1) * width);
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

gantry_status gy_norm_backward(const gantry_launch *l, const gantry_arg *dbias)
{
    const gantry_arg *x = &l->arg[X];
    gy_norm *norm = l->scratch;
    for (int64_t r = 0; r < x->rows; r++) {
        norm[r] = gy_norm_of(x, r, l->arg[EPS].number, dbias != NULL);
        backward_row(l, r, norm[r], dbias != NULL);
    }
    for (int64_t c = 0; x->rows && c < gy_arg_width(x); c += GY_LANES)
        backward_columns(l, norm, dbias, c);
    return GANTRY_OK;
}

gantry_status gy_check_norm(const gantry_launch *l, int y, int first, int last, char *text, size_t size)
{
    int64_t width = gy_arg_width(&l->arg[X]);
    for (int i = GAIN; i <= last; i++) {
        if ((i == GAIN || i >= first) && gy_arg_size(&l->arg[i]) != width)
            return gy_check_fail(text, size, "a row of \"x\" has %lld elements and \"%s\" has %lld; they must agree",
                                 (long long)width, l->arg[i].name, (long long)gy_arg_size(&l->arg[i]));
    }
    return gy_check_same_size(l, X, y, text, size);
}
