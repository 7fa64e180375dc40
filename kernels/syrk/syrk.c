/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/linalg.h"

static gantry_status run(const gantry_launch *l)
{
    gy_linalg_of(l)->syrk(l->arg[2].dtype, l->arg[0].number, gy_matrix_of(&l->arg[2]), l->arg[1].number,
                          gy_matrix_of(&l->arg[3]));
    return GANTRY_OK;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    gantry_status status = gy_check_matrix(l, 2, text, size);
    if (!status)
        status = gy_check_square(l, 3, text, size);
    if (status || l->arg[2].rows == l->arg[3].rows)
        return status;
    return gy_check_fail(text, size, "\"a\" has %lld rows and \"c\" %lld; they must agree", (long long)l->arg[2].rows,
                         (long long)l->arg[3].rows);
}

static const gantry_kernel_arg args[] = {
    GY_SCALE_OR("alpha", -1, NULL),
    GY_SCALE_OR("beta", 1, NULL),
    GY_REGION("a", GANTRY_READ, GY_WIDE_DTYPES, 'T', "matrix"),
    GY_REGION("c", GANTRY_READWRITE, GY_WIDE_DTYPES, 'T', "square; only its lower triangle is used"),
};

const gantry_kernel gy_kernel_syrk = { sizeof(gantry_kernel),
                                       "syrk",
                                       "c = alpha a a^T + beta c, lower triangle",
                                       GY_ARGS(args),
                                       0,
                                       "a.size * c.rows",
                                       "a.bytes + 2 * c.bytes",
                                       NULL,
                                       run,
                                       check,
                                       gy_linalg_open_kernel,
                                       gy_linalg_close };
