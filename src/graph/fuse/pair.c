/* SPDX-License-Identifier: Apache-2.0 */
/* One node of two: the formulas of the second, with those of the first in place of what it gave. */
#include "base/error.h"
#include "base/memory.h"
#include "graph/build/build_state.h"
#include "graph/fuse/fuse.h"

#include <string.h>

/* A region or a number, by the name that it has in the new node. */
typedef struct operand {
    const char *name;
    bool is_scalar;
    gy_access access;
    gy_scalar scalar;
} operand;

typedef struct pair {
    gy_fuser *f;
    gantry_graph *g;
    const gy_node *a, *b;
    const gy_maths *first, *second;   /* the formulas of a, and of b */
    const char *name[GY_MATHS_ARGS];  /* by argument of a: its name in the new node */
    const char *own[GY_MATHS_ARGS];   /* the same by argument of b */
    const char *value[GY_MATHS_ARGS]; /* by argument of a that is a result: its formula there */
    const char *given[GY_MATHS_ARGS]; /* by argument of b: what stands for it in formulas */
    operand operand[2 * GY_MATHS_ARGS];
    uint32_t operands;
    bool refused; /* formulas have limits that the new node would not keep */
} pair;

static const gy_access *access_of(const pair *p, const gy_node *n, uint32_t arg)
{
    for (uint32_t i = n->access; i < n->access + n->accesses; i++)
        if (p->g->access.at[i].arg == arg)
            return &p->g->access.at[i];
    return NULL;
}

static const gy_access *equal_of(const pair *p, const gy_node *n, const gy_access *region)
{
    for (uint32_t i = n->access; i < n->access + n->accesses; i++)
        if (gy_fuse_equal(&p->g->access.at[i], region))
            return &p->g->access.at[i];
    return NULL;
}

/* ---- regions ---- */

gy_maths_shape gy_fuse_model(const gantry_graph *g, const gy_node *n)
{
    gantry_arg region[GY_MATHS_ARGS];
    gantry_launch launch = { .arg = region, .arg_size = sizeof *region };
    for (uint32_t i = n->access; i < n->access + n->accesses; i++)
        gy_arg_describe(&region[g->access.at[i].arg], g, &g->access.at[i]);
    return gy_maths_model(g->kernels.at[n->kernel].program, &launch);
}

/* Has the region an element for each of the model? */
static bool is_whole(const pair *p, const gy_node *n, const gy_access *a)
{
    const gy_maths_program *program = p->g->kernels.at[n->kernel].program;
    const gy_maths_kind *kind = &program->kind[a->arg];
    gantry_arg region;
    bool is_reduced = program->maths->reduces && program->maths->is_written[a->arg] && !kind->is_beside;
    gy_arg_describe(&region, p->g, a);
    gy_maths_shape model = gy_fuse_model(p->g, n), own = gy_maths_shape_of(&region);
    return !kind->is_spread && !is_reduced && gy_maths_same_shape(&own, &model);
}

/* Two accesses that may not be swapped are of one region, element by element. *linked: b reads what a gives. */
static bool check_regions(const pair *p, bool *linked)
{
    const gy_access *access = p->g->access.at;
    for (uint32_t i = p->a->access; i < p->a->access + p->a->accesses; i++) {
        for (uint32_t k = p->b->access; k < p->b->access + p->b->accesses; k++) {
            const gy_access *a = &access[i], *b = &access[k];
            if (!gy_fuse_clash(p->f, p->b, a, b))
                continue;
            if (!gy_fuse_equal(a, b) || gy_access_reduces(a) || gy_access_reduces(b) || !is_whole(p, p->a, a) ||
                !is_whole(p, p->b, b))
                return false;
            *linked = *linked || (a->mode != GANTRY_READ && b->mode != GANTRY_WRITE);
        }
    }
    return true;
}

static bool have_one_model(const pair *p)
{
    gy_maths_shape a = gy_fuse_model(p->g, p->a), b = gy_fuse_model(p->g, p->b);
    return gy_maths_same_shape(&a, &b);
}

/* ---- names ---- */

static bool is_taken(const pair *p, const char *name)
{
    for (uint32_t i = 0; i < p->operands; i++)
        if (strcmp(p->operand[i].name, name) == 0)
            return true;
    return false;
}

/* "x", or "x_2" where b has another x. */
static const char *free_name(const pair *p, const char *name)
{
    const char *made = name;
    for (int k = 2; made && is_taken(p, made); k++)
        made = gy_arena_printf(&p->g->arena, "%s_%d", name, k);
    return made;
}

/* The operand of an equal region; NULL: none. */
static const operand *same_operand(const pair *p, const gy_access *a)
{
    for (uint32_t i = 0; i < p->operands; i++)
        if (!p->operand[i].is_scalar && gy_fuse_equal(&p->operand[i].access, a))
            return &p->operand[i];
    return NULL;
}

/* A region has one name. */
static bool add_operand(pair *p, const gy_node *n, uint32_t arg, const char *wanted, const char **name)
{
    const gy_access *a = access_of(p, n, arg);
    const operand *same = a ? same_operand(p, a) : NULL;
    *name = same ? same->name : free_name(p, wanted);
    if (same || !*name)
        return *name != NULL;
    operand *o = &p->operand[p->operands++];
    *o = (operand){ .name = *name, .is_scalar = !a };
    if (a)
        o->access = *a;
    for (uint32_t i = n->scalar; i < n->scalar + n->scalars && !a; i++)
        if (p->g->scalar.at[i].arg == arg)
            o->scalar = p->g->scalar.at[i];
    return true;
}

/* Names of b come first, so that those of a give way. */
static bool name_operands(pair *p)
{
    bool ok = true;
    for (uint32_t i = 0; i < p->second->args && ok; i++)
        ok = add_operand(p, p->b, i, p->second->arg[i], &p->own[i]);
    for (uint32_t i = 0; i < p->first->args && ok; i++)
        ok = add_operand(p, p->a, i, p->first->arg[i], &p->name[i]);
    return ok;
}

/* ---- formulas ---- */

static const char *take(pair *p, gy_text *text)
{
    const char *made = text->failed || !text->at ? NULL : gy_arena_strdup(&p->g->arena, text->at);
    gy_text_free(text);
    return made;
}

/* The formulas of a, cast to the elements of the regions that it gave. */
static bool write_values(pair *p)
{
    for (uint32_t i = 0; i < p->first->results; i++) {
        uint32_t arg = p->first->result[i].arg;
        gy_text text = { 0 };
        gy_text_printf(&text, "%s(", gantry_dtype_name(p->g->buffers.at[access_of(p, p->a, arg)->buffer].dtype));
        gy_maths_rewrite(&text, p->first, p->first->result[i].text, p->name);
        gy_text_add(&text, ")");
        p->value[arg] = take(p, &text);
        if (!p->value[arg])
            return false;
    }
    return true;
}

static void choose_given(pair *p)
{
    for (uint32_t i = 0; i < p->second->args; i++) {
        const gy_access *b = access_of(p, p->b, i), *a = b ? equal_of(p, p->a, b) : NULL;
        p->given[i] = a && p->first->is_written[a->arg] ? p->value[a->arg] : p->own[i];
    }
}

/* Is what a writes there read by others, now or behind the start? */
static bool is_needed(const pair *p, const gy_access *a)
{
    uint64_t uses = 0, own = 1;
    for (uint32_t i = p->b->access; i < p->b->access + p->b->accesses; i++)
        own += gy_fuse_equal(&p->g->access.at[i], a);
    gy_map_get(&p->f->uses, gy_fuse_key(a), &uses);
    return p->f->kept[a->buffer] || uses > own;
}

static gantry_status add_formulas(pair *p, gy_maths *maths, bool *keeps, gantry_error *err)
{
    for (uint32_t i = 0; i < p->first->results; i++) {
        uint32_t arg = p->first->result[i].arg;
        const gy_access *a = access_of(p, p->a, arg), *b = equal_of(p, p->b, a);
        if ((b && b->mode != GANTRY_READ) || !is_needed(p, a))
            continue;
        *keeps = true;
        GY_TRY(gy_maths_add(maths, &p->g->arena, p->name[arg], p->value[arg], GANTRY_E_GRAPH, NULL, err));
    }
    for (uint32_t i = 0; i < p->second->results; i++) {
        const gy_maths_result *r = &p->second->result[i];
        gy_text text = { 0 };
        gy_maths_rewrite(&text, p->second, r->text, p->given);
        const char *made = take(p, &text);
        if (!made)
            return gy_fail_nomem(err);
        GY_TRY(gy_maths_add(maths, &p->g->arena, p->own[r->arg], made, GANTRY_E_GRAPH, NULL, err));
    }
    return GANTRY_OK;
}

/* ---- the node ---- */

static gantry_access mode_of(const gy_maths *m, uint32_t arg, gantry_access given)
{
    const gy_maths_result *r = gy_maths_result_of(m, arg);
    if (r && r->reduction)
        return given;
    return !m->is_written[arg] ? GANTRY_READ : m->is_read[arg] ? GANTRY_READWRITE : GANTRY_WRITE;
}

static bool append_operand(pair *p, const gy_maths *m, uint32_t arg, gy_node *made)
{
    uint32_t i = 0;
    while (i < p->operands && strcmp(p->operand[i].name, m->arg[arg]) != 0)
        i++;
    operand *o = &p->operand[i];
    if (i == p->operands)
        return false;
    o->scalar.arg = o->access.arg = arg;
    if (o->is_scalar) {
        made->scalars++;
        return gy_vec_push(&p->g->scalar, o->scalar);
    }
    o->access.mode = (uint8_t)mode_of(m, arg, (gantry_access)o->access.mode);
    made->accesses++;
    return gy_vec_push(&p->g->access, o->access);
}

static bool make_node(pair *p, const gy_maths *m, gy_node *made)
{
    *made = *p->b;
    made->id = gy_arena_printf(&p->g->arena, "%s+%s", p->a->id, p->b->id);
    made->kernel = gy_build_formulas(p->g, m);
    made->access = (uint32_t)p->g->access.count;
    made->scalar = (uint32_t)p->g->scalar.count;
    made->accesses = made->scalars = 0;
    for (uint32_t i = 0; i < m->args; i++)
        if (!append_operand(p, m, i, made))
            return false;
    return made->id && made->kernel != GY_NONE;
}

static bool make_pair(pair *p, gy_maths *maths, gy_node *made, bool *keeps)
{
    gantry_error refused;
    choose_given(p);
    maths->reduces = p->second->reduces;
    gantry_status status = add_formulas(p, maths, keeps, &refused);
    p->refused = status && status != GANTRY_E_NOMEM;
    return !status && make_node(p, maths, made);
}

bool gy_fuse_pair(gy_fuser *f, uint32_t a, uint32_t b, gy_node *made, bool *keeps, gantry_error *err)
{
    gantry_graph *g = f->graph;
    gy_node *one = &g->nodes.at[a], *other = &g->nodes.at[b];
    pair p = { .f = f,
               .g = g,
               .a = one,
               .b = other,
               .first = g->kernels.at[one->kernel].maths,
               .second = g->kernels.at[other->kernel].maths };
    bool linked = false;
    if (p.first->reduces || strlen(one->id) + strlen(other->id) + 1 > GY_FUSE_ID || !have_one_model(&p) ||
        !check_regions(&p, &linked) || !linked)
        return false;
    gy_maths *maths = gy_calloc(1, sizeof *maths);
    bool done = maths && name_operands(&p) && write_values(&p) && make_pair(&p, maths, made, keeps);
    gy_free(maths);
    if (!done && !p.refused)
        gy_fail_nomem(err);
    return done;
}
