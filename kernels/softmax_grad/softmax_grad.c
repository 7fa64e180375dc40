/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows.h"

enum { SCALE, Y, DY, DX }; /* arguments */

static void gradient_of_row(const gantry_launch *l, int64_t r)
{
    int64_t width = gy_arg_width(&l->arg[Y]), first = r * width, end = first + width;
    gy_lanes y, d, sum = { { 0 } };
    for (int64_t i = first; i < end; i += GY_LANES) {
        gy_lanes_load(&y, &l->arg[Y], i, end);
        gy_lanes_load(&d, &l->arg[DY], i, end);
        for (int k = 0; k < GY_LANES; k++)
            sum.at[k] += y.at[k] * d.at[k];
    }
    double total = gy_lanes_sum(&sum);
    for (int64_t i = first; i < end; i += GY_LANES) {
        int count = gy_lanes_load(&y, &l->arg[Y], i, end);
        gy_lanes_load(&d, &l->arg[DY], i, end);
        for (int k = 0; k < GY_LANES; k++)
            d.at[k] = l->arg[SCALE].number * y.at[k] * (d.at[k] - total);
        gy_lanes_store(&d, &l->arg[DX], i, count);
    }
}

static gantry_status run(const gantry_launch *l)
{
    for (int64_t r = 0; r < l->arg[Y].rows; r++)
        gradient_of_row(l, r);
    return GANTRY_OK;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    gantry_status status = gy_check_same_size(l, Y, DY, text, size);
    return status ? status : gy_check_same_size(l, Y, DX, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_SCALE_OR("scale", 1, "that of softmax"),
    GY_REGION("y", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "result of softmax: rows; masked elements are 0"),
    GY_REGION("dy", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "gradient of y"),
    GY_REGION("dx", GANTRY_WRITE, GY_FLOAT_DTYPES, 'T', "gradient of x"),
};

const gantry_kernel gy_kernel_softmax_grad = { sizeof(gantry_kernel),
                                               "softmax_grad",
                                               "gradient of softmax: dx = scale * y * (dy - sum of y dy), for each row",
                                               GY_ARGS(args),
                                               0,
                                               "5 * y.size",
                                               "2 * y.bytes + 2 * dy.bytes + dx.bytes",
                                               NULL,
                                               run,
                                               check,
                                               NULL,
                                               NULL };
