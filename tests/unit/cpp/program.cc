/* SPDX-License-Identifier: Apache-2.0 */
/* gantry.hpp: what graphs compute, against loops; mistakes as exceptions; lambdas that outlive the graph. */
#include <gantry/gantry.hpp>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                        \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (0)

/* All of them compile, those too that nothing here calls. */
template class gantry::buffer<float>;
template struct gantry::region<float>;
template gantry::node gantry::graph::fill_uniform(gantry::label, gantry::region<float>, std::uint64_t, double, double);
template gantry::node gantry::graph::fill_iota(gantry::label, gantry::region<float>);
template gantry::buffer<float> gantry::graph::loss() const;
template void gantry::run::state(gantry::buffer<float>, gantry::span<float>) const;

/* The message of what `function` throws; "" if nothing. */
template <typename F> static std::string thrown(F function, gantry_status status)
{
    try {
        function();
    } catch (const gantry::error &e) {
        EXPECT(e.status() == status);
        EXPECT(e.record().text[0] != '\0');
        return e.what();
    }
    return "";
}

static std::vector<float> numbers(std::size_t count)
{
    std::vector<float> all(count);
    for (std::size_t i = 0; i < count; i++)
        all[i] = static_cast<float>(i % 17) - 5;
    return all;
}

/* Spans of parts, a lambda with state, one that wants the launch, one that returns a status, a reduction. */
static void lambdas()
{
    const std::size_t n = 1003;
    std::atomic<int> calls{ 0 };
    gantry::graph g("lambdas");
    auto x = g.buffer<float>("x", { 1003 }).input().split(4);
    auto y = g.buffer<float>("y", { 1003 }).output().split(4);
    auto sum = g.buffer<double>("sum", { 1 }).init(0).output();
    for (int i = 0; i < 4; i++) {
        const float factor = 2 + static_cast<float>(i);
        g.launch(
            "scale",
            [factor, &calls](gantry::span<const float> a, gantry::span<float> b) {
                calls++;
                for (std::size_t k = 0; k < a.size(); k++)
                    b[k] = factor * a[k];
            },
            gantry::read(x[i]), gantry::write(y[i]));
        g.launch(
             "sum",
             [](gantry::span<const float> a, gantry::span<double> s, const gantry_launch &launch) -> gantry_status {
                 if (launch.args != 2 || std::strncmp(launch.node, "sum", 3) != 0)
                     return GANTRY_E_INVALID;
                 for (float value : a)
                     s[0] += static_cast<double>(value);
                 return GANTRY_OK;
             },
             gantry::read(y[i]), gantry::reduce(sum, GANTRY_SUM))
            .cost(1, 4)
            .priority(1);
    }
    gantry::schedule s(g, gantry::machine::virtual_devices(2));
    gantry::run r(s);
    const std::vector<float> data = numbers(n);
    std::vector<float> result(n);
    r.bind(x, data);
    r.bind_output(y, result);
    for (int start = 0; start < 3; start++)
        r();
    double total = 0;
    for (std::size_t k = 0; k < n; k++) {
        std::size_t part = 0;
        while (k >= (part + 1) * n / 4)
            part++;
        const float want = (2 + static_cast<float>(part)) * data[k];
        EXPECT(result[k] == want);
        total += static_cast<double>(want);
    }
    EXPECT(r.output(sum).size() == 1 && r.output(sum)[0] == total);
    EXPECT(calls == 12);
    EXPECT(s.summary().nodes == 8 && s.summary().makespan_us > 0);
    EXPECT(s.json().find("gantry_schedule") != std::string::npos);
    EXPECT(s.format(GANTRY_DOT).compare(0, 7, "digraph") == 0);
}

/* The run keeps what the lambda holds when graph and schedule are gone, and lets it go in the end. */
static void lifetimes()
{
    auto held = std::make_shared<int>(7);
    std::weak_ptr<int> seen = held;
    {
        auto make = [&] {
            gantry::graph g("short");
            auto y = g.buffer<std::int32_t>("y", { 3 }).output();
            g.host(
                "seven",
                [held](gantry::span<std::int32_t> out) {
                    for (std::int32_t &value : out)
                        value = *held;
                },
                gantry::write(y));
            gantry::graph moved(std::move(g));
            gantry::schedule s(moved, gantry::machine::virtual_devices(1));
            return std::make_pair(gantry::run(s), y);
        };
        auto [r, y] = make();
        held.reset();
        r();
        EXPECT(!seen.expired() && r.output(y)[0] == 7 && r.output(y)[2] == 7);
        auto [other, z] = [] {
            gantry::graph g("other");
            auto out = g.buffer<double>("z", { 1 }).output();
            g.fill("fill", out.all(), 2.5);
            gantry::schedule s(g, gantry::machine::virtual_devices(1));
            return std::make_pair(gantry::run(s), out);
        }();
        r = std::move(other);
        r();
        EXPECT(r.output(z)[0] == 2.5);
    }
    EXPECT(seen.expired());
}

/* Kernels of the library, formulas, loops that carry, dynamic scalars, halos. */
static void nodes()
{
    gantry::graph g("nodes");
    auto x = g.buffer<float>("x", { 64, 8 }).input().split(4);
    auto y = g.buffer<float>("y", { 64, 8 }).output().split(4);
    auto z = g.buffer<double>("z", { 1 }).output();
    auto u = g.buffer<double>("u", { 5 }).init(1), v = g.buffer<double>("v", { 5 }).output();
    gantry::node first = g.kernel("scale", "scale").dynamic("a", 3).arg("x", x[0]).arg("y", y[0]);
    for (int i = 1; i < 4; i++)
        g.map("twice", "y = 2 * x").arg("x", x[i]).arg("y", y[i]).after(first);
    g.reduce("top", "z = max(x)").arg("x", x).arg("z", z);
    g.repeat(6, [&] {
        g.carry(u, v);
        g.launch(
            "step",
            [](gantry::span<const double> a, gantry::span<double> b) {
                for (std::size_t k = 0; k < a.size(); k++)
                    b[k] = 2 * a[k];
            },
            gantry::read(u), gantry::write(v));
    });
    gantry::schedule s(g, gantry::machine::virtual_devices(3));
    gantry::run r(s);
    std::vector<float> data = numbers(512);
    r.bind(x, data);
    r();
    r.set(first, "a", 4);
    r();
    auto out = r.output(y);
    EXPECT(out.size() == 512 && s.device_of(first) >= 0);
    for (std::size_t k = 0; k < 512; k++)
        EXPECT(out[k] == (k < 128 ? 4 : 2) * data[k]);
    EXPECT(r.output(z)[0] == 11 && r.output(v)[4] == 64);
}

static void mistakes()
{
    gantry::graph g("mistakes");
    auto x = g.buffer<float>("x", { 8 }).input();
    g.kernel("wrong", "scael").arg("x", x);
    const int line = __LINE__ - 1;
    std::string said = thrown([&] { g.check(); }, GANTRY_E_GRAPH);
    EXPECT(said.find("did you mean \"scale\"?") != std::string::npos);
    EXPECT(said.find("program.cc:" + std::to_string(line)) != std::string::npos);
    EXPECT(thrown([] { gantry::graph::load("/nowhere.json"); }, GANTRY_E_IO).find("/nowhere.json") !=
           std::string::npos);
    EXPECT(thrown([] { gantry::machine::virtual_devices(0); }, GANTRY_E_INVALID) != "");
    gantry::graph fails("fails");
    auto y = fails.buffer<float>("y", { 8 }).output();
    fails.launch(
        "throws", [](gantry::span<float>) { throw std::length_error("too long for me"); }, gantry::write(y));
    gantry::schedule s(fails, gantry::machine::virtual_devices(1));
    gantry::run r(s);
    said = thrown([&] { r(); }, GANTRY_E_KERNEL);
    EXPECT(said.find("throws") != std::string::npos && said.find("it threw: too long for me") != std::string::npos);
    gantry::run nested(s);
    bool is_kept = false;
    try {
        nested();
    } catch (const gantry::error &e) {
        try {
            std::rethrow_if_nested(e);
        } catch (const std::length_error &) {
            is_kept = true;
        }
    }
    EXPECT(is_kept);
    std::array<float, 3> small{};
    gantry::run again(s);
    EXPECT(thrown([&] { again.bind_output(y, small); }, GANTRY_E_INVALID) != "");
}

static void files(const std::string &root)
{
    gantry::load_options options;
    options.params = { "n=1000", "parts=2" };
    gantry::graph g = gantry::graph::load(root + "/graphs/saxpy.json", options);
    gantry::schedule s(g, gantry::machine::load(root + "/graphs/machines/host-4.json").select("2"));
    gantry::run r(s);
    std::vector<float> x(1000, 3), y(1000, 1);
    r.bind(g.find_buffer<float>("x"), x);
    r.bind(g.find_buffer<float>("y"), y);
    r();
    EXPECT(r.output(g.find_buffer<float>("y"))[999] == 7);
    EXPECT(g.find_buffer<float>("no").get().id == GANTRY_NONE);
    EXPECT(g.json().find("\"saxpy\"") != std::string::npos && g.find_node("sum[1]").get().id != GANTRY_NONE);
}

/* 1 + 2 + 3 by a loop that ends when its sum is large enough; a node that its flag leaves out; a collective. */
static gantry::graph loop()
{
    gantry::graph g("loop");
    auto sum = g.buffer<double>("sum", { 1 }).init(0).state().output();
    auto done = g.buffer<std::int32_t>("done", { 1 }).init(0);
    auto y = g.buffer<double>("y", { 4 }).init_iota().split(2).output();
    auto z = g.buffer<double>("z", { 4 }).split(2).output();
    auto w = g.buffer<double>("w", { 4 }).output();
    g.repeat(100, [&] {
        g.index("k");
        g.until(done);
        g.map("add", "s = s + k").arg("s", sum).scalar("k", "k + 1");
        g.map("ask", "d = s >= 6").arg("d", done).arg("s", sum);
    });
    g.fill("never", y[0], 7).when(g.buffer<std::int32_t>("no", { 1 }).init(0));
    g.collective("all", GANTRY_ALL_REDUCE, GANTRY_SUM, { y[0], y[1] }, { z[0], z[1] });
    gantry_contents counted = GANTRY_CONTENTS_INIT;
    counted.kind = GANTRY_IOTA;
    counted.first = 5;
    counted.second = -2;
    g.fill_with("w", w.all(), counted);
    return g;
}

static void results(gantry::run &r, gantry::graph &g, double sum)
{
    auto z = g.find_buffer<double>("z"), w = g.find_buffer<double>("w");
    std::array<double, 1> state{};
    r.state(g.find_buffer<double>("sum"), state);
    EXPECT(state[0] == sum && r.output(g.find_buffer<double>("y"))[0] == 0);
    EXPECT(r.output(z)[0] == 2 && r.output(z)[1] == 4 && r.output(z)[2] == 2 && r.output(z)[3] == 4);
    EXPECT(r.output(w)[0] == 5 && r.output(w)[3] == -1);
}

/* What else there is of graphs, machines, schedules and runs says the same as what it was made from. */
static void round_trips()
{
    gantry::graph g = loop();
    g.check();
    g.check_inputs();
    g.check_files();
    EXPECT(g.name() == "loop" && g.buffers() == 6 && g.nodes() == 5 && g.id(g.find_node("all")) == "all");
    EXPECT(g.info(g.find_buffer<double>("w")).bytes == 32 && g.format(GANTRY_DOT).compare(0, 7, "digraph") == 0);
    for (const gantry_error &warning : g.warnings())
        EXPECT(warning.text[0] != '\0');
    gantry::graph again = gantry::graph::parse(g.json(), "again.json");
    again.check();
    EXPECT(again.json() == g.json());

    gantry::machine two = gantry::machine::virtual_devices(2);
    gantry::machine same = gantry::machine::parse(two.json());
    EXPECT(same.devices() == 2 && same.workers() == 2 && same.ranks() == 1 && same.memories() == two.memories());
    EXPECT(!same.has_calibration() && same.copy_us(0, 1, 1 << 20) > 0 && same.device(1).id[0] != '\0');
    EXPECT(same.spread(2).ranks() == 2 && same.memory(0).capacity == two.memory(0).capacity);

    gantry::schedule s(g, two);
    gantry::schedule read = gantry::schedule::parse(s.json(), g);
    read.check(g);
    EXPECT(read.json() == s.json() && read.phases() == s.phases() && read.phase(99) == nullptr);
    EXPECT(read.policy() == s.policy() && gantry_machine_device_count(read.machine()) == 2);
    gantry::run r(read);
    r();
    results(r, g, 6);
    const std::uint64_t hash = r.hash(g.find_buffer<double>("z"));
    EXPECT(r.info().completed == 1);
    r.repeat(2); /* each has one iteration, as the sum is large enough */
    results(r, g, 8);
    EXPECT(r.info().completed == 3 && r.hash(g.find_buffer<double>("z")) == hash);
    EXPECT(gantry::version() == gantry_version() && gantry::strategy("dp=2").dp == 2);
}

/* What an inner loop adds to begins with infinity, which no number of a graph file is. */
static void smallest()
{
    gantry::graph g("smallest");
    auto x = g.buffer<float>("x", { 4 }).init(2);
    auto least = g.buffer<float>("least", { 1 }).init(1), next = g.buffer<float>("next", { 1 }).output();
    auto done = g.buffer<std::int32_t>("done", { 1 });
    g.repeat(2, [&] {
        g.map("twice", "x = 2 * x").arg("x", x);
        g.repeat(3, [&] {
            g.carry(least, next);
            g.until(done);
            g.reduce("least", "m = min(x)").arg("x", x).arg("m", next, GANTRY_MIN);
            g.map("ask", "d = m > 7").arg("d", done).arg("m", next);
        });
    });
    g.check();
    gantry::graph again = gantry::graph::parse(g.json());
    again.check();
    EXPECT(again.json() == g.json());
    gantry::run r(gantry::schedule(again, gantry::machine::virtual_devices(1)));
    r();
    EXPECT(r.output(again.find_buffer<float>("next"))[0] == 8);
}

int main(int, char **argv)
{
    lambdas();
    lifetimes();
    nodes();
    mistakes();
    files(argv[1]);
    round_trips();
    smallest();
    std::printf("fine\n");
}
