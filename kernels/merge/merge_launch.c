/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/radix_launch.h"

/* The parameter of the functions; merge.cu has the same. */
typedef struct merging {
    gy_radix_order order;
    int64_t xs, ys, zs, first;
} merging;

static gantry_status launch_merge(const gantry_launch *l)
{
    enum { TILE = 2048 }; /* of merge.cu */
    const gantry_arg *from = &l->arg[2], *other = &l->arg[3], *to = &l->arg[4];
    const void *x = from->data, *y = other->data;
    void *z = to->data;
    merging m = { gy_radix_order_of(to->dtype, l->arg[1].number != 0), gy_arg_size(from), gy_arg_size(other),
                  gy_arg_size(to), (int64_t)l->arg[0].number };
    gy_grid grid = { (unsigned)gy_tiles(m.zs, TILE), 1, 1, GY_RADIX_THREADS, 1, 1 };
    return gy_cuda_image_launch(l, 0, gy_image_of_size(to->dtype), grid, (void *[]){ &x, &y, &z, &m });
}

GY_CUDA_KERNEL(merge, launch_merge, GY_RADIX_DTYPES, "")
