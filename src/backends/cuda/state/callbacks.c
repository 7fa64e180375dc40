/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/state/callbacks.h"

enum { BLOCK = 1 << 16, ALIGN = 16 };

void *gy_callbacks_add(gy_callbacks *callbacks, size_t bytes)
{
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (bytes > BLOCK) /* nothing is: what it is for has a bound of its own */
        return NULL;
    if (callbacks->next < callbacks->block.count && callbacks->used + bytes > BLOCK) {
        callbacks->next++;
        callbacks->used = 0;
    }
    if (callbacks->next == callbacks->block.count) {
        char *block = gy_alloc(BLOCK);
        if (!block || !gy_vec_push(&callbacks->block, block)) {
            gy_free(block);
            return NULL;
        }
    }
    void *at = callbacks->block.at[callbacks->next] + callbacks->used;
    callbacks->used += bytes;
    return at;
}

void gy_callbacks_reset(gy_callbacks *callbacks)
{
    callbacks->next = callbacks->used = 0;
}

void gy_callbacks_free(gy_callbacks *callbacks)
{
    for (size_t i = 0; i < callbacks->block.count; i++)
        gy_free(callbacks->block.at[i]);
    gy_vec_free(&callbacks->block);
    gy_callbacks_reset(callbacks);
}
