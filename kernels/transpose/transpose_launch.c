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

/* The arrays of a launch, and how they are taken apart. */
typedef struct moved {
    const void *x;
    void *y;
    gy_transposition t;
} moved;

static gantry_status launch_cells(const gantry_launch *l, moved *m, int64_t word)
{
    int64_t unit = word > 8 ? 8 : word, units = m->t.cell / unit;
    return gy_cuda_image_launch(l, CELLS, tiles[unit].dtype,
                                gy_grid_for(m->t.arrays * m->t.rows * m->t.columns * units),
                                (void *[]){ &m->x, &m->y, &m->t.arrays, &m->t.rows, &m->t.columns, &units });
}

static gantry_status launch_tiles(const gantry_launch *l, moved *m, int variant, gantry_dtype dtype, int64_t side)
{
    uint32_t across = (uint32_t)gy_tiles(m->t.columns, side), each = (uint32_t)(across * gy_tiles(m->t.rows, side));
    gy_grid grid = { (unsigned)(each * m->t.arrays), 1, 1, GY_IMAGE_THREADS, 1, 1 };
    return gy_cuda_image_launch(l, variant, dtype, grid,
                                (void *[]){ &m->x, &m->y, &m->t.rows, &m->t.columns, &across, &each });
}

/* Every row of both matrices begins at a multiple of so many bytes. */
static bool are_aligned(const gantry_launch *l, const gy_transposition *t, int64_t bytes)
{
    return lies_at(&l->arg[GY_TRANSPOSE_X], bytes) && lies_at(&l->arg[GY_TRANSPOSE_Y], bytes) &&
           t->rows * t->cell % bytes == 0 && t->columns * t->cell % bytes == 0;
}

static gantry_status launch_transpose(const gantry_launch *l)
{
    enum { SIDE = 32, MOST = 8 };
    const gantry_arg *in = &l->arg[GY_TRANSPOSE_X], *out = &l->arg[GY_TRANSPOSE_Y];
    moved m = { in->data, out->data, gy_transposition_of(l) };
    int64_t cell = m.t.cell;
    if (!cell)
        return GANTRY_OK;
    int64_t word = word_of(in, out, cell);
    if (word != cell)
        return launch_cells(l, &m, word);
    if (cell > MOST)
        return launch_tiles(l, &m, PAIRS, GANTRY_F64, SIDE);
    tile t = tiles[cell];
    bool wide = are_aligned(l, &m.t, t.chunk * cell);
    return launch_tiles(l, &m, wide ? WIDE : PLAIN, t.dtype, wide ? t.chunk * t.side : SIDE);
}

GY_CUDA_KERNEL(transpose, launch_transpose, GY_WORD_DTYPES, "", "_wide", "_pairs", "_cells")
