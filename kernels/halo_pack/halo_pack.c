/* SPDX-License-Identifier: Apache-2.0 */
/* Copies what the tiles around a tile want of it, each piece in a region of its own. */
#include "kernels/box.h"
#include "kernels/manifest.h"

enum { PIECES = 9 }; /* the first of the further regions */

static gantry_status copy_packed(const gantry_launch *l, void *to, const void *from, const gy_box *of, size_t size)
{
    gy_box into = { { 0 }, { 0 }, { 0 } };
    for (int k = 0; k < GY_BOX_AXES; k++)
        into.count[k] = into.shape[k] = of->count[k];
    return gy_box_copy(l, to, &into, from, of, size);
}

static gantry_status run(const gantry_launch *l)
{
    const gantry_arg *x = gantry_launch_arg(l, 0);
    gy_box box[GY_BOX_WAYS];
    int count = gy_halo_given(box, l);
    gantry_status status = GANTRY_OK;
    for (int i = 0; i < count && !status; i++)
        status = copy_packed(l, gantry_launch_arg(l, PIECES + i)->data, x->data, &box[i], gantry_dtype_size(x->dtype));
    return status;
}

static gantry_status check(const gantry_launch *l, char *text, size_t size)
{
    const gantry_arg *x = gantry_launch_arg(l, 0);
    if (!x->whole || x->axis[0].before || x->axis[0].after)
        return gy_check_fail(text, size, "\"x\" must be a tile of a buffer that is cut into tiles, without a halo");
    for (int k = 0; k < 2 * x->rank; k++) {
        const gantry_arg *width = gantry_launch_arg(l, 1 + k);
        if (width->integer < 0 || width->integer > x->shape[k / 2] || (double)width->integer != width->number)
            return gy_check_fail(text, size,
                                 "\"%s\" is %g; it must be a whole number from 0 to %lld, what the tile has there",
                                 width->name, width->number, (long long)x->shape[k / 2]);
    }
    gy_box box[GY_BOX_WAYS];
    int count = gy_halo_given(box, l);
    if (l->args - PIECES != count)
        return gy_check_fail(text, size, "it writes %d pieces, and the tile has %d neighbours that want one",
                             (int)l->args - PIECES, count);
    for (int i = 0; i < count; i++) {
        const gantry_arg *to = gantry_launch_arg(l, PIECES + i);
        if (to->dtype != x->dtype || to->access != GANTRY_WRITE ||
            to->rows * to->row_bytes != gy_box_elements(&box[i]) * (int64_t)gantry_dtype_size(x->dtype))
            return gy_check_fail(text, size,
                                 "piece %d has %lld bytes of %s; it must be written, with %lld elements of %s", i,
                                 (long long)(to->rows * to->row_bytes), gantry_dtype_name(to->dtype),
                                 (long long)gy_box_elements(&box[i]), gantry_dtype_name(x->dtype));
    }
    return GANTRY_OK;
}

static const gantry_kernel_arg args[] = {
    GY_REGION("x", GANTRY_READ, 0, 0, "a tile"),
    GY_NUMBER_OR("before0", 0, "elements that a tile has before its own along axis 0"),
    GY_NUMBER_OR("after0", 0, "and after them"),
    GY_NUMBER_OR("before1", 0, "along axis 1"),
    GY_NUMBER_OR("after1", 0, ""),
    GY_NUMBER_OR("before2", 0, "along axis 2"),
    GY_NUMBER_OR("after2", 0, ""),
    GY_NUMBER_OR("before3", 0, "along axis 3"),
    GY_NUMBER_OR("after3", 0, ""),
};

const gantry_kernel gy_kernel_halo_pack = { .struct_size = sizeof(gantry_kernel),
                                            .name = "halo_pack",
                                            .summary = "what neighbours want of a tile, one further region for each",
                                            GANTRY_KERNEL_ARGS(args),
                                            .flags = GANTRY_KERNEL_VARIADIC,
                                            .flops = "0",
                                            .host = run,
                                            .check = check };
