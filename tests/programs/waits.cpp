// A program whose run never ends: the argument says for what it waits. Under `troupe run` others
// find out.
#include <string>

#include "apps/troupe.hpp"
using namespace troupe;

namespace {

Output endless(Output x) {
  auto [turns, last] = while_loop(
      std::tuple{x * 0.0f, x}, [](Output, Output v) { return v < 1e9f; },
      [](Output n, Output v) {
        return std::tuple{n, v * 1.0f};
      });
  return last;
}

}  // namespace

int main(int argc, char** argv) {
  become_worker_if_started_as_one();
  const std::string what = argc > 1 ? argv[1] : "";
  const Cluster cluster = Cluster::from_args(argc, argv);
  Graph g;
  Output queue =
      fifo_queue(g, {DType::f32},
                 {.shapes = {PartialShape::scalar()}, .capacity = 1, .shared_name = "letters"});
  Op put = enqueue(queue, {constant(g, 1.0f)});
  Output x = placeholder<float>(g, PartialShape::scalar(), "x");
  std::vector<Output> fetches;
  std::vector<Op> targets;
  if (what == "empty") {
    fetches = {dequeue(queue, {DType::f32}, {.shapes = {PartialShape::scalar()}})[0]};
  } else if (what == "full") {
    targets = {put};
  } else if (what == "lane") {
    fetches = {endless(x)};
  } else if (what == "tensor") {
    auto there = g.with_device("/job:worker/task:1");
    Output made = endless(x);
    auto back = g.with_device("/job:worker/task:0");
    fetches = {made * 2.0f};
  } else if (what == "dataset") {
    auto rows = data::tensors({Tensor::zeros(DType::f32, {4}).value()});
    auto [row] = rows.map(g, [](Output each) { return endless(each); }).outputs<1>(g);
    fetches = {row};
  } else if (what == "mutex") {
    // The run waits for one that holds the mutex and waits for an element.
    const Op acquire = mutex_acquire(mutex(g, {.shared_name = "pen"}));
    auto locked = g.with_control({acquire});
    fetches = {x * 2.0f, dequeue(queue, {DType::f32}, {.shapes = {PartialShape::scalar()}})[0]};
  } else if (what == "branch") {
    fetches = {cond(
        x > 0.0f, [&] { return endless(x); }, [&] { return x; })};
  } else if (what == "shape") {
    mat_mul(constant(g, Tensor::zeros(DType::f32, {2, 3}).value()),
            constant(g, Tensor::zeros(DType::f32, {2, 3}).value()));
  } else {
    print(stderr, "waits empty|full|lane|tensor|dataset|branch|mutex [--cluster local:2]\n");
    return 2;
  }
  Session session(g, cluster);
  if (what == "full") session.run({}, {put});
  const bool fed = what == "lane" || what == "tensor" || what == "branch" || what == "mutex";
  PendingRun holder;
  if (what == "mutex") holder = session.compile(fetches, {}, {x}).start({Tensor::scalar(1.0f)});
  session.run(fetches, targets,
              fed ? std::vector<Feed>{{x, Tensor::scalar(1.0f)}} : std::vector<Feed>{});
}
