// CTCLoss: the loss of label sequences whose places in time nobody knows (Graves et al., 2006), its
// gradient, and that of the gradient.
//
// A sequence of L labels has 2 L + 1 states, a blank around each label. A path stays in a state,
// goes on to the next one, or passes over a blank between two labels that differ. alpha is the
// logarithm of the probability of all paths to a state, beta of all from there on; both are sums
// over paths in f64, whatever the logits are.
#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "ops/kernels/nn/softmax_rows.hpp"
#include "ops/kernels/support/indices.hpp"
#include "ops/kernels/support/typed.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

double log_sum(double a, double b, double c) {
  if (a == kImpossible && b == kImpossible && c == kImpossible) return kImpossible;
  const double most = std::max(a, std::max(b, c));
  const auto part = [most](double x) {  // the exponential, where it is not known
    return x == most ? 1.0 : x == kImpossible ? 0.0 : std::exp(x - most);
  };
  return most + std::log(part(a) + part(b) + part(c));
}

// What the paths through one sequence are made of.
struct Lattice {
  std::int64_t frames = 0, states = 0;
  std::vector<std::int64_t> symbol;  // of each state
  std::vector<bool> passes;          // whether a path may come from two states before
  std::vector<double> emit, alpha, beta;
  double log_p = 0;

  double& at(std::vector<double>& v, std::int64_t t, std::int64_t s) const {
    return v[std::size_t(t * states + s)];
  }
  double at(const std::vector<double>& v, std::int64_t t, std::int64_t s) const {
    return v[std::size_t(t * states + s)];
  }
  // f(a state before s, or after it) of those that a step of a path leads from, or to.
  template <class F>
  void before(std::int64_t s, F f) const {
    f(s);
    if (s >= 1) f(s - 1);
    if (s >= 2 && passes[std::size_t(s)]) f(s - 2);
  }
  template <class F>
  void after(std::int64_t s, F f) const {
    f(s);
    if (s + 1 < states) f(s + 1);
    if (s + 2 < states && passes[std::size_t(s + 2)]) f(s + 2);
  }

  // REQUIRES: emit.
  void forward() {
    alpha.assign(emit.size(), kImpossible);
    for (std::int64_t t = 0; t < frames; ++t)
      for (std::int64_t s = 0; s < states; ++s) {
        double from[3] = {kImpossible, kImpossible, kImpossible};
        int n = 0;
        if (t == 0)
          from[0] = s < 2 ? 0 : kImpossible;
        else
          before(s, [&](std::int64_t r) { from[n++] = at(alpha, t - 1, r); });
        at(alpha, t, s) = log_sum(from[0], from[1], from[2]) + at(emit, t, s);
      }
    if (frames == 0)
      log_p = states == 1 ? 0 : kImpossible;
    else
      log_p = log_sum(at(alpha, frames - 1, states - 1),
                      states > 1 ? at(alpha, frames - 1, states - 2) : kImpossible, kImpossible);
  }
  void backward() {
    beta.assign(emit.size(), kImpossible);
    for (std::int64_t t = frames; t-- > 0;)
      for (std::int64_t s = 0; s < states; ++s) {
        double to[3] = {kImpossible, kImpossible, kImpossible};
        int n = 0;
        if (t + 1 == frames)
          to[0] = s + 2 >= states ? 0 : kImpossible;
        else
          after(s, [&](std::int64_t r) { to[n++] = at(beta, t + 1, r) + at(emit, t + 1, r); });
        at(beta, t, s) = log_sum(to[0], to[1], to[2]);
      }
  }
  // The share of all paths that go through a state.
  double share(std::int64_t t, std::int64_t s) const {
    return std::exp(at(alpha, t, s) + at(beta, t, s) - log_p);
  }
};

// The inputs that all three ops begin with, checked: logits [time, batch, classes], labels [batch,
// most], label_lengths [batch], lengths [batch].
struct Sequences {
  std::int64_t time, batch, classes, most, blank;
  std::vector<std::int64_t> labels, label_lengths, lengths;

  static Expected<Sequences> of(const KernelContext& c, std::int64_t blank) {
    const Tensor &logits = c.input(0), &labels = c.input(1);
    if (logits.rank() != 3 || labels.rank() != 2 || labels.dim(0) != logits.dim(1) ||
        !(c.input(2).shape() == Shape{logits.dim(1)}) ||
        !(c.input(3).shape() == Shape{logits.dim(1)}))
      return invalid_argument(
          fmt::format("logits [time, batch, classes] are {}, labels [batch, most] {}, "
                      "label_lengths [batch] {}, "
                      "lengths [batch] {}: a rank or a number of sequences is another one",
                      logits.shape().text(), labels.shape().text(), c.input(2).shape().text(),
                      c.input(3).shape().text()));
    Sequences q{logits.dim(0), logits.dim(1), logits.dim(2), labels.dim(1), blank, {}, {}, {}};
    if (blank < 0 || blank >= q.classes)
      return invalid_argument(
          fmt::format("the blank {} is not one of {} classes", blank, q.classes));
    q.labels = places(labels), q.label_lengths = places(c.input(2)), q.lengths = places(c.input(3));
    for (std::int64_t b = 0; b < q.batch; ++b) {
      const std::int64_t labels_here = q.label_lengths[std::size_t(b)],
                         frames = q.lengths[std::size_t(b)];
      if (labels_here < 0 || labels_here > q.most)
        return invalid_argument(
            fmt::format("label_lengths[{}] = {} is outside [0, {}]", b, labels_here, q.most));
      if (frames < 0 || frames > q.time)
        return invalid_argument(
            fmt::format("lengths[{}] = {} is outside [0, {}]", b, frames, q.time));
      for (std::int64_t i = 0; i < labels_here; ++i) {
        const std::int64_t label = q.labels[std::size_t(b * q.most + i)];
        if (label < 0 || label >= q.classes || label == blank)
          return invalid_argument(fmt::format("labels[{},{}] = {} is the blank, or outside [0, {})",
                                              b, i, label, q.classes));
      }
    }
    return q;
  }
  // The first element of frame t of sequence b, among logits.
  std::int64_t row(std::int64_t t, std::int64_t b) const { return (t * batch + b) * classes; }

  // Of sequence b: its states and what each emits.
  template <class T>
  Lattice lattice(const T* logits, std::int64_t b) const {
    Lattice l;
    l.frames = lengths[std::size_t(b)];
    l.states = 2 * label_lengths[std::size_t(b)] + 1;
    for (std::int64_t s = 0; s < l.states; ++s) {
      const std::int64_t symbol = s % 2 == 0 ? blank : labels[std::size_t(b * most + s / 2)];
      l.passes.push_back(symbol != blank && s >= 2 && symbol != l.symbol[std::size_t(s - 2)]);
      l.symbol.push_back(symbol);
    }
    l.emit.resize(std::size_t(l.frames * l.states));
    for (std::int64_t t = 0; t < l.frames; ++t) {
      const T* x = logits + row(t, b);
      const T max = row_max(x, classes);
      const double all = std::log(double(exp_sum(x, max, classes)));
      for (std::int64_t s = 0; s < l.states; ++s)
        l.at(l.emit, t, s) = double(x[l.symbol[std::size_t(s)]] - max) - all;
    }
    l.forward();
    return l;
  }
};

// f(b, lattice of sequence b) on the lanes.
template <class T, class F>
void each_sequence(const KernelContext& c, const Sequences& q, F f) {
  const T* logits = c.input(0).data<T>();
  const Chunks chunks = row_chunks(q.batch, q.time * (q.classes + 32 * (2 * q.most + 1)));
  c.parallel(chunks.count, [&](std::int64_t i) {
    if (c.cancelled()) return;
    for (std::int64_t b = chunks[i].begin; b < chunks[i].end; ++b) f(b, q.lattice<T>(logits, b));
  });
}

template <class T>
class CtcLoss final : public Kernel {
 public:
  explicit CtcLoss(const KernelSpec& spec) : blank_(spec.int_attr("blank")) {}

  Status compute(KernelContext& c) override {
    TROUPE_TRY(const Sequences q, Sequences::of(c, blank_));
    TROUPE_TRY(Tensor loss, c.allocate(dtype_of<T>, Shape{q.batch}));
    T* to = loss.mutable_data<T>();
    each_sequence<T>(c, q, [&](std::int64_t b, const Lattice& l) { to[b] = T(-l.log_p); });
    c.set_output(0, std::move(loss));
    return ok_status();
  }

 private:
  const std::int64_t blank_;
};

// What the two gradients begin with: outputs are 0 behind a sequence, and for an impossible one.
template <class T, class F>
Status each_slope(KernelContext& c, const Sequences& q, int output, F f) {
  if (!(c.input(4).shape() == Shape{q.batch}))
    return invalid_argument("dy has shape " + c.input(4).shape().text() + ", but there are " +
                            std::to_string(q.batch) + " sequences");
  TROUPE_TRY(Tensor slopes, c.allocate(dtype_of<T>, c.input(0).shape()));
  T* to = slopes.mutable_data<T>();
  each_sequence<T>(c, q, [&](std::int64_t b, Lattice l) {
    const bool possible = l.log_p != kImpossible;
    if (possible) l.backward();
    for (std::int64_t t = possible ? l.frames : 0; t < q.time; ++t)
      std::fill_n(to + q.row(t, b), q.classes, T(0));
    if (possible) f(b, l, to);
  });
  c.set_output(output, std::move(slopes));
  return ok_status();
}

template <class T>
class CtcLossGrad final : public Kernel {
 public:
  explicit CtcLossGrad(const KernelSpec& spec) : blank_(spec.int_attr("blank")) {}

  Status compute(KernelContext& c) override {
    TROUPE_TRY(const Sequences q, Sequences::of(c, blank_));
    const T *logits = c.input(0).data<T>(), *dy = c.input(4).data<T>();
    return each_slope<T>(c, q, 0, [&](std::int64_t b, const Lattice& l, T* to) {
      std::vector<double> share(std::size_t(q.classes), 0.0);
      for (std::int64_t t = 0; t < l.frames; ++t) {
        T* y = to + q.row(t, b);
        softmax_row(logits + q.row(t, b), q.classes, y);
        for (std::int64_t s = 0; s < l.states; ++s)
          share[std::size_t(l.symbol[std::size_t(s)])] += l.share(t, s);
        for (const std::int64_t k : l.symbol) {
          y[k] -= T(share[std::size_t(k)]);
          share[std::size_t(k)] = 0;
        }
        for (std::int64_t k = 0; k < q.classes; ++k) y[k] *= dy[b];
      }
    });
  }

 private:
  const std::int64_t blank_;
};

// How shares of paths change when logits move along d.
template <class T>
class CtcLossGradGrad final : public Kernel {
 public:
  explicit CtcLossGradGrad(const KernelSpec& spec) : blank_(spec.int_attr("blank")) {}

  Status compute(KernelContext& c) override {
    TROUPE_TRY(const Sequences q, Sequences::of(c, blank_));
    if (!(c.input(5).shape() == c.input(0).shape()))
      return invalid_argument("d has shape " + c.input(5).shape().text() + ", but logits " +
                              c.input(0).shape().text());
    TROUPE_TRY(Tensor along, c.allocate(dtype_of<T>, Shape{q.batch}));
    const T *logits = c.input(0).data<T>(), *dy = c.input(4).data<T>(), *d = c.input(5).data<T>();
    T* sums = along.mutable_data<T>();
    std::fill_n(sums, q.batch, T(0));
    TROUPE_TRY(each_slope<T>(c, q, 1, [&](std::int64_t b, const Lattice& l, T* to) {
      sums[b] = T(bend(q, l, b, logits, double(dy[b]), d, to));
    }));
    c.set_output(0, std::move(along));
    return ok_status();
  }

 private:
  // Returns the slope along d; `to` gets dy times what d does to the slopes.
  static double bend(const Sequences& q, const Lattice& l, std::int64_t b, const T* logits,
                     double dy, const T* d, T* to) {
    std::vector<double> alpha(l.emit.size(), 0.0), beta(l.emit.size(), 0.0);  // how they change
    const auto moved = [&](std::int64_t t, std::int64_t s) {
      return double(d[q.row(t, b) + l.symbol[std::size_t(s)]]);
    };
    for (std::int64_t t = 0; t < l.frames; ++t)
      for (std::int64_t s = 0; s < l.states; ++s) {
        if (l.at(l.alpha, t, s) == kImpossible) continue;  // also if its symbol is
        const double all = l.at(l.alpha, t, s) - l.at(l.emit, t, s);
        double sum = moved(t, s);
        if (t > 0)
          l.before(s, [&](std::int64_t r) {
            sum += std::exp(l.at(l.alpha, t - 1, r) - all) * l.at(alpha, t - 1, r);
          });
        l.at(alpha, t, s) = sum;
      }
    for (std::int64_t t = l.frames - 1; t-- > 0;)
      for (std::int64_t s = 0; s < l.states; ++s) {
        const double all = l.at(l.beta, t, s);
        if (all == kImpossible) continue;
        l.after(s, [&](std::int64_t r) {
          l.at(beta, t, s) += std::exp(l.at(l.beta, t + 1, r) + l.at(l.emit, t + 1, r) - all) *
                              (l.at(beta, t + 1, r) + moved(t + 1, r));
        });
      }
    double whole = 0, slope = 0;  // of log_p
    for (std::int64_t s = std::max<std::int64_t>(0, l.states - 2); l.frames > 0 && s < l.states;
         ++s)
      whole += l.share(l.frames - 1, s) * l.at(alpha, l.frames - 1, s);
    std::vector<double> share(std::size_t(q.classes)), change(share);
    std::vector<T> softmax(share.size());
    for (std::int64_t t = 0; t < l.frames; ++t) {
      const T* along = d + q.row(t, b);
      softmax_row(logits + q.row(t, b), q.classes, softmax.data());
      std::fill(share.begin(), share.end(), 0.0);
      std::fill(change.begin(), change.end(), 0.0);
      for (std::int64_t s = 0; s < l.states; ++s) {
        const auto k = std::size_t(l.symbol[std::size_t(s)]);
        const double part = l.share(t, s);
        share[k] += part;
        change[k] += part * (l.at(alpha, t, s) + l.at(beta, t, s) - whole);
      }
      double mean = 0;
      for (std::size_t k = 0; k < share.size(); ++k) mean += double(softmax[k]) * double(along[k]);
      for (std::size_t k = 0; k < share.size(); ++k) {
        slope += (double(softmax[k]) - share[k]) * double(along[k]);
        to[q.row(t, b) + std::int64_t(k)] =
            T(dy * (double(softmax[k]) * (double(along[k]) - mean) - change[k]));
      }
    }
    return slope;
  }

  const std::int64_t blank_;
};

// What is known of the batch, from all inputs.
Expected<std::int64_t> batch_of(InferenceContext& c, int sequences) {
  TROUPE_TRY(c.want_rank(0, 3));
  TROUPE_TRY(c.want_rank(1, 2));
  PartialShape batch = PartialShape::unknown_of_rank(1);
  const auto merge = [&](const PartialShape& shape, int axis) -> Status {
    if (!shape.known_rank() || !shape.known(axis)) return ok_status();
    auto merged = PartialShape::merge(batch, PartialShape{shape[axis]});
    if (!merged.ok())
      return invalid_argument(fmt::format("there are {} sequences in one input and {} in another",
                                          batch[0], shape[axis]));
    batch = std::move(merged).value();
    return ok_status();
  };
  TROUPE_TRY(merge(c.shape(0), 1));
  for (int i = 1; i <= sequences; ++i) {
    if (i > 1) TROUPE_TRY(c.want_rank(i, 1));
    TROUPE_TRY(merge(c.shape(i), 0));
  }
  const std::int64_t blank = c.int_attr("blank");
  if (blank < 0 || (c.shape(0).known_rank() && c.shape(0).known(2) && blank >= c.shape(0)[2]))
    return invalid_argument(
        fmt::format("the blank {} is not a class of logits {}", blank, c.shape(0).text()));
  return batch[0];
}

Status loss_shape(InferenceContext& c) {
  TROUPE_TRY(const std::int64_t batch, batch_of(c, 3));
  c.set(0, PartialShape{batch});
  return ok_status();
}
Status grad_shape(InferenceContext& c) {
  TROUPE_TRY(batch_of(c, 4).status());
  c.set(0, c.shape(0));
  return ok_status();
}
Status grad_grad_shape(InferenceContext& c) {
  TROUPE_TRY(const std::int64_t batch, batch_of(c, 4));
  TROUPE_TRY(PartialShape logits, PartialShape::merge(c.shape(0), c.shape(5)));
  c.set(0, PartialShape{batch});
  c.set(1, std::move(logits));
  return ok_status();
}

AttrMap blank_of(const GradContext& c) { return {{"blank", c.int_attr("blank")}}; }

std::vector<Output> loss_grad(GradContext& c) {
  return {c.g.add("CTCLossGrad", {c.x[0], c.x[1], c.x[2], c.x[3], c.dy[0]}, blank_of(c)), Output(),
          Output(), Output()};
}
std::vector<Output> loss_grad_grad(GradContext& c) {
  const Op bend = c.g.add(NodeSpec{.op = "CTCLossGradGrad",
                                   .inputs = {c.x[0], c.x[1], c.x[2], c.x[3], c.x[4], c.dy[0]},
                                   .attrs = blank_of(c)});
  return {bend.output(1), Output(), Output(), Output(), bend.output(0)};
}

}  // namespace

TROUPE_OPS(ctc_loss) {
  const std::vector<std::string> attrs = {"Tlabels: type {i32 i64} = i64", "blank: int = 0"};
  std::vector<std::string> in = {"logits", "labels: Tlabels", "label_lengths: Tlabels",
                                 "lengths: Tlabels"};
  r.add({.name = "CTCLoss",
         .in = in,
         .out = {"loss"},
         .types = "f32 f64",
         .attrs = attrs,
         .shape = loss_shape,
         .grad = loss_grad,
         .doc = "For each sequence: -log of the probability that logits [time, batch, classes] of "
                "its first `lengths` frames spell the first `label_lengths` of its labels [batch, "
                "most], by any path: each label and the class `blank` may be repeated in time, and "
                "blanks may stand anywhere, as they must between two equal labels. A sequence that "
                "is too short for its labels has the loss inf and the gradient 0. Gradients are of "
                "first and second order."})
      .cpu(float_kernel<CtcLoss>);
  in.push_back("dy");
  r.add({.name = "CTCLossGrad",
         .in = in,
         .out = {"dlogits"},
         .types = "f32 f64",
         .attrs = attrs,
         .shape = grad_shape,
         .grad = loss_grad_grad,
         .doc = "The gradient of CTCLoss for logits."})
      .cpu(float_kernel<CtcLossGrad>);
  in.push_back("d");
  r.add({.name = "CTCLossGradGrad",
         .in = in,
         .out = {"ddy", "dlogits"},
         .types = "f32 f64",
         .attrs = attrs,
         .shape = grad_grad_shape,
         .no_gradient = "a gradient of third order",
         .doc = "The gradient of CTCLossGrad for dy and logits."})
      .cpu(float_kernel<CtcLossGradGrad>);
}
