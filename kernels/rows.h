/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows as warps of a GPU go over them, so that host and GPU give the same bits: column c belongs to lane c % 32, each
 * lane adds up its own columns in their order, in double, and the lanes are added in halves. rows.cuh is the
 * counterpart.
 */
#ifndef GY_KERNELS_ROWS_H
#define GY_KERNELS_ROWS_H

#include "kernels/manifest.h"

enum { GY_LANES = 32 };

/* One number of each lane. */
typedef struct gy_lanes {
    double at[GY_LANES];
} gy_lanes;

/* Elements i to `end` of the region, at most one a lane, and how many these are. Other lanes get 0. */
int gy_lanes_load(gy_lanes *to, const gantry_arg *a, int64_t i, int64_t end);
/* The first `count` lanes, rounded to the element type. */
void gy_lanes_store(const gy_lanes *from, const gantry_arg *a, int64_t i, int count);
double gy_lanes_sum(const gy_lanes *lanes);
/* Adds to what the elements hold, each sum rounded to the element type first. */
void gy_lanes_add(const gy_lanes *from, const gantry_arg *a, int64_t i, int count);

#endif
