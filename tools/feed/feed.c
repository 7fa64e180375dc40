/* SPDX-License-Identifier: Apache-2.0 */
/* gantry run: what inputs begin with, and those that each start finds filled anew. */
#include "runs/run.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool goes_around(const options *o)
{
    return !o->feed || strcmp(o->feed, "cycle") == 0;
}

int check_feed(const options *o)
{
    if (goes_around(o) || strcmp(o->feed, "once") == 0)
        return EXIT_FINE;
    complain("--feed is \"%s\"; it takes cycle (behind the last array comes the first again) or once\n", o->feed);
    return EXIT_USAGE;
}

int bind_inputs(session *s, gantry_run *run)
{
    gantry_error err;
    gantry_feed order = !s->o->feed ? GANTRY_FEED_AUTO : goes_around(s->o) ? GANTRY_FEED_CYCLE : GANTRY_FEED_ONCE;
    s->fed = s->fed ? s->fed : calloc(s->o->inputs.count + 1, sizeof *s->fed);
    if (!s->fed)
        return fail_nomem();
    for (size_t i = 0; i < s->o->inputs.count; i++) {
        gantry_buffer buffer;
        const char *path;
        int code = find_binding(s, "input", s->o->inputs.at[i], &buffer, &path);
        if (code)
            return code;
        progress_stage("reading inputs");
        gantry_status status = gantry_run_feed_files(run, buffer, path, order, &s->fed[i], &err);
        progress_clear();
        if (status)
            return fail_reading(&err);
    }
    return EXIT_FINE;
}

static bool is_fed(const session *s)
{
    for (size_t i = 0; i < s->o->inputs.count; i++)
        if (s->fed[i])
            return true;
    return false;
}

/* The files of a pattern may be as many as one array has. */
static bool may_be_fed(const session *s)
{
    for (size_t i = 0; i < s->o->inputs.count; i++)
        if (strpbrk(s->o->inputs.at[i], "*?["))
            return true;
    return is_fed(s);
}

/* An example and its label are arrays of one number. */
static void warn_of_unequal(const session *s)
{
    size_t first = s->o->inputs.count;
    for (size_t i = s->o->inputs.count; i-- > 0;)
        first = s->fed[i] ? i : first;
    for (size_t i = first + 1; i < s->o->inputs.count; i++) {
        uint64_t fewer = s->fed[i] < s->fed[first] ? s->fed[i] : s->fed[first];
        if (!s->fed[i] || s->fed[i] == s->fed[first] || fewer >= s->starts)
            continue;
        fprintf(stderr,
                "warning: --input %s has %" PRIu64 " array%s, and --input %s %" PRIu64 ": each goes around by itself, "
                "so from step %" PRIu64 " on arrays meet others than those of their number; give as many of each\n",
                s->o->inputs.at[first], s->fed[first], s->fed[first] == 1 ? "" : "s", s->o->inputs.at[i], s->fed[i],
                fewer + 1);
        return;
    }
}

int check_fed(const session *s)
{
    if (s->o->train && !s->o->quiet)
        warn_of_unequal(s);
    if (s->o->feed && !may_be_fed(s)) {
        complain(
            "--feed %s: no --input has several arrays; give a pattern of files, or a .npy file with one more axis in "
            "front, or leave --feed out\n",
            s->o->feed);
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < s->o->inputs.count; i++) {
        if (goes_around(s->o) || !s->fed[i] || s->fed[i] >= s->starts)
            continue;
        complain("--input %s: there %s %" PRIu64 " array%s, and with --feed once %zu starts need one each; give more "
                 "files, start %" PRIu64 " times, or go around (--feed cycle)\n",
                 s->o->inputs.at[i], s->fed[i] == 1 ? "is" : "are", s->fed[i], s->fed[i] == 1 ? "" : "s", s->starts,
                 s->fed[i]);
        return EXIT_USAGE;
    }
    return EXIT_FINE;
}

void print_fed(FILE *to, const session *s, const gantry_run_info *info)
{
    char waited[UNIT_TEXT], size[UNIT_TEXT], unread[80];
    snprintf(unread, sizeof unread, "; the others are not read: %s says how many starts there are",
             s->o->train ? "--steps" : "--iterations");
    for (size_t i = 0; i < s->o->inputs.count; i++)
        if (s->fed[i])
            fprintf(to, "  input %s: %" PRIu64 " array%s, one a start%s\n", s->o->inputs.at[i], s->fed[i],
                    s->fed[i] == 1 ? "" : "s",
                    s->starts > s->fed[i]   ? ", then the first again"
                    : s->starts < s->fed[i] ? unread
                                            : "");
    if (is_fed(s))
        fprintf(to, "  starts waited %s for arrays to be read, all together\n", time_text(waited, info->fed_wait_us));
    if (info->landing_bytes)
        fprintf(to, "  the next arrays come beside starts, into %s more of the devices' memory\n",
                bytes_text(size, (double)info->landing_bytes));
    if (info->landing_why)
        fprintf(to, "  the next array is uploaded between starts: %s\n", info->landing_why);
}

void add_fed_json(json_t *report, const session *s, const gantry_run_info *info)
{
    if (!is_fed(s))
        return;
    json_t *fed = json_array();
    for (size_t i = 0; i < s->o->inputs.count; i++)
        if (s->fed[i])
            json_array_append_new(
                fed, json_pack("{s:s, s:I}", "input", s->o->inputs.at[i], "arrays", (json_int_t)s->fed[i]));
    json_object_set_new(report, "fed", fed);
    json_object_set_new(report, "fed_wait_us", json_real(info->fed_wait_us));
    json_object_set_new(report, "landing_bytes", json_integer((json_int_t)info->landing_bytes));
}
