/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cache.h"

#include "base/error.h"
#include "base/file.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the folder ---- */

static gantry_status make_folder(const char *path, gantry_error *err)
{
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return GANTRY_OK;
    return gy_fail_errno(err, "create the cache folder", path);
}

static bool is_ours(const struct stat *info)
{
    return info->st_uid == geteuid() && !(info->st_mode & (S_IWGRP | S_IWOTH));
}

/* Code that is loaded from the cache runs with our rights: no other user may be able to write into it. */
static gantry_status check_folder(const char *path, gantry_error *err)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return gy_fail_errno(err, "read the cache folder", path);
    if (!S_ISDIR(info.st_mode) || !is_ours(&info)) {
        return gy_fail(err, GANTRY_E_IO, NULL,
                       "the cache folder %s is not a folder that only you can write to; correct its owner and mode, or "
                       "set XDG_CACHE_HOME",
                       path);
    }
    return GANTRY_OK;
}

static gantry_status cache_folder(char **folder, gantry_error *err)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *base = NULL;
    if (cache && *cache == '/')
        base = gy_strdup(cache);
    else if (home && *home == '/')
        base = gy_path_join(home, ".cache");
    else
        return gy_fail(err, GANTRY_E_IO, NULL, "no place for compiled kernels: set XDG_CACHE_HOME or HOME");
    char *full = base ? gy_path_join(base, "gantry") : NULL;
    gantry_status status = full ? make_folder(base, err) : gy_fail_nomem(err);
    status = status ? status : make_folder(full, err);
    status = status ? status : check_folder(full, err);
    gy_free(base);
    if (status) {
        gy_free(full);
        return status;
    }
    *folder = full;
    return GANTRY_OK;
}

gantry_status gy_cache_path(char **path, uint64_t hash, const char *ending, gantry_error *err)
{
    char *folder = NULL;
    GY_TRY(cache_folder(&folder, err));
    char name[40];
    snprintf(name, sizeof name, "%016" PRIx64 "%s", hash, ending);
    char *joined = gy_path_join(folder, name);
    gy_free(folder);
    if (!joined)
        return gy_fail_nomem(err);
    *path = joined;
    return GANTRY_OK;
}

/* ---- files that say whether they are whole ---- */

static const char mark[8] = "gantry 1";
typedef struct seal {
    char mark[8];
    uint64_t bytes, hash;
} seal;

static seal seal_of(const void *data, size_t bytes)
{
    seal s = { .bytes = bytes, .hash = gy_hash_bytes(data, bytes, bytes) };
    memcpy(s.mark, mark, sizeof mark);
    return s;
}

static bool put_all(int fd, const void *data, size_t bytes)
{
    for (const char *at = data; bytes > 0;) {
        ssize_t put = write(fd, at, bytes);
        if (put < 0 && errno != EINTR)
            return false;
        at += put > 0 ? put : 0;
        bytes -= put > 0 ? (size_t)put : 0;
    }
    return true;
}

static bool put_sealed(const char *path, const void *data, size_t bytes)
{
    seal s = seal_of(data, bytes);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool written = put_all(fd, data, bytes) && put_all(fd, &s, sizeof s);
    return close(fd) == 0 && written;
}

/* Under a name of our own first: two processes, or threads, may keep the same thing. */
gantry_status gy_cache_keep(const char *path, const void *data, size_t bytes, gantry_error *err)
{
    gy_text temporary = { 0 };
    gy_text_printf(&temporary, "%s.%ld-%zx.tmp", path, (long)getpid(), (size_t)(uintptr_t)&temporary);
    if (temporary.failed) {
        gy_text_free(&temporary);
        return gy_fail_nomem(err);
    }
    gantry_status status = GANTRY_OK;
    unlink(temporary.at); /* of a process that had our number */
    if (!put_sealed(temporary.at, data, bytes) || rename(temporary.at, path) != 0) {
        status = gy_fail_errno(err, "write", path);
        unlink(temporary.at);
    }
    gy_text_free(&temporary);
    return status;
}

static bool is_whole(const char *data, size_t *bytes)
{
    seal found;
    if (*bytes < sizeof found)
        return false;
    size_t length = *bytes - sizeof found;
    memcpy(&found, data + length, sizeof found);
    seal wanted = seal_of(data, length);
    *bytes = length;
    return memcmp(&found, &wanted, sizeof found) == 0;
}

bool gy_cache_find(const char *path, char **data, size_t *bytes)
{
    struct stat info;
    char *read = NULL;
    size_t length = 0;
    if (stat(path, &info) != 0 || !is_ours(&info) || gy_file_read(&read, &length, path, NULL))
        return false;
    if (!is_whole(read, &length)) {
        gy_free(read);
        return false;
    }
    read[length] = '\0';
    *data = read;
    *bytes = length;
    return true;
}
