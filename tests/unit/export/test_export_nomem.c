/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of every format fails once: E_NOMEM, the out-parameters untouched, nothing leaked. */
#include <check.h>
#include <string.h>

#include "support/faults.h"
#include "support/run_suite.h"
#include "unit/export/example.h"

typedef struct things {
    const gantry_schedule *s;
    const gantry_graph *g;
    gantry_format format;
    const char *trace;
} things;

typedef gantry_status make(const things *from, char **text, size_t *length, gantry_error *err);

/* Families are folded, in frames. */
static gantry_status draw(const things *from, char **text, size_t *length, gantry_error *err)
{
    gantry_drawing_options how = GANTRY_DRAWING_OPTIONS_INIT;
    how.max_nodes = 2;
    how.near = "work[0]";
    how.distance = 4;
    how.clusters = GANTRY_CLUSTERS_FAMILIES;
    return gantry_graph_draw(from->g, &how, text, length, err);
}

static void fail_each(make *one, const things *from)
{
    static char untouched;
    bool happened = true;
    int n = 0;
    for (; happened; n++) {
        char *text = &untouched;
        size_t length = 7;
        gantry_error err = { 0 };
        faults_after(n);
        gantry_status status = one(from, &text, &length, &err);
        happened = faults_off();
        ck_assert_msg(status == (happened ? GANTRY_E_NOMEM : GANTRY_OK), "format %d, allocation %d: %d",
                      (int)from->format, n, (int)status);
        ck_assert(!happened || (text == &untouched && length == 7 && err.status == GANTRY_E_NOMEM));
        if (!happened)
            gantry_free(text);
    }
    ck_assert_int_gt(n, 10);
}

static gantry_status make_schedule(const things *from, char **text, size_t *length, gantry_error *err)
{
    return gantry_schedule_export(from->s, from->format, text, length, err);
}

static gantry_status make_graph(const things *from, char **text, size_t *length, gantry_error *err)
{
    return gantry_graph_export(from->g, from->format, text, length, err);
}

static gantry_status make_difference(const things *from, char **text, size_t *length, gantry_error *err)
{
    return gantry_schedule_diff(from->s, from->s, from->format, text, length, err);
}

static gantry_status make_runs(const things *from, char **text, size_t *length, gantry_error *err)
{
    gantry_timeline line = GANTRY_TIMELINE_INIT;
    line.schedule = from->s;
    line.trace = from->trace;
    line.length = strlen(from->trace);
    return gantry_timeline_diff(&line, &line, from->format, text, length, err);
}

static gantry_status make_page(const things *from, char **text, size_t *length, gantry_error *err)
{
    return gantry_schedule_page(from->s, 0, from->trace, strlen(from->trace), text, length, err);
}

START_TEST(schedules)
{
    gantry_schedule *s = example_new(1, "");
    for (int f = GANTRY_DOT; f <= GANTRY_REPORT; f++)
        fail_each(make_schedule, &(things){ .s = s, .format = (gantry_format)f });
    gantry_schedule_free(s);
}
END_TEST

START_TEST(differences)
{
    gantry_schedule *s = example_new(1, "");
    fail_each(make_difference, &(things){ .s = s, .format = GANTRY_HTML });
    fail_each(make_difference, &(things){ .s = s, .format = GANTRY_TEXT });
    fail_each(make_difference, &(things){ .s = s, .format = GANTRY_REPORT });
    gantry_schedule_free(s);
}
END_TEST

START_TEST(pages)
{
    gantry_schedule *s = example_new(1, "");
    char *trace = example_trace(s->ops.count);
    fail_each(make_page, &(things){ .s = s, .format = GANTRY_HTML, .trace = trace });
    fail_each(make_runs, &(things){ .s = s, .format = GANTRY_HTML, .trace = trace });
    fail_each(make_runs, &(things){ .s = s, .format = GANTRY_TEXT, .trace = trace });
    gantry_free(trace);
    gantry_schedule_free(s);
}
END_TEST

START_TEST(graphs)
{
    int64_t shape[] = { 8 };
    gantry_graph *g = gantry_graph_new("g");
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, shape),
                  y = gantry_graph_buffer(g, "y", GANTRY_F32, 1, shape);
    gantry_buffer_init_value(g, x, 1);
    gantry_buffer_output(g, y);
    gantry_graph_copy(g, "copy", gantry_all(x), gantry_all(y));
    for (int i = 0; i < 3; i++) {
        char id[24];
        snprintf(id, sizeof id, "work[%d]", i);
        gantry_node work = gantry_graph_work(g, id);
        gantry_node_time(g, work, NULL, 1);
        gantry_node_readwrite(g, work, gantry_all(y));
    }
    gantry_error err = { 0 };
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
    fail_each(make_graph, &(things){ .g = g, .format = GANTRY_DOT });
    fail_each(draw, &(things){ .g = g });
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("export without memory");
    TCase *t = tcase_create("nomem");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, schedules);
    tcase_add_test(t, graphs);
    tcase_add_test(t, differences);
    tcase_add_test(t, pages);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
