/* SPDX-License-Identifier: Apache-2.0 */
/* gantry run: inputs that come by a pipe can be read once, so nothing that would read them again may wait for more. */
#include "runs/run.h"

#include <string.h>
#include <sys/stat.h>

/* Patterns are of files. */
static bool is_pipe(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

bool reads_once(const session *s)
{
    gantry_buffer buffer;
    const char *path;
    for (size_t i = 0; i < s->o->inputs.count; i++)
        if (!find_binding(s, "input", s->o->inputs.at[i], &buffer, &path) && is_pipe(path))
            return true;
    return false;
}

int check_read_once(const char *option, const char *text, const char *path, const char *why)
{
    if (!is_pipe(path))
        return EXIT_FINE;
    complain("--%s %s: %s, and %s can be read only once; write it to a file, and give that\n", option, text, why, path);
    return EXIT_USAGE;
}

/* Does an input before number i come from there, too, as where all trials begin with one array? */
static bool is_taken(const session *s, size_t i, const char *path)
{
    gantry_buffer buffer;
    const char *other;
    for (size_t k = 0; k < i; k++)
        if (!find_binding(s, "input", s->o->inputs.at[k], &buffer, &other) && strcmp(other, path) == 0)
            return true;
    return false;
}

int check_pipes(const session *s)
{
    int code = EXIT_FINE;
    for (size_t i = 0; i < s->o->inputs.count && !code; i++) {
        gantry_buffer buffer;
        const char *path, *text = s->o->inputs.at[i];
        code = find_binding(s, "input", text, &buffer, &path);
        if (!code && s->o->check)
            code = check_read_once("input", text, path, "--check computes with it three times");
        if (!code && is_taken(s, i, path))
            code = check_read_once("input", text, path,
                                   s->trials ? "each trial begins with it" : "another --input takes it, too");
    }
    return code;
}
