/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/reduce.h"

enum { BLOCK = 1024 };

static gy_number sum(const gantry_arg *x)
{
    gy_number total = { 0, 0 };
    int64_t n = gy_arg_size(x);
    switch (x->dtype) {
#define REAL(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype:                                                                                                        \
        for (int64_t first = 0; first < n; first += BLOCK) {                                                           \
            double part = 0;                                                                                           \
            for (int64_t i = first; i < n && i < first + BLOCK; i++)                                                   \
                part += (double)LOAD(((const type *)x->data)[i]);                                                      \
            total.real += part;                                                                                        \
        }                                                                                                              \
        break;
        GY_FLOAT_TYPES(REAL)
#undef REAL
#define WHOLE(dtype, type, wide, LOAD, STORE)                                                                          \
    case dtype:                                                                                                        \
        for (int64_t i = 0; i < n; i++)                                                                                \
            total.integer += LOAD(((const type *)x->data)[i]);                                                         \
        break;
        GY_INTEGER_TYPES(WHOLE)
#undef WHOLE
    default:
        break;
    }
    return total;
}

static gantry_status run(const gantry_launch *l)
{
    gy_number total = sum(&l->arg[0]), out = gy_number_load(l->arg[1].data, l->arg[1].dtype, 0);
    out.real += total.real;
    out.integer += total.integer;
    gy_number_store(l->arg[1].data, l->arg[1].dtype, 0, out);
    return GANTRY_OK;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    return gy_check_accumulator(l, 0, 1, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_REGION("x", GANTRY_READ, 0, 0, NULL),
    GY_REGION("out", GANTRY_SUM, 0, 0, "one element, of x's dtype or a wider one"),
};

const gantry_kernel gy_kernel_reduce_sum = { sizeof(gantry_kernel),
                                             "reduce_sum",
                                             "out += sum of x",
                                             GY_ARGS(args),
                                             0,
                                             "x.size",
                                             "x.bytes",
                                             NULL,
                                             run,
                                             check,
                                             NULL,
                                             NULL };
