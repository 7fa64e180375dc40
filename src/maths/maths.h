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
} gy_maths_node;

/* How elements become one: a formula "sum(square(x))" is the reduction sum of the tree of square(x). A formula of a
 * reduce node that is none, 0, gives its elements beside: they are stored where they are reduced. */
typedef enum gy_maths_reduction {
    GY_MATHS_TOTAL = 1, /* sum */
    GY_MATHS_MEAN,
    GY_MATHS_LEAST,
    GY_MATHS_MOST,
    GY_MATHS_ANY,
    GY_MATHS_ALL,
    GY_MATHS_WHERE_LEAST, /* argmin */
    GY_MATHS_WHERE_MOST,
    GY_MATHS_REDUCTIONS
} gy_maths_reduction;

/* Gives it the number of an element? */
static inline bool gy_maths_finds(gy_maths_reduction reduction)
{
    return reduction == GY_MATHS_WHERE_LEAST || reduction == GY_MATHS_WHERE_MOST;
}

/* How contributions of it meet: any is the largest of them, all the least. */
static inline gy_maths_reduction gy_maths_added_by(gy_maths_reduction reduction)
{
    return reduction == GY_MATHS_ANY ? GY_MATHS_MOST : reduction == GY_MATHS_ALL ? GY_MATHS_LEAST : reduction;
}

/* One formula and the argument that it gives its elements to. */
enum { GY_MATHS_NAMED = 8 };
typedef struct gy_maths_result {
    gy_maths_reduction reduction; /* 0: a map */
    uint8_t axes;                 /* "sum(x, 0, 2)": how many axes it names; 0: the shape of the result says which */
    int16_t axis[GY_MATHS_NAMED]; /* of the model, from its end where it is negative */
    const char *text;
    uint32_t arg, root;
} gy_maths_result;

/* The formulas of a map node, or of a reduce node. All see the elements as they were before; then results are written.
 * Equal parts of formulas are one part of the tree. */
typedef struct gy_maths {
    bool reduces; /* formulas may be reductions, and one is; said before the first is added */
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
/* rewrite.c: appends a formula of `maths` with given[i] wherever it names argument i. */
void gy_maths_rewrite(gy_text *to, const gy_maths *maths, const char *text, const char *const *given);
/* adjoint.c: where derivatives begin: `text`, the adjoint of what node `root` of the tree gives; a name or a call. */
typedef struct gy_maths_seed {
    uint32_t root;
    const char *text;
} gy_maths_seed;
/* The sum over all seeds of adjoint times derivative by an argument, as a formula over arguments and what seeds name,
 * in the arena; NULL where it is 0. E_GRAPH: it would be longer than a formula may be. E_NOMEM. */
gantry_status gy_maths_differentiate(const char **out, gy_arena *arena, const gy_maths *maths, uint32_t arg,
                                     const gy_maths_seed *seed, uint32_t seeds);
/* Has the node of the tree a derivative by the argument that is not 0 everywhere? */
bool gy_maths_leads(const gy_maths *maths, uint32_t root, uint32_t arg);
/* The formula of one node of the tree; NULL: out of memory. */
const char *gy_maths_text_of(gy_arena *arena, const gy_maths *maths, uint32_t root);
/* Is it the name of a function, so that no argument can have it? */
bool gy_maths_is_function(const char *name, size_t length);

/* ---- programs: formulas whose arguments have types ---- */

typedef enum gy_maths_type {
    GY_MATHS_I64,
    GY_MATHS_F32,
    GY_MATHS_F64,
} gy_maths_type;

/* Axes [first, last) of the model, and how many such runs the regions of a node may have together: what a launch is
 * given of each (see gy_maths_print_cuda) finds room among its arguments. */
typedef struct gy_maths_axes {
    uint8_t first, last;
} gy_maths_axes;
enum { GY_MATHS_AXES = 32, GY_MATHS_RUNS = GY_MATHS_AXES / 2, GY_MATHS_ALL_RUNS = 64 };

/* Axes of a model, as runs of neighbours, in order: each pair has an axis of more than one element between it. */
typedef struct gy_maths_runs {
    uint32_t count;
    gy_maths_axes at[GY_MATHS_RUNS];
} gy_maths_runs;

static inline bool gy_maths_is_along(const gy_maths_runs *runs, uint32_t axis)
{
    for (uint32_t i = 0; i < runs->count; i++)
        if (axis >= runs->at[i].first && axis < runs->at[i].last)
            return true;
    return false;
}
/* The first axis of all runs, and what is behind the last; 0 where there are none. */
static inline uint32_t gy_maths_begin_of(const gy_maths_runs *runs)
{
    return runs->count ? runs->at[0].first : 0;
}
static inline uint32_t gy_maths_end_of(const gy_maths_runs *runs)
{
    return runs->count ? runs->at[runs->count - 1].last : 0;
}

/* A name stands for a number or a region. The *model* is the shape that says how many elements there are: that of the
 * first region that a map gives; of a reduction that of a region that is read, which all others fit, or else the one
 * that all of them have together. */
typedef struct gy_maths_kind {
    bool is_number;     /* the node gives it a number, which counts as real */
    gantry_dtype dtype; /* else a region with elements of this type */
    bool is_model;      /* said of reductions only: it has the shape of the model */
    uint32_t gives;     /* the model is the shape that all have together: by bit, axes whose extents are this one's */
    uint8_t missing;    /* axes that the model has before the first of this region */
    bool is_added;      /* the result of a reduction is added to what is there */
    bool is_beside;     /* a result of a reduce node that is not reduced: it has the shape of the model */
    bool is_spread;     /* a region that is read, one element of which is for several of the model */
    uint8_t runs;       /* of spread ones: runs of neighbouring axes along which it has one element, in order; */
    gy_maths_axes run[GY_MATHS_RUNS]; /* each pair has an axis between it along which it has all, of more than one */
    gy_maths_runs along;              /* of results of reductions: the axes of the model that are reduced */
    uint8_t rank;                     /* of the model */
    bool is_columns;                  /* results of reductions: there are axes of more than one element behind these */
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

/* Where an extent of a model that is_joint comes from: an argument, and which of its axes. */
typedef struct gy_maths_axis {
    uint8_t arg, axis;
} gy_maths_axis;

/* Each operand may want a conversion, each result a move and a conversion. */
enum { GY_MATHS_STEPS = 4 * GY_MATHS_NODES + 3 * GY_MATHS_RESULTS };

typedef struct gy_maths_program {
    const gy_maths *maths;
    const gy_maths_kind *kind;             /* by argument */
    gy_maths_type arg_type[GY_MATHS_ARGS]; /* as which elements or numbers are computed with */
    const gy_maths_step *step;
    uint32_t steps, slots;
    uint32_t value[GY_MATHS_RESULTS]; /* by result: the number of the value that is stored */
    gy_maths_type value_type[GY_MATHS_RESULTS];
    double flops;           /* for one element */
    double overhead;        /* what GPUs take for it beside these, in flops of f32, */
    double thread_overhead; /* and of a reduction for each thread of a result */
    uint32_t model;         /* the argument whose shape it is; see gy_maths_kind */
    bool is_joint;          /* but the shape that all have together */
    gy_maths_axis axis[GY_MATHS_AXES];
    uint8_t rank;        /* of the model */
    gy_maths_runs along; /* of reductions: the axes of the model that are reduced */
    bool is_columns;
} gy_maths_program;

/* Do axes that are kept lie between those that are reduced? */
static inline bool gy_maths_is_apart(const gy_maths_program *program)
{
    return program->along.count > 1;
}

/* types.c: NULL in *out on an error, which names what does not fit and the cast that helps. */
gantry_status gy_maths_make_program(const gy_maths_program **out, gy_arena *arena, const gy_maths *maths,
                                    const gy_maths_kind *kind, gantry_status status, const char *where,
                                    gantry_error *err);

/* cost.c: fills `overhead` and `thread_overhead` of a program that has all else but its steps, which are given. */
void gy_maths_count(gy_maths_program *program, const gy_maths_step *step);

/* The formula that gives the argument its elements; NULL: none does. */
static inline const gy_maths_result *gy_maths_result_of(const gy_maths *maths, uint32_t arg)
{
    for (uint32_t i = 0; i < maths->results; i++)
        if (maths->result[i].arg == arg)
            return &maths->result[i];
    return NULL;
}

/* ---- shapes ---- */

/* Is the result one of a reduction? */
static inline bool gy_maths_is_reduced(const gy_maths *maths, uint32_t result)
{
    return maths->result[result].reduction != 0;
}
/* shape.c: finds the model and which axes are reduced or spread, and notes them in `kind`. The arguments have rows,
 * shapes and access modes; `varies[i]`: the scheduler cuts that region, so its rows may be others later. E_GRAPH with a
 * text where they do not fit, as NumPy's shapes would not. */
gantry_status gy_maths_fit(const gy_maths *maths, gy_maths_kind *kind, const gantry_arg *arg, const bool *varies,
                           char *text, size_t size);

/* Element i of the model, for a region that has one along a run of axes: element i / period * inner + i % inner, where
 * period is the product of the extents from the first of these axes on, and inner of those behind them. That is the
 * element of a model without these axes; so with several runs the same is done for each, from the first on, whose
 * periods and inners none of those before it has changed. */
typedef struct gy_maths_spread {
    int64_t period, inner;
} gy_maths_spread;
/* How a launch is reduced: elements (o, m, i) of outer x mid x inner become element (o, i). Axes behind the last that
 * is reduced number i; of those before, the kept ones number o and the reduced ones m, each in their order. */
typedef struct gy_maths_extents {
    int64_t outer, mid, inner;
} gy_maths_extents;
/* Shapes of regions, and of the model of a launch. */
typedef struct gy_maths_shape {
    uint32_t rank;
    int64_t extent[GY_MATHS_AXES];
} gy_maths_shape;
gy_maths_shape gy_maths_shape_of(const gantry_arg *region);
gy_maths_shape gy_maths_model(const gy_maths_program *program, const gantry_launch *launch);
bool gy_maths_same_shape(const gy_maths_shape *a, const gy_maths_shape *b);
int64_t gy_maths_shape_elements(const gy_maths_shape *shape);
gy_maths_extents gy_maths_extents_of(const gy_maths_shape *model, uint32_t first, uint32_t last);
gy_maths_extents gy_maths_reduced(const gy_maths_shape *model, const gy_maths_runs *along);
/* places.c: where element (o, m, 0) lies in the model, over inner: o and m are spread over the axes that they number.
 * `behind`: elements along the axes from the first of each run on, and from behind its last on, up to the last of all.
 */
typedef struct gy_maths_places {
    uint32_t runs;
    int64_t behind[2 * GY_MATHS_RUNS];
} gy_maths_places;
void gy_maths_find_places(gy_maths_places *places, const gy_maths_shape *model, const gy_maths_runs *along);
int64_t gy_maths_place_of(const gy_maths_places *places, int64_t o, int64_t m);
/* How many neighbours m, m + 1, ... lie side by side. */
static inline int64_t gy_maths_side_by_side(const gy_maths_places *places, int64_t m)
{
    int64_t run = places->behind[2 * places->runs - 2];
    return run - m % run;
}
/* Elements of a region. */
int64_t gy_maths_elements(const gantry_arg *arg);
/* The check of a kernel that was made for a program: regions have the shapes that the program is for. */
gantry_status gy_maths_check(const gantry_launch *launch, char *text, size_t size);

/* ---- running ---- */

/* cuda.c: CUDA C of the program of a map, which needs no headers: a kernel `name` whose parameters are the arguments
 * (regions as pointers, numbers as double), then the count of elements, then for each region that is only read its
 * step, 1, or 0 where its one element is for all; these as long long. A spread one has, for each of its runs of axes,
 * the period, if axes come before them, and the inner, if axes come behind, each with ceil(2^62 / it) behind
 * it: i / d is floor(i * that / 2^62) where i and d are below 2^30 (Granlund and Montgomery, Division by Invariant
 * Integers using Multiplication, 1994). A block of GY_MATHS_BLOCK threads does gy_maths_block_elements(), more where
 * all elements are of few bytes. */
bool gy_maths_has_step(const gy_maths_program *program, uint32_t arg); /* also if spread */
/* cuda_place.c: has a run of axes of a spread one a period, and an inner? Of a map, where axes come before or behind.
 * Those of a reduction are of the group of axes (before the reduced ones, these, behind) within which the run begins,
 * and ends; where it begins and ends with groups there are none. Where others lie between the axes that are reduced,
 * all axes are one group, as of a map. */
bool gy_maths_has_period(const gy_maths_program *program, uint32_t arg, uint32_t run);
bool gy_maths_has_inner(const gy_maths_program *program, uint32_t arg, uint32_t run);
enum { GY_MATHS_BLOCK = 256 };
int64_t gy_maths_block_elements(const gy_maths_program *program);
/* A reduction has two kernels, which are printed together, or one of them with what it needs. */
typedef enum gy_maths_printed { GY_MATHS_PRINT_ALL, GY_MATHS_PRINT_FIRST, GY_MATHS_PRINT_FINISH } gy_maths_printed;
void gy_maths_print_cuda(gy_text *to, const gy_maths_program *program, const char *name, gy_maths_printed printed);

/*
 * Reductions. The elements of a result are taken in a stated order, that of m. Where inner is 1: lane i of
 * 256 takes elements i, i + 256, ... of a segment of GY_MATHS_SEGMENT; then lanes i and i + 128, i + 64, ... meet. Else
 * lane i of GY_MATHS_COLUMN_LANES takes elements i, i + 8, ... of a segment of GY_MATHS_COLUMN, and lanes meet in the
 * same way. Then neighbouring segments meet, and
 * neighbouring pairs of them, and so on. Real numbers are added in double, whole ones in int64_t.
 *
 * Their CUDA C has two kernels with the same parameters: the arguments, outer, mid, inner, how many neighbouring
 * segments a block has, which is called a run (a power of two), and the count of runs of a result, where axes that are
 * reduced lie apart what gy_maths_places has of each run but the last number, and ceil(2^62 / it) behind all but the
 * first, for regions that are read what those of maps have, then scratch memory. The first leaves a total for each run
 * there, or gives the results if there is one; `name`_finish, a block for each result, is for more. Results of at most
 * GY_MATHS_SEGMENT elements that lie side by side have a warp each, or a part of one; but few ones of more than a
 * block's threads, at most GY_MATHS_FEW and a quarter of their elements, have a block each, as others have for a
 * segment. More than GY_MATHS_TINY_MANY of them, of at most gy_maths_tiny() elements each, are left to the second
 * kernel alone, in which a thread has GY_MATHS_TINY_EACH; a thread has gy_maths_turns() of those of at most a block's
 * threads of elements. Of columns, a thread has a lane, or all of a result, where results are many (more than
 * GY_MATHS_MANY) and low (at most GY_MATHS_LOW elements). None of this changes the order.
 */
enum { GY_MATHS_LANES = 256, GY_MATHS_SEGMENT = 8192, GY_MATHS_COLUMN_LANES = 8, GY_MATHS_COLUMN = 128 };
enum { GY_MATHS_TINY_MANY = 1 << 17, GY_MATHS_TINY_EACH = 4, GY_MATHS_TINY_BLOCKS = 6 };
enum { GY_MATHS_FEW = 256, GY_MATHS_LOW = 64, GY_MATHS_MANY = 16384 };
/* A multiprocessor has at least so many blocks of a reduction: what a division waits for, others use; and more of small
 * totals of few elements (GY_MATHS_TINY_BLOCKS). */
enum { GY_MATHS_BLOCKS = 4 };
/* Elements that a thread loads before it waits for the first of them. */
uint32_t gy_maths_ahead(const gy_maths_program *program);
/* The most elements of results that are taken together; 0: none are. Where some are, the second kernel takes compilers
 * as long as the first, and each is better compiled by itself. */
int gy_maths_tiny(const gy_maths_program *program);
/* Results of at most a block's threads of elements that a thread has one after the other, where they are more than
 * GY_MATHS_TINY_MANY. */
int gy_maths_turns(const gy_maths_program *program);
/* Neighbouring segments that a block of threads can have the totals of: 1, 2, 4 or 8. */
int gy_maths_most_run(const gy_maths *maths);
/* Bytes that one total takes in the scratch memory, which has room for one and a half times those of all segments. */
size_t gy_maths_total_bytes(const gy_maths *maths);

/* host.c: C of the program's steps, which needs no headers: a function GY_MATHS_ENTRY of the type below. */
#define GY_MATHS_ENTRY "gantry_formulas"
void gy_maths_print_c(gy_text *to, const gy_maths_program *program);
/* All steps for n elements. `value`: where the values of arguments and of fixed steps lie, by number; `result`: where
 * those of results go, which overlap with nothing. */
typedef void (*gy_maths_steps_fn)(const void *const *value, void *const *result, unsigned long long n);
typedef struct gy_maths_code {
    const gy_maths_program *program;
    gy_maths_steps_fn steps;
} gy_maths_code;
/* run.c: a gantry_kernel_fn whose `user` is a gy_maths_code; bits are those of gy_maths_run, but for NaN. */
gantry_status gy_maths_run_compiled(const gantry_launch *launch);

/* run.c: a gantry_kernel_fn whose `user` is the program; further arguments of the launch are not looked at. */
gantry_status gy_maths_run(const gantry_launch *launch);

#endif
