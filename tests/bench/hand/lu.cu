// SPDX-License-Identifier: Apache-2.0
// Tiled LU without pivoting of a matrix whose diagonal dominates: getrf, trsm and gemm of tiles, over S streams of each
// GPU; beside it cuSOLVER's of the whole.
//   lu [--gpus 1] [--dtype f64|f32] [--n 8192] [--nt 8] [--starts 7] [--seconds 100]
#include "tiles.h"

template <typename T> static void below(Tiles<T> &a, long i, long k)
{
    int g = a.owner(i, k), lane = i == k + 1 ? 0 : a.next_lane();
    a.need(g, lane, k, k);
    a.need(g, lane, i, k);
    trsm(a.blas(g, lane), CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, a.nb, a.nb,
         a.at(g, k, k), a.nb, a.at(g, i, k), a.nb);
    a.made(lane, i, k);
    a.send(i, k);
}

template <typename T> static void right(Tiles<T> &a, long j, long k)
{
    int g = a.owner(k, j), lane = j == k + 1 ? 0 : a.next_lane();
    a.need(g, lane, k, k);
    a.need(g, lane, k, j);
    trsm(a.blas(g, lane), CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, a.nb, a.nb,
         a.at(g, k, k), a.nb, a.at(g, k, j), a.nb);
    a.made(lane, k, j);
}

template <typename T> static void update(Tiles<T> &a, long i, long j, long k)
{
    int g = a.owner(i, j), lane = i == k + 1 && j == k + 1 ? 0 : a.next_lane();
    a.need(g, lane, i, k);
    a.need(g, lane, k, j);
    a.need(g, lane, i, j);
    gemm(a.blas(g, lane), false, false, a.nb, a.nb, a.nb, -1, a.at(g, i, k), a.nb, a.at(g, k, j), a.nb, 1,
         a.at(g, i, j), a.nb);
    a.made(lane, i, j);
}

template <typename T> static void queue(Tiles<T> &a)
{
    a.begin();
    for (long k = 0; k < a.nt; k++) {
        int g = a.owner(k, k);
        a.need(g, 0, k, k);
        a.factor(g).getrf(a.at(g, k, k));
        a.made(0, k, k);
        a.send(k, k);
        for (long i = k + 1; i < a.nt; i++) {
            below(a, i, k);
            right(a, i, k);
        }
        for (long j = k + 1; j < a.nt; j++)
            for (long i = k + 1; i < a.nt; i++)
                update(a, i, j, k);
    }
}

typedef std::function<std::vector<double>(long)> line_of;

// Entries of L U against the matrix, relative to its diagonal.
static double error_of(long n, long nb, const line_of &row, const line_of &column)
{
    double worst = 0;
    std::vector<long> places = places_in(n, nb);
    std::vector<std::vector<double>> lower, upper;
    for (long i : places) {
        lower.push_back(row(i));
        upper.push_back(column(i));
    }
    for (size_t a = 0; a < places.size(); a++)
        for (size_t b = 0; b < places.size(); b++) {
            long i = places[a], j = places[b], common = std::min(i, j);
            double sum = i <= j ? upper[b][i] : 0; // L has ones on its diagonal
            for (long k = 0; k < (i <= j ? common : common + 1); k++)
                sum += lower[a][k] * upper[b][k];
            worst = std::max(worst, std::fabs(sum - entry_of(i, j, n)) / (double)n);
        }
    return worst;
}

template <typename T> static std::vector<double> line(const T *from, long stride, long n)
{
    std::vector<T> all((size_t)n);
    CUDA(
        cudaMemcpy2D(all.data(), sizeof(T), from, (size_t)stride * sizeof(T), sizeof(T), (size_t)n, cudaMemcpyDefault));
    return std::vector<double>(all.begin(), all.end());
}

template <typename T> static void run(Work &work, double most)
{
    long n = work.size("n", 8192), nt = work.size("nt", 8);
    Tiles<T> a(work.gpus, n, nt, true);
    auto error = [&] {
        return error_of(
            n, a.nb, [&](long i) { return a.row(i, n); }, [&](long j) { return a.column(j, n); });
    };
    race<T>(
        work, a, [&] { queue(a); }, error, most);
    if (work.gpus > 1)
        return;
    whole_matrix<T>(
        work, n, [](Factor<T> &f, T *m) { f.getrf(m); },
        [&](const T *m) {
            return error_of(
                n, a.nb, [&](long i) { return line(m + i, n, n); }, [&](long j) { return line(m + j * n, 1, n); });
        },
        most);
}

int main(int argc, char **argv)
{
    Work work("lu", argc, argv);
    if (work.dtype({ "f64", "f32" }) == "f64")
        run<double>(work, 1e-13);
    else
        run<float>(work, 1e-5);
    return work.end();
}
