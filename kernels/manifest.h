/* SPDX-License-Identifier: Apache-2.0 */
/* Short forms for manifests: one kernel a file, ending in its gantry_kernel. */
#ifndef GY_KERNELS_MANIFEST_H
#define GY_KERNELS_MANIFEST_H

#include "kernels/element.h"
#include <stdatomic.h>

/* Grain of gantry_launch_cut where an item is one element that takes about a nanosecond. */
enum { GY_GRAIN = 32768 };

/* The same where an item is a row of so many elements. */
static inline int64_t gy_grain_of_rows(int64_t width)
{
    return width > 0 && width < GY_GRAIN ? GY_GRAIN / width : 1;
}

/* The lowest row that several threads have found to be wrong, from INT64_MAX on. */
typedef _Atomic int64_t gy_least_row;
static inline void gy_least_row_note(gy_least_row *least, int64_t row)
{
    int64_t seen = atomic_load(least);
    while (row < seen && !atomic_compare_exchange_weak(least, &seen, row)) {
    }
}
/* The status of a launch for it: its number, from 1 on. */
static inline int32_t gy_row_code(int64_t row)
{
    return row < INT32_MAX ? (int32_t)row + 1 : INT32_MAX;
}
/* Becomes the status of the launch, if there is one. */
static inline void gy_least_row_tell(gy_least_row *least, const gantry_launch *l)
{
    int64_t row = atomic_load(least);
    if (row != INT64_MAX)
        *l->status = gy_row_code(row);
}

#define GY_REGION(name_, access_, dtypes_, same_, summary_)                                                            \
    {                                                                                                                  \
        .name = name_, .access = access_, .dtypes = dtypes_, .same = same_, .summary = summary_                        \
    }
/* A region that a node need not give. */
#define GY_REGION_OR_NONE(name_, access_, dtypes_, same_, summary_)                                                    \
    {                                                                                                                  \
        .name = name_, .access = access_, .optional = 1, .dtypes = dtypes_, .same = same_, .summary = summary_         \
    }
#define GY_NUMBER(name_, summary_)                                                                                     \
    {                                                                                                                  \
        .name = name_, .scalar = 1, .summary = summary_                                                                \
    }
#define GY_NUMBER_OR(name_, value_, summary_)                                                                          \
    {                                                                                                                  \
        .name = name_, .scalar = 1, .optional = 1, .fallback = value_, .summary = summary_                             \
    }

/* Numbers that elements are multiplied by or the like: times do not depend on them. */
#define GY_SCALE(name_, summary_)                                                                                      \
    {                                                                                                                  \
        .name = name_, .scalar = GANTRY_FACTOR, .summary = summary_                                                    \
    }
#define GY_SCALE_OR(name_, value_, summary_)                                                                           \
    {                                                                                                                  \
        .name = name_, .scalar = GANTRY_FACTOR, .optional = 1, .fallback = value_, .summary = summary_                 \
    }
/* The same, which the kernel converts to the dtype of the regions with that letter. */
#define GY_FACTOR(name_, same_, summary_)                                                                              \
    {                                                                                                                  \
        .name = name_, .scalar = GANTRY_FACTOR, .same = same_, .summary = summary_                                     \
    }
#define GY_FACTOR_OR(name_, same_, value_, summary_)                                                                   \
    {                                                                                                                  \
        .name = name_, .scalar = GANTRY_FACTOR, .optional = 1, .fallback = value_, .same = same_, .summary = summary_  \
    }

#define KERNEL(name) extern const gantry_kernel gy_kernel_##name;
#define DEVICE(name)
#include "kernels/kernels.def"

#endif
