/* SPDX-License-Identifier: Apache-2.0 */
/* Where the elements of a reduction lie in the model: the axes that are reduced may have kept ones between them. */
#include "maths/maths.h"

#include <string.h>

gy_maths_extents gy_maths_reduced(const gy_maths_shape *model, const gy_maths_runs *along)
{
    gy_maths_extents e = { 1, 1, 1 };
    for (uint32_t i = 0; i < model->rank; i++) {
        int64_t *of = i >= gy_maths_end_of(along) ? &e.inner : gy_maths_is_along(along, i) ? &e.mid : &e.outer;
        *of *= model->extent[i];
    }
    return e;
}

void gy_maths_find_places(gy_maths_places *places, const gy_maths_shape *model, const gy_maths_runs *along)
{
    gy_maths_shape reached = *model; /* without the axes behind the last that is reduced */
    reached.rank = gy_maths_end_of(along);
    places->runs = along->count;
    for (uint32_t i = 0; i < along->count; i++) {
        gy_maths_extents e = gy_maths_extents_of(&reached, along->at[i].first, along->at[i].last);
        places->behind[2 * i] = e.mid * e.inner;
        places->behind[2 * i + 1] = e.inner;
    }
}

/* The number of the first of the elements that number `x` becomes where axes are put before those that have `behind`
 * elements, which have `with` elements then. */
static int64_t insert(int64_t x, int64_t behind, int64_t with)
{
    return behind ? x + x / behind * (with - behind) : x;
}

int64_t gy_maths_place_of(const gy_maths_places *places, int64_t o, int64_t m)
{
    for (uint32_t i = places->runs; i-- > 0;)
        o = insert(o, places->behind[2 * i + 1], places->behind[2 * i]);
    for (uint32_t i = places->runs; i-- > 1;)
        m = insert(m, places->behind[2 * i], places->behind[2 * i - 1]);
    return o + m;
}
