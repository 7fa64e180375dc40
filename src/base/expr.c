/* SPDX-License-Identifier: Apache-2.0 */
/* Reading expressions: precedence climbing over a token at a time. */
#include "base/expr.h"

#include "base/chars.h"
#include "base/error.h"
#include "base/expr_tree.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef enum token_kind {
    T_END,
    T_NUMBER,
    T_NAME,
    T_OPERATOR, /* binary; '-' too */
    T_NOT,
    T_OPEN,
    T_CLOSE,
    T_COMMA,
    T_BAD
} token_kind;

typedef struct parser {
    gy_arena *arena;
    const char *text;
    size_t length;
    size_t at, end; /* of the current token */
    token_kind token;
    gy_expr_kind op; /* of an operator */
    int nesting;
    gantry_status status;
    const char *where;
    gantry_error *err;
} parser;

static const struct symbol {
    const char *text;
    int precedence;
} symbols[] = {
    [GY_EXPR_INTEGER] = { "", GY_PREC_ATOM },
    [GY_EXPR_UNSIGNED] = { "", GY_PREC_ATOM },
    [GY_EXPR_REAL] = { "", GY_PREC_ATOM },
    [GY_EXPR_NAME] = { "", GY_PREC_ATOM },
    [GY_EXPR_NEGATE] = { "-", GY_PREC_UNARY },
    [GY_EXPR_NOT] = { "not", GY_PREC_NOT },
    [GY_EXPR_OR] = { "or", GY_PREC_OR },
    [GY_EXPR_AND] = { "and", GY_PREC_AND },
    [GY_EXPR_EQ] = { "==", GY_PREC_COMPARE },
    [GY_EXPR_NE] = { "!=", GY_PREC_COMPARE },
    [GY_EXPR_LT] = { "<", GY_PREC_COMPARE },
    [GY_EXPR_LE] = { "<=", GY_PREC_COMPARE },
    [GY_EXPR_GT] = { ">", GY_PREC_COMPARE },
    [GY_EXPR_GE] = { ">=", GY_PREC_COMPARE },
    [GY_EXPR_ADD] = { "+", GY_PREC_ADD },
    [GY_EXPR_SUB] = { "-", GY_PREC_ADD },
    [GY_EXPR_MUL] = { "*", GY_PREC_MUL },
    [GY_EXPR_DIV] = { "/", GY_PREC_MUL },
    [GY_EXPR_FLOORDIV] = { "//", GY_PREC_MUL },
    [GY_EXPR_MOD] = { "%", GY_PREC_MUL },
    [GY_EXPR_MIN] = { "min", GY_PREC_ATOM },
    [GY_EXPR_MAX] = { "max", GY_PREC_ATOM },
    [GY_EXPR_CEIL_DIV] = { "ceil_div", GY_PREC_ATOM },
    [GY_EXPR_CLAMP] = { "clamp", GY_PREC_ATOM },
    [GY_EXPR_ABS] = { "abs", GY_PREC_ATOM },
    [GY_EXPR_FLOOR] = { "floor", GY_PREC_ATOM },
    [GY_EXPR_CEIL] = { "ceil", GY_PREC_ATOM },
    [GY_EXPR_ROUND] = { "round", GY_PREC_ATOM },
    [GY_EXPR_SQRT] = { "sqrt", GY_PREC_ATOM },
    [GY_EXPR_EXP] = { "exp", GY_PREC_ATOM },
    [GY_EXPR_LOG] = { "log", GY_PREC_ATOM },
    [GY_EXPR_LOG2] = { "log2", GY_PREC_ATOM },
    [GY_EXPR_SIN] = { "sin", GY_PREC_ATOM },
    [GY_EXPR_COS] = { "cos", GY_PREC_ATOM },
    [GY_EXPR_POW] = { "pow", GY_PREC_ATOM },
};

static const struct function {
    gy_expr_kind kind;
    int least, most; /* arguments; most 0: any number */
    const char *usage;
} functions[] = {
    { GY_EXPR_MIN, 2, 0, "min(a, b, ...)" },
    { GY_EXPR_MAX, 2, 0, "max(a, b, ...)" },
    { GY_EXPR_CEIL_DIV, 2, 2, "ceil_div(a, b)" },
    { GY_EXPR_CLAMP, 3, 3, "clamp(x, low, high)" },
    { GY_EXPR_ABS, 1, 1, "abs(x)" },
    { GY_EXPR_FLOOR, 1, 1, "floor(x)" },
    { GY_EXPR_CEIL, 1, 1, "ceil(x)" },
    { GY_EXPR_ROUND, 1, 1, "round(x)" },
    { GY_EXPR_SQRT, 1, 1, "sqrt(x)" },
    { GY_EXPR_EXP, 1, 1, "exp(x)" },
    { GY_EXPR_LOG, 1, 1, "log(x)" },
    { GY_EXPR_LOG2, 1, 1, "log2(x)" },
    { GY_EXPR_SIN, 1, 1, "sin(x)" },
    { GY_EXPR_COS, 1, 1, "cos(x)" },
    { GY_EXPR_POW, 2, 2, "pow(base, exponent)" },
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

const char *gy_expr_symbol(gy_expr_kind kind)
{
    return symbols[kind].text;
}

int gy_expr_precedence(gy_expr_kind kind)
{
    return symbols[kind].precedence;
}

/* ---- tokens ---- */

static bool token_is(const parser *p, const char *word)
{
    size_t length = strlen(word);
    return p->end - p->at == length && memcmp(p->text + p->at, word, length) == 0;
}

/* The longest operator here: "//" before "/". */
static bool take_operator(parser *p)
{
    p->end = p->at;
    for (gy_expr_kind kind = GY_EXPR_EQ; kind <= GY_EXPR_MOD; kind++) {
        size_t length = strlen(symbols[kind].text);
        if (length <= p->length - p->at && p->at + length > p->end &&
            memcmp(p->text + p->at, symbols[kind].text, length) == 0) {
            p->end = p->at + length;
            p->op = kind;
        }
    }
    return p->end > p->at;
}

static token_kind take_word(parser *p)
{
    while (p->end < p->length &&
           (gy_is_letter(p->text[p->end]) || gy_is_digit(p->text[p->end]) || p->text[p->end] == '.'))
        p->end++;
    p->op = token_is(p, "or") ? GY_EXPR_OR : GY_EXPR_AND;
    if (token_is(p, "or") || token_is(p, "and"))
        return T_OPERATOR;
    return token_is(p, "not") ? T_NOT : T_NAME;
}

static token_kind take_token(parser *p)
{
    while (p->at < p->length && strchr(" \t\r\n", p->text[p->at]) && p->text[p->at])
        p->at++;
    p->end = p->at;
    if (p->at == p->length)
        return T_END;
    char c = p->text[p->at];
    bool is_real;
    if (gy_is_digit(c)) {
        p->end += gy_number_length(p->text + p->at, p->length - p->at, &is_real);
        return T_NUMBER;
    }
    if (gy_is_letter(c))
        return take_word(p);
    if (take_operator(p))
        return T_OPERATOR;
    p->end = p->at + 1;
    return c == '(' ? T_OPEN : c == ')' ? T_CLOSE : c == ',' ? T_COMMA : T_BAD;
}

static void advance(parser *p)
{
    p->at = p->end;
    p->token = take_token(p);
}

/* ---- errors ---- */

enum { SHOWN = 80 }; /* characters of an expression that a message shows */

/* Always NULL, for callers that return a node. `at` is where the message points. */
static gy_expr_node *fail_at(const parser *p, size_t at, const char *format, ...) __attribute__((format(printf, 3, 4)));

static gy_expr_node *fail_at(const parser *p, size_t at, const char *format, ...)
{
    char what[200];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    bool cut = p->length > SHOWN;
    gy_fail(p->err, p->status, p->where, "in expression \"%.*s%s\": at character %zu: %s", cut ? SHOWN : (int)p->length,
            p->text, cut ? "..." : "", at + 1, what);
    return NULL;
}

static gy_expr_node *fail_expected(const parser *p, const char *expected)
{
    size_t length = p->end - p->at;
    if (p->token == T_END)
        return fail_at(p, p->at, "expected %s, not the end", expected);
    return fail_at(p, p->at, "expected %s, not '%.*s'", expected, length > 40 ? 40 : (int)length, p->text + p->at);
}

static gy_expr_node *fail_nomem(parser *p)
{
    p->status = gy_fail_nomem(p->err);
    return NULL;
}

/* ---- nodes ---- */

static gy_expr_node *new_node(gy_arena *arena, gy_expr_kind kind)
{
    gy_expr_node *node = gy_arena_calloc(arena, 1, sizeof *node);
    if (node) {
        node->kind = kind;
        node->depth = 1;
    }
    return node;
}

gy_expr_node *gy_expr_unary(gy_arena *arena, gy_expr_kind kind, gy_expr_node *operand)
{
    if (kind == GY_EXPR_NEGATE && operand->kind == GY_EXPR_INTEGER && operand->integer != INT64_MIN) {
        operand->integer = -operand->integer;
        return operand;
    }
    if (kind == GY_EXPR_NEGATE && (operand->kind == GY_EXPR_REAL || operand->kind == GY_EXPR_UNSIGNED)) {
        operand->real = -(operand->kind == GY_EXPR_REAL ? operand->real : (double)(uint64_t)operand->integer);
        operand->kind = GY_EXPR_REAL; /* which no whole number of 64 bits is, but for -(2^63) */
        return operand;
    }
    gy_expr_node *node = new_node(arena, kind);
    if (node) {
        node->first = operand;
        node->depth = operand->depth + 1;
    }
    return node;
}

/* Passes the node on unless it could not be made or stands on too tall a tree. */
static gy_expr_node *check_node(parser *p, gy_expr_node *node, size_t at)
{
    if (!node)
        return fail_nomem(p);
    if (node->depth > GY_EXPR_DEPTH)
        return fail_at(p, at, "more than %d levels or terms: split the expression", GY_EXPR_DEPTH);
    return node;
}

/* ---- grammar ---- */

static gy_expr_node *parse_binary(parser *p, int least);

static gy_expr_node *parse_integer(parser *p, bool negative)
{
    uint64_t value = 0;
    const uint64_t most = negative ? UINT64_C(1) << 63 : UINT64_MAX;
    for (size_t i = p->at; i < p->end; i++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (unsigned)(p->text[i] - '0'), &value) || value > most)
            return fail_at(p, p->at, "the number does not fit in 64 bits: the %s is %s%" PRIu64,
                           negative ? "smallest" : "largest", negative ? "-" : "", most);
    }
    bool is_large = !negative && value > INT64_MAX;
    gy_expr_node *node = new_node(p->arena, is_large ? GY_EXPR_UNSIGNED : GY_EXPR_INTEGER);
    if (!node)
        return fail_nomem(p);
    node->integer = (int64_t)(negative ? -value : value);
    return node;
}

static gy_expr_node *parse_real(parser *p, bool negative)
{
    double value;
    if (!gy_parse_double(p->text + p->at, p->end - p->at, &value))
        return fail_at(p, p->at, "the number does not fit in a double: the largest is about 1.8e308");
    gy_expr_node *node = new_node(p->arena, GY_EXPR_REAL);
    if (!node)
        return fail_nomem(p);
    node->real = negative ? -value : value;
    return node;
}

static gy_expr_node *parse_number(parser *p, bool negative)
{
    bool is_real;
    gy_number_length(p->text + p->at, p->end - p->at, &is_real);
    if (p->end < p->length && (gy_is_letter(p->text[p->end]) || p->text[p->end] == '.'))
        return fail_at(p, p->at, "badly written number: write 12, 0.5, 1e-3 or 2*n");
    gy_expr_node *node = is_real ? parse_real(p, negative) : parse_integer(p, negative);
    advance(p);
    return node;
}

static gy_expr_node *check_count(parser *p, const struct function *function, gy_expr_node *call, int count, size_t at)
{
    if (count < function->least || (function->most && count > function->most)) {
        return fail_at(p, at, "%s takes %d%s argument%s, not %d: write %s", gy_expr_symbol(function->kind),
                       function->least, function->most ? "" : " or more", function->least == 1 ? "" : "s", count,
                       function->usage);
    }
    return check_node(p, call, at);
}

/* Behind the name, at '('. */
static gy_expr_node *parse_call(parser *p, const struct function *function, size_t at)
{
    gy_expr_node *call = new_node(p->arena, function->kind);
    if (!call)
        return fail_nomem(p);
    const gy_expr_node **tail = &call->first;
    int count = 0;
    do {
        advance(p);
        if (p->token == T_CLOSE && count == 0)
            break;
        gy_expr_node *argument = parse_binary(p, GY_PREC_OR);
        if (!argument)
            return NULL;
        *tail = argument;
        tail = &argument->next;
        count++;
        call->depth = argument->depth >= call->depth ? argument->depth + 1 : call->depth;
    } while (p->token == T_COMMA);
    if (p->token != T_CLOSE)
        return fail_expected(p, "',' or ')'");
    advance(p);
    return check_count(p, function, call, count, at);
}

static gy_expr_node *fail_function(const parser *p, const char *name, size_t at)
{
    gy_near near = { 0 };
    for (int i = 0; i < FUNCTIONS; i++)
        gy_near_offer(&near, name, gy_expr_symbol(functions[i].kind));
    if (near.best)
        return fail_at(p, at, "no function \"%.60s\" (did you mean \"%s\"?)", name, near.best);
    return fail_at(p, at,
                   "no function \"%.60s\": there are min, max, ceil_div, clamp, abs, floor, ceil, round, sqrt, exp, "
                   "log, log2, sin, cos and pow",
                   name);
}

static gy_expr_node *parse_name(parser *p)
{
    size_t at = p->at;
    char *name = gy_arena_strndup(p->arena, p->text + at, p->end - at);
    if (!name)
        return fail_nomem(p);
    if (name[strlen(name) - 1] == '.' || strstr(name, ".."))
        return fail_at(p, at, "badly written name: a '.' joins two words, as in x.rows");
    advance(p);
    if (p->token == T_OPEN) {
        for (int i = 0; i < FUNCTIONS; i++)
            if (strcmp(name, gy_expr_symbol(functions[i].kind)) == 0)
                return parse_call(p, &functions[i], at);
        return fail_function(p, name, at);
    }
    gy_expr_node *node = new_node(p->arena, GY_EXPR_NAME);
    if (!node)
        return fail_nomem(p);
    node->name = name;
    return node;
}

static gy_expr_node *parse_group(parser *p)
{
    advance(p);
    gy_expr_node *node = parse_binary(p, GY_PREC_OR);
    if (!node)
        return NULL;
    if (p->token != T_CLOSE)
        return fail_expected(p, "an operator or ')'");
    advance(p);
    return node;
}

static gy_expr_node *parse_prefix(parser *p, int least);

/* At '-' or 'not'. */
static gy_expr_node *parse_unary(parser *p, gy_expr_kind kind)
{
    size_t at = p->at;
    advance(p);
    if (kind == GY_EXPR_NEGATE && p->token == T_NUMBER)
        return parse_number(p, true);
    gy_expr_node *operand =
        kind == GY_EXPR_NEGATE ? parse_prefix(p, GY_PREC_UNARY) : parse_binary(p, gy_expr_precedence(kind));
    return operand ? check_node(p, gy_expr_unary(p->arena, kind, operand), at) : NULL;
}

static gy_expr_node *parse_unnested_prefix(parser *p, int least)
{
    if (p->token == T_OPERATOR && p->op == GY_EXPR_SUB)
        return parse_unary(p, GY_EXPR_NEGATE);
    if (p->token == T_NOT) {
        return least > GY_PREC_NOT ? fail_at(p, p->at, "put 'not ...' in parentheses here")
                                   : parse_unary(p, GY_EXPR_NOT);
    }
    if (p->token == T_NUMBER)
        return parse_number(p, false);
    if (p->token == T_NAME)
        return parse_name(p);
    return p->token == T_OPEN ? parse_group(p) : fail_expected(p, "a number, a name or '('");
}

/* Every recursion of the parser passes here, so here the stack is guarded against hostile texts. */
static gy_expr_node *parse_prefix(parser *p, int least)
{
    if (p->nesting == GY_EXPR_DEPTH)
        return fail_at(p, p->at, "nested more than %d deep: split the expression", GY_EXPR_DEPTH);
    p->nesting++;
    gy_expr_node *node = parse_unnested_prefix(p, least);
    p->nesting--;
    return node;
}

static gy_expr_node *join(parser *p, gy_expr_kind kind, gy_expr_node *left, gy_expr_node *right, size_t at)
{
    gy_expr_node *node = new_node(p->arena, kind);
    if (node) {
        node->first = left;
        left->next = right;
        node->depth = 1 + (left->depth > right->depth ? left->depth : right->depth);
    }
    return check_node(p, node, at);
}

/* Operators that bind at least as tightly as `least`; those of one level group from the left. */
static gy_expr_node *parse_binary(parser *p, int least)
{
    gy_expr_node *left = parse_prefix(p, least);
    bool compared = false;
    while (left && p->token == T_OPERATOR && gy_expr_precedence(p->op) >= least) {
        gy_expr_kind kind = p->op;
        size_t at = p->at;
        int precedence = gy_expr_precedence(kind);
        if (precedence == GY_PREC_COMPARE && compared)
            return fail_at(p, at, "comparisons do not chain: write a < b and b < c");
        compared = precedence == GY_PREC_COMPARE;
        advance(p);
        gy_expr_node *right = parse_binary(p, precedence + 1);
        left = right ? join(p, kind, left, right, at) : NULL;
    }
    return left;
}

gantry_status gy_expr_parse(const gy_expr **out, gy_arena *arena, const char *text, size_t length, gantry_status status,
                            const char *where, gantry_error *err)
{
    parser p = { .arena = arena, .text = text, .length = length, .status = status, .where = where, .err = err };
    p.token = take_token(&p);
    if (p.token == T_END)
        return gy_fail(err, status, where, "the expression is empty: write a number, a name or a formula");
    const gy_expr_node *root = parse_binary(&p, GY_PREC_OR);
    if (!root)
        return p.status;
    if (p.token != T_END) {
        fail_expected(&p, "an operator or the end");
        return status;
    }
    gy_expr *made = gy_arena_alloc(arena, sizeof *made);
    char *copy = gy_arena_strndup(arena, text, length);
    if (!made || !copy)
        return gy_fail_nomem(err);
    *made = (gy_expr){ root, copy };
    *out = made;
    return GANTRY_OK;
}
