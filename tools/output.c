/* SPDX-License-Identifier: Apache-2.0 */
/* The output of the command: files complete or not at all, one JSON object, explanations. */
#include "command.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail_writing(const char *path)
{
    fprintf(stderr, "cannot write %s: %s\n", path, strerror(errno));
    return EXIT_RUNNING;
}

static bool write_and_close(FILE *to, const char *text, size_t length)
{
    bool wrote = fwrite(text, 1, length, to) == length;
    return fclose(to) == 0 && wrote;
}

/* Pipes and devices: there is nothing to rename. */
static int write_in_place(const char *path, const char *text, size_t length)
{
    FILE *to = fopen(path, "wb");
    return to && write_and_close(to, text, length) ? EXIT_FINE : fail_writing(path);
}

/* The permissions that open() would give a new file. */
static mode_t new_mode(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

static int write_file(const char *path, const char *text, size_t length)
{
    struct stat info;
    bool exists = lstat(path, &info) == 0;
    if (exists && !S_ISREG(info.st_mode))
        return write_in_place(path, text, length);
    size_t size = strlen(path) + sizeof ".XXXXXX";
    char *temporary = malloc(size);
    if (!temporary)
        return fail_writing(path);
    snprintf(temporary, size, "%s.XXXXXX", path);
    int fd = mkstemp(temporary);
    FILE *to = fd < 0 || fchmod(fd, exists ? info.st_mode & 07777 : new_mode()) ? NULL : fdopen(fd, "wb");
    bool wrote = to ? write_and_close(to, text, length) : false;
    if (!to && fd >= 0)
        close(fd);
    int code = wrote && rename(temporary, path) == 0 ? EXIT_FINE : fail_writing(path);
    if (code && fd >= 0)
        unlink(temporary);
    free(temporary);
    return code;
}

int write_text(const char *path, const char *text, size_t length)
{
    if (strcmp(path, "-") != 0)
        return write_file(path, text, length);
    bool wrote = fwrite(text, 1, length, stdout) == length;
    return wrote && fflush(stdout) == 0 ? EXIT_FINE : fail_writing("to standard output");
}

int export_schedule(const gantry_schedule *schedule, gantry_format format, const char *path)
{
    gantry_error err;
    char *text = NULL;
    size_t length = 0;
    if (gantry_schedule_export(schedule, format, &text, &length, &err))
        return fail(&err);
    int code = write_text(path, text, length);
    gantry_free(text);
    return code;
}

static int write_schedule(const gantry_schedule *schedule, const char *path)
{
    gantry_error err;
    char *text = NULL;
    size_t length = 0;
    if (strcmp(path, "-") != 0)
        return gantry_schedule_save(schedule, path, &err) ? fail(&err) : EXIT_FINE;
    if (gantry_schedule_json(schedule, &text, &length, &err))
        return fail(&err);
    int code = write_text("-", text, length);
    gantry_free(text);
    return code;
}

const gantry_schedule *drawn_phase(const gantry_schedule *schedule, const options *o)
{
    size_t count = gantry_schedule_phase_count(schedule);
    if (o->phase < 0)
        return schedule;
    if (count == 0)
        fprintf(stderr, "--phase: the schedule has no phases, since its loops are unrolled; leave it out\n");
    else if ((size_t)o->phase >= count)
        fprintf(stderr, "--phase: the schedule has phases 0 to %zu, not %lld\n", count - 1, (long long)o->phase);
    else
        return gantry_schedule_phase(schedule, (size_t)o->phase, NULL);
    return NULL;
}

int write_files(const gantry_schedule *schedule, const options *o)
{
    const struct {
        const char *path;
        gantry_format format;
    } pictures[] = {
        { o->dot, GANTRY_DOT }, { o->svg, GANTRY_SVG }, { o->html, GANTRY_HTML }, { o->trace, GANTRY_CHROME }
    };
    int code = o->out ? write_schedule(schedule, o->out) : EXIT_FINE;
    bool draws = o->dot || o->svg || o->html || o->trace;
    schedule = draws && !code ? drawn_phase(schedule, o) : schedule;
    if (!schedule)
        return EXIT_USAGE;
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures && !code; i++)
        if (pictures[i].path)
            code = export_schedule(schedule, pictures[i].format, pictures[i].path);
    return code;
}

int explain(const gantry_schedule *schedule, const gantry_graph *graph, const options *o, char **text)
{
    gantry_error err;
    size_t length;
    *text = NULL;
    if (!o->explain)
        return EXIT_FINE;
    gantry_node node = gantry_graph_find_node(graph, o->explain);
    return gantry_schedule_explain(schedule, node, text, &length, &err) ? fail(&err) : EXIT_FINE;
}

int print_json(json_t *object)
{
    char *text = object ? json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : NULL;
    json_decref(object);
    if (!text) {
        fprintf(stderr, "%s\n", gantry_status_text(GANTRY_E_NOMEM));
        return EXIT_RUNNING;
    }
    puts(text);
    free(text);
    return EXIT_FINE;
}
