/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GY_KERNEL_DTYPE_H
#define GY_KERNEL_DTYPE_H

#include <gantry/kernel.h>
#include <stdbool.h>

/* Floating point, of any width. */
static inline bool gy_dtype_is_float(gantry_dtype dtype)
{
    return dtype == GANTRY_F16 || dtype == GANTRY_BF16 || dtype == GANTRY_F32 || dtype == GANTRY_F64;
}

#endif
