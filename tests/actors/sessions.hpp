// What tests of sessions share: the same case in one process and on two worker processes.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/session.hpp"
#include "ops/api/constant.hpp"
#include "ops/api/generated.hpp"
#include "ops/api/operators.hpp"
#include "ops/api/variable.hpp"
#include "ops/graph_api.hpp"
#include "tests/actors/tcp_workers.hpp"

namespace troupe::test {

// Where a case runs. `first` and `second` are devices for its nodes: the same one in one process.
struct Place {
  std::string name;
  const char* first;
  const char* second;
};
inline const Place kPlaces[] = {
    {"one process", "/job:worker/task:0", "/job:worker/task:0"},
    {"two workers", "/job:worker/task:0", "/job:worker/task:1"},
};

// A session on a place, with whatever it needs.
class PlacedSession {
 public:
  PlacedSession(GraphBuilder& g, const Place& place) {
    Cluster cluster;
    cluster.threads = 1;
    if (place.first != place.second) cluster = workers_.emplace(2).cluster();
    session_.emplace(g, cluster);
  }
  Session* operator->() { return &*session_; }
  Session& operator*() { return *session_; }
  void destroy() { session_.reset(); }

 private:
  std::optional<TcpWorkers> workers_;
  std::optional<Session> session_;
};

inline Op node(Graph& g, const char* device, std::string op, std::vector<Output> inputs,
               AttrMap attrs = {}) {
  auto there = g.with_device(device);
  NodeSpec spec;
  spec.op = std::move(op);
  spec.inputs = std::move(inputs);
  spec.attrs = std::move(attrs);
  spec.site = Site::here();
  return g.add(std::move(spec));
}

// A queue on `device`: a fetch of `taken` blocks until `put` ran. `fed` is what `put` puts.
struct Gate {
  Gate(Graph& g, const char* device) {
    AttrMap types{{"types", std::vector<DType>{DType::f32}},
                  {"shapes", std::vector<PartialShape>{PartialShape::scalar()}}};
    queue = node(g, device, "FIFOQueue", {}, types).output();
    taken = node(g, device, "Dequeue", {queue}, types).output();
    fed = placeholder<float>(g, PartialShape::scalar());
    put = node(g, device, "Enqueue", {queue, fed});
  }
  Output queue, taken, fed;
  Op put;
};

// Work for a lane that takes long: seconds, node after node of some 10 ms.
inline Output long_work(Graph& g, const char* device, Output start) {
  auto there = g.with_device(device);
  Output x = start;
  for (int i = 0; i < 400; ++i) x = mat_mul(x, start);
  return x;
}
inline Tensor long_work_start() { return Tensor::zeros(DType::f32, {1024, 1024}).value(); }

inline double seconds_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

}  // namespace troupe::test
