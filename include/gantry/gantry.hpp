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

/** As text_of, of functions that give no length; "" where they have nothing to say. */
template <typename F> std::string string_of(F function)
{
    char *text = nullptr;
    must([&](gantry_error *err) { return function(&text, err); });
    std::unique_ptr<char, void (*)(void *)> owner(text, gantry_free);
    return text ? std::string(text) : std::string();
}

inline std::vector<const char *> words(const std::vector<std::string> &all)
{
    std::vector<const char *> list;
    for (const std::string &one : all)
        list.push_back(one.c_str());
    return list;
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
    /** So many tiles along each axis. */
    buffer tiles_by_axis(std::initializer_list<std::int64_t> tiles) const
    {
        return (gantry_buffer_tiles_by_axis)(graph_, value_, static_cast<int>(tiles.size()), tiles.begin()), *this;
    }
    /** Every element, at first. */
    buffer init(double value) const { return (gantry_buffer_init_value)(graph_, value_, value), *this; }
    buffer init_uniform(std::uint64_t seed, double low = 0, double high = 1) const
    {
        return (gantry_buffer_init_uniform)(graph_, value_, seed, low, high), *this;
    }
    buffer init_iota() const { return (gantry_buffer_init_iota)(graph_, value_), *this; }
    buffer init_normal(std::uint64_t seed, double mean = 0, double deviation = 1) const
    {
        return (gantry_buffer_init_normal)(graph_, value_, seed, mean, deviation), *this;
    }
    /** A symmetric positive definite matrix. */
    buffer init_spd(std::uint64_t seed) const { return (gantry_buffer_init_spd)(graph_, value_, seed), *this; }
    buffer init_npy(const std::string &path) const
    {
        return (gantry_buffer_init_npy)(graph_, value_, path.c_str()), *this;
    }
    buffer init_raw(const std::string &path) const
    {
        return (gantry_buffer_init_raw)(graph_, value_, path.c_str()), *this;
    }
    buffer init_with(const gantry_contents &contents) const
    {
        return (gantry_buffer_init_with)(graph_, value_, &contents), *this;
    }
    /** The program keeps it in the memory of this device. */
    buffer external(const char *memory) const { return (gantry_buffer_external)(graph_, value_, memory), *this; }
    /** Where results are compared, NaN is equal to NaN. */
    buffer equal_nan() const { return (gantry_buffer_equal_nan)(graph_, value_), *this; }
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
    /** A number as graph files have it: "it * 2 + 1". */
    node scalar(const char *name, const char *expression) const
    {
        return (gantry_node_scalar_expr)(graph_, value_, name, expression), *this;
    }
    /** It runs where this element is not 0. */
    template <typename T> node when(region<T> flag) const
    {
        return (gantry_node_when)(graph_, value_, flag.value), *this;
    }
    template <typename T> node when(buffer<T> flag) const { return when(flag.all()); }
    /** Of a collective. */
    node algorithm(const char *name) const { return (gantry_node_algorithm)(graph_, value_, name), *this; }
    node on_ranks(const std::vector<const char *> &where) const
    {
        return (gantry_node_on_ranks)(graph_, value_, where.size(), where.data()), *this;
    }
    node share(double part) const { return (gantry_node_share)(graph_, value_, part), *this; }
    node scratch(std::int64_t bytes) const { return (gantry_node_scratch)(graph_, value_, bytes), *this; }
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
        return read(options, [&](gantry_graph **made, const gantry_load_options *how, gantry_error *err) {
            return gantry_graph_load(made, path.c_str(), how, err);
        });
    }
    /** The text of a file. Those that it names are in `folder`. */
    static graph parse(const std::string &text, const std::string &name = "graph", const std::string &folder = ".",
                       const load_options &options = {})
    {
        return read(options, [&](gantry_graph **made, const gantry_load_options *how, gantry_error *err) {
            return gantry_graph_parse(made, text.data(), text.size(), name.c_str(), folder.c_str(), how, err);
        });
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

    template <typename T>
    node fill_uniform(label id, region<T> to, std::uint64_t seed, double low = 0, double high = 1)
    {
        return { get(), (gantry_graph_fill_uniform)(at(id), id.name, to.value, seed, low, high) };
    }
    template <typename T> node fill_iota(label id, region<T> to)
    {
        return { get(), (gantry_graph_fill_iota)(at(id), id.name, to.value) };
    }
    template <typename T> node fill_with(label id, region<T> to, const gantry_contents &contents)
    {
        return { get(), (gantry_graph_fill_with)(at(id), id.name, to.value, &contents) };
    }
    /** A region of each rank; `op` where it reduces. */
    node collective(label id, gantry_collective kind, gantry_access op, const std::vector<gantry_region> &in,
                    const std::vector<gantry_region> &out, int root = 0)
    {
        return { get(), (gantry_graph_collective)(at(id), id.name, kind, op, in.size(), in.data(), out.size(),
                                                  out.data(), root) };
    }
    /** The nodes of another graph file. */
    void use(label id, const std::string &path, const gantry_use_options &options = GANTRY_USE_OPTIONS_INIT)
    {
        (gantry_graph_use)(at(id), id.name, path.c_str(), &options);
    }
    /** A kernel of the program, by its manifest, which is copied. */
    void add_kernel(const gantry_kernel &kernel) { (gantry_graph_add_kernel)(get(), &kernel); }
    void add_cuda_kernel(const gantry_kernel &kernel, const gantry_cuda_code &code)
    {
        (gantry_graph_add_cuda_kernel)(get(), &kernel, &code);
    }
    /** How many nodes, buffers and parts it may have. */
    void limit(std::int64_t most) { (gantry_graph_limit)(get(), most); }
    /** Neighbouring maps become one when it is checked. */
    void fuse() { (gantry_graph_fuse)(get()); }

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

    /** In a loop: what scalars call its iteration. */
    void index(const char *name) { (gantry_graph_index)(get(), name); }
    /** In a loop: it ends after an iteration, of each `every`, where the flag is not 0. */
    template <typename T> void until(gantry::buffer<T> flag, std::int64_t every = 1)
    {
        (gantry_graph_until)(get(), flag, every);
    }

    void check()
    {
        detail::must([&](gantry_error *err) { return gantry_graph_check(get(), err); });
    }
    /** That files which it reads are there; `bound`: names of buffers that will be bound. */
    void check_files(const std::vector<std::string> &bound = {}) const
    {
        const std::vector<const char *> names = detail::words(bound);
        detail::must([&](gantry_error *err) {
            return gantry_graph_check_files(get(), names.data(), names.size(), err);
        });
    }
    /** That nothing else has to be bound. */
    void check_inputs(const std::vector<std::string> &bound = {}) const
    {
        const std::vector<const char *> names = detail::words(bound);
        detail::must([&](gantry_error *err) {
            return gantry_graph_check_inputs(get(), names.data(), names.size(), err);
        });
    }
    /** Of a graph that was checked. */
    std::vector<gantry_error> warnings() const
    {
        std::vector<gantry_error> all;
        for (gantry_error one{}; gantry_graph_warning(get(), all.size(), &one);)
            all.push_back(one);
        return all;
    }
    void save(const std::string &path) const
    {
        detail::must([&](gantry_error *err) { return gantry_graph_save(get(), path.c_str(), err); });
    }
    /** A picture of the graph alone. */
    std::string format(gantry_format format) const
    {
        return detail::text_of([&](char **text, std::size_t *length, gantry_error *err) {
            return gantry_graph_export(get(), format, text, length, err);
        });
    }
    std::string draw(const gantry_drawing_options &options) const
    {
        return detail::text_of([&](char **text, std::size_t *length, gantry_error *err) {
            return gantry_graph_draw(get(), &options, text, length, err);
        });
    }
    std::string name() const { return gantry_graph_name(get()); }
    std::size_t buffers() const { return gantry_graph_buffer_count(get()); }
    std::size_t nodes() const { return gantry_graph_node_count(get()); }
    std::string id(node n) const
    {
        const char *text = gantry_graph_node_id(get(), n);
        return text ? text : "";
    }
    gantry_buffer_info info(gantry_buffer b) const
    {
        gantry_buffer_info about = GANTRY_BUFFER_INFO_INIT;
        detail::must([&](gantry_error *err) { return gantry_graph_buffer_info(get(), b, &about, err); });
        return about;
    }

    /** The backward pass, and the step of an optimiser. */
    void differentiate(const gantry_train_options &options)
    {
        detail::must([&](gantry_error *err) { return gantry_graph_differentiate(get(), &options, err); });
    }
    void parallelize(const gantry_strategy &strategy, const gantry_train_options &options)
    {
        detail::must([&](gantry_error *err) { return gantry_graph_parallelize(get(), &strategy, &options, err); });
    }
    template <typename T> gantry::buffer<T> loss() const { return { get(), gantry_graph_loss(get()) }; }
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
    template <typename F> static graph read(const load_options &options, F function)
    {
        const std::vector<const char *> params = detail::words(options.params);
        gantry_load_options how = GANTRY_LOAD_OPTIONS_INIT;
        how.params = params.data();
        how.param_count = params.size();
        how.allow_code = options.allow_code;
        how.fuse = options.fuse;
        how.devices = options.devices;
        gantry_graph *made = nullptr;
        detail::must([&](gantry_error *err) { return function(&made, &how, err); });
        return graph(made);
    }
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
    static machine parse(const std::string &text, const std::string &name = "machine")
    {
        return make([&](gantry_machine **m, gantry_error *err) {
            return gantry_machine_parse(m, text.data(), text.size(), name.c_str(), err);
        });
    }
    /** The one that a graph file names. */
    static machine of(const graph &g)
    {
        return make([&](gantry_machine **m, gantry_error *err) { return gantry_graph_machine(m, g.get(), err); });
    }
    /** One machine of several computers. */
    static machine join(const std::vector<const machine *> &nodes,
                        const gantry_join_options &options = GANTRY_JOIN_OPTIONS_INIT)
    {
        std::vector<const gantry_machine *> list;
        for (const machine *one : nodes)
            list.push_back(one->get());
        return make([&](gantry_machine **m, gantry_error *err) {
            return gantry_machine_join(m, list.data(), list.size(), &options, err);
        });
    }
    /** It, as it was detected, with what the cache knows of it. */
    machine recall() const
    {
        return make([&](gantry_machine **m, gantry_error *err) {
            char *text = nullptr;
            gantry_status status = gantry_machine_recall(m, get(), &text, err);
            gantry_free(text);
            return status;
        });
    }
    /** The calibration goes to the cache of computers like `here`. */
    void keep(const machine &here) const
    {
        detail::must([&](gantry_error *err) { return gantry_machine_keep(get(), here.get(), err); });
    }
    /** Its GPUs, measured. */
    machine calibrate(const gantry_calibrate_options &options = GANTRY_CALIBRATE_OPTIONS_INIT) const
    {
        return make([&](gantry_machine **m, gantry_error *err) {
            return gantry_machine_calibrate(m, get(), &options, err);
        });
    }
    /** Its devices over so many ranks. */
    machine spread(std::size_t ranks) const
    {
        return make([&](gantry_machine **m, gantry_error *err) {
            return gantry_machine_spread(m, get(), ranks, err);
        });
    }
    gantry_machine *get() const { return machine_.get(); }
    std::string name() const { return gantry_machine_name(get()); }
    std::size_t devices() const { return gantry_machine_device_count(get()); }
    std::size_t memories() const { return gantry_machine_memory_count(get()); }
    std::size_t ranks() const { return gantry_machine_rank_count(get()); }
    /** Devices that run nodes: GPUs where there are some. */
    std::size_t workers() const { return gantry_machine_worker_count(get()); }
    bool has_calibration() const { return gantry_machine_has_calibration(get()) != 0; }
    gantry_device_info device(std::size_t i) const
    {
        gantry_device_info about = GANTRY_DEVICE_INFO_INIT;
        detail::must([&](gantry_error *err) { return gantry_machine_device(get(), i, &about, err); });
        return about;
    }
    gantry_memory_info memory(std::size_t i) const
    {
        gantry_memory_info about = GANTRY_MEMORY_INFO_INIT;
        detail::must([&](gantry_error *err) { return gantry_machine_memory(get(), i, &about, err); });
        return about;
    }
    double copy_us(std::size_t from, std::size_t to, std::uint64_t bytes) const
    {
        return gantry_machine_copy_us(get(), from, to, bytes);
    }
    std::string json() const
    {
        return detail::text_of([&](char **text, std::size_t *length, gantry_error *err) {
            return gantry_machine_json(get(), text, length, err);
        });
    }
    void save(const std::string &path) const
    {
        detail::must([&](gantry_error *err) { return gantry_machine_save(get(), path.c_str(), err); });
    }
    /** Whatever of it is no longer so on the computer `here`; "": nothing. */
    std::string stale(const machine &here) const
    {
        return detail::string_of(
            [&](char **text, gantry_error *err) { return gantry_machine_stale(get(), here.get(), text, err); });
    }

  private:
    friend class run;
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
    schedule(graph &g, const gantry::machine &m, const gantry_schedule_options &options = GANTRY_SCHEDULE_OPTIONS_INIT)
        : closures_(g.closures_)
    {
        gantry_schedule *made = nullptr;
        detail::must([&](gantry_error *err) { return gantry_schedule_new(&made, g.get(), m.get(), &options, err); });
        schedule_.reset(made);
    }
    /** One that was saved, for the graph that it was made for. */
    static schedule load(const std::string &path, graph &g)
    {
        gantry_schedule *made = nullptr;
        detail::must([&](gantry_error *err) { return gantry_schedule_load(&made, path.c_str(), err); });
        return attached(made, g);
    }
    static schedule parse(const std::string &text, graph &g, const std::string &name = "schedule")
    {
        gantry_schedule *made = nullptr;
        detail::must([&](gantry_error *err) {
            return gantry_schedule_parse(&made, text.data(), text.size(), name.c_str(), err);
        });
        return attached(made, g);
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

    /** Proves it right for the graph. */
    void check(graph &g) const
    {
        detail::must([&](gantry_error *err) { return gantry_schedule_check(get(), g.get(), err); });
    }
    void check_ranks() const
    {
        detail::must([&](gantry_error *err) { return gantry_schedule_check_ranks(get(), err); });
    }
    void save(const std::string &path) const
    {
        detail::must([&](gantry_error *err) { return gantry_schedule_save(get(), path.c_str(), err); });
    }
    std::string policy() const { return gantry_schedule_policy(get()); }
    std::uint64_t peak_bytes(std::size_t memory) const { return gantry_schedule_peak_bytes(get(), memory); }
    /** The schedule's; nobody frees it. */
    const gantry_machine *machine() const { return gantry_schedule_machine(get()); }
    std::size_t phases() const { return gantry_schedule_phase_count(get()); }
    /** The schedule of a phase is that of this one. */
    const gantry_schedule *phase(std::size_t i, gantry_phase_info *info = nullptr) const
    {
        return gantry_schedule_phase(get(), i, info);
    }
    gantry_rank_info rank(std::size_t i) const
    {
        gantry_rank_info about = GANTRY_RANK_INFO_INIT;
        detail::must([&](gantry_error *err) { return gantry_schedule_rank(get(), i, &about, err); });
        return about;
    }
    /** Why a node is where it is. */
    std::string explain(node n) const
    {
        return detail::text_of([&](char **text, std::size_t *length, gantry_error *err) {
            return gantry_schedule_explain(get(), n, text, length, err);
        });
    }
    /** A page, with what was measured: the text of run::trace. */
    std::string page(const std::string &trace, std::size_t phase = 0) const
    {
        return detail::text_of([&](char **text, std::size_t *length, gantry_error *err) {
            return gantry_schedule_page(get(), phase, trace.data(), trace.size(), text, length, err);
        });
    }
    /** Differences from this one to another. */
    std::string diff(const schedule &other, gantry_format format = GANTRY_TEXT) const
    {
        return detail::text_of([&](char **text, std::size_t *length, gantry_error *err) {
            return gantry_schedule_diff(get(), other.get(), format, text, length, err);
        });
    }
    /** It, with some nodes on other devices. */
    schedule what_if(const std::vector<gantry_move> &moves) const
    {
        gantry_schedule *made = nullptr;
        detail::must([&](gantry_error *err) {
            return gantry_schedule_what_if(&made, get(), nullptr, moves.data(), moves.size(), err);
        });
        return schedule(made, closures_);
    }

  private:
    friend class run;
    schedule(gantry_schedule *made, std::shared_ptr<detail::closures> closures)
        : closures_(std::move(closures)), schedule_(made)
    {
    }
    static schedule attached(gantry_schedule *made, graph &g)
    {
        schedule s(made, g.closures_);
        detail::must([&](gantry_error *err) { return gantry_schedule_attach(made, g.get(), err); });
        return s;
    }
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
    void bind_file(gantry_buffer b, const std::string &path)
    {
        detail::must([&](gantry_error *err) { return gantry_run_bind_file(get(), b, path.c_str(), err); });
    }
    /** What fills an input anew for each start; `user` is handed to it. */
    void feed(gantry_buffer b, gantry_feed_fn fill, void *user = nullptr)
    {
        detail::must([&](gantry_error *err) { return gantry_run_feed(get(), b, fill, user, err); });
    }
    /** An array of each of these files; returns how many there are. */
    std::uint64_t feed_files(gantry_buffer b, const std::string &pattern, gantry_feed order)
    {
        std::uint64_t arrays = 0;
        detail::must([&](gantry_error *err) {
            return gantry_run_feed_files(get(), b, pattern.c_str(), order, &arrays, err);
        });
        return arrays;
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
    /** Behind what a CUDA stream of the program has, which then waits for it. */
    std::uint64_t start_on(void *stream)
    {
        std::uint64_t ticket = 0;
        detail::must(*closures_, [&](gantry_error *err) { return gantry_run_start_on(get(), stream, &ticket, err); });
        return ticket;
    }
    /** One start, until its end. */
    void operator()() { wait(start()); }
    /** So many, one after the other. */
    void repeat(std::uint64_t starts)
    {
        detail::must(*closures_, [&](gantry_error *err) { return gantry_run_repeat(get(), starts, err); });
    }
    /** From any thread. */
    void cancel() noexcept { gantry_run_cancel(get()); }
    /** An output of the start that was waited for last; borrowed until the next one. */
    template <typename T> span<const T> output(buffer<T> b) const
    {
        const void *data = nullptr;
        std::uint64_t bytes = 0;
        detail::must([&](gantry_error *err) { return gantry_run_output(get(), b, &data, &bytes, err); });
        return { static_cast<const T *>(data), static_cast<std::size_t>(bytes / sizeof(T)) };
    }

    /** What a state holds now. */
    template <typename T> void state(buffer<T> b, span<std::common_type_t<T>> to) const
    {
        detail::must(
            [&](gantry_error *err) { return gantry_run_state(get(), b, to.data(), to.size() * sizeof(T), err); });
    }
    void save(gantry_buffer b, const std::string &path) const
    {
        detail::must([&](gantry_error *err) { return gantry_run_save(get(), b, path.c_str(), err); });
    }
    std::uint64_t hash(gantry_buffer b) const
    {
        std::uint64_t value = 0;
        detail::must([&](gantry_error *err) { return gantry_run_hash(get(), b, &value, err); });
        return value;
    }
    /** Outputs that were left where they are computed go to rank 0. */
    void collect()
    {
        detail::must([&](gantry_error *err) { return gantry_run_collect(get(), err); });
    }
    gantry_run_info info() const
    {
        gantry_run_info about = GANTRY_RUN_INFO_INIT;
        detail::must([&](gantry_error *err) { return gantry_run_get_info(get(), &about, err); });
        return about;
    }
    /** Times of the ops of the last start, if the options record them. */
    std::string trace() const
    {
        return detail::text_of([&](char **text, std::size_t *length, gantry_error *err) {
            return gantry_run_trace(get(), text, length, err);
        });
    }
    void checkpoint(const std::string &folder)
    {
        detail::must([&](gantry_error *err) { return gantry_run_checkpoint(get(), folder.c_str(), err); });
    }
    gantry_resumed resume(const std::string &folder)
    {
        gantry_resumed about = GANTRY_RESUMED_INIT;
        detail::must([&](gantry_error *err) { return gantry_run_resume(get(), folder.c_str(), &about, err); });
        return about;
    }
    /** Goes on where another run has ended, which is idle. */
    void take_over(run &from)
    {
        detail::must([&](gantry_error *err) { return gantry_run_take_over(get(), from.get(), err); });
    }
    /** Keeps the times of the last start. */
    void sample()
    {
        detail::must([&](gantry_error *err) { return gantry_run_sample(get(), err); });
    }
    /** The machine with the times that were kept. */
    machine calibrated() const
    {
        return machine::make(
            [&](gantry_machine **m, gantry_error *err) { return gantry_run_calibrated(m, get(), err); });
    }
    void keep(const machine &here) const
    {
        detail::must([&](gantry_error *err) { return gantry_run_keep(get(), here.get(), err); });
    }

  private:
    std::shared_ptr<detail::closures> closures_;
    detail::owned<gantry_run, gantry_run_free> run_;
};

/* ---- what the library has ---- */

inline std::string version()
{
    return gantry_version();
}
inline gantry_strategy strategy(const std::string &text)
{
    gantry_strategy made = GANTRY_STRATEGY_INIT;
    detail::must([&](gantry_error *err) { return gantry_strategy_parse(&made, text.c_str(), err); });
    return made;
}

} // namespace gantry

#endif /* GANTRY_GANTRY_HPP */
