/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formulas and code of users for workers. The kernels of maps and reductions are printed when a run is made, so the
 * resident kernel cannot have them: NVRTC compiles all of a graph as functions that it can call, and the driver links
 * these to its code, of which there is a copy with that one call open. What comes out is kept beside other compiled
 * code.
 *
 * A formula's text is what a stream would launch. Names of CUDA mean something else in it: which block it is, it reads
 * where gy_linked() has written that, a place for each warp; and shared memory is one room that all of them use.
 *
 * Sources of users that say so (GANTRY_KERNEL_RESIDENT) are compiled one by one between two texts, the first of which
 * gives these names the same other meaning, and linked as well. Their own shared memory is a part of the kernel's.
 */
#include "backends/cuda/resident/resident.h"

#include "backends/cuda/usercode/compile.h"
#include "backends/cuda/usercode/usercode.h"
#include "base/cache.h"
#include "base/error.h"
#include "base/map.h"
#include "maths/maths.h"
#include <elf.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST_SHARED = 16384,  /* bytes of shared memory that code of users has; more would leave no room for two workers */
    MOST_KERNELS = 256,   /* of a graph: compiling more would take long */
    MOST_REGISTERS = 128, /* of a worker's thread, and so of what it calls */
    KINDS = 2             /* of functions of a formula: itself, and the one that ends a reduction */
};

static const char head[] = "struct gy_place {\n"
                           "    unsigned x, y, z;\n"
                           "};\n"
                           "struct gy_places {\n"
                           "    gy_place block, blocks;\n"
                           "};\n"
                           "extern __shared__ __align__(16) unsigned char gy_room[];\n"
                           "static __device__ __forceinline__ gy_places &gy_here()\n"
                           "{\n"
                           "    return ((gy_places *)gy_room)[threadIdx.x / 32];\n"
                           "}\n"
                           "#define blockIdx gy_here().block\n"
                           "#define gridDim gy_here().blocks\n"
                           "#undef __global__\n"
                           "#undef __launch_bounds__\n"
                           "#define __global__ __device__\n"
                           "#define __launch_bounds__(...)\n"
                           "#define __restrict__\n"; /* what is read changes while the kernel runs */
static const char room[] = "#define SHARED(type, name, count) type *const name = (type *)(gy_room + 256)\n"
                           "#define BEGIN\n";

/* Parameters are words of a packet, an address in memory of a GPU or a number each. These names stand ahead of what
 * users may define as they like. */
static const char calls[] =
    "typedef unsigned long long gy_word;\n"
    "template <class T> struct gy_param {\n"
    "    static __device__ __forceinline__ T of(const gy_word *word)\n"
    "    {\n"
    "        T value;\n"
    "        memcpy(&value, word, sizeof value);\n"
    "        return value;\n"
    "    }\n"
    "};\n"
    "template <class T> struct gy_param<T *> {\n"
    "    static __device__ __forceinline__ T *of(const gy_word *word)\n"
    "    {\n"
    "        T *value = (T *)*word;\n"
    "        __builtin_assume(__isGlobal(value));\n"
    "        return value;\n"
    "    }\n"
    "};\n"
    "template <int... I> struct gy_row {};\n"
    "template <int N, int... I> struct gy_row_of : gy_row_of<N - 1, N - 1, I...> {};\n"
    "template <int... I> struct gy_row_of<0, I...> {\n"
    "    typedef gy_row<I...> type;\n"
    "};\n"
    "template <auto F> struct gy_call;\n"
    "template <class... A, void (*F)(A...)> struct gy_call<F> {\n"
    "    template <int... I> static __device__ __forceinline__ void with(const gy_word *word, gy_row<I...>)\n"
    "    {\n"
    "        F(gy_param<A>::of(word + I)...);\n"
    "    }\n"
    "    static __device__ __noinline__ void of(const gy_word *word)\n"
    "    {\n"
    "        with(word, typename gy_row_of<sizeof...(A)>::type());\n"
    "    }\n"
    "};\n";
static const char dispatch[] =
    "extern \"C\" __device__ void gy_linked(unsigned number, const gy_word *word, unsigned x, "
    "unsigned y, unsigned blocks_x,\n"
    "                                     unsigned blocks_y)\n"
    "{\n"
    "    const gy_place block = { x, y, 0 }, blocks = { blocks_x, blocks_y, 1 };\n"
    "    __syncwarp();\n"
    "    gy_here().block = block;\n"
    "    gy_here().blocks = blocks;\n"
    "    __syncwarp();\n"
    "    switch (number) {\n";

_Static_assert((int)GY_RESIDENT_PLACES == 256, "the text of formulas has it as a number");

/* The totals of all threads of a block, which has up to so many neighbouring segments. Of a multiprocessor of 100 KiB
 * two workers have room for the most that there are. */
size_t gy_resident_room(const gy_kernel *kernel)
{
    const gy_maths *maths = kernel->program ? kernel->program->maths : NULL;
    size_t totals =
        maths && maths->reduces ? (size_t)gy_maths_most_run(maths) * GY_MATHS_BLOCK * gy_maths_total_bytes(maths) : 0;
    return GY_RESIDENT_PLACES + (totals > GY_RESIDENT_KEPT ? totals : GY_RESIDENT_KEPT);
}

/* The number of each kernel that a launch calls becomes 1. */
static void mark_used(gy_cuda *h)
{
    const gantry_schedule *s = h->job->schedule;
    for (size_t i = 0; i < s->ops.count; i++) {
        uint32_t kernel =
            s->ops.at[i].kind == GY_OP_LAUNCH ? h->job->graph->nodes.at[s->ops.at[i].node].kernel : GY_NONE;
        if (kernel != GY_NONE)
            h->resident->linked.number[kernel] = 1;
    }
}

/* Numbers functions of formulas, from behind those that workers know; and finds the most shared memory that they use.
 */
static void number_all(gy_cuda *h)
{
    gy_resident_linked *l = &h->resident->linked;
    uint32_t kernels = 0;
    mark_used(h);
    for (uint32_t k = 0; k < h->job->graph->kernels.count; k++) {
        const gy_kernel *kernel = &h->job->graph->kernels.at[k];
        bool wanted = l->number[k] && (kernel->program || kernel->code) && gy_kernel_for_workers(kernel);
        l->number[k] = wanted ? GY_RESIDENT_FUNCTIONS + KINDS * kernels : 0;
        kernels += wanted;
        if (!wanted)
            continue;
        l->shared = gy_resident_room(kernel) > l->shared ? (uint32_t)gy_resident_room(kernel) : l->shared;
    }
}

/* ---- code of users ---- */

gantry_status gy_resident_link_refuse(gy_cuda *h, uint32_t kernel, const char *why, gantry_error *err)
{
    h->resident->linked.number[kernel] = 0;
    h->resident->linked.refused[kernel] = why;
    return why ? GANTRY_OK : gy_fail_nomem(err);
}

static bool is_source(const gy_kernel_code *code)
{
    size_t length = code->cuda ? strlen(code->cuda) : 0;
    return length > 3 ? strcmp(code->cuda + length - 3, ".cu") == 0 : code->program && code->program->source;
}

/* The first node's kernel as it was opened. */
static const gy_user_kernel *opened(const gy_cuda *h, uint32_t kernel)
{
    const gantry_schedule *s = h->job->schedule;
    for (uint32_t i = 0; i < s->ops.count; i++)
        if (s->ops.at[i].kind == GY_OP_LAUNCH && h->job->graph->nodes.at[s->ops.at[i].node].kernel == kernel &&
            h->op[i].call && h->op[i].call[0].function == gy_user_launch)
            return h->op[i].call[0].launch.handle;
    return NULL;
}

/* An attribute of the function as it is launched. Where the driver does not say it, the compiler sees to it. */
static int asked_for(const gy_user_kernel *k, CUfunction_attribute which)
{
    int value = 0;
    return k->driver->cuFuncGetAttribute(&value, which, k->function) == CUDA_SUCCESS ? value : 0;
}

/* *why: workers cannot have it. */
static gantry_status look_at(gy_cuda *h, uint32_t kernel, const char **why, gantry_error *err)
{
    const gy_user_kernel *k = opened(h, kernel);
    const gy_kernel_code *code = h->job->graph->kernels.at[kernel].code;
    int registers = k ? asked_for(k, CU_FUNC_ATTRIBUTE_NUM_REGS) : 0,
        shared = k ? asked_for(k, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) : 0;
    *why = NULL;
    if (!k || !is_source(code))
        *why = "its kernel has no CUDA C++ source to compile for workers: give \"cuda\" a .cu file, or leave "
               "\"resident\" out";
    else if (k->shared_bytes)
        *why = gy_arena_printf(
            &h->arena,
            "its kernel asks for %u bytes of dynamic shared memory, and workers give 0: let it have an array of "
            "fixed size, or leave \"resident\" out",
            k->shared_bytes);
    else if (shared > MOST_SHARED)
        *why = gy_arena_printf(
            &h->arena,
            "its kernel has %d bytes of shared memory, and workers give up to %d: let it have less, or leave "
            "\"resident\" out",
            shared, MOST_SHARED);
    else if (registers > MOST_REGISTERS)
        *why = gy_arena_printf(
            &h->arena,
            "its kernel has %d registers a thread, and workers have %d: let it have fewer (__launch_bounds__), or "
            "leave \"resident\" out",
            registers, MOST_REGISTERS);
    else
        return GANTRY_OK;
    return *why ? GANTRY_OK : gy_fail_nomem(err);
}

/* Leaves out those that workers cannot have. */
static gantry_status look_at_all(gy_cuda *h, gantry_error *err)
{
    const gantry_graph *g = h->job->graph;
    for (uint32_t k = 0; k < g->kernels.count; k++) {
        const char *why = NULL;
        if (!h->resident->linked.number[k] || g->kernels.at[k].program)
            continue;
        GY_TRY(look_at(h, k, &why, err));
        if (why)
            GY_TRY(gy_resident_link_refuse(h, k, why, err));
    }
    return GANTRY_OK;
}

static const char *entry_of(const gy_kernel *kernel)
{
    return kernel->code->entry ? kernel->code->entry : kernel->manifest->name;
}

/* The entry has a name of its own, as another file may have one of the same. */
void gy_resident_print_around(gy_text *before, gy_text *after, const gy_kernel *kernel, uint32_t number)
{
    uint32_t first = number - GY_RESIDENT_FUNCTIONS;
    gy_text_add(before, head);
    gy_text_add(before, calls);
    gy_text_printf(before, "#define %s gy_own_%u\n#line 1\n", entry_of(kernel), first);
    gy_text_printf(after,
                   "\nextern \"C\" __device__ void gy_user_%u(const gy_word *gy_words)\n{\n"
                   "    gy_call<gy_own_%u>::of(gy_words);\n}\n",
                   first, first);
}

/* ---- the text ---- */

static void print_case(gy_text *to, uint32_t number, const char *name, const char *end)
{
    gy_text_printf(to, "    case %u:\n        return gy_call<%s::%s%s>::of(word);\n", number, name, name, end);
}

void gy_resident_print_linked(gy_text *to, const gantry_graph *g, const uint32_t *number)
{
    char name[24];
    gy_text_add(to, head);
    gy_text_add(to, room);
    gy_text_add(to, calls);
    for (uint32_t k = 0; k < g->kernels.count; k++) {
        if (!number[k])
            continue;
        snprintf(name, sizeof name, "f%u", number[k] - GY_RESIDENT_FUNCTIONS);
        if (!g->kernels.at[k].program) {
            gy_text_printf(to, "extern \"C\" __device__ void gy_user_%s(const gy_word *word);\n", name + 1);
            continue;
        }
        gy_text_printf(to, "namespace %s {\n", name);
        gy_maths_print_cuda(to, g->kernels.at[k].program, name, GY_MATHS_PRINT_ALL);
        gy_text_add(to, "}\n");
    }
    gy_text_add(to, dispatch);
    for (uint32_t k = 0; k < g->kernels.count; k++) {
        if (!number[k])
            continue;
        uint32_t first = number[k] - GY_RESIDENT_FUNCTIONS;
        if (!g->kernels.at[k].program) {
            gy_text_printf(to, "    case %u:\n        return gy_user_%u(word);\n", first, first);
            continue;
        }
        snprintf(name, sizeof name, "f%u", first);
        print_case(to, first, name, "");
        if (g->kernels.at[k].code->finish)
            print_case(to, first + 1, name, "_finish");
    }
    gy_text_add(to, "    }\n}\n");
}

/* ---- linking ---- */

/* A piece that the driver links: its bytes, and what they are. */
typedef struct part {
    CUjitInputType type;
    const void *at;
    size_t bytes;
    const char *name;
} part;

static CUresult add_all(const gy_driver *d, CUlinkState state, const part *parts, size_t count)
{
    CUresult code = CUDA_SUCCESS;
    for (size_t i = 0; i < count && code == CUDA_SUCCESS; i++)
        code = d->link_add(state, parts[i].type, (void *)(uintptr_t)parts[i].at, parts[i].bytes, parts[i].name, 0, NULL,
                           NULL); /* it reads them */
    return code;
}

static gantry_status link_parts(gy_code *to, const gy_driver *d, const part *parts, size_t count, gantry_error *err)
{
    enum { LOG = 1024 };
    char log[LOG] = "", line[200], what[320];
    CUjit_option option[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
    void *value[] = { log, (void *)(uintptr_t)LOG }, *made = NULL;
    CUlinkState state;
    size_t bytes = 0;
    CUresult code = d->link_create(2, option, value, &state);
    if (code != CUDA_SUCCESS)
        return gy_driver_fail(d, code, "linking code to the resident kernel", err);
    code = add_all(d, state, parts, count);
    code = code ? code : d->link_complete(state, &made, &bytes);
    to->at = code == CUDA_SUCCESS ? gy_alloc(bytes + 1) : NULL;
    if (to->at) {
        memcpy(to->at, made, bytes);
        to->at[bytes] = '\0';
        to->bytes = bytes;
    }
    d->link_destroy(state);
    log[LOG - 1] = '\0';
    gy_lines_text(line, sizeof line, log);
    snprintf(what, sizeof what, "linking code to the resident kernel%s%s", *line ? ", " : "", line);
    return code != CUDA_SUCCESS ? gy_driver_fail(d, code, what, err) : to->at ? GANTRY_OK : gy_fail_nomem(err);
}

/* The code is compiled for the driver's GPU, so what comes out follows from the parts and the driver. */
static gantry_status link_or_find(gy_code *to, const gy_driver *d, const part *parts, size_t count, gantry_error *err)
{
    int version = 0;
    gy_cache_entry entry;
    d->cuDriverGetVersion(&version);
    uint64_t hash = gy_hash64((uint64_t)version);
    for (size_t i = 0; i < count; i++)
        hash = gy_hash_bytes(parts[i].at, parts[i].bytes, hash);
    GY_TRY(gy_cache_open(&entry, hash, ".cubin", err));
    gantry_status status = GANTRY_OK;
    if (!gy_cache_find(&entry, &to->at, &to->bytes)) {
        status = link_parts(to, d, parts, count, err);
        status = status ? status : gy_cache_keep(&entry, to->at, to->bytes, err);
    }
    gy_cache_close(&entry);
    return status;
}

static gantry_status compile(gy_code *to, const gy_cuda *h, const gy_nvrtc *nvrtc, int capability, gantry_error *err)
{
    gy_text text = { 0 };
    gy_resident_print_linked(&text, h->job->graph, h->resident->linked.number);
    gantry_status status = text.failed
                               ? gy_fail_nomem(err)
                               : gy_nvrtc_compile_to_link(to, nvrtc, "formulas for workers", text.at, capability, err);
    gy_text_free(&text);
    return status;
}

gantry_status gy_resident_compile_user(gy_code *to, const gy_nvrtc *nvrtc, const gantry_graph *g, uint32_t kernel,
                                       uint32_t number, int capability, gantry_error *err)
{
    const gy_kernel *k = &g->kernels.at[kernel];
    gy_text before = { 0 }, after = { 0 };
    gantry_status status = GANTRY_OK;
    gy_resident_print_around(&before, &after, k, number);
    if (!before.failed && !after.failed && k->code->cuda) {
        status = gy_nvrtc_compile_between(to, nvrtc, k->code->cuda, g->folder, k->code->build, before.at, after.at,
                                          capability, err);
    } else {
        gy_text_add(&before, k->code->cuda ? "" : k->code->program->source);
        gy_text_add(&before, after.failed ? "" : after.at);
        status = before.failed || after.failed
                     ? gy_fail_nomem(err)
                     : gy_nvrtc_compile_to_link(to, nvrtc, k->manifest->name, before.at, capability, err);
    }
    gy_text_free(&before);
    gy_text_free(&after);
    return status;
}

/* As the header of a fat binary says. */
static size_t fat_bytes(const unsigned char *image)
{
    struct {
        uint32_t magic;
        uint16_t version, header;
        uint64_t bytes;
    } fat;
    memcpy(&fat, image, sizeof fat);
    return fat.header + fat.bytes;
}

/* The resident kernel, code of users, and formulas with what calls them all. */
typedef GY_VEC(part) parts;

static bool add_part(parts *to, gy_code code, const char *name)
{
    bool cubin = code.bytes >= SELFMAG && memcmp(code.at, ELFMAG, SELFMAG) == 0;
    part p = { cubin ? CU_JIT_INPUT_CUBIN : CU_JIT_INPUT_PTX, code.at, code.bytes + !cubin, name };
    bool added = gy_vec_push(to, p);
    if (!added)
        gy_free(code.at);
    return added;
}

/* One that does not compile is left to streams, and the others are not. */
static gantry_status compile_users(parts *to, gy_cuda *h, const gy_nvrtc *nvrtc, int capability, gantry_error *err)
{
    const gantry_graph *g = h->job->graph;
    gy_resident_linked *l = &h->resident->linked;
    for (uint32_t k = 0; k < g->kernels.count; k++) {
        gy_code code = { 0 };
        gantry_error why = { 0 };
        if (!l->number[k] || g->kernels.at[k].program)
            continue;
        gantry_status status = gy_resident_compile_user(&code, nvrtc, g, k, l->number[k], capability, &why);
        if (status == GANTRY_E_NOMEM || (status == GANTRY_OK && !add_part(to, code, g->kernels.at[k].manifest->name)))
            return gy_fail_nomem(err);
        if (status)
            GY_TRY(gy_resident_link_refuse(
                h, k, gy_arena_printf(&h->arena, "its kernel cannot be compiled for workers: %s", why.text), err));
    }
    return GANTRY_OK;
}

static gantry_status compile_all(parts *to, gy_cuda *h, CUdevice device, gantry_error *err)
{
    const gy_resident_image *own = gy_cuda_kernel_find(GY_CUDA_RESIDENT)->data;
    part first = { CU_JIT_INPUT_FATBINARY, own->open, fat_bytes(own->open), "resident" };
    gy_nvrtc nvrtc;
    gy_code code = { 0 };
    int capability;
    GY_TRY(gy_nvrtc_find(&nvrtc, err));
    GY_TRY(gy_driver_capability(&h->d, device, &capability, err));
    if (!gy_vec_push(to, first))
        return gy_fail_nomem(err);
    GY_TRY(compile_users(to, h, &nvrtc, capability, err));
    GY_TRY(compile(&code, h, &nvrtc, capability, err));
    return add_part(to, code, "formulas") ? GANTRY_OK : gy_fail_nomem(err);
}

gantry_status gy_resident_link(gy_cuda *h, uint32_t device, char **image, gantry_error *err)
{
    gy_code linked = { 0 };
    parts all = { 0 };
    GY_TRY(gy_cuda_use(h, device, err));
    gantry_status status = compile_all(&all, h, h->device[device].id, err);
    status = status ? status : link_or_find(&linked, &h->d, all.at, all.count, err);
    for (size_t i = 1; i < all.count; i++) /* the first is the module's */
        gy_free((void *)(uintptr_t)all.at[i].at);
    gy_vec_free(&all);
    if (status)
        gy_free(linked.at);
    else
        *image = linked.at;
    return status;
}

void gy_resident_link_none(gy_cuda *h, const char *why)
{
    gy_resident_linked *l = &h->resident->linked;
    memset(l->number, 0, h->job->graph->kernels.count * sizeof *l->number);
    l->any = false;
    snprintf(l->why, sizeof l->why, "%s", why);
}

gantry_status gy_resident_link_make(gy_cuda *h, gantry_error *err)
{
    gy_resident_linked *l = &h->resident->linked;
    l->number = gy_arena_calloc(&h->arena, h->job->graph->kernels.count + 1, sizeof *l->number);
    l->refused = gy_arena_calloc(&h->arena, h->job->graph->kernels.count + 1, sizeof *l->refused);
    if (!l->number || !l->refused)
        return gy_fail_nomem(err);
    number_all(h);
    GY_TRY(look_at_all(h, err));
    uint32_t kernels = 0;
    for (uint32_t k = 0; k < h->job->graph->kernels.count; k++)
        kernels += l->number[k] != 0;
    l->any = kernels > 0;
    if (kernels > MOST_KERNELS)
        gy_resident_link_none(
            h, "its graph has too many formulas and kernels of its own to compile them for workers: use the "
               "replay mode \"graph\", or fewer");
    else if (kernels && !h->d.link_create)
        gy_resident_link_none(h, "the driver links no code: update it");
    return GANTRY_OK;
}
