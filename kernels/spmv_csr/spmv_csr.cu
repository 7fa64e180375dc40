/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block has some rows, as many as have about WINDOW entries. Its threads read the entries of all of them side by
 * side, WINDOW at a time, and leave the products in shared memory; then a thread per row goes on with its sum. So memory
 * is read in order, however long rows are, and sums are taken in the host's order: results are the same to the bit,
 * which a tree of partial sums per row would not give.
 */
#include "kernels/begin.cuh"
#include "kernels/shared.cuh"
#include "kernels/status.cuh"

enum { THREADS = 256, WINDOW = 1024 }; /* the launcher knows them as well */

/* Where rows are short one number of 16 is left out, so that threads whose rows begin 16 or any other power of two apart
 * read other banks. Few threads have a long row, and nothing to find the place of a number is faster for them. */
enum { APART = 16, ROOM = WINDOW + WINDOW / APART, AT_ONCE = 4, MANY_ROWS = 16 };

template <bool spread> static __device__ inline int place_of(int i)
{
    return spread ? i + i / APART : i;
}

template <typename Index, typename T> struct matrix {
    const Index *__restrict__ row, *__restrict__ column;
    const T *__restrict__ value, *__restrict__ vector;
    int64_t entries, columns;
};

/* Entries from `begin` to `end`, one after the other. False if one is not there. */
template <typename Index, typename T>
static __device__ bool add_alone(const matrix<Index, T> &m, int64_t begin, int64_t end, double *total)
{
    for (int64_t k = begin; k < end; k++) {
        int64_t c = k >= 0 && k < m.entries ? (int64_t)m.column[k] : -1;
        if (c < 0 || c >= m.columns)
            return false;
        *total += (double)m.value[k] * (double)m.vector[c];
    }
    return true;
}

/* `count` products from entry `at` on, which are there. No load waits for the test of another: what is behind the last
 * entry, or has no column, is replaced by something that is there. */
template <bool spread, typename Index, typename T>
static __device__ inline void fill(const matrix<Index, T> &m, int64_t at, int count, double (&window)[ROOM],
                                   int *wrong)
{
    enum { EACH = WINDOW / THREADS };
    int64_t column[EACH];
    bool bad = false;
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        int i = threadIdx.x + j * THREADS;
        column[j] = (int64_t)m.column[at + (i < count ? i : 0)];
    }
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        int i = threadIdx.x + j * THREADS;
        bool there = column[j] >= 0 && column[j] < m.columns;
        bad = bad || (i < count && !there);
        window[place_of<spread>(i)] = (double)m.value[at + (i < count ? i : 0)] * (double)m.vector[there ? column[j] : 0];
    }
    if (bad)
        *wrong = 1;
}

template <bool spread, typename Index, typename T>
static __device__ void spmv(const matrix<Index, T> &m, T *__restrict__ out, int64_t rows, int32_t rows_of_block,
                            int32_t *status)
{
    typedef double products[ROOM];
    GY_SHARED(products, window);
    __shared__ int wrong;
    int64_t first = (int64_t)blockIdx.x * rows_of_block, r = first + threadIdx.x;
    int64_t last = first + rows_of_block < rows ? first + rows_of_block : rows;
    int64_t low = (int64_t)m.row[first], high = (int64_t)m.row[last];
    bool mine = r < last, good = true;
    int64_t begin = mine ? (int64_t)m.row[r] : 0, end = mine ? (int64_t)m.row[r + 1] : 0;
    double total = 0;
    low = low < 0 ? 0 : low;
    high = high < m.entries ? high : m.entries;
    high = m.columns > 0 ? high : low;
    if (begin < end && (begin < low || end > high)) { /* rows that do not follow each other, or have no such entries */
        good = add_alone(m, begin, end, &total);
        begin = end;
    }
    for (int64_t at = low; at < high; at += WINDOW) {
        int count = high - at < WINDOW ? (int)(high - at) : WINDOW;
        __syncthreads(); /* the window before has been read */
        if (threadIdx.x == 0)
            wrong = 0;
        __syncthreads();
        fill<spread>(m, at, count, window, &wrong);
        __syncthreads();
        int from = begin <= at ? 0 : begin >= at + count ? count : (int)(begin - at);
        int to = end <= at ? 0 : end >= at + count ? count : (int)(end - at);
        if (wrong) {
            double unused = 0;
            good = good && add_alone(m, at + from, at + to, &unused);
        }
        for (; spread && from + AT_ONCE <= to; from += AT_ONCE) {
            double product[AT_ONCE];
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++)
                product[i] = window[place_of<spread>(from + i)];
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++)
                total += product[i];
        }
        for (; from < to; from++)
            total += window[place_of<spread>(from)];
    }
    if (mine)
        out[r] = (T)total;
    if (!good)
        gy_tell_least(status, (int32_t)(r + 1));
}

#define KERNEL(name, index, type)                                                                                      \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        spmv_csr##name(const index *row, const index *column, const type *value, const type *vector, type *out,        \
                       int64_t rows, int64_t entries, int64_t columns, int32_t rows_of_block, int32_t *status)         \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        const matrix<index, type> m = { row, column, value, vector, entries, columns };                                \
        if (rows_of_block >= MANY_ROWS)                                                                                \
            spmv<true>(m, out, rows, rows_of_block, status);                                                           \
        else                                                                                                           \
            spmv<false>(m, out, rows, rows_of_block, status);                                                          \
    }
KERNEL(_i32_f32, int32_t, float)
KERNEL(_i32_f64, int32_t, double)
KERNEL(_i64_f32, int64_t, float)
KERNEL(_i64_f64, int64_t, double)
