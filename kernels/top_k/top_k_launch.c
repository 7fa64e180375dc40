/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/radix_launch.h"

enum { SMALLEST, X, VALUES, INDICES }; /* arguments */
enum { NARROW, WIDE };                 /* variants: by the dtype of indices */

static gantry_status launch_top_k(const gantry_launch *l)
{
    enum { MOST_BLOCKS = 1 << 16 };
    const gantry_arg *from = &l->arg[X];
    gy_radix_order order = gy_radix_order_of(from->dtype, l->arg[SMALLEST].number == 0);
    const void *x = from->data;
    void *values = l->arg[VALUES].data, *indices = l->arg[INDICES].data;
    int64_t rows = from->rows;
    uint32_t width = (uint32_t)gy_arg_width(from), k = (uint32_t)gy_arg_width(&l->arg[VALUES]);
    gy_grid grid = { (unsigned)(rows < MOST_BLOCKS ? rows : MOST_BLOCKS), 1, 1, GY_RADIX_THREADS, 1, 1 };
    if (k == 0)
        return GANTRY_OK;
    return gy_cuda_image_launch(l, l->arg[INDICES].dtype == GANTRY_I64 ? WIDE : NARROW, gy_image_of_size(from->dtype),
                                grid, (void *[]){ &x, &values, &indices, &rows, &width, &k, &order });
}

GY_CUDA_KERNEL(top_k, launch_top_k, GY_RADIX_DTYPES, [NARROW] = "_i32", [WIDE] = "_i64")
