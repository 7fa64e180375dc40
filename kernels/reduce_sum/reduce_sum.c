/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/reduce.h"

static void add_elements(double *column, const gantry_launch *l, int64_t first, int64_t count)
{
    switch (l->arg[0].dtype) {
#define REAL(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype: {                                                                                                      \
        const type *x = (const type *)l->arg[0].data + first;                                                          \
        for (int64_t i = 0; i < count; i++)                                                                            \
            column[i] += (double)LOAD(x[i]);                                                                           \
        break;                                                                                                         \
    }
        GY_FLOAT_TYPES(REAL)
#undef REAL
    default:
        break;
    }
}

/* The order of integers is nobody's concern. */
static gantry_status sum_integers(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    uint64_t total = 0;
    const gantry_arg *x = &l->arg[0];
    switch (x->dtype) {
#define WHOLE(dtype, type, wide, LOAD, STORE)                                                                          \
    case dtype:                                                                                                        \
        for (int64_t i = first; i < last; i++)                                                                         \
            total += LOAD(((const type *)x->data)[i]);                                                                 \
        break;
        GY_INTEGER_TYPES(WHOLE)
#undef WHOLE
    default:
        break;
    }
    atomic_fetch_add((_Atomic uint64_t *)data, total);
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    gy_number out = gy_number_load(l->arg[1].data, l->arg[1].dtype, 0);
    _Atomic uint64_t whole = 0;
    if (gy_is_float(l->arg[0].dtype))
        out.real += gy_sum_rows(l, add_elements);
    else
        gantry_launch_cut(l, gy_arg_size(&l->arg[0]), GY_GRAIN, sum_integers, &whole);
    out.integer += whole;
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

const gantry_kernel gy_kernel_reduce_sum = { .struct_size = sizeof(gantry_kernel),
                                             .name = "reduce_sum",
                                             .summary = "out += sum of x",
                                             GANTRY_KERNEL_ARGS(args),
                                             .flops = "x.size",
                                             .bytes = "x.bytes",
                                             .scratch = GY_CHUNK_SCRATCH,
                                             .host = run,
                                             .check = check,
                                             .formula = "out = sum(x)" };
