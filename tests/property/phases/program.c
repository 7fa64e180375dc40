/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <stdio.h>
#include <string.h>

int draw(uint64_t *state, int below)
{
    *state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    uint64_t z = *state;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (int)((z ^ z >> 31) % (uint64_t)below);
}

static double small(double x)
{
    return (double)((int64_t)x % 1009);
}

static double initial(int array, int row)
{
    return (double)((array * 37 + row * 11) % 101);
}

/* ---- one access after the other ---- */

typedef struct machine {
    const program *p;
    int64_t (*bound)[MOST_PARTS + 1];
    content value[ARRAYS + 1];
    int of[ARRAYS]; /* per name: the value it means */
    bool valid;
} machine;

/* A value that no name means, and that holds nothing. */
static int fresh(machine *m)
{
    bool used[ARRAYS + 1] = { false };
    for (int a = 0; a < ARRAYS; a++)
        used[m->of[a]] = true;
    int v = 0;
    while (used[v])
        v++;
    memset(&m->value[v], 0, sizeof m->value[v]);
    return v;
}

static double read_row(machine *m, const content *a, int row)
{
    m->valid = m->valid && a->def[row];
    return a->def[row] ? a->at[row] : 0;
}

static int clamp(int row, int rows)
{
    return row < 0 ? 0 : row >= rows ? rows - 1 : row;
}

static double new_row(machine *m, const statement *o, int row, int iteration)
{
    const content *from = &m->value[m->of[o->from]], *to = &m->value[m->of[o->to]];
    int rows = m->p->rows;
    switch (o->kind) {
    case OP_FILL:
        return o->value;
    case OP_STEP:
        return small(3 * read_row(m, from, clamp(row - o->halo, rows)) + 5 * read_row(m, from, row) +
                     7 * read_row(m, from, clamp(row + o->halo, rows)) + iteration + o->value);
    case OP_MIX:
        return small(3 * read_row(m, to, row) + read_row(m, from, row) + iteration + o->value);
    default:
        return (to->def[row] ? to->at[row] : 0) + read_row(m, from, row);
    }
}

static void run_part(machine *m, const statement *o, int part, int iteration)
{
    content *to = &m->value[m->of[o->to]];
    int64_t first = m->bound[o->to][part], last = m->bound[o->to][part + 1];
    for (int64_t row = first; row < last; row++) {
        to->at[row] = new_row(m, o, (int)row, iteration);
        to->def[row] = true;
    }
}

static void run_ops(machine *m, const block *b, int iteration)
{
    for (int i = b->first; i < b->last; i++) {
        const statement *o = &m->p->op[i];
        for (int part = 0; part < m->p->parts; part++)
            if (o->part < 0 || o->part == part)
                run_part(m, o, part, iteration);
    }
}

/* Each loop has a pair of its own, so no two names of a pair mean one value when it begins. */
static void run_block(machine *m, const block *b, bool full)
{
    if (b->count == 0)
        run_ops(m, b, 0);
    for (int it = 0; it < b->count; it++) {
        if (b->prev != b->next && it > 0) {
            m->of[b->prev] = m->of[b->next];
            m->of[b->next] = fresh(m);
        }
        run_ops(m, b, it);
        if (!full && b->every && (it + 1) % b->every == 0 && it + 1 >= b->at)
            break;
    }
    if (b->count && b->prev != b->next)
        m->of[b->prev] = m->of[b->next];
}

bool program_run(const program *p, int64_t bound[ARRAYS][MOST_PARTS + 1], bool full, content *out)
{
    machine m = { .p = p, .bound = bound, .valid = true };
    for (int a = 0; a < ARRAYS; a++) {
        m.of[a] = a;
        for (int row = 0; row < p->rows && p->init[a]; row++) {
            m.value[a].at[row] = initial(a, row);
            m.value[a].def[row] = true;
        }
    }
    for (int b = 0; b < p->blocks; b++)
        run_block(&m, &p->block[b], full);
    for (int a = 0; a < ARRAYS; a++)
        out[a] = m.value[m.of[a]];
    return m.valid;
}

/* ---- at random ---- */

static void make_op(program *p, uint64_t *s, const block *b)
{
    statement *o = &p->op[p->ops++];
    *o = (statement){ .kind = (op_kind)draw(s, OP_KINDS), .part = -1, .value = 1 + draw(s, 50) };
    o->to = draw(s, ARRAYS);
    o->from = (o->to + 1 + draw(s, ARRAYS - 1)) % ARRAYS;
    o->halo = draw(s, 2) ? 1 + draw(s, 2) : 0;
    if (b->count && b->prev != b->next && draw(s, 2)) {
        o->kind = OP_STEP;
        o->from = b->prev;
        o->to = b->next;
    }
    if (draw(s, 4) == 0) {
        o->part = draw(s, p->parts);
        p->uniform = false;
    }
    for (int d = 0; d < MOST_DEVICES; d++)
        o->us[d] = 1 + draw(s, 40);
}

static void make_block(program *p, uint64_t *s, bool loop, int *pair)
{
    block *b = &p->block[p->blocks++];
    *b = (block){ .first = p->ops };
    if (loop) {
        b->count = 1 + draw(s, 13);
        b->every = draw(s, 2) ? 1 + draw(s, 4) : 0;
        b->at = 1 + draw(s, 13);
        if (*pair + 1 < ARRAYS && draw(s, 2)) {
            b->prev = *pair;
            b->next = *pair + 1;
            *pair += 2;
        }
    }
    int ops = 1 + draw(s, 3);
    for (int i = 0; i < ops; i++)
        make_op(p, s, b);
    b->last = p->ops;
}

static void equal_bounds(const program *p, int64_t bound[ARRAYS][MOST_PARTS + 1])
{
    for (int a = 0; a < ARRAYS; a++)
        for (int i = 0; i <= p->parts; i++)
            bound[a][i] = (int64_t)p->rows * i / p->parts;
}

/* Arrays that are complete, whenever loops end, are outputs. False: there are none. */
static bool find_outputs(program *p)
{
    content now[ARRAYS], full[ARRAYS];
    int64_t bound[ARRAYS][MOST_PARTS + 1];
    bool any = false;
    equal_bounds(p, bound);
    if (!program_run(p, bound, false, now) || !program_run(p, bound, true, full))
        return false;
    for (int a = 0; a < ARRAYS; a++) {
        p->output[a] = true;
        for (int row = 0; row < p->rows; row++)
            p->output[a] = p->output[a] && now[a].def[row] && full[a].def[row];
        any = any || p->output[a];
    }
    return any;
}

bool program_make(program *p, uint64_t seed)
{
    uint64_t s = seed * 7919 + 1;
    int pair = 0, loops = 1 + draw(&s, 2);
    *p = (program){ .uniform = true };
    p->rows = 12 + draw(&s, MOST_ROWS - 11);
    p->parts = 2 + draw(&s, MOST_PARTS - 1);
    for (int a = 0; a < ARRAYS; a++)
        p->init[a] = draw(&s, 5) < 3;
    for (int i = 0; i < 2 * loops + 1; i++)
        if (i % 2 || draw(&s, 3))
            make_block(p, &s, i % 2, &pair);
    return find_outputs(p);
}

/* ---- as a graph ---- */

static double row_of(const gantry_arg *a, int64_t row)
{
    return ((const double *)a->data)[row - a->first_row];
}

static gantry_status run_node(const gantry_launch *l)
{
    const statement *o = l->user;
    const gantry_arg *from = &l->arg[0], *to = &l->arg[1];
    int64_t rows = to->shape[0];
    for (int64_t i = 0; i < to->rows; i++) {
        int64_t row = to->first_row + i;
        int64_t left = row < o->halo ? 0 : row - o->halo, right = row + o->halo < rows ? row + o->halo : rows - 1;
        double *at = &((double *)to->data)[i], one = row_of(from, row), extra = (double)(l->iteration + o->value);
        *at = o->kind == OP_STEP ? small(3 * row_of(from, left) + 5 * one + 7 * row_of(from, right) + extra) : *at;
        *at = o->kind == OP_MIX ? small(3 * *at + one + extra) : *at;
        *at += o->kind == OP_ADD ? one : 0;
    }
    return GANTRY_OK;
}

static gantry_status run_flag(const gantry_launch *l)
{
    const block *b = l->user;
    *(double *)l->arg[0].data = l->iteration + 1 >= b->at;
    return GANTRY_OK;
}

gantry_buffer program_buffer(int array)
{
    return (gantry_buffer){ .id = (uint32_t)array };
}

static void add_node(gantry_graph *g, statement *o, int number, int part)
{
    char id[32];
    snprintf(id, sizeof id, "n%d_%d", number, part);
    gantry_region to = gantry_part(program_buffer(o->to), part), from = gantry_part(program_buffer(o->from), part);
    if (o->kind == OP_FILL) {
        gantry_graph_fill(g, id, to, o->value);
        return;
    }
    gantry_node n = gantry_graph_launch(g, id, run_node, o);
    gantry_node_read(g, n, o->kind == OP_STEP ? gantry_halo(from, o->halo, o->halo) : from);
    if (o->kind == OP_STEP)
        gantry_node_write(g, n, to);
    else if (o->kind == OP_MIX)
        gantry_node_readwrite(g, n, to);
    else
        gantry_node_reduce(g, n, to, GANTRY_SUM);
    for (int d = 0; d < MOST_DEVICES; d++) {
        char device[16];
        snprintf(device, sizeof device, "d%d", d);
        gantry_node_time(g, n, device, o->us[d]);
    }
}

static void add_block(program *p, gantry_graph *g, int index, int parts)
{
    block *b = &p->block[index];
    if (b->count) {
        char name[16];
        snprintf(name, sizeof name, "flag%d", index);
        gantry_buffer flag = gantry_graph_buffer(g, name, GANTRY_F64, 1, (int64_t[]){ 1 });
        gantry_graph_repeat(g, b->count);
        if (b->prev != b->next)
            gantry_graph_carry(g, program_buffer(b->prev), program_buffer(b->next));
        if (b->every)
            gantry_graph_until(g, flag, b->every);
        gantry_node n = gantry_graph_launch(g, name, run_flag, b);
        gantry_node_write(g, n, gantry_all(flag));
    }
    for (int i = b->first; i < b->last; i++)
        for (int part = 0; part < parts; part++)
            if (p->op[i].part < 0 || p->op[i].part == part)
                add_node(g, &p->op[i], i, part);
    if (b->count)
        gantry_graph_repeat_end(g);
}

gantry_graph *program_graph(program *p, int parts)
{
    gantry_graph *g = gantry_graph_new("program");
    for (int a = 0; a < ARRAYS; a++) {
        char name[16];
        int64_t rows = p->rows;
        snprintf(name, sizeof name, "a%d", a);
        gantry_buffer b = gantry_graph_buffer(g, name, GANTRY_F64, 1, &rows);
        gantry_buffer_split_auto(g, b, parts);
        if (p->init[a])
            gantry_buffer_set_class(g, b, GANTRY_INPUT);
        if (p->output[a])
            gantry_buffer_output(g, b);
    }
    for (int b = 0; b < p->blocks; b++)
        add_block(p, g, b, parts);
    return g;
}

void program_input(const program *p, int array, double *to)
{
    for (int row = 0; row < p->rows; row++)
        to[row] = initial(array, row);
}
