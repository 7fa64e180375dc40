/* SPDX-License-Identifier: Apache-2.0 */
#include "base/vec.h"

#include <stdint.h>
#include <string.h>

bool gy_vec_grow_(void *at, size_t *capacity, size_t need, size_t item)
{
    if (need <= *capacity)
        return true;
    /* The first memory is just what is asked for: many lists never get a second item, many sizes are known. */
    size_t grown = *capacity == 0 ? need : *capacity < 4 ? 8 : *capacity + *capacity / 2;
    if (grown < need)
        grown = need;
    /* The caller's pointer has a type of its own: only its bytes may be touched through void *. */
    void *memory;
    memcpy(&memory, at, sizeof memory);
    memory = gy_realloc(memory, grown, item);
    if (!memory)
        return false;
    memcpy(at, &memory, sizeof memory);
    *capacity = grown;
    return true;
}
