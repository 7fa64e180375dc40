/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/radix.cuh"

#define KERNEL(suffix, key) GY_RADIX_KERNELS(sort, suffix, key) GY_RADIX_MOVE(sort_move, suffix, key, false, key)
GY_RADIX_KEYS(KERNEL)
