/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes of elements within tiles: what stencils and halos copy. Up to four axes; those that are missing come first,
 * with one element. */
#ifndef GY_KERNELS_BOX_H
#define GY_KERNELS_BOX_H

#include "kernels/grid.h"
#include <gantry/kernel.h>
#include <stdbool.h>

enum { GY_BOX_AXES = GANTRY_TILE_AXES, GY_BOX_WAYS = 81 };

/* Where a region lies in its whole array, halo included. */
typedef struct gy_extent {
    int64_t first[GY_BOX_AXES], count[GY_BOX_AXES], whole[GY_BOX_AXES];
} gy_extent;

static inline gy_extent gy_extent_of(const gantry_arg *a)
{
    gy_extent w;
    for (int k = 0; k < GY_BOX_AXES; k++) {
        int axis = k - (GY_BOX_AXES - a->rank);
        bool rows = !a->whole && axis == 0;
        w.first[k] = axis < 0 ? 0 : a->whole ? a->axis[axis].first : rows ? a->first_row : 0;
        w.count[k] = axis < 0 ? 1 : rows ? a->rows : a->shape[axis];
        w.whole[k] = axis < 0 ? 1 : a->whole ? a->whole[axis] : a->shape[axis];
    }
    return w;
}

/* Of stencils: what their CUDA versions are given; the last three axes. */
gy_grid_boxes gy_grid_boxes_of(const gantry_arg *x, const gantry_arg *y);
/* Arguments 0 and 1 are parts of grids of one shape and `rank` axes, and x has what y has and so many more elements on
 * each side, as far as the grid has them. */
gantry_status gy_check_around(const gantry_launch *l, int rank, int64_t more, char *text, size_t size);

/* A box within an array of `shape`: `first` and `count` along each axis. */
typedef struct gy_box {
    int64_t first[GY_BOX_AXES], count[GY_BOX_AXES], shape[GY_BOX_AXES];
} gy_box;

static inline int64_t gy_box_elements(const gy_box *b)
{
    return b->count[0] * b->count[1] * b->count[2] * b->count[3];
}

/* Copies a box to one of equal counts, by all threads of the device; `size`: bytes of an element. */
gantry_status gy_box_copy(const gantry_launch *l, void *to, const gy_box *into, const void *from, const gy_box *of,
                          size_t size);

/* The elements that two regions of arrays of one shape have in common: as a box of each, in the fewest axes. False:
 * none. */
bool gy_box_common(gy_box *of, gy_box *into, const gantry_arg *from, const gantry_arg *to);

/* An argument that may be a list of tiles: how many there are, and the i-th. */
static inline int64_t gy_list_count(const gantry_arg *a)
{
    return a->items ? a->count : 1;
}
static inline const gantry_arg *gy_list_item(const gantry_launch *l, const gantry_arg *a, int64_t i)
{
    return a->items ? gantry_launch_item(l, a, i) : a;
}

/*
 * The box of a tile that the one in direction `way` wants of it, or that it wants of that one: `way` is a number to the
 * base of 3 with a digit for each of the four axes, the first one highest: 0 before the tile, 1 beside it, 2 behind.
 * `side[0]` and `side[1]` have so many elements for those before and behind, which lie at the tile's ends. False: there
 * is nothing, or `way` is the tile itself.
 */
bool gy_box_towards(gy_box *out, const int64_t shape[GY_BOX_AXES], int64_t side[2][GY_BOX_AXES],
                    int64_t inner[2][GY_BOX_AXES], int way);

/* halo_pack: the boxes of tile `x` that go to `ways` neighbours, in their order; halo_unpack: those of `y` that come
 * from them. */
int gy_halo_given(gy_box box[GY_BOX_WAYS], const gantry_launch *launch);
int gy_halo_taken(gy_box box[GY_BOX_WAYS], const gantry_arg *y);

#endif
