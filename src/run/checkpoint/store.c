/* SPDX-License-Identifier: Apache-2.0 */
#include "run/checkpoint/store.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BEGINS  "checkpoint-"
#define WRITING "checkpoint.writing"
enum { DIGITS = 12, NAME = 40, DECIMAL = 10, TRIES = 30 };

/* ---- names ---- */

static char *name_of(char to[NAME], uint64_t number)
{
    snprintf(to, NAME, BEGINS "%0*" PRIu64, DIGITS, number);
    return to;
}

/* 0: the name is not that of a checkpoint. */
static uint64_t number_of(const char *name)
{
    char back[NAME];
    uint64_t number = strncmp(name, BEGINS, strlen(BEGINS)) == 0 ? strtoull(name + strlen(BEGINS), NULL, DECIMAL) : 0;
    return number && strcmp(name_of(back, number), name) == 0 ? number : 0;
}

static char *join(const char *folder, const char *inner, const char *name)
{
    char *first = gy_path_join(folder, inner), *all = first && *name ? gy_path_join(first, name) : NULL;
    if (!*name)
        return first;
    gy_free(first);
    return all;
}

char *gy_store_path(const gy_store *store, const char *name)
{
    return join(store->folder, WRITING, name);
}

char *gy_store_path_of(const char *folder, uint64_t number, const char *name)
{
    char inner[NAME];
    return join(folder, name_of(inner, number), name);
}

bool gy_store_is(const char *folder, const char *other)
{
    struct stat a, b;
    return stat(folder, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* ---- what is there ---- */

static int newest_first(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

gantry_status gy_store_list(gy_numbers *numbers, const char *folder, gantry_error *err)
{
    DIR *all = opendir(folder);
    bool room = true;
    numbers->count = 0;
    if (!all)
        return gy_fail_errno(err, "open", folder);
    for (const struct dirent *entry; room && (entry = readdir(all));) {
        uint64_t number = number_of(entry->d_name);
        room = !number || gy_vec_push(numbers, number);
    }
    closedir(all);
    if (!room)
        return gy_fail_nomem(err);
    if (numbers->count)
        qsort(numbers->at, numbers->count, sizeof *numbers->at, newest_first);
    return GANTRY_OK;
}

/* A folder of files; what cannot be removed stays, and is in nobody's way. */
static void remove_folder(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *all = fd >= 0 ? fdopendir(fd) : NULL;
    if (!all && fd >= 0)
        close(fd);
    for (const struct dirent *entry; all && (entry = readdir(all));)
        unlinkat(dirfd(all), entry->d_name, 0);
    if (all)
        closedir(all);
    unlinkat(at, name, AT_REMOVEDIR);
}

/* ---- writing ---- */

static gantry_status fail_foreign(const gy_store *store, uint64_t number, gantry_error *err)
{
    char name[NAME];
    return gy_fail(err, GANTRY_E_IO, NULL,
                   "folder %s has a checkpoint of another run, %s; resume from it, or write to a folder without any",
                   store->folder, name_of(name, number));
}

static gantry_status look_at(gy_store *store, uint64_t mine, gantry_error *err)
{
    gy_numbers numbers = { 0 };
    gantry_status status = gy_store_list(&numbers, store->folder, err);
    store->highest = !status && numbers.count ? numbers.at[0] : 0;
    if (!status && store->highest && !mine)
        status = fail_foreign(store, store->highest, err);
    store->newest = mine;
    gy_vec_free(&numbers);
    return status;
}

/* A process that was killed may have its lock for a moment after that. False: another process has it, and keeps it. */
static bool lock(int fd)
{
    const struct timespec nap = { .tv_nsec = 50000000 };
    for (int i = 0; i < TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) /* file systems without locks do without */
            return true;
        nanosleep(&nap, NULL);
    }
    return false;
}

gantry_status gy_store_open(gy_store *store, const char *folder, uint64_t mine, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    *store = (gy_store){ .folder = gy_strdup(folder), .fd = -1 };
    if (!store->folder)
        return gy_fail_nomem(err);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        status = gy_fail_errno(err, "make", folder);
    else if ((store->fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        status = gy_fail_errno(err, "open", folder);
    else if (!lock(store->fd))
        status =
            gy_fail(err, GANTRY_E_IO, NULL,
                    "another process writes checkpoints to %s; wait until it ends, or give another folder", folder);
    status = status ? status : look_at(store, mine, err);
    if (status)
        gy_store_close(store);
    return status;
}

void gy_store_close(gy_store *store)
{
    if (store->folder && store->fd >= 0)
        close(store->fd);
    gy_free(store->folder);
    *store = (gy_store){ 0 };
}

static gantry_status fail_at(const gy_store *store, const char *what, gantry_error *err)
{
    int code = errno;
    char *path = gy_store_path(store, "");
    if (!path)
        return gy_fail_nomem(err);
    errno = code;
    gantry_status status = gy_fail_errno(err, what, path);
    gy_free(path);
    return status;
}

gantry_status gy_store_begin(gy_store *store, gantry_error *err)
{
    remove_folder(store->fd, WRITING);
    return mkdirat(store->fd, WRITING, 0777) == 0 ? GANTRY_OK : fail_at(store, "make", err);
}

void gy_store_drop(gy_store *store)
{
    remove_folder(store->fd, WRITING);
}

/* Names in the folder are on the disk. Where folders cannot be flushed nothing can be done. */
static void flush_folder(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

static void remove_others(const gy_store *store)
{
    gy_numbers numbers = { 0 };
    char name[NAME];
    if (gy_store_list(&numbers, store->folder, NULL) == GANTRY_OK)
        for (size_t i = 0; i < numbers.count; i++)
            if (numbers.at[i] != store->newest && numbers.at[i] != store->before)
                remove_folder(store->fd, name_of(name, numbers.at[i]));
    gy_vec_free(&numbers);
}

gantry_status gy_store_publish(gy_store *store, gantry_error *err)
{
    char name[NAME];
    flush_folder(store->fd, WRITING);
    if (renameat(store->fd, WRITING, store->fd, name_of(name, store->highest + 1)) != 0)
        return fail_at(store, "rename", err);
    flush_folder(store->fd, ".");
    store->before = store->newest;
    store->newest = ++store->highest;
    remove_others(store);
    return GANTRY_OK;
}
