/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gantry train --trials PARAM=A,B,...: several trainings of a model, each with its own value of a param, side by side
 * in one graph. Each is a file that the graph uses (graph-format.md, `use`); data that are the same in all are there
 * once. A trial is made for one device, and its nodes stay together: so devices have nothing to tell each other, and
 * bits are those of the trial alone on one device, wherever the scheduler puts it. With --strategy a trial is made for
 * as many devices as that is for, and trials take turns with groups of so many.
 */
#include "runs/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 64, NAME = 28 }; /* NAME: room for "trial" and any number */

typedef struct trial {
    char *param; /* "lr=0.1" */
    json_t *json;
    char *file;
    gantry_buffer loss;
    double first, last, least;
    size_t least_at;
} trial;

struct trials {
    size_t count;
    trial at[MOST];
    char *folder;     /* temporary, of the files; NULL: gone */
    int32_t width;    /* devices of a trial */
    options o;        /* those that were given, but for inputs: each has the name of a buffer of all trials or of one */
    char **input;     /* their texts */
    size_t *input_of; /* by input: its trial; `count`: it is for all */
};

static int fail_words(const char *text)
{
    complain("--trials is \"%s\"; it takes a param and 2 to %d values, such as lr=0.1,0.01,0.001\n", text, MOST);
    return EXIT_USAGE;
}

static int read_words(trials *t, const char *text)
{
    const char *sign = strchr(text, '='), *value = sign ? sign + 1 : NULL;
    if (!sign || sign == text)
        return fail_words(text);
    for (;;) {
        size_t length = strcspn(value, ",");
        if (length == 0 || t->count == MOST)
            return fail_words(text);
        if (asprintf(&t->at[t->count].param, "%.*s=%.*s", (int)(sign - text), text, (int)length, value) < 0) {
            t->at[t->count].param = NULL;
            return fail_nomem();
        }
        t->count++;
        if (!value[length])
            return t->count > 1 ? EXIT_FINE : fail_words(text);
        value += length + 1;
    }
}

/* ---- one trial ---- */

/* A file beside the model is none beside the graph that uses it. */
static int check_alone(const json_t *graph)
{
    const char *name;
    json_t *buffer, *init;
    json_object_foreach(json_object_get(graph, "buffers"), name, buffer)
    {
        init = json_object_get(buffer, "init");
        if (json_object_get(init, "npy") || json_object_get(init, "raw")) {
            complain("--trials: buffer \"%s\" begins with a file that the model names; leave its init out and give the "
                     "file by --input\n",
                     name);
            return EXIT_USAGE;
        }
    }
    if (!json_object_get(graph, "kernels"))
        return EXIT_FINE;
    complain("--trials: the model has kernels of its own, which graphs that are put together cannot have\n");
    return EXIT_USAGE;
}

/* Unless the model says itself what goes where. */
static void keep_together(json_t *graph)
{
    static const char *const places[] = { "on", "with", "apart" };
    json_t *nodes = json_object_get(graph, "nodes"), *node;
    const json_t *first = json_object_get(json_array_get(nodes, 0), "id");
    size_t i;
    json_array_foreach(nodes, i, node)
    {
        for (size_t k = 0; k < sizeof places / sizeof *places; k++)
            if (json_object_get(node, places[k]))
                return;
    }
    json_array_foreach(nodes, i, node)
    {
        if (i > 0)
            json_object_set_new(node, "with", json_string(json_string_value(first)));
    }
}

/* Where a strategy has put nodes: an index, or "3 % devices"; -1: other texts, which stay. */
static long long index_in_group(const json_t *on)
{
    long long index;
    int end = 0;
    const char *text = json_string_value(on);
    if (json_is_integer(on))
        return json_integer_value(on);
    return text && sscanf(text, "%lld %% devices%n", &index, &end) == 1 && end && !text[end] ? index : -1;
}

/* Which group it is follows from how many devices there are, so it is left open: a training that is resumed has the
 * same graph on any number of them. */
static json_t *place_in_group(const json_t *on, size_t turn, int32_t width)
{
    long long index = index_in_group(on);
    return index < 0 ? json_deep_copy(on)
                     : json_sprintf("(%lld + %d * (%zu %% max(1, devices // %d))) %% devices", index, (int)width, turn,
                                    (int)width);
}

/* Devices 0 to width - 1, where the strategy has put nodes, become those of the group of the trial. */
static void shift(json_t *graph, size_t turn, int32_t width)
{
    json_t *node, *place;
    size_t i, k;
    json_array_foreach(json_object_get(graph, "nodes"), i, node)
    {
        json_t *on = json_object_get(node, "on");
        json_array_foreach(on, k, place)
        {
            json_array_set_new(on, k, place_in_group(place, turn, width));
        }
        if (on && !json_is_array(on))
            json_object_set_new(node, "on", place_in_group(on, turn, width));
    }
}

static int take_json(trial *t, const gantry_graph *graph)
{
    gantry_error err;
    char *text;
    size_t length;
    if (gantry_graph_json(graph, &text, &length, &err))
        return fail(&err);
    t->json = json_loadb(text, length, 0, NULL);
    gantry_free(text);
    if (!t->json)
        return fail_nomem();
    keep_together(t->json);
    return check_alone(t->json);
}

/* Of the loss, which all have. */
static int take_name(char **loss, const gantry_graph *graph)
{
    gantry_buffer_info info = GANTRY_BUFFER_INFO_INIT;
    gantry_error err;
    if (gantry_graph_buffer_info(graph, gantry_graph_loss(graph), &info, &err))
        return fail(&err);
    *loss = strdup(info.name);
    return *loss ? EXIT_FINE : fail_nomem();
}

/* How many devices --strategy is for; without it one. */
static int find_width(int32_t *width, const options *o)
{
    gantry_error err;
    gantry_strategy strategy = GANTRY_STRATEGY_INIT;
    if (o->strategy && gantry_strategy_parse(&strategy, o->strategy, &err))
        return fail(&err);
    *width = strategy.dp * strategy.tp * strategy.pp;
    return EXIT_FINE;
}

int load_with(gantry_graph **graph, const options *o, const char *param)
{
    gantry_error err;
    options with = *o;
    const char **params = malloc((with.params.count + 1) * sizeof *params);
    if (!params)
        return fail_nomem();
    for (size_t i = 0; i < with.params.count; i++)
        params[i] = with.params.at[i];
    params[with.params.count] = param;
    with.params = (string_list){ params, with.params.count + 1 };
    gantry_load_options load = load_options(&with);
    int code = find_width(&load.devices, o);
    if (!code && gantry_graph_load(graph, o->positional.at[0], &load, &err))
        code = fail_reading(&err);
    free((void *)params);
    return code;
}

/* A training that is resumed may have fewer devices than its strategy is for. */
static int check_devices(const session *s, const trials *t, const gantry_graph *graph)
{
    int32_t devices = 0;
    int code = s->o->resume ? EXIT_FINE : count_devices(&devices, s->o, graph);
    if (code || s->o->resume || devices >= t->width)
        return code;
    complain("--strategy %s is for %d devices, which each trial takes, and there are %d; give smaller numbers, or more "
             "devices\n",
             s->o->strategy, (int)t->width, (int)devices);
    return EXIT_USAGE;
}

/* The model with the trial's value, trained. */
static int load_trial(const session *s, trials *all, size_t i, char **loss)
{
    trial *t = &all->at[i];
    gantry_graph *graph = NULL;
    int code = load_with(&graph, s->o, t->param);
    if (!code && s->o->strategy)
        code = check_devices(s, all, graph);
    if (!code && gantry_graph_loss(graph).id == GANTRY_NONE) {
        complain("--trials: graph \"%s\" has no loss\n", gantry_graph_name(graph));
        code = EXIT_USAGE;
    }
    if (!code)
        code = take_json(t, graph);
    if (!code && s->o->strategy)
        shift(t->json, i, all->width);
    if (!code && !*loss)
        code = take_name(loss, graph);
    gantry_graph_free(graph);
    return code;
}

/* ---- the graph of all ---- */

/* Data that no trial changes, and that are alike in all. */
static bool is_shared(const trials *t, const char *name, const json_t *buffer)
{
    const char *cls = json_string_value(json_object_get(buffer, "class"));
    bool same = cls && (strcmp(cls, "input") == 0 || strcmp(cls, "const") == 0) &&
                !json_is_true(json_object_get(buffer, "output"));
    for (size_t i = 1; same && i < t->count; i++)
        same = json_equal(json_object_get(json_object_get(t->at[i].json, "buffers"), name), buffer);
    return same;
}

/* Without nodes. */
static json_t *shared_graph(const trials *t, json_t **with)
{
    const char *name;
    json_t *buffer, *first = t->at[0].json, *shared = json_object();
    *with = json_object();
    json_object_foreach(json_object_get(first, "buffers"), name, buffer)
    {
        if (!is_shared(t, name, buffer))
            continue;
        json_object_set(shared, name, buffer);
        json_object_set_new(*with, name, json_string(name));
    }
    return json_pack("{s:i, s:O, s:O*, s:o, s:[]}", "gantry", 1, "name", json_object_get(first, "name"), "machine",
                     json_object_get(first, "machine"), "buffers", shared, "nodes");
}

static int write_trial(trials *t, size_t i)
{
    if (asprintf(&t->at[i].file, "%s/trial%zu.json", t->folder, i) < 0) {
        t->at[i].file = NULL;
        return fail_nomem();
    }
    if (!json_dump_file(t->at[i].json, t->at[i].file, JSON_REAL_PRECISION(17)))
        return EXIT_FINE;
    complain("--trials: cannot write %s; TMPDIR says where temporary files go\n", t->at[i].file);
    return EXIT_RUNNING;
}

static int make_folder(trials *t)
{
    const char *temporary = getenv("TMPDIR");
    if (asprintf(&t->folder, "%s/gantry-trials-XXXXXX", temporary && *temporary ? temporary : "/tmp") < 0) {
        t->folder = NULL;
        return fail_nomem();
    }
    if (mkdtemp(t->folder))
        return EXIT_FINE;
    complain("--trials: cannot make the folder %s; TMPDIR says where temporary files go\n", t->folder);
    free(t->folder);
    t->folder = NULL;
    return EXIT_RUNNING;
}

static void remove_folder(trials *t)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->at[i].file)
            unlink(t->at[i].file);
    if (t->folder)
        rmdir(t->folder);
    free(t->folder);
    t->folder = NULL;
}

/* The name of a trial, as that of its nodes and buffers begins. */
static const char *name_of(char to[NAME], size_t i)
{
    snprintf(to, NAME, "trial%zu", i);
    return to;
}

static json_t *whole_graph(const trials *t)
{
    char name[NAME];
    json_t *with, *graph = shared_graph(t, &with);
    for (size_t i = 0; i < t->count; i++)
        json_array_append_new(
            json_object_get(graph, "nodes"),
            json_pack("{s:s, s:s, s:O}", "id", name_of(name, i), "use", strrchr(t->at[i].file, '/') + 1, "with", with));
    json_decref(with);
    return graph;
}

static int parse_whole(session *s, const trials *t)
{
    gantry_error err;
    gantry_load_options load = GANTRY_LOAD_OPTIONS_INIT;
    json_t *graph = whole_graph(t);
    char *text = graph ? json_dumps(graph, JSON_REAL_PRECISION(17)) : NULL;
    json_decref(graph);
    if (!text)
        return fail_nomem();
    load.max_nodes = s->o->limits;
    gantry_status status = gantry_graph_parse(&s->graph, text, strlen(text), "trials", t->folder, &load, &err);
    free(text);
    return status ? fail(&err) : EXIT_FINE;
}

static int find_losses(const session *s, trials *t, const char *loss)
{
    char name[NAME], whole[300];
    for (size_t i = 0; i < t->count; i++) {
        snprintf(whole, sizeof whole, "%s.%s", name_of(name, i), loss);
        t->at[i].loss = gantry_graph_find_buffer(s->graph, whole);
        if (t->at[i].loss.id == GANTRY_NONE) {
            complain("--trials: graph \"%s\" has no buffer \"%s\"\n", gantry_graph_name(s->graph), whole);
            return EXIT_USAGE;
        }
    }
    return EXIT_FINE;
}

/* Is what is before a sign the name of a buffer? Names may have signs in them. */
static bool names_buffer(const gantry_graph *graph, const char *text)
{
    char *name = strdup(text);
    bool is_name = false;
    for (char *sign = name ? strrchr(name, '=') : NULL; sign && !is_name; sign = strrchr(name, '=')) {
        *sign = 0;
        is_name = gantry_graph_find_buffer(graph, name).id != GANTRY_NONE;
    }
    free(name);
    return is_name;
}

static bool add_input(trials *t, const char *text, size_t of)
{
    string_list *to = &t->o.inputs;
    char name[NAME], **made = &t->input[to->count];
    int length = of < t->count ? asprintf(made, "%s.%s", name_of(name, of), text) : asprintf(made, "%s", text);
    if (length < 0) {
        *made = NULL;
        return false;
    }
    t->input_of[to->count] = of;
    to->at[to->count++] = *made;
    return true;
}

/* A buffer that is not the same in all trials, such as a weight, is not there once: an --input of it is for that of
 * each. */
static int spread_inputs(session *s, trials *t)
{
    const string_list given = s->o->inputs;
    t->o = *s->o;
    t->o.inputs = (string_list){ calloc(given.count * t->count + 1, sizeof *given.at), 0 };
    t->input = calloc(given.count * t->count + 1, sizeof *t->input);
    t->input_of = calloc(given.count * t->count + 1, sizeof *t->input_of);
    bool ok = t->o.inputs.at && t->input && t->input_of;
    for (size_t i = 0; i < given.count && ok; i++) {
        bool is_for_all = names_buffer(s->graph, given.at[i]);
        for (size_t k = is_for_all ? t->count : 0; k < t->count + is_for_all && ok; k++)
            ok = add_input(t, given.at[i], k);
    }
    s->o = &t->o;
    return ok ? EXIT_FINE : fail_nomem();
}

static int load_all(session *s, trials *t, char **loss)
{
    int code = find_width(&t->width, s->o);
    for (size_t i = 0; i < t->count && !code; i++)
        code = load_trial(s, t, i, loss);
    if (!code)
        code = make_folder(t);
    for (size_t i = 0; i < t->count && !code; i++)
        code = write_trial(t, i);
    code = code ? code : parse_whole(s, t);
    code = code ? code : spread_inputs(s, t);
    return code ? code : find_losses(s, t, *loss);
}

int load_trials(session *s)
{
    trials *t = s->trials = calloc(1, sizeof *t);
    char *loss = NULL;
    if (!t)
        return fail_nomem();
    if (strcmp(s->o->positional.at[0], "-") == 0) {
        complain("--trials reads the model once for each; give a file, not standard input\n");
        return EXIT_USAGE;
    }
    int code = read_words(t, s->o->trials);
    code = code ? code : load_all(s, t, &loss);
    remove_folder(t);
    free(loss);
    return code;
}

size_t trial_count(const trials *t)
{
    return t->count;
}

const char *trial_param(const trials *t, size_t i)
{
    return t->at[i].param;
}

size_t trial_of_input(const trials *t, size_t input)
{
    return t->input_of[input];
}

void free_trials(trials *t)
{
    for (size_t i = 0; t && i < t->o.inputs.count; i++)
        free(t->input[i]);
    if (t) {
        free((void *)t->o.inputs.at);
        free(t->input);
        free(t->input_of);
    }
    for (size_t i = 0; t && i < t->count; i++) {
        free(t->at[i].param);
        free(t->at[i].file);
        json_decref(t->at[i].json);
    }
    free(t);
}

/* ---- steps ---- */

int look_at_trials(session *s, size_t step, FILE *to)
{
    for (size_t i = 0; i < s->trials->count; i++) {
        trial *t = &s->trials->at[i];
        double loss = 0;
        int code = read_loss(s, t->loss, &loss);
        if (code)
            return code;
        t->first = step == 1 ? loss : t->first;
        if (step == 1 || loss < t->least || isnan(t->least)) {
            t->least = loss;
            t->least_at = step;
        }
        t->last = loss;
        if (to)
            fprintf(to, "%s%s %.9g", i ? "  " : "", t->param, loss);
    }
    if (to)
        fputc('\n', to);
    return EXIT_FINE;
}

void print_trials(FILE *to, const session *s)
{
    int width = (int)strlen("trial");
    for (size_t i = 0; s->trials && i < s->trials->count; i++)
        width = (int)strlen(s->trials->at[i].param) > width ? (int)strlen(s->trials->at[i].param) : width;
    if (s->trials)
        fprintf(to, "  %-*s  buffers   %14s %14s %14s  in step\n", width, "trial", "first loss", "last", "least");
    for (size_t i = 0; s->trials && i < s->trials->count; i++) {
        char name[NAME], buffers[NAME + 2];
        const trial *t = &s->trials->at[i];
        snprintf(buffers, sizeof buffers, "%s.*", name_of(name, i));
        fprintf(to, "  %-*s  %-9s %14.9g %14.9g %14.9g  %zu\n", width, t->param, buffers, t->first, t->last, t->least,
                t->least_at);
    }
}

json_t *number_json(double x)
{
    return isfinite(x) ? json_real(x) : json_string(isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
}

void add_trials_json(json_t *report, const session *s)
{
    json_t *all = s->trials ? json_array() : NULL;
    for (size_t i = 0; all && i < s->trials->count; i++) {
        char name[NAME];
        const trial *t = &s->trials->at[i];
        json_array_append_new(all,
                              json_pack("{s:s, s:s, s:o, s:o, s:o, s:I}", "param", t->param, "prefix", name_of(name, i),
                                        "first", number_json(t->first), "last", number_json(t->last), "least",
                                        number_json(t->least), "least_step", (json_int_t)t->least_at));
    }
    if (all)
        json_object_set_new(report, "trials", all);
}
