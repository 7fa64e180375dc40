/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Kernels as the rest of the library sees them: manifests with their expressions compiled. No code of kernels is here;
 * the table of the library's own kernels is in kernels/builtin.c.
 */
#ifndef GY_KERNEL_REGISTRY_H
#define GY_KERNEL_REGISTRY_H

#include "base/arena.h"
#include "base/expr.h"
#include <gantry/kernel.h>
#include <stdbool.h>

/* The library's own manifests, sorted by name; *count of them. Defined in kernels/builtin.c. */
const gantry_kernel *const *gy_builtin_kernels(size_t *count);

/* CUDA code that a program brings: an image, a function that gives the handle for a device, a text for NVRTC, or a
 * function that launches by itself. */
typedef struct gy_kernel_program {
    const void *image;
    size_t bytes;
    void *(*function)(void *user, int32_t device_ordinal);
    void *user;
    int64_t shared_bytes;
    const char *source;
    gantry_kernel_fn launch;
} gy_kernel_program;

/* The words that a graph file gives to the compilers of its code; lists that end with NULL, none of which is NULL. */
typedef struct gy_code_build {
    const char *const *flag;
    const char *const *include; /* folders, joined with the graph's */
    const char *const *library; /* names, of host code */
} gy_code_build;

/* A user kernel's code, as a graph file names it or a program gives it. What is not given is NULL. */
typedef struct gy_kernel_code {
    const char *cuda, *host, *entry;   /* paths joined with the graph's folder; the symbol to call */
    const char *folder;                /* the graph's, which the files must not leave */
    const gy_expr *grid[3], *block[3]; /* over the same names as costs */
    const gy_expr *finish;             /* the blocks of a second function, which ends the work; NULL: there is none */
    const gy_expr *waits;              /* how often a block waits for memory in turn, beyond once; NULL: not known */
    const gy_expr *overhead;           /* flops of f32 that GPUs take beside those of the manifest; NULL: none */
    const gantry_dtype *types;         /* by argument of the manifest: how a scalar is passed to CUDA code */
    const gy_expr *const *fallback;    /* by argument: over regions, a scalar that a node does not give; else NULL */
    const gy_kernel_program *program;  /* in place of `cuda` */
    const gy_code_build *build;        /* NULL: compilers get the usual words alone */
} gy_kernel_code;

/* The program's own function launches it on GPUs. */
static inline bool gy_kernel_code_launches(const gy_kernel_code *code)
{
    return code && code->program && code->program->launch;
}

struct gy_maths;
struct gy_maths_program;

/* A kernel in use by one graph. */
typedef struct gy_kernel {
    const gantry_kernel *manifest;
    const gy_expr *flops, *bytes, *scratch; /* NULL: the defaults of the manifest */
    const gy_expr *waits;                   /* of the library's; else as code->waits, or NULL */
    const gy_expr *form;                    /* of the library's: 1 where a call has its form, or NULL */
    const gy_kernel_code *code;             /* NULL: a kernel of the library or of the program */
    const char *like; /* a kernel of the library that goes through memory in the same way; NULL: not known */
    const struct gy_maths *maths;           /* the formulas of map nodes; NULL: it is no such kernel */
    const struct gy_maths_program *program; /* the same with types; NULL: those of arguments are not known yet */
    const struct gy_maths *formula; /* those of a map node, or what the manifest says that it computes, with arguments
                                       in the manifest's order; NULL: it says nothing */
} gy_kernel;

/* An expression over the arguments of a manifest, compiled into the arena; NULL for a NULL text. `what` names it in
 * messages ("flops"). */
gantry_status gy_kernel_formula(const gy_expr **out, gy_arena *arena, const gantry_kernel *manifest, const char *what,
                                const char *text, gantry_error *err);
/* A manifest as a program gives it, in the version of the library: itself, or a copy in `arena` where the program has
 * other sizes of it or of its arguments. */
gantry_status gy_kernel_read(const gantry_kernel **manifest, gy_arena *arena, const gantry_kernel *given,
                             gantry_error *err);
/* Checks a manifest of the library's version (names, masks, expressions that parse and use known names) and compiles it
 * into `arena`. Fills everything of `out` but `code`. */
gantry_status gy_kernel_compile(gy_kernel *out, gy_arena *arena, const gantry_kernel *manifest, gantry_error *err);
/* True if an expression of the manifest may use this name: "n" (a scalar), "x.rows", "x.size", "x.bytes", "x.count",
 * "x.shape0", "x.shape1", ..., "x.last0", ..., and as in gantry_arg "x.first_row", "x.own_first", "x.own_rows" (a
 * region; a shape past its rank is found when it is evaluated). */
bool gy_kernel_knows(const gantry_kernel *manifest, const char *name);
/* A gy_expr_lookup over a launch whose arguments are named as in the manifest; `context` is the gantry_launch. */
bool gy_launch_lookup(void *context, const char *name, int64_t *integer, double *real, bool *is_real);
/* True if workers of resident kernels can carry it out: a kernel of the library that has a device form, formulas, or
 * code of users that says so. */
bool gy_kernel_for_workers(const gy_kernel *kernel);
/* True if a library may make several launches of the kernel by one call: products of matrices. */
bool gy_kernel_batches(const gantry_kernel *manifest);
/* Index of the argument, or -1. */
int gy_kernel_find_arg(const gantry_kernel *manifest, const char *name);
/* The bytes of a region as handed over: of all items where it is a list. */
int64_t gy_arg_bytes(const gantry_arg *arg);
/* Evaluates flops, bytes and scratch of a launch (data pointers may be NULL). Negative results are refused. Without
 * expressions: 0 flops, the bytes that are read and written, no scratch. */
gantry_status gy_kernel_cost(const gy_kernel *kernel, const gantry_launch *launch, double *flops, double *bytes,
                             int64_t *scratch, gantry_error *err);
/* Blocks of a launch of the kernel's CUDA code, UINT32_MAX for more; 0: not known. */
uint32_t gy_kernel_blocks(const gy_kernel *kernel, const gantry_launch *launch);
/* chains.c: how often a launch of a kernel of the library waits for memory in turn on a GPU, over the arguments of its
 * manifest; NULL: not known. */
const char *gy_kernel_chain(const char *kernel);
/* How often a launch waits for memory in turn on a GPU, beyond once; 0: not known. */
uint32_t gy_kernel_waits(const gy_kernel *kernel, const gantry_launch *launch);
/* forms.c: calls of a kernel of the library that are carried out in another way; `name` is what tables of measured
 * times call them, `when` an expression over the arguments of the manifest. NULL: all calls are alike. */
typedef struct gy_kernel_form {
    const char *kernel, *name, *when;
} gy_kernel_form;
const gy_kernel_form *gy_kernel_form_of(const char *kernel);
/* The name that tables have for a launch of that form; NULL: as the kernel. */
const char *gy_kernel_form_name(const gy_kernel *kernel, const gantry_launch *launch);
/* Flops of f32 that a GPU takes beside those of the manifest. */
double gy_kernel_overhead(const gy_kernel *kernel, const gantry_launch *launch);

#endif
