/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"
#include "kernels/transpose/transpose.h"

enum { PLAIN, WIDE, PAIRS, CELLS }; /* variants */

/* By bytes of an element: the dtype that stands for it, elements of a chunk, chunks of a tile's side. As in
 * transpose.cu. */
typedef struct tile {
    gantry_dtype dtype;
    int64_t chunk, side;
} tile;
static const tile tiles[] = {
    [1] = { GANTRY_U8, 4, 32 }, [2] = { GANTRY_F16, 4, 16 }, [4] = { GANTRY_F32, 4, 16 }, [8] = { GANTRY_F64, 2, 16 }
};

/* A region at multiples of so many bytes. */
static bool lies_at(const gantry_arg *a, int64_t bytes)
{
    return (uintptr_t)a->data % (uintptr_t)bytes == 0;
}

/* The largest word, of at most 16 bytes, that moves what moves together in whole words. */
static int64_t word_of(const gantry_arg *in, const gantry_arg *out, int64_t cell)
{
    int64_t word = 16;
    while (cell % word || !lies_at(in, word) || !lies_at(out, word))
        word /= 2;
    return word;
}

static gantry_status launch_cells(const gantry_launch *l, int64_t columns, int64_t cell, int64_t word)
{
    const gantry_arg *in = &l->arg[0];
    int64_t unit = word > 8 ? 8 : word, rows = in->rows, units = cell / unit;
    const void *x = in->data;
    void *y = l->arg[1].data;
    return gy_cuda_image_launch(l, CELLS, tiles[unit].dtype, gy_grid_for(rows * columns * units),
                                (void *[]){ &x, &y, &rows, &columns, &units });
}

static gantry_status launch_pairs(const gantry_launch *l, int64_t columns)
{
    enum { SIDE = 32 };
    const gantry_arg *in = &l->arg[0];
    const void *x = in->data;
    void *y = l->arg[1].data;
    int64_t rows = in->rows;
    uint32_t across = (uint32_t)gy_tiles(columns, SIDE);
    gy_grid grid = { (unsigned)(across * gy_tiles(rows, SIDE)), 1, 1, GY_IMAGE_THREADS, 1, 1 };
    return gy_cuda_image_launch(l, PAIRS, GANTRY_F64, grid, (void *[]){ &x, &y, &rows, &columns, &across });
}

static gantry_status launch_tiles(const gantry_launch *l, int64_t columns, int64_t size)
{
    const gantry_arg *in = &l->arg[0], *out = &l->arg[1];
    tile t = tiles[size];
    int64_t bytes = t.chunk * size, rows = in->rows;
    int variant = gy_rows_aligned(in, bytes) && gy_rows_aligned(out, bytes) ? WIDE : PLAIN;
    int64_t side = variant == WIDE ? t.chunk * t.side : 32;
    const void *x = in->data;
    void *y = out->data;
    uint32_t across = (uint32_t)gy_tiles(columns, side);
    gy_grid grid = { (unsigned)(across * gy_tiles(rows, side)), 1, 1, GY_IMAGE_THREADS, 1, 1 };
    return gy_cuda_image_launch(l, variant, t.dtype, grid, (void *[]){ &x, &y, &rows, &columns, &across });
}

static gantry_status launch_transpose(const gantry_launch *l)
{
    const gantry_arg *in = &l->arg[0], *out = &l->arg[1];
    int64_t columns = gy_transpose_columns(l), cell = columns ? in->row_bytes / columns : 0, most = 8;
    if (!cell)
        return GANTRY_OK;
    int64_t word = word_of(in, out, cell);
    if (word == cell && cell <= most)
        return launch_tiles(l, columns, cell);
    return word == cell ? launch_pairs(l, columns) : launch_cells(l, columns, cell, word);
}

GY_CUDA_KERNEL(transpose, launch_transpose,
               GANTRY_DTYPE_BIT(GANTRY_U8) | GANTRY_DTYPE_BIT(GANTRY_F16) | GANTRY_DTYPE_BIT(GANTRY_F32) |
                   GANTRY_DTYPE_BIT(GANTRY_F64),
               "", "_wide", "_pairs", "_cells")
