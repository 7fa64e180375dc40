/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Batches of collectives: which are put together, and what that is predicted to take, by the one collective of all
 * their bytes; and that every schedule with them is right and gives what one without gives.
 */
#include "base/text.h"
#include "schedule/check/verify.h"
#include "suite.h"
#include "support/faults.h"
#include <gantry/gantry.h>
#include <stdio.h>
#include <string.h>

enum { GPUS = 4 };

/* A copy of few bytes takes 20 us. */
static gantry_machine *machine(int gpus)
{
    gy_text t = { 0 };
    gy_text_add(&t, "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"}");
    for (int i = 0; i < gpus; i++)
        gy_text_printf(&t, ",{\"id\":\"m%d\",\"capacity\":\"64MiB\"}", i);
    for (int i = 0; i < gpus; i++)
        gy_text_printf(&t, "%s{\"id\":\"g%d\",\"type\":\"gpu\",\"memory\":\"m%d\"}", i ? "," : "],\"devices\":[", i, i);
    gy_text_add(&t, "],\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"latency_us\":20,\"bandwidth_gbs\":10}]}");
    gantry_machine *m = parse_machine(t.at);
    gy_text_free(&t);
    return m;
}

/* ---- graphs ---- */

static void begin(gy_text *t)
{
    *t = (gy_text){ 0 };
    gy_text_add(t,
                "{\"gantry\":1,\"buffers\":{\"last\":{\"dtype\":\"f32\",\"shape\":[1],\"class\":\"state\",\"init\":0}");
}

static void add_arrays(gy_text *t, const char *names, int number, int rows)
{
    for (; *names; names++)
        gy_text_printf(t, ",\"%c%d\":{\"dtype\":\"f32\",\"shape\":[%d],\"split\":%d,\"class\":\"state\",\"init\":0}",
                       *names, number, rows * GPUS, GPUS);
}

static void add_nodes(gy_text *t)
{
    gy_text_add(t, "},\"nodes\":[{\"id\":\"end\",\"work\":{},\"writes\":[\"last\"],\"cost\":{\"time_us\":1}}");
}

/* Each rank writes its part of an array in so long. */
static void add_writers(gy_text *t, const char *array, int number, double us)
{
    for (int r = 0; r < GPUS; r++)
        gy_text_printf(
            t, ",{\"id\":\"w%s%d_%d\",\"work\":{},\"writes\":[\"%s%d[%d]\"],\"on\":%d,\"cost\":{\"time_us\":%g}}",
            array, number, r, array, number, r, r, us);
}

static void add_readers(gy_text *t, const char *array, int number, double us)
{
    for (int r = 0; r < GPUS; r++)
        gy_text_printf(
            t, ",{\"id\":\"r%s%d_%d\",\"work\":{},\"reads\":[\"%s%d[%d]\"],\"on\":%d,\"cost\":{\"time_us\":%g}}", array,
            number, r, array, number, r, r, us);
}

static void add_sum(gy_text *t, const char *op, const char *from, const char *to, int number)
{
    gy_text_printf(
        t, ",{\"id\":\"%s%s%d\",\"collective\":\"all_reduce\",\"op\":\"%s\",\"algorithm\":\"two_shot\",\"in\":[", from,
        to, number, op);
    for (int r = 0; r < GPUS; r++)
        gy_text_printf(t, "%s\"%s%d[%d]\"", r ? "," : "", from, number, r);
    gy_text_add(t, "],\"out\":[");
    for (int r = 0; r < GPUS; r++)
        gy_text_printf(t, "%s\"%s%d[%d]\"", r ? "," : "", to, number, r);
    gy_text_add(t, "]}");
}

static gantry_graph *finish(gy_text *t)
{
    gantry_graph *g = NULL;
    gantry_error err = { 0 };
    gy_text_add(t, "]}");
    ck_assert_msg(gantry_graph_parse(&g, t->at, t->length, "teams", NULL, NULL, &err) == GANTRY_OK, "%s: %s", err.where,
                  err.text);
    gy_text_free(t);
    return g;
}

/* So many arrays, all written at once, each added up. */
static gantry_graph *gradients(int count, int rows)
{
    gy_text t;
    begin(&t);
    for (int i = 0; i < count; i++)
        add_arrays(&t, "as", i, rows);
    add_nodes(&t);
    for (int i = 0; i < count; i++)
        add_writers(&t, "a", i, 0);
    for (int i = 0; i < count; i++)
        add_sum(&t, "sum", "a", "s", i);
    return finish(&t);
}

/* ---- outcomes ---- */

typedef struct outcome {
    gy_ticks makespan;
    uint32_t batches, members;
} outcome;

static outcome outcome_of(const gantry_schedule *s)
{
    outcome o = { .makespan = s->makespan };
    for (size_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        bool team = op->kind == GY_OP_COLLECTIVE;
        o.batches += team && op->batch;
        o.members += team && (op->batch || op->joined);
        ck_assert(!op->joined || op->duration == 0);
    }
    ck_assert_int_ge(s->makespan, s->bound);
    return o;
}

static outcome plan(gantry_graph *g)
{
    gantry_machine *m = machine(GPUS);
    gantry_schedule *s = schedule(g, m, NULL);
    outcome o = outcome_of(s);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
    return o;
}

/* ---- which ---- */

START_TEST(collectives_take_as_long_as_one_of_all_bytes)
{
    for (int count = 2; count <= 32; count *= 2) {
        outcome many = plan(gradients(count, 1024)), one = plan(gradients(1, 1024 * count));
        ck_assert_uint_eq(many.batches, 1);
        ck_assert_uint_eq(many.members, (uint32_t)count);
        ck_assert_int_eq(many.makespan, one.makespan);
    }
}
END_TEST

START_TEST(one_that_waits_for_another_is_in_no_batch_with_it)
{
    gy_text t;
    begin(&t);
    add_arrays(&t, "asuv", 0, 256);
    add_nodes(&t);
    add_writers(&t, "a", 0, 0);
    add_sum(&t, "sum", "a", "s", 0);
    add_sum(&t, "sum", "s", "u", 0);
    add_sum(&t, "sum", "u", "v", 0);
    ck_assert_uint_eq(plan(finish(&t)).batches, 0);
}
END_TEST

START_TEST(other_reductions_have_other_batches)
{
    gy_text t;
    begin(&t);
    for (int i = 0; i < 6; i++)
        add_arrays(&t, "as", i, 256);
    add_nodes(&t);
    for (int i = 0; i < 6; i++)
        add_writers(&t, "a", i, 0);
    for (int i = 0; i < 6; i++)
        add_sum(&t, i % 2 ? "sum" : "max", "a", "s", i);
    outcome o = plan(finish(&t));
    ck_assert(o.batches == 2 && o.members == 6);
}
END_TEST

/* The first sum could be there at once, the second later; work of 10 us waits for each. */
static outcome plan_late(double late_us)
{
    gy_text t;
    begin(&t);
    for (int i = 0; i < 2; i++)
        add_arrays(&t, "as", i, 256);
    add_nodes(&t);
    add_writers(&t, "a", 0, 1);
    add_writers(&t, "a", 1, late_us);
    add_sum(&t, "sum", "a", "s", 0);
    add_sum(&t, "sum", "a", "s", 1);
    add_readers(&t, "s", 0, 10);
    add_readers(&t, "s", 1, 10);
    return plan(finish(&t));
}

START_TEST(a_batch_is_not_worth_a_long_wait)
{
    ck_assert_uint_eq(plan_late(1).batches, 1);
    ck_assert_uint_eq(plan_late(500).batches, 0);
}
END_TEST

/* Each gradient is reduced while the next ones are made: neither all at the end nor each alone is best. */
START_TEST(batches_end_sooner_than_one_and_than_none)
{
    enum { LAYERS = 48 };
    gy_text t;
    begin(&t);
    for (int i = 0; i < LAYERS; i++)
        add_arrays(&t, "as", i, 65536);
    add_nodes(&t);
    for (int i = 0; i < LAYERS; i++) {
        add_writers(&t, "a", i, 30);
        add_sum(&t, "sum", "a", "s", i);
    }
    outcome o = plan(finish(&t)), last = plan(gradients(1, 65536 * LAYERS)), each = plan(gradients(1, 65536));
    ck_assert_uint_gt(o.batches, 1);
    ck_assert_int_lt(o.makespan, LAYERS * 30 * (gy_ticks)1000000 + last.makespan);
    ck_assert_int_lt(o.makespan, LAYERS * each.makespan);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    gantry_graph *g = gradients(3, 16);
    gantry_machine *m = machine(GPUS);
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    bool failed = true;
    int n = 0;
    o.effort = 0;
    for (; failed; n++) {
        gantry_schedule *s = NULL;
        gantry_error err = { 0 };
        faults_after(n);
        gantry_status status = gantry_schedule_new(&s, g, m, &o, &err);
        failed = faults_off();
        ck_assert_msg(status == (failed ? GANTRY_E_NOMEM : GANTRY_OK), "allocation %d: %s", n, err.text);
        ck_assert(failed || outcome_of(s).batches == 1);
        gantry_schedule_free(s);
    }
    ck_assert_int_gt(n, 100);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* ---- random graphs ---- */

enum { ARRAYS = 6, ROWS = 8 };

static uint32_t below(uint64_t *state, uint32_t limit)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % limit;
}

static void add_regions(gy_text *t, const char *key, uint32_t array, uint32_t turn)
{
    gy_text_printf(t, ",\"%s\":[", key);
    for (uint32_t r = 0; r < GPUS; r++)
        gy_text_printf(t, "%s\"x%u[%u]\"", r ? "," : "", array, (r + turn) % GPUS);
    gy_text_add(t, "]");
}

/* Sums and maxima of arrays, in place and not, and copies of parts. */
static gantry_graph *random_graph(uint64_t seed)
{
    uint64_t n = seed * 977 + 5;
    gy_text t = { 0 };
    gy_text_add(&t, "{\"gantry\":1,\"buffers\":{");
    for (int i = 0; i < ARRAYS; i++)
        gy_text_printf(&t,
                       "%s\"x%d\":{\"dtype\":\"i64\",\"shape\":[%d],\"split\":%d,\"class\":\"state\",\"output\":true,"
                       "\"init\":\"iota\"}",
                       i ? "," : "", i, ROWS * GPUS, GPUS);
    gy_text_add(&t, "},\"nodes\":[");
    for (uint32_t i = 0, count = 6 + below(&n, 20); i < count; i++) {
        uint32_t a = below(&n, ARRAYS), b = below(&n, ARRAYS), part = below(&n, GPUS);
        gy_text_printf(&t, "%s{\"id\":\"n%u\",", i ? "," : "", i);
        if (below(&n, 3) == 0) {
            gy_text_printf(&t, "\"kernel\":\"copy\",\"on\":%u,\"args\":{\"x\":\"x%u[%u]\",\"y\":\"x%u[%u]\"}}", part, a,
                           part, b == a ? (a + 1) % ARRAYS : b, below(&n, GPUS));
            continue;
        }
        gy_text_printf(&t, "\"collective\":\"all_reduce\",\"on\":[0,1,2,3],\"op\":\"%s\"",
                       below(&n, 4) ? "sum" : "max");
        add_regions(&t, "in", a, 0);
        add_regions(&t, "out", b, 0);
        gy_text_add(&t, "}");
    }
    gy_text_add(&t, "]}");
    gantry_graph *g = NULL;
    gantry_error err = { 0 };
    ck_assert_msg(gantry_graph_parse(&g, t.at, t.length, "teams", NULL, NULL, &err) == GANTRY_OK, "%s: %s", err.where,
                  err.text);
    gy_text_free(&t);
    return g;
}

static void run_on_host(gantry_schedule *s, gantry_graph *g, int64_t (*to)[ROWS * GPUS])
{
    gantry_run *r;
    gantry_error err = { 0 };
    gantry_run_options o = GANTRY_RUN_OPTIONS_INIT;
    uint64_t ticket;
    o.backend = "host";
    ck_assert_msg(gantry_run_new(&r, s, &o, &err) == GANTRY_OK, "%s", err.text);
    for (int i = 0; i < ARRAYS; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        gantry_buffer b = gantry_graph_find_buffer(g, name);
        ck_assert_msg(gantry_run_bind_output(r, b, to[i], sizeof to[i], &err) == GANTRY_OK, "%s", err.text);
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(gantry_run_start(r, &ticket, &err) == GANTRY_OK, "%s", err.text);
        ck_assert_msg(gantry_run_wait(r, ticket, &err) == GANTRY_OK, "%s", err.text);
    }
    gantry_run_free(r);
}

/* The checker says that every schedule is right; it gives what each by itself in the same order gives. Some have
 * batches. */
START_TEST(random_graphs_are_right_with_batches)
{
    uint32_t batches = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        gantry_graph *g = random_graph(seed);
        gantry_machine *m = machine(GPUS), *plain = machine(GPUS);
        gantry_schedule *s = schedule(g, m, "heft"), *other = schedule(g, plain, "heft");
        int64_t found[ARRAYS][ROWS * GPUS], wanted[ARRAYS][ROWS * GPUS];
        gantry_error err = { 0 };
        ck_assert_msg(gy_schedule_verify(s, g, &err) == GANTRY_OK, "seed %d: %s", (int)seed, err.text);
        batches += outcome_of(s).batches;
        for (size_t i = 0; i < other->ops.count; i++) {
            other->ops.at[i].batch = 0;
            other->ops.at[i].joined = false;
        }
        run_on_host(s, g, found);
        run_on_host(other, g, wanted);
        ck_assert_msg(!memcmp(found, wanted, sizeof found), "seed %d: other results", (int)seed);
        gantry_schedule_free(s);
        gantry_schedule_free(other);
        gantry_machine_free(m);
        gantry_machine_free(plain);
        gantry_graph_free(g);
    }
    ck_assert_uint_gt(batches, 20);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scheduler: batches of collectives");
    TCase *c = tcase_create("teams");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, collectives_take_as_long_as_one_of_all_bytes);
    tcase_add_test(c, one_that_waits_for_another_is_in_no_batch_with_it);
    tcase_add_test(c, other_reductions_have_other_batches);
    tcase_add_test(c, a_batch_is_not_worth_a_long_wait);
    tcase_add_test(c, batches_end_sooner_than_one_and_than_none);
    tcase_add_test(c, every_allocation_may_fail);
    tcase_add_test(c, random_graphs_are_right_with_batches);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
