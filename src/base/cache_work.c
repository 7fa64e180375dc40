/* SPDX-License-Identifier: Apache-2.0 */
/* Locks say which folders are in use: the system gives them up when a process ends, however it ends. Numbers of
 * processes would not do, since several computers and containers may share a cache. */
#include "base/cache.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_NAMES = 1000, MOST_DEPTH = 16 };
#define OPEN_FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* ---- removing ---- */

typedef void (*visit)(int folder, const char *name, int depth);

static void each_name(int folder, int depth, visit each)
{
    int fd = openat(folder, ".", OPEN_FOLDER); /* closedir closes it */
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *e; (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            each(folder, e->d_name, depth);
    closedir(dir);
}

/* Compilers may make folders for what they keep in between. */
static void remove_name(int folder, const char *name, int depth)
{
    if (unlinkat(folder, name, 0) == 0 || depth == MOST_DEPTH)
        return;
    int inner = openat(folder, name, OPEN_FOLDER);
    if (inner < 0)
        return;
    each_name(inner, depth + 1, remove_name);
    close(inner);
    unlinkat(folder, name, AT_REMOVEDIR);
}

static bool is_temporary(const char *name)
{
    size_t length = strlen(name);
    return length > 4 && strcmp(name + length - 4, ".tmp") == 0;
}

static bool is_named(int parent, const char *name, int fd)
{
    struct stat there, here;
    return fstat(fd, &here) == 0 && fstatat(parent, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

/* Its process may have removed what was opened here, and made another of that name, before the lock was had. What is
 * locked and still has its name keeps it: whoever made it has ended. */
static void remove_abandoned(int folder, const char *name, int depth)
{
    if (!is_temporary(name))
        return;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_named(folder, name, fd))
        remove_name(folder, name, depth);
    close(fd);
}

/* ---- making ---- */

/* Somebody who looks for abandoned folders may have come between making it and locking it. */
static bool is_locked(int parent, const char *name, int folder)
{
    if (flock(folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return false;
    return is_named(parent, name, folder);
}

/* The folder's descriptor; -1 with errno. A folder whose lock another has is left to that one, which removes it by
 * name: were it removed here, then the next one would get its name and be removed in its stead. */
static int make_locked(int parent, char *name, size_t size)
{
    for (int i = 0; i < MOST_NAMES; i++) {
        snprintf(name, size, "%ld-%d.tmp", (long)getpid(), i);
        if (mkdirat(parent, name, 0700) != 0) {
            if (errno != EEXIST)
                return -1;
            continue;
        }
        int folder = openat(parent, name, OPEN_FOLDER);
        if (folder >= 0 && is_locked(parent, name, folder))
            return folder;
        int code = errno;
        if (folder >= 0) {
            close(folder);
        } else if (code != ENOENT) {
            unlinkat(parent, name, AT_REMOVEDIR);
            errno = code;
            return -1;
        }
    }
    errno = EEXIST;
    return -1;
}

gantry_status gy_cache_work_begin(gy_cache_work *work, const gy_cache_entry *entry, gantry_error *err)
{
    char name[40];
    each_name(entry->folder, 0, remove_abandoned);
    int folder = make_locked(entry->folder, name, sizeof name);
    if (folder < 0)
        return gy_fail_errno(err, "make a folder for", entry->path);
    gy_text path = { 0 };
    gy_text_add_n(&path, entry->path, (size_t)(entry->name - entry->path));
    gy_text_add(&path, name);
    size_t length = 0;
    char *taken = gy_text_take(&path, &length);
    if (!taken) {
        unlinkat(entry->folder, name, AT_REMOVEDIR);
        close(folder);
        return gy_fail_nomem(err);
    }
    *work = (gy_cache_work){ folder, entry->folder, taken, taken + length - strlen(name) };
    return GANTRY_OK;
}

void gy_cache_work_end(gy_cache_work *work)
{
    remove_name(work->parent, work->name, 0);
    close(work->folder); /* the lock, last */
    gy_free(work->path);
}
