/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Phases and automatic splits: random programs with loops (that end by `until`, or are too long to unroll), with halos
 * and without, on 1 to 4 devices of different speeds, cut in all ways there are. The result is, bit for bit, that of
 * the sequential program with the parts of the schedule; where each node is there for all parts, it is also that of one
 * device that has the arrays whole. The checker takes the schedules, and none of the mutants.
 *
 * More with PHASES_CASES=n; one alone with PHASES_SEED=n.
 */
#include "mutate.h"
#include "support/run_suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CASES = 250 };

typedef struct counts {
    int cases, refused, phased, moved, uniform, bounds, rows;
} counts;

typedef struct one {
    program *p;
    uint64_t seed, state;
    gantry_graph *graph;
    gantry_schedule *schedule;
    counts *count;
} one;

static void must(gantry_status status, const gantry_error *err, const one *c, const char *what)
{
    ck_assert_msg(status == GANTRY_OK, "seed %llu: %s: %s: %s", (unsigned long long)c->seed, what,
                  gantry_status_name(status), err->text);
}

/* ---- running ---- */

static gantry_machine *make_machine(one *c, int devices)
{
    char text[2048], list[600] = "", memories[600] = "{\"id\":\"host\",\"capacity\":\"1GiB\"}";
    gantry_machine *m = NULL;
    gantry_error err = { 0 };
    for (int d = 0; d < devices; d++) {
        size_t end = strlen(list);
        snprintf(list + end, sizeof list - end, "%s{\"id\":\"d%d\",\"memory\":\"m%d\",\"gflops\":{\"f64\":%d}}",
                 d ? "," : "", d, d, 1 + draw(&c->state, 9));
        end = strlen(memories);
        snprintf(memories + end, sizeof memories - end, ",{\"id\":\"m%d\",\"capacity\":\"%dMiB\"}", d,
                 1 + draw(&c->state, 8));
    }
    snprintf(text, sizeof text,
             "{\"gantry_machine\":1,\"name\":\"random\",\"memories\":[%s],\"devices\":[%s],\"routes\":[{\"from\":\"*\","
             "\"to\":\"*\",\"latency_us\":%d,\"bandwidth_gbs\":10}]}",
             memories, list, 1 + draw(&c->state, 20));
    must(gantry_machine_parse(&m, text, strlen(text), "machine", &err), &err, c, text);
    return m;
}

/* Two starts; the outputs of the second. */
static void run(const one *c, gantry_schedule *s, bool check, double out[ARRAYS][MOST_ROWS])
{
    double in[ARRAYS][MOST_ROWS];
    gantry_run *r = NULL;
    gantry_error err = { 0 };
    gantry_run_options o = GANTRY_RUN_OPTIONS_INIT;
    uint64_t ticket, bytes;
    o.backend = "host";
    o.check = check;
    must(gantry_run_new(&r, s, &o, &err), &err, c, "gantry_run_new");
    for (int a = 0; a < ARRAYS; a++) {
        program_input(c->p, a, in[a]);
        if (c->p->init[a])
            must(gantry_run_bind(r, program_buffer(a), in[a], (uint64_t)c->p->rows * 8, &err), &err, c, "bind");
    }
    for (int i = 0; i < 2; i++) {
        must(gantry_run_start(r, &ticket, &err), &err, c, "start");
        must(gantry_run_wait(r, ticket, &err), &err, c, "wait");
    }
    for (int a = 0; a < ARRAYS; a++) {
        const void *at;
        if (!c->p->output[a])
            continue;
        must(gantry_run_output(r, program_buffer(a), &at, &bytes, &err), &err, c, "output");
        memcpy(out[a], at, bytes);
    }
    gantry_run_free(r);
}

static void compare(const one *c, double out[ARRAYS][MOST_ROWS], double want[ARRAYS][MOST_ROWS], const char *what)
{
    for (int a = 0; a < ARRAYS; a++)
        for (int row = 0; row < c->p->rows && c->p->output[a]; row++)
            ck_assert_msg(memcmp(&out[a][row], &want[a][row], 8) == 0, "seed %llu: a%d[%d] is %g, and %g %s",
                          (unsigned long long)c->seed, a, row, out[a][row], want[a][row], what);
}

/* Where the schedule cuts; equal parts where it does not say. */
static void find_bounds(const one *c, int64_t bound[ARRAYS][MOST_PARTS + 1])
{
    const program *p = c->p;
    for (int a = 0; a < ARRAYS; a++)
        for (int i = 0; i <= p->parts; i++)
            bound[a][i] = (int64_t)p->rows * i / p->parts;
    for (size_t i = 0; i < c->schedule->bounds.count; i++) {
        const struct gy_part_bounds *b = &c->schedule->bounds.at[i];
        c->count->moved += memcmp(bound[b->buffer[1] - '0'], b->first, (b->parts + 1u) * sizeof *b->first) != 0;
        memcpy(bound[b->buffer[1] - '0'], b->first, (b->parts + 1u) * sizeof *b->first);
    }
}

static void check_result(one *c)
{
    int64_t bound[ARRAYS][MOST_PARTS + 1];
    content value[ARRAYS];
    double out[ARRAYS][MOST_ROWS], want[ARRAYS][MOST_ROWS];
    find_bounds(c, bound);
    ck_assert(program_run(c->p, bound, false, value));
    for (int a = 0; a < ARRAYS; a++)
        memcpy(want[a], value[a].at, sizeof want[a]);
    run(c, c->schedule, draw(&c->state, 4) == 0, out);
    compare(c, out, want, "one node after the other");
    if (!c->p->uniform)
        return;
    c->count->uniform++;
    gantry_graph *whole = program_graph(c->p, 1);
    gantry_machine *m = make_machine(c, 1);
    gantry_schedule *s = NULL;
    gantry_error err = { 0 };
    must(gantry_schedule_new(&s, whole, m, NULL, &err), &err, c, "unsplit");
    run(c, s, false, want);
    compare(c, out, want, "on one device that has it whole");
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(whole);
}

/* ---- mutants ---- */

static gantry_schedule *copy_of(const one *c)
{
    char *text = NULL;
    size_t length;
    gantry_schedule *s = NULL;
    gantry_error err = { 0 };
    must(gantry_schedule_json(c->schedule, &text, &length, &err), &err, c, "write");
    must(gantry_schedule_parse(&s, text, length, "copy", &err), &err, c, "read");
    must(gantry_schedule_check(s, c->graph, &err), &err, c, "the same again");
    gantry_free(text);
    return s;
}

static void check_mutants(one *c)
{
    gantry_error err = { 0 };
    gantry_schedule *s = copy_of(c);
    if (move_bound(s, &c->state)) {
        c->count->bounds++;
        gantry_status status = gantry_schedule_check(s, c->graph, &err);
        ck_assert_msg(status == GANTRY_E_SCHEDULE && strstr(err.text, "rule phases"), "seed %llu: other bounds: %s",
                      (unsigned long long)c->seed, status ? err.text : "taken");
    }
    gantry_schedule_free(s);
    s = copy_of(c);
    if (drop_rows(s, c->schedule, &c->state)) {
        c->count->rows++;
        ck_assert_msg(gantry_schedule_check(s, c->graph, &err) == GANTRY_E_SCHEDULE, "seed %llu: rows are lost: taken",
                      (unsigned long long)c->seed);
    }
    gantry_schedule_free(s);
}

/* ---- cases ---- */

static gantry_status plan(one *c, gantry_error *err)
{
    static const char *const ways[] = { NULL, "static", "dynamic", "memory", "guided" };
    static const int unrolls[] = { 1, 2, 5, 10, 20 };
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_machine *m = make_machine(c, 1 + draw(&c->state, MOST_DEVICES));
    o.effort = draw(&c->state, 2);
    o.balance = ways[draw(&c->state, 5)];
    o.unroll = unrolls[draw(&c->state, 5)];
    gantry_status status = gantry_schedule_new(&c->schedule, c->graph, m, &o, err);
    gantry_machine_free(m);
    return status;
}

/* Nodes that use both names of a pair, and what phases cannot do, are refused and no case. */
static void run_case(program *p, uint64_t seed, counts *n)
{
    gantry_error err = { 0 };
    one c = { .p = p, .seed = seed, .state = seed, .count = n, .graph = program_graph(p, p->parts) };
    gantry_status status = gantry_graph_check(c.graph, &err);
    bool wrong = status == GANTRY_E_GRAPH;
    status = status ? status : plan(&c, &err);
    if (wrong || status == GANTRY_E_UNSUPPORTED) {
        n->refused++;
    } else {
        must(status, &err, &c, "schedule");
        must(gantry_schedule_check(c.schedule, c.graph, &err), &err, &c, "check");
        n->cases++;
        check_result(&c);
        if (gantry_schedule_phase_count(c.schedule)) {
            n->phased++;
            check_mutants(&c);
        }
    }
    gantry_schedule_free(c.schedule);
    gantry_graph_free(c.graph);
}

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

START_TEST(results_are_those_of_the_sequential_program)
{
    uint64_t cases = number("PHASES_CASES", CASES), seed = number("PHASES_SEED", 0);
    bool alone = getenv("PHASES_SEED") != NULL;
    program p;
    counts n = { 0 };
    for (; n.phased < (int)cases; seed++) {
        if (program_make(&p, seed))
            run_case(&p, seed, &n);
        if (alone)
            return;
    }
    printf("%d programs (%d refused), %d with phases, %d splits not equal, %d also whole; mutants: %d of bounds, %d of "
           "rows\n",
           n.cases, n.refused, n.phased, n.moved, n.uniform, n.bounds, n.rows);
    ck_assert_int_gt(n.moved, n.phased / 4);
    ck_assert_int_gt(n.uniform, n.phased / 10);
    ck_assert_int_gt(n.bounds, n.phased / 4);
    ck_assert_int_gt(n.rows, n.phased / 4);
    ck_assert_int_lt(n.refused, n.cases);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("phases: random programs");
    TCase *t = tcase_create("random");
    tcase_set_timeout(t, 280);
    tcase_add_test(t, results_are_those_of_the_sequential_program);
    suite_add_tcase(s, t);
    return run_suite(s);
}
