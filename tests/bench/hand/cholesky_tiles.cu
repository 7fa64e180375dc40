// SPDX-License-Identifier: Apache-2.0
// Tiled Cholesky: one potrf, trsm, syrk or gemm a tile, over S streams of each GPU; beside it cuSOLVER's of the whole.
//   cholesky_tiles [--gpus 1] [--dtype f64|f32] [--n 16384] [--nt 16] [--starts 7] [--seconds 100]
#include "tiles.h"

template <typename T> static void update(Tiles<T> &a, long i, long j, long k)
{
    int g = a.owner(i, j), lane = i == k + 1 && j == k + 1 ? 0 : a.next_lane();
    a.need(g, lane, i, k);
    a.need(g, lane, j, k);
    a.need(g, lane, i, j);
    if (i == j)
        syrk(a.blas(g, lane), a.nb, a.nb, a.at(g, i, k), a.nb, a.at(g, i, i), a.nb);
    else
        gemm(a.blas(g, lane), false, true, a.nb, a.nb, a.nb, -1, a.at(g, i, k), a.nb, a.at(g, j, k), a.nb, 1,
             a.at(g, i, j), a.nb);
    a.made(lane, i, j);
}

template <typename T> static void panel(Tiles<T> &a, long k)
{
    int g = a.owner(k, k);
    a.need(g, 0, k, k);
    a.factor(g).potrf(a.at(g, k, k));
    a.made(0, k, k);
    for (long i = k + 1; i < a.nt; i++) {
        int lane = i == k + 1 ? 0 : a.next_lane();
        a.need(g, lane, k, k);
        a.need(g, lane, i, k);
        trsm(a.blas(g, lane), CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, a.nb, a.nb,
             a.at(g, k, k), a.nb, a.at(g, i, k), a.nb);
        a.made(lane, i, k);
        a.send(i, k);
    }
}

template <typename T> static void queue(Tiles<T> &a)
{
    a.begin();
    for (long k = 0; k < a.nt; k++) {
        panel(a, k);
        for (long j = k + 1; j < a.nt; j++)
            for (long i = j; i < a.nt; i++)
                update(a, i, j, k);
    }
}

// Entries of L L^T against the matrix, relative to its diagonal.
static double error_of(long n, long nb, const std::function<std::vector<double>(long)> &row)
{
    double worst = 0;
    std::vector<long> places = places_in(n, nb);
    std::vector<std::vector<double>> rows;
    for (long i : places)
        rows.push_back(row(i));
    for (size_t a = 0; a < places.size(); a++)
        for (size_t b = 0; b <= a; b++) {
            double sum = 0;
            for (long k = 0; k <= places[b]; k++)
                sum += rows[a][k] * rows[b][k];
            worst = std::max(worst, std::fabs(sum - entry_of(places[a], places[b], n)) / (double)n);
        }
    return worst;
}

template <typename T> static void run(Work &work, double most)
{
    long n = work.size("n", 16384), nt = work.size("nt", 16);
    Tiles<T> a(work.gpus, n, nt, false);
    race<T>(
        work, a, [&] { queue(a); }, [&] { return error_of(n, a.nb, [&](long i) { return a.row(i, i + 1); }); }, most);
    if (work.gpus > 1)
        return;
    whole_matrix<T>(
        work, n, [](Factor<T> &f, T *m) { f.potrf(m); },
        [&](const T *m) {
            return error_of(n, a.nb, [&](long i) {
                std::vector<T> row((size_t)i + 1);
                CUDA(cudaMemcpy2D(row.data(), sizeof(T), m + i, (size_t)n * sizeof(T), sizeof(T), (size_t)i + 1,
                                  cudaMemcpyDefault));
                return std::vector<double>(row.begin(), row.end());
            });
        },
        most);
}

int main(int argc, char **argv)
{
    Work work("cholesky_tiles", argc, argv);
    if (work.dtype({ "f64", "f32" }) == "f64")
        run<double>(work, 1e-13);
    else
        run<float>(work, 1e-5);
    return work.end();
}
