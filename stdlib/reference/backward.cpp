// SPDX-License-Identifier: Apache-2.0
// The gradients of functions of rows: the formulas in double, and how far off kernels may be that compute in f32.
#include <cmath>

#include "stdlib/reference/bounds.hpp"
#include "stdlib/spec/expected.hpp"

namespace ikat::stdlib::reference {
namespace {

/// f(the first element of a row) for each.
void each_row(const Example& e, auto&& f) {
    const std::size_t columns = e.number("columns");
    for (std::size_t row = 0; row < e.number("rows"); ++row) f(row * columns);
}

/// A number, and how far off its value in f32 may be.
struct Rounded {
    double value = 0, error = 0;
};
/// The mean of terms that have errors themselves.
class Mean {
public:
    explicit Mean(std::size_t columns) : columns_(double(columns)) {}
    void add(const Rounded& term) {
        sum_ += term.value, magnitudes_ += std::abs(term.value) + term.error, errors_ += term.error;
    }
    Rounded get() const {
        return {sum_ / columns_, (errors_ + (of_sum(std::uint32_t(columns_)) + 3 * epsilon) * magnitudes_) / columns_};
    }

private:
    double columns_, sum_ = 0, magnitudes_ = 0, errors_ = 0;
};
/// Products and differences are rounded once.
Rounded operator*(const Rounded& a, const Rounded& b) {
    const double error = std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error;
    return {a.value * b.value, error + epsilon * (std::abs(a.value * b.value) + error)};
}
Rounded operator-(const Rounded& a, const Rounded& b) {
    const double error = a.error + b.error;
    return {a.value - b.value, error + epsilon * (std::abs(a.value - b.value) + error)};
}
Rounded operator+(const Rounded& a, const Rounded& b) { return a - Rounded{-b.value, b.error}; }

/// What a kernel finds about a row, with its columns normed.
struct Normed {
    std::vector<Rounded> columns;
    Rounded factor, mean{};
};
/// From what has been stored about it.
Normed normed_by(std::span<const float> x, float mean, float factor) {
    Normed all{{}, {double(factor), 0}, {double(mean), 0}};
    for (const float v : x) all.columns.push_back((Rounded{double(v), 0} - all.mean) * all.factor);
    return all;
}
Normed normed(std::span<const float> x, bool centred, double epsilon_of_norm) {
    Mean mean(x.size()), variance(x.size());
    for (const float v : x)
        if (centred) mean.add({double(v), 0});
    const Rounded middle = centred ? mean.get() : Rounded{};
    std::vector<Rounded> out;
    for (const float v : x) out.push_back(Rounded{double(v), 0} - middle);
    for (const Rounded& v : out) variance.add(v * v);
    // The sum under the root, the root and its reciprocal; half of a relative error remains, and as much as can be
    // wrong in the second order.
    const double under = variance.get().value + epsilon_of_norm, relative = variance.get().error / under;
    const double root = 1 / std::sqrt(under);
    Normed all{{}, {root, root * (relative / 2 + relative * relative + 4 * epsilon)}, middle};
    for (const Rounded& v : out) all.columns.push_back(v * all.factor);
    return all;
}

/// Sums over the rows of each column; a block adds the rows one by one, or in tiles.
class ColumnSums {
public:
    ColumnSums(std::size_t rows, std::size_t columns)
        : roundings_(double(rows) + 3), wanted(columns), magnitudes_(columns), errors_(columns) {}
    void add(std::size_t column, const Rounded& term) {
        wanted[column] += term.value;
        magnitudes_[column] += std::abs(term.value) + term.error;
        errors_[column] += term.error;
    }
    std::vector<double> errors() const {
        std::vector<double> out = errors_;
        for (std::size_t i = 0; i < out.size(); ++i) out[i] += roundings_ * epsilon * magnitudes_[i];
        return out;
    }

private:
    double roundings_;

public:
    std::vector<double> wanted;

private:
    std::vector<double> magnitudes_, errors_;
};

void norm_backward(Example& e, bool centred) {
    const std::vector<float> x = e["x"], dy = e["dy"], gamma = e["gamma"], residual = e["residual"];
    const std::vector<float> statistics = e["statistics"];
    const std::size_t columns = e.number("columns");
    std::vector<double> wanted(x.size()), errors(x.size());
    ColumnSums dgamma(e.number("rows"), columns), dbeta(e.number("rows"), columns);
    each_row(e, [&](std::size_t first) {
        const auto of_row = std::span(x).subspan(first, columns);
        const std::size_t number = columns == 0 ? 0 : 2 * (first / columns);
        const Normed row = statistics.empty()
                               ? normed(of_row, centred, double(e.real("epsilon")))
                               : normed_by(of_row, centred ? statistics[number] : 0, statistics[number + 1]);
        Mean of_g(columns), of_gn(columns);
        std::vector<Rounded> g;
        for (std::size_t c = 0; c < columns; ++c) {
            const Rounded of_y{double(dy[first + c]), 0};
            g.push_back(of_y * Rounded{double(gamma[c]), 0});
            if (centred) of_g.add(g[c]);
            of_gn.add(g[c] * row.columns[c]);
            dgamma.add(c, of_y * row.columns[c]);
            dbeta.add(c, of_y);
        }
        for (std::size_t c = 0; c < columns; ++c) {
            Rounded dx = (g[c] - of_g.get() - row.columns[c] * of_gn.get()) * row.factor;
            if (!residual.empty()) dx = dx + Rounded{double(residual[first + c]), 0};
            wanted[first + c] = dx.value, errors[first + c] = dx.error;
        }
    });
    e.expect("dx", std::move(wanted), 0, std::move(errors));
    e.expect("dgamma", dgamma.wanted, 0, dgamma.errors());
    if (centred) e.expect("dbeta", dbeta.wanted, 0, dbeta.errors());
}

/// dx = f(y, dy, mean over the row of the terms); 0 beyond the columns that a row has.
void gradient_of_rows(Example& e, auto&& columns_of, auto&& term, auto&& f) {
    const std::vector<float> y = e["y"], dy = e["dy"];
    const std::size_t columns = e.number("columns");
    std::vector<double> wanted(y.size()), errors(y.size());
    each_row(e, [&](std::size_t first) {
        const auto at = [](const std::vector<float>& x, std::size_t i) { return Rounded{double(x[i]), 0}; };
        Mean mean(columns);
        const std::size_t end = first + (columns == 0 ? 0 : columns_of(first / columns));
        for (std::size_t i = first; i < end; ++i) mean.add(term(at(y, i), at(dy, i)));
        const Rounded sum{mean.get().value * double(columns), mean.get().error * double(columns)};
        for (std::size_t i = first; i < end; ++i) {
            const Rounded dx = f(at(y, i), at(dy, i), sum);
            wanted[i] = dx.value, errors[i] = dx.error;
        }
    });
    e.expect("dx", std::move(wanted), 0, std::move(errors));
}

}  // namespace

namespace {

void softmax_gradient(Example& e, auto&& columns_of) {
    gradient_of_rows(
        e, columns_of, [](const Rounded& y, const Rounded& dy) { return y * dy; },
        [](const Rounded& y, const Rounded& dy, const Rounded& sum) { return y * (dy - sum); });
}

}  // namespace

void softmax_backward(Example& e) {
    softmax_gradient(e, [&](std::size_t) { return e.number("columns"); });
}
void softmax_causal_backward(Example& e) {
    const std::size_t columns = e.number("columns"), queries = e.number("queries"), before = e.number("first_row");
    softmax_gradient(e, [=](std::size_t row) {
        const std::size_t i = (row + before) % queries;
        return i + 1 + columns > queries ? i + 1 + columns - queries : 0;
    });
}
void log_softmax_backward(Example& e) {
    const auto exp = [](const Rounded& y) {  // within an ulp
        return Rounded{std::exp(y.value), 2 * epsilon * std::exp(y.value)};
    };
    gradient_of_rows(
        e, [&](std::size_t) { return e.number("columns"); }, [](const Rounded&, const Rounded& dy) { return dy; },
        [&](const Rounded& y, const Rounded& dy, const Rounded& sum) { return dy - exp(y) * sum; });
}

void swiglu_backward(Example& e) {
    const std::vector<float> dy = e["dy"], gate = e["gate"], up = e["up"];
    std::vector<double> dgate(gate.size()), dup(gate.size()), of_gate(gate.size()), of_up(gate.size());
    for (std::size_t i = 0; i < gate.size(); ++i) {
        const double x = double(gate[i]), g = double(dy[i]), silu = std::isinf(x) && x < 0 ? 0 : x / (1 + std::exp(-x));
        dgate[i] = g * double(up[i]) * silu_slope(x), dup[i] = g * silu;
        of_gate[i] = 16 * epsilon * std::abs(g * double(up[i]));  // of the slope, see gradient()
        of_up[i] = 0x1p-142 * std::abs(g);                        // exp(x) below the normal numbers, times x
    }
    // silu has 7 roundings, and dy one more.
    const bool in_place = e.name().find("in_place") != std::string_view::npos;
    e.expect(in_place ? "gate" : "dgate", std::move(dgate), 8 * epsilon, std::move(of_gate));
    e.expect(in_place ? "up" : "dup", std::move(dup), 8 * epsilon, std::move(of_up));
}

namespace {

/// What a norm stores about each row.
void expect_statistics(Example& e, bool centred) {
    const std::vector<float> x = e["x"];
    const std::size_t columns = e.number("columns");
    std::vector<double> wanted, errors;
    each_row(e, [&](std::size_t first) {
        const Normed row = normed(std::span(x).subspan(first, columns), centred, double(e.real("epsilon")));
        for (const Rounded& number : {row.mean, row.factor})
            wanted.push_back(number.value), errors.push_back(number.error);
    });
    e.expect("statistics", std::move(wanted), 0, std::move(errors));
}

}  // namespace

void layernorm_saving(Example& e) { layernorm(e), expect_statistics(e, true); }
void rmsnorm_saving(Example& e) { rmsnorm(e), expect_statistics(e, false); }

void rmsnorm_backward(Example& e) { norm_backward(e, false); }
void layernorm_backward(Example& e) { norm_backward(e, true); }

void column_sums(Example& e) {
    const std::vector<float> x = e["x"];
    const std::size_t columns = e.number("columns");
    ColumnSums sums(e.number("rows"), columns);
    for (std::size_t i = 0; i < x.size(); ++i) sums.add(i % columns, {double(x[i]), 0});
    e.expect("sums", sums.wanted, 0, sums.errors());
}

}  // namespace ikat::stdlib::reference
