/* SPDX-License-Identifier: Apache-2.0 */
/* Code of conv2d and its two gradients: x is [images, channels, height, width], w [channels of y, channels of x,
 * height, width], y as x. All three are products of matrices, one of which is made of patches of images. */
#ifndef GY_KERNELS_CONV2D_H
#define GY_KERNELS_CONV2D_H

#include "kernels/linalg.h"

enum { GY_CONV_STRIDE, GY_CONV_PAD }; /* the first arguments; then come three regions */

/* conv2d.cuh has the same. */
typedef struct gy_conv {
    int32_t images, channels, height, width; /* of x */
    int32_t results, high, wide;             /* channels, height and width of y */
    int32_t window_height, window_width, stride, pad;
    int32_t adds; /* of a launch of ours: y has what is there and the sum; else 0 */
} gy_conv;

/* By the numbers of the arguments x, w and y, or of their gradients. */
gy_conv gy_conv_of(const gantry_launch *l, int x, int w, int y);

typedef enum gy_conv_way { GY_CONV_FORWARD, GY_CONV_GRAD_X, GY_CONV_GRAD_W } gy_conv_way;

gantry_status gy_conv_run(const gantry_launch *l, gy_conv_way way, int x, int w, int y);
gantry_status gy_conv_check(const gantry_launch *l, int x, int w, int y, char *text, size_t size);

#define GY_CONV_SCALARS                                                                                                \
    GY_NUMBER_OR("stride", 1, "pixels from window to window, in both directions"),                                     \
        GY_NUMBER_OR("pad", 0, "rows and columns of zeros around each image, on each side")

#endif
