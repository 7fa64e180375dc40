/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Is the default never worse with a device more? Random graphs on the first one, two, three, ... devices of each
 * machine: no schedule takes longer than that of fewer devices, but for the part of a thousand for which fewer bytes
 * are moved; none is faster than its bound, and each passes the checker. Wishes that count devices (`on`) make another
 * problem with each device, so graphs that have them are left out.
 *
 * more [--seed K] [--count N] MACHINE.json ...
 */
#include "families.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EQUAL 1.001 /* what two makespans may differ by and count as equal */

static int failures;

static void report(const family *f, uint64_t seed, const gantry_machine *m, const char *text)
{
    failures++;
    printf("FAILED graph %llu (%s) on %s: %s\n", (unsigned long long)seed, f->name, gantry_machine_name(m), text);
}

/* In us; negative: something is wrong, and was told. */
static double makespan_on(const family *f, uint64_t seed, const gantry_machine *m)
{
    gantry_schedule *s = NULL;
    gantry_schedule_summary sum = GANTRY_SCHEDULE_SUMMARY_INIT;
    gantry_error err;
    double makespan = -1;
    if (gantry_schedule_new(&s, f->graph, m, NULL, &err) || gantry_schedule_check(s, f->graph, &err) ||
        gantry_schedule_summarize(s, &sum, &err))
        report(f, seed, m, err.text);
    else if (sum.makespan_us < sum.bound_us)
        report(f, seed, m, "is faster than its bound");
    else
        makespan = sum.makespan_us;
    gantry_schedule_free(s);
    return makespan;
}

static void try_graph(const family *f, uint64_t seed, const gantry_machine *whole)
{
    double least = -1;
    gantry_machine *m = NULL;
    for (int k = 1;; k++) {
        char count[16], text[120];
        snprintf(count, sizeof count, "%d", k);
        if (gantry_machine_select(&m, whole, count, NULL))
            return; /* there are no more */
        double now = makespan_on(f, seed, m);
        snprintf(text, sizeof text, "%.17g us, and %.17g us with fewer", now, least);
        if (least > 0 && now > least * EQUAL)
            report(f, seed, m, text);
        least = least < 0 || (now > 0 && now < least) ? now : least;
        gantry_machine_free(m);
    }
}

int main(int argc, char **argv)
{
    uint64_t seed = 0, graphs = 1;
    long wishes = 0, tried = 0;
    for (int i = 1; i < argc; i++) {
        gantry_machine *m = NULL;
        gantry_error err;
        if (i + 1 < argc && !strcmp(argv[i], "--seed")) {
            seed = strtoull(argv[++i], NULL, 10);
            continue;
        }
        if (i + 1 < argc && !strcmp(argv[i], "--count")) {
            graphs = strtoull(argv[++i], NULL, 10);
            continue;
        }
        if (gantry_machine_load(&m, argv[i], &err)) {
            fprintf(stderr, "%s: no machine: %s\n", argv[i], err.text);
            return 2;
        }
        for (uint64_t k = seed; k < seed + graphs; k++) {
            family f;
            family_make(&f, k, false);
            bool skip = gantry_graph_check(f.graph, &err) || f.wishes;
            wishes += skip;
            tried += !skip;
            if (!skip)
                try_graph(&f, k, m);
            gantry_graph_free(f.graph);
        }
        gantry_machine_free(m);
    }
    printf("%ld graphs, %ld left out, %d failures\n", tried, wishes, failures);
    return failures || !tried ? 1 : 0;
}
