/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The adjoints of filters whose borders repeat. A pixel of the result takes weight k of a line from the pixel that lies
 * k - radius further, or from the border's where that is outside. So a pixel in the middle gives one weight to each
 * pixel around it, and one of the border all those that reach it or beyond.
 */
#ifndef GY_KERNELS_IMAGE_GRAD_H
#define GY_KERNELS_IMAGE_GRAD_H

#include "kernels/gaussian.h"

#ifdef __cplusplus
#define GY_IMAGE_GRAD static __device__ __forceinline__
#else
#define GY_IMAGE_GRAD static inline
#endif

/* Pixels of a line around one. */
typedef struct gy_around {
    int64_t first, last;
} gy_around;

GY_IMAGE_GRAD gy_around gy_around_of(int64_t at, int64_t count, int32_t radius)
{
    const gy_around a = { at > radius ? at - radius : 0, at + radius < count ? at + radius : count - 1 };
    return a;
}

/* The weights with which pixel `from` of the result takes pixel `at` of a line of `count`, of which it is around. */
typedef struct gy_taken {
    int32_t first, last;
} gy_taken;

GY_IMAGE_GRAD gy_taken gy_taken_of(int64_t at, int64_t from, int64_t count, int32_t radius)
{
    const int32_t k = (int32_t)(at - from) + radius;
    const gy_taken t = { at == 0 ? 0 : k, at == count - 1 ? 2 * radius : k };
    return t;
}

GY_IMAGE_GRAD float gy_gaussian_taken(const gy_gaussian *g, int64_t at, int64_t from, int64_t count)
{
    const gy_taken t = gy_taken_of(at, from, count, g->radius);
    float sum = 0;
    for (int32_t k = t.first; k <= t.last; k++)
        sum += g->weight[k];
    return sum;
}

/* Of filter2d: weights of `high` rows and `wide` columns, and frames of `height` rows of `width` pixels, of which
 * `pitch` elements of each row are there. */
typedef struct gy_filter {
    const float *weight;
    int32_t high, wide, channels;
    int64_t height, width, pitch;
} gy_filter;

/* The adjoint of a pixel's channel; `image`: element 0 of row 0 of that of the result, of which only those around are
 * looked at. */
GY_IMAGE_GRAD float gy_filter_grad(const gy_filter *f, const float *image, int64_t row, int64_t pixel, int32_t channel)
{
    const gy_around down = gy_around_of(row, f->height, f->high / 2);
    const gy_around across = gy_around_of(pixel, f->width, f->wide / 2);
    float sum = 0;
    for (int64_t y = down.first; y <= down.last; y++) {
        const float *line = image + y * f->pitch + channel;
        const gy_taken rows = gy_taken_of(row, y, f->height, f->high / 2);
        for (int64_t x = across.first; x <= across.last; x++) {
            const gy_taken columns = gy_taken_of(pixel, x, f->width, f->wide / 2);
            float weight = 0;
            for (int32_t k = rows.first; k <= rows.last; k++)
                for (int32_t i = columns.first; i <= columns.last; i++)
                    weight += f->weight[k * f->wide + i];
            sum += weight * line[x * f->channels];
        }
    }
    return sum;
}

#endif
