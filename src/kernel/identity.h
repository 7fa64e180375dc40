/* SPDX-License-Identifier: Apache-2.0 */
/* The value that changes nothing: what accumulators of a reduction begin with. */
#ifndef GY_KERNEL_IDENTITY_H
#define GY_KERNEL_IDENTITY_H

#include "kernel/constant.h"

/* The bytes of one element, gantry_dtype_size(dtype) of them (at most 8): sum 0, prod 1, min the largest value of the
 * type and max the smallest; of floating types those are +infinity and -infinity. false: `op` is no reduction. */
bool gy_identity(gantry_dtype dtype, gantry_access op, void *element);
/* The same as a constant, but for min and max of floating types, whose infinities a fill cannot say. */
gy_constant gy_identity_constant(gantry_dtype dtype, gantry_access op);
/* True if `value`, stored as `dtype`, is the identity of `op`. */
bool gy_is_identity(gantry_dtype dtype, gantry_access op, gy_constant value);

#endif
