/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images as arguments: [height, width], [frames, height, width] or [frames, height, width, channels], u8 or f32. A
 * single image may be cut into parts with a halo; frames are whole. Pixels outside the image repeat its border.
 */
#ifndef GY_KERNELS_IMAGE_H
#define GY_KERNELS_IMAGE_H

#include "kernels/manifest.h"

#define GY_IMAGE_DTYPES (GANTRY_DTYPE_BIT(GANTRY_U8) | GANTRY_DTYPE_BIT(GANTRY_F32))

typedef struct gy_image {
    int64_t frames, width, channels; /* frames handed over; 1 for a single image */
    int64_t height;                  /* of the whole image */
    int64_t first, rows;             /* image rows that are there */
    int64_t row_elements;            /* width * channels */
} gy_image;

gy_image gy_image_of(const gantry_arg *a);
/* check(): same shapes, and `in` has `halo` more rows on each side than `out` (cut at the ends). */
gantry_status gy_check_image(const gantry_launch *l, int in, int out, int64_t halo, char *text, size_t size);
/* That of filter2d and filter2d_grad: weights, then images; and of gaussian_blur and gaussian_blur_grad: sigma, then
 * images (gaussian_blur.c). */
gantry_status gy_check_filter(const gantry_launch *l, char *text, size_t size);
gantry_status gy_check_blur(const gantry_launch *l, char *text, size_t size);

#endif
