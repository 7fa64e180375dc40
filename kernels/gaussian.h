/* SPDX-License-Identifier: Apache-2.0 */
/* The filter of gaussian_blur: made by the host for every version, so that all use the same bits. */
#ifndef GY_KERNELS_GAUSSIAN_H
#define GY_KERNELS_GAUSSIAN_H

#include <stdint.h>

enum { GY_GAUSSIAN_RADIUS = 64, GY_GAUSSIAN_CHANNELS = 8 }; /* at most */

typedef struct gy_gaussian {
    int32_t radius;
    float weight[2 * GY_GAUSSIAN_RADIUS + 1]; /* of the pixels from -radius to radius */
} gy_gaussian;

#ifndef __cplusplus
gy_gaussian gy_gaussian_of(double sigma); /* above 0, and the radius at most GY_GAUSSIAN_RADIUS */
#endif

#endif
