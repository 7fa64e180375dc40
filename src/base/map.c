/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include "base/memory.h"
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t gy_hash64(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t gy_hash_bytes(const void *data, size_t bytes, uint64_t seed)
{
    return XXH64(data, bytes, seed);
}

/* The slot of the key, or the free one where it belongs. There always is a free one. */
static size_t slot_of(const gy_map *map, uint64_t key)
{
    size_t i = gy_hash64(key) & (map->slots - 1);
    while (map->used[i] && map->key[i] != key)
        i = (i + 1) & (map->slots - 1);
    return i;
}

static void set_slot(gy_map *map, size_t i, uint64_t key, uint64_t value)
{
    map->key[i] = key;
    map->value[i] = value;
    map->count += !map->used[i];
    map->used[i] = 1;
}

/* The three arrays are one piece of memory, freed through `key`. */
static bool grow(gy_map *map)
{
    gy_map grown = { .slots = map->slots ? map->slots * 2 : 16 };
    size_t item = 2 * sizeof(uint64_t) + 1;
    grown.key = gy_calloc(grown.slots, item);
    if (!grown.key)
        return false;
    grown.value = grown.key + grown.slots;
    grown.used = (uint8_t *)(grown.value + grown.slots);
    for (size_t i = 0; i < map->slots; i++)
        if (map->used[i])
            set_slot(&grown, slot_of(&grown, map->key[i]), map->key[i], map->value[i]);
    gy_free(map->key);
    *map = grown;
    return true;
}

bool gy_map_get(const gy_map *map, uint64_t key, uint64_t *value)
{
    if (map->count == 0)
        return false;
    size_t i = slot_of(map, key);
    if (!map->used[i])
        return false;
    *value = map->value[i];
    return true;
}

bool gy_map_put(gy_map *map, uint64_t key, uint64_t value)
{
    if (map->slots) {
        size_t i = slot_of(map, key);
        if (map->used[i] || map->count + 1 <= map->slots / 4 * 3) {
            set_slot(map, i, key, value);
            return true;
        }
    }
    if (!grow(map))
        return false;
    set_slot(map, slot_of(map, key), key, value);
    return true;
}

void gy_map_free(gy_map *map)
{
    gy_free(map->key);
    *map = (gy_map){ 0 };
}
