/* SPDX-License-Identifier: Apache-2.0 */
#include "families.h"

#include <stdio.h>

int draw(family *f, int n)
{
    f->state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    uint64_t z = f->state;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (int)((z ^ z >> 31) % (uint64_t)n);
}

int draw_from(family *f, int a, int b)
{
    return a + draw(f, b - a + 1);
}

/* ---- nodes and buffers ---- */

/* Heavy tailed: many are short. */
static double draw_time(family *f)
{
    static const int most[] = { 10, 40, 40, 200, 1000 };
    int class = draw(f, 5);
    return 1 + draw(f, most[class]);
}

gantry_node add_work(family *f)
{
    static const char *const textbook[] = { "P1", "P2", "P3" };
    char id[16];
    snprintf(id, sizeof id, "n%d", f->nodes);
    gantry_node n = gantry_graph_work(f->graph, id);
    double time = draw_time(f);
    if (draw(f, 4) || f->tiny) {
        gantry_node_time(f->graph, n, NULL, time);
        for (int i = 0; i < 3 && f->tiny; i++) {
            double own = 1 + draw(f, 30);
            gantry_node_time(f->graph, n, textbook[i], own);
        }
    } else {
        double flops = time * (1 + draw(f, 2000)) * 1e3;
        gantry_node_cost(f->graph, n, flops, time * 1e5);
    }
    if (!draw(f, 25))
        gantry_node_priority(f->graph, n, draw(f, 4));
    if (f->nodes < 2 * FAMILY_NODES)
        f->node[f->nodes++] = n;
    return n;
}

gantry_buffer add_buffer(family *f, int64_t rows)
{
    static const int most[] = { 16, 4096, 65536, 1 << 20 };
    int class = draw(f, 4);
    char name[16];
    int64_t shape[2] = { rows, f->tiny ? draw_from(f, 1, rows > 1 ? 4 : 30) : draw_from(f, 1, most[class]) };
    snprintf(name, sizeof name, "b%zu", gantry_graph_buffer_count(f->graph));
    return gantry_graph_buffer(f->graph, name, GANTRY_U8, 2, shape);
}

/* ---- families that are given by their edges ---- */

typedef struct dag {
    int count;
    bool edge[FAMILY_NODES][FAMILY_NODES]; /* from the lower to the higher */
} dag;

static void draw_layered(family *f, dag *d)
{
    int layer[FAMILY_NODES], width = draw_from(f, 1, 8), degree = draw_from(f, 1, 3);
    for (int i = 0; i < d->count; i++)
        layer[i] = i / width;
    for (int i = 0; i < d->count; i++)
        for (int k = 0; k < degree && layer[i]; k++) {
            int reach = draw(f, 5) ? 1 : draw_from(f, 1, layer[i]);
            int from = (layer[i] - reach) * width + draw(f, width);
            d->edge[from][i] = true;
        }
}

/* Begins as one edge; again and again an edge gets a node in its middle, or a way by a new node beside it. Nodes are
 * then numbered by depth. */
static void draw_series_parallel(family *f, dag *d)
{
    int from[2 * FAMILY_NODES] = { 0 }, to[2 * FAMILY_NODES] = { 1 }, depth[FAMILY_NODES] = { 0, 1 }, edges = 1;
    for (int node = 2; node < d->count; node++) {
        int e = draw(f, edges), end = to[e];
        if (draw(f, 2)) {
            to[e] = node;
        } else {
            from[edges] = from[e];
            to[edges++] = node;
        }
        from[edges] = node;
        to[edges++] = end;
    }
    for (int pass = 0; pass < d->count; pass++)
        for (int e = 0; e < edges; e++)
            if (depth[to[e]] <= depth[from[e]])
                depth[to[e]] = depth[from[e]] + 1;
    int rank[FAMILY_NODES] = { 0 };
    for (int i = 0; i < d->count; i++)
        for (int k = 0; k < d->count; k++)
            rank[i] += depth[k] < depth[i] || (depth[k] == depth[i] && k < i);
    for (int e = 0; e < edges; e++)
        d->edge[rank[from[e]]][rank[to[e]]] = true;
}

static void draw_fork_join(family *f, dag *d)
{
    int at = 0, fork = 0;
    while (at + 2 < d->count) {
        int width = draw_from(f, 1, 9), first = at + 1;
        width = first + width < d->count ? width : d->count - 1 - first;
        fork = at;
        for (int i = 0; i < width; i++)
            d->edge[fork][first + i] = d->edge[first + i][first + width] = true;
        at = first + width;
    }
    d->count = at + 1;
}

/* Towards the root, or away from it. */
static void draw_tree(family *f, dag *d)
{
    bool in = draw(f, 2);
    int arity = draw_from(f, 1, 5);
    for (int i = 1; i < d->count; i++) {
        int parent = draw(f, 3) ? (i - 1) / arity : draw(f, i);
        if (in)
            d->edge[d->count - 1 - i][d->count - 1 - parent] = true;
        else
            d->edge[parent][i] = true;
    }
}

/* Each node writes a buffer of its own, and reads what those before it wrote, all of it or some rows. */
static void add_dag(family *f, const dag *d)
{
    gantry_buffer made[FAMILY_NODES];
    int64_t rows[FAMILY_NODES];
    bool halves = !draw(f, 3), uploads = draw(f, 2);
    for (int i = 0; i < d->count; i++) {
        gantry_node n = add_work(f);
        bool first = true, last = true;
        for (int k = 0; k < i; k++) {
            if (!d->edge[k][i])
                continue;
            first = false;
            bool some = halves && rows[k] > 1 && draw(f, 2);
            gantry_node_read(f->graph, n,
                             some ? gantry_rows(made[k], 0, 1 + draw(f, (int)rows[k] - 1)) : gantry_all(made[k]));
        }
        for (int k = i + 1; k < d->count; k++)
            last = last && !d->edge[i][k];
        if (first && uploads) {
            gantry_buffer in = add_buffer(f, 1);
            gantry_buffer_init_value(f->graph, in, 1);
            gantry_node_read(f->graph, n, gantry_all(in));
        }
        rows[i] = halves ? draw_from(f, 1, 6) : 1;
        made[i] = add_buffer(f, rows[i]);
        gantry_node_write(f->graph, n, gantry_all(made[i]));
        if (last && draw(f, 2))
            gantry_buffer_output(f->graph, made[i]);
    }
}

static void make_dag(family *f, void (*draw_edges)(family *f, dag *d))
{
    dag d = { .count = draw_from(f, 5, draw(f, 3) ? 30 : FAMILY_NODES) };
    draw_edges(f, &d);
    add_dag(f, &d);
}

static void make_layered(family *f)
{
    make_dag(f, draw_layered);
}
static void make_series_parallel(family *f)
{
    make_dag(f, draw_series_parallel);
}
static void make_fork_join(family *f)
{
    make_dag(f, draw_fork_join);
}
static void make_tree(family *f)
{
    make_dag(f, draw_tree);
}

/* ---- what users may say beside it ---- */

/* Every node has one wish at most, so that wishes cannot contradict each other; no machine of the set has less than
 * three devices for work, so three that are apart have room. */
static void add_wishes(family *f)
{
    static const char *const where[] = { "0", "devices-1", "1", "5%devices" };
    for (int i = 0; i + 2 < f->nodes; i += 1 + draw(f, 12)) {
        int kind = draw(f, 4);
        if (kind == 0) {
            gantry_node_on(f->graph, f->node[i], where[draw(f, 4)]);
        } else if (kind == 1) {
            gantry_node_with(f->graph, f->node[i + 1], f->node[i]);
            i++;
        } else if (kind == 2) {
            gantry_node_apart(f->graph, f->node[i + 1], f->node[i]);
            gantry_node_apart(f->graph, f->node[i + 2], f->node[i + 1]);
            if (draw(f, 2))
                gantry_node_apart(f->graph, f->node[i + 2], f->node[i]);
            i += 2;
        } else {
            gantry_node_after(f->graph, f->node[i + 2], f->node[i]);
        }
    }
}

/* Half of the nodes leave something of their device to others. */
static void add_shares(family *f)
{
    for (int i = 0; i < f->nodes; i++) {
        double share = draw_from(f, 1, 100) / 100.0;
        if (draw(f, 2))
            gantry_node_share(f->graph, f->node[i], share);
    }
}

void family_make(family *f, uint64_t seed, bool tiny)
{
    static const struct {
        const char *name;
        void (*make)(family *f);
    } families[] = {
        { "layered", make_layered },     { "series-parallel", make_series_parallel },
        { "fork-join", make_fork_join }, { "tree", make_tree },
        { "tiles", make_tiles },         { "pipeline", make_pipeline },
        { "stencil", make_stencil },     { "data-parallel", make_data_parallel },
    };
    size_t kind = seed % (sizeof families / sizeof *families);
    *f = (family){ .graph = gantry_graph_new(families[kind].name), .name = families[kind].name, .tiny = tiny };
    f->state = seed * UINT64_C(0xd1342543de82ef95);
    f->wishes = !draw(f, 3);
    families[kind].make(f);
    if (f->wishes)
        add_wishes(f);
    if (!draw(f, 3))
        add_shares(f);
}
