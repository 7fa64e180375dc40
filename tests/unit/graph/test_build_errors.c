/* SPDX-License-Identifier: Apache-2.0 */
/* Every mistake that building can see: its exact text, its status, the line it came from; and that the first one
 * sticks. */
#include "graph/build/build.h"
#include "kernels.h"
#include <math.h>
#include <string.h>

static gantry_graph *g;
static gantry_buffer x, y, tiled, free_of_cut;
static gantry_node work, scale, launch;

static void set_up(void)
{
    g = gantry_graph_new("errors");
    x = gantry_graph_buffer(g, "image", GANTRY_F32, 2, SHAPE(100, 4));
    y = gantry_graph_buffer(g, "y", GANTRY_I32, 1, SHAPE(100));
    tiled = gantry_graph_buffer(g, "A", GANTRY_F64, 2, SHAPE(9, 9));
    free_of_cut = gantry_graph_buffer(g, "z", GANTRY_F32, 2, SHAPE(10, 10));
    gantry_buffer_split(g, x, 4);
    gantry_buffer_tiles(g, tiled, 3, 3);
    work = gantry_graph_work(g, "w");
    scale = gantry_graph_kernel(g, "s", "t_scale");
    launch = gantry_graph_launch(g, "l", do_nothing, NULL);
    ck_assert_int_eq(g->error.status, GANTRY_OK);
}

static void tear_down(void)
{
    gantry_graph_free(g);
}

/* ---- the mistakes, each in a function of its own ---- */

static const gantry_buffer no_buffer = { .id = 77 };
static const gantry_node no_node = { .id = 77 };

#define MISTAKE(name) static void name(void)

MISTAKE(buffer_name_empty)
{
    gantry_graph_buffer(g, "", GANTRY_F32, 1, SHAPE(1));
}
MISTAKE(buffer_name_bracket)
{
    gantry_graph_buffer(g, "a[1]", GANTRY_F32, 1, SHAPE(1));
}
MISTAKE(buffer_name_null)
{
    gantry_graph_buffer(g, NULL, GANTRY_F32, 1, SHAPE(1));
}
MISTAKE(buffer_twice)
{
    gantry_graph_buffer(g, "y", GANTRY_F32, 1, SHAPE(1));
}
MISTAKE(buffer_dtype)
{
    gantry_graph_buffer(g, "b", GANTRY_DTYPE_COUNT, 1, SHAPE(1));
}
MISTAKE(buffer_rank)
{
    gantry_graph_buffer(g, "b", GANTRY_F32, 0, SHAPE(1));
}
MISTAKE(buffer_shape)
{
    gantry_graph_buffer(g, "b", GANTRY_F32, 2, SHAPE(3, -1));
}
MISTAKE(buffer_no_shape)
{
    gantry_graph_buffer(g, "b", GANTRY_F32, 2, NULL);
}
MISTAKE(buffer_huge)
{
    gantry_graph_buffer(g, "b", GANTRY_F64, 2, SHAPE(INT64_C(1) << 40, 1 << 20));
}
MISTAKE(buffer_huge_row)
{
    gantry_graph_buffer(g, "b", GANTRY_F64, 3, SHAPE(0, INT64_C(1) << 40, INT64_C(1) << 40));
}
MISTAKE(class_unknown)
{
    gantry_buffer_set_class(g, x, (gantry_buffer_class)9);
}
MISTAKE(class_of_nothing)
{
    gantry_buffer_set_class(g, no_buffer, GANTRY_STATE);
}
MISTAKE(tolerance)
{
    gantry_buffer_tolerance(g, x, -1, NAN);
}
MISTAKE(split_zero)
{
    gantry_buffer_split(g, free_of_cut, 0);
}
MISTAKE(split_many)
{
    gantry_buffer_split(g, free_of_cut, INT64_C(1) << 31);
}
MISTAKE(split_unlimited)
{
    gantry_graph_limit(g, -1);
    gantry_buffer_split(g, free_of_cut, INT64_C(1) << 31);
}
MISTAKE(split_twice)
{
    gantry_buffer_split_auto(g, x, 2);
}
MISTAKE(split_tiled)
{
    gantry_buffer_split(g, tiled, 2);
}
MISTAKE(split_late)
{
    gantry_node_read(g, work, gantry_all(free_of_cut));
    gantry_buffer_split(g, free_of_cut, 2);
}
MISTAKE(tiles_rank)
{
    gantry_buffer_tiles(g, y, 2, 2);
}
MISTAKE(tiles_zero)
{
    gantry_buffer_tiles(g, free_of_cut, 2, 0);
}
MISTAKE(tiles_many)
{
    gantry_buffer_tiles(g, free_of_cut, 1 << 20, 1 << 20);
}
MISTAKE(init_fraction)
{
    gantry_buffer_init_value(g, y, 0.5);
}
MISTAKE(init_range)
{
    gantry_buffer_init_value(g, y, 2147483648.0);
}
MISTAKE(init_nan)
{
    gantry_buffer_init_value(g, y, NAN);
}
MISTAKE(init_uniform)
{
    gantry_buffer_init_uniform(g, x, 1, 2, 1);
}
MISTAKE(init_normal_integer)
{
    gantry_buffer_init_normal(g, y, 1, 0, 1);
}
MISTAKE(init_normal_negative)
{
    gantry_buffer_init_normal(g, x, 1, 0, -1);
}
MISTAKE(init_spd)
{
    gantry_buffer_init_spd(g, x, 1);
}
MISTAKE(init_npy)
{
    gantry_buffer_init_npy(g, x, "");
}
MISTAKE(init_raw)
{
    gantry_buffer_init_raw(g, x, NULL);
}
MISTAKE(init_twice)
{
    gantry_buffer_init_value(g, x, 0);
    gantry_buffer_init_iota(g, x);
}

MISTAKE(region_buffer)
{
    gantry_node_read(g, work, gantry_all(no_buffer));
}
MISTAKE(region_not_split)
{
    gantry_node_read(g, work, gantry_part(y, 1));
}
MISTAKE(region_part)
{
    gantry_node_read(g, work, gantry_part(x, 4));
}
MISTAKE(region_part_negative)
{
    gantry_node_read(g, work, gantry_part(x, -1));
}
MISTAKE(region_parts)
{
    gantry_node_read(g, work, gantry_parts(x, 2, 5));
}
MISTAKE(region_parts_backwards)
{
    gantry_node_read(g, work, gantry_parts(x, 3, 1));
}
MISTAKE(region_rows)
{
    gantry_node_read(g, work, gantry_rows(x, 50, 101));
}
MISTAKE(region_rows_tiled)
{
    gantry_node_read(g, work, gantry_rows(tiled, 0, 1));
}
MISTAKE(region_rows_auto)
{
    gantry_buffer_split_auto(g, free_of_cut, 2);
    gantry_node_read(g, work, gantry_rows(free_of_cut, 0, 1));
}
MISTAKE(region_tile_none)
{
    gantry_node_read(g, work, gantry_tile(y, 1, 2));
}
MISTAKE(region_tile)
{
    gantry_node_read(g, work, gantry_tile(tiled, 3, 0));
}
MISTAKE(region_halo_negative)
{
    gantry_node_read(g, work, gantry_halo(gantry_part(x, 1), -1, 0));
}
MISTAKE(region_halo_tiles)
{
    gantry_node_read(g, work, gantry_halo(gantry_tiles(tiled, 1, 2, 0, 2), 1, 1));
}
MISTAKE(region_halo_wide)
{
    gantry_node_read(g, work, gantry_halo_axis(gantry_tile(tiled, 1, 1), 1, 0, 1000));
}
MISTAKE(region_halo_axis)
{
    gantry_node_read(g, work, gantry_halo_axis(gantry_part(x, 1), 1, 0, 1));
}
MISTAKE(region_halo_written)
{
    gantry_node_write(g, work, gantry_halo(gantry_tile(tiled, 1, 1), 1, 1));
}
MISTAKE(region_halo_huge)
{
    gantry_buffer b = gantry_graph_buffer(g, "huge", GANTRY_U8, 1, SHAPE(INT64_C(1) << 40));
    gantry_node_read(g, work, gantry_halo(gantry_rows(b, 0, 1), 0, INT64_C(1) << 33));
}
MISTAKE(region_ndim)
{
    gantry_region r = gantry_all(x);
    r.ndim = 2;
    gantry_node_read(g, work, r);
}
MISTAKE(region_kind)
{
    gantry_node_read(g, work, gantry_region_make(x, (gantry_region_kind)7, 0, 1));
}
MISTAKE(copy_tiles_apart)
{
    gantry_graph_copy(g, "c", gantry_tiles(tiled, 0, 2, 0, 2), gantry_all(x));
}

MISTAKE(kernel_unknown)
{
    gantry_graph_kernel(g, "k", "permanent");
}
MISTAKE(kernel_near)
{
    gantry_graph_kernel(g, "k", "t_scael");
}
MISTAKE(kernel_null)
{
    gantry_graph_kernel(g, "k", NULL);
}
MISTAKE(kernel_again)
{
    gantry_graph_add_kernel(g, &scale_kernel);
}
MISTAKE(kernel_size)
{
    gantry_kernel k = scale_kernel;
    k.name = "other";
    k.struct_size = 0;
    gantry_graph_add_kernel(g, &k);
}
MISTAKE(kernel_null_given)
{
    gantry_graph_add_kernel(g, NULL);
}
MISTAKE(kernel_no_host)
{
    gantry_kernel k = scale_kernel;
    k.name = "other";
    k.host = NULL;
    gantry_graph_add_kernel(g, &k);
}

/* CUDA code that is fine for a kernel like t_scale, before it is spoilt. */
static gantry_kernel other_kernel;
static gantry_cuda_code other_code(void)
{
    gantry_cuda_code code = GANTRY_CUDA_CODE_INIT;
    other_kernel = scale_kernel;
    other_kernel.name = "other";
    code.image = "// PTX";
    code.bytes = 6;
    code.grid[0] = "x.rows";
    code.block[0] = "32";
    return code;
}
static void *no_handle(void *user, int32_t ordinal)
{
    (void)ordinal;
    return user;
}
MISTAKE(cuda_size)
{
    gantry_cuda_code code = other_code();
    code.struct_size = 0;
    gantry_graph_add_cuda_kernel(g, &other_kernel, &code);
}
MISTAKE(cuda_null)
{
    other_code();
    gantry_graph_add_cuda_kernel(g, &other_kernel, NULL);
}
MISTAKE(cuda_manifest)
{
    gantry_cuda_code code = other_code();
    gantry_graph_add_cuda_kernel(g, NULL, &code);
}
MISTAKE(cuda_none)
{
    gantry_cuda_code code = other_code();
    code.image = NULL;
    gantry_graph_add_cuda_kernel(g, &other_kernel, &code);
}
MISTAKE(cuda_both)
{
    gantry_cuda_code code = other_code();
    code.function = no_handle;
    gantry_graph_add_cuda_kernel(g, &other_kernel, &code);
}
MISTAKE(cuda_launch_grid)
{
    gantry_cuda_code code = other_code();
    code.image = NULL;
    code.launch = scale_kernel.host;
    gantry_graph_add_cuda_kernel(g, &other_kernel, &code);
}
MISTAKE(cuda_source_and_launch)
{
    gantry_cuda_code code = other_code();
    code.launch = scale_kernel.host;
    code.source = "";
    gantry_graph_add_cuda_kernel(g, &other_kernel, &code);
}
MISTAKE(cuda_no_bytes)
{
    gantry_cuda_code code = other_code();
    code.bytes = 0;
    gantry_graph_add_cuda_kernel(g, &other_kernel, &code);
}
MISTAKE(cuda_no_block)
{
    gantry_cuda_code code = other_code();
    code.block[0] = NULL;
    gantry_graph_add_cuda_kernel(g, &other_kernel, &code);
}
MISTAKE(cuda_grid)
{
    gantry_cuda_code code = other_code();
    code.grid[2] = "z.rows";
    gantry_graph_add_cuda_kernel(g, &other_kernel, &code);
}
MISTAKE(cuda_shared)
{
    gantry_cuda_code code = other_code();
    code.shared_bytes = -1;
    gantry_graph_add_cuda_kernel(g, &other_kernel, &code);
}
MISTAKE(cuda_type)
{
    static const gantry_dtype types[] = { GANTRY_DTYPE_COUNT, GANTRY_F32, GANTRY_F32 };
    gantry_cuda_code code = other_code();
    code.types = types;
    gantry_graph_add_cuda_kernel(g, &other_kernel, &code);
}
MISTAKE(cuda_default_of_region)
{
    static const char *const defaults[] = { NULL, "x.size", NULL };
    gantry_cuda_code code = other_code();
    code.defaults = defaults;
    gantry_graph_add_cuda_kernel(g, &other_kernel, &code);
}
MISTAKE(cuda_default_of_number)
{
    static const char *const defaults[] = { "a + x.size", NULL, NULL };
    gantry_cuda_code code = other_code();
    code.defaults = defaults;
    gantry_graph_add_cuda_kernel(g, &other_kernel, &code);
}
MISTAKE(cuda_no_host)
{
    gantry_cuda_code code = other_code();
    other_kernel.host = NULL;
    gantry_graph_add_cuda_kernel(g, &other_kernel, &code);
}
MISTAKE(cuda_again)
{
    gantry_cuda_code code = other_code();
    gantry_graph_add_cuda_kernel(g, &scale_kernel, &code);
}
MISTAKE(host_kernel_gpu)
{
    gy_graph_host_kernel(g, "h", "t_gpu");
}
MISTAKE(id_empty)
{
    gantry_graph_work(g, "");
}
MISTAKE(id_taken)
{
    gy_graph_unique_ids(g);
    gantry_graph_work(g, "w");
}
MISTAKE(id_taken_in_file)
{
    gy_graph_unique_ids(g);
    gy_graph_set_origin(g, "/nodes/3");
    (gantry_graph_work)(g, "n");
    gy_graph_set_origin(g, NULL);
    gantry_graph_work(g, "n");
}
MISTAKE(launch_null)
{
    gantry_graph_launch(g, "f", NULL, NULL);
}
MISTAKE(host_null)
{
    gantry_graph_host(g, NULL, NULL, NULL);
}
MISTAKE(fill_value)
{
    gantry_graph_fill(g, "f", gantry_all(y), 0.25);
}
MISTAKE(fill_uniform)
{
    gantry_graph_fill_uniform(g, "f", gantry_all(x), 1, 0, INFINITY);
}
MISTAKE(fill_file)
{
    gy_init file = { .kind = GY_INIT_NPY, .path = "x.npy" };
    gy_graph_fill_with(g, "f", gantry_all(x), &file);
}
MISTAKE(fill_iota)
{
    gy_init iota = { .kind = GY_INIT_IOTA, .a = { .real = NAN } };
    gy_graph_fill_with(g, "f", gantry_all(x), &iota);
}
MISTAKE(collective_kind)
{
    gantry_graph_collective(g, "c", (gantry_collective)99, GANTRY_SUM, 0, NULL, 0, NULL, 0);
}
MISTAKE(collective_regions)
{
    gantry_graph_collective(g, "c", GANTRY_GATHER, (gantry_access)0, 2, NULL, 0, NULL, 0);
}
MISTAKE(algorithm)
{
    gantry_node_algorithm(g, work, "ring");
}
MISTAKE(algorithm_null)
{
    gantry_region ranks[] = { gantry_part(x, 0), gantry_part(x, 1) };
    gantry_node_algorithm(g, gantry_graph_collective(g, "c", GANTRY_ALL_REDUCE, GANTRY_SUM, 2, ranks, 2, ranks, 0), "");
}
MISTAKE(index_outside)
{
    gantry_graph_index(g, "step");
}
MISTAKE(index_word)
{
    gantry_graph_repeat(g, 2);
    gantry_graph_index(g, "devices");
}
MISTAKE(index_form)
{
    gantry_graph_repeat(g, 2);
    gantry_graph_index(g, "2nd");
}
MISTAKE(index_around)
{
    gantry_graph_repeat(g, 2);
    gantry_graph_index(g, "step");
    gantry_graph_repeat(g, 2);
    gantry_graph_repeat(g, 2);
    gantry_graph_index(g, "step");
}
MISTAKE(index_late)
{
    gantry_graph_repeat(g, 2);
    gantry_graph_work(g, "inside");
    gantry_graph_index(g, "step");
}
MISTAKE(expr_syntax)
{
    gantry_node_scalar_expr(g, scale, "a", "2 *");
}
MISTAKE(expr_name)
{
    gantry_node_scalar_expr(g, scale, "a", "step * 2");
}
MISTAKE(expr_outside)
{
    gantry_node_scalar_expr(g, scale, "a", "it * 2");
}
MISTAKE(expr_null)
{
    gantry_node_scalar_expr(g, scale, "a", NULL);
}
MISTAKE(contents_kind)
{
    gantry_contents c = GANTRY_CONTENTS_INIT;
    c.kind = (gantry_contents_kind)7;
    gantry_buffer_init_with(g, x, &c);
}
MISTAKE(contents_null)
{
    gantry_graph_fill_with(g, "f", gantry_all(x), NULL);
}
MISTAKE(contents_exact)
{
    gantry_contents c = GANTRY_CONTENTS_INIT;
    c.exact[0] = "n + 1";
    gantry_graph_fill_with(g, "f", gantry_all(x), &c);
}
MISTAKE(contents_too_large)
{
    gantry_contents c = GANTRY_CONTENTS_INIT;
    c.exact[0] = "9007199254740993";
    gantry_buffer_init_with(g, y, &c);
}

MISTAKE(arg_unknown)
{
    gantry_node_arg(g, scale, "q", gantry_all(x));
}
MISTAKE(arg_near)
{
    gantry_node gather = gantry_graph_kernel(g, "gather", "t_gather");
    gantry_node_arg(g, gather, "tils", gantry_all(x));
}
MISTAKE(arg_of_work)
{
    gantry_node_arg(g, work, "x", gantry_all(x));
}
MISTAKE(arg_is_number)
{
    gantry_node_arg(g, scale, "a", gantry_all(x));
}
MISTAKE(arg_is_region)
{
    gantry_node_scalar(g, scale, "x", 1);
}
MISTAKE(arg_dtype)
{
    gantry_node_arg(g, scale, "x", gantry_all(y));
}
MISTAKE(arg_access)
{
    gantry_node_arg_as(g, scale, "y", gantry_all(x), GANTRY_MAX);
}
MISTAKE(arg_access_none)
{
    gantry_node_arg_as(g, scale, "y", gantry_all(x), (gantry_access)12);
}
MISTAKE(arg_twice)
{
    gantry_node_arg(g, scale, "x", gantry_all(x));
    gantry_node_arg(g, scale, "x", gantry_part(x, 0));
}
MISTAKE(arg_twice_late)
{
    gantry_node_arg(g, scale, "x", gantry_all(x));
    gantry_node other = gantry_graph_kernel(g, NULL, "t_scale");
    gantry_node_arg(g, other, "x", gantry_all(x));
    gantry_node_arg(g, scale, "y", gantry_part(x, 0));
    gantry_node_arg(g, scale, "y", gantry_part(x, 1));
}
MISTAKE(scalar_twice)
{
    gantry_node_scalar(g, scale, "a", 1);
    gantry_node_scalar_dynamic(g, scale, "a", 2);
}
MISTAKE(arg_of_nothing)
{
    gantry_node_arg(g, no_node, "x", gantry_all(x));
}
MISTAKE(arg_many_tiles)
{
    gantry_node_arg(g, scale, "x", gantry_tiles(tiled, 0, 1, 0, 2));
}
MISTAKE(arg_all_tiles)
{
    gantry_node_arg(g, scale, "x", gantry_all(tiled));
}
MISTAKE(further_region)
{
    gantry_node_read(g, scale, gantry_all(x));
}
MISTAKE(region_of_fill)
{
    gantry_node fill = gantry_graph_fill(g, "f", gantry_all(x), 0);
    gantry_node_read(g, fill, gantry_all(y));
}
MISTAKE(reduce_read)
{
    gantry_node_reduce(g, launch, gantry_all(x), GANTRY_READ);
}
MISTAKE(read_of_nothing)
{
    gantry_node_read(g, no_node, gantry_all(x));
}

static const gy_expr *parse(const char *text)
{
    const gy_expr *e = NULL;
    ck_assert_int_eq(gy_expr_parse(&e, &g->arena, text, strlen(text), GANTRY_E_GRAPH, NULL, NULL), GANTRY_OK);
    return e;
}
MISTAKE(scalar_expr_name)
{
    gy_node_scalar_expr(g, scale, "a", parse("it + speed"), false);
}
MISTAKE(scalar_expr_outside)
{
    gy_node_scalar_expr(g, scale, "a", parse("it + 1"), false);
}

MISTAKE(after_itself)
{
    gantry_node_after(g, work, work);
}
MISTAKE(after_nothing)
{
    gantry_node_after(g, work, no_node);
}
MISTAKE(with_itself)
{
    gantry_node_with(g, work, work);
}
MISTAKE(apart_itself)
{
    gantry_node_apart(g, work, work);
}
MISTAKE(on_nothing)
{
    gantry_node_on(g, work, "");
}
MISTAKE(on_expr_name)
{
    gy_node_on_expr(g, work, parse("i % devices"));
}
MISTAKE(cost_negative)
{
    gantry_node_cost(g, work, -1, 0);
}
MISTAKE(cost_nan)
{
    gantry_node_cost(g, work, 1, NAN);
}
MISTAKE(time_infinite)
{
    gantry_node_time(g, work, "P1", INFINITY);
}
MISTAKE(when_of_many)
{
    gantry_node_when(g, work, gantry_part(x, 1));
}
MISTAKE(when_of_nothing)
{
    gantry_node_when(g, work, gantry_rows(y, 3, 3));
}
MISTAKE(when_of_a_tile)
{
    gantry_node_when(g, work, gantry_tile(tiled, 0, 0));
}
MISTAKE(when_of_an_automatic_part)
{
    gantry_buffer_split_auto(g, free_of_cut, 2);
    gantry_node_when(g, work, gantry_part(free_of_cut, 1));
}
MISTAKE(when_out_of_range)
{
    gantry_node_when(g, work, gantry_rows(y, 100, 101));
}
MISTAKE(when_twice)
{
    gantry_node_when(g, work, gantry_rows(y, 3, 4));
    gantry_node_when(g, work, gantry_rows(y, 4, 5));
}
MISTAKE(when_behind_the_end)
{
    gantry_graph_repeat(g, 3);
    gantry_graph_repeat(g, 4);
    gantry_graph_until(g, gantry_graph_buffer(g, "ready", GANTRY_I32, 1, (int64_t[]){ 1 }), 1);
    gantry_node first = gantry_graph_fill(g, "first", gantry_part(x, 0), 0);
    gantry_graph_fill(g, "last", gantry_part(x, 1), 0);
    gantry_graph_repeat_end(g);
    gantry_node_when(g, first, gantry_rows(y, 3, 4));
}
MISTAKE(when_twice_of_a_collective)
{
    gantry_region part[] = { gantry_part(x, 0), gantry_part(x, 1) };
    gantry_node n = gantry_graph_collective(g, "c", GANTRY_ALL_REDUCE, GANTRY_SUM, 2, part, 2, part, 0);
    gantry_node_when(g, n, gantry_rows(y, 3, 4));
    gantry_node_when(g, n, gantry_rows(y, 3, 4));
}
MISTAKE(share_large)
{
    gantry_node_share(g, work, 1.5);
}
MISTAKE(scratch_negative)
{
    gantry_node_scratch(g, work, -8);
}

MISTAKE(repeat_nested)
{
    for (int i = 0; i < 17; i++)
        gantry_graph_repeat(g, 2);
}
MISTAKE(until_nested)
{
    gantry_graph_repeat(g, 2);
    gantry_graph_repeat(g, 2);
    gantry_graph_until(g, x, 1);
    gantry_graph_repeat_end(g);
}
MISTAKE(repeat_nested_open)
{
    gantry_graph_repeat(g, 2);
    gantry_graph_repeat(g, 2);
    gantry_graph_repeat_end(g);
}
MISTAKE(repeat_nested_closed_twice)
{
    gantry_graph_repeat(g, 2);
    gantry_graph_repeat(g, 2);
    gantry_graph_repeat_end(g);
    gantry_graph_repeat_end(g);
    gantry_graph_repeat_end(g);
}
MISTAKE(repeat_negative)
{
    gantry_graph_repeat(g, -2);
}
MISTAKE(repeat_no_begin)
{
    gantry_graph_repeat_end(g);
}
MISTAKE(carry_outside)
{
    gantry_graph_carry(g, x, y);
}
MISTAKE(carry_itself)
{
    gantry_graph_repeat(g, 2);
    gantry_graph_carry(g, x, x);
}
MISTAKE(carry_twice)
{
    gantry_graph_repeat(g, 2);
    gantry_graph_carry(g, x, y);
    gantry_graph_carry(g, tiled, x);
}
MISTAKE(carry_nothing)
{
    gantry_graph_repeat(g, 2);
    gantry_graph_carry(g, x, no_buffer);
}
MISTAKE(until_outside)
{
    gantry_graph_until(g, x, 1);
}
MISTAKE(until_every)
{
    gantry_graph_repeat(g, 2);
    gantry_graph_until(g, x, 0);
}
MISTAKE(until_twice)
{
    gantry_graph_repeat(g, 2);
    gantry_graph_until(g, x, 1);
    gantry_graph_until(g, x, 1);
}
MISTAKE(of_a_reader)
{
    gy_graph_mistake(g, GANTRY_E_IO, "cannot read %s", "it");
}

static const struct mistake {
    void (*make)(void);
    gantry_status status;
    const char *text;
} mistakes[] = {
#define NAME_RULE                                                                                                      \
    "; a name is not empty, is UTF-8, and has no blanks, control characters, quotes or any of []{}()~*:,\\"
    { buffer_name_empty, GANTRY_E_GRAPH, "buffer name \"\"" NAME_RULE },
    { buffer_name_bracket, GANTRY_E_GRAPH, "buffer name \"a[1]\"" NAME_RULE },
    { buffer_name_null, GANTRY_E_GRAPH, "buffer name \"\"" NAME_RULE },
    { buffer_twice, GANTRY_E_GRAPH, "there already is a buffer \"y\"; names are unique" },
    { buffer_dtype, GANTRY_E_GRAPH, "buffer \"b\" has dtype 12; use GANTRY_F16 to GANTRY_F8E5M2" },
    { buffer_rank, GANTRY_E_GRAPH, "buffer \"b\" has rank 0; at least 1 dimension and its shape are needed" },
    { buffer_shape, GANTRY_E_GRAPH, "buffer \"b\" has shape[1] = -1; it must be at least 0" },
    { buffer_no_shape, GANTRY_E_GRAPH, "buffer \"b\" has rank 2; at least 1 dimension and its shape are needed" },
    { buffer_huge, GANTRY_E_GRAPH, "buffer \"b\" has more than 2^63 - 1 bytes; make its shape smaller" },
    { buffer_huge_row, GANTRY_E_GRAPH, "buffer \"b\" has more than 2^63 - 1 bytes; make its shape smaller" },
    { class_unknown, GANTRY_E_INVALID, "buffer \"image\" gets class 9; use GANTRY_INPUT to GANTRY_TEMP" },
    { class_of_nothing, GANTRY_E_INVALID, "there is no buffer 77; the graph has 4 buffers" },
    { tolerance, GANTRY_E_GRAPH, "the tolerances of \"image\" are -1 and nan; they must be finite and at least 0" },
    { split_zero, GANTRY_E_GRAPH, "buffer \"z\" is split into 0 parts; 1 to 10000000 are allowed" },
    { split_many, GANTRY_E_GRAPH,
      "buffer \"z\" is split into 2147483648 parts; 1 to 10000000 are allowed; use fewer, or raise the limit "
      "(--limits, "
      "gantry_graph_limit)" },
    { split_unlimited, GANTRY_E_GRAPH, "buffer \"z\" is split into 2147483648 parts; 1 to 2147483646 are allowed" },
    { split_twice, GANTRY_E_GRAPH, "buffer \"image\" is cut twice; split it or cut it into tiles, once" },
    { split_tiled, GANTRY_E_GRAPH, "buffer \"A\" is cut twice; split it or cut it into tiles, once" },
    { split_late, GANTRY_E_GRAPH, "buffer \"z\" is cut after it was used; cut it before its first use" },
    { tiles_rank, GANTRY_E_GRAPH,
      "buffer \"y\" has rank 1 and is cut into tiles along 2 axes; arrays of rank 1 to 4 are, along 1 to all of their "
      "axes" },
    { tiles_zero, GANTRY_E_GRAPH, "buffer \"z\" is cut into 2 x 0 tiles; 1 to 10000000 in all are allowed" },
    { tiles_many, GANTRY_E_GRAPH,
      "buffer \"z\" is cut into 1048576 x 1048576 tiles; 1 to 10000000 in all are allowed; use fewer, or raise the "
      "limit "
      "(--limits, gantry_graph_limit)" },
    { init_fraction, GANTRY_E_GRAPH, "the init of \"y\" is 0.5, which no i32 can be; use a whole number in its range" },
    { init_range, GANTRY_E_GRAPH,
      "the init of \"y\" is 2147483648, which no i32 can be; use a whole number in its range" },
    { init_nan, GANTRY_E_GRAPH, "the init of \"y\" is nan, which no i32 can be; use a whole number in its range" },
    { init_uniform, GANTRY_E_GRAPH,
      "the init of \"image\" is random from 2 to 1; both must be finite, the lower one first" },
    { init_normal_integer, GANTRY_E_GRAPH,
      "the init of \"y\" is normal with mean 0 and deviation 1 in i32; a floating dtype, a finite mean and a deviation "
      "of "
      "at least 0 are needed" },
    { init_normal_negative, GANTRY_E_GRAPH,
      "the init of \"image\" is normal with mean 0 and deviation -1 in f32; a floating dtype, a finite mean and a "
      "deviation of at least 0 are needed" },
    { init_spd, GANTRY_E_GRAPH,
      "buffer \"image\" cannot be symmetric positive definite; that takes a square array of rank 2 and a floating "
      "dtype" },
    { init_npy, GANTRY_E_GRAPH, "the init of \"image\" names no file" },
    { init_raw, GANTRY_E_GRAPH, "the init of \"image\" names no file" },
    { init_twice, GANTRY_E_GRAPH, "buffer \"image\" has two inits; one is allowed" },

    { region_buffer, GANTRY_E_INVALID, "there is no buffer 77; the graph has 4 buffers" },
    { region_not_split, GANTRY_E_GRAPH,
      "buffer \"y\" is not split, so y[1] names no part; split it, or name rows as y{a:b}" },
    { region_part, GANTRY_E_GRAPH, "image[4] is out of range: \"image\" has parts 0 to 3" },
    { region_part_negative, GANTRY_E_GRAPH, "image[-1] is out of range: \"image\" has parts 0 to 3" },
    { region_parts, GANTRY_E_GRAPH,
      "image[2:5] is out of range: \"image\" has 4 parts, and the first may not be behind the last; where rows are "
      "meant, write {2:5}" },
    { region_parts_backwards, GANTRY_E_GRAPH,
      "image[3:1] is out of range: \"image\" has 4 parts, and the first may not be behind the last" },
    { region_rows, GANTRY_E_GRAPH,
      "image{50:101} is out of range: \"image\" has 100 rows, and the first may not be behind the last" },
    { region_rows_tiled, GANTRY_E_GRAPH, "A{0:1} names rows, but \"A\" is cut into tiles; name tiles" },
    { region_rows_auto, GANTRY_E_GRAPH,
      "z{0:1} names rows, but \"z\" is split where the scheduler chooses; name parts" },
    { region_tile_none, GANTRY_E_GRAPH, "buffer \"y\" is not cut into tiles, so y[1][2] names none; cut it first" },
    { region_tile, GANTRY_E_GRAPH, "A[3:4][0:1] is out of range: \"A\" has 3 x 3 tiles" },
    { region_halo_negative, GANTRY_E_GRAPH,
      "the halo of \"image\" is -1 rows before and 0 after; neither may be negative" },
    { region_halo_tiles, GANTRY_E_GRAPH, "a halo around several tiles of \"A\"; name one tile, as A[0][0]~1" },
    { region_halo_wide, GANTRY_E_GRAPH,
      "the halo of a tile of \"A\" is 1000 elements along axis 1; 0 to 3 are allowed, what every tile has there: take "
      "a "
      "narrower halo or fewer tiles" },
    { region_halo_axis, GANTRY_E_UNSUPPORTED, "a region of \"image\" has ndim 0; it must be 1" },
    { region_halo_written, GANTRY_E_GRAPH,
      "node \"w\" has access write to a tile of \"A\" with a halo; such tiles are only read: leave the halo out" },
    { region_halo_huge, GANTRY_E_GRAPH, "the halo of \"huge\" is 8589934592 rows; at most 2147483647 are allowed" },
    { region_ndim, GANTRY_E_UNSUPPORTED, "a region of \"image\" has ndim 2; it must be 1" },
    { region_kind, GANTRY_E_INVALID, "a region of \"image\" is of unknown kind 7" },
    { copy_tiles_apart, GANTRY_E_GRAPH,
      "node \"c\" gets 2 x 2 tiles of \"A\" where they must lie together; name one row of tiles or whole rows" },

    { kernel_unknown, GANTRY_E_GRAPH,
      "there is no kernel \"permanent\"; `gantry kernels` lists the library's, gantry_graph_add_kernel and \"kernels\" "
      "in "
      "a "
      "file add others" },
    { kernel_near, GANTRY_E_GRAPH, "there is no kernel \"t_scael\" (did you mean \"t_scale\"?)" },
    { kernel_null, GANTRY_E_INVALID, "a kernel node without the name of a kernel" },
    { kernel_again, GANTRY_E_GRAPH,
      "kernel \"t_scale\" is already in use by this graph; add it once, before the first node that uses it" },
    { kernel_size, GANTRY_E_INVALID,
      "struct_size is 0, which is no size of a gantry_kernel; set it to sizeof(gantry_kernel), which is 112 in this "
      "version of the "
      "library" },
    { kernel_null_given, GANTRY_E_INVALID, "no kernel is given: the gantry_kernel is NULL" },
    { cuda_size, GANTRY_E_INVALID,
      "struct_size is 0, which is no size of a gantry_cuda_code; set it to sizeof(gantry_cuda_code), which is 136 in "
      "this version of the "
      "library" },
    { cuda_null, GANTRY_E_INVALID, "no CUDA code is given: the gantry_cuda_code is NULL" },
    { cuda_manifest, GANTRY_E_INVALID, "no kernel is given: the gantry_kernel is NULL" },
    { cuda_none, GANTRY_E_INVALID,
      "the CUDA code of kernel \"other\" is given in 0 ways; give one of an image with its bytes, a function that "
      "gives handles, a source, and a function that launches" },
    { cuda_both, GANTRY_E_INVALID,
      "the CUDA code of kernel \"other\" is given in 2 ways; give one of an image with its bytes, a function that "
      "gives handles, a source, and a function that launches" },
    { cuda_no_bytes, GANTRY_E_INVALID, "the image of the CUDA code of kernel \"other\" has 0 bytes; at least 4" },
    { cuda_launch_grid, GANTRY_E_INVALID,
      "kernel \"other\" has a function that launches, which chooses grid, block, entry and shared memory by itself; "
      "leave them out" },
    { cuda_source_and_launch, GANTRY_E_INVALID,
      "the CUDA code of kernel \"other\" is given in 3 ways; give one of an image with its bytes, a function that "
      "gives handles, a source, and a function that launches" },
    { cuda_no_block, GANTRY_E_INVALID,
      "the CUDA code of kernel \"other\" does not say how many threads a launch has; give grid[0] and block[0]" },
    { cuda_grid, GANTRY_E_GRAPH,
      "kernel \"other\": grid \"z.rows\" uses \"z.rows\"; scalars of the kernel and ARG.rows, .size, .bytes, .count, "
      ".shape0 of its regions are known" },
    { cuda_shared, GANTRY_E_INVALID, "kernel \"other\" has -1 bytes of shared memory; at least 0" },
    { cuda_type, GANTRY_E_INVALID, "kernel \"other\": argument \"a\" is passed as type 12, which is none" },
    { cuda_default_of_region, GANTRY_E_INVALID,
      "kernel \"other\": argument \"x\" has a default and is no optional scalar in the manifest" },
    { cuda_default_of_number, GANTRY_E_INVALID,
      "kernel \"other\": the default \"a + x.size\" of argument \"a\" may use regions, as in \"x.size\", and no other "
      "numbers" },
    { cuda_no_host, GANTRY_E_GRAPH, "kernel \"other\" has no host version; give one, or set GANTRY_KERNEL_NO_CPU" },
    { cuda_again, GANTRY_E_GRAPH,
      "kernel \"t_scale\" is already in use by this graph; add it once, before the first node that uses it" },
    { kernel_no_host, GANTRY_E_GRAPH, "kernel \"other\" has no host version; give one, or set GANTRY_KERNEL_NO_CPU" },
    { host_kernel_gpu, GANTRY_E_GRAPH, "kernel \"t_gpu\" has no host version; name it by \"kernel\", not \"host\"" },
    { id_empty, GANTRY_E_GRAPH, "an empty node id; leave it out or name the node" },
    { id_taken, GANTRY_E_GRAPH, "node id \"w\" is taken by an earlier node; ids are unique" },
    { id_taken_in_file, GANTRY_E_GRAPH,
      "node id \"n\" is taken by the node at /nodes/3; ids are unique: put the indices of the loop into it" },
    { launch_null, GANTRY_E_INVALID, "launch node \"f\" has no function; pass the function to call" },
    { host_null, GANTRY_E_INVALID, "host node \"host\" has no function; pass the function to call" },
    { fill_value, GANTRY_E_GRAPH, "the fill is 0.25, which no i32 can be; use a whole number in its range" },
    { fill_uniform, GANTRY_E_GRAPH, "the fill is random from 0 to inf; both must be finite, the lower one first" },
    { fill_file, GANTRY_E_GRAPH, "the fill can be a value, random, normal or iota only" },
    { fill_iota, GANTRY_E_GRAPH, "the fill counts from nan in steps of 0; both must be finite" },
    { collective_kind, GANTRY_E_INVALID,
      "collective \"c\" of kind 99 with 0 regions in and 0 out; pass a gantry_collective and as many regions as you "
      "say" },
    { collective_regions, GANTRY_E_INVALID,
      "collective \"c\" of kind 5 with 2 regions in and 0 out; pass a gantry_collective and as many regions as you "
      "say" },
    { algorithm, GANTRY_E_GRAPH, "node \"w\" is no collective, so it has no algorithm" },
    { algorithm_null, GANTRY_E_INVALID,
      "collective \"c\" has an algorithm without a name; give \"auto\" or one such as \"ring\"" },
    { index_outside, GANTRY_E_GRAPH, "an index outside a repeat; begin one with gantry_graph_repeat" },
    { index_word, GANTRY_E_INVALID,
      "\"devices\" cannot be the index of a repeat; give letters, digits and _, not a digit first, and no word of "
      "expressions" },
    { index_form, GANTRY_E_INVALID,
      "\"2nd\" cannot be the index of a repeat; give letters, digits and _, not a digit first, and no word of "
      "expressions" },
    { index_around, GANTRY_E_GRAPH,
      "\"step\" is the index of a repeat around this already; give the inner one another name" },
    { index_late, GANTRY_E_INVALID,
      "the index \"step\" of a repeat that has nodes already; name it before the first of them" },
    { expr_syntax, GANTRY_E_GRAPH,
      "argument \"a\": in expression \"2 *\": at character 4: expected a number, a name or '(', not the end" },
    { expr_name, GANTRY_E_GRAPH, "argument \"a\" uses \"step\"; params, indices and `it` are known here" },
    { expr_outside, GANTRY_E_GRAPH, "argument \"a\" uses `it`, but node \"s\" is not inside a repeat" },
    { expr_null, GANTRY_E_INVALID, "argument \"a\" has no expression; pass a text" },
    { contents_kind, GANTRY_E_INVALID, "contents of the unknown kind 7; give a gantry_contents_kind" },
    { contents_null, GANTRY_E_INVALID, "no contents are given: the gantry_contents is NULL" },
    { contents_exact, GANTRY_E_GRAPH, "`exact` of gantry_contents: in expression \"n + 1\": unknown name \"n\"" },
    { contents_too_large, GANTRY_E_GRAPH,
      "the init of \"y\" is 9007199254740993, which no i32 can be; use a whole number in its range" },

    { arg_unknown, GANTRY_E_GRAPH, "kernel \"t_scale\" has no argument \"q\"; it has a, x, y" },
    { arg_near, GANTRY_E_GRAPH, "kernel \"t_gather\" has no argument \"tils\" (did you mean \"tiles\"?)" },
    { arg_of_work, GANTRY_E_GRAPH,
      "node \"w\" has no kernel, so it has no argument \"x\"; use gantry_node_read and the like" },
    { arg_is_number, GANTRY_E_GRAPH, "argument \"a\" of kernel \"t_scale\" is a number, not a region of a buffer" },
    { arg_is_region, GANTRY_E_GRAPH, "argument \"x\" of kernel \"t_scale\" is a region of a buffer, not a number" },
    { arg_dtype, GANTRY_E_GRAPH,
      "argument \"x\" of kernel \"t_scale\" cannot be \"y\", which is i32; allowed: f32, f64" },
    { arg_access, GANTRY_E_GRAPH,
      "argument \"y\" of kernel \"t_scale\" does not take access \"max\"; allowed: write, sum" },
    { arg_access_none, GANTRY_E_INVALID, "access 12 is none; use GANTRY_READ to GANTRY_PROD" },
    { arg_twice, GANTRY_E_GRAPH, "argument \"x\" of node \"s\" is given twice" },
    { arg_twice_late, GANTRY_E_GRAPH, "argument \"y\" of node \"s\" is given twice" },
    { scalar_twice, GANTRY_E_GRAPH, "argument \"a\" of node \"s\" is given twice" },
    { arg_of_nothing, GANTRY_E_INVALID, "there is no node 77; the graph has 3 nodes" },
    { arg_many_tiles, GANTRY_E_GRAPH,
      "node \"s\" gets 1 x 2 tiles of \"A\" where one region is expected; name one tile" },
    { arg_all_tiles, GANTRY_E_GRAPH,
      "node \"s\" gets 3 x 3 tiles of \"A\" where one region is expected; name one tile" },
    { further_region, GANTRY_E_GRAPH, "kernel \"t_scale\" of node \"s\" takes no further regions; name its arguments" },
    { region_of_fill, GANTRY_E_GRAPH, "node \"f\" is a copy, fill or collective: its regions are given at once" },
    { reduce_read, GANTRY_E_INVALID, "access 1 is no reduction; use GANTRY_SUM, MIN, MAX or PROD" },
    { read_of_nothing, GANTRY_E_INVALID, "there is no node 77; the graph has 3 nodes" },
    { scalar_expr_name, GANTRY_E_GRAPH, "argument \"a\" uses \"speed\"; params, indices and `it` are known here" },
    { scalar_expr_outside, GANTRY_E_GRAPH, "argument \"a\" uses `it`, but node \"s\" is not inside a repeat" },

    { after_itself, GANTRY_E_GRAPH, "node \"w\" cannot be after itself; name another node" },
    { after_nothing, GANTRY_E_INVALID, "there is no node 77; the graph has 3 nodes" },
    { with_itself, GANTRY_E_GRAPH, "node \"w\" cannot be with itself; name another node" },
    { apart_itself, GANTRY_E_GRAPH, "node \"w\" cannot be apart from itself; name another node" },
    { on_nothing, GANTRY_E_GRAPH, "node \"w\" is on \"\"; name a device, a kind, or an index" },
    { on_expr_name, GANTRY_E_GRAPH, "`on` of node \"w\" uses a name that is not known; `devices` is" },
    { cost_negative, GANTRY_E_GRAPH, "node \"w\" costs -1 flops and 0 bytes; both must be finite and at least 0" },
    { cost_nan, GANTRY_E_GRAPH, "node \"w\" costs 1 flops and nan bytes; both must be finite and at least 0" },
    { time_infinite, GANTRY_E_GRAPH, "node \"w\" takes inf us; a time must be finite and at least 0" },
    { when_of_many, GANTRY_E_GRAPH,
      "node \"w\" has a when on \"image\", 100 elements of it; a flag is one element of a buffer without tiles and "
      "automatic parts" },
    { when_of_nothing, GANTRY_E_GRAPH,
      "node \"w\" has a when on \"y\", 0 elements of it; a flag is one element of a buffer without tiles and automatic "
      "parts" },
    { when_of_a_tile, GANTRY_E_GRAPH,
      "node \"w\" has a when on \"A\", which is in tiles; a flag is one element of a buffer without tiles and "
      "automatic parts" },
    { when_of_an_automatic_part, GANTRY_E_GRAPH,
      "node \"w\" has a when on \"z\", which is in automatic parts; a flag is one element of a buffer without "
      "tiles and automatic parts" },
    { when_out_of_range, GANTRY_E_GRAPH,
      "y{100:101} is out of range: \"y\" has 100 rows, and the first may not be behind the last" },
    { when_twice, GANTRY_E_GRAPH,
      "node \"w\" has two whens; one is allowed: compute one flag of both, such as the map \"both = a * b\"" },
    { when_behind_the_end, GANTRY_E_GRAPH,
      "node \"first\" is given a when behind the end of its repeat, whose until guards its nodes from there on; call "
      "gantry_node_when before gantry_graph_repeat_end" },
    { when_twice_of_a_collective, GANTRY_E_GRAPH,
      "node \"c\" has two whens; one is allowed: compute one flag of both, such as the map \"both = a * b\"" },
    { share_large, GANTRY_E_GRAPH, "node \"w\" fills 1.5 of a device; 0 to 1 are allowed" },
    { scratch_negative, GANTRY_E_GRAPH, "node \"w\" needs -8 bytes of scratch; it must be at least 0" },

    { repeat_nested, GANTRY_E_GRAPH, "a repeat inside of 16 others; end one of them before" },
    { until_nested, GANTRY_E_GRAPH, "until watches \"image\", which has 400 elements; it must have one" },
    { repeat_nested_open, GANTRY_E_GRAPH, "a repeat without its end; call gantry_graph_repeat_end" },
    { repeat_nested_closed_twice, GANTRY_E_GRAPH,
      "the end of a repeat outside a repeat; begin one with gantry_graph_repeat" },
    { repeat_negative, GANTRY_E_GRAPH, "repeat -2; the count must be at least 0" },
    { repeat_no_begin, GANTRY_E_GRAPH, "the end of a repeat outside a repeat; begin one with gantry_graph_repeat" },
    { carry_outside, GANTRY_E_GRAPH, "carry outside a repeat; begin one with gantry_graph_repeat" },
    { carry_itself, GANTRY_E_GRAPH, "buffer \"image\" is carried into itself; name two buffers" },
    { carry_twice, GANTRY_E_GRAPH, "buffer \"image\" is in two carried pairs of one repeat; one is allowed" },
    { carry_nothing, GANTRY_E_INVALID, "there is no buffer 77; the graph has 4 buffers" },
    { until_outside, GANTRY_E_GRAPH, "until outside a repeat; begin one with gantry_graph_repeat" },
    { until_every, GANTRY_E_GRAPH, "until every 0 iterations; it must be at least 1" },
    { until_twice, GANTRY_E_GRAPH, "a repeat with two untils; one is allowed" },
    { of_a_reader, GANTRY_E_IO, "cannot read it" },
};

START_TEST(text_of_mistake)
{
    const struct mistake *m = &mistakes[_i];
    gantry_error err, again;
    m->make();
    ck_assert_int_eq(gantry_graph_check(g, &err), m->status);
    ck_assert_str_eq(err.text, m->text);
    ck_assert_int_eq(err.status, m->status);
    ck_assert_int_eq(err.device, -1);
    /* The first one sticks, and every call after it is accepted and does nothing. */
    gantry_graph_buffer(g, "", GANTRY_F32, 1, SHAPE(1));
    gantry_node none = gantry_graph_work(g, "later");
    ck_assert_uint_eq(none.id, GANTRY_NONE);
    ck_assert_int_eq(gantry_graph_check(g, &again), m->status);
    ck_assert_str_eq(again.text, m->text);
}
END_TEST

static const char *tail_of(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

START_TEST(line_of_mistake)
{
    gantry_error err;
    gantry_graph_copy(g, "fine", gantry_part(x, 0), gantry_part(x, 1));
    int line = __LINE__ + 1;
    gantry_node_read(g, work, gantry_part(x, 9));
    gantry_node_read(g, work, gantry_part(x, 8));
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_E_GRAPH);
    ck_assert_str_eq(err.text, "image[9] is out of range: \"image\" has parts 0 to 3");
    ck_assert_str_eq(tail_of(err.file), "test_build_errors.c");
    ck_assert_int_eq(err.line, line);
    ck_assert_int_eq(err.column, 0);
    ck_assert_str_eq(err.where, "");
}
END_TEST

/* An error that checking finds has the line where the node was added. */
START_TEST(line_of_node)
{
    gantry_error err;
    int line = __LINE__ + 1;
    gantry_node n = gantry_graph_kernel(g, "half", "t_scale");
    gantry_node_arg(g, n, "x", gantry_all(x));
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_E_GRAPH);
    /* "s" of the fixture comes first. */
    ck_assert_str_eq(err.text,
                     "node \"s\": argument \"x\" of kernel \"t_scale\" is missing; give it a region of a buffer");
    ck_assert_str_eq(tail_of(err.file), "test_build_errors.c");
    ck_assert_int_lt(err.line, line);
    ck_assert_int_gt(err.line, 10);
}
END_TEST

START_TEST(pointer_of_mistake)
{
    gantry_error err;
    gy_graph_set_source(g, "some.json", NULL, NULL);
    gy_graph_set_origin(g, "/nodes/7/args/x");
    (gantry_node_arg)(g, scale, "x", gantry_part(x, 9));
    ck_assert_int_eq(gantry_graph_check(g, &err), GANTRY_E_GRAPH);
    ck_assert_str_eq(err.where, "/nodes/7/args/x");
    ck_assert_str_eq(err.file, "some.json");
    ck_assert_int_eq(err.line, 0);
}
END_TEST

START_TEST(no_graph)
{
    gantry_error err;
    gantry_buffer b = gantry_graph_buffer(NULL, "b", GANTRY_F32, 1, SHAPE(1));
    ck_assert_uint_eq(b.id, GANTRY_NONE);
    gantry_buffer_split(NULL, b, 1);
    gantry_buffer_output(NULL, b);
    gantry_node n = gantry_graph_kernel(NULL, "k", "t_scale");
    ck_assert_uint_eq(n.id, GANTRY_NONE);
    gantry_node_arg(NULL, n, "x", gantry_all(b));
    gantry_node_read(NULL, n, gantry_all(b));
    gantry_node_reduce(NULL, n, gantry_all(b), GANTRY_SUM);
    gantry_node_after(NULL, n, n);
    gantry_node_on(NULL, n, "gpu0");
    gantry_node_cost(NULL, n, 1, 1);
    gantry_graph_repeat(NULL, 1);
    gantry_graph_carry(NULL, b, b);
    gantry_graph_until(NULL, b, 1);
    gantry_graph_repeat_end(NULL);
    gantry_graph_add_kernel(NULL, &scale_kernel);
    gantry_graph_add_cuda_kernel(NULL, &scale_kernel, NULL);
    ck_assert_int_eq(gantry_graph_check(NULL, &err), GANTRY_E_NOMEM);
    ck_assert_str_eq(err.text, "out of host memory");
    gantry_graph_free(NULL);
}
END_TEST

START_TEST(sealed)
{
    gantry_error err;
    gantry_graph *h = gantry_graph_new(NULL);
    gantry_graph_work(h, NULL);
    ck_assert_int_eq(gantry_graph_check(h, &err), GANTRY_OK);
    ck_assert_int_eq(gantry_graph_check(h, NULL), GANTRY_OK);
    int line = __LINE__ + 1;
    gantry_graph_work(h, NULL);
    ck_assert_int_eq(gantry_graph_check(h, &err), GANTRY_E_INVALID);
    ck_assert_str_eq(err.text, "the graph was checked and is sealed: build it completely before gantry_graph_check");
    ck_assert_int_eq(err.line, line);
    gantry_graph_free(h);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("graph_build_errors");
    TCase *c = tcase_create("mistakes");
    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_loop_test(c, text_of_mistake, 0, (int)(sizeof mistakes / sizeof *mistakes));
    tcase_add_test(c, line_of_mistake);
    tcase_add_test(c, line_of_node);
    tcase_add_test(c, pointer_of_mistake);
    tcase_add_test(c, no_graph);
    tcase_add_test(c, sealed);
    suite_add_tcase(s, c);
    return run_suite(s);
}
