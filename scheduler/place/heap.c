/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/place/heap.h"

bool gy_heap_push(gy_heap *h, uint32_t item)
{
    if (!gy_vec_push(&h->at, item))
        return false;
    uint32_t *at = h->at.at;
    size_t i = h->at.count - 1;
    for (; i && h->before(h->context, item, at[(i - 1) / 2]); i = (i - 1) / 2)
        at[i] = at[(i - 1) / 2];
    at[i] = item;
    return true;
}

uint32_t gy_heap_pop(gy_heap *h)
{
    uint32_t *at = h->at.at, top = at[0], last = at[--h->at.count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < h->at.count; i = child) {
        if (child + 1 < h->at.count && h->before(h->context, at[child + 1], at[child]))
            child++;
        if (!h->before(h->context, at[child], last))
            break;
        at[i] = at[child];
    }
    at[i] = last;
    return top;
}

void gy_heap_free(gy_heap *h)
{
    gy_vec_free(&h->at);
}
