// What tests of sessions share: the same case in one process and on two worker processes.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "actors/client/session.hpp"
#include "tests/actors/support/nodes.hpp"
#include "tests/actors/support/tcp_workers.hpp"

namespace troupe::test {

// Where a case runs. `first` and `second` are devices for its nodes: the same one in one process.
struct Place {
  std::string name;
  const char* first;
  const char* second;
};
inline const Place kPlaces[] = {
    {"one process", kTask0, kTask0},
    {"two workers", kTask0, kTask1},
};

inline Cluster one_thread() {
  Cluster cluster;
  cluster.threads = 1;
  return cluster;
}

// What a variable of one number is.
inline double now(Session& s, const Variable& v) { return s.run({read(v)})[0].item<double>(); }

// What a session of this cluster says while it starts.
inline Status open_session(const Cluster& cluster) {
  Graph g;
  try {
    Session s(g, cluster);
  } catch (const Error& error) {
    return error.status();
  }
  return ok_status();
}

inline void says(const Status& status, Code code, std::string_view what) {
  CAPTURE(status.text());
  CHECK(status.code() == code);
  CHECK(status.text().find(what) != std::string::npos);
}

// A session on a place, with whatever it needs.
class PlacedSession {
 public:
  PlacedSession(GraphBuilder& g, const Place& place) {
    bool alone = place.first == place.second;
    session_.emplace(g, alone ? one_thread() : workers_.emplace(2).cluster());
  }
  Session* operator->() { return &*session_; }
  Session& operator*() { return *session_; }
  void destroy() { session_.reset(); }

 private:
  std::optional<TcpWorkers> workers_;
  std::optional<Session> session_;
};

// A queue on `device`: a fetch of `taken` blocks until `put` ran. `fed` is what `put` puts.
struct Gate {
  Gate(Graph& g, const char* device)
      : queue(queue_on(g, device)),
        taken(take_from(queue)),
        fed(placeholder<float>(g, PartialShape::scalar())),
        put(enqueue(queue, {fed})) {}
  Output queue, taken, fed;
  Op put;
};

// A session with a step that waits at a gate on `gated`. On the second device it computes -x of the
// x that is put there.
struct GatedSession {
  GatedSession(const Place& place, const char* gated)
      : gate(g, gated),
        negative(node(g, place.second, "Neg", {gate.taken}).output()),
        s(g, place),
        take(s->compile({negative})) {}
  void put(float x) { s->run({}, {gate.put}, {{gate.fed, Tensor::scalar(x)}}); }

  Graph g;
  Gate gate;
  Output negative;
  PlacedSession s;
  CompiledStep take;
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
