/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of deriving, reading and running phases fails once: an error each time, and nothing is lost. */
#include "build.h"
#include "graph/derive/phase.h"
#include "support/faults.h"

#include <string.h>

static double two = 2;
static int64_t third = 3;

static gantry_graph *make(void)
{
    gantry_graph *g = gantry_graph_new("nomem");
    gantry_buffer u = vector(g, "u", 4), v = vector(g, "v", 4), w = vector(g, "w", 1), flag = vector(g, "flag", 1);
    gantry_buffer_set_class(g, u, GANTRY_STATE);
    gantry_buffer_init_value(g, u, 1);
    gantry_buffer_output(g, v);
    gantry_buffer_output(g, w);
    gantry_graph_repeat(g, 5);
    gantry_graph_carry(g, u, v);
    gantry_graph_until(g, flag, 1);
    scale(g, "k", gantry_all(u), gantry_all(v), &two);
    add_to(g, "sum", gantry_rows(v, 0, 1), gantry_all(w)); /* the first iteration is a phase of its own */
    flag_at(g, "test", gantry_all(flag), &third);
    gantry_graph_repeat_end(g);
    gantry_error err = { 0 };
    ck_assert_msg(!gantry_graph_check(g, &err), "%s", err.text);
    return g;
}

START_TEST(deriving)
{
    gantry_graph *g = make();
    bool failed = true;
    for (int n = 0; failed; n++) {
        gy_phases list = { 0 };
        gantry_graph *p[4];
        gantry_error err = { 0 };
        faults_after(n);
        gantry_status status = gy_phases_plan(&list, g, 200000, &err);
        status = status ? status : gy_phases_derive(p, g, list.at, list.count, &err);
        failed = faults_off();
        ck_assert_int_eq(status, failed ? GANTRY_E_NOMEM : GANTRY_OK);
        for (size_t i = 0; !status && i < list.count; i++)
            gantry_graph_free(p[i]);
        gy_vec_free(&list);
    }
    gantry_graph_free(g);
}
END_TEST

/* With automatic splits, which are cut in several ways, and with the bounds of another schedule. */
START_TEST(scheduling)
{
    gantry_graph *g = gantry_graph_new("split");
    gantry_buffer y = vector(g, "y", 40), z = vector(g, "z", 40);
    gantry_buffer_split_auto(g, y, 2);
    gantry_buffer_split_auto(g, z, 2);
    gantry_graph_fill(g, "five", gantry_part(y, 0), 5);
    gantry_graph_repeat(g, 6);
    scale(g, "k", gantry_part(y, 0), gantry_part(z, 0), &two);
    gantry_graph_repeat_end(g);
    gantry_schedule *like = plan(g, 2, 2);
    gantry_machine *m = NULL;
    gantry_error err = { 0 };
    ck_assert_int_eq(gantry_machine_virtual(&m, 2, &err), GANTRY_OK);
    for (int lent = 0; lent < 2; lent++) {
        gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
        bool failed = true;
        o.effort = 0;
        o.unroll = 2;
        o.like = lent ? like : NULL;
        for (int n = 0; failed; n++) {
            gantry_schedule *s = NULL;
            faults_after(n);
            gantry_status status = gantry_schedule_new(&s, g, m, &o, &err);
            failed = faults_off();
            ck_assert_msg(status == (failed ? GANTRY_E_NOMEM : GANTRY_OK), "after %d: %s", n, err.text);
            gantry_schedule_free(s);
        }
    }
    gantry_machine_free(m);
    gantry_schedule_free(like);
    gantry_graph_free(g);
}
END_TEST

START_TEST(reading_and_checking)
{
    gantry_graph *g = make();
    gantry_schedule *s = plan(g, 1, 0);
    gantry_error err = { 0 };
    char *text = NULL;
    size_t length;
    ck_assert_int_eq(gantry_schedule_json(s, &text, &length, &err), GANTRY_OK);
    bool failed = true;
    for (int n = 0; failed; n++) {
        gantry_schedule *copy = NULL;
        faults_after(n);
        gantry_status status = gantry_schedule_parse(&copy, text, length, "s", &err);
        status = status ? status : gantry_schedule_attach(copy, g, &err);
        failed = faults_off();
        ck_assert_msg(status == (failed ? GANTRY_E_NOMEM : GANTRY_OK), "after %d: %s", n, err.text);
        gantry_schedule_free(copy);
    }
    gantry_free(text);
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

START_TEST(running)
{
    gantry_graph *g = make();
    gantry_schedule *s = plan(g, 1, 0);
    bool failed = true;
    for (int n = 0; failed; n++) {
        gantry_run *run = NULL;
        gantry_error err = { 0 };
        gantry_run_options o = GANTRY_RUN_OPTIONS_INIT;
        uint64_t ticket = 0;
        o.backend = "host";
        faults_after(n);
        gantry_status status = gantry_run_new(&run, s, &o, &err);
        status = status ? status : gantry_run_start(run, &ticket, &err);
        status = status ? status : gantry_run_wait(run, ticket, &err);
        failed = faults_off();
        /* a thread that cannot start is a device that fails */
        ck_assert_msg(failed ? status == GANTRY_E_NOMEM || status == GANTRY_E_DEVICE : status == GANTRY_OK,
                      "after %d: %s", n, err.text);
        if (!status)
            ck_assert_double_eq(result(run, (gantry_buffer){ .id = 1 })[0], 8);
        gantry_run_free(run);
    }
    gantry_schedule_free(s);
    gantry_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("phases: without memory");
    TCase *c = tcase_create("nomem");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, deriving);
    tcase_add_test(c, scheduling);
    tcase_add_test(c, reading_and_checking);
    tcase_add_test(c, running);
    suite_add_tcase(s, c);
    return run_suite(s);
}
