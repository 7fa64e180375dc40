/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Graphviz reads DOT better than we could: its program `dot` is started to write the graph as JSON. No shell is in
 * between, and graphviz is told (SERVER_NAME) not to open files that a graph names. The engine patchwork is chosen
 * because it takes no time: drawings are not wanted.
 */
#include "import/import.h"

#include "base/error.h"
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Files in memory: nothing waits for a pipe to be emptied. */
typedef struct streams {
    int fd[3];
} streams;

static bool open_streams(streams *s)
{
    for (int i = 0; i < 3; i++)
        s->fd[i] = memfd_create("gantry-graphviz", MFD_CLOEXEC);
    return s->fd[0] >= 0 && s->fd[1] >= 0 && s->fd[2] >= 0;
}

static void close_streams(const streams *s)
{
    for (int i = 0; i < 3; i++)
        if (s->fd[i] >= 0)
            close(s->fd[i]);
}

static bool put(int fd, const char *text, size_t length)
{
    while (length) {
        ssize_t written = write(fd, text, length);
        if (written < 0 && errno != EINTR)
            return false;
        if (written > 0) {
            text += written;
            length -= (size_t)written;
        }
    }
    return lseek(fd, 0, SEEK_SET) == 0;
}

/* All that was written, with a 0 behind it; NULL when out of memory. */
static char *get(int fd, size_t *length)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return NULL;
    size_t size = (size_t)info.st_size, have = 0;
    char *text = gy_alloc(size + 1);
    while (text && have < size) {
        ssize_t got = pread(fd, text + have, size - have, (off_t)have);
        if (got <= 0 && errno != EINTR)
            break;
        have += got > 0 ? (size_t)got : 0;
    }
    if (text)
        text[have] = 0;
    *length = have;
    return text;
}

/* ---- starting it ---- */

/* The environment and one variable more; free with gy_free. */
static char **closed_environment(void)
{
    static char no_files[] = "SERVER_NAME=gantry";
    size_t count = 0;
    while (environ[count])
        count++;
    char **all = gy_calloc(count + 2, sizeof *all);
    if (!all)
        return NULL;
    memcpy((void *)all, (void *)environ, count * sizeof *all);
    all[count] = no_files;
    return all;
}

static int spawn(const streams *s, char *const *environment, pid_t *child)
{
    static const char *const command[] = { "dot", "-Kpatchwork", "-Tdot_json", NULL };
    posix_spawn_file_actions_t actions;
    int code = posix_spawn_file_actions_init(&actions);
    if (code)
        return code;
    for (int i = 0; i < 3 && !code; i++)
        code = posix_spawn_file_actions_adddup2(&actions, s->fd[i], i);
    if (!code)
        code = posix_spawnp(child, command[0], &actions, NULL, (char *const *)(uintptr_t)command, environment);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

static gantry_status start(const streams *s, pid_t *child, gantry_error *err)
{
    char **environment = closed_environment();
    int code = environment ? spawn(s, environment, child) : ENOMEM;
    gy_free((void *)environment);
    if (code == ENOMEM)
        return gy_fail_nomem(err);
    if (code)
        return gy_fail(
            err, GANTRY_E_UNSUPPORTED, NULL,
            "format dot is read by graphviz, whose program \"dot\" cannot be started (%s); install graphviz, or "
            "import what `dot -Tdot_json` makes of the file elsewhere",
            strerror(code));
    return GANTRY_OK;
}

/* True if the child ended in time; it is gone in any case. Looks after 1 ms, 2 ms, ..., every 50 ms in the end. */
static bool wait_for(pid_t child, int seconds, int *result)
{
    long left = seconds * 1000L, pause = 1;
    pid_t got;
    while ((got = waitpid(child, result, left > 0 ? WNOHANG : 0)) != child) {
        if (got < 0 && errno != EINTR)
            return true; /* nobody is there: what it wrote says enough */
        struct timespec t = { 0, pause * 1000000L };
        nanosleep(&t, NULL);
        left -= pause;
        pause = pause < 25 ? pause * 2 : 50;
        if (left <= 0)
            kill(child, SIGKILL);
    }
    return left > 0;
}

/* ---- what it says ---- */

/* Bytes of what it says about a text. What is no graph is not quoted: it may be another file than was meant. */
static size_t tellable(const char *said, const char *text)
{
    size_t length = strcspn(said, "\n");
    const char *near = strstr(said, " near ");
    return near && near < said + length && !strstr(text, "graph") ? (size_t)(near - said) : length;
}

/* Its first complaint, "Error: <stdin>: syntax error in line 3 near '}'", as our own, with the line. */
static gantry_status fail_dot(const char *said, const char *text, gantry_error *err)
{
    const char *error = strstr(said, "Error: "), *stdin_name = "<stdin>: ", *in_line;
    said = error ? error + strlen("Error: ") : said;
    if (strncmp(said, stdin_name, strlen(stdin_name)) == 0)
        said += strlen(stdin_name);
    size_t length = tellable(said, text);
    gantry_status status = gy_fail(err, GANTRY_E_GRAPH, NULL, "graphviz cannot read it: %.*s",
                                   (int)(length < 300 ? length : 300), length ? said : "it does not say why");
    in_line = strstr(said, "line ");
    if (err && in_line && in_line < said + length) {
        long line = strtol(in_line + strlen("line "), NULL, 10);
        err->line = line > 0 && line <= INT_MAX ? (int)line : 0;
    }
    return status;
}

static gantry_status run(const streams *s, const char *from, int seconds, char **json, size_t *json_length,
                         gantry_error *err)
{
    pid_t child;
    size_t length = 0, said_length = 0;
    gantry_status status = start(s, &child, err);
    if (status)
        return status;
    int result = -1;
    if (!wait_for(child, seconds, &result))
        return gy_fail(err, GANTRY_E_TIMEOUT, NULL,
                       "graphviz took longer than %d s and was ended; import what `dot -Tdot_json` makes of the file "
                       "elsewhere",
                       seconds);
    char *text = get(s->fd[1], &length), *said = get(s->fd[2], &said_length);
    if (!text || !said)
        status = gy_fail_nomem(err);
    else if (result != 0)
        status = fail_dot(said, from, err);
    gy_free(said);
    if (status) {
        gy_free(text);
        return status;
    }
    *json = text;
    *json_length = length;
    return GANTRY_OK;
}

gantry_status gy_import_graphviz(const char *text, size_t length, int seconds, char **json, size_t *json_length,
                                 gantry_error *err)
{
    streams s;
    gantry_status status = GANTRY_OK;
    if (!open_streams(&s) || !put(s.fd[0], text, length))
        status = gy_fail_errno(err, "make a temporary file for", "graphviz");
    if (!status)
        status = run(&s, text, seconds, json, json_length, err);
    close_streams(&s);
    return status;
}
