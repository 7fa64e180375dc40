/* SPDX-License-Identifier: Apache-2.0 */
/* Random small graphs and machines. */
#include "property/mutants/mutants.h"
#include <gantry/gantry.h>
#include <stdio.h>
#include <string.h>

uint64_t rng_next(rng *r)
{
    uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint32_t rng_below(rng *r, uint32_t n)
{
    return n ? (uint32_t)(rng_next(r) >> 33) % n : 0;
}

typedef struct plan {
    rng *r;
    gantry_graph *g;
    uint32_t devices, buffers;
    gantry_buffer buffer[6];
    int64_t rows[6], width[6];
    gantry_buffer_class cls[6];
    bool sums;                       /* mostly reductions of few buffers */
    uint32_t carry_prev, carry_next; /* equal: no loop */
} plan;

static gantry_region region(plan *p, uint32_t b)
{
    int64_t first = rng_range(p->r, 0, p->rows[b] - 1), last = rng_range(p->r, first + 1, p->rows[b]);
    return rng_chance(p->r, 40) ? gantry_all(p->buffer[b]) : gantry_rows(p->buffer[b], first, last);
}

static void add_buffer(plan *p, gantry_buffer_class cls, int64_t rows, int64_t width, bool output)
{
    char name[16];
    uint32_t b = p->buffers++;
    snprintf(name, sizeof name, "b%u", b);
    p->rows[b] = rows;
    p->width[b] = width;
    p->cls[b] = cls;
    p->buffer[b] = gantry_graph_buffer(p->g, name, GANTRY_U8, 2, (int64_t[]){ rows, width });
    gantry_buffer_set_class(p->g, p->buffer[b], cls);
    if (cls != GANTRY_TEMP)
        gantry_buffer_init_value(p->g, p->buffer[b], 7);
    if (output)
        gantry_buffer_output(p->g, p->buffer[b]);
}

static void add_buffers(plan *p)
{
    static const gantry_buffer_class classes[] = { GANTRY_INPUT, GANTRY_STATE, GANTRY_CONST, GANTRY_TEMP, GANTRY_TEMP };
    /* Rows as wide as an alignment step make instances that overlap in part possible. */
    int64_t width = rng_chance(p->r, 6) ? 128 : rng_range(p->r, 1, 2);
    uint32_t count = p->sums ? 1 : (uint32_t)rng_range(p->r, 1, 3);
    for (uint32_t i = 0; i < count; i++)
        add_buffer(p, classes[rng_below(p->r, 5)], rng_range(p->r, 1, 4), width, rng_chance(p->r, 35));
    if (!p->sums && rng_chance(p->r, 35)) {
        int64_t rows = rng_range(p->r, 1, 3);
        p->carry_prev = p->buffers;
        add_buffer(p, rng_chance(p->r, 60) ? GANTRY_STATE : GANTRY_INPUT, rows, width, rng_chance(p->r, 40));
        p->carry_next = p->buffers;
        add_buffer(p, rng_chance(p->r, 70) ? GANTRY_TEMP : GANTRY_STATE, rows, width, rng_chance(p->r, 40));
    }
}

static gantry_access random_mode(plan *p, uint32_t b)
{
    static const gantry_access modes[] = { GANTRY_READ, GANTRY_READ, GANTRY_READ, GANTRY_WRITE,     GANTRY_WRITE,
                                           GANTRY_SUM,  GANTRY_SUM,  GANTRY_MAX,  GANTRY_READWRITE, GANTRY_MIN };
    if (p->sums && p->cls[b] != GANTRY_CONST && rng_chance(p->r, 75))
        return rng_chance(p->r, 50) ? GANTRY_SUM : GANTRY_MAX;
    return p->cls[b] == GANTRY_CONST ? GANTRY_READ : modes[rng_below(p->r, 10)];
}

static void add_work(plan *p, gantry_node node)
{
    uint32_t count = 1 + rng_below(p->r, 3), first = rng_below(p->r, p->buffers);
    for (uint32_t i = 0; i < count && i < p->buffers; i++) {
        uint32_t b = (first + i) % p->buffers;
        gantry_access mode = random_mode(p, b);
        if (mode == GANTRY_READ)
            gantry_node_read(p->g, node, region(p, b));
        else if (mode == GANTRY_WRITE)
            gantry_node_write(p->g, node, region(p, b));
        else if (mode == GANTRY_READWRITE)
            gantry_node_readwrite(p->g, node, region(p, b));
        else
            gantry_node_reduce(p->g, node, region(p, b), mode);
    }
}

static gantry_node add_node(plan *p, uint32_t i)
{
    char id[16];
    snprintf(id, sizeof id, "n%u", i);
    uint32_t a = rng_below(p->r, p->buffers), b = rng_below(p->r, p->buffers), dice = rng_below(p->r, 100);
    bool writable = p->cls[b] != GANTRY_CONST;
    if (dice < 14 && writable && !p->sums) {
        static const double values[] = { 0, 0, 1, 255, 9 };
        return gantry_graph_fill(p->g, id, region(p, b), values[rng_below(p->r, 5)]);
    }
    if (dice < 24 && writable && a != b) {
        int64_t rows = p->rows[a] < p->rows[b] ? p->rows[a] : p->rows[b], n = rng_range(p->r, 1, rows);
        return gantry_graph_copy(p->g, id, gantry_rows(p->buffer[a], 0, n),
                                 gantry_rows(p->buffer[b], p->rows[b] - n, p->rows[b]));
    }
    if (dice < 34 && writable && p->rows[b] >= 2) {
        gantry_region two[2] = { gantry_rows(p->buffer[b], 0, 1), gantry_rows(p->buffer[b], 1, 2) };
        return gantry_graph_collective(p->g, id, GANTRY_ALL_REDUCE, GANTRY_SUM, 2, two, 2, two, 0);
    }
    gantry_node node = gantry_graph_work(p->g, id);
    add_work(p, node);
    if (rng_chance(p->r, 10)) {
        snprintf(id, sizeof id, "d%u", rng_below(p->r, p->devices));
        gantry_node_on(p->g, node, id);
    }
    return node;
}

static void add_nodes(plan *p)
{
    gantry_node nodes[6];
    bool loop = p->carry_prev != p->carry_next;
    uint32_t count = 2 + rng_below(p->r, loop ? 2 : 5), first = loop ? rng_below(p->r, count) : count;
    uint32_t last = first + 1 + rng_below(p->r, 2), inner = rng_chance(p->r, 40) ? first + rng_below(p->r, 2) : count;
    for (uint32_t i = 0; i < count; i++) {
        if (i == first) {
            gantry_graph_repeat(p->g, 2);
            gantry_graph_carry(p->g, p->buffer[p->carry_prev], p->buffer[p->carry_next]);
        }
        bool nests = loop && i == inner && i < last; /* a loop within the loop, which may carry the same pair */
        if (nests)
            gantry_graph_repeat(p->g, 2);
        if (nests && rng_chance(p->r, 50))
            gantry_graph_carry(p->g, p->buffer[p->carry_prev], p->buffer[p->carry_next]);
        nodes[i] = add_node(p, i);
        if (nests)
            gantry_graph_repeat_end(p->g);
        if (i > 0 && rng_chance(p->r, 15))
            gantry_node_after(p->g, nodes[i], nodes[rng_below(p->r, i)]);
        if (i > 0 && rng_chance(p->r, 5))
            (rng_chance(p->r, 50) ? gantry_node_with : gantry_node_apart)(p->g, nodes[i], nodes[rng_below(p->r, i)]);
        if (loop && (i + 1 == last || (i + 1 == count && i >= first && i < last)))
            gantry_graph_repeat_end(p->g);
    }
}

gantry_graph *make_graph(rng *r, uint32_t devices)
{
    plan p = { .r = r, .g = gantry_graph_new("mutant"), .devices = devices, .sums = rng_chance(r, 15) };
    add_buffers(&p);
    add_nodes(&p);
    gantry_error err;
    if (gantry_graph_check(p.g, &err)) {
        gantry_graph_free(p.g);
        return NULL;
    }
    return p.g;
}

/* A host and further memories, each with a device; some machines have no routes between those, in some the last device
 * works in the host's memory instead. */
gantry_machine *make_machine(rng *r, uint32_t devices)
{
    char text[2048];
    size_t n = 0, size = sizeof text;
    bool direct = rng_chance(r, 60), shared = devices > 1 && rng_chance(r, 30), any = false;
    uint32_t memories = shared ? devices - 1 : devices;
    n += (size_t)snprintf(text, size, "{\"gantry_machine\": 1, \"memories\": [");
    for (uint32_t i = 0; i < memories; i++) {
        n += (size_t)snprintf(text + n, size - n, "%s{\"id\": \"m%u\", \"capacity\": 8192, \"reserved\": 1024}",
                              i ? ", " : "", i);
    }
    n += (size_t)snprintf(text + n, size - n, "], \"devices\": [");
    for (uint32_t i = 0; i < devices; i++) {
        n += (size_t)snprintf(text + n, size - n, "%s{\"id\": \"d%u\", \"memory\": \"m%u\"}", i ? ", " : "", i,
                              i < memories ? i : 0);
    }
    n += (size_t)snprintf(text + n, size - n, "], \"routes\": [");
    for (uint32_t i = 0; i < memories; i++) {
        for (uint32_t j = 0; j < memories; j++) {
            if (i != j && (direct || i == 0 || j == 0)) {
                n += (size_t)snprintf(text + n, size - n,
                                      "%s{\"from\": \"m%u\", \"to\": \"m%u\", \"latency_us\": 1, \"bandwidth_gbs\": 1}",
                                      any ? ", " : "", i, j);
                any = true;
            }
        }
    }
    snprintf(text + n, size - n, "]}");
    gantry_machine *m = NULL;
    gantry_error err;
    if (gantry_machine_parse(&m, text, strlen(text), "mutants", &err)) {
        fprintf(stderr, "machine: %s\n%s\n", err.text, text);
        return NULL;
    }
    return m;
}
