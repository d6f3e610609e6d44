// Lists that go to other devices and processes: those of programs, and those that gradients make.
#include <doctest/doctest.h>

#include <set>

#include "tests/actors/support/gradient_check.hpp"
#include "tests/protocol/loop_examples.hpp"

using namespace troupe;
using namespace troupe::test;
using loops::on;

namespace {

Tensor doubles(const std::vector<double>& all) {
  return Tensor::of<double>({std::int64_t(all.size())}, all);
}

// y of a vector x, with some of it on device `there`.
struct Example {
  const char* name;
  std::function<Output(Graph&, const Output& x, const std::string& there)> make;
};

std::vector<Example> gradient_examples() {
  return {
      {"fold",
       [](Graph& g, const Output& x, const std::string& there) {
         return fold(x, x * 0.5, [&](Output h, Output v) {
           return on(g, there, [&] { return sin(h) * v; }) + x;
         });
       }},
      {"fold of the other's values",
       [](Graph& g, const Output& x, const std::string& there) {
         Output rows = on(g, there, [&] { return reshape(x * x, {3, 1}) + x; });
         return fold(rows, x, [&](Output h, Output row) {
           return on(g, there, [&] { return tanh(h * row); }) * x;
         });
       }},
      {"scan",
       [](Graph& g, const Output& x, const std::string& there) {
         auto [last, all] = scan(x, x, [&](Output h, Output v) {
           Output next = on(g, there, [&] { return sin(h * x) + v; });
           return std::pair{next * h, next * v};
         });
         return last + sum(all * all, {.axes = {0}});
       }},
      {"map",
       [](Graph& g, const Output& x, const std::string& there) {
         return map(x, [&](Output v) {
           Output w = on(g, there, [&] { return exp(v * 0.25) * v; });
           return w * sum(x * w);
         });
       }},
      {"while_loop",
       [](Graph& g, const Output& x, const std::string& there) {
         return loop_of(g, constant(g, 3), x, [&](Output, Output v) {
           return on(g, there, [&] { return sin(v) * x; }) + v * v * 0.25;
         });
       }},
      {"a loop that computes again",
       [](Graph& g, const Output& x, const std::string& there) {
         return loop_of(g, constant(g, 3), x,
                        [&](Output, Output v) {
                          Output w = on(g, there, [&] { return sin(v) * x; });
                          return tanh(w * v);
                        },
                        {.save = LoopSave::variables});
       }},
      {"a loop in a loop, with a branch",
       [](Graph& g, const Output& x, const std::string& there) {
         return loop_of(g, constant(g, 3), x, [&](Output i, Output v) {
           return loop_of(g, i, sin(v), [&](Output j, Output w) {
             return cond(
                 mod(j, constant(g, 2)) == 0,
                 [&] { return on(g, there, [&] { return tanh(w) * x; }); }, [&] { return w * v; });
           });
         });
       }},
      {"a loop that is there, with a body here",
       [](Graph& g, const Output& x, const std::string& there) {
         Output here = x * 1.0;
         const std::string home = g.node(here.node()).device;
         return on(g, there, [&] {
           return loop_of(g, constant(g, 3), x, [&](Output, Output v) {
             return on(g, home, [&] { return sin(v) * x; }) * v;
           });
         });
       }},
      {"an array that is written there and read here",
       [](Graph& g, const Output& x, const std::string& there) {
         TensorArray made = on(g, there, [&] {
           TensorArray ta(g, DType::f64, {.element = {3}});
           return ta.push(x * x).push(sin(x)).push(x);
         });
         Output third = made.read(constant(g, 2));
         TensorArray more = made.write(constant(g, 0), third * made.read(constant(g, 1)));
         return on(g, there, [&] { return sum(more.stack(), {.axes = {0}}); }) * third;
       }},
      {"a list that loops on both hand on",
       [](Graph& g, const Output& x, const std::string& there) {
         Output list = list_push(list_empty(g, DType::f64, {.shape = {3}}), x);
         auto [i, last] = while_loop(
             std::tuple{constant(g, 0), list}, [&](Output i, Output) { return i < 3; },
             [&](Output i, Output l) {
               Output v = on(g, there, [&] { return sin(list_get(l, i, DType::f64)) * x; });
               return std::tuple{i + 1, list_push(l, v)};
             });
         return on(g, there, [&, last = last] {
           return fold(list_stack(last, DType::f64, {.length = 4}), x,
                       [&](Output h, Output v) { return h * v; });
         });
       }},
      {"a list on one side of a branch",
       [](Graph& g, const Output& x, const std::string& there) {
         Output list = cond(
             sum(x) > constant(g, 0.0),
             [&] { return on(g, there, [&] {
                     return list_unstack(reshape(x * x, {3, 1}));
                   }); },
             [&] {
               return list_unstack(reshape(x, {3, 1}));
             });
         return sum(list_stack(list, DType::f64, {.length = 3}) * x, {.axes = {0}});
       }},
      {"lists in a list",
       [](Graph& g, const Output& x, const std::string& there) {
         Output inner = on(g, there, [&] { return list_unstack(reshape(x * x, {3, 1})); });
         Output outer = on(g, there, [&] {
           return list_push(list_push(list_empty(g, DType::list), inner), list_unstack(x));
         });
         Output back = list_get(outer, constant(g, 0), DType::list);
         return list_get(back, constant(g, 1), DType::f64) * x;
       }},
  };
}

// In which what the second device has is in another process, in another device of this one, or in
// memory that the host cannot read.
struct Where {
  const char* name;
  std::vector<std::string> types;  // of this process; none: two workers
  const char* first;
  const char* second;
};
const Where kWheres[] = {
    {"two devices", {"CPU", "CPU"}, "/cpu:0", "/cpu:1"},
    {"a device with memory of its own", {"CPU", "FAKE"}, "/cpu:0", "/fake:0"},
    {"beside a device with memory of its own", {"CPU", "FAKE"}, "/fake:0", "/cpu:0"},
    {"two workers", {}, kTask0, kTask1},
};

class Sessions {
 public:
  Sessions(Graph& g, const Where& where) {
    if (where.types.empty()) {
      placed_.emplace(g, kPlaces[1]);
      return;
    }
    Cluster cluster = one_thread();
    cluster.devices = where.types;
    session_.emplace(g, cluster);
  }
  Session& operator*() { return placed_ ? **placed_ : *session_; }

 private:
  std::optional<PlacedSession> placed_;
  std::optional<Session> session_;
};

// Those of these names; none: all.
void compare(const Where& where, const std::set<std::string>& names = {}) {
  CAPTURE(where.name);
  Graph g;
  Output x = on(g, where.first, [&] { return placeholder<double>(g, {3}, "x"); });
  Sessions s(g, where);
  for (const Example& example : gradient_examples()) {
    const std::string name = example.name;
    if (!names.empty() && !names.contains(name)) continue;
    CAPTURE(name);
    std::vector<Output> fetches;
    for (const char* there : {where.second, where.first})
      on(g, where.first, [&] {
        Output y = example.make(g, x, there);
        Output dx = gradient_of(sum(y * sin(y)), x);
        Output ddx = gradient_of(sum(dx * dx), x);
        for (const Output& o : {y, dx, ddx}) fetches.push_back(identity(o));
        return 0;
      });
    for (const Tensor& at : {doubles({0.25, -1.5, 2}), doubles({-0.5, -1, 0.125})}) {
      const std::vector<Tensor> got = (*s).run(fetches, {}, {{x, at}});
      for (std::size_t i = 0; i < 3; ++i)
        CHECK_MESSAGE(Tensor::same(got[i], got[i + 3]), i, ": ", got[i].text(), " instead of ",
                      got[i + 3].text());
    }
  }
}

}  // namespace

TEST_CASE("lists and their gradients, twice, are the same over two processes") {
  compare(kWheres[3], {"fold", "scan", "map", "an array that is written there and read here"});
}

TEST_CASE("lists and their gradients, twice, are the same over memories of their own") {
  compare(kWheres[1], {"fold", "lists in a list"});
  compare(kWheres[2], {"a list that loops on both hand on"});
}

TEST_CASE("all kinds of lists and their gradients are the same over devices and processes [slow]") {
  for (const Where& where : kWheres) compare(where);
}

TEST_CASE("a list of holes, zeros and long elements goes to another process and back") {
  Graph g;
  Output x = placeholder<double>(g, {-1, 100}, "x");
  Output there = node(g, kTask1, "ListUnstack", {x}).output();
  Output zeros = node(g, kTask1, "ListZerosLike", {there}).output();
  Output here = node(g, kTask0, "ListAddN", {zeros, there}).output();
  Output back = on(g, kTask1, [&] { return list_stack(here, DType::f64); });
  PlacedSession s(g, kPlaces[1]);
  for (std::int64_t n : {1, 7, 3000}) {
    Tensor rows = Tensor::zeros(DType::f64, {n, 100}).value();
    for (std::int64_t i = 0; i < rows.elements(); ++i) rows.mutable_data<double>()[i] = double(i);
    CHECK(Tensor::same(s->run({back}, {}, {{x, rows}})[0], rows));
  }
}

TEST_CASE("lists in lists that are too deep to be sent are an error of their step alone") {
  Graph g;
  Output n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
  Output deep = on(g, kTask1, [&] {
    return std::get<1>(while_loop(
        std::tuple{constant(g, 0), list_empty(g, DType::list)},
        [&](Output i, Output) { return i < n; },
        [&](Output i, Output l) {
          return std::tuple{i + 1, list_push(list_empty(g, DType::list), l)};
        },
        {.shapes = {{}, PartialShape::unknown()}}));
  });
  Output length = on(g, kTask0, [&] { return list_length(deep); });
  PlacedSession s(g, kPlaces[1]);
  auto step = s->compile({length}, {}, {n});
  CHECK(step.run({Tensor::scalar(std::int32_t{20})})[0].item<std::int64_t>() == 1);
  const Status status = step.try_run({Tensor::scalar(std::int32_t{100})}).status();
  CHECK(status.code() == Code::invalid_argument);
  CHECK_MESSAGE(status.text().find("lists in lists are more than 64 deep") != std::string::npos,
                status.text());
  CHECK(step.run({Tensor::scalar(std::int32_t{20})})[0].item<std::int64_t>() == 1);
}

TEST_CASE("what arrives in a list counts as the memory of the step that takes it") {
  // Where it is made the same value is in it n times.
  Graph g;
  Output n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
  Output list = on(g, kTask0, [&] {
    Output x = fill(constant(g, Tensor::of<std::int64_t>({1}, {100'000})), cast<double>(n));
    return std::get<1>(while_loop(
        std::tuple{constant(g, 0), list_empty(g, DType::f64, {.shape = {100'000}})},
        [&](Output i, Output) { return i < n; },
        [&](Output i, Output l) {
          return std::tuple{i + 1, list_push(l, x)};
        }));
  });
  Output length = on(g, kTask1, [&] { return list_length(list); });
  TcpWorkers workers(2);
  Cluster cluster = workers.cluster();
  cluster.step_memory = 4 << 20;
  Session s(g, cluster);
  auto step = s.compile({length}, {}, {n});
  CHECK(step.run({Tensor::scalar(std::int32_t{2})})[0].item<std::int64_t>() == 2);
  const Status status = step.try_run({Tensor::scalar(std::int32_t{9})}).status();
  CHECK_MESSAGE(status.code() == Code::resource_exhausted, status.text());
  CHECK(step.run({Tensor::scalar(std::int32_t{3})})[0].item<std::int64_t>() == 3);
}

TEST_CASE("each replica reads a list that is made once for all, where it is") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output queue = queue_on(g, place.first), own = take_from(queue);
    Output fed = placeholder<float>(g, PartialShape::scalar(), "fed");
    Op put = enqueue(queue, {fed});
    Variable v = variable_on(g, place.second, "v", Tensor::scalar(1.0f));
    Variable w = variable_on(g, place.first, "w", Tensor::scalar(100.0f));
    Output list = on(g, place.second, [&] {
      auto [x, powers] = while_loop(
          std::tuple{v.value(), list_empty(g, DType::f32, {.shape = PartialShape::scalar()})},
          [&](Output x, Output) { return x < 5.0f; },
          [&](Output x, Output l) {
            return std::tuple{x * 2.0f, list_push(l, x)};
          });
      return powers;
    });
    Output mine = list_get(list, cast<std::int32_t>(own), DType::f32);
    Op made = g.add(
        NodeSpec{.op = "ApplyGradientDescent", .inputs = {w.handle(), constant(g, 1.0f), mine}});
    PlacedSession s(g, place);
    s->init();
    auto step = s->compile({}, {made}, {}, {.replicas = 2});
    for (float x : {0.0f, 2.0f}) s->run({}, {put}, {{fed, Tensor::scalar(x)}});
    step.run();
    CHECK(s->run({w})[0].item<float>() == 97.5f);  // the mean of 1 and 4
  }
}
