/* SPDX-License-Identifier: Apache-2.0 */
/* The output of the command: files complete or not at all, one JSON object, explanations. */
#include "command.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_out(const char *text, size_t length)
{
    if (fwrite(text, 1, length, stdout) == length && fflush(stdout) == 0)
        return EXIT_FINE;
    complain("cannot write to standard output: %s\n", strerror(errno));
    return EXIT_RUNNING;
}

/* A file that is not kept tells: it is made where the one to come will be. What is no file (a pipe, a device) is
 * written to at once, so it is only looked at. */
int check_writable(const char *option, const char *path)
{
    struct stat info;
    gantry_error err;
    gantry_files *files = NULL;
    if (strcmp(path, "-") == 0)
        return EXIT_FINE;
    bool exists = stat(path, &info) == 0, special = exists && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
    if (special && access(path, W_OK) == 0)
        return EXIT_FINE;
    int code = begin_files(&files);
    if (!code && !special && !gantry_files_add(files, path, "", 0, &err)) {
        gantry_files_free(files);
        return EXIT_FINE;
    }
    if (!code && special)
        complain("--%s: cannot write %s: %s\n", option, path, strerror(errno));
    else if (!code)
        complain("--%s: ", option);
    code = code ? code : special ? EXIT_RUNNING : fail(&err);
    gantry_files_free(files);
    return code;
}

static bool ends_in(const char *path, const char *ending)
{
    size_t length = strlen(path), end = strlen(ending);
    return length > end && strcasecmp(path + length - end, ending) == 0;
}

/* A file that ends as one of another format would not open. */
static int check_ending(const char *option, const char *path, const char *const own[2])
{
    static const char *const known[] = { ".svg",  ".html", ".htm", ".dot", ".gv",  ".json", ".png",
                                         ".jpeg", ".jpg",  ".pdf", ".npy", ".csv", ".txt" };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (ends_in(path, known[i]) && strcmp(known[i], own[0]) != 0 && strcmp(known[i], own[1]) != 0) {
            complain("--%s: %s ends as a file of another format does; what is written ends in %s\n", option, path,
                     own[0]);
            return EXIT_USAGE;
        }
    return EXIT_FINE;
}

int check_phase(const options *o)
{
    if (o->phase < 0 || o->dot || o->svg || o->html || o->trace)
        return EXIT_FINE;
    complain("--phase is for pictures; add --dot, --svg, --html or --trace, or leave it out\n");
    return EXIT_USAGE;
}

int check_files(const options *o)
{
    const struct {
        const char *option, *path, *own[2];
    } files[] = {
        { "output-schedule", o->out, { ".json", ".txt" } },
        { "dot", o->dot, { ".dot", ".gv" } },
        { "svg", o->svg, { ".svg", ".svg" } },
        { "html", o->html, { ".html", ".htm" } },
        { "trace", o->trace, { ".json", ".txt" } },
        { "calibrate", o->calibrate, { ".json", ".txt" } },
    };
    int code = EXIT_FINE;
    for (size_t i = 0; i < sizeof files / sizeof *files && !code; i++) {
        if (!files[i].path)
            continue;
        code = check_writable(files[i].option, files[i].path);
        code = code ? code : check_ending(files[i].option, files[i].path, files[i].own);
    }
    return code;
}

int begin_files(gantry_files **files)
{
    gantry_error err;
    return gantry_files_new(files, &err) ? fail(&err) : EXIT_FINE;
}

int end_files(gantry_files *files, int code)
{
    gantry_error err;
    if (!code && gantry_files_commit(files, &err))
        code = fail(&err);
    gantry_files_free(files);
    return code;
}

int add_text(gantry_files *files, const char *path, const char *text, size_t length)
{
    gantry_error err;
    if (strcmp(path, "-") == 0)
        return write_out(text, length);
    return gantry_files_add(files, path, text, length, &err) ? fail(&err) : EXIT_FINE;
}

int write_text(const char *path, const char *text, size_t length)
{
    gantry_files *files = NULL;
    int code = begin_files(&files);
    if (!code)
        code = add_text(files, path, text, length);
    return end_files(files, code);
}

static int add_exported(gantry_files *files, const gantry_schedule *schedule, gantry_format format, const char *path)
{
    gantry_error err;
    char *text = NULL;
    size_t length = 0;
    if (gantry_schedule_export(schedule, format, &text, &length, &err))
        return fail(&err);
    int code = add_text(files, path, text, length);
    gantry_free(text);
    return code;
}

int print_schedule(const gantry_schedule *schedule, gantry_format format)
{
    return add_exported(NULL, schedule, format, "-");
}

int load_report(json_t **report, const gantry_schedule *schedule)
{
    gantry_error err;
    char *text = NULL;
    size_t length = 0;
    if (gantry_schedule_export(schedule, GANTRY_REPORT, &text, &length, &err))
        return fail(&err);
    *report = json_loadb(text, length, 0, NULL);
    gantry_free(text);
    return *report ? EXIT_FINE : fail_nomem();
}

int tell_idle_balance(const gantry_schedule *schedule, const options *o)
{
    json_t *report = NULL;
    if (!o->balance || o->quiet)
        return EXIT_FINE;
    int code = load_report(&report, schedule);
    if (!code && !json_object_get(report, "balance"))
        fprintf(
            stderr,
            "note: --balance %s changes nothing: it says where automatic splits are cut, and graph \"%s\" has none; "
            "\"split\": {\"auto\": N} makes one\n",
            o->balance, json_string_value(json_object_get(report, "graph")));
    json_decref(report);
    return code;
}

static int add_schedule(gantry_files *files, const gantry_schedule *schedule, const char *path)
{
    gantry_error err;
    char *text = NULL;
    size_t length = 0;
    if (gantry_schedule_json(schedule, &text, &length, &err))
        return fail(&err);
    int code = add_text(files, path, text, length);
    gantry_free(text);
    return code;
}

const gantry_schedule *drawn_phase(const gantry_schedule *schedule, const options *o)
{
    size_t count = gantry_schedule_phase_count(schedule);
    if (o->phase < 0 && count == 1)
        return gantry_schedule_phase(schedule, 0, NULL); /* nothing to choose from */
    if (o->phase < 0)
        return schedule;
    if (count == 0)
        complain("--phase: the schedule has no phases, since its loops are unrolled; leave it out\n");
    else if ((size_t)o->phase >= count)
        complain("--phase: the schedule has phases 0 to %zu, not %lld\n", count - 1, (long long)o->phase);
    else
        return gantry_schedule_phase(schedule, (size_t)o->phase, NULL);
    return NULL;
}

static int add_files(gantry_files *files, const gantry_schedule *schedule, const options *o)
{
    const struct {
        const char *path;
        gantry_format format;
    } pictures[] = {
        { o->dot, GANTRY_DOT }, { o->svg, GANTRY_SVG }, { o->html, GANTRY_HTML }, { o->trace, GANTRY_CHROME }
    };
    int code = o->out ? add_schedule(files, schedule, o->out) : EXIT_FINE;
    bool draws = o->dot || o->svg || o->html || o->trace;
    schedule = draws && !code ? drawn_phase(schedule, o) : schedule;
    if (!schedule)
        return EXIT_USAGE;
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures && !code; i++)
        if (pictures[i].path)
            code = add_exported(files, schedule, pictures[i].format, pictures[i].path);
    return code;
}

int write_files(const gantry_schedule *schedule, const options *o)
{
    gantry_files *files = NULL;
    int code = begin_files(&files);
    if (!code)
        code = add_files(files, schedule, o);
    return end_files(files, code);
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

static int print_json_as(json_t *object, size_t flags)
{
    char *text = object ? json_dumps(object, flags) : NULL;
    json_decref(object);
    if (!text)
        return fail_nomem();
    puts(text);
    free(text);
    return EXIT_FINE;
}

int print_json(json_t *object)
{
    return print_json_as(object, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
}

int print_json_line(json_t *object)
{
    int code = print_json_as(object, JSON_COMPACT | JSON_REAL_PRECISION(17));
    fflush(stdout); /* whoever reads a pipe sees it now */
    return code;
}
