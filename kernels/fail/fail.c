/* SPDX-License-Identifier: Apache-2.0 */
/* Fails as it is told, through the same ways in which a real kernel fails: for tests of what happens then. */
#include "kernels/manifest.h"
#include <math.h>
#include <string.h>

enum { FINE = 0, RETURNS = 1, SETS_STATUS = 2, WRITES_NAN = 3 };

static gantry_status run(const gantry_launch *l)
{
    const gantry_arg *x = &l->arg[2], *y = &l->arg[3];
    memcpy(y->data, x->data, (size_t)(x->rows * x->row_bytes));
    if (l->iteration < l->arg[1].integer)
        return GANTRY_OK;
    switch ((int)l->arg[0].number) {
    case RETURNS:
        return GANTRY_E_KERNEL;
    case SETS_STATUS:
        *l->status = 7;
        return GANTRY_OK;
    case WRITES_NAN:
        if (y->dtype == GANTRY_F32 && gy_arg_size(y) > 0)
            *(float *)y->data = NAN;
        return GANTRY_OK;
    default:
        return GANTRY_OK;
    }
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    double how = l->arg[0].number, from = l->arg[1].number;
    if (how < FINE || how > WRITES_NAN || how != floor(how))
        return gy_check_fail(text, size,
                             "\"how\" is %g; it is 0 (does not fail), 1 (returns an error), 2 (sets its status word) "
                             "or 3 (writes a NaN)",
                             how);
    if (from < 0 || from != floor(from))
        return gy_check_fail(text, size, "\"from\" is %g; it is a whole number of iterations, 0 or more", from);
    return gy_check_same_size(l, 2, 3, text, size);
}

static const gantry_kernel_arg args[] = {
    GY_NUMBER("how", "0 not at all, 1 returns an error, 2 sets its status word to 7, 3 writes a NaN"),
    GY_NUMBER_OR("from", 0, "first iteration of the enclosing repeat in which it fails"),
    GY_REGION("x", GANTRY_READ, 0, 'T', NULL),
    GY_REGION("y", GANTRY_WRITE, 0, 'T', "gets x"),
};

const gantry_kernel gy_kernel_fail = { .struct_size = sizeof(gantry_kernel),
                                       .name = "fail",
                                       .summary = "y = x, then fails as told",
                                       GANTRY_KERNEL_ARGS(args),
                                       .flops = "0",
                                       .bytes = "x.bytes + y.bytes",
                                       .host = run,
                                       .check = check };
