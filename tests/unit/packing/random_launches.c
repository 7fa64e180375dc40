/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs that run: their work nodes become launches. */
#include "as_launch.h"

#include "unit/scheduler/random_graph.c"
