// SPDX-License-Identifier: Apache-2.0
// Frames of 1920 x 1080 x 3 bytes from page-locked host memory through a Gaussian filter and back, by the library's own
// kernel: copies and overlap are what differs.
//   blur [--gpus 1] [--frames 100] [--sigma 2] [--starts 7] [--seconds 100]
#include "kernels/gaussian_blur/gaussian_blur.cu"
#include "work.h"

enum { WIDTH = 1920, HEIGHT = 1080, CHANNELS = 3, LINE = WIDTH * CHANNELS };
static const size_t FRAME = (size_t)LINE * HEIGHT;

static gy_gaussian gaussian(double sigma)
{
    gy_gaussian g = {};
    double weight[2 * GY_GAUSSIAN_RADIUS + 1], sum = 0;
    g.radius = std::min((int)std::ceil(3 * sigma), (int)GY_GAUSSIAN_RADIUS);
    for (int i = -g.radius; i <= g.radius; i++)
        sum += weight[i + g.radius] = std::exp(-0.5 * i * i / (sigma * sigma));
    for (int i = 0; i <= 2 * g.radius; i++)
        g.weight[i] = (float)(weight[i] / sum);
    return g;
}

struct Blur {
    struct Part {
        int first, count, gpu;
        cudaEvent_t up, ran;
    };
    struct Gpu {
        unsigned char *in, *out;
        cudaStream_t up, run, down;
    };
    int gpus, frames;
    gy_gaussian filter;
    unsigned char *in, *out;
    std::vector<Gpu> gpu;
    std::vector<Part> part;

    Blur(int gpus_, int frames_, double sigma)
        : gpus(gpus_), frames(frames_), filter(gaussian(sigma)), in(new_host_array<unsigned char>(frames_ * FRAME)),
          out(new_host_array<unsigned char>(frames_ * FRAME)), gpu((size_t)gpus_)
    {
        for (size_t i = 0; i < frames * FRAME / 8; i++)
            ((unsigned long long *)in)[i] = (unsigned long long)(noise(i, 1) * 16777216.0) * 0x9e3779b97f4a7c15ull;
        for (int g = 0; g < gpus; g++) {
            CUDA(cudaSetDevice(g));
            gpu[g] = { new_array<unsigned char>(frames * FRAME), new_array<unsigned char>(frames * FRAME), new_stream(),
                       new_stream(), new_stream() };
        }
    }

    void cut(int parts)
    {
        part.clear();
        for (int i = 0; i < parts; i++) {
            int first = i * frames / parts, g = i % gpus;
            CUDA(cudaSetDevice(g));
            part.push_back({ first, (i + 1) * frames / parts - first, g, new_event(), new_event() });
        }
    }

    void start()
    {
        for (Part &p : part) {
            Gpu &d = gpu[(size_t)p.gpu];
            size_t at = p.first * FRAME, bytes = p.count * FRAME;
            CUDA(cudaSetDevice(p.gpu));
            CUDA(cudaMemcpyAsync(d.in + at, in + at, bytes, cudaMemcpyHostToDevice, d.up));
            CUDA(cudaEventRecord(p.up, d.up));
            CUDA(cudaStreamWaitEvent(d.run, p.up, 0));
            filter_part(p, d, at);
            CUDA(cudaEventRecord(p.ran, d.run));
            CUDA(cudaStreamWaitEvent(d.down, p.ran, 0));
            CUDA(cudaMemcpyAsync(out + at, d.out + at, bytes, cudaMemcpyDeviceToHost, d.down));
        }
        wait_for_all(gpus);
    }

    void filter_part(const Part &p, Gpu &d, size_t at)
    {
        gy_frames f = {};
        f.channels = CHANNELS;
        f.height = f.in_rows = f.out_rows = HEIGHT;
        f.row_elements = f.in_pitch = f.out_pitch = LINE;
        f.across = (LINE + COLUMNS - 1) / COLUMNS;
        f.down = (HEIGHT + ROWS - 1) / ROWS;
        gaussian_blur_u8<<<(unsigned)p.count * f.across * f.down, COLUMNS, 0, d.run>>>(d.in + at, d.out + at, f,
                                                                                       filter);
        CUDA(cudaGetLastError());
    }

    double pixel(int frame, int y, int x, int c) const
    {
        double sum = 0;
        int r = filter.radius;
        for (int dy = -r; dy <= r; dy++)
            for (int dx = -r; dx <= r; dx++) {
                int yy = std::min(std::max(y + dy, 0), HEIGHT - 1), xx = std::min(std::max(x + dx, 0), WIDTH - 1);
                sum += (double)filter.weight[dy + r] * filter.weight[dx + r] *
                       in[frame * FRAME + ((size_t)yy * WIDTH + xx) * CHANNELS + c];
            }
        return sum;
    }

    // Some pixels of the first, a middle and the last frame, in doubles; rounding is worth a half.
    double error() const
    {
        double worst = 0;
        for (int frame : { 0, frames / 2, frames - 1 })
            for (int y : { 0, 1, 7, 8, 500, HEIGHT - 1 })
                for (int x : { 0, 6, 63, 85, 1000, WIDTH - 1 })
                    for (int c = 0; c < CHANNELS; c++)
                        worst = std::max(worst, std::fabs(out[frame * FRAME + ((size_t)y * WIDTH + x) * CHANNELS + c] -
                                                          pixel(frame, y, x, c)));
        return worst;
    }
};

int main(int argc, char **argv)
{
    Work work("blur", argc, argv);
    work.dtype({ "u8" });
    int frames = (int)work.size("frames", 100);
    Blur blur(work.gpus, frames, (double)work.size("sigma", 2));
    for (int parts : { 10, 20, 50 }) {
        blur.cut(std::max(std::min(parts, frames), work.gpus));
        memset(blur.out, 0, frames * FRAME);
        work.time(std::to_string(parts) + " parts", [&] { blur.start(); });
        work.check(blur.error(), 0.501);
    }
    return work.end();
}
