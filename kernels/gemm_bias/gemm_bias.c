/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gemm_bias/gemm_bias.h"

#include "kernels/linalg.h"
#include <math.h>

enum {
    TA = GY_GEMM_BIAS_TA,
    TB = GY_GEMM_BIAS_TB,
    ACTIVATION = GY_GEMM_BIAS_ACTIVATION,
    A = GY_GEMM_BIAS_A,
    B = GY_GEMM_BIAS_B,
    BIAS = GY_GEMM_BIAS_BIAS,
    C = GY_GEMM_BIAS_C
};

#define ACTIVATE(type, tanh_of, erf_of)                                                                                \
    static type activate_##type(type x, int activation)                                                                \
    {                                                                                                                  \
        if (activation == GY_ACTIVATION_RELU)                                                                          \
            return x < 0 ? 0 : x;                                                                                      \
        if (activation == GY_ACTIVATION_GELU)                                                                          \
            return (type)0.5 * x * (1 + tanh_of((type)GY_GELU_SLOPE * (x + (type)GY_GELU_CUBE * x * x * x)));          \
        if (activation == GY_ACTIVATION_GELU_ERF)                                                                      \
            return (type)0.5 * x * (1 + erf_of((type)GY_GELU_INNER * x));                                              \
        return x;                                                                                                      \
    }
ACTIVATE(float, tanhf, erff)
ACTIVATE(double, tanh, erf)

/* c = f(c + bias), row by row. */
static gantry_status finish(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    (void)data;
    gy_matrix c = gy_matrix_of(&l->arg[C]);
    int activation = (int)l->arg[ACTIVATION].integer;
    switch (l->arg[C].dtype) {
#define LOOP(dtype, type, wide, LOAD, STORE)                                                                           \
    case dtype: {                                                                                                      \
        const type *bias = l->arg[BIAS].data;                                                                          \
        type *at = (type *)c.data + first * c.ld;                                                                      \
        for (int64_t i = first; i < last; i++, at += c.ld)                                                             \
            for (int64_t j = 0; j < c.columns; j++)                                                                    \
                at[j] = STORE(activate_##wide(LOAD(at[j]) + LOAD(bias[j]), activation));                               \
        break;                                                                                                         \
    }
        GY_FLOAT_TYPES(LOOP)
#undef LOOP
    default:
        break;
    }
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    gy_product p = { .dtype = l->arg[C].dtype,
                     .result = l->arg[C].dtype,
                     .ta = l->arg[TA].number != 0,
                     .tb = l->arg[TB].number != 0,
                     .alpha = 1,
                     .a = gy_matrix_of(&l->arg[A]),
                     .b = gy_matrix_of(&l->arg[B]),
                     .c = gy_matrix_of(&l->arg[C]) };
    gantry_status status = gy_product_do(l, &p);
    return status ? status : gantry_launch_cut(l, p.c.rows, gy_grain_of_rows(p.c.columns * 4), finish, NULL);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    double activation = l->arg[ACTIVATION].number;
    for (int i = A; i <= C; i++)
        if (i != BIAS && gy_check_matrix(l, i, text, size))
            return GANTRY_E_GRAPH;
    if (activation != GY_ACTIVATION_NONE && activation != GY_ACTIVATION_RELU && activation != GY_ACTIVATION_GELU &&
        activation != GY_ACTIVATION_GELU_ERF)
        return gy_check_fail(text, size,
                             "\"activation\" is %g; it must be 0 (none), 1 (relu), 2 (gelu) or 3 (gelu with erf)",
                             activation);
    if (gy_arg_size(&l->arg[BIAS]) != gy_arg_width(&l->arg[C]))
        return gy_check_fail(text, size, "\"bias\" has %lld elements and a row of \"c\" has %lld; they must agree",
                             (long long)gy_arg_size(&l->arg[BIAS]), (long long)gy_arg_width(&l->arg[C]));
    return gy_check_product(l->arg[TA].number != 0, l->arg[TB].number != 0, gy_matrix_of(&l->arg[A]),
                            gy_matrix_of(&l->arg[B]), gy_matrix_of(&l->arg[C]), text, size);
}

static const gantry_kernel_arg args[] = {
    GY_NUMBER_OR("ta", 0, "1: a is transposed"),
    GY_NUMBER_OR("tb", 0, "1: b is transposed"),
    GY_NUMBER_OR("activation", 0, "0: none, 1: relu, 2: gelu, in the form with tanh, 3: gelu, with erf"),
    GY_REGION("a", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "matrix"),
    GY_REGION("b", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "matrix"),
    GY_REGION("bias", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "as many elements as a row of c"),
    GY_REGION("c", GANTRY_WRITE, GY_FLOAT_DTYPES, 'T', "matrix"),
};

const gantry_kernel gy_kernel_gemm_bias = {
    .struct_size = sizeof(gantry_kernel),
    .name = "gemm_bias",
    .summary = "c = f(op(a) op(b) + bias), the same bias for every row; f: none, relu or gelu",
    GANTRY_KERNEL_ARGS(args),
    .flops = "2 * a.size * (c.size // max(1, c.rows)) + c.size",
    .bytes = "a.bytes + b.bytes + bias.bytes + c.bytes",
    .host = run,
    .check = check,
    .open = gy_linalg_open_kernel,
    .close = gy_linalg_close
};
