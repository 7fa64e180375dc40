/* SPDX-License-Identifier: Apache-2.0 */
/* A program on the host: chunks of elements that stay in the caches, and for each chunk one step after the other. */
#include "maths/runner.h"

#include "base/memory.h"
#include "maths/ops.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- sizes ---- */

static int64_t elements_of(const gantry_arg *arg)
{
    return arg->rows * arg->row_bytes / (int64_t)gantry_dtype_size(arg->dtype);
}

static bool have_one_shape(const gantry_arg *a, const gantry_arg *b)
{
    if (a->rank != b->rank || a->rows != b->rows)
        return false;
    for (int32_t i = 1; i < a->rank; i++)
        if (a->shape[i] != b->shape[i])
            return false;
    return true;
}

static void shape_text(char *to, size_t size, const gantry_arg *a)
{
    size_t used = (size_t)snprintf(to, size, "%" PRId64, a->rows);
    for (int32_t i = 1; i < a->rank && used < size; i++)
        used += (size_t)snprintf(to + used, size - used, " x %" PRId64, a->shape[i]);
}

/* The argument that says how many elements there are: the first that is written; of a reduction the first region that
 * is only read and has not one element, else any. */
static uint32_t model_of(const gy_maths_program *p, const gantry_launch *launch)
{
    const gy_maths *m = p->maths;
    uint32_t found = m->result[0].arg;
    for (uint32_t i = 0; i < m->args && m->reduces; i++) {
        bool is_region = !p->kind[i].is_number && !m->is_written[i];
        if (is_region && elements_of(gantry_launch_arg(launch, (int32_t)i)) != 1)
            return i;
        found = is_region ? i : found;
    }
    return found;
}

static gantry_status check_results(const gy_maths *m, const gantry_launch *launch, char *text, size_t size)
{
    for (uint32_t i = 0; i < m->args; i++) {
        int64_t elements = elements_of(gantry_launch_arg(launch, (int32_t)i));
        if (m->is_written[i] && elements != 1) {
            snprintf(text, size,
                     "region \"%s\" has %" PRId64 " elements, and a reduction gives one: give it one element",
                     m->arg[i], elements);
            return GANTRY_E_GRAPH;
        }
    }
    return GANTRY_OK;
}

gantry_status gy_maths_check(const gantry_launch *launch, char *text, size_t size)
{
    const gy_maths_program *program = launch->user;
    const gy_maths *m = program->maths;
    uint32_t model_arg = model_of(program, launch);
    const gantry_arg *model = gantry_launch_arg(launch, (int32_t)model_arg);
    if (m->reduces && check_results(m, launch, text, size))
        return GANTRY_E_GRAPH;
    for (uint32_t i = 0; i < m->args; i++) {
        const gantry_arg *a = gantry_launch_arg(launch, (int32_t)i);
        bool may_be_one = (!m->is_written[i] || m->reduces) && elements_of(a) == 1;
        if (program->kind[i].is_number || may_be_one || have_one_shape(a, model))
            continue;
        char one[100], other[100];
        shape_text(one, sizeof one, a);
        shape_text(other, sizeof other, model);
        snprintf(text, size,
                 "region \"%s\" is %s and \"%s\" is %s; all regions of a %s have one shape, those that are only read "
                 "may have one element",
                 m->arg[i], one, m->arg[model_arg], other, m->reduces ? "reduction" : "map");
        return GANTRY_E_GRAPH;
    }
    return GANTRY_OK;
}

/* ---- running ---- */

static void *slot_of(const gy_maths_runner *r, uint32_t slot)
{
    return r->slots + (size_t)slot * GY_MATHS_SLOT;
}

static void do_step(gy_maths_runner *r, uint32_t step, size_t n)
{
    const gy_maths_step *s = &r->program->step[step];
    const void *operand[3] = { NULL, NULL, NULL };
    for (uint32_t i = 0; i < gy_maths_ops[s->op].operands; i++)
        operand[i] = r->value[s->operand[i]];
    gy_maths_do(s, slot_of(r, s->slot), operand, n);
}

/* One element, for all of a chunk. */
static void spread(const gantry_arg *arg, void *to)
{
    char values[GY_MATHS_SLOT];
    size_t size = gantry_dtype_size(arg->dtype);
    for (size_t i = 0; i < GY_MATHS_CHUNK; i++)
        memcpy(values + i * size, arg->data, size);
    gy_maths_load(to, values, arg->dtype, GY_MATHS_CHUNK);
}

static bool is_many(const gy_maths_program *p, const gantry_launch *launch, uint32_t arg)
{
    return p->maths->is_read[arg] && !p->kind[arg].is_number &&
           elements_of(gantry_launch_arg(launch, (int32_t)arg)) != 1;
}

/* Numbers, single elements, and what follows from numbers. */
static void begin(gy_maths_runner *r)
{
    const gy_maths_program *p = r->program;
    uint32_t args = p->maths->args;
    for (uint32_t i = 0; i < args; i++) {
        const gantry_arg *arg = gantry_launch_arg(r->launch, (int32_t)i);
        double *number = slot_of(r, i);
        r->value[i] = number;
        for (size_t k = 0; k < GY_MATHS_CHUNK && p->kind[i].is_number; k++)
            number[k] = arg->number;
        if (!p->kind[i].is_number && p->maths->is_read[i] && !is_many(p, r->launch, i))
            spread(arg, number);
    }
    for (uint32_t i = 0; i < p->steps; i++) {
        r->value[args + i] = slot_of(r, p->step[i].slot);
        if (p->step[i].is_fixed)
            do_step(r, i, GY_MATHS_CHUNK);
    }
}

static const char *element_at(const gantry_arg *arg, int64_t first)
{
    return (const char *)arg->data + (size_t)first * gantry_dtype_size(arg->dtype);
}

void gy_maths_do_chunk(gy_maths_runner *r, int64_t first, size_t n)
{
    const gy_maths_program *p = r->program;
    const gy_maths *m = p->maths;
    for (uint32_t i = 0; i < m->args; i++) {
        const gantry_arg *arg = gantry_launch_arg(r->launch, (int32_t)i);
        if (!is_many(p, r->launch, i))
            continue;
        r->value[i] = element_at(arg, first);
        if (!gy_maths_is_native(arg->dtype)) {
            gy_maths_load(slot_of(r, i), r->value[i], arg->dtype, n);
            r->value[i] = slot_of(r, i);
        }
    }
    for (uint32_t i = 0; i < p->steps; i++)
        if (!p->step[i].is_fixed)
            do_step(r, i, n);
}

/* All formulas, then all results, so that a result may be where an argument was. */
static void map_chunk(gy_maths_runner *r, int64_t first, size_t n)
{
    const gy_maths_program *p = r->program;
    const gy_maths *m = p->maths;
    gy_maths_do_chunk(r, first, n);
    for (uint32_t i = 0; i < m->results; i++) {
        const gantry_arg *arg = gantry_launch_arg(r->launch, (int32_t)m->result[i].arg);
        char *to = (char *)arg->data + (size_t)first * gantry_dtype_size(arg->dtype);
        gy_maths_store(to, r->value[p->value[i]], arg->dtype, p->value_type[i], n);
    }
}

gantry_status gy_maths_run(const gantry_launch *launch)
{
    const gy_maths_program *program = launch->user;
    int64_t elements = elements_of(gantry_launch_arg(launch, (int32_t)model_of(program, launch)));
    if (elements == 0 && !program->maths->reduces)
        return GANTRY_OK;
    gy_maths_runner r = { .program = program,
                          .launch = launch,
                          .slots = gy_alloc((size_t)program->slots * GY_MATHS_SLOT) };
    if (!r.slots)
        return GANTRY_E_NOMEM;
    begin(&r);
    gantry_status status = program->maths->reduces ? gy_maths_reduce(&r, elements) : GANTRY_OK;
    for (int64_t first = 0; first < elements && !program->maths->reduces; first += GY_MATHS_CHUNK) {
        int64_t left = elements - first;
        map_chunk(&r, first, (size_t)(left < GY_MATHS_CHUNK ? left : GY_MATHS_CHUNK));
    }
    gy_free(r.slots);
    return status;
}
