/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over the tree of an expression: printing it, listing and replacing its names. */
#include "base/expr.h"
#include "base/expr_tree.h"
#include <inttypes.h>
#include <math.h>

static void print_node(gy_text *to, const gy_expr_node *e, int least);

static void print_call(gy_text *to, const gy_expr_node *e)
{
    gy_text_printf(to, "%s(", gy_expr_symbol(e->kind));
    for (const gy_expr_node *argument = e->first; argument; argument = argument->next) {
        print_node(to, argument, GY_PREC_OR);
        gy_text_add(to, argument->next ? ", " : ")");
    }
}

static void print_bare(gy_text *to, const gy_expr_node *e)
{
    int precedence = gy_expr_precedence(e->kind);
    switch (e->kind) {
    case GY_EXPR_INTEGER:
        gy_text_printf(to, "%" PRId64, e->integer);
        break;
    case GY_EXPR_UNSIGNED:
        gy_text_printf(to, "%" PRIu64, (uint64_t)e->integer);
        break;
    case GY_EXPR_REAL:
        gy_text_double(to, e->real);
        break;
    case GY_EXPR_NAME:
        gy_text_add(to, e->name);
        break;
    case GY_EXPR_NEGATE:
        gy_text_add(to, "-");
        print_node(to, e->first, precedence);
        break;
    case GY_EXPR_NOT:
        gy_text_add(to, "not ");
        print_node(to, e->first, precedence);
        break;
    default:
        if (e->kind >= GY_EXPR_MIN) {
            print_call(to, e);
            break;
        }
        /* Equals group from the left, and comparisons not at all. */
        print_node(to, e->first, precedence == GY_PREC_COMPARE ? precedence + 1 : precedence);
        gy_text_printf(to, " %s ", gy_expr_symbol(e->kind));
        print_node(to, e->first->next, precedence + 1);
        break;
    }
}

/* In parentheses if it binds more loosely than `least`. */
static void print_node(gy_text *to, const gy_expr_node *e, int least)
{
    bool loose = gy_expr_precedence(e->kind) < least;
    gy_text_add(to, loose ? "(" : "");
    print_bare(to, e);
    gy_text_add(to, loose ? ")" : "");
}

void gy_expr_print(gy_text *to, const gy_expr *e)
{
    print_node(to, e->root, GY_PREC_OR);
}

static bool each_name(const gy_expr_node *e, bool (*each)(void *context, const char *name), void *context)
{
    if (e->kind == GY_EXPR_NAME)
        return each(context, e->name);
    for (const gy_expr_node *operand = e->first; operand; operand = operand->next)
        if (!each_name(operand, each, context))
            return false;
    return true;
}

bool gy_expr_names(const gy_expr *e, bool (*each)(void *context, const char *name), void *context)
{
    return each_name(e->root, each, context);
}

typedef struct binder {
    gy_arena *arena;
    gy_expr_lookup lookup;
    void *context;
} binder;

static void bind_name(const binder *b, gy_expr_node *node)
{
    int64_t integer = 0;
    double real = 0;
    bool is_real = false;
    /* Infinity and NaN cannot be written: such a name stays. */
    if (b->lookup(b->context, node->name, &integer, &real, &is_real) && (!is_real || isfinite(real))) {
        node->kind = is_real ? GY_EXPR_REAL : GY_EXPR_INTEGER;
        node->integer = is_real ? 0 : integer;
        node->real = is_real ? real : 0;
        node->name = NULL;
    }
}

static gy_expr_node *bind_node(const binder *b, const gy_expr_node *e)
{
    gy_expr_node *copy = gy_arena_alloc(b->arena, sizeof *copy);
    if (!copy)
        return NULL;
    *copy = *e;
    copy->next = NULL;
    if (e->kind == GY_EXPR_NAME)
        bind_name(b, copy);
    const gy_expr_node **tail = &copy->first;
    for (const gy_expr_node *operand = e->first; operand; operand = operand->next) {
        gy_expr_node *bound = bind_node(b, operand);
        if (!bound)
            return NULL;
        if (e->kind == GY_EXPR_NEGATE)
            return gy_expr_unary(b->arena, e->kind, bound);
        *tail = bound;
        tail = &bound->next;
    }
    return copy;
}

const gy_expr *gy_expr_bind(const gy_expr *e, gy_arena *arena, gy_expr_lookup lookup, void *context)
{
    binder b = { arena, lookup, context };
    gy_expr *bound = gy_arena_alloc(arena, sizeof *bound);
    const gy_expr_node *root = bound ? bind_node(&b, e->root) : NULL;
    if (!root)
        return NULL;
    *bound = (gy_expr){ root, gy_arena_strdup(arena, e->text) };
    return bound->text ? bound : NULL;
}

bool gy_expr_is_integer(const gy_expr *e, int64_t *value)
{
    if (e->root->kind != GY_EXPR_INTEGER)
        return false;
    *value = e->root->integer;
    return true;
}

bool gy_expr_is_unsigned(const gy_expr *e, uint64_t *value)
{
    if (e->root->kind != GY_EXPR_UNSIGNED)
        return false;
    *value = (uint64_t)e->root->integer;
    return true;
}
