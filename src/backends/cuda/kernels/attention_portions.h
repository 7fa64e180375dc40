/* SPDX-License-Identifier: Apache-2.0 */
/** How the scores of an attention are cut where they lie in memory: what is computed at once, and in which order. */
#ifndef GY_CUDA_KERNELS_ATTENTION_PORTIONS_H
#define GY_CUDA_KERNELS_ATTENTION_PORTIONS_H

#include "kernels/attention/attention.h"
#include <stdbool.h>

typedef struct gy_portions {
    gy_attention of;
    int64_t size;  /* bytes of a score */
    int64_t lines; /* rows that bands are cut of: all that share a head of keys, or those of one head of queries */
    int64_t high;  /* rows of a band; the last of `lines` may have fewer */
} gy_portions;

/* A band: some rows of queries of each of some heads of keys, and the keys that these rows see, the first ones. */
typedef struct gy_portion {
    int64_t head, heads; /* of keys */
    int64_t row, rows;   /* of each of them */
    int64_t before;      /* keys that the first of the rows sees beside its own, under a mask */
    int64_t period;      /* so many rows further the mask begins anew */
    int64_t keys;
    bool more; /* the gradients of its keys have been begun by another */
} gy_portion;

/* Can it be cut so that scores of one head and band take half a GiB at most? Queries that see no key: no. */
bool gy_portions_fit(const gy_attention *a, int64_t size);
gy_portions gy_portions_of(const gy_attention *a, int64_t size);
/* The next one; *x all 0: the first. False: there is none. The first to have a key has all keys of its heads. */
bool gy_portions_next(const gy_portions *p, gy_portion *x);
/* Bytes that the scores of a portion take at most. */
int64_t gy_portions_bytes(const gy_portions *p);

#endif
