/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file gantry/import.h
 * @brief Task graphs in formats of others, as graphs of work nodes.
 *
 * What becomes of each format is in docs/importing.md. Imported graphs schedule and simulate; nobody can run them.
 */
#ifndef GANTRY_IMPORT_H
#define GANTRY_IMPORT_H

#include <gantry/graph.h>
#include <gantry/machine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gantry_import_options {
    size_t struct_size;
    int32_t devices; /* processors (dnn: accelerators) of the machine; 0: what the file says */
    int32_t reserved;
    double time_unit_us;   /* us for 1 of the file's unit of time; 0: as usual for the format */
    double bandwidth_gbs;  /* of the machine's links where the file counts bytes; 0: 1 GB/s */
    const char *node_time; /* dot: the attribute of nodes that is their time; NULL: the first that is usual */
    const char *edge_cost; /* dot: the attribute of edges that is their cost; NULL: the first that is usual */
} gantry_import_options;
#define GANTRY_IMPORT_OPTIONS_INIT                                                                                     \
    {                                                                                                                  \
        sizeof(gantry_import_options), 0, 0, 0, 0, NULL, NULL                                                          \
    }

/** The i-th format and one line about it; NULL past the last. */
GANTRY_API const char *gantry_import_format(size_t i);
GANTRY_API const char *gantry_import_summary(size_t i);

/** Reads a file in a format of others; `path` "-" is standard input. The graph is checked. If the file, or
 * `options->devices`, says what it is to run on, that machine is part of the graph as its `machine` key, and
 * `*machine` is it as well (yours; `machine` may be NULL); else `*machine` is NULL. Format "dot" starts graphviz's
 * program `dot`, unless the file is the JSON that it writes. */
GANTRY_MUST_USE gantry_status gantry_graph_import(gantry_graph **graph, gantry_machine **machine, const char *format,
                                                  const char *path, const gantry_import_options *options,
                                                  gantry_error *err);

#ifdef __cplusplus
}
#endif
#endif /* GANTRY_IMPORT_H */
