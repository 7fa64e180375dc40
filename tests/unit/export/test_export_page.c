/* SPDX-License-Identifier: Apache-2.0 */
/* Refusals of the page and of differences, and names in a page. tests/cli/page reads what is in one. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "support/run_suite.h"
#include "unit/export/example.h"

static void refuse_trace(const gantry_schedule *s, size_t phase, const char *trace, const char *why)
{
    gantry_error err = { 0 };
    char *text = NULL;
    ck_assert_int_eq(gantry_schedule_page(s, phase, trace, strlen(trace), &text, NULL, &err), GANTRY_E_INVALID);
    ck_assert_msg(strstr(err.text, why) != NULL, "\"%s\" does not say \"%s\"", err.text, why);
    ck_assert_ptr_null(text);
}

START_TEST(traces)
{
    gantry_schedule *s = example_new(1, "");
    char *few = example_trace(s->ops.count - 1), *many = example_trace(s->ops.count + 1),
         *all = example_trace(s->ops.count);
    char *text = NULL;
    refuse_trace(s, 0, "", "times of 0 of the schedule's 13 ops");
    refuse_trace(s, 0, "[1, 2]", "times of 0 of the schedule's 13 ops");
    refuse_trace(s, 0, "{\"traceEvents\": 5}", "times of 0 of the schedule's 13 ops");
    refuse_trace(s, 0, few, "times of 12 of the schedule's 13 ops");
    refuse_trace(s, 0, many, "must be that of gantry_run_trace, of a run of this schedule");
    refuse_trace(s, 1, all, "there is no phase 1; the schedule has 0");
    memcpy(strstr(all, "0.5"), "-50", 3);
    refuse_trace(s, 0, all, "times of 0 of the schedule's 13 ops");
    memcpy(strstr(all, "-50"), "5e9", 3); /* in microseconds, an hour and a half: a long run, and fine */
    ck_assert_int_eq(gantry_schedule_page(s, 0, all, strlen(all), &text, NULL, NULL), GANTRY_OK);
    gantry_free(text);
    refuse_trace(s, 0,
                 "{\"traceEvents\": [{\"ph\": \"X\", \"pid\": 0, \"ts\": 1e300, \"dur\": 1, \"args\": {\"op\": 0}}]}",
                 "times of 0 of");
    gantry_free(few);
    gantry_free(many);
    gantry_free(all);
    gantry_schedule_free(s);
}
END_TEST

START_TEST(refused_differences)
{
    gantry_schedule *s = example_new(1, ""), *whole = gy_schedule_alloc();
    gantry_error err = { 0 };
    char *text = NULL;
    for (int format = -1; format < 9; format++) {
        bool fine = format == GANTRY_TEXT || format == GANTRY_REPORT || format == GANTRY_HTML;
        gantry_status status = gantry_schedule_diff(s, s, (gantry_format)format, &text, NULL, &err);
        ck_assert_int_eq(status, fine ? GANTRY_OK : GANTRY_E_INVALID);
        if (fine)
            gantry_free(text);
    }
    ck_assert(gy_vec_push(&whole->phases, ((gy_schedule_phase){ .schedule = gy_schedule_ref(s) })));
    text = NULL;
    ck_assert_int_eq(gantry_schedule_diff(whole, s, GANTRY_TEXT, &text, NULL, &err), GANTRY_E_UNSUPPORTED);
    ck_assert_str_eq(err.text, "the first schedule has 1 phases; give one of them (--phase, gantry_schedule_phase)");
    ck_assert_int_eq(gantry_schedule_diff(s, whole, GANTRY_HTML, &text, NULL, &err), GANTRY_E_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.text, "the second schedule"));
    ck_assert_ptr_null(text);
    gantry_schedule_free(whole);
    gantry_schedule_free(s);
}
END_TEST

static void refused_timelines(const gantry_schedule *s, size_t phase, const char *trace, const char *text)
{
    gantry_timeline fine = GANTRY_TIMELINE_INIT, wrong = GANTRY_TIMELINE_INIT;
    gantry_error err = { 0 };
    char *made = NULL;
    fine.schedule = wrong.schedule = s;
    wrong.phase = phase;
    wrong.trace = trace;
    wrong.length = trace ? strlen(trace) : 0;
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(gantry_timeline_diff(i ? &wrong : &fine, i ? &fine : &wrong, GANTRY_TEXT, &made, NULL, &err),
                         GANTRY_E_INVALID);
        ck_assert_msg(strstr(err.text, text), "%s", err.text);
        ck_assert_ptr_null(made);
    }
}

START_TEST(refused_runs)
{
    gantry_schedule *s = example_new(1, "");
    gantry_timeline line = GANTRY_TIMELINE_INIT;
    gantry_error err = { 0 };
    char *text = NULL;
    line.schedule = s;
    refused_timelines(s, 1, NULL, "there is no phase 1; the schedule has 0");
    refused_timelines(s, 0, "{}", "the trace has times of 0 of the schedule's");
    refused_timelines(s, 0, "nothing", "the trace has times of 0 of the schedule's");
    refused_timelines(s, 0, "{\"traceEvents\":[{\"ph\":\"X\",\"pid\":0,\"ts\":0,\"dur\":-1,\"args\":{\"op\":0}}]}",
                      "the trace has times of 0 of the schedule's");
    ck_assert_int_eq(gantry_timeline_diff(&line, &line, GANTRY_SVG, &text, NULL, &err), GANTRY_E_INVALID);
    line.struct_size = 0;
    ck_assert_int_eq(gantry_timeline_diff(&line, &line, GANTRY_TEXT, &text, NULL, &err), GANTRY_E_INVALID);
    ck_assert_ptr_null(text);
    gantry_schedule_free(s);
}
END_TEST

/* Whatever a name is, it is in the title, escaped, and in base64: between the marks is nothing else. */
START_TEST(hostile_names)
{
    for (int i = 0; i < example_hostile_count; i++) {
        gantry_schedule *s = example_new(1, example_hostile[i]);
        char *text = example_export(s, GANTRY_HTML, NULL), *data = strstr(text, "id=\"data\">");
        ck_assert_ptr_nonnull(data);
        data += strlen("id=\"data\">");
        size_t length = strspn(data, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=");
        ck_assert_uint_gt(length, 100);
        ck_assert_int_eq(strncmp(data + length, "</script>", strlen("</script>")), 0);
        ck_assert_uint_eq(length % 4, 0);
        gantry_free(text);
        gantry_schedule_free(s);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("page");
    TCase *t = tcase_create("page");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, traces);
    tcase_add_test(t, refused_differences);
    tcase_add_test(t, refused_runs);
    tcase_add_test(t, hostile_names);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
