/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/argsort/argsort.h"

enum { DESCENDING, X, INDEX }; /* arguments */

static gantry_status run(const gantry_launch *l)
{
    gy_radix r = gy_argsort_of(l);
    gy_radix_sort(l, &r);
    return GANTRY_OK;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *index = &l->arg[INDEX];
    gantry_status status = gy_radix_check(l, X, text, size);
    status = status ? status : gy_check_same_size(l, X, INDEX, text, size);
    if (!status && index->dtype == GANTRY_I32 && gy_arg_size(index) > INT32_MAX)
        return gy_check_fail(text, size,
                             "\"%s\" is i32, which cannot count the %lld elements of \"%s\"; it must be i64",
                             index->name, (long long)gy_arg_size(index), l->arg[X].name);
    return status;
}

static const gantry_kernel_arg args[] = {
    GY_SCALE_OR("descending", 0, "1: the place of the largest first"),
    GY_REGION("x", GANTRY_READ, 0, 0, NULL),
    GY_REGION("index", GANTRY_WRITE, GANTRY_DTYPE_BIT(GANTRY_I32) | GANTRY_DTYPE_BIT(GANTRY_I64), 0,
              "as many elements as x"),
};

const gantry_kernel gy_kernel_argsort = {
    .struct_size = sizeof(gantry_kernel),
    .name = "argsort",
    .summary = "x[index[0]], x[index[1]], ... is x in ascending order; equal ones keep theirs",
    GANTRY_KERNEL_ARGS(args),
    .flops = "8 * x.bytes",
    .bytes = "(3 * x.bytes + 2 * index.bytes) * x.bytes / max(1, x.size)",
    .scratch = "2 * " GY_RADIX_COPY("x") " + " GY_RADIX_COPY("index") " + " GY_RADIX_COUNTS("x"),
    .host = run,
    .check = check
};
