/* SPDX-License-Identifier: Apache-2.0 */
/* Writing the normal form: everything resolved, one node a line. Reading it and writing again gives the same bytes. */
#ifndef GY_GRAPH_JSON_JSON_WRITE_H
#define GY_GRAPH_JSON_JSON_WRITE_H

#include "base/json.h"
#include "graph/graph.h"

/* Any JSON value on one line, in the order of the file, numbers at their shortest. */
void gy_json_text(gy_text *to, const json_t *value);
/* A double; whole numbers without a fraction. */
void gy_write_number(gy_text *to, double value);
/* ", "KEY": ", without the comma behind an opening bracket. */
void gy_write_key(gy_text *to, const char *key);
/* An expression as a string, or as a number if it is one. */
void gy_write_expr(gy_text *to, const gy_expr *e);
/* The name of a file as the graph gave it: without the graph's folder. */
void gy_write_path(gy_text *to, const gantry_graph *graph, const char *path);
/* `"random": {...}` and the like: what a fill writes, and all first contents but a plain number. */
void gy_write_constant(gy_text *to, gy_constant value);
void gy_write_generator(gy_text *to, const gantry_graph *graph, const gy_init *init);
void gy_write_kernels(gy_text *to, const gantry_graph *graph);
/* `"map": {...}` or `"reduce": {...}`, of a node or of a kernel. */
void gy_write_formulas(gy_text *to, const struct gy_maths *maths);
/* One node, in braces. */
void gy_write_node(gy_text *to, const gantry_graph *graph, uint32_t node);

#endif
