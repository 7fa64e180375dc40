/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/linalg.h"

enum { ALPHA, BETA, TA, TB, A, B, C };

/* The first matrix of a stack. */
static gy_matrix first_of(const gantry_arg *a)
{
    return (gy_matrix){ a->data, a->shape[1], a->shape[2], a->shape[2] };
}

/* The matrix of product i. A stack of one matrix has the same for all products. */
static gy_matrix matrix_of(const gantry_arg *a, int64_t i)
{
    gy_matrix m = first_of(a);
    int64_t at = a->rows == 1 ? 0 : i;
    m.data = (char *)a->data + at * m.rows * m.columns * (int64_t)gantry_dtype_size(a->dtype);
    return m;
}

static gy_product product_of(const gantry_launch *l, int64_t i)
{
    return (gy_product){ .dtype = l->arg[A].dtype,
                         .result = l->arg[C].dtype,
                         .ta = l->arg[TA].number != 0,
                         .tb = l->arg[TB].number != 0,
                         .alpha = l->arg[ALPHA].number,
                         .beta = gy_beta_of(&l->arg[BETA], &l->arg[C]),
                         .a = matrix_of(&l->arg[A], i),
                         .b = matrix_of(&l->arg[B], i),
                         .c = matrix_of(&l->arg[C], i) };
}

/* Items are the bands of all products. */
static gantry_status piece(const gantry_launch *l, void *data, int64_t first, int64_t last)
{
    int64_t bands = *(const int64_t *)data;
    for (int64_t i = first; i < last; i++) {
        gy_product p = product_of(l, i / bands);
        gy_product_do_band(l, &p, i % bands);
    }
    return GANTRY_OK;
}

static gantry_status run(const gantry_launch *l)
{
    gy_product p = product_of(l, 0);
    int64_t bands = gy_product_bands(&p);
    return gy_linalg_cut(l, l->arg[C].rows * bands, gy_product_flops(&p), piece, &bands);
}

static gantry_status check_stacks(const gantry_launch *l, char *text, size_t size)
{
    for (int i = A; i <= C; i++) {
        const gantry_arg *a = &l->arg[i];
        if (a->rank != 3)
            return gy_check_fail(text, size, "\"%s\" has %d axes; it must be a stack of matrices, with 3", a->name,
                                 (int)a->rank);
        if (a->rows != l->arg[C].rows && a->rows != 1)
            return gy_check_fail(text, size,
                                 "\"%s\" has %lld matrices and \"c\" has %lld; give as many, or 1 that is for all",
                                 a->name, (long long)a->rows, (long long)l->arg[C].rows);
    }
    return GANTRY_OK;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    gantry_status status = check_stacks(l, text, size);
    status = status ? status : gy_check_result(l, A, C, text, size);
    if (status)
        return status;
    gy_matrix a = first_of(&l->arg[A]), b = first_of(&l->arg[B]), c = first_of(&l->arg[C]);
    status = gy_check_product(l->arg[TA].number != 0, l->arg[TB].number != 0, a, b, c, text, size);
    return status ? status : gy_check_beta(&l->arg[BETA], &l->arg[C], text, size);
}

static const gantry_kernel_arg args[] = {
    GY_SCALE_OR("alpha", 1, NULL),
    GY_SCALE_OR("beta", 0, "factor of the old c; needs access readwrite"),
    GY_NUMBER_OR("ta", 0, "1: matrices of a are transposed"),
    GY_NUMBER_OR("tb", 0, "1: matrices of b are transposed"),
    GY_REGION("a", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "stack of matrices, or 1 that is for all"),
    GY_REGION("b", GANTRY_READ, GY_FLOAT_DTYPES, 'T', "stack of matrices, or 1 that is for all"),
    { .name = "c",
      .access = GANTRY_WRITE,
      .accesses = GANTRY_ACCESS_BIT(GANTRY_WRITE) | GANTRY_ACCESS_BIT(GANTRY_READWRITE) | GANTRY_ACCESS_BIT(GANTRY_SUM),
      .dtypes = GY_FLOAT_DTYPES,
      .summary = "stack of matrices, of a's dtype, or f32 of f16 and bf16; sum adds to it" },
};

const gantry_kernel gy_kernel_gemm_batched = { .struct_size = sizeof(gantry_kernel),
                                               .name = "gemm_batched",
                                               .summary = "c = alpha op(a) op(b) + beta c, for each matrix of stacks",
                                               GANTRY_KERNEL_ARGS(args),
                                               .flops = "2 * c.size * ((ta != 0) * a.shape1 + (ta == 0) * a.shape2)",
                                               .bytes = "a.bytes + b.bytes + 2 * c.bytes",
                                               .host = run,
                                               .check = check,
                                               .open = gy_linalg_open_kernel,
                                               .close = gy_linalg_close };
