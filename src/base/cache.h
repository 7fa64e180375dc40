/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Compiled code of users, kept in $XDG_CACHE_HOME/gantry or ~/.cache/gantry under a name made from what it was compiled
 * from, so that nothing is compiled twice. What is there runs as us, so only we may be able to write to it.
 */
#ifndef GY_BASE_CACHE_H
#define GY_BASE_CACHE_H

#include <gantry/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The path of what has that hash: "FOLDER/HASH.so" for the ending ".so". The folder is made and checked. Free with
 * gy_free. E_IO: there is no place, or others can write to it. */
gantry_status gy_cache_path(char **path, uint64_t hash, const char *ending, gantry_error *err);

/* Bytes that are kept with their number and hash behind them, written under a temporary name and renamed. */
gantry_status gy_cache_keep(const char *path, const void *data, size_t bytes, gantry_error *err);
/* Reads an entry, with a 0 byte after it (gy_free). False: there is none, or it is not whole; or out of memory. */
bool gy_cache_find(const char *path, char **data, size_t *bytes);

#endif
