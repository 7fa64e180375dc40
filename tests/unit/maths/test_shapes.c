/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Map and reduce nodes of graphs with regions of many shapes. Each node is carried out by its host version, and by its
 * CUDA C, compiled as C++, with the numbers, blocks and scratch memory that the graph says: the same bits. What the
 * host version gives is held against NumPy elsewhere (tests/conformance/maps).
 *
 * test_maths_shapes CXX SHIM: the compiler and the header that makes C++ of CUDA C.
 */
#include "maths/maths.h"

#include "backends/cuda/usercode/entries.h"
#include "backends/cuda/usercode/usercode.h"
#include "base/memory.h"
#include "graph/graph.h"
#include "support/run_suite.h"
#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NODES = 56, RANK = 5, MOST_BYTES = 10 << 20 };

static gantry_graph *graph;
static gantry_error err;
static uint32_t state;
static const char *compiler, *shim;
static char folder[] = "/tmp/gantry-shapes-XXXXXX";

static uint32_t draw(uint32_t most)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % most;
}

/* ---- graphs ---- */

typedef struct shape {
    int rank;
    int64_t extent[RANK];
} shape;

/* More rows than few, more columns than many, more segments than threads of a block, and many tiny results; see
 * maths.h.
 */
static const struct {
    uint32_t node;
    int64_t extent[2];
    int axis;
} LARGE[] = { { NODES - 4, { GY_MATHS_FEW + 1, 257 }, 1 },       { NODES - 3, { 3, GY_MATHS_MANY + 10 }, 0 },
              { NODES - 12, { GY_MATHS_TINY_MANY + 1, 1 }, 1 },  { NODES - 10, { GY_MATHS_TINY_MANY + 255, 2 }, 1 },
              { NODES - 9, { GY_MATHS_TINY_MANY + 257, 3 }, 1 }, { NODES - 7, { GY_MATHS_TINY_MANY + 1025, 5 }, 1 },
              { NODES - 6, { GY_MATHS_TINY_MANY + 770, 8 }, 1 }, { NODES - 16, { GY_MATHS_TINY_MANY + 70, 9 }, 1 },
              { NODES - 1, { 258 * GY_MATHS_COLUMN + 1, 3 }, 0 } };

/* Axes [first, last) are reduced; these are long in every second node, so that there are few results. */
static shape draw_shape(uint32_t i, int *first, int *last)
{
    for (size_t k = 0; k < sizeof LARGE / sizeof *LARGE; k++)
        if (LARGE[k].node == i) {
            *first = LARGE[k].axis;
            *last = *first + 1;
            return (shape){ .rank = 2, .extent = { LARGE[k].extent[0], LARGE[k].extent[1] } };
        }
    static const int64_t extents[] = { 1, 2, 3, 5, 17, 33, 60 }, longer[] = { 300, 8192, 8193, 20000, 130, 257, 2048 };
    shape s = { .rank = i % 5 == 2 ? RANK : 1 + (int)draw(RANK) };
    for (int a = 0; a < s.rank; a++)
        s.extent[a] = extents[draw(s.rank > 2 ? 4 : 7)];
    *first = (int)draw((uint32_t)s.rank);
    *last = *first + 1 + (int)draw((uint32_t)(s.rank - *first));
    if (i % 2 == 0)
        s.extent[*first] = longer[draw(s.rank > 2 ? 1 : 7)];
    for (int a = 0; a < s.rank && s.extent[*first] > 300; a++)
        s.extent[a] = a == *first ? s.extent[a] : 1 + s.extent[a] % 11;
    return s;
}

static const gantry_dtype DTYPES[] = { GANTRY_F32, GANTRY_F64, GANTRY_BF16, GANTRY_I32, GANTRY_F16, GANTRY_U8 };

static gantry_buffer add_buffer(const char *name, uint32_t i, gantry_dtype dtype, shape s, bool is_input)
{
    char id[32];
    snprintf(id, sizeof id, "%s%u", name, i);
    gantry_buffer buffer = gantry_graph_buffer(graph, id, dtype, s.rank, s.extent);
    if (is_input)
        gantry_buffer_set_class(graph, buffer, GANTRY_INPUT);
    return buffer;
}

/* Without axes [first, last), or with 1 there. */
static shape reduce(shape s, int first, int last, bool is_kept)
{
    shape r = { 0 };
    for (int a = 0; a < s.rank; a++)
        if (a < first || a >= last || is_kept)
            r.extent[r.rank++] = a < first || a >= last ? s.extent[a] : 1;
    if (r.rank == 0)
        r.extent[r.rank++] = 1;
    return r;
}

/* One element along the axes of a set, which others may lie between; maybe without the first of these. */
static shape lack(shape s, uint32_t axes)
{
    shape r = { 0 };
    for (int a = 0; a < s.rank; a++) {
        bool is_one = axes >> a & 1;
        if (!is_one || r.rank || a + 1 == s.rank || draw(2))
            r.extent[r.rank++] = is_one ? 1 : s.extent[a];
    }
    return r;
}

/* One element along axes [first, last), and often along others that kept ones lie between. */
static shape draw_reduced(shape s, int first, int last)
{
    shape r = reduce(s, first, last, true);
    if (last + 1 < s.rank && draw(2))
        r.extent[last + 1 + (int)draw((uint32_t)(s.rank - last - 1))] = 1;
    if (first > 1 && draw(2))
        r.extent[draw((uint32_t)first - 1)] = 1;
    return r;
}

static gantry_access access_of(const char *formula)
{
    if (strstr(formula, "= sum"))
        return GANTRY_SUM;
    return strstr(formula, "= min") || strstr(formula, "= all") ? GANTRY_MIN : GANTRY_MAX;
}

/* A reduce node also gives a region of its own, or x in place, or nothing beside. */
/* Every fourth reduction reads no region of all elements: x has one along axes that b has, and the other way round. */
static bool draw_joint(uint32_t i, shape s, shape *x, shape *b)
{
    if (i % 4 != 1 || s.rank < 2)
        return false;
    uint32_t of_x = 1 + draw((1u << s.rank) - 1), of_b = draw(1u << s.rank) & ~of_x;
    if (!of_b)
        return false;
    *x = lack(s, of_x);
    *b = lack(s, of_b);
    return true;
}

static gantry_buffer add_beside(char *formula, size_t size, uint32_t i, const char *reduction, gantry_dtype dtype,
                                shape s)
{
    gantry_buffer none = { GANTRY_NONE, 0 };
    uint32_t drawn = draw(3);
    if (drawn == 0) {
        snprintf(formula, size, "z = f32(x - b); %s", reduction);
        return add_buffer("z", i, GANTRY_F32, s, false);
    }
    if (drawn == 1)
        snprintf(formula, size, "%s; x = %s(x - b)", reduction, gantry_dtype_name(dtype));
    else
        snprintf(formula, size, "%s", reduction);
    return none;
}

static void add_node(uint32_t i)
{
    static const char *const reductions[] = { "y = sum(x * b)",     "y = mean(x + b)",   "y = min(x - b)",
                                              "y = max(x * b * s)", "y = argmax(x * b)", "y = argmin(b - x)",
                                              "y = any(x > b)",     "y = all(x < b)",    "y = sum(i64(9 * x * b))",
                                              "y = max(i32(b - x))" };
    static const char *const maps[] = { "y = x * b + s", "y = f32(select(x > b, x, b))", "y = x - b" };
    int first, last;
    shape s = draw_shape(i, &first, &last);
    bool is_map = i % 3 == 0;
    shape few = draw_reduced(s, first, last);
    const char *formula = is_map ? maps[draw(3)] : reductions[draw(sizeof reductions / sizeof *reductions)];
    const gantry_dtype dtype = DTYPES[draw(6)];
    char all[128];
    gantry_buffer z = { GANTRY_NONE, 0 };
    shape own = s, some = few;
    bool is_joint = !is_map && draw_joint(i, s, &own, &some);
    if (!is_map && !is_joint) {
        z = add_beside(all, sizeof all, i, formula, dtype, s);
        formula = all;
    }
    bool is_whole = strstr(formula, "arg") || strstr(formula, "any") || strstr(formula, "all");
    gantry_dtype real = draw(2) ? GANTRY_F64 : GANTRY_F32;
    gantry_buffer x = add_buffer("x", i, dtype, own, true);
    if (!is_joint && draw(4)) { /* b is broadcast along others than those that are reduced */
        int begin = (int)draw((uint32_t)s.rank);
        some = reduce(s, begin, begin + 1 + (int)draw((uint32_t)(s.rank - begin)), true);
        some = draw(4) ? lack(s, draw(1u << s.rank)) : some;
    }
    gantry_buffer b = add_buffer("b", i, DTYPES[draw(3)], some, true);
    gantry_buffer y = add_buffer("y", i, is_whole && draw(2) ? GANTRY_I32 : real, is_map ? s : few, false);
    char id[32];
    snprintf(id, sizeof id, "n%u", i);
    gantry_node node = is_map ? gantry_graph_map(graph, id, formula) : gantry_graph_reduce(graph, id, formula);
    bool is_added = !is_map && draw(3) == 0 && !strstr(formula, "= mean") && !strstr(formula, "= arg");
    gantry_node_arg(graph, node, "x", gantry_all(x));
    gantry_node_arg(graph, node, "b", gantry_all(b));
    gantry_node_arg_as(graph, node, "y", gantry_all(y), is_added ? access_of(formula) : GANTRY_WRITE);
    if (z.id != GANTRY_NONE)
        gantry_node_arg(graph, node, "z", gantry_all(z));
    if (strstr(formula, "* s") || strstr(formula, "+ s"))
        gantry_node_scalar(graph, node, "s", 0.75);
}

/* ---- code ---- */

static const gy_kernel *kernel_of(uint32_t node)
{
    return &graph->kernels.at[graph->nodes.at[node].kernel];
}

static bool is_first_of_kernel(uint32_t node)
{
    for (uint32_t i = 0; i < node; i++)
        if (graph->nodes.at[i].kernel == graph->nodes.at[node].kernel)
            return false;
    return true;
}

/* "*(i64 *)p[3], ": all parameters, whose types the printed code knows. */
static void print_call(FILE *to, const gy_kernel *kernel, const char *name, const char *runner)
{
    const gy_maths_program *p = kernel->program;
    static const char *const names[] = { "half",          "half", "float",    "double", "signed char",
                                         "unsigned char", "int",  "unsigned", "i64",    "u64" };
    fprintf(to, "    %s(blocks, %d, [=] { %s(", runner, GY_MATHS_BLOCK, name);
    for (uint32_t i = 0; i < (uint32_t)kernel->manifest->args; i++) {
        const char *type = i < p->maths->args ? names[p->kind[i].dtype] : "i64";
        bool is_region = i < p->maths->args && !p->kind[i].is_number;
        fprintf(to, is_region ? "%s(%s *)p[%u]" : "%s*(%s *)p[%u]", i ? ", " : "", type, i);
    }
    fprintf(to, p->maths->reduces ? ", (totals *)p[%d]); });\n" : "); });\n", (int)kernel->manifest->args);
}

static void print_kernel(FILE *to, const gy_kernel *kernel)
{
    gy_text text = { 0 };
    const char *name = kernel->manifest->name;
    const char *runner = kernel->program->maths->reduces ? "run_together" : "run_threads";
    gy_maths_print_cuda(&text, kernel->program, name, GY_MATHS_PRINT_ALL);
    ck_assert(!text.failed);
    fprintf(
        to,
        "namespace n_%s {\n%s}\nextern \"C\" void call_%s(void **p, unsigned blocks)\n{\n    using namespace n_%s;\n",
        name, text.at, name, name);
    print_call(to, kernel, name, runner);
    fprintf(to, "}\n");
    if (kernel->code->finish) {
        char finish[64];
        snprintf(finish, sizeof finish, "%s_finish", name);
        fprintf(to, "extern \"C\" void call_%s(void **p, unsigned blocks)\n{\n    using namespace n_%s;\n", finish,
                name);
        print_call(to, kernel, finish, runner);
        fprintf(to, "}\n");
    }
    if (kernel->program->maths->reduces)
        fprintf(to,
                "extern \"C\" void cut_%s(long long first, long long size, long long by, unsigned m, long long "
                "*found)\n{\n"
                "    const n_%s::cut c = n_%s::cut_at(first, size, by);\n"
                "    found[0] = n_%s::piece(c, m);\n    found[1] = n_%s::in_piece(c, m);\n}\n",
                name, name, name, name, name);

    gy_text_free(&text);
}

static void *compile(void)
{
    char path[64], command[1024];
    snprintf(path, sizeof path, "%s/all.cc", folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    for (uint32_t i = 0; i < graph->nodes.count; i++)
        if (is_first_of_kernel(i))
            print_kernel(file, kernel_of(i));
    ck_assert_int_eq(fclose(file), 0);
    snprintf(command, sizeof command,
             "%s -std=c++17 -O1 -w -ffp-contract=off -shared -fPIC -pthread -include %s %s -o %s/all.so", compiler,
             shim, path, folder);
    ck_assert_msg(system(command) == 0, "%s", command);
    snprintf(path, sizeof path, "%s/all.so", folder);
    void *object = dlopen(path, RTLD_NOW);
    ck_assert_msg(object != NULL, "%s", dlerror());
    return object;
}

/* ---- running ---- */

enum { MOST_ARGS = 5 };
static char host_memory[MOST_ARGS][MOST_BYTES], code_memory[MOST_ARGS][MOST_BYTES];

static void fill(char *to, size_t elements, gantry_dtype dtype)
{
    for (size_t i = 0; i < elements; i++) {
        float x = (float)((int)draw(2000) - 1000) / 64, wide = draw(50) ? x : draw(2) ? x / 0.0f : 0.0f;
        double real = (double)wide;
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        uint16_t half =
            dtype == GANTRY_BF16 ? (uint16_t)(bits >> 16) : (uint16_t)(0x3000 + draw(0x1800) + 0x8000 * draw(2));
        int32_t whole = (int32_t)draw(200) - 100;
        uint8_t small = (uint8_t)draw(256);
        const void *from = dtype == GANTRY_F32   ? (const void *)&wide
                           : dtype == GANTRY_F64 ? (const void *)&real
                           : dtype == GANTRY_I32 ? (const void *)&whole
                           : dtype == GANTRY_U8  ? (const void *)&small
                                                 : (const void *)&half;
        memcpy(to + i * gantry_dtype_size(dtype), from, gantry_dtype_size(dtype));
    }
}

static void call(void *object, const char *name, void **given, int64_t blocks)
{
    char symbol_name[96];
    void (*function)(void **, unsigned);
    snprintf(symbol_name, sizeof symbol_name, "call_%s", name);
    void *symbol = dlsym(object, symbol_name);
    ck_assert_ptr_nonnull(symbol);
    memcpy(&function, &symbol, sizeof function);
    function(given, (unsigned)blocks);
}

/* A number of up to 2^53, of any length. */
static int64_t draw_long(void)
{
    uint64_t wide = (uint64_t)draw(1u << 24) << 29 | draw(1u << 24) << 5 | draw(32);
    return (int64_t)(wide >> draw(53));
}

/* Quotients of places beyond those that arrays of a test have: near multiples of the divisor, and anywhere. */
static void check_cuts(void *object, const char *name)
{
    char symbol_name[96];
    void (*cut)(long long, long long, long long, unsigned, long long *);
    snprintf(symbol_name, sizeof symbol_name, "cut_%s", name);
    void *symbol = dlsym(object, symbol_name);
    ck_assert_ptr_nonnull(symbol);
    memcpy(&cut, &symbol, sizeof cut);
    for (int i = 0; i < 200000; i++) {
        long long size = 1 + draw_long(), first = draw_long(), found[2];
        unsigned m = draw(8192);
        long long at = first + m - (first + m) % size - draw(3);
        if (draw(2) && at > m)
            first = at - (long long)draw(m + 1);
        long long by = ((INT64_C(1) << 62) + size - 1) / size;
        cut(first, size, by, m, found);
        ck_assert_msg(found[0] == (first + m) / size && found[1] == (first + m) % size,
                      "element %lld + %u in pieces of %lld: %lld, %lld", first, m, size, found[0], found[1]);
    }
}

static const char *first_reduction(void)
{
    for (uint32_t i = 0; i < graph->nodes.count; i++)
        if (kernel_of(i)->program->maths->reduces)
            return kernel_of(i)->manifest->name;
    return "";
}

static int64_t evaluate(const gy_expr *e, gantry_launch *launch)
{
    int64_t value;
    gantry_status status = gy_expr_integer(e, gy_launch_lookup, launch, &value, GANTRY_E_GRAPH, NULL, &err);
    ck_assert_msg(status == GANTRY_OK, "%s", err.text);
    return value;
}

/* Arrays of a test are too small for blocks to have runs of segments, so any run is tried. */
static void draw_run(const gy_kernel *kernel, gantry_launch *launch, gantry_arg *arg)
{
    int run = 1 << draw(4), most = gy_maths_most_run(kernel->program->maths);
    for (int i = (int)kernel->program->maths->args; kernel->program->maths->reduces && i < launch->args; i++) {
        bool is_run = strcmp(arg[i].name, "_run") == 0;
        arg[i].integer = !is_run ? evaluate(kernel->code->fallback[i], launch) : run < most ? run : most;
        arg[i].number = (double)arg[i].integer;
    }
}

static void run_node(void *object, uint32_t node)
{
    const gy_kernel *kernel = kernel_of(node);
    uint32_t args = kernel->program->maths->args;
    gantry_arg *arg = gy_calloc(gy_launch_args(graph, node), sizeof *arg);
    void *given[32];
    int64_t scratch;
    double flops, bytes;
    gantry_launch launch;
    ck_assert_int_eq(gy_launch_describe(graph, node, 0, &launch, arg, &err), GANTRY_OK);
    draw_run(kernel, &launch, arg);
    ck_assert_int_eq(gy_kernel_cost(kernel, &launch, &flops, &bytes, &scratch, &err), GANTRY_OK);
    for (uint32_t i = 0; i < (uint32_t)launch.args; i++) {
        bool is_region = i < args && arg[i].access;
        given[i] = is_region ? (void *)code_memory[i] : i < args ? (void *)&arg[i].number : (void *)&arg[i].integer;
        if (!is_region)
            continue;
        size_t elements = (size_t)gy_maths_elements(&arg[i]);
        ck_assert_uint_le(elements * 8, MOST_BYTES);
        fill(host_memory[i], elements, arg[i].dtype);
        memcpy(code_memory[i], host_memory[i], sizeof code_memory[i]);
        arg[i].data = host_memory[i];
    }
    /* The code may use as much scratch memory as the graph says: what lies behind it stays. */
    char *room = gy_alloc((size_t)scratch + 64);
    memset(room, 0x5a, (size_t)scratch + 64);
    given[launch.args] = room;
    launch.user = (void *)(uintptr_t)kernel->program;
    ck_assert_int_eq(gy_maths_run(&launch), GANTRY_OK);
    int64_t first = evaluate(kernel->code->grid[0], &launch);
    if (first)
        call(object, kernel->manifest->name, given, first);
    if (kernel->code->finish) {
        char finish[64];
        snprintf(finish, sizeof finish, "%s_finish", kernel->manifest->name);
        int64_t blocks = evaluate(kernel->code->finish, &launch);
        ck_assert_msg((blocks > 0) == (scratch > 0 || !first), "%s: scratch memory where results have one segment",
                      kernel->manifest->summary);
        if (blocks)
            call(object, finish, given, blocks);
    }
    for (size_t i = 0; i < 64; i++)
        ck_assert_msg(room[(size_t)scratch + i] == 0x5a, "%s: scratch memory is too small", kernel->manifest->summary);
    for (uint32_t i = 0; i < args; i++)
        if (arg[i].access && memcmp(host_memory[i], code_memory[i], MOST_BYTES) != 0)
            ck_abort_msg("%s: %s differs between the host and CUDA C", kernel->manifest->summary, arg[i].name);
    gy_free(room);
    gy_free(arg);
}

static void make_graph(uint32_t seed)
{
    state = seed;
    graph = gantry_graph_new("shapes");
    for (uint32_t i = 0; i < NODES; i++)
        add_node(i);
    ck_assert_msg(gantry_graph_check(graph, &err) == GANTRY_OK, "%s", err.text);
}

/* How many reduce axes that kept ones lie between, columns or not. */
static uint32_t kernels_apart(bool is_columns)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < graph->nodes.count; i++)
        found += gy_maths_is_apart(kernel_of(i)->program) && kernel_of(i)->program->is_columns == is_columns;
    return found;
}

/* How many kernels of maps, or of reductions, read a region that lacks axes which others lie between. */
static uint32_t kernels_with_runs(bool reduces)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < graph->nodes.count; i++) {
        const gy_maths_program *p = kernel_of(i)->program;
        for (uint32_t k = 0; k < p->maths->args && p->maths->reduces == reduces; k++)
            found += p->kind[k].runs > 1;
    }
    return found;
}

START_TEST(code_gives_the_bits_of_the_host)
{
    const char *given = getenv("GANTRY_MATHS_SEED"); /* another one, to look further */
    uint32_t seed = given ? (uint32_t)strtoul(given, NULL, 10) : 18;
    make_graph(seed);
    ck_assert_msg(given || (kernels_with_runs(false) && kernels_with_runs(true)), "the test draws no such shapes");
    ck_assert_msg(given || (kernels_apart(false) && kernels_apart(true)), "%u and %u kernels reduce axes apart",
                  kernels_apart(false), kernels_apart(true));
    ck_assert_ptr_nonnull(mkdtemp(folder));
    void *object = compile();
    for (uint32_t i = 0; i < graph->nodes.count; i++)
        run_node(object, i);
    check_cuts(object, first_reduction());
    dlclose(object);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
    gantry_graph_free(graph);
}
END_TEST

static bool has(const gy_code *code, const char *name, const char *end)
{
    char entry[64];
    snprintf(entry, sizeof entry, "%s%s", name, end);
    return gy_entries_have(code->at, code->bytes, entry);
}

/* The kernel in this text is, to the letter, one of those in the other. */
static void is_part(const char *text, const char *whole)
{
    const char *from = strstr(text, "extern \"C\" __global__"), *to = from ? strstr(from, "#undef SEGMENT") : NULL;
    ck_assert_ptr_nonnull(to);
    char *kernel = gy_strndup(from, (size_t)(to - from));
    ck_assert_ptr_nonnull(kernel);
    ck_assert_msg(strstr(whole, kernel) != NULL, "%s", kernel);
    gy_free(kernel);
}

static void compile_printed(const gy_nvrtc *nvrtc, const gy_kernel *kernel, gy_maths_printed printed)
{
    gy_text text = { 0 }, whole = { 0 };
    gy_code code = { 0 };
    const char *name = kernel->manifest->name;
    bool ends = kernel->program->maths->reduces && printed != GY_MATHS_PRINT_FIRST;
    gy_maths_print_cuda(&text, kernel->program, name, printed);
    gy_maths_print_cuda(&whole, kernel->program, name, GY_MATHS_PRINT_ALL);
    gantry_status status = gy_nvrtc_compile_text(&code, nvrtc, name, text.at, 90, &err);
    ck_assert_msg(status == GANTRY_OK, "%s\n%s", err.text, text.at);
    ck_assert_int_eq(has(&code, name, ""), printed != GY_MATHS_PRINT_FINISH);
    ck_assert_int_eq(has(&code, name, "_finish"), ends);
    if (printed != GY_MATHS_PRINT_ALL)
        is_part(text.at, whole.at);
    gy_free(code.at);
    gy_text_free(&text);
    gy_text_free(&whole);
}

START_TEST(nvrtc_compiles_it)
{
    uint32_t apart = 0;
    gy_nvrtc nvrtc;
    if (gy_nvrtc_open(&nvrtc, &err)) {
        printf("skipped: %s\n", err.text);
        return;
    }
    make_graph(18);
    for (uint32_t i = 0; i < NODES; i += 4) {
        bool is_apart = gy_user_kernel_is_apart(kernel_of(i));
        compile_printed(&nvrtc, kernel_of(i), is_apart ? GY_MATHS_PRINT_FIRST : GY_MATHS_PRINT_ALL);
        if (is_apart)
            compile_printed(&nvrtc, kernel_of(i), GY_MATHS_PRINT_FINISH);
        apart += is_apart;
    }
    ck_assert_uint_gt(apart, 0);
    gantry_graph_free(graph);
}
END_TEST

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    compiler = words[1];
    shim = words[2];
    Suite *suite = suite_create("shapes of formulas");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, code_gives_the_bits_of_the_host);
    tcase_add_test(tests, nvrtc_compiles_it);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
