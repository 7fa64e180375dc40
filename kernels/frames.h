/* SPDX-License-Identifier: Apache-2.0 */
/* Images as CUDA kernels see them: input and output of one shape, some rows of either, and of these some elements. A
 * launcher passes it by value. */
#ifndef GY_KERNELS_FRAMES_H
#define GY_KERNELS_FRAMES_H

#include <stdint.h>

typedef struct gy_frames {
    int64_t row_elements;        /* width * channels */
    int64_t height;              /* of the whole image */
    int64_t in_first, in_rows;   /* image rows that are there, of each frame */
    int64_t out_first, out_rows; /* those that are wanted */
    int64_t in_left, in_pitch;   /* elements of each row that are there */
    int64_t out_left, out_pitch; /* those that are wanted */
    int32_t channels;
    uint32_t across, down; /* tiles of a frame; blocks of a launch are its tiles, along rows first */
} gy_frames;

#endif
