// Reset: containers are dropped between two runs, on all devices.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// The default container has a variable on each device and a queue, "kept" has a variable.
struct Contents {
  explicit Contents(const Place& place)
      : a(variable_on(g, place.first, "a", Tensor::scalar(1.0f))),
        b(variable_on(g, place.second, "b", Tensor::scalar(2.0f))),
        c(variable_on(g, place.second, "c", Tensor::scalar(3.0f), {.container = "kept"})),
        queue(queue_on(g, place.second)),
        size(queue_size(queue)),
        add(group(g, {assign_add(a, constant(g, 10.0f)), assign_add(b, constant(g, 10.0f))})),
        more(assign_add(c, constant(g, 10.0f))),
        put(enqueue(queue, {a.value()})),
        s(g, place) {
    s->init();
    s->run({}, {add, more, put});
  }
  bool initialised(const Variable& v) {
    return s->run({is_variable_initialized(v.handle())})[0].item<bool>();
  }
  float value(const Variable& v) { return s->run({v.value()})[0].item<float>(); }

  Graph g;
  Variable a, b, c;
  Output queue, size;
  Op add, more, put;
  PlacedSession s;
};

}  // namespace

TEST_CASE("after Reset variables are uninitialised and queues empty, until they are made anew") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Contents x(place);
    auto add = x.s->compile({}, {x.add});
    auto read = x.s->compile({x.a.value(), x.b.value()});
    CommitNumber before = x.s->committed();
    x.s->reset();
    Status status = read.try_run().status();
    CHECK(status.code() == Code::failed_precondition);
    CHECK(status.text().find("uninitialized") != std::string::npos);
    CHECK(add.try_run().status().code() == Code::failed_precondition);
    CHECK_FALSE(x.initialised(x.a));
    CHECK_FALSE(x.initialised(x.b));
    CHECK(x.s->run({x.size})[0].item<std::int64_t>() == 0);
    CHECK(x.value(x.c) == 13);  // of another container
    CHECK(x.s->committed() == before);
    x.s->init();
    add.run();
    auto values = read.run();
    CHECK(values[0].item<float>() == 11);
    CHECK(values[1].item<float>() == 12);
    x.s->run({}, {x.put});
    CHECK(x.s->run({take_from(x.queue)})[0].item<float>() == 11);
    CHECK(x.s->committed() > before);
  }
}

TEST_CASE("Reset of a container leaves the others, and names that nobody uses do no harm") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Contents x(place);
    auto add = x.s->compile({}, {x.add});
    x.s->reset({"kept", "never heard of", "kept"});
    CHECK_FALSE(x.initialised(x.c));
    // Not compiled anew: what it uses is still there.
    CHECK(add.start().try_get().ok());
    CHECK(x.value(x.a) == 21);
    CHECK(x.value(x.b) == 22);
    CHECK(x.s->run({x.size})[0].item<std::int64_t>() == 1);
    x.s->reset({"kept", ""});
    CHECK_FALSE(x.initialised(x.a));
    x.s->reset();  // what is gone already
    CHECK(add.start().try_get().status().code() == Code::not_found);
    CHECK(add.try_run().status().code() == Code::failed_precondition);
    x.s->init();
    CHECK(add.start().try_get().ok());
    CHECK(x.value(x.a) == 11);
    CHECK(x.value(x.c) == 3);
  }
}

TEST_CASE("Reset ends the runs that use the container, and no other") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Variable v = variable_on(g, place.first, "v", Tensor::scalar(0.0f));
    Output dropped = queue_on(g, place.second, {.container = "dropped", .shared_name = "queue"});
    Output kept = queue_on(g, place.second, {.shared_name = "queue"});
    Output first = take_from(dropped), second = take_from(kept);
    Op add = assign_add(v, first);
    PlacedSession s(g, place);
    s->init();
    auto both = s->compile({}, {add}), take = s->compile({second});
    std::vector<PendingRun> runs;
    for (int i = 0; i < 3; ++i) runs.push_back(both.start());
    PendingRun waits = take.start();
    s->reset({"dropped"});
    for (PendingRun& run : runs) {
      Status status = run.try_get().status();
      CHECK(status.code() == Code::aborted);
      CHECK(status.text().find("reset") != std::string::npos);
    }
    CHECK_FALSE(waits.done());
    s->run({}, {enqueue(kept, {constant(g, 5.0f)})});
    CHECK(waits.get()[0].item<float>() == 5);
    // Nobody waits at the new queue.
    s->run({}, {enqueue(dropped, {constant(g, 7.0f)})});
    CHECK(s->run({v.value()})[0].item<float>() == 0);
    both.run();
    CHECK(s->run({v.value()})[0].item<float>() == 7);
  }
}

TEST_CASE("after Reset a closed queue is open, and a name may stand for something else") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output queue = queue_on(g, place.second, {.capacity = 2, .shared_name = "queue"});
    Output larger = queue_on(g, place.second, {.capacity = 5, .shared_name = "queue"});
    Variable v = variable_on(g, place.first, "v", Tensor::scalar(1.0f), {.shared_name = "name"});
    PlacedSession s(g, place);
    s->init();
    Op put = enqueue(queue, {v.value()}), more = enqueue(larger, {v.value()});
    s->run({}, {put});
    s->run({}, {queue_close(queue)});
    CHECK(s->try_run({}, {put}).status().code() == Code::cancelled);
    CHECK(s->try_run({}, {more}).status().code() == Code::invalid_argument);
    Variable other = variable_on(g, place.first, "other", Tensor::of<std::int64_t>({2}, {4, 5}),
                                 {.shared_name = "name"});
    auto set = [&] {
      return s->try_run({}, {assign(other, constant<std::int64_t>(g, {2}, {6, 7}))}).status();
    };
    CHECK(set().code() == Code::already_exists);
    s->reset();
    CHECK(set().ok());
    CHECK(s->run({other.value()})[0].data<std::int64_t>()[1] == 7);
    CHECK(s->try_run({v.value()}).status().code() == Code::already_exists);
    Output five = constant(g, 5.0f);
    for (int i = 0; i < 5; ++i) s->run({}, {enqueue(larger, {five})});
    CHECK(s->run({queue_size(larger)})[0].item<std::int64_t>() == 5);
  }
}

TEST_CASE("Reset comes between runs, however many there are") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Variable a = variable_on(g, place.first, "a", Tensor::scalar(0.0f));
    Variable b = variable_on(g, place.second, "b", Tensor::scalar(0.0f));
    Op add = group(g, {assign_add(a, constant(g, 1.0f)), assign_add(b, constant(g, 1.0f))});
    PlacedSession s(g, place);
    s->init();
    auto both = s->compile({a.value(), b.value()}, {add});
    std::atomic<bool> over{false};
    std::atomic<int> passed{0}, torn{0}, odd{0};
    std::thread runs([&] {
      while (!over) {
        auto values = both.try_run();
        Code code = values.status().code();
        if (values.ok())
          ++passed, torn += (*values)[0].item<float>() != (*values)[1].item<float>();
        else if (code != Code::aborted && code != Code::failed_precondition &&
                 code != Code::not_found)
          ++odd;
      }
    });
    for (int i = 0; i < 30; ++i) {
      std::vector<PendingRun> before_it;
      for (int k = 0; k < 3; ++k) before_it.push_back(both.start());
      s->reset();
      for (const PendingRun& run : before_it) CHECK(run.done());
      CHECK(s->try_init().ok());
      for (int before = passed; passed == before && odd == 0;) std::this_thread::yield();
    }
    over = true;
    runs.join();
    MESSAGE(place.name, ": ", passed.load(), " runs");
    CHECK(torn == 0);
    CHECK(odd == 0);
    s->close();
    CHECK(s->try_reset().code() == Code::failed_precondition);
  }
}
