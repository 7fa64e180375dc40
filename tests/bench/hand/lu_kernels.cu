/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of lu.json: LU without pivoting of one n x n tile, WIDTH columns at a time. Each step is three launches: the
 * WIDTH x WIDTH block on the diagonal, the rows below and columns right of it, and the update of the rest. */
enum { WIDTH = 32, DOWN = 8, EDGES = 64 };

template <typename T> static __device__ inline void diagonal(T *a, long long at, long long n)
{
    __shared__ T t[WIDTH][WIDTH + 1];
    int x = threadIdx.x, y = threadIdx.y;
    bool inside = at + x < n && at + y < n;
    t[y][x] = inside ? a[(at + y) * n + at + x] : (T)(x == y);
    for (int k = 0; k < WIDTH; k++) {
        __syncthreads();
        if (y > k && x == k)
            t[y][k] /= t[k][k];
        __syncthreads();
        if (y > k && x > k)
            t[y][x] -= t[y][k] * t[k][x];
    }
    if (inside)
        a[(at + y) * n + at + x] = t[y][x];
}

/* A thread has a row below the block, which it divides by U, or a column right of it, by L. */
template <typename T> static __device__ inline void edges(T *a, long long at, long long n)
{
    __shared__ T t[WIDTH][WIDTH];
    T line[WIDTH];
    long long left = n - at - WIDTH, i = blockIdx.x * (long long)EDGES + threadIdx.x;
    for (int e = threadIdx.x; e < WIDTH * WIDTH; e += EDGES)
        t[e / WIDTH][e % WIDTH] = a[(at + e / WIDTH) * n + at + e % WIDTH];
    __syncthreads();
    if (i >= 2 * left)
        return;
    bool below = i < left;
    T *first = below ? a + (at + WIDTH + i) * n + at : a + at * n + at + WIDTH + i - left;
    long long stride = below ? 1 : n;
#pragma unroll
    for (int k = 0; k < WIDTH; k++) {
        T sum = first[k * stride];
#pragma unroll
        for (int j = 0; j < k; j++)
            sum -= line[j] * (below ? t[j][k] : t[k][j]);
        line[k] = below ? sum / t[k][k] : sum;
        first[k * stride] = line[k];
    }
}

template <typename T> static __device__ inline void rest(T *a, long long at, long long n)
{
    __shared__ T l[WIDTH][WIDTH + 1], u[WIDTH][WIDTH + 1];
    long long row = at + WIDTH + blockIdx.y * (long long)WIDTH, column = at + WIDTH + blockIdx.x * (long long)WIDTH;
    int x = threadIdx.x;
    for (int y = threadIdx.y; y < WIDTH; y += DOWN) {
        l[y][x] = row + y < n ? a[(row + y) * n + at + x] : (T)0;
        u[y][x] = column + x < n ? a[(at + y) * n + column + x] : (T)0;
    }
    __syncthreads();
    for (int y = threadIdx.y; y < WIDTH; y += DOWN) {
        T sum = 0;
#pragma unroll
        for (int k = 0; k < WIDTH; k++)
            sum += l[y][k] * u[k][x];
        if (row + y < n && column + x < n)
            a[(row + y) * n + column + x] -= sum;
    }
}

/* L with its ones, and U transposed: both are lower triangles, which trsm takes. */
template <typename T> static __device__ inline void split(const T *a, T *l, T *v, long long n)
{
    __shared__ T t[WIDTH][WIDTH + 1];
    long long row = blockIdx.y * (long long)WIDTH, column = blockIdx.x * (long long)WIDTH;
    int x = threadIdx.x;
    for (int y = threadIdx.y; y < WIDTH; y += DOWN) {
        long long i = row + y, j = column + x;
        if (i >= n || j >= n)
            continue;
        t[y][x] = i <= j ? a[i * n + j] : (T)0;
        l[i * n + j] = i > j ? a[i * n + j] : (T)(i == j);
    }
    __syncthreads();
    for (int y = threadIdx.y; y < WIDTH; y += DOWN)
        if (column + y < n && row + x < n)
            v[(column + y) * n + row + x] = t[x][y];
}

#define KERNELS(name, type)                                                                                            \
    extern "C" __global__ void lu_diagonal##name(type *a, long long at, long long n)                                   \
    {                                                                                                                  \
        diagonal(a, at, n);                                                                                            \
    }                                                                                                                  \
    extern "C" __global__ void lu_edges##name(type *a, long long at, long long n)                                      \
    {                                                                                                                  \
        edges(a, at, n);                                                                                               \
    }                                                                                                                  \
    extern "C" __global__ void lu_rest##name(type *a, long long at, long long n)                                       \
    {                                                                                                                  \
        rest(a, at, n);                                                                                                \
    }                                                                                                                  \
    extern "C" __global__ void lu_split##name(const type *a, type *l, type *v, long long n)                            \
    {                                                                                                                  \
        split(a, l, v, n);                                                                                             \
    }
KERNELS(_f64, double)
KERNELS(_f32, float)
