/* SPDX-License-Identifier: Apache-2.0 */
/* One step of Jacobi's method for Laplace's equation on a grid: the mean of the four neighbours; the border stays. */
#include "kernels/box.h"
#include "kernels/manifest.h"
#include <string.h>

static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    (void)data;
    const gantry_arg *in = &l->arg[0], *out = &l->arg[1];
    gy_extent x = gy_extent_of(in), y = gy_extent_of(out);
    int64_t columns = x.count[3], width = y.count[3], right = x.whole[3] - 1 - y.first[3];
    int64_t size = (int64_t)gantry_dtype_size(in->dtype);
    int64_t low = y.first[3] == 0 ? 1 : 0, high = right < width ? right : width;
    for (int64_t i = first; i < last; i++) {
        int64_t row = y.first[2] + i;
        const char *from = (const char *)in->data + ((row - x.first[2]) * columns + y.first[3] - x.first[3]) * size;
        char *to = (char *)out->data + i * width * size;
        memcpy(to, from, (size_t)(width * size));
        if (row == 0 || row == x.whole[2] - 1)
            continue;
        switch (in->dtype) {
#define LOOP(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype: {                                                                                                      \
        const type *u = (const type *)(const void *)from;                                                              \
        type *v = (type *)(void *)to;                                                                                  \
        for (int64_t k = low; k < high; k++)                                                                           \
            v[k] = (type)0.25 * ((u[k - columns] + u[k + columns]) + (u[k - 1] + u[k + 1]));                           \
        break;                                                                                                         \
    }
            GY_WIDE_TYPES(LOOP)
#undef LOOP
        default:
            return GANTRY_E_KERNEL;
        }
    }
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    gy_extent y = gy_extent_of(&l->arg[1]);
    return gantry_launch_cut(l, y.count[2], gy_grain_of_rows(y.count[3]), piece, NULL);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    return gy_check_around(l, 2, 1, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_REGION("x", GANTRY_READ, GY_WIDE_DTYPES, 'T', "grid; the rows of y and one more on each side"),
    GY_REGION("y", GANTRY_WRITE, GY_WIDE_DTYPES, 'T', "grid after the step"),
};

const gantry_kernel gy_kernel_jacobi2d = { .struct_size = sizeof(gantry_kernel),
                                           .name = "jacobi2d",
                                           .summary = "y = mean of x's four neighbours, border kept",
                                           GANTRY_KERNEL_ARGS(args),
                                           .flops = "4 * y.size",
                                           .bytes = "x.bytes + y.bytes",
                                           .host = run,
                                           .check = check };
