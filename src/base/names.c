/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"
#include <string.h>

/* The slot that holds the name, or the free one where it belongs. */
static uint32_t slot_of(const gy_names *names, const char *name, uint64_t hash)
{
    uint32_t i = (uint32_t)hash & (names->slots - 1);
    for (;; i = (i + 1) & (names->slots - 1)) {
        uint32_t index = names->slot[i];
        if (index == GY_NO_NAME || (names->at[index].hash == hash && strcmp(names->at[index].name, name) == 0))
            return i;
    }
}

static uint64_t hash_of(const char *name)
{
    return gy_hash_bytes(name, strlen(name), 0);
}

uint32_t gy_names_find(const gy_names *names, const char *name)
{
    return names->slots ? names->slot[slot_of(names, name, hash_of(name))] : GY_NO_NAME;
}

/* At most half of the slots are in use. */
static bool grow_slots(gy_names *names)
{
    if (names->slots > UINT32_MAX / 2)
        return false;
    uint32_t slots = names->slots ? names->slots * 2 : 16;
    uint32_t *slot = gy_realloc(NULL, slots, sizeof *slot);
    if (!slot)
        return false;
    memset(slot, 0xFF, slots * sizeof *slot);
    for (uint32_t i = 0; i < names->count; i++) {
        uint32_t j = (uint32_t)names->at[i].hash & (slots - 1);
        while (slot[j] != GY_NO_NAME)
            j = (j + 1) & (slots - 1);
        slot[j] = i;
    }
    gy_free(names->slot);
    names->slot = slot;
    names->slots = slots;
    return true;
}

static bool grow_entries(gy_names *names)
{
    uint32_t capacity = names->capacity ? names->capacity + names->capacity / 2 : 8;
    struct gy_names_entry *at = capacity > names->count ? gy_realloc(names->at, capacity, sizeof *at) : NULL;
    if (!at)
        return false;
    names->at = at;
    names->capacity = capacity;
    return true;
}

static bool make_room(gy_names *names)
{
    if (!names->arena_ && !(names->arena_ = gy_calloc(1, sizeof *names->arena_)))
        return false;
    return (names->count < names->slots / 2 || grow_slots(names)) &&
           (names->count < names->capacity || grow_entries(names));
}

uint32_t gy_names_add(gy_names *names, const char *name, bool *isnew)
{
    uint32_t index = gy_names_find(names, name);
    bool absent = index == GY_NO_NAME;
    if (absent) {
        char *copy = make_room(names) ? gy_arena_strdup(names->arena_, name) : NULL;
        if (!copy)
            return GY_NO_NAME;
        uint64_t hash = hash_of(name);
        index = names->count++;
        names->at[index] = (struct gy_names_entry){ copy, hash };
        /* The new entry is unlike all others: the search ends at a free slot. */
        names->slot[slot_of(names, name, hash)] = index;
    }
    if (isnew)
        *isnew = absent;
    return index;
}

const char *gy_names_at(const gy_names *names, uint32_t index)
{
    return names->at[index].name;
}

void gy_names_free(gy_names *names)
{
    if (names->arena_) {
        gy_arena_free(names->arena_);
        gy_free(names->arena_);
    }
    gy_free(names->at);
    gy_free(names->slot);
    *names = (gy_names){ 0 };
}
