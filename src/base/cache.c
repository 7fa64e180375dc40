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
static gantry_status check_folder(int folder, const char *path, gantry_error *err)
{
    struct stat info;
    if (fstat(folder, &info) != 0)
        return gy_fail_errno(err, "read the cache folder", path);
    if (is_ours(&info))
        return GANTRY_OK;
    return gy_fail(
        err, GANTRY_E_IO, NULL,
        "the cache folder %s is not a folder that only you can write to: it belongs to user %lu and has mode "
        "%04o, and you are user %lu; correct its owner and mode (0700), or set XDG_CACHE_HOME",
        path, (unsigned long)info.st_uid, (unsigned)info.st_mode & 07777, (unsigned long)geteuid());
}

static gantry_status find_folder(char **folder, gantry_error *err)
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
    gy_free(base);
    if (status) {
        gy_free(full);
        return status;
    }
    *folder = full;
    return GANTRY_OK;
}

static gantry_status open_folder(int *folder, const char *path, gantry_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return gy_fail_errno(err, "open the cache folder", path);
    gantry_status status = check_folder(fd, path, err);
    if (status) {
        close(fd);
        return status;
    }
    *folder = fd;
    return GANTRY_OK;
}

gantry_status gy_cache_open(gy_cache_entry *entry, uint64_t hash, const char *ending, gantry_error *err)
{
    char *path = NULL, name[40];
    int folder = -1;
    GY_TRY(find_folder(&path, err));
    snprintf(name, sizeof name, "%016" PRIx64 "%s", hash, ending);
    gantry_status status = open_folder(&folder, path, err);
    char *joined = status ? NULL : gy_path_join(path, name);
    gy_free(path);
    if (!status && !joined) {
        close(folder);
        status = gy_fail_nomem(err);
    }
    if (status)
        return status;
    *entry = (gy_cache_entry){ folder, joined, joined + strlen(joined) - strlen(name) };
    return GANTRY_OK;
}

void gy_cache_close(gy_cache_entry *entry)
{
    close(entry->folder);
    gy_free(entry->path);
}

/* ---- entries that say whether they are whole ---- */

static const char mark[8] = "gantry 2";
typedef struct seal {
    char mark[8];
    uint64_t bytes, hash;
} seal;

/* The name is part of it: an entry is good for what it was made from. */
static seal seal_of(const gy_cache_entry *entry, const void *data, size_t bytes)
{
    uint64_t seed = gy_hash_bytes(entry->name, strlen(entry->name), bytes);
    seal s = { .bytes = bytes, .hash = gy_hash_bytes(data, bytes, seed) };
    memcpy(s.mark, mark, sizeof mark);
    return s;
}

/* Flushed before it is renamed: after a crash of the computer a name would else stand for blocks never written. */
static bool put_sealed(const gy_cache_entry *entry, int folder, const char *name, const void *data, size_t bytes)
{
    seal s = seal_of(entry, data, bytes);
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool written = gy_write_all(fd, data, bytes) && gy_write_all(fd, &s, sizeof s) && fsync(fd) == 0;
    int code = errno;
    if (close(fd) != 0 && written)
        return false;
    errno = code;
    return written;
}

gantry_status gy_cache_keep(const gy_cache_entry *entry, const void *data, size_t bytes, gantry_error *err)
{
    gy_cache_work work;
    GY_TRY(gy_cache_work_begin(&work, entry, err));
    gantry_status status = GANTRY_OK;
    if (!put_sealed(entry, work.folder, "entry", data, bytes) ||
        renameat(work.folder, "entry", entry->folder, entry->name) != 0)
        status = gy_fail_errno(err, "write", entry->path);
    gy_cache_work_end(&work);
    return status;
}

static bool get_all(const gy_file *file, void *to, size_t bytes)
{
    size_t got = 0;
    return gy_file_get(file, to, bytes, &got, NULL) == GANTRY_OK && got == bytes;
}

/* The length of what is kept in a file that may be ours: so far only the seal's own word for it, read before the rest,
 * since a damaged file may be huge. */
static bool find_length(int fd, size_t *bytes)
{
    struct stat info;
    seal s;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || !is_ours(&info) || info.st_size < (off_t)sizeof s)
        return false;
    *bytes = (size_t)info.st_size - sizeof s;
    return pread(fd, &s, sizeof s, (off_t)*bytes) == sizeof s && s.bytes == *bytes;
}

static char *read_sealed(const gy_cache_entry *entry, int fd, size_t bytes)
{
    seal found;
    char *data = gy_alloc(bytes + 1);
    if (!data)
        return NULL;
    gy_file file = { .fd = fd, .path = entry->path };
    if (get_all(&file, data, bytes) && get_all(&file, &found, sizeof found)) {
        seal wanted = seal_of(entry, data, bytes);
        data[bytes] = '\0';
        if (memcmp(&found, &wanted, sizeof found) == 0)
            return data;
    }
    gy_free(data);
    return NULL;
}

bool gy_cache_find(const gy_cache_entry *entry, char **data, size_t *bytes)
{
    int fd = openat(entry->folder, entry->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    size_t length = 0;
    char *read = find_length(fd, &length) ? read_sealed(entry, fd, length) : NULL;
    close(fd);
    if (!read)
        return false;
    *data = read;
    *bytes = length;
    return true;
}

/* ---- sources ---- */

gantry_status gy_code_file_check(const char *path, gantry_error *err)
{
    struct stat info;
    if (stat(path, &info) != 0 || (S_ISREG(info.st_mode) && access(path, R_OK) != 0))
        return gy_fail_errno(err, "open", path);
    if (S_ISREG(info.st_mode))
        return GANTRY_OK;
    return gy_fail(err, GANTRY_E_IO, NULL, "%s is not a regular file but %s; code is read from regular files only",
                   path,
                   S_ISDIR(info.st_mode)    ? "a folder"
                   : S_ISFIFO(info.st_mode) ? "a pipe"
                                            : "a device or socket");
}
