/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/measure/recipe.h"

#include "base/align.h"
#include "base/error.h"
#include "kernel/dtype.h"
#include "run/fill.h"
#include <stdio.h>
#include <string.h>

#define PATTERN     (UINT64_C(1) << 16) /* bytes that are made by the host, then repeated by the device */
#define STATUS_ROOM UINT64_C(256)       /* at the end of the block: the status word */

/* Kernels, and forms of kernels, whose arguments are not all arrays of n elements. $ stands for the dtype, & for that
 * of its sums, % for that of a product (bf16 of f8), n for the size, and f8 is 1 for f8, whose products are those of
 * rows. Buffers whose init is 0 get numbers of their dtype: [0, 1), or whole numbers from 0 to 1. */
typedef struct recipe {
    const char *kernel;
    bool square;                /* n is the side of something square */
    const char *buffers, *args; /* no args: the node is one of those that a tile with a halo stands for */
} recipe;

#define STATE(name, dtype, shape, init)                                                                                \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"class\":\"state\",\"init\":" init "}"
#define SPD      "{\"spd\":{\"seed\":1}}"
#define IMAGES   "[4,\"n\",\"n\",3]"
#define CHANNELS "[4,16,\"n\",\"n\"]"
#define ROWS     "[\"n / 256\",256]"
#define PLANES   "[16,\"n\",\"n\"]"
#define SQUARE   "[\"n\",\"n\"]"
/* As large as a square; small ones have four rows, as parts of small grids have few, for which kernels have a form. */
#define GRID    "[\"n - (n <= 64) * (n - 4)\",\"n * (1 + (n <= 64) * (n - 4) / 4)\"]"
#define LONG    "[\"max(n, 16384) / 16384\",8192,2]"
#define TALL    "[\"max(n, 4096) / 32\",32]"
#define HEADS   "[8,\"n\",64]"
#define QUERIES "[8,\"n\"]"
/* Two tiles beside each other, and `halo` elements of the second wanted beside those of the first. */
#define TILES "\"x\":{\"dtype\":\"$\",\"shape\":[\"lines\",\"2 * own\"],\"tiles\":[1,2],\"class\":\"state\",\"init\":0}"

static const recipe recipes[] = {
    { "gemm", true, STATE("a", "$", SQUARE, "0") "," STATE("b", "$", SQUARE, "0") "," STATE("c", "%", SQUARE, "0"),
      "\"tb\":\"f8\",\"a\":\"a\",\"b\":\"b\",\"c\":\"c\"" },
    { "gemm_batched", true,
      STATE("a", "$", HEADS, "0") "," STATE("b", "$", HEADS, "0") "," STATE("c", "$", "[8,\"n\",\"n\"]", "0"),
      "\"tb\":1,\"a\":\"a\",\"b\":\"b\",\"c\":\"c\"" },
    { "gemm_bias", true,
      STATE("a", "$", SQUARE, "0") "," STATE("b", "$", SQUARE, "0") "," STATE("v", "$", "[\"n\"]",
                                                                              "0") "," STATE("c", "$", SQUARE, "0"),
      "\"activation\":1,\"a\":\"a\",\"b\":\"b\",\"bias\":\"v\",\"c\":\"c\"" },
    { "syrk", true, STATE("a", "$", SQUARE, "0") "," STATE("c", "$", SQUARE, "0"), "\"a\":\"a\",\"c\":\"c\"" },
    { "trsm", true, STATE("a", "$", SQUARE, SPD) "," STATE("b", "$", SQUARE, "0"), "\"a\":\"a\",\"b\":\"b\"" },
    { "potrf", true, STATE("a", "$", SQUARE, SPD), "\"a\":\"a\"" },
    { "halo_pack", false, TILES, NULL },
    { "halo_unpack", false, TILES, NULL },
    { "fft", false, STATE("x", "$", "[\"n / 256\",128,2]", "0") "," STATE("y", "$", "[\"n / 256\",128,2]", "0"),
      "\"x\":\"x\",\"y\":\"y\"" },
    { "fft:long", false, STATE("x", "$", LONG, "0") "," STATE("y", "$", LONG, "0"), "\"x\":\"x\",\"y\":\"y\"" },
    { "getrf", true, STATE("a", "$", SQUARE, SPD) "," STATE("p", "i32", "[\"n\"]", "0"),
      "\"a\":\"a\",\"pivots\":\"p\"" },
    { "getrs", true,
      STATE("a", "$", SQUARE, SPD) "," STATE("p", "i32", "[\"n\"]", "{\"iota\":{\"start\":1}}") "," STATE("b", "$",
                                                                                                          SQUARE, "0"),
      "\"a\":\"a\",\"pivots\":\"p\",\"b\":\"b\"" },
    { "qr", true, STATE("a", "$", SQUARE, SPD) "," STATE("q", "$", SQUARE, "0") "," STATE("r", "$", SQUARE, "0"),
      "\"a\":\"a\",\"q\":\"q\",\"r\":\"r\"" },
    { "qr:tall", false, STATE("a", "$", TALL, "0") "," STATE("q", "$", TALL, "0") "," STATE("r", "$", "[32,32]", "0"),
      "\"a\":\"a\",\"q\":\"q\",\"r\":\"r\"" },
    { "transpose", true, STATE("x", "$", SQUARE, "0") "," STATE("y", "$", SQUARE, "0"), "\"x\":\"x\",\"y\":\"y\"" },
    { "jacobi2d", true, STATE("x", "$", GRID, "0") "," STATE("y", "$", GRID, "0"), "\"x\":\"x\",\"y\":\"y\"" },
    { "jacobi3d", true, STATE("x", "$", PLANES, "0") "," STATE("y", "$", PLANES, "0"), "\"x\":\"x\",\"y\":\"y\"" },
    { "jacobi2d_grad", true, STATE("x", "$", SQUARE, "0") "," STATE("y", "$", SQUARE, "0"), "\"x\":\"x\",\"y\":\"y\"" },
    { "jacobi3d_grad", true, STATE("x", "$", PLANES, "0") "," STATE("y", "$", PLANES, "0"), "\"x\":\"x\",\"y\":\"y\"" },
    { "gaussian_blur", true, STATE("x", "$", IMAGES, "0") "," STATE("y", "$", IMAGES, "0"),
      "\"sigma\":2,\"image\":\"x\",\"out\":\"y\"" },
    { "sobel", true, STATE("x", "$", IMAGES, "0") "," STATE("y", "$", IMAGES, "0"), "\"image\":\"x\",\"out\":\"y\"" },
    { "filter2d", true,
      STATE("w", "f32", "[5,5]", "0.04") "," STATE("x", "$", IMAGES, "0") "," STATE("y", "$", IMAGES, "0"),
      "\"weights\":\"w\",\"image\":\"x\",\"out\":\"y\"" },
    { "filter2d_grad", true,
      STATE("w", "f32", "[5,5]", "0.04") "," STATE("x", "$", IMAGES, "0") "," STATE("y", "$", IMAGES, "0"),
      "\"weights\":\"w\",\"dout\":\"x\",\"dimage\":\"y\"" },
    { "gaussian_blur_grad", true, STATE("x", "$", IMAGES, "0") "," STATE("y", "$", IMAGES, "0"),
      "\"sigma\":2,\"dout\":\"x\",\"dimage\":\"y\"" },
    { "resize", true, STATE("x", "$", IMAGES, "0") "," STATE("y", "$", "[4,\"n // 2\",\"n // 2\",3]", "0"),
      "\"image\":\"x\",\"out\":\"y\"" },
    { "bias_add", false,
      STATE("x", "$", "[\"n / 256\",256]", "0") "," STATE("b", "$", "[256]", "0") "," STATE("y", "$",
                                                                                            "[\"n / 256\",256]", "0"),
      "\"x\":\"x\",\"b\":\"b\",\"y\":\"y\"" },
    { "dot", false, STATE("x", "$", "[\"n\"]", "0") "," STATE("y", "$", "[\"n\"]", "0") "," STATE("o", "$", "[1]", "0"),
      "\"x\":\"x\",\"y\":\"y\",\"out\":\"o\"" },
    { "reduce_sum", false, STATE("x", "$", "[\"n\"]", "0") "," STATE("o", "$", "[1]", "0"),
      "\"x\":\"x\",\"out\":\"o\"" },
    { "reduce_max", false, STATE("x", "$", "[\"n\"]", "0") "," STATE("o", "$", "[1]", "0"),
      "\"x\":\"x\",\"out\":\"o\"" },
    { "argsort", false, STATE("x", "$", "[\"n\"]", "0") "," STATE("i", "i32", "[\"n\"]", "0"),
      "\"x\":\"x\",\"index\":\"i\"" },
    { "sort_pairs", false,
      STATE("x", "$", "[\"n\"]", "0") "," STATE("v", "i32", "[\"n\"]", "0") "," STATE(
          "y", "$", "[\"n\"]", "0") "," STATE("w", "i32", "[\"n\"]", "0"),
      "\"keys\":\"x\",\"values\":\"v\",\"sorted\":\"y\",\"moved\":\"w\"" },
    { "select", false,
      STATE("x", "$", "[\"n\"]", "0") "," STATE("m", "u8", "[\"n\"]", "0") "," STATE(
          "y", "$", "[\"n\"]", "0") "," STATE("c", "i32", "[1]", "0"),
      "\"x\":\"x\",\"mask\":\"m\",\"y\":\"y\",\"count\":\"c\"" },
    { "top_k", false,
      STATE("x", "$", ROWS, "0") "," STATE("v", "$", "[\"n / 256\",8]", "0") "," STATE("i", "i32", "[\"n / 256\",8]",
                                                                                       "0"),
      "\"x\":\"x\",\"values\":\"v\",\"indices\":\"i\"" },
    { "histogram", false, STATE("x", "$", "[\"n\"]", "0") "," STATE("o", "i32", "[256]", "0"),
      "\"x\":\"x\",\"out\":\"o\"" },
    { "softmax_xent", false,
      STATE("x", "$", "[\"n / 64\",64]", "0") "," STATE("k", "i32", "[\"n / 64\"]", "0") "," STATE("o", "&", "[1]",
                                                                                                   "0"),
      "\"logits\":\"x\",\"labels\":\"k\",\"loss\":\"o\"" },
    { "softmax_xent_grad", false,
      STATE("x", "$", "[\"n / 64\",64]", "0") "," STATE("k", "i32", "[\"n / 64\"]",
                                                        "0") "," STATE("o", "$", "[\"n / 64\",64]", "0"),
      "\"logits\":\"x\",\"labels\":\"k\",\"grad\":\"o\"" },
    { "layernorm", false,
      STATE("x", "$", ROWS, "0") "," STATE("g", "$", "[256]", "0") "," STATE("b", "$", "[256]",
                                                                             "0") "," STATE("y", "$", ROWS, "0"),
      "\"x\":\"x\",\"gain\":\"g\",\"bias\":\"b\",\"y\":\"y\"" },
    { "layernorm_grad", false,
      STATE("x", "$", ROWS, "0") "," STATE("g", "$", "[256]", "0") "," STATE("d", "$", ROWS, "0") "," STATE(
          "o", "$", ROWS, "0") "," STATE("p", "$", "[256]", "0") "," STATE("q", "$", "[256]", "0"),
      "\"x\":\"x\",\"gain\":\"g\",\"dy\":\"d\",\"dx\":\"o\",\"dgain\":\"p\",\"dbias\":\"q\"" },
    { "rmsnorm", false, STATE("x", "$", ROWS, "0") "," STATE("g", "$", "[256]", "0") "," STATE("y", "$", ROWS, "0"),
      "\"x\":\"x\",\"gain\":\"g\",\"y\":\"y\"" },
    { "rmsnorm_grad", false,
      STATE("x", "$", ROWS, "0") "," STATE("g", "$", "[256]", "0") "," STATE("d", "$", ROWS, "0") "," STATE(
          "o", "$", ROWS, "0") "," STATE("p", "$", "[256]", "0"),
      "\"x\":\"x\",\"gain\":\"g\",\"dy\":\"d\",\"dx\":\"o\",\"dgain\":\"p\"" },
    { "softmax", false, STATE("x", "$", ROWS, "0") "," STATE("y", "$", ROWS, "0"), "\"x\":\"x\",\"y\":\"y\"" },
    { "softmax_grad", false, STATE("y", "$", ROWS, "0") "," STATE("d", "$", ROWS, "0") "," STATE("x", "$", ROWS, "0"),
      "\"y\":\"y\",\"dy\":\"d\",\"dx\":\"x\"" },
    { "attention", true,
      STATE("q", "$", HEADS, "0") "," STATE("k", "$", HEADS, "0") "," STATE("v", "$", HEADS, "0") "," STATE("y", "$",
                                                                                                            HEADS, "0"),
      "\"q\":\"q\",\"k\":\"k\",\"v\":\"v\",\"y\":\"y\"" },
    { "attention_grad", true,
      STATE("q", "$", HEADS, "0") "," STATE("k", "$", HEADS, "0") "," STATE("v", "$", HEADS, "0") "," STATE(
          "y", "$", HEADS, "0") "," STATE("d", "$", HEADS,
                                          "0") "," STATE("e", "$", HEADS,
                                                         "0") "," STATE("f", "$", HEADS,
                                                                        "0") "," STATE("g", "$", HEADS,
                                                                                       "0") "," STATE("l", "&", QUERIES,
                                                                                                      "0"),
      "\"q\":\"q\",\"k\":\"k\",\"v\":\"v\",\"y\":\"y\",\"dy\":\"d\",\"dq\":\"e\",\"dk\":\"f\",\"dv\":\"g\",\"lse\":"
      "\"l\"" },
    { "attention_grad:whole", true,
      STATE("q", "$", HEADS, "0") "," STATE("k", "$", HEADS, "0") "," STATE("v", "$", HEADS, "0") "," STATE(
          "y", "$", HEADS, "0") "," STATE("d", "$", HEADS, "0") "," STATE("e", "$", HEADS,
                                                                          "0") "," STATE("f", "$", HEADS,
                                                                                         "0") "," STATE("g", "$", HEADS,
                                                                                                        "0"),
      "\"q\":\"q\",\"k\":\"k\",\"v\":\"v\",\"y\":\"y\",\"dy\":\"d\",\"dq\":\"e\",\"dk\":\"f\",\"dv\":\"g\"" },
    { "conv2d", true,
      STATE("x", "$", CHANNELS, "0") "," STATE("w", "$", "[16,16,3,3]", "0") "," STATE("y", "$", CHANNELS, "0"),
      "\"pad\":1,\"x\":\"x\",\"w\":\"w\",\"y\":\"y\"" },
    { "conv2d_grad_x", true,
      STATE("w", "$", "[16,16,3,3]", "0") "," STATE("y", "$", CHANNELS, "0") "," STATE("x", "$", CHANNELS, "0"),
      "\"pad\":1,\"w\":\"w\",\"dy\":\"y\",\"dx\":\"x\"" },
    { "conv2d_grad_w", true,
      STATE("x", "$", CHANNELS, "0") "," STATE("y", "$", CHANNELS, "0") "," STATE("w", "$", "[16,16,3,3]", "0"),
      "\"pad\":1,\"x\":\"x\",\"dy\":\"y\",\"dw\":\"w\"" },
    { "rope", false, STATE("x", "$", ROWS, "0") "," STATE("y", "$", ROWS, "0"), "\"dim\":64,\"x\":\"x\",\"y\":\"y\"" },
    { "embedding", false,
      STATE("t", "$", "[\"n / 256 + 1\",256]", "0") "," STATE("i", "i32", "[\"n / 256\"]", "0") "," STATE("y", "$",
                                                                                                          ROWS, "0"),
      "\"table\":\"t\",\"ids\":\"i\",\"y\":\"y\"" },
    { "adamw", false,
      STATE("w", "$", "[\"n\"]", "0") "," STATE("g", "$", "[\"n\"]", "0") "," STATE("m", "$", "[\"n\"]", "0") "," STATE(
          "v", "$", "[\"n\"]", "0"),
      "\"lr\":1,\"step\":1,\"w\":\"w\",\"g\":\"g\",\"m\":\"m\",\"v\":\"v\"" },
    { "dropout", false, STATE("x", "$", "[\"n\"]", "0") "," STATE("y", "$", "[\"n\"]", "0"),
      "\"p\":0.5,\"seed\":1,\"x\":\"x\",\"y\":\"y\"" },
};
enum { RECIPES = sizeof recipes / sizeof *recipes };

/* Kernels that take as long as they are asked to, or fail when they are asked to, show nothing of a device; sparse
 * matrices and how often ids are repeated differ too much,
 * and so does how much of a cache there is, of which an appended token needs a place. */
static const char *const passed_over[] = { "attention_append", "attention_cached", "busy",
                                           "cache_append",     "embedding_grad",   "fail",
                                           "spmm_csr",         "spmv_csr" };

enum { FACTORS = 14 }; /* factor of factor: of 16 x 16 numbers the 18th may have none */

static const recipe *recipe_of(const char *name)
{
    for (size_t i = 0; i < RECIPES; i++)
        if (strcmp(recipes[i].kernel, name) == 0)
            return &recipes[i];
    return NULL;
}

bool gy_recipe_dtype(const gantry_kernel *kernel, uint32_t i, gantry_dtype *dtype)
{
    static const gantry_dtype order[] = { GANTRY_F32, GANTRY_F64, GANTRY_F16,   GANTRY_BF16,
                                          GANTRY_U8,  GANTRY_I32, GANTRY_F8E4M3 };
    uint32_t allowed = GY_USUAL_DTYPES, first = 0;
    for (int k = 0; k < kernel->args && !first; k++)
        first = kernel->arg[k].scalar ? 0 : kernel->arg[k].dtypes ? kernel->arg[k].dtypes : allowed;
    for (size_t k = 0; k < sizeof passed_over / sizeof *passed_over; k++)
        first = strcmp(kernel->name, passed_over[k]) == 0 ? 0 : first;
    for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
        if ((first >> order[k] & 1) && i-- == 0) {
            *dtype = order[k];
            return true;
        }
    }
    return false;
}

/* Between two sides four times apart a line says half of what potrf and syrk take on an H200. */
int64_t gy_recipe_size(const char *name, uint32_t i)
{
    static const int64_t elements[] = { 1 << 8, 1 << 12, 1 << 16, 1 << 20, 1 << 22, 1 << 24 };
    static const int64_t sides[] = { 16, 64, 128, 256, 512, 1024, 2048, 4096 };
    const recipe *r = recipe_of(name);
    if (r && r->square)
        return i < sizeof sides / sizeof *sides ? sides[i] : 0;
    return i < sizeof elements / sizeof *elements ? elements[i] : 0;
}

/* ---- the graph ---- */

static void add_plain(gy_text *to, const gantry_kernel *kernel, bool args)
{
    const char *comma = "";
    for (int i = 0; i < kernel->args; i++) {
        const gantry_kernel_arg *a = &kernel->arg[i];
        if (a->optional || (a->scalar && !args))
            continue;
        if (args) {
            gy_text_printf(to, a->scalar ? "%s\"%s\":1" : "%s\"%s\":\"b%d\"", comma, a->name, i);
        } else {
            gy_text_printf(to, "%s\"b%d\":{\"dtype\":\"$\",\"shape\":[\"n\"],\"class\":\"state\",\"init\":0}", comma,
                           i);
        }
        comma = ",";
    }
}

enum { LONGEST = 4096, APART = 256 }; /* bytes: of pieces, and from one to the next at least */

int64_t gy_recipe_contiguous(const gantry_kernel *kernel, gantry_dtype dtype, uint32_t i)
{
    const recipe *r = recipe_of(kernel->name);
    int64_t least = (int64_t)gantry_dtype_size(dtype) * (strcmp(kernel->name, "halo_unpack") == 0 ? 4 : 1);
    return !r || r->args || i > 6 || least << (2 * i) >= LONGEST ? 0 : least << (2 * i);
}

/* Lines of a tile, of which `halo` elements go to the tile beside it, or come from there: halo_pack moves pieces of so
 * many bytes, lines of halo_unpack are as long. All of them together are about `size` elements. */
static void print_tiles(gy_text *to, const gantry_kernel *kernel, const gy_recipe_call *call)
{
    int64_t bytes = (int64_t)gantry_dtype_size(call->dtype), size = call->size;
    int64_t piece = (call->contiguous ? call->contiguous : LONGEST) / bytes;
    piece = piece < size ? piece : size;
    bool packs = strcmp(kernel->name, "halo_pack") == 0;
    int64_t apart = 2 * piece < APART / bytes ? APART / bytes : 2 * piece;
    gy_text_printf(to, ",\"lines\":%lld,\"own\":%lld,\"halo\":%lld", (long long)(size / piece),
                   (long long)(packs ? apart : piece - 1), (long long)(packs ? piece : 1));
}

static gantry_status load(gantry_graph **graph, const gantry_kernel *kernel, const gy_recipe_call *call,
                          gantry_error *err)
{
    const recipe *r = recipe_of(call->name);
    gy_text pattern = { 0 }, text = { 0 };
    gantry_load_options options = GANTRY_LOAD_OPTIONS_INIT;
    gy_text_printf(&pattern, "{\"gantry\":1,\"params\":{\"n\":%lld,\"f8\":%d", (long long)call->size,
                   gy_dtype_is_f8(call->dtype));
    if (r && !r->args)
        print_tiles(&pattern, kernel, call);
    gy_text_add(&pattern, "},\"buffers\":{");
    r ? gy_text_add(&pattern, r->buffers) : add_plain(&pattern, kernel, false);
    gy_text_add(&pattern, "},\"nodes\":[{\"id\":\"k\",");
    if (r && !r->args) {
        gy_text_add(&pattern, "\"work\":{},\"reads\":[\"x[0][0]~0,halo\"]}]}");
    } else {
        gy_text_printf(&pattern, "\"kernel\":\"%s\",\"args\":{", kernel->name);
        r ? gy_text_add(&pattern, r->args) : add_plain(&pattern, kernel, true);
        gy_text_add(&pattern, "}}]}");
    }
    for (size_t i = 0; i < pattern.length && !pattern.failed; i++) {
        char letter = pattern.at[i];
        bool is_own = letter == '$' || (letter == '%' && !gy_dtype_is_f8(call->dtype)) || call->dtype == GANTRY_F64;
        gantry_dtype named = is_own ? call->dtype : letter == '%' ? GANTRY_BF16 : GANTRY_F32;
        if (letter == '$' || letter == '&' || letter == '%')
            gy_text_add(&text, gantry_dtype_name(named));
        else
            gy_text_add_n(&text, &pattern.at[i], 1);
    }
    gantry_status status = pattern.failed || text.failed
                               ? gy_fail_nomem(err)
                               : gantry_graph_parse(graph, text.at, text.length, "recipe", NULL, &options, err);
    gy_text_free(&pattern);
    gy_text_free(&text);
    return status;
}

/* ---- memory ---- */

static gantry_status upload(gy_harness *harness, uint32_t gpu, CUdeviceptr to, uint64_t bytes, gantry_error *err)
{
    const gy_harness_gpu *g = &harness->gpu[gpu];
    gantry_status status = gy_harness_use(harness, gpu, err);
    CUresult code = status ? CUDA_SUCCESS : harness->d.cuMemcpyHtoDAsync(to, g->host, bytes, g->stream[0]);
    return status ? status : gy_harness_check(harness, code, gpu, "uploading arguments", err);
}

/* The pattern that the host makes is repeated by copies that double it. */
static gantry_status fill_pattern(gy_harness *harness, uint32_t gpu, const gy_buffer *b, CUdeviceptr to, uint64_t bytes,
                                  gantry_error *err)
{
    const gy_harness_gpu *g = &harness->gpu[gpu];
    gy_init numbers = { .kind = GY_INIT_UNIFORM, .seed = 1, .b = { .real = 2 } };
    if (gy_dtype_is_float(b->dtype)) /* of both signs, as users' numbers: then products take as much power */
        numbers.a.real = -1, numbers.b.real = 1;
    uint64_t done = bytes < PATTERN ? bytes : PATTERN;
    done = done < harness->host ? done : harness->host;
    gy_fill_elements(g->host, b->dtype, &numbers, 0, done / gantry_dtype_size(b->dtype));
    gantry_status status = upload(harness, gpu, to, done, err);
    while (done < bytes && !status) {
        uint64_t more = bytes - done < done ? bytes - done : done;
        status = gy_harness_check(harness, harness->d.cuMemcpyDtoDAsync(to + done, to, more, g->stream[0]), gpu,
                                  "repeating arguments", err);
        done += more;
    }
    return status ? status : gy_harness_drain(harness, err); /* the host's block is used anew for the next buffer */
}

static gantry_status fill(gy_harness *harness, uint32_t gpu, const gy_buffer *b, CUdeviceptr to, uint64_t bytes,
                          gantry_error *err)
{
    if (b->init.kind == GY_INIT_VALUE || b->init.kind == GY_INIT_NONE)
        return fill_pattern(harness, gpu, b, to, bytes, err);
    if (b->bytes > harness->host)
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "the test bed is too small for \"%s\"", b->name);
    gy_fill_rows(harness->gpu[gpu].host, b, &b->init, 0, b->rows);
    GY_TRY(upload(harness, gpu, to, b->bytes, err));
    return gy_harness_drain(harness, err);
}

/* One access is one argument here: of all of a buffer, or of one tile. */
static gantry_status place(gy_recipe_launch *l, gy_harness *harness, gantry_error *err)
{
    CUdeviceptr block = harness->gpu[l->gpu].block;
    uint64_t at = 0, room = 2 * harness->bytes - STATUS_ROOM;
    const gy_node *node = &l->graph->nodes.at[l->node];
    gantry_status status = GANTRY_OK;
    for (uint32_t k = 0; k < node->accesses && !status; k++) {
        const gy_access *a = &l->graph->access.at[node->access + k];
        const gy_buffer *b = &l->graph->buffers.at[a->buffer];
        uint64_t bytes = (uint64_t)gy_buffer_span(b, a->first, a->last);
        if (at + gy_aligned(bytes) > room)
            return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "the test bed is too small for \"%s\"", b->name);
        status = fill(harness, l->gpu, b, block + at, bytes, err);
        gy_launch_arg_of(l->graph, l->node, l->args, k)->data = (void *)(uintptr_t)(block + at);
        at += gy_aligned(bytes);
    }
    l->filled = at;
    l->taken = at + gy_aligned(l->launch.scratch_bytes);
    if (!status && l->taken > room)
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "the test bed is too small for the scratch");
    l->launch.scratch = l->launch.scratch_bytes ? (void *)(uintptr_t)(block + at) : NULL;
    l->launch.status = (int32_t *)(uintptr_t)(block + room);
    return status;
}

/* ---- all ---- */

gantry_status gy_recipe_load(void **handle, gy_harness *harness, uint32_t gpu, const gy_cuda_kernel *kernel,
                             gantry_error *err)
{
    *handle = NULL;
    gantry_status status = gy_harness_use(harness, gpu, err);
    if (status || !kernel->open)
        return status;
    status = kernel->open(handle, kernel, &harness->d, err);
    *handle = status ? NULL : *handle;
    return status;
}

void gy_recipe_unload(void *handle, gy_harness *harness, uint32_t gpu, const gy_cuda_kernel *kernel)
{
    if (handle && kernel->close && !harness->hung && gy_harness_use(harness, gpu, NULL) == GANTRY_OK)
        kernel->close(handle);
}

/* Describes the launch, but for the addresses. */
static gantry_status describe(gy_recipe_launch *l, gy_harness *harness, uint32_t stream, gantry_error *err)
{
    const gy_harness_gpu *g = &harness->gpu[l->gpu];
    void *handle = l->launch.handle; /* describing begins anew */
    l->args = gy_calloc(gy_launch_args(l->graph, l->node) + 1, sizeof *l->args);
    gantry_status status =
        l->args ? gy_launch_describe(l->graph, l->node, 0, &l->launch, l->args, err) : gy_fail_nomem(err);
    l->launch.struct_size = sizeof l->launch;
    l->launch.node = l->kernel->name;
    l->launch.device = (int32_t)g->device;
    l->launch.device_ordinal = harness->machine->device[g->device].ordinal;
    l->launch.stream = g->stream[stream];
    l->launch.handle = handle;
    l->launch.scratch_bytes = (uint64_t)l->graph->nodes.at[l->node].scratch;
    status = status ? status : gy_harness_use(harness, l->gpu, err);
    return status || !l->kernel->prepare ? status : l->kernel->prepare(&l->launch, &l->launch.scratch_bytes, err);
}

static gantry_status open_all(gy_recipe_launch *l, gy_harness *harness, gantry_error *err)
{
    const gy_harness_gpu *g = &harness->gpu[l->gpu];
    gantry_status status = describe(l, harness, 0, err);
    status = status ? status : place(l, harness, err);
    status = status ? status : gy_harness_use(harness, l->gpu, err);
    CUresult code =
        status ? CUDA_SUCCESS
               : harness->d.cuMemsetD8Async((CUdeviceptr)(uintptr_t)l->launch.status, 0, sizeof(int32_t), g->stream[0]);
    l->most = strcmp(l->kernel->name, "potrf") == 0 ? FACTORS : 0;
    l->flops = l->graph->nodes.at[l->node].flops;
    l->bytes = l->graph->nodes.at[l->node].bytes;
    return status ? status : gy_harness_check(harness, code, l->gpu, "clearing a status word", err);
}

/* The node that is measured: the first of the kernel, as a reading node comes behind those that bring its tile
 * together.
 */
static uint32_t node_of(const gantry_graph *g, const gantry_kernel *manifest)
{
    for (uint32_t i = 0; i < g->nodes.count; i++)
        if (g->nodes.at[i].kernel != GY_NONE && g->kernels.at[g->nodes.at[i].kernel].manifest == manifest)
            return i;
    return 0;
}

gantry_status gy_recipe_open(gy_recipe_launch *to, gy_harness *harness, uint32_t gpu, const gy_cuda_kernel *kernel,
                             void *handle, const gy_recipe_call *call, gantry_error *err)
{
    const gantry_kernel *manifest = gantry_kernel_find(kernel->name);
    gy_recipe_launch l = { .kernel = kernel, .gpu = gpu, .launch.handle = handle };
    if (!manifest || load(&l.graph, manifest, call, NULL)) {
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "nothing is known of how kernel \"%s\" is called",
                       kernel->name);
    }
    l.node = node_of(l.graph, manifest);
    gantry_status status = open_all(&l, harness, err);
    if (status) {
        gy_recipe_free(&l, harness);
        return status;
    }
    *to = l;
    return GANTRY_OK;
}

/* Buffers and scratch of a twin lie behind each other as those of the first do. */
static gantry_status place_twin(gy_recipe_launch *l, gy_harness *harness, const gy_recipe_launch *of, uint64_t offset,
                                gantry_error *err)
{
    CUdeviceptr block = harness->gpu[l->gpu].block;
    const gy_node *node = &l->graph->nodes.at[l->node];
    for (uint32_t k = 0; k < node->accesses; k++)
        gy_launch_arg_of(l->graph, l->node, l->args, k)->data =
            (char *)gy_launch_arg_of(l->graph, l->node, of->args, k)->data + offset;
    l->launch.scratch = l->launch.scratch_bytes ? (void *)(uintptr_t)(block + offset + l->filled) : NULL;
    l->launch.status = of->launch.status;
    CUresult code = harness->d.cuMemcpyDtoDAsync(block + offset, block, l->filled, harness->gpu[l->gpu].stream[0]);
    GY_TRY(gy_harness_check(harness, code, l->gpu, "repeating arguments", err));
    return gy_harness_drain(harness, err);
}

gantry_status gy_recipe_twin(gy_recipe_launch *to, gy_harness *harness, const gy_recipe_launch *of, uint32_t place,
                             gantry_error *err)
{
    gy_recipe_launch l = *of;
    uint64_t offset = place * of->taken;
    if (offset + of->taken > 2 * harness->bytes - STATUS_ROOM)
        return gy_fail(err, GANTRY_E_UNSUPPORTED, NULL, "the test bed is too small for another \"%s\"",
                       of->kernel->name);
    l.twin = true;
    gantry_status status = describe(&l, harness, place, err);
    status = status ? status : place_twin(&l, harness, of, offset, err);
    if (status) {
        gy_recipe_free(&l, harness);
        return status;
    }
    *to = l;
    return GANTRY_OK;
}

/* The graph is the host's alone, so nothing that still runs needs it; but memory and status word are used anew. */
void gy_recipe_free(gy_recipe_launch *l, gy_harness *harness)
{
    gy_harness_settle(harness);
    gy_free(l->args);
    if (!l->twin)
        gantry_graph_free(l->graph);
    *l = (gy_recipe_launch){ 0 };
}

gantry_status gy_recipe_queue(gy_harness *harness, const void *what, gantry_error *err)
{
    const gy_recipe_launch *l = what;
    GY_TRY(gy_harness_use(harness, l->gpu, err));
    return gy_harness_launched(harness, l->gpu, l->kernel, l->launch.handle, l->kernel->launch(&l->launch), err);
}

bool gy_recipe_failed(gy_harness *harness, const gy_recipe_launch *l)
{
    const gy_harness_gpu *g = &harness->gpu[l->gpu];
    int32_t word = -1;
    memset(g->host, -1, sizeof word);
    return gy_harness_use(harness, l->gpu, NULL) ||
           harness->d.cuMemcpyDtoHAsync(g->host, (CUdeviceptr)(uintptr_t)l->launch.status, sizeof word, g->stream[0]) ||
           gy_harness_drain(harness, NULL) || (memcpy(&word, g->host, sizeof word), word != 0);
}
