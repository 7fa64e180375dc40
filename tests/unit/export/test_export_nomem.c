/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of every format fails once: E_NOMEM, the out-parameters untouched, nothing leaked. */
#include <check.h>

#include "support/faults.h"
#include "support/run_suite.h"
#include "unit/export/example.h"

/* Families are folded, in frames. */
static gantry_status draw(const gantry_graph *g, char **text, size_t *length, gantry_error *err)
{
    gantry_drawing_options how = GANTRY_DRAWING_OPTIONS_INIT;
    how.max_nodes = 2;
    how.near = "work[0]";
    how.distance = 4;
    how.clusters = GANTRY_CLUSTERS_FAMILIES;
    return gantry_graph_draw(g, &how, text, length, err);
}

static void fail_each(const gantry_schedule *s, const gantry_graph *g, gantry_format format)
{
    static char untouched;
    bool happened = true;
    int n = 0;
    for (; happened; n++) {
        char *text = &untouched;
        size_t length = 7;
        gantry_error err = { 0 };
        faults_after(n);
        gantry_status status = s        ? gantry_schedule_export(s, format, &text, &length, &err)
                               : format ? gantry_graph_export(g, format, &text, &length, &err)
                                        : draw(g, &text, &length, &err);
        happened = faults_off();
        ck_assert_msg(status == (happened ? GANTRY_E_NOMEM : GANTRY_OK), "format %d, allocation %d: %d", (int)format, n,
                      (int)status);
        ck_assert(!happened || (text == &untouched && length == 7 && err.status == GANTRY_E_NOMEM));
        if (!happened)
            gantry_free(text);
    }
    ck_assert_int_gt(n, 10);
}

START_TEST(schedules)
{
    gantry_schedule *s = example_new(1, "");
    for (int f = GANTRY_DOT; f <= GANTRY_REPORT; f++)
        fail_each(s, NULL, (gantry_format)f);
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
        char id[16];
        snprintf(id, sizeof id, "work[%d]", i);
        gantry_node work = gantry_graph_work(g, id);
        gantry_node_time(g, work, NULL, 1);
        gantry_node_readwrite(g, work, gantry_all(y));
    }
    gantry_error err = { 0 };
    ck_assert_msg(gantry_graph_check(g, &err) == GANTRY_OK, "%s", err.text);
    fail_each(NULL, g, GANTRY_DOT);
    fail_each(NULL, g, 0); /* none: gantry_graph_draw */
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
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
