/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images as arguments: [height, width], [frames, height, width] or [frames, height, width, channels], u8 or f32. A
 * single image may be cut into parts with a halo, and all of them into tiles with one. Pixels outside the image repeat
 * its border.
 */
#ifndef GY_KERNELS_IMAGE_H
#define GY_KERNELS_IMAGE_H

#include "kernels/manifest.h"

#define GY_IMAGE_DTYPES (GANTRY_DTYPE_BIT(GANTRY_U8) | GANTRY_DTYPE_BIT(GANTRY_F32))

typedef struct gy_image {
    int64_t frames, channels; /* handed over; 1 frame for a single image */
    int64_t height, width;    /* of the whole image */
    int64_t first, rows;      /* image rows that are there */
    int64_t left, pitch;      /* elements of each row that are there */
    int64_t row_elements;     /* width * channels */
} gy_image;

gy_image gy_image_of(const gantry_arg *a);
/* Where an element of a row lies among those that are there. */
static inline int64_t gy_image_at(const gy_image *m, int64_t frame, int64_t row, int64_t element)
{
    return (frame * m->rows + row - m->first) * m->pitch + element - m->left;
}
/* check(): same shapes, and `in` has `down` more rows and `across` more columns on each side than `out` (cut at the
 * ends). */
gantry_status gy_check_image(const gantry_launch *l, int in, int out, int64_t down, int64_t across, char *text,
                             size_t size);
/* That of filter2d and filter2d_grad: weights, then images; and of gaussian_blur and gaussian_blur_grad: sigma, then
 * images (gaussian_blur.c). */
gantry_status gy_check_filter(const gantry_launch *l, char *text, size_t size);
gantry_status gy_check_blur(const gantry_launch *l, char *text, size_t size);

#endif
