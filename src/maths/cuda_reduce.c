/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA C of reductions. What adds up the totals of a program (cuda_totals.c) is the same text for all programs, in the
 * order that maths.h states.
 */
#include "maths/cuda_text.h"

#include <stdio.h>
#include <string.h>

int gy_maths_most_run(const gy_maths *maths)
{
    enum { MOST = 8, MOST_BYTES = 32768 }; /* of shared memory */
    int run = MOST;
    while (run > 1 && (size_t)run * GY_MATHS_BLOCK * gy_maths_total_bytes(maths) > MOST_BYTES)
        run /= 2;
    return run;
}

/* Each count of elements has a body of its own, which a compiler takes time for. */
int gy_maths_tiny(const gy_maths_program *program)
{
    enum { MOST = 8, FEWER = 4, SHORT_STEPS = 12, STEPS = 30 };
    if (!program->maths->reduces || program->is_columns || program->along.count > 1 || program->steps > STEPS)
        return 0; /* elements that others lie between are not loaded at once */
    return program->steps > SHORT_STEPS ? FEWER : MOST;
}

int gy_maths_turns(const gy_maths_program *program)
{
    enum { TURNS = 4 };
    return program->is_columns || gy_maths_is_apart(program) ? 1 : TURNS; /* others lie between elements */
}

/* ---- kernels ---- */

/* Quotients by `size` of numbers of elements of one segment, which begins with element `first`: before it are `before`
 * whole pieces and `rest` elements of one. A piece of 2^29 elements or more ends once in a segment at most, as one of
 * 2^29 does that has as many left. */
static const char cut_text[] =
    "struct cut {\n"
    "    i64 before, rest, size, by;\n"
    "    unsigned from;\n"
    "};\n"
    "static __device__ __forceinline__ cut cut_at(i64 first, i64 size, i64 by)\n"
    "{\n"
    "    const i64 before = quotient(first, size, by), rest = first - before * size;\n"
    "    const i64 left = size - rest, most = 1 << 29;\n"
    "    const bool is_long = size > most;\n"
    "    const i64 from = !is_long ? rest : left > most ? 0 : most - left;\n"
    "    const cut c = { before, rest, size, is_long ? (i64)1 << 33 : by, (unsigned)from };\n"
    "    return c;\n"
    "}\n"
    "static __device__ __forceinline__ i64 piece(const cut &c, unsigned m)\n"
    "{\n"
    "    return c.before + quotient(c.from + m, 0, c.by);\n"
    "}\n"
    "static __device__ __forceinline__ i64 in_piece(const cut &c, unsigned m)\n"
    "{\n"
    "    return c.rest + m - (i64)quotient(c.from + m, 0, c.by) * c.size;\n"
    "}\n";

/* Those of a thread in its segments, `count` of them from `first` on, of elements up to `end`: from lane `lane` on,
 * STEP apart, which goes on from one segment to the next, so that elements of that are loaded while the last of this
 * are computed. PLACE(m) is the number of one in the model. The last of the last segment, fewer than AHEAD, are loaded
 * half as many at a time: one by one each would wait for memory.
 */
static const char segment_text[] =
    "    const i64 stop = end - first < (i64)count * SEGMENT ? end : first + (i64)count * SEGMENT;\n"
    "    totals t = none();\n"
    "    unsigned turn = 0, whole = SEGMENT / STEP / AHEAD;\n"
    "    i64 m = first + lane;\n"
    "    if (m + (AHEAD - 1) * STEP < stop) {\n"
    "        ROOM(AHEAD) NEXT(AHEAD)\n"
    "#pragma unroll\n"
    "        for (int k = 0; k < AHEAD; k++) {\n"
    "            LOAD(k, m + STEP * k)\n"
    "        }\n"
    "        for (;;) {\n"
    "            const i64 next = m + AHEAD * STEP;\n"
    "            const bool goes_on = next + (AHEAD - 1) * STEP < stop;\n"
    "#pragma unroll\n"
    "            for (int k = 0; k < AHEAD; k++) {\n"
    "                TAKE(k)\n"
    "            }\n"
    "            if (goes_on) {\n"
    "#pragma unroll\n"
    "                for (int k = 0; k < AHEAD; k++) {\n"
    "                    LOAD(k, next + STEP * k)\n"
    "                }\n"
    "            }\n"
    "#pragma unroll\n"
    "            for (int k = 0; k < AHEAD; k++)\n"
    "                t = append(t, LOADED(k, m + STEP * k, PLACE(m + STEP * k)));\n"
    "            m = next;\n"
    "            if (--whole == 0) {\n"
    "                room[turn++ * 256 + threadIdx.x] = t;\n"
    "                t = none();\n"
    "                whole = SEGMENT / STEP / AHEAD;\n"
    "            }\n"
    "            if (!goes_on)\n"
    "                break;\n"
    "        }\n"
    "    }\n"
    "#pragma unroll 1\n"
    "    for (; m < stop; m += AHEAD / 2 * STEP) {\n"
    "        ROOM(AHEAD / 2) NEXT(AHEAD / 2)\n"
    "#pragma unroll\n"
    "        for (int k = 0; k < AHEAD / 2; k++)\n"
    "            if (m + STEP * k < stop) {\n"
    "                LOAD(k, m + STEP * k)\n"
    "                TAKE(k)\n"
    "            }\n"
    "#pragma unroll\n"
    "        for (int k = 0; k < AHEAD / 2; k++)\n"
    "            if (m + STEP * k < stop)\n"
    "                t = append(t, LOADED(k, m + STEP * k, PLACE(m + STEP * k)));\n"
    "    }\n"
    "    if (turn < count)\n"
    "        room[turn * 256 + threadIdx.x] = t;\n";

/* A thread stands for eight lanes, `each` apart, of elements up to `end`: they meet in it. It takes LIVE of them at a
 * time, those that meet first, so that large totals leave room for threads. */
static const char eight_begin_text[] = "        totals met[8 / LIVE];\n"
                                       "#pragma unroll\n"
                                       "        for (int turn = 0; turn < 8 / LIVE; turn++) {\n"
                                       "            const unsigned step = 8 / LIVE * each;\n"
                                       "            totals t[LIVE];\n"
                                       "#pragma unroll\n"
                                       "            for (int k = 0; k < LIVE; k++)\n"
                                       "                t[k] = none();\n"
                                       "            unsigned m = lane + turn * each;\n";

static const char eight_text[] = "            for (; m + (LIVE - 1) * step < end; m += LIVE * step) {\n"
                                 "#pragma unroll\n"
                                 "                for (int k = 0; k < LIVE; k++)\n"
                                 "                    t[k] = append(t[k], VALUE(m + step * k, PLACE(m + step * k)));\n"
                                 "            }\n"
                                 "#pragma unroll\n"
                                 "            for (int k = 0; k < LIVE; k++)\n"
                                 "                if (m + step * k < end)\n"
                                 "                    t[k] = append(t[k], VALUE(m + step * k, PLACE(m + step * k)));\n";

/* The same where LIVE elements are no more than are loaded ahead: those behind are loaded while some are computed.
 * Nothing is asked before loads: what is beyond the last element is that one, and is left out when it is there. */
static const char eight_ahead_text[] =
    "            const unsigned last = end - 1;\n"
    "            ROOM(LIVE) NEXT(LIVE)\n"
    "            if (m < end) {\n"
    "#pragma unroll\n"
    "                for (int k = 0; k < LIVE; k++) {\n"
    "                    const unsigned at = m + step * k < last ? m + step * k : last;\n"
    "                    LOAD(k, at)\n"
    "                }\n"
    "            }\n"
    "#pragma unroll 1\n"
    "            while (m < end) {\n"
    "                const unsigned next = m + LIVE * step;\n"
    "#pragma unroll\n"
    "                for (int k = 0; k < LIVE; k++) {\n"
    "                    TAKE(k)\n"
    "                }\n"
    "                if (next < end) {\n"
    "#pragma unroll\n"
    "                    for (int k = 0; k < LIVE; k++) {\n"
    "                        const unsigned at = next + step * k < last ? next + step * k : last;\n"
    "                        LOAD(k, at)\n"
    "                    }\n"
    "                }\n"
    "#pragma unroll\n"
    "                for (int k = 0; k < LIVE; k++)\n"
    "                    if (m + step * k < end)\n"
    "                        t[k] = append(t[k], LOADED(k, m + step * k, PLACE(m + step * k)));\n"
    "                m = next;\n"
    "            }\n";

static const char eight_end_text[] = "#pragma unroll\n"
                                     "            for (int by = LIVE / 2; by > 0; by /= 2)\n"
                                     "#pragma unroll\n"
                                     "                for (int k = 0; k < by; k++)\n"
                                     "                    t[k] = join(t[k], t[k + by]);\n"
                                     "            met[turn] = t[0];\n"
                                     "        }\n"
                                     "#pragma unroll\n"
                                     "        for (int by = 4 / LIVE; by > 0; by /= 2)\n"
                                     "#pragma unroll\n"
                                     "            for (int k = 0; k < by; k++)\n"
                                     "                met[k] = join(met[k], met[k + by]);\n";

/*
 * Many results of few elements that lie side by side: a thread has four of them, 256 apart, and as many at a time as
 * leave room for other threads, all elements of which are loaded before the first is computed. How many elements there
 * are is known where this is compiled. Nothing is asked before loads: what is beyond the last result is that one, and
 * is not stored. Lanes that have no element change nothing, and are left out. All this is in the second kernel, which
 * has more threads at once, as it needs fewer registers.
 */
static const char tiny_text[] =
    "    const i64 mid = MID;\n"
    "    const unsigned first = 0, end = (unsigned)outer, begin = blockIdx.x * (TINY_EACH * 256) + threadIdx.x;\n"
    "    const int batch = MID * BYTES <= 24 ? 4 : MID * BYTES <= 48 ? 2 : 1;\n"
    "#pragma unroll 1\n"
    "    for (int turn = 0; turn < TINY_EACH; turn += batch) {\n"
    "        SPACE(batch * MID)\n"
    "#pragma unroll\n"
    "        for (int r = 0; r < batch; r++) {\n"
    "            const unsigned at = begin + 256 * (turn + r), o = at < end ? at : end - 1;\n"
    "            PLACES(true)\n"
    "#pragma unroll\n"
    "            for (int k = 0; k < MID; k++) {\n"
    "                BRING(r * MID + k, k)\n"
    "            }\n"
    "        }\n"
    "#pragma unroll\n"
    "        for (int r = 0; r < batch; r++) {\n"
    "            const unsigned o = begin + 256 * (turn + r);\n"
    "            if (o < end) {\n"
    "                totals t[MID];\n"
    "#pragma unroll\n"
    "                for (int k = 0; k < MID; k++)\n"
    "                    t[k] = join(none(), BROUGHT(r * MID + k, k, PLACE(k)));\n"
    "#pragma unroll\n"
    "                for (int by = 4; by > 0; by /= 2)\n"
    "#pragma unroll\n"
    "                    for (int k = 0; k < by && k + by < MID; k++)\n"
    "                        t[k] = join(t[k], t[k + by]);\n"
    "                STORE(o, t[0]);\n"
    "            }\n"
    "        }\n"
    "    }\n"
    "    (void)first;\n";

static void add_tiny(gy_text *to, const gy_maths_program *p)
{
    gy_text_add(to, "template <int MID> static __device__ __forceinline__ void tiny(");
    gy_maths_cuda_add_parameters(to, p);
    gy_text_add(to, ", i64 outer");
    gy_maths_cuda_add_steps(to, p);
    gy_text_add(to, ")\n{\n");
    gy_text_add(to, tiny_text);
    gy_text_add(to, "}\n#define TINY_OF(MID) tiny<MID>(");
    for (uint32_t k = 0; k < p->maths->args; k++)
        gy_text_printf(to, p->kind[k].is_number ? "a%u, " : "p%u, ", k);
    gy_text_add(to, "outer");
    gy_maths_cuda_add_step_names(to, p);
    gy_text_add(to, ")\n");
}

static void add_tiny_calls(gy_text *to, const gy_maths_program *p)
{
    int most = gy_maths_tiny(p);
    gy_text_add(to, "    if (segments == 1) {\n        switch ((int)mid) {\n");
    for (int mid = 1; mid < most; mid++)
        gy_text_printf(to, "        case %d:\n            TINY_OF(%d);\n            return;\n", mid, mid);
    gy_text_printf(to, "        default:\n            TINY_OF(%d);\n            return;\n        }\n    }\n", most);
}

/*
 * Many results of at most 256 elements, which lie side by side: no lane has more than one. Threads stand for eight
 * lanes as above, and have several results one after the other: elements of the next are loaded while those of one are
 * computed. Nothing is asked before loads: what is beyond the last element is that one, and is left out when it is
 * there.
 */
static const char turns_text[] =
    "    if (mid >= 1 && mid <= 256 && outer > TURNS_MANY) {\n"
    "        const unsigned bits = mid > 128 ? 5 : mid > 64 ? 4 : mid > 32 ? 3 : mid > 16 ? 2 : mid > 8 ? 1 : 0;\n"
    "        const unsigned each = 1 << bits, lane = threadIdx.x & (each - 1), last = (unsigned)mid - 1;\n"
    "        const unsigned first = 0, apart = 256 >> bits;\n"
    "        i64 begin = (i64)blockIdx.x * (TURNS * apart);\n"
    "        SPACE(8) COMING(8)\n"
    "        {\n"
    "            const i64 at = begin + (threadIdx.x >> bits), o = at < outer ? at : outer - 1;\n"
    "            PLACES(true)\n"
    "#pragma unroll\n"
    "            for (int k = 0; k < 8; k++) {\n"
    "                const unsigned m = lane + k * each < last ? lane + k * each : last;\n"
    "                SEND(k, m)\n"
    "            }\n"
    "        }\n"
    "#pragma unroll 1\n"
    "        for (int turn = 0; turn < TURNS && begin < outer; turn++, begin += apart) {\n"
    "            const i64 o = begin + (threadIdx.x >> bits), next = o + apart;\n"
    "#pragma unroll\n"
    "            for (int k = 0; k < 8; k++) {\n"
    "                ARRIVE(k)\n"
    "            }\n"
    "            if (turn + 1 < TURNS) {\n"
    "                const i64 o = next < outer ? next : outer - 1;\n"
    "                PLACES(true)\n"
    "#pragma unroll\n"
    "                for (int k = 0; k < 8; k++) {\n"
    "                    const unsigned m = lane + k * each < last ? lane + k * each : last;\n"
    "                    SEND(k, m)\n"
    "                }\n"
    "            }\n"
    "            totals t[8];\n"
    "#pragma unroll\n"
    "            for (int k = 0; k < 8; k++) {\n"
    "                const unsigned m = lane + k * each;\n"
    "                t[k] = none();\n"
    "                if (m <= last && o < outer)\n"
    "                    t[k] = append(t[k], BROUGHT(k, m, PLACE(m)));\n"
    "            }\n"
    "#pragma unroll\n"
    "            for (int by = 4; by > 0; by /= 2)\n"
    "#pragma unroll\n"
    "                for (int k = 0; k < by; k++)\n"
    "                    t[k] = join(t[k], t[k + by]);\n"
    "            for (unsigned by = each / 2; by > 0; by /= 2)\n"
    "                t[0] = join(t[0], down(t[0], by));\n"
    "            if (lane == 0 && o < outer)\n"
    "                STORE(o, t[0]);\n"
    "        }\n"
    "        (void)first;\n"
    "        return;\n"
    "    }\n";

/* Elements of a result lie side by side. Short ones have a warp each, or less, unless they are so few that blocks wait
 * for memory less often: the longer they are, the more there have to be (measured). */
static const char short_text[] =
    "    if (mid <= SEGMENT && (mid <= 256 || 4 * (outer - FEW) > mid)) {\n"
    "        const unsigned bits = mid > 128 ? 5 : mid > 64 ? 4 : mid > 32 ? 3 : mid > 16 ? 2 : mid > 8 ? 1 : 0;\n"
    "        const unsigned each = 1 << bits, lane = threadIdx.x & (each - 1);\n"
    "        const i64 o = (i64)blockIdx.x * (256 >> bits) + (threadIdx.x >> bits);\n"
    "        const unsigned first = 0, end = o < outer ? (unsigned)mid : 0;\n"
    "        PLACES(o < outer)\n";

static const char short_end_text[] = "        for (unsigned by = each / 2; by > 0; by /= 2)\n"
                                     "            met[0] = join(met[0], down(met[0], by));\n"
                                     "        if (lane == 0 && o < outer)\n"
                                     "            STORE(o, met[0]);\n"
                                     "        return;\n"
                                     "    }\n";

/* Else a block has a run of neighbouring segments, a total for each lane of each of which is in `room`. */
static const char lanes_text[] = "    SHARED(totals, room, RUN * 256);\n"
                                 "    const unsigned pieces = (unsigned)segments, lane = threadIdx.x;\n"
                                 "    const i64 o = blockIdx.x / pieces, end = mid;\n"
                                 "    const i64 first = (i64)(blockIdx.x % pieces) * run * SEGMENT;\n"
                                 "    const i64 left = (mid - first + SEGMENT - 1) / SEGMENT;\n"
                                 "    const unsigned count = (unsigned)(left > run ? run : left > 1 ? left : 1);\n"
                                 "    PLACES(true)\n";

/* A warp takes a segment: each thread has eight of its lanes, those that meet first. */
static const char lanes_meet_text[] = "    __syncthreads();\n"
                                      "    for (unsigned s = threadIdx.x / 32; s < count; s += 8) {\n"
                                      "        totals met[8];\n"
                                      "#pragma unroll\n"
                                      "        for (int k = 0; k < 8; k++)\n"
                                      "            met[k] = room[s * 256 + 32 * k + threadIdx.x % 32];\n"
                                      "#pragma unroll\n"
                                      "        for (int by = 4; by > 0; by /= 2)\n"
                                      "#pragma unroll\n"
                                      "            for (int k = 0; k < by; k++)\n"
                                      "                met[k] = join(met[k], met[k + by]);\n"
                                      "        for (int by = 16; by > 0; by /= 2)\n"
                                      "            met[0] = join(met[0], down(met[0], by));\n"
                                      "        if (threadIdx.x % 32 == 0)\n"
                                      "            room[s * 256] = met[0];\n"
                                      "    }\n"
                                      "    __syncthreads();\n"
                                      "    if (threadIdx.x == 0 && segments == 1)\n"
                                      "        STORE(o, neighbours(room, count));\n"
                                      "    else if (threadIdx.x == 0)\n"
                                      "        scratch[blockIdx.x] = neighbours(room, count);\n";

/* Totals of neighbouring segments meet, and of neighbouring pairs, and so on. */
static const char neighbours_text[] =
    "static __device__ __forceinline__ totals neighbours(totals *t, unsigned count)\n"
    "{\n"
    "    for (; count > 1; count = (count + 1) / 2)\n"
    "        for (unsigned k = 0; 2 * k < count; k++)\n"
    "            t[k * 256] = 2 * k + 1 < count ? join(t[2 * k * 256], t[(2 * k + 1) * 256]) : t[2 * k * 256];\n"
    "    return *t;\n"
    "}\n";

/* They do not, and there are many short ones: a thread for each result. */
static const char many_text[] =
    "    if (mid <= LOW && outer * inner > MANY) {\n"
    "        const i64 result = (i64)blockIdx.x * 256 + threadIdx.x;\n"
    "        const i64 o = result / inner, column = result % inner;\n"
    "        const bool is_one = result < outer * inner;\n"
    "        const unsigned each = 1, lane = 0, first = 0, end = is_one ? (unsigned)mid : 0;\n"
    "        PLACES(is_one)\n";

static const char many_end_text[] = "        if (result < outer * inner)\n"
                                    "            STORE(result, met[0]);\n"
                                    "        return;\n"
                                    "    }\n";

/* Else there is a thread for each column and lane of a run of segments, up to 32 columns a block. */
static const char columns_text[] =
    "    SHARED(totals, room, RUN * 256);\n"
    "    const unsigned width = inner > 16 ? 32 : inner > 8 ? 16 : inner > 4 ? 8 : inner > 2 ? 4 : 2;\n"
    "    const unsigned lane = threadIdx.x / width % STEP;\n"
    "    const unsigned across = (unsigned)((inner + 31) / 32);\n"
    "    const i64 job = (i64)(blockIdx.x / across) * (32 / width) + threadIdx.x / width / STEP;\n"
    "    const i64 column = (i64)(blockIdx.x % across) * 32 + threadIdx.x % width;\n"
    "    const i64 o = job < segments ? 0 : job / segments, first = (job - o * segments) * run * SEGMENT;\n"
    "    const bool is_one = job < outer * segments && column < inner;\n"
    "    const i64 end = is_one ? mid : 0, left = (end - first + SEGMENT - 1) / SEGMENT;\n"
    "    const unsigned count = (unsigned)(left > run ? run : left > 1 ? left : 1);\n"
    "    PLACES(is_one)\n";

static const char columns_end_text[] =
    "    for (unsigned by = STEP / 2; by > 0; by /= 2) {\n"
    "        __syncthreads();\n"
    "        for (unsigned k = 0; k < count && lane < by; k++) {\n"
    "            totals *const t = &room[k * 256 + threadIdx.x];\n"
    "            *t = join(*t, t[by * width]);\n"
    "        }\n"
    "    }\n"
    "    if (lane == 0 && is_one && segments == 1)\n"
    "        STORE(o * inner + column, neighbours(room + threadIdx.x, count));\n"
    "    else if (lane == 0 && is_one)\n"
    "        scratch[job * inner + column] = neighbours(room + threadIdx.x, count);\n";

/*
 * A block for each result. A thread takes eight neighbours, which are a subtree of what meets, as long as there are
 * more than threads have room for; their totals go to the other half of the scratch memory, so that none is read late.
 * The rest meet in shared memory.
 */
static const char finish_text[] =
    "    const i64 o = blockIdx.x / inner, column = blockIdx.x % inner;\n"
    "    const i64 other = outer * segments * inner, pairs = (segments + 1) / 2;\n"
    "    totals *from = scratch + o * segments * inner + column, *to = scratch + other + o * pairs * inner + column;\n"
    "    SHARED(totals, room, 256);\n"
    "    i64 count = segments;\n"
    "    while (count > 256) {\n"
    "        const i64 groups = (count + 7) / 8;\n"
    "        for (i64 group = threadIdx.x; group < groups; group += 256) {\n"
    "            totals v[8];\n"
    "#pragma unroll\n"
    "            for (int k = 0; k < 8; k++)\n"
    "                v[k] = from[(8 * group + k < count ? 8 * group + k : count - 1) * inner];\n"
    "#pragma unroll\n"
    "            for (int by = 1; by < 8; by *= 2)\n"
    "#pragma unroll\n"
    "                for (int k = 0; k < 8; k += 2 * by)\n"
    "                    if (8 * group + k + by < count)\n"
    "                        v[k] = join(v[k], v[k + by]);\n"
    "            to[group * inner] = v[0];\n"
    "        }\n"
    "        __syncthreads();\n"
    "        totals *const before = from;\n"
    "        from = to;\n"
    "        to = before;\n"
    "        count = groups;\n"
    "    }\n"
    "    if (threadIdx.x < count)\n"
    "        room[threadIdx.x] = from[threadIdx.x * inner];\n"
    "    for (; count > 1; count = (count + 1) / 2) {\n"
    "        totals t = none();\n"
    "        __syncthreads();\n"
    "        if (2 * threadIdx.x + 1 < count)\n"
    "            t = join(room[2 * threadIdx.x], room[2 * threadIdx.x + 1]);\n"
    "        else if (2 * threadIdx.x < count)\n"
    "            t = room[2 * threadIdx.x];\n"
    "        __syncthreads();\n"
    "        if (2 * threadIdx.x < count)\n"
    "            room[threadIdx.x] = t;\n"
    "    }\n"
    "    if (threadIdx.x == 0)\n"
    "        STORE((i64)blockIdx.x, room[0]);\n";

/* `part`: texts of the body, up to NULL; ends: it is the second kernel. */
static void add_kernel(gy_text *to, const gy_maths_program *p, const char *name, bool ends, const char *const *part)
{
    bool is_tiny = ends && gy_maths_tiny(p) > 0, is_small = gy_maths_total_bytes(p->maths) <= 8;
    gy_text_printf(to, "extern \"C\" __global__ void __launch_bounds__(%d, %d) %s(", GY_MATHS_BLOCK,
                   is_tiny && is_small ? GY_MATHS_TINY_BLOCKS : GY_MATHS_BLOCKS, name);
    gy_maths_cuda_add_parameters(to, p);
    gy_text_add(to, ", i64 outer, i64 mid, i64 inner, i64 run, i64 segments");
    gy_maths_cuda_add_cuts(to, p);
    gy_maths_cuda_add_steps(to, p);
    gy_text_add(to, ", totals *scratch)\n{\n    BEGIN\n");
    if (is_tiny)
        add_tiny_calls(to, p);
    for (; *part; part++)
        gy_text_add(to, *part);
    gy_text_add(to, "}\n");
}

/* Lanes of a thread that it takes at a time. */
static uint32_t live_lanes(const gy_maths_program *p)
{
    size_t bytes = gy_maths_total_bytes(p->maths);
    return bytes <= 8 ? 8 : bytes <= 16 ? 4 : 2;
}

/* Elements of two bytes or one, few steps each, are loaded as fast as other threads ask for theirs (measured). */
static const char *eight_of(const gy_maths_program *p)
{
    enum { FEW_STEPS = 4, SMALL = 2 };
    bool is_light = p->steps <= FEW_STEPS && gy_maths_cuda_loaded_bytes(p) <= SMALL;
    return gy_maths_ahead(p) >= live_lanes(p) && !is_light ? eight_ahead_text : eight_text;
}

static void add_macros(gy_text *to, const gy_maths_program *p)
{
    bool columns = p->is_columns;
    gy_text_printf(to, "#define SEGMENT %d\n", columns ? GY_MATHS_COLUMN : GY_MATHS_SEGMENT);
    gy_text_printf(to, "#define LIVE %u\n#define RUN %d\n", live_lanes(p), gy_maths_most_run(p->maths));
    gy_text_printf(to, "#define FEW %d\n#define LOW %d\n#define MANY %d\n", GY_MATHS_FEW, GY_MATHS_LOW, GY_MATHS_MANY);
    gy_text_printf(to, "#define TINY_EACH %d\n#define TURNS %d\n#define TURNS_MANY %d\n", GY_MATHS_TINY_EACH,
                   gy_maths_turns(p), GY_MATHS_TINY_MANY);
    gy_text_printf(to, "#define STEP %d\n#define PLACE(m) ", columns ? GY_MATHS_COLUMN_LANES : GY_MATHS_LANES);
    gy_maths_cuda_add_model(to, p);
    gy_text_add(to, "\n");
    gy_maths_cuda_add_places(to, p);
    gy_maths_cuda_add_total_macros(to, p);
}

void gy_maths_print_cuda_reduction(gy_text *to, const gy_maths_program *p, const char *name, gy_maths_printed printed)
{
    const char *const all_lanes[] = { turns_text,     short_text, eight_begin_text, eight_of(p),     eight_end_text,
                                      short_end_text, lanes_text, segment_text,     lanes_meet_text, NULL };
    const char *const *lanes = all_lanes + (gy_maths_turns(p) == 1);
    const char *const columns[] = { many_text,      eight_begin_text, eight_of(p),
                                    eight_end_text, many_end_text,    columns_text,
                                    segment_text,   columns_end_text, NULL };
    static const char *const finish[] = { finish_text, NULL };
    gy_text finish_name = { 0 };
    gy_text_printf(&finish_name, "%s_finish", name);
    to->failed = to->failed || finish_name.failed;
    gy_text_add(to, cut_text);
    gy_maths_cuda_add_totals(to, p);
    gy_text_add(to, neighbours_text);
    if (!p->is_columns)
        gy_maths_cuda_add_down(to, p);
    gy_maths_cuda_add_total_functions(to, p);
    add_macros(to, p);
    if (gy_maths_tiny(p) && printed != GY_MATHS_PRINT_FIRST)
        add_tiny(to, p);
    if (printed != GY_MATHS_PRINT_FINISH)
        add_kernel(to, p, name, false, p->is_columns ? columns : lanes);
    if (printed != GY_MATHS_PRINT_FIRST)
        add_kernel(to, p, finish_name.at ? finish_name.at : "", true, finish);
    gy_text_add(to,
                "#undef SEGMENT\n#undef LIVE\n#undef RUN\n#undef PLACES\n#undef FEW\n#undef LOW\n#undef "
                "MANY\n#undef STEP\n#undef PLACE\n#undef VALUE\n"
                "#undef LOADED\n#undef AHEAD\n#undef ROOM\n#undef NEXT\n#undef LOAD\n#undef TAKE\n#undef STORE\n"
                "#undef TINY_EACH\n#undef TURNS\n#undef TURNS_MANY\n#undef COMING\n#undef SEND\n#undef ARRIVE\n#undef "
                "TINY_OF\n#undef BYTES\n#undef SPACE\n#undef "
                "BRING\n#undef BROUGHT\n");
    gy_text_free(&finish_name);
}
