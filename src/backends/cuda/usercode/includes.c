/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/usercode/includes.h"

#include "base/cache.h"
#include "base/error.h"
#include "base/file.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct search {
    const char *const *folders;
    size_t count;
    gy_names files; /* real paths, in the order in which they were found */
    uint64_t hash;
    bool known, nomem;
    gantry_status status; /* of a file that cannot be read to its end */
    gantry_error *err;
} search;

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static void add_bytes(search *s, const char *bytes, size_t length)
{
    s->hash = gy_hash_bytes(bytes, length, s->hash);
}

/* NVRTC would wait at a pipe for ever. A folder of that name it passes over. */
static void add_file(search *s, const char *real)
{
    struct stat info;
    if (stat(real, &info) != 0 || S_ISDIR(info.st_mode))
        return;
    if (S_ISREG(info.st_mode))
        s->nomem = gy_names_add(&s->files, real, NULL) == GY_NO_NAME || s->nomem;
    else if (!s->status)
        s->status = gy_code_file_check(real, s->err);
}

/* A file that is not there may be there the next time: that it is found then changes the hash. */
static void offer(search *s, const char *folder, const char *name)
{
    char real[PATH_MAX];
    char *path = gy_path_join(folder, name);
    s->nomem = s->nomem || !path;
    if (path && realpath(path, real))
        add_file(s, real);
    gy_free(path);
}

/* `at` is behind the quote or bracket that opens the name. */
static void look_up(search *s, const char *folder, const char *at, char closing)
{
    size_t length = strcspn(at, (char[]){ closing, '\n', '\0' });
    char *name = gy_strndup(at, length);
    add_bytes(s, at, length);
    if (!name) {
        s->nomem = true;
        return;
    }
    offer(s, folder, name);
    for (size_t i = 0; i < s->count; i++)
        offer(s, s->folders[i], name);
    gy_free(name);
}

/* Could the word at `at` be a directive: behind '#', ':' of "%:", or a comment? */
static bool is_directive(const char *text, const char *at)
{
    while (at > text && (at[-1] == ' ' || at[-1] == '\t'))
        at--;
    return at > text && (at[-1] == '#' || at[-1] == ':' || at[-1] == '/');
}

static void scan(search *s, const char *folder, const char *text)
{
    s->known = s->known && !strstr(text, "__has_include");
    for (const char *at = text; (at = strstr(at, "include"));) {
        const char *word = at;
        at += strlen("include");
        const char *name = at + strspn(at, " \t");
        if (word > text && is_word(word[-1]))
            continue;
        if (*name == '"' || *name == '<')
            look_up(s, folder, name + 1, *name == '"' ? '"' : '>');
        else if (is_directive(text, word))
            s->known = false;
    }
}

/* Lines that go on in the next one are one line. */
static void splice(char *text)
{
    char *to = text;
    for (const char *from = text; *from;) {
        size_t skip = from[0] != '\\' ? 0 : from[1] == '\n' ? 2 : from[1] == '\r' && from[2] == '\n' ? 3 : 0;
        from += skip;
        if (!skip)
            *to++ = *from++;
    }
    *to = '\0';
}

static void scan_file(search *s, const char *path, const char *text, size_t length)
{
    char *folder = gy_path_folder(path), *copy = gy_strndup(text, length);
    add_bytes(s, path, strlen(path));
    add_bytes(s, text, length);
    if (folder && copy) {
        splice(copy);
        scan(s, folder, copy);
    } else {
        s->nomem = true;
    }
    gy_free(folder);
    gy_free(copy);
}

gantry_status gy_includes_hash(uint64_t *hash, bool *known, const char *path, const char *text, size_t length,
                               const char *const *folders, size_t count, gantry_error *err)
{
    search s = { .folders = folders, .count = count, .hash = *hash, .known = true, .err = err };
    scan_file(&s, path, text, length);
    for (uint32_t i = 0; i < s.files.count && !s.nomem && !s.status; i++) {
        char *inner = NULL;
        size_t bytes = 0;
        const char *name = gy_names_at(&s.files, i);
        if (!gy_file_is_regular(name))
            continue;
        gantry_status status = gy_file_read(&inner, &bytes, name, NULL);
        if (status == GANTRY_OK)
            scan_file(&s, name, inner, bytes);
        s.nomem = s.nomem || status == GANTRY_E_NOMEM; /* what cannot be read NVRTC will complain about */
        gy_free(inner);
    }
    gy_names_free(&s.files);
    if (s.nomem)
        return gy_fail_nomem(err);
    GY_TRY(s.status);
    *hash = s.hash;
    *known = *known && s.known;
    return GANTRY_OK;
}
