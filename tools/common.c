/* SPDX-License-Identifier: Apache-2.0 */
/* Loading what the options name, and telling errors. */
#include "command.h"
#include "ranks/launch.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int code_of(gantry_status status)
{
    switch (status) {
    case GANTRY_OK:
        return EXIT_FINE;
    case GANTRY_E_SYNTAX:
    case GANTRY_E_GRAPH:
    case GANTRY_E_MACHINE:
    case GANTRY_E_SCHEDULE:
        return EXIT_BAD_INPUT;
    case GANTRY_E_INVALID:
    case GANTRY_E_UNSUPPORTED:
        return EXIT_USAGE;
    case GANTRY_E_CAPACITY:
    case GANTRY_E_NOMEM: /* virtual devices have the memory of the host */
        return EXIT_CAPACITY;
    case GANTRY_E_DEVICE:
        return EXIT_DEVICE;
    default:
        return EXIT_RUNNING;
    }
}

int fail(const gantry_error *err)
{
    if (err->status == GANTRY_E_CANCELED && interrupt_code())
        return interrupt_code(); /* whoever knows how far it came tells */
    complain_of(err);
    return code_of(err->status);
}

int fail_reading(const gantry_error *err)
{
    int code = fail(err);
    return err->status == GANTRY_E_IO ? EXIT_USAGE : code;
}

/* True if a count of devices means GPUs of this computer. */
static bool counts_gpus(const options *o)
{
    if (o->backend && strcmp(o->backend, "auto") != 0 && strcmp(o->backend, "cuda") != 0)
        return false;
    for (size_t i = 0; gantry_backend_name(i); i++)
        if (strcmp(gantry_backend_name(i), "cuda") == 0)
            return gantry_backend_usable(i);
    return false;
}

/* True if arrays of inputs are to come to GPUs beside starts. Starts that overlap bring their own, and a schedule of a
 * file is for the graph as it was. */
static bool lands(const options *o)
{
    bool overlaps = o->objective && strcmp(o->objective, "period") == 0;
    return o->inputs.count && o->iterations > 1 && !overlaps && !o->schedule && !o->processes && counts_gpus(o);
}

gantry_load_options load_options(const options *o)
{
    gantry_load_options load = GANTRY_LOAD_OPTIONS_INIT;
    load.params = o->params.at;
    load.param_count = o->params.count;
    load.inputs = o->inputs.at;
    load.input_count = o->inputs.count;
    load.allow_code = o->allow_code;
    load.max_nodes = o->limits;
    load.fuse = !o->no_fuse;
    load.train = o->train;
    load.strategy = o->strategy;
    load.land = lands(o);
    load.evaluate = o->as_used || (o->strategy && !o->train);
    return load;
}

void print_warnings(const gantry_graph *graph)
{
    gantry_error warning;
    char line[1024];
    for (size_t i = 0; gantry_graph_warning(graph, i, &warning); i++) {
        gantry_error_format(&warning, line, sizeof line);
        fprintf(stderr, "warning: %s\n", line);
    }
}

bool counts_virtual(const options *o)
{
    char *end = NULL;
    if (o->devices)
        (void)strtol(o->devices, &end, 10);
    return end && end != o->devices && *end == 0 && !counts_gpus(o);
}

/* A copy, as each user frees its machine. */
static gantry_status take_found(gantry_machine **machine, const gantry_machine *found, gantry_error *err)
{
    char *text = NULL;
    size_t length = 0;
    gantry_status status = gantry_machine_json(found, &text, &length, err);
    status = status ? status : gantry_machine_parse(machine, text, length, NULL, err);
    gantry_free(text);
    return status;
}

void known_free(known_computer *k)
{
    gantry_machine_free(k->here);
    gantry_free(k->text);
    *k = (known_computer){ 0 };
}

/* This computer. A note on standard error says if what was kept of it cannot be used, which does no harm. */
static gantry_status detect(gantry_machine **machine, known_computer *k, gantry_error *err)
{
    if (!k)
        return gantry_machine_detect(machine, NULL, err);
    gantry_status status = gantry_machine_detect(&k->here, NULL, err);
    if (!status)
        status = gantry_machine_recall(machine, k->here, &k->text, err);
    if (!status && *machine == k->here && k->text) {
        fprintf(stderr, "note: %s\n", k->text);
        gantry_free(k->text);
        k->text = NULL;
    }
    return status;
}

/* So many virtual devices. The message about a number that no int holds has it as it was written. */
static gantry_status make_virtual(gantry_machine **machine, const char *devices, gantry_error *err)
{
    long count = strtol(devices, NULL, 10);
    if (count >= INT_MIN && count <= INT_MAX)
        return gantry_machine_virtual(machine, (int)count, err);
    *err = (gantry_error){ .status = GANTRY_E_INVALID, .device = -1 };
    snprintf(err->text, sizeof err->text, "cannot make %s virtual devices; give 1 to 4096", devices);
    return GANTRY_E_INVALID;
}

/* The machine before --devices; *is_virtual says that --devices was used already. */
static gantry_status base_machine(gantry_machine **machine, const options *o, const gantry_graph *graph,
                                  known_computer *k, bool *is_virtual, gantry_error *err)
{
    gantry_status status = GANTRY_OK;
    *is_virtual = false;
    if (o->machine)
        return gantry_machine_load(machine, o->machine, err);
    if (graph)
        status = gantry_graph_machine(machine, graph, err);
    if (status || *machine)
        return status;
    if (counts_virtual(o)) {
        *is_virtual = true;
        return make_virtual(machine, o->devices, err);
    }
    return o->found ? take_found(machine, o->found, err) : detect(machine, k, err);
}

/* Deals the devices out, if the options say so. */
static int spread_machine(gantry_machine **machine, const options *o)
{
    gantry_error err;
    gantry_machine *whole = *machine;
    int64_t ranks = o->spread, devices = (int64_t)gantry_machine_worker_count(whole);
    if (!ranks && o->processes > 1 && gantry_machine_rank_count(whole) == 1)
        ranks = o->processes < devices ? o->processes : devices;
    if (!ranks)
        return EXIT_FINE;
    *machine = NULL;
    gantry_status status = gantry_machine_spread(machine, whole, (size_t)ranks, &err);
    gantry_machine_free(whole);
    if (!status)
        return EXIT_FINE;
    complain("--spread: ");
    return fail(&err);
}

/* True if the machine is this computer, and has no GPU to run on. */
static bool is_of_cpu(const options *o, const gantry_graph *graph)
{
    const char *json = NULL, *path = NULL;
    if (graph)
        gantry_graph_machine_hint(graph, &json, &path);
    return !o->machine && !json && !path && !counts_gpus(o);
}

/* A loss has taken devices of this computer, and --devices counts more than there are now. */
static bool asks_for_lost(const options *o, const gantry_machine *whole)
{
    char *end = NULL;
    long count = o->devices ? strtol(o->devices, &end, 10) : 0;
    return getenv(LEFT) && end && end != o->devices && *end == 0 && !o->machine && count > 0 &&
           (size_t)count > gantry_machine_worker_count(whole);
}

int load_machine(gantry_machine **machine, const options *o, const gantry_graph *graph, known_computer *k)
{
    gantry_error err;
    gantry_machine *whole = NULL;
    bool is_virtual;
    if (base_machine(&whole, o, graph, k, &is_virtual, &err)) {
        complain("%s", is_virtual ? "--devices: " : "");
        return fail_reading(&err);
    }
    if (!o->devices || is_virtual || asks_for_lost(o, whole)) {
        *machine = whole;
        return spread_machine(machine, o);
    }
    if (is_of_cpu(o, graph) && strncmp(o->devices, "id:", 3) != 0) {
        gantry_machine_free(whole);
        complain(
            "--devices: \"%s\" is no number; without GPUs and without --machine it takes how many virtual devices of "
            "the CPU there are, 1 to 4096\n",
            o->devices);
        return EXIT_USAGE;
    }
    gantry_status status = gantry_machine_select(machine, whole, o->devices, &err);
    gantry_machine_free(whole);
    if (!status)
        return spread_machine(machine, o);
    complain("--devices: ");
    return fail(&err);
}

int read_schedule(gantry_schedule **schedule, const char *path)
{
    gantry_error err;
    progress_stage("reading the schedule");
    gantry_status status = gantry_schedule_load(schedule, path, &err);
    progress_clear();
    return status ? fail_reading(&err) : EXIT_FINE;
}

int read_schedule_of(gantry_schedule **schedule, const char *path, gantry_graph *graph)
{
    gantry_error err;
    int code = read_schedule(schedule, path);
    if (code || !gantry_schedule_attach(*schedule, graph, &err))
        return code;
    name_file(&err, path);
    return fail(&err);
}

int count_devices(int32_t *count, const options *o, const gantry_graph *graph)
{
    gantry_schedule *schedule = NULL;
    gantry_machine *machine = NULL;
    int code = o->schedule ? read_schedule(&schedule, o->schedule) : load_machine(&machine, o, graph, NULL);
    if (!code)
        *count = (int32_t)gantry_machine_worker_count(schedule ? gantry_schedule_machine(schedule) : machine);
    gantry_schedule_free(schedule);
    gantry_machine_free(machine);
    return code;
}

/* The graph for one device, if there is such a one, says which machine it brings along. What is resumed is the graph
 * that it was, so its strategy may be for more devices than there are. */
static int load_counted(gantry_graph **graph, const options *o, const char *path, gantry_error *err)
{
    gantry_graph *single = NULL;
    gantry_load_options load = load_options(o);
    load.devices = 1;
    load.strategy = NULL; /* it may be for more devices */
    if (gantry_graph_load(&single, path, &load, err))
        single = NULL;
    load.strategy = o->strategy;
    int code = count_devices(&load.devices, o, single);
    gantry_graph_free(single);
    load.devices = o->resume && o->strategy ? 0 : load.devices;
    if (!code && gantry_graph_load(graph, path, &load, err))
        code = fail_reading(err);
    return code;
}

int load_graph(gantry_graph **graph, const options *o, const char *path)
{
    gantry_error err;
    gantry_load_options load = load_options(o);
    progress_stage("loading the graph");
    bool counts =
        o->strategy && strcmp(path, "-") != 0; /* the devices that a strategy is for are counted in any case */
    gantry_status status = counts ? GANTRY_E_UNSUPPORTED : gantry_graph_load(graph, path, &load, &err);
    int code = EXIT_FINE;
    progress_clear();
    if (status == GANTRY_E_UNSUPPORTED && strcmp(path, "-") != 0)
        code = load_counted(graph, o, path, &err);
    else if (status)
        code = fail_reading(&err);
    if (!code && !o->quiet)
        print_warnings(*graph);
    return code;
}

int check_inits(const gantry_graph *graph, const options *o)
{
    gantry_error err;
    return gantry_graph_check_files(graph, o->inputs.at, o->inputs.count, &err) ? fail(&err) : EXIT_FINE;
}

int select_here(gantry_machine **machine, const options *o)
{
    gantry_error err;
    gantry_machine *whole = NULL;
    if (gantry_machine_detect(&whole, NULL, &err))
        return fail(&err);
    gantry_status status = gantry_machine_select(machine, whole, o->devices, &err);
    gantry_machine_free(whole);
    if (!status)
        return EXIT_FINE;
    complain("--devices: ");
    return fail(&err);
}

/* `user`: the number of devices; NULL: nothing is drawn. */
static int tell_planning(void *user, const gantry_plan_progress *p)
{
    const size_t *devices = user;
    char best[80] = "", least[UNIT_TEXT], bound[UNIT_TEXT];
    if (interrupt_code())
        return 1;
    if (!devices || !progress_is_due())
        return 0;
    if (p->best_us > 0)
        snprintf(best, sizeof best, ", best %s, bound %s", time_text(least, p->best_us), time_text(bound, p->bound_us));
    progress_draw(" for %zu device%s: %.0f s, %llu plans%s", *devices, *devices == 1 ? "" : "s", progress_seconds(),
                  (unsigned long long)p->plans, best);
    return 0;
}

gantry_schedule_options schedule_options(const options *o)
{
    gantry_schedule_options so = GANTRY_SCHEDULE_OPTIONS_INIT;
    so.policy = o->policy;
    so.effort = (int32_t)o->effort;
    so.optimal = o->optimal;
    so.seed = (uint64_t)o->seed;
    so.objective = o->objective;
    so.in_flight = (int32_t)o->in_flight;
    so.max_memory = o->max_memory;
    so.balance = o->balance;
    so.spill = o->spill;
    so.unroll = o->unroll;
    so.progress = tell_planning;
    so.replay = o->replay;
    return so;
}

/* A training that goes on on fewer devices than its strategy is for has the pieces of the batch that it had: where some
 * devices have several, smaller ones would be faster there, but more than the order of sums would change. */
static bool keeps_pieces(const options *o, size_t devices)
{
    gantry_error err;
    gantry_strategy strategy = GANTRY_STRATEGY_INIT;
    if (!o->resume || !o->strategy || o->balance || gantry_strategy_parse(&strategy, o->strategy, &err))
        return false;
    return (int64_t)devices < (int64_t)strategy.dp * strategy.tp * strategy.pp;
}

gantry_status try_schedule_on(gantry_schedule **schedule, const options *o, gantry_graph *graph,
                              const gantry_machine *machine, gantry_error *err)
{
    enum { MANY = 256 }; /* planning for as many devices takes seconds */
    gantry_schedule_options so = schedule_options(o);
    size_t devices = gantry_machine_worker_count(machine);
    if (devices >= MANY && !o->quiet && !progress_shown())
        fprintf(stderr, "planning for %zu devices%s\n", devices, o->effort ? "; --effort 0 takes less time" : "");
    so.balance = keeps_pieces(o, devices) ? "static" : so.balance;
    so.user = &devices;
    progress_stage("planning");
    gantry_status status = gantry_schedule_new(schedule, graph, machine, &so, err);
    progress_clear();
    if (!status)
        progress_say("planned for %zu devices in %.3f s", devices, progress_seconds());
    return status;
}

int schedule_on(gantry_schedule **schedule, const options *o, gantry_graph *graph, const gantry_machine *machine)
{
    gantry_error err;
    return try_schedule_on(schedule, o, graph, machine, &err) ? fail(&err) : EXIT_FINE;
}

/* The file that the machine is from; NULL: it is from no file. */
static const char *machine_file(const options *o, const gantry_graph *graph)
{
    const char *json = NULL, *path = NULL;
    if (o->machine)
        return o->machine;
    gantry_graph_machine_hint(graph, &json, &path);
    return path;
}

/* On standard error, where the figures of the machine were measured with GPUs or software other than those of today. */
static void warn_stale(const gantry_machine *machine, const options *o, const char *path)
{
    gantry_machine *here = NULL;
    char *text = NULL;
    if (!path || o->quiet || !gantry_machine_has_calibration(machine) || !counts_gpus(o))
        return;
    if (!gantry_machine_detect(&here, NULL, NULL) && !gantry_machine_stale(machine, here, &text, NULL) && text)
        fprintf(stderr,
                "warning: %s was measured on another machine, or before it changed: %s; leave it out, or measure this "
                "computer with `gantry machine calibrate -o FILE`\n",
                path, text);
    gantry_free(text);
    gantry_machine_free(here);
}

int make_schedule(gantry_schedule **schedule, const options *o, gantry_graph *graph, known_computer *k)
{
    gantry_machine *machine = NULL;
    int code = load_machine(&machine, o, graph, k);
    if (!code)
        warn_stale(machine, o, machine_file(o, graph));
    if (!code)
        code = schedule_on(schedule, o, graph, machine);
    gantry_machine_free(machine);
    return code;
}

/* Ids of a family are alike up to the bracket. */
static bool is_of_family(const char *id, const char *of)
{
    size_t length = strcspn(of, "[");
    return strncmp(id, of, length) == 0 && strcspn(id, "[") == length;
}

/* '; it has "gemm[2,1,0]", "gemm[3,1,0]", ...': of the family of `wanted`, if there is one. */
static void list_nodes(char *to, size_t size, const char *wanted, const char *const *ids, size_t count)
{
    enum { SHOWN = 4 };
    size_t length = 0, shown = 0, alike = 0;
    for (size_t i = 0; i < count; i++)
        alike += is_of_family(ids[i], wanted);
    for (size_t i = 0; i < count && shown <= SHOWN && length < size; i++) {
        if (alike && !is_of_family(ids[i], wanted))
            continue;
        if (shown++ < SHOWN)
            length +=
                (size_t)snprintf(to + length, size - length, "%s\"%.50s\"", shown > 1 ? ", " : "; it has ", ids[i]);
        else
            length += (size_t)snprintf(to + length, size - length, ", ...");
    }
}

int fail_no_node(const char *where, const gantry_graph *graph, const char *id)
{
    size_t count = gantry_graph_node_count(graph);
    const char **ids = malloc((count ? count : 1) * sizeof *ids);
    char remedy[300] = "";
    for (uint32_t i = 0; ids && i < count; i++)
        ids[i] = gantry_graph_node_id(graph, (gantry_node){ .id = i });
    if (ids && !near_miss(remedy, sizeof remedy, id, ids, count)[0])
        list_nodes(remedy, sizeof remedy, id, ids, count);
    complain("%sgraph \"%s\" has no node \"%s\"%s\n", where, gantry_graph_name(graph), id, remedy);
    free((void *)ids);
    return EXIT_USAGE;
}

int check_explain(const options *o, const gantry_graph *graph)
{
    if (!o->explain || gantry_graph_find_node(graph, o->explain).id != GANTRY_NONE)
        return EXIT_FINE;
    return fail_no_node("--explain: ", graph, o->explain);
}
