/* SPDX-License-Identifier: Apache-2.0 */
/* A program on the host: chunks of elements that stay in the caches, and for each chunk one step after the other. */
#include "maths/runner.h"

#include "base/memory.h"
#include "maths/ops.h"
#include <string.h>

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
static void repeat(const gantry_arg *arg, void *to)
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
           (p->kind[arg].is_spread || gy_maths_elements(gantry_launch_arg(launch, (int32_t)arg)) != 1);
}

/* Numbers, single elements, and what follows from numbers. */
static void begin(gy_maths_runner *r)
{
    const gy_maths_program *p = r->program;
    uint32_t args = p->maths->args;
    gy_maths_shape model = gy_maths_model(p, r->launch);
    for (uint32_t i = 0; i < args; i++) {
        const gantry_arg *arg = gantry_launch_arg(r->launch, (int32_t)i);
        double *number = slot_of(r, i);
        r->value[i] = number;
        for (size_t k = 0; k < GY_MATHS_CHUNK && p->kind[i].is_number; k++)
            number[k] = arg->number;
        if (!p->kind[i].is_number && p->maths->is_read[i] && !is_many(p, r->launch, i))
            repeat(arg, number);
        for (uint32_t k = 0; k < p->kind[i].runs; k++) {
            gy_maths_extents e = gy_maths_extents_of(&model, p->kind[i].run[k].first, p->kind[i].run[k].last);
            r->spread[i][k] = (gy_maths_spread){ .period = e.mid * e.inner, .inner = e.inner };
        }
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

/* The elements of a spread region for elements [first, first + n) of the model: neighbours of the region where it has
 * the last axes, else one element for several. */
static void gather(const gantry_arg *arg, const gy_maths_spread *spread, uint32_t runs, int64_t first, size_t n,
                   char *to)
{
    size_t size = gantry_dtype_size(arg->dtype);
    gy_maths_spread s = spread[runs - 1];
    for (size_t done = 0; done < n;) {
        int64_t i = first + (int64_t)done, place = i;
        for (uint32_t k = 0; k < runs; k++)
            place = place / spread[k].period * spread[k].inner + place % spread[k].inner;
        const char *from = element_at(arg, place);
        int64_t run = s.inner > 1 ? s.inner - i % s.inner : s.period - i % s.period;
        size_t count = run < (int64_t)(n - done) ? (size_t)run : n - done;
        if (s.inner > 1)
            memcpy(to + done * size, from, count * size);
        for (size_t k = 0; k < count && s.inner == 1; k++)
            memcpy(to + (done + k) * size, from, size);
        done += count;
    }
}

static void load_spread(gy_maths_runner *r, uint32_t arg, int64_t first, size_t n)
{
    char elements[GY_MATHS_SLOT];
    const gantry_arg *a = gantry_launch_arg(r->launch, (int32_t)arg);
    gather(a, r->spread[arg], r->program->kind[arg].runs, first, n, elements);
    gy_maths_load(slot_of(r, arg), elements, a->dtype, n);
    r->value[arg] = slot_of(r, arg);
}

void gy_maths_do_chunk(gy_maths_runner *r, int64_t first, size_t n)
{
    const gy_maths_program *p = r->program;
    const gy_maths *m = p->maths;
    for (uint32_t i = 0; i < m->args; i++) {
        const gantry_arg *arg = gantry_launch_arg(r->launch, (int32_t)i);
        if (!is_many(p, r->launch, i))
            continue;
        if (p->kind[i].is_spread) {
            load_spread(r, i, first, n);
            continue;
        }
        r->value[i] = element_at(arg, first);
        if (!gy_maths_is_native(arg->dtype)) {
            gy_maths_load(slot_of(r, i), r->value[i], arg->dtype, n);
            r->value[i] = slot_of(r, i);
        }
    }
    for (uint32_t i = 0; i < p->steps && !r->steps; i++)
        if (!p->step[i].is_fixed)
            do_step(r, i, n);
    if (r->steps)
        r->steps(r->value, r->result, n);
}

void gy_maths_store_chunk(const gy_maths_runner *r, uint32_t result, int64_t first, size_t n)
{
    const gy_maths_program *p = r->program;
    const gantry_arg *arg = gantry_launch_arg(r->launch, (int32_t)p->maths->result[result].arg);
    char *to = (char *)arg->data + (size_t)first * gantry_dtype_size(arg->dtype);
    gy_maths_store(to, gy_maths_result_values(r, result), arg->dtype, p->value_type[result], n);
}

/* All formulas, then all results, so that a result may be where an argument was. */
static void map_chunk(gy_maths_runner *r, int64_t first, size_t n)
{
    gy_maths_do_chunk(r, first, n);
    for (uint32_t i = 0; i < r->program->maths->results; i++)
        gy_maths_store_chunk(r, i, first, n);
}

bool gy_maths_runner_make(gy_maths_runner *r, const gantry_launch *launch, const gy_maths_program *program,
                          gy_maths_steps_fn steps)
{
    *r = (gy_maths_runner){ .program = program,
                            .launch = launch,
                            .steps = steps,
                            .slots = gy_alloc((size_t)(program->slots + GY_MATHS_RESULTS) * GY_MATHS_SLOT) };
    if (!r->slots)
        return false;
    for (uint32_t i = 0; i < GY_MATHS_RESULTS; i++)
        r->result[i] = slot_of(r, program->slots + i);
    begin(r);
    return true;
}

void gy_maths_runner_free(gy_maths_runner *r)
{
    gy_free(r->slots);
}

static gantry_status map_elements(const gantry_launch *launch, void *data, int64_t first, int64_t last)
{
    const gy_maths_code *code = data;
    gy_maths_runner r;
    if (!gy_maths_runner_make(&r, launch, code->program, code->steps))
        return GANTRY_E_NOMEM;
    for (; first < last; first += GY_MATHS_CHUNK)
        map_chunk(&r, first, (size_t)(last - first < GY_MATHS_CHUNK ? last - first : GY_MATHS_CHUNK));
    gy_maths_runner_free(&r);
    return GANTRY_OK;
}

static gantry_status carry_out(const gantry_launch *launch, gy_maths_code code)
{
    gy_maths_shape model = gy_maths_model(code.program, launch);
    if (code.program->maths->reduces)
        return gy_maths_reduce(launch, &code);
    return gantry_launch_cut(launch, gy_maths_shape_elements(&model), GY_MATHS_GRAIN, map_elements, &code);
}

gantry_status gy_maths_run(const gantry_launch *launch)
{
    return carry_out(launch, (gy_maths_code){ .program = launch->user });
}

gantry_status gy_maths_run_compiled(const gantry_launch *launch)
{
    return carry_out(launch, *(const gy_maths_code *)launch->user);
}
