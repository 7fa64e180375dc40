/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers that the tests of importing share. Every call fails the test when something goes wrong. */
#ifndef TESTS_UNIT_IMPORT_SUITE_H
#define TESTS_UNIT_IMPORT_SUITE_H

#include <check.h>
#include <gantry/gantry.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct refused {
    const char *text;
    const char *message; /* "t:LINE:COLUMN: POINTER: TEXT" without the "t" */
} refused;

/* A graph with its machine in it; NULL options are allowed. */
gantry_graph *import_text(const char *format, const char *text, const gantry_import_options *options);
/* The predicted time in us on the graph's own machine. */
double makespan(gantry_graph *graph, const char *policy);
/* The same from a text to the end; the graph also has to survive being written and read, with the same time. */
double time_of(const char *format, const char *text, int devices, const char *policy);
/* The normal form must have this line, or piece of one; or must not have it. */
void check_has(const gantry_graph *graph, const char *piece);
void check_has_not(const gantry_graph *graph, const char *piece);
/* The message, as people see it, of a text that must be refused, the file being called "t"; static. */
const char *refusal(const char *format, const char *text, const gantry_import_options *options);
void check_refusals(const char *format, const refused *samples, size_t count);
#define CHECK_REFUSALS(format, samples) check_refusals((format), (samples), sizeof(samples) / sizeof *(samples))
int run_cases(const char *name, const TTest *const *cases, size_t count);
#define RUN_CASES(name, cases) run_cases((name), (cases), sizeof(cases) / sizeof *(cases))

/* One small file of each format, for fuzzing and faults. */
extern const char sample_stg[], sample_dnn[], sample_dot[], sample_wfcommons[], sample_wfcommons_old[];

#endif
