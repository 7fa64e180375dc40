/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers that the tests of graph files share. */
#ifndef TESTS_UNIT_GRAPH_JSON_SUITE_H
#define TESTS_UNIT_GRAPH_JSON_SUITE_H

#include "graph/graph.h"
#include <check.h>
#include <gantry/graph.h>
#include <stdbool.h>
#include <stdlib.h>

/* Runs the cases with every one in its own process; the exit code of the program. */
int run_cases(const char *name, const TTest *const *cases, size_t count);
#define RUN_CASES(name, cases) run_cases((name), (cases), sizeof(cases) / sizeof *(cases))

/* The graph in the text; fails the test with the message if there is none. */
gantry_graph *graph_of(const char *text);
gantry_graph *graph_with(const char *text, const gantry_load_options *options);
/* The message of a text that is no graph, as people see it, file name "t"; valid until the next call. */
const char *error_of(const char *text);
const char *error_with(const char *text, const gantry_load_options *options);
/* The normal form; free with gantry_free. */
char *json_of(const gantry_graph *graph);
/* Fails unless reading the normal form and writing it again gives the same bytes. */
void check_stable(const gantry_graph *graph);
/* The line of the normal form that has `part`, without blanks around it and comma behind it; free() it. */
char *line_with(const gantry_graph *graph, const char *part);
/* Calls `each` for every file below the source folder that ends in .json, in order of their names. */
void each_json(const char *folder, void (*each)(const char *path));

#define NODE(graph, name) (&(graph)->nodes.at[gantry_graph_find_node((graph), (name)).id])

#endif
