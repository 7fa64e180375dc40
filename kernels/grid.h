/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the CUDA versions of stencils in a volume, beside pointers: y is a box of the volume, and x has what is
 * around. A grid of two axes is a volume of one plane. */
#ifndef GY_KERNELS_GRID_H
#define GY_KERNELS_GRID_H

#include <stdint.h>

typedef struct gy_grid_boxes {
    int64_t first[3], count[3], whole[3]; /* of y in the volume, and the volume */
    int64_t row, plane;                   /* how far apart rows and planes of x are */
    int64_t skip;                         /* where in x the first element of y is */
} gy_grid_boxes;

#endif
