/* SPDX-License-Identifier: Apache-2.0 */
/* NULL for every pointer and NaN for every number of the API: a function refuses it, or does what its header says, and
 * never crashes. The rows are in null_rows.def. */
#include "support/run_suite.h"
#define GANTRY_NO_MACROS
#include "own_kernel.h"
#include <gantry/gantry.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char graph_text[] =
    "{\"gantry\": 1, \"buffers\": {\"x\": {\"dtype\": \"f32\", \"shape\": [4], \"init\": 1}, \"y\": {\"dtype\": "
    "\"f32\", \"shape\": [4], \"output\": true}}, \"nodes\": [{\"id\": \"n\", \"kernel\": \"scale\", \"args\": "
    "{\"a\": {\"dynamic\": 2}, \"x\": \"x\", \"y\": \"y\"}}]}";

/* The things that rows need. Members with a 2 are made by a call of a row. */
typedef struct things {
    gantry_error record, *err;
    char line[80], path[40], stg[40];
    const char *words[2], *hole[2], *hint;
    gantry_machine *machine, *m2;
    gantry_graph *graph, *open, *warned, *g2;
    gantry_buffer x, y, z, whole; /* of `open`: an input, two without an init, one of whole numbers */
    gantry_node n, k;             /* of `open`: work and a kernel without arguments */
    bool scalar_given;            /* the kernel has its scalar */
    gantry_buffer in, out;        /* of `graph` */
    gantry_node scaled;
    gantry_schedule *schedule, *phased, *s2;
    gantry_run *run, *r2;
    gantry_files *files;
    char *text;
    size_t length;
    const void *host;
    uint64_t ticket, bytes, hash;
    float data[4];
    int64_t shape[1];
    gantry_region region;
    gantry_device_info device;
    gantry_memory_info memory;
    gantry_buffer_info info;
    gantry_strategy strategy;
    gantry_schedule_summary summary;
    gantry_phase_info phase;
    gantry_run_info about;
    gantry_unmeasured unmeasured;
    gantry_rebalance report;
} things;

/* ---- outcomes ---- */

/* The message must name what is NULL, so that a program's author finds it. */
static bool is_refused(const things *t, gantry_status status, bool null)
{
    if (status != GANTRY_E_INVALID)
        return false;
    return !t->err || (t->err->status == status && t->err->text[0] && (!null || strstr(t->err->text, "NULL")));
}

static bool is_mistake(things *t)
{
    gantry_error err = { 0 };
    gantry_status status = gantry_graph_check(t->open, &err);
    return (status == GANTRY_E_INVALID || status == GANTRY_E_GRAPH) && err.text[0] && err.line == 77;
}

/* Gives the kernel node the arguments that it lacks. */
static void finish(things *t)
{
    gantry_node_arg(t->open, t->k, "x", gantry_all(t->x));
    gantry_node_arg(t->open, t->k, "y", gantry_all(t->z));
    if (!t->scalar_given)
        gantry_node_scalar(t->open, t->k, "a", 2);
}

/* A number that arrays may hold: the graph takes it, and its normal form, which has no such number, is refused rather
 * than written so that nobody can read it. */
static bool is_element(things *t)
{
    gantry_error err = { 0 };
    finish(t);
    return gantry_graph_check(t->open, &err) == GANTRY_OK &&
           gantry_graph_json(t->open, &t->text, &t->length, t->err) == GANTRY_E_UNSUPPORTED && !t->text;
}

static bool is_allowed(things *t)
{
    gantry_error err = { 0 };
    finish(t);
    return gantry_graph_check(t->open, &err) == GANTRY_OK;
}

static bool is_no_node(gantry_node node)
{
    return node.id == GANTRY_NONE;
}

static bool has_no_hint(const gantry_graph *graph)
{
    const char *json = "x", *path = "x";
    gantry_graph_machine_hint(graph, &json, &path);
    return !json && !path;
}

#define G              gantry_graph_at(t->open, "here.c", 77)
#define EMPTY          "{\"gantry\": 1, \"buffers\": {}, \"nodes\": []}", 41
#define NOTHING(call)  ((void)(call), true)
#define REFUSED(call)  is_refused(t, (call), true)
#define INVALID(call)  is_refused(t, (call), false)
#define MADE(to, call) ((call) == GANTRY_OK && (to))
#define MISTAKE(call)  ((void)(call), is_mistake(t))
#define ELEMENT(call)  ((void)(call), is_element(t))
#define ALLOWED(call)  ((void)(call), is_allowed(t))
#define NO_NODE(call)  is_no_node(call)
/* The same thing by its number in any graph. */
#define NO_GRAPHS(handle) (handle.graph = 0, handle.id = 0, handle)

/* ---- calls with structs ---- */

static gantry_status parse(things *t, const char *const *params, size_t param_count, const char *const *inputs,
                           size_t input_count)
{
    gantry_load_options o = GANTRY_LOAD_OPTIONS_INIT;
    o.params = params;
    o.param_count = param_count;
    o.inputs = inputs;
    o.input_count = input_count;
    return gantry_graph_parse(&t->g2, EMPTY, "x", NULL, &o, t->err);
}

static void use(things *t, size_t param_count, const char *const *params, size_t buffer_count,
                const gantry_use_buffer *buffers)
{
    gantry_use_options o = GANTRY_USE_OPTIONS_INIT;
    o.params = params;
    o.param_count = param_count;
    o.buffers = buffers;
    o.buffer_count = buffer_count;
    gantry_graph_use(G, "u", "/nowhere/u.json", &o);
}

static gantry_status join_two(things *t, double latency_us, double gbs)
{
    const gantry_machine *const nodes[] = { t->machine, t->machine };
    gantry_join_options o = { sizeof o, latency_us, gbs, GANTRY_PORTS_HOST };
    return gantry_machine_join(&t->m2, nodes, 2, &o, t->err);
}

static gantry_status calibrate(things *t, double seconds, double patience)
{
    gantry_calibrate_options o = GANTRY_CALIBRATE_OPTIONS_INIT;
    o.seconds = seconds;
    o.patience = patience;
    return gantry_machine_calibrate(&t->m2, t->machine, &o, t->err);
}

static gantry_status import(things *t, double time_unit, double bandwidth)
{
    gantry_import_options o = GANTRY_IMPORT_OPTIONS_INIT;
    o.time_unit_us = time_unit;
    o.bandwidth_gbs = bandwidth;
    return gantry_graph_import(&t->g2, NULL, "stg", t->stg, &o, t->err);
}

/* One field of the training options is NULL, or NaN. */
enum { LOSS, WEIGHTS, WEIGHT, BATCH, BATCH_NAME, SCHEDULE, RATE, MOMENTUM, BETA1, BETA2, EPSILON, DECAY, CLIP, SCALE };
static gantry_status train(things *t, int field)
{
    static const char *const none[] = { NULL };
    gantry_train_options o = GANTRY_TRAIN_OPTIONS_INIT;
    double *const numbers[] = { &o.learning_rate, &o.momentum,     &o.beta1,     &o.beta2,
                                &o.epsilon,       &o.weight_decay, &o.clip_norm, &o.loss_scale };
    o.loss = field == LOSS ? NULL : "loss";
    o.weights = field == WEIGHTS ? NULL : field == WEIGHT ? none : t->words;
    o.weight_count = 1;
    o.batch = field == BATCH_NAME ? none : NULL;
    o.batch_count = field == BATCH || field == BATCH_NAME;
    if (field >= RATE)
        *numbers[field - RATE] = NAN;
    return gantry_graph_differentiate(G, &o, t->err);
}

static gantry_status new_run(things *t, double deadline)
{
    gantry_run_options o = GANTRY_RUN_OPTIONS_INIT;
    o.deadline_us = deadline;
    return gantry_run_new(&t->r2, t->schedule, &o, t->err);
}

static gantry_status new_timed_run(things *t, double timeout)
{
    gantry_run_options o = GANTRY_RUN_OPTIONS_INIT;
    o.timeout_us = timeout;
    return gantry_run_new(&t->r2, t->schedule, &o, t->err);
}

static gantry_status new_kept_run(things *t)
{
    gantry_run_options o = GANTRY_RUN_OPTIONS_INIT;
    o.checkpoints = "/nowhere";
    return gantry_run_new(&t->r2, t->schedule, &o, t->err);
}

/* One pointer of a manifest is NULL, or, past its end, the name of its argument. */
static int add_kernel(things *t, size_t field)
{
    static gantry_kernel_arg arg;
    static gantry_kernel kernel;
    arg = own_arg;
    kernel = own;
    kernel.arg = &arg;
    if (field < sizeof kernel)
        memset((char *)&kernel + field, 0, sizeof(void *));
    else
        arg.name = NULL;
    gantry_graph_add_kernel(G, &kernel);
    return 0;
}

static int add_nameless_cuda_kernel(things *t)
{
    static gantry_kernel kernel;
    kernel = own;
    kernel.name = NULL;
    gantry_graph_add_cuda_kernel(G, &kernel, &code);
    return 0;
}

static gantry_node broadcast(gantry_graph *graph, const char *id, const gantry_region *in, const gantry_region *out)
{
    gantry_graph_at(graph, "here.c", 77);
    return gantry_graph_collective(graph, id, GANTRY_BROADCAST, (gantry_access)0, 1, in, 1, out, 0);
}

/* ---- rows ---- */

/* clang-format off: a function for each row, so that each can run in a process of its own */
#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define ROW(function, parameter, holds)                                                                                \
    static bool JOIN(row_, __LINE__)(things * t)                                                                       \
    {                                                                                                                  \
        (void)t;                                                                                                       \
        return (holds);                                                                                                \
    }
#include "null_rows.def"
#undef ROW

static const struct row {
    const char *function, *parameter;
    bool (*holds)(things *t);
} rows[] = {
#define ROW(function, parameter, holds) { #function, #parameter, JOIN(row_, __LINE__) },
#include "null_rows.def"
#undef ROW
};
/* clang-format on */
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- making and freeing ---- */

static void must(gantry_status status, const gantry_error *err)
{
    ck_assert_msg(status == GANTRY_OK, "%s: %s", gantry_status_name(status), err->text);
}

static void write_file(char *path, const char *text)
{
    int file = mkstemp(path);
    FILE *to = fdopen(file, "w");
    ck_assert(to && fputs(text, to) >= 0 && fclose(to) == 0);
}

static void make_open(things *t)
{
    t->open = gantry_graph_new("open");
    t->x = gantry_graph_buffer(t->open, "x", GANTRY_F32, 1, t->shape);
    t->y = gantry_graph_buffer(t->open, "y", GANTRY_F32, 1, t->shape);
    t->z = gantry_graph_buffer(t->open, "z", GANTRY_F32, 1, t->shape);
    t->whole = gantry_graph_buffer(t->open, "whole", GANTRY_I32, 1, t->shape);
    gantry_buffer_set_class(t->open, t->x, GANTRY_INPUT);
    t->n = gantry_graph_work(t->open, "n");
    t->k = gantry_graph_kernel(t->open, "k", "scale");
    t->region = gantry_all(t->x);
}

/* A buffer that nothing uses is a warning, and a loop that nobody could unroll makes phases. */
static void make_warned(things *t)
{
    gantry_error err;
    t->warned = gantry_graph_new("warned");
    gantry_buffer x = gantry_graph_buffer(t->warned, "x", GANTRY_F32, 1, t->shape);
    (void)gantry_graph_buffer(t->warned, "unused", GANTRY_F32, 1, t->shape);
    gantry_buffer_set_class(t->warned, x, GANTRY_STATE);
    gantry_buffer_init_value(t->warned, x, 0);
    gantry_graph_repeat(t->warned, 1000000);
    gantry_node_readwrite(t->warned, gantry_graph_work(t->warned, "step"), gantry_all(x));
    gantry_graph_repeat_end(t->warned);
    must(gantry_schedule_new(&t->phased, t->warned, t->machine, NULL, &err), &err);
}

static void make_schedule(things *t)
{
    gantry_error err;
    must(gantry_graph_parse(&t->graph, graph_text, strlen(graph_text), "text", NULL, NULL, &err), &err);
    t->in = gantry_graph_find_buffer(t->graph, "x");
    t->out = gantry_graph_find_buffer(t->graph, "y");
    t->scaled = gantry_graph_find_node(t->graph, "n");
    must(gantry_schedule_new(&t->schedule, t->graph, t->machine, NULL, &err), &err);
}

static void make_run(things *t)
{
    gantry_error err;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "host";
    options.record_trace = 1;
    must(gantry_run_new(&t->run, t->schedule, &options, &err), &err);
    must(gantry_run_start(t->run, &t->ticket, &err), &err);
    must(gantry_run_wait(t->run, t->ticket, &err), &err);
    must(gantry_files_new(&t->files, &err), &err);
}

/* Things that no row changes are made once; the processes of the rows are forked after that. */
static things made;

static void make_things(void)
{
    gantry_error err;
    things *t = &made;
    *t = (things){ .words = { "word", "other" }, .hole = { NULL, "word" }, .shape = { 4 } };
    t->device = (gantry_device_info)GANTRY_DEVICE_INFO_INIT;
    t->memory = (gantry_memory_info)GANTRY_MEMORY_INFO_INIT;
    t->info = (gantry_buffer_info)GANTRY_BUFFER_INFO_INIT;
    t->strategy = (gantry_strategy)GANTRY_STRATEGY_INIT;
    t->summary = (gantry_schedule_summary)GANTRY_SCHEDULE_SUMMARY_INIT;
    t->phase = (gantry_phase_info)GANTRY_PHASE_INFO_INIT;
    t->about = (gantry_run_info)GANTRY_RUN_INFO_INIT;
    t->report = (gantry_rebalance)GANTRY_REBALANCE_INIT;
    must(gantry_machine_virtual(&t->machine, 2, &err), &err);
    make_schedule(t);
    make_warned(t);
}

static void free_things(void)
{
    gantry_schedule_free(made.phased);
    gantry_schedule_free(made.schedule);
    gantry_graph_free(made.warned);
    gantry_graph_free(made.graph);
    gantry_machine_free(made.machine);
}

static void set_up(things *t)
{
    *t = made;
    strcpy(t->path, "/tmp/gantry_null_XXXXXX");
    strcpy(t->stg, "/tmp/gantry_null_XXXXXX");
    write_file(t->path, "");
    write_file(t->stg, "1\n0 1 0\n");
    make_run(t);
    make_open(t);
}

static void tear_down(things *t)
{
    remove(t->path);
    remove(t->stg);
    gantry_free(t->text);
    gantry_run_free(t->r2);
    gantry_run_free(t->run);
    gantry_files_free(t->files);
    gantry_schedule_free(t->s2);
    gantry_graph_free(t->g2);
    gantry_graph_free(t->open);
    gantry_machine_free(t->m2);
}

/* ---- tests ---- */

static void expect_row(const struct row *row, bool with_record)
{
    things t;
    set_up(&t);
    t.err = with_record ? &t.record : NULL;
    bool holds = row->holds(&t);
    ck_assert_msg(holds, "%s, %s: %s (%s)", row->function, row->parameter, t.record.text,
                  gantry_status_name(t.record.status));
    tear_down(&t);
}

START_TEST(null_and_nan_are_refused_or_mean_what_the_header_says)
{
    expect_row(&rows[_i], true);
}
END_TEST

START_TEST(so_they_are_where_nobody_reads_the_error)
{
    expect_row(&rows[_i], false);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("null");
    TCase *t = tcase_create("null");
    tcase_add_unchecked_fixture(t, make_things, free_things);
    tcase_add_loop_test(t, null_and_nan_are_refused_or_mean_what_the_header_says, 0, ROWS);
    tcase_add_loop_test(t, so_they_are_where_nobody_reads_the_error, 0, ROWS);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
