/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include "base/beneath.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_STEP = 64 * 1024, MOST_STREAMED = 1 << 30 };

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

/* Names of one ending are compared by what is before it, which says what file is meant. */
static void offer_name(gy_near *near, const char *name, const char *other)
{
    char stem[NAME_MAX + 1], other_stem[NAME_MAX + 1];
    const char *dot = strrchr(name, '.'), *other_dot = strrchr(other, '.');
    if (!dot || !other_dot || strcmp(dot, other_dot) != 0) {
        gy_near_offer(near, name, other);
        return;
    }
    snprintf(stem, sizeof stem, "%.*s", (int)(dot - name), name);
    snprintf(other_stem, sizeof other_stem, "%.*s", (int)(other_dot - other), other);
    gy_near_offer(near, stem, other_stem);
    if (near->best == other_stem)
        near->best = other;
}

/* The name that was perhaps meant, among those of the folder; or that there is no such folder. */
static void add_remedy(const char *path, gantry_error *err)
{
    enum { MOST_NAMES = 10000 };
    char *folder = gy_path_folder(path), best[NAME_MAX + 1] = "";
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    DIR *open = folder && err && strlen(name) <= NAME_MAX ? opendir(folder) : NULL;
    bool is_missing = folder && !open && errno == ENOENT;
    size_t used = err ? strlen(err->text) : 0;
    gy_near near = { 0 };
    const struct dirent *entry;
    for (int i = 0; open && i < MOST_NAMES && (entry = readdir(open)); i++) {
        if (entry->d_name[0] != '.')
            offer_name(&near, name, entry->d_name);
        if (near.best == entry->d_name)
            near.best = strcpy(best, entry->d_name);
    }
    if (near.best)
        snprintf(err->text + used, sizeof err->text - used, " (did you mean \"%.*s%s\"?)", (int)(name - path), path,
                 best);
    else if (is_missing && err)
        snprintf(err->text + used, sizeof err->text - used, "; there is no folder \"%s\"", folder);
    if (err)
        gy_make_plain(err->text);
    if (open)
        closedir(open);
    gy_free(folder);
}

static gantry_status fail_beneath(const char *path, gantry_error *err)
{
    bool is_missing = errno == ENOENT;
    if (errno != EXDEV) {
        gy_record_errno(err, "open", path);
        if (is_missing)
            add_remedy(path, err);
        return GANTRY_E_IO;
    }
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
