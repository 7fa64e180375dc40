/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs have work nodes, which cannot run. Included before random_graph.c, this makes them launches of a
 * function that mixes what it reads into what it writes, exactly whatever the order of sums. */
#ifndef TESTS_PACKING_AS_LAUNCH_H
#define TESTS_PACKING_AS_LAUNCH_H

#include <gantry/graph.h>

gantry_node mixing_launch(gantry_graph *graph, const char *id);
#undef gantry_graph_work
#define gantry_graph_work mixing_launch

#endif
