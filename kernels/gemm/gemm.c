/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/linalg.h"

enum { ALPHA, BETA, TA, TB, A, B, C, SCALE_A, SCALE_B };

static float scale_of(const gantry_arg *scale)
{
    return scale->data ? *(const float *)scale->data : 1;
}

/* Of f8, in the order in which the kernel for GPUs multiplies. */
static double alpha_of(const gantry_launch *l)
{
    double alpha = l->arg[ALPHA].number;
    if (!gy_dtype_is_f8(l->arg[A].dtype))
        return alpha;
    float scale = (float)alpha * scale_of(&l->arg[SCALE_A]);
    return (double)(scale * scale_of(&l->arg[SCALE_B]));
}

static gantry_status run(const gantry_launch *l)
{
    gy_product p = { .dtype = l->arg[A].dtype,
                     .result = l->arg[C].dtype,
                     .ta = l->arg[TA].number != 0,
                     .tb = l->arg[TB].number != 0,
                     .alpha = alpha_of(l),
                     .beta = gy_beta_of(&l->arg[BETA], &l->arg[C]),
                     .a = gy_matrix_of(&l->arg[A]),
                     .b = gy_matrix_of(&l->arg[B]),
                     .c = gy_matrix_of(&l->arg[C]) };
    return gy_product_do(l, &p);
}

static gantry_status check_scales(const gantry_launch *l, char *text, size_t size)
{
    for (int i = SCALE_A; i <= SCALE_B; i++) {
        const gantry_arg *scale = &l->arg[i];
        if (!scale->access)
            continue;
        if (gy_arg_size(scale) != 1)
            return gy_check_fail(text, size, "\"%s\" has %lld elements; it must have one, for all of the matrix",
                                 scale->name, (long long)gy_arg_size(scale));
        if (!gy_dtype_is_f8(l->arg[A].dtype))
            return gy_check_fail(text, size, "\"%s\" is given and \"%s\" is %s; matrices of f8 have scales, use alpha",
                                 scale->name, l->arg[A].name, gantry_dtype_name(l->arg[A].dtype));
    }
    return GANTRY_OK;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    for (int i = A; i <= C; i++)
        if (gy_check_matrix(l, i, text, size))
            return GANTRY_E_GRAPH;
    gy_matrix a = gy_matrix_of(&l->arg[A]), b = gy_matrix_of(&l->arg[B]), c = gy_matrix_of(&l->arg[C]);
    gantry_status status = gy_check_result(l, A, C, text, size);
    status = status ? status : check_scales(l, text, size);
    status = status ? status : gy_check_product(l->arg[TA].number != 0, l->arg[TB].number != 0, a, b, c, text, size);
    return status ? status : gy_check_beta(&l->arg[BETA], &l->arg[C], text, size);
}

static const gantry_kernel_arg args[] = {
    GY_SCALE_OR("alpha", 1, NULL),
    GY_SCALE_OR("beta", 0, "factor of the old c; needs access readwrite"),
    GY_NUMBER_OR("ta", 0, "1: a is transposed"),
    GY_NUMBER_OR("tb", 0, "1: b is transposed"),
    GY_REGION("a", GANTRY_READ, GY_FLOAT_DTYPES | GY_F8_DTYPES, 'T', "matrix"),
    GY_REGION("b", GANTRY_READ, GY_FLOAT_DTYPES | GY_F8_DTYPES, 'T', "matrix"),
    { .name = "c",
      .access = GANTRY_WRITE,
      .accesses = GANTRY_ACCESS_BIT(GANTRY_WRITE) | GANTRY_ACCESS_BIT(GANTRY_READWRITE) | GANTRY_ACCESS_BIT(GANTRY_SUM),
      .dtypes = GY_FLOAT_DTYPES,
      .summary = "matrix, of a's dtype, or f32 of f16 and bf16; of f8 f16, bf16 or f32; sum adds to it" },
    GY_REGION_OR_NONE("scale_a", GANTRY_READ, GANTRY_DTYPE_BIT(GANTRY_F32), 0,
                      "one number that all of a is multiplied by, where it is f8"),
    GY_REGION_OR_NONE("scale_b", GANTRY_READ, GANTRY_DTYPE_BIT(GANTRY_F32), 0, "the same of b"),
};

const gantry_kernel gy_kernel_gemm = { .struct_size = sizeof(gantry_kernel),
                                       .name = "gemm",
                                       .summary = "c = alpha op(a) op(b) + beta c",
                                       GANTRY_KERNEL_ARGS(args),
                                       .flops = "2 * a.size * (c.size // max(1, c.rows))",
                                       .bytes = "a.bytes + b.bytes + 2 * c.bytes",
                                       .host = run,
                                       .check = check,
                                       .open = gy_linalg_open_kernel,
                                       .close = gy_linalg_close };
