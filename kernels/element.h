/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops over any element type. A kernel writes its loop once as a macro DO(dtype, type, wide, LOAD, STORE) that expands
 * to a `case`, and lets a list of types expand it: LOAD widens an element to `wide`, STORE narrows it back. Integers
 * are widened to 64 unsigned bits, so that sums and products wrap as the narrow type would and nothing overflows.
 */
#ifndef GY_KERNELS_ELEMENT_H
#define GY_KERNELS_ELEMENT_H

#include "base/f8.h"
#include "kernel/dtype.h"
#include <gantry/kernel.h>

#define GY_TO_F32(x) (x)
#define GY_TO_F64(x) (x)
#define GY_WIDEN(x)  ((uint64_t)(x))
#define GY_AS_I8(x)  ((int8_t)(x))
#define GY_AS_U8(x)  ((uint8_t)(x))
#define GY_AS_I32(x) ((int32_t)(x))
#define GY_AS_U32(x) ((uint32_t)(x))
#define GY_AS_I64(x) ((int64_t)(x))
#define GY_AS_U64(x) ((uint64_t)(x))

#define GY_WIDE_TYPES(DO)                                                                                              \
    DO(GANTRY_F32, float, float, GY_TO_F32, GY_TO_F32)                                                                 \
    DO(GANTRY_F64, double, double, GY_TO_F64, GY_TO_F64)

#define GY_FLOAT_TYPES(DO)                                                                                             \
    DO(GANTRY_F16, uint16_t, float, gy_f16_to_float, gy_float_to_f16)                                                  \
    DO(GANTRY_BF16, uint16_t, float, gy_bf16_to_float, gy_float_to_bf16)                                               \
    GY_WIDE_TYPES(DO)

#define GY_INTEGER_TYPES(DO)                                                                                           \
    DO(GANTRY_I8, int8_t, uint64_t, GY_WIDEN, GY_AS_I8)                                                                \
    DO(GANTRY_U8, uint8_t, uint64_t, GY_WIDEN, GY_AS_U8)                                                               \
    DO(GANTRY_I32, int32_t, uint64_t, GY_WIDEN, GY_AS_I32)                                                             \
    DO(GANTRY_U32, uint32_t, uint64_t, GY_WIDEN, GY_AS_U32)                                                            \
    DO(GANTRY_I64, int64_t, uint64_t, GY_WIDEN, GY_AS_I64)                                                             \
    DO(GANTRY_U64, uint64_t, uint64_t, GY_WIDEN, GY_AS_U64)

#define GY_ALL_TYPES(DO) GY_FLOAT_TYPES(DO) GY_INTEGER_TYPES(DO)

#define GY_WIDE_DTYPES   (GANTRY_DTYPE_BIT(GANTRY_F32) | GANTRY_DTYPE_BIT(GANTRY_F64))
#define GY_FLOAT_DTYPES  (GANTRY_DTYPE_BIT(GANTRY_F16) | GANTRY_DTYPE_BIT(GANTRY_BF16) | GY_WIDE_DTYPES)

/* A scalar in the wide type of a loop. Of integers every digit counts, and a negative number wraps. */
#define GY_SCALAR(wide, arg) ((wide)1.5 == (wide)1 ? (wide)(arg).integer : (wide)(arg).number)

/* Elements of the region. */
static inline int64_t gy_arg_size(const gantry_arg *a)
{
    return a->rows * (a->row_bytes / (int64_t)gantry_dtype_size(a->dtype));
}
/* Elements of one row. */
static inline int64_t gy_arg_width(const gantry_arg *a)
{
    return a->row_bytes / (int64_t)gantry_dtype_size(a->dtype);
}

/* One line that says which two arguments disagree, for a manifest's check(). */
gantry_status gy_check_same_size(const gantry_launch *l, int a, int b, char *text, size_t size);
/* For manifests in which all regions have as many elements as the first. */
gantry_status gy_check_regions_alike(const gantry_launch *l, char *text, size_t size);
gantry_status gy_check_one_element(const gantry_launch *l, int a, char *text, size_t size);
gantry_status gy_check_fail(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
