/* SPDX-License-Identifier: Apache-2.0 */
/* gantry scale: one graph on more and more devices of a machine, or on more and more machines, by prediction. */
#include "scale.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICES = 4096, MOST_COUNTS = 128, EACH_UP_TO = 8, STRATEGY_TEXT = 256 };

/* Numbers of devices, or of ranks, rising. */
typedef struct counts {
    int at[MOST_COUNTS];
    size_t count;
} counts;

/* ---- which numbers of devices, or of ranks ---- */

static bool add_count(counts *c, long devices)
{
    bool rises = c->count == 0 || devices > c->at[c->count - 1];
    if (devices < 1 || devices > MOST_DEVICES || !rises || c->count == MOST_COUNTS)
        return false;
    c->at[c->count++] = (int)devices;
    return true;
}

/* "8": one to eight; "2..8"; "1,2,4". */
static bool parse_counts(counts *c, const char *text)
{
    char *end;
    long first = strtol(text, &end, 10), last = first;
    if (end == text)
        return false;
    if (*end == ',') {
        bool fine = add_count(c, first);
        while (fine && *end == ',') {
            text = end + 1;
            fine = add_count(c, strtol(text, &end, 10)) && end != text;
        }
        return fine && *end == 0;
    }
    bool range = strncmp(end, "..", 2) == 0;
    if (range) {
        text = end + 2;
        last = strtol(text, &end, 10);
    }
    bool fine = *end == 0 && end != text && last >= first;
    for (long k = range ? first : 1; fine && k <= last; k++)
        fine = add_count(c, k);
    return fine;
}

/* All of a few, then twice as many again and again, while the machine has them. */
static void choose_counts(counts *c, const gantry_machine *machine)
{
    for (int k = 1; c->count < MOST_COUNTS; k = k < EACH_UP_TO ? k + 1 : 2 * k) {
        char text[16];
        gantry_machine *part = NULL;
        snprintf(text, sizeof text, "%d", k);
        if (gantry_machine_select(&part, machine, text, NULL))
            return;
        gantry_machine_free(part);
        add_count(c, k);
    }
}

static int read_counts(counts *c, const char *text, const char *option, const char *what)
{
    if (!text || parse_counts(c, text))
        return EXIT_FINE;
    complain("gantry scale: --%s is \"%s\"; it takes numbers of %s from 1 to %d that rise, as in 1..8 or 1,2,4,8\n",
             option, text, what, MOST_COUNTS);
    return EXIT_USAGE;
}

/* With --ranks the machine is that of one rank, and --devices says which of its devices there are. */
static int find_counts(counts *c, gantry_machine **machine, const options *o, const gantry_graph *graph)
{
    char most[16];
    options with = *o;
    int code = o->rank_list ? read_counts(c, o->rank_list, "ranks", "ranks")
                            : read_counts(c, o->devices, "devices", "devices");
    if (code)
        return code;
    if (o->devices && !o->rank_list) {
        snprintf(most, sizeof most, "%d", c->at[c->count - 1]);
        with.devices = most;
    }
    code = load_machine(machine, &with, graph, NULL);
    if (!code && !c->count)
        choose_counts(c, *machine);
    return code;
}

/* The machine of a row: so many ranks like `machine`, or so many of its devices. */
static int make_machine(gantry_machine **made, const options *o, const gantry_machine *machine, int count)
{
    char text[16];
    gantry_error err;
    if (o->rank_list)
        return scale_ranks(made, o, machine, (size_t)count);
    snprintf(text, sizeof text, "%d", count);
    return gantry_machine_select(made, machine, text, &err) ? fail(&err) : EXIT_FINE;
}

/* ---- what grows ---- */

/* "n", or "n:3" where the work grows with the third power of it. */
static int read_weak(scale *s, const options *o)
{
    size_t length = o->weak ? strcspn(o->weak, ":") : 0;
    s->power = 1;
    if (!o->weak)
        return EXIT_FINE;
    if (o->weak[length] && (o->weak[length + 1] < '1' || o->weak[length + 1] > '9' || o->weak[length + 2])) {
        complain("gantry scale: --weak is \"%s\"; it takes the name of a param, or one with the power of it by which "
                 "work grows, from 1 to 9, such as n:3\n",
                 o->weak);
        return EXIT_USAGE;
    }
    s->power = o->weak[length] ? o->weak[length + 1] - '0' : 1;
    snprintf(s->weak, sizeof s->weak, "%.*s", (int)length, o->weak);
    return EXIT_FINE;
}

/* The value of the param in the graph as it is loaded, read off a schedule of it. */
static int base_value(int64_t *value, const char *name, const gantry_schedule *schedule)
{
    gantry_error err;
    char *text = NULL;
    size_t length = 0;
    if (gantry_schedule_json(schedule, &text, &length, &err))
        return fail(&err);
    json_t *root = json_loadb(text, length, 0, NULL);
    const json_t *param = json_object_get(json_object_get(root, "params"), name);
    bool fine = json_is_integer(param) && json_integer_value(param) > 0;
    *value = json_integer_value(param);
    gantry_free(text);
    json_decref(root);
    if (fine)
        return EXIT_FINE;
    complain("gantry scale: --weak is \"%s\"; it takes the name of a param of the graph that is a whole number greater "
             "than 0\n",
             name);
    return EXIT_USAGE;
}

/* The params of --param, but that the one that grows has a value of its own; free ->at. */
static string_list grown_params(const options *o, const char *weak, const char *own)
{
    string_list all = { .at = calloc(o->params.count + 1, sizeof *all.at) };
    size_t length = strlen(weak);
    if (!all.at)
        return all;
    for (size_t i = 0; i < o->params.count; i++)
        if (!length || strncmp(o->params.at[i], weak, length) != 0 || o->params.at[i][length] != '=')
            all.at[all.count++] = o->params.at[i];
    if (length)
        all.at[all.count++] = own;
    return all;
}

/* "dp=devices,zero=1" with the number in place of the word, wherever that stands. */
static void count_strategy(char *to, size_t size, const char *text, size_t devices)
{
    static const char word[] = "devices";
    size_t at = 0;
    while (*text && at + 1 < size) {
        bool is_word = strncmp(text, word, strlen(word)) == 0;
        int wrote = is_word ? snprintf(to + at, size - at, "%zu", devices) : snprintf(to + at, size - at, "%c", *text);
        at += (size_t)wrote;
        text += is_word ? strlen(word) : 1;
    }
    to[at < size ? at : size - 1] = 0;
}

/* One replica has all of each weight: where the strategy follows the devices, shards of a row of one are the whole. */
static void drop_shards(char *text)
{
    static const char key[] = "zero=";
    gantry_strategy s = GANTRY_STRATEGY_INIT;
    char rest[STRATEGY_TEXT] = "";
    for (const char *item = text; *item;) {
        size_t length = strcspn(item, ","), at = strlen(rest);
        if (strncmp(item, key, strlen(key)) != 0)
            snprintf(rest + at, sizeof rest - at, "%s%.*s", at ? "," : "", (int)length, item);
        item += length + (item[length] == ',');
    }
    if (rest[0] && !gantry_strategy_parse(&s, rest, NULL) && s.dp * s.tp == 1)
        memcpy(text, rest, sizeof rest);
}

/* The strategy of a row. Shards are left out of what is right for two devices: mistakes are told in each row. */
static void row_strategy(char text[STRATEGY_TEXT], const options *o, size_t devices)
{
    char of_two[STRATEGY_TEXT];
    gantry_strategy s = GANTRY_STRATEGY_INIT;
    count_strategy(of_two, STRATEGY_TEXT, o->strategy, 2);
    count_strategy(text, STRATEGY_TEXT, o->strategy, devices);
    if (strcmp(text, o->strategy) != 0 && !gantry_strategy_parse(&s, of_two, NULL))
        drop_shards(text);
}

static int check_auto(const options *o)
{
    if (!o->strategy || strcmp(o->strategy, "auto") != 0)
        return EXIT_FINE;
    complain("gantry scale: --strategy auto is for train, run and schedule, which choose for one machine; give "
             "numbers, and \"devices\" for the devices of each row, such as --strategy dp=devices\n");
    return EXIT_USAGE;
}

/* A strategy is for so many devices, and a row may have fewer. */
static gantry_status check_strategy(const options *o, int devices, gantry_error *err)
{
    char text[STRATEGY_TEXT];
    gantry_strategy strategy = GANTRY_STRATEGY_INIT;
    if (!o->strategy)
        return GANTRY_OK;
    row_strategy(text, o, (size_t)devices);
    gantry_status status = gantry_strategy_parse(&strategy, text, err);
    int64_t wants = (int64_t)strategy.dp * strategy.tp * strategy.pp;
    if (status || wants <= devices)
        return status;
    *err = (gantry_error){ .status = GANTRY_E_INVALID, .device = -1 };
    snprintf(err->text, sizeof err->text,
             "--strategy \"%.200s\" is for %lld devices, and the row of %d %s has fewer; begin with more "
             "(--devices %lld..%lld), or name the devices of each row: dp=devices",
             text, (long long)wants, devices, devices == 1 ? "device" : "devices", (long long)wants,
             (long long)wants * 2);
    return err->status;
}

/* The graph for so many devices, where it asks for them, with that value of the param; with --strategy, its training.
 */
static gantry_status load_row(gantry_graph **graph, const options *o, const char *weak, int64_t value, size_t devices,
                              gantry_error *err)
{
    char own[256], strategy[STRATEGY_TEXT];
    options with = *o;
    snprintf(own, sizeof own, "%.200s=%lld", weak, (long long)value);
    if (o->strategy) {
        row_strategy(strategy, o, devices);
        with.strategy = strategy;
        with.train = true;
    }
    with.params = grown_params(o, weak, own);
    if (!with.params.at) {
        *err = (gantry_error){ .status = GANTRY_E_NOMEM, .device = -1 };
        return err->status;
    }
    gantry_load_options load = load_options(&with);
    load.devices = (int32_t)devices;
    gantry_status status = gantry_graph_load(graph, o->positional.at[0], &load, err);
    free((void *)with.params.at);
    return status;
}

/* True if the graph that is made of the file depends on how many devices there are. */
static bool asks_for_devices(const options *o)
{
    gantry_graph *graph = NULL;
    if (strcmp(o->positional.at[0], "-") == 0) /* which cannot be read twice */
        return false;
    gantry_load_options load = load_options(o);
    gantry_status status = gantry_graph_load(&graph, o->positional.at[0], &load, NULL);
    if (!status)
        gantry_graph_free(graph);
    return status == GANTRY_E_UNSUPPORTED;
}

/* ---- the rows ---- */

static int fill_row(scale_row *row, const gantry_schedule *schedule)
{
    gantry_error err;
    gantry_schedule_summary sum = GANTRY_SCHEDULE_SUMMARY_INIT;
    if (gantry_schedule_summarize(schedule, &sum, &err))
        return fail(&err);
    row->us = sum.makespan_us;
    row->gap = sum.gap;
    row->moved = sum.bytes_moved;
    for (size_t i = 0; i < gantry_machine_memory_count(gantry_schedule_machine(schedule)); i++)
        if (gantry_schedule_peak_bytes(schedule, i) > row->peak)
            row->peak = gantry_schedule_peak_bytes(schedule, i);
    return scale_limit(row, schedule);
}

/* Without `graph` it is loaded anew, for the devices of the machine and with that value of the param that grows. */
static gantry_status plan(gantry_schedule **schedule, const options *o, gantry_graph *graph, const char *weak,
                          int64_t value, const gantry_machine *machine, gantry_error *err)
{
    gantry_graph *own = NULL;
    gantry_status status =
        graph ? GANTRY_OK : load_row(&own, o, weak, value, gantry_machine_worker_count(machine), err);
    if (!status)
        status = try_schedule_on(schedule, o, graph ? graph : own, machine, err);
    gantry_graph_free(own);
    return status;
}

/* The strategy, the graph or the memories do not allow it for that number: others may be. */
static bool is_of_row(gantry_status status)
{
    return status == GANTRY_E_INVALID || status == GANTRY_E_GRAPH || status == GANTRY_E_CAPACITY;
}

static int refuse_row(scale *s, int count, const gantry_error *err)
{
    if (!is_of_row(err->status))
        return fail_reading(err);
    s->refused[s->refusals++] = (scale_refusal){ count, *err };
    return EXIT_FINE;
}

/* With --weak, the graph as it is loaded is that of one device, or rank. */
static int find_row(scale *s, int count, const options *o, gantry_graph *graph, const gantry_machine *machine)
{
    scale_row *row = &s->row[s->count];
    gantry_schedule *schedule = NULL;
    gantry_machine *made = NULL;
    gantry_error err;
    int code = make_machine(&made, o, machine, count);
    bool is_own = *s->weak || s->asks;
    if (code)
        return code;
    row->count = count;
    row->value = (int64_t)((double)s->base * pow(count, 1.0 / s->power) + 0.5);
    row->devices = (int)gantry_machine_worker_count(made);
    row->work = s->base ? pow((double)row->value / (double)s->base, s->power) : 1;
    gantry_status status = check_strategy(o, row->devices, &err);
    if (!status)
        status = plan(&schedule, o, is_own ? NULL : graph, s->weak, row->value, made, &err);
    code = status ? refuse_row(s, count, &err) : fill_row(row, schedule);
    s->count += !status && !code;
    gantry_schedule_free(schedule);
    gantry_machine_free(made);
    return code;
}

static int find_base(scale *s, const options *o, gantry_graph *graph, const gantry_machine *machine)
{
    gantry_schedule *schedule = NULL;
    gantry_machine *made = NULL;
    gantry_error err;
    options with = *o;
    with.effort = 0;
    with.strategy = NULL; /* which may be for more devices than one, and no param depends on it */
    int code = make_machine(&made, o, machine, 1);
    if (!code && plan(&schedule, &with, s->asks ? NULL : graph, "", 0, made, &err))
        code = fail_reading(&err);
    if (!code)
        code = base_value(&s->base, s->weak, schedule);
    gantry_schedule_free(schedule);
    gantry_machine_free(made);
    return code;
}

/* Where no number is possible, the first says why. */
static int find_rows(scale *s, const options *o, gantry_graph *graph, const gantry_machine *machine, const counts *c)
{
    int code = check_auto(o);
    if (!code && *s->weak)
        code = find_base(s, o, graph, machine);
    for (size_t i = 0; i < c->count && !code; i++)
        code = find_row(s, c->at[i], o, graph, machine);
    return !code && !s->count ? fail(&s->refused[0].why) : code;
}

/* ---- what is printed ---- */

static void print_row(const scale *s, const scale_row *r)
{
    char time[UNIT_TEXT], peak[UNIT_TEXT], moved[UNIT_TEXT], network[UNIT_TEXT];
    if (s->ranks)
        printf("%6d  ", r->count);
    printf("%8d %6d %14s %9.2f %10.0f%% %10s %10s", r->devices, r->used, time_text(time, r->us), r->speedup,
           100 * r->efficiency, bytes_text(peak, (double)r->peak), bytes_text(moved, (double)r->moved));
    if (s->ranks)
        printf(" %10s", bytes_text(network, (double)r->network));
    printf("  %s\n", r->limit);
}

static void print_refusal(const scale *s, const scale_refusal *r)
{
    char why[1024];
    gantry_error_format(&r->why, why, sizeof why);
    printf("%*d  not possible: %s\n", s->ranks ? 6 : 8, r->count, why);
}

static void print_table(const scale *s)
{
    printf("%s on %s\n%s%8s %6s %14s %9s %11s %10s %10s%s  %s\n", s->graph, s->machine, s->ranks ? " ranks  " : "",
           "devices", "used", "makespan", "speed-up", "efficiency", "peak", "moved", s->ranks ? "    network" : "",
           "what limits");
    for (size_t i = 0, k = 0; i < s->count || k < s->refusals;) {
        bool is_refused = i == s->count || (k < s->refusals && s->refused[k].count < s->row[i].count);
        is_refused ? print_refusal(s, &s->refused[k++]) : print_row(s, &s->row[i++]);
    }
    printf("advice: %s\n", s->advice);
}

static json_t *row_json(const scale *s, const scale_row *r)
{
    json_t *row = json_pack("{s:i, s:i, s:f, s:f, s:f, s:f, s:I, s:I, s:s}", "devices", r->devices, "used", r->used,
                            "makespan_us", r->us, "gap", r->gap, "speedup", r->speedup, "efficiency", r->efficiency,
                            "peak_bytes", (json_int_t)r->peak, "bytes_moved", (json_int_t)r->moved, "limit", r->limit);
    if (s->ranks) {
        json_object_set_new(row, "ranks", json_integer(r->count));
        json_object_set_new(row, "network_bytes", json_integer((json_int_t)r->network));
        json_object_set_new(row, "network_busy_us", json_real(r->network_us));
    }
    if (*s->weak)
        json_object_set_new(row, "value", json_integer(r->value));
    return row;
}

static json_t *refusals_json(const scale *s)
{
    json_t *all = json_array();
    char why[1024];
    for (size_t i = 0; i < s->refusals; i++) {
        gantry_error_format(&s->refused[i].why, why, sizeof why);
        json_array_append_new(all,
                              json_pack("{s:i, s:s}", s->ranks ? "ranks" : "devices", s->refused[i].count, "why", why));
    }
    return all;
}

static int print_scale_json(const scale *s)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < s->count; i++)
        json_array_append_new(rows, row_json(s, &s->row[i]));
    json_t *root =
        json_pack("{s:s, s:s, s:o, s:s}", "graph", s->graph, "machine", s->machine, "rows", rows, "advice", s->advice);
    if (s->refusals)
        json_object_set_new(root, "refused", refusals_json(s));
    if (*s->weak)
        json_object_set_new(root, "weak", json_string(s->weak));
    return print_json(root);
}

static int show(const scale *s, const options *o)
{
    int code = o->svg ? scale_draw(s, o->svg) : EXIT_FINE;
    if (code)
        return code;
    if (o->json)
        return print_scale_json(s);
    if (!uses_stdout(o))
        print_table(s);
    return EXIT_FINE;
}

static int run(const options *o)
{
    counts c = { .count = 0 };
    scale_row rows[MOST_COUNTS] = { { 0 } };
    scale s = { .ranks = o->rank_list != NULL, .asks = o->strategy || asks_for_devices(o), .row = rows };
    s.refused = calloc(MOST_COUNTS, sizeof *s.refused);
    if (!s.refused)
        return fail_nomem();
    gantry_graph *graph = NULL;
    gantry_machine *machine = NULL;
    options all = *o; /* --devices is a list here */
    all.devices = NULL;
    all.strategy = NULL;
    all.train = o->strategy != NULL; /* as in each row: weights are outputs that are written */
    int code = read_weak(&s, o);
    if (!code)
        code = load_graph(&graph, &all, o->positional.at[0]);
    if (!code)
        code = find_counts(&c, &machine, o, graph);
    if (!code)
        code = find_rows(&s, o, graph, machine, &c);
    if (!code) {
        s.graph = gantry_graph_name(graph);
        s.uncut = !o->strategy && gantry_graph_loss(graph).id != GANTRY_NONE;
        s.machine = gantry_machine_name(machine);
        scale_judge(&s);
        code = show(&s, o);
    }
    gantry_machine_free(machine);
    gantry_graph_free(graph);
    free(s.refused);
    return code;
}

const command command_scale = {
    "scale",
    "GRAPH",
    "predicts a graph on more and more devices (--devices 1..8, or 1,2,4), or computers (--ranks 1..8), and says what "
    "limits it",
    1,
    1,
    "param limits input machine devices ranks link weak strategy policy effort seed unroll max-memory spill "
    "balance replay "
    "svg "
    "allow-code "
    "no-fuse "
    "json",
    "  gantry scale cholesky --machine h200-8\n"
    "  gantry scale jacobi --machine h200-8 --devices 1,2,4,8 --param n=8192\n"
    "  gantry scale reduce_sum --machine h200-8 --weak n --svg scale.svg\n"
    "  gantry scale jacobi_until --machine dgx-h100 --ranks 1,2,4,8 --param n=65536 --param parts=devices\n",
    run
};
