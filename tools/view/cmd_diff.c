/* SPDX-License-Identifier: Apache-2.0 */
/* gantry diff: differences between two schedules, or two runs. */
#include "view/view.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct side {
    gantry_schedule *schedule;
    const gantry_schedule *shown; /* it, or the phase of it that --phase names */
    const char *path;
    gantry_error err;
    char *trace;
    size_t length;
} side;

static void *load(void *of)
{
    side *s = of;
    if (gantry_schedule_load(&s->schedule, s->path, &s->err))
        s->schedule = NULL;
    return NULL;
}

/* Reading takes ten times as long as what is found then, so a thread reads one of them; standard input is one. */
static void load_both(side *first, side *second)
{
    pthread_t thread;
    progress_stage("reading the schedules");
    bool apart = strcmp(first->path, "-") != 0 && pthread_create(&thread, NULL, load, first) == 0;
    if (!apart)
        load(first);
    load(second);
    if (apart)
        pthread_join(thread, NULL);
    progress_clear();
}

static int choose_phase(side *s, const options *o)
{
    if (!s->schedule)
        return fail_reading(&s->err);
    s->shown = drawn_phase(s->schedule, o);
    return s->shown ? EXIT_FINE : EXIT_USAGE;
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

/* The run of a schedule, where --measured names its trace: a text that is to be freed. */
static int read_trace(char **trace, size_t *length, const options *o, size_t i)
{
    if (!o->measured.count)
        return EXIT_FINE;
    *trace = read_all(o->measured.at[i], length);
    if (*trace)
        return EXIT_FINE;
    complain("--measured: cannot read %s: %s\n", o->measured.at[i], strerror(errno));
    return EXIT_USAGE;
}

static int check_measured(const options *o)
{
    if (o->measured.count == 0 || o->measured.count == 2)
        return EXIT_FINE;
    complain("gantry diff: --measured is there %zu times; give it twice, the trace of a run of the first schedule and "
             "one of the second, or not at all\n",
             o->measured.count);
    return EXIT_USAGE;
}

static gantry_timeline line_of(const side *s, const options *o)
{
    gantry_timeline line = GANTRY_TIMELINE_INIT;
    line.schedule = s->schedule; /* a trace counts its phases */
    line.phase = o->phase > 0 ? (size_t)o->phase : 0;
    line.trace = s->trace;
    line.length = s->length;
    return line;
}

static int write_sides(const side *first, const side *second, const options *o, gantry_format format, const char *path)
{
    gantry_error err;
    char *text = NULL;
    size_t length = 0;
    if (!o->measured.count)
        return write_diff(first->shown, second->shown, format, path);
    gantry_timeline one = line_of(first, o), other = line_of(second, o);
    if (gantry_timeline_diff(&one, &other, format, &text, &length, &err))
        return fail(&err);
    int code = write_text(path, text, length);
    gantry_free(text);
    return code;
}

static int run(const options *o)
{
    side s[2] = { { .path = o->positional.at[0] }, { .path = o->positional.at[1] } };
    int code = check_measured(o);
    if (!code)
        load_both(&s[0], &s[1]);
    for (size_t i = 0; i < 2 && !code; i++) {
        code = choose_phase(&s[i], o);
        if (!code)
            code = read_trace(&s[i].trace, &s[i].length, o, i);
    }
    if (!code && o->html)
        code = write_sides(&s[0], &s[1], o, GANTRY_HTML, o->html);
    if (!code && !uses_stdout(o))
        code = write_sides(&s[0], &s[1], o, o->json ? GANTRY_REPORT : GANTRY_TEXT, "-");
    for (size_t i = 0; i < 2; i++) {
        gantry_schedule_free(s[i].schedule);
        free(s[i].trace);
    }
    return code;
}

const command command_diff = {
    "diff",
    "SCHEDULE SCHEDULE",
    "compares two schedules or runs: what moved, is copied, takes longer; how busy devices are",
    2,
    2,
    "measured phase html json",
    "  gantry schedule cholesky --devices 2 --policy heft -o a.json\n"
    "  gantry schedule cholesky --devices 4 -o b.json\n"
    "  gantry diff a.json b.json --html diff.html\n"
    "  gantry run cholesky --schedule a.json --trace one.json\n"
    "  gantry run cholesky --schedule a.json --trace two.json\n"
    "  gantry diff a.json a.json --measured one.json --measured two.json\n",
    run
};
