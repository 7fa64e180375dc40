/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A launch of one kernel of the library, to be timed: a graph of one node that says what the arguments are, memory of
 * the harness for its buffers, filled with numbers as a user's are (not zeros, which are faster than others).
 */
#ifndef GY_CUDA_MEASURE_RECIPE_H
#define GY_CUDA_MEASURE_RECIPE_H

#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/measure/harness.h"
#include "graph/graph.h"

typedef struct gy_recipe_launch {
    const gy_cuda_kernel *kernel;
    uint32_t gpu;
    gantry_graph *graph;
    uint32_t node; /* of it */
    bool twin;     /* the graph is borrowed */
    gantry_arg *args;
    gantry_launch launch;
    double flops, bytes; /* of one launch */
    uint32_t most;       /* launches that its arguments bear; 0: any number */
    uint64_t filled;     /* bytes of the block, from its beginning, that its buffers take */
    uint64_t taken;      /* the same with its scratch */
} gy_recipe_launch;

/* The dtypes that are measured of a kernel, in this order, as far as it takes them. Past the last: false. */
bool gy_recipe_dtype(const gantry_kernel *kernel, uint32_t i, gantry_dtype *dtype);
/* The i-th size, for shapes of this kernel or form; 0: past the last. */
int64_t gy_recipe_size(const char *name, uint32_t i);

/* A call of a kernel. `name`: of the kernel, or of the form of it (gy_kernel_form). `contiguous`: as
 * gy_recipe_contiguous says, 0: pieces so long that it does not matter. */
typedef struct gy_recipe_call {
    const char *name;
    gantry_dtype dtype;
    int64_t size, contiguous;
} gy_recipe_call;

/* Makes the handle that launches of the kernel share on a GPU; NULL: there is none. */
gantry_status gy_recipe_load(void **handle, gy_harness *harness, uint32_t gpu, const gy_cuda_kernel *kernel,
                             gantry_error *err);
void gy_recipe_unload(void *handle, gy_harness *harness, uint32_t gpu, const gy_cuda_kernel *kernel);
/* Of kernels that move pieces: the i-th number of bytes that lie together, rising; 0: past the last, or another kernel.
 */
int64_t gy_recipe_contiguous(const gantry_kernel *kernel, gantry_dtype dtype, uint32_t i);
/* E_UNSUPPORTED: there is no way known to call that kernel with that dtype, or the harness has too little memory. Free
 * on success. */
gantry_status gy_recipe_open(gy_recipe_launch *to, gy_harness *harness, uint32_t gpu, const gy_cuda_kernel *kernel,
                             void *handle, const gy_recipe_call *call, gantry_error *err);
/* The same launch on another stream of the GPU, with buffers and scratch of its own, the `place`-th behind those of
 * `of`, whose graph it borrows. Its buffers hold what those hold now. E_UNSUPPORTED: the harness has too little memory.
 * Free on success, before `of`. */
gantry_status gy_recipe_twin(gy_recipe_launch *to, gy_harness *harness, const gy_recipe_launch *of, uint32_t place,
                             gantry_error *err);
/* Whatever was queued has ended, or hangs. */
void gy_recipe_free(gy_recipe_launch *l, gy_harness *harness);
/* Queues a launch; as gy_workload.queue, with a gy_recipe_launch. */
gantry_status gy_recipe_queue(gy_harness *harness, const void *what, gantry_error *err);
/* The time that one more op of the kernel adds to a batch, where that is worth it: points of `k` (measure_batch.c). Of
 * `like` the kernel, GPU and handle count. */
struct gy_measure;
gantry_status gy_measure_batched(struct gy_measure *m, gy_measured_kernel *k, const gy_recipe_launch *like,
                                 gantry_error *err);
/* The times of pieces of different lengths, where the kernel moves such: `strided` of `k` (measure_strided.c). */
gantry_status gy_measure_strided(struct gy_measure *m, gy_measured_kernel *k, const gy_recipe_launch *like,
                                 gantry_dtype dtype, gantry_error *err);
/* True if the kernel has reported a failure by its status word, or the word cannot be read. */
bool gy_recipe_failed(gy_harness *harness, const gy_recipe_launch *l);

#endif
