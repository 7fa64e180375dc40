/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the CUDA versions of halo_pack and halo_unpack, beside pointers. Axes that are missing come first, with
 * one element. */
#ifndef GY_KERNELS_HALO_H
#define GY_KERNELS_HALO_H

#include <stdint.h>

enum { GY_HALO_AXES = 4, GY_HALO_BOXES = 80, GY_HALO_WAYS = 81 };

/* A piece: where it goes, and which elements of the tile it has. */
typedef struct gy_halo_box {
    void *to;
    int32_t first[GY_HALO_AXES], count[GY_HALO_AXES];
} gy_halo_box;

typedef struct gy_halo_boxes {
    int64_t shape[GY_HALO_AXES]; /* of the tile */
    gy_halo_box box[GY_HALO_BOXES];
} gy_halo_boxes;

/* The tile with its halo: its shape, how much of it is before the tile's own elements, and how many these are; and
 * where the pieces of each direction begin among the edges. */
typedef struct gy_halo_layout {
    int64_t shape[GY_HALO_AXES], before[GY_HALO_AXES], own[GY_HALO_AXES];
    int64_t piece[GY_HALO_WAYS];
} gy_halo_layout;

#endif
