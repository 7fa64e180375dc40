/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Work for the CPU in the order of a stream (host functions). What such a function needs is noted down when it is
 * queued and must stay until it has run: notes are kept in blocks that are used again by a later start.
 */
#ifndef GY_CUDA_STATE_CALLBACKS_H
#define GY_CUDA_STATE_CALLBACKS_H

#include "base/vec.h"
#include <gantry/kernel.h>
#include <stdint.h>

typedef enum gy_note_kind {
    GY_NOTE_CALL,   /* a launch or host op of a CPU device */
    GY_NOTE_MOVE,   /* bytes within host memory */
    GY_NOTE_FILL,   /* a use of a fill op */
    GY_NOTE_REDUCE, /* from[0] (+) from[1] ... into `to` */
    GY_NOTE_BRING,  /* inputs to their mirrors */
    GY_NOTE_TAKE    /* results from theirs */
} gy_note_kind;

typedef struct gy_note {
    struct gy_cuda *h;
    gy_note_kind kind;
    uint32_t op, turn, use;
    void *to;
    const void *from;
    const void **sources;
    uint32_t count; /* of sources */
    gantry_dtype dtype;
    gantry_access reduce;
    uint64_t bytes;
} gy_note;

typedef struct gy_notes {
    GY_VEC(char *) block;
    size_t next, used; /* block in use, and bytes of it */
} gy_notes;            /* zero-initialised is ready */

/* Aligned to 16; NULL: out of memory. `bytes` is at most 64 KiB. */
void *gy_notes_add(gy_notes *notes, size_t bytes);
void gy_notes_reset(gy_notes *notes);
void gy_notes_free(gy_notes *notes);

#endif
