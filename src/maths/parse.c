/* SPDX-License-Identifier: Apache-2.0 */
/* Reading formulas: precedence climbing over a token at a time, as base/expr.c does for whole numbers. */
#include "maths/ops.h"

#include "base/chars.h"
#include "base/error.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef enum token_kind {
    T_END,
    T_NUMBER,
    T_NAME,
    T_OPERATOR, /* binary; '-' too */
    T_OPEN,
    T_CLOSE,
    T_COMMA,
    T_BAD
} token_kind;

typedef struct parser {
    gy_maths *maths;
    gy_arena *arena;
    const char *text;
    size_t length;
    size_t at, end; /* of the current token */
    token_kind token;
    gy_maths_op op; /* of an operator */
    int nesting;
    gantry_status status;
    const char *where;
    gantry_error *err;
} parser;

#define NOTHING UINT32_MAX /* in place of the index of a node: a mistake was reported */

/* ---- mistakes ---- */

enum { SHOWN = 80 }; /* characters of a formula that a message shows */

static uint32_t fail_at(parser *p, size_t at, const char *format, ...) __attribute__((format(printf, 3, 4)));

static uint32_t fail_at(parser *p, size_t at, const char *format, ...)
{
    char said[240];
    va_list args;
    va_start(args, format);
    vsnprintf(said, sizeof said, format, args);
    va_end(args);
    bool cut = p->length > SHOWN;
    gy_fail(p->err, p->status, p->where, "in formula \"%.*s%s\": at character %zu: %s", cut ? SHOWN : (int)p->length,
            p->text, cut ? "..." : "", at + 1, said);
    return NOTHING;
}

static uint32_t fail_nomem(parser *p)
{
    p->status = gy_fail_nomem(p->err);
    return NOTHING;
}

static uint32_t fail_expected(parser *p, const char *expected)
{
    size_t length = p->end - p->at;
    if (p->token == T_END)
        return fail_at(p, p->at, "expected %s, not the end", expected);
    return fail_at(p, p->at, "expected %s, not '%.*s'", expected, length > 40 ? 40 : (int)length, p->text + p->at);
}

/* Operators that a formula does not have, and what to write. */
static const struct other {
    const char *text, *remedy;
} others[] = {
    { "**", "write pow(a, b) or square(x)" },
    { "//", "write floor(a / b)" },
    { "%", "write a - floor(a / b) * b" },
    { "&&", "write select(a, b, 0)" },
    { "||", "write select(a, 1, b)" },
    { "&", "write select(a, b, 0)" },
    { "|", "write select(a, 1, b)" },
    { "!", "write x == 0" },
    { "=", "write == to compare" },
    { "^", "write pow(a, b)" },
    { "@", "products of matrices are nodes of the kernel gemm" },
    { "?", "write select(c, a, b)" },
    { ".", "a number is written 0.5, not .5, and functions have no module: sqrt(x)" },
    { "[", "elements are not indexed: an argument is a whole region; neighbours are regions of their own (x{0:9}, "
           "x{1:10}), or "
           "what kernels such as filter2d and jacobi2d look at" },
};

static uint32_t fail_operand(parser *p)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (p->token == T_BAD && strncmp(p->text + p->at, others[i].text, strlen(others[i].text)) == 0)
            return fail_at(p, p->at, "there is no '%s': %s", others[i].text, others[i].remedy);
    return fail_expected(p, "a number, a name or '('");
}

static bool is_of_word(char c)
{
    return c == '.' || gy_is_letter(c) || gy_is_digit(c);
}

/* Behind an operand stands no operator: another operand beside it is a product on paper alone. */
static uint32_t fail_behind(parser *p, const char *expected)
{
    size_t length = p->end - p->at, end = p->at, first;
    if (p->token == T_BAD)
        return fail_operand(p);
    if (p->token != T_NAME && p->token != T_NUMBER && p->token != T_OPEN)
        return fail_expected(p, expected);
    while (end > 0 && p->text[end - 1] == ' ')
        end--;
    for (first = end; first > 0 && is_of_word(p->text[first - 1]);)
        first--;
    bool is_word = first < end && end - first <= 40 && length <= 40;
    return fail_at(p, p->at, "expected %s, not '%.*s'; for a product, write %.*s * %.*s", expected,
                   length > 40 ? 40 : (int)length, p->text + p->at, is_word ? (int)(end - first) : 1,
                   is_word ? p->text + first : "a",
                   p->token == T_OPEN ? 5
                   : is_word          ? (int)length
                                      : 1,
                   p->token == T_OPEN ? "(...)"
                   : is_word          ? p->text + p->at
                                      : "b");
}

/* Words of Python between two values. */
static const struct other joins[] = {
    { "and", "write select(a, b, 0)" },
    { "or", "write select(a, 1, b)" },
    { "if", "write select(c, a, b)" },
};

/* And before one. */
static bool is_not(const parser *p)
{
    return p->at >= 4 && memcmp(p->text + p->at - 4, "not ", 4) == 0 &&
           (p->at == 4 || strchr(" (,", p->text[p->at - 5]));
}

static uint32_t fail_rest(parser *p)
{
    size_t length = p->end - p->at;
    for (size_t i = 0; i < sizeof joins / sizeof *joins; i++)
        if (p->token == T_NAME && length == strlen(joins[i].text) &&
            memcmp(p->text + p->at, joins[i].text, length) == 0)
            return fail_at(p, p->at, "there is no '%s': %s", joins[i].text, joins[i].remedy);
    if (is_not(p))
        return fail_at(p, p->at - 4, "there is no 'not': write x == 0");
    return fail_behind(p, "an operator or the end");
}

/* ---- tokens ---- */

static size_t name_length(const char *text, size_t length)
{
    size_t end = 0;
    while (end < length && (gy_is_letter(text[end]) || (end && gy_is_digit(text[end]))))
        end++;
    return end;
}

/* The longest operator here: "<=" before "<". "**" and "//" are none, so that they can be explained. */
static bool take_operator(parser *p)
{
    size_t left = p->length - p->at;
    const char *text = p->text + p->at;
    p->end = p->at;
    if (left > 1 && (*text == '*' || *text == '/') && text[1] == *text)
        return false;
    for (gy_maths_op op = GY_MATHS_ADD; op <= GY_MATHS_GE; op++) {
        size_t length = strlen(gy_maths_ops[op].name);
        if (length <= left && p->at + length > p->end && memcmp(text, gy_maths_ops[op].name, length) == 0) {
            p->end = p->at + length;
            p->op = op;
        }
    }
    return p->end > p->at;
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
    if (gy_is_letter(c)) {
        p->end += name_length(p->text + p->at, p->length - p->at);
        return T_NAME;
    }
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

/* ---- nodes ---- */

static bool are_equal(const gy_maths_node *a, const gy_maths_node *b)
{
    return a->op == b->op && a->cast == b->cast && a->is_real == b->is_real && a->real == b->real &&
           a->whole == b->whole && a->arg == b->arg && memcmp(a->operand, b->operand, sizeof a->operand) == 0;
}

/* The node, whose operands are there: a new one, or the one that is equal. */
static uint32_t add_node(parser *p, gy_maths_node node, size_t at)
{
    gy_maths *m = p->maths;
    for (uint32_t i = 0; i < m->nodes; i++)
        if (are_equal(&m->node[i], &node))
            return i;
    if (m->nodes == GY_MATHS_NODES) {
        return fail_at(p, at, "the formulas of a node have more than %d numbers, names and operations: make two nodes",
                       GY_MATHS_NODES);
    }
    m->node[m->nodes] = node;
    return m->nodes++;
}

/* The argument of that name, a new one if there is none yet. */
static uint32_t find_arg(parser *p, const char *name, size_t length, size_t at)
{
    gy_maths *m = p->maths;
    for (uint32_t i = 0; i < m->args; i++)
        if (strncmp(m->arg[i], name, length) == 0 && m->arg[i][length] == '\0')
            return i;
    if (m->args == GY_MATHS_ARGS)
        return fail_at(p, at, "the formulas of a node have more than %d names: make two nodes", GY_MATHS_ARGS);
    m->arg[m->args] = gy_arena_strndup(p->arena, name, length);
    return m->arg[m->args] ? m->args++ : fail_nomem(p);
}

/* ---- grammar ---- */

static uint32_t parse_binary(parser *p, int least);

static uint32_t parse_number(parser *p)
{
    gy_maths_node node = { .op = GY_MATHS_NUMBER };
    size_t at = p->at;
    gy_number_length(p->text + at, p->end - at, &node.is_real);
    if (p->end < p->length && (gy_is_letter(p->text[p->end]) || p->text[p->end] == '.'))
        return fail_at(p, at, "badly written number: write 12, 0.5, 1e-3 or 2*x");
    if (!gy_parse_double(p->text + at, p->end - at, &node.real))
        return fail_at(p, at, "the number does not fit in a double: the largest is about 1.8e308");
    for (size_t i = at; i < p->end && !node.is_real; i++) {
        if (__builtin_mul_overflow(node.whole, 10, &node.whole) ||
            __builtin_add_overflow(node.whole, p->text[i] - '0', &node.whole)) {
            return fail_at(p, at,
                           "the number does not fit in 64 bits: the largest is 9223372036854775807; write 1e19 for a "
                           "real one");
        }
    }
    advance(p);
    return add_node(p, node, at);
}

/* Whole numbers are computed in 64 bits with a sign, so there is no cast to u64. */
static bool find_dtype(const char *name, size_t length, gantry_dtype *out)
{
    for (int i = 0; i < GANTRY_DTYPE_COUNT; i++) {
        const char *dtype = gantry_dtype_name((gantry_dtype)i);
        if (i != GANTRY_U64 && strlen(dtype) == length && memcmp(dtype, name, length) == 0) {
            *out = (gantry_dtype)i;
            return true;
        }
    }
    return false;
}

static gy_maths_op find_function(const char *name, size_t length, gantry_dtype *cast)
{
    for (gy_maths_op op = GY_MATHS_NUMBER; op < GY_MATHS_OPS; op++) {
        const gy_maths_op_info *info = &gy_maths_ops[op];
        if (info->is_function && strlen(info->name) == length && memcmp(info->name, name, length) == 0)
            return op;
    }
    return find_dtype(name, length, cast) ? GY_MATHS_CAST : GY_MATHS_OPS;
}

bool gy_maths_is_function(const char *name, size_t length)
{
    gantry_dtype ignored;
    return find_function(name, length, &ignored) != GY_MATHS_OPS;
}

static const char *const reductions[GY_MATHS_REDUCTIONS] = {
    [GY_MATHS_TOTAL] = "sum",          [GY_MATHS_MEAN] = "mean",         [GY_MATHS_LEAST] = "min",
    [GY_MATHS_MOST] = "max",           [GY_MATHS_ANY] = "any",           [GY_MATHS_ALL] = "all",
    [GY_MATHS_WHERE_LEAST] = "argmin", [GY_MATHS_WHERE_MOST] = "argmax",
};

static bool is_reduction_only(const char *word)
{
    for (int i = GY_MATHS_TOTAL; i < GY_MATHS_REDUCTIONS; i++)
        if (i != GY_MATHS_LEAST && i != GY_MATHS_MOST && strcmp(word, reductions[i]) == 0)
            return true;
    return false;
}

/* Functions that NumPy, PyTorch and C have, and that are others here. */
static const struct other functions[] = {
    { "where", "write select(c, a, b)" },
    { "maximum", "write max(a, b)" },
    { "minimum", "write min(a, b)" },
    { "fmax", "write max(a, b)" },
    { "fmin", "write min(a, b)" },
    { "fabs", "write abs(x)" },
    { "clip", "write min(max(x, low), high)" },
    { "clamp", "write min(max(x, low), high)" },
    { "relu", "write max(x, 0)" },
    { "sigmoid", "write 1 / (1 + exp(-x))" },
    { "power", "write pow(a, b)" },
    { "sign", "write (x > 0) - (x < 0)" },
    { "round", "write floor(x + 0.5)" },
    { "mod", "write a - floor(a / b) * b" },
    { "tan", "write sin(x) / cos(x)" },
    { "log2", "write log(x) / log(2.0)" },
    { "isnan", "write x != x" },
    { "std", "reduce mean(x) and mean(square(x)), and take sqrt(b - square(a)) of them in a map node" },
    { "var", "reduce mean(x) and mean(square(x)), and take b - square(a) of them in a map node" },
};

static uint32_t fail_function(parser *p, const char *name, int length, size_t at)
{
    char word[64];
    gy_near near = { 0 };
    snprintf(word, sizeof word, "%.*s", length, name);
    for (gy_maths_op op = GY_MATHS_NUMBER; op < GY_MATHS_OPS; op++)
        if (gy_maths_ops[op].is_function)
            gy_near_offer(&near, word, gy_maths_ops[op].name);
    if (is_reduction_only(word)) {
        return fail_at(p, at,
                       "no function \"%s\": it makes one number of all elements, and is around a whole formula of a "
                       "\"reduce\" node",
                       word);
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(word, functions[i].text) == 0)
            return fail_at(p, at, "no function \"%s\": %s", word, functions[i].remedy);
    if (near.best)
        return fail_at(p, at, "no function \"%.40s\" (did you mean \"%s\"?)", word, near.best);
    return fail_at(p, at,
                   "no function \"%.40s\": there are select min max abs square floor ceil sqrt rsqrt exp log sin cos "
                   "tanh erf pow, and casts such as f32",
                   word);
}

/* At '(' behind the name of a function. */
static uint32_t parse_call(parser *p, gy_maths_op op, gantry_dtype cast, size_t at)
{
    gy_maths_node node = { .op = op, .cast = cast };
    uint32_t wanted = gy_maths_ops[op].operands, count = 0;
    const char *usage = op == GY_MATHS_CAST ? "f32(x)" : gy_maths_ops[op].usage;
    const char *name = op == GY_MATHS_CAST ? gantry_dtype_name(cast) : gy_maths_ops[op].name;
    do {
        advance(p);
        if (p->token == T_CLOSE && count == 0)
            break;
        uint32_t operand = parse_binary(p, GY_MATHS_COMPARE);
        if (operand == NOTHING)
            return NOTHING;
        if (count < wanted)
            node.operand[count] = operand;
        count++;
    } while (p->token == T_COMMA);
    if (p->token != T_CLOSE)
        return fail_behind(p, "',' or ')'");
    if (count != wanted) {
        return fail_at(p, at, "%s takes %u argument%s, not %u: write %s", name, wanted, wanted == 1 ? "" : "s", count,
                       usage);
    }
    advance(p);
    return add_node(p, node, at);
}

static uint32_t parse_name(parser *p)
{
    size_t at = p->at, length = p->end - at;
    const char *name = p->text + at;
    gantry_dtype cast = GANTRY_F32;
    gy_maths_op op = find_function(name, length, &cast);
    advance(p);
    if (p->token == T_OPEN)
        return op == GY_MATHS_OPS ? fail_function(p, name, (int)length, at) : parse_call(p, op, cast, at);
    if (op != GY_MATHS_OPS)
        return fail_at(p, at, "%.*s is a function: write '(' behind it, or give the argument another name", (int)length,
                       name);
    uint32_t arg = find_arg(p, name, length, at);
    if (arg == NOTHING)
        return NOTHING;
    p->maths->is_read[arg] = true;
    return add_node(p, (gy_maths_node){ .op = GY_MATHS_ARG, .arg = arg }, at);
}

static uint32_t parse_group(parser *p)
{
    advance(p);
    uint32_t inner = parse_binary(p, GY_MATHS_COMPARE);
    if (inner == NOTHING)
        return NOTHING;
    if (p->token != T_CLOSE)
        return fail_behind(p, "')' or an operator");
    advance(p);
    return inner;
}

static uint32_t parse_negated(parser *p);

static uint32_t parse_unary(parser *p)
{
    if (++p->nesting > GY_MATHS_DEPTH)
        return fail_at(p, p->at, "more than %d levels of brackets, calls or signs: make two nodes", GY_MATHS_DEPTH);
    bool negated = p->token == T_OPERATOR && p->op == GY_MATHS_SUB;
    uint32_t node = p->token == T_NUMBER ? parse_number(p)
                    : p->token == T_NAME ? parse_name(p)
                    : p->token == T_OPEN ? parse_group(p)
                    : negated            ? parse_negated(p)
                                         : fail_operand(p);
    p->nesting--;
    return node;
}

static uint32_t parse_negated(parser *p)
{
    size_t at = p->at;
    advance(p);
    uint32_t operand = parse_unary(p);
    return operand == NOTHING ? NOTHING
                              : add_node(p, (gy_maths_node){ .op = GY_MATHS_NEGATE, .operand = { operand } }, at);
}

static uint32_t parse_binary(parser *p, int least)
{
    uint32_t left = parse_unary(p);
    while (left != NOTHING && p->token == T_OPERATOR && gy_maths_ops[p->op].precedence >= least) {
        gy_maths_op op = p->op;
        int precedence = gy_maths_ops[op].precedence;
        size_t at = p->at;
        advance(p);
        uint32_t right = parse_binary(p, precedence + 1);
        if (right == NOTHING)
            return NOTHING;
        left = add_node(p, (gy_maths_node){ .op = op, .operand = { left, right } }, at);
        if (left != NOTHING && precedence == GY_MATHS_COMPARE && p->token == T_OPERATOR &&
            gy_maths_ops[p->op].precedence == GY_MATHS_COMPARE)
            return fail_at(p, p->at, "comparisons do not chain: write select(a < b, b < c, 0)");
    }
    return left;
}

/* ---- formulas ---- */

/* The name of a result, which no formula before has. */
static uint32_t add_target(parser *p, const char *name)
{
    size_t length = strlen(name);
    if (length == 0 || *name == '_' || name_length(name, length) != length || gy_maths_is_function(name, length)) {
        return fail_at(p, 0,
                       "it is given to \"%.60s\", which is no name of an argument: use letters, digits and '_', a "
                       "letter first, and no name of a function",
                       name);
    }
    uint32_t arg = find_arg(p, name, length, 0);
    if (arg != NOTHING && p->maths->is_written[arg])
        return fail_at(p, 0, "\"%.60s\" is given by two formulas: each argument is written by one", name);
    return arg;
}

static uint32_t check_names(parser *p)
{
    static const char *const words[] = { "and", "or", "not" }; /* costs are expressions, in which these are operators */
    for (uint32_t i = 0; i < p->maths->args; i++) {
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            if (strcmp(p->maths->arg[i], words[k]) == 0)
                return fail_at(p, 0, "no argument can be named \"%s\": write select(a, b, 0) for 'a and b'", words[k]);
        if (*p->maths->arg[i] == '_')
            return fail_at(p, 0, "no argument can be named \"%.60s\": let the name begin with a letter",
                           p->maths->arg[i]);
    }
    return 0;
}

/* At ',' behind the formula of a reduction, or behind another axis: "1" or "-1". */
static uint32_t parse_axis(parser *p, gy_maths_result *out)
{
    advance(p);
    size_t at = p->at;
    bool is_negative = p->token == T_OPERATOR && p->op == GY_MATHS_SUB;
    if (is_negative)
        advance(p);
    bool is_short = p->token == T_NUMBER && p->end - p->at <= 3;
    for (size_t i = p->at; i < p->end && is_short; i++)
        is_short = gy_is_digit(p->text[i]);
    if (!is_short)
        return fail_at(p, at, "the axis of a reduction is a whole number, as in sum(x, 0) or sum(x, -1)");
    if (out->axes == GY_MATHS_NAMED)
        return fail_at(p, at,
                       "a reduction names %d axes at most: give its result one element along each, and name none",
                       GY_MATHS_NAMED);
    int axis = 0;
    for (size_t i = p->at; i < p->end; i++)
        axis = 10 * axis + (p->text[i] - '0');
    out->axis[out->axes++] = (int16_t)(is_negative ? -axis : axis);
    advance(p);
    return 0;
}

/* The brackets behind the name of a reduction hold a formula, and maybe axes. */
static uint32_t parse_reduced(parser *p, gy_maths_result *out)
{
    advance(p);
    uint32_t root = parse_binary(p, GY_MATHS_COMPARE);
    while (root != NOTHING && p->token == T_COMMA)
        if (parse_axis(p, out) == NOTHING)
            return NOTHING;
    if (root != NOTHING && p->token != T_CLOSE)
        return fail_behind(p, "')', an operator, or ',' and an axis");
    if (root != NOTHING)
        advance(p);
    return root;
}

/* A reduction is around all of a formula; a formula that does not begin with one gives its elements. */
static uint32_t parse_reduction(parser *p, gy_maths_result *out)
{
    size_t length = p->end - p->at;
    for (int i = GY_MATHS_TOTAL; i < GY_MATHS_REDUCTIONS && p->token == T_NAME; i++)
        if (strlen(reductions[i]) == length && memcmp(reductions[i], p->text + p->at, length) == 0)
            out->reduction = (gy_maths_reduction)i;
    if (!out->reduction)
        return parse_binary(p, GY_MATHS_COMPARE);
    advance(p);
    if (p->token != T_OPEN)
        return fail_expected(p, "'(' behind the reduction");
    uint32_t root = parse_reduced(p, out);
    if (root != NOTHING && p->token != T_END)
        return fail_at(p, p->at, "a reduction is around all of the formula: compute with its result in a map node");
    return root;
}

static uint32_t parse_formula(parser *p, const char *name)
{
    gy_maths_result result = { .reduction = (gy_maths_reduction)0 };
    if (p->length > GY_MATHS_TEXT)
        return fail_at(p, 0, "%zu characters, the most are %d: make two nodes", p->length, GY_MATHS_TEXT);
    if (p->maths->results == GY_MATHS_RESULTS)
        return fail_at(p, 0, "a node has more than %d formulas: make two nodes", GY_MATHS_RESULTS);
    uint32_t arg = add_target(p, name);
    if (arg == NOTHING)
        return NOTHING;
    advance(p);
    uint32_t root = p->maths->reduces ? parse_reduction(p, &result) : parse_binary(p, GY_MATHS_COMPARE);
    if (root == NOTHING)
        return NOTHING;
    if (p->token != T_END)
        return fail_rest(p);
    if (check_names(p) == NOTHING)
        return NOTHING;
    result.arg = arg;
    result.root = root;
    result.text = gy_arena_strndup(p->arena, p->text, p->length);
    if (!result.text)
        return fail_nomem(p);
    p->maths->is_written[arg] = true;
    p->maths->result[p->maths->results++] = result;
    return root;
}

gantry_status gy_maths_add(gy_maths *maths, gy_arena *arena, const char *name, const char *text, gantry_status status,
                           const char *where, gantry_error *err)
{
    parser p = { .maths = maths,
                 .arena = arena,
                 .text = text,
                 .length = strlen(text),
                 .status = status,
                 .where = where,
                 .err = err };
    return parse_formula(&p, name) == NOTHING ? p.status : GANTRY_OK;
}

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t\r\n");
}

gantry_status gy_maths_add_all(gy_maths *maths, gy_arena *arena, const char *text, gantry_status status,
                               const char *where, gantry_error *err)
{
    while (*(text = skip_blanks(text)) || maths->results == 0) {
        size_t length = name_length(text, strlen(text));
        const char *sign = skip_blanks(text + length), *from = skip_blanks(sign + (*sign == '='));
        if (length == 0 || *sign != '=' || sign[1] == '=') {
            return gy_fail(err, status, where,
                           "\"%.80s\" does not say what it gives: write \"y = sqrt(x)\", and ';' between formulas",
                           text);
        }
        size_t end = strcspn(from, ";"), last = end;
        while (last > 0 && strchr(" \t\r\n", from[last - 1]))
            last--;
        const char *name = gy_arena_strndup(arena, text, length), *formula = gy_arena_strndup(arena, from, last);
        if (!name || !formula)
            return gy_fail_nomem(err);
        GY_TRY(gy_maths_add(maths, arena, name, formula, status, where, err));
        text = from + end + (from[end] == ';');
    }
    return GANTRY_OK;
}

void gy_maths_print(gy_text *to, const gy_maths *maths)
{
    for (uint32_t i = 0; i < maths->results; i++) {
        const gy_maths_result *r = &maths->result[i];
        gy_text_printf(to, "%s%s = %s", i ? "; " : "", maths->arg[r->arg], r->text);
    }
}
