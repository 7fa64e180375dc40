/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC is not loaded for what the cache has, and what it has is of the NVRTC that would be loaded. Two libraries stand
 * in for it, whose code is the number of their version. Each look is a process of its own, as a start of a program is.
 */
#include "backends/cuda/usercode/compile.h"
#include "base/memory.h"
#include "folder.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct look {
    gantry_status status;
    bool loaded;
    char code[16];
} look;

static bool is_loaded(void)
{
    char line[512];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        found = found || strstr(line, "libnvrtc");
    if (maps)
        fclose(maps);
    return found;
}

static void compile(look *to, const char *text)
{
    gy_nvrtc n;
    gy_code code = { 0 };
    to->status = gy_nvrtc_find(&n, NULL);
    to->status = to->status ? to->status : gy_nvrtc_compile_text(&code, &n, "text", text, 90, NULL);
    to->loaded = is_loaded();
    if (to->status == GANTRY_OK)
        snprintf(to->code, sizeof to->code, "%s", code.at);
    gy_free(code.at);
}

static look start(const char *text)
{
    look *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(shared != MAP_FAILED);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        compile(shared, text);
        _exit(0);
    }
    int result = 1;
    ck_assert(child > 0 && waitpid(child, &result, 0) == child && result == 0);
    look seen = *shared;
    munmap(shared, sizeof *shared);
    return seen;
}

static void expect(const char *text, bool loaded, const char *code)
{
    look seen = start(text);
    ck_assert_int_eq(seen.status, GANTRY_OK);
    ck_assert_str_eq(seen.code, code);
    ck_assert_int_eq(seen.loaded, loaded);
}

/* `way` is "ln -sf" or "cp". */
static void put(const char *way, int version, const char *where)
{
    char command[900];
    snprintf(command, sizeof command, "mkdir -p %s && %s %s_%d/libnvrtc.so %s/libnvrtc.so", where, way, OTHER_NVRTC,
             version, where);
    ck_assert_int_eq(system(command), 0);
}

static void begin(void)
{
    char list[256];
    folder_make();
    snprintf(list, sizeof list, "%s/first:%s/second", folder, folder);
    setenv("GANTRY_CUDA_LIBRARIES", list, 1);
}

START_TEST(the_cache_is_asked_first)
{
    begin();
    put("ln -sf", 41, folder_path("second"));
    expect("a", true, "41");
    expect("a", false, "41");
    expect("b", true, "41"); /* has to be compiled */
    expect("b", false, "41");
    folder_remove();
}
END_TEST

START_TEST(another_library_has_other_code)
{
    begin();
    put("ln -sf", 41, folder_path("second"));
    expect("a", true, "41");
    expect("a", false, "41");
    put("ln -sf", 42, folder_path("second"));
    expect("a", true, "42");
    expect("a", false, "42");
    put("ln -sf", 41, folder_path("second"));
    expect("a", false, "41");
    put("ln -sf", 42, folder_path("first")); /* ahead of it in the list */
    expect("a", true, "42");
    folder_remove();
}
END_TEST

/* The same path, other bytes, no matter how long ago. */
START_TEST(a_library_that_is_replaced)
{
    begin();
    put("cp", 41, folder_path("second"));
    expect("a", true, "41");
    expect("a", true, "41"); /* so new that it may be replaced without another time of change */
    sleep(3);
    expect("a", true, "41");
    expect("a", false, "41");
    put("cp", 42, folder_path("second"));
    expect("a", true, "42");
    folder_remove();
}
END_TEST

static void damage(const char *path)
{
    FILE *file = fopen(path, "r+");
    ck_assert_ptr_nonnull(file);
    fputc('x', file);
    fclose(file);
}

START_TEST(damaged_notes_are_made_again)
{
    char path[256];
    begin();
    put("ln -sf", 41, folder_path("second"));
    expect("a", true, "41");
    ck_assert_int_eq(folder_cached(".nvrtc", path, sizeof path), 1);
    damage(path);
    expect("a", true, "41");
    expect("a", false, "41");
    ck_assert_int_eq(truncate(path, 20), 0);
    expect("a", true, "41");
    expect("a", false, "41");
    ck_assert_int_eq(chmod(path, 0666), 0); /* somebody else may have written it */
    expect("a", true, "41");
    folder_remove();
}
END_TEST

/* It is found in any case; what is compiled needs the cache, which says so. */
START_TEST(without_a_cache)
{
    gantry_error err = { 0 };
    gy_nvrtc n;
    begin();
    put("ln -sf", 41, folder_path("second"));
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    MUST(gy_nvrtc_find(&n, MUST_ERR));
    ck_assert(gy_nvrtc_is_open(&n) && n.major == 41 && n.architectures == 1 && n.architecture[0] == 90);
    gy_code code = { 0 };
    ck_assert_int_eq(gy_nvrtc_compile_text(&code, &n, "text", "a", 90, &err), GANTRY_E_IO);
    ck_assert_msg(strstr(err.text, "set XDG_CACHE_HOME or HOME"), "%s", err.text);
    folder_remove();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nvrtc_note");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, the_cache_is_asked_first);
    tcase_add_test(tests, another_library_has_other_code);
    tcase_add_test(tests, a_library_that_is_replaced);
    tcase_add_test(tests, damaged_notes_are_made_again);
    tcase_add_test(tests, without_a_cache);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
