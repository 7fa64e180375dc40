/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that were compiled with another version of a struct: every struct of the API that begins with its size is
 * given smaller, larger with and without fields in use that the library does not know, and without a size. */
#include "support/run_suite.h"
#include <gantry/gantry.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MORE = 24, ROOM = 8192, FILL = 0x55 };

static const char graph_text[] =
    "{\"gantry\": 1, \"buffers\": {\"x\": {\"dtype\": \"f32\", \"shape\": [64], \"init\": 1, \"split\": "
    "{\"auto\": 4}}, \"y\": {\"dtype\": \"f32\", \"shape\": [64], \"split\": {\"auto\": "
    "4}, \"output\": true}}, \"nodes\": [{\"id\": \"s[i]\", \"for\": {\"i\": 4}, \"kernel\": \"scale\", \"args\": "
    "{\"a\": 2, \"x\": "
    "\"x[i]\", \"y\": \"y[i]\"}}]}";

static gantry_machine *machine;
static gantry_graph *graph;
static gantry_schedule *schedule, *phased;
static gantry_run *run;

static void must(gantry_status status, const gantry_error *err)
{
    ck_assert_msg(status == GANTRY_OK, "%s: %s", gantry_status_name(status), err->text);
}

/* A loop that nobody could unroll. */
static void make_phased(gantry_error *err)
{
    gantry_graph *g = gantry_graph_new("phased");
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, (const int64_t[]){ 8 });
    gantry_buffer_init_value(g, x, 0);
    gantry_buffer_set_class(g, x, GANTRY_STATE);
    gantry_buffer_output(g, x);
    gantry_graph_repeat(g, 1000000);
    gantry_node_readwrite(g, gantry_graph_work(g, "step"), gantry_all(x));
    gantry_graph_repeat_end(g);
    must(gantry_schedule_new(&phased, g, machine, NULL, err), err);
    gantry_graph_free(g);
}

static void set_up(void)
{
    gantry_error err;
    uint64_t ticket;
    must(gantry_machine_virtual(&machine, 2, &err), &err);
    must(gantry_graph_parse(&graph, graph_text, strlen(graph_text), "text", NULL, NULL, &err), &err);
    must(gantry_schedule_new(&schedule, graph, machine, NULL, &err), &err);
    make_phased(&err);
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "host";
    options.record_trace = 1;
    must(gantry_run_new(&run, schedule, &options, &err), &err);
    must(gantry_run_start(run, &ticket, &err), &err);
    must(gantry_run_wait(run, ticket, &err), &err);
}

static void tear_down(void)
{
    gantry_run_free(run);
    gantry_schedule_free(phased);
    gantry_schedule_free(schedule);
    gantry_graph_free(graph);
    gantry_machine_free(machine);
}

/* ---- what programs give ---- */

static gantry_status give_load(const void *given, gantry_error *err)
{
    gantry_graph *g = NULL;
    char path[] = "/tmp/gantry_structs_XXXXXX";
    int file = mkstemp(path);
    FILE *to = fdopen(file, "w");
    ck_assert(to && fputs(graph_text, to) >= 0 && fclose(to) == 0);
    gantry_status status = gantry_graph_load(&g, path, given, err);
    remove(path);
    gantry_graph_free(g);
    return status;
}

static gantry_status give_parse(const void *given, gantry_error *err)
{
    gantry_graph *g = NULL;
    gantry_status status = gantry_graph_parse(&g, graph_text, strlen(graph_text), "text", NULL, given, err);
    gantry_graph_free(g);
    return status;
}

static gantry_status give_use(const void *given, gantry_error *err)
{
    char path[] = "/tmp/gantry_structs_XXXXXX";
    int file = mkstemp(path);
    FILE *to = fdopen(file, "w");
    ck_assert(to && fputs(graph_text, to) >= 0 && fclose(to) == 0);
    gantry_graph *g = gantry_graph_new("use");
    gantry_graph_use(g, "u", path, given);
    gantry_status status = gantry_graph_check(g, err);
    remove(path);
    gantry_graph_free(g);
    return status;
}

static gantry_status give_contents(const void *given, gantry_error *err)
{
    gantry_graph *g = gantry_graph_new("contents");
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, (const int64_t[]){ 8 });
    gantry_buffer_init_with(g, x, given);
    gantry_graph_fill_with(g, "f", gantry_all(x), given);
    gantry_status status = gantry_graph_check(g, err);
    gantry_graph_free(g);
    return status;
}

static gantry_status give_import(const void *given, gantry_error *err)
{
    gantry_graph *g = NULL;
    char path[] = "/tmp/gantry_structs_XXXXXX";
    int file = mkstemp(path);
    FILE *to = fdopen(file, "w");
    ck_assert(to && fputs("1\n0 1 0\n", to) >= 0 && fclose(to) == 0);
    gantry_status status = gantry_graph_import(&g, NULL, "stg", path, given, err);
    remove(path);
    gantry_graph_free(g);
    return status;
}

static gantry_status give_schedule(const void *given, gantry_error *err)
{
    gantry_schedule *s = NULL;
    gantry_status status = gantry_schedule_new(&s, graph, machine, given, err);
    gantry_schedule_free(s);
    return status;
}

static gantry_status give_drawing(const void *given, gantry_error *err)
{
    char *text = NULL;
    gantry_status status = gantry_graph_draw(graph, given, &text, NULL, err);
    gantry_free(text);
    return status;
}

static gantry_status give_rebalance(const void *given, gantry_error *err)
{
    gantry_schedule *next = NULL;
    gantry_status status = gantry_run_rebalance(&next, run, 1, given, NULL, err);
    gantry_schedule_free(next);
    return status;
}

static gantry_status give_run(const void *given, gantry_error *err)
{
    gantry_run *r = NULL;
    gantry_status status = gantry_run_new(&r, schedule, given, err);
    gantry_run_free(r);
    return status;
}

static gantry_status give_join(const void *given, gantry_error *err)
{
    gantry_machine *m = NULL;
    const gantry_machine *const nodes[] = { machine };
    gantry_status status = gantry_machine_join(&m, nodes, 1, given, err);
    gantry_machine_free(m);
    return status;
}
/* There is nothing to calibrate on a virtual machine, which is found after the options are read. */
static gantry_status give_calibrate(const void *given, gantry_error *err)
{
    gantry_machine *m = NULL;
    gantry_status status = gantry_machine_calibrate(&m, machine, given, err);
    gantry_machine_free(m);
    return status;
}

/* Two arguments one behind the other, of the size that a version of the library has. */
static unsigned char args[2 * (sizeof(gantry_kernel_arg) + MORE)];
static gantry_status clip(const gantry_launch *launch)
{
    const gantry_arg *x = gantry_launch_arg(launch, 0), *limit = gantry_launch_arg(launch, 1);
    for (int64_t i = 0; i < x->rows; i++)
        ((float *)x->data)[i] = (float)limit->number;
    return GANTRY_OK;
}
static gantry_kernel own = { .struct_size = sizeof own,
                             .name = "own",
                             .arg = (const gantry_kernel_arg *)(const void *)args,
                             .args = 2,
                             .flops = "x.size",
                             .host = clip };

static void make_args(size_t stride, int tail)
{
    gantry_kernel_arg x = { .name = "x", .access = GANTRY_READWRITE }, limit = { .name = "limit", .scalar = 1 };
    size_t known = stride < sizeof x ? stride : sizeof x;
    memset(args, tail, sizeof args);
    memcpy(args, &x, known);
    memcpy(args + stride, &limit, known);
    own.arg_size = stride;
}

/* The effect of the kernel is looked at as well: arguments that are read wrong do not set x to 3. */
static gantry_status use_kernel(gantry_graph *g, gantry_error *err)
{
    gantry_schedule *s = NULL;
    gantry_run *r = NULL;
    const void *host;
    uint64_t ticket, bytes;
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, (const int64_t[]){ 4 });
    gantry_buffer_output(g, x);
    gantry_buffer_init_value(g, x, 1);
    gantry_node n = gantry_graph_kernel(g, "n", "own");
    gantry_node_arg(g, n, "x", gantry_all(x));
    gantry_node_scalar(g, n, "limit", 3);
    gantry_status status = gantry_schedule_new(&s, g, machine, NULL, err);
    gantry_graph_free(g);
    if (!status) {
        must(gantry_run_new(&r, s, NULL, err), err);
        must(gantry_run_start(r, &ticket, err), err);
        must(gantry_run_wait(r, ticket, err), err);
        must(gantry_run_output(r, x, &host, &bytes, err), err);
        ck_assert(((const float *)host)[0] == 3 && ((const float *)host)[3] == 3);
    }
    gantry_run_free(r);
    gantry_schedule_free(s);
    return status;
}

static gantry_status give_kernel(const void *given, gantry_error *err)
{
    gantry_graph *g = gantry_graph_new("kernel");
    gantry_graph_add_kernel(g, given);
    return use_kernel(g, err);
}

static gantry_status give_cuda_manifest(const void *given, gantry_error *err)
{
    gantry_graph *g = gantry_graph_new("kernel");
    gantry_cuda_code code = GANTRY_CUDA_CODE_INIT;
    code.image = "// PTX";
    code.bytes = 6;
    code.grid[0] = code.block[0] = "x.rows";
    gantry_graph_add_cuda_kernel(g, given, &code);
    return use_kernel(g, err);
}

static gantry_status give_cuda_code(const void *given, gantry_error *err)
{
    gantry_graph *g = gantry_graph_new("kernel");
    gantry_graph_add_cuda_kernel(g, &own, given);
    return use_kernel(g, err);
}

static const gantry_load_options load_options = GANTRY_LOAD_OPTIONS_INIT;
static const gantry_use_options use_options = GANTRY_USE_OPTIONS_INIT;
static const gantry_contents contents = GANTRY_CONTENTS_INIT;
static const gantry_import_options import_options = GANTRY_IMPORT_OPTIONS_INIT;
static const gantry_schedule_options schedule_options = GANTRY_SCHEDULE_OPTIONS_INIT;
static const gantry_drawing_options drawing_options = GANTRY_DRAWING_OPTIONS_INIT;
static const gantry_run_options run_options = GANTRY_RUN_OPTIONS_INIT;
static const gantry_calibrate_options calibrate_options = GANTRY_CALIBRATE_OPTIONS_INIT;
static const gantry_join_options join_options = GANTRY_JOIN_OPTIONS_INIT;
static const gantry_cuda_code cuda_code = {
    .struct_size = sizeof cuda_code, .image = "// PTX", .bytes = 6, .grid = { "x.rows" }, .block = { "32" }
};

static const char *const train_weights[] = { "w" };
static const gantry_train_options train_options = {
    .struct_size = sizeof train_options, .loss = "loss", .weights = train_weights, .weight_count = 1
};

static gantry_status give_train(const void *given, gantry_error *err)
{
    static const int64_t one = 1;
    gantry_graph *g = gantry_graph_new("train");
    gantry_buffer w = gantry_graph_buffer(g, "w", GANTRY_F32, 1, &one);
    gantry_buffer loss = gantry_graph_buffer(g, "loss", GANTRY_F32, 1, &one);
    gantry_buffer_init_value(g, w, 1);
    gantry_graph_copy(g, "copy", gantry_all(w), gantry_all(loss));
    gantry_status status = gantry_graph_differentiate(g, given, err);
    status = status ? status : gantry_graph_check(g, err);
    gantry_graph_free(g);
    return status;
}

static const gantry_strategy strategy = GANTRY_STRATEGY_INIT;

/* The weight is the batch, too: one piece of it. */
static gantry_status give_strategy(const void *given, gantry_error *err)
{
    static const int64_t one = 1;
    static const char *const batch[] = { "x" };
    gantry_train_options o = train_options;
    gantry_graph *g = gantry_graph_new("train");
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, &one);
    gantry_buffer w = gantry_graph_buffer(g, "w", GANTRY_F32, 1, &one);
    gantry_buffer loss = gantry_graph_buffer(g, "loss", GANTRY_F32, 1, &one);
    gantry_buffer_init_value(g, x, 1);
    gantry_buffer_init_value(g, w, 1);
    gantry_node node = gantry_graph_map(g, "loss", "y = x * w");
    gantry_node_arg(g, node, "x", gantry_all(x));
    gantry_node_arg(g, node, "w", gantry_all(w));
    gantry_node_arg(g, node, "y", gantry_all(loss));
    o.batch = batch;
    o.batch_count = 1;
    gantry_status status = gantry_graph_parallelize(g, given, &o, err);
    status = status ? status : gantry_graph_differentiate(g, NULL, err);
    status = status ? status : gantry_graph_check(g, err);
    gantry_graph_free(g);
    return status;
}

static const struct input {
    const char *type;
    const void *init;
    size_t size, smaller;
    gantry_status (*give)(const void *given, gantry_error *err);
    gantry_status fine;
} inputs[] = {
    { "gantry_load_options", &load_options, sizeof load_options, sizeof(size_t), give_load, GANTRY_OK },
    { "gantry_load_options", &load_options, sizeof load_options, offsetof(gantry_load_options, allow_code), give_parse,
      GANTRY_OK },
    { "gantry_use_options", &use_options, sizeof use_options, sizeof(size_t), give_use, GANTRY_OK },
    { "gantry_contents", &contents, sizeof contents, offsetof(gantry_contents, exact), give_contents, GANTRY_OK },
    { "gantry_import_options", &import_options, sizeof import_options, sizeof(size_t), give_import, GANTRY_OK },
    { "gantry_train_options", &train_options, sizeof train_options, offsetof(gantry_train_options, learning_rate),
      give_train, GANTRY_OK },
    { "gantry_strategy", &strategy, sizeof strategy, sizeof(size_t), give_strategy, GANTRY_OK },
    { "gantry_schedule_options", &schedule_options, sizeof schedule_options, sizeof(size_t), give_schedule, GANTRY_OK },
    { "gantry_schedule_options", &schedule_options, sizeof schedule_options, offsetof(gantry_schedule_options, balance),
      give_rebalance, GANTRY_OK },
    { "gantry_drawing_options", &drawing_options, sizeof drawing_options, offsetof(gantry_drawing_options, near),
      give_drawing, GANTRY_OK },
    { "gantry_run_options", &run_options, sizeof run_options, offsetof(gantry_run_options, check), give_run,
      GANTRY_OK },
    { "gantry_calibrate_options", &calibrate_options, sizeof calibrate_options, sizeof(size_t), give_calibrate,
      GANTRY_E_DEVICE },
    { "gantry_join_options", &join_options, sizeof join_options, offsetof(gantry_join_options, gbs), give_join,
      GANTRY_OK },
    { "gantry_kernel", &own, sizeof own, offsetof(gantry_kernel, check), give_kernel, GANTRY_OK },
    { "gantry_kernel", &own, sizeof own, offsetof(gantry_kernel, check), give_cuda_manifest, GANTRY_OK },
    { "gantry_cuda_code", &cuda_code, sizeof cuda_code, offsetof(gantry_cuda_code, shared_bytes), give_cuda_code,
      GANTRY_OK },
};
enum { INPUTS = sizeof inputs / sizeof *inputs };

/* Memory that ends where the struct ends, so that tools that watch memory see what is read behind it. */
static gantry_status give(const struct input *in, size_t size, int last, gantry_error *err)
{
    unsigned char *given = calloc(1, size > in->size ? size : in->size);
    ck_assert_ptr_nonnull(given);
    memcpy(given, in->init, in->size);
    if (size < in->size)
        memset(given + size, FILL, in->size - size); /* read by mistake, it is nonsense in every field */
    memcpy(given, &size, sizeof size);
    if (last)
        given[size - 1] = (unsigned char)last;
    memset(err, 0, sizeof *err);
    gantry_status status = in->give(given, err);
    free(given);
    return status;
}

START_TEST(smaller_structs_get_defaults)
{
    gantry_error err;
    make_args(sizeof(gantry_kernel_arg), 0);
    const struct input *in = &inputs[_i];
    gantry_status status = give(in, in->smaller, 0, &err);
    ck_assert_msg(status == in->fine, "%s: %s", in->type, err.text);
    status = give(in, in->size, 0, &err);
    ck_assert_msg(status == in->fine, "%s: %s", in->type, err.text);
}
END_TEST

START_TEST(larger_structs_may_ask_for_nothing_new)
{
    gantry_error err;
    char expected[200];
    make_args(sizeof(gantry_kernel_arg), 0);
    const struct input *in = &inputs[_i];
    gantry_status status = give(in, in->size + MORE, 0, &err);
    ck_assert_msg(status == in->fine, "%s: %s", in->type, err.text);
    ck_assert_int_eq(give(in, in->size + MORE, 1, &err), GANTRY_E_UNSUPPORTED);
    snprintf(expected, sizeof expected, "%s has %zu bytes, of which this version of the library, %s, knows %zu, and ",
             in->type, in->size + MORE, gantry_version(), in->size);
    ck_assert_msg(!strncmp(err.text, expected, strlen(expected)), "%s", err.text);
}
END_TEST

START_TEST(structs_without_a_size_are_refused)
{
    static const size_t none[] = { 0, 1, sizeof(size_t) - 1, 4097, SIZE_MAX };
    gantry_error err;
    char expected[200];
    make_args(sizeof(gantry_kernel_arg), 0);
    const struct input *in = &inputs[_i];
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        unsigned char given[ROOM];
        memcpy(given, in->init, in->size);
        memcpy(given, &none[i], sizeof none[i]);
        memset(&err, 0, sizeof err);
        ck_assert_int_eq(in->give(given, &err), GANTRY_E_INVALID);
        snprintf(expected, sizeof expected,
                 "struct_size is %zu, which is no size of a %s; set it to sizeof(%s), which is %zu", none[i], in->type,
                 in->type, in->size);
        ck_assert_msg(!strncmp(err.text, expected, strlen(expected)), "%s", err.text);
    }
}
END_TEST

/* A field that means nothing yet must be 0, or it could never mean something. */
START_TEST(reserved_fields_are_zero)
{
    gantry_error err;
    gantry_load_options load = GANTRY_LOAD_OPTIONS_INIT;
    gantry_import_options import = GANTRY_IMPORT_OPTIONS_INIT;
    gantry_schedule_options how = GANTRY_SCHEDULE_OPTIONS_INIT;
    load.devices = -3; /* was reserved once */
    import.reserved = how.reserved = 3;
    ck_assert_int_eq(give_parse(&load, &err), GANTRY_E_INVALID);
    ck_assert_int_eq(give_load(&load, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text, "`devices` of the load options is -3; give how many devices there are, or 0 if that is "
                               "not known");
    ck_assert_int_eq(give_import(&import, &err), GANTRY_E_UNSUPPORTED);
    ck_assert_int_eq(give_schedule(&how, &err), GANTRY_E_UNSUPPORTED);
    ck_assert_str_eq(err.text,
                     "reserved of gantry_schedule_options is 3; leave it 0, or use a library of a version in which it "
                     "means something");
}
END_TEST

/* ---- arrays ---- */

START_TEST(arrays_step_by_the_size_of_the_program)
{
    gantry_error err;
    const struct input kernel = { "gantry_kernel", &own, sizeof own, 0, give_kernel, GANTRY_OK };
    make_args(offsetof(gantry_kernel_arg, list), FILL);
    gantry_status status = give(&kernel, sizeof own, 0, &err);
    ck_assert_msg(status == GANTRY_OK, "%s", err.text);
    make_args(sizeof(gantry_kernel_arg) + MORE, 0);
    status = give(&kernel, sizeof own, 0, &err);
    ck_assert_msg(status == GANTRY_OK, "%s", err.text);
    args[sizeof args - 1] = 1;
    ck_assert_int_eq(give(&kernel, sizeof own, 0, &err), GANTRY_E_UNSUPPORTED);
    ck_assert_msg(strstr(err.text, "gantry_kernel_arg has"), "%s", err.text);
    own.arg_size = 0;
    ck_assert_int_eq(give(&kernel, sizeof own, 0, &err), GANTRY_E_INVALID);
    ck_assert_msg(!strncmp(err.text, "arg_size of a gantry_kernel is 0, which is no size of a gantry_kernel_arg; ", 75),
                  "%s", err.text);
}
END_TEST

/* ---- what programs get ---- */

static gantry_status get_buffer(void *to, gantry_error *err)
{
    return gantry_graph_buffer_info(graph, gantry_graph_find_buffer(graph, "y"), to, err);
}
static gantry_status get_device(void *to, gantry_error *err)
{
    return gantry_machine_device(machine, 1, to, err);
}
static gantry_status get_memory(void *to, gantry_error *err)
{
    return gantry_machine_memory(machine, 1, to, err);
}
static gantry_status get_summary(void *to, gantry_error *err)
{
    return gantry_schedule_summarize(schedule, to, err);
}
static gantry_status get_rank(void *to, gantry_error *err)
{
    return gantry_schedule_rank(schedule, 0, to, err);
}
static gantry_status get_run(void *to, gantry_error *err)
{
    return gantry_run_get_info(run, to, err);
}
static gantry_status get_rebalance(void *to, gantry_error *err)
{
    gantry_schedule *next = NULL;
    gantry_status status = gantry_run_rebalance(&next, run, 1, NULL, to, err);
    gantry_schedule_free(next);
    return status;
}
/* It has no status: a schedule is what says that all went well. */
static gantry_status get_phase(void *to, gantry_error *err)
{
    (void)err;
    return gantry_schedule_phase(phased, 0, to) ? GANTRY_OK : GANTRY_E_INVALID;
}

/* In the function of a node it is known, and nowhere else. */
static void *asked;
static gantry_status ask_in_node(const gantry_launch *l)
{
    (void)l;
    gantry_at_work at = GANTRY_AT_WORK_INIT;
    bool known = gantry_run_at_work(&at) && gantry_run_at_work(asked);
    return known && !strcmp(at.node, "asks") && !at.kernel && !strcmp(at.device, "dev0") ? GANTRY_OK : GANTRY_E_KERNEL;
}
static gantry_run *make_asking(void)
{
    static const int64_t one = 1;
    gantry_schedule *planned = NULL;
    gantry_run *made = NULL;
    gantry_error err;
    gantry_graph *g = gantry_graph_new("asking");
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, &one);
    gantry_node_write(g, gantry_graph_launch(g, "asks", ask_in_node, NULL), gantry_all(x));
    must(gantry_schedule_new(&planned, g, machine, NULL, &err), &err);
    must(gantry_run_new(&made, planned, NULL, &err), &err);
    return made;
}
/* One run, since an answer has pointers to names of its graph. */
static gantry_status get_at_work(void *to, gantry_error *err)
{
    static gantry_run *asking;
    uint64_t ticket = 0;
    asked = to;
    asking = asking ? asking : make_asking();
    gantry_status status = gantry_run_start(asking, &ticket, err);
    status = status ? status : gantry_run_wait(asking, ticket, err);
    gantry_at_work none = GANTRY_AT_WORK_INIT;
    ck_assert_int_eq(gantry_run_at_work(&none), 0);
    return status == GANTRY_E_KERNEL ? GANTRY_E_INVALID : status;
}

static const struct output {
    const char *type;
    size_t size, smaller;
    gantry_status (*get)(void *to, gantry_error *err);
} outputs[] = {
    { "gantry_buffer_info", sizeof(gantry_buffer_info), offsetof(gantry_buffer_info, shape), get_buffer },
    { "gantry_device_info", sizeof(gantry_device_info), offsetof(gantry_device_info, lanes), get_device },
    { "gantry_memory_info", sizeof(gantry_memory_info), offsetof(gantry_memory_info, capacity), get_memory },
    { "gantry_schedule_summary", sizeof(gantry_schedule_summary), offsetof(gantry_schedule_summary, gap), get_summary },
    { "gantry_rank_info", sizeof(gantry_rank_info), offsetof(gantry_rank_info, sends), get_rank },
    { "gantry_run_info", sizeof(gantry_run_info), offsetof(gantry_run_info, predicted_us), get_run },
    { "gantry_rebalance", sizeof(gantry_rebalance), offsetof(gantry_rebalance, hand_over_us), get_rebalance },
    { "gantry_phase_info", sizeof(gantry_phase_info), offsetof(gantry_phase_info, iterations), get_phase },
    { "gantry_at_work", sizeof(gantry_at_work), offsetof(gantry_at_work, device), get_at_work },
};
enum { OUTPUTS = sizeof outputs / sizeof *outputs };

static void get(const struct output *out, unsigned char to[ROOM], size_t size)
{
    gantry_error err;
    memset(to, FILL, ROOM);
    memcpy(to, &size, sizeof size);
    must(out->get(to, &err), &err);
    ck_assert_mem_eq(to, &size, sizeof size);
    for (size_t i = size; i < ROOM; i++)
        ck_assert_msg(to[i] == FILL, "%s of %zu bytes: byte %zu was written", out->type, size, i);
}

/* Padding is left aside: nobody said what is in it. */
START_TEST(answers_fill_the_room_that_there_is)
{
    static unsigned char whole[ROOM], part[ROOM];
    static const unsigned char zero[MORE];
    const struct output *out = &outputs[_i];
    get(out, whole, out->size);
    get(out, part, out->smaller);
    ck_assert_mem_eq(part + sizeof(size_t), whole + sizeof(size_t), out->smaller - sizeof(size_t));
    get(out, part, out->size + MORE);
    ck_assert_mem_eq(part + sizeof(size_t), whole + sizeof(size_t), out->size - sizeof(size_t));
    ck_assert_mem_eq(part + out->size, zero, MORE);
}
END_TEST

START_TEST(room_without_a_size_is_refused)
{
    static const size_t none[] = { 0, sizeof(size_t) - 1, 4097, SIZE_MAX };
    const struct output *out = &outputs[_i];
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        gantry_error err = { 0 };
        unsigned char to[ROOM];
        memset(to, FILL, sizeof to);
        memcpy(to, &none[i], sizeof none[i]);
        ck_assert_int_eq(out->get(to, &err), GANTRY_E_INVALID);
        ck_assert(out->get == get_phase || out->get == get_at_work || strstr(err.text, out->type));
        for (size_t b = sizeof(size_t); b < sizeof to; b++)
            ck_assert_int_eq(to[b], FILL);
    }
}
END_TEST

START_TEST(room_is_wanted)
{
    gantry_error err;
    ck_assert_int_eq(get_buffer(NULL, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text, "a gantry_buffer_info is wanted to fill in and NULL was given");
    ck_assert_int_eq(get_device(NULL, &err), GANTRY_E_INVALID);
    ck_assert_int_eq(get_memory(NULL, &err), GANTRY_E_INVALID);
    ck_assert_int_eq(get_summary(NULL, &err), GANTRY_E_INVALID);
    ck_assert_int_eq(get_run(NULL, &err), GANTRY_E_INVALID);
    must(get_rebalance(NULL, &err), &err); /* these two may be NULL */
    must(get_phase(NULL, &err), &err);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("structs");
    TCase *given = tcase_create("given"), *got = tcase_create("got");
    tcase_add_checked_fixture(given, set_up, tear_down);
    tcase_add_checked_fixture(got, set_up, tear_down);
    tcase_add_loop_test(given, smaller_structs_get_defaults, 0, INPUTS);
    tcase_add_loop_test(given, larger_structs_may_ask_for_nothing_new, 0, INPUTS);
    tcase_add_loop_test(given, structs_without_a_size_are_refused, 0, INPUTS);
    tcase_add_test(given, reserved_fields_are_zero);
    tcase_add_test(given, arrays_step_by_the_size_of_the_program);
    tcase_add_loop_test(got, answers_fill_the_room_that_there_is, 0, OUTPUTS);
    tcase_add_loop_test(got, room_without_a_size_is_refused, 0, OUTPUTS);
    tcase_add_test(got, room_is_wanted);
    suite_add_tcase(suite, given);
    suite_add_tcase(suite, got);
    return run_suite(suite);
}
