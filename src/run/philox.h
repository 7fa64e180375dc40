/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Philox4x32-10: a counter-based generator. Any block of four numbers is computed on its own, so that a buffer holds
 * the same numbers however it is split and wherever it is filled.
 *
 * Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011; multipliers, Weyl constants and
 * test vectors of Random123.
 */
#ifndef GY_RUN_PHILOX_H
#define GY_RUN_PHILOX_H

#include <stdint.h>

typedef struct gy_philox_block {
    uint32_t word[4];
} gy_philox_block;

gy_philox_block gy_philox(gy_philox_block counter, uint32_t key0, uint32_t key1);
/* Block `index` of the stream of a seed: counter (low, high, 0, 0), key (low, high) of the seed. */
gy_philox_block gy_philox_at(uint64_t seed, uint64_t index);

#endif
