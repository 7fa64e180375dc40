/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/qr/qr.h"
#include <string.h>

enum { A, Q, R }; /* arguments */

/* Householder's reflections leave either sign to a row of r. With a diagonal that is not negative, r and q are the only
 * ones where the columns of a are independent: those of every library, and of a stack of parts that were factored
 * before. */
#define SIGNS(type)                                                                                                    \
    /* The triangle of q above and on its diagonal becomes r. Row i of it is turned where sign[i] is -1. */            \
    static void take_##type(gy_matrix q, gy_matrix r, type *sign)                                                      \
    {                                                                                                                  \
        const type *from = q.data;                                                                                     \
        type *to = r.data;                                                                                             \
        for (int64_t i = 0; i < r.rows; i++) {                                                                         \
            sign[i] = from[i * q.ld + i] < 0 ? (type)-1 : (type)1;                                                     \
            for (int64_t j = 0; j < r.columns; j++)                                                                    \
                to[i * r.ld + j] = j < i ? 0 : sign[i] * from[i * q.ld + j];                                           \
        }                                                                                                              \
    }                                                                                                                  \
    static void turn_##type(gy_matrix q, const type *sign)                                                             \
    {                                                                                                                  \
        for (int64_t i = 0; i < q.rows; i++)                                                                           \
            for (int64_t j = 0; j < q.columns; j++)                                                                    \
                ((type *)q.data)[i * q.ld + j] *= sign[j];                                                             \
    }
SIGNS(float)
SIGNS(double)

int32_t gy_qr_reflect(const gy_linalg *table, gantry_dtype dtype, gy_matrix q, gy_matrix r, void *room)
{
    void *tau = room, *sign = (char *)room + (size_t)r.rows * gantry_dtype_size(dtype);
    int32_t word = table->geqrf(dtype, q, tau);
    if (word)
        return word;
    if (dtype == GANTRY_F32)
        take_float(q, r, sign);
    else
        take_double(q, r, sign);
    word = table->orgqr(dtype, q, tau);
    if (dtype == GANTRY_F32)
        turn_float(q, sign);
    else
        turn_double(q, sign);
    return word;
}

static gantry_status run(const gantry_launch *l)
{
    const gantry_arg *a = &l->arg[A];
    gy_matrix q = gy_matrix_of(&l->arg[Q]), r = gy_matrix_of(&l->arg[R]);
    if (r.rows == 0)
        return GANTRY_OK;
    memcpy(q.data, a->data, (size_t)(a->rows * a->row_bytes));
    return gy_qr_factor(l, a->dtype, q, r);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *a = &l->arg[A], *r = &l->arg[R];
    gantry_status status = GANTRY_OK;
    for (int i = A; i <= R && !status; i++)
        status = gy_check_matrix(l, i, text, size);
    if (status)
        return status;
    int64_t columns = gy_arg_width(a);
    if (a->rows < columns)
        return gy_check_fail(
            text, size,
            "\"a\" is %lld x %lld; it must have at least as many rows as columns: transpose it, or cut "
            "it into fewer parts",
            (long long)a->rows, (long long)columns);
    if (l->arg[Q].rows != a->rows || gy_arg_width(&l->arg[Q]) != columns)
        return gy_check_fail(text, size, "\"q\" is %lld x %lld and \"a\" %lld x %lld; they must agree",
                             (long long)l->arg[Q].rows, (long long)gy_arg_width(&l->arg[Q]), (long long)a->rows,
                             (long long)columns);
    if (r->rows == columns && gy_arg_width(r) == columns)
        return GANTRY_OK;
    return gy_check_fail(text, size,
                         "\"r\" is %lld x %lld; it must be %lld x %lld, a row and a column for each of \"a\"",
                         (long long)r->rows, (long long)gy_arg_width(r), (long long)columns, (long long)columns);
}

static const gantry_kernel_arg args[] = {
    GY_REGION("a", GANTRY_READ, GY_WIDE_DTYPES, 'T', "matrix with at least as many rows as columns"),
    GY_REGION("q", GANTRY_WRITE, GY_WIDE_DTYPES, 'T', "as a; its columns are orthonormal"),
    GY_REGION("r", GANTRY_WRITE, GY_WIDE_DTYPES, 'T', "square; zeros below its diagonal, which is not negative"),
};

const gantry_kernel gy_kernel_qr = { .struct_size = sizeof(gantry_kernel),
                                     .name = "qr",
                                     .summary = "a = q r by Householder's reflections, the thin factors",
                                     GANTRY_KERNEL_ARGS(args),
                                     .flops = "4 * a.size * r.rows - 4 * r.size * r.rows // 3",
                                     .bytes = "a.bytes + 2 * q.bytes + r.bytes",
                                     .host = run,
                                     .check = check,
                                     .open = gy_linalg_open_kernel,
                                     .close = gy_linalg_close };
