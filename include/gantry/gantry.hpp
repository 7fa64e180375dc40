/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file gantry/gantry.hpp
 * @brief Gantry from C++17: objects that free themselves, exceptions, typed buffers, lambdas as nodes.
 *
 * A thin layer over gantry.h, in this header alone. Everything has get(), so that what is not here is said in C.
 *
 *     gantry::graph g("twice");
 *     auto x = g.buffer<float>("x", {1000}).input().split(4);
 *     auto y = g.buffer<float>("y", {1000}).output().split(4);
 *     for (int i = 0; i < 4; i++)
 *         g.launch("twice", [](gantry::span<const float> a, gantry::span<float> b) {
 *             for (std::size_t k = 0; k < a.size(); k++)
 *                 b[k] = 2 * a[k];
 *         }, gantry::read(x[i]), gantry::write(y[i]));
 *     gantry::schedule s(g, gantry::machine::virtual_devices(2));
 *     gantry::run r(s);
 *     r.bind(x, data);
 *     r();
 *     gantry::span<const float> result = r.output(y);
 *
 * Rules that hold everywhere:
 *  - Errors of functions with a gantry_status are exceptions, gantry::error, with the gantry_error in them. Building
 *    calls do not throw: the first mistake in a graph is thrown when it is checked or scheduled, with the line of the
 *    program that made it.
 *  - Ownership. Objects can be moved, not copied. Lambdas live as long as a graph, schedule or run that needs them.
 *  - Threads. As in C: one thread at a time per object. A lambda is called from threads of the run, for several nodes
 *    at a time if it is given to several; what it throws ends the run, and is nested in the gantry::error of start() or
 *    wait() (std::rethrow_if_nested).
 */
#ifndef GANTRY_GANTRY_HPP
#define GANTRY_GANTRY_HPP

#include <gantry/gantry.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif

namespace gantry
{

/* ---- elements ---- */

#if __cplusplus >= 202002L
template <typename T> using span = std::span<T>;
#else
/** A pointer and how many elements it has: what C++20 calls std::span, which it is there. */
template <typename T> class span
{
  public:
    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <std::size_t N> constexpr span(T (&array)[N]) noexcept : data_(array), size_(N) {}
    /** Of a std::vector, std::array and the like. */
    template <typename C, typename = std::enable_if_t<std::is_convertible_v<decltype(std::declval<C &>().data()), T *>>>
    constexpr span(C &&from) noexcept : data_(from.data()), size_(from.size())
    {
    }
    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T &operator[](std::size_t i) const { return data_[i]; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }

  private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};
#endif

/** The bits of elements that C++17 has no type for. */
struct f16 {
    std::uint16_t bits;
};
struct bf16 {
    std::uint16_t bits;
};
struct f8e4m3 {
    std::uint8_t bits;
};
struct f8e5m2 {
    std::uint8_t bits;
};

template <typename T> struct dtype_of;
template <> struct dtype_of<f16> : std::integral_constant<gantry_dtype, GANTRY_F16> {
};
template <> struct dtype_of<bf16> : std::integral_constant<gantry_dtype, GANTRY_BF16> {
};
template <> struct dtype_of<f8e4m3> : std::integral_constant<gantry_dtype, GANTRY_F8E4M3> {
};
template <> struct dtype_of<f8e5m2> : std::integral_constant<gantry_dtype, GANTRY_F8E5M2> {
};
template <> struct dtype_of<float> : std::integral_constant<gantry_dtype, GANTRY_F32> {
};
template <> struct dtype_of<double> : std::integral_constant<gantry_dtype, GANTRY_F64> {
};
template <> struct dtype_of<std::int8_t> : std::integral_constant<gantry_dtype, GANTRY_I8> {
};
template <> struct dtype_of<std::uint8_t> : std::integral_constant<gantry_dtype, GANTRY_U8> {
};
template <> struct dtype_of<std::int32_t> : std::integral_constant<gantry_dtype, GANTRY_I32> {
};
template <> struct dtype_of<std::uint32_t> : std::integral_constant<gantry_dtype, GANTRY_U32> {
};
template <> struct dtype_of<std::int64_t> : std::integral_constant<gantry_dtype, GANTRY_I64> {
};
template <> struct dtype_of<std::uint64_t> : std::integral_constant<gantry_dtype, GANTRY_U64> {
};

/* ---- errors ---- */

class error : public std::runtime_error
{
  public:
    explicit error(const gantry_error &record) : std::runtime_error(line_of(record)), record_(record) {}
    /** Of a start that a lambda ended: what that threw is nested in it, as by std::throw_with_nested. */
    error(const gantry_error &record, const std::string &thrown)
        : std::runtime_error(line_of(record) + ": " + thrown), record_(record)
    {
    }
    const gantry_error &record() const noexcept { return record_; }
    gantry_status status() const noexcept { return record_.status; }

  private:
    static std::string line_of(const gantry_error &record)
    {
        std::string line(gantry_error_format(&record, nullptr, 0), '\0');
        gantry_error_format(&record, line.data(), line.size() + 1);
        return line;
    }
    gantry_error record_;
};

namespace detail
{

inline gantry_error no_memory()
{
    gantry_error record{};
    record.status = GANTRY_E_NOMEM;
    return record;
}

/** Calls function(..., &err) and throws what it says. */
template <typename F> void must(F function)
{
    gantry_error record{};
    if (function(&record))
        throw error(record);
}

/** A text that the library made, which is freed. */
template <typename F> std::string text_of(F function)
{
    char *text = nullptr;
    std::size_t length = 0;
    must([&](gantry_error *err) { return function(&text, &length, err); });
    std::unique_ptr<char, void (*)(void *)> owner(text, gantry_free);
    return std::string(text, length);
}

template <typename T, void (*Free)(T *)> struct deleter {
    void operator()(T *object) const noexcept { Free(object); }
};
template <typename T, void (*Free)(T *)> using owned = std::unique_ptr<T, deleter<T, Free>>;

/* What a lambda lives in; the graph, and what is made from it, share the list. */
struct closure {
    virtual ~closure() = default;
};

class closures
{
  public:
    void add(std::unique_ptr<closure> one) { list_.push_back(std::move(one)); }
    /* The first that a lambda throws, from whatever thread, is kept until somebody asks. */
    void keep(std::exception_ptr thrown) noexcept
    {
        std::lock_guard<std::mutex> hold(lock_);
        thrown_ = thrown_ ? thrown_ : thrown;
    }
    std::exception_ptr take() noexcept
    {
        std::lock_guard<std::mutex> hold(lock_);
        return std::exchange(thrown_, nullptr);
    }

  private:
    std::vector<std::unique_ptr<closure>> list_;
    std::mutex lock_;
    std::exception_ptr thrown_;
};

/** As must; where a lambda threw, that is nested in the error, and its words are behind those of it. */
template <typename F> void must(closures &all, F function)
{
    gantry_error record{};
    if (!function(&record))
        return;
    std::exception_ptr thrown = record.status == GANTRY_E_KERNEL ? all.take() : nullptr;
    if (!thrown)
        throw error(record);
    try {
        std::rethrow_exception(thrown);
    } catch (const std::exception &e) {
        std::throw_with_nested(error(record, std::string("it threw: ") + e.what()));
    } catch (...) {
        std::throw_with_nested(error(record, "it threw something that is no std::exception"));
    }
}

} // namespace detail

/** The name of a thing, and the line of the program where it is given: mistakes are told with it. */
struct label {
    const char *name, *file;
    int line;
    label(const char *text, const char *in = __builtin_FILE(), int at = __builtin_LINE())
        : name(text), file(in), line(at)
    {
    }
    label(const std::string &text, const char *in = __builtin_FILE(), int at = __builtin_LINE())
        : name(text.c_str()), file(in), line(at)
    {
    }
};

/* ---- regions and buffers ---- */

/** Rows of one buffer of elements T, as gantry_region. */
template <typename T> struct region {
    gantry_region value;
    region halo(std::int64_t before, std::int64_t after) const { return { gantry_halo(value, before, after) }; }
    region halo(std::int64_t both) const { return halo(both, both); }
    operator gantry_region() const { return value; }
};

/** A buffer of a graph. It is a name, which is copied, and dies with the graph. */
template <typename T> class buffer
{
  public:
    using element = T;
    buffer(gantry_graph *graph, gantry_buffer value) : graph_(graph), value_(value) {}
    gantry_buffer get() const { return value_; }
    operator gantry_buffer() const { return value_; }
    operator region<T>() const { return all(); }

    buffer input() const { return set(GANTRY_INPUT); }
    buffer state() const { return set(GANTRY_STATE); }
    buffer constant() const { return set(GANTRY_CONST); }
    buffer temporary() const { return set(GANTRY_TEMP); }
    buffer output() const { return (gantry_buffer_output)(graph_, value_), *this; }
    buffer split(std::int64_t parts) const { return (gantry_buffer_split)(graph_, value_, parts), *this; }
    buffer split_auto(std::int64_t parts) const { return (gantry_buffer_split_auto)(graph_, value_, parts), *this; }
    buffer tiles(std::int64_t rows, std::int64_t columns) const
    {
        return (gantry_buffer_tiles)(graph_, value_, rows, columns), *this;
    }
    /** Every element, at first. */
    buffer init(double value) const { return (gantry_buffer_init_value)(graph_, value_, value), *this; }
    buffer init_uniform(std::uint64_t seed, double low = 0, double high = 1) const
    {
        return (gantry_buffer_init_uniform)(graph_, value_, seed, low, high), *this;
    }
    buffer init_iota() const { return (gantry_buffer_init_iota)(graph_, value_), *this; }
    buffer tolerance(double rtol, double atol) const
    {
        return (gantry_buffer_tolerance)(graph_, value_, rtol, atol), *this;
    }

    region<T> all() const { return { gantry_all(value_) }; }
    /** Part i of a split buffer. */
    region<T> operator[](std::int64_t i) const { return { gantry_part(value_, i) }; }
    region<T> parts(std::int64_t first, std::int64_t last) const { return { gantry_parts(value_, first, last) }; }
    region<T> rows(std::int64_t first, std::int64_t last) const { return { gantry_rows(value_, first, last) }; }
    region<T> tile(std::int64_t i, std::int64_t j) const { return { gantry_tile(value_, i, j) }; }

  private:
    buffer set(gantry_buffer_class cls) const { return (gantry_buffer_set_class)(graph_, value_, cls), *this; }
    gantry_graph *graph_;
    gantry_buffer value_;
};

/** A region and what a lambda does with it. `Element` is what its span has: const where it only reads. */
template <typename Element> struct accessed {
    gantry_region value;
    gantry_access access;
};
template <typename T> accessed<const T> read(region<T> r)
{
    return { r.value, GANTRY_READ };
}
template <typename T> accessed<const T> read(buffer<T> b)
{
    return read(b.all());
}
template <typename T> accessed<T> write(region<T> r)
{
    return { r.value, GANTRY_WRITE };
}
template <typename T> accessed<T> write(buffer<T> b)
{
    return write(b.all());
}
template <typename T> accessed<T> readwrite(region<T> r)
{
    return { r.value, GANTRY_READWRITE };
}
template <typename T> accessed<T> readwrite(buffer<T> b)
{
    return readwrite(b.all());
}
/** Adds to it: GANTRY_SUM, GANTRY_MIN, GANTRY_MAX or GANTRY_PROD. */
template <typename T> accessed<T> reduce(region<T> r, gantry_access op)
{
    return { r.value, op };
}
template <typename T> accessed<T> reduce(buffer<T> b, gantry_access op)
{
    return reduce(b.all(), op);
}

/* ---- nodes ---- */

/** A node of a graph: a name, like a buffer. */
class node
{
  public:
    node(gantry_graph *graph, gantry_node value) : graph_(graph), value_(value) {}
    gantry_node get() const { return value_; }
    operator gantry_node() const { return value_; }

    template <typename T> node arg(const char *name, region<T> r) const
    {
        return (gantry_node_arg)(graph_, value_, name, r.value), *this;
    }
    template <typename T> node arg(const char *name, buffer<T> b) const { return arg(name, b.all()); }
    /** With another access than the kernel's first one. */
    template <typename T> node arg(const char *name, region<T> r, gantry_access access) const
    {
        return (gantry_node_arg_as)(graph_, value_, name, r.value, access), *this;
    }
    template <typename T> node arg(const char *name, buffer<T> b, gantry_access access) const
    {
        return arg(name, b.all(), access);
    }
    node scalar(const char *name, double value) const
    {
        return (gantry_node_scalar)(graph_, value_, name, value), *this;
    }
    /** A scalar that run::set changes. */
    node dynamic(const char *name, double value) const
    {
        return (gantry_node_scalar_dynamic)(graph_, value_, name, value), *this;
    }
    template <typename Element> node access(accessed<Element> a) const
    {
        if (a.access == GANTRY_READ)
            (gantry_node_read)(graph_, value_, a.value);
        else if (a.access == GANTRY_WRITE)
            (gantry_node_write)(graph_, value_, a.value);
        else if (a.access == GANTRY_READWRITE)
            (gantry_node_readwrite)(graph_, value_, a.value);
        else
            (gantry_node_reduce)(graph_, value_, a.value, a.access);
        return *this;
    }
    node after(node other) const { return (gantry_node_after)(graph_, value_, other.value_), *this; }
    node on(const char *where) const { return (gantry_node_on)(graph_, value_, where), *this; }
    node with(node other) const { return (gantry_node_with)(graph_, value_, other.value_), *this; }
    node apart(node other) const { return (gantry_node_apart)(graph_, value_, other.value_), *this; }
    node priority(int value) const { return (gantry_node_priority)(graph_, value_, value), *this; }
    node cost(double flops, double bytes) const { return (gantry_node_cost)(graph_, value_, flops, bytes), *this; }
    node time(double us, const char *device = nullptr) const
    {
        return (gantry_node_time)(graph_, value_, device, us), *this;
    }

  private:
    gantry_graph *graph_;
    gantry_node value_;
};

namespace detail
{

/* Argument i of a launch as a span. Buffers are typed and so are accesses: the elements are what they are said to be.
 */
template <typename Element> span<Element> span_of(const gantry_launch *launch, std::int32_t i)
{
    const gantry_arg *a = gantry_launch_arg(launch, i);
    return { static_cast<Element *>(a->data), static_cast<std::size_t>(a->rows * a->row_bytes) / sizeof(Element) };
}

template <typename F, typename... Elements> struct call final : closure {
    F function;
    closures *all; /* which has this one */
    call(F f, closures *in) : function(std::move(f)), all(in) {}

    template <std::size_t... I> gantry_status invoke(const gantry_launch *launch, std::index_sequence<I...>)
    {
        constexpr bool wants_launch = std::is_invocable_v<F &, span<Elements>..., const gantry_launch &>;
        static_assert(wants_launch || std::is_invocable_v<F &, span<Elements>...>,
                      "a lambda takes a span for each region, span<const T> of those that are only read, and the "
                      "gantry_launch behind them if it wants");
        auto go = [&]() -> decltype(auto) {
            if constexpr (wants_launch)
                return function(span_of<Elements>(launch, static_cast<std::int32_t>(I))..., *launch);
            else
                return function(span_of<Elements>(launch, static_cast<std::int32_t>(I))...);
        };
        if constexpr (std::is_same_v<decltype(go()), gantry_status>)
            return go();
        else
            return go(), GANTRY_OK;
    }

    /* No exception may pass through the library, which is C. */
    static gantry_status enter(const gantry_launch *launch) noexcept
    {
        try {
            return static_cast<call *>(launch->user)->invoke(launch, std::index_sequence_for<Elements...>());
        } catch (const std::bad_alloc &) {
            return GANTRY_E_NOMEM;
        } catch (...) {
            static_cast<call *>(launch->user)->all->keep(std::current_exception());
            return GANTRY_E_KERNEL;
        }
    }
};

} // namespace detail

/* ---- graphs ---- */

/** What a file leaves open, as gantry_load_options. */
struct load_options {
    std::vector<std::string> params{}; /* "name=value" */
    bool allow_code = false, fuse = false;
    std::int32_t devices = 0;
};

class graph
{
  public:
    explicit graph(const std::string &name) : graph_(gantry_graph_new(name.c_str()))
    {
        if (!graph_)
            throw error(detail::no_memory());
    }
    static graph load(const std::string &path, const load_options &options = {})
    {
        std::vector<const char *> params;
        for (const std::string &param : options.params)
            params.push_back(param.c_str());
        gantry_load_options how = GANTRY_LOAD_OPTIONS_INIT;
        how.params = params.data();
        how.param_count = params.size();
        how.allow_code = options.allow_code;
        how.fuse = options.fuse;
        how.devices = options.devices;
        gantry_graph *made = nullptr;
        detail::must([&](gantry_error *err) { return gantry_graph_load(&made, path.c_str(), &how, err); });
        return graph(made);
    }
    graph(graph &&) noexcept = default;
    /* What was held before is freed with the other one, its lambdas last. */
    graph &operator=(graph &&other) noexcept
    {
        closures_.swap(other.closures_);
        graph_.swap(other.graph_);
        return *this;
    }
    gantry_graph *get() const { return graph_.get(); }

    /** An array of elements T, in C order. */
    template <typename T> gantry::buffer<T> buffer(label name, std::initializer_list<std::int64_t> shape)
    {
        return { get(), (gantry_graph_buffer)(at(name), name.name, dtype_of<T>::value, static_cast<int>(shape.size()),
                                              shape.begin()) };
    }
    /** One that a file has; its id is GANTRY_NONE where there is none of that name. */
    template <typename T> gantry::buffer<T> find_buffer(const char *name) const
    {
        return { get(), gantry_graph_find_buffer(get(), name) };
    }
    node find_node(const char *id) const { return { get(), gantry_graph_find_node(get(), id) }; }

    node kernel(label id, const char *name) { return { get(), (gantry_graph_kernel)(at(id), id.name, name) }; }
    node map(label id, const char *formulas) { return { get(), (gantry_graph_map)(at(id), id.name, formulas) }; }
    node reduce(label id, const char *formulas) { return { get(), (gantry_graph_reduce)(at(id), id.name, formulas) }; }
    node work(label id) { return { get(), (gantry_graph_work)(at(id), id.name) }; }
    template <typename T> node fill(label id, region<T> to, double value)
    {
        return { get(), (gantry_graph_fill)(at(id), id.name, to.value, value) };
    }
    template <typename T> node copy(label id, region<T> from, region<T> to)
    {
        return { get(), (gantry_graph_copy)(at(id), id.name, from.value, to.value) };
    }
    /** A function of the program, which gets a span for each region, in their order. It may be given a
     *  `const gantry_launch &` behind them, and may return a gantry_status. */
    template <typename F, typename... Elements> node launch(label id, F function, accessed<Elements>... regions)
    {
        return add(gantry_graph_launch, id, std::move(function), regions...);
    }
    /** The same, but always on the CPU. */
    template <typename F, typename... Elements> node host(label id, F function, accessed<Elements>... regions)
    {
        return add(gantry_graph_host, id, std::move(function), regions...);
    }

    /** What `body` adds is in a loop. */
    template <typename F> void repeat(std::int64_t count, F body)
    {
        (gantry_graph_repeat)(get(), count);
        body();
        (gantry_graph_repeat_end)(get());
    }
    /** In a loop: before each later iteration `prev` takes the value of `next`. */
    template <typename T> void carry(gantry::buffer<T> prev, gantry::buffer<T> next)
    {
        (gantry_graph_carry)(get(), prev, next);
    }

    void check()
    {
        detail::must([&](gantry_error *err) { return gantry_graph_check(get(), err); });
    }
    /** The normal form; the graph must have been checked. */
    std::string json() const
    {
        return detail::text_of([&](char **text, std::size_t *length, gantry_error *err) {
            return gantry_graph_json(get(), text, length, err);
        });
    }

  private:
    friend class schedule;
    explicit graph(gantry_graph *made) : graph_(made) {}
    gantry_graph *at(const label &where) const { return gantry_graph_at(get(), where.file, where.line); }

    template <typename F, typename... Elements>
    node add(gantry_node (*how)(gantry_graph *, const char *, gantry_kernel_fn, void *), const label &id, F function,
             accessed<Elements>... regions)
    {
        using made = detail::call<F, Elements...>;
        auto owner = std::make_unique<made>(std::move(function), closures_.get());
        node n(get(), how(at(id), id.name, made::enter, owner.get()));
        closures_->add(std::move(owner));
        (n.access(regions), ...);
        return n;
    }

    std::shared_ptr<detail::closures> closures_ = std::make_shared<detail::closures>();
    detail::owned<gantry_graph, gantry_graph_free> graph_;
};

/* ---- machines, schedules, runs ---- */

class machine
{
  public:
    /** This computer. */
    static machine detect()
    {
        return make([](gantry_machine **m, gantry_error *err) { return gantry_machine_detect(m, nullptr, err); });
    }
    /** So many devices of this CPU, a memory each. */
    static machine virtual_devices(int count)
    {
        return make([&](gantry_machine **m, gantry_error *err) { return gantry_machine_virtual(m, count, err); });
    }
    static machine load(const std::string &path)
    {
        return make([&](gantry_machine **m, gantry_error *err) { return gantry_machine_load(m, path.c_str(), err); });
    }
    /** "4": the first four devices; "id:gpu0,gpu3". */
    machine select(const std::string &devices) const
    {
        return make([&](gantry_machine **m, gantry_error *err) {
            return gantry_machine_select(m, get(), devices.c_str(), err);
        });
    }
    gantry_machine *get() const { return machine_.get(); }
    std::string name() const { return gantry_machine_name(get()); }
    std::size_t devices() const { return gantry_machine_device_count(get()); }

  private:
    explicit machine(gantry_machine *made) : machine_(made) {}
    template <typename F> static machine make(F function)
    {
        gantry_machine *made = nullptr;
        detail::must([&](gantry_error *err) { return function(&made, err); });
        return machine(made);
    }
    detail::owned<gantry_machine, gantry_machine_free> machine_;
};

class schedule
{
  public:
    /** Checks the graph, if it was not yet. */
    schedule(graph &g, const machine &m, const gantry_schedule_options &options = GANTRY_SCHEDULE_OPTIONS_INIT)
        : closures_(g.closures_)
    {
        gantry_schedule *made = nullptr;
        detail::must([&](gantry_error *err) { return gantry_schedule_new(&made, g.get(), m.get(), &options, err); });
        schedule_.reset(made);
    }
    schedule(schedule &&) noexcept = default;
    /* What was held before is freed with the other one, its lambdas last. */
    schedule &operator=(schedule &&other) noexcept
    {
        closures_.swap(other.closures_);
        schedule_.swap(other.schedule_);
        return *this;
    }
    gantry_schedule *get() const { return schedule_.get(); }
    gantry_schedule_summary summary() const
    {
        gantry_schedule_summary sum = GANTRY_SCHEDULE_SUMMARY_INIT;
        detail::must([&](gantry_error *err) { return gantry_schedule_summarize(get(), &sum, err); });
        return sum;
    }
    /** Index of the device that runs the node, or -1. */
    int device_of(node n) const { return gantry_schedule_device_of(get(), n); }
    std::string json() const
    {
        return detail::text_of([&](char **text, std::size_t *length, gantry_error *err) {
            return gantry_schedule_json(get(), text, length, err);
        });
    }
    /** A picture or a report. */
    std::string format(gantry_format format) const
    {
        return detail::text_of([&](char **text, std::size_t *length, gantry_error *err) {
            return gantry_schedule_export(get(), format, text, length, err);
        });
    }

  private:
    friend class run;
    std::shared_ptr<detail::closures> closures_;
    detail::owned<gantry_schedule, gantry_schedule_free> schedule_;
};

class run
{
  public:
    explicit run(const schedule &s, const gantry_run_options &options = GANTRY_RUN_OPTIONS_INIT)
        : closures_(s.closures_)
    {
        gantry_run *made = nullptr;
        detail::must([&](gantry_error *err) { return gantry_run_new(&made, s.get(), &options, err); });
        run_.reset(made);
    }
    run(run &&) noexcept = default;
    /* What was held before is freed with the other one, its lambdas last. */
    run &operator=(run &&other) noexcept
    {
        closures_.swap(other.closures_);
        run_.swap(other.run_);
        return *this;
    }
    gantry_run *get() const { return run_.get(); }

    /** What an input, state or constant begins with: the whole array, borrowed as gantry_run_bind says. */
    template <typename T> void bind(buffer<T> b, span<const std::common_type_t<T>> from)
    {
        detail::must(
            [&](gantry_error *err) { return gantry_run_bind(get(), b, from.data(), from.size() * sizeof(T), err); });
    }
    /** Where an output goes. */
    template <typename T> void bind_output(buffer<T> b, span<std::common_type_t<T>> to)
    {
        detail::must(
            [&](gantry_error *err) { return gantry_run_bind_output(get(), b, to.data(), to.size() * sizeof(T), err); });
    }
    /** A dynamic scalar, while idle. */
    void set(node n, const char *name, double value)
    {
        detail::must([&](gantry_error *err) { return gantry_run_set_scalar(get(), n, name, value, err); });
    }
    /** Returns a ticket at once. */
    std::uint64_t start()
    {
        std::uint64_t ticket = 0;
        detail::must(*closures_, [&](gantry_error *err) { return gantry_run_start(get(), &ticket, err); });
        return ticket;
    }
    void wait(std::uint64_t ticket)
    {
        detail::must(*closures_, [&](gantry_error *err) { return gantry_run_wait(get(), ticket, err); });
    }
    /** One start, until its end. */
    void operator()() { wait(start()); }
    /** An output of the start that was waited for last; borrowed until the next one. */
    template <typename T> span<const T> output(buffer<T> b) const
    {
        const void *data = nullptr;
        std::uint64_t bytes = 0;
        detail::must([&](gantry_error *err) { return gantry_run_output(get(), b, &data, &bytes, err); });
        return { static_cast<const T *>(data), static_cast<std::size_t>(bytes / sizeof(T)) };
    }

  private:
    std::shared_ptr<detail::closures> closures_;
    detail::owned<gantry_run, gantry_run_free> run_;
};

} // namespace gantry

#endif /* GANTRY_GANTRY_HPP */
