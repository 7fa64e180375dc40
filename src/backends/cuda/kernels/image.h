/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A kernel whose code is an image of this module: loaded into each context that uses it, its functions found by name.
 * A launcher says how many threads a launch takes and what the function is given:
 *
 *     static gantry_status launch_scale(const gantry_launch *l)
 *     {
 *         ...
 *         return gy_cuda_image_launch(l, 0, x->dtype, gy_grid_for(n), (void *[]){ &number, &x, &y, &n });
 *     }
 *     GY_CUDA_KERNEL(scale, launch_scale, GY_ALL_DTYPES, "")
 */
#ifndef GY_CUDA_KERNELS_IMAGE_H
#define GY_CUDA_KERNELS_IMAGE_H

#include "backends/cuda/kernels/kernels.h"
#include "kernel/dtype.h"
#include "kernels/element.h"
#include "kernels/multiplier.h"
#include <stdbool.h>

enum { GY_IMAGE_VARIANTS = 6, GY_IMAGE_THREADS = 256 };
#define GY_ALL_DTYPES GY_USUAL_DTYPES
/* Among the `dtypes` of an image: one of them stands for all of its size (gy_image_of_size). */
#define GY_IMAGE_BY_SIZE (1u << GANTRY_DTYPE_COUNT)

/* `data` of a gy_cuda_kernel. The functions are NAME VARIANT _DTYPE for each element type of `dtypes`, so variant
 * "_wide" of scale for f32 is scale_wide_f32; NAME VARIANT alone where `dtypes` is 0. The first "" may be the only
 * variant; NULL ends the list. */
typedef struct gy_cuda_image {
    const unsigned char *code;
    uint32_t dtypes; /* GANTRY_DTYPE_BITs, and GY_IMAGE_BY_SIZE */
    const char *variant[GY_IMAGE_VARIANTS];
    uint32_t only[GY_IMAGE_VARIANTS]; /* the types, of `dtypes`, that a variant is for; 0: all */
} gy_cuda_image;

/* The dtype whose functions an image by size has for elements as large as those of `dtype`. */
static inline gantry_dtype gy_image_of_size(gantry_dtype dtype)
{
    size_t bytes = gantry_dtype_size(dtype);
    return bytes == 1 ? GANTRY_U8 : bytes == 2 ? GANTRY_F16 : bytes == 4 ? GANTRY_U32 : GANTRY_U64;
}

/* Extents of a launch; all at least 1, or it is not made. */
typedef struct gy_grid {
    unsigned x, y, z;                   /* blocks */
    unsigned block_x, block_y, block_z; /* threads of a block */
} gy_grid;

/* A scalar for the function of an element type. */
static inline gy_multiplier gy_multiplier_of(const gantry_arg *arg, gantry_dtype dtype)
{
    return gy_dtype_is_float(dtype) ? (gy_multiplier){ .number = arg->number }
                                    : (gy_multiplier){ .integer = arg->integer };
}

gantry_status gy_cuda_image_open(void **handle, const gy_cuda_kernel *kernel, const gy_driver *driver,
                                 gantry_error *err);
void gy_cuda_image_close(void *handle);
/* Finds functions before they are launched: those of the types of the launch's arguments, or all. */
gantry_status gy_cuda_image_prepare(const gantry_launch *launch, uint64_t *scratch, gantry_error *err);
gantry_status gy_cuda_image_find_all(void *handle, gantry_error *err);
gantry_status gy_cuda_image_find(void *handle, int variant, gantry_dtype dtype,
                                 gantry_error *err); /* one that it has */

/* Blocks of GY_IMAGE_THREADS for a loop over `count` elements (GY_FOR_EACH), no more than keep a GPU busy. */
gy_grid gy_grid_for(int64_t count);
/* Blocks of GY_IMAGE_THREADS for a function whose blocks go on to further work of `work` blocks in all: no more than a
 * few times those that the GPU has room for at once. */
gy_grid gy_cuda_image_grid(const gantry_launch *l, int variant, gantry_dtype dtype, int64_t work);
/* Queues a function of the kernel's image; `params` as for cuLaunchKernel. A grid without blocks or threads is nothing
 * to do. `dtype` says nothing where the image has no types. E_DEVICE: the driver refused, or there is no such function.
 */
gantry_status gy_cuda_image_launch(const gantry_launch *l, int variant, gantry_dtype dtype, gy_grid grid,
                                   void **params);
/* Blocks of the function that run at once on an empty GPU; 0: the driver does not tell, or there is no such function.
 */
uint32_t gy_cuda_image_places(const gantry_launch *l, int variant, gantry_dtype dtype);
/* A function that was found and has no types, for a node of a graph; NULL: it was not. */
CUfunction gy_cuda_image_function(const void *handle, int variant);
/* Threads of a block of a function whose launch bounds depend on what GPU it was compiled for: as many as they allow,
 * and GY_IMAGE_THREADS at most. */
unsigned gy_cuda_image_threads(const gantry_launch *l, int variant, gantry_dtype dtype);
/* As gy_driver_splits_floats had it when the image was opened: the same for all launches. */
bool gy_cuda_image_splits(const void *handle);
bool gy_cuda_image_early(void *handle, gy_early which);
void gy_cuda_image_record(void *handle, gy_cuda_recorder *to);
const char *gy_cuda_image_why(const void *handle);

/* True if all rows of the region begin at multiples of so many bytes. */
static inline bool gy_rows_aligned(const gantry_arg *a, int64_t bytes)
{
    return a->row_bytes % bytes == 0 && (uintptr_t)a->data % (uintptr_t)bytes == 0;
}
/* Tiles of so many elements that `count` elements take. */
static inline int64_t gy_tiles(int64_t count, int64_t of)
{
    return (count + of - 1) / of;
}

/* Kernels that move elements, as words of 1, 2, 4 or 8 bytes: their functions have the names of these types. */
#define GY_WORD_DTYPES                                                                                                 \
    (GANTRY_DTYPE_BIT(GANTRY_U8) | GANTRY_DTYPE_BIT(GANTRY_F16) | GANTRY_DTYPE_BIT(GANTRY_F32) |                       \
     GANTRY_DTYPE_BIT(GANTRY_F64))
static inline gantry_dtype gy_dtype_of_word(size_t bytes)
{
    return bytes == 1 ? GANTRY_U8 : bytes == 2 ? GANTRY_F16 : bytes == 4 ? GANTRY_F32 : GANTRY_F64;
}

#define KERNEL(name) extern const unsigned char gy_fatbin_##name[];
#define DEVICE(name) KERNEL(name)
#include "kernels/kernels.def"

/* Defines gy_cuda_kernel_NAME, whose code is the image of NAME.cu. The variants follow the dtypes. */
#define GY_CUDA_KERNEL(name_, launch_, dtypes_, ...)                                                                   \
    static const gy_cuda_image image_##name_ = { .code = gy_fatbin_##name_,                                            \
                                                 .dtypes = dtypes_,                                                    \
                                                 .variant = { __VA_ARGS__ } };                                         \
    extern const gy_cuda_kernel gy_cuda_kernel_##name_;                                                                \
    const gy_cuda_kernel gy_cuda_kernel_##name_ = { .name = #name_,                                                    \
                                                    .launch = launch_,                                                 \
                                                    .open = gy_cuda_image_open,                                        \
                                                    .close = gy_cuda_image_close,                                      \
                                                    .data = &image_##name_,                                            \
                                                    .early = gy_cuda_image_early,                                      \
                                                    .record = gy_cuda_image_record,                                    \
                                                    .prepare = gy_cuda_image_prepare,                                  \
                                                    .why = gy_cuda_image_why };

#endif
