/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/reduce.h"

static void add_products(double *column, const gantry_launch *l, int64_t first, int64_t count)
{
    switch (l->arg[0].dtype) {
#define LOOP(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype: {                                                                                                      \
        const type *x = (const type *)l->arg[0].data + first, *y = (const type *)l->arg[1].data + first;               \
        for (int64_t i = 0; i < count; i++)                                                                            \
            column[i] += (double)LOAD(x[i]) * (double)LOAD(y[i]);                                                      \
        break;                                                                                                         \
    }
        GY_FLOAT_TYPES(LOOP)
#undef LOOP
    default:
        break;
    }
}

static gantry_status run(const gantry_launch *l)
{
    gy_number out = gy_number_load(l->arg[2].data, l->arg[2].dtype, 0);
    out.real += gy_sum_rows(l, add_products);
    gy_number_store(l->arg[2].data, l->arg[2].dtype, 0, out);
    return GANTRY_OK;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    gantry_status status = gy_check_same_size(l, 0, 1, text, size);
    return status ? status : gy_check_accumulator(l, 0, 2, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_REGION("x", GANTRY_READ, GY_FLOAT_DTYPES, 'T', NULL),
    GY_REGION("y", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "as many elements as x"),
    GY_REGION("out", GANTRY_SUM, GY_FLOAT_DTYPES, 0, "one element, of x's dtype or a wider one"),
};

const gantry_kernel gy_kernel_dot = { .struct_size = sizeof(gantry_kernel),
                                      .name = "dot",
                                      .summary = "out += sum of x y",
                                      GANTRY_KERNEL_ARGS(args),
                                      .flops = "2 * x.size",
                                      .bytes = "x.bytes + y.bytes",
                                      .scratch = GY_CHUNK_SCRATCH,
                                      .host = run,
                                      .check = check,
                                      .formula = "out = sum(x * y)" };
