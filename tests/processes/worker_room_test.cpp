#include "actors/processes/worker_room.hpp"

#include <doctest/doctest.h>

#include "tests/contains.hpp"

using namespace troupe;
using test::contains;

TEST_CASE("more workers than a machine can hold are refused before one is started") {
  const auto said = [](int workers, const WorkerRoom& room) {
    const Status status = check_room(workers, room);
    CHECK(status.code() == (status.ok() ? Code::ok : Code::resource_exhausted));
    return status.message();
  };
  const WorkerRoom memory{.memory = std::uint64_t{8} << 30};
  CHECK(said(1000, memory) ==
        "1000 workers on this machine need at the least 42 GiB of memory, and there are 8 GiB: at "
        "most 410 fit");
  CHECK(said(410, memory).empty());
  CHECK_FALSE(said(411, memory).empty());
  const WorkerRoom threads{.threads = 1000};
  CHECK(contains(said(126, threads), "1008 threads, and there may be 1000 more"));
  CHECK(contains(said(126, threads), "at most 125 fit"));
  CHECK(said(125, threads).empty());
  const WorkerRoom descriptors{.descriptors = 1024};
  CHECK(contains(said(254, descriptors), "1027 descriptors in their master, and there are 1024"));
  CHECK(contains(said(254, descriptors), "at most 253 fit"));
  CHECK(said(253, descriptors).empty());
  CHECK(said(4096, {}).empty());
  CHECK(said(0, {.memory = 0, .threads = 0, .descriptors = 0}).empty());
}

TEST_CASE("this machine can hold a worker") {
  CHECK(check_room(0, WorkerRoom::here()).ok());
  CHECK(check_room(1, WorkerRoom::here()).ok());
}
