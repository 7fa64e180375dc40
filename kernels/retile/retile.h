/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the CUDA version of retile: boxes of elements that go from one array to another. */
#ifndef GY_KERNELS_RETILE_H
#define GY_KERNELS_RETILE_H

#include <stdint.h>

enum { GY_RETILE_AXES = 4, GY_RETILE_BOXES = 32 }; /* boxes of one launch, whose arguments have 4 KB */

/* Counts and strides are in words, which several elements may make up; words along the last axis lie side by side. */
typedef struct gy_retile_box {
    const void *from;
    void *to;
    int64_t count[GY_RETILE_AXES], from_stride[GY_RETILE_AXES - 1], to_stride[GY_RETILE_AXES - 1];
} gy_retile_box;

typedef struct gy_retile_boxes {
    gy_retile_box box[GY_RETILE_BOXES];
} gy_retile_boxes;

#endif
