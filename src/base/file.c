/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include "base/beneath.h"
#include "base/error.h"
#include "base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_STEP = 64 * 1024, MOST_STREAMED = 1 << 30, MOST_TEMPORARIES = 1000 };

/* ---- opening ---- */

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" : "a device";
}

/* The name that was joined with the folder. */
static const char *name_in(const char *folder, const char *path)
{
    size_t length = strlen(folder);
    if (strncmp(path, folder, length) != 0)
        return path;
    path += length;
    return path + (length > 0 ? strspn(path, "/") : 0);
}

static gantry_status fail_beneath(const char *path, gantry_error *err)
{
    if (errno != EXDEV)
        return gy_fail_errno(err, "open", path);
    return gy_fail(err, GANTRY_E_IO, NULL,
                   "%s leads out of the folder of the graph that names it, by \"..\" or a symbolic link; copy the file "
                   "into that folder, or name it on the command line",
                   path);
}

static gantry_status check_kind(gy_file *file, const char *folder, gantry_error *err)
{
    struct stat info;
    if (fstat(file->fd, &info) != 0)
        return gy_fail_errno(err, "open", file->path);
    file->regular = S_ISREG(info.st_mode);
    file->size = file->regular ? (uint64_t)info.st_size : 0;
    if (file->regular || !folder)
        return GANTRY_OK;
    return gy_fail(err, GANTRY_E_IO, NULL,
                   "%s is %s, but what a graph names must be a regular file; put its contents into one", file->path,
                   kind_of(info.st_mode));
}

gantry_status gy_file_open(gy_file *file, const char *path, const char *folder, gantry_error *err)
{
    gy_file opened = { .path = path };
    opened.fd = folder ? gy_beneath_open(folder, name_in(folder, path)) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (opened.fd < 0)
        return fail_beneath(path, err);
    gantry_status status = check_kind(&opened, folder, err);
    if (status) {
        close(opened.fd);
        return status;
    }
    *file = opened;
    return GANTRY_OK;
}

gantry_status gy_file_get(const gy_file *file, void *to, size_t bytes, size_t *got, gantry_error *err)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t more = read(file->fd, (char *)to + done, bytes - done);
        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return gy_fail_errno(err, "read", file->path);
        if (more == 0)
            break;
        done += (size_t)more;
    }
    *got = done;
    return GANTRY_OK;
}

void gy_file_close(const gy_file *file)
{
    close(file->fd); /* opened for reading: nothing can be lost */
}

/* ---- whole files in ---- */

/* The size is only a first guess: pipes have none and files grow. */
static size_t guess_size(const gy_file *file)
{
    return file->regular && file->size > 0 ? (size_t)file->size + 1 : READ_STEP;
}

static gantry_status fail_large(const gy_file *file, uint64_t most, gantry_error *err)
{
    if (file->regular)
        return gy_fail(err, GANTRY_E_IO, NULL,
                       "%s has %" PRIu64 " bytes, more than the %" PRIu64 " that are allowed here", file->path,
                       file->size, most);
    return gy_fail(err, GANTRY_E_IO, NULL,
                   "%s gives more than %" PRIu64
                   " bytes and is no regular file, so that it may never end; name a regular "
                   "file",
                   file->path, most);
}

static gantry_status grow(char **at, size_t size, gantry_error *err)
{
    char *grown = gy_realloc(*at, size, 1);
    if (!grown)
        return gy_fail_nomem(err);
    *at = grown;
    return GANTRY_OK;
}

static gantry_status read_all(const gy_file *file, uint64_t most, char **at, size_t *length, gantry_error *err)
{
    size_t capacity = guess_size(file), done = 0, got;
    if (file->regular && file->size > most)
        return fail_large(file, most, err);
    for (;;) {
        GY_TRY(grow(at, capacity, err));
        GY_TRY(gy_file_get(file, *at + done, capacity - 1 - done, &got, err));
        done += got;
        if (done < capacity - 1)
            break;
        if (done > most)
            return fail_large(file, most, err);
        capacity += capacity / 2 + READ_STEP;
    }
    (*at)[done] = '\0';
    *length = done;
    return GANTRY_OK;
}

static gantry_status read_file(const gy_file *file, uint64_t most, char **text, size_t *length, gantry_error *err)
{
    char *at = NULL;
    gantry_status status = read_all(file, most, &at, length, err);
    if (status) {
        gy_free(at);
        return status;
    }
    *text = at;
    return GANTRY_OK;
}

gantry_status gy_file_read_in(char **text, size_t *length, const char *path, const char *folder, uint64_t most,
                              gantry_error *err)
{
    gy_file file;
    GY_TRY(gy_file_open(&file, path, folder, err));
    gantry_status status = read_file(&file, most, text, length, err);
    gy_file_close(&file);
    return status;
}

gantry_status gy_file_read(char **text, size_t *length, const char *path, gantry_error *err)
{
    gy_file file = { .fd = STDIN_FILENO, .path = "standard input" };
    bool standard_input = strcmp(path, "-") == 0;
    if (!standard_input)
        GY_TRY(gy_file_open(&file, path, NULL, err));
    gantry_status status = read_file(&file, file.regular ? UINT64_MAX : MOST_STREAMED, text, length, err);
    if (!standard_input)
        gy_file_close(&file);
    return status;
}

gantry_status gy_file_look(const char *path, const char *folder, gantry_error *err)
{
    gy_file file;
    GY_TRY(gy_file_open(&file, path, folder, err));
    gy_file_close(&file);
    return GANTRY_OK;
}

bool gy_file_is_regular(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* ---- files out ---- */

static bool write_all(int fd, const char *from, size_t length)
{
    while (length > 0) {
        ssize_t put = write(fd, from, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        from += put;
        length -= (size_t)put;
    }
    return true;
}

/* A pipe or a device cannot be replaced by renaming (and /dev/null must not be). */
static gantry_status write_in_place(const char *path, const void *data, size_t length, gantry_error *err)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return gy_fail_errno(err, "open", path);
    bool written = write_all(fd, data, length);
    gantry_status status = written ? GANTRY_OK : gy_fail_errno(err, "write", path);
    if (close(fd) != 0 && written)
        status = gy_fail_errno(err, "write", path);
    return status;
}

/* Creates a new file "<target>.<pid>-<n>.tmp" and opens it; `name` has room for the name. -1 with errno. */
static int open_temporary(char *name, size_t size, const char *target, mode_t mode)
{
    for (int i = 0; i < MOST_TEMPORARIES; i++) {
        snprintf(name, size, "%s.%ld-%d.tmp", target, (long)getpid(), i);
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static bool fill_and_close(int fd, const void *data, size_t length, const mode_t *mode)
{
    bool fine = write_all(fd, data, length) && (!mode || fchmod(fd, *mode) == 0) && fsync(fd) == 0;
    int code = errno;
    if (close(fd) != 0 && fine)
        return false;
    errno = code;
    return fine;
}

/* `mode` is that of the file that is replaced, NULL if there is none; `path` is what the caller calls it. */
static gantry_status write_and_rename(const char *target, const char *path, const void *data, size_t length,
                                      const mode_t *mode, gantry_error *err)
{
    size_t size = strlen(target) + 48;
    char *name = gy_alloc(size);
    if (!name)
        return gy_fail_nomem(err);
    gantry_status status = GANTRY_OK;
    int fd = open_temporary(name, size, target, mode ? *mode : 0666);
    if (fd < 0) {
        status = gy_fail_errno(err, "create", path);
        goto free_name;
    }
    if (!fill_and_close(fd, data, length, mode)) {
        status = gy_fail_errno(err, "write", path);
        goto remove_file;
    }
    if (rename(name, target) != 0) {
        status = gy_fail_errno(err, "write", path);
        goto remove_file;
    }
    goto free_name;
remove_file:
    unlink(name);
free_name:
    gy_free(name);
    return status;
}

gantry_status gy_file_write(const char *path, const void *data, size_t length, gantry_error *err)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return write_and_rename(path, path, data, length, NULL, err);
    if (S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        return gy_fail_errno(err, "write", path);
    }
    if (!S_ISREG(info.st_mode))
        return write_in_place(path, data, length, err);
    /* A link stays a link: what it points to is replaced. */
    char target[PATH_MAX];
    if (!realpath(path, target))
        return gy_fail_errno(err, "write", path);
    mode_t mode = info.st_mode & 07777;
    return write_and_rename(target, path, data, length, &mode, err);
}
