/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Formulas over the elements of arrays: what map nodes of a graph compute. Like base/expr.h in looks, other in meaning:
 * a name stands for all elements of a region, or for a number that the node gives.
 *
 *   expr := comparison (== != < <= > >=) | + - | * / | unary - | number | name | function(expr, ...) | ( expr )
 *
 * Precedence is Python's, comparisons do not chain. A formula is read once (parse.c), then given types for the element
 * types of its arguments (types.c): a program, whose steps the host carries out for some elements at a time (run.c)
 * and CUDA code is written from. Sizes are bounded, so that no text can exhaust memory or the stack.
 */
#ifndef GY_MATHS_MATHS_H
#define GY_MATHS_MATHS_H

#include "base/arena.h"
#include "base/text.h"
#include "kernel/dtype.h"
#include <gantry/kernel.h>

enum { GY_MATHS_ARGS = 32, GY_MATHS_RESULTS = 8, GY_MATHS_NODES = 256, GY_MATHS_DEPTH = 64, GY_MATHS_TEXT = 4096 };

typedef enum gy_maths_op {
    GY_MATHS_NUMBER,
    GY_MATHS_ARG,
    GY_MATHS_NEGATE,
    GY_MATHS_ADD,
    GY_MATHS_SUB,
    GY_MATHS_MUL,
    GY_MATHS_DIV,
    GY_MATHS_EQ,
    GY_MATHS_NE,
    GY_MATHS_LT,
    GY_MATHS_LE,
    GY_MATHS_GT,
    GY_MATHS_GE,
    GY_MATHS_SELECT,
    GY_MATHS_MIN,
    GY_MATHS_MAX,
    GY_MATHS_ABS,
    GY_MATHS_SQUARE,
    GY_MATHS_FLOOR,
    GY_MATHS_CEIL,
    GY_MATHS_SQRT,
    GY_MATHS_RSQRT,
    GY_MATHS_EXP,
    GY_MATHS_LOG,
    GY_MATHS_SIN,
    GY_MATHS_COS,
    GY_MATHS_TANH,
    GY_MATHS_ERF,
    GY_MATHS_POW,
    GY_MATHS_CAST,
    GY_MATHS_MOVE, /* of programs only: the value, converted to the type of the step */
    GY_MATHS_OPS
} gy_maths_op;

/* One node of a tree. Operands come before the nodes that use them. */
typedef struct gy_maths_node {
    gy_maths_op op;
    gantry_dtype cast; /* of a cast */
    bool is_real;      /* of a number: it was written with a point or an exponent */
    double real;       /* of a number */
    int64_t whole;     /* of a number that is not real */
    uint32_t operand[3];
    uint32_t arg;
    uint32_t at; /* where it stands in the text of its formula */
} gy_maths_node;

/* How elements become one: a formula "sum(square(x))" is the reduction sum of the tree of square(x). */
typedef enum gy_maths_reduction {
    GY_MATHS_TOTAL = 1, /* sum */
    GY_MATHS_MEAN,
    GY_MATHS_LEAST,
    GY_MATHS_MOST,
    GY_MATHS_REDUCTIONS
} gy_maths_reduction;

/* One formula and the argument that it gives its elements to. */
typedef struct gy_maths_result {
    gy_maths_reduction reduction; /* 0: a map */
    const char *text;
    uint32_t arg, root;
} gy_maths_result;

/* The formulas of a map node, or of a reduce node. All see the elements as they were before; then results are written.
 */
typedef struct gy_maths {
    bool reduces; /* each formula is a reduction of all elements to one; said before the first is added */
    uint32_t args, results, nodes;
    const char *arg[GY_MATHS_ARGS];
    bool is_read[GY_MATHS_ARGS], is_written[GY_MATHS_ARGS];
    gy_maths_result result[GY_MATHS_RESULTS];
    gy_maths_node node[GY_MATHS_NODES];
} gy_maths;

/* parse.c: adds "name = text" to a struct that was all zero at first; names and texts are copied to the arena. Messages
 * say the formula, the character, what is there and what helps; `where` may be NULL. */
gantry_status gy_maths_add(gy_maths *maths, gy_arena *arena, const char *name, const char *text, gantry_status status,
                           const char *where, gantry_error *err);
/* All formulas of "y = sqrt(x); z = x + 1". */
gantry_status gy_maths_add_all(gy_maths *maths, gy_arena *arena, const char *text, gantry_status status,
                               const char *where, gantry_error *err);
/* "y = sqrt(x); z = x + 1": maths with equal texts are equal. */
void gy_maths_print(gy_text *to, const gy_maths *maths);
/* Is it the name of a function, so that no argument can have it? */
bool gy_maths_is_function(const char *name, size_t length);

/* ---- programs: formulas whose arguments have types ---- */

typedef enum gy_maths_type {
    GY_MATHS_I64,
    GY_MATHS_F32,
    GY_MATHS_F64,
} gy_maths_type;

/* A name stands for a number or a region. */
typedef struct gy_maths_kind {
    bool is_number;     /* the node gives it a number, which counts as real */
    gantry_dtype dtype; /* else a region with elements of this type */
} gy_maths_kind;

/* One operation on all elements. Values are known by number: those of arguments first, then one a step. */
typedef struct gy_maths_step {
    gy_maths_op op;
    gy_maths_type type;    /* of the operands; MOVE and CAST: of the operand; SELECT: of what is selected */
    gy_maths_type to;      /* of the value */
    gy_maths_type if_type; /* SELECT: of the condition */
    gantry_dtype cast;
    bool is_fixed; /* it follows from numbers alone, so it is carried out once and not for each element */
    uint32_t operand[3];
    uint32_t slot; /* where the host keeps the value */
    double real;
    int64_t whole;
} gy_maths_step;

/* Each operand may want a conversion, each result a move and a conversion. */
enum { GY_MATHS_STEPS = 4 * GY_MATHS_NODES + 2 * GY_MATHS_RESULTS };

typedef struct gy_maths_program {
    const gy_maths *maths;
    const gy_maths_kind *kind;             /* by argument */
    gy_maths_type arg_type[GY_MATHS_ARGS]; /* as which elements or numbers are computed with */
    const gy_maths_step *step;
    uint32_t steps, slots;
    uint32_t value[GY_MATHS_RESULTS]; /* by result: the number of the value that is stored */
    gy_maths_type value_type[GY_MATHS_RESULTS];
    double flops; /* for one element */
} gy_maths_program;

/* types.c: NULL in *out on an error, which names what does not fit and the cast that helps. */
gantry_status gy_maths_make_program(const gy_maths_program **out, gy_arena *arena, const gy_maths *maths,
                                    const gy_maths_kind *kind, gantry_status status, const char *where,
                                    gantry_error *err);

/* cuda.c: CUDA C of a program, which needs no headers: a kernel `name` whose parameters are the arguments (regions as
 * pointers, numbers as double), then the count of elements, then for each region that is only read 1, or 0 where its
 * one element is for all; these as long long. A block of GY_MATHS_BLOCK threads does GY_MATHS_BLOCK_ELEMENTS. */
enum { GY_MATHS_BLOCK = 256, GY_MATHS_BLOCK_ELEMENTS = 4 * GY_MATHS_BLOCK };
void gy_maths_print_cuda(gy_text *to, const gy_maths_program *program, const char *name);

/* reduce.c: the elements of a reduce node in a stated order: lane i of 256 takes elements i, i + 256, ... of a segment
 * of 65,536; then lanes i and i + 128, i + 64, ... meet; then neighbouring segments, and neighbouring pairs of them,
 * and so on. Real numbers are added in double, whole ones in int64_t. */
enum { GY_MATHS_SEGMENT = 65536 };

/* run.c: a gantry_kernel_fn whose `user` is the program; further arguments of the launch are not looked at. */
gantry_status gy_maths_run(const gantry_launch *launch);
/* The check of such a kernel: regions have one shape, or one element and are read only. */
gantry_status gy_maths_check(const gantry_launch *launch, char *text, size_t size);

#endif
