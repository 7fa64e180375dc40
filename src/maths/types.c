/* SPDX-License-Identifier: Apache-2.0 */
/* Giving types to formulas, as NumPy does: what is computed in which type, and where a value is converted. */
#include "maths/ops.h"

#include "base/error.h"
#include <stdio.h>
#include <string.h>

/* The kinds of value, by what wins where two meet. Numbers of the formula and of the node adapt themselves to the
 * elements that they meet; a real one makes whole elements f64. */
typedef enum rank {
    NUMBER_WHOLE,
    NUMBER_REAL,
    SMALL, /* whole, of few bits: 8-bit elements and comparisons, which f32 can hold */
    WHOLE,
    SINGLE, /* f16, bf16 and f8, too */
    DOUBLE
} rank;

typedef struct maker {
    const gy_maths *maths;
    const gy_maths_kind *kind;
    gy_maths_program *program;
    gy_maths_step *step;
    rank rank[GY_MATHS_NODES];
    uint32_t value[GY_MATHS_NODES]; /* of a number: nothing yet, since it is made where its type is known */
} maker;

/* ---- types ---- */

static rank rank_of(gy_maths_kind kind)
{
    if (kind.is_number)
        return NUMBER_REAL;
    switch (kind.dtype) {
    case GANTRY_I8:
    case GANTRY_U8:
        return SMALL;
    case GANTRY_F16:
    case GANTRY_BF16:
    case GANTRY_F8E4M3:
    case GANTRY_F8E5M2:
    case GANTRY_F32:
        return SINGLE;
    case GANTRY_F64:
        return DOUBLE;
    default:
        return WHOLE;
    }
}

static gy_maths_type type_of(rank r)
{
    return r == SINGLE ? GY_MATHS_F32 : r == DOUBLE || r == NUMBER_REAL ? GY_MATHS_F64 : GY_MATHS_I64;
}

static rank join(rank a, rank b)
{
    rank low = a < b ? a : b, high = a < b ? b : a;
    if (low == NUMBER_REAL && (high == SMALL || high == WHOLE))
        return DOUBLE;
    return low == WHOLE && high == SINGLE ? DOUBLE : high;
}

/* Of whole numbers, roots and quotients are real. */
static rank make_float(rank r)
{
    return r == NUMBER_WHOLE ? NUMBER_REAL : r == SMALL || r == WHOLE ? DOUBLE : r;
}

/* ---- steps ---- */

static gy_maths_type value_type(const maker *m, uint32_t value)
{
    uint32_t args = m->maths->args;
    return value < args ? m->program->arg_type[value] : m->step[value - args].to;
}

static bool is_fixed(const maker *m, uint32_t value)
{
    uint32_t args = m->maths->args;
    return value < args ? m->kind[value].is_number : m->step[value - args].is_fixed;
}

static uint32_t add_step(maker *m, gy_maths_step step)
{
    step.is_fixed = true;
    for (uint32_t i = 0; i < gy_maths_ops[step.op].operands; i++)
        step.is_fixed = step.is_fixed && is_fixed(m, step.operand[i]);
    if (!step.is_fixed)
        m->program->flops += gy_maths_ops[step.op].flops[step.type == GY_MATHS_F64];
    m->step[m->program->steps] = step;
    return m->maths->args + m->program->steps++;
}

static uint32_t move(maker *m, uint32_t value, gy_maths_type to)
{
    return add_step(
        m, (gy_maths_step){ .op = GY_MATHS_MOVE, .type = value_type(m, value), .to = to, .operand = { value } });
}

/* The value of a node in a type. */
static uint32_t value_as(maker *m, uint32_t node, gy_maths_type type)
{
    const gy_maths_node *n = &m->maths->node[node];
    if (n->op == GY_MATHS_NUMBER) {
        return add_step(
            m,
            (gy_maths_step){
                .op = GY_MATHS_NUMBER, .type = type, .to = type, .real = n->real, .whole = n->is_real ? 0 : n->whole });
    }
    uint32_t value = m->value[node];
    return value_type(m, value) == type ? value : move(m, value, type);
}

/* A cast to what a value is already changes nothing. */
static bool is_idle(gantry_dtype cast, rank from)
{
    return (cast == GANTRY_F32 && from == SINGLE) || (cast == GANTRY_F64 && from == DOUBLE) ||
           (cast == GANTRY_I64 && from == WHOLE);
}

static void make_cast(maker *m, uint32_t node)
{
    const gy_maths_node *n = &m->maths->node[node];
    gy_maths_type from = type_of(m->rank[n->operand[0]]);
    rank r = m->rank[node] = rank_of((gy_maths_kind){ .dtype = n->cast });
    uint32_t operand = value_as(m, n->operand[0], from);
    if (is_idle(n->cast, m->rank[n->operand[0]])) {
        m->value[node] = operand;
        return;
    }
    m->value[node] =
        add_step(m, (gy_maths_step){
                        .op = GY_MATHS_CAST, .type = from, .to = type_of(r), .cast = n->cast, .operand = { operand } });
}

static void make_select(maker *m, uint32_t node)
{
    const gy_maths_node *n = &m->maths->node[node];
    gy_maths_type condition = type_of(m->rank[n->operand[0]]);
    rank r = m->rank[node] = join(m->rank[n->operand[1]], m->rank[n->operand[2]]);
    gy_maths_step step = { .op = GY_MATHS_SELECT, .type = type_of(r), .to = type_of(r), .if_type = condition };
    step.operand[0] = value_as(m, n->operand[0], condition);
    step.operand[1] = value_as(m, n->operand[1], step.type);
    step.operand[2] = value_as(m, n->operand[2], step.type);
    m->value[node] = add_step(m, step);
}

static void make_operation(maker *m, uint32_t node)
{
    const gy_maths_node *n = &m->maths->node[node];
    const gy_maths_op_info *info = &gy_maths_ops[n->op];
    rank r = m->rank[n->operand[0]];
    r = info->operands == 2 ? join(r, m->rank[n->operand[1]]) : r;
    r = info->is_float ? make_float(r) : r;
    bool compares = info->precedence == GY_MATHS_COMPARE;
    gy_maths_step step = { .op = n->op, .type = type_of(r), .to = compares ? GY_MATHS_I64 : type_of(r) };
    for (uint32_t i = 0; i < info->operands; i++)
        step.operand[i] = value_as(m, n->operand[i], step.type);
    m->rank[node] = compares ? SMALL : r;
    m->value[node] = add_step(m, step);
}

static void make_node(maker *m, uint32_t node)
{
    const gy_maths_node *n = &m->maths->node[node];
    switch (n->op) {
    case GY_MATHS_NUMBER:
        m->rank[node] = n->is_real ? NUMBER_REAL : NUMBER_WHOLE;
        break;
    case GY_MATHS_ARG:
        m->rank[node] = rank_of(m->kind[n->arg]);
        m->value[node] = n->arg;
        break;
    case GY_MATHS_CAST:
        make_cast(m, node);
        break;
    case GY_MATHS_SELECT:
        make_select(m, node);
        break;
    default:
        make_operation(m, node);
    }
}

/* ---- slots ---- */

/* Arguments and values that are fixed keep their slots; one of another value is free again behind its last use. */
static void assign_slots(maker *m)
{
    gy_maths_program *p = m->program;
    uint32_t args = m->maths->args, last[GY_MATHS_ARGS + GY_MATHS_STEPS] = { 0 }, free_slot[GY_MATHS_STEPS], frees = 0;
    for (uint32_t i = 0; i < p->steps; i++)
        for (uint32_t k = 0; k < gy_maths_ops[m->step[i].op].operands; k++)
            last[m->step[i].operand[k]] = i;
    for (uint32_t i = 0; i < m->maths->results; i++)
        last[p->value[i]] = p->steps;
    p->slots = args;
    for (uint32_t i = 0; i < p->steps; i++) {
        gy_maths_step *s = &m->step[i];
        s->slot = frees && !s->is_fixed ? free_slot[--frees] : p->slots++;
        for (uint32_t k = 0; k < gy_maths_ops[s->op].operands; k++) {
            uint32_t value = s->operand[k];
            bool is_again = k && value == s->operand[k - 1];
            is_again = is_again || (k == 2 && value == s->operand[0]);
            if (value >= args && !is_fixed(m, value) && last[value] == i && !is_again)
                free_slot[frees++] = m->step[value - args].slot;
        }
    }
}

/* ---- arguments and results ---- */

static gantry_status check_args(const maker *m, gantry_status status, const char *where, gantry_error *err)
{
    for (uint32_t i = 0; i < m->maths->args; i++) {
        const char *name = m->maths->arg[i];
        if (m->kind[i].is_number && m->maths->is_written[i]) {
            return gy_fail(err, status, where,
                           "argument \"%s\" is a number, and a formula is given to it: give it a region of a buffer",
                           name);
        }
        if (!m->kind[i].is_number && m->kind[i].dtype == GANTRY_U64) {
            return gy_fail(err, status, where,
                           "argument \"%s\" has elements of u64, and formulas compute whole numbers as i64: give it a "
                           "buffer of another dtype",
                           name);
        }
    }
    return GANTRY_OK;
}

static gantry_status fail_result(const maker *m, uint32_t result, gantry_status status, const char *where,
                                 gantry_error *err)
{
    const gy_maths_result *r = &m->maths->result[result];
    gantry_dtype dtype = m->kind[r->arg].dtype;
    return gy_fail(err, status, where,
                   "formula \"%.80s%s\" gives real numbers, and argument \"%s\" has elements of %s: write %s(%.80s%s), "
                   "or give a buffer of a floating dtype",
                   r->text, strlen(r->text) > 80 ? "..." : "", m->maths->arg[r->arg], gantry_dtype_name(dtype),
                   gantry_dtype_name(dtype), r->text, strlen(r->text) > 80 ? "..." : "");
}

static gantry_status fail_reduced(const maker *m, const gy_maths_result *r, gantry_status status, const char *where,
                                  gantry_error *err)
{
    gantry_dtype dtype = m->kind[r->arg].dtype;
    return gy_fail(
        err, status, where,
        "formula \"%.80s%s\" gives a real number, and argument \"%s\" has an element of %s: give a buffer of "
        "a floating dtype",
        r->text, strlen(r->text) > 80 ? "..." : "", m->maths->arg[r->arg], gantry_dtype_name(dtype));
}

/* 1 where a value is not 0. */
static uint32_t make_truth(maker *m, uint32_t root)
{
    gy_maths_type type = type_of(m->rank[root]);
    gy_maths_step zero = { .op = GY_MATHS_NUMBER, .type = type, .to = type };
    gy_maths_step step = { .op = GY_MATHS_NE, .type = type, .to = GY_MATHS_I64 };
    step.operand[0] = value_as(m, root, type);
    step.operand[1] = add_step(m, zero);
    return add_step(m, step);
}

/* The values that are reduced: real ones as double, so that sums lose little, whole ones as they are. */
static gantry_status make_reduced(maker *m, uint32_t result, gantry_status status, const char *where, gantry_error *err)
{
    const gy_maths_result *r = &m->maths->result[result];
    bool is_truth = r->reduction == GY_MATHS_ANY || r->reduction == GY_MATHS_ALL;
    bool is_whole = is_truth || (type_of(m->rank[r->root]) == GY_MATHS_I64 && r->reduction != GY_MATHS_MEAN);
    if (type_of(rank_of(m->kind[r->arg])) == GY_MATHS_I64 && !is_whole && !gy_maths_finds(r->reduction))
        return fail_reduced(m, r, status, where, err);
    gy_maths_type type = m->program->value_type[result] = is_whole ? GY_MATHS_I64 : GY_MATHS_F64;
    m->program->value[result] = is_truth ? make_truth(m, r->root) : value_as(m, r->root, type);
    m->program->flops += gy_maths_ops[GY_MATHS_ADD].flops[type == GY_MATHS_F64];
    return GANTRY_OK;
}

/* Something has to say how many elements there are. */
static gantry_status check_reduced(const maker *m, gantry_status status, const char *where, gantry_error *err)
{
    for (uint32_t i = 0; i < m->maths->args; i++)
        if (m->kind[i].is_beside)
            return GANTRY_OK;
    for (uint32_t i = 0; i < m->maths->args; i++)
        if (m->maths->is_read[i] && !m->maths->is_written[i] && !m->kind[i].is_number)
            return GANTRY_OK;
    return gy_fail(err, status, where, "formula \"%.80s\" reduces no region: name one in it", m->maths->result[0].text);
}

/* The value of a formula as it is stored: not an argument itself, which may be written before it is read. */
static gantry_status make_result(maker *m, uint32_t result, gantry_status status, const char *where, gantry_error *err)
{
    const gy_maths_result *r = &m->maths->result[result];
    gy_maths_type wanted = type_of(rank_of(m->kind[r->arg]));
    gy_maths_type given = type_of(m->rank[r->root]);
    if (wanted == GY_MATHS_I64 && given != GY_MATHS_I64)
        return fail_result(m, result, status, where, err);
    uint32_t value = value_as(m, r->root, m->maths->node[r->root].op == GY_MATHS_NUMBER ? wanted : given);
    value = value < m->maths->args ? move(m, value, given) : value;
    m->program->value[result] = value;
    m->program->value_type[result] = value_type(m, value);
    return GANTRY_OK;
}

/* The model that gy_maths_fit noted; else the first region that a map gives, or that a reduction reads, and all its
 * axes. */
static void choose_model(maker *m)
{
    gy_maths_program *p = m->program;
    const gy_maths *maths = m->maths;
    p->model = maths->result[0].arg;
    for (uint32_t i = maths->args; i-- > 0 && maths->reduces;)
        if (m->kind[i].is_model || (maths->is_read[i] && !m->kind[i].is_number && !m->kind[p->model].is_model))
            p->model = i;
    uint32_t reduced = 0;
    while (maths->reduces && !gy_maths_is_reduced(maths, reduced))
        reduced++; /* build_map.c saw that there is one */
    const gy_maths_kind *result = &m->kind[maths->result[reduced].arg];
    p->rank = result->rank;
    p->along = result->along;
    p->is_columns = result->is_columns;
    for (uint32_t i = 0; i < maths->args; i++) {
        p->is_joint = p->is_joint || m->kind[i].gives;
        for (uint32_t axis = 0; axis < p->rank; axis++)
            if (m->kind[i].gives >> axis & 1)
                p->axis[axis] = (gy_maths_axis){ .arg = (uint8_t)i, .axis = (uint8_t)(axis - m->kind[i].missing) };
    }
}

static gantry_status make(maker *m, gantry_status status, const char *where, gantry_error *err)
{
    GY_TRY(check_args(m, status, where, err));
    if (m->maths->reduces)
        GY_TRY(check_reduced(m, status, where, err));
    for (uint32_t i = 0; i < m->maths->args; i++)
        m->program->arg_type[i] = type_of(rank_of(m->kind[i]));
    for (uint32_t i = 0; i < m->maths->nodes; i++)
        make_node(m, i);
    for (uint32_t i = 0; i < m->maths->results; i++)
        GY_TRY(gy_maths_is_reduced(m->maths, i) ? make_reduced(m, i, status, where, err)
                                                : make_result(m, i, status, where, err));
    assign_slots(m);
    choose_model(m);
    gy_maths_count(m->program, m->step);
    return GANTRY_OK;
}

gantry_status gy_maths_make_program(const gy_maths_program **out, gy_arena *arena, const gy_maths *maths,
                                    const gy_maths_kind *kind, gantry_status status, const char *where,
                                    gantry_error *err)
{
    gy_maths_step step[GY_MATHS_STEPS];
    gy_maths_program *program = gy_arena_calloc(arena, 1, sizeof *program);
    gy_maths_kind *kinds = gy_arena_calloc(arena, maths->args + 1, sizeof *kinds);
    *out = NULL;
    if (!program || !kinds)
        return gy_fail_nomem(err);
    memcpy(kinds, kind, maths->args * sizeof *kinds);
    program->maths = maths;
    program->kind = kinds;
    maker m = { .maths = maths, .kind = kinds, .program = program, .step = step };
    GY_TRY(make(&m, status, where, err));
    gy_maths_step *kept = gy_arena_alloc(arena, program->steps * sizeof *kept);
    if (!kept)
        return gy_fail_nomem(err);
    memcpy(kept, step, program->steps * sizeof *kept);
    program->step = kept;
    *out = program;
    return GANTRY_OK;
}
