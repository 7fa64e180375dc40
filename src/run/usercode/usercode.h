/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Kernels whose host version is named in a graph file: a C file, compiled with the system's compiler ($CC, else cc)
 * into a shared object, or a shared object. Compiled ones are kept (base/cache.h) under a name made from the
 * preprocessed text with its macros, the compiler's file or version and all words of its command, so that nothing is
 * compiled twice. What was compiled is loaded from a copy in memory that nobody can change.
 *
 * The function has the type gantry_kernel_fn; its name is `entry`, else the kernel's name.
 */
#ifndef GY_RUN_USERCODE_H
#define GY_RUN_USERCODE_H

#include "graph/graph.h"
#include "run/usercode/said.h"

/* Open shared objects and the functions found in them, per kernel of the graph; kernels in the same file share an
 * object, which the first of them holds. Zero-initialised is ready. */
typedef struct gy_user_code {
    gantry_kernel_fn *function; /* NULL entries: not loaded */
    void **object;              /* NULL entries: not loaded, or held by another kernel */
    uint32_t count;
    gy_said said; /* who hears what compilers say */
} gy_user_code;

/* Loads the code of one kernel of the graph, which has some. Loading twice is fine. E_IO: the file, the cache or the
 * compiler; E_TIMEOUT: the compiler does not end; E_GRAPH: it does not compile, load, or has no such function, with the
 * first lines of the output. */
gantry_status gy_user_code_load(gy_user_code *code, const gantry_graph *graph, uint32_t kernel, gantry_error *err);
void gy_user_code_free(gy_user_code *code);

/* A shared object in memory; `at` is gy_free's. */
typedef struct gy_object {
    char *at;
    size_t bytes;
} gy_object;

/* usercode_compile.c: what a C file is compiled to, or what was kept of it. */
gantry_status gy_compile_c(gy_object *object, const char *source, const gy_code_build *build, gy_said said,
                           gantry_error *err);

/* Which compiler texts are compiled by, which the first one asks. Zero-initialised is ready. */
typedef struct gy_text_compiler {
    uint64_t hash;
    bool known;
} gy_text_compiler;

/* The same of a text of our own that includes nothing, with flags for loops; messages call it formulas.c. Where it is
 * kept nothing is started for it, but for the first one the preprocessor, which tells the macros of this computer. */
gantry_status gy_compile_text(gy_object *object, const char *text, size_t length, gy_text_compiler *by,
                              gantry_error *err);
/* usercode.c: loads `from` by a copy in memory that nobody can change; `source` is for messages. */
gantry_status gy_object_load(void **object, const gy_object *from, const char *source, gantry_error *err);

/*
 * formulas.c: steps of formulas, compiled where $GANTRY_COMPILE_FORMULAS is 1; by kernel of the graph. What cannot be
 * compiled is carried out step by step as ever, and after the first such one no more is tried.
 */
typedef struct gy_formulas {
    struct gy_maths_code *code; /* NULL entries: not compiled */
    void **object;
    uint32_t count, compiled;
    gy_text_compiler by;
    char *why; /* nothing more is compiled; NULL: all went well */
} gy_formulas;

/* The compiled code of a map or reduce kernel; NULL: carry its steps out. */
const struct gy_maths_code *gy_formulas_find(gy_formulas *formulas, const gantry_graph *graph, uint32_t kernel);
void gy_formulas_free(gy_formulas *formulas);

#endif
