/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Kernels whose host version is named in a graph file: a C file, compiled with the system's compiler ($CC, else cc)
 * into a shared object, or a shared object. Compiled ones are kept in $XDG_CACHE_HOME/gantry or ~/.cache/gantry under a
 * name made from the preprocessed text, the compiler's version and the flags, so that nothing is compiled twice.
 *
 * The function has the type gantry_kernel_fn; its name is `entry`, else the kernel's name.
 */
#ifndef GY_RUN_USERCODE_H
#define GY_RUN_USERCODE_H

#include "graph/graph.h"

/* Open shared objects and the functions found in them, per kernel of the graph. Zero-initialised is ready. */
typedef struct gy_user_code {
    gantry_kernel_fn *function; /* NULL entries: not loaded */
    void **object;
    uint32_t count;
} gy_user_code;

/* Loads the code of one kernel of the graph, which has some. Loading twice is fine. E_IO: the file, the cache or the
 * compiler; E_GRAPH: it does not compile, load, or has no such function, with the first lines of the output. */
gantry_status gy_user_code_load(gy_user_code *code, const gantry_graph *graph, uint32_t kernel, gantry_error *err);
void gy_user_code_free(gy_user_code *code);

/* usercode_compile.c: the path of the shared object made from a C file (gy_free). */
gantry_status gy_compile_c(char **object, const char *source, gantry_error *err);

#endif
