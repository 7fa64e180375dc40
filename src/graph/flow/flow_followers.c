/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of predecessors turned round, by counting. */
#include "base/memory.h"
#include "graph/flow/flow.h"

/* first[i + 1] holds how many there are of i; then first[i] is where those of i begin. */
static void add_up(size_t *first, size_t count)
{
    for (size_t i = 0; i < count; i++)
        first[i + 1] += first[i];
}

/* While entries were stored, first[i] went from where those of i begin to where they end. */
static void go_back(size_t *first, size_t count)
{
    for (size_t i = count; i > 0; i--)
        first[i] = first[i - 1];
    first[0] = 0;
}

static void fill_lists(gy_followers *x, const gy_flow *f)
{
    for (size_t d = 0; d < f->dep_first[f->lists]; d++)
        x->list_first[f->dep[d].from + 1]++;
    add_up(x->list_first, f->tasks);
    for (uint32_t l = 0; l < f->lists; l++)
        for (size_t d = f->dep_first[l]; d < f->dep_first[l + 1]; d++)
            x->list[x->list_first[f->dep[d].from]++] = l;
    go_back(x->list_first, f->tasks);
}

static void fill_members(gy_followers *x, const gy_flow *f)
{
    for (uint32_t t = 0; t < f->tasks; t++)
        x->member_first[f->list[t] + 1]++;
    add_up(x->member_first, f->lists);
    for (uint32_t t = 0; t < f->tasks; t++)
        x->member[x->member_first[f->list[t]]++] = t;
    go_back(x->member_first, f->lists);
}

bool gy_followers_make(gy_followers *followers, const gy_flow *flow)
{
    gy_followers *x = followers;
    x->list_first = gy_calloc((size_t)flow->tasks + 1, sizeof *x->list_first);
    x->list = gy_calloc(flow->dep_first[flow->lists] + 1, sizeof *x->list);
    x->member_first = gy_calloc((size_t)flow->lists + 1, sizeof *x->member_first);
    x->member = gy_calloc((size_t)flow->tasks + 1, sizeof *x->member);
    if (!x->list_first || !x->list || !x->member_first || !x->member)
        return false;
    fill_lists(x, flow);
    fill_members(x, flow);
    return true;
}

void gy_followers_free(gy_followers *followers)
{
    gy_free(followers->list_first);
    gy_free(followers->list);
    gy_free(followers->member_first);
    gy_free(followers->member);
    *followers = (gy_followers){ 0 };
}
