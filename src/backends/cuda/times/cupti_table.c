/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/times/cupti.h"

void gy_cupti_table_clear(gy_cupti_table *t)
{
    gy_map_free(&t->of);
    t->piece.count = 0;
    t->recorded = 0;
}

void gy_cupti_table_free(gy_cupti_table *t)
{
    gy_cupti_table_clear(t);
    gy_vec_free(&t->piece);
}

bool gy_cupti_table_add(gy_cupti_table *t, uint64_t id, uint32_t op)
{
    uint64_t known;
    if (gy_map_get(&t->of, id, &known))
        return true; /* CUPTI names it twice */
    return gy_vec_push(&t->piece, ((gy_cupti_piece){ op, false })) && gy_map_put(&t->of, id, t->piece.count - 1);
}

void gy_cupti_table_alias(gy_cupti_table *t, uint64_t id, uint64_t like)
{
    uint64_t piece;
    if (gy_map_get(&t->of, like, &piece))
        gy_map_put(&t->of, id, piece); /* if there is no memory, it is as if its record were lost */
}

gy_cupti_piece *gy_cupti_table_find(const gy_cupti_table *t, uint64_t id)
{
    uint64_t piece;
    return gy_map_get(&t->of, id, &piece) ? &t->piece.at[piece] : NULL;
}

void gy_cupti_table_again(gy_cupti_table *t)
{
    for (size_t i = 0; i < t->piece.count; i++)
        t->piece.at[i].recorded = false;
    t->recorded = 0;
}
