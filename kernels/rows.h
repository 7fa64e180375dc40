/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows as warps of a GPU go over them, so that host and GPU give the same bits. A row has 32 lanes, a long one 256.
 * Neighbouring columns are a pack of 16 bytes, pack i belongs to lane i % lanes, each lane adds up its own columns in
 * their order, and the lanes are added in halves. rows.cuh is the counterpart.
 */
#ifndef GY_KERNELS_ROWS_H
#define GY_KERNELS_ROWS_H

#include "kernels/manifest.h"

enum { GY_LANES = 32, GY_LONG_LANES = 256, GY_LONG_ROW = 1024, GY_PACK_BYTES = 16, GY_MOST_PACK = 8 };

static inline int gy_lanes_of(int64_t width)
{
    return width > GY_LONG_ROW ? GY_LONG_LANES : GY_LANES;
}

/* A row lies along the last axis. */
static inline int64_t gy_row_width(const gantry_arg *a)
{
    return a->rank > 2 ? a->shape[a->rank - 1] : a->rank == 2 ? gy_arg_width(a) : a->rows;
}

static inline int64_t gy_row_count(const gantry_arg *a, int64_t width)
{
    return width > 0 ? gy_arg_size(a) / width : 0;
}

/* Columns of a pack. */
static inline int gy_row_pack(const gantry_arg *a)
{
    return GY_PACK_BYTES / (int)gantry_dtype_size(a->dtype);
}

/* A pack of each lane: column j of them belongs to lane j / gy_row_pack(). */
typedef struct gy_packs {
    double at[GY_LONG_LANES * GY_MOST_PACK];
} gy_packs;

/* Elements i to `end` of the region, `most` at most, and how many these are. Those beyond them are 0. */
int gy_packs_load(gy_packs *to, int most, const gantry_arg *a, int64_t i, int64_t end);
/* The first `count` of them, rounded to the element type. */
void gy_packs_store(const gy_packs *from, const gantry_arg *a, int64_t i, int count);

/* One number of each lane. */
typedef struct gy_lanes {
    double at[GY_LONG_LANES];
} gy_lanes;

/* The same of one element a lane. */
int gy_lanes_load(gy_lanes *to, int lanes, const gantry_arg *a, int64_t i, int64_t end);
double gy_lanes_sum(const gy_lanes *from, int lanes);
/* Adds to what the elements hold, each sum rounded to the element type first. */
void gy_lanes_add(const gy_lanes *from, const gantry_arg *a, int64_t i, int count);

#endif
