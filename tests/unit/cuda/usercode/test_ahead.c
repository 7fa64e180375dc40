/* SPDX-License-Identifier: Apache-2.0 */
/* Code of a run is compiled by threads before its kernels are opened. A library stands in for NVRTC: it says
 * how often it was asked, and lets compilations wait until there are several at once. */
#include "backends/cuda/usercode/usercode.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "folder.h"
#include "graph/graph.h"
#include "suite.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNELS = 4, DEVICES = 2 };

/* Two GPUs of compute capability 9.0. */
static CUresult ask(int *value, CUdevice_attribute which, CUdevice device)
{
    (void)device;
    *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
    return CUDA_SUCCESS;
}

typedef struct fixture {
    gy_driver driver;
    gantry_kernel manifest[KERNELS];
    gy_kernel_program program[KERNELS];
    gy_kernel_code code[KERNELS];
    gy_kernel kernel[KERNELS];
    gy_user_wants wants;
    atomic_int *wait_for, *compiled;
} fixture;

static void *find(const char *symbol)
{
    void *found = dlsym(dlopen(OTHER_NVRTC "_41/libnvrtc.so", RTLD_NOW | RTLD_LOCAL), symbol);
    ck_assert_ptr_nonnull(found);
    return found;
}

/* Kernels with these texts, on each GPU. */
static void begin(fixture *f, const char *const *text, int count)
{
    static const char *const name[KERNELS] = { "first", "second", "third", "fourth" };
    folder_make();
    setenv("GANTRY_CUDA_LIBRARIES", OTHER_NVRTC "_41", 1);
    *f = (fixture){ .driver.cuDeviceGetAttribute = ask };
    f->wait_for = find("other_nvrtc_wait_for");
    f->compiled = find("other_nvrtc_compiled");
    for (int i = 0; i < count; i++) {
        f->manifest[i].name = name[i];
        f->program[i].source = text[i];
        f->code[i].program = &f->program[i];
        f->kernel[i] = (gy_kernel){ .manifest = &f->manifest[i], .code = &f->code[i] };
        for (int d = 0; d < DEVICES; d++)
            ck_assert(gy_vec_push(&f->wants, ((gy_user_wanted){ &f->kernel[i], d })));
    }
}

static void end(fixture *f)
{
    gy_vec_free(&f->wants);
    folder_remove();
}

static int kept(void)
{
    char path[256];
    return folder_cached(".cubin", path, sizeof path);
}

static int compiled_ahead(fixture *f, gy_said said)
{
    int before = *f->compiled;
    gy_user_kernels_end(gy_user_kernels_begin(&f->wants, &f->driver, folder, said));
    return *f->compiled - before;
}

static gantry_status compile(const fixture *f, int kernel, gantry_error *err)
{
    gy_nvrtc n;
    gy_code code = { 0 };
    MUST(gy_nvrtc_find(&n, MUST_ERR));
    gantry_status status = gy_user_kernel_compile(&code, &n, &f->kernel[kernel], false, 90, folder, err);
    ck_assert(status || strcmp(code.at, "41") == 0);
    gy_free(code.at);
    return status;
}

static const gy_said nobody = { 0 };
static const char *const texts[] = { "a", "b", "c" };

/* They would wait for 5 s each if they came one after another. */
START_TEST(several_at_once)
{
    fixture f;
    begin(&f, texts, 3);
    *f.wait_for = 2;
    int64_t limit = 4000000000, from = gy_now_ns();
    ck_assert_int_eq(compiled_ahead(&f, nobody), 3); /* once for both GPUs */
    ck_assert_int_lt(gy_now_ns() - from, limit);
    ck_assert_int_eq(kept(), 3);
    ck_assert_int_eq(compiled_ahead(&f, nobody), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(compile(&f, i, NULL), GANTRY_OK);
    ck_assert_int_eq(*f.compiled, 3); /* opening finds them */
    end(&f);
}
END_TEST

/* Opening tells it, as if nothing had been compiled before. */
START_TEST(mistakes_are_told_when_opened)
{
    static const char *const some[] = { "a", "broken", "also broken", "d" };
    fixture f;
    gantry_error err = { 0 };
    begin(&f, some, 4);
    ck_assert_int_eq(compiled_ahead(&f, nobody), 4);
    ck_assert_int_eq(kept(), 2);
    ck_assert_int_eq(compile(&f, 1, &err), GANTRY_E_GRAPH);
    ck_assert_msg(strncmp(err.text, "second does not compile: ", 25) == 0, "%s", err.text);
    ck_assert_int_eq(compile(&f, 3, NULL), GANTRY_OK);
    end(&f);
}
END_TEST

static void hear(void *user, const char *text, size_t length)
{
    (void)user, (void)text, (void)length;
    ck_abort_msg("a warning that nobody compiles for");
}

/* Whoever hears compilers hears each text once, in the order of the run. */
START_TEST(texts_that_are_heard_wait)
{
    fixture f;
    begin(&f, texts, 3);
    ck_assert_int_eq(compiled_ahead(&f, (gy_said){ .hear = hear }), 0);
    ck_assert_int_eq(kept(), 0);
    end(&f);
}
END_TEST

/* Beginning does not wait: the second compilation that the text waits for is the test's own. */
START_TEST(one_text_beside_other_work)
{
    fixture f;
    begin(&f, texts, 1);
    atomic_int *at_once = find("other_nvrtc_at_once");
    *f.wait_for = 2;
    int64_t limit = 4000000000, from = gy_now_ns();
    struct gy_user_ahead *ahead = gy_user_kernels_begin(&f.wants, &f.driver, folder, nobody);
    ck_assert_ptr_nonnull(ahead);
    ck_assert_int_eq(kept(), 0);
    (*at_once)++;
    gy_user_kernels_end(ahead);
    ck_assert_int_lt(gy_now_ns() - from, limit);
    ck_assert_int_eq(kept(), 1);
    end(&f);
}
END_TEST

/* ---- formulas ---- */

static gantry_graph *parse(const char *text)
{
    gantry_graph *g = NULL;
    MUST(gantry_graph_parse(&g, text, strlen(text), "ahead.json", folder, NULL, MUST_ERR));
    return g;
}

static const gy_kernel *formulas_of(const gantry_graph *g)
{
    for (uint32_t i = 0; i < g->kernels.count; i++)
        if (g->kernels.at[i].program)
            return &g->kernels.at[i];
    ck_abort_msg("the graph has no formulas");
}

static const char rows[] =
    "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[9,5],\"init\":1},\"y\":{\"dtype\":\"f32\","
    "\"shape\":[9],\"output\":true}},\"nodes\":[{\"id\":\"rows\",\"reduce\":{\"y\":\"sum(x, 1)\"},"
    "\"args\":{\"x\":\"x\",\"y\":\"y\"}}]}";
static const char columns[] =
    "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[9,5],\"init\":1},\"y\":{\"dtype\":\"f32\","
    "\"shape\":[5],\"output\":true}},\"nodes\":[{\"id\":\"columns\",\"reduce\":{\"y\":\"sum(x, 0)\"},"
    "\"args\":{\"x\":\"x\",\"y\":\"y\"}}]}";

/* The two functions of a reduction whose second takes long are two texts. Graphs of two phases may have the same. */
START_TEST(functions_of_a_reduction)
{
    fixture f;
    begin(&f, texts, 0);
    gantry_graph *g[] = { parse(rows), parse(rows), parse(columns) };
    for (int i = 0; i < 2; i++)
        ck_assert(gy_vec_push(&f.wants, ((gy_user_wanted){ formulas_of(g[i]), 0 })));
    ck_assert(gy_user_kernel_is_apart(formulas_of(g[0])));
    *f.wait_for = 2;
    int64_t limit = 4000000000, from = gy_now_ns();
    ck_assert_int_eq(compiled_ahead(&f, nobody), 2);
    ck_assert_int_lt(gy_now_ns() - from, limit);
    ck_assert_int_eq(kept(), 2);
    ck_assert(gy_vec_push(&f.wants, ((gy_user_wanted){ formulas_of(g[2]), 0 })));
    ck_assert(!gy_user_kernel_is_apart(formulas_of(g[2])));
    *f.wait_for = 0;
    ck_assert_int_eq(compiled_ahead(&f, nobody), 1);
    for (int i = 0; i < 3; i++)
        gantry_graph_free(g[i]);
    end(&f);
}
END_TEST

static const char loop[] =
    "{\"gantry\":1,\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[8],\"init\":1,\"output\":true},"
    "\"done\":{\"dtype\":\"i32\",\"shape\":[1],\"init\":0}},\"nodes\":["
    "{\"id\":\"first\",\"map\":{\"x\":\"x + 1\"},\"args\":{\"x\":\"x\"}},"
    "{\"repeat\":9,\"until\":{\"buffer\":\"done\"},\"nodes\":["
    "{\"id\":\"twice\",\"map\":{\"x\":\"x * 2\"},\"args\":{\"x\":\"x\"}},"
    "{\"id\":\"ends\",\"map\":{\"done\":\"1\"},\"args\":{\"done\":\"done\"}}]},"
    "{\"id\":\"last\",\"map\":{\"x\":\"x - 3\"},\"args\":{\"x\":\"x\"}}]}";

/* The first phase has those of all compiled. Its first kernel, whose code is none, ends the opening. */
START_TEST(formulas_of_all_phases)
{
    fixture f;
    begin(&f, texts, 0);
    gantry_run *run = NULL;
    gantry_error err = { 0 };
    gantry_run_options options = GANTRY_RUN_OPTIONS_INIT;
    gantry_graph *g = parse(loop);
    gantry_machine *m = gpu_machine(1, false);
    gantry_schedule *s = make_schedule(g, m, "stream", "round-robin");
    options.backend = "cuda";
    ck_assert_int_eq(gantry_run_new(&run, s, &options, &err), GANTRY_E_DEVICE);
    ck_assert_msg(strstr(err.text, "\"first\""), "%s", err.text);
    ck_assert_int_eq(kept(), 4);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
    end(&f);
}
END_TEST

/* ---- what is left alone ---- */

/* Code that is not kept would be compiled twice. */
START_TEST(texts_that_are_not_kept)
{
    static const char *const some[] = { "#define H \"h\"\n#include H\n", "#if __has_include(<h>)\n#endif\n", "c" };
    fixture f;
    begin(&f, some, 3);
    ck_assert_int_eq(compiled_ahead(&f, nobody), 1);
    ck_assert_int_eq(kept(), 1);
    end(&f);
}
END_TEST

/* A file that leads out of the graph's folder is refused when it is opened, and not read before. */
START_TEST(files_that_may_not_be_named)
{
    fixture f;
    begin(&f, texts, 2);
    char path[80];
    snprintf(path, sizeof path, "%s/inner", folder);
    for (int i = 0; i < 2; i++) {
        folder_write(i ? "b.cu" : "a.cu", texts[i]);
        f.code[i].program = NULL;
        f.code[i].folder = path;
        f.code[i].cuda = folder_path(i ? "b.cu" : "a.cu");
    }
    ck_assert_int_eq(compiled_ahead(&f, nobody), 0);
    for (int i = 0; i < 2; i++)
        f.code[i].folder = folder;
    ck_assert_int_eq(compiled_ahead(&f, nobody), 2);
    end(&f);
}
END_TEST

START_TEST(without_a_second_processor)
{
    fixture f;
    cpu_set_t one;
    begin(&f, texts, 3);
    sched_getaffinity(0, sizeof one, &one);
    for (size_t cpu = 0, found = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &one) && found++)
            CPU_CLR(cpu, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    ck_assert_int_eq(compiled_ahead(&f, nobody), 0);
    end(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ahead");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    if (gy_thread_processors() > 1) {
        tcase_add_test(tests, several_at_once);
        tcase_add_test(tests, mistakes_are_told_when_opened);
        tcase_add_test(tests, files_that_may_not_be_named);
        tcase_add_test(tests, one_text_beside_other_work);
        tcase_add_test(tests, functions_of_a_reduction);
        tcase_add_test(tests, formulas_of_all_phases);
        tcase_add_test(tests, texts_that_are_not_kept);
    }
    tcase_add_test(tests, texts_that_are_heard_wait);
    tcase_add_test(tests, without_a_second_processor);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
