/* SPDX-License-Identifier: Apache-2.0 */
/* An array that is cut in one way becomes the same array cut in another: each piece of y takes what pieces of x have of
 * it. */
#include "kernels/box.h"
#include "kernels/manifest.h"

enum { X, Y };

static gantry_status copy_common(const gantry_launch *l, const gantry_arg *from, const gantry_arg *to)
{
    gy_box of, into;
    if (!gy_box_common(&of, &into, from, to))
        return GANTRY_OK;
    return gy_box_copy(l, to->data, &into, from->data, &of, gantry_dtype_size(to->dtype));
}

static gantry_status run(const gantry_launch *l)
{
    const gantry_arg *x = gantry_launch_arg(l, X), *y = gantry_launch_arg(l, Y);
    gantry_status status = GANTRY_OK;
    for (int64_t j = 0; j < gy_list_count(y) && !status; j++)
        for (int64_t i = 0; i < gy_list_count(x) && !status; i++)
            status = copy_common(l, gy_list_item(l, x, i), gy_list_item(l, y, j));
    return status;
}

static bool same_array(const gantry_arg *a, const gantry_arg *b)
{
    gy_extent x = gy_extent_of(a), y = gy_extent_of(b);
    bool same = a->rank == b->rank;
    for (int k = 0; k < GY_BOX_AXES; k++)
        same = same && x.whole[k] == y.whole[k];
    return same;
}

/* Pieces of x do not overlap, so y has all of its elements if these add up. */
static gantry_status check_piece(const gantry_launch *l, const gantry_arg *to, char *text, size_t size)
{
    const gantry_arg *x = gantry_launch_arg(l, X);
    int64_t found = 0, want = gy_arg_size(to);
    for (int64_t i = 0; i < gy_list_count(x); i++) {
        const gantry_arg *from = gy_list_item(l, x, i);
        gy_box of, into;
        if (from->rank > GY_BOX_AXES || !same_array(from, to))
            return gy_check_fail(
                text, size, "\"x\" and \"y\" must be pieces of arrays of one shape, of at most %d axes", GY_BOX_AXES);
        found += gy_box_common(&of, &into, from, to) ? gy_box_elements(&of) : 0;
    }
    if (found == want)
        return GANTRY_OK;
    return gy_check_fail(text, size,
                         "\"x\" has %lld of the %lld elements of a piece of \"y\"; it must have all of them",
                         (long long)found, (long long)want);
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *y = gantry_launch_arg(l, Y);
    for (int64_t j = 0; j < gy_list_count(y); j++)
        if (check_piece(l, gy_list_item(l, y, j), text, size))
            return GANTRY_E_GRAPH;
    return GANTRY_OK;
}

static const gantry_kernel_arg args[] = {
    { .name = "x",
      .access = GANTRY_READ,
      .same = 'T',
      .list = 1,
      .summary = "a tile, part or list of tiles, with all elements of y" },
    { .name = "y",
      .access = GANTRY_WRITE,
      .same = 'T',
      .list = 1,
      .summary = "a tile, part or list of tiles of an array of the same shape" },
};

const gantry_kernel gy_kernel_retile = {
    .struct_size = sizeof(gantry_kernel),
    .name = "retile",
    .summary = "y = the elements of x at the same places of the array, which is cut in another way",
    GANTRY_KERNEL_ARGS(args),
    .flops = "0",
    .bytes = "2 * y.bytes",
    .host = run,
    .check = check
};
