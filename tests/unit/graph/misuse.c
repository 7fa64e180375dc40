/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles as it is. With MISUSE set to one of the numbers below it must not: ids of different things do not mix. */
#include <gantry/graph.h>

void misuse(gantry_graph *g, gantry_buffer b, gantry_node n);
void misuse(gantry_graph *g, gantry_buffer b, gantry_node n)
{
    gantry_node_read(g, n, gantry_all(b));
    gantry_node_after(g, n, n);
    gantry_buffer_split(g, b, 2);
#if MISUSE == 1
    gantry_buffer_split(g, n, 2); /* a node for a buffer */
#elif MISUSE == 2
    gantry_node_read(g, b, gantry_all(b)); /* a buffer for a node */
#elif MISUSE == 3
    gantry_node_read(g, n, gantry_all(n)); /* a region of a node */
#elif MISUSE == 4
    gantry_node_read(g, n, b); /* a buffer for a region */
#elif MISUSE == 5
    gantry_node_after(g, n, 3); /* a number for a node */
#endif
}
