/* SPDX-License-Identifier: Apache-2.0 */
#include "maths/ops.h"

/* Divisions and roots take a processor several times as long as a sum, the other functions a dozen times and more. */
enum { LONG = 4, LONGER = 16 };

const gy_maths_op_info gy_maths_ops[GY_MATHS_OPS] = {
    [GY_MATHS_NUMBER] = { .name = "" },
    [GY_MATHS_ARG] = { .name = "" },
    [GY_MATHS_MOVE] = { .name = "", .operands = 1 },
    [GY_MATHS_CAST] = { .name = "", .operands = 1, .flops = 1 },
    [GY_MATHS_NEGATE] = { .name = "-", .operands = 1, .flops = 1 },
    [GY_MATHS_ADD] = { "+", GY_MATHS_SUM, 2, false, false, 1, NULL },
    [GY_MATHS_SUB] = { "-", GY_MATHS_SUM, 2, false, false, 1, NULL },
    [GY_MATHS_MUL] = { "*", GY_MATHS_PRODUCT, 2, false, false, 1, NULL },
    [GY_MATHS_DIV] = { "/", GY_MATHS_PRODUCT, 2, false, true, LONG, NULL },
    [GY_MATHS_EQ] = { "==", GY_MATHS_COMPARE, 2, false, false, 1, NULL },
    [GY_MATHS_NE] = { "!=", GY_MATHS_COMPARE, 2, false, false, 1, NULL },
    [GY_MATHS_LT] = { "<", GY_MATHS_COMPARE, 2, false, false, 1, NULL },
    [GY_MATHS_LE] = { "<=", GY_MATHS_COMPARE, 2, false, false, 1, NULL },
    [GY_MATHS_GT] = { ">", GY_MATHS_COMPARE, 2, false, false, 1, NULL },
    [GY_MATHS_GE] = { ">=", GY_MATHS_COMPARE, 2, false, false, 1, NULL },
    [GY_MATHS_SELECT] = { "select", 0, 3, true, false, 1, "select(condition, then, else)" },
    [GY_MATHS_MIN] = { "min", 0, 2, true, false, 1, "min(a, b)" },
    [GY_MATHS_MAX] = { "max", 0, 2, true, false, 1, "max(a, b)" },
    [GY_MATHS_ABS] = { "abs", 0, 1, true, false, 1, "abs(x)" },
    [GY_MATHS_SQUARE] = { "square", 0, 1, true, false, 1, "square(x)" },
    [GY_MATHS_FLOOR] = { "floor", 0, 1, true, false, 1, "floor(x)" },
    [GY_MATHS_CEIL] = { "ceil", 0, 1, true, false, 1, "ceil(x)" },
    [GY_MATHS_SQRT] = { "sqrt", 0, 1, true, true, LONG, "sqrt(x)" },
    [GY_MATHS_RSQRT] = { "rsqrt", 0, 1, true, true, LONG + LONG, "rsqrt(x)" },
    [GY_MATHS_EXP] = { "exp", 0, 1, true, true, LONGER, "exp(x)" },
    [GY_MATHS_LOG] = { "log", 0, 1, true, true, LONGER, "log(x)" },
    [GY_MATHS_SIN] = { "sin", 0, 1, true, true, LONGER, "sin(x)" },
    [GY_MATHS_COS] = { "cos", 0, 1, true, true, LONGER, "cos(x)" },
    [GY_MATHS_TANH] = { "tanh", 0, 1, true, true, LONGER, "tanh(x)" },
    [GY_MATHS_ERF] = { "erf", 0, 1, true, true, LONGER, "erf(x)" },
    [GY_MATHS_POW] = { "pow", 0, 2, true, true, LONGER + LONGER, "pow(base, exponent)" },
};
