/* SPDX-License-Identifier: Apache-2.0 */
/* gantry diff: what differs between two schedules. */
#include "view/view.h"

static int load(gantry_schedule **schedule, const gantry_schedule **shown, const char *path, const options *o)
{
    gantry_error err;
    if (gantry_schedule_load(schedule, path, &err))
        return fail_reading(&err);
    *shown = drawn_phase(*schedule, o);
    return *shown ? EXIT_FINE : EXIT_USAGE;
}

int make_diff(char **text, size_t *length, const gantry_schedule *first, const gantry_schedule *second,
              gantry_format format)
{
    gantry_error err;
    return gantry_schedule_diff(first, second, format, text, length, &err) ? fail(&err) : EXIT_FINE;
}

int write_diff(const gantry_schedule *first, const gantry_schedule *second, gantry_format format, const char *path)
{
    char *text = NULL;
    size_t length = 0;
    int code = make_diff(&text, &length, first, second, format);
    if (!code)
        code = write_text(path, text, length);
    gantry_free(text);
    return code;
}

static int run(const options *o)
{
    gantry_schedule *first = NULL, *second = NULL;
    const gantry_schedule *one, *other;
    int code = load(&first, &one, o->positional.at[0], o);
    if (!code)
        code = load(&second, &other, o->positional.at[1], o);
    if (!code && o->html)
        code = write_diff(one, other, GANTRY_HTML, o->html);
    if (!code && !uses_stdout(o))
        code = write_diff(one, other, o->json ? GANTRY_REPORT : GANTRY_TEXT, "-");
    gantry_schedule_free(first);
    gantry_schedule_free(second);
    return code;
}

const command command_diff = { "diff",
                               "SCHEDULE SCHEDULE",
                               "compares two schedules: what moved, what is copied, how busy devices are",
                               2,
                               2,
                               "phase html json",
                               "  gantry schedule cholesky --devices 2 --policy heft -o a.json\n"
                               "  gantry schedule cholesky --devices 4 -o b.json\n"
                               "  gantry diff a.json b.json --html diff.html\n",
                               run };
