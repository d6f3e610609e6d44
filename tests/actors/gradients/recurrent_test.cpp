// Recurrent layers: one node, a part of the graph for each step and a loop compute the same, of as
// many steps as a sequence has.
#include <doctest/doctest.h>

#include "ops/api.hpp"
#include "ops/nn/nn.hpp"
#include "ops/optim/optim.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::int64_t kIn = 3, kUnits = 4, kBatch = 2;

// [time, batch, in] and states, the same for the same sizes.
Tensor drawn(const Shape& shape, double phase) {
  std::vector<double> values(std::size_t(shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(12.9898 * double(i) + phase);
  return Tensor::of<double>(shape, values);
}

Output parts_of(const std::vector<Output>& values) {
  Output total;
  for (const Output& value : values) {
    const Output part = sum(sin(value * 3.0));
    total = total.empty() ? part : total + part;
  }
  return total;
}

std::vector<Output> states_of(const nn::Lstm::State& s) { return {s.h, s.c}; }
std::vector<Output> states_of(const nn::Gru::State& s) { return {s.h}; }
void set_states(nn::Lstm::State& s, const std::vector<Output>& v) { s.h = v[0], s.c = v[1]; }
void set_states(nn::Gru::State& s, const std::vector<Output>& v) { s.h = v[0]; }

template <class Layer>
struct Net : nn::Module {
  Net(Scope scope, nn::OverTime over_time)
      : Module(std::move(scope)),
        lower(*this, "lower", kIn, kUnits, {.over_time = over_time, .dtype = DType::f64}),
        upper(*this, "upper", kUnits, kUnits, {.over_time = over_time, .dtype = DType::f64}) {}
  Layer lower, upper;
};

// Two layers over x, the lower one from a state that is fed. Fetched are the states of each step,
// the last ones, all gradients of a function of these, and the products of its Hessian with a
// vector.
template <class Layer>
struct Program {
  Graph g{3};
  Output x;
  std::vector<Output> first, values, slopes, bends;
  Net<Layer> net;
  std::optional<Session> session;
  std::optional<CompiledStep> step;

  Program(nn::OverTime over_time, const PartialShape& shape)
      : x(placeholder<double>(g, shape, "x")), net(g.scope("net"), over_time) {
    typename Layer::State state;
    for (std::size_t i = 0; i < states_of(state).size(); ++i)
      first.push_back(placeholder<double>(g, {shape[1], kUnits}, "first"));
    set_states(state, first);
    const auto lower = net.lower(x, state);
    const auto upper = net.upper(lower.h);
    values = {upper.h};
    for (const auto& last : {lower.last, upper.last})
      for (const Output& value : states_of(last)) values.push_back(value);

    std::vector<Output> of{x};
    of.insert(of.end(), first.begin(), first.end());
    for (const Variable& v : net.parameters()) of.push_back(v.handle());
    const Output loss = parts_of(values);
    slopes = value_or_throw(gradients(std::vector{loss}, of));
    const Output along = parts_of(slopes);
    bends = value_or_throw(gradients(std::vector{along}, of));
  }

  std::vector<Tensor> run(std::int64_t time) {
    if (!session) {
      session.emplace(g, one_thread());
      session->init();
      std::vector<Output> fetches = values, feeds{x};
      fetches.insert(fetches.end(), slopes.begin(), slopes.end());
      fetches.insert(fetches.end(), bends.begin(), bends.end());
      feeds.insert(feeds.end(), first.begin(), first.end());
      step = session->compile(fetches, {}, feeds);
    }
    std::vector<Tensor> fed{drawn({time, kBatch, kIn}, 1)};
    for (std::size_t i = 0; i < first.size(); ++i)
      fed.push_back(drawn({kBatch, kUnits}, 2 + double(i)));
    return step->run(fed);
  }
};

void check_same(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    REQUIRE(got[i].shape() == want[i].shape());
    for (std::int64_t k = 0; k < got[i].elements(); ++k) {
      const double a = got[i].data<double>()[k], b = want[i].data<double>()[k];
      REQUIRE(std::abs(a - b) <= 1e-12 * std::max(1.0, std::abs(b)));
    }
  }
}

template <class Layer>
void check_all_ways() {
  std::map<std::int64_t, std::vector<Tensor>> want;
  for (std::int64_t time : {4, 1})
    want[time] = Program<Layer>(nn::OverTime::unrolled, {time, kBatch, kIn}).run(time);
  for (const nn::OverTime over_time : {nn::OverTime::fused, nn::OverTime::loop}) {
    CAPTURE(int(over_time));
    for (std::int64_t time : {4, 1}) {
      CAPTURE(time);
      check_same(Program<Layer>(over_time, {time, kBatch, kIn}).run(time), want[time]);
    }
    for (std::int64_t batch : {kBatch, std::int64_t{-1}}) {
      Program<Layer> open(over_time, {-1, batch, kIn});
      CHECK(open.values[0].shape() == PartialShape{-1, batch, kUnits});
      for (std::int64_t time : {4, 1, 4}) {
        CAPTURE(time);
        check_same(open.run(time), want[time]);
      }
    }
  }
}

// Of no steps: the first states are the last ones, the parameters have no part in it.
template <class Layer>
void check_no_steps() {
  for (const nn::OverTime over_time : {nn::OverTime::fused, nn::OverTime::loop})
    for (const auto& sizes : {std::pair{std::int64_t{-1}, kBatch},
                              {std::int64_t{0}, kBatch},
                              {std::int64_t{-1}, std::int64_t{-1}},
                              {std::int64_t{0}, std::int64_t{-1}}}) {
      const std::int64_t time = sizes.first, batch = sizes.second;
      CAPTURE(int(over_time));
      CAPTURE(time);
      CAPTURE(batch);
      Program<Layer> p(over_time, {time, batch, kIn});
      const std::vector<Tensor> got = p.run(0);
      CHECK(got[0].shape() == Shape{0, kBatch, kUnits});
      const std::size_t n = p.first.size();
      for (std::size_t i = 0; i < n; ++i) {
        const Tensor state = drawn({kBatch, kUnits}, 2 + double(i));
        CHECK(Tensor::same(got[1 + i], state));
        const Tensor& slope = got[p.values.size() + 1 + i];
        for (std::int64_t k = 0; k < slope.elements(); ++k)
          CHECK(slope.data<double>()[k] ==
                doctest::Approx(3 * std::cos(3 * state.data<double>()[k])));
      }
      for (std::size_t i = p.values.size() + 1 + n; i < p.values.size() + p.slopes.size(); ++i)
        for (std::int64_t k = 0; k < got[i].elements(); ++k) CHECK(got[i].data<double>()[k] == 0);
    }
}

// Which says why, and in which line of this file.
void check_says(const std::string& error, const std::string& why) {
  CHECK_MESSAGE(error.find(why) != std::string::npos, error);
  CHECK_MESSAGE(error.find("recurrent_test.cpp:") != std::string::npos, error);
}

void check_refused(const std::function<void()>& use, const std::string& why) {
  try {
    use();
    FAIL("it was not refused: " << why);
  } catch (const Error& error) {
    check_says(error.status().text(), why);
  }
}

}  // namespace

TEST_CASE("an LSTM in one node, step by step and in a loop: values and derivatives are the same") {
  check_all_ways<nn::Lstm>();
}

TEST_CASE("a GRU step by step and in a loop: values and derivatives are the same") {
  check_all_ways<nn::Gru>();
}

TEST_CASE("the derivatives of a long LSTM in one node take no more graph for more steps") {
  const auto nodes = [](std::int64_t time) {
    return Program<nn::Lstm>(nn::OverTime::fused, {time, kBatch, kIn}).g.def().nodes.size();
  };
  CHECK(nodes(1000) == nodes(100));
}

TEST_CASE("a sequence of no steps ends in the state in which it begins") {
  check_no_steps<nn::Lstm>();
  check_no_steps<nn::Gru>();
}

TEST_CASE("sequences of unknown length go through layers in branches and loops") {
  auto run = [](nn::OverTime over_time, std::int64_t time) {
    Graph g{3};
    Output x = placeholder<double>(g, {time, kBatch, kUnits}, "x");
    Output often = placeholder<std::int64_t>(g, PartialShape::scalar(), "often");
    const nn::RecurrentOptions options{.over_time = over_time, .dtype = DType::f64};
    struct Root : nn::Module {
      using Module::Module;
    } root{g.scope("net")};
    nn::Lstm lstm{root, "lstm", kUnits, kUnits, options};
    nn::Gru gru{root, "gru", kUnits, kUnits, options};
    Output y = cond(
        often > std::int64_t{0},
        [&] {
          auto [i, h] = while_loop(
              std::tuple{constant(g, std::int64_t{0}), x},
              [&](Output i, Output) { return i < often; },
              [&](Output i, Output h) {
                return std::tuple{i + 1, gru(lstm(h).h).h};
              });
          return h;
        },
        [&] { return x; });
    std::vector<Output> of{x};
    for (const Variable& v : root.parameters()) of.push_back(v.handle());
    std::vector<Output> fetches{y};
    for (int order = 0; order < 2; ++order) {
      const Output loss = parts_of(fetches);
      for (const Output& slope : value_or_throw(gradients(std::vector{loss}, of)))
        fetches.push_back(slope);
    }
    Session session(g, one_thread());
    session.init();
    return session.compile(fetches, {}, {x, often})
        .run({drawn({3, kBatch, kUnits}, 1), Tensor::scalar(std::int64_t{2})});
  };
  const std::vector<Tensor> want = run(nn::OverTime::unrolled, 3);
  check_same(run(nn::OverTime::fused, -1), want);
  check_same(run(nn::OverTime::loop, -1), want);
}

TEST_CASE("what does not fit a recurrent layer is refused by the line that uses it") {
  Graph g;
  struct Root : nn::Module {
    using Module::Module;
  } root{g.scope("net")};
  int n = 0;
  for (const nn::OverTime over_time :
       {nn::OverTime::fused, nn::OverTime::unrolled, nn::OverTime::loop}) {
    CAPTURE(int(over_time));
    const auto name = [&](const char* what) { return what + std::to_string(n++); };
    nn::Lstm lstm{root, name("lstm"), kIn, kUnits, {.over_time = over_time}};
    nn::Gru gru{root, name("gru"), kIn, kUnits, {.over_time = over_time}};
    const Output x = placeholder<float>(g, {5, kBatch, kIn}, "x");
    const Output state = placeholder<float>(g, {kBatch + 1, kUnits}, "state");
    const Output narrow = placeholder<float>(g, {kBatch, kUnits - 1}, "state");
    const Output wide = placeholder<float>(g, {5, kBatch, kIn + 1}, "wide");
    const Output flat = placeholder<float>(g, {5, kIn}, "flat");
    check_refused([&] { lstm(wide); }, "must be 3");
    check_refused([&] { gru(wide); }, "must be 3");
    check_refused([&] { lstm(flat); }, "a sequence is [time, batch, in]");
    check_refused([&] { gru(flat); }, "a sequence is [time, batch, in]");
    const Output other = placeholder<double>(g, {kBatch, kUnits}, "other");
    for (const Output& first : {state, narrow, other, Output()}) {
      check_refused([&] { lstm(x, {first, first}); }, "a state of the sequence is f32[2,4], not ");
      check_refused([&] { gru(x, {first}); }, "a state of the sequence is f32[2,4], not ");
    }
    const Output open = placeholder<float>(g, {-1, kBatch, kIn}, "open");
    if (over_time != nn::OverTime::unrolled) {
      lstm(open);
      gru(open);
      continue;
    }
    check_refused([&] { lstm(open); }, "known number of steps");
    check_refused([&] { gru(open); }, "known number of steps");
  }
}

TEST_CASE("a state of another batch than the sequence fails the run, by the line of the layer") {
  for (const nn::OverTime over_time : {nn::OverTime::fused, nn::OverTime::loop}) {
    CAPTURE(int(over_time));
    Graph g;
    Net<nn::Lstm> net{g.scope("net"), over_time};
    const Output x = placeholder<double>(g, {-1, -1, kIn}, "x");
    const Output state = placeholder<double>(g, {-1, kUnits}, "state");
    const Output y = net.lower(x, {state, state}).h;
    Session session(g, one_thread());
    session.init();
    const auto step = session.compile({y}, {}, {x, state});
    CHECK(step.run({drawn({2, 3, kIn}, 1), drawn({3, kUnits}, 1)})[0].shape() ==
          Shape{2, 3, kUnits});
    const std::string error =
        step.try_run({drawn({2, 3, kIn}, 1), drawn({2, kUnits}, 1)}).status().text();
    check_says(error, "Lstm");
  }
}

TEST_CASE("the shape of a sequence's first state need not be known") {
  const PartialShape known{kBatch, kUnits}, batch{kBatch, -1}, units{-1, kUnits},
      unknown = PartialShape::unknown();
  const auto run = [](nn::OverTime over_time, std::int64_t time, const PartialShape& first_h,
                      const PartialShape& first_c) {
    Graph g{3};
    const nn::RecurrentOptions options{.over_time = over_time, .dtype = DType::f64};
    struct Root : nn::Module {
      using Module::Module;
    } root{g.scope("net")};
    nn::Lstm lstm{root, "lstm", kIn, kUnits, options};
    nn::Gru gru{root, "gru", kIn, kUnits, options};
    const Output x = placeholder<double>(g, {time, kBatch, kIn}, "x");
    const Output h = placeholder<double>(g, first_h, "h"), c = placeholder<double>(g, first_c, "c");
    const auto a = lstm(x, {h, c});
    const auto b = gru(x, {h});
    std::vector<Output> fetches{a.h, a.last.c, b.h, b.last.h};
    const Output loss = parts_of(fetches);
    for (const Output& slope : value_or_throw(gradients(std::vector{loss}, std::vector{x, h, c})))
      fetches.push_back(slope);
    Session session(g, one_thread());
    session.init();
    const Tensor fed = drawn({kBatch, kUnits}, 2);
    return session.compile(fetches, {}, {x, h, c}).run({drawn({4, kBatch, kIn}, 1), fed, fed});
  };
  const std::vector<Tensor> want = run(nn::OverTime::unrolled, 4, known, known);
  for (const auto& first : {std::pair{known, units},
                            {units, known},
                            {batch, batch},
                            {unknown, known},
                            {unknown, unknown}}) {
    const PartialShape &h = first.first, &c = first.second;
    CAPTURE(h.text());
    CAPTURE(c.text());
    check_same(run(nn::OverTime::fused, -1, h, c), want);
    check_same(run(nn::OverTime::loop, -1, h, c), want);
    check_same(run(nn::OverTime::loop, 4, h, c), want);
  }
}

TEST_CASE("replicas in several processes train layers in loops of their own to the same bits") {
  std::vector<Tensor> want;
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g{3};
    auto batches = data::digits(64).batch(4).repeat().outputs(g);
    const Output rows = transpose(reshape(batches[0], {4, 28, 28}), {.perm = {1, 0, 2}});
    struct Root : nn::Module {
      using Module::Module;
    } root{g.scope("net")};
    nn::Gru gru{root, "gru", 28, kUnits, {.over_time = nn::OverTime::loop}};
    const Output loss = mean(square(gru(rows).last.h - 1.0f));
    const Op train = optim::Sgd{.lr = 0.5}.minimize(loss);
    PlacedSession session(g, place);
    session->init();
    const auto step = session->compile({}, {train}, {}, {.replicas = 2});
    for (int i = 0; i < 2; ++i) step.run();
    std::vector<Tensor> got;
    for (const Variable& v : root.parameters()) got.push_back(session->run({read(v)})[0]);
    if (want.empty()) want = got;
    REQUIRE(got.size() == want.size());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(Tensor::same(got[i], want[i]));
  }
}

TEST_CASE("what replicas in several processes push onto a list may name the list's device") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g{3};
    auto batches = data::digits(64).batch(4).repeat().outputs(g);
    const Output empty = list_empty(g, DType::f32);
    const Output list = [&] {
      auto beside = g.with_colocation(empty.name());
      return list_push(empty, batches[0]);
    }();
    const Output total = mean(list_get(list, constant(g, std::int64_t{0}), DType::f32));
    PlacedSession session(g, place);
    CHECK(session->compile({total}, {}, {}, {.replicas = 2}).run()[0].item<float>() > 0);
  }
}
