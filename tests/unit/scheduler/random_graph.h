/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs that use every form of node and access. The same seed gives the same graph. */
#ifndef TESTS_SCHEDULER_RANDOM_GRAPH_H
#define TESTS_SCHEDULER_RANDOM_GRAPH_H

#include "schedule/schedule.h"

/* About `nodes` nodes. Whether it is valid is for gantry_graph_check to say: most are. */
gantry_graph *random_graph(uint64_t seed, int nodes);

#endif
