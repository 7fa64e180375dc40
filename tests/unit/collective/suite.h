/* SPDX-License-Identifier: Apache-2.0 */
/* Groups and machines for the tests of collectives. Every call fails the test when something goes wrong. */
#ifndef TESTS_COLLECTIVE_SUITE_H
#define TESTS_COLLECTIVE_SUITE_H

#include <check.h>

#include "scheduler/collective/collective.h"

gantry_machine *parse(const char *json);
/* A file of graphs/machines; `tables`: with what was measured of collectives. */
gantry_machine *load(const char *name, bool tables);
/* The first `ranks` memories behind the host's. Parts as even as they get; `bytes` as in gy_group. */
gy_group group(gantry_collective kind, uint32_t ranks, int64_t bytes);
/* The same with the given parts, in bytes, of ranks 0, 1, 2 ... */
gy_group uneven(gantry_collective kind, uint32_t ranks, const int64_t *part);

gy_way look(const gantry_machine *m, const gy_group *g, gy_algorithm a);
gy_way choose(const gantry_machine *m, const gy_group *g);
double us(gy_ticks t);

#endif
