/* SPDX-License-Identifier: Apache-2.0 */
/* Options of training: names, numbers and the schedule of the learning rate, checked where they are given. */
#include "base/error.h"
#include "base/versioned.h"
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"

#include <fnmatch.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = { "none", "sgd", "momentum", "adam", "adamw" };
enum { OPTIMIZERS = sizeof names / sizeof *names };

const char *gantry_optimizer_name(gantry_optimizer optimizer)
{
    return (unsigned)optimizer < OPTIMIZERS ? names[optimizer] : NULL;
}

gantry_buffer gantry_graph_loss(const gantry_graph *graph)
{
    bool known = graph && graph->train;
    return (gantry_buffer){ known ? graph->loss : GANTRY_NONE, known ? graph->number : 0 };
}

/* The options of a program are an argument of its call, those of a file are the graph's. */
static gantry_status fail_option(const gantry_graph *g, const char *inside, gantry_error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static gantry_status fail_option(const gantry_graph *g, const char *inside, gantry_error *err, const char *format, ...)
{
    char said[480];
    va_list args;
    va_start(args, format);
    vsnprintf(said, sizeof said, format, args);
    va_end(args);
    bool of_file = g->origins.at[g->train_origin].pointer != NULL;
    return gy_graph_fail_in(g, g->train_origin, inside, err, of_file ? GANTRY_E_GRAPH : GANTRY_E_INVALID, "%s", said);
}

/* ---- numbers ---- */

typedef struct bound {
    const char *name;
    double value, least, most; /* `most` itself is too much */
    const char *allowed;
} bound;

static gantry_status check_numbers(const gantry_graph *g, const gantry_train_options *o, gantry_error *err)
{
    const bound bounds[] = {
        { "learning_rate", o->learning_rate, 0, INFINITY, "a finite number from 0 on" },
        { "momentum", o->momentum, 0, 1, "a number from 0 to below 1" },
        { "beta1", o->beta1, 0, 1, "a number from 0 to below 1" },
        { "beta2", o->beta2, 0, 1, "a number from 0 to below 1" },
        { "epsilon", o->epsilon, 0, INFINITY, "a finite number from 0 on" },
        { "weight_decay", o->weight_decay, -INFINITY, INFINITY, "a finite number" },
        { "clip_norm", o->clip_norm, 0, INFINITY, "a finite number from 0 on" },
        { "loss_scale", gy_train_scales_itself(o) ? 1 : o->loss_scale, 0, INFINITY,
          "a finite number from 0 on, or \"auto\" (GANTRY_LOSS_SCALE_AUTO)" },
    };
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        const bound *b = &bounds[i];
        char inside[32];
        snprintf(inside, sizeof inside, "/%s", b->name);
        if (!(b->value >= b->least && b->value < b->most) || !isfinite(b->value))
            return fail_option(g, inside, err, "%s of training is %g; give %s", b->name, b->value, b->allowed);
    }
    if (gy_train_scales_itself(o) && o->optimizer == GANTRY_OPTIMIZER_NONE)
        return fail_option(
            g, "/loss_scale", err,
            "loss_scale of training is \"auto\" and there is no optimizer, which divides gradients by it "
            "and leaves steps out; give a number, or an optimizer");
    if (!gantry_optimizer_name(o->optimizer))
        return fail_option(g, "/optimizer", err,
                           "optimizer %d is none; use GANTRY_OPTIMIZER_NONE to GANTRY_OPTIMIZER_ADAMW",
                           (int)o->optimizer);
    return GANTRY_OK;
}

/* ---- the schedule ---- */

static bool is_param(const gantry_graph *g, const char *name)
{
    for (size_t i = 0; i < g->params.count; i++)
        if (strcmp(g->params.at[i].name, name) == 0)
            return true;
    return false;
}

static gantry_status check_schedule(gantry_graph *g, const char *schedule, gantry_error *err)
{
    gantry_error inner;
    gy_maths *m = gy_arena_calloc(&g->arena, 1, sizeof *m);
    gantry_status status =
        m ? gy_maths_add(m, &g->arena, "factor", schedule, GANTRY_E_GRAPH, NULL, &inner) : gy_fail_nomem(&inner);
    if (status)
        return status == GANTRY_E_NOMEM
                   ? gy_fail_nomem(err)
                   : fail_option(g, "/schedule", err, "the schedule of the learning rate: %.400s", inner.text);
    for (uint32_t i = 0; i < m->args; i++)
        if (m->is_read[i] && strcmp(m->arg[i], "step") != 0 && !is_param(g, m->arg[i]))
            return fail_option(g, "/schedule", err,
                               "the schedule of the learning rate names \"%.60s\", which is no param of the graph; "
                               "it may use params and step, the number of the step from 1 on",
                               m->arg[i]);
    return GANTRY_OK;
}

/* ---- buffers ---- */

static gantry_status fail_name(const gantry_graph *g, const char *inside, const char *what, const char *name,
                               gantry_error *err)
{
    gy_near near = { 0 };
    char meant[GY_MEANT_TEXT];
    for (size_t i = 0; i < g->buffers.count; i++)
        gy_near_offer(&near, name, g->buffers.at[i].name);
    return fail_option(g, inside, err, "no buffer \"%.60s\"%s to be %s; name a buffer of the graph", name,
                       gy_meant_text(meant, near.best), what);
}

static gantry_status check_loss(gantry_graph *g, const char *name, gantry_error *err)
{
    uint32_t loss = gy_names_find(&g->buffer_names, name);
    if (loss == GY_NO_NAME)
        return fail_name(g, "/loss", "the loss", name, err);
    const gy_buffer *b = &g->buffers.at[loss];
    size_t size = gantry_dtype_size(b->dtype);
    if (size < 4 || !gy_dtype_is_float(b->dtype) || b->bytes != size)
        return fail_option(g, "/loss", err,
                           "the loss, buffer \"%s\", has %llu bytes of %s; it is one element of f32 or f64: reduce "
                           "to a buffer of shape [1]",
                           b->name, (unsigned long long)b->bytes, gantry_dtype_name(b->dtype));
    g->loss = loss;
    return GANTRY_OK;
}

/* Adds a weight that is not there yet; `weight` NULL: only looks at it. */
static gantry_status take_weight(const gantry_graph *g, uint32_t buffer, const char *inside, gy_adjoint *a,
                                 gantry_error *err)
{
    const gy_buffer *b = &g->buffers.at[buffer];
    if (!gy_dtype_is_float(b->dtype) || gy_dtype_is_f8(b->dtype))
        return fail_option(g, inside, err, "weight \"%s\" is %s; weights are arrays of f16, bf16, f32 or f64", b->name,
                           gantry_dtype_name(b->dtype));
    for (size_t i = 0; a && i < a->weight.count; i++)
        if (a->weight.at[i] == buffer)
            return GANTRY_OK;
    return !a || gy_vec_push(&a->weight, buffer) ? GANTRY_OK : gy_fail_nomem(err);
}

static gantry_status find_weights(const gantry_graph *g, const gantry_train_options *o, gy_adjoint *a,
                                  gantry_error *err)
{
    if (o->weight_count == 0)
        return fail_option(g, "/weights", err, "training without weights; name at least one buffer");
    for (size_t i = 0; i < o->weight_count; i++) {
        const char *name = o->weights[i];
        char inside[40];
        snprintf(inside, sizeof inside, "/weights/%zu", i);
        uint32_t found = gy_names_find(&g->buffer_names, name);
        if (found != GY_NO_NAME) {
            GY_TRY(take_weight(g, found, inside, a, err));
            continue;
        }
        for (uint32_t k = 0; k < g->buffers.count; k++) {
            if (!strchr(name, '*') || fnmatch(name, g->buffers.at[k].name, FNM_NOESCAPE) != 0)
                continue;
            found = k;
            GY_TRY(take_weight(g, k, inside, a, err));
        }
        if (found == GY_NO_NAME)
            return fail_name(g, inside, "a weight", name, err);
    }
    return GANTRY_OK;
}

gantry_status gy_train_find(gy_adjoint *a)
{
    a->loss = a->graph->loss;
    return find_weights(a->graph, a->options, a, a->err);
}

gantry_status gy_train_spell_weights(gantry_graph *g, gantry_error *err)
{
    gy_adjoint a = { .graph = g, .options = g->train, .err = err };
    gantry_train_options *o = gy_arena_calloc(&g->arena, 1, sizeof *o);
    gantry_status status = o ? gy_train_find(&a) : gy_fail_nomem(err);
    const char **name = status ? NULL : gy_arena_calloc(&g->arena, a.weight.count + 1, sizeof *name);
    status = !status && !name ? gy_fail_nomem(err) : status;
    for (size_t i = 0; i < a.weight.count && !status; i++)
        name[i] = g->buffers.at[a.weight.at[i]].name;
    if (!status) {
        *o = *g->train;
        o->weights = name;
        o->weight_count = a.weight.count;
        g->train = o;
    }
    gy_vec_free(&a.weight);
    return status;
}

static gantry_status check_batch(const gantry_graph *g, const gantry_train_options *o, gantry_error *err)
{
    for (size_t i = 0; i < o->batch_count; i++) {
        char inside[40];
        snprintf(inside, sizeof inside, "/batch/%zu", i);
        if (gy_names_find(&g->buffer_names, o->batch[i]) == GY_NO_NAME)
            return fail_name(g, inside, "of the batch", o->batch[i], err);
    }
    return GANTRY_OK;
}

/* ---- all of it ---- */

static bool copy_names(gantry_graph *g, const char *const **to, const char *const *given, size_t count)
{
    const char **copy = gy_arena_calloc(&g->arena, count + 1, sizeof *copy);
    for (size_t i = 0; copy && i < count; i++)
        if (!(copy[i] = gy_build_string(g, given[i])))
            return false;
    *to = copy;
    return copy != NULL;
}

static gantry_status copy_options(gantry_graph *g, const gantry_train_options *given, gantry_error *err)
{
    gantry_train_options *o = gy_arena_calloc(&g->arena, 1, sizeof *o);
    if (!o)
        return gy_fail_nomem(err);
    *o = *given;
    o->loss = gy_build_string(g, given->loss);
    o->schedule = given->schedule ? gy_build_string(g, given->schedule) : NULL;
    bool copied = copy_names(g, &o->weights, given->weights, given->weight_count) &&
                  copy_names(g, &o->batch, given->batch, given->batch_count) && o->loss &&
                  (o->schedule || !given->schedule);
    g->train_origin = gy_build_origin(g);
    if (!copied || g->train_origin == GY_NONE)
        return gy_fail_nomem(err);
    if (o->weight_decay < 0 && isfinite(o->weight_decay))
        o->weight_decay = o->optimizer == GANTRY_OPTIMIZER_ADAMW ? 0.01 : 0;
    if (o->loss_scale == 0)
        o->loss_scale = 1;
    g->train = o;
    return GANTRY_OK;
}

static gantry_status check_pointers(const gantry_train_options *o, gantry_error *err)
{
    if (!o->loss)
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "`loss` of the training options is NULL; give the name of a buffer of one element");
    for (size_t i = 0; i < o->weight_count; i++)
        if (!o->weights || !o->weights[i])
            return gy_fail(err, GANTRY_E_INVALID, NULL,
                           "weights%s of the training options is NULL and weight_count is %zu; give as many as you say",
                           o->weights ? "[i]" : "", o->weight_count);
    for (size_t i = 0; i < o->batch_count; i++)
        if (!o->batch || !o->batch[i])
            return gy_fail(err, GANTRY_E_INVALID, NULL,
                           "batch%s of the training options is NULL and batch_count is %zu; give as many as you say",
                           o->batch ? "[i]" : "", o->batch_count);
    return GANTRY_OK;
}

gantry_status gy_train_note(gantry_graph *graph, const gantry_train_options *options, gantry_error *err)
{
    gantry_train_options all = GANTRY_TRAIN_OPTIONS_INIT;
    GY_TRY(gy_struct_read(&all, sizeof all, options, "gantry_train_options", err));
    GY_TRY(gy_struct_reserved(all.reserved, "gantry_train_options", err));
    GY_TRY(check_pointers(&all, err));
    GY_TRY(copy_options(graph, &all, err));
    GY_TRY(check_numbers(graph, graph->train, err));
    GY_TRY(check_loss(graph, graph->train->loss, err));
    GY_TRY(find_weights(graph, graph->train, NULL, err));
    GY_TRY(check_batch(graph, graph->train, err));
    return graph->train->schedule ? check_schedule(graph, graph->train->schedule, err) : GANTRY_OK;
}
