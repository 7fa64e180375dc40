/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/radix.cuh"

#define KERNEL(suffix, key)                                                                                            \
    GY_RADIX_KERNELS(sort_pairs, suffix, key)                                                                                  \
    GY_RADIX_MOVE(sort_pairs_move4, suffix, key, true, uint32_t)                                                              \
    GY_RADIX_MOVE(sort_pairs_move8, suffix, key, true, uint64_t)
GY_RADIX_KEYS(KERNEL)
