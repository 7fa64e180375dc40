/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA code of users on real GPUs: sources that NVRTC compiles, PTX that the driver does, images and handles of a
 * program; held against the C versions, bit for bit. Exit code 77 without a GPU. */
#include "../../unit/cuda/suite.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const replays[] = { "stream", "graph" };
#define FOLDER GANTRY_SOURCE_DIR "/tests/gpu/usercode"

static void *symbol(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *found = library ? dlsym(library, name) : NULL;
    ck_assert_msg(found != NULL, "libcuda.so.1 has no %s", name);
    return found;
}

static gantry_graph *own_graph(void)
{
    gantry_graph *g = NULL;
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    options.allow_code = 1;
    MUST(gantry_graph_load(&g, FOLDER "/own.json", &options, MUST_ERR));
    return g;
}

static gantry_status try_run(gantry_run **run, gantry_schedule *s, const char *backend, gantry_error *err)
{
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    options.backend = backend;
    options.allow_code = 1;
    return gantry_run_new(run, s, &options, err);
}

static bool is_real(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    return driver && !dlsym(driver, "fakeCudaFunction");
}

static void compare(gantry_graph *g, const gantry_machine *m, const char *replay)
{
    gantry_run *host = NULL, *run = NULL;
    gantry_schedule *s = make_schedule(g, m, replay, "round-robin");
    MUST(try_run(&host, s, "host", MUST_ERR));
    gantry_error err = { 0 };
    gantry_status status = try_run(&run, s, "cuda", &err);
    if (status && (strstr(err.text, "which NVRTC has to compile") || strstr(err.text, "to be compiled by NVRTC")))
        printf("skipped: %s\n", err.text);
    else
        ck_assert_msg(status == GANTRY_OK, "%s", err.text);
    for (int start = 0; run && start < 3; start++) {
        results want = run_results(host, g), got = run_results(run, g);
        ck_assert_msg(same(&got, &want), "replay %s, start %d: other results", replay, start);
    }
    ck_assert(!run || strcmp(replay_of(run), replay) == 0);
    gantry_run_free(run);
    gantry_run_free(host);
    gantry_schedule_free(s);
}

START_TEST(graph_file)
{
    for (int devices = 1; devices <= 4; devices++) {
        gantry_graph *g = own_graph();
        gantry_machine *m = shared_machine(devices, 1);
        compare(g, m, replays[_i]);
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
}
END_TEST

/* Formulas, whose code is printed; small sizes, blocks that are full and one that is not. */
START_TEST(maps)
{
    static const char *const params[] = { "n=1003", "n=70000" };
    for (int devices = 1; devices <= 4; devices++) {
        gantry_graph *g = NULL;
        gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
        options.params = &params[devices % 2];
        options.param_count = 1;
        MUST(gantry_graph_load(&g, GANTRY_SOURCE_DIR "/graphs/stages.json", &options, MUST_ERR));
        gantry_machine *m = shared_machine(devices, 1);
        compare(g, m, replays[_i]);
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
}
END_TEST

/* Reductions of one segment and of several, along rows and columns, added to others; regions that are broadcast. */
START_TEST(reductions)
{
    static const char *const params[] = { "n=1003", "n=200003", "rows=4", "width=33" };
    for (int i = 0; i < 4; i++) {
        gantry_graph *g = NULL;
        gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
        options.params = &params[i];
        options.param_count = 1;
        MUST(gantry_graph_load(&g, FOLDER "/formulas.json", &options, MUST_ERR));
        gantry_machine *m = shared_machine(1 + i % 3, 1);
        compare(g, m, replays[_i]);
        gantry_machine_free(m);
        gantry_graph_free(g);
    }
}
END_TEST

/* ---- the kernel of clip.ptx, brought by this program ---- */

static gantry_status clip(const gantry_launch *l)
{
    const float *x = l->arg[0].data;
    float *y = l->arg[1].data, limit = (float)l->arg[2].number;
    for (int64_t i = 0; i < l->arg[3].integer; i++)
        y[i] = x[i] < limit ? x[i] : limit;
    return GANTRY_OK;
}

static const gantry_kernel_arg clip_args[] = { { .name = "x", .access = GANTRY_READ },
                                               { .name = "y", .access = GANTRY_WRITE },
                                               { .name = "limit", .scalar = 1 },
                                               { .name = "n", .scalar = 1, .optional = 1 } };
static const gantry_kernel clip_kernel = {
    .struct_size = sizeof(gantry_kernel), .name = "clip", GANTRY_KERNEL_ARGS(clip_args), .host = clip
};
static const gantry_dtype clip_types[] = { GANTRY_F32, GANTRY_F32, GANTRY_F32, GANTRY_U32 };
static const char *const clip_defaults[] = { NULL, NULL, NULL, "x.size" };

static char image[8192];
static CUmodule loaded;

/* A handle in the context that is current, as nvcc's runtime or a program of its own would have it. */
static void *load_clip(void *user, int32_t ordinal)
{
    (void)user;
    (void)ordinal;
    __typeof__(cuModuleLoadData) *load;
    __typeof__(cuModuleGetFunction) *find;
    void *load_at = symbol("cuModuleLoadData"), *find_at = symbol("cuModuleGetFunction");
    CUfunction function = NULL;
    memcpy(&load, &load_at, sizeof load_at);
    memcpy(&find, &find_at, sizeof find_at);
    ck_assert_int_eq(load(&loaded, image), CUDA_SUCCESS);
    ck_assert_int_eq(find(&function, loaded, "clip"), CUDA_SUCCESS);
    return function;
}

static gantry_graph *clip_graph(bool handle)
{
    const int64_t n = 70001;
    gantry_cuda_code code = GANTRY_CUDA_CODE_INIT;
    code.image = handle ? NULL : image;
    code.bytes = strlen(image);
    code.function = handle ? load_clip : NULL;
    code.grid[0] = "ceil_div(n, 128)";
    code.block[0] = "128";
    code.types = clip_types;
    code.defaults = clip_defaults;
    code.shared_bytes = 100000; /* more than there is without asking for it */
    gantry_graph *g = gantry_graph_new("clip");
    gantry_graph_add_cuda_kernel(g, &clip_kernel, &code);
    gantry_buffer x = gantry_graph_buffer(g, "x", GANTRY_F32, 1, &n),
                  y = gantry_graph_buffer(g, "y", GANTRY_F32, 1, &n);
    gantry_buffer_init_uniform(g, x, 4, 0, 1);
    gantry_buffer_output(g, y);
    gantry_buffer_split(g, x, 3);
    gantry_buffer_split(g, y, 3);
    for (int i = 0; i < 3; i++) {
        gantry_node k = gantry_graph_kernel(g, "k", "clip");
        gantry_node_arg(g, k, "x", gantry_part(x, i));
        gantry_node_arg(g, k, "y", gantry_part(y, i));
        gantry_node_scalar(g, k, "limit", 0.25 * (i + 1));
    }
    return g;
}

START_TEST(code_of_a_program)
{
    FILE *file = fopen(FOLDER "/clip.ptx", "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_gt(fread(image, 1, sizeof image - 1, file), 100);
    fclose(file);
    gantry_graph *g = clip_graph(_i / 2);
    gantry_machine *m = shared_machine(1, 1);
    compare(g, m, replays[_i % 2]);
    gantry_machine_free(m);
    gantry_graph_free(g);
}
END_TEST

/* Assembly that the driver cannot load: its message names the line. */
START_TEST(what_the_driver_refuses)
{
    gantry_error err = { 0 };
    gantry_run *run = NULL;
    gantry_graph *g = NULL;
    char folder[] = "/tmp/gantry-gpu-XXXXXX", path[64], command[64];
    static const char text[] =
        "{\"gantry\":1,\"kernels\":{\"bad\":{\"cuda\":\"bad.ptx\",\"args\":[{\"name\":\"x\",\"access\":\"write\"}],"
        "\"launch\":{\"grid\":[1],\"block\":[1]}}},\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[8],\"output\":true}"
        "},"
        "\"nodes\":[{\"id\":\"k\",\"kernel\":\"bad\",\"args\":{\"x\":\"x\"}}]}";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/bad.ptx", folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry bad(.param .u64 x)\n{\n nonsense;\n}\n",
          file);
    fclose(file);
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    options.allow_code = 1;
    MUST(gantry_graph_parse(&g, text, strlen(text), "bad.json", folder, &options, MUST_ERR));
    gantry_machine *m = shared_machine(1, 1);
    gantry_schedule *s = make_schedule(g, m, "stream", "round-robin");
    ck_assert_int_eq(try_run(&run, s, "cuda", &err), GANTRY_E_DEVICE);
    printf("%s\n", err.text);
    ck_assert_msg(strstr(err.text, "the driver cannot load ") && strstr(err.text, "line 6"), "%s", err.text);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

int main(void)
{
    if (!is_real() || !has_gpu()) {
        printf("skipped: no GPU\n");
        return 77;
    }
    Suite *suite = suite_create("user code on GPUs");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, graph_file, 0, 2);
    tcase_add_loop_test(tests, maps, 0, 2);
    tcase_add_loop_test(tests, reductions, 0, 2);
    tcase_add_loop_test(tests, code_of_a_program, 0, 4);
    tcase_add_test(tests, what_the_driver_refuses);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
