/* SPDX-License-Identifier: Apache-2.0 */
/* The tree behind gy_expr. Only reading, evaluating and printing include this header. */
#ifndef GY_BASE_EXPR_TREE_H
#define GY_BASE_EXPR_TREE_H

#include "base/expr.h"

typedef enum gy_expr_kind {
    GY_EXPR_INTEGER,
    GY_EXPR_UNSIGNED, /* a literal from 2^63 to 2^64 - 1: `integer` has its bits */
    GY_EXPR_REAL,
    GY_EXPR_NAME,
    GY_EXPR_NEGATE,
    GY_EXPR_NOT,
    GY_EXPR_OR,
    GY_EXPR_AND,
    GY_EXPR_EQ,
    GY_EXPR_NE,
    GY_EXPR_LT,
    GY_EXPR_LE,
    GY_EXPR_GT,
    GY_EXPR_GE,
    GY_EXPR_ADD,
    GY_EXPR_SUB,
    GY_EXPR_MUL,
    GY_EXPR_DIV,
    GY_EXPR_FLOORDIV,
    GY_EXPR_MOD,
    GY_EXPR_MIN,
    GY_EXPR_MAX,
    GY_EXPR_CEIL_DIV,
    GY_EXPR_CLAMP,
    GY_EXPR_ABS, /* the first of those that are functions of reals, too */
    GY_EXPR_FLOOR,
    GY_EXPR_CEIL,
    GY_EXPR_ROUND,
    GY_EXPR_SQRT,
    GY_EXPR_EXP,
    GY_EXPR_LOG,
    GY_EXPR_LOG2,
    GY_EXPR_SIN,
    GY_EXPR_COS,
    GY_EXPR_POW
} gy_expr_kind;

/* How tightly it binds, loosest first. */
enum {
    GY_PREC_OR = 1,
    GY_PREC_AND,
    GY_PREC_NOT,
    GY_PREC_COMPARE,
    GY_PREC_ADD,
    GY_PREC_MUL,
    GY_PREC_UNARY,
    GY_PREC_ATOM
};

typedef struct gy_expr_node {
    gy_expr_kind kind;
    int depth; /* of the tree from here, 1 for a leaf; at most GY_EXPR_DEPTH, so recursion is safe */
    int64_t integer;
    double real;
    const char *name;
    const struct gy_expr_node *first, *next; /* operands: first child, then its siblings */
} gy_expr_node;

enum { GY_EXPR_DEPTH = 256 };

struct gy_expr {
    const gy_expr_node *root;
    const char *text; /* as the user wrote it, for messages */
};

/* "//"; the name of a function; "-" and "not". */
const char *gy_expr_symbol(gy_expr_kind kind);
int gy_expr_precedence(gy_expr_kind kind);
/* A node with one operand. A minus before a literal becomes part of it, so that what is printed reads back the same. */
gy_expr_node *gy_expr_unary(gy_arena *arena, gy_expr_kind kind, gy_expr_node *operand);

#endif
