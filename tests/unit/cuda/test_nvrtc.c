/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling CUDA C++ with the NVRTC of this computer, and what is kept of it. What is compiled is looked at, never run.
 * Without NVRTC only the scan for includes is tested, and the program says that it skipped. */
#include "backends/cuda/usercode/compile.h"
#include "backends/cuda/usercode/entries.h"
#include "backends/cuda/usercode/includes.h"
#include "base/memory.h"
#include "folder.h"
#include "suite.h"
#include "support/faults.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what a source includes ---- */

static uint64_t hash_of(const char *text, bool *known)
{
    uint64_t hash = 1;
    const char *const folders[] = { folder };
    *known = true;
    MUST(gy_includes_hash(&hash, known, folder_path("a.cu"), text, strlen(text), folders, 1, MUST_ERR));
    return hash;
}

/* True if the hash of a source notices that a file of this name changes. */
static bool notices(const char *text, const char *file)
{
    bool known;
    folder_write(file, "1\n");
    uint64_t before = hash_of(text, &known), again = hash_of(text, &known);
    ck_assert(known && before == again);
    folder_write(file, "2\n");
    uint64_t after = hash_of(text, &known);
    unlink(folder_path(file));
    return before != after;
}

START_TEST(includes_are_found)
{
    folder_make();
    ck_assert_int_eq(mkdir(folder_path("sub"), 0700), 0);
    ck_assert(notices("#include \"h.h\"\n", "h.h"));
    ck_assert(notices("#include <h.h>\n", "h.h"));
    ck_assert(notices("  #  include\t\"sub/../h.h\"\n", "h.h"));
    ck_assert(notices("#inc\\\nlude \"h\\\n.h\"\n", "h.h"));
    ck_assert(notices("#if 0\n#include \"h.h\"\n#endif\n", "h.h"));
    ck_assert(notices("/* */ #include \"h.h\"\n", "h.h"));
    ck_assert(!notices("#include \"h.h\"\n", "other.h"));
    ck_assert(!notices("// this does not include anything\nint including, my_include;\n", "h.h"));
    folder_write("outer.h", "#include \"sub/inner.h\"\n");
    folder_write("sub/inner.h", "#include \"../outer.h\"\n#include \"leaf.h\"\n"); /* a circle; and beside itself */
    ck_assert(notices("#include \"outer.h\"\n", "sub/leaf.h"));
    ck_assert(notices("#include \"outer.h\"\n", "leaf.h")); /* could be meant, too */
    folder_remove();
}
END_TEST

/* A file that is not there counts by not being there. */
START_TEST(a_file_that_appears)
{
    bool known;
    folder_make();
    uint64_t before = hash_of("#include \"h.h\"\n", &known);
    folder_write("h.h", "");
    ck_assert(hash_of("#include \"h.h\"\n", &known) != before);
    folder_remove();
}
END_TEST

START_TEST(includes_that_nobody_knows)
{
    static const char *const texts[] = { "#define H \"h.h\"\n#include H\n", "#if __has_include(\"h.h\")\n#endif\n",
                                         "#include_next <h.h>\n", "#include /* */ \"h.h\"\n", "%:include H\n" };
    bool known;
    folder_make();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        hash_of(texts[i], &known);
        ck_assert_msg(!known, "%s", texts[i]);
    }
    folder_remove();
}
END_TEST

/* ---- compiling ---- */

static int compilations;
static __typeof__(((gy_nvrtc *)NULL)->nvrtcCompileProgram) really_compile;

static int count_and_compile(struct _nvrtcProgram *program, int count, const char *const *options)
{
    compilations++;
    return really_compile(program, count, options);
}

static gy_nvrtc opened(void)
{
    gy_nvrtc n;
    MUST(gy_nvrtc_open(&n, MUST_ERR));
    really_compile = n.nvrtcCompileProgram;
    n.nvrtcCompileProgram = count_and_compile;
    return n;
}

static const char scale_cu[] =
    "#include \"factor.h\"\n"
    "#ifndef GANTRY_NVRTC\n"
    "#error who compiles this?\n"
    "#endif\n"
    "template <class T> __device__ T twice(T x) { if constexpr (sizeof(T) > 1) return x + x; else return x; }\n"
    "extern \"C\" __global__ void scale(const float *x, float *y, long long n)\n"
    "{\n"
    "    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n"
    "    if (i < n) y[i] = FACTOR * x[i] + twice(y[i]);\n"
    "}\n"
    "__global__ void other(int *p) { *p = 1; }\n";

static void write_scale(void)
{
    folder_make();
    folder_write("scale.cu", scale_cu);
    folder_write("factor.h", "#define FACTOR 3.f\n");
}

static gy_code compile(const gy_nvrtc *n, const char *name, int capability)
{
    gy_code code = { 0 };
    MUST(gy_nvrtc_compile(&code, n, folder_path(name), folder, NULL, capability, MUST_ERR));
    ck_assert_int_eq(code.at[code.bytes], 0);
    return code;
}

static bool add_name(void *context, const char *name, size_t length)
{
    char *all = context;
    strcat(strncat(all, name, length), " ");
    return true;
}

static bool is_one(const char *names, const char *name)
{
    return strstr(names, name) != NULL;
}

START_TEST(cubins)
{
    gy_nvrtc n = opened();
    write_scale();
    gy_code code = compile(&n, "scale.cu", 90);
    Elf64_Ehdr head;
    char names[512] = "";
    memcpy(&head, code.at, sizeof head);
    ck_assert(memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_machine == 190); /* EM_CUDA */
    gy_entries_each(code.at, code.bytes, add_name, names);
    ck_assert_msg(is_one(names, "scale ") && is_one(names, "_Z5otherPi "), "%s", names);
    gy_free(code.at);
    folder_remove();
}
END_TEST

/* For a device that NVRTC does not know: PTX of the newest that it does, which the driver compiles. */
START_TEST(ptx_for_what_is_newer)
{
    gy_nvrtc n = opened();
    char names[512] = "", target[64];
    int known[64], count = 0, newest = 0;
    ck_assert_int_eq(n.nvrtcGetNumSupportedArchs(&count), 0);
    ck_assert_int_le(count, 64);
    ck_assert_int_eq(n.nvrtcGetSupportedArchs(known), 0);
    for (int i = 0; i < count; i++)
        newest = known[i] > newest ? known[i] : newest;
    write_scale();
    gy_code code = compile(&n, "scale.cu", 999);
    snprintf(target, sizeof target, ".target sm_%d", newest);
    ck_assert_msg(strstr(code.at, ".visible .entry scale(") && strstr(code.at, target), "%s", code.at);
    ck_assert_ptr_null(strstr(code.at, "fma.rn.f32")); /* no contraction */
    ck_assert_ptr_nonnull(strstr(code.at, "mul.rn.f32"));
    ck_assert_ptr_nonnull(strstr(code.at, ".loc")); /* lines, for tools */
    gy_entries_each(code.at, code.bytes, add_name, names);
    ck_assert_msg(is_one(names, "scale ") && is_one(names, "_Z5otherPi "), "%s", names);
    gy_free(code.at);
    gantry_error err = { 0 };
    ck_assert_int_eq(gy_nvrtc_compile(&code, &n, folder_path("scale.cu"), folder, NULL, 20, &err),
                     GANTRY_E_UNSUPPORTED);
    ck_assert_msg(strstr(err.text, "the device has 2.0: "), "%s", err.text);
    folder_remove();
}
END_TEST

/* Compiles and says how often NVRTC was asked to. */
static int times(const gy_nvrtc *n, const char *name, int capability)
{
    compilations = 0;
    gy_code code = compile(n, name, capability);
    gy_free(code.at);
    return compilations;
}

START_TEST(nothing_is_compiled_twice)
{
    gy_nvrtc n = opened();
    write_scale();
    gy_code first = compile(&n, "scale.cu", 90);
    compilations = 0;
    gy_code second = compile(&n, "scale.cu", 90);
    ck_assert_int_eq(compilations, 0);
    ck_assert(first.bytes == second.bytes && memcmp(first.at, second.at, first.bytes) == 0);
    gy_free(first.at);
    gy_free(second.at);
    folder_write("unrelated.h", "#define FACTOR 7.f\n");
    ck_assert_int_eq(times(&n, "scale.cu", 90), 0);
    ck_assert_int_eq(times(&n, "scale.cu", 80), 1); /* another device */
    ck_assert_int_eq(times(&n, "scale.cu", 80), 0);
    folder_write("factor.h", "#include \"five.h\"\n#define FACTOR FIVE\n");
    folder_write("five.h", "#define FIVE 5.f\n");
    ck_assert_int_eq(times(&n, "scale.cu", 90), 1); /* another text of an include */
    ck_assert_int_eq(times(&n, "scale.cu", 90), 0);
    folder_write("five.h", "#define FIVE 5.5f\n");
    ck_assert_int_eq(times(&n, "scale.cu", 90), 1); /* of an include of an include */
    n.minor++;
    ck_assert_int_eq(times(&n, "scale.cu", 90), 1); /* another compiler */
    folder_remove();
}
END_TEST

START_TEST(names_by_macros_are_compiled_every_time)
{
    gy_nvrtc n = opened();
    char path[256];
    folder_make();
    folder_write("a.cu", "#define H \"h.h\"\n#include H\nextern \"C\" __global__ void f(int *p) { *p = X; }\n");
    folder_write("h.h", "#define X 1\n");
    ck_assert_int_eq(times(&n, "a.cu", 90), 1);
    ck_assert_int_eq(times(&n, "a.cu", 90), 1);
    ck_assert_int_eq(folder_cached(".cubin", path, sizeof path), 0);
    folder_remove();
}
END_TEST

/* A cubin under the name of another is not what was asked for. */
START_TEST(entries_are_not_mixed_up)
{
    gy_nvrtc n = opened();
    char first[256], second[256], command[600];
    write_scale();
    ck_assert_int_eq(times(&n, "scale.cu", 90), 1);
    ck_assert_int_eq(folder_cached(".cubin", first, sizeof first), 1);
    snprintf(command, sizeof command, "mv %s %s", first, folder_path("kept"));
    ck_assert_int_eq(system(command), 0);
    folder_write("factor.h", "#define FACTOR 4.f\n");
    ck_assert_int_eq(times(&n, "scale.cu", 90), 1);
    ck_assert_int_eq(folder_cached(".cubin", second, sizeof second), 1);
    snprintf(command, sizeof command, "mv %s %s", folder_path("kept"), second);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(times(&n, "scale.cu", 90), 1);
    folder_remove();
}
END_TEST

static int change_and_compile(struct _nvrtcProgram *program, int count, const char *const *options)
{
    folder_write("factor.h", "#define FACTOR 5.f\n");
    return count_and_compile(program, count, options);
}

/* Somebody saves a file while it is compiled: the code is not that of the text which was read before. */
START_TEST(sources_that_change_meanwhile_are_not_kept)
{
    gy_nvrtc n = opened();
    char path[256];
    write_scale();
    n.nvrtcCompileProgram = change_and_compile;
    ck_assert_int_eq(times(&n, "scale.cu", 90), 1);
    ck_assert_int_eq(folder_cached(".cubin", path, sizeof path), 0);
    n.nvrtcCompileProgram = count_and_compile;
    ck_assert_int_eq(times(&n, "scale.cu", 90), 1);
    ck_assert_int_eq(times(&n, "scale.cu", 90), 0);
    folder_remove();
}
END_TEST

START_TEST(pipes_are_not_read)
{
    gy_nvrtc n = opened();
    char path[256];
    gy_code code = { 0 };
    gantry_error err = { 0 };
    write_scale();
    ck_assert_int_eq(times(&n, "scale.cu", 90), 1);
    ck_assert_int_eq(folder_cached(".cubin", path, sizeof path), 1);
    ck_assert(unlink(path) == 0 && mkfifo(path, 0600) == 0); /* in place of what was kept */
    ck_assert_int_eq(times(&n, "scale.cu", 90), 1);
    ck_assert_int_eq(times(&n, "scale.cu", 90), 0);
    ck_assert_int_eq(mkfifo(folder_path("pipe.cu"), 0600), 0);
    ck_assert_int_eq(gy_nvrtc_compile(&code, &n, folder_path("pipe.cu"), folder, NULL, 90, &err), GANTRY_E_IO);
    ck_assert_msg(strstr(err.text, "/pipe.cu is not a regular file but a pipe"), "%s", err.text);
    ck_assert(unlink(folder_path("factor.h")) == 0 && mkfifo(folder_path("factor.h"), 0600) == 0);
    ck_assert_int_eq(gy_nvrtc_compile(&code, &n, folder_path("scale.cu"), folder, NULL, 90, &err), GANTRY_E_IO);
    ck_assert_msg(strstr(err.text, "/factor.h is not a regular file but a pipe"), "%s", err.text);
    folder_write("zero.cu", "#include \"/dev/zero\"\n");
    ck_assert_int_eq(gy_nvrtc_compile(&code, &n, folder_path("zero.cu"), folder, NULL, 90, &err), GANTRY_E_IO);
    ck_assert_msg(strstr(err.text, "/dev/zero is not a regular file but a device"), "%s", err.text);
    folder_remove();
}
END_TEST

static void damage(const char *path, long at, bool cut)
{
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    long offset = at < 0 ? (long)info.st_size + at : at;
    if (cut) {
        ck_assert_int_eq(truncate(path, offset), 0);
        return;
    }
    FILE *file = fopen(path, "r+");
    fseek(file, offset, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, offset, SEEK_SET);
    fputc(byte ^ 4, file);
    fclose(file);
}

START_TEST(damaged_files_are_made_again)
{
    static const struct {
        long at;
        bool cut;
    } ways[] = {
        { 0, true }, { 100, true }, { -1, true }, { -30, true }, { 200, false }, { -1, false }, { -12, false }
    };
    gy_nvrtc n = opened();
    char path[256];
    write_scale();
    ck_assert_int_eq(times(&n, "scale.cu", 90), 1);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        ck_assert_int_eq(folder_cached(".cubin", path, sizeof path), 1);
        damage(path, ways[i].at, ways[i].cut);
        ck_assert_int_eq(times(&n, "scale.cu", 90), 1);
        ck_assert_int_eq(times(&n, "scale.cu", 90), 0);
    }
    ck_assert_int_eq(chmod(path, 0666), 0); /* somebody else may have written to it */
    ck_assert_int_eq(times(&n, "scale.cu", 90), 1);
    ck_assert_int_eq(folder_cached(".tmp", path, sizeof path), 0);
    folder_remove();
}
END_TEST

/* ---- what goes wrong ---- */

static void expect_failure(const gy_nvrtc *n, const char *name, gantry_status status, const char *begin,
                           const char *within)
{
    gy_code code = { 0 };
    gantry_error err = { 0 };
    char start[256], path[256];
    snprintf(start, sizeof start, begin, folder);
    ck_assert_int_eq(gy_nvrtc_compile(&code, n, folder_path(name), folder, NULL, 90, &err), status);
    ck_assert_msg(strncmp(err.text, start, strlen(start)) == 0, "%s\ndoes not begin with\n%s", err.text, start);
    ck_assert_msg(strstr(err.text, within) != NULL, "%s\ndoes not contain\n%s", err.text, within);
    ck_assert(!strchr(err.text, '\n') && !strchr(err.text, '^') && !code.at);
    ck_assert_int_eq(folder_cached(".cubin", path, sizeof path), 0);
}

START_TEST(mistakes_are_told)
{
    gy_nvrtc n = opened();
    folder_make();
    folder_write("broken.cu", "extern \"C\" __global__ void f(int *p)\n{\n    *p = ;\n}\n");
    folder_write("lost.cu", "#include \"nowhere.h\"\n");
    expect_failure(&n, "broken.cu", GANTRY_E_GRAPH,
                   "%s/broken.cu does not compile: ", "broken.cu(3): error: expected an expression");
    expect_failure(&n, "lost.cu", GANTRY_E_GRAPH, "%s/lost.cu does not compile: ", "nowhere.h");
    expect_failure(&n, "gone.cu", GANTRY_E_IO, "cannot open %s/gone.cu", "No such file");
    folder_write("broken.cu", "int x;\n");
    n.nvrtcCompileProgram = NULL; /* not reached: the cache is refused first */
    ck_assert_int_eq(chmod(folder_path("cache/gantry"), 0777), 0);
    expect_failure(&n, "broken.cu", GANTRY_E_IO, "the cache folder %s/cache/gantry", "only you can write to");
    folder_remove();
}
END_TEST

/* Every allocation fails once, with a cache and without: out of memory or, where the cache cannot be read, as ever. */
START_TEST(out_of_memory)
{
    gy_nvrtc n = opened();
    char path[256];
    int failures = 0;
    write_scale();
    for (int kept = 0; kept < 2; kept++) {
        bool hit = true;
        for (int k = 0; hit; k++) {
            gy_code code = { 0 };
            gantry_error err = { 0 };
            if (!kept && folder_cached(".cubin", path, sizeof path))
                unlink(path);
            const char *source = folder_path("scale.cu");
            faults_after(k);
            gantry_status status = gy_nvrtc_compile(&code, &n, source, folder, NULL, 90, &err);
            hit = faults_off();
            ck_assert_msg(status == GANTRY_OK || (hit && status == GANTRY_E_NOMEM), "allocation %d: %s", k, err.text);
            ck_assert(!code.at == (status != GANTRY_OK));
            gy_free(code.at);
            failures += status != GANTRY_OK;
        }
    }
    ck_assert_int_gt(failures, 30);
    folder_remove();
}
END_TEST

/* Macros and folders of the graph; other flags are not for NVRTC. */
START_TEST(words_of_the_graph)
{
    static const char *const flags[] = { "-O3", "-DFACTOR=2", "-march=native", NULL }, *none[] = { NULL };
    gy_nvrtc n = opened();
    gy_code code = { 0 };
    gantry_error err = { 0 };
    folder_make();
    char inside[256];
    snprintf(inside, sizeof inside, "%s", folder_path("deep"));
    ck_assert_int_eq(mkdir(inside, 0700), 0);
    folder_write("deep/far.h", "#define FAR 1\n");
    folder_write("words.cu",
                 "#include \"far.h\"\nextern \"C\" __global__ void f(int *p)\n{\n    *p = FACTOR * FAR;\n}\n");
    const char *const include[] = { inside, NULL };
    gy_code_build build = { flags, include, none }, without = { none, include, none }, nowhere = { flags, none, none };
    MUST(gy_nvrtc_compile(&code, &n, folder_path("words.cu"), folder, &build, 90, MUST_ERR));
    gy_free(code.at);
    ck_assert_int_eq(gy_nvrtc_compile(&code, &n, folder_path("words.cu"), folder, &without, 90, &err), GANTRY_E_GRAPH);
    ck_assert_msg(strstr(err.text, "FACTOR"), "%s", err.text);
    ck_assert_int_eq(gy_nvrtc_compile(&code, &n, folder_path("words.cu"), folder, &nowhere, 90, &err), GANTRY_E_GRAPH);
    ck_assert_msg(strstr(err.text, "far.h"), "%s", err.text);
    folder_remove();
}
END_TEST

/* Headers of the toolkit, where they are. */
START_TEST(toolkit_headers)
{
    gy_nvrtc n = opened();
    folder_make();
    folder_write("half.cu",
                 "#include <cuda_fp16.h>\nextern \"C\" __global__ void f(__half *p) { *p = __float2half(1); }\n");
    gy_code code = { 0 };
    gantry_error err = { 0 };
    gantry_status status = gy_nvrtc_compile(&code, &n, folder_path("half.cu"), folder, NULL, 90, &err);
    if (status) {
        ck_assert_msg(strstr(err.text, "cuda_fp16.h"), "%s", err.text);
        printf("skipped: the headers of the toolkit are not here\n");
    }
    gy_free(code.at);
    folder_remove();
}
END_TEST

int main(void)
{
    bool here = have_nvrtc();
    Suite *suite = suite_create("nvrtc");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, includes_are_found);
    tcase_add_test(tests, a_file_that_appears);
    tcase_add_test(tests, includes_that_nobody_knows);
    if (here) {
        tcase_add_test(tests, cubins);
        tcase_add_test(tests, ptx_for_what_is_newer);
        tcase_add_test(tests, nothing_is_compiled_twice);
        tcase_add_test(tests, names_by_macros_are_compiled_every_time);
        tcase_add_test(tests, damaged_files_are_made_again);
        tcase_add_test(tests, entries_are_not_mixed_up);
        tcase_add_test(tests, sources_that_change_meanwhile_are_not_kept);
        tcase_add_test(tests, pipes_are_not_read);
        tcase_add_test(tests, mistakes_are_told);
        tcase_add_test(tests, out_of_memory);
        tcase_add_test(tests, toolkit_headers);
        tcase_add_test(tests, words_of_the_graph);
    }
    suite_add_tcase(suite, tests);
    int failed = run_suite(suite);
    if (!here)
        printf("skipped: there is no libnvrtc\n");
    return failed || here ? failed : SKIPPED;
}
