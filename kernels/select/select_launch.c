/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"
#include "base/error.h"
#include "kernels/select/select.h"

enum { COUNTS, STARTS, ROWS }; /* variants */

/* As in select.cu. */
typedef struct sides {
    int64_t rows, chunk, chunks, y_rows, width;
    int32_t mask_bytes, count_bytes;
} sides;

static gantry_status launch_select(const gantry_launch *l)
{
    const gantry_arg *from = &l->arg[0], *to = &l->arg[2];
    gantry_dtype type = gy_image_of_size(from->dtype);
    const void *x = from->data, *mask = l->arg[1].data;
    void *y = to->data, *count = l->arg[3].data, *start = l->scratch;
    int32_t *status = l->status;
    sides s = { .rows = from->rows, .y_rows = to->rows, .width = gy_arg_width(from) };
    s.chunk = gy_select_chunk(s.rows);
    s.chunks = gy_tiles(s.rows, s.chunk);
    s.mask_bytes = (int32_t)gantry_dtype_size(l->arg[1].dtype);
    s.count_bytes = (int32_t)gantry_dtype_size(l->arg[3].dtype);
    gy_grid grid = { (unsigned)s.chunks, 1, 1, GY_IMAGE_THREADS, 1, 1 }, one = { 1, 1, 1, 32, 1, 1 };
    if (l->scratch_bytes < (uint64_t)(s.chunks + 1) * sizeof(uint64_t))
        return GANTRY_E_CAPACITY; /* the node asked for less */
    GY_TRY(gy_cuda_image_launch(l, COUNTS, type, grid, (void *[]){ &s, &mask, &start }));
    GY_TRY(gy_cuda_image_launch(l, STARTS, type, one, (void *[]){ &s, &start, &count, &status }));
    grid.x = grid.x ? grid.x : 1; /* zeros */
    return gy_cuda_image_launch(l, ROWS, type, grid, (void *[]){ &s, &x, &mask, &y, &start });
}

#define SIZES                                                                                                          \
    (GANTRY_DTYPE_BIT(GANTRY_U8) | GANTRY_DTYPE_BIT(GANTRY_F16) | GANTRY_DTYPE_BIT(GANTRY_U32) |                       \
     GANTRY_DTYPE_BIT(GANTRY_U64) | GY_IMAGE_BY_SIZE)
GY_CUDA_KERNEL(select, launch_select, SIZES, [COUNTS] = "_counts", [STARTS] = "_starts", [ROWS] = "")
