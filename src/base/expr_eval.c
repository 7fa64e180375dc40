/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluating expressions: exactly, or in doubles throughout. */
#include "base/error.h"
#include "base/expr.h"
#include "base/expr_tree.h"
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

typedef struct evaluator {
    const gy_expr *expr;
    gy_expr_lookup lookup;
    void *context;
    gantry_status status;
    const char *where;
    gantry_error *err;
} evaluator;

static void report(const evaluator *v, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void report(const evaluator *v, const char *format, ...)
{
    char what[300];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    gy_fail(v->err, v->status, v->where, "in expression \"%.80s\": %s", v->expr->text, what);
}

/* Always false, as those see who cannot look into the function. */
#define fail(...) (report(__VA_ARGS__), false)

static bool look_up(const evaluator *v, const char *name, int64_t *integer, double *real, bool *is_real)
{
    *is_real = false;
    return v->lookup(v->context, name, integer, real, is_real) || fail(v, "unknown name \"%.120s\"", name);
}

/* ---- exact ---- */

static bool fail_real(const evaluator *v, const char *name, double value)
{
    char digits[GY_DOUBLE_TEXT];
    gy_double_text(digits, sizeof digits, value);
    bool whole = fabs(value) < 9e15 && value == floor(value);
    if (name && whole)
        return fail(v, "\"%.120s\" is the real number %s, and only whole numbers are allowed here: give it as %.0f",
                    name, digits, value);
    if (name)
        return fail(v, "\"%.120s\" is %s, and only whole numbers are allowed here", name, digits);
    return whole ? fail(v, "%s is a real number, and only whole numbers are allowed here: write %.0f", digits, value)
                 : fail(v, "%s is a real number, and only whole numbers are allowed here", digits);
}

static bool fail_overflow(const evaluator *v, int64_t a, gy_expr_kind kind, int64_t b)
{
    return fail(v, "%" PRId64 " %s %" PRId64 " does not fit in 64 bits", a, gy_expr_symbol(kind), b);
}

static bool floor_divide(const evaluator *v, gy_expr_kind kind, int64_t a, int64_t b, int64_t *out)
{
    if (b == 0)
        return fail(v, "%" PRId64 " %s 0: division by zero", a, gy_expr_symbol(kind));
    if (b == -1) {
        /* Apart, because the quotient of the smallest number overflows and even its remainder traps. */
        if (kind == GY_EXPR_MOD) {
            *out = 0;
            return true;
        }
        return !__builtin_sub_overflow(0, a, out) || fail_overflow(v, a, kind, b);
    }
    int64_t quotient = a / b, rest = a % b;
    if (rest != 0 && kind == GY_EXPR_DIV)
        return fail(v, "%" PRId64 " / %" PRId64 " is not a whole number: '//' rounds down, ceil_div rounds up", a, b);
    bool below = rest != 0 && (rest < 0) != (b < 0);
    bool above = rest != 0 && !below;
    if (kind == GY_EXPR_MOD)
        *out = below ? rest + b : rest;
    else if (kind == GY_EXPR_CEIL_DIV)
        *out = quotient + above;
    else
        *out = quotient - below;
    return true;
}

static bool apply_exact(const evaluator *v, gy_expr_kind kind, int64_t a, int64_t b, int64_t *out)
{
    switch (kind) {
    case GY_EXPR_EQ:
        *out = a == b;
        return true;
    case GY_EXPR_NE:
        *out = a != b;
        return true;
    case GY_EXPR_LT:
        *out = a < b;
        return true;
    case GY_EXPR_LE:
        *out = a <= b;
        return true;
    case GY_EXPR_GT:
        *out = a > b;
        return true;
    case GY_EXPR_GE:
        *out = a >= b;
        return true;
    case GY_EXPR_ADD:
        return !__builtin_add_overflow(a, b, out) || fail_overflow(v, a, kind, b);
    case GY_EXPR_SUB:
        return !__builtin_sub_overflow(a, b, out) || fail_overflow(v, a, kind, b);
    case GY_EXPR_MUL:
        return !__builtin_mul_overflow(a, b, out) || fail_overflow(v, a, kind, b);
    case GY_EXPR_MIN:
        *out = a < b ? a : b;
        return true;
    case GY_EXPR_MAX:
        *out = a > b ? a : b;
        return true;
    default:
        return floor_divide(v, kind, a, b, out);
    }
}

static bool exact(const evaluator *v, const gy_expr_node *e, int64_t *out);

static bool exact_clamp(const evaluator *v, const gy_expr_node *e, int64_t *out)
{
    int64_t x, low, high;
    if (!exact(v, e->first, &x) || !exact(v, e->first->next, &low) || !exact(v, e->first->next->next, &high))
        return false;
    if (low > high)
        return fail(v, "clamp: the low end %" PRId64 " is above the high end %" PRId64, low, high);
    *out = x < low ? low : x > high ? high : x;
    return true;
}

static bool real(const evaluator *v, const gy_expr_node *e, double *out);

/* The arguments of floor, ceil and round are real; abs is as exact as its own. */
static bool exact_function(const evaluator *v, const gy_expr_node *e, int64_t *out)
{
    double value;
    if (e->kind == GY_EXPR_ABS) {
        if (!exact(v, e->first, out))
            return false;
        return *out >= 0 || apply_exact(v, GY_EXPR_SUB, 0, *out, out);
    }
    if (!real(v, e, &value))
        return false;
    if (e->kind != GY_EXPR_FLOOR && e->kind != GY_EXPR_CEIL && e->kind != GY_EXPR_ROUND)
        return fail(v,
                    "%s gives a real number, and only whole numbers are allowed here: write floor, ceil or round "
                    "around it",
                    gy_expr_symbol(e->kind));
    if (fabs(value) > 0x1p53)
        return fail(v, "%s gives %g, and whole numbers beyond 2^53 are not exact there", gy_expr_symbol(e->kind),
                    value);
    *out = (int64_t)value;
    return true;
}

/* Operands from left to right, folded together: two, or any number for min and max. */
static bool exact_fold(const evaluator *v, const gy_expr_node *e, int64_t *out)
{
    int64_t value, next;
    if (!exact(v, e->first, &value))
        return false;
    for (const gy_expr_node *operand = e->first->next; operand; operand = operand->next)
        if (!exact(v, operand, &next) || !apply_exact(v, e->kind, value, next, &value))
            return false;
    *out = value;
    return true;
}

static bool exact_name(const evaluator *v, const gy_expr_node *e, int64_t *out)
{
    double real = 0;
    bool is_real;
    if (!look_up(v, e->name, out, &real, &is_real))
        return false;
    return !is_real || fail_real(v, e->name, real);
}

/* The right side is not looked at when the left side decides: "i > 0 and n / i > 2" is safe. */
static bool exact_logic(const evaluator *v, const gy_expr_node *e, int64_t *out)
{
    int64_t value;
    if (!exact(v, e->first, &value))
        return false;
    if (e->kind != GY_EXPR_NOT && (value != 0) == (e->kind == GY_EXPR_AND) && !exact(v, e->first->next, &value))
        return false;
    *out = (value != 0) != (e->kind == GY_EXPR_NOT);
    return true;
}

static bool exact(const evaluator *v, const gy_expr_node *e, int64_t *out)
{
    int64_t value;
    switch (e->kind) {
    case GY_EXPR_INTEGER:
        *out = e->integer;
        return true;
    case GY_EXPR_UNSIGNED:
        return fail(v,
                    "%" PRIu64 " is beyond the largest number here, 9223372036854775807; what u64 has beyond that is "
                    "written alone",
                    (uint64_t)e->integer);
    case GY_EXPR_REAL:
        return fail_real(v, NULL, e->real);
    case GY_EXPR_NAME:
        return exact_name(v, e, out);
    case GY_EXPR_NEGATE:
        return exact(v, e->first, &value) && apply_exact(v, GY_EXPR_SUB, 0, value, out);
    case GY_EXPR_NOT:
    case GY_EXPR_AND:
    case GY_EXPR_OR:
        return exact_logic(v, e, out);
    case GY_EXPR_CLAMP:
        return exact_clamp(v, e, out);
    default:
        return e->kind > GY_EXPR_CLAMP ? exact_function(v, e, out) : exact_fold(v, e, out);
    }
}

/* ---- in doubles ---- */

static double apply_real(gy_expr_kind kind, double a, double b)
{
    switch (kind) {
    case GY_EXPR_EQ:
        return a == b;
    case GY_EXPR_NE:
        return a != b;
    case GY_EXPR_LT:
        return a < b;
    case GY_EXPR_LE:
        return a <= b;
    case GY_EXPR_GT:
        return a > b;
    case GY_EXPR_GE:
        return a >= b;
    case GY_EXPR_ADD:
        return a + b;
    case GY_EXPR_SUB:
        return a - b;
    case GY_EXPR_MUL:
        return a * b;
    case GY_EXPR_DIV:
        return a / b;
    case GY_EXPR_FLOORDIV:
        return floor(a / b);
    case GY_EXPR_CEIL_DIV:
        return ceil(a / b);
    case GY_EXPR_MIN:
        return a < b ? a : b;
    case GY_EXPR_MAX:
        return a > b ? a : b;
    default: {
        double rest = fmod(a, b);
        return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
    }
}

static bool divides(gy_expr_kind kind)
{
    return kind == GY_EXPR_DIV || kind == GY_EXPR_FLOORDIV || kind == GY_EXPR_MOD || kind == GY_EXPR_CEIL_DIV;
}

static bool real_clamp(const evaluator *v, const gy_expr_node *e, double *out)
{
    double x, low, high;
    if (!real(v, e->first, &x) || !real(v, e->first->next, &low) || !real(v, e->first->next->next, &high))
        return false;
    if (low > high)
        return fail(v, "clamp: the low end %g is above the high end %g", low, high);
    *out = x < low ? low : x > high ? high : x;
    return true;
}

static double call(gy_expr_kind kind, double x, double y)
{
    switch (kind) {
    case GY_EXPR_ABS:
        return fabs(x);
    case GY_EXPR_FLOOR:
        return floor(x);
    case GY_EXPR_CEIL:
        return ceil(x);
    case GY_EXPR_ROUND: /* halves to even, as Python's; the mode of rounding is never changed */
        return nearbyint(x);
    case GY_EXPR_SQRT:
        return sqrt(x);
    case GY_EXPR_EXP:
        return exp(x);
    case GY_EXPR_LOG:
        return log(x);
    case GY_EXPR_LOG2:
        return log2(x);
    case GY_EXPR_SIN:
        return sin(x);
    case GY_EXPR_COS:
        return cos(x);
    default:
        return pow(x, y);
    }
}

static bool real_function(const evaluator *v, const gy_expr_node *e, double *out)
{
    double x, y = 0;
    const gy_expr_node *second = e->first->next;
    if (!real(v, e->first, &x) || (second && !real(v, second, &y)))
        return false;
    *out = call(e->kind, x, y);
    if (isfinite(*out))
        return true;
    return second ? fail(v, "%s(%g, %g) is no finite number", gy_expr_symbol(e->kind), x, y)
                  : fail(v, "%s(%g) is no finite number", gy_expr_symbol(e->kind), x);
}

static bool real_fold(const evaluator *v, const gy_expr_node *e, double *out)
{
    double value, next;
    if (!real(v, e->first, &value))
        return false;
    for (const gy_expr_node *operand = e->first->next; operand; operand = operand->next) {
        if (!real(v, operand, &next))
            return false;
        if (next == 0 && divides(e->kind))
            return fail(v, "%g %s 0: division by zero", value, gy_expr_symbol(e->kind));
        double result = apply_real(e->kind, value, next);
        if (!isfinite(result))
            return fail(v, "%g %s %g does not fit in a double", value, gy_expr_symbol(e->kind), next);
        value = result;
    }
    *out = value;
    return true;
}

static bool real_name(const evaluator *v, const gy_expr_node *e, double *out)
{
    int64_t integer;
    bool is_real;
    if (!look_up(v, e->name, &integer, out, &is_real))
        return false;
    return isfinite(*out) || fail(v, "\"%.120s\" is %g, and only finite numbers are allowed", e->name, *out);
}

static bool real_logic(const evaluator *v, const gy_expr_node *e, double *out)
{
    double value;
    if (!real(v, e->first, &value))
        return false;
    if (e->kind != GY_EXPR_NOT && (value != 0) == (e->kind == GY_EXPR_AND) && !real(v, e->first->next, &value))
        return false;
    *out = (value != 0) != (e->kind == GY_EXPR_NOT);
    return true;
}

static bool real(const evaluator *v, const gy_expr_node *e, double *out)
{
    switch (e->kind) {
    case GY_EXPR_INTEGER:
        *out = (double)e->integer;
        return true;
    case GY_EXPR_UNSIGNED:
        *out = (double)(uint64_t)e->integer;
        return true;
    case GY_EXPR_REAL:
        *out = e->real;
        return true;
    case GY_EXPR_NAME:
        return real_name(v, e, out);
    case GY_EXPR_NEGATE:
        if (!real(v, e->first, out))
            return false;
        *out = -*out;
        return true;
    case GY_EXPR_NOT:
    case GY_EXPR_AND:
    case GY_EXPR_OR:
        return real_logic(v, e, out);
    case GY_EXPR_CLAMP:
        return real_clamp(v, e, out);
    default:
        return e->kind > GY_EXPR_CLAMP ? real_function(v, e, out) : real_fold(v, e, out);
    }
}

/* ---- front ---- */

gantry_status gy_expr_integer(const gy_expr *e, gy_expr_lookup lookup, void *context, int64_t *out,
                              gantry_status status, const char *where, gantry_error *err)
{
    evaluator v = { e, lookup, context, status, where, err };
    int64_t value;
    if (!exact(&v, e->root, &value))
        return status;
    *out = value;
    return GANTRY_OK;
}

gantry_status gy_expr_real(const gy_expr *e, gy_expr_lookup lookup, void *context, double *out, gantry_status status,
                           const char *where, gantry_error *err)
{
    evaluator v = { e, lookup, context, status, where, err };
    double value;
    if (!real(&v, e->root, &value))
        return status;
    *out = value;
    return GANTRY_OK;
}
