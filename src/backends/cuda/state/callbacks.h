/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Host functions: work for the CPU in the order of a stream. A callback says what such a function does. It must stay
 * until the function has run, so callbacks are kept in blocks that a later start uses again.
 */
#ifndef GY_CUDA_STATE_CALLBACKS_H
#define GY_CUDA_STATE_CALLBACKS_H

#include "base/vec.h"
#include <gantry/kernel.h>
#include <stdint.h>

typedef enum gy_callback_kind {
    GY_CALLBACK_CALL,      /* calls the function of a launch or host op of a CPU device */
    GY_CALLBACK_MOVE,      /* moves bytes within host memory */
    GY_CALLBACK_FILL,      /* fills a use of a fill op */
    GY_CALLBACK_REDUCE,    /* combines sources[0] (+) sources[1] ... into `to` */
    GY_CALLBACK_SEND,      /* sends `from` to the rank `peer` */
    GY_CALLBACK_RECEIVE,   /* receives `to` from it */
    GY_CALLBACK_EXCHANGE,  /* sends and receives `to`, `count` transfers, with all ranks and both ways at the same time;
                              behind them is a bool for each */
    GY_CALLBACK_COMBINE,   /* carries out a collective of several ranks; `to` is a table of where its uses are */
    GY_CALLBACK_MIRROR_IN, /* copies inputs to their mirrors */
    GY_CALLBACK_MIRROR_OUT /* copies results from their mirrors */
} gy_callback_kind;

typedef struct gy_callback {
    struct gy_cuda *h;
    gy_callback_kind kind;
    uint32_t op, turn, use;
    void *to;
    const void *from;
    const void **sources;
    uint32_t count; /* of sources, or of transfers */
    uint32_t peer;
    const void *flag; /* of a message: one element of `dtype`, which is 0 if nothing is sent; NULL: it always is */
    gantry_dtype dtype;
    gantry_access reduce;
    uint64_t bytes;
} gy_callback;

typedef struct gy_callbacks {
    GY_VEC(char *) block;
    size_t next, used; /* block in use, and bytes of it */
} gy_callbacks;        /* zero-initialised is ready */

/* Aligned to 16; NULL: out of memory. `bytes` is at most 64 KiB. */
void *gy_callbacks_add(gy_callbacks *callbacks, size_t bytes);
void gy_callbacks_reset(gy_callbacks *callbacks);
void gy_callbacks_free(gy_callbacks *callbacks);

#endif
