/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA C that finds the elements that a reduction reads. The axes of the model are three groups: those before the
 * reduced ones, these, and those behind, in which an element is (o, m, column). A thread finds once where its elements
 * of a region begin, and what m adds to that is m times a step, or nothing; then the element is loaded once. Only where
 * the region has one element along some of the reduced axes, and not along the others, is there a quotient for each m:
 * one of 32 bits, of how far m is from the first of its segment.
 */
#include "maths/cuda_text.h"

typedef enum group { BEFORE, REDUCED, BEHIND } group;

/* Of the axes of a group a region has all, none (one element stands for all of them), or some: it lacks those from
 * within the group on, or up to within it, or both. */
typedef struct part {
    bool is_all, is_none;
    bool begins_within, ends_within;
} part;

static part part_of(const gy_maths_program *p, const gy_maths_kind *kind, group g)
{
    uint32_t start = g == BEFORE ? 0 : g == REDUCED ? p->first : p->last;
    uint32_t end = g == BEFORE ? p->first : g == REDUCED ? p->last : p->rank;
    uint32_t first = kind->first > start ? kind->first : start, last = kind->last < end ? kind->last : end;
    if (!kind->is_spread || first >= last)
        return (part){ .is_all = true };
    part found = { .begins_within = first > start, .ends_within = last < end };
    found.is_none = !found.begins_within && !found.ends_within;
    return found;
}

static bool cuts_group(const gy_maths_program *p, const gy_maths_kind *kind, bool begins)
{
    for (int g = p->maths->reduces ? BEFORE : BEHIND; g <= BEHIND; g++) {
        part found = part_of(p, kind, (group)g);
        if (begins ? found.begins_within : found.ends_within)
            return true;
    }
    return false;
}

/* A map has all axes behind 0. */
bool gy_maths_has_period(const gy_maths_program *program, uint32_t arg)
{
    return cuts_group(program, &program->kind[arg], true);
}

bool gy_maths_has_inner(const gy_maths_program *program, uint32_t arg)
{
    return cuts_group(program, &program->kind[arg], false);
}

bool gy_maths_is_kept(const gy_maths_program *p, uint32_t arg)
{
    return part_of(p, &p->kind[arg], REDUCED).is_none;
}

/* ---- numbers ---- */

/* The number among the region's own elements along the group, of element number `x` along all of it. */
static void add_number(gy_text *to, const gy_maths_program *p, uint32_t arg, group g, const char *x)
{
    part found = part_of(p, &p->kind[arg], g);
    uint32_t k = gy_maths_cuda_first_alike(p, arg);
    if (found.is_all || found.is_none)
        gy_text_add(to, found.is_all ? x : "0");
    if (found.begins_within)
        gy_text_printf(to, "quotient(%s, d%u, by_d%u)", x, k, k);
    if (found.begins_within && found.ends_within)
        gy_text_printf(to, " * q%u + ", k);
    if (found.ends_within)
        gy_text_printf(to, "rest(%s, q%u, by_q%u)", x, k, k);
}

/* How many elements the region has along the group, which has `all`. */
static void add_count(gy_text *to, const gy_maths_program *p, uint32_t arg, group g, const char *all)
{
    part found = part_of(p, &p->kind[arg], g);
    uint32_t k = gy_maths_cuda_first_alike(p, arg);
    if (found.is_all || found.is_none)
        gy_text_add(to, found.is_all ? all : "1");
    if (found.begins_within)
        gy_text_printf(to, "quotient(%s, d%u, by_d%u)", all, k, k);
    if (found.begins_within && found.ends_within)
        gy_text_add(to, " * ");
    if (found.ends_within)
        gy_text_printf(to, "q%u", k);
}

/* How far apart the region's elements for neighbouring m are. */
static void add_step(gy_text *to, const gy_maths_program *p, uint32_t arg)
{
    if (p->is_columns)
        add_count(to, p, arg, BEHIND, "inner");
    else
        gy_text_add(to, "1");
    if (!p->kind[arg].is_spread && gy_maths_has_step(p, arg))
        gy_text_printf(to, " * d%u", arg);
}

/* ---- declarations ---- */

/* Where elements begin, and steps between them. */
static void add_begin(gy_text *to, const gy_maths_program *p, uint32_t arg)
{
    gy_text_printf(to, " const i64 s%u = ", arg);
    add_step(to, p, arg);
    gy_text_printf(to, ", b%u = (", arg);
    add_number(to, p, arg, BEFORE, "o");
    gy_text_add(to, ") * (");
    add_count(to, p, arg, REDUCED, "mid");
    gy_text_printf(to, ") * s%u", arg);
    if (p->is_columns) {
        gy_text_add(to, " + (");
        add_number(to, p, arg, BEHIND, "column");
        gy_text_add(to, !p->kind[arg].is_spread && gy_maths_has_step(p, arg) ? ") * d" : ")");
        if (!p->kind[arg].is_spread && gy_maths_has_step(p, arg))
            gy_text_printf(to, "%u", arg);
    }
    gy_text_add(to, ";");
}

static void add_cuts(gy_text *to, const gy_maths_program *p, uint32_t arg)
{
    part found = part_of(p, &p->kind[arg], REDUCED);
    if (gy_maths_cuda_first_alike(p, arg) != arg)
        return;
    if (found.begins_within)
        gy_text_printf(to, " const cut c%u = cut_at(first, d%u, by_d%u);", arg, arg, arg);
    if (found.ends_within)
        gy_text_printf(to, " const cut g%u = cut_at(first, q%u, by_q%u);", arg, arg, arg);
}

void gy_maths_cuda_add_places(gy_text *to, const gy_maths_program *p)
{
    gy_text_add(to, "#define PLACES(is_one)");
    for (uint32_t k = 0; k < p->maths->args; k++) {
        if (!gy_maths_cuda_loads(p, k))
            continue;
        add_begin(to, p, k);
        if (gy_maths_is_kept(p, k))
            gy_text_printf(to, " const %s h%u = (is_one) ? p%u[b%u] : (%s)0;", gy_maths_cuda_element(p->kind[k].dtype),
                           k, k, k, gy_maths_cuda_element(p->kind[k].dtype));
        else
            add_cuts(to, p, k);
    }
    gy_text_add(to, "\n");
}

/* ---- elements ---- */

void gy_maths_cuda_add_place(gy_text *to, const gy_maths_program *p, uint32_t arg)
{
    part found = part_of(p, &p->kind[arg], REDUCED);
    uint32_t k = gy_maths_cuda_first_alike(p, arg);
    if (gy_maths_is_kept(p, arg)) {
        gy_text_printf(to, "h%u", arg);
        return;
    }
    gy_text_printf(to, "p%u[b%u + (", arg, arg);
    if (found.is_all)
        gy_text_add(to, "m");
    if (found.begins_within)
        gy_text_printf(to, "piece(c%u, (unsigned)((m) - first))", k);
    if (found.begins_within && found.ends_within)
        gy_text_printf(to, " * q%u + ", k);
    if (found.ends_within)
        gy_text_printf(to, "in_piece(g%u, (unsigned)((m) - first))", k);
    gy_text_printf(to, ") * s%u]", arg);
}
