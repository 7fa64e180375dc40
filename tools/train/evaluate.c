/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gantry train --evaluate N: between starts, the model as it is used gets the weights of the training and data that the
 * training does not see. It is a graph, a schedule and a run of its own, so that no bit of the training, and nothing of
 * its schedule, depends on it.
 */
#include "runs/run.h"

#include "../results/results.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A state of the training that the model begins with. */
typedef struct handed {
    gantry_buffer from, to;
    void *memory;
    uint64_t bytes;
} handed;

typedef struct mean {
    gantry_buffer output; /* of one element */
    const char *name;
    double sum, value; /* value: of the last evaluation */
} mean;

/* One model: that of the training, or of one of its trials. */
typedef struct evaluated {
    options o;
    session of;
    const char *param; /* of the trial; NULL: there are none */
    size_t trial;
    char prefix[40]; /* of the trial's buffers in the training, with its point; "" */
    uint64_t arrays; /* that are held out: as many starts */
    char **own;      /* texts of `o.inputs` that were made here */
    size_t own_count;
    handed *hands;
    size_t hand_count;
    mean *means; /* the loss is the first */
    size_t mean_count;
} evaluated;

struct evaluation {
    evaluated *at;
    size_t count;
    json_t *told;
};

/* ---- before anything runs ---- */

int check_evaluated(const options *o)
{
    const char *why = NULL;
    if (!o->evaluate && !o->evaluate_inputs.count)
        return EXIT_FINE;
    if (!o->evaluate)
        why = "--evaluate-input is for --evaluate N, which says how often the model is evaluated; give both";
    else if (o->backend && strcmp(o->backend, "sim") == 0)
        why = "--evaluate needs results, and back end \"sim\" gives times only; use host";
    else if (strcmp(o->positional.at[0], "-") == 0)
        why = "--evaluate reads the model once more than the training; give a file, not standard input";
    if (!why)
        return EXIT_FINE;
    complain("gantry train: %s\n", why);
    return EXIT_USAGE;
}

/* ---- the data ---- */

static bool append(string_list *list, const char *text)
{
    const char **at = realloc((void *)list->at, (list->count + 1) * sizeof *at);
    if (!at)
        return false;
    list->at = at;
    list->at[list->count++] = text;
    return true;
}

/* The option's value for this buffer; NULL: it is not named. */
static const char *held_out(const options *o, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < o->evaluate_inputs.count; i++)
        if (strncmp(o->evaluate_inputs.at[i], name, length) == 0 && o->evaluate_inputs.at[i][length] == '=')
            return o->evaluate_inputs.at[i];
    return NULL;
}

static bool is_state(const gantry_graph *graph, gantry_buffer buffer, gantry_buffer_info *info)
{
    *info = (gantry_buffer_info)GANTRY_BUFFER_INFO_INIT;
    return !gantry_graph_buffer_info(graph, buffer, info, NULL) && info->cls == GANTRY_STATE;
}

/* An --input of the training, number i, that the model has too, if it is one array for all starts. */
static int take_input(const session *s, evaluated *e, size_t i)
{
    gantry_buffer buffer;
    gantry_buffer_info info;
    const char *path;
    size_t length = strlen(e->prefix);
    size_t trial = s->trials ? trial_of_input(s->trials, i) : 0;
    int code = find_binding(s, "input", s->o->inputs.at[i], &buffer, &path);
    if (code || is_state(s->graph, buffer, &info) || (s->trials && trial != e->trial && trial < trial_count(s->trials)))
        return code;
    const char *name = strncmp(info.name, e->prefix, length) == 0 ? info.name + length : info.name;
    if (held_out(s->o, name))
        return EXIT_FINE;
    if (s->fed[i]) {
        complain(
            "--evaluate: each step reads another array of \"%s\", and none of them is held out; name some that the "
            "training does not read, --evaluate-input %s=FILES\n",
            name, name);
        return EXIT_USAGE;
    }
    code = check_read_once("input", s->o->inputs.at[i], path, "--evaluate reads what the training reads once more");
    if (code)
        return code;
    char **grown = realloc(e->own, (e->own_count + 1) * sizeof *grown);
    if (!grown)
        return fail_nomem();
    e->own = grown;
    if (asprintf(&grown[e->own_count], "%s=%s", name, path) < 0)
        return fail_nomem();
    return append(&e->o.inputs, grown[e->own_count++]) ? EXIT_FINE : fail_nomem();
}

/* Options of the model: those of the training, less what that alone reports and keeps. */
static int take_options(const session *s, evaluated *e)
{
    int code = EXIT_FINE;
    e->o = *s->o;
    e->o.train = false;
    e->o.as_used = e->o.quiet = true;
    e->o.inputs = e->o.outputs = e->o.shows = e->o.watched = (string_list){ 0 };
    e->o.feed = s->o->feed ? "cycle" : NULL;
    e->o.trace = e->o.html = e->o.calibrate = e->o.checkpoint = e->o.resume = e->o.schedule = e->o.objective = NULL;
    e->o.compare = e->o.profile = e->o.check = false;
    e->o.in_flight = 0;
    if (e->o.balance && strcmp(e->o.balance, "guided") == 0)
        e->o.balance = NULL;
    for (size_t i = 0; i < s->o->evaluate_inputs.count; i++)
        if (!append(&e->o.inputs, s->o->evaluate_inputs.at[i]))
            return fail_nomem();
    for (size_t i = 0; i < s->o->inputs.count && !code; i++)
        code = take_input(s, e, i);
    return code;
}

/* ---- the model ---- */

/* Names of the training, which are those of the model but where trials have their own. */
static int check_names(const session *s)
{
    gantry_buffer buffer;
    const char *path;
    int code = EXIT_FINE;
    for (size_t i = 0; !s->trials && i < s->o->evaluate_inputs.count && !code; i++)
        code = find_binding(s, "evaluate-input", s->o->evaluate_inputs.at[i], &buffer, &path);
    return code;
}

static int check_inputs(const session *s, const evaluated *e)
{
    for (size_t i = 0; i < s->o->evaluate_inputs.count; i++) {
        gantry_buffer buffer;
        gantry_buffer_info info = GANTRY_BUFFER_INFO_INIT, there;
        const char *path;
        int code = find_binding(&e->of, "evaluate-input", s->o->evaluate_inputs.at[i], &buffer, &path);
        if (!code && s->trials)
            code =
                check_read_once("evaluate-input", s->o->evaluate_inputs.at[i], path, "each trial is evaluated with it");
        if (code)
            return code;
        gantry_error err;
        char name[300];
        if (gantry_graph_buffer_info(e->of.graph, buffer, &info, &err))
            return fail(&err);
        snprintf(name, sizeof name, "%s%s", e->prefix, info.name);
        gantry_buffer same = gantry_graph_find_buffer(s->graph, name);
        if (same.id != GANTRY_NONE && is_state(s->graph, same, &there)) {
            complain("--evaluate-input: \"%s\" is a weight or a state, and those are taken from the training; leave it "
                     "out\n",
                     info.name);
            return EXIT_USAGE;
        }
    }
    return EXIT_FINE;
}

/* The training has the state by the name of the trial, or without one where trials share it. */
static int take_state(const session *s, evaluated *e, gantry_buffer to, const gantry_buffer_info *info)
{
    char name[300];
    gantry_buffer_info there;
    snprintf(name, sizeof name, "%s%s", e->prefix, info->name);
    gantry_buffer from = gantry_graph_find_buffer(s->graph, name);
    if (info->cls == GANTRY_TEMP || from.id == GANTRY_NONE || !is_state(s->graph, from, &there))
        return EXIT_FINE;
    handed *grown = realloc(e->hands, (e->hand_count + 1) * sizeof *grown);
    if (!grown)
        return fail_nomem();
    e->hands = grown;
    grown[e->hand_count] = (handed){ from, to, malloc(info->bytes + 1), info->bytes };
    return grown[e->hand_count++].memory ? EXIT_FINE : fail_nomem();
}

static int take_mean(evaluated *e, gantry_buffer output, const gantry_buffer_info *info)
{
    mean *grown = realloc(e->means, (e->mean_count + 1) * sizeof *grown);
    if (!grown)
        return fail_nomem();
    e->means = grown;
    grown[e->mean_count++] = (mean){ .output = output, .name = info->name };
    return EXIT_FINE;
}

/* The loss, then other outputs of one element, such as how much of a batch is right; weights are none of them. */
static int take_buffers(const session *s, evaluated *e)
{
    gantry_buffer loss = gantry_graph_loss(e->of.graph);
    gantry_buffer_info info;
    is_output(&e->of, loss.id, &info);
    int code = take_mean(e, loss, &info);
    for (uint32_t i = 0; i < gantry_graph_buffer_count(e->of.graph) && !code; i++) {
        size_t hands = e->hand_count;
        bool output = is_output(&e->of, i, &info);
        gantry_buffer buffer = { .id = i };
        code = take_state(s, e, buffer, &info);
        if (!code && output && hands == e->hand_count && i != loss.id && info.bytes == gantry_dtype_size(info.dtype))
            code = take_mean(e, buffer, &info);
    }
    return code;
}

/* All that is fed has as many arrays; without any there is one start. */
static int count_arrays(evaluated *e)
{
    const char *first = NULL;
    e->arrays = 1;
    for (size_t i = 0; i < e->o.inputs.count; i++) {
        uint64_t arrays = e->of.fed[i];
        if (first && arrays && arrays != e->arrays) {
            complain("--evaluate-input: %s has %" PRIu64 " arrays, and %s has %" PRIu64 "; give as many of each\n",
                     first, e->arrays, e->o.inputs.at[i], arrays);
            return EXIT_USAGE;
        }
        first = first || !arrays ? first : e->o.inputs.at[i];
        e->arrays = arrays ? arrays : e->arrays;
    }
    return EXIT_FINE;
}

static int open_one(session *s, evaluated *e, size_t i)
{
    if (s->trials) {
        e->trial = i;
        e->param = trial_param(s->trials, i);
        snprintf(e->prefix, sizeof e->prefix, "trial%zu.", i);
    }
    int code = take_options(s, e);
    e->of = (session){ .o = &e->o, .ranks = s->ranks, .by_first = true };
    if (!code)
        code = e->param ? load_with(&e->of.graph, &e->o, e->param)
                        : load_graph(&e->of.graph, &e->o, e->o.positional.at[0]);
    if (!code)
        code = check_inputs(s, e);
    if (!code)
        code = schedule_on(&e->of.schedule, &e->o, e->of.graph, gantry_schedule_machine(s->schedule));
    if (!code)
        code = open_run(&e->of, &e->of.run, e->of.schedule, e->o.backend, false);
    if (!code)
        code = count_arrays(e);
    return code ? code : take_buffers(s, e);
}

int open_evaluation(session *s)
{
    if (!s->o->evaluate)
        return EXIT_FINE;
    size_t count = s->trials ? trial_count(s->trials) : 1;
    evaluation *all = s->evaluation = calloc(1, sizeof *all);
    if (!all || !(all->at = calloc(count, sizeof *all->at)) || !(all->told = json_array()))
        return fail_nomem();
    int code = check_names(s);
    for (all->count = 0; all->count < count && !code; all->count++)
        code = open_one(s, &all->at[all->count], all->count);
    return code;
}

static void free_one(evaluated *e)
{
    gantry_run_free(e->of.run);
    gantry_schedule_free(e->of.schedule);
    gantry_graph_free(e->of.graph);
    free(e->of.fed);
    for (size_t i = 0; i < e->hand_count; i++)
        free(e->hands[i].memory);
    free(e->hands);
    free(e->means);
    for (size_t i = 0; i < e->own_count; i++)
        free(e->own[i]);
    free(e->own);
    free((void *)e->o.inputs.at);
}

void free_evaluation(evaluation *all)
{
    for (size_t i = 0; all && i < all->count; i++)
        free_one(&all->at[i]);
    if (all) {
        json_decref(all->told);
        free(all->at);
    }
    free(all);
}

/* ---- between steps ---- */

static int hand_over(const session *s, const evaluated *e)
{
    gantry_error err;
    for (size_t i = 0; i < e->hand_count; i++) {
        const handed *h = &e->hands[i];
        if (gantry_run_state(s->run, h->from, h->memory, h->bytes, &err) ||
            gantry_run_bind(e->of.run, h->to, h->memory, h->bytes, &err))
            return fail(&err);
    }
    return EXIT_FINE;
}

static int add_up(const evaluated *e)
{
    gantry_error err;
    for (size_t i = 0; i < e->mean_count; i++) {
        const void *data;
        gantry_buffer_info info;
        is_output(&e->of, e->means[i].output.id, &info);
        if (gantry_run_output(e->of.run, e->means[i].output, &data, NULL, &err))
            return fail(&err);
        e->means[i].sum += element_real(data, info.dtype, 0);
    }
    return EXIT_FINE;
}

static int evaluate_one(const session *s, evaluated *e)
{
    double us;
    int code = hand_over(s, e);
    e->of.replaced = starts_completed(s); /* whoever looks at the run is told of the training */
    for (size_t i = 0; i < e->mean_count; i++)
        e->means[i].sum = 0;
    for (uint64_t i = 0; i < e->arrays && !code; i++) {
        code = interrupt_code() ? interrupt_code() : start_once(e->of.run, &us);
        code = code ? code : add_up(e);
    }
    for (size_t i = 0; i < e->mean_count; i++)
        e->means[i].value = e->means[i].sum / (double)e->arrays;
    return code;
}

static void print_one(FILE *to, const evaluated *e)
{
    if (e->param)
        fprintf(to, "  %s", e->param);
    for (size_t i = 0; i < e->mean_count; i++)
        fprintf(to, "%s%s %.9g", i || e->param ? " " : "  evaluated ", e->means[i].name, e->means[i].value);
}

static int keep_one(json_t *told, const evaluated *e, size_t step)
{
    json_t *one =
        json_pack("{s:I, s:I, s:s*}", "step", (json_int_t)step, "arrays", (json_int_t)e->arrays, "param", e->param);
    for (size_t i = 0; one && i < e->mean_count; i++)
        json_object_set_new(one, e->means[i].name, number_json(e->means[i].value));
    return json_array_append_new(told, one) ? fail_nomem() : EXIT_FINE;
}

size_t until_evaluation(const session *s, size_t done, size_t most)
{
    size_t every = (size_t)s->o->evaluate;
    return !every || every - done % every > most ? most : every - done % every;
}

int evaluate(session *s, size_t step)
{
    evaluation *all = s->evaluation;
    if (!all || (step % (size_t)s->o->evaluate && step != s->starts))
        return EXIT_FINE;
    FILE *to = s->o->json || uses_stdout(s->o) ? stderr : stdout;
    int code = EXIT_FINE;
    for (size_t i = 0; i < all->count && !code; i++)
        code = evaluate_one(s, &all->at[i]);
    progress_clear();
    if (code)
        return code;
    fprintf(to, "step %zu%s", step, s->trials ? "  evaluated" : "");
    for (size_t i = 0; i < all->count; i++)
        print_one(to, &all->at[i]);
    fputc('\n', to);
    fflush(to); /* whoever reads a pipe sees it now */
    for (size_t i = 0; i < all->count && !code; i++)
        code = keep_one(all->told, &all->at[i], step);
    return code;
}

void add_evaluations_json(json_t *report, const session *s)
{
    if (s->evaluation)
        json_object_set(report, "evaluations", s->evaluation->told);
}
