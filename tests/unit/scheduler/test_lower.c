/* SPDX-License-Identifier: Apache-2.0 */
/* Which copies, instances and addresses small graphs get. Every schedule also passes the checker (suite.c). */
#include "suite.h"

#include <stdio.h>
#include <string.h>

static gantry_machine *m;
static gantry_graph *g;
static gantry_schedule *s;

static void begin(gantry_machine *machine)
{
    m = machine;
    g = gantry_graph_new("lower");
    s = NULL;
}

static void end(void)
{
    gantry_schedule_free(s);
    gantry_graph_free(g);
    gantry_machine_free(m);
}

/* Rows cross the link in half the time that the CPU takes to copy them. */
static const char machine_slow_host[] =
    "{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"8GiB\"},{\"id\":\"gpu0\",\"capacity\":"
    "\"1GiB\"}],\"devices\":[{\"id\":\"cpu0\",\"type\":\"cpu\",\"memory\":\"host\"},{\"id\":\"gpu0\",\"type\":"
    "\"gpu\",\"memory\":\"gpu0\"}],\"routes\":[{\"from\":\"host\",\"to\":\"host\",\"bandwidth_gbs\":5},{\"from\":"
    "\"host\",\"to\":\"gpu0\",\"both\":true,\"latency_us\":1,\"bandwidth_gbs\":10}]}";

static gantry_node work_of(const char *id, double us, const char *on)
{
    gantry_node n = work(g, id, us);
    gantry_node_on(g, n, on);
    return n;
}

static gantry_node work_on(const char *id, const char *on)
{
    return work_of(id, 10, on);
}

static const gy_instance *instance_of_use(const gy_op *op, uint32_t use)
{
    return &s->instances.at[s->use.at[op->use + use].instance];
}

/* The copy with this source and destination memory, or NULL. */
static const gy_op *find_copy(const char *from, const char *to)
{
    for (size_t i = 0; i < s->ops.count; i++) {
        const gy_op *op = &s->ops.at[i];
        if (op->kind == GY_OP_COPY && !strcmp(m->memory[instance_of_use(op, 0)->memory].id, from) &&
            !strcmp(m->memory[instance_of_use(op, 1)->memory].id, to))
            return op;
    }
    return NULL;
}

START_TEST(rows_are_brought_once_per_memory)
{
    begin(virtual_machine(2));
    gantry_buffer x = buffer(g, "x", 100);
    gantry_node_write(g, work_on("make", "dev0"), gantry_all(x));
    for (int i = 0; i < 5; i++)
        gantry_node_read(g, work_on("read", "dev1"), gantry_rows(x, 10, 60));
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 1);
    const gy_op *copy = find_copy("mem0", "mem1");
    ck_assert_ptr_nonnull(copy);
    ck_assert_int_eq(s->use.at[copy->use].first, 10); /* only what is read */
    ck_assert_int_eq(s->use.at[copy->use].last, 60);
    end();
}
END_TEST

/* The next version comes to the reader's memory while the last is read there, so nobody waits for the reader, which
 * takes longer than what makes the version. */
START_TEST(versions_that_are_read_elsewhere_take_turns)
{
    const gy_op *reader[4];
    int found = 0;
    begin(virtual_machine(2));
    gantry_buffer x = buffer(g, "x", 100);
    for (int i = 0; i < 4; i++) {
        gantry_node write = work_on("write", "dev0"), read = work_of("read", 30, "dev1");
        (i ? gantry_node_readwrite : gantry_node_write)(g, write, gantry_all(x));
        gantry_node_read(g, read, gantry_all(x));
        gantry_node_read(g, work_on("near", "dev0"), gantry_all(x));
    }
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 4);
    for (size_t i = 0; i < s->ops.count && found < 4; i++)
        if (s->ops.at[i].kind == GY_OP_LAUNCH && !strncmp(g->nodes.at[s->ops.at[i].node].id, "read", 4))
            reader[found++] = &s->ops.at[i];
    ck_assert_int_eq(found, 4);
    ck_assert_ptr_ne(instance_of_use(reader[0], 0), instance_of_use(reader[1], 0));
    ck_assert_ptr_eq(instance_of_use(reader[0], 0), instance_of_use(reader[2], 0));
    ck_assert_ptr_eq(instance_of_use(reader[1], 0), instance_of_use(reader[3], 0));
    end();
}
END_TEST

START_TEST(a_halo_copies_only_the_rows_that_are_missing)
{
    begin(virtual_machine(2));
    gantry_buffer x = buffer(g, "x", 40);
    gantry_buffer_split(g, x, 2);
    gantry_node_write(g, work_on("a", "dev0"), gantry_part(x, 0));
    gantry_node_write(g, work_on("b", "dev1"), gantry_part(x, 1));
    gantry_node_read(g, work_on("c", "dev0"), gantry_halo(gantry_part(x, 0), 3, 3)); /* rows 0 to 23: cut at 0 */
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 1);
    const gy_op *copy = find_copy("mem1", "mem0");
    ck_assert_ptr_nonnull(copy);
    ck_assert_int_eq(s->use.at[copy->use].first, 20);
    ck_assert_int_eq(s->use.at[copy->use].last, 23);
    /* the part and its halo are one instance, which both the writer and the reader name */
    ck_assert_ptr_eq(instance_of_use(op_of(s, "a"), 0), instance_of_use(op_of(s, "c"), 0));
    ck_assert_int_eq(instance_of_use(op_of(s, "c"), 0)->last, 23);
    end();
}
END_TEST

START_TEST(parts_that_only_touch_stay_apart)
{
    begin(virtual_machine(1));
    gantry_buffer x = buffer(g, "x", 40);
    gantry_buffer_split(g, x, 2);
    gantry_node_write(g, work(g, "a", 1), gantry_part(x, 0));
    gantry_node_write(g, work(g, "b", 1), gantry_part(x, 1));
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(s->instances.count, 2);
    end();
}
END_TEST

START_TEST(an_overwritten_region_is_not_brought_along)
{
    begin(virtual_machine(2));
    gantry_buffer x = buffer(g, "x", 40);
    gantry_node_write(g, work_on("a", "dev0"), gantry_all(x));
    gantry_node_write(g, work_on("b", "dev1"), gantry_rows(x, 0, 20));
    gantry_node_read(g, work_on("c", "dev1"), gantry_all(x));
    s = schedule(g, m, NULL);
    const gy_op *copy = find_copy("mem0", "mem1");
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 1);
    ck_assert_int_eq(s->use.at[copy->use].first, 20); /* rows 0 to 19 were written where they are read */
    end();
}
END_TEST

START_TEST(inputs_come_up_and_outputs_go_down)
{
    begin(virtual_machine(2));
    gantry_buffer x = buffer(g, "x", 40), y = buffer(g, "y", 40);
    gantry_buffer_init_value(g, x, 1);
    gantry_buffer_output(g, y);
    gantry_node n = work_on("n", "dev1");
    gantry_node_read(g, n, gantry_all(x));
    gantry_node_write(g, n, gantry_all(y));
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 2);
    ck_assert_uint_eq(instance_of_use(find_copy("host", "mem1"), 0)->space, GY_SPACE_INPUT);
    ck_assert_uint_eq(instance_of_use(find_copy("mem1", "host"), 1)->space, GY_SPACE_OUTPUT);
    ck_assert_uint_eq(count_role(s, GY_ROLE_EXTERNAL), 2);
    end();
}
END_TEST

/* The host has what nothing writes: while the task takes its time the CPU hands it over, and the GPU sends nothing. */
START_TEST(an_output_that_is_only_read_is_not_fetched)
{
    static const double us[] = { 1, 1000 };
    begin(parse_machine(machine_slow_host));
    gantry_buffer x = buffer(g, "x", 1000000); /* 4 MB: 800 us within host memory, 401 us over the link */
    gantry_buffer_init_value(g, x, 1);
    gantry_buffer_output(g, x);
    gantry_node n = work(g, "w", us[_i]);
    gantry_node_on(g, n, "gpu0");
    gantry_node_read(g, n, gantry_all(x));
    s = schedule(g, m, NULL);
    ck_assert_ptr_nonnull(find_copy("host", "gpu0"));
    ck_assert_int_eq(find_copy("gpu0", "host") == NULL, us[_i] > 800);
    ck_assert_int_eq(find_copy("host", "host") != NULL, us[_i] > 800);
    end();
}
END_TEST

START_TEST(an_untouched_input_that_is_an_output_goes_through_a_device)
{
    begin(virtual_machine(2)); /* nobody works in host memory here, so nobody can copy there */
    gantry_buffer x = buffer(g, "x", 40);
    gantry_buffer_init_value(g, x, 1);
    gantry_buffer_output(g, x);
    gantry_node_read(g, work_on("n", "dev1"), gantry_rows(x, 0, 10));
    s = schedule(g, m, NULL);
    ck_assert_ptr_nonnull(find_copy("host", "mem0"));
    ck_assert_ptr_nonnull(find_copy("mem0", "host"));
    end();
}
END_TEST

START_TEST(a_device_in_host_memory_reads_inputs_in_place)
{
    begin(parse_machine(machine_host_cpu));
    gantry_buffer x = buffer(g, "x", 40);
    gantry_buffer_init_value(g, x, 1);
    gantry_node_read(g, work_on("n", "cpu0"), gantry_all(x));
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 0);
    ck_assert_uint_eq(instance_of_use(op_of(s, "n"), 0)->space, GY_SPACE_INPUT);
    end();
}
END_TEST

START_TEST(what_it_changes_it_copies_first)
{
    begin(parse_machine(machine_host_cpu));
    gantry_buffer x = buffer(g, "x", 40);
    gantry_buffer_init_value(g, x, 1);
    gantry_node_readwrite(g, work_on("n", "cpu0"), gantry_rows(x, 5, 9));
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 1);
    ck_assert_uint_eq(instance_of_use(op_of(s, "n"), 0)->space, GY_SPACE_SLAB);
    end();
}
END_TEST

START_TEST(state_lives_where_it_is_written_last)
{
    begin(virtual_machine(2));
    gantry_buffer w = buffer(g, "w", 40);
    gantry_buffer_set_class(g, w, GANTRY_STATE);
    gantry_buffer_init_value(g, w, 1);
    gantry_node_read(g, work_on("a", "dev0"), gantry_all(w));
    gantry_node_readwrite(g, work_on("b", "dev1"), gantry_all(w));
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_role(s, GY_ROLE_PERSIST), 1);
    ck_assert_uint_eq(instance_of_use(op_of(s, "b"), 0)->role, GY_ROLE_PERSIST);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 1); /* to the reader; nothing comes from the host in a start */
    ck_assert_ptr_nonnull(find_copy("mem1", "mem0"));
    end();
}
END_TEST

START_TEST(state_that_is_only_read_stays_with_its_first_reader)
{
    begin(virtual_machine(2));
    gantry_buffer w = buffer(g, "w", 40);
    gantry_buffer_set_class(g, w, GANTRY_STATE);
    gantry_buffer_init_value(g, w, 1);
    gantry_node_read(g, work_on("a", "dev1"), gantry_all(w));
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(s->ops.count, 1);
    ck_assert_uint_eq(instance_of_use(op_of(s, "a"), 0)->role, GY_ROLE_PERSIST);
    end();
}
END_TEST

START_TEST(const_persists_in_every_memory_that_reads_it)
{
    begin(virtual_machine(3));
    gantry_buffer w = buffer(g, "w", 40);
    gantry_buffer_set_class(g, w, GANTRY_CONST);
    gantry_buffer_init_value(g, w, 1);
    gantry_node_read(g, work_on("a", "dev0"), gantry_all(w));
    gantry_node_read(g, work_on("b", "dev2"), gantry_rows(w, 3, 8));
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(s->ops.count, 2);
    ck_assert_uint_eq(count_role(s, GY_ROLE_PERSIST), 2);
    end();
}
END_TEST

/* prev is the state, next a temporary: after three iterations the value is in an instance of next and is brought home.
 */
START_TEST(carried_state_is_brought_home)
{
    begin(virtual_machine(1));
    gantry_buffer prev = buffer(g, "prev", 40), next = buffer(g, "next", 40);
    gantry_buffer_set_class(g, prev, GANTRY_STATE);
    gantry_buffer_init_value(g, prev, 1);
    gantry_graph_repeat(g, 3);
    gantry_graph_carry(g, prev, next);
    gantry_node n = work(g, "n", 10);
    gantry_node_read(g, n, gantry_all(prev));
    gantry_node_write(g, n, gantry_all(next));
    gantry_graph_repeat_end(g);
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_kind(s, GY_OP_LAUNCH), 3);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 1); /* carrying itself copies nothing */
    const gy_op *copy = find_copy("mem0", "mem0");
    ck_assert_uint_eq(instance_of_use(copy, 1)->role, GY_ROLE_PERSIST);
    ck_assert_uint_eq(instance_of_use(copy, 1)->value, prev.id);
    end();
}
END_TEST

/* Two buffers would do for a carried temporary, whatever the number of iterations. */
START_TEST(carried_values_share_addresses)
{
    begin(virtual_machine(1));
    gantry_buffer prev = buffer(g, "prev", 64), next = buffer(g, "next", 64);
    gantry_graph_fill(g, "f", gantry_all(prev), 0);
    gantry_graph_repeat(g, 20);
    gantry_graph_carry(g, prev, next);
    gantry_node n = work(g, "n", 10);
    gantry_node_read(g, n, gantry_all(prev));
    gantry_node_write(g, n, gantry_all(next));
    gantry_graph_repeat_end(g);
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(s->instances.count, 21);
    ck_assert_uint_eq(gantry_schedule_peak_bytes(s, 1), 2 * 256);
    end();
}
END_TEST

START_TEST(a_staged_route_is_two_copies)
{
    begin(parse_machine(machine_shared_link));
    gantry_buffer x = buffer(g, "x", 40);
    gantry_node_write(g, work_on("a", "gpu0"), gantry_all(x));
    gantry_node_read(g, work_on("b", "gpu1"), gantry_all(x));
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 2);
    const gy_instance *middle = instance_of_use(find_copy("gpu0", "host"), 1);
    ck_assert_uint_eq(middle->space, GY_SPACE_STAGING);
    ck_assert_ptr_eq(instance_of_use(find_copy("host", "gpu1"), 0), middle);
    ck_assert_uint_eq(s->staging, 256);
    end();
}
END_TEST

START_TEST(a_chain_along_relays)
{
    begin(parse_machine(machine_relay));
    gantry_buffer x = buffer(g, "x", 40), y = buffer(g, "y", 40);
    gantry_buffer_init_value(g, x, 1);
    gantry_buffer_output(g, y);
    gantry_node_readwrite(g, work_on("a", "gpu0"), gantry_all(x));
    gantry_node n = work_on("b", "gpu2"); /* gpu0 -> gpu1 -> gpu2 */
    gantry_node_read(g, n, gantry_all(x));
    gantry_node_write(g, n, gantry_all(y));                   /* and y the way back: gpu2 -> gpu1 -> host */
    gantry_node_read(g, work_on("c", "gpu1"), gantry_all(x)); /* already there */
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(instance_of_use(find_copy("gpu0", "gpu1"), 1)->space, GY_SPACE_SLAB);
    ck_assert_ptr_nonnull(find_copy("gpu1", "gpu2"));
    ck_assert_ptr_nonnull(find_copy("gpu2", "gpu1"));
    ck_assert_ptr_nonnull(find_copy("gpu1", "host"));
    ck_assert_ptr_null(find_copy("gpu2", "host"));
    ck_assert_ptr_null(find_copy("gpu0", "gpu2"));
    end();
}
END_TEST

START_TEST(devices_that_share_a_memory_copy_nothing)
{
    begin(parse_machine(machine_twins));
    gantry_buffer x = buffer(g, "x", 40);
    gantry_node_write(g, work_on("p", "a"), gantry_all(x));
    gantry_node_read(g, work_on("q", "b"), gantry_all(x));
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(count_kind(s, GY_OP_COPY), 0);
    ck_assert_uint_eq(s->sync.count, 1); /* but it waits */
    end();
}
END_TEST

START_TEST(tiles_travel_one_by_one)
{
    begin(virtual_machine(2));
    int64_t shape[2] = { 8, 8 };
    gantry_buffer a = gantry_graph_buffer(g, "A", GANTRY_F64, 2, shape);
    gantry_buffer_tiles(g, a, 2, 2);
    gantry_node_write(g, work_on("w", "dev0"), gantry_tiles(a, 0, 2, 0, 2));
    gantry_node_read(g, work_on("r", "dev1"), gantry_tile(a, 1, 0));
    s = schedule(g, m, NULL);
    const gy_op *copy = find_copy("mem0", "mem1");
    ck_assert_int_eq(s->use.at[copy->use].first, 2); /* tile (1, 0) is row 2 of the packed form */
    ck_assert_int_eq(s->use.at[copy->use].last, 3);
    ck_assert_uint_eq(instance_of_use(copy, 1)->bytes, 4 * 4 * 8);
    end();
}
END_TEST

/* One event for two waiters on one lane, none for what lane order or another wait implies. */
START_TEST(few_events)
{
    begin(parse_machine(machine_twins));
    gantry_buffer x = buffer(g, "x", 40), y = buffer(g, "y", 40);
    gantry_node_write(g, work_on("p", "a"), gantry_all(x));
    gantry_node n = work_on("q", "a");
    gantry_node_read(g, n, gantry_all(x));
    gantry_node_write(g, n, gantry_all(y));
    n = work_on("r", "b");
    gantry_node_read(g, n, gantry_all(x)); /* implied: q came after p, and r waits for q */
    gantry_node_read(g, n, gantry_all(y));
    gantry_node_read(g, work_on("t", "b"), gantry_all(y)); /* behind r in its lane */
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(s->sync.count, 1);
    ck_assert_str_eq(s->node_ids.at[s->ops.at[s->sync.at[0].from].node], "q");
    ck_assert_str_eq(s->node_ids.at[s->ops.at[s->sync.at[0].to].node], "r");
    end();
}
END_TEST

START_TEST(after_orders_what_shares_nothing)
{
    begin(virtual_machine(2));
    gantry_node a = work_on("a", "dev0");
    gantry_node_after(g, work_on("b", "dev1"), a);
    s = schedule(g, m, NULL);
    ck_assert_uint_eq(s->sync.count, 1);
    ck_assert_uint_eq(s->sync.at[0].reason, GY_WHY_ORDER);
    ck_assert_int_eq(op_of(s, "b")->start, op_of(s, "a")->end);
    end();
}
END_TEST

/* Uploads of two tasks that could both begin at once are not held up by each other's readers. */
START_TEST(copies_of_the_textbook_machine_do_not_queue)
{
    begin(parse_machine("{\"gantry_machine\":1,\"memories\":[{\"id\":\"host\",\"capacity\":\"1GiB\"},{\"id\":\"m1\","
                        "\"capacity\":\"1GiB\"}],\"devices\":[{\"id\":\"P1\",\"memory\":\"m1\"}],\"routes\":[{\"from\":"
                        "\"*\",\"to\":\"*\",\"bandwidth_gbs\":0.001}],\"model\":{\"contention\":\"off\"}}"));
    for (int i = 0; i < 6; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        gantry_buffer x = buffer(g, name, 25); /* 100 us each */
        gantry_buffer_init_value(g, x, 1);
        gantry_node_read(g, work(g, "n", 10), gantry_all(x));
    }
    s = schedule(g, m, NULL);
    ck_assert_int_eq(s->makespan, gy_ticks_from_us(160));
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lower");
    TCase *c = tcase_create("lower");
    tcase_add_test(c, rows_are_brought_once_per_memory);
    tcase_add_test(c, versions_that_are_read_elsewhere_take_turns);
    tcase_add_test(c, a_halo_copies_only_the_rows_that_are_missing);
    tcase_add_test(c, parts_that_only_touch_stay_apart);
    tcase_add_test(c, an_overwritten_region_is_not_brought_along);
    tcase_add_test(c, inputs_come_up_and_outputs_go_down);
    tcase_add_loop_test(c, an_output_that_is_only_read_is_not_fetched, 0, 2);
    tcase_add_test(c, an_untouched_input_that_is_an_output_goes_through_a_device);
    tcase_add_test(c, a_device_in_host_memory_reads_inputs_in_place);
    tcase_add_test(c, what_it_changes_it_copies_first);
    tcase_add_test(c, state_lives_where_it_is_written_last);
    tcase_add_test(c, state_that_is_only_read_stays_with_its_first_reader);
    tcase_add_test(c, const_persists_in_every_memory_that_reads_it);
    tcase_add_test(c, carried_state_is_brought_home);
    tcase_add_test(c, carried_values_share_addresses);
    tcase_add_test(c, a_staged_route_is_two_copies);
    tcase_add_test(c, a_chain_along_relays);
    tcase_add_test(c, devices_that_share_a_memory_copy_nothing);
    tcase_add_test(c, tiles_travel_one_by_one);
    tcase_add_test(c, few_events);
    tcase_add_test(c, after_orders_what_shares_nothing);
    tcase_add_test(c, copies_of_the_textbook_machine_do_not_queue);
    suite_add_tcase(suite, c);
    return run_suite(suite);
}
