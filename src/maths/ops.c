/* SPDX-License-Identifier: Apache-2.0 */
#include "maths/ops.h"

/*
 * A machine's rate counts a fused multiply-add as two, and formulas are compiled without fusing, so that their bits are
 * the same everywhere: each operation that is one instruction takes the place of two flops. Others are sequences.
 * Theirs were counted in what nvcc 13 makes of them for sm_90 with -fmad=false, on the path of ordinary numbers: in f32
 * each instruction takes a place; units of f64 take half as many instructions as are issued, so in f64 those of f64
 * count (with conversions, which are as slow), unless more than twice as many are issued, as the 18 of sqrt.
 *
 *                /  sqrt  exp  log  sin, cos  tanh  erf  pow
 *     f32       10    10   10   26        26    17   28   67
 *     f64        8     8   15   29        18    23   45   86
 */
#define ONE                                                                                                            \
    {                                                                                                                  \
        2, 2                                                                                                           \
    }

const gy_maths_op_info gy_maths_ops[GY_MATHS_OPS] = {
    [GY_MATHS_NUMBER] = { .name = "" },
    [GY_MATHS_ARG] = { .name = "" },
    [GY_MATHS_MOVE] = { .name = "", .operands = 1 },
    [GY_MATHS_CAST] = { .name = "", .operands = 1, .flops = ONE },
    [GY_MATHS_NEGATE] = { .name = "-", .operands = 1, .flops = ONE },
    [GY_MATHS_ADD] = { "+", GY_MATHS_SUM, 2, false, false, ONE, NULL },
    [GY_MATHS_SUB] = { "-", GY_MATHS_SUM, 2, false, false, ONE, NULL },
    [GY_MATHS_MUL] = { "*", GY_MATHS_PRODUCT, 2, false, false, ONE, NULL },
    [GY_MATHS_DIV] = { "/", GY_MATHS_PRODUCT, 2, false, true, { 20, 16 }, NULL },
    [GY_MATHS_EQ] = { "==", GY_MATHS_COMPARE, 2, false, false, ONE, NULL },
    [GY_MATHS_NE] = { "!=", GY_MATHS_COMPARE, 2, false, false, ONE, NULL },
    [GY_MATHS_LT] = { "<", GY_MATHS_COMPARE, 2, false, false, ONE, NULL },
    [GY_MATHS_LE] = { "<=", GY_MATHS_COMPARE, 2, false, false, ONE, NULL },
    [GY_MATHS_GT] = { ">", GY_MATHS_COMPARE, 2, false, false, ONE, NULL },
    [GY_MATHS_GE] = { ">=", GY_MATHS_COMPARE, 2, false, false, ONE, NULL },
    [GY_MATHS_SELECT] = { "select", 0, 3, true, false, ONE, "select(condition, then, else)" },
    [GY_MATHS_MIN] = { "min", 0, 2, true, false, ONE, "min(a, b)" },
    [GY_MATHS_MAX] = { "max", 0, 2, true, false, ONE, "max(a, b)" },
    [GY_MATHS_ABS] = { "abs", 0, 1, true, false, ONE, "abs(x)" },
    [GY_MATHS_SQUARE] = { "square", 0, 1, true, false, ONE, "square(x)" },
    [GY_MATHS_FLOOR] = { "floor", 0, 1, true, false, ONE, "floor(x)" },
    [GY_MATHS_CEIL] = { "ceil", 0, 1, true, false, ONE, "ceil(x)" },
    [GY_MATHS_SQRT] = { "sqrt", 0, 1, true, true, { 20, 18 }, "sqrt(x)" },
    [GY_MATHS_RSQRT] = { "rsqrt", 0, 1, true, true, { 40, 34 }, "rsqrt(x)" },
    [GY_MATHS_EXP] = { "exp", 0, 1, true, true, { 20, 30 }, "exp(x)" },
    [GY_MATHS_LOG] = { "log", 0, 1, true, true, { 52, 58 }, "log(x)" },
    [GY_MATHS_SIN] = { "sin", 0, 1, true, true, { 52, 36 }, "sin(x)" },
    [GY_MATHS_COS] = { "cos", 0, 1, true, true, { 52, 36 }, "cos(x)" },
    [GY_MATHS_TANH] = { "tanh", 0, 1, true, true, { 34, 46 }, "tanh(x)" },
    [GY_MATHS_ERF] = { "erf", 0, 1, true, true, { 56, 90 }, "erf(x)" },
    [GY_MATHS_POW] = { "pow", 0, 2, true, true, { 134, 172 }, "pow(base, exponent)" },
};
