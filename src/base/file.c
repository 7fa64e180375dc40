/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include "base/error.h"
#include "base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_STEP = 64 * 1024, MOST_TEMPORARIES = 1000 };

/* read until `size` bytes or the end; the bytes read, or -1 with errno. */
static ssize_t read_some(int fd, char *to, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t got = read(fd, to + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

/* The size is only a first guess: pipes have none and files grow. */
static size_t guess_size(int fd)
{
    struct stat info;
    bool known = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
    return known ? (size_t)info.st_size + 1 : READ_STEP;
}

static gantry_status read_all(int fd, const char *path, char **text, size_t *length, gantry_error *err)
{
    size_t capacity = 0, done = 0, want = guess_size(fd);
    char *at = NULL;
    for (;;) {
        char *grown = gy_realloc(at, want, 1);
        if (!grown) {
            gy_free(at);
            return gy_fail_nomem(err);
        }
        at = grown;
        capacity = want;
        ssize_t got = read_some(fd, at + done, capacity - 1 - done);
        if (got < 0) {
            gy_fail_errno(err, "read", path);
            gy_free(at);
            return GANTRY_E_IO;
        }
        done += (size_t)got;
        if (done < capacity - 1)
            break;
        want = capacity + capacity / 2 + READ_STEP;
    }
    at[done] = '\0';
    *text = at;
    *length = done;
    return GANTRY_OK;
}

gantry_status gy_file_read(char **text, size_t *length, const char *path, gantry_error *err)
{
    if (strcmp(path, "-") == 0)
        return read_all(STDIN_FILENO, "standard input", text, length, err);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return gy_fail_errno(err, "open", path);
    gantry_status status = read_all(fd, path, text, length, err);
    close(fd);
    return status;
}

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
