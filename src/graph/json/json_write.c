/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/json/json_write.h"

#include "base/error.h"
#include "base/file.h"
#include "graph/adjoint/adjoint.h"
#include "graph/halo.h"
#include "graph/nest.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- pieces ---- */

void gy_write_key(gy_text *to, const char *key)
{
    bool first = to->length == 0 || to->at[to->length - 1] == '{';
    gy_text_add(to, first ? " " : ", ");
    gy_text_json(to, key);
    gy_text_add(to, ": ");
}

void gy_write_number(gy_text *to, double value)
{
    if (value == floor(value) && fabs(value) < 9007199254740992.0 && !(value == 0 && signbit(value)))
        gy_text_printf(to, "%" PRId64, (int64_t)value);
    else
        gy_text_double(to, value);
}

void gy_write_constant(gy_text *to, gy_constant value)
{
    if (value.rest != 0 && value.real >= 0x1p63)
        gy_text_printf(to, "\"%" PRIu64 "\"", gy_constant_bits(value)); /* JSON is read with numbers up to 2^63 - 1 */
    else if (value.rest != 0)
        gy_text_printf(to, "%" PRId64, (int64_t)gy_constant_bits(value));
    else
        gy_write_number(to, value.real);
}

void gy_write_expr(gy_text *to, const gy_expr *e)
{
    int64_t integer;
    if (gy_expr_is_integer(e, &integer)) {
        gy_text_printf(to, "%" PRId64, integer);
        return;
    }
    gy_text text = { 0 };
    gy_expr_print(&text, e);
    to->failed = to->failed || text.failed;
    gy_text_json(to, text.at ? text.at : "");
    gy_text_free(&text);
}

void gy_write_path(gy_text *to, const gantry_graph *graph, const char *path)
{
    size_t length = graph->folder ? strlen(graph->folder) : 0;
    bool inside = length > 0 && strncmp(path, graph->folder, length) == 0 && path[length] == '/';
    gy_text_json(to, inside ? path + length + 1 : path);
}

static void write_object(gy_text *to, const json_t *value)
{
    const char *before = "{";
    json_t *object = (json_t *)(uintptr_t)value; /* jansson's iterators do not change it */
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        gy_text_add(to, before);
        gy_text_json(to, json_object_iter_key(i));
        gy_text_add(to, ": ");
        gy_json_text(to, json_object_iter_value(i));
        before = ", ";
    }
    gy_text_add(to, json_object_size(value) ? "}" : "{}");
}

static void write_array(gy_text *to, const json_t *value)
{
    gy_text_add(to, "[");
    for (size_t i = 0; i < json_array_size(value); i++) {
        gy_text_add(to, i ? ", " : "");
        gy_json_text(to, json_array_get(value, i));
    }
    gy_text_add(to, "]");
}

void gy_json_text(gy_text *to, const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        write_object(to, value);
        break;
    case JSON_ARRAY:
        write_array(to, value);
        break;
    case JSON_STRING:
        gy_text_json(to, json_string_value(value));
        break;
    case JSON_INTEGER:
        gy_text_printf(to, "%" PRId64, (int64_t)json_integer_value(value));
        break;
    case JSON_REAL:
        gy_text_double(to, json_real_value(value));
        break;
    default:
        gy_text_add(to, json_is_null(value) ? "null" : json_is_true(value) ? "true" : "false");
    }
}

/* ---- params and machine ---- */

static void write_params(gy_text *to, const gantry_graph *g)
{
    gy_text_add(to, ",\n  \"params\": {");
    for (size_t i = 0; i < g->params.count; i++) {
        const gy_param *p = &g->params.at[i];
        gy_write_key(to, p->name);
        if (p->is_real)
            gy_text_double(to, p->real);
        else
            gy_text_printf(to, "%" PRId64, p->integer);
    }
    gy_text_add(to, " }");
}

static void write_machine(gy_text *to, const gantry_graph *g)
{
    gy_text_add(to, ",\n  \"machine\": ");
    if (g->machine_json)
        gy_text_add(to, g->machine_json);
    else
        gy_write_path(to, g, g->machine_path);
}

/* ---- training ---- */

static void write_option(gy_text *to, const char *key, double value)
{
    gy_write_key(to, key);
    gy_write_number(to, value);
}

static void write_names(gy_text *to, const char *key, const char *const *names, size_t count)
{
    gy_write_key(to, key);
    for (size_t i = 0; i < count; i++) {
        gy_text_add(to, i ? ", " : "[");
        gy_text_json(to, names[i]);
    }
    gy_text_add(to, "]");
}

/* The key `train` of a graph that is not trained. */
static void write_train(gy_text *to, const gantry_graph *g)
{
    const gantry_train_options *o = g->train;
    gy_text_add(to, ",\n  \"train\": {");
    gy_write_key(to, "loss");
    gy_text_json(to, o->loss);
    write_names(to, "weights", o->weights, o->weight_count);
    gy_write_key(to, "optimizer");
    gy_text_json(to, gantry_optimizer_name(o->optimizer));
    write_option(to, "learning_rate", o->learning_rate);
    if (o->schedule) {
        gy_write_key(to, "schedule");
        gy_text_json(to, o->schedule);
    }
    if (o->optimizer == GANTRY_OPTIMIZER_MOMENTUM)
        write_option(to, "momentum", o->momentum);
    if (gy_train_is_adam(o->optimizer)) {
        write_option(to, "beta1", o->beta1);
        write_option(to, "beta2", o->beta2);
        write_option(to, "epsilon", o->epsilon);
    }
    write_option(to, "weight_decay", o->weight_decay);
    write_option(to, "clip_norm", o->clip_norm);
    if (o->loss_scale == GANTRY_LOSS_SCALE_AUTO) {
        gy_write_key(to, "loss_scale");
        gy_text_json(to, "auto");
    } else {
        write_option(to, "loss_scale", o->loss_scale);
    }
    if (o->batch_count)
        write_names(to, "batch", o->batch, o->batch_count);
    gy_text_add(to, " }");
}

/* ---- buffers ---- */

static void write_pair(gy_text *to, const char *first, gy_constant a, const char *second, gy_constant b)
{
    gy_write_key(to, first);
    gy_write_constant(to, a);
    gy_write_key(to, second);
    gy_write_constant(to, b);
}

static void write_seed(gy_text *to, const char *key, uint64_t seed)
{
    gy_write_key(to, key);
    gy_text_add(to, "{");
    gy_write_key(to, "seed");
    gy_text_printf(to, "%" PRId64, (int64_t)seed);
}

void gy_write_generator(gy_text *to, const gantry_graph *graph, const gy_init *init)
{
    switch (init->kind) {
    case GY_INIT_NONE:
        return;
    case GY_INIT_VALUE:
        gy_write_key(to, "value");
        gy_write_constant(to, init->a);
        return;
    case GY_INIT_UNIFORM:
        write_seed(to, "random", init->seed);
        write_pair(to, "low", init->a, "high", init->b);
        break;
    case GY_INIT_NORMAL:
        write_seed(to, "normal", init->seed);
        write_pair(to, "mean", init->a, "deviation", init->b);
        break;
    case GY_INIT_SPD:
        write_seed(to, "spd", init->seed);
        break;
    case GY_INIT_IOTA:
        gy_write_key(to, "iota");
        gy_text_add(to, "{");
        write_pair(to, "start", init->a, "step", init->b);
        break;
    case GY_INIT_NPY:
    case GY_INIT_RAW:
        gy_write_key(to, init->kind == GY_INIT_NPY ? "npy" : "raw");
        gy_write_path(to, graph, init->path);
        return;
    }
    gy_text_add(to, " }");
}

static void write_init(gy_text *to, const gantry_graph *g, const gy_init *init)
{
    if (init->kind == GY_INIT_NONE)
        return;
    gy_write_key(to, "init");
    if (init->kind == GY_INIT_VALUE) {
        gy_write_constant(to, init->a);
        return;
    }
    gy_text_add(to, "{");
    gy_write_generator(to, g, init);
    gy_text_add(to, " }");
}

/* Parts that a strategy lets the scheduler cut only with numbers that follow, or with rows that stay together, of which
 * the format knows nothing. */
static bool has_followers(const gantry_graph *g)
{
    for (size_t i = 0; i < g->scalar.count; i++)
        if (g->scalar.at[i].per_row)
            return true;
    for (size_t i = 0; i < g->buffers.count; i++)
        if (g->buffers.at[i].along ||
            (g->buffers.at[i].split_auto && (g->buffers.at[i].turns > 1 || g->buffers.at[i].grain)))
            return true;
    return false;
}

/* `equal`: such parts are written as equal ones. */
static void write_cut(gy_text *to, const gy_buffer *b, bool equal)
{
    bool is_auto = b->split_auto && !(equal && b->in_pieces);
    if (b->parts > 0) {
        gy_write_key(to, "split");
        gy_text_printf(to, is_auto ? "{ \"auto\": %" PRId64 " }" : "%" PRId64, b->parts);
    }
    if (b->tiles[0] > 0) {
        gy_write_key(to, "tiles");
        for (int32_t i = 0; i < b->rank; i++)
            gy_text_printf(to, "%s%" PRId64, i ? ", " : "[", b->tiles[i]);
        gy_text_add(to, "]");
    }
    if (b->halo) {
        gy_write_key(to, "halo");
        for (int32_t i = 0; i < b->rank; i++)
            gy_text_printf(to, "%s[%" PRId64 ", %" PRId64 "]", i ? ", " : "[", b->halo->before[i], b->halo->after[i]);
        gy_text_add(to, "]");
    }
}

static void write_check(gy_text *to, const gy_buffer *b)
{
    if (b->rtol < 0 && !b->equal_nan)
        return;
    gy_write_key(to, "check");
    gy_text_add(to, "{");
    if (b->rtol >= 0)
        write_pair(to, "rtol", (gy_constant){ .real = b->rtol }, "atol", (gy_constant){ .real = b->atol });
    if (b->equal_nan) {
        gy_write_key(to, "equal_nan");
        gy_text_add(to, "true");
    }
    gy_text_add(to, " }");
}

static void write_buffer(gy_text *to, const gantry_graph *g, const gy_buffer *b, bool equal)
{
    static const char *const classes[] = { "", "input", "state", "const", "temp" };
    gy_text_json(to, b->name);
    gy_text_add(to, ": {");
    gy_write_key(to, "dtype");
    gy_text_json(to, gantry_dtype_name(b->dtype));
    gy_write_key(to, "shape");
    for (int32_t i = 0; i < b->rank; i++)
        gy_text_printf(to, "%s%" PRId64, i ? ", " : "[", b->shape[i]);
    gy_text_add(to, "]");
    write_cut(to, b, equal);
    gy_write_key(to, "class");
    gy_text_json(to, classes[b->cls]);
    write_init(to, g, &b->init);
    if (b->output) {
        gy_write_key(to, "output");
        gy_text_add(to, "true");
    }
    if (b->external) {
        gy_write_key(to, "external");
        gy_text_json(to, b->external);
    }
    write_check(to, b);
    gy_text_add(to, " }");
}

static void write_buffers(gy_text *to, const gantry_graph *g)
{
    bool equal = has_followers(g);
    gy_text_add(to, ",\n  \"buffers\": {");
    for (size_t i = 0; i < g->buffers.count; i++) {
        gy_text_add(to, i ? ",\n    " : "\n    ");
        write_buffer(to, g, &g->buffers.at[i], equal);
    }
    gy_text_add(to, g->buffers.count ? "\n  }" : "}");
}

/* ---- nodes ---- */

static void write_loop(gy_text *to, const gantry_graph *g, const gy_loop *loop, int depth);

static void write_line(gy_text *to, const char *before, int depth)
{
    gy_text_printf(to, "%s\n%*s", before, depth, "");
}

/* Nodes and the inner loops among them, each on a line of its own. Returns false if there are none. */
static bool write_range(gy_text *to, const gantry_graph *g, const gy_range *range, int depth)
{
    const char *before = "";
    uint32_t node = range->first;
    for (uint32_t i = range->inner;; i = g->inner.at[i].inner_last) {
        uint32_t next = i < range->inner_last ? g->inner.at[i].first_node : range->last;
        for (; node < next; node++, before = ",") {
            write_line(to, before, depth);
            gy_write_node(to, g, node);
        }
        if (i >= range->inner_last)
            return *before;
        write_line(to, before, depth);
        write_loop(to, g, &g->inner.at[i], depth);
        before = ",";
        node = g->inner.at[i].last_node;
    }
}

static void write_carry(gy_text *to, const gantry_graph *g, const gy_loop *loop)
{
    gy_write_key(to, "carry");
    gy_text_add(to, "{");
    for (size_t i = 0; i < loop->carry.count; i++) {
        gy_write_key(to, g->buffers.at[loop->carry.at[i].prev].name);
        gy_text_json(to, g->buffers.at[loop->carry.at[i].next].name);
    }
    gy_text_add(to, " }");
}

static void write_loop(gy_text *to, const gantry_graph *g, const gy_loop *loop, int depth)
{
    gy_range body = gy_loop_range(loop);
    gy_text_printf(to, "{ \"repeat\": %" PRId64, loop->count);
    if (strcmp(loop->index, "it") != 0) {
        gy_write_key(to, "index");
        gy_text_json(to, loop->index);
    }
    if (loop->carry.count > 0)
        write_carry(to, g, loop);
    if (loop->until != GY_NONE) {
        gy_write_key(to, "until");
        gy_text_add(to, "{ \"buffer\": ");
        gy_text_json(to, g->buffers.at[loop->until].name);
        gy_text_printf(to, ", \"every\": %" PRId64 " }", loop->every);
    }
    gy_text_add(to, ", \"nodes\": [");
    if (write_range(to, g, &body, depth + 2))
        write_line(to, "", depth);
    gy_text_add(to, "] }");
}

static void write_nodes(gy_text *to, const gantry_graph *g)
{
    const char *before = "";
    uint32_t node = 0;
    gy_text_add(to, ",\n  \"nodes\": [");
    for (size_t i = 0; i <= g->loops.count; i++) {
        uint32_t next = i < g->loops.count ? g->loops.at[i].first_node : (uint32_t)g->nodes.count;
        for (; node < next; node++, before = ",") {
            write_line(to, before, 4);
            gy_write_node(to, g, node);
        }
        if (i == g->loops.count)
            break;
        write_line(to, before, 4);
        write_loop(to, g, &g->loops.at[i], 4);
        before = ",";
        node = g->loops.at[i].last_node;
    }
    gy_text_add(to, *before ? "\n  ]" : "]");
}

/* ---- all of it ---- */

static gantry_status fail_number(const gantry_graph *g, uint32_t origin, const char *what, const char *name,
                                 double number, gantry_error *err)
{
    return gy_graph_fail(g, origin, err, GANTRY_E_UNSUPPORTED,
                         "%s of \"%s\" is %g, which JSON cannot write: a graph with it has no normal form; use a "
                         "finite number",
                         what, name, number);
}

/* A program may want NaN and infinities in arrays, and kernels may want them as scalars. */
static gantry_status check_numbers(const gantry_graph *g, gantry_error *err)
{
    for (size_t i = 0; i < g->buffers.count; i++) {
        const gy_buffer *b = &g->buffers.at[i];
        if (b->init.kind == GY_INIT_VALUE && !isfinite(b->init.a.real))
            return fail_number(g, b->origin, "the init", b->name, b->init.a.real, err);
    }
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        const gy_node *n = &g->nodes.at[i];
        const gy_init *fill = &gy_node_extra_of(g, i)->fill;
        if (fill->kind == GY_INIT_VALUE && !isfinite(fill->a.real))
            return fail_number(g, n->origin, "the fill", n->id, fill->a.real, err);
        for (uint32_t k = n->scalar; k < n->scalar + n->scalars; k++)
            if (!g->scalar.at[k].expr && !isfinite(g->scalar.at[k].number.real))
                return fail_number(g, n->origin, "a scalar", n->id, g->scalar.at[k].number.real, err);
    }
    return GANTRY_OK;
}

gantry_status gantry_graph_json(const gantry_graph *graph, char **text, size_t *length, gantry_error *err)
{
    gy_text to = { 0 };
    GY_NEED(graph, err);
    GY_NEED(text, err);
    if (!graph->sealed) {
        return gy_fail(err, GANTRY_E_INVALID, NULL,
                       "the graph was not checked: call gantry_graph_check before gantry_graph_json");
    }
    GY_TRY(check_numbers(graph, err));
    gy_text_add(&to, "{\n  \"gantry\": 1,\n  \"name\": ");
    gy_text_json(&to, graph->name);
    if (graph->params.count > 0)
        write_params(&to, graph);
    if (graph->machine_json || graph->machine_path)
        write_machine(&to, graph);
    if (graph->train && !graph->differentiated)
        write_train(&to, graph);
    gy_write_kernels(&to, graph);
    write_buffers(&to, graph);
    write_nodes(&to, graph);
    gy_text_add(&to, "\n}\n");
    char *all = gy_text_take(&to, length);
    if (!all)
        return gy_fail_nomem(err);
    *text = all;
    return GANTRY_OK;
}

gantry_status gantry_graph_save(const gantry_graph *graph, const char *path, gantry_error *err)
{
    char *text;
    size_t length;
    GY_NEED(graph, err);
    GY_NEED(path, err);
    gantry_status status = gantry_graph_json(graph, &text, &length, err);
    if (status)
        return status;
    status = gy_file_write(path, text, length, err);
    gy_free(text);
    return status;
}
