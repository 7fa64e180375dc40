/* SPDX-License-Identifier: Apache-2.0 */
/* How terms of the gradient by the weights are cut, on GPUs: by the shape and the kind of GPU alone, so that sums
 * have one order. */
#ifndef GY_KERNELS_CONV2D_GRAD_W_H
#define GY_KERNELS_CONV2D_GRAD_W_H

#include "kernels/conv2d/conv2d.h"
#include <stdbool.h>

enum { GY_PIXELS_COLUMNS = 192, GY_PIXELS_ROOM = 6912, GY_PIXELS = 64 }; /* as pixels.cuh has them */

typedef struct gy_conv_cut {
    bool by_pixels;        /* by pixels.cuh: terms are counted in units of pixels in a row */
    bool is_low;           /* tiles have 16 rows and not 64 */
    int64_t across, tiles; /* of so many by 64 elements: in a row of them, and in all */
    int64_t elements;      /* of dw */
    int64_t terms, each;   /* of an element; those of a piece */
    int64_t pieces;
} gy_conv_cut;

/* `splits`: floats are split for tensor cores, without which pixels.cuh is slow. */
gy_conv_cut gy_conv_cut_of(const gy_conv *c, gantry_dtype dtype, bool splits);

#endif
