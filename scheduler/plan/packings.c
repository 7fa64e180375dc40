/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/plan/packings.h"

#include "base/memory.h"

static gy_packing *find(const gy_packings *all, gy_packing_key key)
{
    for (size_t i = 0; i < all->at.count; i++)
        if (all->at.at[i].key.half[0] == key.half[0] && all->at.at[i].key.half[1] == key.half[1])
            return &all->at.at[i];
    return NULL;
}

const gy_packing *gy_packings_find(const gy_packings *all, gy_packing_key key, uint64_t budget)
{
    const gy_packing *known = find(all, key);
    return known && (known->offset || known->proved || known->budget >= budget) ? known : NULL;
}

bool gy_packings_keep(gy_packings *all, const gy_packing *answer)
{
    gy_packing *known = find(all, answer->key);
    if (!known && gy_vec_push(&all->at, *answer))
        return true;
    gy_free(known ? known->offset : answer->offset);
    if (known)
        *known = *answer;
    return known;
}

void gy_packings_free(gy_packings *all)
{
    for (size_t i = 0; i < all->at.count; i++)
        gy_free(all->at.at[i].offset);
    gy_vec_free(&all->at);
}
