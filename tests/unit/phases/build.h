/* SPDX-License-Identifier: Apache-2.0 */
/* Small graphs with loops, for the tests of phases. Every call fails the test when something goes wrong. */
#ifndef TESTS_PHASES_BUILD_H
#define TESTS_PHASES_BUILD_H

#include <check.h>

#include "schedule/schedule.h"
#include "support/run_suite.h"
#include <gantry/gantry.h>

/* f64, one dimension. */
gantry_buffer vector(gantry_graph *g, const char *name, int64_t rows);
/* to[k] = factor * from[k], by a function of the test; `factor` must live as long as the run. */
gantry_node scale(gantry_graph *g, const char *id, gantry_region from, gantry_region to, double *factor);
/* Adds the first element of `from` to that of `to`, a contribution. */
gantry_node add_to(gantry_graph *g, const char *id, gantry_region from, gantry_region to);
/* flag = launch->iteration + 1 >= *at. */
gantry_node flag_at(gantry_graph *g, const char *id, gantry_region flag, int64_t *at);

/* Scheduled for virtual devices; `unroll` as in the options. */
gantry_schedule *plan(gantry_graph *g, int devices, int64_t unroll);
gantry_run *open_run(gantry_schedule *s, const char *backend, bool check);
/* One start; the contents of an output, valid until the next. */
void start(gantry_run *run);
const double *result(gantry_run *run, gantry_buffer b);
uint64_t iterations(gantry_run *run);

#endif
