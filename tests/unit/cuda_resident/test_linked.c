/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formulas and code of users as functions for workers: NVRTC takes what is printed of them, and nvlink joins it to the
 * code of the resident kernel, within the registers that two workers of a multiprocessor have. What comes out runs on
 * GPUs only (test_gpu_resident).
 */
#include "backends/cuda/resident/resident.h"

#include "backends/cuda/usercode/compile.h"
#include "base/memory.h"
#include "maths/maths.h"
#include "unit/cuda/folder.h"
#include "unit/cuda/suite.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of all sorts: spread regions, numbers, 16 bits, several results, reductions of all, of rows, of columns, and where.
 */
static const char formulas[] =
    "{\"gantry\":1,\"buffers\":{"
    "\"a\":{\"dtype\":\"f64\",\"shape\":[40,30],\"init\":\"iota\"},\"row\":{\"dtype\":\"f64\",\"shape\":[1,30],"
    "\"init\":1},"
    "\"column\":{\"dtype\":\"f64\",\"shape\":[40,1],\"init\":2},\"b\":{\"dtype\":\"f64\",\"shape\":[40,30]},"
    "\"h\":{\"dtype\":\"bf16\",\"shape\":[40,30]},\"i\":{\"dtype\":\"i32\",\"shape\":[40,30]},"
    "\"sum\":{\"dtype\":\"f64\",\"shape\":[1]},\"rows\":{\"dtype\":\"f32\",\"shape\":[40]},"
    "\"columns\":{\"dtype\":\"f64\",\"shape\":[30]},\"most\":{\"dtype\":\"f64\",\"shape\":[40]},"
    "\"where\":{\"dtype\":\"i64\",\"shape\":[40]}},"
    "\"nodes\":["
    "{\"id\":\"spread\",\"map\":{\"y\":\"sqrt(x) * s + r / "
    "c\"},\"args\":{\"x\":\"a\",\"s\":0.5,\"r\":\"row\",\"c\":\"column\",\"y\":\"b\"}},"
    "{\"id\":\"two\",\"map\":{\"h\":\"exp(x)\",\"i\":\"i32(floor(x))\"},\"args\":{\"x\":\"a\",\"h\":\"h\",\"i\":\"i\"}}"
    ","
    "{\"id\":\"all\",\"reduce\":{\"n\":\"sum(square(x - y))\"},\"args\":{\"x\":\"a\",\"y\":\"b\",\"n\":\"sum\"}},"
    "{\"id\":\"rows\",\"reduce\":{\"n\":\"mean(x, 1)\"},\"args\":{\"x\":\"h\",\"n\":\"rows\"}},"
    "{\"id\":\"columns\",\"reduce\":{\"n\":\"sum(x, 0)\"},\"args\":{\"x\":\"a\",\"n\":\"columns\"}},"
    "{\"id\":\"where\",\"reduce\":{\"m\":\"max(x, 1)\",\"w\":\"argmax(x, "
    "1)\"},\"args\":{\"x\":\"a\",\"m\":\"most\",\"w\":\"where\"}}"
    "]}";

static gantry_graph *graph_of(const char *text)
{
    gantry_graph *g = NULL;
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    return g;
}

/* The text for all of its formulas; *count: how many there are. */
static char *print(const gantry_graph *g, unsigned *count)
{
    gy_text text = { 0 };
    uint32_t *number = gy_calloc(g->kernels.count + 1, sizeof *number);
    *count = 0;
    for (uint32_t k = 0; k < g->kernels.count; k++)
        if (gy_kernel_for_workers(&g->kernels.at[k]))
            number[k] = GY_RESIDENT_FUNCTIONS + 2 * (*count)++;
    gy_resident_print_linked(&text, g, number);
    gy_free(number);
    return gy_text_take(&text, NULL);
}

static void write_file(const char *path, const char *at, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    ck_assert(f && fwrite(at, 1, bytes, f) == bytes && fclose(f) == 0);
}

START_TEST(each_has_its_function)
{
    unsigned count;
    gantry_graph *g = graph_of(formulas);
    char *text = print(g, &count);
    ck_assert_uint_eq(count, 6);
    for (unsigned i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "case %u:\n        return gy_call<f%u::f%u>::of(word);", 2 * i, 2 * i, 2 * i);
        ck_assert_msg(strstr(text, name) != NULL, "no %s in\n%s", name, text);
        snprintf(name, sizeof name, "case %u:\n        return gy_call<f%u::f%u_finish>::of(word);", 2 * i + 1, 2 * i,
                 2 * i);
        ck_assert_int_eq(strstr(text, name) != NULL, i >= 2); /* reductions have two */
    }
    gy_free(text);
    gantry_graph_free(g);
}
END_TEST

/* Eight results, each with the place of an element: the most that a reduction keeps. */
#define PLACE(name) "\"" name "\":{\"dtype\":\"i64\",\"shape\":[40]},"
static const char most[] =
    "{\"gantry\":1,\"buffers\":{" PLACE("a") PLACE("b") PLACE("c") PLACE("d") PLACE("e") PLACE("f") PLACE("g") PLACE(
        "h") "\"x\":{\"dtype\":\"f64\",\"shape\":[40,30],\"init\":1}},\"nodes\":[{\"id\":\"n\",\"reduce\":{\"a\":"
             "\"argmax(x, "
             "1)\",\"b\":"
             "\"argmin(x, 1)\",\"c\":\"argmax(2 * x, 1)\",\"d\":\"argmin(2 * x, 1)\",\"e\":\"argmax(3 * x, 1)\",\"f\":"
             "\"argmin(3 * x, 1)\",\"g\":\"argmax(4 * x, 1)\",\"h\":\"argmin(4 * x, "
             "1)\"},\"args\":{\"x\":\"x\",\"a\":\"a\",\"b\":"
             "\"b\",\"c\":\"c\",\"d\":\"d\",\"e\":\"e\",\"f\":\"f\",\"g\":\"g\",\"h\":\"h\"}}]}";

static void check_rooms(const char *text, size_t *largest)
{
    gantry_graph *g = graph_of(text);
    for (uint32_t k = 0; k < g->kernels.count; k++) {
        const gy_maths_program *p = g->kernels.at[k].program;
        if (!p || !p->maths->reduces)
            continue;
        size_t one = GY_MATHS_BLOCK * gy_maths_total_bytes(p->maths), room = gy_resident_room(&g->kernels.at[k]);
        ck_assert_uint_ge(room, 256 + (size_t)gy_maths_most_run(p->maths) * one); /* behind names of CUDA */
        *largest = room > *largest ? room : *largest;
    }
    gantry_graph_free(g);
}

/* A block has totals of as many segments as a launch may say, and two workers of a multiprocessor of 100 KiB have room
 * for those and for their packets, whatever the formulas are. */
START_TEST(there_is_room_for_totals)
{
    enum { PACKETS = 4096, KEPT_BY_DRIVER = 1024 };
    size_t largest = 0;
    check_rooms(formulas, &largest);
    check_rooms(most, &largest);
    ck_assert_uint_eq(largest, 256 + 32768);
    ck_assert_uint_le(2 * (largest + PACKETS + KEPT_BY_DRIVER), 100 * 1024);
}
END_TEST

START_TEST(they_are_linked)
{
    unsigned count;
    gy_nvrtc nvrtc;
    gy_code code = { 0 };
    gantry_error err = { 0 };
    if (gy_nvrtc_open(&nvrtc, &err)) {
        printf("skipped: %s\n", err.text);
        return;
    }
    gantry_graph *g = graph_of(formulas);
    char *text = print(g, &count);
    gantry_status status = gy_nvrtc_compile_to_link(&code, &nvrtc, "formulas", text, 90, &err);
    ck_assert_msg(status == GANTRY_OK, "%.2000s", err.text); /* the text would be too long for Check */
    write_file(OUTPUT "/formulas.cubin", code.at, code.bytes);
    ck_assert_int_eq(system(NVLINK " --arch=sm_90 -o " OUTPUT "/linked.cubin " OPEN " " OUTPUT "/formulas.cubin"), 0);
    gy_free(code.at);
    gy_free(text);
    gantry_graph_free(g);
}
END_TEST

/* ---- code of users ---- */

/* Macros as users may have them, shared memory, a barrier, numbers of all sizes, and an entry that another has, too. */
static const char own_text[] =
    "#define T 2\n#define word 9\n#define F int\n"
    "static __device__ float twice(float x) { return T * x; }\n"
    "extern \"C\" __global__ void __launch_bounds__(256) own(const float *__restrict__ x, float *y, const long long n, "
    "float a, unsigned char c, short d)\n{\n"
    "    __shared__ float row[256];\n"
    "    long long i = ((long long)blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;\n"
    "    row[threadIdx.x] = i < n ? x[i] : 0;\n    __syncthreads();\n"
    "    if (i < n)\n        y[i] = a * twice(row[threadIdx.x ^ 1]) + c + d + gridDim.z + blockIdx.z;\n}\n";
static const char own_cu[] = "#include \"own.h\"\n"
                             "extern \"C\" __global__ void own(element *x, double *y, long long n)\n"
                             "{\n    long long i = blockIdx.x * 256 + threadIdx.x;\n"
                             "    if (i < n)\n        y[i] = WIDTH * x[i];\n}\n";
static const char graph_of_users[] =
    "{\"gantry\":1,\"kernels\":{\"file\":{\"cuda\":\"%s\",\"entry\":\"own\",\"compile\":{\"flags\":[\"-DWIDTH=4\"]},"
    "\"resident\":true,\"args\":[{\"name\":\"x\",\"access\":\"read\",\"dtype\":\"f32\"},"
    "{\"name\":\"y\",\"access\":\"write\",\"dtype\":\"f64\"},{\"name\":\"n\",\"type\":\"i64\",\"default\":\"x.size\"}],"
    "\"launch\":{\"grid\":[\"ceil_div(n, 256)\"],\"block\":[256]}},"
    "\"own\":{\"cuda\":\"text.cu\",\"resident\":true,\"args\":[{\"name\":\"x\",\"access\":\"read\",\"dtype\":\"f32\"},"
    "{\"name\":\"y\",\"access\":\"write\",\"dtype\":\"f32\"},{\"name\":\"n\",\"type\":\"i64\",\"default\":\"x.size\"},"
    "{\"name\":\"a\",\"type\":\"f32\"},{\"name\":\"c\",\"type\":\"u8\"},{\"name\":\"d\",\"type\":\"i32\"}],"
    "\"launch\":{\"grid\":[1,2],\"block\":[256]}}},"
    "\"buffers\":{\"x\":{\"dtype\":\"f32\",\"shape\":[64],\"init\":1},\"y\":{\"dtype\":\"f64\",\"shape\":[64]},"
    "\"z\":{\"dtype\":\"f32\",\"shape\":[64]}},"
    "\"nodes\":[{\"id\":\"f\",\"kernel\":\"file\",\"args\":{\"x\":\"x\",\"y\":\"y\"}},"
    "{\"id\":\"m\",\"map\":{\"z\":\"x + 1\"},\"args\":{\"x\":\"x\",\"z\":\"z\"}}]}";

static void add_own(gantry_graph *g, const char *source)
{
    static const gantry_kernel_arg args[] = {
        { .name = "x", .access = GANTRY_READ, .dtypes = GANTRY_DTYPE_BIT(GANTRY_F32) },
        { .name = "y", .access = GANTRY_WRITE, .dtypes = GANTRY_DTYPE_BIT(GANTRY_F32) },
        { .name = "n", .scalar = 1, .optional = 1 },
        { .name = "a", .scalar = 1 },
        { .name = "c", .scalar = 1 },
        { .name = "d", .scalar = 1 }
    };
    static const gantry_dtype types[] = { GANTRY_F32, GANTRY_F32, GANTRY_I64, GANTRY_F32, GANTRY_U8, GANTRY_I32 };
    static const gantry_kernel own = { .struct_size = sizeof own,
                                       .name = "own",
                                       .summary = "",
                                       GANTRY_KERNEL_ARGS(args),
                                       .flags = GANTRY_KERNEL_NO_CPU | GANTRY_KERNEL_RESIDENT };
    gantry_cuda_code code = GANTRY_CUDA_CODE_INIT;
    code.source = source;
    code.grid[0] = code.block[0] = "256";
    code.types = types;
    gantry_graph_add_cuda_kernel(g, &own, &code);
}

/* With kernels of two files, whose entries have one name, and a formula. */
static gantry_graph *users(const char *file)
{
    char text[sizeof graph_of_users + 32];
    gantry_graph *g = NULL;
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    options.allow_code = 1;
    snprintf(text, sizeof text, graph_of_users, file);
    MUST(gantry_graph_parse(&g, text, strlen(text), "users.json", folder, &options, MUST_ERR));
    return g;
}

/* A case for each kernel of users, beside that of the formula. */
START_TEST(users_are_called)
{
    unsigned count;
    folder_make();
    folder_write("own.cu", own_cu);
    folder_write("text.cu", own_text);
    gantry_graph *g = users("own.cu");
    char *text = print(g, &count);
    ck_assert_uint_eq(count, 3);
    for (unsigned i = 0, found = 0; i < count; i++) {
        char name[80];
        snprintf(name, sizeof name, "    case %u:\n        return gy_user_%u(word);\n", 2 * i, 2 * i);
        found += strstr(text, name) != NULL;
        ck_assert(i < count - 1 || found == 2);
    }
    gy_free(text);
    gantry_graph_free(g);
    folder_remove();
}
END_TEST

/* The cubin of each of the graph's kernels that are users', beside that of what calls them all; returns how many. */
static int compile_users(const gantry_graph *g, const gy_nvrtc *nvrtc, char *files, size_t size)
{
    int count = 0;
    uint32_t number = GY_RESIDENT_FUNCTIONS;
    for (uint32_t k = 0; k < g->kernels.count; k++) {
        gy_code code = { 0 };
        char path[200];
        if (!gy_kernel_for_workers(&g->kernels.at[k]))
            continue;
        if (!g->kernels.at[k].program) {
            MUST(gy_resident_compile_user(&code, nvrtc, g, k, number, 90, MUST_ERR));
            snprintf(path, sizeof path, OUTPUT "/user%d.cubin", count++);
            write_file(path, code.at, code.bytes);
            snprintf(files + strlen(files), size - strlen(files), " %s", path);
            gy_free(code.at);
        }
        number += 2;
    }
    return count;
}

START_TEST(users_are_linked)
{
    unsigned count;
    gy_nvrtc nvrtc;
    gy_code code = { 0 };
    gantry_error err = { 0 };
    char command[2048] = NVLINK " --arch=sm_90 -o " OUTPUT "/users.cubin " OPEN " " OUTPUT "/callers.cubin";
    if (gy_nvrtc_open(&nvrtc, &err)) {
        printf("skipped: %s\n", err.text);
        return;
    }
    folder_make();
    folder_write("own.cu", own_cu);
    folder_write("text.cu", own_text);
    folder_write("own.h", "typedef float element;\n");
    gantry_graph *g = users("own.cu");
    ck_assert_int_eq(compile_users(g, &nvrtc, command, sizeof command), 2);
    char *text = print(g, &count);
    MUST(gy_nvrtc_compile_to_link(&code, &nvrtc, "formulas", text, 90, MUST_ERR));
    write_file(OUTPUT "/callers.cubin", code.at, code.bytes);
    ck_assert_int_eq(system(command), 0);
    gy_free(code.at);
    gy_free(text);
    gantry_graph_free(g);
    folder_remove();
}
END_TEST

/* CUDA C++ for a compiler of C++: one thread after the other. */
static const char host_head[] =
    "#include <cstdio>\n#include <cstring>\nusing std::memcpy;\n#define __device__\n#define __shared__\n"
    "#define __global__\n#define __launch_bounds__(...)\n#define __forceinline__ inline\n#define __noinline__\n"
    "#define __align__(n) __attribute__((aligned(n)))\n#define __builtin_assume(x) (void)(x)\n"
    "struct extents { unsigned x, y, z; };\ninline extents threadIdx, blockDim = { 256, 1, 1 };\n"
    "inline void __syncwarp() {}\ninline bool __isGlobal(const void *) { return true; }\n";
static const char spread_text[] =
    "extern \"C\" __global__ void own(const float *x, float *y, long long n, float a, unsigned char c, short d)\n{\n"
    "    long long i = ((long long)blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;\n"
    "    if (i < n && blockIdx.z == 0 && gridDim.z == 1 && gridDim.y == 2)\n        y[i] = a * x[i] + c + d;\n}\n";
static const char host_main[] =
    "unsigned char gy_room[512] __attribute__((aligned(16)));\n"
    "int main()\n{\n    enum { N = 1500 };\n    static float x[N], y[N];\n    float a = 0.5f;\n    int wrong = 0;\n"
    "    for (int i = 0; i < N; i++)\n        x[i] = i;\n"
    "    gy_word word[6] = { (gy_word)x, (gy_word)y, N, 0, 200, 0xFFFD };\n    memcpy(&word[3], &a, sizeof a);\n"
    "    for (unsigned block = 0; block < 6; block++)\n        for (threadIdx.x = 0; threadIdx.x < 256; "
    "threadIdx.x++)\n"
    "            gy_linked(0, word, block % 3, block / 3, 3, 2);\n"
    "    for (int i = 0; i < N; i++)\n        wrong += y[i] != 0.5f * i + 197;\n"
    "    return wrong != 0;\n}\n";

/* The texts as they are, carried out by this computer: each thread finds its block and its numbers. */
START_TEST(users_find_their_blocks)
{
    unsigned count;
    gy_text before = { 0 }, after = { 0 }, own = { 0 }, all = { 0 };
    gantry_graph *g = gantry_graph_new("own");
    add_own(g, spread_text);
    gy_resident_print_around(&before, &after, &g->kernels.at[0], GY_RESIDENT_FUNCTIONS);
    gy_text_printf(&own, "%s%s%s%s", host_head, before.at, spread_text, after.at);
    write_file(OUTPUT "/own.cc", own.at, own.length);
    char *text = print(g, &count);
    gy_text_printf(&all, "%s%s%s", host_head, text, host_main);
    write_file(OUTPUT "/callers.cc", all.at, all.length);
    ck_assert_int_eq(system(CXX " -std=c++17 -w -o " OUTPUT "/callers " OUTPUT "/callers.cc " OUTPUT
                                "/own.cc && " OUTPUT "/callers"),
                     0);
    gy_free(text);
    gy_text_free(&before);
    gy_text_free(&after);
    gy_text_free(&own);
    gy_text_free(&all);
    gantry_graph_free(g);
}
END_TEST

/* Lines are those of the user's file; a header that changes is seen. */
START_TEST(users_that_do_not_compile)
{
    gy_nvrtc nvrtc;
    gy_code code = { 0 };
    gantry_error err = { 0 };
    if (gy_nvrtc_open(&nvrtc, &err)) {
        printf("skipped: %s\n", err.text);
        return;
    }
    folder_make();
    folder_write("own.cu", own_cu);
    folder_write("text.cu", own_text);
    folder_write("own.h", "typedef float element;\n");
    gantry_graph *g = users("own.cu");
    MUST(gy_resident_compile_user(&code, &nvrtc, g, 0, GY_RESIDENT_FUNCTIONS, 90, MUST_ERR));
    gy_free(code.at);
    folder_write("own.h", "typedef struct { int x; } element;\n");
    ck_assert_int_eq(gy_resident_compile_user(&code, &nvrtc, g, 0, GY_RESIDENT_FUNCTIONS, 90, &err), GANTRY_E_GRAPH);
    ck_assert_msg(strstr(err.text, "own.cu(6): error") != NULL, "%s", err.text);
    gantry_graph_free(g);
    folder_remove();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("formulas for workers");
    TCase *c = tcase_create("linked");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, each_has_its_function);
    tcase_add_test(c, there_is_room_for_totals);
    tcase_add_test(c, they_are_linked);
    tcase_add_test(c, users_are_called);
    tcase_add_test(c, users_are_linked);
    tcase_add_test(c, users_find_their_blocks);
    tcase_add_test(c, users_that_do_not_compile);
    suite_add_tcase(s, c);
    return run_suite(s);
}
