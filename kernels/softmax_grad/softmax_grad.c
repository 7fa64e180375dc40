/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows.h"

enum { SCALE, Y, DY, DX }; /* arguments */

static void gradient_of_row(const gantry_launch *l, int64_t r)
{
    int64_t width = gy_row_width(&l->arg[Y]), first = r * width, end = first + width;
    int lanes = gy_lanes_of(width), pack = gy_row_pack(&l->arg[Y]), most = lanes * pack;
    gy_lanes sum = { { 0 } };
    gy_packs y, d;
    for (int64_t i = first; i < end; i += most) {
        int count = gy_packs_load(&y, most, &l->arg[Y], i, end);
        gy_packs_load(&d, most, &l->arg[DY], i, end);
        for (int k = 0; k < count; k++)
            sum.at[k / pack] += y.at[k] * d.at[k];
    }
    double total = gy_lanes_sum(&sum, lanes);
    for (int64_t i = first; i < end; i += most) {
        int count = gy_packs_load(&y, most, &l->arg[Y], i, end);
        gy_packs_load(&d, most, &l->arg[DY], i, end);
        for (int k = 0; k < count; k++)
            d.at[k] = l->arg[SCALE].number * y.at[k] * (d.at[k] - total);
        gy_packs_store(&d, &l->arg[DX], i, count);
    }
}

static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    (void)data;
    for (int64_t r = first; r < last; r++)
        gradient_of_row(l, r);
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    int64_t width = gy_row_width(&l->arg[Y]);
    return gantry_launch_cut(l, gy_row_count(&l->arg[Y], width), gy_grain_of_rows(width * 8), piece, NULL);
}

static const gantry_kernel_arg args[] = {
    GY_SCALE_OR("scale", 1, "that of softmax"),
    GY_REGION("y", GANTRY_READ, GY_FLOAT_DTYPES, 'T',
              "result of softmax: rows along the last axis; masked elements are 0"),
    GY_REGION("dy", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "gradient of y"),
    GY_REGION("dx", GANTRY_WRITE, GY_FLOAT_DTYPES, 'T', "gradient of x"),
};

const gantry_kernel gy_kernel_softmax_grad = {
    .struct_size = sizeof(gantry_kernel),
    .name = "softmax_grad",
    .summary = "gradient of softmax: dx = scale * y * (dy - sum of y dy), for each row",
    GANTRY_KERNEL_ARGS(args),
    .flops = "5 * y.size",
    .bytes = "2 * y.bytes + 2 * dy.bytes + dx.bytes",
    .host = run,
    .check = gy_check_regions_alike
};
