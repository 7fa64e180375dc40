/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GY_BASE_ALIGN_H
#define GY_BASE_ALIGN_H

#include <stdint.h>

/* Bases of instances and of scratch are multiples of so many bytes. */
#define GY_ALIGN UINT64_C(256)

/* Rounded up to that. */
static inline uint64_t gy_aligned(uint64_t bytes)
{
    return (bytes + GY_ALIGN - 1) / GY_ALIGN * GY_ALIGN;
}

#endif
