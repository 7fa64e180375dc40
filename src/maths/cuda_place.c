/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA C that finds the elements that a reduction reads. The axes of the model are three groups: those before the
 * reduced ones, these, and those behind, in which an element is (o, m, column). A thread finds once where its elements
 * of a region begin, and what m adds to that is m times a step, or nothing; then the element is loaded once. Only where
 * the region has one element along some of the reduced axes, and not along the others, is there a quotient for each m:
 * one of 32 bits, of how far m is from the first of its segment. Where it has that along several runs of them, which
 * others lie between, there are quotients of m itself.
 *
 * Where kept axes lie between those that are reduced, all axes are one group, as they are of a map: the number of an
 * element in the model is put together of where o is, once, and of where m is, by a quotient for each run of kept axes.
 */
#include "maths/cuda_text.h"

#include <inttypes.h>

typedef enum group { BEFORE, REDUCED, BEHIND } group;

/* Of the axes of a group a run of those that a region has one element along are none, all, or some: those from within
 * the group on, or up to within it, or both. */
typedef struct part {
    bool is_out, is_all;
    bool begins_within, ends_within;
} part;

static bool is_one_group(const gy_maths_program *p)
{
    return !p->maths->reduces || gy_maths_is_apart(p);
}

static part part_of(const gy_maths_program *p, const gy_maths_kind *kind, group g, uint32_t run)
{
    uint32_t begin_of_reduced = gy_maths_begin_of(&p->along), end_of_reduced = gy_maths_end_of(&p->along);
    uint32_t start = is_one_group(p) || g == BEFORE ? 0 : g == REDUCED ? begin_of_reduced : end_of_reduced;
    uint32_t end = is_one_group(p) || g == BEHIND ? p->rank : g == REDUCED ? end_of_reduced : begin_of_reduced;
    uint32_t first = kind->run[run].first, last = kind->run[run].last;
    first = first > start ? first : start;
    last = last < end ? last : end;
    if (first >= last)
        return (part){ .is_out = true };
    part found = { .begins_within = first > start, .ends_within = last < end };
    found.is_all = !found.begins_within && !found.ends_within;
    return found;
}

static bool cuts_group(const gy_maths_program *p, uint32_t arg, uint32_t run, bool begins)
{
    for (int g = is_one_group(p) ? BEHIND : BEFORE; g <= BEHIND; g++) {
        part found = part_of(p, &p->kind[arg], (group)g, run);
        if (begins ? found.begins_within : found.ends_within)
            return true;
    }
    return false;
}

bool gy_maths_has_period(const gy_maths_program *program, uint32_t arg, uint32_t run)
{
    return cuts_group(program, arg, run, true);
}

bool gy_maths_has_inner(const gy_maths_program *program, uint32_t arg, uint32_t run)
{
    return cuts_group(program, arg, run, false);
}

/* The runs that have axes of a group. */
typedef struct parts {
    uint32_t count;
    part part[GY_MATHS_RUNS];
    uint32_t run[GY_MATHS_RUNS];
    bool is_none; /* one element stands for all */
} parts;

static parts parts_of(const gy_maths_program *p, uint32_t arg, group g)
{
    parts found = { 0 };
    for (uint32_t run = 0; run < p->kind[arg].runs; run++) {
        part one = part_of(p, &p->kind[arg], g, run);
        if (one.is_out)
            continue;
        found.run[found.count] = run;
        found.part[found.count++] = one;
        found.is_none = one.is_all;
    }
    return found;
}

bool gy_maths_is_kept(const gy_maths_program *p, uint32_t arg)
{
    return !gy_maths_is_apart(p) && parts_of(p, arg, REDUCED).is_none;
}

/* Regions that are spread alike share them. */
uint32_t gy_maths_quotients(const gy_maths_program *p)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < p->maths->args; k++) {
        parts all = parts_of(p, k, p->maths->reduces ? REDUCED : BEHIND);
        if (!gy_maths_cuda_loads(p, k) || gy_maths_cuda_first_alike(p, k) != k || all.is_none)
            continue;
        for (uint32_t i = 0; i < all.count; i++)
            count += (uint32_t)all.part[i].begins_within + (uint32_t)all.part[i].ends_within;
    }
    return count;
}

/* ---- numbers ---- */

static const char *text_of(const gy_text *text)
{
    return text->at ? text->at : "";
}

/* `made` was made of the text that it replaces. */
static void replace(gy_text *text, gy_text made)
{
    made.failed = made.failed || text->failed;
    gy_text_free(text);
    *text = made;
}

/* The number among the elements of a region that lacks a run of axes, of element number `x` of one that has them. */
static void add_without(gy_text *to, part found, const char *x, uint32_t k, uint32_t run)
{
    char period[GY_MATHS_DIVISOR], inner[GY_MATHS_DIVISOR];
    gy_maths_cuda_divisor(period, 'd', k, run);
    gy_maths_cuda_divisor(inner, 'q', k, run);
    if (found.begins_within)
        gy_text_printf(to, "quotient(%s, %s, by_%s)", x, period, period);
    if (found.begins_within && found.ends_within)
        gy_text_printf(to, " * %s + ", inner);
    if (found.ends_within)
        gy_text_printf(to, "rest(%s, %s, by_%s)", x, inner, inner);
}

/* The same for all runs but the last, a call around another. */
static void add_before_last(gy_text *to, const parts *all, const char *x, uint32_t k)
{
    gy_text_add(to, x);
    for (uint32_t i = 0; i + 1 < all->count; i++) {
        gy_text made = { 0 };
        char period[GY_MATHS_DIVISOR], inner[GY_MATHS_DIVISOR];
        gy_maths_cuda_divisor(period, 'd', k, all->run[i]);
        gy_maths_cuda_divisor(inner, 'q', k, all->run[i]);
        if (all->part[i].begins_within)
            gy_text_printf(&made, "without(%s, %s, by_%s, %s, by_%s)", text_of(to), period, period, inner, inner);
        else
            gy_text_printf(&made, "rest(%s, %s, by_%s)", text_of(to), inner, inner);
        replace(to, made);
    }
}

static void add_chain(gy_text *to, const parts *all, const char *x, uint32_t k)
{
    gy_text before = { 0 };
    add_before_last(&before, all, x, k);
    to->failed = to->failed || before.failed;
    add_without(to, all->part[all->count - 1], text_of(&before), k, all->run[all->count - 1]);
    gy_text_free(&before);
}

/* The number among the region's own elements along the group, of element number `x` along all of it. */
static void add_number(gy_text *to, const gy_maths_program *p, uint32_t arg, group g, const char *x)
{
    parts all = parts_of(p, arg, g);
    if (all.count == 0 || all.is_none)
        gy_text_add(to, all.is_none ? "0" : x);
    else
        add_chain(to, &all, x, gy_maths_cuda_first_alike(p, arg));
}

void gy_maths_cuda_add_number(gy_text *to, const gy_maths_program *p, uint32_t arg, const char *x)
{
    add_number(to, p, arg, BEHIND, x);
}

/* How many elements the region has along the group, which has `every`. */
static void add_count(gy_text *to, const gy_maths_program *p, uint32_t arg, group g, const char *every)
{
    parts all = parts_of(p, arg, g);
    uint32_t k = gy_maths_cuda_first_alike(p, arg);
    gy_text made = { 0 };
    gy_text_add(&made, all.is_none ? "1" : every);
    for (uint32_t i = 0; i < all.count && !all.is_none; i++) {
        gy_text next = { 0 };
        char period[GY_MATHS_DIVISOR], inner[GY_MATHS_DIVISOR];
        gy_maths_cuda_divisor(period, 'd', k, all.run[i]);
        gy_maths_cuda_divisor(inner, 'q', k, all.run[i]);
        if (all.part[i].begins_within)
            gy_text_printf(&next, "quotient(%s, %s, by_%s)", text_of(&made), period, period);
        if (all.part[i].begins_within && all.part[i].ends_within)
            gy_text_add(&next, " * ");
        if (all.part[i].ends_within)
            gy_text_add(&next, inner);
        replace(&made, next);
    }
    to->failed = to->failed || made.failed;
    gy_text_add(to, text_of(&made));
    gy_text_free(&made);
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

/* A lone run's. */
static void add_cuts(gy_text *to, const gy_maths_program *p, uint32_t arg)
{
    parts all = parts_of(p, arg, REDUCED);
    char name[GY_MATHS_DIVISOR];
    if (all.count != 1 || gy_maths_cuda_first_alike(p, arg) != arg)
        return;
    if (all.part[0].begins_within) {
        gy_maths_cuda_divisor(name, 'd', arg, all.run[0]);
        gy_text_printf(to, " const cut c%u = cut_at(first, %s, by_%s);", arg, name, name);
    }
    if (all.part[0].ends_within) {
        gy_maths_cuda_divisor(name, 'q', arg, all.run[0]);
        gy_text_printf(to, " const cut g%u = cut_at(first, %s, by_%s);", arg, name, name);
    }
}

/* Axes are put before those that have z`behind` elements, and have z`with` of them then. */
static void put_before(gy_text *text, uint32_t behind, uint32_t with)
{
    gy_text made = { 0 };
    gy_text_printf(&made, "insert(%s, z%" PRIu32 ", by_z%" PRIu32 ", z%" PRIu32 ")", text_of(text), behind, behind,
                   with);
    replace(text, made);
}

/* The last run is behind all that o numbers. */
static void add_origin(gy_text *to, const gy_maths_program *p)
{
    gy_text made = { 0 };
    uint32_t run = p->along.count - 1;
    gy_text_printf(&made, "o * z%" PRIu32, 2 * run);
    while (run-- > 0)
        put_before(&made, 2 * run + 1, 2 * run);
    to->failed = to->failed || made.failed;
    gy_text_printf(to, " const i64 origin = %s;", text_of(&made));
    gy_text_free(&made);
}

void gy_maths_cuda_add_model(gy_text *to, const gy_maths_program *p)
{
    gy_text made = { 0 };
    gy_text_add(&made, gy_maths_is_apart(p) ? "(i64)(m)" : "(m)");
    for (uint32_t run = p->along.count; run-- > 1;)
        put_before(&made, 2 * run, 2 * run - 1);
    to->failed = to->failed || made.failed;
    gy_text_printf(to, p->is_columns ? "((%s + %s) * inner + column)" : "(%s + %s)",
                   gy_maths_is_apart(p) ? "origin" : "o * mid", text_of(&made));
    gy_text_free(&made);
}

void gy_maths_cuda_add_cuts(gy_text *to, const gy_maths_program *p)
{
    for (uint32_t i = 0; gy_maths_is_apart(p) && i < 2 * p->along.count - 1; i++)
        gy_text_printf(to, i ? ", i64 z%" PRIu32 ", i64 by_z%" PRIu32 : ", i64 z%" PRIu32, i, i);
}

void gy_maths_cuda_add_places(gy_text *to, const gy_maths_program *p)
{
    gy_text_add(to, "#define PLACES(is_one)");
    if (gy_maths_is_apart(p))
        add_origin(to, p);
    for (uint32_t k = 0; k < p->maths->args; k++) {
        if (!gy_maths_cuda_loads(p, k) || gy_maths_is_apart(p))
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

static void add_pieces(gy_text *to, part found, uint32_t k, uint32_t run)
{
    char inner[GY_MATHS_DIVISOR];
    gy_maths_cuda_divisor(inner, 'q', k, run);
    if (found.begins_within)
        gy_text_printf(to, "piece(c%u, (unsigned)((m) - first))", k);
    if (found.begins_within && found.ends_within)
        gy_text_printf(to, " * %s + ", inner);
    if (found.ends_within)
        gy_text_printf(to, "in_piece(g%u, (unsigned)((m) - first))", k);
}

void gy_maths_cuda_add_place(gy_text *to, const gy_maths_program *p, uint32_t arg)
{
    parts all = parts_of(p, arg, REDUCED);
    uint32_t k = gy_maths_cuda_first_alike(p, arg);
    if (gy_maths_is_apart(p)) {
        gy_maths_cuda_add_load(to, p, arg, "PLACE(m)");
        return;
    }
    if (all.is_none) {
        gy_text_printf(to, "h%u", arg);
        return;
    }
    gy_text_printf(to, "p%u[b%u + (", arg, arg);
    if (all.count == 0)
        gy_text_add(to, "m");
    else if (all.count == 1)
        add_pieces(to, all.part[0], k, all.run[0]);
    else
        add_chain(to, &all, "(i64)(m)", k);
    gy_text_printf(to, ") * s%u]", arg);
}
