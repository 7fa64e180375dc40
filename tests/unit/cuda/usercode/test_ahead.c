/* SPDX-License-Identifier: Apache-2.0 */
/* Code of a run is compiled by several threads before its kernels are opened. A library stands in for NVRTC: it says
 * how often it was asked, and lets compilations wait until there are several at once. */
#include "backends/cuda/usercode/usercode.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "folder.h"
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
    gy_user_kernels_compile(&f->wants, &f->driver, folder, said);
    return *f->compiled - before;
}

static gantry_status compile(const fixture *f, int kernel, gantry_error *err)
{
    gy_nvrtc n;
    gy_code code = { 0 };
    MUST(gy_nvrtc_find(&n, MUST_ERR));
    gantry_status status = gy_user_kernel_compile(&code, &n, &f->kernel[kernel], 90, folder, err);
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

/* Code that is not kept would be compiled twice, and one text alone gains nothing. */
START_TEST(texts_that_gain_nothing)
{
    static const char *const some[] = { "#define H \"h\"\n#include H\n", "#if __has_include(<h>)\n#endif\n", "c" };
    fixture f;
    begin(&f, some, 3);
    ck_assert_int_eq(compiled_ahead(&f, nobody), 0);
    ck_assert_int_eq(kept(), 0);
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
    }
    tcase_add_test(tests, texts_that_are_heard_wait);
    tcase_add_test(tests, texts_that_gain_nothing);
    tcase_add_test(tests, without_a_second_processor);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
