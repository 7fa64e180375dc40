/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA C that is printed of formulas. Random ones, and one for each function and type, are compiled as C++ and run a
 * thread at a time, and have the elements that the host version gives; and NVRTC takes all of them, where there is one.
 *
 * test_maths_cuda CXX SHIM: the compiler and the header that makes C++ of CUDA C.
 */
#include "maths/steps.h"

#include "backends/cuda/usercode/compile.h"
#include "base/memory.h"
#include "support/run_suite.h"
#include <check.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FORMULAS = 120, ELEMENTS = 2500, MOST_BYTES = 8 * ELEMENTS };

static const gantry_dtype DTYPES[] = { GANTRY_F16, GANTRY_BF16, GANTRY_F32, GANTRY_F64,    GANTRY_I8,    GANTRY_U8,
                                       GANTRY_I32, GANTRY_U32,  GANTRY_I64, GANTRY_F8E4M3, GANTRY_F8E5M2 };
enum { TYPES = sizeof DTYPES / sizeof *DTYPES };

typedef struct formula {
    const gy_maths_program *program;
    char name[16];
} formula;

static gy_arena arena;
static formula formulas[FORMULAS];
static uint32_t state;
static const char *compiler, *shim;

static uint32_t draw(uint32_t most)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % most;
}

/* ---- formulas ---- */

/* "x0" has the dtype DTYPES[0] and so on; "w" has one element, and "s" is a number. */
static void add_expression(gy_text *to, uint32_t depth)
{
    static const char *const one[] = { "-",    "abs(", "square(", "floor(", "ceil(", "sqrt(", "rsqrt(",  "exp(",
                                       "log(", "sin(", "cos(",    "tanh(",  "erf(",  "f16(",  "bf16(",   "f32(",
                                       "f64(", "i8(",  "u8(",     "i32(",   "u32(",  "i64(",  "f8e4m3(", "f8e5m2(" };
    static const char *const two[] = { "+", "-", "*", "/", "==", "!=", "<", "<=", ">", ">=" };
    static const char *const leaf[] = { "s", "2", "0.1", "1e3", "w" };
    static const char *const call[] = { "min(", "max(", "pow(" };
    uint32_t kind = depth ? draw(8) : 7;
    if (kind < 3) {
        const char *begin = one[draw(sizeof one / sizeof *one)];
        gy_text_add(to, *begin == '-' ? "-(" : begin);
        add_expression(to, depth - 1);
        gy_text_add(to, ")");
    } else if (kind < 7) {
        gy_text_add(to, kind == 3 ? "select(" : kind == 4 ? call[draw(3)] : "(");
        add_expression(to, depth - 1);
        gy_text_add(to, kind > 4 ? two[draw(sizeof two / sizeof *two)] : ", ");
        add_expression(to, depth - 1);
        gy_text_add(to, kind == 3 ? ", " : "");
        if (kind == 3)
            add_expression(to, depth - 1);
        gy_text_add(to, ")");
    } else if (draw(3)) {
        gy_text_printf(to, "x%u", draw(TYPES));
    } else {
        gy_text_add(to, leaf[draw(5)]);
    }
}

static gy_maths_kind kind_of(const char *name)
{
    uint32_t number = (uint32_t)strtoul(name + 1, NULL, 10);
    if (*name == 's')
        return (gy_maths_kind){ .is_number = true, .dtype = GANTRY_F64 };
    return (gy_maths_kind){ .dtype = *name == 'w' ? GANTRY_F32 : DTYPES[number % TYPES] };
}

static void make_formula(formula *f, uint32_t i)
{
    gy_maths_kind kind[GY_MATHS_ARGS];
    gantry_error err;
    gy_maths *m = gy_arena_calloc(&arena, 1, sizeof *m);
    gy_text text = { 0 };
    const char *dtype = gantry_dtype_name(DTYPES[i % TYPES]);
    gy_text_printf(&text, "y%u = %s(", i % TYPES, dtype);
    add_expression(&text, 1 + i % 6);
    gy_text_printf(&text, i % 4 ? ")" : "); z%u = x%u + y%u", (i + 1) % TYPES, (i + 1) % TYPES, i % TYPES);
    bool is_whole = i % 4 == 0 && !gy_dtype_is_float(DTYPES[i % TYPES]) && !gy_dtype_is_float(DTYPES[(i + 1) % TYPES]);
    if (i % 4 == 0 && !is_whole) { /* the second result would need a cast */
        text.length = (size_t)(strchr(text.at, ';') - text.at);
        text.at[text.length] = '\0';
    }
    ck_assert_msg(gy_maths_add_all(m, &arena, text.at, GANTRY_E_GRAPH, NULL, &err) == GANTRY_OK, "%s", err.text);
    for (uint32_t k = 0; k < m->args; k++)
        kind[k] = kind_of(m->arg[k]);
    gantry_status status = gy_maths_make_program(&f->program, &arena, m, kind, GANTRY_E_GRAPH, NULL, &err);
    ck_assert_msg(status == GANTRY_OK, "%s: %s", text.at, err.text);
    snprintf(f->name, sizeof f->name, "map_%u", i);
    gy_text_free(&text);
}

static void make_formulas(uint32_t seed)
{
    state = seed;
    for (uint32_t i = 0; i < FORMULAS; i++)
        make_formula(&formulas[i], i);
}

/* ---- the host version, and the code ---- */

static bool is_one(const char *name)
{
    return strcmp(name, "w") == 0;
}

static void fill(char *to, const gy_maths_kind *kind, uint32_t seed)
{
    state = seed;
    for (size_t i = 0; i < ELEMENTS; i++) {
        double value = draw(20) ? ((double)draw(2000) - 1000) / 32 : draw(2) ? INFINITY : -0.0;
        gy_maths_type type = gy_dtype_is_float(kind->dtype) ? GY_MATHS_F64 : GY_MATHS_I64;
        int64_t whole = gy_dtype_is_float(kind->dtype) ? 0 : (int64_t)draw(300) - 100;
        const void *from = type == GY_MATHS_F64 ? (const void *)&value : (const void *)&whole;
        size_t size = gantry_dtype_size(kind->dtype);
        gy_maths_store(to + i * size, from, kind->dtype, type, 1);
    }
}

static bool is_nan(const char *at, gantry_dtype dtype)
{
    float single;
    double wide;
    uint16_t half = 0;
    memcpy(&half, at, gantry_dtype_size(dtype) < sizeof half ? 1 : sizeof half);
    switch (dtype) {
    case GANTRY_F16:
        return (half & 0x7fff) > 0x7c00;
    case GANTRY_BF16:
        return (half & 0x7fff) > 0x7f80;
    case GANTRY_F32:
        memcpy(&single, at, sizeof single);
        return isnan(single);
    case GANTRY_F64:
        memcpy(&wide, at, sizeof wide);
        return isnan(wide);
    case GANTRY_F8E4M3:
        return (*at & 0x7f) == 0x7f;
    case GANTRY_F8E5M2:
        return (*at & 0x7f) > 0x7c;
    default:
        return false;
    }
}

static const char *text_of(const formula *f)
{
    static gy_text text;
    text.length = 0;
    gy_maths_print(&text, f->program->maths);
    return text.at;
}

static void compare(const formula *f, uint32_t arg, const char *host, const char *code, int64_t n)
{
    gantry_dtype dtype = f->program->kind[arg].dtype;
    size_t size = gantry_dtype_size(dtype);
    for (size_t i = 0; i < (size_t)n; i++) {
        const char *a = host + i * size, *b = code + i * size;
        if (memcmp(a, b, size) != 0 && !(is_nan(a, dtype) && is_nan(b, dtype)))
            ck_abort_msg("%s: element %zu of %s differs between the host and CUDA C", text_of(f), i,
                         f->program->maths->arg[arg]);
    }
    if (memcmp(host + (size_t)n * size, code + (size_t)n * size, (ELEMENTS - (size_t)n) * size) != 0)
        ck_abort_msg("%s: written behind the last element", text_of(f));
}

typedef void (*code_fn)(void **arg, unsigned blocks);

static char host_memory[GY_MATHS_ARGS][MOST_BYTES], code_memory[GY_MATHS_ARGS][MOST_BYTES];

static void run_formula(const formula *f, code_fn function, int64_t n)
{
    const gy_maths *m = f->program->maths;
    gantry_arg arg[GY_MATHS_ARGS];
    double number = 0.75;
    int64_t hidden[GY_MATHS_ARGS + 1] = { n };
    static int64_t shape[1];
    void *given[2 * GY_MATHS_ARGS + 1];
    uint32_t next = m->args;
    given[next++] = &hidden[0];
    for (uint32_t i = 0; i < m->args; i++) {
        const gy_maths_kind *kind = &f->program->kind[i];
        size_t size = gantry_dtype_size(kind->dtype);
        fill(host_memory[i], kind, i + 1);
        memcpy(code_memory[i], host_memory[i], sizeof code_memory[i]);
        arg[i] = (gantry_arg){ .dtype = kind->dtype, .rank = 1, .shape = shape, .row_bytes = (int64_t)size };
        arg[i].rows = is_one(m->arg[i]) ? 1 : n;
        arg[i].data = host_memory[i];
        arg[i].number = number;
        hidden[i + 1] = arg[i].rows - 1 < 1 ? arg[i].rows - 1 : 1;
        given[i] = kind->is_number ? (void *)&number : (void *)code_memory[i];
        if (!kind->is_number && !m->is_written[i])
            given[next++] = &hidden[i + 1];
    }
    gantry_launch launch = { .user = (void *)(uintptr_t)f->program, .arg = arg, .arg_size = sizeof *arg };
    ck_assert_int_eq(gy_maths_run(&launch), GANTRY_OK);
    function(given, (unsigned)((n + gy_maths_block_elements(f->program) - 1) / gy_maths_block_elements(f->program)));
    for (uint32_t i = 0; i < m->args; i++)
        if (m->is_written[i])
            compare(f, i, host_memory[i], code_memory[i], n);
}

/* ---- as C++ ---- */

/* A function that runs all threads; its parameters follow the order that maths.h states. */
static void print_caller(FILE *to, const formula *f)
{
    static const char *const names[GANTRY_DTYPE_COUNT] = { "half",        "half",          "float",  "double",
                                                           "signed char", "unsigned char", "int",    "unsigned",
                                                           "i64",         "u64",           "f8bits", "f8bits" };
    const gy_maths *m = f->program->maths;
    fprintf(to, "}\nextern \"C\" void call_%s(void **p, unsigned blocks)\n{\n    using namespace n_%s;\n", f->name,
            f->name);
    fprintf(to,
            "    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)\n"
            "        for (threadIdx.x = 0; threadIdx.x < %d; threadIdx.x++)\n            %s(",
            GY_MATHS_BLOCK, f->name);
    uint32_t next = m->args + 1;
    for (uint32_t i = 0; i < m->args; i++) {
        const char *type = names[f->program->kind[i].dtype];
        fprintf(to, f->program->kind[i].is_number ? "*(%s *)p[%u], " : "(%s *)p[%u], ", type, i);
    }
    fprintf(to, "*(i64 *)p[%u]", m->args);
    for (uint32_t i = 0; i < m->args; i++)
        if (!f->program->kind[i].is_number && !m->is_written[i])
            fprintf(to, ", *(i64 *)p[%u]", next++);
    fprintf(to, ");\n}\n");
}

static void *compile(void)
{
    char folder[] = "/tmp/gantry-maths-XXXXXX", path[64], command[1024];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/all.cc", folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    for (size_t i = 0; i < FORMULAS; i++) {
        gy_text text = { 0 };
        gy_maths_print_cuda(&text, formulas[i].program, formulas[i].name, GY_MATHS_PRINT_ALL);
        ck_assert(!text.failed);
        fprintf(file, "namespace n_%s {\n%s", formulas[i].name, text.at);
        print_caller(file, &formulas[i]);
        gy_text_free(&text);
    }
    ck_assert_int_eq(fclose(file), 0);
    snprintf(command, sizeof command,
             "%s -std=c++17 -O1 -w -ffp-contract=off -shared -fPIC -include %s %s -o %s/all.so", compiler, shim, path,
             folder);
    ck_assert_msg(system(command) == 0, "%s", command);
    snprintf(path, sizeof path, "%s/all.so", folder);
    void *object = dlopen(path, RTLD_NOW);
    ck_assert_msg(object != NULL, "%s", dlerror());
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
    return object;
}

static void check_seed(uint32_t seed)
{
    make_formulas(seed);
    void *object = compile();
    for (uint32_t i = 0; i < FORMULAS; i++) {
        static const int64_t sizes[] = { 1, 1023, 1024, 1025, 2500 };
        char name[32];
        snprintf(name, sizeof name, "call_%s", formulas[i].name);
        void *symbol = dlsym(object, name);
        code_fn function;
        memcpy(&function, &symbol, sizeof function);
        ck_assert_ptr_nonnull(symbol);
        run_formula(&formulas[i], function, sizes[i % 5]);
    }
    dlclose(object);
    gy_arena_free(&arena);
}

START_TEST(code_gives_the_elements_of_the_host)
{
    const char *seed = getenv("GANTRY_MATHS_SEED"); /* another one, to look further */
    for (uint32_t i = 0; i < 2; i++)
        check_seed(seed ? (uint32_t)strtoul(seed, NULL, 10) + i : 11 + i);
}
END_TEST

/* ---- by NVRTC ---- */

START_TEST(nvrtc_compiles_it)
{
    gy_nvrtc nvrtc;
    gantry_error err;
    if (gy_nvrtc_open(&nvrtc, &err)) {
        printf("skipped: %s\n", err.text);
        return;
    }
    make_formulas(7);
    for (uint32_t i = 0; i < FORMULAS; i += 6) {
        gy_text text = { 0 };
        gy_code code = { 0 };
        gy_maths_print_cuda(&text, formulas[i].program, formulas[i].name, GY_MATHS_PRINT_ALL);
        gantry_status status = gy_nvrtc_compile_text(&code, &nvrtc, formulas[i].name, text.at, 90, &err);
        ck_assert_msg(status == GANTRY_OK, "%s\n%s", err.text, text.at);
        ck_assert_uint_gt(code.bytes, 100);
        gy_free(code.at);
        gy_text_free(&text);
    }
    gy_arena_free(&arena);
}
END_TEST

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    compiler = words[1];
    shim = words[2];
    Suite *suite = suite_create("CUDA C of formulas");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, code_gives_the_elements_of_the_host);
    tcase_add_test(tests, nvrtc_compiles_it);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
