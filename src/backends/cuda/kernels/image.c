/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"

#include "base/error.h"
#include "base/memory.h"
#include <stdio.h>
#include <string.h>

/* Several blocks for each place on the GPU, so that a multiprocessor that is ahead takes more of them. */
enum { MOST_BLOCKS = 1 << 16, BLOCKS_PER_PLACE = 4 };

typedef struct handle {
    const gy_driver *driver;
    const gy_cuda_image *image;
    const char *name; /* of its functions, as they begin */
    CUmodule module;
    int processors;                                             /* of the device; 0: the driver does not tell */
    bool splits;                                                /* floats, for tensor cores */
    CUfunction function[GY_IMAGE_VARIANTS][GANTRY_DTYPE_COUNT]; /* NULL: not looked for; [v][0] without types */
    int places[GY_IMAGE_VARIANTS][GANTRY_DTYPE_COUNT];          /* blocks of it that run at once */
    gantry_error why;                                           /* of the last launch; text "": it was made */
    gy_early_launches early;
    gy_cuda_recorder *recorder; /* NULL: launches are made */
} handle;

static gantry_status fail(const gy_driver *d, CUresult code, const char *what, const char *name, gantry_error *err)
{
    char text[160];
    snprintf(text, sizeof text, "%s \"%s\"", what, name);
    return gy_driver_fail(d, code, text, err);
}

/* The blocks of the function that run at once on the current context's device; many, where the driver does not tell. */
static int count_places(const handle *h, CUfunction function)
{
    int blocks;
    if (!h->processors ||
        h->driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, GY_IMAGE_THREADS, 0) != CUDA_SUCCESS)
        return MOST_BLOCKS / BLOCKS_PER_PLACE;
    return h->processors * blocks;
}

/* ---- functions: each is looked for when it is first needed, since the driver loads the code of one that it finds ----
 */

enum { NAME_BYTES = 96 };

static void name_function(const handle *h, int variant, gantry_dtype dtype, char name[NAME_BYTES])
{
    const gy_cuda_image *image = h->image;
    snprintf(name, NAME_BYTES, "%s%s%s%s", h->name, image->variant[variant], image->dtypes ? "_" : "",
             image->dtypes ? gantry_dtype_name(dtype) : "");
}

static gantry_status find(handle *h, int variant, gantry_dtype dtype, gantry_error *err)
{
    char name[NAME_BYTES];
    if (h->function[variant][dtype])
        return GANTRY_OK;
    name_function(h, variant, dtype, name);
    CUresult code = h->driver->cuModuleGetFunction(&h->function[variant][dtype], h->module, name);
    if (code != CUDA_SUCCESS) {
        h->function[variant][dtype] = NULL;
        return fail(h->driver, code, "finding the function", name, err);
    }
    h->places[variant][dtype] = count_places(h, h->function[variant][dtype]);
    return GANTRY_OK;
}

static gantry_dtype type_of(const handle *h, gantry_dtype dtype)
{
    return h->image->dtypes ? dtype : (gantry_dtype)0;
}

static bool has(const handle *h, int variant, gantry_dtype dtype)
{
    bool typed = !h->image->dtypes || h->image->dtypes >> dtype & 1;
    return variant < GY_IMAGE_VARIANTS && h->image->variant[variant] && typed &&
           (!h->image->only[variant] || h->image->only[variant] >> dtype & 1);
}

/* Most launchers ask for a function of an argument's type. */
gantry_status gy_cuda_image_prepare(const gantry_launch *l, uint64_t *scratch, gantry_error *err)
{
    (void)scratch;
    handle *h = l->handle;
    for (int32_t i = 0; i < l->args; i++) {
        bool by_size = l->arg[i].access && h->image->dtypes & GY_IMAGE_BY_SIZE;
        gantry_dtype dtype = type_of(h, by_size ? gy_image_of_size(l->arg[i].dtype) : l->arg[i].dtype);
        for (int v = 0; l->arg[i].access && v < GY_IMAGE_VARIANTS; v++)
            GY_TRY(has(h, v, dtype) ? find(h, v, dtype, err) : GANTRY_OK);
    }
    return GANTRY_OK;
}

gantry_status gy_cuda_image_find(void *opened, int variant, gantry_dtype dtype, gantry_error *err)
{
    return find(opened, variant, dtype, err);
}

gantry_status gy_cuda_image_find_all(void *opened, gantry_error *err)
{
    handle *h = opened;
    uint32_t dtypes = h->image->dtypes ? h->image->dtypes : 1;
    gantry_status status = GANTRY_OK;
    for (int v = 0; v < GY_IMAGE_VARIANTS && h->image->variant[v]; v++)
        for (int i = 0; i < GANTRY_DTYPE_COUNT && status == GANTRY_OK; i++)
            status = dtypes >> i & 1 && has(h, v, (gantry_dtype)i) ? find(h, v, (gantry_dtype)i, err) : GANTRY_OK;
    return status;
}

static int count_processors(const gy_driver *d)
{
    CUdevice device;
    int processors;
    if (d->cuCtxGetDevice(&device) != CUDA_SUCCESS ||
        d->cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) != CUDA_SUCCESS)
        return 0;
    return processors;
}

gantry_status gy_cuda_image_open(void **opened, const gy_cuda_kernel *kernel, const gy_driver *driver,
                                 gantry_error *err)
{
    const gy_cuda_image *image = kernel->data;
    handle *h = gy_calloc(1, sizeof *h);
    if (!h)
        return gy_fail_nomem(err);
    h->driver = driver;
    h->image = image;
    h->name = kernel->name;
    h->processors = count_processors(driver);
    h->splits = gy_driver_splits_floats(driver);
    h->early.can = gy_early_can(driver);
    CUresult code = driver->cuModuleLoadData(&h->module, image->code);
    if (code != CUDA_SUCCESS) {
        gy_free(h);
        return fail(driver, code, "loading the code of", kernel->name, err);
    }
    *opened = h;
    return GANTRY_OK;
}

void gy_cuda_image_close(void *opened)
{
    handle *h = opened;
    h->driver->cuModuleUnload(h->module);
    gy_free(h);
}

gy_grid gy_grid_for(int64_t count)
{
    int64_t blocks = (count + GY_IMAGE_THREADS - 1) / GY_IMAGE_THREADS;
    return (gy_grid){ (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), 1, 1, GY_IMAGE_THREADS, 1, 1 };
}

gy_grid gy_cuda_image_grid(const gantry_launch *l, int variant, gantry_dtype dtype, int64_t work)
{
    handle *h = l->handle;
    gantry_dtype type = type_of(h, dtype);
    bool found = has(h, variant, type) && find(h, variant, type, NULL) == GANTRY_OK; /* or the launch tells */
    int64_t most = (int64_t)BLOCKS_PER_PLACE * (found ? h->places[variant][type] : 1);
    return (gy_grid){ (unsigned)(work < most ? work : most), 1, 1, GY_IMAGE_THREADS, 1, 1 };
}

uint32_t gy_cuda_image_places(const gantry_launch *l, int variant, gantry_dtype dtype)
{
    handle *h = l->handle;
    gantry_dtype type = type_of(h, dtype);
    int blocks = 0;
    if (!has(h, variant, type) || find(h, variant, type, NULL) || !h->processors ||
        h->driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, h->function[variant][type], GY_IMAGE_THREADS,
                                                               0) != CUDA_SUCCESS)
        return 0;
    return (uint32_t)(blocks * h->processors);
}

CUfunction gy_cuda_image_function(const void *opened, int variant)
{
    return ((const handle *)opened)->function[variant][0];
}

unsigned gy_cuda_image_threads(const gantry_launch *l, int variant, gantry_dtype dtype)
{
    handle *h = l->handle;
    gantry_dtype type = type_of(h, dtype);
    int most = GY_IMAGE_THREADS;
    if (has(h, variant, type) && find(h, variant, type, NULL) == GANTRY_OK) /* or the launch tells */
        h->driver->cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, h->function[variant][type]);
    return most > 0 && most < GY_IMAGE_THREADS ? (unsigned)most : GY_IMAGE_THREADS;
}

bool gy_cuda_image_splits(const void *opened)
{
    return ((const handle *)opened)->splits;
}

/* ---- launches ---- */

bool gy_cuda_image_early(void *opened, gy_early which)
{
    handle *h = opened;
    return gy_early_next(&h->early, which);
}

void gy_cuda_image_record(void *opened, gy_cuda_recorder *to)
{
    handle *h = opened;
    h->recorder = to;
}

/* Parameters are counted, and their sizes asked for, until the driver has no more of them. */
static gantry_status record(handle *h, int variant, gantry_dtype dtype, gy_grid g, void **params)
{
    uint64_t word[GY_CUDA_RECORDED_WORDS] = { 0 };
    char name[NAME_BYTES];
    uint32_t words = 0;
    size_t offset, bytes;
    if (!h->driver->param_info)
        return GANTRY_E_UNSUPPORTED;
    while (h->driver->param_info(h->function[variant][dtype], words, &offset, &bytes) == CUDA_SUCCESS) {
        if (words == GY_CUDA_RECORDED_WORDS || bytes > sizeof *word)
            return GANTRY_E_UNSUPPORTED;
        memcpy(&word[words], params[words], bytes);
        words++;
    }
    name_function(h, variant, dtype, name);
    return h->recorder->add(h->recorder, name, (unsigned[]){ g.x, g.y, g.z },
                            (unsigned[]){ g.block_x, g.block_y, g.block_z }, word, words);
}

/* The function of a launch; *function: NULL: it does nothing. */
static gantry_status find_launched(handle *h, int variant, gantry_dtype dtype, gy_grid g, CUfunction *function)
{
    gantry_dtype type = type_of(h, dtype);
    *function = NULL;
    h->why.text[0] = 0;
    if (!g.x || !g.y || !g.z || !g.block_x || !g.block_y || !g.block_z)
        return GANTRY_OK;
    if (!has(h, variant, type))
        return gy_fail(&h->why, GANTRY_E_DEVICE, NULL, "its code has no function for %s", gantry_dtype_name(dtype));
    GY_TRY(find(h, variant, type, &h->why));
    *function = h->function[variant][type];
    return GANTRY_OK;
}

gantry_status gy_cuda_image_launch(const gantry_launch *l, int variant, gantry_dtype dtype, gy_grid g, void **params)
{
    handle *h = l->handle;
    CUfunction function;
    gantry_status status = find_launched(h, variant, dtype, g, &function);
    if (status || !function)
        return status;
    if (h->recorder)
        return record(h, variant, type_of(h, dtype), g, params);
    CUresult code = gy_early_launch(&h->early, h->driver, function, (unsigned[]){ g.x, g.y, g.z },
                                    (unsigned[]){ g.block_x, g.block_y, g.block_z }, 0, l->stream, params);
    return code == CUDA_SUCCESS ? GANTRY_OK : gy_driver_fail(h->driver, code, "launching it", &h->why);
}

const char *gy_cuda_image_why(const void *opened)
{
    const handle *h = opened;
    return h->why.text[0] ? h->why.text : NULL;
}
