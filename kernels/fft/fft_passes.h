/* SPDX-License-Identifier: Apache-2.0 */
/* Included once for each type: REAL is float or double, NAME(x) a name of its own.
 *
 * Stockham's passes. After those whose radices multiply to l, state[s l + k] is element k of the transform of every
 * (n / l)-th number from number s on. A pass of radix r makes transforms of l r numbers of r of them each; the last one
 * leaves them in order. */

typedef struct NAME(complex) {
    REAL re, im;
} NAME(complex);

static inline NAME(complex) NAME(times)(NAME(complex) a, NAME(complex) b)
{
    return (NAME(complex)){ a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
}

/* e^(sign 2 pi i k / n), from an angle of at most an eighth of a turn, so that it is right to the last bits. */
static NAME(complex) NAME(root)(int64_t k, int64_t n, int sign)
{
    double re, im;
    gy_fft_root(k, n, sign, &re, &im);
    return (NAME(complex)){ (REAL)re, (REAL)im };
}

/* root[j] = e^(sign 2 pi i j / n), m of the pass is n / (l r). */
static void NAME(pass4)(const NAME(complex) * x, NAME(complex) * y, int64_t n, int64_t l, int sign,
                        const NAME(complex) * root)
{
    int64_t m = n / (4 * l), quarter = n / 4;
    REAL turn = (REAL)sign;
    for (int64_t s = 0; s < m; s++) {
        const NAME(complex) *from = x + s * l;
        NAME(complex) *to = y + s * l * 4;
        for (int64_t k = 0; k < l; k++) {
            NAME(complex)
            a = from[k], b = NAME(times)(from[k + quarter], root[k * m]),
            c = NAME(times)(from[k + 2 * quarter], root[2 * k * m]),
            d = NAME(times)(from[k + 3 * quarter], root[3 * k * m]);
            NAME(complex)
            p = { a.re + c.re, a.im + c.im }, q = { a.re - c.re, a.im - c.im }, r = { b.re + d.re, b.im + d.im },
            t = { -turn * (b.im - d.im), turn * (b.re - d.re) };
            to[k] = (NAME(complex)){ p.re + r.re, p.im + r.im };
            to[k + l] = (NAME(complex)){ q.re + t.re, q.im + t.im };
            to[k + 2 * l] = (NAME(complex)){ p.re - r.re, p.im - r.im };
            to[k + 3 * l] = (NAME(complex)){ q.re - t.re, q.im - t.im };
        }
    }
}

static void NAME(pass)(const NAME(complex) * x, NAME(complex) * y, int64_t n, int64_t l, int radix,
                       const NAME(complex) * root)
{
    int64_t m = n / (radix * l), step = n / radix;
    NAME(complex) v[GY_FFT_RADIX];
    for (int64_t t = 0; t < m * l; t++) {
        int64_t k = t % l, at = t / l * l * radix + k;
        for (int q = 0; q < radix; q++)
            v[q] = NAME(times)(x[t + q * step], root[q * k * m]);
        for (int c = 0; c < radix; c++) {
            NAME(complex) sum = v[0];
            for (int q = 1; q < radix; q++) {
                NAME(complex) term = NAME(times)(v[q], root[q * c % radix * step]);
                sum.re += term.re;
                sum.im += term.im;
            }
            y[at + c * l] = sum;
        }
    }
}

/* x to y by way of `spare`, both of which have room for n numbers; neither is x. */
static void NAME(passes)(const gy_fft_passes *p, const NAME(complex) * x, NAME(complex) * y, NAME(complex) * spare,
                         int64_t n, int sign, const NAME(complex) * root)
{
    int64_t l = 1;
    for (int i = 0; i < p->count; i++) {
        NAME(complex) *to = (p->count - 1 - i) % 2 ? spare : y;
        if (p->radix[i] == 4)
            NAME(pass4)(x, to, n, l, sign, root);
        else
            NAME(pass)(x, to, n, l, p->radix[i], root);
        x = to;
        l *= p->radix[i];
    }
}

static void NAME(scale)(NAME(complex) * y, int64_t n, REAL scale)
{
    for (int64_t k = 0; k < n; k++) {
        y[k].re *= scale;
        y[k].im *= scale;
    }
}

/* ---- lengths with large prime factors: a convolution of padded length (Bluestein 1970) ---- */

/* j^2 / 2 turns of n: e^(sign pi i j^2 / n). */
static NAME(complex) NAME(chirp)(int64_t j, int64_t n, int sign)
{
    return NAME(root)((int64_t)((uint64_t)j * (uint64_t)j % (2 * (uint64_t)n)), 2 * n, sign);
}

/* The transform of the other sign's chirp, around 0. `a` and `spare` have room for m numbers. */
static void NAME(make_filter)(const fft_line *p, NAME(complex) * a, NAME(complex) * filter, NAME(complex) * spare)
{
    int64_t n = p->n, m = p->m;
    for (int64_t j = 0; j < m; j++)
        a[j] = (NAME(complex)){ 0, 0 };
    for (int64_t j = 0; j < n; j++)
        a[j] = a[(m - j) % m] = NAME(chirp)(j, n, -p->sign);
    NAME(passes)(&p->passes, a, filter, spare, m, -1, p->root);
}

/* The inverse of the padded length is the transform of conjugates, conjugated. */
static void NAME(convolve)(const fft_line *p, const NAME(complex) * x, NAME(complex) * y, NAME(complex) * a,
                           NAME(complex) * b, NAME(complex) * spare)
{
    const NAME(complex) *chirp = p->chirp, *filter = p->filter;
    int64_t n = p->n, m = p->m;
    REAL inverse = (REAL)(1 / (double)m);
    for (int64_t j = 0; j < m; j++)
        a[j] = j < n ? NAME(times)(x[j], chirp[j]) : (NAME(complex)){ 0, 0 };
    NAME(passes)(&p->passes, a, b, spare, m, -1, p->root);
    for (int64_t j = 0; j < m; j++) {
        NAME(complex) z = NAME(times)(b[j], filter[j]);
        a[j] = (NAME(complex)){ z.re, -z.im };
    }
    NAME(passes)(&p->passes, a, b, spare, m, -1, p->root);
    for (int64_t k = 0; k < n; k++)
        y[k] = NAME(times)((NAME(complex)){ b[k].re * inverse, -b[k].im * inverse }, chirp[k]);
}

/* ---- plans ---- */

/* Tables of the plan, which has room for them; false: out of memory. */
static bool NAME(fill)(fft_line *p)
{
    NAME(complex) *root = p->root, *chirp = p->chirp;
    int64_t length = p->m ? p->m : p->n;
    for (int64_t j = 0; j < length; j++)
        root[j] = NAME(root)(j, length, p->m ? -1 : p->sign);
    if (!p->m)
        return true;
    for (int64_t j = 0; j < p->n; j++)
        chirp[j] = NAME(chirp)(j, p->n, p->sign);
    NAME(complex) *room = gy_calloc(2 * (size_t)p->m, sizeof *room);
    if (room)
        NAME(make_filter)(p, room, p->filter, room + p->m);
    gy_free(room);
    return room != NULL;
}

/* One transform of numbers that lie one behind the other; x is not y. */
static void NAME(transform)(const fft_line *p, const NAME(complex) * x, NAME(complex) * y, NAME(complex) * room)
{
    if (p->m)
        NAME(convolve)(p, x, y, room, room + p->m, room + 2 * p->m);
    else
        NAME(passes)(&p->passes, x, y, room, p->n, p->sign, p->root);
}

/* Transforms along an axis. Numbers that lie apart, or have to stay where they are, are brought together first. */
static gantry_status NAME(along)(const fft_plan *plan, int axis, const NAME(complex) * x, NAME(complex) * y,
                                 double scale)
{
    const fft_line *p = &plan->line[axis];
    int64_t n = p->n, stride = gy_fft_stride(&plan->shape, axis), lines = gy_fft_numbers(&plan->shape) / n;
    int64_t spare = p->m ? 3 * p->m : n;
    bool apart = stride > 1 || x == y;
    NAME(complex) *room = gy_calloc((size_t)spare + 2 * (apart ? (size_t)n : 0), sizeof *room);
    if (!room)
        return GANTRY_E_NOMEM;
    for (int64_t i = 0; i < lines; i++) {
        int64_t first = i / stride * n * stride + i % stride;
        NAME(complex) *from = room + spare, *to = apart ? from + n : y + first;
        for (int64_t j = 0; j < n && apart; j++)
            from[j] = x[first + j * stride];
        NAME(transform)(p, apart ? from : x + first, to, room);
        if (scale != 1)
            NAME(scale)(to, n, (REAL)scale);
        for (int64_t j = 0; j < n && apart; j++)
            y[first + j * stride] = to[j];
    }
    gy_free(room);
    return GANTRY_OK;
}
