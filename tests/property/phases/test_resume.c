/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints amid starts: random programs with loops are carried out with checkpoints after every few iterations, and
 * gone on with from what is left in the folder, on other devices. The result is, bit for bit, that of the sequential
 * program, which knows nothing of phases.
 *
 * More with PHASES_CASES=n; one alone with PHASES_SEED=n.
 */
#include "program.h"
#include "support/run_suite.h"

#include <check.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CASES = 60, STARTS = 2 };

typedef struct counts {
    int cases, kept, inside, other, refused, older;
} counts;

typedef struct one {
    program *p;
    uint64_t seed, state;
    gantry_graph *graph;
    char folder[128];
    double in[ARRAYS][MOST_ROWS], want[ARRAYS][MOST_ROWS];
} one;

static void must(gantry_status status, const gantry_error *err, const one *c, const char *what)
{
    ck_assert_msg(status == GANTRY_OK, "seed %llu: %s: %s: %s", (unsigned long long)c->seed, what,
                  gantry_status_name(status), err->text);
}

/* Equal parts for all, so that starts of a phase have as many iterations on any devices. */
static gantry_status plan(one *c, gantry_schedule **s, int devices, int unroll, gantry_error *err)
{
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    gantry_machine *m = NULL;
    must(gantry_machine_virtual(&m, devices, err), err, c, "machine");
    o.effort = 0;
    o.balance = "static";
    o.unroll = unroll;
    gantry_status status = gantry_schedule_new(s, c->graph, m, &o, err);
    gantry_machine_free(m);
    return status;
}

static gantry_run *open_run(one *c, gantry_schedule *s, int every)
{
    gantry_run *r = NULL;
    gantry_error err = { 0 };
    gantry_run_options o = GANTRY_RUN_OPTIONS_INIT;
    o.backend = "host";
    o.checkpoints = every ? c->folder : NULL;
    o.checkpoint_every = (uint64_t)every;
    must(gantry_run_new(&r, s, &o, &err), &err, c, "gantry_run_new");
    for (int a = 0; a < ARRAYS; a++)
        if (c->p->init[a])
            must(gantry_run_bind(r, program_buffer(a), c->in[a], (uint64_t)c->p->rows * 8, &err), &err, c, "bind");
    return r;
}

/* So many starts; then outputs are those of the sequential program. */
static void start_and_compare(one *c, gantry_run *r, uint64_t starts)
{
    gantry_error err = { 0 };
    const void *at;
    uint64_t ticket;
    for (uint64_t i = 0; i < starts; i++) {
        must(gantry_run_start(r, &ticket, &err), &err, c, "start");
        must(gantry_run_wait(r, ticket, &err), &err, c, "wait");
    }
    for (int a = 0; a < ARRAYS; a++) {
        if (!c->p->output[a])
            continue;
        must(gantry_run_output(r, program_buffer(a), &at, NULL, &err), &err, c, "output");
        for (int row = 0; row < c->p->rows; row++)
            ck_assert_msg(memcmp((const double *)at + row, &c->want[a][row], 8) == 0,
                          "seed %llu: a%d[%d] is %g, not %g", (unsigned long long)c->seed, a, row,
                          ((const double *)at)[row], c->want[a][row]);
    }
}

/* The path number i, in order, of those that match; "": there are not so many. */
static void find(const one *c, const char *pattern, size_t i, char path[300])
{
    char all[300];
    glob_t found = { 0 };
    snprintf(all, sizeof all, "%s/%s", c->folder, pattern);
    path[0] = 0;
    if (glob(all, 0, NULL, &found) == 0 && i < found.gl_pathc)
        snprintf(path, 300, "%s", found.gl_pathv[i]);
    globfree(&found);
}

static void remove_folder(const one *c)
{
    char path[300];
    for (find(c, "*/*", 0, path); *path; find(c, "*/*", 0, path))
        ck_assert_int_eq(unlink(path), 0);
    for (find(c, "*", 0, path); *path; find(c, "*", 0, path))
        ck_assert_int_eq(rmdir(path), 0);
    rmdir(c->folder);
}

/* Of the newest of two: a byte of its manifest or of an array is another, or it ends early. */
static bool damage_newest(one *c)
{
    char path[300], inside[300];
    find(c, "checkpoint-0*", 1, path);
    if (!*path)
        return false;
    snprintf(inside, sizeof inside, "%.40s/*", strrchr(path, '/') + 1);
    find(c, inside, (size_t)draw(&c->state, 3), path);
    FILE *f = *path ? fopen(path, "r+") : NULL;
    if (!f)
        return false;
    ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
    long size = ftell(f), at = draw(&c->state, (int)size);
    if (draw(&c->state, 2)) {
        ck_assert_int_eq(ftruncate(fileno(f), at), 0);
    } else {
        ck_assert_int_eq(fseek(f, size - 1, SEEK_SET), 0);
        int byte = fgetc(f);
        ck_assert_int_eq(fseek(f, size - 1, SEEK_SET), 0);
        ck_assert_int_ne(fputc(byte ^ 1, f), EOF);
    }
    ck_assert_int_eq(fclose(f), 0);
    return true;
}

static void go_on(one *c, gantry_schedule *s, counts *n)
{
    gantry_error err = { 0 };
    gantry_resumed from = GANTRY_RESUMED_INIT;
    gantry_run *r = open_run(c, s, 0);
    bool damaged = draw(&c->state, 3) == 0 && damage_newest(c);
    must(gantry_run_resume(r, c->folder, &from, &err), &err, c, "resume");
    ck_assert_int_eq(damaged, *from.passed_over != 0);
    ck_assert_uint_lt(from.starts, STARTS);
    n->kept++;
    n->older += damaged;
    n->inside += from.iterations > 0;
    start_and_compare(c, r, STARTS - from.starts);
    gantry_run_free(r);
}

static void run_case(one *c, counts *n)
{
    gantry_error err = { 0 };
    gantry_schedule *s = NULL, *other = NULL;
    char path[300];
    const int unrolls[] = { 1, 2, 5, 10, 20 };
    int unroll = unrolls[draw(&c->state, 5)], devices = 1 + draw(&c->state, MOST_DEVICES);
    gantry_status status = gantry_graph_check(c->graph, &err);
    status = status ? status : plan(c, &s, devices, unroll, &err);
    if (status == GANTRY_E_GRAPH || status == GANTRY_E_UNSUPPORTED || !gantry_schedule_phase_count(s)) {
        n->refused++;
        gantry_schedule_free(s);
        return;
    }
    must(status, &err, c, "schedule");
    n->cases++;
    gantry_run *r = open_run(c, s, 1 + draw(&c->state, 8));
    start_and_compare(c, r, STARTS);
    gantry_run_free(r);
    must(plan(c, &other, 1 + draw(&c->state, MOST_DEVICES), unroll, &err), &err, c, "the other schedule");
    find(c, "checkpoint-0*", 0, path);
    if (*path)
        go_on(c, other, n);
    remove_folder(c);
    gantry_schedule_free(s);
    gantry_schedule_free(other);
}

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

START_TEST(what_is_gone_on_with_ends_as_the_sequential_program)
{
    int cases = (int)number("PHASES_CASES", CASES);
    const char *temporary = getenv("TMPDIR");
    bool alone = getenv("PHASES_SEED") != NULL;
    program p;
    counts n = { 0 };
    for (uint64_t seed = number("PHASES_SEED", 0); n.kept < cases; seed++) {
        int64_t bound[ARRAYS][MOST_PARTS + 1];
        content value[ARRAYS];
        one c = { .p = &p, .seed = seed, .state = seed };
        if (program_make(&p, seed) && p.uniform) {
            for (int a = 0; a < ARRAYS; a++)
                for (int i = 0; i <= p.parts; i++)
                    bound[a][i] = (int64_t)p.rows * i / p.parts;
            ck_assert(program_run(&p, bound, false, value));
            for (int a = 0; a < ARRAYS; a++) {
                memcpy(c.want[a], value[a].at, sizeof c.want[a]);
                program_input(&p, a, c.in[a]);
            }
            snprintf(c.folder, sizeof c.folder, "%.40s/gantry-resume-%ld",
                     temporary                  ? temporary
                     : access("/dev/shm", W_OK) ? "/tmp"
                                                : "/dev/shm",
                     (long)getpid());
            c.graph = program_graph(&p, p.parts);
            run_case(&c, &n);
            gantry_graph_free(c.graph);
        }
        if (alone)
            return;
    }
    printf(
        "%d programs with phases (%d others), %d went on from a checkpoint, %d amid iterations, %d from the one before "
        "the newest\n",
        n.cases, n.refused, n.kept, n.inside, n.older);
    ck_assert_int_gt(n.inside, n.kept / 3);
    ck_assert_int_gt(n.older, n.kept / 10);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("phases: checkpoints");
    TCase *t = tcase_create("random");
    tcase_set_timeout(t, 280);
    tcase_add_test(t, what_is_gone_on_with_ends_as_the_sequential_program);
    suite_add_tcase(s, t);
    return run_suite(s);
}
