/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/radix.cuh"

#define KERNEL(suffix, key)                                                                                            \
    GY_RADIX_KERNELS(argsort, suffix, key)                                                                                  \
    GY_RADIX_MOVE(argsort_move4, suffix, key, true, uint32_t)                                                              \
    GY_RADIX_MOVE(argsort_move8, suffix, key, true, uint64_t)
GY_RADIX_KEYS(KERNEL)
