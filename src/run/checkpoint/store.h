/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A folder with checkpoints. Each is a folder of its own, "checkpoint-000000000007", which is filled under another name
 * and renamed when all in it is on the disk, so that it is there whole or not at all. The last two stay.
 */
#ifndef GY_RUN_CHECKPOINT_STORE_H
#define GY_RUN_CHECKPOINT_STORE_H

#include "base/vec.h"
#include <gantry/status.h>
#include <stdbool.h>

#define GY_MANIFEST "manifest.json"

/* The folder as its writer has it: no other process writes to it meanwhile. Zero: closed. */
typedef struct gy_store {
    char *folder;
    int fd;                  /* of the folder, locked */
    uint64_t newest, before; /* numbers of this writer's last two; 0: none. What is resumed from counts */
    uint64_t highest;        /* of all that were there */
} gy_store;

/* Makes the folder if it is not there. `mine`: the number of the checkpoint in it that was resumed from, 0: none was.
 * E_IO: it cannot be made or written to; another process has it; there are checkpoints of others in it. */
gantry_status gy_store_open(gy_store *store, const char *folder, uint64_t mine, gantry_error *err);
void gy_store_close(gy_store *store);

/* Files of the next one go into the folder `gy_store_path` of "" until it is published. */
gantry_status gy_store_begin(gy_store *store, gantry_error *err);
char *gy_store_path(const gy_store *store, const char *name); /* gy_free; NULL: out of memory */
gantry_status gy_store_publish(gy_store *store, gantry_error *err);
/* Nothing of it stays. */
void gy_store_drop(gy_store *store);

typedef GY_VEC(uint64_t) gy_numbers;
/* Of the checkpoints in a folder, the newest first. */
gantry_status gy_store_list(gy_numbers *numbers, const char *folder, gantry_error *err);
/* "folder/checkpoint-000000000007/name"; gy_free. */
char *gy_store_path_of(const char *folder, uint64_t number, const char *name);
/* True if both paths lead to one folder. */
bool gy_store_is(const char *folder, const char *other);

#endif
