/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Derivatives of formulas by reverse mode (Griewank and Walther, Evaluating Derivatives, 2008, chapter 3): from the
 * root of the tree towards the argument, each part gets its adjoint, the derivative of the seeds by it, as a text.
 * Where a function has no derivative, one side is taken: what min and max give for equal operands is their second one,
 * that of abs at 0 is 0. Comparisons, floor, ceil and conversions to whole numbers have the derivative 0.
 */
#include "maths/ops.h"

#include <inttypes.h>
#include <string.h>

/* How tightly a text binds, beyond what is written between two operands. */
enum { PREFIX = GY_MATHS_SIGN, ATOM };

/* A text of a formula. NULL: it is 0. */
typedef struct term {
    const char *text;
    int precedence;
} term;

typedef struct deriving {
    gy_arena *arena;
    const gy_maths *maths;
    term *adjoint; /* by node */
    bool *leads;   /* by node: it depends on the argument, and has a derivative by it */
    bool failed;
} deriving;

/* ---- texts ---- */

static term atom(deriving *d, const char *text)
{
    d->failed = d->failed || !text;
    return (term){ text ? text : "", ATOM };
}

static term number(deriving *d, double value)
{
    char text[GY_DOUBLE_TEXT];
    return atom(d, gy_arena_strdup(d->arena, gy_double_text(text, sizeof text, value)));
}

static bool is_one(term t)
{
    return t.text && (strcmp(t.text, "1") == 0 || strcmp(t.text, "1.0") == 0);
}

/* An operator between two operands, with the brackets that they need. */
static term infix(deriving *d, gy_maths_op op, term a, term b)
{
    int precedence = gy_maths_ops[op].precedence;
    bool left = a.precedence < precedence || (precedence == GY_MATHS_COMPARE && a.precedence == precedence);
    bool right = b.precedence <= precedence || b.precedence == PREFIX;
    term made = atom(d, gy_arena_printf(d->arena, "%s%s%s %s %s%s%s", left ? "(" : "", a.text, left ? ")" : "",
                                        gy_maths_ops[op].name, right ? "(" : "", b.text, right ? ")" : ""));
    made.precedence = precedence;
    return made;
}

static term plus(deriving *d, term a, term b)
{
    return !a.text ? b : !b.text ? a : infix(d, GY_MATHS_ADD, a, b);
}

static term times(deriving *d, term a, term b)
{
    return is_one(a) ? b : is_one(b) ? a : infix(d, GY_MATHS_MUL, a, b);
}

static term over(deriving *d, term a, term b)
{
    return is_one(b) ? a : infix(d, GY_MATHS_DIV, a, b);
}

static term negated(deriving *d, term a)
{
    bool bracket = a.precedence < PREFIX;
    term made = atom(d, gy_arena_printf(d->arena, "-%s%s%s", bracket ? "(" : "", a.text, bracket ? ")" : ""));
    made.precedence = PREFIX;
    return made;
}

static term called(deriving *d, gy_maths_op op, term a)
{
    return atom(d, gy_arena_printf(d->arena, "%s(%s)", gy_maths_ops[op].name, a.text));
}

static term chosen(deriving *d, term condition, term a, term b)
{
    return atom(d, gy_arena_printf(d->arena, "select(%s, %s, %s)", condition.text, a.text ? a.text : "0",
                                   b.text ? b.text : "0"));
}

/* The formula of node i of the tree; trees are at most GY_MATHS_NODES deep. */
static term value_of(deriving *d, uint32_t i)
{
    const gy_maths_node *n = &d->maths->node[i];
    const gy_maths_op_info *op = &gy_maths_ops[n->op];
    term operand[3] = { { NULL, ATOM }, { NULL, ATOM }, { NULL, ATOM } };
    if (n->op == GY_MATHS_ARG)
        return atom(d, d->maths->arg[n->arg]);
    if (n->op == GY_MATHS_NUMBER)
        return n->is_real ? number(d, n->real) : atom(d, gy_arena_printf(d->arena, "%" PRId64, n->whole));
    for (uint32_t k = 0; k < op->operands; k++)
        operand[k] = value_of(d, n->operand[k]);
    if (n->op == GY_MATHS_CAST)
        return atom(d, gy_arena_printf(d->arena, "%s(%s)", gantry_dtype_name(n->cast), operand[0].text));
    if (n->op == GY_MATHS_NEGATE)
        return negated(d, operand[0]);
    if (n->op == GY_MATHS_SELECT)
        return chosen(d, operand[0], operand[1], operand[2]);
    if (op->precedence)
        return infix(d, n->op, operand[0], operand[1]);
    if (op->operands == 1)
        return called(d, n->op, operand[0]);
    return atom(d, gy_arena_printf(d->arena, "%s(%s, %s)", op->name, operand[0].text, operand[1].text));
}

/* ---- what leads to the argument ---- */

/* Has the operation a derivative by its operand k that is not 0 everywhere? */
static bool is_smooth(const gy_maths_node *n, uint32_t k)
{
    if (n->op == GY_MATHS_SELECT)
        return k > 0;
    if (n->op == GY_MATHS_CAST)
        return gy_dtype_is_float(n->cast);
    return (n->op < GY_MATHS_EQ || n->op > GY_MATHS_GE) && n->op != GY_MATHS_FLOOR && n->op != GY_MATHS_CEIL;
}

/* Operands come before the nodes that use them. */
static void find_leading(bool *leads, const gy_maths *m, uint32_t arg)
{
    for (uint32_t i = 0; i < m->nodes; i++) {
        const gy_maths_node *n = &m->node[i];
        leads[i] = n->op == GY_MATHS_ARG && n->arg == arg;
        for (uint32_t k = 0; k < gy_maths_ops[n->op].operands; k++)
            leads[i] = leads[i] || (leads[n->operand[k]] && is_smooth(n, k));
    }
}

bool gy_maths_leads(const gy_maths *maths, uint32_t root, uint32_t arg)
{
    bool leads[GY_MATHS_NODES];
    find_leading(leads, maths, arg);
    return leads[root];
}

/* ---- derivatives ---- */

/* g: the adjoint of a function of one operand x, whose value is f. Returns that of x. */
static term through_function(deriving *d, gy_maths_op op, term g, term x, term f)
{
    term two = atom(d, "2");
    switch (op) {
    case GY_MATHS_NEGATE:
        return negated(d, g);
    case GY_MATHS_ABS:
        return chosen(d, infix(d, GY_MATHS_GT, x, atom(d, "0")), g,
                      chosen(d, infix(d, GY_MATHS_LT, x, atom(d, "0")), negated(d, g), (term){ NULL, ATOM }));
    case GY_MATHS_SQUARE:
        return times(d, times(d, g, two), x);
    case GY_MATHS_SQRT:
        return over(d, over(d, g, two), f);
    case GY_MATHS_RSQRT:
        return negated(d, over(d, times(d, over(d, g, two), f), x));
    case GY_MATHS_EXP:
        return times(d, g, f);
    case GY_MATHS_LOG:
        return over(d, g, x);
    case GY_MATHS_SIN:
        return times(d, g, called(d, GY_MATHS_COS, x));
    case GY_MATHS_COS:
        return negated(d, times(d, g, called(d, GY_MATHS_SIN, x)));
    case GY_MATHS_TANH:
        return times(d, g, infix(d, GY_MATHS_SUB, atom(d, "1"), called(d, GY_MATHS_SQUARE, f)));
    case GY_MATHS_ERF: /* 2 / sqrt(pi) exp(-x^2) */
        return times(d, times(d, g, number(d, 1.1283791670955126)),
                     called(d, GY_MATHS_EXP, negated(d, called(d, GY_MATHS_SQUARE, x))));
    default: /* conversions between real types */
        return g;
    }
}

/* b of a^b, less 1 */
static term less_one(deriving *d, const gy_maths_node *b, term text)
{
    if (b->op != GY_MATHS_NUMBER)
        return infix(d, GY_MATHS_SUB, text, atom(d, "1"));
    if (b->is_real)
        return number(d, b->real - 1);
    return atom(d, gy_arena_printf(d->arena, "%" PRId64, b->whole - 1));
}

/* The derivative by b wants log(a), which a base of 0 has none of: there it is 0, as for all b above 0. */
static term through_power(deriving *d, const gy_maths_node *n, uint32_t k, term g, term f)
{
    term a = value_of(d, n->operand[0]), b = value_of(d, n->operand[1]);
    if (k == 1)
        return times(
            d, times(d, g, f),
            chosen(d, infix(d, GY_MATHS_EQ, a, atom(d, "0")), (term){ NULL, ATOM }, called(d, GY_MATHS_LOG, a)));
    term less = less_one(d, &d->maths->node[n->operand[1]], b);
    term power = is_one(less) ? a : atom(d, gy_arena_printf(d->arena, "pow(%s, %s)", a.text, less.text));
    return times(d, times(d, g, b), power);
}

/* The adjoint of operand k of node n, which is no function of one operand. */
static term through_operand(deriving *d, const gy_maths_node *n, uint32_t k, term g, term f)
{
    term nothing = { NULL, ATOM };
    term a = value_of(d, n->operand[0]), b = value_of(d, n->operand[1]);
    switch (n->op) {
    case GY_MATHS_SUB:
        return k ? negated(d, g) : g;
    case GY_MATHS_MUL:
        return times(d, g, k ? a : b);
    case GY_MATHS_DIV:
        return k ? negated(d, over(d, times(d, g, f), b)) : over(d, g, b);
    case GY_MATHS_SELECT:
        return k == 1 ? chosen(d, a, g, nothing) : chosen(d, a, nothing, g);
    case GY_MATHS_MIN:
    case GY_MATHS_MAX: {
        term first = infix(d, n->op == GY_MATHS_MIN ? GY_MATHS_LT : GY_MATHS_GT, a, b);
        return k ? chosen(d, first, nothing, g) : chosen(d, first, g, nothing);
    }
    case GY_MATHS_POW:
        return through_power(d, n, k, g, f);
    default: /* a sum */
        return g;
    }
}

static void pass_on(deriving *d, uint32_t i)
{
    const gy_maths_node *n = &d->maths->node[i];
    uint32_t operands = gy_maths_ops[n->op].operands;
    term g = d->adjoint[i], f = value_of(d, i);
    for (uint32_t k = 0; k < operands; k++) {
        uint32_t to = n->operand[k];
        if (!d->leads[to] || !is_smooth(n, k))
            continue;
        term given = operands == 1 ? through_function(d, n->op, g, value_of(d, to), f) : through_operand(d, n, k, g, f);
        d->adjoint[to] = plus(d, d->adjoint[to], given);
    }
}

gantry_status gy_maths_differentiate(const char **out, gy_arena *arena, const gy_maths *maths, uint32_t arg,
                                     const gy_maths_seed *seed, uint32_t seeds)
{
    bool leads[GY_MATHS_NODES];
    term adjoint[GY_MATHS_NODES] = { { NULL, 0 } };
    deriving d = { .arena = arena, .maths = maths, .adjoint = adjoint, .leads = leads };
    *out = NULL;
    find_leading(leads, maths, arg);
    for (uint32_t i = 0; i < seeds; i++)
        if (leads[seed[i].root])
            adjoint[seed[i].root] = plus(&d, adjoint[seed[i].root], (term){ seed[i].text, ATOM });
    for (uint32_t i = maths->nodes; i-- > 0 && !d.failed;) {
        if (!adjoint[i].text)
            continue;
        if (maths->node[i].op == GY_MATHS_ARG)
            *out = adjoint[i].text;
        else
            pass_on(&d, i);
        if (!*out && strlen(adjoint[i].text) > GY_MATHS_TEXT) /* it only grows, and shared parts double it */
            return GANTRY_E_GRAPH;
    }
    if (*out && strlen(*out) > GY_MATHS_TEXT)
        return GANTRY_E_GRAPH;
    return d.failed ? GANTRY_E_NOMEM : GANTRY_OK;
}

const char *gy_maths_text_of(gy_arena *arena, const gy_maths *maths, uint32_t root)
{
    deriving d = { .arena = arena, .maths = maths };
    term value = value_of(&d, root);
    return d.failed ? NULL : value.text;
}
