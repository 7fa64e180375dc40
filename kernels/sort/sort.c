/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/sort/sort.h"

enum { DESCENDING, X, Y }; /* arguments */

static gantry_status run(const gantry_launch *l)
{
    gy_radix r = gy_sort_of(l);
    gy_radix_sort(l, &r);
    return GANTRY_OK;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    gantry_status status = gy_radix_check(l, X, text, size);
    return status ? status : gy_check_same_size(l, X, Y, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_SCALE_OR("descending", 0, "1: the largest first, before them NaN"),
    GY_REGION("x", GANTRY_READ, 0, 'T', NULL),
    GY_REGION("y", GANTRY_WRITE, 0, 'T', "as many elements as x"),
};

const gantry_kernel gy_kernel_sort = { .struct_size = sizeof(gantry_kernel),
                                       .name = "sort",
                                       .summary = "y is x in ascending order, NaN last; both zeros are equal",
                                       GANTRY_KERNEL_ARGS(args),
                                       .flops = "8 * x.bytes",
                                       .bytes = "3 * x.bytes * x.bytes / max(1, x.size)",
                                       .scratch = GY_RADIX_COPY("x") " + " GY_RADIX_COUNTS("x"),
                                       .host = run,
                                       .check = check };
