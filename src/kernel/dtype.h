/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GY_KERNEL_DTYPE_H
#define GY_KERNEL_DTYPE_H

#include <gantry/kernel.h>
#include <stdbool.h>

/* Floating point, of any width. */
static inline bool gy_dtype_is_float(gantry_dtype dtype)
{
    return dtype == GANTRY_F16 || dtype == GANTRY_BF16 || dtype == GANTRY_F32 || dtype == GANTRY_F64 ||
           dtype == GANTRY_F8E4M3 || dtype == GANTRY_F8E5M2;
}

/* Floating point of 8 bits, in which numbers are kept, converted and multiplied, but nothing is added up. */
#define GY_F8_DTYPES (GANTRY_DTYPE_BIT(GANTRY_F8E4M3) | GANTRY_DTYPE_BIT(GANTRY_F8E5M2))
static inline bool gy_dtype_is_f8(gantry_dtype dtype)
{
    return dtype == GANTRY_F8E4M3 || dtype == GANTRY_F8E5M2;
}

/* The `dtypes` of an argument that names none. */
#define GY_USUAL_DTYPES ((GANTRY_DTYPE_BIT(GANTRY_DTYPE_COUNT) - 1) & ~GY_F8_DTYPES)

#endif
