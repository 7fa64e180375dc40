/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients are used: steps of an optimiser, as maps over each weight. */
#include "graph/adjoint/adjoint.h"
#include "graph/build/build_state.h"

#include <string.h>

/* Buffers of one element, f64, that all weights share; those that are not wanted are not made. */
typedef struct optimiser {
    gy_adjoint *a;
    gantry_graph *graph;
    const gantry_train_options *o;
    gantry_buffer step, rate, norm, clip, unbias1, unbias2, ok;
} optimiser;

/* A name of a formula stands for the part at hand of a buffer that is cut like a weight, for a buffer of one element,
 * or for a number. */
typedef enum sort { CUT, ONE, NUMBER } sort;
typedef struct named {
    const char *name;
    sort sort;
    gantry_buffer buffer;
    double number;
} named;

static gantry_buffer gradient_of(gy_adjoint *a, uint32_t weight)
{
    return gy_adjoint_buffer(a, weight);
}

static int64_t parts_of(const gantry_graph *g, uint32_t buffer)
{
    return gy_adjoint_parts(&g->buffers.at[buffer]);
}

/* "w.step", or "w.step[2]" of part, or tile, 2. */
static const char *id_of(const optimiser *s, uint32_t weight, const char *name, int64_t part)
{
    const gy_buffer *b = &s->graph->buffers.at[weight];
    const char *id = gy_adjoint_is_cut(b)
                         ? gy_arena_printf(&s->a->scratch, "%s.%s[%lld]", b->name, name, (long long)part)
                         : gy_arena_printf(&s->a->scratch, "%s.%s", b->name, name);
    if (!id)
        gy_build_nomem(s->graph);
    return id ? id : "";
}

static void give(const optimiser *s, gantry_node node, const named *all, size_t count, int64_t part)
{
    gantry_graph *g = s->graph;
    if (g->error.status)
        return;
    const gy_maths *m = g->kernels.at[g->nodes.at[node.id].kernel].maths;
    for (uint32_t i = 0; i < m->args; i++) {
        for (size_t k = 0; k < count; k++) {
            const named *n = &all[k];
            if (strcmp(n->name, m->arg[i]) != 0)
                continue;
            if (n->sort == NUMBER)
                gantry_node_scalar(g, node, n->name, n->number);
            else
                gantry_node_arg(g, node, n->name,
                                n->sort == CUT ? gy_adjoint_part(g, n->buffer, part) : gantry_all(n->buffer));
        }
    }
}

/* ---- what all weights share ---- */

static gantry_buffer make_number(const optimiser *s, const char *name)
{
    return gy_adjoint_number(s->a, name);
}

static void count_steps(optimiser *s)
{
    s->step = make_number(s, "train.step");
    gantry_buffer_set_class(s->graph, s->step, GANTRY_STATE);
    gantry_buffer_init_value(s->graph, s->step, 0);
    bool skips = gy_train_scales_itself(s->o);
    gantry_node node = gantry_graph_map(s->graph, "train.step", skips ? "step = step + ok" : "step = step + 1");
    const named all[] = { { "step", ONE, s->step, 0 }, { "ok", ONE, s->ok, 0 } };
    give(s, node, all, sizeof all / sizeof *all, 0);
}

/* The result's name gives way to params. */
static const char *name_of_rate(const optimiser *s)
{
    const char *name = "rate";
    for (size_t i = 0; i < s->graph->params.count && name; i++) {
        if (strcmp(s->graph->params.at[i].name, name) != 0)
            continue;
        name = gy_arena_printf(&s->a->scratch, "%s_", name);
        i = (size_t)-1; /* the new name may be one, too */
    }
    return name;
}

static void give_params(const optimiser *s, gantry_node node)
{
    for (size_t i = 0; i < s->graph->params.count; i++) {
        const gy_param *p = &s->graph->params.at[i];
        const named param = { p->name, NUMBER, { GANTRY_NONE, 0 }, p->is_real ? p->real : (double)p->integer };
        if (strcmp(p->name, "step") != 0)
            give(s, node, &param, 1, 0);
    }
}

static void make_rate(optimiser *s)
{
    gantry_graph *g = s->graph;
    char number[GY_DOUBLE_TEXT];
    const char *name = name_of_rate(s);
    const char *formula = gy_arena_printf(&s->a->scratch, "%s = %s * (%s)", name ? name : "",
                                          gy_double_text(number, sizeof number, s->o->learning_rate), s->o->schedule);
    if (!name || !formula)
        gy_build_nomem(g);
    s->rate = make_number(s, "train.rate");
    gantry_node node = gantry_graph_map(g, "train.rate", formula);
    const named own[] = { { name, ONE, s->rate, 0 }, { "step", ONE, s->step, 0 } };
    give(s, node, own, 2, 0);
    give_params(s, node);
}

/* Factors that make up for the zeros that the means of Adam begin with. */
static void make_unbias(optimiser *s)
{
    s->unbias1 = make_number(s, "train.unbias1");
    s->unbias2 = make_number(s, "train.unbias2");
    gantry_node node = gantry_graph_map(s->graph, "train.unbias",
                                        "unbias1 = 1 / (1 - pow(beta1, step)); unbias2 = 1 / (1 - pow(beta2, step))");
    const named all[] = { { "unbias1", ONE, s->unbias1, 0 },
                          { "unbias2", ONE, s->unbias2, 0 },
                          { "step", ONE, s->step, 0 },
                          { "beta1", NUMBER, { GANTRY_NONE, 0 }, s->o->beta1 },
                          { "beta2", NUMBER, { GANTRY_NONE, 0 }, s->o->beta2 } };
    give(s, node, all, sizeof all / sizeof *all, 0);
}

static void add_to_norm(const optimiser *s, uint32_t weight, int64_t part)
{
    gantry_graph *g = s->graph;
    const char *formula =
        g->buffers.at[weight].dtype == GANTRY_F64 ? "norm = sum(square(g))" : "norm = sum(square(f64(g)))";
    gantry_buffer gradient =
        gradient_of(s->a, weight); /* one that nobody gave to is filled here, ahead of its reader */
    gantry_node node = gantry_graph_reduce(g, id_of(s, weight, "norm", part), formula);
    gantry_node_arg(g, node, "g", gy_adjoint_part(g, gradient, part));
    gantry_node_arg_as(g, node, "norm", gantry_all(s->norm), GANTRY_SUM);
    gy_adjoint_own(s->a, node, weight, part);
}

static void make_norm(optimiser *s)
{
    s->norm = make_number(s, "train.norm");
    for (size_t w = 0; w < s->a->weight.count; w++)
        for (int64_t i = 0; i < parts_of(s->graph, s->a->weight.at[w]); i++)
            add_to_norm(s, s->a->weight.at[w], i);
}

static void make_clip(optimiser *s)
{
    bool scales = gy_train_scales_itself(s->o);
    s->clip = make_number(s, "train.clip");
    gantry_node node =
        gantry_graph_map(s->graph, "train.clip",
                         scales ? "clip = min(1, most * scale / sqrt(norm))" : "clip = min(1, most / sqrt(norm))");
    const named all[] = {
        { "clip", ONE, s->clip, 0 },
        { "norm", ONE, s->norm, 0 },
        { "scale", ONE, s->a->scale, 0 },
        { "most", NUMBER, { GANTRY_NONE, 0 }, scales ? s->o->clip_norm : s->o->clip_norm * s->o->loss_scale }
    };
    give(s, node, all, sizeof all / sizeof *all, 0);
}

/* Is each element of each gradient finite? Their squares do not overflow in f64. */
static void make_ok(optimiser *s)
{
    s->ok = make_number(s, "train.ok");
    gantry_node node = gantry_graph_map(s->graph, "train.ok", "ok = norm - norm == 0");
    const named all[] = { { "ok", ONE, s->ok, 0 }, { "norm", ONE, s->norm, 0 } };
    give(s, node, all, sizeof all / sizeof *all, 0);
}

/* Half of it where something overflowed, twice as much after 2,000 steps in a row in which nothing did: as PyTorch's
 * GradScaler. */
static void change_scale(const optimiser *s)
{
    gantry_buffer good = make_number(s, "train.good");
    gantry_buffer_set_class(s->graph, good, GANTRY_STATE);
    gantry_buffer_init_value(s->graph, good, 0);
    gantry_node node = gantry_graph_map(s->graph, "train.scale",
                                        "scale = select(ok, select(good < most, scale, scale * 2), max(scale / 2, 1)); "
                                        "good = select(ok, select(good < most, good + 1, 0), 0)");
    const named all[] = { { "scale", ONE, s->a->scale, 0 },
                          { "good", ONE, good, 0 },
                          { "ok", ONE, s->ok, 0 },
                          { "most", NUMBER, { GANTRY_NONE, 0 }, 1999 } };
    give(s, node, all, sizeof all / sizeof *all, 0);
}

/* ---- steps ---- */

/* The gradient as the optimiser sees it. */
static const char *gradient_text(const optimiser *s, const char *cast)
{
    bool clips = s->o->clip_norm > 0, scales = s->o->loss_scale != 1;
    bool decays = s->o->weight_decay != 0 && s->o->optimizer != GANTRY_OPTIMIZER_ADAMW;
    if (!clips && !decays && !scales)
        return "g";
    const char *scale =
        gy_train_scales_itself(s->o) ? gy_arena_printf(&s->a->scratch, " / %s(scale)", cast) : " / loss_scale";
    return scale ? gy_arena_printf(&s->a->scratch, "(g%s%s%s%s%s)", scales ? scale : "", clips ? " * " : "",
                                   clips ? cast : "", clips ? "(clip)" : "", decays ? " + decay * w" : "")
                 : NULL;
}

/* "w = ..."; what a step that is left out does not change. */
static const char *becomes(const optimiser *s, const char *name, const char *text)
{
    if (!text || !gy_train_scales_itself(s->o))
        return text ? gy_arena_printf(&s->a->scratch, "%s = %s", name, text) : NULL;
    return gy_arena_printf(&s->a->scratch, "%s = select(ok, %s, %s)", name, text, name);
}

static const char *adam_text(const optimiser *s, const char *cast, const char *rate, const char *g)
{
    gy_arena *arena = &s->a->scratch;
    bool decays = s->o->weight_decay != 0 && s->o->optimizer == GANTRY_OPTIMIZER_ADAMW;
    const char *m = gy_arena_printf(arena, "(beta1 * m + (1 - beta1) * %s)", g);
    const char *v = gy_arena_printf(arena, "(beta2 * v + (1 - beta2) * square(%s))", g);
    if (!m || !v)
        return NULL;
    const char *w = gy_arena_printf(arena, "w - %s * (%s * %s(unbias1) / (sqrt(%s * %s(unbias2)) + epsilon)%s)", rate,
                                    m, cast, v, cast, decays ? " + decay * w" : "");
    const char *all[] = { becomes(s, "m", m), becomes(s, "v", v), becomes(s, "w", w) };
    return all[0] && all[1] && all[2] ? gy_arena_printf(arena, "%s; %s; %s", all[0], all[1], all[2]) : NULL;
}

static const char *momentum_text(const optimiser *s, const char *rate, const char *g)
{
    gy_arena *arena = &s->a->scratch;
    const char *m = gy_arena_printf(arena, "momentum * m + %s", g);
    const char *w = m ? gy_arena_printf(arena, "w - %s * (%s)", rate, m) : NULL;
    const char *all[] = { becomes(s, "m", m), becomes(s, "w", w) };
    return all[0] && all[1] ? gy_arena_printf(arena, "%s; %s", all[0], all[1]) : NULL;
}

/* Formulas of one weight. Numbers that all share are f64: they are made what the weight is computed in. */
static const char *step_text(const optimiser *s, gantry_dtype dtype)
{
    const char *cast = dtype == GANTRY_F64 ? "f64" : "f32";
    const char *rate = s->o->schedule ? gy_arena_printf(&s->a->scratch, "%s(rate)", cast) : "rate";
    const char *g = gradient_text(s, cast);
    if (!rate || !g)
        return NULL;
    if (gy_train_is_adam(s->o->optimizer))
        return adam_text(s, cast, rate, g);
    if (s->o->optimizer == GANTRY_OPTIMIZER_SGD)
        return becomes(s, "w", gy_arena_printf(&s->a->scratch, "w - %s * %s", rate, g));
    return momentum_text(s, rate, g);
}

static gantry_buffer make_state(const optimiser *s, uint32_t weight, const char *name)
{
    const gy_buffer *b = &s->graph->buffers.at[weight];
    gantry_dtype dtype = b->dtype == GANTRY_F64 ? GANTRY_F64 : GANTRY_F32;
    gantry_buffer made = gy_adjoint_named(s->a, weight, name, b->rank, b->shape, dtype);
    gantry_buffer_set_class(s->graph, made, GANTRY_STATE);
    gantry_buffer_init_value(s->graph, made, 0);
    return made;
}

static void step(const optimiser *s, uint32_t weight)
{
    gantry_graph *g = s->graph;
    const gantry_train_options *o = s->o;
    const gantry_buffer none = { GANTRY_NONE, 0 };
    const char *formulas = step_text(s, g->buffers.at[weight].dtype);
    if (!formulas)
        gy_build_nomem(g);
    gantry_buffer_set_class(g, (gantry_buffer){ weight, g->number }, GANTRY_STATE);
    gantry_buffer m = o->optimizer == GANTRY_OPTIMIZER_SGD ? none : make_state(s, weight, "m");
    gantry_buffer v = gy_train_is_adam(o->optimizer) ? make_state(s, weight, "v") : none;
    const named all[] = {
        { "w", CUT, { weight, g->number }, 0 },
        { "g", CUT, gradient_of(s->a, weight), 0 },
        { "m", CUT, m, 0 },
        { "v", CUT, v, 0 },
        { "clip", ONE, s->clip, 0 },
        { "unbias1", ONE, s->unbias1, 0 },
        { "unbias2", ONE, s->unbias2, 0 },
        { "rate", o->schedule ? ONE : NUMBER, s->rate, o->learning_rate },
        { "momentum", NUMBER, none, o->momentum },
        { "beta1", NUMBER, none, o->beta1 },
        { "beta2", NUMBER, none, o->beta2 },
        { "epsilon", NUMBER, none, o->epsilon },
        { "decay", NUMBER, none, o->weight_decay },
        { "loss_scale", NUMBER, none, o->loss_scale },
        { "scale", ONE, s->a->scale, 0 },
        { "ok", ONE, s->ok, 0 },
    };
    for (int64_t i = 0; i < parts_of(g, weight); i++) {
        gantry_node node = gantry_graph_map(g, id_of(s, weight, "step", i), formulas);
        give(s, node, all, sizeof all / sizeof *all, i);
        gy_adjoint_own(s->a, node, weight, i);
    }
    s->a->turn += !gy_adjoint_is_cut(&g->buffers.at[weight]);
}

gantry_status gy_adjoint_optimise(gy_adjoint *a)
{
    optimiser s = { .a = a, .graph = a->graph, .o = a->options };
    gantry_graph *g = a->graph;
    gantry_buffer_output(g, (gantry_buffer){ a->loss, g->number });
    for (size_t w = 0; w < a->weight.count && s.o->optimizer == GANTRY_OPTIMIZER_NONE; w++)
        gantry_buffer_output(g, gradient_of(a, a->weight.at[w]));
    if (s.o->optimizer == GANTRY_OPTIMIZER_NONE)
        return gy_adjoint_built(a);
    bool scales = gy_train_scales_itself(s.o);
    if (s.o->clip_norm > 0 || scales)
        make_norm(&s);
    if (scales)
        make_ok(&s);
    if (gy_train_is_adam(s.o->optimizer) || s.o->schedule)
        count_steps(&s);
    if (s.o->schedule)
        make_rate(&s);
    if (gy_train_is_adam(s.o->optimizer))
        make_unbias(&s);
    if (s.o->clip_norm > 0)
        make_clip(&s);
    for (size_t w = 0; w < a->weight.count; w++)
        step(&s, a->weight.at[w]);
    if (scales)
        change_scale(&s);
    return gy_adjoint_built(a);
}
