/* SPDX-License-Identifier: Apache-2.0 */
/* `train`: what training a model means. It is noted, and checked, whether or not the graph is trained. */
#include "graph/json/json_read.h"

#include "base/error.h"
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"
#include <string.h>

typedef enum key {
    LOSS,
    WEIGHTS,
    OPTIMIZER,
    RATE,
    SCHEDULE,
    MOMENTUM,
    BETA1,
    BETA2,
    EPSILON,
    DECAY,
    CLIP,
    SCALE,
    BATCH,
    KEYS
} key;
static const char *const keys[KEYS] = {
    [LOSS] = "loss",         [WEIGHTS] = "weights",    [OPTIMIZER] = "optimizer", [RATE] = "learning_rate",
    [SCHEDULE] = "schedule", [MOMENTUM] = "momentum",  [BETA1] = "beta1",         [BETA2] = "beta2",
    [EPSILON] = "epsilon",   [DECAY] = "weight_decay", [CLIP] = "clip_norm",      [SCALE] = "loss_scale",
    [BATCH] = "batch",
};

static gantry_status read_optimizer(gy_reader *r, const gy_json_at *up, const json_t *value, gantry_train_options *o)
{
    enum { OPTIMIZERS = GANTRY_OPTIMIZER_ADAMW + 1 };
    const char *words[OPTIMIZERS];
    size_t found = 0;
    gy_json_at at = gy_read_at(up, keys[OPTIMIZER], value);
    if (!value)
        return GANTRY_OK;
    for (int i = 0; i < OPTIMIZERS; i++)
        words[i] = gantry_optimizer_name((gantry_optimizer)i);
    GY_TRY(gy_read_word(r, &at, keys[OPTIMIZER], words, OPTIMIZERS, &found));
    o->optimizer = (gantry_optimizer)found;
    return GANTRY_OK;
}

static gantry_status read_names(gy_reader *r, const gy_json_at *up, key which, const json_t *value,
                                const char *const **to, size_t *count)
{
    gy_json_at at = gy_read_at(up, keys[which], value);
    if (!json_is_array(value))
        return gy_read_kind(r, &at, "an array of names of buffers");
    const char **names = gy_arena_calloc(&r->graph->arena, json_array_size(value) + 1, sizeof *names);
    if (!names)
        return gy_read_nomem(r);
    for (size_t i = 0; i < json_array_size(value); i++) {
        gy_json_at item = gy_read_item(&at, i);
        GY_TRY(gy_read_string(r, &item, "the name of a buffer", &names[i]));
    }
    *to = names;
    *count = json_array_size(value);
    return GANTRY_OK;
}

static gantry_status read_numbers(gy_reader *r, const gy_json_at *up, const json_t *const *value,
                                  gantry_train_options *o)
{
    const struct {
        key key;
        double *to;
    } numbers[] = {
        { RATE, &o->learning_rate }, { MOMENTUM, &o->momentum },  { BETA1, &o->beta1 },    { BETA2, &o->beta2 },
        { EPSILON, &o->epsilon },    { DECAY, &o->weight_decay }, { CLIP, &o->clip_norm }, { SCALE, &o->loss_scale },
    };
    for (size_t i = 0; i < COUNT(numbers); i++) {
        gy_json_at at = gy_read_at(up, keys[numbers[i].key], value[numbers[i].key]);
        bool is_auto = numbers[i].key == SCALE && at.value && json_is_string(at.value) &&
                       strcmp(json_string_value(at.value), "auto") == 0;
        if (is_auto)
            *numbers[i].to = GANTRY_LOSS_SCALE_AUTO;
        else if (at.value)
            GY_TRY(gy_read_real(r, &at, numbers[i].to));
    }
    gy_json_at decay = gy_read_at(up, keys[DECAY], value[DECAY]);
    if (decay.value && o->weight_decay < 0)
        return gy_read_fail(r, &decay, "must be at least 0, not %g", o->weight_decay);
    return GANTRY_OK;
}

static gantry_status check_needed(gy_reader *r, const gy_json_at *at, const json_t *const *value,
                                  const gantry_train_options *o)
{
    if (!value[LOSS])
        return gy_read_fail(r, at, "has no \"loss\": name the buffer of one element that training makes small");
    if (!value[WEIGHTS])
        return gy_read_fail(r, at, "has no \"weights\": name the buffers that are trained, in an array");
    if (!value[RATE] && o->optimizer != GANTRY_OPTIMIZER_NONE)
        return gy_read_fail(r, at, "has no \"learning_rate\": give a number, such as 0.001");
    return GANTRY_OK;
}

/* A rate that some optimizer has, given to one that has not, is most often meant for the other. */
static gantry_status warn_unused(gy_reader *r, const json_t *const *value, gantry_optimizer optimizer)
{
    bool is_adam = gy_train_is_adam(optimizer);
    const struct {
        key key;
        bool is_used;
        const char *of;
    } all[] = {
        { MOMENTUM, optimizer == GANTRY_OPTIMIZER_MOMENTUM, "\"momentum\"" },
        { BETA1, is_adam, "\"adam\" and \"adamw\"" },
        { BETA2, is_adam, "\"adam\" and \"adamw\"" },
        { EPSILON, is_adam, "\"adam\" and \"adamw\"" },
    };
    gantry_graph *g = r->graph;
    for (size_t i = 0; i < COUNT(all); i++) {
        if (!value[all[i].key] || all[i].is_used)
            continue;
        const char *text = gy_arena_printf(
            &g->arena, "\"%s\" says nothing to optimizer \"%s\": it is of %s; take another optimizer, or leave it out",
            keys[all[i].key], gantry_optimizer_name(optimizer), all[i].of);
        gy_warning warning = { g->train_origin, text };
        if (!text || !gy_vec_push(&g->warnings, warning))
            return gy_read_nomem(r);
    }
    return GANTRY_OK;
}

gantry_status gy_read_train(gy_reader *r, const gy_json_at *root)
{
    const json_t *value[KEYS];
    gantry_train_options o = GANTRY_TRAIN_OPTIONS_INIT;
    gy_json_at at = gy_json_key(root, "train");
    if (!at.value)
        return GANTRY_OK;
    if (!json_is_object(at.value))
        return gy_read_kind(r, &at, "an object with \"loss\", \"weights\" and \"learning_rate\"");
    GY_TRY(gy_read_members(r, &at, keys, KEYS, value));
    GY_TRY(read_optimizer(r, &at, value[OPTIMIZER], &o));
    GY_TRY(check_needed(r, &at, value, &o));
    gy_json_at loss = gy_read_at(&at, keys[LOSS], value[LOSS]);
    gy_json_at schedule = gy_read_at(&at, keys[SCHEDULE], value[SCHEDULE]);
    GY_TRY(gy_read_string(r, &loss, "the name of a buffer", &o.loss));
    GY_TRY(read_names(r, &at, WEIGHTS, value[WEIGHTS], &o.weights, &o.weight_count));
    if (value[BATCH])
        GY_TRY(read_names(r, &at, BATCH, value[BATCH], &o.batch, &o.batch_count));
    if (schedule.value)
        GY_TRY(gy_read_string(r, &schedule, "a formula over step, such as \"min(1, step / 100)\"", &o.schedule));
    GY_TRY(read_numbers(r, &at, value, &o));
    gy_read_origin(r, &at);
    gantry_status status = gy_train_note(r->graph, &o, &r->error);
    return status ? gy_read_placed(r) : warn_unused(r, value, o.optimizer);
}

/* ---- the model without its training ---- */

/* Numbers that are other ones where a model is used than where it is trained. */
static const struct {
    const char *kernel, *arg;
    double value;
} used[] = { { "dropout", "p", 0 } };

static void use(gantry_graph *g, const gy_node *n)
{
    const gantry_kernel *k = n->kernel == GY_NONE ? NULL : g->kernels.at[n->kernel].manifest;
    for (size_t i = 0; k && i < COUNT(used); i++)
        for (uint32_t s = 0; s < n->scalars && strcmp(k->name, used[i].kernel) == 0; s++) {
            gy_scalar *scalar = &g->scalar.at[n->scalar + s];
            if (strcmp(k->arg[scalar->arg].name, used[i].arg) == 0)
                *scalar = (gy_scalar){ .arg = scalar->arg, .number = { .real = used[i].value } };
        }
}

gantry_status gy_read_evaluated(gy_reader *r)
{
    gantry_graph *g = r->graph;
    GY_TRY(gy_train_check(g, NULL, "gantry_graph_load", &r->error));
    if (!gy_build_merge(g))
        return gy_read_nomem(r);
    for (size_t i = 0; i < g->nodes.count; i++)
        use(g, &g->nodes.at[i]);
    gantry_buffer_output(g, gantry_graph_loss(g));
    r->error = g->error;
    return r->error.status;
}
