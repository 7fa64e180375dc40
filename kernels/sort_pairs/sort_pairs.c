/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/sort_pairs/sort_pairs.h"

enum { DESCENDING, KEYS, VALUES, SORTED, MOVED }; /* arguments */

static gantry_status run(const gantry_launch *l)
{
    gy_radix r = gy_sort_pairs_of(l);
    gy_radix_sort(l, &r);
    return GANTRY_OK;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    gantry_status status = gy_radix_check(l, KEYS, text, size);
    for (int i = VALUES; i <= MOVED && !status; i++)
        status = gy_check_same_size(l, KEYS, i, text, size);
    return status;
}

enum {
    MOVABLE = GANTRY_DTYPE_BIT(GANTRY_I32) | GANTRY_DTYPE_BIT(GANTRY_U32) | GANTRY_DTYPE_BIT(GANTRY_F32) |
              GANTRY_DTYPE_BIT(GANTRY_I64) | GANTRY_DTYPE_BIT(GANTRY_U64) | GANTRY_DTYPE_BIT(GANTRY_F64)
};

static const gantry_kernel_arg args[] = {
    GY_SCALE_OR("descending", 0, "1: the largest key first, before them NaN"),
    GY_REGION("keys", GANTRY_READ, 0, 'T', NULL),
    GY_REGION("values", GANTRY_READ, MOVABLE, 'V', "one for each key"),
    GY_REGION("sorted", GANTRY_WRITE, 0, 'T', "keys in ascending order, NaN last"),
    GY_REGION("moved", GANTRY_WRITE, MOVABLE, 'V', "values in the order of their keys"),
};

const gantry_kernel gy_kernel_sort_pairs = {
    .struct_size = sizeof(gantry_kernel),
    .name = "sort_pairs",
    .summary = "keys in ascending order, and a value that goes with each; equal keys keep their order",
    GANTRY_KERNEL_ARGS(args),
    .flops = "8 * keys.bytes",
    .bytes = "(3 * keys.bytes + 2 * values.bytes) * keys.bytes / max(1, keys.size)",
    .scratch = GY_RADIX_COPY("keys") " + " GY_RADIX_COPY("values") " + " GY_RADIX_COUNTS("keys"),
    .host = run,
    .check = check
};
