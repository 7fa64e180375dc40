/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policies/list/profile.h"

#include "base/map.h"

bool gy_profile_init(gy_profile *u)
{
    gy_profile_change nobody = { .most = INT64_MIN / 2 };
    *u = (gy_profile){ 0 };
    return gy_vec_push(&u->at, nobody);
}

void gy_profile_free(gy_profile *u)
{
    gy_vec_free(&u->at);
    u->root = 0;
}

static void update(gy_profile *u, uint32_t i)
{
    gy_profile_change *n = &u->at.at[i];
    const gy_profile_change *left = &u->at.at[n->left], *right = &u->at.at[n->right];
    int64_t here = left->sum + n->delta, later = here + right->most;
    n->sum = here + right->sum;
    n->most = left->most > here ? left->most : here;
    n->most = later > n->most ? later : n->most;
}

/* A child of `i` that is too heavy comes up. */
static uint32_t lift(gy_profile *u, uint32_t i)
{
    gy_profile_change *at = u->at.at;
    uint32_t left = at[i].left, right = at[i].right;
    if (at[left].weight > at[i].weight) {
        at[i].left = at[left].right;
        at[left].right = i;
        update(u, i);
        i = left;
    } else if (at[right].weight > at[i].weight) {
        at[i].right = at[right].left;
        at[right].left = i;
        update(u, i);
        i = right;
    }
    update(u, i);
    return i;
}

/* A change at a time that has one is added to that, and left without a weight. */
static uint32_t insert(gy_profile *u, uint32_t i, uint32_t new)
{
    gy_profile_change *n = &u->at.at[i], *change = &u->at.at[new];
    if (!i) {
        update(u, new);
        return new;
    }
    if (n->time == change->time) {
        n->delta += change->delta;
        change->weight = 0;
    } else if (change->time < n->time) {
        n->left = insert(u, n->left, new);
    } else {
        n->right = insert(u, n->right, new);
    }
    return lift(u, i);
}

bool gy_profile_add(gy_profile *u, gy_ticks from, int64_t delta)
{
    gy_profile_change new = { .time = from, .delta = delta, .weight = gy_hash64(u->at.count) | 1 };
    if (u->at.count >= UINT32_MAX || !gy_vec_push(&u->at, new))
        return false;
    u->root = insert(u, u->root, (uint32_t)u->at.count - 1);
    if (!gy_vec_last(&u->at)->weight)
        u->at.count--;
    return true;
}

int64_t gy_profile_most(const gy_profile *u, gy_ticks from)
{
    int64_t before = 0, most = INT64_MIN / 2;
    for (uint32_t i = u->root; i;) {
        const gy_profile_change *n = &u->at.at[i], *right = &u->at.at[n->right];
        int64_t here = before + u->at.at[n->left].sum + n->delta;
        if (n->time <= from) {
            before = here;
            i = n->right;
            continue;
        }
        most = here > most ? here : most;
        most = here + right->most > most ? here + right->most : most;
        i = n->left;
    }
    return before > most ? before : most;
}
