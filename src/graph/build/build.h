/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Building calls that only a reader of graph files needs. They follow the rules of the public ones: the first mistake
 * sticks to the graph (graph->error, with the source location that was set last), later calls do nothing, strings are
 * copied.
 *
 * A reader: gy_graph_set_source, gy_graph_unique_ids, then for every object of the file gy_graph_set_origin with its
 * pointer and the building calls, then gantry_graph_check. A node keeps the pointer at which it was added; mistakes
 * that only gantry_graph_check can see are reported at that pointer plus "/args/NAME" and the like.
 */
#ifndef GY_GRAPH_BUILD_BUILD_H
#define GY_GRAPH_BUILD_BUILD_H

#include "graph/graph.h"
#include "maths/maths.h"

/* The name of the file in messages, its path (NULL: not from a file that can be read again) and folder (or NULL). */
void gy_graph_set_source(gantry_graph *graph, const char *source, const char *path, const char *folder);
/* Sets the source location of the next building calls. It is cheap: only things that are added, or an error, keep it.
 */
void gy_graph_set_origin(gantry_graph *graph, const char *pointer);
/* Pointers that are set lead into the file that is used there, until it is said anew; NULL: into the graph's own. In
 * the graph's arena. */
void gy_graph_set_use(gantry_graph *graph, const gy_used_at *use);
/* From now on a node id that is taken is an error instead of becoming "id#1". */
void gy_graph_unique_ids(gantry_graph *graph);
/* A param of the graph, for writing it out and for the schedule; the name is copied. */
void gy_graph_add_param(gantry_graph *graph, const char *name, int64_t integer, double real, bool is_real);
/* The `machine` key: an object as JSON text, or the path of a file. */
void gy_graph_set_machine(gantry_graph *graph, const char *json, const char *path);
/* Nodes from `first` on are another graph, used with so many uses around it. False: out of memory. */
bool gy_graph_note_use(gantry_graph *graph, uint32_t first, uint32_t depth);
/* A reader's own mistake at the current origin: the first one sticks. */
void gy_graph_mistake(gantry_graph *graph, gantry_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A kernel with code in files. Manifest, code and everything they point to must live in graph->arena. */
void gy_graph_add_kernel_code(gantry_graph *graph, const gantry_kernel *manifest, const gy_kernel_code *code);

/* Sets the first contents of a buffer. A path is copied as it is: the caller has joined it with the folder. */
void gy_buffer_set_init(gantry_graph *graph, gantry_buffer buffer, const gy_init *init);
/* Tiles of the buffer, which nobody names yet, lie in memory with so many elements around them: GANTRY_TILE_AXES
 * entries. */
void gy_buffer_halo(gantry_graph *graph, gantry_buffer buffer, const int64_t *before, const int64_t *after);
/* A fill with anything a gy_init can say but files and spd. */
gantry_node gy_graph_fill_with(gantry_graph *graph, const char *id, gantry_region to, const gy_init *what);
/* A map node: gantry_graph_map with formulas that are read already, in the graph's arena. */
gantry_node gy_graph_map_with(gantry_graph *graph, const char *id, const gy_maths *maths);
/* "host": NAME in a file: the host version of kernel NAME, always on the CPU. Arguments as for a kernel node. */
gantry_node gy_graph_host_kernel(gantry_graph *graph, const char *id, const char *kernel);
/* A scalar of which no digit is lost. */
void gy_node_scalar_constant(gantry_graph *graph, gantry_node node, const char *name, gy_constant value, bool dynamic);
/* Params and indices may be called so: letters, digits and _, not a digit first. */
bool gy_is_expr_name(const char *name);
/* Such a name has a meaning in expressions already. */
bool gy_is_expr_word(const char *name);
/* A scalar as an expression over indices of loops (in graph->arena); constant ones become numbers. */
void gy_node_scalar_expr(gantry_graph *graph, gantry_node node, const char *name, const gy_expr *expr, bool dynamic);
/* The flag of a `when` within that of another, both of which are flags (gy_build_is_flag): both must be set where the
 * nodes that this adds are, ahead of its own.
 */
gantry_region gy_build_within(gantry_graph *graph, gantry_region outer, gantry_region inner);
/* An expression over `devices` (in graph->arena). */
void gy_node_on_expr(gantry_graph *graph, gantry_node node, const gy_expr *expr);
/* Collectives: what `on` says so far is said of the next rank. */
void gy_node_on_rank(gantry_graph *graph, gantry_node node);

#endif
