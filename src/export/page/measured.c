/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a run: what was predicted, and below it what was measured, read from the trace of the run. */
#include "export/page/page.h"

#include "base/error.h"
#include "base/json.h"
#include <math.h>

#define LONGEST_US 1e15 /* thirty years; sums of such times are still numbers of 64 bits when they are nanoseconds */

typedef struct reader {
    const gantry_schedule *s;
    json_int_t process; /* whose events are the measured ones */
    gy_page_time *time;
    size_t found;
} reader;

/* One event of the trace; false: it says a time of an op that is none. */
static bool read_event(reader *r, const json_t *event)
{
    const json_t *op = json_object_get(json_object_get(event, "args"), "op");
    const char *phase = json_string_value(json_object_get(event, "ph"));
    double start = json_number_value(json_object_get(event, "ts")),
           us = json_number_value(json_object_get(event, "dur"));
    if (!phase || phase[0] != 'X' || json_integer_value(json_object_get(event, "pid")) != r->process)
        return true;
    json_int_t index = json_is_integer(op) ? json_integer_value(op) : -1;
    if (index < 0 || (uint64_t)index >= r->s->ops.count || !(us >= 0 && us < LONGEST_US && fabs(start) < LONGEST_US))
        return false;
    int64_t begin = (int64_t)llround(start * 1e3);
    r->found += r->time[index].end < r->time[index].start; /* an op of several lanes is there for each of them */
    r->time[index] = (gy_page_time){ begin, begin + (int64_t)llround(us * 1e3) };
    return true;
}

static gantry_status read_times(reader *r, const char *trace, size_t length, gantry_error *err)
{
    json_error_t wrong;
    json_t *root = gy_json_load(trace, length, 0, &wrong), *event;
    size_t i;
    bool fine = true;
    if (!root && gy_json_no_memory(&wrong))
        return gy_fail_nomem(err);
    for (i = 0; i < r->s->ops.count; i++)
        r->time[i] = (gy_page_time){ 0, -1 };
    json_array_foreach(json_object_get(root, "traceEvents"), i, event)
    {
        fine = fine && read_event(r, event);
    }
    json_decref(root);
    if (fine && r->found == r->s->ops.count)
        return GANTRY_OK;
    return gy_fail(err, GANTRY_E_INVALID, NULL,
                   "the trace has times of %zu of the schedule's %zu ops; it must be that of gantry_run_trace, of a "
                   "run of this schedule",
                   r->found, r->s->ops.count);
}

gantry_status gy_page_times(gy_page_time *time, const gantry_schedule *s, size_t phase, const char *trace,
                            size_t length, gantry_error *err)
{
    reader r = { s, 2 * (json_int_t)phase, time, 0 };
    return read_times(&r, trace, length, err);
}

gantry_status gy_page_phase(const gantry_schedule **s, const gantry_schedule *schedule, size_t phase, gantry_error *err)
{
    size_t phases = schedule->phases.count;
    if (phase >= (phases ? phases : 1))
        return gy_fail(err, GANTRY_E_INVALID, NULL, "there is no phase %zu; the schedule has %zu", phase, phases);
    *s = phases ? schedule->phases.at[phase].schedule : schedule;
    return GANTRY_OK;
}

static gantry_status draw(gy_text *to, const gantry_schedule *s, const gy_page_time *time, gantry_error *err)
{
    gy_view view;
    gantry_status status = gy_view_make(&view, s, err);
    if (status)
        return status;
    const gy_page_part part[] = { { "predicted", &view, NULL, NULL }, { "measured", &view, time, NULL } };
    gy_export_page(to, part, 2);
    gy_view_free(&view);
    return GANTRY_OK;
}

gantry_status gantry_schedule_page(const gantry_schedule *schedule, size_t phase, const char *trace, size_t length,
                                   char **text, size_t *text_length, gantry_error *err)
{
    const gantry_schedule *s;
    GY_NEED(schedule, err);
    GY_NEED(trace, err);
    GY_NEED(text, err);
    GY_TRY(gy_page_phase(&s, schedule, phase, err));
    gy_page_time *time = gy_calloc(s->ops.count, sizeof *time);
    gy_text made = { 0 };
    gantry_status status = time ? gy_page_times(time, s, phase, trace, length, err) : gy_fail_nomem(err);
    if (!status)
        status = draw(&made, s, time, err);
    if (!status)
        status = gy_export_hand_over(&made, text, text_length, err);
    gy_text_free(&made);
    gy_free(time);
    return status;
}
