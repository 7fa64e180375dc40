/* SPDX-License-Identifier: Apache-2.0 */
/* 64-bit key -> 64-bit value, open addressing. Iteration order is never used by the library. */
#ifndef GY_BASE_MAP_H
#define GY_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gy_map {
    uint64_t *key, *value;
    uint8_t *used;
    size_t count, slots;
} gy_map; /* zero-initialised is ready */

bool gy_map_get(const gy_map *map, uint64_t key, uint64_t *value);
bool gy_map_put(gy_map *map, uint64_t key, uint64_t value); /* false: out of memory */
void gy_map_free(gy_map *map);
uint64_t gy_hash64(uint64_t x);                                        /* a good mix (splitmix64 finaliser) */
uint64_t gy_hash_bytes(const void *data, size_t bytes, uint64_t seed); /* xxh64 */

#endif
