/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"
#include "kernels/box.h"
#include "kernels/halo.h"

/* Which direction a box of `y` is in: see gy_box_towards. */
static int way_of(const gy_box *box, const gy_halo_layout *to)
{
    int way = 0;
    for (int k = 0; k < GY_BOX_AXES; k++)
        way = 3 * way + (box->first[k] < to->before[k] ? 0 : box->first[k] < to->before[k] + to->own[k] ? 1 : 2);
    return way;
}

static gantry_status launch_halo_unpack(const gantry_launch *l)
{
    enum { LANES = 32, EACH = 8, WARPS = GY_IMAGE_THREADS / LANES, PLANES = 65535 }; /* as in halo_unpack.cu */
    const gantry_arg *y = &l->arg[2];
    gy_box box[GY_BOX_WAYS];
    gy_halo_layout to = { .piece = { 0 } };
    gy_extent w = gy_extent_of(y);
    int64_t begin = 0;
    for (int k = 0; k < GY_BOX_AXES; k++) {
        int axis = k - (GY_BOX_AXES - y->rank);
        to.shape[k] = w.count[k];
        to.before[k] = axis < 0 ? 0 : y->axis[axis].before;
        to.own[k] = w.count[k] - to.before[k] - (axis < 0 ? 0 : y->axis[axis].after);
    }
    int count = gy_halo_taken(box, y);
    for (int i = 0; i < count; i++) {
        to.piece[way_of(&box[i], &to)] = begin;
        begin += gy_box_elements(&box[i]);
    }
    int64_t planes = to.shape[0] * to.shape[1];
    uint32_t across = (uint32_t)gy_tiles(to.shape[3], (int64_t)LANES * EACH);
    gy_grid grid = { (unsigned)(across * gy_tiles(to.shape[2], WARPS)),
                     (unsigned)(planes < PLANES ? planes : PLANES),
                     1,
                     LANES,
                     WARPS,
                     1 };
    const void *x = l->arg[0].data, *edges = l->arg[1].data;
    void *data = y->data;
    return gy_cuda_image_launch(l, 0, gy_dtype_of_word(gantry_dtype_size(y->dtype)), grid,
                                (void *[]){ &x, &edges, &data, &to, &across });
}

GY_CUDA_KERNEL(halo_unpack, launch_halo_unpack, GY_WORD_DTYPES, "")
