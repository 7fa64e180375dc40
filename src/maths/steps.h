/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a program on the host, for some elements at a time. */
#ifndef GY_MATHS_STEPS_H
#define GY_MATHS_STEPS_H

#include "maths/maths.h"

enum { GY_MATHS_CHUNK = 256, GY_MATHS_SLOT = 8 * GY_MATHS_CHUNK };

/* steps.c: one step for n elements, at most GY_MATHS_CHUNK. `to` is none of the operands. */
void gy_maths_do(const gy_maths_step *step, void *to, const void *const operand[3], size_t n);

/* convert.c: n elements of a region as values of the type that they are computed in, and back. */
void gy_maths_load(void *to, const void *from, gantry_dtype dtype, size_t n);
void gy_maths_store(void *to, const void *from, gantry_dtype dtype, gy_maths_type type, size_t n);
/* Are elements of this dtype values already? */
bool gy_maths_is_native(gantry_dtype dtype);
/* Values as a cast makes them. */
void gy_maths_cast(void *to, const void *from, gantry_dtype cast, gy_maths_type type, size_t n);
/* A whole number from a real one: the part before the point, the nearest one that the type has; 0 of NaN. */
int64_t gy_maths_truncate(double x, gantry_dtype dtype);

#endif
