/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/stale.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_TEMPORARIES = 1000, NAME_ROOM = 48, NUMBER_ROOM = 32, BLOCK = 64 * 1024 };

/* ---- bytes ---- */

bool gy_write_all(int fd, const void *data, size_t length)
{
    for (const char *at = data; length > 0;) {
        ssize_t put = write(fd, at, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        at += put;
        length -= (size_t)put;
    }
    return true;
}

static bool write_pieces(int fd, const gy_piece pieces[2])
{
    return gy_write_all(fd, pieces[0].at, pieces[0].count) && gy_write_all(fd, pieces[1].at, pieces[1].count);
}

/* A pipe or a device cannot be replaced by renaming (and /dev/null must not be). */
static gantry_status write_in_place(const char *path, const gy_piece pieces[2], gantry_error *err)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return gy_fail_errno(err, "open", path);
    bool written = write_pieces(fd, pieces);
    gantry_status status = written ? GANTRY_OK : gy_fail_errno(err, "write", path);
    if (close(fd) != 0 && written)
        status = gy_fail_errno(err, "write", path);
    return status;
}

/* ---- files without their names ---- */

/* Calls `make` with "<target>.<pid>-<n>.tmp" for n = 0, 1, ... until that name is free; its result, or -1 with errno.
 */
static int take_temporary(gy_new_file *f, int (*make)(const gy_new_file *f, const char *name, mode_t mode), mode_t mode)
{
    size_t size = strlen(f->target) + NAME_ROOM;
    char *name = gy_alloc(size);
    int result = -1;
    errno = name ? EEXIST : ENOMEM;
    for (int i = 0; name && i < MOST_TEMPORARIES && result < 0 && errno == EEXIST; i++) {
        snprintf(name, size, "%s.%ld-%d.tmp", f->target, (long)getpid(), i);
        result = make(f, name, mode);
    }
    if (result >= 0) {
        f->temporary = name;
        return result;
    }
    int code = errno;
    gy_free(name);
    errno = code;
    return -1;
}

static int create_named(const gy_new_file *f, const char *name, mode_t mode)
{
    (void)f;
    return open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
}

static int link_as(const gy_new_file *f, const char *name, mode_t mode)
{
    char number[NUMBER_ROOM];
    (void)mode;
    snprintf(number, sizeof number, "/proc/self/fd/%d", f->fd);
    return linkat(AT_FDCWD, number, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

/* Such a file is gone with its process. -1: the file system has none, or /proc is not there to name it later. */
static int create_nameless(const char *folder, mode_t mode)
{
    char number[NUMBER_ROOM];
    int fd = open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, mode);
    snprintf(number, sizeof number, "/proc/self/fd/%d", fd);
    if (fd < 0 || access(number, F_OK) == 0)
        return fd;
    close(fd);
    return -1;
}

static gantry_status create(gy_new_file *f, mode_t mode, gantry_error *err)
{
    char *folder = gy_path_folder(f->target);
    if (!folder)
        return gy_fail_nomem(err);
    gy_stale_remove(folder, f->target);
    f->fd = create_nameless(folder, mode);
    gy_free(folder);
    if (f->fd < 0)
        f->fd = take_temporary(f, create_named, mode);
    if (f->fd < 0)
        return errno == ENOMEM ? gy_fail_nomem(err) : gy_fail_errno(err, "create", f->path);
    flock(f->fd, LOCK_EX | LOCK_NB); /* file systems without locks do without */
    return GANTRY_OK;
}

/* `mode` is that of the file that is replaced, NULL if there is none. */
static gantry_status fill(gy_new_file *f, const gy_piece pieces[2], const mode_t *mode, gantry_error *err)
{
    GY_TRY(create(f, mode ? *mode : 0666, err));
    bool fine = write_pieces(f->fd, pieces) && (!mode || fchmod(f->fd, *mode) == 0) && fsync(f->fd) == 0;
    return fine ? GANTRY_OK : gy_fail_errno(err, "write", f->path);
}

/* ---- names ---- */

static bool copy_bytes(int from, int to)
{
    char block[BLOCK];
    ssize_t got = 0;
    for (off_t at = 0; (got = pread(from, block, sizeof block, at)) > 0; at += got)
        if (!gy_write_all(to, block, (size_t)got))
            return false;
    return got == 0;
}

/* Where a file that has no name cannot be given one, which some file systems and sandboxes forbid. */
static bool copy_to_named(gy_new_file *f)
{
    struct stat info;
    int fd = fstat(f->fd, &info) == 0 ? take_temporary(f, create_named, info.st_mode & 07777) : -1;
    if (fd < 0)
        return false;
    flock(fd, LOCK_EX | LOCK_NB);
    bool fine = copy_bytes(f->fd, fd) && fchmod(fd, info.st_mode & 07777) == 0 && fsync(fd) == 0;
    int code = errno;
    close(f->fd);
    f->fd = fd;
    errno = code;
    return fine;
}

/* A file of no name gets a temporary one, since linkat replaces nothing. */
static gantry_status name_temporarily(gy_new_file *f, gantry_error *err)
{
    if (f->temporary || take_temporary(f, link_as, 0) == 0 || copy_to_named(f))
        return GANTRY_OK;
    return errno == ENOMEM ? gy_fail_nomem(err) : gy_fail_errno(err, "write", f->path);
}

static gantry_status take_place(gy_new_file *f, gantry_error *err)
{
    if (rename(f->temporary, f->target) != 0)
        return gy_fail_errno(err, "write", f->path);
    gy_free(f->temporary);
    f->temporary = NULL;
    return GANTRY_OK;
}

/* The file is complete on the disk; now its name is, too. Where folders cannot be flushed nothing can be done. */
static void flush_name(const gy_new_file *f)
{
    char *folder = gy_path_folder(f->target);
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    gy_free(folder);
}

static void free_file(gy_new_file *f)
{
    if (f->temporary)
        unlink(f->temporary);
    if (f->fd >= 0)
        close(f->fd);
    if (f->old >= 0)
        close(f->old);
    gy_free(f->temporary);
    gy_free(f->target);
    gy_free(f->path);
}

/* A single file that replaces nothing needs no other name. */
static bool take_new_name(const gantry_files *files)
{
    const gy_new_file *f = files->list.at;
    return files->list.count == 1 && !f->temporary && link_as(f, f->target, 0) == 0;
}

static gantry_status commit(gantry_files *files, gantry_error *err)
{
    if (take_new_name(files))
        return GANTRY_OK;
    for (size_t i = 0; i < files->list.count; i++)
        GY_TRY(name_temporarily(&files->list.at[i], err));
    for (size_t i = 0; i < files->list.count; i++)
        GY_TRY(take_place(&files->list.at[i], err));
    return GANTRY_OK;
}

/* ---- one file of a group ---- */

static gantry_status add_file(gantry_files *files, const char *path, const char *target, const mode_t *mode,
                              const gy_piece pieces[2], gantry_error *err)
{
    gy_new_file f = { .fd = -1, .old = -1, .path = gy_strdup(path), .target = gy_strdup(target) };
    bool room = f.path && f.target && gy_vec_reserve(&files->list, files->list.count + 1);
    gantry_status status = room ? fill(&f, pieces, mode, err) : gy_fail_nomem(err);
    if (mode && !status)
        f.old = open(target, O_PATH | O_CLOEXEC);
    if (status)
        free_file(&f);
    else
        files->list.at[files->list.count++] = f;
    return status;
}

gantry_status gy_files_add(gantry_files *files, const char *path, const gy_piece pieces[2], gantry_error *err)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return add_file(files, path, path, NULL, pieces, err);
    if (S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        return gy_fail_errno(err, "write", path);
    }
    if (!S_ISREG(info.st_mode))
        return write_in_place(path, pieces, err);
    /* A link stays a link: what it points to is replaced. */
    char target[PATH_MAX];
    if (!realpath(path, target))
        return gy_fail_errno(err, "write", path);
    mode_t mode = info.st_mode & 07777;
    return add_file(files, path, target, &mode, pieces, err);
}

static void clear(gantry_files *files)
{
    for (size_t i = 0; i < files->list.count; i++)
        free_file(&files->list.at[i]);
    gy_vec_free(&files->list);
}

gantry_status gy_files_finish(gantry_files *files, gantry_status status, gantry_error *err)
{
    if (!status)
        status = commit(files, err);
    for (size_t i = 0; !status && i < files->list.count; i++)
        flush_name(&files->list.at[i]);
    clear(files);
    return status;
}

gantry_status gantry_files_new(gantry_files **files, gantry_error *err)
{
    GY_NEED(files, err);
    gantry_files *made = gy_calloc(1, sizeof *made);
    if (!made)
        return gy_fail_nomem(err);
    *files = made;
    return GANTRY_OK;
}

gantry_status gantry_files_add(gantry_files *files, const char *path, const void *data, size_t length,
                               gantry_error *err)
{
    GY_NEED(files, err);
    GY_NEED(path, err);
    if (!data && length > 0)
        return gy_fail(err, GANTRY_E_INVALID, NULL, "data is NULL, and length is %zu bytes", length);
    return gy_files_add(files, path, (const gy_piece[2]){ { data, length } }, err);
}

gantry_status gantry_files_commit(gantry_files *files, gantry_error *err)
{
    GY_NEED(files, err);
    return gy_files_finish(files, GANTRY_OK, err);
}

void gantry_files_free(gantry_files *files)
{
    if (files)
        clear(files);
    gy_free(files);
}

gantry_status gy_file_write(const char *path, const void *data, size_t length, gantry_error *err)
{
    gantry_files files = { 0 };
    gantry_status status = gy_files_add(&files, path, (const gy_piece[2]){ { data, length } }, err);
    return gy_files_finish(&files, status, err);
}
