/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/kernels/image.h"
#include "kernels/box.h"
#include "kernels/retile/retile.h"

/* The launches of a node: boxes are gathered until there is no room for more. */
typedef struct gathering {
    const gantry_launch *launch;
    int64_t element; /* bytes */
    int count;
    int64_t most; /* elements of the largest box */
    struct {
        gy_box of, into;
        const char *from;
        char *to;
    } pair[GY_RETILE_BOXES];
} gathering;

/* Elements from one neighbour along each axis but the last to the next. */
static void strides(int64_t stride[GY_RETILE_AXES - 1], const gy_box *b)
{
    stride[2] = b->shape[3];
    stride[1] = stride[2] * b->shape[2];
    stride[0] = stride[1] * b->shape[1];
}

static int64_t offset(const gy_box *b)
{
    int64_t stride[GY_RETILE_AXES - 1];
    strides(stride, b);
    return b->first[0] * stride[0] + b->first[1] * stride[1] + b->first[2] * stride[2] + b->first[3];
}

/* Is a box made of words of so many bytes in both arrays? */
static bool has_words(const gathering *g, int i, int64_t word)
{
    const gy_box *of = &g->pair[i].of, *into = &g->pair[i].into;
    uintptr_t from = (uintptr_t)(g->pair[i].from + offset(of) * g->element),
              to = (uintptr_t)(g->pair[i].to + offset(into) * g->element);
    return of->count[3] * g->element % word == 0 && of->shape[3] * g->element % word == 0 &&
           into->shape[3] * g->element % word == 0 && from % (uintptr_t)word == 0 && to % (uintptr_t)word == 0;
}

/* The largest word, of at most 8 bytes, that all boxes are made of. */
static int64_t word_of(const gathering *g)
{
    int64_t word = 8;
    for (int i = 0; i < g->count; i++)
        while (word > g->element && !has_words(g, i, word))
            word /= 2;
    return word;
}

/* Box i, for a kernel that counts in words of `each` elements: along the last axis, and from neighbour to neighbour
 * along the others. */
static gy_retile_box box_of(const gathering *g, int i, int64_t each)
{
    const gy_box *of = &g->pair[i].of, *into = &g->pair[i].into;
    gy_retile_box box = { .from = g->pair[i].from + offset(of) * g->element,
                          .to = g->pair[i].to + offset(into) * g->element };
    strides(box.from_stride, of);
    strides(box.to_stride, into);
    for (int k = 0; k < GY_RETILE_AXES - 1; k++) {
        box.count[k] = of->count[k];
        box.from_stride[k] /= each;
        box.to_stride[k] /= each;
    }
    box.count[GY_RETILE_AXES - 1] = of->count[GY_RETILE_AXES - 1] / each;
    return box;
}

static gantry_status flush(gathering *g)
{
    enum { BLOCKS = 2048 }; /* of a box, at most */
    gy_retile_boxes boxes = { { { NULL, NULL, { 0 }, { 0 }, { 0 } } } };
    int64_t word = word_of(g), each = word / g->element, blocks = gy_tiles(g->most / each, GY_IMAGE_THREADS);
    for (int i = 0; i < g->count; i++)
        boxes.box[i] = box_of(g, i, each);
    gy_grid grid = { (unsigned)(blocks < BLOCKS ? blocks : BLOCKS), (unsigned)g->count, 1, GY_IMAGE_THREADS, 1, 1 };
    g->count = 0;
    g->most = 0;
    return gy_cuda_image_launch(g->launch, 0, gy_dtype_of_word((size_t)word), grid, (void *[]){ &boxes });
}

static gantry_status add_box(gathering *g, const gantry_arg *from, const gantry_arg *to)
{
    gy_box of, into;
    if (!gy_box_common(&of, &into, from, to))
        return GANTRY_OK;
    int64_t elements = gy_box_elements(&of);
    g->pair[g->count].of = of;
    g->pair[g->count].into = into;
    g->pair[g->count].from = from->data;
    g->pair[g->count++].to = to->data;
    g->most = elements > g->most ? elements : g->most;
    return g->count == GY_RETILE_BOXES ? flush(g) : GANTRY_OK;
}

static gantry_status launch_retile(const gantry_launch *l)
{
    const gantry_arg *x = gantry_launch_arg(l, 0), *y = gantry_launch_arg(l, 1);
    gathering g = { .launch = l, .element = (int64_t)gantry_dtype_size(y->dtype) };
    gantry_status status = GANTRY_OK;
    for (int64_t j = 0; j < gy_list_count(y) && !status; j++)
        for (int64_t i = 0; i < gy_list_count(x) && !status; i++)
            status = add_box(&g, gy_list_item(l, x, i), gy_list_item(l, y, j));
    return status || !g.count ? status : flush(&g);
}

GY_CUDA_KERNEL(retile, launch_retile, GY_WORD_DTYPES, "")
