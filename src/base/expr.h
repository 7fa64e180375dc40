/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Expressions of the graph format: exact 64-bit integers over names ('/' must divide, '//' floors, '%' is the rest of
 * '//'; min, max, ceil_div, clamp(x, low, high); comparisons and 'and' 'or' 'not' give 0 or 1), or, where a floating
 * scalar is wanted, the same expression evaluated in doubles throughout. sqrt, exp, log, log2, sin, cos and pow are
 * real; floor, ceil and round make whole numbers of what is inside them, which is evaluated in doubles.
 *
 *   expr := or | and | not | comparison (== != < <= > >=) | + - | * / // % | unary - | number | name | call | ( expr )
 *
 * Names may contain '.' and '_' ("x.rows"). Numbers may be reals ("1e-3") in real evaluation; in integer evaluation
 * a real literal is an error that says so. Compiled once into an arena, evaluated often, allocating nothing.
 * Precedence is Python's; comparisons do not chain, and 'and' and 'or' skip a right side that cannot matter. Texts
 * nested, or with operators in a row, more than 256 deep are refused, so that no text can exhaust the stack.
 */
#ifndef GY_BASE_EXPR_H
#define GY_BASE_EXPR_H

#include "base/arena.h"
#include "base/text.h"
#include <gantry/status.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct gy_expr gy_expr;

/* Value of a name. Return false for an unknown one. Sets *integer and *real both (real = integer for whole numbers;
 * *is_real true when only the real is meaningful). */
typedef bool (*gy_expr_lookup)(void *context, const char *name, int64_t *integer, double *real, bool *is_real);

/* On error the message is "…: at character 7: expected ')'" style, without a place in a file: the caller adds it
 * (`where` may be NULL). Status of all errors: `status`. */
gantry_status gy_expr_parse(const gy_expr **out, gy_arena *arena, const char *text, size_t length, gantry_status status,
                            const char *where, gantry_error *err);
gantry_status gy_expr_integer(const gy_expr *e, gy_expr_lookup lookup, void *context, int64_t *out,
                              gantry_status status, const char *where, gantry_error *err);
gantry_status gy_expr_real(const gy_expr *e, gy_expr_lookup lookup, void *context, double *out, gantry_status status,
                           const char *where, gantry_error *err);
/* Calls `each` for every name in the expression, with repeats, left to right, until it returns false. */
bool gy_expr_names(const gy_expr *e, bool (*each)(void *context, const char *name), void *context);
/* The same expression with every name that `lookup` knows replaced by its value; NULL: out of memory. */
const gy_expr *gy_expr_bind(const gy_expr *e, gy_arena *arena, gy_expr_lookup lookup, void *context);
/* True and *value if the expression is one literal whole number. */
bool gy_expr_is_integer(const gy_expr *e, int64_t *value);
/* True and *value if the expression is one literal whole number from 2^63 to 2^64 - 1. Evaluated it is a double only.
 */
bool gy_expr_is_unsigned(const gy_expr *e, uint64_t *value);
/* Normal text: reading it gives an equal expression, printing that the same text. */
void gy_expr_print(gy_text *to, const gy_expr *e);

#endif
