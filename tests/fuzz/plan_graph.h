/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FUZZ_PLAN_GRAPH_H
#define TESTS_FUZZ_PLAN_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The text of a graph that the bytes choose, perhaps with automatic splits; NULL: out of memory. To be freed. */
char *fuzz_plan_graph(const uint8_t *data, size_t size, bool automatic);

#endif
