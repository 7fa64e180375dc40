/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that have no room in the memories, against the definition, read at every task for every piece; and by hand. */
#include "suite.h"

#include "scheduler/search/room.h"
#include <string.h>

static uint64_t aligned(int bytes)
{
    return ((uint64_t)bytes + 255) / 256 * 256;
}

/* Does the task use the buffer of this edge? `from` == `to`: an input; `to` beyond the tasks: an output. */
static bool uses(int task, int from, int to)
{
    return task == from || task == to;
}

static int bytes_of(const problem *p, int from, int to)
{
    return to >= MOST_TASKS ? p->output[from] : from == to ? p->input[from] : p->bytes[from][to];
}

/* A buffer is written once, so it is in a memory from the first to the last of its uses there. */
static bool is_held(const problem *p, const placement *at, int from, int to, uint32_t device, int position)
{
    int first = INT32_MAX, last = -1;
    for (int k = 0; k < p->tasks; k++)
        if (at->device[at->order[k]] == device && uses((int)at->order[k], from, to)) {
            first = k < first ? k : first;
            last = k;
        }
    return first <= position && position <= last;
}

/* Of the tasks on each device, the part of what they use that is beyond the room; 1 us a byte up, 1 or 2 us down. */
static gy_ticks lack_of(const problem *p, const placement *at, uint64_t room)
{
    gy_ticks sum = 0;
    for (int k = 0; k < p->tasks; k++) {
        int task = (int)at->order[k];
        uint32_t device = at->device[task];
        uint64_t held = 0, used = 0;
        for (int from = 0; from < p->tasks; from++)
            for (int to = from; to <= MOST_TASKS; to++) {
                int bytes = to < MOST_TASKS && to >= p->tasks ? 0 : bytes_of(p, from, to);
                held += bytes && is_held(p, at, from, to, device, k) ? aligned(bytes) : 0;
                used += bytes && uses(task, from, to) ? aligned(bytes) : 0;
            }
        if (held > room)
            sum += (gy_ticks)(used * (held - room) / held) * us(device % 2 ? 3 : 2);
    }
    return sum;
}

START_TEST(as_it_is_defined)
{
    size_t short_of_room = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        uint64_t state = seed;
        problem p = draw_problem(seed, 2 + pick(&state, MOST_TASKS - 1), 1 + pick(&state, 3), false);
        placement at = draw_placement(&p, &state);
        bench b;
        bench_open(&b, &p);
        gy_room r;
        uint64_t room = 256 * (uint64_t)pick(&state, 12), capacity[MOST_DEVICES + 1];
        for (int i = 0; i <= MOST_DEVICES; i++)
            capacity[i] = i ? room : UINT64_MAX;
        b.plan.capacity = capacity;
        ck_assert_int_eq(gy_room_make(&r, &b.model, NULL), GANTRY_OK);
        for (int twice = 0; twice < 2; twice++)
            ck_assert_msg(gy_room_lack(&r, at.order, at.device) == lack_of(&p, &at, room), "seed %d: %lld, not %lld",
                          (int)seed, (long long)gy_room_lack(&r, at.order, at.device),
                          (long long)lack_of(&p, &at, room));
        short_of_room += lack_of(&p, &at, room) > 0;
        b.plan.capacity = NULL;
        gy_room_free(&r);
        bench_close(&b);
    }
    ck_assert_uint_gt(short_of_room, 100);
}
END_TEST

/* A constant of 512 bytes that two tasks on d0 read, and 256 bytes that the first of them writes, a task on d1 changes,
 * and the second reads. On d0 each of its tasks uses 768 bytes, all that is there, of which 256 are too many for 512.
 */
START_TEST(what_stays_and_what_changes)
{
    static const int64_t half[] = { 512 }, quarter[] = { 256 };
    gantry_graph *graph = gantry_graph_new("by hand");
    bench b;
    gantry_buffer c = gantry_graph_buffer(graph, "c", GANTRY_U8, 1, half);
    gantry_buffer x = gantry_graph_buffer(graph, "x", GANTRY_U8, 1, quarter);
    gantry_node n[3];
    gantry_buffer_set_class(graph, c, GANTRY_CONST);
    gantry_buffer_init_value(graph, c, 0);
    for (int i = 0; i < 3; i++) {
        static const char *const id[] = { "first", "change", "last" };
        n[i] = gantry_graph_work(graph, id[i]);
        gantry_node_time(graph, n[i], NULL, 1);
        if (i != 1)
            gantry_node_read(graph, n[i], gantry_all(c));
    }
    gantry_node_write(graph, n[0], gantry_all(x));
    gantry_node_readwrite(graph, n[1], gantry_all(x));
    gantry_node_read(graph, n[2], gantry_all(x));
    bench_of(&b, graph, make_machine(2));
    uint64_t capacity[] = { UINT64_MAX, 512, 512 };
    uint32_t order[] = { 0, 1, 2 }, device[] = { 0, 1, 0 };
    gy_room r;
    b.plan.capacity = capacity;
    ck_assert_int_eq(gy_room_make(&r, &b.model, NULL), GANTRY_OK);
    ck_assert_int_eq(gy_room_lack(&r, order, device), us((256 + 256) * 2));
    capacity[1] = 768;
    ck_assert_int_eq(gy_room_lack(&r, order, device), 0);
    b.plan.capacity = NULL;
    gy_room_free(&r);
    bench_close(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("search room");
    TCase *tc = tcase_create("room");
    tcase_add_test(tc, as_it_is_defined);
    tcase_add_test(tc, what_stays_and_what_changes);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
