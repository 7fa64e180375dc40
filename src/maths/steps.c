/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One loop for each operation and type, which the compiler makes vector code of. The build keeps products and sums
 * apart (-ffp-contract=off), so that + - * / sqrt round once each, here as on a GPU.
 *
 * Whole numbers wrap around. min and max give NaN where one operand is NaN, as NumPy's minimum does.
 */
#include "maths/steps.h"

#include <math.h>

typedef uint64_t bits; /* arithmetic of int64_t that wraps */

#define LOOP(to_type, from_type, expression)                                                                           \
    {                                                                                                                  \
        to_type *restrict t = to;                                                                                      \
        const from_type *a = operand[0];                                                                               \
        for (size_t i = 0; i < n; i++)                                                                                 \
            t[i] = expression;                                                                                         \
        return;                                                                                                        \
    }
#define LOOP_TWO(to_type, from_type, expression)                                                                       \
    {                                                                                                                  \
        to_type *restrict t = to;                                                                                      \
        const from_type *a = operand[0], *b = operand[1];                                                              \
        for (size_t i = 0; i < n; i++)                                                                                 \
            t[i] = expression;                                                                                         \
        return;                                                                                                        \
    }

#define LEAST(x, y) ((x) < (y) || (x) != (x) ? (x) : (y))
#define MOST(x, y)  ((x) > (y) || (x) != (x) ? (x) : (y))

static void compare_whole(gy_maths_op op, void *to, const void *const operand[3], size_t n)
{
    switch (op) {
    case GY_MATHS_EQ:
        LOOP_TWO(int64_t, int64_t, a[i] == b[i])
    case GY_MATHS_NE:
        LOOP_TWO(int64_t, int64_t, a[i] != b[i])
    case GY_MATHS_LT:
        LOOP_TWO(int64_t, int64_t, a[i] < b[i])
    case GY_MATHS_LE:
        LOOP_TWO(int64_t, int64_t, a[i] <= b[i])
    case GY_MATHS_GT:
        LOOP_TWO(int64_t, int64_t, a[i] > b[i])
    default:
        LOOP_TWO(int64_t, int64_t, a[i] >= b[i])
    }
}

static void do_whole(gy_maths_op op, void *to, const void *const operand[3], size_t n)
{
    switch (op) {
    case GY_MATHS_NEGATE:
        LOOP(int64_t, int64_t, (int64_t)(0 - (bits)a[i]))
    case GY_MATHS_ADD:
        LOOP_TWO(int64_t, int64_t, (int64_t)((bits)a[i] + (bits)b[i]))
    case GY_MATHS_SUB:
        LOOP_TWO(int64_t, int64_t, (int64_t)((bits)a[i] - (bits)b[i]))
    case GY_MATHS_MUL:
        LOOP_TWO(int64_t, int64_t, (int64_t)((bits)a[i] * (bits)b[i]))
    case GY_MATHS_MIN:
        LOOP_TWO(int64_t, int64_t, a[i] < b[i] ? a[i] : b[i])
    case GY_MATHS_MAX:
        LOOP_TWO(int64_t, int64_t, a[i] > b[i] ? a[i] : b[i])
    case GY_MATHS_ABS:
        LOOP(int64_t, int64_t, a[i] < 0 ? (int64_t)(0 - (bits)a[i]) : a[i])
    case GY_MATHS_SQUARE:
        LOOP(int64_t, int64_t, (int64_t)((bits)a[i] * (bits)a[i]))
    case GY_MATHS_FLOOR:
    case GY_MATHS_CEIL:
        LOOP(int64_t, int64_t, a[i])
    default:
        compare_whole(op, to, operand, n);
    }
}

/* The same functions for float and double; `f` is how <math.h> ends its names. */
#define REAL_STEPS(name, type, f)                                                                                      \
    static void compare_##name(gy_maths_op op, void *to, const void *const operand[3], size_t n)                       \
    {                                                                                                                  \
        switch (op) {                                                                                                  \
        case GY_MATHS_EQ:                                                                                              \
            LOOP_TWO(int64_t, type, a[i] == b[i])                                                                      \
        case GY_MATHS_NE:                                                                                              \
            LOOP_TWO(int64_t, type, a[i] != b[i])                                                                      \
        case GY_MATHS_LT:                                                                                              \
            LOOP_TWO(int64_t, type, a[i] < b[i])                                                                       \
        case GY_MATHS_LE:                                                                                              \
            LOOP_TWO(int64_t, type, a[i] <= b[i])                                                                      \
        case GY_MATHS_GT:                                                                                              \
            LOOP_TWO(int64_t, type, a[i] > b[i])                                                                       \
        default:                                                                                                       \
            LOOP_TWO(int64_t, type, a[i] >= b[i])                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    static void call_##name(gy_maths_op op, void *to, const void *const operand[3], size_t n)                          \
    {                                                                                                                  \
        switch (op) {                                                                                                  \
        case GY_MATHS_EXP:                                                                                             \
            LOOP(type, type, exp##f(a[i]))                                                                             \
        case GY_MATHS_LOG:                                                                                             \
            LOOP(type, type, log##f(a[i]))                                                                             \
        case GY_MATHS_SIN:                                                                                             \
            LOOP(type, type, sin##f(a[i]))                                                                             \
        case GY_MATHS_COS:                                                                                             \
            LOOP(type, type, cos##f(a[i]))                                                                             \
        case GY_MATHS_TANH:                                                                                            \
            LOOP(type, type, tanh##f(a[i]))                                                                            \
        case GY_MATHS_ERF:                                                                                             \
            LOOP(type, type, erf##f(a[i]))                                                                             \
        case GY_MATHS_POW:                                                                                             \
            LOOP_TWO(type, type, pow##f(a[i], b[i]))                                                                   \
        default:                                                                                                       \
            compare_##name(op, to, operand, n);                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    static void do_##name(gy_maths_op op, void *to, const void *const operand[3], size_t n)                            \
    {                                                                                                                  \
        switch (op) {                                                                                                  \
        case GY_MATHS_NEGATE:                                                                                          \
            LOOP(type, type, -a[i])                                                                                    \
        case GY_MATHS_ADD:                                                                                             \
            LOOP_TWO(type, type, a[i] + b[i])                                                                          \
        case GY_MATHS_SUB:                                                                                             \
            LOOP_TWO(type, type, a[i] - b[i])                                                                          \
        case GY_MATHS_MUL:                                                                                             \
            LOOP_TWO(type, type, a[i] * b[i])                                                                          \
        case GY_MATHS_DIV:                                                                                             \
            LOOP_TWO(type, type, a[i] / b[i])                                                                          \
        case GY_MATHS_MIN:                                                                                             \
            LOOP_TWO(type, type, LEAST(a[i], b[i]))                                                                    \
        case GY_MATHS_MAX:                                                                                             \
            LOOP_TWO(type, type, MOST(a[i], b[i]))                                                                     \
        case GY_MATHS_ABS:                                                                                             \
            LOOP(type, type, fabs##f(a[i]))                                                                            \
        case GY_MATHS_SQUARE:                                                                                          \
            LOOP(type, type, a[i] * a[i])                                                                              \
        case GY_MATHS_FLOOR:                                                                                           \
            LOOP(type, type, floor##f(a[i]))                                                                           \
        case GY_MATHS_CEIL:                                                                                            \
            LOOP(type, type, ceil##f(a[i]))                                                                            \
        case GY_MATHS_SQRT:                                                                                            \
            LOOP(type, type, sqrt##f(a[i]))                                                                            \
        case GY_MATHS_RSQRT:                                                                                           \
            LOOP(type, type, 1 / sqrt##f(a[i]))                                                                        \
        default:                                                                                                       \
            call_##name(op, to, operand, n);                                                                           \
        }                                                                                                              \
    }

REAL_STEPS(floats, float, f)
REAL_STEPS(doubles, double, )

/* ---- what is no arithmetic ---- */

#define SELECT(type, if_type)                                                                                          \
    {                                                                                                                  \
        type *restrict t = to;                                                                                         \
        const if_type *c = operand[0];                                                                                 \
        const type *a = operand[1], *b = operand[2];                                                                   \
        for (size_t i = 0; i < n; i++)                                                                                 \
            t[i] = c[i] != 0 ? a[i] : b[i];                                                                            \
        return;                                                                                                        \
    }
#define SELECT_ANY(type)                                                                                               \
    switch (step->if_type) {                                                                                           \
    case GY_MATHS_F32:                                                                                                 \
        SELECT(type, float)                                                                                            \
    case GY_MATHS_F64:                                                                                                 \
        SELECT(type, double)                                                                                           \
    default:                                                                                                           \
        SELECT(type, int64_t)                                                                                          \
    }

static void select_one(const gy_maths_step *step, void *to, const void *const operand[3], size_t n)
{
    if (step->type == GY_MATHS_F32)
        SELECT_ANY(float)
    if (step->type == GY_MATHS_F64)
        SELECT_ANY(double)
    SELECT_ANY(int64_t)
}

static void fill(const gy_maths_step *step, void *to, size_t n)
{
    for (size_t i = 0; i < n && step->to == GY_MATHS_I64; i++)
        ((int64_t *)to)[i] = step->whole;
    for (size_t i = 0; i < n && step->to == GY_MATHS_F32; i++)
        ((float *)to)[i] = (float)step->real;
    for (size_t i = 0; i < n && step->to == GY_MATHS_F64; i++)
        ((double *)to)[i] = step->real;
}

static void move(const gy_maths_step *step, void *to, const void *from, size_t n)
{
    gantry_dtype dtype = step->to == GY_MATHS_F32 ? GANTRY_F32 : step->to == GY_MATHS_F64 ? GANTRY_F64 : GANTRY_I64;
    gy_maths_cast(to, from, dtype, step->type, n);
}

void gy_maths_do(const gy_maths_step *step, void *to, const void *const operand[3], size_t n)
{
    if (step->op == GY_MATHS_NUMBER)
        fill(step, to, n);
    else if (step->op == GY_MATHS_MOVE)
        move(step, to, operand[0], n);
    else if (step->op == GY_MATHS_CAST)
        gy_maths_cast(to, operand[0], step->cast, step->type, n);
    else if (step->op == GY_MATHS_SELECT)
        select_one(step, to, operand, n);
    else if (step->type == GY_MATHS_F32)
        do_floats(step->op, to, operand, n);
    else if (step->type == GY_MATHS_F64)
        do_doubles(step->op, to, operand, n);
    else
        do_whole(step->op, to, operand, n);
}
