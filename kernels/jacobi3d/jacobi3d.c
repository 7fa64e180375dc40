/* SPDX-License-Identifier: Apache-2.0 */
/* One step of Jacobi's method for Laplace's equation in a volume: the mean of the six neighbours; the border stays. */
#include "kernels/box.h"
#include "kernels/manifest.h"
#include <string.h>

/* A line of the volume: `row` and `plane` are how far apart rows and planes of x are. */
static gantry_status step(gantry_dtype dtype, const void *from, void *to, int64_t low, int64_t high, int64_t row,
                          int64_t plane)
{
    switch (dtype) {
#define LOOP(name, type, wide, LOAD, STORE)                                                                            \
    case name: {                                                                                                       \
        const type *u = (const type *)from;                                                                            \
        type *v = (type *)to;                                                                                          \
        for (int64_t k = low; k < high; k++)                                                                           \
            v[k] = (((u[k - plane] + u[k + plane]) + (u[k - row] + u[k + row])) + (u[k - 1] + u[k + 1])) / (type)6;    \
        return GANTRY_OK;                                                                                              \
    }
        GY_WIDE_TYPES(LOOP)
#undef LOOP
    default:
        return GANTRY_E_KERNEL;
    }
}

static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    (void)data;
    const gantry_arg *in = &l->arg[0], *out = &l->arg[1];
    gy_extent x = gy_extent_of(in), y = gy_extent_of(out);
    int64_t row = x.count[3], plane = row * x.count[2], width = y.count[3], right = x.whole[3] - 1 - y.first[3];
    int64_t size = (int64_t)gantry_dtype_size(in->dtype);
    int64_t low = y.first[3] == 0 ? 1 : 0, high = right < width ? right : width;
    for (int64_t i = first; i < last; i++) {
        int64_t p = y.first[1] + i / y.count[2], r = y.first[2] + i % y.count[2];
        int64_t at = (p - x.first[1]) * plane + (r - x.first[2]) * row + y.first[3] - x.first[3];
        const char *from = (const char *)in->data + at * size;
        char *to = (char *)out->data + i * width * size;
        memcpy(to, from, (size_t)(width * size));
        if (p != 0 && p != x.whole[1] - 1 && r != 0 && r != x.whole[2] - 1 &&
            step(in->dtype, from, to, low, high, row, plane))
            return GANTRY_E_KERNEL;
    }
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    gy_extent y = gy_extent_of(&l->arg[1]);
    return gantry_launch_cut(l, y.count[1] * y.count[2], gy_grain_of_rows(y.count[3]), piece, NULL);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    return gy_check_around(l, 3, 1, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_REGION("x", GANTRY_READ, GY_WIDE_DTYPES, 'T', "volume; what y has and one more on each side"),
    GY_REGION("y", GANTRY_WRITE, GY_WIDE_DTYPES, 'T', "volume after the step"),
};

const gantry_kernel gy_kernel_jacobi3d = { .struct_size = sizeof(gantry_kernel),
                                           .name = "jacobi3d",
                                           .summary = "y = mean of x's six neighbours, border kept",
                                           GANTRY_KERNEL_ARGS(args),
                                           .flops = "9 * y.size",
                                           .bytes = "x.bytes + y.bytes",
                                           .host = run,
                                           .check = check };
