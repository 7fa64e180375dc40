/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA code of users on GPUs of the fake driver: sources are compiled by the NVRTC of this computer and loaded; what
 * runs in their place are C functions of the same parameters, written here, as the fake executes no GPU code. Results
 * are held against the C file that the graph names for the host. Without NVRTC only PTX and images are tested. */
#include "base/thread.h"
#include "control.h"
#include "folder.h"
#include "graph/graph.h"
#include "suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void check_alive(void)
{
    char text[160];
    ck_assert_msg(fakeCudaAlive(text, sizeof text) == 0, "left behind: %s", text);
}

/* ---- a kernel, three times ---- */

static const char mix_cu[] =
    "#include \"mix.h\"\n"
    "extern \"C\" __global__ void mix(float weight, const float *x, float *y, long long n, short_type bias)\n"
    "{\n"
    "    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n"
    "    if (i < n)\n"
    "        y[i] = weight * x[i] + y[i] + bias;\n"
    "}\n";
static const char mix_h[] = "typedef unsigned char short_type;\n";
static const char mix_c[] = "#include <gantry/kernel.h>\n"
                            "gantry_status mix(const gantry_launch *l);\n"
                            "gantry_status mix(const gantry_launch *l)\n"
                            "{\n"
                            "    const float *x = l->arg[1].data;\n"
                            "    float weight = (float)l->arg[0].number, *y = l->arg[2].data;\n"
                            "    for (int64_t i = 0; i < l->arg[3].integer; i++)\n"
                            "        y[i] = weight * x[i] + y[i] + (float)l->arg[4].integer;\n"
                            "    return GANTRY_OK;\n"
                            "}\n";
static const char mix_ptx[] =
    "// by hand\n.version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry mix(\n.param .f32 a, .param .u64 b, .param .u64 c, .param .u64 d, .param "
    ".u8 e\n)\n{\nret;\n}\n";

static void mix(const fakeCudaLaunch *l, void **p)
{
    (void)l;
    float weight = *(float *)p[0], *y = *(float **)p[2];
    const float *x = *(const float **)p[1];
    for (int64_t i = 0; i < *(int64_t *)p[3]; i++)
        y[i] = weight * x[i] + y[i] + (float)*(uint8_t *)p[4];
}

static const size_t mix_sizes[] = { 4, 8, 8, 8, 1 };

/* ---- graphs that use it ---- */

typedef struct words {
    const char *cuda, *more, *launch, *nodes; /* NULL: the usual */
} words;

static const char usual_nodes[] =
    "{\"id\":\"mix[i]\",\"for\":{\"i\":3},\"kernel\":\"mix\",\"args\":{\"weight\":2.5,\"x\":\"x[i]\",\"y\":\"y[i]\"}},"
    "{\"id\":\"again[i]\",\"for\":{\"i\":3},\"kernel\":\"mix\",\"args\":{\"weight\":{\"dynamic\":0.3},\"x\":\"x[i]\","
    "\"y\":\"y[i]\",\"bias\":7}}";

static gantry_graph *graph_of(words w)
{
    char text[4096];
    gantry_graph *g = NULL;
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    options.allow_code = 1;
    int length = snprintf(
        text, sizeof text,
        "{\"gantry\":1,\"kernels\":{\"mix\":{\"cuda\":\"%s\",%s\"args\":[{\"name\":\"weight\",\"type\":\"f32\"},"
        "{\"name\":\"x\",\"access\":\"read\",\"dtype\":\"f32\",\"list\":true},"
        "{\"name\":\"y\",\"access\":\"readwrite\",\"dtype\":\"f32\"},"
        "{\"name\":\"n\",\"type\":\"i64\",\"default\":\"x.size\"},{\"name\":\"bias\",\"type\":\"u8\",\"default\":2}]%s}"
        "},"
        "\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[1000],\"split\":3,\"init\":{\"random\":{\"seed\":1}}},"
        "\"y\":{\"dtype\":\"f32\",\"shape\":[1000],\"split\":3,\"init\":\"iota\",\"output\":true},"
        "\"t\":{\"dtype\":\"f32\",\"shape\":[4,4],\"tiles\":[2,2],\"init\":0},"
        "\"e\":{\"dtype\":\"f32\",\"shape\":[2],\"split\":3,\"init\":0,\"output\":true}},\"nodes\":[%s]}",
        w.cuda ? w.cuda : "mix.cu", w.more ? w.more : "\"host\":\"mix.c\",",
        w.launch ? w.launch : ",\"launch\":{\"grid\":[\"ceil_div(n, 128)\"],\"block\":[128]}",
        w.nodes ? w.nodes : usual_nodes);
    ck_assert_int_lt(length, (int)sizeof text);
    MUST(gantry_graph_parse(&g, text, (size_t)length, "user.json", folder, &options, MUST_ERR));
    return g;
}

static void make_files(void)
{
    folder_make();
    folder_write("mix.cu", mix_cu);
    folder_write("mix.c", mix_c);
    folder_write("mix.h", mix_h);
    folder_write("mix.ptx", mix_ptx);
    fakeCudaDevices(2, "all", 0);
    fakeCudaFunction("mix", mix, mix_sizes, 5);
}

typedef struct made {
    gantry_graph *g;
    gantry_machine *m;
    gantry_schedule *s;
} made;

static made make(gantry_graph *g, int gpus, const char *replay)
{
    made m = { .g = g, .m = gpu_machine(gpus, false) };
    m.s = make_schedule(m.g, m.m, replay, "round-robin");
    return m;
}

static void unmake(made *m)
{
    gantry_schedule_free(m->s);
    gantry_machine_free(m->m);
    gantry_graph_free(m->g);
    check_alive();
}

static gantry_status try_run(gantry_run **run, const made *m, const char *backend, gantry_error *err)
{
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = backend;
    options.allow_code = 1;
    return gantry_run_new(run, m->s, &options, err);
}

static gantry_run *open_both(const made *m, gantry_run **host)
{
    gantry_run *run = NULL;
    MUST(try_run(host, m, "host", MUST_ERR));
    MUST(try_run(&run, m, "cuda", MUST_ERR));
    return run;
}

static void compare_starts(const made *m, gantry_run *host, gantry_run *run)
{
    for (int start = 0; start < 3; start++) {
        results want = run_results(host, m->g), got = run_results(run, m->g);
        ck_assert(same(&got, &want));
        gantry_node again = gantry_graph_find_node(m->g, "again[1]");
        if (again.id != GANTRY_NONE) {
            MUST(gantry_run_set_scalar(host, again, "weight", 3.5 + start, MUST_ERR));
            MUST(gantry_run_set_scalar(run, again, "weight", 3.5 + start, MUST_ERR));
        }
    }
}

/* _i: devices, replay */
START_TEST(the_host_s_bits)
{
    gantry_run *host = NULL;
    make_files();
    made m = make(graph_of((words){ 0 }), 1 + _i % 2, _i / 2 ? "graph" : "stream");
    int before = fakeCudaCalls("kernel");
    gantry_run *run = open_both(&m, &host);
    compare_starts(&m, host, run);
    ck_assert_int_eq(fakeCudaCalls("kernel") - before, 3 * 6);
    ck_assert_str_eq(replay_of(run), _i / 2 ? "graph" : "stream");
    gantry_run_free(host);
    gantry_run_free(run);
    unmake(&m);
    folder_remove();
}
END_TEST

/* ---- formulas, whose code is printed and compiled by NVRTC ---- */

/* "y = sqrt(x) * s + k": y, x, s, k, the count of elements, then how far apart those of x and of k are. */
static void formula(const fakeCudaLaunch *l, void **p)
{
    (void)l;
    float *y = *(float **)p[0], s = (float)*(double *)p[2];
    const float *x = *(const float **)p[1], *k = *(const float **)p[3];
    for (int64_t i = 0; i < *(int64_t *)p[4]; i++)
        y[i] = sqrtf(x[i * *(int64_t *)p[5]]) * s + k[i * *(int64_t *)p[6]];
}

static gantry_graph *formula_graph(void)
{
    const int64_t n = 3001, one = 1;
    gantry_graph *g = gantry_graph_new("formula");
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, &n),
                  y = gantry_graph_buffer(g, "y", GANTRY_F32, 1, &n),
                  k = gantry_graph_buffer(g, "k", GANTRY_F32, 1, &one);
    gantry_buffer_init_uniform(g, x, 4, 0, 1);
    gantry_buffer_init_value(g, k, 0.25);
    gantry_buffer_output(g, y);
    gantry_buffer_split(g, x, 3);
    gantry_buffer_split(g, y, 3);
    for (int i = 0; i < 3; i++) {
        gantry_node node = gantry_graph_map(g, i ? NULL : "again[1]", "y = sqrt(x) * weight + k");
        gantry_node_arg(g, node, "x", gantry_part(x, i));
        gantry_node_arg(g, node, "y", gantry_part(y, i));
        gantry_node_arg(g, node, "k", gantry_all(k));
        gantry_node_scalar_dynamic(g, node, "weight", 0.5 + i);
    }
    MUST(gantry_graph_check(g, MUST_ERR));
    return g;
}

/* The name of the kernel that the graph has made: what the fake driver runs in place of the code has it, too. */
static const char *formula_name(const gantry_graph *g)
{
    return g->kernels.at[g->nodes.at[0].kernel].manifest->name;
}

/* _i: devices, replay */
START_TEST(formulas)
{
    static const size_t sizes[] = { 8, 8, 8, 8, 8, 8, 8 };
    gantry_run *host = NULL;
    make_files();
    gantry_graph *g = formula_graph();
    fakeCudaFunction(formula_name(g), formula, sizes, 7);
    made m = make(g, 1 + _i % 2, _i / 2 ? "graph" : "stream");
    int before = fakeCudaCalls("kernel");
    gantry_run *run = open_both(&m, &host);
    compare_starts(&m, host, run);
    ck_assert_int_eq(fakeCudaCalls("kernel") - before, 3 * 3);
    gantry_run_free(host);
    gantry_run_free(run);
    unmake(&m);
    folder_remove();
}
END_TEST

static void add_map(gantry_graph *g, gantry_buffer x, const char *output, const char *text)
{
    const int64_t n = 100;
    gantry_buffer y = gantry_graph_buffer(g, output, GANTRY_F32, 1, &n);
    gantry_node node = gantry_graph_map(g, output, text);
    gantry_node_arg(g, node, "x", gantry_all(x));
    gantry_node_arg(g, node, "y", gantry_all(y));
    gantry_buffer_output(g, y);
}

/* The driver has no function in place of the first one's, so that it cannot be opened. All have been compiled by then.
 */
START_TEST(formulas_are_compiled_before_any_is_opened)
{
    const int64_t n = 100;
    char path[256];
    gantry_error err = { 0 };
    gantry_run *run = NULL;
    make_files();
    gantry_graph *g = gantry_graph_new("three");
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, &n);
    gantry_buffer_init_value(g, x, 1);
    add_map(g, x, "a", "y = x + 1");
    add_map(g, x, "b", "y = abs(x)");
    add_map(g, x, "c", "y = sqrt(x)");
    MUST(gantry_graph_check(g, MUST_ERR));
    made m = make(g, 1, "stream");
    ck_assert_int_eq(try_run(&run, &m, "cuda", &err), GANTRY_E_DEVICE);
    ck_assert_msg(strstr(err.text, m.g->kernels.at[m.g->nodes.at[0].kernel].manifest->name), "%s", err.text);
    ck_assert_int_eq(folder_cached(".cubin", path, sizeof path), gy_thread_processors() > 1 ? 3 : 1);
    unmake(&m);
    folder_remove();
}
END_TEST

START_TEST(formulas_without_nvrtc)
{
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    make_files();
    made m = make(formula_graph(), 1, "stream");
    setenv("GANTRY_CUDA_LIBRARIES", "/nonexistent", 1);
    if (have_nvrtc()) {
        printf("skipped: libnvrtc is where the loader looks\n");
    } else {
        ck_assert_int_eq(try_run(&run, &m, "cuda", &err), GANTRY_E_DEVICE);
        ck_assert_msg(strstr(err.text, "the formulas of node \"again[1]\" have to be compiled by NVRTC for GPUs: ") &&
                          strstr(err.text, "; or place the node on the CPU with \"on\""),
                      "%s", err.text);
        MUST(try_run(&run, &m, "auto", MUST_ERR));
        gantry_run_free(run);
    }
    unmake(&m);
    folder_remove();
}
END_TEST

/* ---- the graph of tests/gpu/usercode ---- */

static void turn(const fakeCudaLaunch *l, void **p)
{
    (void)l;
    const int32_t *x = *(const int32_t **)p[0];
    int32_t *y = *(int32_t **)p[1], h = *(int32_t *)p[2], w = *(int32_t *)p[3];
    for (int32_t k = 0; k < h * w; k++)
        y[k] = x[k % h * w + k / h];
}

static void reverse(const fakeCudaLaunch *l, void **p)
{
    (void)l;
    double *x = *(double **)p[0], *scratch = *(double **)p[2];
    int64_t n = *(int64_t *)p[1];
    memcpy(scratch, x, (size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = scratch[n - 1 - i];
}

static void smooth(const fakeCudaLaunch *l, void **p)
{
    (void)l;
    const float *x = *(const float **)p[0];
    int64_t n = *(int64_t *)p[2], rows = *(int64_t *)p[3], before = *(int32_t *)p[4];
    for (int64_t i = 0; i < n; i++) {
        float left = i + before > 0 ? x[i + before - 1] : 0, right = i + before + 1 < rows ? x[i + before + 1] : 0;
        (*(float **)p[1])[i] = left + x[i + before] + right;
    }
}

static void clip(const fakeCudaLaunch *l, void **p)
{
    (void)l;
    for (uint32_t i = 0; i < *(uint32_t *)p[3]; i++)
        (*(float **)p[1])[i] = fminf((*(const float **)p[0])[i], *(float *)p[2]);
}

/* _i: devices, replay */
START_TEST(graph_file)
{
    static const size_t turn_sizes[] = { 8, 8, 4, 4 }, reverse_sizes[] = { 8, 8, 8 }, clip_sizes[] = { 8, 8, 4, 4 },
                        smooth_sizes[] = { 8, 8, 8, 8, 4 };
    gantry_graph *g = NULL;
    gantry_run *host = NULL;
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    options.allow_code = 1;
    make_files();
    fakeCudaFunction("turn", turn, turn_sizes, 4);
    fakeCudaFunction("reverse", reverse, reverse_sizes, 3);
    fakeCudaFunction("clip", clip, clip_sizes, 4);
    fakeCudaFunction("smooth", smooth, smooth_sizes, 5);
    MUST(gantry_graph_load(&g, GANTRY_SOURCE_DIR "/tests/gpu/usercode/own.json", &options, MUST_ERR));
    made m = make(g, 1 + _i % 2, _i / 2 ? "graph" : "stream");
    int before = fakeCudaCalls("kernel");
    gantry_run *run = open_both(&m, &host);
    compare_starts(&m, host, run);
    ck_assert_int_eq(fakeCudaCalls("kernel") - before, 3 * (5 + 5 + 5 + 1 + 1));
    gantry_run_free(host);
    gantry_run_free(run);
    unmake(&m);
    folder_remove();
}
END_TEST

START_TEST(compiled_once_for_all_devices)
{
    char path[256];
    struct stat first, second;
    gantry_run *run = NULL;
    make_files();
    made m = make(graph_of((words){ 0 }), 2, "stream");
    MUST(try_run(&run, &m, "cuda", MUST_ERR));
    gantry_run_free(run);
    ck_assert_int_eq(fakeCudaCalls("cuModuleLoadData"), 2); /* a module on each */
    ck_assert_int_eq(folder_cached(".cubin", path, sizeof path), 1);
    ck_assert_int_eq(stat(path, &first), 0);
    MUST(try_run(&run, &m, "cuda", MUST_ERR));
    gantry_run_free(run);
    ck_assert_int_eq(stat(path, &second), 0);
    ck_assert(first.st_ino == second.st_ino && first.st_mtim.tv_nsec == second.st_mtim.tv_nsec);
    folder_write("mix.h", "typedef unsigned char short_type; // changed\n");
    MUST(try_run(&run, &m, "cuda", MUST_ERR));
    gantry_run_free(run);
    ck_assert_int_eq(folder_cached(".cubin", path, sizeof path), 2);
    unmake(&m);
    folder_remove();
}
END_TEST

/* A graph can name PTX, and a cubin that NVRTC made before. */
START_TEST(cubins_and_ptx)
{
    static const char *const files[] = { "mix.ptx", "mix.cubin" };
    char path[256], to[128];
    gantry_run *run = NULL, *host = NULL;
    make_files();
    if (_i) {
        made m = make(graph_of((words){ 0 }), 1, "stream");
        MUST(try_run(&run, &m, "cuda", MUST_ERR));
        gantry_run_free(run);
        unmake(&m);
        ck_assert_int_eq(folder_cached(".cubin", path, sizeof path), 1);
        snprintf(to, sizeof to, "%s/mix.cubin", folder);
        ck_assert_int_eq(rename(path, to), 0);
    }
    setenv("GANTRY_CUDA_LIBRARIES", "/nonexistent", 1); /* no compiler is needed */
    made m = make(graph_of((words){ .cuda = files[_i] }), 2, "stream");
    run = open_both(&m, &host);
    compare_starts(&m, host, run);
    gantry_run_free(host);
    gantry_run_free(run);
    unmake(&m);
    ck_assert_int_eq(folder_cached(".cubin", path, sizeof path), 0);
    folder_remove();
}
END_TEST

/* ---- scratch, types of scalars, nothing to do ---- */

static const char twist_ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n.entry twist()\n{\n}\n";
static int twisted;

/* (x, y, i8, f16, bf16, f64, u32, it, scratch) */
static void twist(const fakeCudaLaunch *l, void **p)
{
    (void)l;
    float *scratch = *(float **)p[8];
    ck_assert_int_eq(*(int8_t *)p[2], -5);
    ck_assert_int_eq(*(uint16_t *)p[3], 0x3E00); /* 1.5 */
    ck_assert_int_eq(*(uint16_t *)p[4], 0xC020); /* -2.5 */
    ck_assert_double_eq(*(double *)p[5], 0.1);
    ck_assert_uint_eq(*(uint32_t *)p[6], 4294967295u);
    ck_assert_uint_eq((uintptr_t)scratch % 256, 0);
    memcpy(scratch, *(const void **)p[0], 12 * sizeof(float)); /* all that is asked for, on the device */
    for (int i = 0; i < 12; i++)
        (*(float **)p[1])[i] = scratch[11 - i] + (float)*(int32_t *)p[7];
    twisted++;
}

static const char twist_json[] =
    "{\"gantry\":1,\"kernels\":{\"twist\":{\"cuda\":\"twist.ptx\",\"args\":[{\"name\":\"x\",\"access\":\"read\"},"
    "{\"name\":\"y\",\"access\":\"write\"},{\"name\":\"a\",\"type\":\"i8\"},{\"name\":\"b\",\"type\":\"f16\"},"
    "{\"name\":\"c\",\"type\":\"bf16\"},{\"name\":\"d\",\"type\":\"f64\"},{\"name\":\"e\",\"type\":\"u32\"},"
    "{\"name\":\"f\",\"type\":\"i32\"}],\"launch\":{\"grid\":[\"f\",1,1],\"block\":[4,8,2]},"
    "\"scratch\":\"x.bytes\"}},"
    "\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[3,4],\"init\":\"iota\"},"
    "\"y\":{\"dtype\":\"f32\",\"shape\":[3,4],\"init\":0,\"output\":true}},"
    "\"nodes\":[{\"id\":\"clear\",\"fill\":{\"to\":\"y\",\"value\":-1}},"
    "{\"repeat\":3,\"nodes\":[{\"id\":\"t\",\"kernel\":\"twist\",\"args\":{\"x\":\"x\",\"y\":\"y\",\"a\":-5,\"b\":1.5,"
    "\"c\":-2.5,\"d\":0.1,\"e\":4294967295,\"f\":\"it\"}}]}]}";

START_TEST(scratch_and_types)
{
    static const size_t sizes[] = { 8, 8, 1, 2, 2, 8, 4, 4, 8 };
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    gantry_graph *g = NULL;
    gantry_run *run = NULL;
    uint64_t ticket, bytes;
    const void *y = NULL;
    folder_make();
    folder_write("twist.ptx", twist_ptx);
    fakeCudaDevices(1, "all", 0);
    fakeCudaFunction("twist", twist, sizes, 9);
    options.allow_code = 1;
    MUST(gantry_graph_parse(&g, twist_json, strlen(twist_json), "twist.json", folder, &options, MUST_ERR));
    made m = make(g, 1, "stream");
    MUST(try_run(&run, &m, "cuda", MUST_ERR));
    MUST(gantry_run_start(run, &ticket, MUST_ERR));
    MUST(gantry_run_wait(run, ticket, MUST_ERR));
    MUST(gantry_run_output(run, gantry_graph_find_buffer(g, "y"), &y, &bytes, MUST_ERR));
    for (int i = 0; i < 12; i++)
        ck_assert_float_eq(((const float *)y)[i], (float)(11 - i + 2));
    ck_assert_int_eq(twisted, 2); /* the grid of iteration 0 is empty */
    gantry_run_free(run);
    unmake(&m);
    folder_remove();
}
END_TEST

/* Parts without rows: no blocks, nothing is launched. */
START_TEST(empty_parts)
{
    gantry_run *run = NULL, *host = NULL;
    make_files();
    made m =
        make(graph_of((words){ .cuda = "mix.ptx",
                               .nodes = "{\"id\":\"m[i]\",\"for\":{\"i\":3},\"kernel\":\"mix\",\"args\":{\"weight\":"
                                        "1,\"x\":\"e[i]\",\"y\":\"y[0]\"}}" }),
             1, "stream");
    int before = fakeCudaCalls("cuLaunchKernel");
    run = open_both(&m, &host);
    compare_starts(&m, host, run);
    ck_assert_int_eq(fakeCudaCalls("cuLaunchKernel") - before, 3 * 2);
    gantry_run_free(host);
    gantry_run_free(run);
    unmake(&m);
    folder_remove();
}
END_TEST

/* ---- what is refused ---- */

static void expect_refused(words w, gantry_status status, const char *within)
{
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    made m = make(graph_of(w), 1, "stream");
    ck_assert_int_eq(try_run(&run, &m, "cuda", &err), status);
    ck_assert_msg(strstr(err.text, within) != NULL, "%s\ndoes not contain\n%s", err.text, within);
    ck_assert(!strchr(err.text, '\n') && (status == GANTRY_E_UNSUPPORTED || strncmp(err.where, "/nodes/", 7) == 0));
    unmake(&m);
}

START_TEST(sources_that_do_not_do)
{
    make_files();
    folder_write("broken.cu", "extern \"C\" __global__ void mix(int *p)\n{\n    p[0] = 1 +;\n}\n");
    folder_write("plain.cu", "__global__ void mix(int *p) { *p = 1; }\n");
    folder_write("other.cu", "extern \"C\" __global__ void blur(int *p) { *p = 1; }\n");
    folder_write("none.cu", "__device__ int x;\n");
    expect_refused((words){ .cuda = "broken.cu" }, GANTRY_E_GRAPH, "broken.cu(3): error: expected an expression");
    expect_refused((words){ .cuda = "plain.cu" }, GANTRY_E_GRAPH,
                   "/plain.cu has no kernel \"mix\": it has \"_Z3mixPi\", as C++ calls it: declare it extern \"C\" "
                   "__global__ void mix(...)");
    expect_refused((words){ .cuda = "other.cu" }, GANTRY_E_GRAPH,
                   "/other.cu has no kernel \"mix\": it has \"blur\"; name one with \"entry\"");
    expect_refused((words){ .cuda = "none.cu" }, GANTRY_E_GRAPH, "has no kernel \"mix\": it has none");
    fakeCudaFail("cuModuleLoadData:1:222"); /* CUDA_ERROR_UNSUPPORTED_PTX_VERSION */
    expect_refused((words){ 0 }, GANTRY_E_DEVICE, "/mix.cu, compiled by NVRTC ");
    expect_refused((words){ .more = "\"entry\":\"mx\"," }, GANTRY_E_GRAPH, "has no kernel \"mx\": it has \"mix\"");
    fakeCudaFail("cuModuleGetFunction:1:500"); /* CUDA_ERROR_NOT_FOUND */
    expect_refused((words){ 0 }, GANTRY_E_DEVICE, "the driver does not find kernel \"mix\" in ");
    folder_remove();
}
END_TEST

START_TEST(code_that_the_driver_refuses)
{
    make_files();
    folder_write("bad.ptx", "this is no PTX\n");
    expect_refused((words){ .cuda = "bad.ptx" }, GANTRY_E_DEVICE, "/bad.ptx: ");
    expect_refused((words){ .cuda = "bad.ptx" }, GANTRY_E_DEVICE, "the fake cannot | read this image");
    fakeCudaFail("cuModuleGetFunction:1:2");
    expect_refused((words){ .cuda = "mix.ptx" }, GANTRY_E_DEVICE, "finding the function: CUDA_ERROR_OUT_OF_MEMORY");
    fakeCudaFail("cuFuncGetAttribute:1:2");
    expect_refused((words){ .cuda = "mix.ptx" }, GANTRY_E_DEVICE, "asking what the function can do: ");
    folder_remove();
}
END_TEST

static void expect_failed(gantry_run *run, const char *within)
{
    gantry_error err = { 0 };
    uint64_t ticket;
    gantry_status status = gantry_run_start(run, &ticket, &err);
    status = status ? status : gantry_run_wait(run, ticket, &err);
    fakeCudaFail(NULL);
    ck_assert_int_eq(status, GANTRY_E_KERNEL);
    ck_assert_msg(strstr(err.text, within) != NULL, "%s\ndoes not contain\n%s", err.text, within);
    ck_assert(!strchr(err.text, '\n') && strncmp(err.where, "/nodes/", 7) == 0);
}

/* The driver's words are told, and what it was asked for. */
START_TEST(a_launch_that_the_driver_refuses)
{
    gantry_run *run = NULL;
    make_files();
    made m = make(graph_of((words){ .cuda = "mix.ptx" }), 1, "stream");
    MUST(try_run(&run, &m, "cuda", MUST_ERR));
    fakeCudaFail("cuLaunchKernel:2:701");
    expect_failed(run, "node \"mix[1]\" failed on device \"gpu0\": launching a grid of 3 x 1 x 1 blocks of 128 x 1 x 1 "
                       "threads with 0 bytes of shared memory: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701): ");
    gantry_run_free(run);
    unmake(&m);
    folder_remove();
}
END_TEST

/* Extents are calculated for each start, and scalars may have changed. */
START_TEST(a_scalar_that_spoils_the_grid)
{
    static const char nodes[] = "{\"id\":\"m\",\"kernel\":\"mix\",\"args\":{\"weight\":1,\"x\":\"x[0]\",\"y\":"
                                "\"y[0]\",\"bias\":{\"dynamic\":2}}}";
    gantry_run *run = NULL;
    make_files();
    made m = make(graph_of((words){ .cuda = "mix.ptx",
                                    .nodes = nodes,
                                    .launch = ",\"launch\":{\"grid\":[\"200 - bias\"],\"block\":[128]}" }),
                  1, "stream");
    MUST(try_run(&run, &m, "cuda", MUST_ERR));
    MUST(gantry_run_set_scalar(run, gantry_graph_find_node(m.g, "m"), "bias", 203, MUST_ERR));
    expect_failed(run, "node \"m\" failed on device \"gpu0\": grid[0] of kernel \"mix\" is -3; 0 to 2147483647 are "
                       "allowed");
    gantry_run_free(run);
    unmake(&m);
    folder_remove();
}
END_TEST

/* Every call of the driver that opening a kernel makes, failing in turn: an error, and nothing is left behind. */
START_TEST(calls_that_fail)
{
    static const char *const names[] = { "cuModuleLoadData", "cuModuleGetFunction", "cuFuncGetAttribute",
                                         "cuDeviceGetAttribute" };
    make_files();
    fakeCudaDevices(2, "all", 0);
    made m = make(graph_of((words){ .cuda = "mix.ptx" }), 2, "stream");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int count = 1;
        for (bool failed = true; failed; count++) {
            char spec[64];
            gantry_run *run = NULL;
            gantry_error err = { 0 };
            snprintf(spec, sizeof spec, "%s:%d:2", names[i], count);
            fakeCudaFail(spec);
            failed = try_run(&run, &m, "cuda", &err) != GANTRY_OK;
            ck_assert(!failed || (err.status == GANTRY_E_DEVICE && err.native == 2));
            gantry_run_free(run);
            check_alive();
        }
        ck_assert_msg(count > 3, "%s", names[i]); /* on both devices */
    }
    unmake(&m);
    folder_remove();
}
END_TEST

#define LAUNCH(grid, block) ",\"launch\":{\"grid\":" grid ",\"block\":" block "}"

START_TEST(launches_that_cannot_be)
{
    static const char ptx[] = "mix.ptx";
    make_files();
    expect_refused((words){ ptx, NULL, "", NULL }, GANTRY_E_UNSUPPORTED, "give \"launch\" with \"grid\" and \"block\"");
    expect_refused((words){ ptx, NULL, LAUNCH("[1]", "[1025]"), NULL }, GANTRY_E_GRAPH,
                   "block[0] of kernel \"mix\" is 1025; 0 to 1024 are allowed");
    expect_refused((words){ ptx, NULL, LAUNCH("[1]", "[1,1,65]"), NULL }, GANTRY_E_GRAPH,
                   "block[2] of kernel \"mix\" is 65; 0 to 64 are allowed");
    expect_refused((words){ ptx, NULL, LAUNCH("[1]", "[32,8,8]"), NULL }, GANTRY_E_GRAPH,
                   "a block of kernel \"mix\" has 2048 threads (32 x 8 x 8)");
    expect_refused((words){ ptx, NULL, LAUNCH("[1,\"x.size * 1000\"]", "[1]"), NULL }, GANTRY_E_GRAPH,
                   "grid[1] of kernel \"mix\" is 333000; 0 to 65535 are allowed");
    expect_refused((words){ ptx, NULL, LAUNCH("[\"1 - n\"]", "[1]"), NULL }, GANTRY_E_GRAPH,
                   "grid[0] of kernel \"mix\" is -332; ");
    expect_refused((words){ ptx, NULL, LAUNCH("[\"n / 2\"]", "[1]"), NULL }, GANTRY_E_GRAPH,
                   "grid[0] of kernel \"mix\": ");
    fakeCudaLimit(fakeCudaFunction("mix", mix, mix_sizes, 5), 96); /* a kernel with many registers */
    expect_refused((words){ .cuda = ptx }, GANTRY_E_GRAPH, "the device runs at most 96");
    folder_remove();
}
END_TEST

#define NODE(args) "{\"id\":\"m\",\"kernel\":\"mix\",\"args\":{" args "}}"

START_TEST(arguments_that_cannot_be)
{
    static const size_t other[] = { 4, 8, 8, 4, 1 }, wider[] = { 8, 8, 8, 8, 1 };
    static const char ptx[] = "mix.ptx";
    make_files();
    expect_refused((words){ ptx, NULL, NULL, NODE("\"weight\":1,\"x\":\"t[0][*]\",\"y\":\"y\"") }, GANTRY_E_UNSUPPORTED,
                   "node \"m\" gives kernel \"mix\" a list of tiles of \"t\"");
    fakeCudaFunction("mix", mix, other, 5);
    expect_refused((words){ .cuda = ptx }, GANTRY_E_GRAPH,
                   "parameter 3 of the function of kernel \"mix\", \"n\", has 4 bytes and would be given 8");
    fakeCudaFunction("mix", mix, wider, 5);
    expect_refused((words){ .cuda = ptx }, GANTRY_E_GRAPH, "\"weight\", has 8 bytes and would be given 4");
    fakeCudaFunction("mix", mix, mix_sizes, 4);
    expect_refused((words){ .cuda = ptx }, GANTRY_E_GRAPH, "has 4 parameters and would be given 5");
    folder_remove();
}
END_TEST

/* ---- a region that a node need not give ---- */

static int with_z, without_z;

static void may_add(const fakeCudaLaunch *l, void **p)
{
    (void)l;
    *(*(void ***)p[1] ? &with_z : &without_z) += 1;
}

START_TEST(an_optional_region)
{
    static const size_t sizes[] = { 8, 8, 8 };
    static const char text[] =
        "{\"gantry\":1,\"kernels\":{\"mix\":{\"cuda\":\"mix.ptx\",\"args\":["
        "{\"name\":\"x\",\"access\":\"read\",\"dtype\":\"f32\"},"
        "{\"name\":\"z\",\"access\":\"read\",\"dtype\":\"f32\",\"optional\":true},"
        "{\"name\":\"y\",\"access\":\"write\",\"dtype\":\"f32\"}],\"launch\":{\"grid\":[1],\"block\":[32]}}},"
        "\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[4],\"init\":1},\"y\":{\"dtype\":\"f32\",\"shape\":[4]},"
        "\"w\":{\"dtype\":\"f32\",\"shape\":[4],\"output\":true}},\"nodes\":["
        "{\"id\":\"without\",\"kernel\":\"mix\",\"args\":{\"x\":\"x\",\"y\":\"y\"}},"
        "{\"id\":\"with\",\"kernel\":\"mix\",\"args\":{\"x\":\"x\",\"z\":\"y\",\"y\":\"w\"}}]}";
    gantry_graph *g = NULL;
    gantry_run *run = NULL;
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    options.allow_code = 1;
    make_files();
    fakeCudaFunction("mix", may_add, sizes, 3);
    MUST(gantry_graph_parse(&g, text, strlen(text), "user.json", folder, &options, MUST_ERR));
    made m = make(g, 1, "stream");
    MUST(try_run(&run, &m, "cuda", MUST_ERR));
    with_z = without_z = 0;
    run_results(run, m.g);
    ck_assert_int_eq(without_z, 1);
    ck_assert_int_eq(with_z, 1);
    gantry_run_free(run);
    unmake(&m);
    folder_remove();
}
END_TEST

/* ---- what is not there, or not allowed ---- */

START_TEST(code_needs_permission)
{
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    make_files();
    made m = make(graph_of((words){ .cuda = "mix.ptx" }), 1, "stream");
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = "cuda";
    ck_assert_int_eq(gantry_run_new(&run, m.s, &options, &err), GANTRY_E_UNSUPPORTED);
    ck_assert_msg(strstr(err.text, "/mix.ptx, which is not compiled or loaded unless you say so; use --allow-code"),
                  "%s", err.text);
    ck_assert_int_eq(fakeCudaCalls("cuModuleLoadData"), 0);
    unmake(&m);
    folder_remove();
}
END_TEST

/* "cuda" says what is missing, "auto" takes the host's version. */
static void expect_no_nvrtc(const char *why)
{
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    made m = make(graph_of((words){ 0 }), 1, "stream");
    ck_assert_int_eq(try_run(&run, &m, "cuda", &err), GANTRY_E_DEVICE);
    ck_assert_msg(strstr(err.text, "mix.cu, which NVRTC has to compile: ") && strstr(err.text, why), "%s", err.text);
    MUST(try_run(&run, &m, "auto", MUST_ERR));
    gantry_run_info info = GANTRY_RUN_INFO_INIT;
    MUST(gantry_run_get_info(run, &info, MUST_ERR));
    ck_assert_str_eq(info.backend, "host");
    gantry_run_free(run);
    unmake(&m);
}

START_TEST(no_nvrtc)
{
    char command[256];
    make_files();
    setenv("GANTRY_CUDA_LIBRARIES", "/nonexistent", 1);
    if (have_nvrtc()) {
        printf("skipped: libnvrtc is where the loader looks\n");
    } else {
        expect_no_nvrtc("libnvrtc.so was not found (");
        expect_no_nvrtc("name its folder in GANTRY_CUDA_LIBRARIES");
    }
    folder_write("empty.c", "extern int empty;\nint empty;\n");
    snprintf(command, sizeof command, "cc -shared -fPIC -o %s/libnvrtc.so %s/empty.c", folder, folder);
    ck_assert_int_eq(system(command), 0);
    setenv("GANTRY_CUDA_LIBRARIES", folder, 1);
    expect_no_nvrtc("libnvrtc.so has no function nvrtcGetErrorString: it is too old");
    folder_remove();
}
END_TEST

/* ---- code of a program ---- */

static gantry_status mix_on_host(const gantry_launch *l)
{
    const float *x = l->arg[1].data;
    float weight = (float)l->arg[0].number, *y = l->arg[2].data;
    for (int64_t i = 0; i < l->arg[3].integer; i++)
        y[i] = weight * x[i] + y[i] + (float)l->arg[4].integer;
    return GANTRY_OK;
}

static const gantry_kernel_arg program_args[] = {
    { .name = "weight", .scalar = 1 },
    { .name = "x", .access = GANTRY_READ, .dtypes = GANTRY_DTYPE_BIT(GANTRY_F32) },
    { .name = "y", .access = GANTRY_READWRITE, .dtypes = GANTRY_DTYPE_BIT(GANTRY_F32) },
    { .name = "n", .scalar = 1, .optional = 1 },
    { .name = "bias", .scalar = 1, .optional = 1, .fallback = 3 },
};
static const gantry_kernel program_kernel = {
    .struct_size = sizeof(gantry_kernel), .name = "mine", GANTRY_KERNEL_ARGS(program_args), .host = mix_on_host
};
static const gantry_dtype program_types[] = { GANTRY_F32, GANTRY_F32, GANTRY_F32, GANTRY_I64, GANTRY_U8 };
static const char *const program_defaults[] = { NULL, NULL, NULL, "x.size", NULL };

static gantry_cuda_code program_code(void)
{
    gantry_cuda_code code = GANTRY_CUDA_CODE_INIT;
    code.entry = "mix";
    code.grid[0] = "ceil_div(x.size, 128)";
    code.block[0] = "128";
    code.types = program_types;
    code.defaults = program_defaults;
    code.shared_bytes = 100000;
    return code;
}

static gantry_graph *program_graph(const gantry_cuda_code *code)
{
    const int64_t n = 1000;
    gantry_graph *g = gantry_graph_new("program");
    gantry_graph_add_cuda_kernel(g, &program_kernel, code);
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, &n),
                  y = gantry_graph_buffer(g, "y", GANTRY_F32, 1, &n);
    gantry_buffer_split(g, x, 3);
    gantry_buffer_split(g, y, 3);
    gantry_buffer_init_uniform(g, x, 4, 0, 1);
    gantry_buffer_init_iota(g, y);
    gantry_buffer_output(g, y);
    for (int i = 0; i < 3; i++) {
        gantry_node k = gantry_graph_kernel(g, "k", "mine");
        gantry_node_scalar(g, k, "weight", 0.25 * i);
        gantry_node_arg(g, k, "x", gantry_part(x, i));
        gantry_node_arg(g, k, "y", gantry_part(y, i));
    }
    return g;
}

static int asked[2];

static void *give_function(void *user, int32_t ordinal)
{
    CUcontext current = NULL;
    ck_assert_ptr_eq(user, asked);
    ck_assert(cuCtxGetCurrent(&current) == CUDA_SUCCESS && current);
    asked[ordinal]++;
    cuCtxSetCurrent(NULL); /* as a program may */
    return fakeCudaFunction("mix", mix, mix_sizes, 5);
}

/* _i 0: PTX without a 0 behind it; 1: handles */
START_TEST(code_of_a_program)
{
    gantry_run *host = NULL;
    char *image = malloc(sizeof mix_ptx - 1);
    memcpy(image, mix_ptx, sizeof mix_ptx - 1);
    fakeCudaDevices(2, "all", 0);
    fakeCudaFunction("mix", mix, mix_sizes, 5);
    gantry_cuda_code code = program_code();
    code.image = _i ? NULL : image;
    code.bytes = sizeof mix_ptx - 1;
    code.function = _i ? give_function : NULL;
    code.user = asked;
    made m = make(program_graph(&code), 2, "stream");
    gantry_run *run = NULL;
    MUST(gantry_run_new(&host, m.s, &(gantry_run_options){ sizeof(gantry_run_options), .backend = "host" }, MUST_ERR));
    MUST(gantry_run_new(&run, m.s, &(gantry_run_options){ sizeof(gantry_run_options), .backend = "cuda" }, MUST_ERR));
    compare_starts(&m, host, run);
    ck_assert(!_i || (asked[0] == 1 && asked[1] == 1));
    gantry_run_free(host);
    gantry_run_free(run);
    unmake(&m);
    free(image);
}
END_TEST

static void *give_nothing(void *user, int32_t ordinal)
{
    (void)user;
    (void)ordinal;
    return NULL;
}

static void expect_run_error(const gantry_cuda_code *code, gantry_status status, const char *within)
{
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    made m = make(program_graph(code), 1, "stream");
    ck_assert_int_eq(try_run(&run, &m, "cuda", &err), status);
    ck_assert_msg(strstr(err.text, within), "%s", err.text);
    unmake(&m);
}

START_TEST(code_of_a_program_that_does_not_do)
{
    gantry_cuda_code code = program_code();
    fakeCudaDevices(1, "all", 0);
    fakeCudaFunction("mix", mix, mix_sizes, 5);
    code.function = give_nothing;
    expect_run_error(&code, GANTRY_E_KERNEL, "the program gave no function for GPU 0; return its CUfunction");
    code.function = NULL;
    code.image = mix_ptx;
    code.bytes = sizeof mix_ptx;
    code.entry = "nix";
    expect_run_error(&code, GANTRY_E_GRAPH, "the image has no kernel \"nix\": it has \"mix\"");
    code.entry = "mix";
    code.shared_bytes = 300000;
    expect_run_error(&code, GANTRY_E_GRAPH, "300000 bytes of shared memory; the device has 232448 for a block");
    code.shared_bytes = 0;
    code.bytes = 30; /* cut off */
    expect_run_error(&code, GANTRY_E_DEVICE, "the driver cannot load the image: ");
}
END_TEST

/* ---- functions that launch by themselves ---- */

static int opened_on[3], launched[2]; /* by ordinal, the host behind */

static gantry_status open_launcher(void **handle, int32_t ordinal)
{
    int *count = &opened_on[ordinal < 0 ? 2 : ordinal];
    (*count)++;
    *handle = count;
    return GANTRY_OK;
}
static void close_launcher(void *handle)
{
    (*(int *)handle)--;
}

/* y = x by the driver's copy, in the order of the stream. The scalar says what to return. */
static gantry_status launch_copy(const gantry_launch *l)
{
    const gantry_arg *x = &l->arg[1], *y = &l->arg[2];
    CUcontext current = NULL;
    ck_assert(l->user == launched && l->handle == &opened_on[l->device_ordinal] && l->stream && l->status);
    ck_assert(cuCtxGetCurrent(&current) == CUDA_SUCCESS && current);
    launched[l->device_ordinal]++;
    if (l->arg[0].number != 0)
        return GANTRY_E_KERNEL;
    CUresult code = cuMemcpyDtoDAsync((CUdeviceptr)(uintptr_t)y->data, (CUdeviceptr)(uintptr_t)x->data,
                                      (size_t)(y->rows * y->row_bytes), l->stream);
    cuCtxSetCurrent(NULL); /* as a library may */
    return code == CUDA_SUCCESS ? GANTRY_OK : GANTRY_E_DEVICE;
}
static gantry_status copy_on_host(const gantry_launch *l)
{
    ck_assert_ptr_eq(l->handle, &opened_on[2]);
    memcpy(l->arg[2].data, l->arg[1].data, (size_t)(l->arg[2].rows * l->arg[2].row_bytes));
    return GANTRY_OK;
}

static const gantry_kernel launcher_kernel = { .struct_size = sizeof(gantry_kernel),
                                               .name = "mine",
                                               .arg = program_args,
                                               .arg_size = sizeof *program_args,
                                               .args = 3,
                                               .host = copy_on_host,
                                               .open = open_launcher,
                                               .close = close_launcher };

static gantry_graph *launcher_graph(double weight)
{
    const int64_t n = 1000;
    gantry_cuda_code code = GANTRY_CUDA_CODE_INIT;
    code.launch = launch_copy;
    code.user = launched;
    gantry_graph *g = gantry_graph_new("launcher");
    gantry_graph_add_cuda_kernel(g, &launcher_kernel, &code);
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, &n),
                  y = gantry_graph_buffer(g, "y", GANTRY_F32, 1, &n);
    gantry_buffer_split(g, x, 4);
    gantry_buffer_split(g, y, 4);
    gantry_buffer_init_uniform(g, x, 4, 0, 1);
    gantry_buffer_init_iota(g, y);
    gantry_buffer_output(g, y);
    for (int i = 0; i < 4; i++) {
        gantry_node k = gantry_graph_kernel(g, "k", "mine");
        gantry_node_on(g, k, i % 2 ? "devices - 1" : "0");
        gantry_node_scalar(g, k, "weight", weight);
        gantry_node_arg(g, k, "x", gantry_part(x, i));
        gantry_node_arg(g, k, "y", gantry_part(y, i));
    }
    return g;
}

/* _i: devices, replay. It is called at every start, but where a graph was asked for. */
START_TEST(launchers)
{
    gantry_run *host = NULL, *run = NULL;
    memset(launched, 0, sizeof launched);
    fakeCudaDevices(2, "all", 0);
    made m = make(launcher_graph(0), 1 + _i % 2, (const char *[]){ "stream", "graph", "auto", "device" }[_i / 2]);
    MUST(gantry_run_new(&host, m.s, &(gantry_run_options){ sizeof(gantry_run_options), .backend = "host" }, MUST_ERR));
    MUST(gantry_run_new(&run, m.s, &(gantry_run_options){ sizeof(gantry_run_options), .backend = "cuda" }, MUST_ERR));
    compare_starts(&m, host, run);
    ck_assert_int_eq(strncmp(replay_of(run), _i / 2 == 1 ? "graph" : "stream", 5), 0);
    if (_i / 2 != 1)
        ck_assert_int_eq(launched[0] + launched[1], 3 * 4);
    ck_assert(opened_on[0] == 1 && opened_on[1] == _i % 2 && launched[1] == (_i % 2 ? launched[0] : 0));
    gantry_run_free(host);
    gantry_run_free(run);
    ck_assert(!opened_on[0] && !opened_on[1] && !opened_on[2]);
    unmake(&m);
}
END_TEST

START_TEST(a_launcher_that_fails)
{
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    fakeCudaDevices(1, "all", 0);
    made m = make(launcher_graph(1), 1, "stream");
    MUST(gantry_run_new(&run, m.s, &(gantry_run_options){ sizeof(gantry_run_options), .backend = "cuda" }, MUST_ERR));
    uint64_t ticket = 0;
    gantry_status status = gantry_run_start(run, &ticket, &err);
    status = status ? status : gantry_run_wait(run, ticket, &err);
    ck_assert_int_eq(status, GANTRY_E_KERNEL);
    ck_assert_msg(strstr(err.text, "node \"k\"") && strstr(err.text, "gpu0"), "%s", err.text);
    gantry_run_free(run);
    unmake(&m);
}
END_TEST

static void hear(void *user, const char *text, size_t length)
{
    ck_assert_uint_eq(strlen(text), length);
    snprintf(user, 4000, "%s", text);
}

/* A source of the program, compiled by the NVRTC of this computer; and one that does not compile, whose every line is
 * told to whoever wants to hear it. */
START_TEST(source_of_a_program)
{
    char heard[4000] = "";
    gantry_error err = { 0 };
    gantry_run *run = NULL;
    const gantry_run_options options = { sizeof options, .backend = "cuda", .compiler_output = hear, .user = heard };
    folder_make();
    fakeCudaDevices(2, "all", 0);
    fakeCudaFunction("mix", mix, mix_sizes, 5);
    gantry_cuda_code code = program_code();
    code.shared_bytes = 0;
    code.source =
        "extern \"C\" __global__ void mix(float weight, const float *x, float *y, long long n, unsigned char b)\n"
        "{\n    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n"
        "    if (i < n)\n        y[i] = weight * x[i] + y[i] + b;\n}\n";
    made m = make(program_graph(&code), 2, "stream");
    gantry_run *host = NULL;
    MUST(gantry_run_new(&host, m.s, &(gantry_run_options){ sizeof(gantry_run_options), .backend = "host" }, MUST_ERR));
    MUST(gantry_run_new(&run, m.s, &options, MUST_ERR));
    compare_starts(&m, host, run);
    gantry_run_free(host);
    gantry_run_free(run);
    unmake(&m);
    code.source = "extern \"C\" __global__ void mix(float *y)\n{\n    *y = first;\n    *y = second;\n}\n";
    m = make(program_graph(&code), 1, "stream");
    ck_assert_int_eq(gantry_run_new(&run, m.s, &options, &err), GANTRY_E_GRAPH);
    ck_assert_msg(strstr(err.text, "mine does not compile: the output of its compiler says why"), "%s", err.text);
    ck_assert_msg(strstr(heard, "\"first\" is undefined\n") && strstr(heard, "\"second\" is undefined\n"), "%s", heard);
    unmake(&m);
    folder_remove();
}
END_TEST

int main(void)
{
    bool here = have_nvrtc();
    Suite *suite = suite_create("cuda user code");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    if (here) {
        tcase_add_loop_test(tests, the_host_s_bits, 0, 4);
        tcase_add_loop_test(tests, graph_file, 0, 4);
        tcase_add_loop_test(tests, formulas, 0, 4);
        tcase_add_test(tests, formulas_are_compiled_before_any_is_opened);
        tcase_add_test(tests, compiled_once_for_all_devices);
        tcase_add_test(tests, sources_that_do_not_do);
        tcase_add_test(tests, source_of_a_program);
    }
    tcase_add_loop_test(tests, cubins_and_ptx, 0, here ? 2 : 1);
    tcase_add_test(tests, scratch_and_types);
    tcase_add_test(tests, empty_parts);
    tcase_add_test(tests, code_that_the_driver_refuses);
    tcase_add_test(tests, a_launch_that_the_driver_refuses);
    tcase_add_test(tests, a_scalar_that_spoils_the_grid);
    tcase_add_test(tests, calls_that_fail);
    tcase_add_test(tests, launches_that_cannot_be);
    tcase_add_test(tests, arguments_that_cannot_be);
    tcase_add_test(tests, an_optional_region);
    tcase_add_test(tests, code_needs_permission);
    tcase_add_test(tests, no_nvrtc);
    tcase_add_test(tests, formulas_without_nvrtc);
    tcase_add_loop_test(tests, code_of_a_program, 0, 2);
    tcase_add_test(tests, code_of_a_program_that_does_not_do);
    tcase_add_loop_test(tests, launchers, 0, 8);
    tcase_add_test(tests, a_launcher_that_fails);
    suite_add_tcase(suite, tests);
    int failed = run_suite(suite);
    if (!here)
        printf("skipped: there is no libnvrtc\n");
    return failed || here ? failed : SKIPPED;
}
