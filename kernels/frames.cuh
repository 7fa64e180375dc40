/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of images, and rows that may lie outside: pixels there repeat the border. */
#ifndef GY_KERNELS_FRAMES_CUH
#define GY_KERNELS_FRAMES_CUH

#include "kernels/frames.h"

typedef struct gy_tile {
    int64_t frame, row, column; /* row of the output, element of a row of the image */
    int rows;                   /* that are inside */
} gy_tile;

static __device__ inline gy_tile gy_tile_at(const gy_frames &f, int rows, int columns)
{
    uint32_t line = blockIdx.x / f.across, frame = line / f.down;
    gy_tile t = { (int64_t)frame, (int64_t)(line - frame * f.down) * rows,
                  f.out_left + (int64_t)(blockIdx.x - line * f.across) * columns, rows };
    if (f.out_rows - t.row < rows)
        t.rows = (int)(f.out_rows - t.row);
    return t;
}

/* An element that is wanted, of a row of the tile. */
template <typename T> static __device__ inline T *gy_wanted(T *out, const gy_frames &f, const gy_tile &t, int64_t element)
{
    return out + (t.frame * f.out_rows + t.row) * f.out_pitch + element - f.out_left;
}

/* Element 0 of row 0 of a frame of the input, of which only what is there may be looked at. */
template <typename T> static __device__ inline const T *gy_frame_of(const T *in, const gy_frames &f, int64_t frame)
{
    return in + (frame * f.in_rows - f.in_first) * f.in_pitch - f.in_left;
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
        at = gy_frame_of(in, f, frame) + from * f.in_pitch;
        pitch = f.in_pitch;
        before = row < 0 ? (int32_t)-row : 0;
        inside = left < MOST ? (int32_t)left : MOST;
    }
    /* From the walk's row `n`, counted from 0, to the next. */
    __device__ void down(int n) { at += (uint32_t)(n - before) < (uint32_t)inside ? pitch : 0; }
};

#endif
