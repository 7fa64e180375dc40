/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of images, and rows that may lie outside: pixels there repeat the border. */
#ifndef GY_KERNELS_FRAMES_CUH
#define GY_KERNELS_FRAMES_CUH

#include "kernels/frames.h"

typedef struct gy_tile {
    int64_t frame, row, column; /* row of the output, element of a row */
    int rows;                   /* that are inside */
} gy_tile;

static __device__ inline gy_tile gy_tile_at(const gy_frames &f, int rows, int columns)
{
    uint32_t line = blockIdx.x / f.across, frame = line / f.down;
    gy_tile t = { (int64_t)frame, (int64_t)(line - frame * f.down) * rows,
                  (int64_t)(blockIdx.x - line * f.across) * columns, rows };
    if (f.out_rows - t.row < rows)
        t.rows = (int)(f.out_rows - t.row);
    return t;
}

/* The element of the border's pixel for an element outside the row. */
static __device__ inline int64_t gy_inside(int64_t element, const gy_frames &f)
{
    if (element < 0) {
        int64_t channel = element % f.channels;
        return channel < 0 ? channel + f.channels : channel;
    }
    return element < f.row_elements ? element : f.row_elements - f.channels + element % f.channels;
}

/* Goes down the rows of an input from `row`, which may lie outside the image. */
template <typename T> struct gy_walk {
    const T *at; /* element 0 of the row, or of the border's */
    int64_t pitch;
    int32_t before, inside; /* rows to come until it goes down, rows that it goes down then */

    __device__ gy_walk(const T *in, const gy_frames &f, int64_t frame, int64_t row)
    {
        enum { MOST = 1 << 30 }; /* more than a walk is long */
        int64_t from = row < 0 ? 0 : row >= f.height ? f.height - 1 : row, left = f.height - 1 - from;
        at = in + (frame * f.in_rows + from - f.in_first) * f.row_elements;
        pitch = f.row_elements;
        before = row < 0 ? (int32_t)-row : 0;
        inside = left < MOST ? (int32_t)left : MOST;
    }
    /* From the walk's row `n`, counted from 0, to the next. */
    __device__ void down(int n) { at += (uint32_t)(n - before) < (uint32_t)inside ? pitch : 0; }
};

#endif
