/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/bound/paging.h"

#include "base/memory.h"
#include "base/sort.h"

bool gy_stays_sort(gy_stays *stays)
{
    uint32_t *item = gy_calloc(stays->count + 1, sizeof *item);
    int64_t *key = gy_calloc(stays->count + 1, sizeof *key);
    gy_stay *sorted = gy_calloc(stays->count + 1, sizeof *sorted);
    bool done = item && key && sorted;
    for (uint32_t i = 0; i < stays->count && done; i++) {
        item[i] = i;
        key[i] = stays->at[i].first;
    }
    done = done && gy_sort_by_key(item, key, stays->count);
    for (size_t i = 0; i < stays->count && done; i++)
        sorted[i] = stays->at[item[i]];
    for (size_t i = 0; i < stays->count && done; i++)
        stays->at[i] = sorted[i];
    gy_free(item);
    gy_free(key);
    gy_free(sorted);
    return done;
}

int64_t gy_paging_missed(gy_paging *x, const gy_stays *stays)
{
    int64_t sum = 0, missed = 0;
    size_t next = 0;
    uint32_t top = 0;
    for (uint32_t l = 0; l < x->length; l++) {
        for (; next < stays->count && stays->at[next].first == l; next++) {
            x->staying[stays->at[next].last] += stays->at[next].bytes;
            sum += stays->at[next].bytes;
            top = stays->at[next].last > top ? stays->at[next].last : top;
        }
        for (; sum > x->room[l]; top -= x->staying[top] == 0) {
            int64_t go = sum - x->room[l] < x->staying[top] ? sum - x->room[l] : x->staying[top];
            x->staying[top] -= go;
            sum -= go;
            missed += go;
            x->steps++;
        }
        sum -= x->staying[l];
        x->staying[l] = 0;
    }
    return missed;
}
