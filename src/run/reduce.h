/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise reductions in a fixed order: ((from[0] (+) from[1]) (+) from[2]) ... */
#ifndef GY_RUN_REDUCE_H
#define GY_RUN_REDUCE_H

#include <gantry/kernel.h>
#include <stddef.h>
#include <stdint.h>

/**
 * `op` is SUM, MIN, MAX or PROD. Integers wrap. f16 and bf16 are combined in f32 and rounded once. MIN and MAX of a NaN
 * and anything is NaN. `to` may be one of `from`, element for element.
 */
void gy_reduce(gantry_dtype dtype, gantry_access op, void *to, const void *const *from, size_t sources, uint64_t count);
/* Sets `count` elements to what leaves every number unchanged (kernel/identity.h). */
void gy_fill_identity(void *to, gantry_dtype dtype, gantry_access op, uint64_t count);

#endif
