/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/state/callbacks.h"

enum { BLOCK = 1 << 16, ALIGN = 16 };

void *gy_notes_add(gy_notes *notes, size_t bytes)
{
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (notes->next < notes->block.count && notes->used + bytes > BLOCK) {
        notes->next++;
        notes->used = 0;
    }
    if (notes->next == notes->block.count) {
        char *block = gy_alloc(BLOCK);
        if (!block || !gy_vec_push(&notes->block, block)) {
            gy_free(block);
            return NULL;
        }
    }
    void *at = notes->block.at[notes->next] + notes->used;
    notes->used += bytes;
    return at;
}

void gy_notes_reset(gy_notes *notes)
{
    notes->next = notes->used = 0;
}

void gy_notes_free(gy_notes *notes)
{
    for (size_t i = 0; i < notes->block.count; i++) {
        gy_free(notes->block.at[i]);
    }
    gy_vec_free(&notes->block);
    gy_notes_reset(notes);
}
