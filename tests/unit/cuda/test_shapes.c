/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels whose results are the host versions' to the bit, at shapes where their tiles, chunks and halos end: the real
 * gantry-cuda.so on the emulator of tests/support/cuda_emulator, against the host back end. */
#include "control.h"
#include "suite.h"

#include <stdio.h>
#include <string.h>

static void on_both(const char *text)
{
    gantry_graph *g = NULL;
    fakeCudaDevices(2, "all", 0);
    MUST(gantry_graph_parse(&g, text, strlen(text), "text", NULL, NULL, MUST_ERR));
    gantry_machine *m = gpu_machine(2, false);
    gantry_schedule *s = make_schedule(g, m, "stream", "round-robin");
    gantry_run *host = open_run(s, "host"), *run = open_run(s, "cuda");
    results want = run_results(host, g), got = run_results(run, g);
    ck_assert_msg(same(&got, &want), "%s", text);
    gantry_run_free(host);
    gantry_run_free(run);
    gantry_schedule_free(s);
    gantry_machine_free(m);
    gantry_graph_free(g);
}

/* KERNEL(in, out) on each of `parts` parts; `in` with a halo. */
typedef struct shape {
    const char *kernel, *more, *in, *out; /* more: other arguments */
    int halo;
    const char *dtype, *size; /* in JSON */
    int parts;
} shape;

static const shape shapes[] = {
#define JACOBI(...)                                                                                                    \
    {                                                                                                                  \
        "jacobi2d", "", "x", "y", 1, __VA_ARGS__                                                                       \
    }
    JACOBI("f32", "[70,132]", 3),
    JACOBI("f32", "[150,131]", 1),
    JACOBI("f32", "[9,520]", 4),
    JACOBI("f64", "[70,66]", 2),
    JACOBI("f64", "[65,67]", 2),
    JACOBI("f32", "[1,64]", 1),
    JACOBI("f32", "[2,4]", 2),
    JACOBI("f64", "[5,1]", 2),
    JACOBI("f64", "[66,2]", 5),
#define SOBEL(...)                                                                                                     \
    {                                                                                                                  \
        "sobel", "", "image", "out", 1, __VA_ARGS__                                                                    \
    }
    SOBEL("u8", "[40,300]", 3),
    SOBEL("f32", "[33,257]", 2),
    SOBEL("u8", "[1,1]", 1),
    SOBEL("f32", "[2,2]", 2),
#define SOBELS(...)                                                                                                    \
    {                                                                                                                  \
        "sobel", "", "image", "out", 0, __VA_ARGS__                                                                    \
    }
    SOBELS("u8", "[3,17,100,3]", 2),
    SOBELS("f32", "[2,5,9]", 2),
    SOBELS("f32", "[2,3,1,4]", 1),
#define BLUR(sigma, halo, ...)                                                                                         \
    {                                                                                                                  \
        "gaussian_blur", "\"sigma\":" sigma ",", "image", "out", halo, __VA_ARGS__                                     \
    }
    BLUR("0.3", 1, "f32", "[20,270]", 3),
    BLUR("1", 3, "u8", "[23,515]", 2),
    BLUR("2.7", 9, "f32", "[31,100]", 4),
    BLUR("1.2", 4, "f32", "[25,33]", 2),
    BLUR("0.6", 2, "u8", "[19,33]", 2),
    BLUR("5", 0, "u8", "[2,12,40,3]", 2),
    BLUR("7.1", 0, "f32", "[1,10,50,8]", 1),
    BLUR("21.3", 0, "f32", "[1,9,70,8]", 1),
    BLUR("21.3", 0, "u8", "[2,3,2,8]", 2),
    BLUR("21.3", 64, "u8", "[150,3]", 3),
#define TURNED(...)                                                                                                    \
    {                                                                                                                  \
        "transpose", "\"axis\":1,", "x", "y", 0, __VA_ARGS__                                                           \
    }
    TURNED("f32", "[5,12,12]", 2),
    TURNED("f32", "[4,37,37]", 1),
    TURNED("u8", "[3,64,64]", 2),
    TURNED("f64", "[4,6,6,2]", 2),
    TURNED("f32", "[3,5,5,3]", 1),
};

START_TEST(filters)
{
    const shape *s = &shapes[_i];
    char text[1024];
    int length = snprintf(text, sizeof text,
                          "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"%s\",\"shape\":%s,\"split\":%d,\"init\":{"
                          "\"random\":{\"seed\":5,\"low\":0,\"high\":250}}},\"b\":{\"dtype\":\"%s\",\"shape\":%s,"
                          "\"split\":%d,\"output\":true}},\"nodes\":[{\"id\":\"k[i]\",\"for\":{\"i\":%d},\"kernel\":"
                          "\"%s\",\"args\":{%s\"%s\":\"a[i]~%d\",\"%s\":\"b[i]\"}}]}",
                          s->dtype, s->size, s->parts, s->dtype, s->size, s->parts, s->parts, s->kernel, s->more, s->in,
                          s->halo, s->out);
    ck_assert_int_lt(length, (int)sizeof text);
    on_both(text);
}
END_TEST

/* Weights of one's own, as sobel's shapes and further ones. */
START_TEST(weighted)
{
    static const struct {
        const char *dtype, *size, *weights;
        int parts, halo;
    } list[] = { { "u8", "[40,300]", "[3,3]", 3, 1 },     { "f32", "[33,257]", "[5,9]", 2, 2 },
                 { "u8", "[1,1]", "[3,1]", 1, 1 },        { "f32", "[7,2]", "[1,7]", 2, 0 },
                 { "u8", "[3,17,100,3]", "[3,5]", 2, 0 }, { "f32", "[2,3,1,4]", "[9,3]", 1, 0 },
                 { "f32", "[19,600]", "[1,1]", 4, 0 } };
    char text[1024];
    int length =
        snprintf(text, sizeof text,
                 "{\"gantry\":1,\"buffers\":{\"w\":{\"dtype\":\"f32\",\"shape\":%s,\"init\":{\"random\":{"
                 "\"seed\":6,\"low\":-0.5,\"high\":0.8}}},\"a\":{\"dtype\":\"%s\",\"shape\":%s,\"split\":%d,"
                 "\"init\":{\"random\":{\"seed\":5,\"low\":0,\"high\":250}}},\"b\":{\"dtype\":\"%s\",\"shape\":%s,"
                 "\"split\":%d,\"output\":true}},\"nodes\":[{\"id\":\"k[i]\",\"for\":{\"i\":%d},\"kernel\":"
                 "\"filter2d\",\"args\":{\"weights\":\"w\",\"image\":\"a[i]~%d\",\"out\":\"b[i]\"}}]}",
                 list[_i].weights, list[_i].dtype, list[_i].size, list[_i].parts, list[_i].dtype, list[_i].size,
                 list[_i].parts, list[_i].parts, list[_i].halo);
    ck_assert_int_lt(length, (int)sizeof text);
    on_both(text);
}
END_TEST

/* Tiles with a halo: packing, unpacking, and stencils whose regions are boxes. */
static const struct {
    const char *kernel, *dtype, *size, *tiles, *ref, *halo;
} boxes[] = {
    { "jacobi2d", "f32", "[70,132]", "[2,3]", "[i][j]", "1" },
    { "jacobi2d", "f64", "[33,65]", "[3,2]", "[i][j]", "2:1,1" },
    { "jacobi2d", "f64", "[9,40]", "[1,4]", "[0][j]", "0,3" },
    { "jacobi3d", "f32", "[20,13,70]", "[2,2,1]", "[i][j]", "1" },
    { "jacobi3d", "f64", "[9,12,40]", "[2,3,1]", "[i][j][0]", "1,2" },
    { "copy", "u8", "[6,7]", "[2,2]", "[i][j]", NULL },
};

START_TEST(in_tiles)
{
    char text[1024], halo[32] = "";
    bool all = strcmp(boxes[_i].ref, "[0][j]") == 0;
    if (boxes[_i].halo)
        snprintf(halo, sizeof halo, "~%s", boxes[_i].halo);
    int length = snprintf(text, sizeof text,
                          "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"%s\",\"shape\":%s,\"tiles\":%s,\"init\":{"
                          "\"random\":{\"seed\":5,\"low\":0,\"high\":100}}},\"b\":{\"dtype\":\"%s\",\"shape\":%s,"
                          "\"tiles\":%s,\"output\":true}},\"nodes\":[{\"for\":{\"i\":%c},\"nodes\":[{\"id\":\"k[i,j]\","
                          "\"for\":{\"j\":%c},\"kernel\":\"%s\",\"args\":{\"x\":\"a%s%s\",\"y\":\"b%s\"}}]}]}",
                          boxes[_i].dtype, boxes[_i].size, boxes[_i].tiles, boxes[_i].dtype, boxes[_i].size,
                          boxes[_i].tiles, all ? '1' : boxes[_i].tiles[1], boxes[_i].tiles[3], boxes[_i].kernel,
                          boxes[_i].ref, halo, boxes[_i].ref);
    ck_assert_int_lt(length, (int)sizeof text);
    on_both(text);
}
END_TEST

/* Filters of images in tiles, whose rows and columns end anywhere. */
static const struct {
    const char *kernel, *more, *in, *out, *dtype, *size, *tiles, *halo;
} images[] = {
    { "sobel", "", "image", "out", "u8", "[40,700]", "[2,2]", "1" },
    { "sobel", "", "image", "out", "f32", "[3,17,90,3]", "[1,2,3]", "0,1,1" },
    { "filter2d", "\"weights\":\"w\",", "image", "out", "f32", "[33,600]", "[3,2]", "2,4" },
    { "filter2d", "\"weights\":\"w\",", "image", "out", "u8", "[2,21,130,3]", "[2,2,2]", "0,2,4" },
    { "filter2d_grad", "\"weights\":\"w\",", "dout", "dimage", "f32", "[2,21,530]", "[1,2,2]", "0,2,4" },
    { "gaussian_blur", "\"sigma\":1.2,", "image", "out", "u8", "[25,530]", "[3,2]", "4" },
    { "gaussian_blur", "\"sigma\":1.2,", "image", "out", "f32", "[2,19,90,3]", "[2,2,2]", "0,4,5" },
    { "gaussian_blur", "\"sigma\":21.3,", "image", "out", "f32", "[130,131]", "[2,1]", "65" },
    { "gaussian_blur_grad", "\"sigma\":1.2,", "dout", "dimage", "f32", "[25,530]", "[2,3]", "4" },
    { "gaussian_blur_grad", "\"sigma\":7.1,", "dout", "dimage", "f32", "[1,48,50,8]", "[1,2,2]", "0,22,22" },
};

/* A tile's reference, [i][j] or [i][j][k]. */
START_TEST(images_in_tiles)
{
    char text[1024];
    bool frames = strchr(strchr(images[_i].tiles, ',') + 1, ',') != NULL;
    int length = snprintf(
        text, sizeof text,
        "{\"gantry\":1,\"buffers\":{\"w\":{\"dtype\":\"f32\",\"shape\":[5,9],\"init\":{\"random\":{\"seed\":6,"
        "\"low\":-0.3,\"high\":0.4}}},\"a\":{\"dtype\":\"%s\",\"shape\":%s,\"tiles\":%s,\"init\":{\"random\":{"
        "\"seed\":5,\"low\":0,\"high\":100}}},\"b\":{\"dtype\":\"%s\",\"shape\":%s,\"tiles\":%s,\"output\":true}},"
        "\"nodes\":[{\"for\":{\"i\":%c},\"nodes\":[{\"for\":{\"j\":%c},\"nodes\":[{\"id\":\"k[i,j,k]\",\"for\":{"
        "\"k\":%c},\"kernel\":\"%s\",\"args\":{%s\"%s\":\"a[i][j]%s~%s\",\"%s\":\"b[i][j]%s\"}}]}]}]}",
        images[_i].dtype, images[_i].size, images[_i].tiles, images[_i].dtype, images[_i].size, images[_i].tiles,
        images[_i].tiles[1], images[_i].tiles[3], frames ? images[_i].tiles[5] : '1', images[_i].kernel,
        images[_i].more, images[_i].in, frames ? "[k]" : "", images[_i].halo, images[_i].out, frames ? "[k]" : "");
    ck_assert_int_lt(length, (int)sizeof text);
    on_both(text);
}
END_TEST

/* Packing and unpacking, by size of element and up to four axes. */
START_TEST(halos)
{
    static const char *const dtypes[] = { "u8", "f16", "i32", "f64" };
    static const char *const shapes_of[] = { "[19],\"tiles\":[3]", "[9,11],\"tiles\":[3,2]",
                                             "[6,7,9],\"tiles\":[2,3,2]", "[5,4,5,7],\"tiles\":[2,2,2,3]" };
    static const char *const tile[] = { "[1]", "[1][0]", "[1][1][0]", "[0][1][1][1]" };
    static const int elements[] = { 6 + 2, (3 + 2) * (5 + 1), (3 + 1) * (2 + 2) * (4 + 1),
                                    (2 + 1) * (2 + 1) * (3 + 1) * (2 + 2) };
    int rank = _i / 4;
    char text[1024];
    int length =
        snprintf(text, sizeof text,
                 "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"%s\",\"shape\":%s,\"init\":{\"random\":{"
                 "\"seed\":5,\"low\":0,\"high\":100}}},\"b\":{\"dtype\":\"%s\",\"shape\":[%d],\"output\":true}},"
                 "\"nodes\":[{\"id\":\"c\",\"copy\":{\"from\":\"a%s~1\",\"to\":\"b\"}}]}",
                 dtypes[_i % 4], shapes_of[rank], dtypes[_i % 4], elements[rank], tile[rank]);
    ck_assert_int_lt(length, (int)sizeof text);
    on_both(text);
}
END_TEST

static const struct {
    const char *dtype;
    int rows, columns;
} matrices[] = { { "u8", 256, 132 }, { "i8", 130, 131 },  { "f16", 68, 132 }, { "bf16", 65, 3 }, { "f32", 132, 64 },
                 { "i32", 65, 67 },  { "u32", 1, 100 },   { "f64", 34, 66 },  { "i64", 33, 70 }, { "u64", 100, 1 },
                 { "u8", 4, 4 },     { "f32", 300, 200 }, { "f32", 4, 1000 }, { "f64", 2, 2 } };

START_TEST(transposed)
{
    char text[1024];
    const char *dtype = matrices[_i].dtype;
    int rows = matrices[_i].rows, columns = matrices[_i].columns;
    snprintf(text, sizeof text,
             "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"%s\",\"shape\":[%d,%d],\"init\":{\"random\":{\"seed\":5,"
             "\"low\":0,\"high\":120}}},\"b\":{\"dtype\":\"%s\",\"shape\":[%d,%d],\"output\":true}},\"nodes\":[{"
             "\"id\":\"t\",\"kernel\":\"transpose\",\"args\":{\"x\":\"a\",\"y\":\"b\"}}]}",
             dtype, rows, columns, dtype, columns, rows);
    on_both(text);
}
END_TEST

/* Parts that begin anywhere, and more than one contribution. */
START_TEST(counted)
{
    static const int sizes[] = { 1, 3, 15, 16, 17, 100, 4099, 70001, 300000 };
    static const char *const dtypes[] = { "i32", "u32", "i64", "u64" };
    char text[1024];
    snprintf(text, sizeof text,
             "{\"gantry\":1,\"buffers\":{\"a\":{\"dtype\":\"u8\",\"shape\":[%d],\"split\":3,\"init\":{\"random\":{"
             "\"seed\":5,\"low\":0,\"high\":%d}}},\"b\":{\"dtype\":\"%s\",\"shape\":[256],\"init\":-7,\"output\":"
             "true}},\"nodes\":[{\"id\":\"h[i]\",\"for\":{\"i\":3},\"kernel\":\"histogram\",\"args\":{\"x\":\"a[i]\","
             "\"out\":\"b\"}}]}",
             sizes[_i / 4], _i % 3 ? 256 : 2, dtypes[_i % 4]);
    if (_i % 4 % 2)
        memcpy(strstr(text, "-7"), " 7", 2);
    on_both(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda shapes");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, filters, 0, (int)(sizeof shapes / sizeof *shapes));
    tcase_add_loop_test(tests, weighted, 0, 7);
    tcase_add_loop_test(tests, in_tiles, 0, (int)(sizeof boxes / sizeof *boxes));
    tcase_add_loop_test(tests, images_in_tiles, 0, (int)(sizeof images / sizeof *images));
    tcase_add_loop_test(tests, halos, 0, 16);
    tcase_add_loop_test(tests, transposed, 0, (int)(sizeof matrices / sizeof *matrices));
    tcase_add_loop_test(tests, counted, 0, 9 * 4);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
