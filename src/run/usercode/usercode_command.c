/* SPDX-License-Identifier: Apache-2.0 */
#include "run/usercode/usercode_command.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/vec.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    DEFAULT_SECONDS = 300,
    MOST_SECONDS = 86400,
    STEP_MS = 20,     /* how often it is looked whether the command has ended while others keep its output open */
    MOST_SHOWN = 361, /* of a compiler's complaints, in a record's 512 characters */
    MOST_OUTPUT = 256 << 20
};

/* ---- starting ---- */

/* In a process group (0: one of its own), with that input, and with output and complaints in the same place. */
static int spawn(pid_t *child, pid_t group, char *const *command, char *const *environment, int input, int output)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int code = posix_spawn_file_actions_init(&actions);
    if (code)
        return code;
    code = posix_spawnattr_init(&attributes);
    if (code) {
        posix_spawn_file_actions_destroy(&actions);
        return code;
    }
    code = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    code = code ? code : posix_spawnattr_setpgroup(&attributes, group);
    code = code ? code : posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    code = code ? code : posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    code = code ? code : posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    code = code ? code : posix_spawnp(child, command[0], &actions, &attributes, command, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

static gantry_status fail_start(const char *what, const char *command, int code, gantry_error *err)
{
    errno = code;
    return gy_fail_errno(err, what, command);
}

static gantry_status fail_compiler(const char *command, int code, gantry_error *err)
{
    char why[128];
    gy_fail(err, GANTRY_E_IO, NULL,
            "cannot start the C compiler %s: %s; kernels in C need one: install it, or name it by the environment "
            "variable CC",
            command, strerror_r(code, why, sizeof why));
    if (err)
        err->native = code;
    return GANTRY_E_IO;
}

/* A program may have closed its standard input and output, whose numbers are for the command's own. */
static int move_up(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), code = errno;
    close(fd);
    errno = code;
    return moved;
}

static void close_all(const int *fd, int count)
{
    for (int i = 0; i < count; i++)
        if (fd[i] >= 0)
            close(fd[i]);
}

/* A pipe, and a descriptor of nothing. */
static gantry_status open_ends(int ends[2], int *nothing, gantry_error *err)
{
    int made[3] = { -1, -1, move_up(open("/dev/null", O_RDWR | O_CLOEXEC)) };
    if (made[2] < 0)
        return gy_fail_errno(err, "open", "/dev/null");
    if (pipe2(made, O_CLOEXEC) == 0) {
        made[0] = move_up(made[0]);
        made[1] = move_up(made[1]);
    }
    if (made[0] < 0 || made[1] < 0) {
        gy_fail_errno(err, "make", "a pipe to the C compiler");
        close_all(made, 3);
        return GANTRY_E_IO;
    }
    ends[0] = made[0];
    ends[1] = made[1];
    *nothing = made[2];
    return GANTRY_OK;
}

static gantry_status read_limit(int *seconds, gantry_error *err)
{
    const char *given = getenv("GANTRY_COMPILE_SECONDS");
    *seconds = DEFAULT_SECONDS;
    if (!given)
        return GANTRY_OK;
    size_t digits = strspn(given, "0123456789");
    long value = digits > 0 && digits <= 9 && !given[digits] ? strtol(given, NULL, 10) : 0;
    if (value < 1 || value > MOST_SECONDS) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "GANTRY_COMPILE_SECONDS is \"%.40s\"; give whole seconds, 1 to %d, or unset it for %d", given,
                       MOST_SECONDS, DEFAULT_SECONDS);
    }
    *seconds = (int)value;
    return GANTRY_OK;
}

gantry_status gy_compilers_begin(gy_compilers *c, const char *source, gantry_error *err)
{
    static char shell[] = "/bin/sh", option[] = "-c", script[] = "read x; kill -9 0";
    char *const command[] = { shell, option, script, NULL };
    gy_compilers made = { .source = source };
    int ends[2], nothing;
    GY_TRY(read_limit(&made.seconds, err));
    GY_TRY(open_ends(ends, &nothing, err));
    made.deadline_ns = gy_now_ns() + (int64_t)made.seconds * 1000000000;
    made.pipe = ends[1];
    int code = spawn(&made.leader, 0, command, environ, ends[0], nothing);
    close(ends[0]);
    close(nothing);
    if (code) {
        close(ends[1]);
        return fail_start("start the shell that watches over the C compiler,", shell, code, err);
    }
    *c = made;
    return GANTRY_OK;
}

void gy_compilers_end(gy_compilers *c)
{
    kill(-c->leader, SIGKILL);
    close(c->pipe);
    while (waitpid(c->leader, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* ---- waiting ---- */

typedef struct child {
    pid_t id;
    int output, result;
    bool open, ended, lost; /* its output; itself; its result is nobody's to know */
} child;

static void look_whether_ended(child *c)
{
    pid_t got = waitpid(c->id, &c->result, WNOHANG);
    c->lost = got < 0 && errno == ECHILD;
    c->ended = got == c->id || c->lost;
}

/* Takes what is there. */
static void drain(child *c, gy_text *text)
{
    char block[16384];
    while (c->open && text->length <= MOST_OUTPUT) {
        ssize_t got = read(c->output, block, sizeof block);
        if (got > 0)
            gy_text_add_n(text, block, (size_t)got);
        else if (got < 0 && errno == EAGAIN)
            return;
        else if (got == 0 || errno != EINTR)
            c->open = false;
    }
}

static gantry_status wait_for(child *c, const gy_compilers *all, const char *command, gy_text *text, gantry_error *err)
{
    while (!c->ended) {
        struct pollfd wanted = { .fd = c->output, .events = POLLIN };
        poll(&wanted, c->open, c->open ? STEP_MS : 1);
        look_whether_ended(c);
        drain(c, text);
        if (text->failed)
            return gy_fail_nomem(err);
        if (text->length > MOST_OUTPUT)
            return gy_compilers_fail(all->source, "the compiler printed more than 256 MiB", err);
        if (!c->ended && gy_now_ns() > all->deadline_ns) {
            return gy_fail(err, GANTRY_E_TIMEOUT, NULL,
                           "%s was not compiled within %d s: %s was ended; if it needs longer, set "
                           "GANTRY_COMPILE_SECONDS to more, up to %d",
                           all->source, all->seconds, command, MOST_SECONDS);
        }
    }
    return GANTRY_OK;
}

static void stop(child *c, pid_t group)
{
    if (c->ended)
        return;
    kill(c->id, SIGKILL);
    kill(-group, SIGKILL);
    while (waitpid(c->id, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* ---- what it said ---- */

gantry_status gy_compilers_fail(const char *source, const char *why, gantry_error *err)
{
    return gy_fail(err, GANTRY_E_GRAPH, NULL, "%s does not compile: %s", source, why);
}

/* An error record holds one line. */
static gantry_status judge(const child *c, const gy_compilers *all, const gy_text *text, gantry_error *err)
{
    char shown[MOST_SHOWN], why[MOST_SHOWN + 64];
    const char *source = all->source;
    bool heard = gy_say(all->said, text->length ? text->at : "", text->length);
    if (c->lost) {
        return gy_fail(err, GANTRY_E_IO, NULL,
                       "whether %s compiled is not known, since the program ignores SIGCHLD or waits for children that "
                       "it did not start; it should do neither",
                       source);
    }
    if (c->result == 0)
        return GANTRY_OK;
    gy_lines_text(shown, sizeof shown, heard ? GY_SAID_WHY : text->length ? text->at : "");
    if (WIFSIGNALED(c->result)) {
        snprintf(why, sizeof why, "the compiler was ended by signal %d%s%s", WTERMSIG(c->result), *shown ? ": " : "",
                 shown);
    } else {
        snprintf(why, sizeof why, "%s", *shown ? shown : "no output");
    }
    return gy_compilers_fail(source, why, err);
}

/* ---- running ---- */

typedef GY_VEC(char *) settings;

/* This process's environment with another TMPDIR. */
static bool make_environment(settings *to, char *folder)
{
    for (char **at = environ; at && *at; at++)
        if (strncmp(*at, "TMPDIR=", 7) != 0 && !gy_vec_push(to, *at))
            return false;
    return gy_vec_push(to, folder) && gy_vec_push(to, NULL);
}

static int start(child *to, pid_t group, char *const *command, const char *folder, int nothing, int output)
{
    gy_text setting = { 0 };
    settings all = { 0 };
    if (!folder)
        return spawn(&to->id, group, command, environ, nothing, output);
    gy_text_printf(&setting, "TMPDIR=%s", folder);
    int code = !setting.failed && make_environment(&all, setting.at)
                   ? spawn(&to->id, group, command, all.at, nothing, output)
                   : ENOMEM;
    gy_vec_free(&all);
    gy_text_free(&setting);
    return code;
}

gantry_status gy_compilers_run(gy_compilers *c, char *const *command, const char *folder, gy_text *text,
                               gantry_error *err)
{
    int ends[2], nothing;
    GY_TRY(open_ends(ends, &nothing, err));
    child run = { .output = ends[0], .open = true };
    int code = start(&run, c->leader, command, folder, nothing, ends[1]);
    close(ends[1]);
    close(nothing);
    gantry_status status = GANTRY_OK;
    if (code == ENOMEM)
        status = gy_fail_nomem(err);
    else if (code)
        status = fail_compiler(command[0], code, err);
    else if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0)
        status = gy_fail_errno(err, "read from", command[0]);
    else
        status = wait_for(&run, c, command[0], text, err);
    if (!code)
        stop(&run, c->leader);
    close(ends[0]);
    return status ? status : judge(&run, c, text, err);
}
