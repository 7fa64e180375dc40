/* SPDX-License-Identifier: Apache-2.0 */
/* gantry run --balance guided: between starts, parts are cut anew by what was measured. */
#include "runs/run.h"
#include <stdlib.h>

/* A new run takes over what the old one has. */
static int change(session *s, gantry_schedule *next)
{
    gantry_error err;
    gantry_run *run = NULL;
    gantry_run_options ro = run_options(s);
    if (gantry_run_new(&run, next, &ro, &err) || gantry_run_take_over(run, s->run, &err)) {
        gantry_run_free(run);
        gantry_schedule_free(next);
        return fail(&err);
    }
    s->replaced = starts_completed(s);
    gantry_run_free(s->run);
    gantry_schedule_free(s->schedule);
    s->run = run;
    s->schedule = next;
    return EXIT_FINE;
}

static void note(session *s, size_t after, const gantry_rebalance *r)
{
    s->rebalanced = s->rebalanced ? s->rebalanced : json_array();
    json_array_append_new(s->rebalanced,
                          json_pack("{s:I, s:b, s:f, s:f, s:f, s:I, s:I}", "after", (json_int_t)after, "changed",
                                    (int)r->pays, "now_us", r->now_us, "then_us", r->then_us, "hand_over_us",
                                    r->hand_over_us, "moved_bytes", (json_int_t)r->moved_bytes, "handed_bytes",
                                    (json_int_t)r->handed_bytes));
}

/* After start number `after`. */
static int look(session *s, size_t after, size_t left, bool *changed)
{
    gantry_error err;
    gantry_rebalance report = GANTRY_REBALANCE_INIT;
    gantry_schedule_options so = schedule_options(s->o);
    gantry_schedule *next = NULL;
    if (gantry_run_rebalance(&next, s->run, (int64_t)left, &so, &report, &err))
        return fail(&err);
    note(s, after, &report);
    *changed = next != NULL;
    return next ? change(s, next) : EXIT_FINE;
}

/* After starts 1, 2, 4, 8, ...: planning costs time too. The time that is told is that of the starts since the last
 * change, the first of them being a warm-up if there are more. */
int run_guided(session *s, size_t count)
{
    double *us = malloc(count * sizeof *us);
    size_t since = 0;
    int code = EXIT_FINE;
    if (!us)
        return fail_nomem();
    for (size_t i = 0; !code && i < count; i++) {
        bool changed = false;
        code = start_alone(s, i, &us[i]);
        if (!code && i + 1 < count && !((i + 1) & i))
            code = look(s, i + 1, count - i - 1, &changed);
        since = changed ? i + 1 : since;
    }
    size_t first = count - since > 1 ? since + 1 : since;
    s->counted = count - first;
    if (!code)
        s->measured_us = median(us + first, s->counted);
    free(us);
    return code;
}

void print_rebalanced(FILE *to, const session *s)
{
    size_t i;
    json_t *one;
    json_array_foreach(s->rebalanced, i, one)
    {
        char now[UNIT_TEXT], then[UNIT_TEXT], moved[UNIT_TEXT], over[UNIT_TEXT];
        bool changed = json_is_true(json_object_get(one, "changed"));
        fprintf(to, "  after start %lld: %s a start at the speeds measured, %s %s",
                (long long)json_integer_value(json_object_get(one, "after")),
                time_text(now, json_real_value(json_object_get(one, "now_us"))),
                time_text(then, json_real_value(json_object_get(one, "then_us"))),
                changed ? "cut anew" : "at best; left as it is\n");
        if (changed)
            fprintf(to, "; %s of state moved, predicted %s\n",
                    bytes_text(moved, (double)json_integer_value(json_object_get(one, "moved_bytes"))),
                    time_text(over, json_real_value(json_object_get(one, "hand_over_us"))));
    }
}
