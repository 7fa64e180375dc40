/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Compiled code of users, kept in $XDG_CACHE_HOME/gantry or ~/.cache/gantry under a name made from what it was compiled
 * from, so that nothing is compiled twice. What is there runs as us: the folder and every entry have to be ours, with
 * nobody else allowed to write. That keeps others out; the hash behind each entry finds damage (an entry that was cut,
 * changed, or put under the name of another), and is no defence against ourselves.
 */
#ifndef GY_BASE_CACHE_H
#define GY_BASE_CACHE_H

#include <gantry/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A name in the folder. The descriptor is that of the folder that was checked, whatever is at its path later. */
typedef struct gy_cache_entry {
    int folder;
    char *path;
    const char *name; /* the end of path: HASH.so */
} gy_cache_entry;

/* The entry of what has that hash: "FOLDER/HASH.so" for the ending ".so". The folder is made, 0700, and checked. E_IO:
 * there is no place, or others can write to it. Only an entry that was opened is closed. */
gantry_status gy_cache_open(gy_cache_entry *entry, uint64_t hash, const char *ending, gantry_error *err);
void gy_cache_close(gy_cache_entry *entry);

/* Bytes that are kept with their number and hash behind them, on the disk before they have their name. */
gantry_status gy_cache_keep(const gy_cache_entry *entry, const void *data, size_t bytes, gantry_error *err);
/* Reads an entry, with a 0 byte after it (gy_free). False: there is none, it is not whole, or it may be somebody
 * else's; or out of memory. */
bool gy_cache_find(const gy_cache_entry *entry, char **data, size_t *bytes);

/* cache_work.c: a folder within the cache's for what is being made, "PID-N.tmp". It is locked as long as it is open;
 * those that nobody locks, because their process has ended, are removed when the next one is made. */
typedef struct gy_cache_work {
    int folder, parent; /* the entry's folder, which stays open longer */
    char *path;
    const char *name; /* the end of path */
} gy_cache_work;

gantry_status gy_cache_work_begin(gy_cache_work *work, const gy_cache_entry *entry, gantry_error *err);
void gy_cache_work_end(gy_cache_work *work); /* removes it with what is in it */

/* Code that a graph names is read by compilers and loaders, which wait for ever at a pipe. E_IO: it is not there, may
 * not be read, or is no regular file. */
gantry_status gy_code_file_check(const char *path, gantry_error *err);

#endif
