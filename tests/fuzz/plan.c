/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph, a machine and options: a schedule that is made passes the checker, also read back from its file, and what
 * runs on several devices gives what one device gives. The first bytes choose machine and options. The rest is the
 * graph's file or, where the highest bit of the first byte is set, chooses a graph.
 */
#include "fuzz.h"
#include "plan_graph.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { CHOICES = 6, NODES = 96, BYTES = 1 << 18, DEVICES = 4, CHOSEN = 0x80, GPUS = 0x40 };

/* Two GPUs that reach each other, one that does not, and a CPU: scheduled for and checked, not run. */
static const char gpus[] =
    "{\"gantry_machine\":1,\"name\":\"gpus\",\"memories\":[{\"id\":\"host\",\"capacity\":1073741824},"
    "{\"id\":\"mem0\",\"capacity\":1048576},{\"id\":\"mem1\",\"capacity\":1048576},{\"id\":\"mem2\",\"capacity\":65536}"
    "],"
    "\"devices\":[{\"id\":\"gpu0\",\"kind\":\"a\",\"type\":\"gpu\",\"memory\":\"mem0\",\"gflops\":{\"f32\":100},"
    "\"bandwidth_gbs\":500},"
    "{\"id\":\"gpu1\",\"kind\":\"a\",\"type\":\"gpu\",\"memory\":\"mem1\",\"gflops\":{\"f32\":100},\"bandwidth_gbs\":"
    "500},"
    "{\"id\":\"gpu2\",\"kind\":\"b\",\"type\":\"gpu\",\"memory\":\"mem2\",\"gflops\":{\"f32\":20},\"bandwidth_gbs\":"
    "100},"
    "{\"id\":\"cpu\",\"kind\":\"cpu\",\"type\":\"cpu\",\"memory\":\"host\",\"use\":\"host\",\"gflops\":{\"f32\":5},"
    "\"bandwidth_gbs\":20}],"
    "\"routes\":[{\"from\":\"host\",\"to\":[\"mem0\",\"mem1\",\"mem2\"],\"both\":true,\"latency_us\":5,\"bandwidth_"
    "gbs\":10},"
    "{\"from\":\"mem0\",\"to\":\"mem1\",\"both\":true,\"latency_us\":2,\"bandwidth_gbs\":100}]}";

typedef struct program {
    gantry_graph *graph;
    size_t buffers;
} program;

static gantry_status parse(gantry_graph **g, const uint8_t *data, size_t size, gantry_error *err)
{
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    options.max_nodes = NODES;
    return gantry_graph_parse(g, (const char *)data, size, "fuzz", NULL, &options, err);
}

static gantry_buffer_info info_of(const gantry_graph *g, size_t i)
{
    gantry_error err = { 0 };
    gantry_buffer_info info = GANTRY_BUFFER_INFO_INIT;
    MUST_HOLD(gantry_graph_buffer_info(g, (gantry_buffer){ (uint32_t)i, 0 }, &info, &err) == GANTRY_OK, &err);
    return info;
}

/* Small enough for thousands of runs a minute. */
static bool is_small(const program *p)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < p->buffers && bytes <= BYTES; i++) {
        uint64_t more = info_of(p->graph, i).bytes;
        bytes = more <= BYTES ? bytes + more : more;
    }
    return bytes <= BYTES && gantry_graph_node_count(p->graph) <= NODES;
}

static const char *pick(uint8_t byte, const char *const *words, size_t count)
{
    size_t i = byte % (count + 1);
    return i < count ? words[i] : NULL;
}

static gantry_schedule_options options_of(const uint8_t *choice, char *memory, size_t size)
{
    static const char *const objectives[] = { "makespan", "period", "max_load" };
    static const char *const spills[] = { "off", "copy", "auto" }, *const balances[] = { "static", "dynamic" };
    gantry_schedule_options o = GANTRY_SCHEDULE_OPTIONS_INIT;
    size_t policies = 0;
    while (gantry_policy_name(policies))
        policies++;
    o.effort = choice[1] % 16 < 13 ? 0 : choice[1] % 16 - 13; /* each is some times slower */
    o.policy = choice[2] % 2 ? gantry_policy_name((choice[2] / 2) % policies) : NULL;
    o.objective = pick(choice[3], objectives, 3);
    o.spill = pick(choice[3] / 4, spills, 3);
    o.balance = pick(choice[3] / 16, balances, 2);
    o.in_flight = o.objective && strcmp(o.objective, "period") == 0 ? choice[4] % 4 : 0;
    static const int unrolls[] = { 8, 0, 1, 30 };
    o.unroll = unrolls[choice[4] / 4 % 4];
    if (choice[5] % 4 == 1) {
        snprintf(memory, size, "mem0=%d", 256 << (choice[5] / 4 % 8));
        o.max_memory = memory;
    }
    return o;
}

/* `devices`: how many virtual ones; 0: GPUs. */
static gantry_schedule *make(gantry_graph *g, int devices, const gantry_schedule_options *o)
{
    gantry_error err = { 0 };
    gantry_machine *m = NULL;
    gantry_schedule *s = NULL;
    gantry_status status = devices ? gantry_machine_virtual(&m, devices, &err)
                                   : gantry_machine_parse(&m, gpus, sizeof gpus - 1, "gpus", &err);
    MUST_HOLD(status == GANTRY_OK, &err);
    status = gantry_schedule_new(&s, g, m, o, &err);
    fuzz_check_error(status, &err);
    MUST_HOLD((status == GANTRY_OK) == (s != NULL), &err);
    gantry_machine_free(m);
    return s;
}

static void check_file(const gantry_schedule *s, gantry_graph *g)
{
    gantry_error err = { 0 };
    gantry_schedule *again = NULL;
    char *text;
    size_t length;
    MUST_HOLD(gantry_schedule_json(s, &text, &length, &err) == GANTRY_OK, &err);
    MUST_HOLD(gantry_schedule_parse(&again, text, length, "again", &err) == GANTRY_OK, &err);
    MUST_HOLD(gantry_schedule_check(again, g, &err) == GANTRY_OK, &err);
    gantry_schedule_free(again);
    gantry_free(text);
}

/* Small whole numbers, so that sums of few are the same in every order; also as 16-bit floats and as integers. */
static void fill(void *to, gantry_dtype dtype, uint64_t bytes)
{
    uint8_t *at = to;
    memset(at, 0, bytes);
    for (uint64_t i = 0; dtype == GANTRY_F32 && i < bytes / 4; i++)
        ((float *)to)[i] = (float)(i % 7);
    for (uint64_t i = 0; dtype == GANTRY_F64 && i < bytes / 8; i++)
        ((double *)to)[i] = (double)(i % 7);
    for (uint64_t i = 0; (dtype == GANTRY_I32 || dtype == GANTRY_U8) && i < bytes; i += dtype == GANTRY_I32 ? 4 : 1)
        at[i] = (uint8_t)(i % 5);
}

/* Inputs, states and constants begin with the same numbers; a buffer that cannot be bound has an init or a file. */
static void bind(gantry_run *run, const program *p, void **kept)
{
    for (size_t i = 0; i < p->buffers; i++) {
        gantry_buffer_info info = info_of(p->graph, i);
        kept[i] = malloc(info.bytes + 1);
        if (!kept[i])
            abort();
        fill(kept[i], info.dtype, info.bytes);
        gantry_status status = gantry_run_bind(run, (gantry_buffer){ (uint32_t)i, 0 }, kept[i], info.bytes, NULL);
        (void)status;
    }
}

static bool is_equal(double a, double b, const gantry_buffer_info *info)
{
    if (!isfinite(a) || !isfinite(b)) /* a sum in another order may overflow or not */
        return true;
    return fabs(a - b) <= 1e-3 + info->atol + (1e-3 + info->rtol) * (fabs(a) + fabs(b));
}

static void compare(const gantry_buffer_info *info, const void *x, const void *y)
{
    gantry_error err = { 0 };
    snprintf(err.text, sizeof err.text, "output \"%s\"", info->name);
    for (uint64_t i = 0; info->dtype == GANTRY_F32 && i < info->bytes / 4; i++)
        MUST_HOLD(is_equal(((const float *)x)[i], ((const float *)y)[i], info), &err);
    for (uint64_t i = 0; info->dtype == GANTRY_F64 && i < info->bytes / 8; i++)
        MUST_HOLD(is_equal(((const double *)x)[i], ((const double *)y)[i], info), &err);
    if (info->dtype == GANTRY_I32 || info->dtype == GANTRY_U8)
        MUST_HOLD(memcmp(x, y, info->bytes) == 0, &err);
}

typedef struct outcome {
    gantry_status status;
    gantry_error err;
    void **bound, **output;
} outcome;

static gantry_status start_twice(gantry_run *run, gantry_error *err)
{
    uint64_t ticket = 0;
    gantry_status status = GANTRY_OK;
    for (int i = 0; i < 2 && !status; i++) {
        status = gantry_run_start(run, &ticket, err);
        status = status ? status : gantry_run_wait(run, ticket, err);
    }
    return status;
}

static outcome run(const program *p, gantry_schedule *s)
{
    gantry_run *run = NULL;
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    outcome o = { .bound = calloc(p->buffers + 1, sizeof(void *)), .output = calloc(p->buffers + 1, sizeof(void *)) };
    options.backend = "host";
    o.status = gantry_run_new(&run, s, &options, &o.err);
    if (!o.status) {
        bind(run, p, o.bound);
        o.status = start_twice(run, &o.err);
    }
    for (size_t i = 0; i < p->buffers && !o.status; i++) {
        const void *host;
        uint64_t bytes;
        if (!info_of(p->graph, i).output)
            continue;
        MUST_HOLD(!gantry_run_output(run, (gantry_buffer){ (uint32_t)i, 0 }, &host, &bytes, &o.err), &o.err);
        o.output[i] = malloc(bytes + 1);
        memcpy(o.output[i], host, bytes);
    }
    fuzz_check_error(o.status, &o.err);
    gantry_run_free(run);
    return o;
}

static void outcome_free(outcome *o, size_t buffers)
{
    for (size_t i = 0; i < buffers; i++) {
        free(o->bound[i]);
        free(o->output[i]);
    }
    free(o->bound);
    free(o->output);
}

static void check_run(const program *p, gantry_schedule *s)
{
    gantry_schedule_options plain = GANTRY_SCHEDULE_OPTIONS_INIT;
    plain.effort = 0;
    gantry_schedule *one = make(p->graph, 1, &plain);
    if (!one)
        return;
    outcome x = run(p, s), y = run(p, one);
    MUST_HOLD(x.status == y.status, x.status ? &x.err : &y.err);
    for (size_t i = 0; i < p->buffers && !x.status; i++)
        if (x.output[i]) {
            gantry_buffer_info info = info_of(p->graph, i);
            compare(&info, x.output[i], y.output[i]);
        }
    outcome_free(&x, p->buffers);
    outcome_free(&y, p->buffers);
    gantry_schedule_free(one);
}

static void try_plan(const program *p, const uint8_t *choice)
{
    char memory[40];
    gantry_error err = { 0 };
    gantry_schedule_options o = options_of(choice, memory, sizeof memory);
    bool runs = !(choice[0] & GPUS);
    gantry_schedule *s = make(p->graph, runs ? 1 + choice[0] % DEVICES : 0, &o);
    if (!s)
        return;
    MUST_HOLD(gantry_schedule_check(s, p->graph, &err) == GANTRY_OK, &err);
    check_file(s, p->graph);
    if (runs)
        check_run(p, s);
    gantry_schedule_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    program p = { 0 };
    gantry_error err = { 0 };
    if (size < CHOICES)
        return 0;
    char *text = data[0] & CHOSEN ? fuzz_plan_graph(data + CHOICES, size - CHOICES, data[0] & GPUS) : NULL;
    gantry_status status = text ? parse(&p.graph, (const uint8_t *)text, strlen(text), &err)
                                : parse(&p.graph, data + CHOICES, size - CHOICES, &err);
    free(text);
    if (status)
        return 0;
    p.buffers = gantry_graph_buffer_count(p.graph);
    if (is_small(&p))
        try_plan(&p, data);
    gantry_graph_free(p.graph);
    return 0;
}
