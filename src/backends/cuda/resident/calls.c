/* SPDX-License-Identifier: Apache-2.0 */
/* Ops as calls of functions that workers know. Launches are written down by the kernel's own launcher, so that they are
 * what a stream would be given. */
#include "backends/cuda/resident/resident.h"

#include "backends/cuda/usercode/usercode.h"
#include "base/error.h"
#include "maths/maths.h"
#include "schedule/stretches/stretches.h"
#include <string.h>

static const char *const names[] = {
    "",
#define FUNCTION(name) #name,
#include "kernels/resident/functions.def"
};

/* By number: threads of a block wait for each other. */
static const bool together[] = {
    false,
#define FUNCTION(name) false,
#define TOGETHER(name) true,
#include "kernels/resident/functions.def"
};

static const bool sends[] = {
    false,
#define FUNCTION(name) false,
#define SENDS(name)    true,
#include "kernels/resident/functions.def"
};

bool gy_resident_call_sends(const gy_resident_call *call)
{
    return sends[call->function];
}

uint32_t gy_resident_function_of(const char *name)
{
    uint32_t i = GY_RESIDENT_FUNCTIONS - 1;
    while (i > 0 && strcmp(names[i], name) != 0)
        i--;
    return i;
}

/* ---- launches ---- */

typedef struct recorder {
    gy_cuda_recorder base;
    gy_resident *resident;
    gy_resident_calls *to;
    uint32_t linked; /* of what was linked: the number of its first function */
    bool together;   /* threads of that wait for each other, or may */
    bool own;        /* it is a user's, and finds threads as CUDA says */
    unsigned odd[3]; /* the blocks of a user's that are not a worker's; 0: they are */
    const char *why;
    bool nomem;
} recorder;

static gantry_status refuse(recorder *r, const char *why)
{
    r->why = why;
    return GANTRY_E_UNSUPPORTED;
}

/* Functions of the library have few. */
static bool set_words(recorder *r, gy_resident_call *call, const uint64_t *word, uint32_t words)
{
    call->far = words > GY_CUDA_RECORDED_WORDS;
    call->words = call->far ? 1 : words;
    call->word[0] = r->resident->far.count;
    if (!call->far)
        memcpy(call->word, word, words * sizeof *word);
    for (uint32_t i = 0; i < words && call->far; i++)
        if (!gy_vec_push(&r->resident->far, word[i]))
            return false;
    return true;
}

static gantry_status add_call(gy_cuda_recorder *base, const char *name, const unsigned grid[3], const unsigned block[3],
                              const uint64_t *word, uint32_t words)
{
    recorder *r = (recorder *)(void *)base; /* its first member */
    gy_resident_call call = { .function = r->linked ? r->linked + base->is_second : gy_resident_function_of(name) };
    call.grid[0] = grid[0];
    call.grid[1] = grid[1];
    call.together = r->linked ? r->together : together[call.function];
    call.block[0] = block[0];
    call.block[1] = block[1];
    if (!call.function)
        return refuse(r, "its kernel is none of those that resident kernels know");
    if (r->own && (block[0] != GY_RESIDENT_THREADS || block[1] * block[2] != 1)) {
        memcpy(r->odd, block, sizeof r->odd);
        return GANTRY_E_UNSUPPORTED;
    }
    if (grid[2] != 1)
        return refuse(r, "its kernel has a grid of three dimensions");
    if (block[2] != 1 || block[0] * block[1] != GY_RESIDENT_THREADS)
        return refuse(r, "its kernel has blocks of another size than workers");
    r->nomem = !set_words(r, &call, word, words) || !gy_vec_push(r->to, call);
    return r->nomem ? GANTRY_E_NOMEM : GANTRY_OK;
}

/* The op's kernel if it is to be linked: formulas, or a user's; else GY_NONE. A CPU calls something else. */
static uint32_t linked_of(const gy_cuda *h, const gy_cuda_call *call, uint32_t id)
{
    const gantry_graph *g = h->job->graph;
    uint32_t kernel = g->nodes.at[h->job->schedule->ops.at[id].node].kernel;
    bool linked = call->function == gy_user_launch && gy_kernel_for_workers(&g->kernels.at[kernel]);
    return linked ? kernel : GY_NONE;
}

/* NULL: nothing. */
static const char *obstacle(const gy_cuda *h, const gy_cuda_call *call, uint32_t kernel)
{
    const gy_resident_linked *l = &h->resident->linked;
    if (kernel != GY_NONE && l->refused[kernel])
        return l->refused[kernel];
    if (kernel != GY_NONE && *l->why)
        return l->why;
    bool linked = kernel != GY_NONE && l->number[kernel];
    return linked || (call->kernel && call->kernel->record) ? NULL : "workers cannot call its function";
}

/* All ops of a kernel whose blocks have another shape are refused with the first. */
static gantry_status refuse_shape(gy_cuda *h, uint32_t kernel, const recorder *r, const char **why, gantry_error *err)
{
    const char *text = gy_arena_printf(
        &h->arena,
        "its kernel has blocks of %u x %u x %u threads, and workers are %d x 1 x 1: launch it so, or leave "
        "\"resident\" out",
        r->odd[0], r->odd[1], r->odd[2], GY_RESIDENT_THREADS);
    *why = text;
    return gy_resident_link_refuse(h, kernel, text, err);
}

static void set_recorder(const gy_cuda_call *call, gy_cuda_recorder *to)
{
    if (call->kernel)
        call->kernel->record(call->launch.handle, to);
    else
        ((gy_user_kernel *)call->launch.handle)->recorder = to;
}

static gantry_status record(gy_cuda *h, uint32_t id, uint32_t turn, gy_resident_calls *to, const char **why,
                            gantry_error *err)
{
    const gy_cuda_call *call = &h->op[id].call[turn];
    recorder r = { .base = { .add = add_call }, .resident = h->resident, .to = to };
    uint32_t kernel = linked_of(h, call, id);
    *why = obstacle(h, call, kernel);
    if (*why)
        return GANTRY_OK;
    const gy_maths_program *formula = kernel == GY_NONE ? NULL : h->job->graph->kernels.at[kernel].program;
    r.linked = kernel == GY_NONE ? 0 : h->resident->linked.number[kernel];
    r.own = r.linked && !formula;
    r.together = r.own || (formula && formula->maths->reduces);
    GY_TRY(gy_cuda_use(h, gy_cuda_lane_of(h, id, 0)->queue.device, err));
    set_recorder(call, &r.base);
    gantry_status status = call->function(&call->launch);
    set_recorder(call, NULL);
    if (r.nomem)
        return gy_fail_nomem(err);
    if (r.odd[0])
        return refuse_shape(h, kernel, &r, why, err);
    if (status)
        *why = r.why ? r.why : "its launch cannot be written down";
    return GANTRY_OK;
}

/* ---- flags ---- */

/* Of its bits one is set if the number is not 0: of all but the sign of a floating one. */
gy_resident_asked gy_resident_asked_of(CUdeviceptr at, gantry_dtype dtype)
{
    uint64_t bytes = gantry_dtype_size(dtype);
    return (gy_resident_asked){ at, bytes, UINT64_MAX >> (64 - 8 * bytes + gy_dtype_is_float(dtype)) };
}

/* A CPU's flag lies in memory of the host. */
static bool find_flag(const gy_cuda *h, uint32_t id, uint32_t turn, gy_resident_asked *flag)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_use *use = gy_cuda_flag(h, id);
    gy_location at = gy_cuda_location(h, use, turn);
    if (at.device == GY_NONE || !gy_cuda_same_gpu(h, at.device, gy_cuda_lane_of(h, id, 0)->queue.device))
        return false;
    uint32_t buffer = s->values.at[s->instances.at[use->instance].value].buffer;
    *flag = gy_resident_asked_of(at.at, h->job->graph->buffers.at[buffer].dtype);
    return true;
}

/* ---- copies and fills ---- */

enum { SMALL = GY_RESIDENT_THREADS * 16 }; /* 16 bytes for each thread */

static uint32_t chunks_of(uint64_t bytes)
{
    return (uint32_t)((bytes + GY_RESIDENT_CHUNK - 1) / GY_RESIDENT_CHUNK);
}

static gantry_status push(gy_resident_calls *to, uint32_t function, uint64_t bytes, const uint64_t *word,
                          uint32_t words, gantry_error *err)
{
    gy_resident_call call = {
        .function = function, .grid = { chunks_of(bytes), 1 }, .block = { GY_RESIDENT_THREADS, 1 }, .words = words
    };
    memcpy(call.word, word, words * sizeof *word);
    return bytes == 0 || gy_vec_push(to, call) ? GANTRY_OK : gy_fail_nomem(err);
}

/* Workers of the lane's GPU reach memory of GPUs that are peers. */
static bool reaches(const gy_cuda *h, uint32_t id, gy_location at)
{
    return at.device != GY_NONE && gy_cuda_reaches(h, gy_cuda_lane_of(h, id, 0)->queue.device, at.device);
}

/* Large copies to and from the host are left to copy engines, which need no multiprocessor. *at: where workers find the
 * bytes. */
static bool finds(const gy_cuda *h, uint32_t id, gy_location there, uint64_t bytes, uint64_t *at)
{
    *at = there.device != GY_NONE ? there.at : (uint64_t)(uintptr_t)there.host;
    return there.device != GY_NONE ? reaches(h, id, there) : there.pinned && bytes <= GY_STRETCH_HOST_BYTES;
}

static gantry_status copy(gy_cuda *h, uint32_t id, uint32_t turn, gy_resident_calls *to, const char **why,
                          gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_op *op = &s->ops.at[id];
    uint32_t pairs = op->uses / 2;
    for (uint32_t k = 0; k < pairs; k++) {
        gy_location from = gy_cuda_location(h, &s->use.at[op->use + k], turn);
        gy_location there = gy_cuda_location(h, &s->use.at[op->use + pairs + k], turn);
        uint64_t bytes = gy_use_bytes(s, &s->use.at[op->use + pairs + k]);
        uint64_t source, target;
        if (!finds(h, id, from, bytes, &source) || !finds(h, id, there, bytes, &target)) {
            *why = "workers copy within a GPU, between GPUs that reach each other, and few bytes to and from the host";
            return GANTRY_OK;
        }
        bool small = bytes <= SMALL && (source | target | bytes) % 16 == 0;
        uint32_t function = small ? GY_RESIDENT_resident_copy_small : GY_RESIDENT_resident_copy;
        GY_TRY(push(to, function, bytes, (uint64_t[]){ source, target, small ? bytes / 16 : bytes }, 3, err));
    }
    return GANTRY_OK;
}

/* *why: no function of workers makes it. */
static gantry_status record_fill(gy_cuda *h, const gy_fill_target *target, gy_resident_calls *to, const char **why,
                                 gantry_error *err)
{
    recorder r = { .base = { .add = add_call }, .resident = h->resident, .to = to };
    GY_TRY(gy_cuda_use(h, target->to.device, err));
    gy_fill_record(h, target, &r.base);
    gantry_status status = gy_fill_launch(h, target, NULL);
    gy_fill_record(h, target, NULL);
    if (r.nomem)
        return gy_fail_nomem(err);
    if (status)
        *why = r.why ? r.why : "its launch cannot be written down";
    return GANTRY_OK;
}

static gantry_status fill(gy_cuda *h, uint32_t id, uint32_t turn, gy_resident_calls *to, const char **why,
                          gantry_error *err)
{
    const gantry_schedule *s = h->job->schedule;
    const gy_op *op = &s->ops.at[id];
    const gy_init *what = op->node == GY_NONE ? NULL : &gy_node_extra_of(h->job->graph, op->node)->fill;
    for (uint32_t k = 0; k < op->uses - gy_op_has_flag(op) && !*why; k++) {
        const gy_use *use = &s->use.at[op->use + k];
        gy_fill_target target = gy_fill_target_of(h, use, what, turn);
        uint64_t bits = 0, bytes = gy_use_bytes(s, use), size = gantry_dtype_size(target.buffer->dtype);
        if (!reaches(h, id, target.to))
            *why = "workers fill memory of GPUs only";
        else if (gy_fill_pattern(h, id, k, &bits))
            GY_TRY(push(to, GY_RESIDENT_resident_fill, bytes, (uint64_t[]){ target.to.at, bits, size, bytes }, 4, err));
        else if (gy_fill_by_kernel(h, &target))
            GY_TRY(record_fill(h, &target, to, why, err));
        else
            *why = "the host makes what it fills in";
    }
    return GANTRY_OK;
}

static gantry_status calls_of(gy_cuda *h, uint32_t id, uint32_t turn, gy_resident_calls *to, const char **why,
                              gantry_error *err)
{
    const gy_op *op = &h->job->schedule->ops.at[id];
    if (gy_op_is_copy(op))
        return copy(h, id, turn, to, why, err);
    if (op->kind == GY_OP_FILL)
        return fill(h, id, turn, to, why, err);
    if (op->kind == GY_OP_LAUNCH)
        return record(h, id, turn, to, why, err);
    if (op->kind == GY_OP_COLLECTIVE)
        return gy_resident_combine_calls(h, id, turn, to, why, err);
    *why = "it is a function of the host";
    return GANTRY_OK;
}

/* Each call of an op with a `when` asks the flag: nobody writes it before the op has ended. */
gantry_status gy_resident_calls_of(gy_cuda *h, uint32_t id, uint32_t turn, gy_resident_calls *to, const char **why,
                                   gantry_error *err)
{
    bool guarded = gy_op_is_conditional(h->job->schedule, &h->job->schedule->ops.at[id]);
    gy_resident_asked flag = { 0 };
    size_t first = to->count;
    *why =
        guarded && !find_flag(h, id, turn, &flag) ? "the flag of its \"when\" is not in the memory of its GPU" : NULL;
    if (*why)
        return GANTRY_OK;
    GY_TRY(calls_of(h, id, turn, to, why, err));
    for (size_t i = first; guarded && i < to->count; i++) {
        to->at[i].guarded = true;
        to->at[i].flag = flag;
    }
    return GANTRY_OK;
}
