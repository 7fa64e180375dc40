/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting many small numbers by a key, in time that grows like their count. */
#ifndef GY_BASE_SORT_H
#define GY_BASE_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* item[0 .. count) by rising key[item[i]]; equals stay in their order. By the digits of the keys, lowest first (H. H.
 * Seward, 1954; D. E. Knuth, The Art of Computer Programming 3, 5.2.5): O(count) for each 11 bits that keys differ in.
 * false: out of memory, nothing moved. */
bool gy_sort_by_key(uint32_t *item, const int64_t *key, size_t count);

#endif
