/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Is the default never worse than a policy that its report says it ran? For random graphs on the machines it is given:
 *
 *   - the default's makespan is no more than that of each policy the report lists as run, which is scheduled by itself,
 *     but for a thousandth, and no such policy is as fast and moves fewer bytes;
 *   - the report tells no less than the makespan that the policy by itself has, but for a thousandth; where memory is
 *     short it may, since other ways to make room are tried for it there;
 *   - nothing is faster than its bound, and every schedule passes the checker;
 *   - what the default refuses for lack of memory, every policy refuses;
 *   - the same options give the same bytes (every 16th case).
 *
 * soak [--seed K] [--count N] MACHINE.json | GRAPH.json ...     (of a graph file: its machine)
 *
 * Graph i is made from number i, so a failure is repeated by --seed i --count 1. One line a failure, one line a machine
 * at the end, also after an interrupt; exit code 1 if anything failed.
 */
#include "families.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct machine {
    gantry_machine *at;
    bool tiny;
    /* what happened on it */
    long cases, limited, refused, policies, failed, improved;
    double gain; /* sum over cases of 1 - default / best policy */
} machine;

typedef struct one {
    machine *on;
    gantry_graph *graph;
    const char *family;
    uint64_t seed;
    char limit[512]; /* of memories; "": none */
} one;

#define EQUAL    1.001 /* what two makespans may differ by and count as equal */
#define HOPELESS 2     /* times the makespan that was chosen */

static bool report(one *c, const char *what, const char *text)
{
    c->on->failed++;
    printf("FAILED graph %llu (%s) on %s%s%s: %s: %s\n", (unsigned long long)c->seed, c->family,
           gantry_machine_name(c->on->at), *c->limit ? " with " : "", c->limit, what, text);
    return false;
}

static gantry_status schedule(const one *c, const char *policy, gantry_schedule **s, gantry_error *err)
{
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    o.policy = policy;
    o.max_memory = *c->limit ? c->limit : NULL;
    return gantry_schedule_new(s, c->graph, c->on->at, &o, err);
}

/* The checker and the bound; *sum is filled. */
static bool is_sound(one *c, gantry_schedule *s, const char *policy, gantry_schedule_summary *sum)
{
    gantry_error err;
    *sum = (gantry_schedule_summary)GANTRY_SCHEDULE_SUMMARY_INIT;
    if (gantry_schedule_check(s, c->graph, &err) || gantry_schedule_summarize(s, sum, &err))
        return report(c, policy, err.text);
    return sum->makespan_us >= sum->bound_us || report(c, policy, "is faster than its bound");
}

static bool is_same_again(one *c, const gantry_schedule *s)
{
    gantry_schedule *again = NULL;
    gantry_error err;
    char *a = NULL, *b = NULL;
    size_t length;
    bool fine = !schedule(c, NULL, &again, &err) && !gantry_schedule_json(s, &a, &length, &err) &&
                !gantry_schedule_json(again, &b, &length, &err) && !strcmp(a, b);
    gantry_free(a);
    gantry_free(b);
    gantry_schedule_free(again);
    return fine || report(c, "default", "the same options gave other bytes");
}

/* A policy of the report by itself. `told`: its makespan there; negative: nobody says, since automatic splits may be
 * cut otherwise for the policy alone. The default plans what a policy has placed in more ways than the policy alone,
 * unless that is hopeless. */
static bool compare_policy(one *c, const char *policy, double told, const gantry_schedule_summary *chosen)
{
    gantry_schedule *s = NULL;
    gantry_error err;
    char text[200];
    gantry_schedule_summary sum;
    gantry_status status = schedule(c, policy, &s, &err);
    bool fine = status ? report(c, policy, err.text) : is_sound(c, s, policy, &sum);
    gantry_schedule_free(s);
    if (!fine)
        return false;
    c->on->policies++;
    told = *c->limit ? -1 : told;
    double own = sum.makespan_us, makespan = chosen->makespan_us;
    snprintf(text, sizeof text,
             "%.17g us by itself, the report says %.17g, the default has %.17g; it moves %llu bytes, the default %llu",
             own, told, makespan, (unsigned long long)sum.bytes_moved, (unsigned long long)chosen->bytes_moved);
    fine = own * EQUAL >= makespan && (told <= own * EQUAL || told > HOPELESS * makespan) &&
           (own > makespan || sum.bytes_moved >= chosen->bytes_moved);
    return fine || report(c, policy, text);
}

/* Can it be named? What the scheduler tries of its own accord cannot. */
static bool is_policy(const char *name)
{
    const char *policy;
    for (size_t i = 0; (policy = gantry_policy_name(i)); i++)
        if (!strcmp(policy, name))
            return true;
    return false;
}

/* Every row of "tried" of the report. */
static bool compare_all(one *c, const gantry_schedule *s, const gantry_schedule_summary *chosen)
{
    double makespan = chosen->makespan_us;
    char *text = NULL;
    size_t length, i;
    gantry_error err;
    json_t *root = NULL, *row;
    double best = -1;
    bool fine = !gantry_schedule_export(s, GANTRY_REPORT, &text, &length, &err);
    fine = (fine && (root = json_loadb(text, length, 0, NULL))) || report(c, "report", "is no JSON");
    json_array_foreach(json_object_get(root, "tried"), i, row)
    {
        const char *policy = json_string_value(json_object_get(row, "policy"));
        const json_t *told = json_object_get(row, "makespan_us");
        if (!told || json_object_get(row, "evaluations"))
            continue;
        double us = json_number_value(told);
        if (!is_policy(policy))
            fine = (us * EQUAL >= makespan || report(c, policy, "is better than the default")) && fine;
        else
            fine = compare_policy(c, policy, json_object_get(root, "balance") ? -1 : us, chosen) && fine;
        if (!json_object_get(row, "devices"))
            best = best < 0 || us < best ? us : best;
    }
    fine = (fine && best >= 0) || (fine && report(c, "report", "says that no policy ran"));
    if (best > 0) {
        c->on->improved += makespan < best;
        c->on->gain += 1 - makespan / best;
    }
    json_decref(root);
    gantry_free(text);
    return fine;
}

/* Every third case has less memory than a schedule took without a limit: from a bit more down to half of it. */
static void draw_limit(one *c, family *f)
{
    gantry_schedule *s = NULL;
    gantry_error err;
    uint64_t peak = 0;
    int percent = draw_from(f, 50, 110);
    *c->limit = 0;
    if (draw(f, 3) || schedule(c, "heft", &s, &err))
        return;
    for (size_t i = 1; i < gantry_machine_memory_count(c->on->at); i++)
        if (gantry_schedule_peak_bytes(s, i) > peak)
            peak = gantry_schedule_peak_bytes(s, i);
    gantry_schedule_free(s);
    for (size_t i = 1; peak && i < gantry_machine_memory_count(c->on->at); i++) {
        gantry_memory_info info = GANTRY_MEMORY_INFO_INIT;
        size_t at = strlen(c->limit);
        if (gantry_machine_memory(c->on->at, i, &info, &err) == GANTRY_OK)
            snprintf(c->limit + at, sizeof c->limit - at, "%s%s=%llu", at ? "," : "", info.id,
                     (unsigned long long)(peak * (uint64_t)percent / 100));
    }
}

/* A problem that is refused for lack of memory is refused whichever policy is named. */
static void compare_refusal(one *c)
{
    gantry_error err;
    const char *policy;
    c->on->refused++;
    for (size_t i = 0; (policy = gantry_policy_name(i)); i++) {
        gantry_schedule *s = NULL;
        gantry_status status = schedule(c, policy, &s, &err);
        if (status != GANTRY_E_CAPACITY)
            report(c, policy, status ? err.text : "fits, but the default was refused");
        gantry_schedule_free(s);
    }
}

static void try_case(machine *m, uint64_t seed, size_t index)
{
    family f;
    gantry_error err;
    gantry_schedule *s = NULL;
    gantry_schedule_summary sum;
    family_make(&f, seed, m->tiny);
    one c = { .on = m, .graph = f.graph, .family = f.name, .seed = seed };
    m->cases++;
    if (gantry_graph_check(f.graph, &err)) {
        report(&c, "the graph", err.text);
    } else {
        draw_limit(&c, &f);
        m->limited += *c.limit != 0;
        gantry_status status = schedule(&c, NULL, &s, &err);
        if (status == GANTRY_E_CAPACITY && *c.limit)
            compare_refusal(&c);
        else if (status)
            report(&c, "default", err.text);
        else if (is_sound(&c, s, "default", &sum) && compare_all(&c, s, &sum) && (seed * 7 + index) % 16 == 0)
            is_same_again(&c, s);
    }
    gantry_schedule_free(s);
    gantry_graph_free(f.graph);
}

/* ---- machines ---- */

static bool load_machine(machine *m, const char *path)
{
    gantry_error err;
    gantry_graph *graph = NULL;
    const char *json = NULL, *file = NULL;
    if (!gantry_machine_load(&m->at, path, &err))
        return true;
    if (!gantry_graph_load(&graph, path, NULL, &err)) {
        gantry_graph_machine_hint(graph, &json, &file);
        if (!json || gantry_machine_parse(&m->at, json, strlen(json), path, &err))
            m->at = NULL;
    }
    gantry_graph_free(graph);
    if (m->at)
        m->tiny = gantry_machine_copy_us(m->at, 1, 2, 1000) > 100;
    else
        fprintf(stderr, "%s: no machine: %s\n", path, err.text);
    return m->at != NULL;
}

static int summarize(const machine *list, size_t count)
{
    long failed = 0;
    for (size_t i = 0; i < count; i++) {
        const machine *m = &list[i];
        printf("%-14s %ld graphs (%ld with less memory, %ld refused), %ld policies compared, %ld failures; the default "
               "is better than the best policy on %ld, by %.2f %% on average\n",
               gantry_machine_name(m->at), m->cases, m->limited, m->refused, m->policies, m->failed, m->improved,
               100 * m->gain / (double)(m->cases - m->refused ? m->cases - m->refused : 1));
        failed += m->failed;
    }
    return failed ? 1 : 0;
}

/* An interrupt ends it after the graph at hand, with the summary. */
static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    stop = number;
}

#define MACHINES 16

int main(int argc, char **argv)
{
    machine list[MACHINES] = { { 0 } };
    uint64_t seed = 0, graphs = 1;
    size_t count = 0;
    for (int i = 1; i < argc; i++) {
        bool value = i + 1 < argc;
        if (value && !strcmp(argv[i], "--seed"))
            seed = strtoull(argv[++i], NULL, 10);
        else if (value && !strcmp(argv[i], "--count"))
            graphs = strtoull(argv[++i], NULL, 10);
        else if (count == MACHINES || !load_machine(&list[count++], argv[i]))
            return 2;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    for (uint64_t k = 0; k < graphs && !stop; k++)
        for (size_t i = 0; i < count; i++) {
            try_case(&list[i], seed + k, i);
            fflush(stdout);
        }
    int code = count ? summarize(list, count) : 2;
    for (size_t i = 0; i < count; i++)
        gantry_machine_free(list[i].at);
    return code;
}
