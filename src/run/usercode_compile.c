/* SPDX-License-Identifier: Apache-2.0 */
#include "run/usercode.h"

#include "base/cache.h"
#include "base/error.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/vec.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MOST_SHOWN = 361 }; /* of a compiler's complaints, in a record's 512 characters */

/* Where <gantry/kernel.h> is: beside the installed library, wherever it was moved to; in the source tree; as it was to
 * be installed. */
#ifndef GY_INCLUDE_FROM_LIBRARY
#define GY_INCLUDE_FROM_LIBRARY "../include"
#endif
#ifndef GY_INCLUDE_SOURCE
#define GY_INCLUDE_SOURCE "."
#endif
#ifndef GY_INCLUDE_INSTALL
#define GY_INCLUDE_INSTALL "."
#endif
static const char *const flags[] = { "-std=gnu11",      "-O2", "-fPIC",           "-ffp-contract=off", "-I",
                                     GY_INCLUDE_SOURCE, "-I",  GY_INCLUDE_INSTALL };
enum { FLAGS = sizeof flags / sizeof *flags };

typedef GY_VEC(char *) words;

static void free_words(words *w)
{
    for (size_t i = 0; i < w->count; i++)
        gy_free(w->at[i]);
    gy_vec_free(w);
}

static bool add_word(words *w, const char *text, size_t length)
{
    char *copy = gy_strndup(text, length);
    if (!copy || !gy_vec_push(w, copy)) {
        gy_free(copy);
        return false;
    }
    return true;
}

/* $CC may hold arguments ("ccache gcc -m64"). */
static bool add_compiler(words *w)
{
    const char *cc = getenv("CC");
    cc = cc && *cc ? cc : "cc";
    while (*cc) {
        size_t length = strcspn(cc, " ");
        if (length > 0 && !add_word(w, cc, length))
            return false;
        cc += length + (cc[length] == ' ');
    }
    return true;
}

static bool add_own_include(words *w)
{
    static const char anchor; /* an address inside this library, for dladdr to find its file */
    Dl_info self;
    const char *slash = dladdr(&anchor, &self) && self.dli_fname ? strrchr(self.dli_fname, '/') : NULL;
    if (!slash)
        return true;
    gy_text path = { 0 };
    gy_text_add_n(&path, self.dli_fname, (size_t)(slash - self.dli_fname) + 1);
    gy_text_add(&path, GY_INCLUDE_FROM_LIBRARY);
    bool ok = !path.failed && add_word(w, "-I", 2) && add_word(w, path.at, path.length);
    gy_text_free(&path);
    return ok;
}

static bool add_flags(words *w)
{
    if (!add_own_include(w))
        return false;
    for (size_t i = 0; i < FLAGS; i++)
        if (!add_word(w, flags[i], strlen(flags[i])))
            return false;
    return true;
}

/* Compiler, then our flags if `with_flags`, then the extra words up to NULL. */
static bool make_command(words *w, bool with_flags, const char *const *extra)
{
    if (!add_compiler(w) || (with_flags && !add_flags(w)))
        return false;
    for (; *extra; extra++)
        if (!add_word(w, *extra, strlen(*extra)))
            return false;
    return gy_vec_push(w, NULL);
}

/* Reads a descriptor to its end. */
static bool read_all(int fd, gy_text *text)
{
    char block[4096];
    for (;;) {
        ssize_t got = read(fd, block, sizeof block);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0 && !text->failed;
        gy_text_add_n(text, block, (size_t)got);
    }
}

static int spawn(pid_t *child, char *const *command, int output)
{
    posix_spawn_file_actions_t actions;
    int code = posix_spawn_file_actions_init(&actions);
    if (code)
        return code;
    code = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    code = code ? code : posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    code = code ? code : posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    code = code ? code : posix_spawnp(child, command[0], &actions, NULL, command, environ);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

static int wait_for(pid_t child)
{
    int result = 0;
    while (waitpid(child, &result, 0) < 0)
        if (errno != EINTR)
            return -1;
    return result;
}

/* Runs a command; its output and complaints in `text`. *result is 0 if it ended well. */
static gantry_status run_command(words *command, gy_text *text, int *result, gantry_error *err)
{
    int pipe_ends[2];
    if (pipe2(pipe_ends, O_CLOEXEC) != 0)
        return gy_fail_errno(err, "start", command->at[0]);
    pid_t child;
    int code = spawn(&child, command->at, pipe_ends[1]);
    close(pipe_ends[1]);
    if (code) {
        close(pipe_ends[0]);
        errno = code;
        gy_fail_errno(err, "start the C compiler", command->at[0]);
        return GANTRY_E_IO;
    }
    bool read = read_all(pipe_ends[0], text);
    close(pipe_ends[0]);
    *result = wait_for(child);
    return read ? GANTRY_OK : gy_fail_nomem(err);
}

static gantry_status compiler(bool with_flags, const char *const *extra, gy_text *text, int *result, gantry_error *err)
{
    words command = { 0 };
    gantry_status status =
        make_command(&command, with_flags, extra) ? run_command(&command, text, result, err) : gy_fail_nomem(err);
    free_words(&command);
    return status;
}

/* An error record holds one line. */
static gantry_status fail_compile(const char *source, const gy_text *text, gantry_error *err)
{
    char shown[MOST_SHOWN];
    gy_lines_text(shown, sizeof shown, text->length ? text->at : "");
    return gy_fail(err, GANTRY_E_GRAPH, NULL, "%s does not compile: %s", source, *shown ? shown : "no output");
}

static gantry_status hash_text(uint64_t *hash, const char *source, gantry_error *err)
{
    gy_text text = { 0 }, version = { 0 };
    int result = 0;
    gantry_status status = compiler(true, (const char *const[]){ "-E", source, NULL }, &text, &result, err);
    if (status == GANTRY_OK && result != 0)
        status = fail_compile(source, &text, err);
    if (status == GANTRY_OK)
        status = compiler(false, (const char *const[]){ "--version", NULL }, &version, &result, err);
    if (status == GANTRY_OK) {
        uint64_t h = gy_hash_bytes(version.length ? version.at : "", version.length, sizeof(gantry_launch));
        for (size_t i = 0; i < FLAGS; i++)
            h = gy_hash_bytes(flags[i], strlen(flags[i]), h);
        *hash = gy_hash_bytes(text.length ? text.at : "", text.length, h);
    }
    gy_text_free(&text);
    gy_text_free(&version);
    return status;
}

/* Under a name of our own first: two processes, or threads, may compile the same thing. */
static gantry_status compile_to(const char *object, const char *source, gantry_error *err)
{
    gy_text temporary = { 0 }, text = { 0 };
    gy_text_printf(&temporary, "%s.%ld-%zx.tmp", object, (long)getpid(), (size_t)(uintptr_t)&text);
    if (temporary.failed) {
        gy_text_free(&temporary);
        return gy_fail_nomem(err);
    }
    int result = 0;
    const char *const extra[] = { "-shared", "-o", temporary.at, source, "-lm", NULL };
    gantry_status status = compiler(true, extra, &text, &result, err);
    if (status == GANTRY_OK && result != 0)
        status = fail_compile(source, &text, err);
    if (status == GANTRY_OK && rename(temporary.at, object) != 0)
        status = gy_fail_errno(err, "write", object);
    if (status)
        unlink(temporary.at);
    gy_text_free(&temporary);
    gy_text_free(&text);
    return status;
}

gantry_status gy_compile_c(char **object, const char *source, gantry_error *err)
{
    if (access(source, R_OK) != 0)
        return gy_fail_errno(err, "open", source);
    uint64_t hash;
    gantry_status status = hash_text(&hash, source, err);
    char *path = NULL;
    status = status ? status : gy_cache_path(&path, hash, ".so", err);
    if (status)
        return status;
    if (access(path, R_OK) != 0 && (status = compile_to(path, source, err)) != GANTRY_OK) {
        gy_free(path);
        return status;
    }
    *object = path;
    return GANTRY_OK;
}
