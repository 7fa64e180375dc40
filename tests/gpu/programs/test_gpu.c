/* SPDX-License-Identifier: Apache-2.0 */
/* On real GPUs, against the host back end: exit code 77 without one. Each test has a process of its own, and the parent
 * never starts CUDA. The same program runs on the fake driver, which holds it against something where there is no GPU.
 */
#include "../../unit/cuda/linalg_cases.h"
#include "../../unit/cuda/suite.h"
#include "problems.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the driver, for functions of this program ---- */

static void *symbol(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *found = library ? dlsym(library, name) : NULL;
    ck_assert_msg(found != NULL, "libcuda.so.1 has no %s", name);
    return found;
}
#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)
#define FIND(name)                                                                                                     \
    __typeof__(name) *name##_ = NULL;                                                                                  \
    {                                                                                                                  \
        void *at_ = symbol(TEXT(name));                                                                                \
        memcpy(&name##_, &at_, sizeof at_);                                                                            \
    }

static bool on_fake(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    return library && dlsym(library, "fakeCudaFunction");
}

/* Kernels take a thousand times as long there. So it gets the first and the last of what the fake driver gets all of,
 * with host versions as kernels, or what tests/unit/cuda/test_linalg.c has too. */
static bool on_emulator(void)
{
    return on_fake() && getenv("FAKE_CUDA_KERNELS");
}

/* ---- graphs ---- */

/* Bit for bit where `near` is 0. */
static void compare_outputs(const gantry_graph *g, gantry_run *host, gantry_run *run, double near, const char *what)
{
    for (uint32_t b = 0; b < gantry_graph_buffer_count(g); b++) {
        gantry_buffer_info info = GANTRY_BUFFER_INFO_INIT;
        const void *want = NULL, *got = NULL;
        uint64_t bytes = 0;
        MUST(gantry_graph_buffer_info(g, (gantry_buffer){ .id = b }, &info, MUST_ERR));
        if (!info.output)
            continue;
        MUST(gantry_run_output(host, (gantry_buffer){ .id = b }, &want, &bytes, MUST_ERR));
        MUST(gantry_run_output(run, (gantry_buffer){ .id = b }, &got, &bytes, MUST_ERR));
        int64_t count = (int64_t)(bytes / gantry_dtype_size(info.dtype));
        bound within = { 0, near > 0 ? near * largest_of(want, info.dtype, count) : 0 };
        int64_t at = first_wrong(got, want, info.dtype, count, within);
        ck_assert_msg(at < 0, "%s: \"%s\": element %lld is %.17g and should be %.17g within %.3g", what, info.name,
                      (long long)at, element_at(got, info.dtype, at), element_at(want, info.dtype, at),
                      within.absolute);
    }
}

static void run_once(gantry_run *run)
{
    uint64_t ticket = 0;
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    MUST(gantry_run_wait(run, ticket, MUST_ERR));
}

/* How many graphs a captured start is, and what collectives do, follows the word. */
static bool is_replay(gantry_run *run, const char *replay)
{
    size_t length = strlen(replay);
    const char *is = replay_of(run);
    return strncmp(is, replay, length) == 0 && strchr(",;", is[length]) != NULL; /* or its end */
}

/* Libraries promise nothing about being captured, and GPUs carry out by themselves what they have code for. */
static void check_replay(gantry_run *run, const char *replay, bool libraries, const char *what)
{
    bool promised = !libraries && strcmp(replay, "device") != 0;
    if (!promised && strcmp(replay_of(run), replay) != 0)
        printf("to look at: %s, replay %s: %s\n", what, replay, replay_of(run));
    else
        ck_assert_msg(is_replay(run, replay), "%s is replayed as %s, not %s", what, replay_of(run), replay);
}

/* False: something has no CUDA version yet, which is said. */
static bool compare(gantry_graph *g, const gantry_machine *m, double near, const char *what)
{
    bool there = true;
    for (int k = 0; k < 2 && there; k++) {
        gantry_error why = { 0 };
        gantry_schedule *s = make_schedule(g, m, replay_at(k), "round-robin");
        gantry_run *host = open_run(s, "host"), *run = NULL;
        there = open_cuda(&run, s, &why);
        for (int start = 0; start < 3 && there; start++) {
            run_once(host);
            run_once(run);
            compare_outputs(g, host, run, near, what);
        }
        if (there) {
            check_replay(run, replay_at(k), near > 0, what);
            gantry_run_free(run);
        } else {
            printf("skipped: %s: %s\n", what, why.text);
        }
        gantry_run_free(host);
        gantry_schedule_free(s);
    }
    return there;
}

/* 1, 2, 4, 8 devices, on as many GPUs as there are: several devices may be one GPU. */
START_TEST(graphs)
{
    const graph_case *c = &graph_cases[_i];
    int here = count_gpus();
    bool exact = on_fake() && !on_emulator(), there = true; /* host versions as kernels */
    held_gpus held = hold_gpus(here < 8 ? here : 8);
    for (int devices = 1; devices <= 8 && there; devices *= on_emulator() ? 8 : 2) {
        char what[80];
        int gpus = devices < here ? devices : here;
        gantry_graph *g = load_graph(c);
        gantry_machine *m = shared_machine(devices, gpus);
        snprintf(what, sizeof what, "graph %s on %d devices, %d GPUs", c->file, devices, gpus);
        there = compare(g, m, exact ? 0 : c->near, what);
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
    let_go(&held);
    printf("%s: graph %s\n", there ? "held" : "skipped", c->file);
    fflush(stdout);
}
END_TEST

/* Fills of all widths, copies beyond a chunk, collectives through the host, images in tiles. */
START_TEST(data)
{
    static const char *const texts[] = {
        "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"f64\",\"shape\":[3000001],\"output\":true},"
        "\"b\":{\"dtype\":\"f64\",\"shape\":[3000001],\"output\":true}},\"nodes\":["
        "{\"id\":\"f\",\"fill\":{\"to\":\"a\",\"value\":1.1},\"on\":\"gpu0\"},"
        "{\"id\":\"c\",\"kernel\":\"copy\",\"args\":{\"x\":\"a\",\"y\":\"b\"},\"on\":\"gpu1\"}]}",
        "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"u8\",\"shape\":[70001]},\"b\":{\"dtype\":\"u8\",\"shape\":["
        "70001],"
        "\"output\":true}},\"nodes\":[{\"id\":\"f\",\"fill\":{\"to\":\"a\",\"iota\":{\"start\":2,\"step\":3}},\"on\":"
        "\"gpu1\"},"
        "{\"id\":\"c\",\"kernel\":\"copy\",\"args\":{\"x\":\"a\",\"y\":\"b\"},\"on\":\"gpu0\"}]}",
        "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[2000003],\"init\":{\"random\":{\"seed\":3}}},"
        "\"y\":{\"dtype\":\"f32\",\"shape\":[2000003]},\"z\":{\"dtype\":\"f32\",\"shape\":[2000003]},"
        "\"t\":{\"dtype\":\"f32\",\"shape\":[2000003],\"output\":true},\"u\":{\"dtype\":\"f32\",\"shape\":[2000003],"
        "\"output\":true}},\"nodes\":[{\"id\":\"a\",\"kernel\":\"scale\",\"args\":{\"a\":2,\"x\":\"x\",\"y\":\"y\"},"
        "\"on\":\"gpu0\"},"
        "{\"id\":\"b\",\"kernel\":\"scale\",\"args\":{\"a\":3,\"x\":\"x\",\"y\":\"z\"},\"on\":\"gpu1\"},"
        "{\"id\":\"d\",\"collective\":\"all_reduce\",\"op\":\"sum\",\"in\":[\"y\",\"z\"],\"out\":[\"t\",\"u\"]}]}",
        "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"f64\",\"shape\":[3000001],\"split\":3,\"output\":true},"
        "\"b\":{\"dtype\":\"f32\",\"shape\":[1000003],\"split\":2,\"output\":true},"
        "\"c\":{\"dtype\":\"bf16\",\"shape\":[70001],\"split\":2,\"output\":true},"
        "\"d\":{\"dtype\":\"f16\",\"shape\":[70001],\"output\":true},"
        "\"e\":{\"dtype\":\"i8\",\"shape\":[70001],\"split\":2,\"output\":true},"
        "\"f\":{\"dtype\":\"u64\",\"shape\":[33,31,17],\"tiles\":[2,3,2],\"output\":true},"
        "\"g\":{\"dtype\":\"f64\",\"shape\":[301,301],\"tiles\":[2,2],\"class\":\"state\",\"init\":{\"spd\":{"
        "\"seed\":3}},\"output\":true}},\"nodes\":["
        "{\"id\":\"a[i]\",\"for\":{\"i\":3},\"fill\":{\"to\":\"a[i]\",\"random\":{\"seed\":1}}},"
        "{\"id\":\"b[i]\",\"for\":{\"i\":2},\"fill\":{\"to\":\"b[i]\",\"random\":{\"low\":-7.3,\"high\":11}}},"
        "{\"id\":\"c[i]\",\"for\":{\"i\":2},\"fill\":{\"to\":\"c[i]\",\"random\":{\"low\":-1e-39,\"high\":1}}},"
        "{\"id\":\"d\",\"fill\":{\"to\":\"d\",\"random\":{\"low\":-2e-6,\"high\":3e-5}}},"
        "{\"id\":\"e[i]\",\"for\":{\"i\":2},\"fill\":{\"to\":\"e[i]\",\"random\":{\"low\":-128,\"high\":128}}},"
        "{\"id\":\"f\",\"fill\":{\"to\":\"f\",\"random\":{\"low\":0,\"high\":9007199254740992}}},"
        "{\"id\":\"g\",\"kernel\":\"transpose\",\"args\":{\"x\":\"g[0][1]\",\"y\":\"g[1][0]\"}}]}",
        "{\"gantry\":1,\"buffers\":{\"w\":{\"dtype\":\"f32\",\"shape\":[5,9],\"init\":{\"random\":{\"seed\":6,\"low\":-"
        "0.3,\"h"
        "igh\":0.4}}},\"a\":{\"dtype\":\"u8\",\"shape\":[2,301,333,3],\"tiles\":[1,2,2],\"init\":{\"random\":{\"seed\":"
        "5,\""
        "low\":0,\"high\":256}}},\"b\":{\"dtype\":\"u8\",\"shape\":[2,301,333,3],\"tiles\":[1,2,2]},\"c\":{\"dtype\":"
        "\"u8\","
        "\"shape\":[2,301,333,3],\"tiles\":[1,2,2]},\"d\":{\"dtype\":\"u8\",\"shape\":[2,301,333,3],\"tiles\":[1,2,2],"
        "\""
        "output\":true}},\"nodes\":[{\"for\":{\"i\":2},\"nodes\":[{\"id\":\"blur[i,j]\",\"for\":{\"j\":2},\"kernel\":"
        "\"gaussi"
        "an_blur\",\"args\":{\"sigma\":2.7,\"image\":\"a[0][i][j]~0,9,9\",\"out\":\"b[0][i][j]\"},\"on\":\"(i+j)%"
        "devices\""
        "}]},{\"for\":{\"i\":2},\"nodes\":[{\"id\":\"filter[i,j]\",\"for\":{\"j\":2},\"kernel\":\"filter2d\",\"args\":{"
        "\"weigh"
        "ts\":\"w\",\"image\":\"b[0][i][j]~0,2,4\",\"out\":\"c[0][i][j]\"},\"on\":\"j%devices\"}]},{\"for\":{\"i\":2},"
        "\"nodes"
        "\":[{\"id\":\"edges[i,j]\",\"for\":{\"j\":2},\"kernel\":\"sobel\",\"args\":{\"image\":\"c[0][i][j]~0,1,1\","
        "\"out\":\"d"
        "[0][i][j]\"},\"on\":\"i%devices\"}]}]}",
    };
    int here = count_gpus();
    gantry_machine *m = shared_machine(2, here < 2 ? 1 : 2);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        gantry_graph *g = NULL;
        char what[20];
        MUST(gantry_graph_parse(&g, texts[i], strlen(texts[i]), "text", NULL, NULL, MUST_ERR));
        snprintf(what, sizeof what, "text %zu", i);
        compare(g, m, 0, what);
        gantry_graph_free(g);
    }
    gantry_machine_free(m);
}
END_TEST

/* ---- flags ---- */

/* A product (of whole numbers, so that its bits are any library's), kernels, a copy, a fill of one value and one that
 * counts, by a flag of which the last two are made of. */
static const char flagged[] =
    "{\"gantry\":1,\"params\":{\"p\":4},\"buffers\":{\"flag\":{\"dtype\":\"%s\",\"shape\":[1],\"class\":\"input\"},"
    "\"made\":{\"dtype\":\"%s\",\"shape\":[1]},"
    "\"a\":{\"dtype\":\"f64\",\"shape\":[32,32],\"split\":\"p\",\"init\":{\"iota\":{\"step\":1}}},"
    "\"b\":{\"dtype\":\"f64\",\"shape\":[32,32],\"init\":2},"
    "\"c\":{\"dtype\":\"f64\",\"shape\":[32,32],\"split\":\"p\",\"init\":-1,\"output\":true},"
    "\"d\":{\"dtype\":\"f64\",\"shape\":[32,32],\"split\":\"p\",\"init\":-2,\"output\":true},"
    "\"e\":{\"dtype\":\"f64\",\"shape\":[32,32],\"split\":\"p\",\"init\":-3,\"output\":true},"
    "\"s\":{\"dtype\":\"f64\",\"shape\":[1],\"init\":7,\"output\":true}},\"nodes\":["
    "{\"id\":\"made\",\"kernel\":\"scale\",\"args\":{\"a\":1,\"x\":\"flag\",\"y\":\"made\"}},"
    "{\"for\":{\"i\":\"p\"},\"when\":{\"buffer\":\"flag\"},\"nodes\":["
    "{\"id\":\"gemm[i]\",\"kernel\":\"gemm\",\"args\":{\"a\":\"a[i]\",\"b\":\"b\",\"c\":\"c[i]\"}},"
    "{\"id\":\"copy[i]\",\"copy\":{\"from\":\"a[i]\",\"to\":\"d[i]\"}},"
    "{\"id\":\"sum[i]\",\"kernel\":\"reduce_sum\",\"args\":{\"x\":\"a[i]\",\"out\":\"s\"}}]},"
    "{\"when\":{\"buffer\":\"made\"},\"nodes\":[{\"id\":\"one\",\"fill\":{\"to\":\"e[1]\",\"value\":5}},"
    "{\"id\":\"many\",\"fill\":{\"to\":\"e[2]\",\"iota\":{\"start\":1}}},"
    "{\"id\":\"scale\",\"kernel\":\"scale\",\"args\":{\"a\":3,\"x\":\"a[0]\",\"y\":\"e[0]\"}}]}]}";

typedef struct flag_of {
    const char *dtype;
    uint64_t off, on; /* bits; of real numbers -0, and a NaN or a number that is not normal */
    size_t bytes;
} flag_of;
static const flag_of flag_of_dtype[] = {
    { "u8", 0, 128, 1 },
    { "f16", 0x8000, 1, 2 },
    { "bf16", 0x8000, 0x7FC0, 2 },
    { "i32", 0, 0x80000000, 4 },
    { "f32", 0x80000000, 0x7FC00000, 4 },
    { "f64", UINT64_C(1) << 63, 1, 8 },
    { "i64", 0, UINT64_C(1) << 40, 8 },
};
enum { FLAG_DTYPES = sizeof flag_of_dtype / sizeof *flag_of_dtype, FLAG_REPLAYS = 3 };

/* Each way after the other, with the array of the flag in its place: graphs that were made with one see the other. */
START_TEST(flags)
{
    static const char *const replays[FLAG_REPLAYS] = { "stream", "graph", "device" };
    static const bool on[] = { false, true, true, false, true, false };
    const flag_of *f = &flag_of_dtype[_i / FLAG_REPLAYS];
    const char *replay = replays[_i % FLAG_REPLAYS];
    int here = count_gpus();
    for (int gpus = 1; gpus <= (here < 2 ? 1 : 2); gpus++) {
        char text[sizeof flagged + 16], what[60];
        uint64_t flag = 0;
        gantry_graph *g = NULL;
        gantry_run *run = NULL;
        gantry_error why = { 0 };
        snprintf(text, sizeof text, flagged, f->dtype, f->dtype);
        snprintf(what, sizeof what, "flags of %s on %d, replay %s", f->dtype, gpus, replay);
        MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
        gantry_machine *m = shared_machine(2, gpus);
        gantry_schedule *s = make_schedule(g, m, replay, "round-robin");
        gantry_run *host = open_run(s, "host");
        ck_assert_msg(open_cuda(&run, s, &why), "%s: %s", what, why.text);
        MUST(gantry_run_bind(host, gantry_graph_find_buffer(g, "flag"), &flag, f->bytes, MUST_ERR));
        MUST(gantry_run_bind(run, gantry_graph_find_buffer(g, "flag"), &flag, f->bytes, MUST_ERR));
        for (size_t i = 0; i < sizeof on / sizeof *on; i++) {
            flag = on[i] ? f->on : f->off;
            run_once(host);
            run_once(run);
            compare_outputs(g, host, run, 0, what);
        }
        check_replay(run, replay, true, what);
        gantry_run_free(run);
        gantry_run_free(host);
        gantry_schedule_free(s);
        gantry_machine_free(m);
        gantry_graph_free(g);
        printf("held: %s\n", what);
    }
}
END_TEST

/* ---- libraries ---- */

static void compare_near(gantry_graph *g, const gantry_machine *m, const char *replay, const char *what)
{
    gantry_error why = { 0 };
    gantry_schedule *s = make_schedule(g, m, replay, "round-robin");
    gantry_run *host = open_run(s, "host"), *run = NULL;
    if (open_cuda(&run, s, &why)) {
        for (int start = 0; start < 3; start++) {
            run_once(host);
            run_once(run);
            expect_near(run, host, g, what);
        }
        check_replay(run, replay, true, what);
        gantry_run_free(run);
    } else {
        printf("skipped: %s: %s\n", what, why.text);
    }
    gantry_run_free(host);
    gantry_schedule_free(s);
}

/* gemm, potrf, trsm, syrk in all their forms, by cuBLAS and cuSOLVER. */
START_TEST(linear_algebra)
{
    char what[120];
    gantry_graph *g;
    int here = count_gpus();
    for (int i = 0; (g = linalg_case(i, what, sizeof what)); i += on_emulator() ? 5 : 1) {
        gantry_machine *m = shared_machine(1 + i % 2, here < 2 ? 1 : 1 + i % 2);
        compare_near(g, m, replay_at(_i), what);
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
}
END_TEST

/* Many small products by one call of cuBLAS. */
START_TEST(batches_of_products)
{
    char what[120];
    gantry_graph *g;
    int here = count_gpus();
    for (int i = 0; (g = batch_case(i, what, sizeof what)); i += on_emulator() ? 5 : 1) {
        gantry_machine *m = batching_machine(shared_machine(1 + i % 2, here < 2 ? 1 : 1 + i % 2));
        compare_near(g, m, replay_at(_i), what);
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
}
END_TEST

START_TEST(not_positive_definite)
{
    gantry_graph *g = NULL;
    gantry_run *run = NULL;
    gantry_error why = { 0 };
    gantry_machine *m = shared_machine(1, 1);
    MUST(gantry_graph_parse(&g, one_root, strlen(one_root), "text", NULL, NULL, MUST_ERR));
    gantry_schedule *s = make_schedule(g, m, replay_at(_i), NULL);
    gantry_run *host = open_run(s, "host");
    if (open_cuda(&run, s, &why)) {
        expect_pivots(run, host);
        gantry_run_free(run);
    } else {
        printf("skipped: not_positive_definite: %s\n", why.text);
    }
    gantry_run_free(host);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* ---- kernels that say no ---- */

static gantry_status fail_once(gantry_schedule *s, const char *backend, gantry_error *err)
{
    uint64_t ticket = 0;
    gantry_run *run = open_run(s, backend);
    gantry_status status = gantry_run_start(run, &ticket, err);
    status = status ? status : gantry_run_wait(run, ticket, err);
    gantry_run_free(run);
    return status;
}

/* A label that is no class, a column that is not there, a matrix that is not positive definite: the same line as from
 * the host, with the same number. */
START_TEST(refusals)
{
    static const struct {
        const char *what, *text, *word;
    } cases[] = {
        { "softmax_xent",
          "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[3,5],\"init\":\"iota\"},"
          "\"l\":{\"dtype\":\"i32\",\"shape\":[3],\"init\":7},\"s\":{\"dtype\":\"f32\",\"shape\":[1],"
          "\"init\":0,\"output\":true}},\"nodes\":[{\"id\":\"k\",\"kernel\":\"softmax_xent\",\"on\":\"gpu0\","
          "\"args\":{\"logits\":\"x\",\"labels\":\"l\",\"loss\":\"s\"}}]}",
          " left 8 " },
        { "spmv_csr",
          "{\"gantry\":1,\"buffers\":{\"r\":{\"dtype\":\"i32\",\"shape\":[9],\"init\":\"iota\"},"
          "\"c\":{\"dtype\":\"i32\",\"shape\":[8],\"init\":\"iota\"},"
          "\"v\":{\"dtype\":\"f64\",\"shape\":[8],\"init\":1},\"x\":{\"dtype\":\"f64\",\"shape\":[6],\"init\":1},"
          "\"y\":{\"dtype\":\"f64\",\"shape\":[8],\"output\":true}},\"nodes\":[{\"id\":\"k\",\"kernel\":\"spmv_csr\","
          "\"on\":\"gpu0\",\"args\":{\"row_ptr\":\"r\",\"col\":\"c\",\"val\":\"v\",\"x\":\"x\",\"y\":\"y\"}}]}",
          " left 7 " },
        { "potrf",
          "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"f64\",\"shape\":[40,40],\"init\":4,\"output\":true}},"
          "\"nodes\":[{\"id\":\"k\",\"kernel\":\"potrf\",\"on\":\"gpu0\",\"args\":{\"a\":\"a\"}}]}",
          " left 2 " },
    };
    gantry_error want = { 0 }, got = { 0 };
    gantry_graph *g = NULL;
    gantry_run *run = NULL;
    gantry_machine *m = shared_machine(1, 1);
    MUST(gantry_graph_parse(&g, cases[_i].text, strlen(cases[_i].text), "text", NULL, NULL, MUST_ERR));
    gantry_schedule *s = make_schedule(g, m, "stream", NULL);
    if (!open_cuda(&run, s, &got)) {
        printf("skipped: kernel %s: %s\n", cases[_i].what, got.text);
    } else {
        gantry_run_free(run);
        ck_assert_int_eq(fail_once(s, "host", &want), GANTRY_E_KERNEL);
        ck_assert_int_eq(fail_once(s, "cuda", &got), GANTRY_E_KERNEL);
        ck_assert_msg(strstr(got.text, cases[_i].word) != NULL, "%s", got.text);
        printf("as it should: %s\n", got.text);
    }
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* ---- functions of the program ---- */

/* y = x, by a copy on the stream. */
static gantry_status copy_on_stream(const gantry_launch *l)
{
    if (!l->stream) {
        memcpy(l->arg[1].data, l->arg[0].data, (size_t)(l->arg[0].rows * l->arg[0].row_bytes));
        return GANTRY_OK;
    }
    FIND(cuMemcpyDtoDAsync)
    CUdeviceptr to = (CUdeviceptr)(uintptr_t)l->arg[1].data, from = (CUdeviceptr)(uintptr_t)l->arg[0].data;
    size_t bytes = (size_t)(l->arg[0].rows * l->arg[0].row_bytes);
    return cuMemcpyDtoDAsync_(to, from, bytes, l->stream) == CUDA_SUCCESS ? GANTRY_OK : GANTRY_E_DEVICE;
}

/* The same, but it waits, which no capture allows. */
static gantry_status copy_and_wait(const gantry_launch *l)
{
    gantry_status status = copy_on_stream(l);
    if (l->stream) {
        FIND(cuStreamSynchronize)
        cuStreamSynchronize_(l->stream);
    }
    return status;
}

static const char fault_ptx[] = ".version 6.4\n.target sm_75\n.address_size 64\n.visible .entry fault()\n{\n"
                                ".reg .u64 %a; .reg .u32 %b; mov.u64 %a, 64; mov.u32 %b, 1;\n"
                                "st.global.u32 [%a], %b; ret;\n}\n";

/* A kernel that writes where nothing is. */
static gantry_status write_nowhere(const gantry_launch *l)
{
    if (!l->stream)
        return GANTRY_OK;
    FIND(cuModuleLoadData)
    FIND(cuModuleGetFunction)
    FIND(cuLaunchKernel)
    static CUmodule module; /* of this process, which ends after the test */
    CUfunction function;
    if ((!module && cuModuleLoadData_(&module, fault_ptx) != CUDA_SUCCESS) ||
        cuModuleGetFunction_(&function, module, "fault") != CUDA_SUCCESS ||
        cuLaunchKernel_(function, 1, 1, 1, 1, 1, 1, 0, l->stream, NULL, NULL) != CUDA_SUCCESS)
        return GANTRY_E_DEVICE;
    return GANTRY_OK;
}

typedef struct own {
    gantry_graph *g;
    gantry_buffer x, y;
    gantry_schedule *s;
} own;

static own make_own(gantry_kernel_fn function, const char *replay, int64_t n)
{
    own o = { .g = gantry_graph_new("own") };
    o.x = gantry_graph_buffer(o.g, "x", GANTRY_F32, 1, &n);
    o.y = gantry_graph_buffer(o.g, "y", GANTRY_F32, 1, &n);
    gantry_buffer_set_class(o.g, o.x, GANTRY_INPUT);
    gantry_buffer_output(o.g, o.y);
    gantry_node node = gantry_graph_launch(o.g, "own", function, NULL);
    gantry_node_read(o.g, node, gantry_all(o.x));
    gantry_node_write(o.g, node, gantry_all(o.y));
    gantry_node_on(o.g, node, "gpu0");
    gantry_machine *m = shared_machine(1, 1);
    o.s = make_schedule(o.g, m, replay, NULL);
    gantry_machine_free(m);
    return o;
}

static void free_own(own *o)
{
    gantry_schedule_free(o->s);
    gantry_graph_free(o->g);
}

/* Bound memory, large and small, at odd addresses; bound again between starts. */
static void check_copies(own *o, gantry_run *run, int64_t n)
{
    float *x = malloc(((size_t)n + 8) * sizeof *x);
    for (int start = 0; start < 4; start++) {
        const void *y = NULL;
        uint64_t bytes = 0, ticket = 0;
        float *from = x + 1 + start % 3;
        for (int64_t i = 0; i < n; i++)
            from[i] = (float)(i * 3 + start);
        MUST(gantry_run_bind(run, o->x, from, (uint64_t)n * sizeof *x, MUST_ERR));
        MUST(gantry_run_start(run, &ticket, MUST_ERR));
        MUST(gantry_run_wait(run, ticket, MUST_ERR));
        MUST(gantry_run_output(run, o->y, &y, &bytes, MUST_ERR));
        ck_assert_mem_eq(y, from, (size_t)n * sizeof *x);
    }
    free(x);
}

START_TEST(bound_memory_and_own_functions)
{
    static const int64_t sizes[] = { 10, 1000000 };
    for (size_t k = 0; k < 4; k++) {
        own o = make_own(copy_on_stream, replay_at(k % 2), sizes[k / 2]);
        gantry_run *run = open_run(o.s, "cuda");
        check_copies(&o, run, sizes[k / 2]);
        ck_assert_msg(is_replay(run, replay_at(k % 2)), "%s", replay_of(run));
        gantry_run_free(run);
        free_own(&o);
    }
}
END_TEST

START_TEST(capture_refused)
{
    own o = make_own(copy_and_wait, "graph", 1000);
    gantry_run *run = open_run(o.s, "cuda");
    check_copies(&o, run, 1000);
    ck_assert_str_eq(replay_of(run), "stream (capture refused)");
    gantry_run_free(run);
    free_own(&o);
}
END_TEST

START_TEST(kernel_faults)
{
    gantry_error err = { 0 };
    uint64_t ticket = 0;
    float x[16] = { 0 };
    if (on_fake()) {
        printf("skipped: kernel_faults: the fake driver runs no PTX\n");
        return;
    }
    own o = make_own(write_nowhere, replay_at(_i), 16);
    gantry_run *run = open_run(o.s, "cuda");
    MUST(gantry_run_bind(run, o.x, x, sizeof x, MUST_ERR));
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    ck_assert_int_eq(gantry_run_wait(run, ticket, &err), GANTRY_E_DEVICE);
    ck_assert_msg(err.native == CUDA_ERROR_ILLEGAL_ADDRESS, "%d: %s", err.native, err.text);
    printf("as it should: %s\n", err.text);
    ck_assert_int_eq(gantry_run_start(run, &ticket, &err), GANTRY_E_DEVICE);
    gantry_run_free(run);
    free_own(&o);
}
END_TEST

/* A machine that claims more memory than any GPU has. */
START_TEST(too_little_memory)
{
    static const char machine[] = "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"9TiB\"},{\"id\":"
                                  "\"gpu0\",\"capacity\":\"9TiB\"}],"
                                  "\"devices\":[{\"id\":\"gpu0\",\"type\":\"gpu\",\"memory\":\"gpu0\"}],"
                                  "\"routes\":[{\"from\":\"*\",\"to\":\"*\",\"bandwidth_gbs\":10}]}";
    const int64_t n = INT64_C(1) << 40;
    gantry_machine *m = NULL;
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "cuda";
    gantry_graph *g = gantry_graph_new("large");
    gantry_buffer t = gantry_graph_buffer(g, "t", GANTRY_F32, 1, &n);
    gantry_node node = gantry_graph_launch(g, "write", copy_on_stream, NULL);
    gantry_node_write(g, node, gantry_all(t));
    MUST(gantry_machine_parse(&m, machine, strlen(machine), "text", MUST_ERR));
    gantry_schedule *s = make_schedule(g, m, "stream", NULL);
    ck_assert_int_eq(gantry_run_new(&run, s, &options, &err), GANTRY_E_CAPACITY);
    ck_assert_msg(strstr(err.text, "device \"gpu0\" needs 4.0 TiB for its slab and has "), "%s", err.text);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

static int count_graphs(void)
{
    int count = 0;
    while (graph_cases[count].file)
        count++;
    return count;
}

/* --has-gpu: asks no more than that. */
int main(int count, char **args)
{
    if (!has_gpu()) {
        printf("skipped: no GPU, see \"gantry machine\"\n");
        return 77;
    }
    if (count > 1 && strcmp(args[1], "--has-gpu") == 0)
        return EXIT_SUCCESS;
    Suite *suite = suite_create("gpu");
    TCase *tests = tcase_create("all");
    const char *only = getenv("GANTRY_GPU_TEST"); /* one of them, for compute-sanitizer */
    tcase_set_timeout(tests, 120);
#define ADD(name, count)                                                                                               \
    if (!only || strcmp(only, #name) == 0)                                                                             \
    tcase_add_loop_test(tests, name, 0, count)
    ADD(graphs, count_graphs());
    ADD(linear_algebra, 2);
    ADD(batches_of_products, 2);
    ADD(not_positive_definite, 2);
    ADD(refusals, 3);
    ADD(data, 1);
    ADD(flags, on_emulator() ? FLAG_REPLAYS : FLAG_DTYPES * FLAG_REPLAYS);
    ADD(bound_memory_and_own_functions, 1);
    ADD(capture_refused, 1);
    ADD(kernel_faults, 2);
    ADD(too_little_memory, 1);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
