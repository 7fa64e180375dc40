/* SPDX-License-Identifier: Apache-2.0 */
/* Families about arrays that are cut: tiles, stages, halos, sums. */
#include "families.h"

#include <stdio.h>

static gantry_buffer make_input(family *f, gantry_buffer b)
{
    gantry_buffer_init_value(f->graph, b, 1);
    return b;
}

static gantry_buffer make_state(family *f, gantry_buffer b)
{
    gantry_buffer_set_class(f->graph, b, GANTRY_STATE);
    return make_input(f, b);
}

/* ---- Cholesky's order on tiles ---- */

static void update(family *f, gantry_buffer a, int i, int j, int k)
{
    gantry_node n = add_work(f);
    gantry_node_read(f->graph, n, gantry_tile(a, i, k));
    if (i != j)
        gantry_node_read(f->graph, n, gantry_tile(a, j, k));
    gantry_node_readwrite(f->graph, n, gantry_tile(a, i, j));
}

void make_tiles(family *f)
{
    int tiles = draw_from(f, 2, 5), size = f->tiny ? tiles : 32 << draw(f, 5);
    gantry_buffer a = gantry_graph_buffer(f->graph, "a", f->tiny ? GANTRY_U8 : GANTRY_F32, 2,
                                          (int64_t[]){ (int64_t)tiles * size, (int64_t)tiles * size });
    gantry_buffer_tiles(f->graph, a, tiles, tiles);
    make_input(f, a);
    if (draw(f, 2))
        gantry_buffer_output(f->graph, a);
    for (int k = 0; k < tiles; k++) {
        gantry_node n = add_work(f);
        gantry_node_readwrite(f->graph, n, gantry_tile(a, k, k));
        for (int i = k + 1; i < tiles; i++) {
            n = add_work(f);
            gantry_node_read(f->graph, n, gantry_tile(a, k, k));
            gantry_node_readwrite(f->graph, n, gantry_tile(a, i, k));
        }
        for (int i = k + 1; i < tiles; i++)
            for (int j = k + 1; j <= i; j++)
                update(f, a, i, j, k);
    }
}

/* ---- batches through stages ---- */

#define BATCHES 8
#define STAGES  6

/* Weights of a stage are constant, or a state that each batch changes: then a stage does one batch at a time. */
void make_pipeline(family *f)
{
    int stages = draw_from(f, 2, STAGES), batches = draw_from(f, 2, BATCHES);
    bool learns = draw(f, 2), with = draw(f, 2);
    gantry_buffer now[BATCHES];
    for (int b = 0; b < batches; b++)
        now[b] = make_input(f, add_buffer(f, 1));
    for (int s = 0; s < stages; s++) {
        gantry_buffer weights = add_buffer(f, 1);
        gantry_node first = { .id = GANTRY_NONE };
        if (learns)
            make_state(f, weights);
        else
            gantry_buffer_set_class(f->graph, make_input(f, weights), GANTRY_CONST);
        for (int b = 0; b < batches; b++) {
            gantry_node n = add_work(f);
            gantry_node_read(f->graph, n, gantry_all(now[b]));
            learns ? gantry_node_readwrite(f->graph, n, gantry_all(weights))
                   : gantry_node_read(f->graph, n, gantry_all(weights));
            now[b] = add_buffer(f, 1);
            gantry_node_write(f->graph, n, gantry_all(now[b]));
            if (with && b)
                gantry_node_with(f->graph, n, first);
            first = b ? first : n;
        }
    }
    for (int b = 0; b < batches; b++)
        gantry_buffer_output(f->graph, now[b]);
    f->nodes = with ? 0 : f->nodes; /* stages are groups: wishes for one node could contradict them */
}

/* ---- parts with halos ---- */

/* Two arrays by turns, or a loop that carries; sometimes the largest change is looked for after each sweep. */
void make_stencil(family *f)
{
    int parts = draw_from(f, 2, 8), sweeps = draw_from(f, 1, 5), halo = draw_from(f, 1, 2);
    bool loop = draw(f, 2), reduces = draw(f, 2);
    int64_t rows = parts * (f->tiny ? 3 : 16 << draw(f, 6));
    int64_t bytes = f->tiny ? 1 : 1 + draw(f, 512);
    bool automatic = !draw(f, 4);
    gantry_buffer line[2], from, sum = add_buffer(f, 1);
    for (int i = 0; i < 2; i++) {
        line[i] = gantry_graph_buffer(f->graph, i ? "next" : "prev", GANTRY_U8, 2, (int64_t[]){ rows, bytes });
        automatic ? gantry_buffer_split_auto(f->graph, line[i], parts) : gantry_buffer_split(f->graph, line[i], parts);
    }
    make_state(f, line[0]);
    from = line[0];
    if (loop) {
        gantry_graph_repeat(f->graph, sweeps);
        gantry_graph_carry(f->graph, line[0], line[1]);
    }
    for (int s = 0; s < (loop ? 1 : sweeps); s++) {
        gantry_buffer to = loop || s % 2 == 0 ? line[1] : line[0];
        if (reduces)
            gantry_graph_fill(f->graph, NULL, gantry_all(sum), 0);
        for (int i = 0; i < parts; i++) {
            gantry_node n = add_work(f);
            gantry_node_read(f->graph, n, gantry_halo(gantry_part(from, i), halo, halo));
            gantry_node_write(f->graph, n, gantry_part(to, i));
            if (reduces)
                gantry_node_reduce(f->graph, n, gantry_all(sum), GANTRY_MAX);
        }
        from = loop ? from : to;
    }
    if (loop)
        gantry_graph_repeat_end(f->graph);
    if (reduces)
        gantry_buffer_output(f->graph, sum);
}

/* ---- gradients ---- */

#define RANKS 6

static void sum_by_collective(family *f, const gantry_buffer *part, int parts)
{
    gantry_region in[RANKS];
    for (int i = 0; i < parts; i++)
        in[i] = gantry_all(part[i]);
    gantry_graph_collective(f->graph, NULL, GANTRY_ALL_REDUCE, GANTRY_SUM, (size_t)parts, in, (size_t)parts, in, 0);
}

/* Work on parts, a sum that everybody adds to or a collective, and an update that everybody makes. */
void make_data_parallel(family *f)
{
    int parts = draw_from(f, 2, RANKS), layers = draw_from(f, 1, 4);
    int64_t size = f->tiny ? 8 : 256 << draw(f, 12);
    gantry_buffer gradient[RANKS], total, in = make_input(f, add_buffer(f, parts));
    gantry_buffer_split(f->graph, in, parts);
    for (int l = 0; l < layers; l++) {
        bool collective = draw(f, 2);
        char name[40];
        snprintf(name, sizeof name, "total%d", l);
        total = gantry_graph_buffer(f->graph, name, GANTRY_F32, 1, &size);
        if (!collective)
            gantry_graph_fill(f->graph, NULL, gantry_all(total), 0);
        for (int i = 0; i < parts; i++) {
            snprintf(name, sizeof name, "gradient%d_%d", l, i);
            gradient[i] = gantry_graph_buffer(f->graph, name, GANTRY_F32, 1, &size);
            gantry_node n = add_work(f);
            gantry_node_read(f->graph, n, gantry_part(in, i));
            if (collective)
                gantry_node_write(f->graph, n, gantry_all(gradient[i]));
            else
                gantry_node_reduce(f->graph, n, gantry_all(total), GANTRY_SUM);
        }
        if (collective)
            sum_by_collective(f, gradient, parts);
        gantry_buffer out = add_buffer(f, parts);
        gantry_buffer_split(f->graph, out, parts);
        for (int i = 0; i < parts; i++) {
            gantry_node n = add_work(f);
            gantry_node_read(f->graph, n, gantry_all(collective ? gradient[i] : total));
            gantry_node_write(f->graph, n, gantry_part(out, i));
        }
        in = out;
    }
    gantry_buffer_output(f->graph, in);
}
